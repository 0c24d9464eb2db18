//! The report as one XML element.
//!
//! A result is an element; its scalars are attributes, its texts and lists children named as in
//! JSON; the items of a list bear the singular of its name. Characters that XML cannot carry
//! become U+FFFD.

use std::borrow::Cow;
use std::io::{self, Write};

use serde_json::{Map, Value};

use crate::outcome::Outcome;
use crate::render::{Style, Summary, wire};

/// Fields that hold text and not a word or number.
const TEXTS: &[&str] = &[
    "message",
    "hint",
    "output",
    "diff",
    "excerpt",
    "text",
    "command",
    "last_line",
    "note",
];

/// Writes XML.
pub struct Xml<W> {
    out: W,
    is_open: bool,
}

impl<W: Write> Xml<W> {
    /// Makes a writer.
    pub fn new(out: W) -> Self {
        Self {
            out,
            is_open: false,
        }
    }

    fn open(&mut self) -> io::Result<()> {
        if !self.is_open {
            self.is_open = true;
            self.out.write_all(b"<results>\n")?;
        }
        Ok(())
    }

    fn list(&mut self, name: &str, items: Vec<Map<String, Value>>) -> io::Result<()> {
        if items.is_empty() {
            return Ok(());
        }
        let mut text = String::from("  ");
        let items = items.into_iter().map(Value::Object).collect();
        child(&mut text, name, &Value::Array(items));
        text.push('\n');
        self.out.write_all(text.as_bytes())
    }
}

impl<W: Write> Style for Xml<W> {
    fn result(&mut self, _: u64, outcome: &Outcome) -> io::Result<()> {
        self.open()?;
        let mut text = String::from("  ");
        element(&mut text, "result", &wire::result(outcome));
        text.push('\n');
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }

    fn end(&mut self, summary: &Summary<'_>) -> io::Result<()> {
        self.open()?;
        self.list(
            "diagnostics",
            summary.diagnostics.iter().map(wire::diagnostic).collect(),
        )?;
        self.list("jobs", summary.jobs.iter().map(wire::job).collect())?;
        let mut map = Map::new();
        map.insert("status".into(), summary.status.as_str().into());
        if let Some(shell) = summary.shell {
            map.insert("shell".into(), shell.into());
        }
        if let Some(note) = summary.note {
            map.insert("note".into(), note.into());
        }
        if summary.omitted_diagnostics > 0 {
            map.insert(
                "omitted_diagnostics".into(),
                summary.omitted_diagnostics.into(),
            );
        }
        if summary.omitted_jobs > 0 {
            map.insert("omitted_jobs".into(), summary.omitted_jobs.into());
        }
        let mut text = String::from("  ");
        element(&mut text, "summary", &map);
        text.push_str("\n</results>\n");
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }
}

/// Writes an object as an element.
fn element(out: &mut String, name: &str, map: &Map<String, Value>) {
    out.push('<');
    out.push_str(name);
    for (key, value) in map.iter().filter(|(key, value)| is_attribute(key, value)) {
        out.push(' ');
        out.push_str(key);
        out.push_str("=\"");
        match value {
            Value::String(text) => escape_attribute(out, text),
            other => out.push_str(&other.to_string()),
        }
        out.push('"');
    }
    let children: Vec<_> = map
        .iter()
        .filter(|(key, value)| is_child(key, value))
        .collect();
    if children.is_empty() {
        out.push_str("/>");
        return;
    }
    out.push('>');
    for (key, value) in children {
        child(out, key, value);
    }
    close(out, name);
}

/// Writes a text, list or object as a child element.
fn child(out: &mut String, name: &str, value: &Value) {
    match value {
        Value::Object(map) => element(out, name, map),
        Value::Array(items) => {
            open(out, name);
            for item in items {
                child(out, &singular(name), item);
            }
            close(out, name);
        }
        Value::String(text) => {
            open(out, name);
            escape_text(out, text);
            close(out, name);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {
            open(out, name);
            out.push_str(&value.to_string());
            close(out, name);
        }
    }
}

fn open(out: &mut String, name: &str) {
    out.push('<');
    out.push_str(name);
    out.push('>');
}

fn close(out: &mut String, name: &str) {
    out.push_str("</");
    out.push_str(name);
    out.push('>');
}

fn is_attribute(key: &str, value: &Value) -> bool {
    match value {
        Value::Bool(_) | Value::Number(_) => true,
        Value::String(_) => !TEXTS.contains(&key),
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    }
}

fn is_child(key: &str, value: &Value) -> bool {
    !value.is_null() && !is_attribute(key, value)
}

/// Returns the name of one item of a list.
fn singular(name: &str) -> Cow<'_, str> {
    if let Some(stem) = name.strip_suffix("ies") {
        return format!("{stem}y").into();
    }
    for ending in ["ches", "shes", "xes", "sses"] {
        if name.ends_with(ending) {
            return name[..name.len() - 2].into();
        }
    }
    match name.strip_suffix('s') {
        Some(stem) if !stem.is_empty() => stem.into(),
        _ => "item".into(),
    }
}

fn escape_text(out: &mut String, text: &str) {
    escape(out, text, &|c| match c {
        '&' => Some("&amp;"),
        '<' => Some("&lt;"),
        '>' => Some("&gt;"),
        '\r' => Some("&#13;"),
        _ => None,
    });
}

fn escape_attribute(out: &mut String, text: &str) {
    escape(out, text, &|c| match c {
        '&' => Some("&amp;"),
        '<' => Some("&lt;"),
        '>' => Some("&gt;"),
        '"' => Some("&quot;"),
        '\t' => Some("&#9;"),
        '\n' => Some("&#10;"),
        '\r' => Some("&#13;"),
        _ => None,
    });
}

fn escape(out: &mut String, text: &str, reference: &dyn Fn(char) -> Option<&'static str>) {
    for c in text.chars() {
        match reference(c) {
            Some(name) => out.push_str(name),
            None if is_xml(c) => out.push(c),
            None => out.push('\u{FFFD}'),
        }
    }
}

/// Whether XML 1.0 can carry a character.
fn is_xml(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'..)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(value: Value, expected: &str) {
        let mut out = String::new();
        if let Value::Object(map) = &value {
            element(&mut out, "r", map);
        }
        assert_eq!(out, expected, "{value}");
    }

    #[test]
    fn scalars_are_attributes_and_texts_children() {
        check(
            json!({"id": "1", "n": 3, "b": true, "x": null}),
            r#"<r id="1" n="3" b="true"/>"#,
        );
        check(
            json!({"output": "a<b", "id": "1"}),
            r#"<r id="1"><output>a&lt;b</output></r>"#,
        );
        check(json!({"output": ""}), "<r><output></output></r>");
    }

    #[test]
    fn lists_hold_their_singular() {
        check(
            json!({"repairs": ["R4", "R7"]}),
            "<r><repairs><repair>R4</repair><repair>R7</repair></repairs></r>",
        );
        check(
            json!({"files": [{"src": "a", "text": "x"}], "lost": ["a"], "matches": [1], "entries": [2]}),
            "<r><files><file src=\"a\"><text>x</text></file></files><lost><item>a</item></lost>\
             <matches><match>1</match></matches><entries><entry>2</entry></entries></r>",
        );
    }

    #[test]
    fn what_xml_cannot_carry_is_replaced() {
        check(
            json!({"id": "a\"\n\u{1}&", "output": "\u{1b}[m\r\n\u{FFFE}]]>"}),
            "<r id=\"a&quot;&#10;\u{FFFD}&amp;\"><output>\u{FFFD}[m&#13;\n\u{FFFD}]]&gt;</output></r>",
        );
    }
}
