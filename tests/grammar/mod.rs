//! The grammars: the committed files are those of the registry, and programs that know a notation
//! accept and refuse by them what strict mode does. What differs is listed here and in
//! `grammar/README.md`.

mod constrained;
mod documents;
mod families;
mod generic;
mod judges;
mod xml;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use karyi::call::RawCall;
use karyi::reference::grammar::{Notation, grammar};
use karyi::syntax::grammar::Grammar;
use karyi::syntax::{Event, Mode, Parser};
use karyi::tool::decode;
use karyi::tools;
use serde_json::{Value, json};

use crate::harness::Karyi;
use documents::Document;

/// The XML notations and the judges of each.
const XML: &[(Notation, &str)] = &[
    (Notation::Xsd, "xmllint xsd"),
    (Notation::Rng, "xmllint rng"),
    (Notation::Rng, "jing rng"),
    (Notation::Rnc, "jing rnc"),
];

fn read(text: &[u8], grammar: &Grammar, mode: Mode) -> Result<Vec<RawCall>, String> {
    let mut parser = Parser::new(Arc::new(grammar.clone()), mode);
    let mut events = Vec::new();
    parser.feed(text, &mut events);
    parser.finish(&mut events);
    let mut calls = Vec::new();
    for event in events {
        match event {
            Event::Call(call) => calls.push(call),
            Event::Error(error) => return Err(error.code.as_str().to_owned()),
            Event::BlockOpened { .. }
            | Event::BlockClosed
            | Event::DraftsEnded
            | Event::Warning(_) => {}
        }
    }
    Ok(calls)
}

/// Asks a judge of XML about documents.
fn ask_xml(judge: &str, schema: &str, documents: &[Document]) -> Option<Vec<bool>> {
    let texts: Vec<Vec<u8>> = documents.iter().map(|d| d.text.clone()).collect();
    match judge {
        "xmllint xsd" => judges::xmllint("--schema", schema, &texts),
        "xmllint rng" => judges::xmllint("--relaxng", schema, &texts),
        "jing rng" => judges::jing("rng", schema, &texts),
        _ => judges::jing("rnc", schema, &texts),
    }
}

/// Names the documents about which a judge and strict mode differ.
fn differences(documents: &[Document], verdicts: &[bool]) -> Vec<String> {
    assert_eq!(documents.len(), verdicts.len());
    let pairs = documents.iter().zip(verdicts);
    let differs = pairs.filter(|(document, verdict)| document.is_valid != **verdict);
    differs.map(|(document, _)| document.name.clone()).collect()
}

#[test]
fn the_files_are_those_of_the_registry() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("grammar");
    let mut stale = Vec::new();
    for notation in Notation::ALL {
        let path = folder.join(notation.file_name());
        let made = grammar(&tools::registry(), notation);
        if std::env::var_os("KARYI_BLESS").is_some() {
            fs::write(&path, &made).unwrap();
        }
        if fs::read_to_string(&path).unwrap_or_default() != made {
            stale.push(notation.file_name());
        }
    }
    assert!(stale.is_empty(), "KARYI_BLESS=1 writes {stale:?} anew");
}

#[test]
fn every_notation_is_printed() {
    for notation in Notation::ALL {
        Karyi::with_args(&["tools", "grammar", notation.as_str()])
            .run()
            .stdout_text(&grammar(&tools::registry(), notation))
            .exit(0);
    }
    let readme =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("grammar/README.md"));
    let readme = readme.unwrap();
    for notation in Notation::ALL {
        assert!(readme.contains(notation.file_name()), "{notation:?}");
    }
}

#[test]
fn an_unknown_notation_is_refused_with_the_list() {
    let ran = Karyi::with_args(&["tools", "grammar", "dtd"]).run().exit(2);
    let said = ran.stderr_text();
    for notation in Notation::ALL {
        assert!(said.contains(notation.as_str()), "{said}");
    }
    Karyi::with_args(&["tools", "grammar"]).run().exit(2);
}

#[test]
fn the_attributes_of_a_block_are_those_the_parser_knows() {
    let grammar = tools::registry().grammar();
    let check = |attribute: &str, expected: Option<&str>| {
        let text = format!("<tools {attribute}><ctrl>c</ctrl></tools>");
        let found = read(text.as_bytes(), &grammar, Mode::Strict).err();
        assert_eq!(found.as_deref(), expected, "{attribute}");
    };
    for words in [
        "order auto sequential",
        "on_error continue stop",
        "xml:space default preserve",
    ] {
        let mut words = words.split(' ');
        let name = words.next().unwrap();
        words.for_each(|word| check(&format!("{name}=\"{word}\""), None));
        check(&format!("{name}=\"other\""), Some("bad-attribute"));
    }
}

#[test]
fn json_schema_accepts_what_examples_decode_to() {
    let registry = tools::registry();
    let (mut texts, mut expected) = (Vec::new(), Vec::new());
    for entry in registry.entries() {
        for example in entry.spec.examples {
            let text = documents::block(example.xml);
            let calls = read(text.as_bytes(), &registry.grammar(), Mode::Repair).unwrap();
            let arguments = decode::arguments(
                &calls[0],
                &entry.spec,
                &entry.schema,
                decode::TextMode::Normalised,
            )
            .unwrap();
            let call = json!({ "name": entry.spec.name, "arguments": arguments });
            let mut wrong = vec![
                json!({ "name": "surprise", "arguments": arguments }),
                json!({ "name": entry.spec.name }),
            ];
            let mut unknown = call.clone();
            unknown["arguments"]["surprise"] = json!(1);
            wrong.push(unknown);
            wrong.extend(without_required(&call, &entry.schema.published()));
            texts.push(call.to_string());
            expected.push(true);
            expected.extend(wrong.iter().map(|_| false));
            texts.extend(wrong.iter().map(Value::to_string));
        }
    }
    let schema = grammar(&registry, Notation::JsonSchema);
    if let Some(found) = judges::judged("json-schema", &schema, &texts) {
        assert_eq!(found, expected, "{texts:#?}");
    }
}

fn without_required(call: &Value, schema: &Value) -> Vec<Value> {
    let required = schema["required"].as_array().into_iter().flatten();
    let without = required.map(|name| {
        let mut call = call.clone();
        let arguments = call["arguments"].as_object_mut().unwrap();
        arguments.remove(name.as_str().unwrap());
        call
    });
    without.collect()
}
