//! Large and hostile messages come out right. Usually they have a tenth of their full size, for
//! tests are not optimised; `KARYI_FULL` gives them all of it.

use std::time::{Duration, Instant};

use karyi::call::RawBody;
use karyi::syntax::{Event, Mode, Parser};

use super::choices::is_full;
use super::{as_case, calls, error, grammar, parse, parse_with, warnings};

/// Far more than any of these takes when the time is linear, far less than when it is quadratic.
const LIMIT: Duration = Duration::from_secs(60);

/// Returns a size, or a tenth of it.
fn size(full: usize) -> usize {
    if is_full() { full } else { full / 10 }
}

/// Parses in chunks and returns the error as `code at offset`, or the number of calls.
fn outcome(mode: Mode, message: &[u8], chunk: usize) -> String {
    let start = Instant::now();
    let events = parse_with(&grammar::core(), mode, message, chunk);
    assert!(start.elapsed() < LIMIT, "took {:?}", start.elapsed());
    match error(&events) {
        Some(error) => format!("{} at {}", error.code.as_str(), error.position.offset),
        None => format!("{} calls", calls(&events).len()),
    }
}

fn check(message: &[u8], chunks: &[usize], expected: &str) {
    for mode in [Mode::Repair, Mode::Strict] {
        for chunk in chunks {
            assert_eq!(
                outcome(mode, message, *chunk),
                expected,
                "{mode:?}, chunks of {chunk}"
            );
        }
    }
}

#[test]
fn a_million_nested_tags_are_refused_at_the_first() {
    let message = format!("<tools>{}", "<a>".repeat(size(1_000_000)));
    check(
        message.as_bytes(),
        &[1, 4096, usize::MAX],
        "unknown-tool at 7",
    );
}

#[test]
fn a_replace_of_a_hundred_megabytes_is_whole() {
    let line = "let x = a < b && c > d; // 中文\n";
    let body = line.repeat(size(100_000_000) / line.len());
    let message = format!(
        "<tools><edit><file src=\"f\"><find>x</find><replace>{body}</replace></file></edit></tools>"
    );
    for chunk in [4096, usize::MAX] {
        let grammar = grammar::core();
        let events = parse_with(&grammar, Mode::Repair, message.as_bytes(), chunk);
        let case = as_case(&events);
        assert_eq!(
            case[0]["files"][0]["edits"][0]["replace"].as_str(),
            Some(body.as_str())
        );
    }
}

#[test]
fn many_angle_brackets_in_a_command_are_text() {
    let message = format!(
        "<tools><command>{}</command></tools>",
        "<".repeat(size(1_000_000))
    );
    assert_eq!(outcome(Mode::Repair, message.as_bytes(), 1), "1 calls");
    assert_eq!(
        outcome(Mode::Repair, message.as_bytes(), usize::MAX),
        "1 calls"
    );
    assert_eq!(
        outcome(Mode::Strict, message.as_bytes(), 1),
        "markup-in-text at 16"
    );
}

#[test]
fn end_tags_in_text_are_looked_at_once() {
    let find = "</find> ".repeat(100_000);
    let message = format!(
        "<tools><edit><file src='f'><find>{find}</find><replace></replace></file></edit></tools>"
    );
    assert_eq!(outcome(Mode::Repair, message.as_bytes(), 16), "1 calls");
    let openers = "<find ".repeat(100_000);
    let message = format!("<tools><edit><file src='f'><find>{openers}</find><replace></replace>");
    assert_eq!(
        outcome(Mode::Repair, message.as_bytes(), 16),
        "ambiguous-end-tag at 600033"
    );
}

#[test]
fn ten_megabytes_of_unclosed_cdata_are_refused() {
    let message = format!("<tools><command><![CDATA[{}", "]]".repeat(size(5_000_000)));
    check(
        message.as_bytes(),
        &[1, 4096, usize::MAX],
        "unclosed-cdata at 16",
    );
}

#[test]
fn white_space_and_comments_are_not_kept() {
    let space = " \n".repeat(100_000);
    let message = format!("<tools>{space}<!--{space}-->{space}<ctrl>c</ctrl>{space}</tools>");
    check(message.as_bytes(), &[1, usize::MAX], "1 calls");
    let prose = "many words, `code` and <tags> ".repeat(10_000);
    check(prose.as_bytes(), &[1, usize::MAX], "0 calls");
}

#[test]
fn a_long_tag_byte_by_byte_is_read_once() {
    let attribute = |length: usize| {
        format!(
            "<tools><read><file src=\"{}\"/></read></tools>",
            "x".repeat(length)
        )
    };
    check(attribute(60_000).as_bytes(), &[1, usize::MAX], "1 calls");
    check(
        attribute(70_000).as_bytes(),
        &[1, usize::MAX],
        "too-large at 13",
    );
    let message = format!("<tools><command {}>", " ".repeat(60_000));
    check(message.as_bytes(), &[1], "unclosed-element at 7");
    let message = format!("<tools><command {}", " ".repeat(70_000));
    check(message.as_bytes(), &[1], "too-large at 7");
    let message = format!("<tools><command>a</command{}", " ".repeat(70_000));
    assert_eq!(
        outcome(Mode::Strict, message.as_bytes(), 1),
        "too-large at 17"
    );
}

#[test]
fn calls_come_out_while_the_message_goes_on() {
    let mut parser = Parser::new(grammar::core(), Mode::Strict);
    let mut count = 0;
    parser.feed(b"<tools>", &mut Vec::new());
    for _ in 0..20_000 {
        let mut events = Vec::new();
        parser.feed(b"<command>ls</command>", &mut events);
        count += calls(&events).len();
    }
    assert_eq!(count, 20_000);
}

#[test]
fn many_references_and_cdata_sections_are_decoded() {
    let message = format!(
        "<tools><command>{}</command></tools>",
        "&amp;<![CDATA[<]]>".repeat(50_000)
    );
    for mode in [Mode::Repair, Mode::Strict] {
        let events = parse(mode, &message);
        let RawBody::Text(text) = &calls(&events)[0].element.body else {
            panic!("no text");
        };
        assert_eq!(text.text, "&<".repeat(50_000));
        assert!(text.verbatim);
    }
}

#[test]
fn warnings_have_a_limit_and_the_parser_still_knows() {
    let message = "x <tools><x> ".repeat(100_000);
    let events = parse(Mode::Repair, &message);
    assert_eq!(warnings(&events).len(), karyi::limits::MAX_WARNINGS);
    let mut parser = Parser::new(grammar::core(), Mode::Repair);
    parser.feed(message.as_bytes(), &mut Vec::new());
    assert!(parser.has_ignored_block());
}

#[test]
fn deep_json_is_refused() {
    let message = format!("{{\"a\":{}", "[".repeat(100_000));
    check(message.as_bytes(), &[1, usize::MAX], "too-large at 132");
    let message = format!(
        "{{\"reply\":\"{}\",\"tools\":\"\"}}",
        "\\u0041<".repeat(50_000)
    );
    check(message.as_bytes(), &[1, usize::MAX], "0 calls");
}

#[test]
fn own_ids_cannot_make_numbering_slow() {
    let own: String = (10_001..20_000)
        .map(|i| format!("<ctrl id='{i}'>c</ctrl>"))
        .collect();
    let message = format!("<tools>{own}{}</tools>", "<ctrl>c</ctrl>".repeat(10_000));
    check(message.as_bytes(), &[4096], "19999 calls");
}

#[test]
fn after_an_error_everything_is_ignored() {
    let mut parser = Parser::new(grammar::core(), Mode::Repair);
    let mut events = Vec::new();
    parser.feed(b"<tools><bogus>\n<command>a</command></tools>", &mut events);
    parser.feed(b"<tools><command>b</command></tools>", &mut events);
    parser.finish(&mut events);
    parser.feed(b"<tools><command>c</command></tools>", &mut events);
    parser.finish(&mut events);
    assert_eq!(events.len(), 2);
    assert!(matches!(events[1], Event::Error(_)));
}
