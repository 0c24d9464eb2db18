//! The grammars of every tool for scripts, as `--tools` makes them.

use karyi::reference::grammar::{Notation, grammar};
use karyi::syntax::Mode;
use karyi::syntax::grammar::ContentRule;
use karyi::tool::spec::Family;
use karyi::tools;

use super::documents::{Document, block, document, minimal};
use super::{XML, ask_xml, differences, judges, read};

/// Returns the blocks of the examples of all tools for scripts, and the smallest ones.
fn documents() -> Vec<Document> {
    let registry = tools::for_scripts();
    let grammar = registry.grammar();
    let mut documents = minimal(&grammar);
    for entry in registry.entries() {
        for example in entry.spec.examples {
            let text = block(&format!("{}{}", example.before, example.xml));
            let is_valid = read(text.as_bytes(), &grammar, Mode::Strict).is_ok();
            documents.push(document(example.title, &text, is_valid));
        }
    }
    documents
}

/// A required parameter takes one of some words, which only a grammar knows.
const TOLD_BY_WORDS: &[&str] = &["todo_update"];

/// A parameter may be an attribute or a child, and Lark does not count which of them it was.
const LOOSE_IN_LARK: &[&str] = &[
    "url_fetch: url as attribute and child",
    "url_fetch: url missing",
    "url_fetch: url twice",
    TOLD_BY_WORDS[0],
    "todo_update: action missing",
    "plan_create: task as attribute and child",
    "plan_create: task missing",
    "plan_create: task twice",
];

/// Returns [`LOOSE_IN_LARK`] with the same for each required parameter of the tools of a supervisor.
fn loose_in_lark() -> Vec<String> {
    let mut all: Vec<String> = LOOSE_IN_LARK.iter().map(|&name| name.to_owned()).collect();
    let registry = tools::for_scripts().only(|entry| entry.spec.family == Family::Supervisor);
    for tool in registry.grammar().tools {
        let ContentRule::Parameters(parameters) = &tool.content else {
            continue;
        };
        for parameter in parameters.iter().filter(|parameter| parameter.is_required) {
            for fault in ["as attribute and child", "missing", "twice"] {
                all.push(format!("{}: {} {fault}", tool.name, parameter.name));
            }
        }
    }
    all
}

#[test]
fn schemas_and_lark_accept_what_strict_mode_does() {
    let (registry, documents) = (tools::for_scripts(), documents());
    for (notation, judge) in XML {
        if let Some(verdicts) = ask_xml(judge, &grammar(&registry, *notation), &documents) {
            let wrong = differences(&documents, &verdicts);
            assert_eq!(wrong, TOLD_BY_WORDS, "{judge}");
        }
    }
    let text = |document: &Document| String::from_utf8(document.text.clone()).unwrap();
    let texts: Vec<String> = documents.iter().map(text).collect();
    let lark = grammar(&registry, Notation::Lark);
    for judge in ["lark", "llguidance-lark"] {
        if let Some(verdicts) = judges::judged(judge, &lark, &texts) {
            let wrong = differences(&documents, &verdicts);
            assert_eq!(wrong, loose_in_lark(), "{judge}");
        }
    }
}
