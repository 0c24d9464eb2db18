//! Chats that go on, and what a project tells.

use super::assistant;
use crate::ask::server::{ModelServer, Reply};
use crate::harness::Karyi;

#[test]
fn a_chat_goes_on_with_what_was_said() {
    let server = ModelServer::start(vec![
        Reply::text("First answer."),
        Reply::text("Second answer."),
    ]);
    let home = tempfile::tempdir().unwrap();
    let prepared = |args: &[&str]| {
        let karyi: Karyi = assistant(&server, args);
        karyi.env("KARYI_HOME", home.path()).env("PWD", "/")
    };
    let mut terminal = prepared(&["--cwd", "/"]).on_terminal();
    terminal
        .expect("/help")
        .keys("one\r")
        .expect("First answer.");
    terminal.keys("\x04");
    assert_eq!(terminal.echo_at_end(), (true, 0));
    let mut terminal = prepared(&["--cwd", "/", "--continue"]).on_terminal();
    terminal
        .expect("First answer.")
        .keys("two\r")
        .expect("Second answer.");
    terminal.keys("\x04");
    assert_eq!(terminal.echo_at_end(), (true, 0));
    let requests = server.requests();
    let messages = requests[1]["messages"].as_array().unwrap();
    assert_eq!(
        messages[..2],
        requests[0]["messages"].as_array().unwrap()[..2]
    );
    assert_eq!(messages.len(), 4);
    assert_eq!(messages[3]["content"], "two");
}

#[test]
fn notes_and_commands_of_the_project_are_used() {
    let server = ModelServer::start(vec![Reply::text("Done.")]);
    let karyi = assistant(&server, &[])
        .file("AGENTS.md", "Always write tests.\n")
        .file(".karyi/commands/review.md", "Review $ARGUMENTS now.\n");
    let mut terminal = karyi.on_terminal();
    terminal
        .expect("notes: AGENTS.md")
        .keys("/review a.rs\r")
        .expect("Done.");
    let messages = server.requests()[0]["messages"].clone();
    assert!(
        messages[0]["content"]
            .to_string()
            .contains("Always write tests.")
    );
    assert!(
        messages[1]["content"]
            .to_string()
            .contains("Review a.rs now.")
    );
    terminal.keys("\x04");
    assert_eq!(terminal.echo_at_end(), (true, 0));
}

#[test]
fn a_named_file_is_sent_with_the_text() {
    let server = ModelServer::start(vec![Reply::text("Seen.")]);
    let karyi = assistant(&server, &[]).file("notes.txt", "from the file\n");
    let mut terminal = karyi.on_terminal();
    terminal
        .expect("/help")
        .keys("see @not")
        .expect("@notes.txt")
        .keys("\t");
    terminal.keys("please\r").expect("Seen.");
    let asked = server.requests()[0]["messages"][1]["content"].to_string();
    assert!(
        asked.contains("see @notes.txt please") && asked.contains("from the file"),
        "{asked}"
    );
    terminal.keys("\x04");
    assert_eq!(terminal.echo_at_end(), (true, 0));
}
