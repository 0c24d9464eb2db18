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
        .expect(".karyi/commands/review.md")
        .expect("Do you trust the files in")
        .keys("y");
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
fn lines_of_a_file_and_the_output_of_a_job_are_sent() {
    let server = ModelServer::start(vec![Reply::text("Seen.")]);
    let karyi = assistant(&server, &[]).file("a", "line 1\nline 2\nline 3\n");
    let mut terminal = karyi.on_terminal();
    terminal
        .expect("/help")
        .keys("!echo of the job\r")
        .expect("│ of the job");
    terminal.keys("@a:2-3 and @job:1\r").expect("Seen.");
    let asked = server.requests()[0]["messages"][1]["content"].clone();
    let asked = asked.as_str().unwrap();
    assert!(asked.contains("@a:2-3 and @job:1\n\n"), "{asked}");
    assert!(
        asked.contains("line 2") && !asked.contains("line 1"),
        "{asked}"
    );
    assert!(asked.contains("of the job"), "{asked}");
    terminal.keys("\x04");
    assert_eq!(terminal.echo_at_end(), (true, 0));
}

#[test]
fn the_user_is_asked_once_whether_they_trust_a_project() {
    let server = ModelServer::start(vec![Reply::text("First."), Reply::text("Second.")]);
    let (home, project) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::write(project.path().join("AGENTS.md"), "Always write tests.\n").unwrap();
    let directory = project.path().to_str().unwrap();
    let start = || {
        let karyi = assistant(&server, &["--cwd", directory]);
        karyi.env("KARYI_HOME", home.path()).on_terminal()
    };
    let told = "left out, since you do not trust the project";
    let mut terminal = start();
    terminal.expect("Do you trust the files in").keys("\x03");
    assert_eq!(terminal.echo_at_end(), (true, 130));
    let mut terminal = start();
    terminal
        .expect("| AGENTS.md")
        .expect("Do you trust the files in");
    // Enter alone is no answer.
    terminal.keys("\r").keys("n").expect(told);
    terminal.keys("go\r").expect("First.").keys("\x04");
    assert_eq!(terminal.echo_at_end(), (true, 0));
    let mut terminal = start();
    terminal.expect(told).expect("/help");
    assert!(!terminal.screen().contains("Do you trust"));
    terminal.keys("\x04");
    assert_eq!(terminal.echo_at_end(), (true, 0));
    let trust = Karyi::with_args(&["policy", "trust", directory]);
    trust.env("KARYI_HOME", home.path()).run().exit(0);
    let mut terminal = start();
    terminal
        .expect("notes: AGENTS.md")
        .keys("go\r")
        .expect("Second.");
    assert!(!terminal.screen().contains("Do you trust"));
    terminal.keys("\x04");
    assert_eq!(terminal.echo_at_end(), (true, 0));
    let systems = server.requests().into_iter();
    let systems = systems.map(|request| request["messages"][0]["content"].to_string());
    let has_notes: Vec<bool> = systems
        .map(|text| text.contains("Always write tests."))
        .collect();
    assert_eq!(has_notes, [false, true]);
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

#[test]
fn another_model_gets_the_start_that_it_needs() {
    let server = ModelServer::start(vec![Reply::text("One."), Reply::text("Two.")]);
    let home = tempfile::tempdir().unwrap();
    let config = format!(
        "[models.small]\nprovider = \"openai_chat\"\nmodel = \"s\"\nbase_url = \"{}\"\nkey = \"\"\nsmall = true\n",
        server.url
    );
    std::fs::write(home.path().join("config.toml"), config).unwrap();
    let karyi = assistant(&server, &[]).env("KARYI_HOME", home.path());
    let mut terminal = karyi.on_terminal();
    terminal.expect("/help").keys("one\r").expect("One.");
    terminal.keys("/model small\r").expect("model: small");
    terminal.keys("two\r").expect("Two.");
    let requests = server.requests();
    assert!(requests[0]["temperature"].is_null(), "{}", requests[0]);
    assert_eq!(requests[1]["temperature"], 0.0);
    let messages = |request: usize| requests[request]["messages"].as_array().unwrap();
    assert_eq!(messages(0)[0], messages(1)[0]);
    let said = messages(1)
        .iter()
        .position(|message| *message == messages(0)[1]);
    assert!(said.is_some_and(|place| place > 1), "{}", requests[1]);
    terminal.keys("\x04");
    assert_eq!(terminal.echo_at_end(), (true, 0));
}

#[test]
fn a_torn_line_of_a_chat_is_told() {
    let server = ModelServer::start(vec![Reply::text("First answer.")]);
    let home = tempfile::tempdir().unwrap();
    let prepared = |args: &[&str]| {
        let karyi: Karyi = assistant(&server, &[&["--cwd", "/"], args].concat());
        karyi.env("KARYI_HOME", home.path()).on_terminal()
    };
    let mut terminal = prepared(&[]);
    terminal
        .expect("/help")
        .keys("one\r")
        .expect("First answer.");
    terminal.keys("\x04").expect("goes on with this chat");
    assert_eq!(terminal.echo_at_end(), (true, 0));
    let mut chats = std::fs::read_dir(home.path().join("state/chats")).unwrap();
    let chat = chats.next().unwrap().unwrap().path();
    let mut bytes = std::fs::read(&chat).unwrap();
    bytes.extend(b"{\"type\":\"us");
    std::fs::write(&chat, bytes).unwrap();
    for (args, has_damage) in [(&["--continue"], true), (&["--continue"], false)] {
        let mut terminal = prepared(args);
        terminal.expect("First answer.").expect("ask");
        terminal.keys("/todo\r").expect("no plan");
        let screen = terminal.screen();
        let is_told = screen.contains("damaged: the last record was not complete, and 11 bytes");
        assert_eq!(is_told, has_damage, "{screen}");
        // The line is cut off before the next record.
        terminal.keys("/rename one\r").keys("\x04");
        assert_eq!(terminal.echo_at_end(), (true, 0));
    }
}

#[test]
fn a_chat_and_a_model_are_picked_from_lists() {
    let replies = ["First answer.", "Second answer.", "Third answer."];
    let server = ModelServer::start(replies.map(Reply::text).into());
    let home = tempfile::tempdir().unwrap();
    let config = format!(
        "[models.a]\nprovider = \"openai_chat\"\nmodel = \"x\"\nbase_url = \"{0}\"\nkey = \"\"\n\
         [models.b]\nprovider = \"openai_chat\"\nmodel = \"y\"\nbase_url = \"{0}\"\nkey = \"\"\n",
        server.url
    );
    std::fs::write(home.path().join("config.toml"), config).unwrap();
    let prepared = |args: &[&str]| {
        let karyi: Karyi = assistant(&server, args);
        karyi.env("KARYI_HOME", home.path()).on_terminal()
    };
    for (text, answer) in [("one", "First answer."), ("two", "Second answer.")] {
        let mut terminal = prepared(&[text]);
        terminal.expect(answer).expect("120 tokens").keys("\x04");
        assert_eq!(terminal.echo_at_end(), (true, 0));
    }
    // A text waits until the list is closed.
    let mut terminal = prepared(&["--resume", "--", "three"]);
    terminal
        .expect("go on with which chat?")
        .expect("› two  now · ");
    terminal.keys("\x1b[B").expect("› one  now · ").forget();
    terminal
        .keys("\r")
        .expect("First answer.")
        .expect("Third answer.");
    let sent = server.requests()[2]["messages"].clone();
    assert_eq!(sent.as_array().unwrap().len(), 4, "{sent}");
    terminal.forget().keys("/resume\r").expect("› two");
    terminal.forget().keys("\x1b").expect("· ask");
    terminal
        .forget()
        .keys("/model\r")
        .expect("› a")
        .keys("\x1b[B");
    terminal.expect("› b").keys("\r").expect("model: b");
    // The other model may still be opened.
    loop {
        terminal.forget().keys("/model nobody:x\r");
        if terminal.expect_first("\x1b[Jexpected openai_chat", "wait for the end of the work") {
            break;
        }
    }
    terminal.keys("\x04");
    assert_eq!(terminal.echo_at_end(), (true, 0));
    let said = assistant(&server, &["--plain", "--resume"]).run().exit(2);
    assert!(said.stderr_text().contains("`karyi chats list --all`"));
}
