//! The report as one XML element.
//!
//! A result is an element; its scalars are attributes, its texts and lists are children named as in JSON, and
//! list items have the singular name. Characters that XML cannot represent become U+FFFD.
//!
//! A model pays for every byte, so what goes without saying is left out: an exit status of 0, a directory or shell
//! that is the same as before, a time under a second, a good summary. The JSON formats have every field.

use std::borrow::Cow;
use std::io::{self, Write};

use serde_json::{Map, Value};

use crate::render::borrowed_fields::{BorrowedFields, Field};
use crate::render::{Style, Summary, wire};
use karyi_core::limits;
use karyi_core::outcome::{JobNews, JobState, Outcome, ReportStatus};

/// Fields with text instead of a word or number.
const TEXTS: &[&str] = &[
    "message",
    "hint",
    "output",
    "diff",
    "excerpt",
    "text",
    "body",
    "command",
    "last_line",
    "note",
];

/// Writes XML.
pub struct Xml<W> {
    out: W,
    is_open: bool,
    /// The directory that was shown last, or the session started in.
    cwd: String,
    /// Ids of jobs that go on after their call, with what they do.
    going_on: Vec<(String, JobState)>,
    has_results: bool,
}

/// Shell whose name goes without saying.
const USUAL_SHELL: &str = "bash";

impl<W: Write> Xml<W> {
    /// Makes a writer; the session is in `cwd`.
    pub fn new(out: W, cwd: String) -> Self {
        Self {
            out,
            is_open: false,
            cwd,
            going_on: Vec::new(),
            has_results: false,
        }
    }

    /// Returns true when a field of a result goes without saying.
    fn is_implied(&self, key: &str, field: &Field<'_>) -> bool {
        match (key, field) {
            ("cwd", Field::Text(cwd)) => *cwd == self.cwd,
            _ => is_usual(key, field),
        }
    }

    /// Returns true when the result of a call has said what its job does.
    fn is_told(&self, job: &JobNews) -> bool {
        let is_own = |(id, state): &(String, JobState)| job.is_told((id, *state));
        self.going_on.iter().any(is_own)
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
        let items = items.into_iter().map(Value::Object).collect();
        self.out.write_all(b"  ")?;
        child(&mut self.out, name, Field::Value(&Value::Array(items)))?;
        self.out.write_all(b"\n")
    }
}

impl<W: Write> Style for Xml<W> {
    fn result(&mut self, _: u64, outcome: &Outcome) -> io::Result<()> {
        self.open()?;
        self.out.write_all(b"  ")?;
        self.has_results = true;
        let mut fields = wire::result(outcome);
        fields.retain(|key, field| !self.is_implied(key, field));
        element(&mut self.out, "result", &fields)?;
        if let Some(Value::String(cwd)) = outcome.fields.get("cwd") {
            cwd.clone_into(&mut self.cwd);
        }
        if let Some((job, state)) = outcome.going_on() {
            self.going_on.push((job.to_owned(), state));
        }
        self.out.write_all(b"\n")?;
        self.out.flush()
    }

    fn end(&mut self, summary: &Summary<'_>) -> io::Result<()> {
        self.open()?;
        self.list(
            "diagnostics",
            summary.diagnostics.iter().map(wire::diagnostic).collect(),
        )?;
        let jobs = summary.jobs.iter().filter(|job| !self.is_told(job));
        let jobs = jobs.map(wire::job).collect();
        self.list("jobs", jobs)?;
        let mut fields = BorrowedFields::default();
        fields.set("status", Field::Text(summary.status.as_str()));
        let shell = summary.shell.filter(|name| *name != USUAL_SHELL);
        for (name, text) in [("shell", shell), ("note", summary.note)] {
            if let Some(text) = text {
                fields.set(name, Field::Text(text));
            }
        }
        for (name, count) in [
            ("omitted_diagnostics", summary.omitted_diagnostics),
            ("omitted_jobs", summary.omitted_jobs),
        ] {
            if count > 0 {
                fields.set(name, Field::Number(count));
            }
        }
        if !self.has_results || summary.status != ReportStatus::Ok || fields.iter().count() > 1 {
            self.out.write_all(b"  ")?;
            element(&mut self.out, "summary", &fields)?;
            self.out.write_all(b"\n")?;
        }
        self.out.write_all(b"</results>\n")?;
        self.out.flush()
    }
}

/// Writes an object as an element.
fn element(out: &mut dyn Write, name: &str, fields: &BorrowedFields<'_>) -> io::Result<()> {
    write!(out, "<{name}")?;
    let is_crlf = TEXT_FIELDS.iter().any(|name| is_crlf(fields.get(name)));
    let change = fields.get("change");
    let eol = is_crlf.then_some(("eol", Field::Text("crlf")));
    let lost = lost_characters(fields);
    let is_new = !lost.is_empty() && fields.get("is_lossy").is_none();
    let lossy = is_new.then_some(("is_lossy", Field::Value(&Value::Bool(true))));
    let attributes = fields.iter().chain(eol).chain(lossy);
    for (key, field) in attributes.filter(|(key, field)| {
        is_attribute(key, field) && !change.is_some_and(|change| is_known(key, field, change))
    }) {
        write!(out, " {key}=\"")?;
        match field {
            Field::Text(text) => escape_attribute(out, text)?,
            Field::Number(number) => write!(out, "{number}")?,
            Field::Value(value) => write!(out, "{value}")?,
            Field::Words(_) => {}
        }
        out.write_all(b"\"")?;
    }
    let hint = lost_hint(&lost).map(|lost| match fields.get("hint") {
        Some(Field::Text(hint)) => format!("{hint}\n{lost}"),
        _ => lost,
    });
    let hint = hint.as_deref().map(|hint| ("hint", Field::Text(hint)));
    let is_kept = |key: &str| key != "hint" || hint.is_none();
    let children = fields
        .iter()
        .filter(|(key, field)| is_child(key, field) && is_kept(key));
    let mut children = children.chain(hint).peekable();
    if children.peek().is_none() {
        return out.write_all(b"/>");
    }
    out.write_all(b">")?;
    for (key, field) in children {
        match field {
            Field::Text(text) if is_crlf && TEXT_FIELDS.contains(&key) => {
                child(out, key, Field::Text(&text.replace("\r\n", "\n")))?;
            }
            field => child(out, key, field)?,
        }
    }
    close(out, name)
}

/// Returns the characters of the texts that XML cannot represent, each once, in order.
fn lost_characters(fields: &BorrowedFields<'_>) -> Vec<char> {
    let texts = fields.iter().filter_map(|(_, field)| match field {
        Field::Text(text) => Some(text),
        _ => None,
    });
    let mut lost = Vec::new();
    for c in texts.flat_map(|text| text.chars()).filter(|c| !is_xml(*c)) {
        if !lost.contains(&c) {
            lost.push(c);
        }
    }
    lost
}

/// Says how characters that the report does not show are written in a call.
fn lost_hint(lost: &[char]) -> Option<String> {
    let list = |format: &dyn Fn(u32) -> String| {
        let others = lost.iter().map(|c| u32::from(*c)).filter(|c| *c > 0);
        others.map(format).collect::<Vec<_>>().join(", ")
    };
    let (names, references) = (
        list(&|c| format!("U+{c:04X}")),
        list(&|c| format!("&#{c};")),
    );
    let nul = "NUL is shown as U+FFFD; change such text with a command";
    let verb = if names.contains(',') { "are" } else { "is" };
    let others = format!("{names} {verb} shown as U+FFFD; in find and replace write {references}");
    match (lost.contains(&'\0'), names.is_empty()) {
        (false, true) => None,
        (true, true) => Some(nul.to_owned()),
        (false, false) => Some(others),
        (true, false) => Some(format!("{nul}\n{others}")),
    }
}

/// Fields with the text of a file.
const TEXT_FIELDS: &[&str] = &["output", "diff"];

/// Returns true when every line of a file's text ends with CR LF; the headers of a diff do not.
fn is_crlf(text: Option<Field<'_>>) -> bool {
    let Some(Field::Text(text)) = text else {
        return false;
    };
    let is_plain = |line: &str| match line.strip_suffix("\r\n") {
        Some(line) => !line.contains('\r'),
        None => !line.contains('\r') && (!line.ends_with('\n') || line.starts_with("@@ ")),
    };
    text.contains("\r\n") && text.split_inclusive('\n').all(is_plain)
}

/// Returns true when a result without the field says the same.
pub fn is_usual(key: &str, field: &Field<'_>) -> bool {
    match (key, field) {
        ("exit_code", Field::Value(code)) => code.as_i64() == Some(0),
        ("duration_ms", Field::Number(time)) => *time < limits::SHORT_CALL_MS,
        ("duration_ms", Field::Value(time)) => time
            .as_u64()
            .is_some_and(|time| time < limits::SHORT_CALL_MS),
        _ => false,
    }
}

/// Returns true when a field says nothing beyond the kind of a change and its lines.
pub fn is_known(key: &str, field: &Field<'_>, change: Field<'_>) -> bool {
    let is_whole = [Field::Text("created"), Field::Text("deleted")].contains(&change);
    let is_zero = matches!(field, Field::Value(count) if count.as_i64() == Some(0));
    key == "first_line" || key == "replacements" && (is_whole || is_zero)
}

/// Writes a text, list or object as a child element.
fn child(out: &mut dyn Write, name: &str, field: Field<'_>) -> io::Result<()> {
    if let Field::Value(Value::Object(map)) = field {
        return element(out, name, &BorrowedFields::of(map));
    }
    write!(out, "<{name}>")?;
    match field {
        Field::Text(text) => leaf(out, text)?,
        Field::Number(number) => write!(out, "{number}")?,
        Field::Words(words) => {
            for word in words {
                child(out, &singular(name), Field::Text(word))?;
            }
        }
        Field::Value(Value::Array(items)) => {
            for item in items {
                child(out, &singular(name), item.into())?;
            }
        }
        Field::Value(value) => write!(out, "{value}")?,
    }
    close(out, name)
}

fn close(out: &mut dyn Write, name: &str) -> io::Result<()> {
    write!(out, "</{name}>")
}

fn is_attribute(key: &str, field: &Field<'_>) -> bool {
    match field {
        Field::Text(_) => !TEXTS.contains(&key),
        Field::Number(_) | Field::Value(Value::Bool(_) | Value::Number(_)) => true,
        Field::Words(_) | Field::Value(_) => false,
    }
}

fn is_child(key: &str, field: &Field<'_>) -> bool {
    *field != Field::Value(&Value::Null) && !is_attribute(key, field)
}

/// Returns the element name of a list item.
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

/// Most characters of a text that are escaped one by one.
const MAX_ESCAPES: usize = 3;

/// Writes a text: in a CDATA section if it has many characters to escape or shows references. A CR needs a reference.
fn leaf(out: &mut dyn Write, text: &str) -> io::Result<()> {
    let is_escaped = |byte: &&u8| matches!(byte, b'&' | b'<' | b'>');
    let escapes = text.as_bytes().iter().filter(is_escaped);
    let has_few = escapes.take(MAX_ESCAPES + 1).count() <= MAX_ESCAPES;
    if has_few && !text.contains("&#") || text.contains('\r') {
        return escape_text(out, text);
    }
    out.write_all(b"<![CDATA[")?;
    for (number, part) in text.split("]]>").enumerate() {
        if number > 0 {
            out.write_all(b"]]]]><![CDATA[>")?;
        }
        escape(out, part, &CDATA_STOPS)?;
    }
    out.write_all(b"]]>")
}

fn escape_text(out: &mut dyn Write, text: &str) -> io::Result<()> {
    escape(out, text, &TEXT_STOPS)
}

fn escape_attribute(out: &mut dyn Write, text: &str) -> io::Result<()> {
    escape(out, text, &ATTRIBUTE_STOPS)
}

/// First bytes of characters that must be escaped or replaced.
type Stops = [bool; 256];

const TEXT_STOPS: Stops = stops(b"&<>\r");
const CDATA_STOPS: Stops = stops(b"");
const ATTRIBUTE_STOPS: Stops = stops(b"&<>\"\t\n\r");

/// Appends a character, escaped or replaced.
const fn stops(escaped: &[u8]) -> Stops {
    let mut stops = [false; 256];
    let mut byte = 0;
    while byte < b' ' {
        stops[byte as usize] = !matches!(byte, b'\t' | b'\n' | b'\r');
        byte += 1;
    }
    // First bytes of U+FFFE and U+FFFF, and of valid characters.
    stops[0xEF] = true;
    let mut at = 0;
    while at < escaped.len() {
        stops[escaped[at] as usize] = true;
        at += 1;
    }
    stops
}

/// Writes a text; stretches without special characters are written at once.
fn escape(out: &mut dyn Write, text: &str, stops: &Stops) -> io::Result<()> {
    let mut rest = text;
    loop {
        let is_stop = |byte: &u8| stops.get(usize::from(*byte)).is_some_and(|stop| *stop);
        let at = rest.as_bytes().iter().position(is_stop);
        let (plain, after) = rest.split_at(at.unwrap_or(rest.len()));
        out.write_all(plain.as_bytes())?;
        let mut characters = after.chars();
        let Some(c) = characters.next() else {
            return Ok(());
        };
        match reference(c) {
            Some(name) => out.write_all(name.as_bytes())?,
            None => {
                let c = if is_xml(c) { c } else { '\u{FFFD}' };
                out.write_all(c.encode_utf8(&mut [0; 4]).as_bytes())?;
            }
        }
        rest = characters.as_str();
    }
}

fn reference(c: char) -> Option<&'static str> {
    match c {
        '&' => Some("&amp;"),
        '<' => Some("&lt;"),
        '>' => Some("&gt;"),
        '"' => Some("&quot;"),
        '\t' => Some("&#9;"),
        '\n' => Some("&#10;"),
        '\r' => Some("&#13;"),
        _ => None,
    }
}

/// Returns true when XML 1.0 can represent a character.
fn is_xml(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'..)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(value: Value, expected: &str) {
        let mut out = Vec::new();
        if let Value::Object(map) = &value {
            element(&mut out, "r", &BorrowedFields::of(map)).unwrap();
        }
        assert_eq!(String::from_utf8(out).unwrap(), expected, "{value}");
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
    fn a_text_with_many_escapes_is_a_cdata_section() {
        let hint = format!(
            "<hint><![CDATA[{}]]></hint>",
            lost_hint(&['\u{1}']).unwrap()
        );
        check(
            json!({"output": "a<b>&\u{1}"}),
            &format!("<r is_lossy=\"true\"><output>a&lt;b&gt;&amp;\u{FFFD}</output>{hint}</r>"),
        );
        check(
            json!({"output": "a<b>&&\u{1}]]>\n"}),
            &format!(
                "<r is_lossy=\"true\"><output><![CDATA[a<b>&&\u{FFFD}]]]]><![CDATA[>\n]]></output>{hint}</r>"
            ),
        );
        check(
            json!({"output": "<<<<\r"}),
            "<r><output>&lt;&lt;&lt;&lt;&#13;</output></r>",
        );
    }

    #[test]
    fn crlf_is_an_attribute() {
        check(
            json!({"src": "a", "output": "x\r\ny\r\nz"}),
            "<r src=\"a\" eol=\"crlf\"><output>x\ny\nz</output></r>",
        );
        check(
            json!({"diff": "@@ -1 +1 @@\n-x\r\n+y\r\n"}),
            "<r eol=\"crlf\"><diff>@@ -1 +1 @@\n-x\n+y\n</diff></r>",
        );
        for mixed in ["x\r\ny\n", "x\ry\r\n", "x\r"] {
            let expected = format!("<r><output>{}</output></r>", mixed.replace('\r', "&#13;"));
            check(json!({"output": mixed}), &expected);
        }
    }

    #[test]
    fn what_a_change_says_is_not_repeated() {
        check(
            json!({"src": "a", "change": "created", "replacements": 1, "first_line": 1, "lines": "1-9"}),
            r#"<r src="a" change="created" lines="1-9"/>"#,
        );
        check(
            json!({"src": "a", "change": "edited", "replacements": 1, "first_line": 1, "lines": "1-9"}),
            r#"<r src="a" change="edited" replacements="1" lines="1-9"/>"#,
        );
        check(
            json!({"src": "a", "change": "deleted", "replacements": 0}),
            r#"<r src="a" change="deleted"/>"#,
        );
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
    fn a_word_list_is_a_list() {
        let mut out = Vec::new();
        child(&mut out, "repairs", Field::Words(&["R4", "R7"])).unwrap();
        let expected = "<repairs><repair>R4</repair><repair>R7</repair></repairs>";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn every_character_is_itself_or_escaped() {
        let seen = |escape: fn(&mut dyn Write, &str) -> io::Result<()>, text: &str| {
            let mut out = Vec::new();
            escape(&mut out, text).unwrap();
            String::from_utf8(out).unwrap()
        };
        for c in ('\0'..='\u{2FF}').chain('\u{F700}'..='\u{100FF}') {
            let text = format!("a\u{2500}{c}b");
            let own = |attribute: bool| match c {
                '&' => "&amp;".to_owned(),
                '<' => "&lt;".into(),
                '>' => "&gt;".into(),
                '\r' => "&#13;".into(),
                '"' if attribute => "&quot;".into(),
                '\t' if attribute => "&#9;".into(),
                '\n' if attribute => "&#10;".into(),
                c if is_xml(c) => c.into(),
                _ => "\u{FFFD}".into(),
            };
            for (escape, attribute) in [
                (
                    escape_text as fn(&mut dyn Write, &str) -> io::Result<()>,
                    false,
                ),
                (escape_attribute, true),
            ] {
                let expected = format!("a\u{2500}{}b", own(attribute));
                assert_eq!(seen(escape, &text), expected, "{c:?}");
            }
        }
    }

    #[test]
    fn what_xml_cannot_carry_is_replaced() {
        check(
            json!({"id": "a\"\n\u{1}&", "output": "\u{1b}[m\r.\n\u{FFFE}]]>"}),
            &format!(
                "<r id=\"a&quot;&#10;\u{FFFD}&amp;\" is_lossy=\"true\">\
                 <output>\u{FFFD}[m&#13;.\n\u{FFFD}]]&gt;</output><hint><![CDATA[{}]]></hint></r>",
                "U+0001, U+001B, U+FFFE are shown as U+FFFD; in find and replace write &#1;, &#27;, &#65534;"
            ),
        );
    }
}
