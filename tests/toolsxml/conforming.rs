//! Strict mode beside two conforming XML parsers, libxml2 and expat: what it accepts they accept
//! and read the same, and what it calls malformed they refuse.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::io::Write as _;
use std::ops::Range;
use std::process::{Command, Stdio};

use karyi::call::{RawBody, RawCall, RawElement};
use karyi::error::{Code, Diagnostic};
use karyi::span::{Position, Span};
use karyi::syntax::Event;
use proptest::prelude::*;
use serde_json::Value;

use super::choices::check_all;
use super::invariants::{Strict, parse_strictly};
use super::mutants::{Message, block_mutant, mutant};
use super::reader::{Meaning, Tree};
use super::{error, grammar, inputs};
use crate::harness::skip;

/// Documents that one process of xmllint reads.
const BATCH: usize = 500;

/// What strict mode made of a message.
struct StrictReading {
    message: Vec<u8>,
    /// The blocks it has read to their end.
    blocks: Vec<Range<usize>>,
    /// The events of these blocks, without places and warnings.
    events: Vec<Event>,
    /// Why it refused the message, when a block starts it.
    malformed: Option<Diagnostic>,
}

fn read(message: Vec<u8>) -> StrictReading {
    let Strict {
        mut events,
        blocks,
        complete,
    } = parse_strictly(&message);
    let malformed = error(&events).filter(|e| message.starts_with(b"<tools") && is_malformed(e));
    StrictReading {
        malformed: malformed.cloned(),
        events: events
            .drain(..complete)
            .filter_map(without_places)
            .collect(),
        blocks,
        message,
    }
}

/// Tells whether an error says that the block is no XML, rather than not one of ours.
fn is_malformed(error: &Diagnostic) -> bool {
    match error.code {
        Code::MismatchedEnd
        | Code::UnclosedElement
        | Code::UnclosedTag
        | Code::UnclosedCdata
        | Code::UnclosedComment
        | Code::UnclosedTools
        | Code::BadTag
        | Code::BadReference
        | Code::CdataEndInText
        | Code::BadComment
        | Code::IllegalChar
        | Code::Encoding => true,
        Code::BadAttribute => {
            let message = &error.message;
            !message.contains("is empty") && !message.contains("of <tools> is")
        }
        _ => false,
    }
}

/// Takes places away, which the other parsers do not tell.
fn without_places(event: Event) -> Option<Event> {
    Some(match event {
        Event::Warning(_) => return None,
        Event::BlockOpened { options, .. } => Event::BlockOpened {
            options,
            position: Position::default(),
        },
        Event::Call(call) => Event::Call(RawCall {
            element: element_without_places(call.element),
            ..call
        }),
        other @ (Event::BlockClosed | Event::DraftsEnded | Event::Error(_)) => other,
    })
}

fn element_without_places(mut element: RawElement) -> RawElement {
    element.span = Span::default();
    element.body = match element.body {
        RawBody::Empty => RawBody::Empty,
        RawBody::Text(mut text) => {
            text.source = None;
            RawBody::Text(text)
        }
        RawBody::Elements(children) => {
            RawBody::Elements(children.into_iter().map(element_without_places).collect())
        }
    };
    element
}

/// Reads documents with expat.
fn expat(documents: &[&[u8]]) -> Vec<Result<Tree, String>> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/toolsxml/expat.py");
    let mut child = Command::new("python3")
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let output = std::thread::scope(|scope| {
        scope.spawn(move || {
            for document in documents {
                let mut line = String::new();
                for byte in *document {
                    write!(line, "{byte:02x}").unwrap();
                }
                writeln!(stdin, "{line}").unwrap();
            }
        });
        child.wait_with_output().unwrap()
    });
    let output = String::from_utf8(output.stdout).unwrap();
    let answers: Vec<_> = output.lines().map(answer).collect();
    assert_eq!(answers.len(), documents.len(), "expat did not answer");
    answers
}

fn answer(line: &str) -> Result<Tree, String> {
    let answer: Value = serde_json::from_str(line).unwrap();
    match &answer["error"] {
        Value::String(error) => Err(error.clone()),
        _ => Ok(tree(&answer["tree"])),
    }
}

fn tree(value: &Value) -> Tree {
    let list = |key: &str| value[key].as_array().unwrap().iter();
    let string = |value: &Value| value.as_str().unwrap().to_owned();
    Tree {
        name: string(&value["name"]),
        attributes: list("attributes")
            .map(|pair| (string(&pair[0]), string(&pair[1])))
            .collect(),
        children: list("children").map(tree).collect(),
        text: string(&value["text"]),
        has_cdata: value["cdata"].as_bool().unwrap(),
        ..Tree::default()
    }
}

/// Reads documents with libxml2; returns what it says of those it refuses.
fn xmllint(documents: &[&[u8]]) -> String {
    let directory = tempfile::tempdir().unwrap();
    let mut said = String::new();
    for (number, batch) in documents.chunks(BATCH).enumerate() {
        let mut command = Command::new("xmllint");
        command.args(["--noout", "--nonet"]).current_dir(&directory);
        for (index, document) in batch.iter().enumerate() {
            let name = format!("{}.xml", number * BATCH + index);
            std::fs::write(directory.path().join(&name), document).unwrap();
            command.arg(name);
        }
        let output = command.output().unwrap();
        // A prefix without namespace is an error to it, but not one of XML 1.0: the status is 0.
        if !output.status.success() {
            said.push_str(&String::from_utf8_lossy(&output.stderr));
        }
    }
    said
}

fn has(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output();
    if found.is_err() {
        skip(&format!("no {program}"));
    }
    found.is_ok()
}

fn check(messages: Vec<Vec<u8>>) {
    // Ids start anew after drafts, which the other readers do not know.
    let counts = |message: &Vec<u8>| !parse_strictly(message).events.contains(&Event::DraftsEnded);
    let messages = messages.into_iter().filter(counts);
    let readings: Vec<StrictReading> = messages.map(read).collect();
    let accepted: Vec<&[u8]> = readings
        .iter()
        .flat_map(|reading| {
            reading
                .blocks
                .iter()
                .map(|range| &reading.message[range.clone()])
        })
        .collect();
    let refused: Vec<&StrictReading> = readings.iter().filter(|r| r.malformed.is_some()).collect();
    println!(
        "{} blocks, {} malformed messages",
        accepted.len(),
        refused.len()
    );
    assert!(accepted.len() > 30);
    if has("xmllint") {
        let said = xmllint(&accepted);
        assert!(
            said.is_empty(),
            "libxml2 refuses what strict mode accepts:\n{said}"
        );
    }
    if !has("python3") {
        return;
    }
    let mut wrong = Vec::new();
    let mut trees = expat(&accepted).into_iter();
    for reading in &readings {
        wrong.extend(compare(reading, &mut trees));
    }
    let documents: Vec<&[u8]> = refused.iter().map(|reading| &*reading.message).collect();
    for (reading, tree) in refused.iter().zip(expat(&documents)) {
        if tree.is_ok() {
            wrong.push(format!("accepted by expat: {}", shown(reading)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn shown(reading: &StrictReading) -> String {
    let error = reading.malformed.as_ref();
    let error = error.map(|error| format!("{}: {}", error.code.as_str(), error.message));
    format!("{:?} {error:?}", Message(reading.message.clone()))
}

/// Compares a message's calls with what expat says of its blocks.
fn compare(
    reading: &StrictReading,
    trees: &mut impl Iterator<Item = Result<Tree, String>>,
) -> Option<String> {
    let grammar = grammar::shared();
    let mut meaning = Meaning::new(&grammar, None);
    for tree in trees.by_ref().take(reading.blocks.len()) {
        match tree {
            Ok(tree) => meaning.block(tree),
            Err(error) => return Some(format!("expat: {error}: {}", shown(reading))),
        }
    }
    (meaning.events != reading.events).then(|| {
        let (ours, theirs) = (&reading.events, &meaning.events);
        format!(
            "{}\n  read as {ours:?}\n  by expat as {theirs:?}",
            shown(reading)
        )
    })
}

/// Returns random messages, the same for one seed.
fn collect(counts: (u32, u32), strategy: &impl Strategy<Value = Message>) -> Vec<Vec<u8>> {
    let messages = RefCell::new(Vec::new());
    check_all(counts, strategy, |message| {
        messages.borrow_mut().push(message.0.clone());
        Ok(())
    });
    messages.into_inner()
}

#[test]
fn cases_that_strict_mode_accepts_are_xml() {
    check(inputs().into_iter().map(|(_, message)| message).collect());
}

#[test]
fn mutants_that_strict_mode_accepts_are_xml() {
    check(collect((300, 30_000), &mutant()));
}

#[test]
fn blocks_that_strict_mode_calls_malformed_are_not_xml() {
    check(collect((400, 50_000), &block_mutant()));
}
