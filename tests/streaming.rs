//! `--stream`: a call starts when its end is decided, and what comes later does not undo it.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::sync::Arc;

use karyi::exec::decoder::{DecodedItem, MessageDecoder};
use karyi::syntax::Mode;
use karyi::tools;
use serde_json::{Value, json};

use crate::harness::{Karyi, results, wait};

/// Feeds a message byte by byte; returns what had come in when each call came out.
fn decided(message: &str, mode: Mode) -> Vec<String> {
    let registry = Arc::new(tools::registry());
    let grammar = Arc::new(registry.grammar());
    let mut decoder = MessageDecoder::new(registry, grammar, mode);
    let mut ends = Vec::new();
    let mut incoming = Vec::new();
    for (at, byte) in message.bytes().enumerate() {
        decoder.feed(&[byte], &mut incoming);
        for item in incoming.drain(..) {
            match item {
                DecodedItem::Call(_) => ends.push(message[..=at].to_owned()),
                DecodedItem::Refused(diagnostic) => panic!("{diagnostic:?}"),
                DecodedItem::BlockOpened(_)
                | DecodedItem::BlockClosed
                | DecodedItem::Prose(_)
                | DecodedItem::DraftsEnded
                | DecodedItem::Warning(_) => {}
            }
        }
    }
    ends
}

#[test]
fn the_byte_that_decides_a_call_starts_it() {
    let message =
        "<tools>\n<command>a</command>\n<read><file src=\"x\"/></read>\n<ctrl>c</ctrl>\n</tools>\n";
    let until = |text: &str| message[..message.find(text).unwrap() + text.len()].to_owned();
    let strict = ["</command>", "</read>", "</ctrl>"].map(until);
    assert_eq!(decided(message, Mode::Strict), strict);
    // The text of a command may hold its own end tag, so that the next token decides.
    let repair = ["</command>\n<read>", "</read>", "</ctrl>\n</tools>"].map(until);
    assert_eq!(decided(message, Mode::Repair), repair);
}

#[test]
fn a_call_runs_while_the_rest_is_not_written() {
    let karyi = Karyi::new()
        .file("f", "seen\n")
        .args(&["--stream", "--strict", "--format", "jsonl"]);
    let mut command = karyi.command();
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = piped.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut until = |event: &str| loop {
        let value: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        if value["event"] == event {
            return value;
        }
    };
    stdin
        .write_all(b"<tools><command>echo one</command>")
        .unwrap();
    assert_eq!(until("finished")["output"], "one\n");
    stdin.write_all(b"<read><file src=\"f\"/></read>").unwrap();
    assert_eq!(until("finished")["files"][0]["output"], "seen\n");
    stdin.write_all(b"<command>echo never</comma").unwrap();
    drop(stdin);
    let diagnostic = until("diagnostic");
    assert_eq!(diagnostic["code"], "unclosed-element", "{diagnostic}");
    assert_eq!(until("report")["status"], "refused");
    assert_eq!(wait(child).status.code(), Some(2));
}

#[test]
fn a_later_error_leaves_earlier_results_standing() {
    let script = "<tools>\n<command>echo one > made; cat made</command>\n<read><file src=\"made\"/></read>\n\
        <bogus/>\n<command>touch never</command>\n</tools>\n";
    for mode in [&["--stream"][..], &["--stream", "--strict"]] {
        let ran = Karyi::new().args(mode).arg("--json").stdin(script).run();
        let report = ran.exit(2).tree(&["made"]).json();
        let told: Vec<_> = results(&report)
            .iter()
            .map(|result| (result["tool"].clone(), result["status"].clone()))
            .collect();
        let expected = [
            (json!("command"), json!("ok")),
            (json!("read"), json!("ok")),
        ];
        assert_eq!(told, expected, "{mode:?}");
        let diagnostic = &report["diagnostics"][0];
        let found = (&diagnostic["code"], &diagnostic["line"], &report["status"]);
        let expected = (&json!("unknown-tool"), &json!(4), &json!("refused"));
        assert_eq!(found, expected, "{mode:?}");
    }
    // Without it the same message runs nothing.
    Karyi::new().stdin(script).run().exit(2).tree(&[]);
}
