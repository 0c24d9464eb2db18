//! Results as the text that a model reads: what a call printed, and beside it only what is not as usual.
//!
//! The same data is in the structured content of the result. The first line names the facts, such as
//! `status: failed, exit_code: 3`; a call that went well and printed something has no such line.

use serde_json::{Map, Value};

use crate::render::borrowed_fields::Field;
use crate::render::xml;

/// Fields that are shown as text of their own, in this order.
const TEXTS: [&str; 2] = ["diff", "output"];
/// Fields of an error, which have a line of their own.
const ERROR_FIELDS: [&str; 3] = ["code", "message", "hint"];

/// Field and job that the text of a result leaves out.
#[derive(Debug, Default)]
pub struct Omitted<'a> {
    /// A field that is as before.
    pub field: Option<&'a str>,
    /// Id of the job that the facts of the result describe.
    pub job: Option<&'a str>,
}

/// Returns the text of a result.
#[must_use]
pub fn of(fields: &Map<String, Value>, omitted: &Omitted<'_>) -> String {
    let mut text = String::new();
    push_entry(&mut text, fields, ("", omitted));
    match text.is_empty() {
        true => "ok".into(),
        false => text,
    }
}

/// Appends an object: its error, its facts on one line, its texts, then its lists.
fn push_entry(
    text: &mut String,
    fields: &Map<String, Value>,
    (label, omitted): (&str, &Omitted<'_>),
) {
    let said = |name: &str| fields.get(name).and_then(Value::as_str);
    let change = fields.get("change").map(Field::from);
    let shown = fields.iter().filter(|(name, value)| {
        let is_known = change.is_some_and(|change| xml::is_known(name, &(*value).into(), change));
        omitted.field != Some(name.as_str()) && !is_known
    });
    let mut facts: Vec<String> = shown.filter_map(fact).collect();
    if let Some(job) = omitted.job.filter(|_| said("job").is_none()) {
        facts.push(format!("job: {job}"));
    }
    let mut head = label.to_owned();
    if !facts.is_empty() {
        let facts = facts.join(", ");
        head = match head.is_empty() {
            true => facts,
            false => format!("{head} ({facts})"),
        };
    }
    push_line(text, &head);
    if let Some(message) = said("message") {
        let code = said("code").map_or_else(String::new, |code| format!(" {code}"));
        push_line(text, &format!("error{code}: {message}"));
    }
    if let Some(hint) = said("hint") {
        push_line(text, &format!("hint: {hint}"));
    }
    for name in TEXTS {
        if let Some(body) = said(name) {
            end_line(text);
            text.push_str(body);
        }
    }
    for (name, value) in fields {
        if let Value::Array(items) = value {
            push_list(text, name, items, omitted.job);
        }
    }
}

fn push_list(text: &mut String, name: &str, items: &[Value], told: Option<&str>) {
    let is_plain = |item: &Value| !item.is_object() && !item.is_array();
    if items.is_empty() {
        return;
    }
    if items.iter().all(is_plain) {
        let words: Vec<String> = items.iter().map(plain).collect();
        push_line(text, &format!("{name}: {}", words.join(", ")));
        return;
    }
    let is_told = |item: &&Value| name == "jobs" && told.is_some_and(|told| item["id"] == told);
    for item in items.iter().filter(|item| !is_told(item)) {
        match item {
            Value::Object(fields) => {
                let (label, rest) = labelled(name, fields);
                push_entry(text, &rest, (&label, &Omitted::default()));
            }
            other => push_line(text, &format!("{name}: {other}")),
        }
    }
}

/// Takes the path, pattern or id of an item as its label.
fn labelled(list: &str, fields: &Map<String, Value>) -> (String, Map<String, Value>) {
    let mut rest = fields.clone();
    let label = match list {
        "files" => rest.shift_remove("src"),
        "jobs" => rest.shift_remove("id"),
        "searches" => rest.shift_remove("pattern"),
        _ => None,
    };
    let label = label.map_or_else(|| list.to_owned(), |label| plain(&label));
    match list {
        "jobs" => (format!("job {label}"), rest),
        "searches" => (format!("search {label:?}"), rest),
        _ => (label, rest),
    }
}

/// Returns a scalar field as words, unless it is as usual or shown otherwise.
fn fact((name, value): (&String, &Value)) -> Option<String> {
    let name = name.as_str();
    if ERROR_FIELDS.contains(&name) || (TEXTS.contains(&name) && value.is_string()) {
        return None;
    }
    let is_usual = match (name, value) {
        (_, Value::Null | Value::Array(_)) | ("status", Value::String(_)) => {
            value.is_null() || value.is_array() || value == "ok"
        }
        ("id", _) => true,
        (name, value) => xml::is_usual(name, &value.into()),
    };
    (!is_usual).then(|| format!("{name}: {}", plain(value)))
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn push_line(text: &mut String, line: &str) {
    if line.is_empty() {
        return;
    }
    end_line(text);
    text.push_str(line);
    text.push('\n');
}

fn end_line(text: &mut String) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn text(fields: Value) -> String {
        of(fields.as_object().unwrap(), &Omitted::default())
    }

    #[test]
    fn a_result_shows_what_is_not_as_usual() {
        for (fields, expected) in [
            (
                json!({"status": "ok", "exit_code": 0, "duration_ms": 7, "output": "hi\n"}),
                "hi\n",
            ),
            (
                json!({"status": "ok", "exit_code": 0, "duration_ms": 7, "output": ""}),
                "ok",
            ),
            (
                json!({"id": "4", "status": "failed", "exit_code": 3, "duration_ms": 1500, "output": "a<b"}),
                "status: failed, exit_code: 3, duration_ms: 1500\na<b",
            ),
            (
                json!({"status": "error", "code": "not_found", "message": "no a", "hint": "look", "duration_ms": 1}),
                "status: error\nerror not_found: no a\nhint: look\n",
            ),
            (
                json!({"status": "ok", "duration_ms": 1, "files": [
                    {"src": "a", "first_line": 2, "output": "x\ny"}, {"src": "b", "code": "not_found", "message": "no b"}]}),
                "a (first_line: 2)\nx\ny\nb\nerror not_found: no b\n",
            ),
            (
                json!({"status": "ok", "duration_ms": 1, "searches": [{"pattern": "x", "total_matches": 1, "output": "a:1:x\n"}]}),
                "search \"x\" (total_matches: 1)\na:1:x\n",
            ),
            (
                json!({"status": "running", "duration_ms": 9000, "output": "", "jobs": [{"id": "3", "state": "running"}],
                       "lost": ["aliases", "options"]}),
                "status: running, duration_ms: 9000\njob 3 (state: running)\nlost: aliases, options\n",
            ),
            (
                json!({"status": "ok", "files": [
                    {"src": "a", "change": "created", "replacements": 1, "first_line": 1, "lines": 2},
                    {"src": "b", "change": "edited", "replacements": 3, "first_line": 7, "lines": 9}]}),
                "a (change: created, lines: 2)\nb (change: edited, replacements: 3, lines: 9)\n",
            ),
            (
                json!({"items": [{"title": "t", "score": 1.5}], "is_last": true}),
                "is_last: true\nitems (title: t, score: 1.5)\n",
            ),
        ] {
            assert_eq!(text(fields.clone()), expected, "{fields}");
        }
    }
}
