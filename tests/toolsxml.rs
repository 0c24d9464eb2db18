//! The parser on whole messages: the cases of `tests/cases/toolsxml`, in every chunking.

mod arguments;
pub(crate) mod choices;
mod conforming;
mod diagnostics;
mod documents;
mod drafts;
mod envelope;
mod finds;
mod generic;
mod grammar;
mod hints;
mod invariants;
mod large;
mod linear;
mod memory;
mod mutants;
mod properties;
mod reader;
mod well_formed;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use karyi::call::RawCall;
use karyi::error::Diagnostic;
use karyi::render::call_list::{self, CallList};
use karyi::syntax::grammar::Grammar;
use karyi::syntax::{Event, Mode, Parser};
use serde_json::Value;

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
    parse_with(&grammar::core(), mode, message.as_bytes(), usize::MAX)
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

/// Turns events of the core tools into the shape of the cases, as `karyi parse --json` does.
fn as_case(events: &[Event]) -> Value {
    let registry = karyi::tools::registry();
    let mut list = CallList::default();
    let drafts = events
        .iter()
        .rposition(|event| *event == Event::DraftsEnded);
    for raw in calls(&events[drafts.unwrap_or(0)..]) {
        let entry = registry.get(&raw.element.name).unwrap();
        list.push(&call_list::call(raw, entry).unwrap()).unwrap();
    }
    let mut json = Vec::new();
    list.write(&mut json, error(events)).unwrap();
    serde_json::from_slice(&json).unwrap()
}

/// Decodes the calls as a run does.
fn as_case_result(events: &[Event]) -> Result<(), String> {
    let registry = karyi::tools::registry();
    let mut calls = calls(events).into_iter();
    calls
        .try_for_each(|raw| registry.decode(raw).map(drop))
        .map_err(|error| error.message.clone())
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/toolsxml")
}

/// Returns the inputs of all cases, by name.
pub(crate) fn inputs() -> Vec<(String, Vec<u8>)> {
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

pub(crate) fn expected(name: &str, mode: Mode) -> Value {
    let kind = match mode {
        Mode::Repair => "expect",
        Mode::Strict => "strict",
    };
    let text = std::fs::read_to_string(folder().join(format!("{name}.{kind}.json"))).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn every_case_gives_its_calls_in_every_chunking() {
    let grammar = grammar::core();
    let inputs = inputs();
    assert_eq!(inputs.len(), 155);
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
