//! Commands after a slash: the chat, its context, and going back.

use super::assistant;
use crate::ask::server::{ModelServer, Reply};

#[test]
fn a_rewind_takes_back_talk_and_files_and_gives_the_text_again() {
    let edit =
        "<tools><edit><file src=\"new.txt\"><content>made\n</content></file></edit></tools>\n";
    let server = ModelServer::start(vec![
        Reply::text("First."),
        Reply::text(edit),
        Reply::text("Made."),
        Reply::text("Third."),
        Reply::text("Again."),
    ]);
    let karyi = assistant(&server, &["--mode", "full"]);
    let file = karyi.work().join("new.txt");
    let mut terminal = karyi.on_terminal();
    terminal.expect("/help").keys("one\r").expect("First.");
    terminal.keys("make it\r").expect("Made.");
    terminal.keys("three\r").expect("480 tokens").forget();
    assert!(file.exists());
    // Esc twice opens the list, with the newest text first; files go back without the talk.
    terminal
        .keys("\x1b")
        .keys("\x1b")
        .expect("go back to before a text");
    terminal
        .expect("› 3  three")
        .expect("2  make it")
        .keys("\x1b[B");
    terminal
        .expect("› 2  make it")
        .keys("\r")
        .expect("› talk and files");
    terminal.expect("what commands changed stays").keys("\r");
    terminal.expect("back to before text 2").expect("> make it");
    assert!(!file.exists());
    terminal.forget().keys("\x15again\r").expect("Again.");
    let requests = server.requests();
    let last = requests[4]["messages"].as_array().unwrap();
    let texts: Vec<&str> = last[1..]
        .iter()
        .map(|message| message["content"].as_str().unwrap())
        .collect();
    assert!(texts[0].ends_with("one"), "{texts:?}");
    assert_eq!(texts[1..], ["First.", "again"]);
    terminal.keys("\x04");
    assert_eq!(terminal.echo_at_end(), (true, 0));
}

#[test]
fn files_go_back_alone_and_the_model_learns_of_it() {
    let edit =
        "<tools><edit><file src=\"new.txt\"><content>made\n</content></file></edit></tools>\n";
    let server = ModelServer::start(vec![
        Reply::text(edit),
        Reply::text("Made."),
        Reply::text("I see."),
    ]);
    let karyi = assistant(&server, &["--mode", "full"]);
    let file = karyi.work().join("new.txt");
    let mut terminal = karyi.on_terminal();
    terminal
        .expect("/help")
        .keys("make it\r")
        .expect("240 tokens");
    terminal
        .keys("/rewind \r")
        .expect("› 1  make it")
        .keys("\r");
    terminal
        .expect("› talk and files")
        .keys("\x1b[A")
        .expect("› files");
    terminal.keys("\r").expect("undid change 1");
    assert!(!file.exists());
    terminal
        .keys("/rewind \r")
        .expect("› 1  make it")
        .keys("\r");
    // Nothing is left to undo.
    terminal.forget().keys("").expect("› talk  ").keys("\x03");
    terminal.keys("and now?\r").expect("I see.");
    let messages = server.requests()[2]["messages"].to_string();
    assert!(messages.contains("The user undid your edits"), "{messages}");
    terminal.keys("\x04");
    assert_eq!(terminal.echo_at_end(), (true, 0));
}

#[test]
fn a_chat_is_exported_and_its_last_answer_copied() {
    let block = "It **is**.\n<tools><command>echo hi</command></tools>\n";
    let server = ModelServer::start(vec![Reply::text(block), Reply::text("Yes: *so*.\n")]);
    let karyi = assistant(&server, &["--mode", "full"]);
    let file = karyi.work().join("chat.md");
    let mut terminal = karyi.on_terminal();
    terminal.expect("/help").keys("is it?\r").expect("Yes: so.");
    terminal.expect("240 tokens").forget();
    terminal
        .keys("/copy \r")
        .expect("10 bytes went to the terminal");
    // "Yes: *so*."
    terminal.expect("\x1b]52;c;WWVzOiAqc28qLg==\x07");
    terminal.keys("/export chat.md\r").expect("the chat is in ");
    let page = std::fs::read_to_string(&file).unwrap();
    assert!(
        page.starts_with("# is it?\n") && page.contains("Yes: *so*."),
        "{page}"
    );
    terminal
        .forget()
        .keys("/export chat.md\r")
        .expect("/export FILE names another file");
    terminal.keys("/new \r").expect("a new conversation");
    terminal
        .keys("/copy \r")
        .expect("the model has not answered yet");
    terminal
        .keys("/export \r")
        .expect("nothing in this chat yet");
    terminal.keys("\x04");
    assert_eq!(terminal.echo_at_end(), (true, 0));
}

#[test]
fn the_effort_goes_with_the_next_request() {
    let server = ModelServer::start(vec![
        Reply::text("A."),
        Reply::text("B."),
        Reply::text("C."),
    ]);
    let mut terminal = assistant(&server, &[]).on_terminal();
    terminal.expect("/help").keys("one\r").expect("120 tokens");
    terminal
        .keys("/effort most\r")
        .expect("no effort \"most\"; the levels are low");
    terminal
        .keys("/effort high\r")
        .expect("effort: high; a model without");
    terminal.keys("two\r").expect("240 tokens");
    terminal.keys("/new \r").expect("a new conversation");
    terminal.keys("three\r").expect("C.");
    let efforts: Vec<_> = server
        .requests()
        .iter()
        .map(|request| request["reasoning_effort"].clone())
        .collect();
    assert_eq!(
        efforts,
        [serde_json::Value::Null, "high".into(), "high".into()]
    );
    terminal.keys("\x04");
    assert_eq!(terminal.echo_at_end(), (true, 0));
}

#[test]
fn commands_tell_what_is_in_force() {
    let server = ModelServer::start(vec![Reply::text("Written.")]);
    let karyi = assistant(&server, &[])
        .file("AGENTS.md", "Be quick.\n")
        .file(
            ".karyi/commands/ship.md",
            "---\ndescription: Ship it\n---\nShip $1.",
        );
    let mut terminal = karyi.on_terminal();
    terminal.expect("Do you trust the files in").keys("y");
    terminal.expect("/help").expect("notes: AGENTS.md").forget();
    terminal
        .keys("/notes \r")
        .expect("9 of 32768 bytes of notes:")
        .expect("9  AGENTS.md");
    terminal
        .keys("/context \r")
        .expect("tools and rules")
        .expect("notes and skills");
    terminal
        .keys("/policy \r")
        .expect("mode of this session: ask")
        .expect("mode   ask");
    terminal.keys("/config \r").expect("approval.mode");
    terminal
        .keys("/status \r")
        .expect("model openai_chat:tiny, mode ask");
    terminal.keys("/todo \r").expect("the model has no plan");
    terminal.keys("/shap \r").expect("did you mean /ship?");
    terminal
        .keys("/help \r")
        .expect("Commands of this project:")
        .expect("/ship");
    terminal
        .forget()
        .keys("/shi")
        .expect("Ship it")
        .keys("\x15");
    terminal.forget().keys("/init \r").expect("Written.");
    let asked = server.requests()[0]["messages"].to_string();
    assert!(asked.contains("Write AGENTS.md in the root"), "{asked}");
    terminal.keys("\x04");
    assert_eq!(terminal.echo_at_end(), (true, 0));
}

#[test]
fn notes_of_a_deeper_directory_are_told_once_when_a_call_comes_there() {
    let read = "<tools><read><file src=\"sub/a\"/></read></tools>\n";
    let again = "<tools><command>cd sub; pwd</command></tools>\n";
    let server = ModelServer::start(vec![
        Reply::text(read),
        Reply::text(again),
        Reply::text("Done."),
    ]);
    let karyi = assistant(&server, &["--mode", "full"])
        .file("AGENTS.md", "Be quick.\n")
        .file("sub/AGENTS.md", "Be careful here.\n")
        .file("sub/a", "text\n");
    let mut terminal = karyi.on_terminal();
    terminal.expect("Do you trust the files in").keys("y");
    terminal.expect("/help").keys("go\r");
    terminal
        .expect("notes: sub/AGENTS.md")
        .expect("Done.")
        .expect("360 tokens")
        .forget();
    terminal
        .keys("/notes \r")
        .expect("25 of 32768 bytes of notes:")
        .expect("16  sub/AGENTS.md");
    let requests = server.requests();
    let told = |number: usize| {
        requests[number]["messages"]
            .to_string()
            .matches("Be careful here.")
            .count()
    };
    assert_eq!([told(0), told(1), told(2)], [0, 1, 1]);
    terminal.keys("\x04");
    assert_eq!(terminal.echo_at_end(), (true, 0));
}
