//! What diagnostics say: place, source line and hint; warnings, repairs, ids, spans.

use std::sync::Arc;

use karyi::call::{BlockOptions, OnError, Order, RawBody, RawText};
use karyi::error::Diagnostic;
use karyi::span::{Position, Span};
use karyi::syntax::{Event, Mode};

use super::{calls, error, grammar, parse, parse_with, warnings};

/// Draws a diagnostic as a terminal would.
fn drawn(diagnostic: &Diagnostic) -> String {
    let excerpt = diagnostic.excerpt.as_ref().unwrap();
    let (code, message, hint) = (
        diagnostic.code.as_str(),
        &diagnostic.message,
        &diagnostic.hint,
    );
    let Position { line, column, .. } = diagnostic.position;
    let caret = " ".repeat(excerpt.caret_start) + &"^".repeat(excerpt.caret_len);
    format!(
        "{code} {line}:{column}: {message}\n{}\n{caret}\n{hint}",
        excerpt.line
    )
}

/// Checks the last diagnostic of a message in several chunkings.
fn check(mode: Mode, message: &str, expected: &str) {
    for chunk in [1, 2, 7, usize::MAX] {
        let grammar = Arc::new(grammar::with_generic_tools());
        let events = parse_with(&grammar, mode, message.as_bytes(), chunk);
        let found = error(&events).or_else(|| warnings(&events).last().copied());
        assert_eq!(
            found.map(drawn).as_deref(),
            Some(expected),
            "chunks of {chunk}"
        );
    }
}

#[test]
fn errors_show_their_line_to_its_end() {
    check(
        Mode::Repair,
        "Let me edit.\n<tools>\n  <edit>\n    <file> <!-- x -->\n",
        "missing-attribute 4:5: <file> needs the attribute `src`\n    <file> <!-- x -->\n    ^^^^^^\nwrite <file src=\"...\">",
    );
    check(
        Mode::Repair,
        "<tools>\n<comand>ls</comand> # é\n</tools>",
        "unknown-tool 2:1: there is no tool <comand>\n<comand>ls</comand> # é\n^^^^^^^^\ndid you mean `command`?",
    );
    check(
        Mode::Strict,
        "<tools><command>é && b</command></tools>",
        "bad-reference 1:19: `&` starts no reference\n<tools><command>é && b</command></tools>\n                  ^\n\
         write &amp; for &, or wrap the text in <![CDATA[...]]>",
    );
    check(
        Mode::Repair,
        "<tools><command a\u{1b}[31m='x'>",
        "illegal-char 1:18: a character that XML does not allow\n<tools><command a\u{FFFD}[31m='x'>\n                 ^\n\
         remove the character; in <input> write \\e or \\xHH",
    );
}

#[test]
fn errors_at_an_opener_show_its_tag() {
    check(
        Mode::Repair,
        "<tools>\n <command>rm -rf build && ma",
        "unclosed-element 2:2: <command> has no end tag\n <command>\n ^^^^^^^^^\n\
         add </command>; text that holds that tag goes into <![CDATA[...]]>",
    );
}

#[test]
fn hints_name_what_is_near() {
    check(
        Mode::Repair,
        "<tools><read><file scr='a'/></read></tools>",
        "unknown-attribute 1:14: <file> has no attribute `scr`\n<tools><read><file scr='a'/></read></tools>\n             ^^^^^^^^^^^^^^^\ndid you mean `src`?; write <file src=\"...\"/>",
    );
    check(
        Mode::Repair,
        "<tools><command>a</command><bash>b</bash></tools>",
        "unexpected-after-end-tag 1:28: neither a tool nor </tools> follows </command>\n\
         <tools><command>a</command><bash>b</bash></tools>\n                           ^\n\
         unknown tool bash, did you mean `command`?; if the end tag is part of the text, use <![CDATA[...]]>",
    );
    check(
        Mode::Repair,
        "<tools><command>a</command><edti/></tools>",
        "unexpected-after-end-tag 1:28: neither a tool nor </tools> follows </command>\n\
         <tools><command>a</command><edti/></tools>\n                           ^\n\
         unknown tool edti, did you mean `edit`?; if the end tag is part of the text, use <![CDATA[...]]>",
    );
}

#[test]
fn ignored_blocks_are_warned_of() {
    let ignored = |message: &str| {
        let events = parse(Mode::Repair, message);
        assert!(
            calls(&events).is_empty() && error(&events).is_none(),
            "{message}"
        );
        let offsets = warnings(&events).into_iter().map(|w| w.position.offset);
        offsets.collect::<Vec<u64>>()
    };
    let none: [u64; 0] = [];
    assert_eq!(ignored("<toolset> </tools> tools"), none);
    assert_eq!(
        ignored("Use `<tools>` and <TOOLS order='auto'> or <tools/>."),
        [5, 18, 42]
    );
    assert_eq!(ignored("> <tools><ctrl>c</ctrl></tools>"), [2]);
    assert_eq!(ignored("text\n```xml\n<tools>\n <tools x\n```\n"), [12, 21]);
    assert_eq!(
        ignored("<tools> is the root\n\n <tools>\n\n it is"),
        [0, 22]
    );
    assert_eq!(ignored("<tools is the root"), [0]);
    assert_eq!(ignored("<tools"), [0]);
    assert_eq!(ignored("<tools>"), [0]);
    assert_eq!(ignored("<tools/>"), [0]);
    assert_eq!(
        ignored("{\"reply\":\"<tools>\",\"x\":[\"<tools\\n\"],\"tools\":null}"),
        [10, 25]
    );
    assert_eq!(
        ignored("```json\n{\"tools\":\"\"}\n```\n<tools><ctrl>c</ctrl></tools>"),
        [25]
    );
    assert_eq!(ignored("~~~\n```\n<tools>\n```\n~~~~\n"), [8]);
}

#[test]
fn an_ignored_block_says_why() {
    check(
        Mode::Repair,
        "Use <tools> like this.\n",
        "ignored-block 1:5: <tools> does not start its line as a tag of its own, so nothing runs\n\
         Use <tools> like this.\n    ^^^^^^\n\
         to run it, start <tools> on its own line outside code fences, followed by a tool",
    );
}

#[test]
fn repairs_are_named_in_order() {
    let repairs = |message: &str| {
        let events = parse(Mode::Repair, message);
        assert!(error(&events).is_none(), "{message}");
        calls(&events)
            .into_iter()
            .map(|call| call.repairs.join(" "))
            .collect::<Vec<_>>()
    };
    let edit = |find: &str| {
        format!(
            "<tools><edit><file src='f'><find>{find}</find><replace>x</replace></file></edit></tools>"
        )
    };
    assert_eq!(
        repairs("<tools><command>a &amp;&amp; b</command></tools>"),
        [""]
    );
    assert_eq!(
        repairs("<tools><command>a && b</command><ctrl>c</ctrl></tools>"),
        ["R4", ""]
    );
    assert_eq!(
        repairs("<tools><command>a $KARYI<B></command></tools>"),
        ["R1"]
    );
    assert_eq!(
        repairs("<tools><command><![CDATA[a]]>b]]></command></tools>"),
        ["R6"]
    );
    assert_eq!(repairs("<Tools><command>a</command></tools>"), ["R7"]);
    assert_eq!(repairs("<tools><command>a</Command></tools>"), ["R7"]);
    assert_eq!(
        repairs("<tools><command cwd=x>a && b</command></tools>"),
        ["R4 R7"]
    );
    assert_eq!(
        repairs("<tools><read><file src='a & b'/></read></tools>"),
        ["R7"]
    );
    assert_eq!(repairs(&edit("<p>&amp;</p>")), ["R4 R5"]);
    assert_eq!(repairs(&edit("a & b <c>")), ["R4"]);
}

#[test]
fn harmless_slips_are_taken() {
    let check = |call: &str, repaired: &str, spelled: &str| {
        let read = |call: &str| {
            let events = parse(Mode::Repair, &format!("<tools>{call}</tools>"));
            assert!(
                error(&events).is_none() && warnings(&events).is_empty(),
                "{call} {events:?}"
            );
            (super::as_case(&events), calls(&events)[0].repairs.join(" "))
        };
        assert_eq!(read(call), (read(spelled).0, repaired.to_owned()), "{call}");
        let strict = parse(Mode::Strict, &format!("<tools>{call}</tools>"));
        assert!(
            error(&strict).is_some() || super::as_case_result(&strict).is_err(),
            "{call}"
        );
    };
    check(
        "<command timeout='1s'>x</command>",
        "R9",
        "<command timeout='1'>x</command>",
    );
    check(
        "<command timeout='2 min'>x</command>",
        "R9",
        "<command timeout='120'>x</command>",
    );
    for call in [
        "<ctrl>Ctrl+C</ctrl>",
        "<ctrl key='c'/>",
        "<ctrl key='ctrl-c'></ctrl>",
        "<ctrl>^C</ctrl>",
        "<ctrl key='c'>Ctrl+C</ctrl>",
    ] {
        check(call, "R10", "<ctrl>c</ctrl>");
    }
    let read = "<read><file src='a b'/></read>";
    check("<read><file path='a b'/></read>", "R11", read);
    check("<read><file>\n a b </file></read>", "R11", read);
    check(
        "<read><search pattern='x' src='d'/></read>",
        "R11",
        "<read><search pattern='x' path='d'/></read>",
    );
    check(
        "<edit><file path='a' description='why'><find>x</find><replace>y</replace></file></edit>",
        "R11 R12",
        "<edit><file src='a'><find>x</find><replace>y</replace></file></edit>",
    );
    check(
        "<command reason='w' description='v'>x</command>",
        "R12",
        "<command>x</command>",
    );
}

#[test]
fn slips_without_one_meaning_are_refused() {
    for (call, code) in [
        ("<command timeout='soon'>x</command>", None),
        ("<read><file> </file></read>", Some("missing-attribute")),
        (
            "<read><file><find/></file></read>",
            Some("missing-attribute"),
        ),
        (
            "<read><file src='a' path='b'/></read>",
            Some("duplicate-attribute"),
        ),
        ("<ctrl key='strg'/>", Some("bad-ctrl")),
        ("<ctrl key='c'>d</ctrl>", Some("duplicate-attribute")),
        (
            "<command purpose='w'>x</command>",
            Some("unknown-attribute"),
        ),
    ] {
        let events = parse(Mode::Repair, &format!("<tools>{call}</tools>"));
        assert_eq!(error(&events).map(|e| e.code.as_str()), code, "{call}");
    }
}

#[test]
fn control_characters_are_written_as_references_in_find_and_replace() {
    let edit = |find: &str| {
        let message = format!(
            "<tools><edit><file src='f'><find>{find}</find><replace/></file></edit></tools>"
        );
        let events = parse(Mode::Repair, &message);
        match error(&events) {
            Some(error) => error.hint.clone(),
            None => super::as_case(&events)[0]["files"][0]["edits"][0]["find"]
                .as_str()
                .unwrap()
                .to_owned(),
        }
    };
    assert_eq!(edit("a&#12;b&#x1b;[m"), "a\u{c}b\u{1b}[m");
    for literal in ["a\u{c}b", "a\u{1b}", "&#0;"] {
        assert!(edit(literal).contains("&#12;"), "{literal:?}");
    }
    let strict = "<tools><command>&#12;</command></tools>";
    for mode in [Mode::Repair, Mode::Strict] {
        assert_eq!(
            error(&parse(mode, strict)).unwrap().code.as_str(),
            "illegal-char"
        );
    }
}

#[test]
fn raw_text_with_escapes_is_warned_of() {
    check(
        Mode::Repair,
        "<tools><edit><file src='f'><find><p>&amp;</p></find><replace>x</replace></file></edit></tools>",
        "mixed-escapes 1:37: the text of <find> mixes escaped and raw markup\n\
         <tools><edit><file src='f'><find><p>&amp;</p></find>\n                                    ^^^^^\n\
         the text was taken raw; escape all of it, or wrap it in <![CDATA[...]]>",
    );
    let events = parse(
        Mode::Repair,
        "<tools><read><file src='a & b &lt;'/></read></tools>",
    );
    let codes: Vec<&str> = warnings(&events).iter().map(|w| w.code.as_str()).collect();
    assert_eq!((codes, calls(&events).len()), (vec!["mixed-escapes"], 1));
    let events = parse(
        Mode::Repair,
        "<tools><command cwd='a & b &lt;'>x</command></tools>",
    );
    assert_eq!(
        error(&events).map(|e| e.code.as_str()),
        Some("mixed-escapes")
    );
}

#[test]
fn a_missing_end_of_the_block_is_a_warning() {
    let events = parse(Mode::Repair, "\n <tools><command>a</command>\n");
    let found: Vec<(&str, u64)> = warnings(&events)
        .iter()
        .map(|w| (w.code.as_str(), w.position.offset))
        .collect();
    assert_eq!(found, [("unclosed-tools", 2)]);
    assert_eq!(events.last(), Some(&Event::BlockClosed));
}

#[test]
fn escapes_and_keys_are_checked() {
    let code = |message: &str| {
        let events = parse(Mode::Strict, message);
        error(&events).map(|e| (e.code.as_str(), e.position.offset))
    };
    assert_eq!(
        code("<tools><input>a\\x1\\n</input></tools>"),
        Some(("bad-escape", 15))
    );
    assert_eq!(
        code("<tools><input>&amp;\\n\\u{}</input></tools>"),
        Some(("bad-escape", 21))
    );
    assert_eq!(
        code("<tools><input>ab\\u{}&#92;</input></tools>"),
        Some(("bad-escape", 14))
    );
    assert_eq!(code("<tools><input>\\d\\x41</input></tools>"), None);
    assert_eq!(
        code("<tools><ctrl> ctrl+c </ctrl></tools>"),
        Some(("bad-ctrl", 14))
    );
    assert_eq!(code("<tools><ctrl/></tools>"), Some(("bad-ctrl", 7)));
}

#[test]
fn ids_number_the_calls_of_a_message() {
    let ids = |message: &str| {
        let events = parse(Mode::Repair, message);
        match error(&events) {
            Some(error) => format!("{} at {}", error.code.as_str(), error.position.offset),
            None => calls(&events)
                .iter()
                .map(|call| call.id.clone())
                .collect::<Vec<_>>()
                .join(" "),
        }
    };
    assert_eq!(
        ids("<tools><ctrl>c</ctrl><ctrl id='x'>c</ctrl></tools>\n<tools><ctrl>c</ctrl></tools>"),
        "1 x 3"
    );
    assert_eq!(
        ids("<tools><ctrl id='2'>c</ctrl><ctrl>c</ctrl></tools>"),
        "2 3"
    );
    assert_eq!(
        ids("<tools><ctrl id='x'>c</ctrl><ctrl id='x'>c</ctrl></tools>"),
        "duplicate-id at 28"
    );
    assert_eq!(
        ids("<tools><ctrl>c</ctrl><ctrl id='1'>c</ctrl></tools>"),
        "duplicate-id at 21"
    );
    assert_eq!(
        ids("<tools><ctrl id=' '>c</ctrl></tools>"),
        "bad-attribute at 7"
    );
    assert_eq!(
        ids("<tools><ctrl id='a' id='b'>c</ctrl></tools>"),
        "duplicate-attribute at 7"
    );
}

#[test]
fn blocks_have_options() {
    let options = |attributes: &str| {
        let message = format!("<tools {attributes}><ctrl>c</ctrl></tools>");
        match parse(Mode::Strict, &message).into_iter().next() {
            Some(Event::BlockOpened { options, .. }) => Ok(options),
            Some(Event::Error(error)) => Err(error.code.as_str()),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(options(""), Ok(BlockOptions::default()));
    let strict = BlockOptions {
        order: Order::Sequential,
        on_error: OnError::Stop,
    };
    assert_eq!(options("on_error='stop' order='sequential'"), Ok(strict));
    assert_eq!(options("order='random'"), Err("bad-attribute"));
    assert_eq!(options("order=auto"), Err("bad-attribute"));
    assert_eq!(options("id='1'"), Err("unknown-attribute"));
}

#[test]
fn elements_say_where_they_stand_and_leaves_how_they_were_written() {
    let text = |message: &str| {
        let events = parse(Mode::Strict, message);
        let [call] = calls(&events)[..] else {
            panic!("{events:?}");
        };
        match &call.element.body {
            RawBody::Text(text) => (call.element.span, text.clone()),
            other => panic!("{other:?}"),
        }
    };
    let span = |offset, line, column, end_offset| Span {
        start: Position {
            offset,
            line,
            column,
        },
        end_offset,
    };
    let plain = RawText {
        text: "a\nb".into(),
        verbatim: false,
        source: None,
    };
    assert_eq!(
        text("<tools>\n<command>a\r\nb</command></tools>"),
        (span(8, 2, 1, 31), plain)
    );
    let escaped = RawText {
        text: "&<".into(),
        verbatim: true,
        source: Some("&amp;<![CDATA[<]]>".into()),
    };
    let message = "<tools><command>&amp;<![CDATA[<]]></command></tools>";
    assert_eq!(text(message), (span(7, 1, 8, 44), escaped));
    let (_, preserved) = text("<tools xml:space='preserve'><command> a </command></tools>");
    assert!(preserved.verbatim);
    let (whole, empty) = text("<tools><command/></tools>");
    assert_eq!((whole, empty.text.as_str()), (span(7, 1, 8, 17), ""));
}

#[test]
fn places_in_an_envelope_count_in_its_string() {
    let events = parse(Mode::Repair, "{\"tools\": \"\\n<tools>\\n<bogus/>\"}");
    let error = error(&events).unwrap();
    let place = (
        error.is_in_json,
        error.position.offset,
        error.position.line,
        error.position.column,
    );
    assert_eq!(place, (true, 9, 3, 1));
    let events = parse(
        Mode::Repair,
        "{\"tools\": \"<tools><ctrl>c</ctrl></tools>\", x}",
    );
    assert_eq!(calls(&events).len(), 1);
    let codes = super::error(&events).map(|e| (e.code.as_str(), e.is_in_json, e.position.offset));
    assert_eq!(codes, Some(("bad-json", false, 43)));
}

#[test]
fn what_stands_before_broken_json_counts_in_every_chunking() {
    let message = b"{\"tools\":\"<tools><ctrl>c</ctrl><ctrl>\n</tools>\"}";
    for chunk in [1, 5, usize::MAX] {
        let events = parse_with(&grammar::core(), Mode::Strict, message, chunk);
        let code = error(&events).map(|e| e.code.as_str());
        let found = (events.len(), calls(&events).len(), code);
        assert_eq!(found, (3, 1, Some("bad-json")), "chunks of {chunk}");
    }
}
