//! Documents that every notation must accept, and some that it must refuse.

use std::path::Path;

use karyi::syntax::Mode;
use karyi::syntax::grammar::{ContentRule, ElementRule, Grammar, ParameterRule};
use regex::Regex;
use serde_json::Value;

use super::read;

/// One block.
pub(super) struct Document {
    /// Where it is from.
    pub(super) name: String,
    /// Its text; not always UTF-8.
    pub(super) text: Vec<u8>,
    /// Whether strict mode accepts it.
    pub(super) is_valid: bool,
}

pub(super) fn document(name: impl Into<String>, text: &str, is_valid: bool) -> Document {
    Document {
        name: name.into(),
        text: text.as_bytes().to_vec(),
        is_valid,
    }
}

/// Returns the blocks of the scripts in `examples/`.
pub(super) fn scripts() -> Vec<Document> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut documents = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "xml") {
            let text = std::fs::read_to_string(&path).unwrap();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let blocks = blocks(&text);
            assert!(!blocks.is_empty(), "{name}");
            documents.extend(
                blocks
                    .iter()
                    .map(|block| document(&name, block, is_strict(block))),
            );
        }
    }
    documents
}

/// Whether strict mode reads a block.
pub(super) fn is_strict(block: &str) -> bool {
    read(
        block.as_bytes(),
        &karyi::tools::registry().grammar(),
        Mode::Strict,
    )
    .is_ok()
}

/// Returns the blocks of the cases in `tests/cases/toolsxml` that a validator can be asked about.
pub(super) fn cases() -> Vec<Document> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/toolsxml");
    let mut documents = Vec::new();
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "in") {
            continue;
        }
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let message = std::fs::read(&path).unwrap();
        let strict = std::fs::read_to_string(folder.join(format!("{name}.strict.json"))).unwrap();
        match serde_json::from_str(&strict).unwrap() {
            Value::Array(calls) if calls.is_empty() => {}
            Value::Array(_) => {
                let message = in_envelope(&String::from_utf8_lossy(&message));
                let blocks = blocks(&message);
                assert!(!blocks.is_empty(), "{name}");
                documents.extend(blocks.iter().map(|block| document(&name, block, true)));
            }
            _ if message.starts_with(b"<tools") => documents.push(Document {
                name,
                text: message,
                is_valid: false,
            }),
            _ => {}
        }
    }
    documents.sort_by(|a, b| a.name.cmp(&b.name));
    documents
}

/// Returns the `tools` string of a JSON envelope, and any other message as it is.
fn in_envelope(message: &str) -> String {
    let bare = message.trim().trim_matches('`').trim_start_matches("json");
    let envelope: Option<Value> = serde_json::from_str(bare).ok();
    let tools = envelope.as_ref().and_then(|value| value["tools"].as_str());
    tools.unwrap_or(message).to_owned()
}

/// Cuts the blocks out of a message: one that is a block from its first line to its last is
/// taken whole.
fn blocks(message: &str) -> Vec<String> {
    let block = Regex::new(r"(?ms)^[ \t\u{feff}]*(<tools.*?</tools\s*>)").unwrap();
    let all: Vec<String> = block
        .captures_iter(message)
        .map(|found| found[1].to_owned())
        .collect();
    let whole = message.trim_start_matches('\u{feff}').trim();
    match all.len() {
        1 if whole.starts_with("<tools") && whole.ends_with("</tools>") => vec![whole.to_owned()],
        _ => all,
    }
}

/// Writes the smallest document of every tool, and one document for every way to leave something
/// out of it or put something unknown in.
pub(super) fn minimal(grammar: &Grammar) -> Vec<Document> {
    let mut documents = Vec::new();
    for tool in &grammar.tools {
        let mut right = Writer::default();
        let text = right.element(tool);
        documents.push(document(&tool.name, &block(&text), true));
        for place in 1..=right.places {
            let mut wrong = Writer {
                wrong: place,
                ..Writer::default()
            };
            let text = wrong.element(tool);
            let name = format!("{}: {}", tool.name, wrong.told);
            documents.push(document(name, &block(&text), false));
        }
    }
    documents
}

pub(super) fn block(inside: &str) -> String {
    format!("<tools>{inside}</tools>")
}

/// Writes elements with all they must have, and one mistake at most.
#[derive(Default)]
struct Writer {
    /// How many mistakes could be made so far.
    places: usize,
    /// The one to make; none when 0.
    wrong: usize,
    /// What it is called.
    told: String,
}

impl Writer {
    /// Whether the mistake that could be made here is the one to make.
    fn errs(&mut self, what: String) -> bool {
        self.places += 1;
        let errs = self.places == self.wrong;
        if errs {
            self.told = what;
        }
        errs
    }

    fn element(&mut self, rule: &ElementRule) -> String {
        let name = &rule.name;
        let mut attributes = String::new();
        if self.errs(format!("unknown attribute of {name}")) {
            attributes.push_str(" surprise=\"1\"");
        }
        let is_parameter = |name: &str| match &rule.content {
            ContentRule::Parameters(list) => list.iter().any(|p| p.name == name),
            _ => false,
        };
        let required = rule.attributes.iter().filter(|a| a.is_required);
        for attribute in required.filter(|a| !is_parameter(&a.name)) {
            if !self.errs(format!("no {} of {name}", attribute.name)) {
                attributes.push_str(&format!(" {}=\"1\"", attribute.name));
            }
        }
        let children = self.content(rule, &mut attributes);
        format!("<{name}{attributes}>{children}</{name}>")
    }

    fn content(&mut self, rule: &ElementRule, attributes: &mut String) -> String {
        let name = &rule.name;
        if let ContentRule::Leaf(_) = rule.content {
            return match self.errs(format!("element in {name}")) {
                true => "<surprise/>".into(),
                false => "c".into(),
            };
        }
        let mut children = String::new();
        if self.errs(format!("unknown element in {name}")) {
            children.push_str("<surprise/>");
        }
        if self.errs(format!("text in {name}")) {
            children.push('x');
        }
        match &rule.content {
            ContentRule::Children { groups, min } => {
                if *min == 0 || !self.errs(format!("nothing in {name}")) {
                    groups
                        .iter()
                        .for_each(|group| self.group(group, &mut children));
                }
            }
            ContentRule::Parameters(list) => {
                for parameter in list.iter().filter(|p| p.is_required) {
                    self.parameter(parameter, attributes, &mut children);
                }
            }
            ContentRule::Empty | ContentRule::Leaf(_) => {}
        }
        children
    }

    fn group(&mut self, group: &[ElementRule], children: &mut String) {
        for element in group {
            if group.len() == 1 || !self.errs(format!("no {}", element.name)) {
                children.push_str(&self.element(element));
            }
        }
    }

    fn parameter(&mut self, rule: &ParameterRule, attributes: &mut String, out: &mut String) {
        let name = &rule.name;
        if self.errs(format!("{name} as attribute and child")) {
            attributes.push_str(&format!(" {name}=\"1\""));
        }
        if self.errs(format!("{name} missing")) {
            return;
        }
        let child = format!("<{name}>1</{name}>");
        if !rule.is_repeated && self.errs(format!("{name} twice")) {
            out.push_str(&child);
        }
        out.push_str(&child);
    }
}
