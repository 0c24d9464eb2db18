//! What random tests and fuzzers have found, each as a test of its own.

use karyi::call::{RawBody, RawElement};
use karyi::syntax::Mode;

use super::invariants::{check_chunks, parse_in};
use super::{calls, error};

const MODES: [Mode; 2] = [Mode::Repair, Mode::Strict];

/// Returns the text of the first argument of the only call.
fn first_text(mode: Mode, message: &str) -> String {
    let events = parse_in(mode, message.as_bytes(), &[usize::MAX]);
    let calls = calls(&events);
    let RawBody::Elements(children) = &calls[0].element.body else {
        panic!("no arguments in {events:?}");
    };
    match &children[0] {
        RawElement {
            body: RawBody::Text(text),
            ..
        } => text.text.clone(),
        other => panic!("no text in {other:?}"),
    }
}

#[test]
fn a_byte_order_mark_stays_in_text_that_is_decoded() {
    let message = |text: &str| {
        format!("<tools><write_file path='p'><content>{text}</content></write_file></tools>")
    };
    for mode in MODES {
        let text = message("\u{FEFF}&amp;");
        assert_eq!(first_text(mode, &text), "\u{FEFF}&", "{mode:?}");
        let text = message("\u{FEFF}\u{FEFF}<![CDATA[\u{FEFF}]]>&#xFEFF;");
        assert_eq!(first_text(mode, &text), "\u{FEFF}".repeat(4), "{mode:?}");
    }
    let text = message("$KARYI<A>\u{FEFF}&amp;");
    assert_eq!(first_text(Mode::Repair, &text), "$KARYI<A>\u{FEFF}&");
}

#[test]
fn a_bad_byte_before_broken_json_counts_in_every_chunking() {
    for inside in ["<command>\u{7}</command>", "<ctrl>c</ctrl >\u{7}"] {
        let inside = inside.replace('\u{7}', "\\u0007");
        let message = format!("{{\"tools\":\"<tools>{inside}\\q\"}}");
        check_chunks(message.as_bytes(), &[7, 3]).unwrap();
        for mode in MODES {
            let events = parse_in(mode, message.as_bytes(), &[usize::MAX]);
            let code = error(&events).map(|error| error.code.as_str());
            assert_ne!(code, Some("bad-json"), "{mode:?} {message}");
        }
    }
    check_chunks(b"{\"tools\":\"<tools><command>\xff</command>\\q", &[2]).unwrap();
}

#[test]
fn a_mended_block_without_calls_has_nowhere_to_say_so() {
    let message = b"<tools Order='sequential'>\n</tools>\n<tools><ctrl>c</ctrl></tools>";
    super::invariants::check_modes(message).unwrap();
    let events = parse_in(Mode::Repair, message, &[usize::MAX]);
    let repairs: Vec<_> = calls(&events).iter().map(|call| &call.repairs).collect();
    assert_eq!(repairs, [&Vec::<&str>::new()]);
}
