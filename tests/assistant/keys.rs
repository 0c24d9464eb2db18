//! Keys of the input: wide characters, completion, the menu, and the end.

use super::assistant;
use super::tmux::Tmux;
use crate::ask::server::{ModelServer, Reply};
use crate::harness::skip;

#[test]
fn the_cursor_stands_where_wide_characters_end() {
    let server = ModelServer::start(vec![]);
    let Some(tmux) = Tmux::start(assistant(&server, &[]), 80, 24) else {
        return skip("tmux is not installed");
    };
    tmux.wait(|screen| screen.contains("\n>"));
    tmux.text("日本語🎉é");
    tmux.wait(|screen| screen.contains("> 日本語🎉é"));
    let column = |at: usize| {
        let start = format!("{at},");
        tmux.wait(|_| tmux.cursor().starts_with(&start));
    };
    column(11);
    tmux.key("Left");
    tmux.key("Left");
    column(8);
    tmux.key("BSpace");
    tmux.text("ü");
    tmux.wait(|screen| screen.contains("> 日本ü🎉é"));
    column(7);
}

#[test]
fn commands_are_completed_and_unknown_ones_have_a_neighbour() {
    let server = ModelServer::start(vec![]);
    let mut terminal = assistant(&server, &[]).on_terminal();
    terminal.expect("/help").forget();
    terminal
        .keys("/sta")
        .expect("show model, directory")
        .keys("\r");
    terminal
        .keys("\r")
        .expect("model openai_chat:tiny, mode ask");
    terminal
        .keys("/quti")
        .keys("\r")
        .expect("did you mean /quit?");
    // Ctrl+D on the empty line.
    terminal.keys("\x04");
    assert_eq!(terminal.echo_at_end(), (true, 0));
}

#[test]
fn the_editor_changes_the_input_while_the_answer_goes_on() {
    let (reply, gate) = Reply::gated(vec!["Part one.\n\n".into(), "Part two.".into()]);
    let server = ModelServer::start(vec![reply]);
    let karyi = assistant(&server, &[]).file(
        "edit",
        "echo editing; read line < /dev/tty; printf '%s more\\n' \"$(cat \"$1\")\" > \"$1\"\n",
    );
    let editor = format!("sh {}", karyi.work().join("edit").display());
    let mut terminal = karyi.env("EDITOR", &editor).on_terminal();
    terminal
        .expect("/help")
        .keys("go\r")
        .expect("waiting for the model");
    terminal.keys("text\x07").expect("editing").forget();
    gate.send(()).unwrap();
    gate.send(()).unwrap();
    terminal
        .keys("\r")
        .expect("Part two.")
        .expect("> text more");
    terminal.keys("\x03\x04");
    assert_eq!(terminal.echo_at_end(), (true, 0));
}

#[test]
fn ctrl_c_opens_the_menu_and_quits_from_it() {
    let server = ModelServer::start(vec![]);
    let mut terminal = assistant(&server, &[]).on_terminal();
    terminal
        .expect("/help")
        .keys("\x03")
        .expect("changed files");
    terminal.keys("\x03");
    assert_eq!(terminal.echo_at_end(), (true, 0));
}

#[test]
fn a_long_paste_is_sent_whole_and_shown_as_its_lines() {
    let server = ModelServer::start(vec![Reply::text("Seen.")]);
    let mut terminal = assistant(&server, &[]).on_terminal();
    terminal.expect("/help");
    let lines: Vec<String> = (0..300).map(|number| format!("pasted {number}")).collect();
    let paste = lines.join("\r");
    terminal.keys(&format!("\x1b[200~{paste}\x1b[201~"));
    terminal
        .expect("[pasted 300 lines]")
        .keys("\r")
        .expect("Seen.");
    let asked = server.requests()[0]["messages"][1]["content"].to_string();
    assert!(
        asked.contains("pasted 0\\npasted 1\\n") && asked.contains("pasted 299"),
        "{asked}"
    );
    terminal.keys("\x04");
    assert_eq!(terminal.echo_at_end(), (true, 0));
}
