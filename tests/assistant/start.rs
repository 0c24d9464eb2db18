//! The start without a command, as other assistants have it.

use super::program;
use crate::ask::server::{ModelServer, Reply};
use crate::harness::Karyi;

#[test]
fn a_text_in_place_of_a_command_is_the_first_request() {
    let server = ModelServer::start(vec![Reply::text("It fails here.")]);
    let arguments = [
        "--mode",
        "read-only",
        "--model",
        "openai_chat:other",
        "why does it fail?",
    ];
    let mut terminal = program(&server, &arguments).on_terminal();
    terminal
        .expect("> why does it fail?")
        .expect("It fails here.")
        .expect("openai_chat:other · 120 tokens")
        .expect("read-only");
    terminal.keys("\x04");
    assert_eq!(terminal.echo_at_end(), (true, 0));
    let sent = server.requests()[0]["messages"][1]["content"].to_string();
    assert!(sent.ends_with("why does it fail?\""), "{sent}");
}

#[test]
fn print_is_ask_with_a_mode_and_json() {
    for arguments in [
        &["-p", "make it", "--mode", "full", "--json"][..],
        &["--json", "--mode", "full", "-p", "--", "make it"],
        &["make it", "--json", "--mode=full", "-p"],
    ] {
        let block = "<tools><command>touch made</command></tools>";
        let server = ModelServer::start(vec![Reply::text(block), Reply::text("Made.")]);
        let karyi = program(&server, arguments);
        let work = karyi.work();
        let ran = karyi.run().exit(0);
        let answer: serde_json::Value = serde_json::from_str(&ran.stdout()).unwrap();
        assert_eq!(answer["answer"], "Made.", "{arguments:?}");
        assert!(work.join("made").exists());
    }
    let edits = Karyi::with_args(&["-p", "x", "--mode", "edits"])
        .run()
        .exit(2);
    assert!(edits.stderr_text().contains("ask or full"));
}

#[test]
fn a_word_near_a_command_and_several_words_are_no_request() {
    let said = |arguments: &[&str]| Karyi::with_args(arguments).run().exit(2).stderr_text();
    assert_eq!(
        said(&["polcy"]),
        "karyi: usage: expected a command, found polcy\n\
         hint: did you mean 'policy'? `karyi chat polcy` sends it to the model\n"
    );
    let words = said(&["why", "is", "kP7-vQ2.zL9", "there"]);
    assert!(
        words.contains("found 4 words") && !words.contains("kP7"),
        "{words}"
    );
    // Without a terminal there is no assistant.
    assert!(said(&["why is it there?"]).contains("`karyi ask TEXT`"));
}
