//! Questions about calls.

use super::assistant;
use crate::ask::server::{ModelServer, Reply};

#[test]
fn one_screen_asks_about_the_calls_of_a_block() {
    let block = "<tools><command>echo read</command><command>touch one</command><command>touch two</command></tools>";
    let server = ModelServer::start(vec![Reply::text(block), Reply::text("Done.")]);
    let karyi = assistant(&server, &["--mode", "ask"]);
    let work = karyi.work();
    let mut terminal = karyi.on_terminal();
    terminal.expect("/help").keys("go\r");
    terminal.expect("? command 2").expect("? command 3");
    terminal.expect("(1 of 2)?").expect("y yes");
    assert!(!work.join("one").exists());
    terminal.forget().keys("y").expect("(2 of 2)?");
    terminal
        .keys("n")
        .expect("reason for the model")
        .keys("not two\r");
    terminal
        .expect("the user does not want it: not two")
        .expect("Done.");
    assert!(work.join("one").exists() && !work.join("two").exists());
    let report = server.requests()[1]["messages"][3]["content"].to_string();
    assert!(report.contains("not two"), "{report}");
    terminal.keys("\x04");
    assert_eq!(terminal.echo_at_end(), (true, 0));
}

#[test]
fn always_holds_for_the_next_call_with_the_same_words() {
    let block = "<tools><command>touch one</command></tools>";
    let replies = vec![Reply::text(block), Reply::text(block), Reply::text("Done.")];
    let server = ModelServer::start(replies);
    let mut terminal = assistant(&server, &["--mode", "ask"]).on_terminal();
    terminal
        .expect("/help")
        .keys("go\r")
        .expect("a always here: touch one");
    terminal.keys("a").expect("Done.");
    terminal.keys("\x04");
    assert_eq!(terminal.echo_at_end(), (true, 0));
}

#[test]
fn an_edited_call_runs_as_it_was_edited() {
    let block = "<tools><command>touch one</command></tools>";
    let server = ModelServer::start(vec![Reply::text(block), Reply::text("Done.")]);
    let karyi = assistant(&server, &["--mode", "ask"]);
    let work = karyi.work();
    let mut terminal = karyi.on_terminal();
    terminal
        .expect("/help")
        .keys("go\r")
        .expect("e edit")
        .keys("e");
    terminal
        .expect("the text that runs in its place")
        .keys("-edited\r")
        .expect("Done.");
    assert!(work.join("one-edited").exists() && !work.join("one").exists());
    terminal.keys("\x04");
    assert_eq!(terminal.echo_at_end(), (true, 0));
}

#[test]
fn the_mode_is_changed_by_command_and_key() {
    let server = ModelServer::start(vec![]);
    let mut terminal = assistant(&server, &[]).on_terminal();
    terminal
        .expect("cost 0.00 · ask")
        .keys("\x1b[Z")
        .expect("cost 0.00 · edits");
    terminal
        .keys("/mode read-only\r")
        .expect("cost 0.00 · read-only");
    terminal
        .keys("/mode everything\r")
        .expect("the modes are read-only, ask, edits, full");
    terminal.keys("\x04");
    assert_eq!(terminal.echo_at_end(), (true, 0));
}
