//! The JSON envelope: read while it streams, at every split point.

use std::sync::Arc;

use karyi::syntax::{Event, Mode, Parser};

use super::{calls, error, grammar, parse_with, warnings};

/// Says what came of a message: its texts, then the error or warnings with their offsets.
fn summary(events: &[Event]) -> String {
    let texts = calls(events)
        .into_iter()
        .map(|call| match &call.element.body {
            karyi::call::RawBody::Text(text) => text.text.clone(),
            other => format!("{other:?}"),
        });
    let mut parts: Vec<String> = texts.collect();
    let place = |d: &karyi::error::Diagnostic| {
        let inside = if d.is_in_json { "tools:" } else { "" };
        format!("{} {inside}{}", d.code.as_str(), d.position.offset)
    };
    parts.extend(warnings(events).into_iter().map(place));
    parts.extend(error(events).map(place));
    parts.join(" | ")
}

/// Checks a message cut in two at every byte, and byte by byte.
#[track_caller]
fn check(message: &str, expected: &str) {
    let grammar = grammar::core();
    let bytes = message.as_bytes();
    for mode in [Mode::Repair, Mode::Strict] {
        let whole = parse_with(&grammar, mode, bytes, usize::MAX);
        assert_eq!(summary(&whole), expected, "{mode:?} {message}");
        assert_eq!(parse_with(&grammar, mode, bytes, 1), whole, "{message}");
        for cut in 0..bytes.len() {
            let mut parser = Parser::new(Arc::clone(&grammar), mode);
            let mut events = Vec::new();
            parser.feed(&bytes[..cut], &mut events);
            parser.feed(&bytes[cut..], &mut events);
            parser.finish(&mut events);
            assert_eq!(events, whole, "{mode:?} cut at {cut}: {message}");
        }
    }
}

/// Checks the text of a command as it is spelled in the JSON string.
#[track_caller]
fn text(json: &str, expected: &str) {
    check(
        &format!("{{\"tools\":\"<tools><command>{json}</command></tools>\"}}"),
        expected,
    );
}

#[test]
fn escapes_are_undone_at_every_split() {
    text(r"a\nb\tc\u0041\/\\\u005C", "a\nb\tcA/\\\\");
    text(r#"\"x\" \u0022"#, "\"x\" \"");
    text(r"\u0026lt;b", "<b");
}

#[test]
fn surrogate_pairs_are_one_character() {
    text(r"\ud83d\ude00 \uD83D\uDE00 😀", "😀 😀 😀");
    text(r"\u4e2d\u00e9é", "中éé");
}

#[test]
fn lone_surrogates_are_no_text() {
    for lone in [
        r"\ud83d",
        r"\ude00",
        r"\ud83dx",
        r"\ud83d\u0041",
        r"\ud83d\ud83d",
        r"\ude00\ud83d",
        r"\ud83d\n",
    ] {
        text(lone, "encoding tools:16");
    }
    // What is not read need not be text.
    check(
        r#"{"reply":"\ud83d","tools":"<tools><ctrl>c</ctrl></tools>"}"#,
        "c",
    );
}

#[test]
fn only_the_first_top_level_string_is_read() {
    let one = "<tools><ctrl>c</ctrl></tools>";
    let two = "<tools><ctrl>d</ctrl></tools>";
    check(&format!("{{\"tools\":\"{one}\"}}"), "c");
    check(
        &format!(" \n{{ \"reply\" : \"x\" , \"tools\" : \"{one}\" }} \n"),
        "c",
    );
    check(
        &format!("{{\"tools\":\"{one}\",\"tools\":\"{two}\"}}"),
        "c | ignored-block 50",
    );
    check(
        &format!("{{\"a\":{{\"tools\":\"{two}\"}},\"tools\":\"{one}\"}}"),
        "c | ignored-block 15",
    );
    check(
        &format!("{{\"a\":[{{\"tools\":\"x\"}},[]],\"b\":{{\"c\":{{}}}},\"tools\":\"{one}\"}}"),
        "c",
    );
    check(
        &format!("{{\"Tools\":\"{two}\",\"tools \":\"\",\"tool\":\"\",\"tools\":\"{one}\"}}"),
        "c | ignored-block 10",
    );
    check(&format!("{{\"to\\u006fls\":\"{one}\"}}"), "c");
    check(&format!("{{\"tools\":null,\"tools\":\"{one}\"}}"), "c");
    check("{\"tools\":\"no block\"}", "");
    check(
        "{\"tools\":[\"<tools><ctrl>c</ctrl></tools>\"]}",
        "ignored-block 11",
    );
    check(
        "{\"tools\":{\"tools\":\"<tools>\"},\"x\":1.5e3,\"y\":[true,false,null]}",
        "ignored-block 19",
    );
    check("{}", "");
}

#[test]
fn the_string_is_a_message_of_its_own() {
    check(
        r#"{"tools":"Words.\n<tools>\n<ctrl>c</ctrl></tools> rest\n<tools><ctrl>d</ctrl></tools>"}"#,
        "c | d",
    );
    check(
        r#"{"tools":"```xml\n<tools><ctrl>c</ctrl></tools>\n```"}"#,
        "c",
    );
    check(
        r#"{"tools":"x <tools><ctrl>c</ctrl></tools>"}"#,
        "ignored-block tools:2",
    );
    check(
        r#"{"tools":"<tools><nope/></tools>"}"#,
        "unknown-tool tools:7",
    );
    // An envelope inside the string is prose.
    check(
        r#"{"tools":"{\"tools\":\"<tools></tools>\"}"}"#,
        "ignored-block tools:10",
    );
}

#[test]
fn a_fence_may_open_the_message() {
    let envelope = "{\"tools\":\"<tools><ctrl>c</ctrl></tools>\"}";
    check(&format!("```json\n{envelope}\n```\n"), "c");
    check(&format!("  ```JSON\n\n {envelope}```"), "c");
    check(
        &format!("Words.\n```json\n{envelope}\n```\n"),
        "ignored-block 25",
    );
    check(&format!("```json\n{envelope}\n"), "c");
    check(&format!("```json\n{envelope} x"), "c | bad-json 50");
}

#[test]
fn broken_json_is_diagnosed_at_its_place() {
    for (message, offset) in [
        ("{\"a\" 1}", 5),
        ("{\"a\":}", 5),
        ("{\"a\":1,}", 7),
        ("{\"a\":1 \"b\":2}", 7),
        ("{\"a\":01}", 5),
        ("{\"a\":1.}", 5),
        ("{\"a\":tru}", 5),
        ("{\"a\":'x'}", 5),
        ("{\"a\":[1,]}", 8),
        ("{\"a\":[1}", 7),
        ("{\"a\":{]}", 6),
        ("{\"a\":\"\\x\"}", 6),
        ("{\"a\":\"\\u12g4\"}", 6),
        ("{\"a\":\"x\ny\"}", 7),
        ("{\"a\":\"x", 7),
        ("{\"a\":\"\\u12", 6),
        ("{\"a\":1", 6),
        ("{\"a\"", 4),
        ("{\"a\":1} x", 8),
        ("{\"a\":1}{", 7),
        ("{\"中\":1,\"b\" 2}", 13),
    ] {
        check(message, &format!("bad-json {offset}"));
    }
}

#[test]
fn calls_before_broken_json_stand() {
    check(
        "{\"tools\":\"<tools><ctrl>c</ctrl></tools>\", x}",
        "c | bad-json 42",
    );
    check(
        "{\"tools\":\"<tools><command>ls",
        "unclosed-element tools:7",
    );
}

#[test]
fn the_caret_stands_under_the_broken_place() {
    let grammar = grammar::core();
    let message = "{\n  \"回复\": \"好\",\n  \"tools\" 1\n}";
    for chunk in [1, 3, usize::MAX] {
        let events = parse_with(&grammar, Mode::Repair, message.as_bytes(), chunk);
        let error = error(&events).unwrap();
        let place = (error.position.line, error.position.column);
        let excerpt = error.excerpt.as_ref().unwrap();
        assert_eq!((place, excerpt.caret_start), ((3, 11), 10), "{excerpt:?}");
        assert_eq!(
            (excerpt.line.as_str(), error.message.as_str()),
            ("  \"tools\" 1", "expected `:` after the key")
        );
    }
}

#[test]
fn calls_come_out_while_the_envelope_goes_on() {
    let mut parser = Parser::new(grammar::core(), Mode::Strict);
    let mut events = Vec::new();
    parser.feed(
        b"{\"reply\":\"x\",\"tools\":\"<tools>\\n<ctrl>c</ctrl>",
        &mut events,
    );
    assert_eq!(calls(&events).len(), 1);
    assert!(parser.is_envelope());
    parser.feed(b"\\n<command>\\u0061\\ud83d", &mut events);
    parser.feed(b"\\ude00</command>", &mut events);
    assert_eq!(summary(&events), "c | a😀");
}
