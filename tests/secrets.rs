//! A value the user gave is used by commands and files and seen nowhere else.

mod daily;
mod delivery;
mod lasting;
mod matrix;
mod permits;
mod question;
mod random;
mod support;
#[path = "../crates/karyi-vault/src/rewriting/tests/places/values.rs"]
mod values;
mod whole;

use crate::harness::Karyi;

const VALUE: &str = "pa$$w0rd'\"`x;y\\z";

/// Runs blocks after a first one that asks for the value; returns the screen.
#[track_caller]
fn with_secret(blocks: &str, exit: u32) -> String {
    let script = format!("<tools><get_value key=\"PW\" reason=\"a test\"/></tools>\n{blocks}");
    let karyi = Karyi::with_args(&["run", "--format", "xml", "a.xml"]).file("a.xml", script);
    let mut terminal = karyi.on_terminal();
    terminal.expect("value (hidden").answer(VALUE);
    let (screen, status) = terminal.end();
    assert!(!screen.contains("pa$$w0rd"), "{screen}");
    assert_eq!(status, exit, "{screen}");
    screen
}

#[test]
fn the_value_reaches_a_command_whole() {
    let screen = with_secret(
        "<tools><command>x=$KARYI{PW}; echo \"${#x}\"; echo \"$KARYI{PW}\"</command></tools>",
        0,
    );
    assert!(
        screen.contains(&format!("<output>{}", VALUE.len())),
        "{screen}"
    );
    assert!(screen.contains("$KARYI{PW}"), "{screen}");
}

#[test]
fn the_value_is_typed_only_where_it_is_not_shown() {
    let hidden = with_secret(
        "<tools><command>read -rs x; echo \"${#x}\"</command><input>$KARYI{PW}\\n</input></tools>",
        0,
    );
    assert!(hidden.contains(&VALUE.len().to_string()), "{hidden}");
    let shown = with_secret(
        "<tools><command>read -r x</command><input>$KARYI{PW}\\n</input></tools>",
        2,
    );
    assert!(shown.contains("echo_on"), "{shown}");
}

#[test]
fn encoded_values_are_masked_too() {
    let screen = with_secret(
        "<tools><command>printf %s \"$KARYI{PW}\" | base64; printf %s \"$KARYI{PW}\" | od -An -tx1 | tr -d ' \\n'</command></tools>",
        0,
    );
    assert!(
        screen.contains("[KARYI:PW:base64]") && screen.contains("[KARYI:PW:hex]"),
        "{screen}"
    );
}

#[test]
fn a_name_is_known_from_the_next_block_on() {
    let script = "<tools><get_value key=\"PW\" reason=\"a test\"/><command>echo $KARYI{PW}</command></tools>";
    let karyi = Karyi::with_args(&["run", "--format", "xml", "a.xml"]).file("a.xml", script);
    let (screen, status) = karyi.on_terminal().end();
    assert!(
        screen.contains("undefined_variable") && !screen.contains("hidden"),
        "{screen}"
    );
    assert_eq!(status, 2);
}

#[test]
fn a_declined_question_is_told() {
    let script = "<tools><get_value key=\"PW\" reason=\"a test\"/></tools>";
    let karyi = Karyi::with_args(&["run", "--format", "xml", "a.xml"]).file("a.xml", script);
    let mut terminal = karyi.on_terminal();
    terminal.expect("value (hidden").keys("\x1b");
    let (screen, status) = terminal.end();
    assert!(screen.contains("status=\"declined\""), "{screen}");
    assert_eq!(status, 1);
}

#[test]
fn literal_placeholders_round_trip() {
    Karyi::new()
        .file("doc.md", "write $KARYI{NAME} here\n")
        .stdin(
            "<tools><read><file src=\"doc.md\"/></read>\
             <edit><file src=\"doc.md\"><find>write $$KARYI{NAME} here</find><replace>put $$KARYI{OTHER} there</replace></file></edit>\
             <command>echo $$KARYI{X}</command></tools>",
        )
        .run()
        .exit(0)
        .file("doc.md", "put $KARYI{OTHER} there\n");
}

#[test]
fn moving_the_cursor_over_a_value_shows_no_part_of_it() {
    let screen = with_secret(
        "<tools><command>x=$KARYI{PW}; printf '%s\\r%s\\n' \"$x\" ok; printf '%s\\b\\b\\bZZZ\\n' \"$x\"; \
         printf '%s\\033[1Gok\\n' \"$x\"; printf '%s\\033[3D??\\n' \"$x\"</command></tools>",
        0,
    );
    assert!(
        !screen.contains("$$w0rd") && !screen.contains("w0rd'"),
        "{screen}"
    );
}

#[test]
fn a_stream_knows_a_name_from_the_next_block_on() {
    let script = "<tools><get_value key=\"PW\" reason=\"a test\"/><command>read -r x < gate</command>\
        <command>echo $KARYI{PW}</command></tools>\n<tools><command>echo $KARYI{PW}</command></tools>";
    let karyi =
        Karyi::with_args(&["run", "--stream", "--format", "xml", "a.xml"]).file("a.xml", script);
    let gate = karyi.work().join("gate");
    nix::unistd::mkfifo(&gate, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let mut terminal = karyi.on_terminal();
    terminal
        .expect("value (hidden")
        .answer("12345678")
        .expect("provided");
    std::fs::write(&gate, "go\n").unwrap();
    let (screen, status) = terminal.end();
    assert_eq!(screen.matches("undefined_variable").count(), 1, "{screen}");
    assert!(screen.contains("<output>$KARYI{PW}"), "{screen}");
    assert_eq!(status, 2);
}

#[test]
fn a_dry_run_knows_what_will_be_asked_for() {
    let script = "<tools><get_value key=\"PW\" reason=\"a test\"/></tools>\n<tools><command>echo $KARYI{PW}</command></tools>";
    Karyi::new().arg("--dry-run").stdin(script).run().exit(0);
}

#[test]
fn ids_titles_and_excerpts_are_masked() {
    let karyi = Karyi::with_args(&["run", "--format", "jsonl", "a.xml", "b.xml", "c.xml"])
        .file(
            "a.xml",
            "<tools><get_value key=\"PW\" reason=\"a test\"/></tools>",
        )
        .file(
            "b.xml",
            "<tools><command id=\"hunter22\">echo hunter22</command></tools>",
        )
        .file("c.xml", "<tools><hunter22/></tools>");
    let mut terminal = karyi.on_terminal();
    terminal.expect("value (hidden").answer("hunter22");
    let (screen, _) = terminal.end();
    assert!(!screen.contains("hunter22"), "{screen}");
    assert!(screen.contains("echo $KARYI{PW}"), "{screen}");
}

/// The block is refused as with every bad placeholder: nothing of it has run by then.
#[test]
fn a_question_holds_no_placeholder() {
    for question in [
        "key=\"PW\" reason=\"$KARYI{OTHER}\"",
        "key=\"PW\" reason=\"r\" note=\"$KARYI{OTHER}\"",
        "key=\"$KARYI{OTHER}\" reason=\"r\"",
    ] {
        let script = format!("<tools><command>touch ran</command><get_value {question}/></tools>");
        let ran = Karyi::new().arg("--json").stdin(&script).run().exit(2);
        let results = &ran.json()["results"];
        assert_eq!(
            (&results[0]["code"], &results[1]["code"]),
            (&"block_refused".into(), &"bad_placeholder".into()),
            "{question}: {results:#}"
        );
    }
}

/// What a model wrote comes back as it wrote it, so that it can write it again.
#[test]
fn placeholders_that_a_model_wrote_are_shown_as_it_wrote_them() {
    let secrets = karyi::vault::session::Secrets::default();
    let name = karyi::secret::SecretName::parse("P").unwrap();
    let value = karyi::secret::SecretValue::new("secretdir-123".into());
    let policy = karyi::vault::policy::Policy::unrestricted();
    let origin = karyi::vault::session::Origin::Given;
    secrets.insert_with(name, value, policy, origin).unwrap();
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("secretdir-123")).unwrap();
    std::fs::write(dir.path().join("secretdir-123/x"), "hi $KARYI{OTHER}\n").unwrap();
    let source = format!("{}/$KARYI{{P}}/x", dir.path().display());
    let message = format!(
        "<tools><read><file src=\"{source}\"/><search pattern=\"$$KARYI{{OTHER}}\" path=\"{0}\"/></read>\
         <edit><file src=\"{source}\" to=\"{source}.new\"/></edit></tools>",
        dir.path().display()
    );
    let outcomes = crate::execution::run_with(&secrets, &message, |_, _| {});
    let read = &outcomes[0].fields;
    assert_eq!(read["files"][0]["src"], source.as_str(), "{outcomes:?}");
    assert_eq!(read["files"][0]["output"], "hi $$KARYI{OTHER}\n");
    assert_eq!(read["searches"][0]["pattern"], "$$KARYI{OTHER}");
    assert_eq!(read["searches"][0]["total_matches"], 1, "{outcomes:?}");
    let edit = &outcomes[1].fields["files"][0];
    assert_eq!(
        (&edit["src"], &edit["to"]),
        (&source.as_str().into(), &format!("{source}.new").into())
    );
}
