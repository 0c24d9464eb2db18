//! A value arrives whole and exact where it is typed or written, or the call is refused.

use karyi::outcome::Outcome;

use super::support::{Bench, code};

const READER: &str = r#"<tools><command>stty -echo; IFS= read -r x; if [ "$x" = $'tab\tand \\n backslash' ]; then echo same; fi</command></tools>"#;

fn typed(value: &str, setting: &str) -> Vec<Outcome> {
    let mut bench = Bench::new().given("K", value);
    let reader = READER.replace("stty -echo", &format!("stty -echo {setting}"));
    bench.run(&reader);
    bench.run("<tools><input>$KARYI{K}\\n</input></tools>")
}

#[test]
fn a_control_character_is_not_typed() {
    for value in [
        "line one\nline two",
        "esc\u{1b}[A value",
        "inter\u{3}rupt",
        "end\u{4}of file",
        "carriage\rreturn",
        "dele\u{7f}te",
    ] {
        let outcomes = typed(value, "");
        assert_eq!(code(&outcomes[0]), "unsafe_context", "{value:?}");
    }
    let outcomes = typed("tab\tand \\n backslash", "");
    assert_eq!(code(&outcomes[0]), "ok");
    let shown = outcomes[0].output.as_ref().map(|view| view.text.as_str());
    assert_eq!(shown.map(str::trim), Some("same"));
}

#[test]
fn a_terminal_that_acts_on_a_character_gets_none() {
    let outcomes = typed("pass#word-1", "erase '#'");
    assert_eq!(code(&outcomes[0]), "unsafe_context");
    let outcomes = typed("pass@word-1", "kill '@'");
    assert_eq!(code(&outcomes[0]), "unsafe_context");
    let outcomes = typed("pass#word-1", "");
    assert_eq!(code(&outcomes[0]), "ok");
}

#[test]
fn a_value_that_is_too_long_for_a_line_is_not_typed() {
    let outcomes = typed(&"x".repeat(4096), "");
    assert_eq!(code(&outcomes[0]), "line_too_long");
    let outcomes = typed(&"x".repeat(4095), "");
    assert_eq!(code(&outcomes[0]), "ok");
}

/// Writes a value into a file by an edit; returns the code and what the file holds then.
fn written(value: &str, before: &[u8], replace: &str) -> (&'static str, Vec<u8>, String) {
    let mut bench = Bench::new().given("K", value);
    let path = bench.work().join("f");
    std::fs::write(&path, before).unwrap();
    let message = format!(
        "<tools><edit><file src=\"f\"><find>HERE</find><replace>{replace}</replace></file></edit></tools>"
    );
    let outcomes = bench.run(&message);
    let error = outcomes[0].error.as_ref();
    let told = error.map_or(String::new(), |error| error.message.clone() + &error.hint);
    (code(&outcomes[0]), std::fs::read(path).unwrap(), told)
}

#[test]
fn line_breaks_of_a_value_are_kept_or_refused() {
    let check = |value: &str, before: &str, expected: Option<&str>| {
        let (code, found, _) = written(value, before.as_bytes(), "$KARYI{K}");
        let found = String::from_utf8(found).unwrap();
        match expected {
            Some(expected) => assert_eq!((code, found.as_str()), ("ok", expected), "{value:?}"),
            None => assert_eq!(
                (code, found.as_str()),
                ("unsafe_context", before),
                "{value:?}"
            ),
        }
    };
    check(
        "one line value",
        "a\r\nHERE\r\n",
        Some("a\r\none line value\r\n"),
    );
    check(
        "two\nlines-value",
        "a\nHERE\n",
        Some("a\ntwo\nlines-value\n"),
    );
    check(
        "two\r\nlines-value",
        "a\r\nHERE\r\n",
        Some("a\r\ntwo\r\nlines-value\r\n"),
    );
    check("two\nlines-value", "a\r\nHERE\r\n", None);
    check("two\r\nlines-value", "a\nHERE\n", None);
    check("two\r\nlines-value", "HERE", None);
    check("two\nlines-value", "a\nHERE\r\n", None);
    check("mixed\r\nlines\nvalue", "a\nHERE\n", None);
    check(
        "a return\r at the end\r",
        "a\r\nHERE\r\n",
        Some("a\r\na return\r at the end\r\r\n"),
    );
}

#[test]
fn a_new_file_takes_a_value_as_it_is() {
    let value = "mixed\r\nlines\nvalue\n\n";
    let mut bench = Bench::new().given("K", value);
    let outcomes = bench.run(
        "<tools><edit><file src=\"new\"><find></find><replace>$KARYI{K}</replace></file></edit></tools>",
    );
    assert_eq!(code(&outcomes[0]), "ok");
    assert_eq!(
        std::fs::read_to_string(bench.work().join("new")).unwrap(),
        value
    );
}

#[test]
fn what_an_encoding_lacks_is_refused_and_not_shown() {
    let latin = "caf\u{e9} d\u{e9}j\u{e0} vu HERE".chars();
    let latin: Vec<u8> = latin.map(|c| u8::try_from(u32::from(c)).unwrap()).collect();
    let (code, found, told) = written("se\u{5bc6}cret-value", &latin, "$KARYI{K}");
    assert_eq!((code, found), ("not_encodable", latin.clone()));
    assert!(
        !told.contains('\u{5bc6}') && !told.contains("5BC6"),
        "{told}"
    );
    // What the model wrote is shown.
    let (code, _, told) = written("plain-value", &latin, "\u{5bc6} $KARYI{K}");
    assert_eq!(code, "not_encodable");
    assert!(told.contains('\u{5bc6}'), "{told}");
}
