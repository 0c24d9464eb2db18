//! Keys of the input: wide characters, completion, the menu, and the end.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::assistant;
use super::tmux::Tmux;
use crate::ask::server::{ModelServer, Reply};
use crate::harness::process::{state, wait_until};
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
fn commands_that_are_typed_before_the_start_is_done_wait_for_it() {
    let server = ModelServer::start(vec![Reply::text("Seen.")]);
    let mut terminal = assistant(&server, &[]).on_terminal();
    // The greeting is there before the conversation is.
    terminal
        .expect("/help")
        .keys("/rewind \r/compact \rhello\r");
    terminal
        .expect("there is no text to go back to")
        .expect("Seen.");
    terminal.keys("\x04");
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

#[test]
fn the_whole_chat_is_shown_in_the_pager() {
    let server = ModelServer::start(vec![Reply::text("It is \x1b]52;c;eA==\x07so.")]);
    let karyi = assistant(&server, &[]).file(
        "page",
        "trap 'echo trapped' INT; echo paging; cat \"$1\"; read a < /dev/tty; read b < /dev/tty\n",
    );
    let pager = format!("sh {}", karyi.work().join("page").display());
    let mut terminal = karyi.env("PAGER", &pager).on_terminal();
    terminal
        .expect("/help")
        .keys("\x0f")
        .expect("there is nothing in this chat yet")
        .keys("is it?\r")
        .expect("so.")
        .forget();
    terminal
        .keys("draft\x0f")
        .expect("paging")
        .expect("is it?")
        .expect("It is ␛]52;c;eA==␇so.");
    // Ctrl+C is for the pager.
    terminal.keys("\x03").expect("trapped");
    terminal.forget().keys("\r\r").expect("> draft");
    terminal.keys("\x03\x04");
    assert_eq!(terminal.echo_at_end(), (true, 0));
}

#[test]
fn a_running_command_becomes_a_job() {
    let block = "<tools><command>echo begun; sleep 600</command></tools>\n";
    let server = ModelServer::start(vec![Reply::text(block), Reply::text("It goes on.")]);
    let mut terminal = assistant(&server, &["--mode", "full"]).on_terminal();
    terminal.expect("/help").keys("wait\r").expect("│ begun");
    terminal.keys("\x02").expect("It goes on.").forget();
    terminal
        .keys("/jobs\r")
        .expect("running")
        .expect("sleep 600");
    terminal.keys("\x04");
    assert_eq!(terminal.echo_at_end(), (true, 0));
}

#[test]
fn earlier_inputs_are_there_in_the_next_run() {
    let server = ModelServer::start(vec![Reply::text("One."), Reply::text("Two.")]);
    let home = tempfile::tempdir().unwrap();
    let value = "kP7-vQ2.zL9-tR4w";
    let prepared = || {
        let karyi = assistant(&server, &["--vault", "env"]).env("KARYI_VAR_TOKEN", value);
        karyi.env("KARYI_HOME", home.path()).on_terminal()
    };
    let mut terminal = prepared();
    terminal
        .expect("/help")
        .keys(&format!("is {value} good?\r"))
        .expect("One.");
    terminal.keys("\x04");
    assert_eq!(terminal.echo_at_end(), (true, 0));
    let kept = std::fs::read_to_string(home.path().join("state/inputs")).unwrap();
    assert!(!kept.contains(value) && kept.contains("good?"), "{kept}");
    let mut terminal = prepared();
    terminal
        .expect("/help")
        .keys("\x1b[A")
        .expect("good?")
        .keys("\r")
        .expect("Two.");
    terminal.keys("\x04");
    assert_eq!(terminal.echo_at_end(), (true, 0));
}

#[test]
fn another_window_hears_of_the_end_of_the_work() {
    let home = tempfile::tempdir().unwrap();
    for (word, expected) in [
        ("bell", "\x07"),
        ("osc9", "\x1b]9;karyi has ended its work\x07"),
    ] {
        let config = format!("notify = \"{word}\"\n");
        std::fs::write(home.path().join("config.toml"), config).unwrap();
        let server = ModelServer::start(vec![Reply::text("Done.")]);
        let karyi = assistant(&server, &[]).env("KARYI_HOME", home.path());
        let mut terminal = karyi.on_terminal();
        terminal
            .expect("/help")
            .keys("\x1b[Ogo\r")
            .expect("Done.")
            .expect(expected);
        terminal.keys("\x04");
        assert_eq!(terminal.echo_at_end(), (true, 0));
    }
}

#[test]
fn commands_of_karyi_have_the_options_of_the_session() {
    let server = ModelServer::start(vec![]);
    let mut terminal = assistant(&server, &["--tools", "core,-get_value"]).on_terminal();
    terminal.expect("/help").forget();
    terminal.keys("/tools\r").keys("\r").expect("command");
    terminal.keys("/todo\r").expect("no plan");
    assert!(
        !terminal.screen().contains("get_value"),
        "{}",
        terminal.screen()
    );
    terminal.keys("\x04");
    assert_eq!(terminal.echo_at_end(), (true, 0));
}

#[test]
fn a_signal_ends_the_assistant_while_a_shell_has_the_terminal() {
    let server = ModelServer::start(vec![]);
    // The shell may learn late that the job was stopped. A child that is stopped before its exec would hold up its
    // parent: so the session has begun.
    let wait = "wait %1; s=$?; while [ $s -gt 147 ]; do wait %1; s=$?; done";
    let end = format!("kill -s TERM %1; kill -s CONT %1; {wait}; echo ended with $s");
    let suspended = format!("exec bash -mc '\"$0\" \"$@\"; echo now stopped; {end}'");
    let mut terminal = assistant(&server, &[]).on_terminal_through(&suspended);
    terminal
        .expect("/help")
        .keys("!echo ready\r")
        .expect("│ ready")
        .keys("\x1a")
        .expect("now stopped");
    terminal.expect("ended with 143");
    assert_eq!(terminal.echo_at_end(), (true, 0));

    let background = format!("exec bash -mc '\"$0\" \"$@\" & read line; {end}'");
    let mut terminal = assistant(&server, &[]).on_terminal_through(&background);
    let shell = terminal.pid();
    wait_until(|| first_child(shell).is_some_and(|child| state(Pid::from_raw(child)) == Some('T')));
    terminal.keys("\n").expect("ended with 143");
    assert_eq!(terminal.echo_at_end(), (true, 0));
}

#[test]
fn the_end_of_a_stopped_assistant_draws_nothing_over_its_shell() {
    let server = ModelServer::start(vec![]);
    let wait = "wait %1; s=$?; while [ $s -gt 147 ]; do wait %1; s=$?; done";
    let end = format!("kill -s TERM %1; kill -s CONT %1; {wait}; echo ended with $s");
    let stopped = format!("exec bash -mc '\"$0\" \"$@\"; echo now stopped; read line; {end}'");
    let mut terminal = assistant(&server, &[]).on_terminal_through(&stopped);
    terminal.expect("/help").expect("cost 0.00");
    // From outside: the screen has not left the terminal.
    let program = first_child(terminal.pid()).unwrap();
    kill(Pid::from_raw(program), Signal::SIGSTOP).unwrap();
    terminal.expect("now stopped").forget();
    terminal.keys("\n").expect("ended with 143");
    let screen = terminal.screen();
    assert!(!screen.contains("cost 0.00"), "{screen:?}");
    assert_eq!(terminal.echo_at_end().1, 0);
}

#[test]
fn a_suspended_assistant_goes_on_in_the_foreground() {
    let server = ModelServer::start(vec![]);
    let script = "set -m; \"$0\" \"$@\"; echo now stopped; read line; fg; exit;";
    let mut terminal = assistant(&server, &[]).on_terminal_through(script);
    // A child that is stopped before its exec would hold up its parent: the shell must have been started.
    terminal
        .expect("/help")
        .keys("!echo ready\r")
        .expect("│ ready")
        .keys("\x1a")
        .expect("now stopped");
    assert!(terminal.is_echoing());
    terminal.forget().keys("\n").expect("cost 0.00");
    terminal.keys("\x04");
    assert_eq!(terminal.echo_at_end(), (true, 0));
}

#[test]
fn a_terminal_that_no_shell_can_give_is_told() {
    let server = ModelServer::start(vec![]);
    let script = "true; timeout 60 \"$0\" \"$@\"; echo ended with $?; exit;";
    let mut terminal = assistant(&server, &[]).on_terminal_through(script);
    terminal
        .expect("timeout --foreground")
        .expect("ended with ");
    assert_eq!(terminal.echo_at_end(), (true, 0));
}

fn first_child(parent: i32) -> Option<i32> {
    let path = format!("/proc/{parent}/task/{parent}/children");
    let children = std::fs::read_to_string(path).ok()?;
    children.split_whitespace().next()?.parse().ok()
}
