//! The parser on whole messages: the cases of `tests/cases/toolsxml`, in every chunking.

mod choices;
mod conforming;
mod diagnostics;
mod documents;
mod generic;
mod grammar;
mod large;
mod linear;
mod memory;
mod mutants;
mod properties;
mod reader;
mod well_formed;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use karyi::call::{RawBody, RawCall, RawElement};
use karyi::error::Diagnostic;
use karyi::syntax::grammar::Grammar;
use karyi::syntax::{Event, Mode, Parser};
use serde_json::{Value, json};

const CHUNKS: [usize; 8] = [1, 2, 3, 5, 7, 16, 64, 4096];

/// Parses a message in chunks of `chunk` bytes.
fn parse_with(grammar: &Arc<Grammar>, mode: Mode, message: &[u8], chunk: usize) -> Vec<Event> {
    let mut parser = Parser::new(Arc::clone(grammar), mode);
    let mut events = Vec::new();
    for piece in message.chunks(chunk.max(1)) {
        parser.feed(piece, &mut events);
    }
    parser.finish(&mut events);
    events
}

/// Parses a whole message with the six core tools.
fn parse(mode: Mode, message: &str) -> Vec<Event> {
    parse_with(
        &Arc::new(grammar::core()),
        mode,
        message.as_bytes(),
        usize::MAX,
    )
}

fn calls(events: &[Event]) -> Vec<&RawCall> {
    let calls = events.iter().filter_map(|event| match event {
        Event::Call(call) => Some(call),
        _ => None,
    });
    calls.collect()
}

fn error(events: &[Event]) -> Option<&Diagnostic> {
    match events.last() {
        Some(Event::Error(diagnostic)) => Some(diagnostic),
        _ => None,
    }
}

fn warnings(events: &[Event]) -> Vec<&Diagnostic> {
    let warnings = events.iter().filter_map(|event| match event {
        Event::Warning(diagnostic) => Some(diagnostic),
        _ => None,
    });
    warnings.collect()
}

/// Turns events into the shape of the cases.
fn as_case(events: &[Event]) -> Value {
    let nodes: Vec<Value> = calls(events).into_iter().map(call_as_case).collect();
    let Some(error) = error(events) else {
        return Value::Array(nodes);
    };
    let mut value = json!({
        "error": error.code.as_str(),
        "offset": error.position.offset,
        "line": error.position.line,
        "column": error.position.column,
        "nodes": nodes,
    });
    if error.is_in_json {
        value["in"] = json!("tools");
    }
    value
}

fn call_as_case(call: &RawCall) -> Value {
    let element = &call.element;
    let mut value = json!({ "type": element.name });
    if call.has_own_id {
        value["id"] = json!(call.id);
    }
    for attribute in &element.attributes {
        let number = attribute.value.parse::<f64>().ok();
        value[&attribute.name] = match number.filter(|_| attribute.name == "timeout") {
            Some(number) => json!(number),
            None => json!(attribute.value),
        };
    }
    match element.name.as_str() {
        "command" | "input" => value["text"] = json!(text(element)),
        "ctrl" => value["key"] = json!(text(element).trim().to_lowercase()),
        "read" => value["files"] = children(element).iter().map(src).collect(),
        "edit" => value["files"] = children(element).iter().map(edited_file).collect(),
        _ => {}
    }
    value
}

fn edited_file(file: &RawElement) -> Value {
    let edits = children(file).chunks(2);
    let edits = edits.map(|pair| json!({ "find": text(&pair[0]), "replace": text(&pair[1]) }));
    json!({ "src": src(file), "edits": edits.collect::<Vec<_>>() })
}

fn src(file: &RawElement) -> Value {
    json!(file.attribute("src"))
}

fn text(element: &RawElement) -> &str {
    match &element.body {
        RawBody::Text(text) => &text.text,
        other => panic!("<{}> holds {other:?}", element.name),
    }
}

fn children(element: &RawElement) -> &[RawElement] {
    match &element.body {
        RawBody::Elements(children) => children,
        RawBody::Empty => &[],
        other => panic!("<{}> holds {other:?}", element.name),
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/toolsxml")
}

/// Returns the inputs of all cases, by name.
fn inputs() -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(folder()).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut inputs: Vec<(String, Vec<u8>)> = paths
        .filter(|path| path.extension().is_some_and(|e| e == "in"))
        .map(|path| {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            (name, std::fs::read(&path).unwrap())
        })
        .collect();
    inputs.sort();
    inputs
}

fn expected(name: &str, mode: Mode) -> Value {
    let kind = match mode {
        Mode::Repair => "expect",
        Mode::Strict => "strict",
    };
    let text = std::fs::read_to_string(folder().join(format!("{name}.{kind}.json"))).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn every_case_gives_its_calls_in_every_chunking() {
    let grammar = Arc::new(grammar::core());
    let inputs = inputs();
    assert_eq!(inputs.len(), 149);
    let mut wrong = Vec::new();
    for (name, message) in &inputs {
        for mode in [Mode::Repair, Mode::Strict] {
            let whole = parse_with(&grammar, mode, message, usize::MAX);
            let (found, expected) = (as_case(&whole), expected(name, mode));
            if found != expected {
                wrong.push(format!(
                    "{name} {mode:?}\n  found {found}\n  expected {expected}"
                ));
            }
            for chunk in CHUNKS {
                if parse_with(&grammar, mode, message, chunk) != whole {
                    wrong.push(format!("{name} {mode:?} differs in chunks of {chunk}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
