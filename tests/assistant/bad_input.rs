//! Small terminals, endless lines, chats that were cut, and two assistants at once.

use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::assistant;
use super::tmux::Tmux;
use crate::ask::server::{ModelServer, Reply};
use crate::harness::process::{start_time, wait_for_end, wait_until};
use crate::harness::{Karyi, skip};

const CALL: &str = "Look:\n\n<tools><command>touch made; echo seen</command></tools>\n";

#[test]
fn small_terminals_show_the_answer_the_question_and_the_input() {
    for (columns, rows) in [(80, 5), (20, 10)] {
        let server = ModelServer::start(vec![Reply::text(CALL), Reply::text("All done.")]);
        let karyi = assistant(&server, &[]);
        let made = karyi.work().join("made");
        let Some(tmux) = Tmux::start(karyi, columns, rows) else {
            return skip("tmux is not installed");
        };
        tmux.wait(|screen| screen.contains("/help"));
        tmux.text("go on");
        tmux.wait(|screen| screen.contains("> go on"));
        tmux.key("Enter");
        tmux.wait(|screen| screen.contains("y yes"));
        tmux.text("y");
        let is_done = |screen: &str| screen.replace('\n', "").contains("All done.");
        let screen = tmux.wait(is_done);
        assert_eq!(screen.matches("> go on").count(), 1, "{screen}");
        assert!(made.exists());
        tmux.key("C-d");
        tmux.wait_for_end();
    }
}

#[test]
fn a_megabyte_without_a_line_end_is_taken() {
    let word = "Q".repeat(1_000_000);
    let block = "<tools><command>head -c 1000000 /dev/zero | tr '\\0' x</command></tools>\n";
    let server = ModelServer::start(vec![
        Reply::text(&format!("{word}\n\n{block}")),
        Reply::text("All done."),
    ]);
    let mut terminal = assistant(&server, &["--mode", "full"]).on_terminal();
    terminal.expect("/help").keys("go\r").expect("All done.");
    // The answer stands in the scrollback once, and whole; frames before may have shown some of its end.
    let count = terminal.screen().matches('Q').count();
    assert!((1_000_000..1_100_000).contains(&count), "{count}");
    terminal.keys("\x04");
    assert_eq!(terminal.echo_at_end(), (true, 0));
}

#[test]
fn a_terminal_that_is_closed_during_an_answer_ends_everything() {
    let block = "<tools><command>echo $$ > pid; sleep 600</command></tools>\n";
    let server = ModelServer::start(vec![Reply::Silence(format!("It is\n\n{block}\nand"))]);
    let karyi = assistant(&server, &["--mode", "full"]);
    let home = karyi.work();
    let pid = home.join("pid");
    let mut terminal = karyi.on_terminal();
    terminal.expect("/help").keys("go\r").expect("sleep 600");
    wait_until(|| fs::read_to_string(&pid).is_ok_and(|text| text.ends_with('\n')));
    let shell = fs::read_to_string(&pid).unwrap();
    let began = start_time(&shell);
    assert_eq!(terminal.hang_up(), 129);
    server.gone.recv().unwrap();
    wait_for_end(&shell, began);
}

#[test]
fn after_a_death_every_complete_record_is_there_and_nothing_runs_again() {
    let first = "<tools><command>echo run >> runs; echo $$ > pid</command></tools>\n";
    // A program that has begun has the terminal, whose end reaches it.
    let second =
        "<tools><command>echo run >> runs; sh -c 'touch here; exec sleep 600'</command></tools>\n";
    let server = ModelServer::start(vec![
        Reply::text(first),
        Reply::text(second),
        Reply::text("Went on."),
    ]);
    let home = tempfile::tempdir().unwrap();
    let work = home.path().join("work");
    fs::create_dir(&work).unwrap();
    let prepared = |args: &[&str]| {
        let all = [&["--cwd", work.to_str().unwrap(), "--mode", "full"], args].concat();
        let karyi: Karyi = assistant(&server, &all);
        karyi.env("KARYI_HOME", home.path().join("state"))
    };
    let mut terminal = prepared(&[]).on_terminal();
    terminal.expect("/help").keys("begin\r");
    wait_until(|| work.join("here").exists());
    let shell = fs::read_to_string(work.join("pid")).unwrap();
    let began = start_time(&shell);
    kill(Pid::from_raw(terminal.pid()), Signal::SIGKILL).unwrap();
    terminal.wait();
    wait_for_end(&shell, began);
    let mut terminal = prepared(&["--continue"]).on_terminal();
    terminal
        .expect("> begin")
        .keys("go on\r")
        .expect("Went on.");
    let requests = server.requests();
    let messages = |at: usize| requests[at]["messages"].as_array().unwrap().clone();
    let (known, resumed) = (messages(1), messages(2));
    assert_eq!((known.len(), resumed.len()), (4, 4));
    assert_eq!(known[..3], resumed[..3]);
    let told = resumed[3]["content"].as_str().unwrap();
    assert!(
        told.starts_with(known[3]["content"].as_str().unwrap()),
        "{told}"
    );
    assert!(
        told.contains("Nothing was run again") && told.ends_with("go on"),
        "{told}"
    );
    assert_eq!(fs::read_to_string(work.join("runs")).unwrap(), "run\nrun\n");
    terminal.keys("\x04");
    assert_eq!(terminal.echo_at_end(), (true, 0));
}

#[test]
fn the_edit_of_a_file_that_another_assistant_changed_is_refused_by_name() {
    let edit = |from: &str, to: &str| {
        format!(
            "<tools><edit><file src=\"f\"><find>{from}</find><replace>{to}</replace></file></edit></tools>\n"
        )
    };
    let read = "<tools><read><file src=\"f\"/></read></tools>\n";
    let first = ModelServer::start(vec![
        Reply::text(read),
        Reply::text("I saw it."),
        Reply::text(&edit("one", "three")),
        Reply::text("It was changed."),
    ]);
    let second = ModelServer::start(vec![Reply::text(&edit("one", "two")), Reply::text("Done.")]);
    let work = tempfile::tempdir().unwrap();
    fs::write(work.path().join("f"), "one\n").unwrap();
    let start = |server: &ModelServer| {
        let directory = work.path().to_str().unwrap();
        let karyi = assistant(server, &["--mode", "full", "--cwd", directory]);
        let mut terminal = karyi.on_terminal();
        terminal.expect("/help");
        terminal
    };
    let (mut one, mut two) = (start(&first), start(&second));
    one.keys("look\r").expect("I saw it.");
    two.keys("change it\r").expect("Done.");
    one.keys("change it\r").expect("It was changed.");
    let told = first.requests()[3]["messages"].to_string();
    assert!(
        told.contains("find_not_found") && told.contains("f: "),
        "{told}"
    );
    assert_eq!(fs::read_to_string(work.path().join("f")).unwrap(), "two\n");
    for mut terminal in [one, two] {
        terminal.keys("\x04");
        assert_eq!(terminal.echo_at_end(), (true, 0));
    }
}

#[test]
fn notes_of_a_hundred_kilobytes_are_cut_and_this_is_said() {
    let server = ModelServer::start(vec![Reply::text("Done.")]);
    let karyi = assistant(&server, &[]).file("AGENTS.md", "0123456789\n".repeat(9_500));
    let mut terminal = karyi.on_terminal();
    terminal.expect("Do you trust the files in").keys("y");
    terminal
        .expect("notes: AGENTS.md")
        .expect("/help")
        .keys("go\r")
        .expect("Done.");
    let system = server.requests()[0]["messages"][0]["content"].to_string();
    assert!(system.len() < 45_000, "{}", system.len());
    let screen = terminal.screen();
    assert!(
        screen.contains("left out") || screen.contains("cut"),
        "{screen}"
    );
    terminal.keys("\x04");
    assert_eq!(terminal.echo_at_end(), (true, 0));
}

#[test]
fn no_value_is_on_the_screen_in_a_request_or_in_the_chat() {
    let block = "<tools><command>printf '%s\\n' $KARYI{TOKEN}; cat f</command></tools>\n";
    let value = "s3cret-token-value-77";
    let server = ModelServer::start(vec![Reply::text(block), Reply::text("Seen.")]);
    let home = tempfile::tempdir().unwrap();
    let karyi = assistant(&server, &["--mode", "full"])
        .env("KARYI_HOME", home.path())
        .env("KARYI_VAR_TOKEN", value)
        .args(&["--vault", "env"])
        .file("f", format!("it is {value}\n"));
    let mut terminal = karyi.on_terminal();
    terminal
        .expect("/help")
        .keys(&format!("is {value} the token of @f\r"));
    terminal.expect("Seen.");
    terminal.keys("\x04");
    let (screen, status) = terminal.end();
    assert_eq!(status, 0);
    // What the person types is echoed as it is typed.
    let shown = &screen[screen
        .find("Look")
        .unwrap_or(screen.find("printf").unwrap())..];
    assert!(!shown.contains(value), "{shown}");
    for request in server.raw() {
        assert!(!request.1.contains(value), "{request:?}");
    }
    let mut chats = fs::read_dir(home.path().join("state/chats")).unwrap();
    let chat = fs::read_to_string(chats.next().unwrap().unwrap().path()).unwrap();
    assert!(
        chat.contains("$KARYI{TOKEN}") && !chat.contains(value),
        "{chat}"
    );
}
