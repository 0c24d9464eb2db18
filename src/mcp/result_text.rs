//! Results as the text that a model reads: what a call printed, and beside it only what is not as usual.
//!
//! The same data is in the structured content of the result. The first line names the facts, such as
//! `status: failed, exit_code: 3`; a call that went well and printed something has no such line.

use serde_json::{Map, Value};

/// Fields that are shown as text of their own, in this order.
const TEXTS: [&str; 2] = ["diff", "output"];
/// Fields of an error, which have a line of their own.
const ERROR_FIELDS: [&str; 3] = ["code", "message", "hint"];
/// Durations up to this many milliseconds are left out.
const SHORT_MS: u64 = 1000;

/// Returns the text of a result without the `hidden` fields.
#[must_use]
pub fn of(fields: &Map<String, Value>, hidden: &[&str]) -> String {
    let mut text = String::new();
    push_entry(&mut text, fields, ("", hidden));
    match text.is_empty() {
        true => "ok".into(),
        false => text,
    }
}

/// Appends an object: its error, its facts on one line, its texts, then its lists.
fn push_entry(text: &mut String, fields: &Map<String, Value>, (label, hidden): (&str, &[&str])) {
    let said = |name: &str| fields.get(name).and_then(Value::as_str);
    let shown = fields
        .iter()
        .filter(|(name, _)| !hidden.contains(&name.as_str()));
    let facts: Vec<String> = shown.filter_map(fact).collect();
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
            push_list(text, name, items);
        }
    }
}

fn push_list(text: &mut String, name: &str, items: &[Value]) {
    let is_plain = |item: &Value| !item.is_object() && !item.is_array();
    if items.is_empty() {
        return;
    }
    if items.iter().all(is_plain) {
        let words: Vec<String> = items.iter().map(plain).collect();
        push_line(text, &format!("{name}: {}", words.join(", ")));
        return;
    }
    for item in items {
        match item {
            Value::Object(fields) => {
                let (label, rest) = labelled(name, fields);
                push_entry(text, &rest, (&label, &[]));
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
        ("exit_code", code) => code == 0,
        ("duration_ms", took) => took.as_u64().is_some_and(|took| took < SHORT_MS),
        ("id", _) => true,
        (_, _) => false,
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
        of(fields.as_object().unwrap(), &[])
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
                json!({"items": [{"title": "t", "score": 1.5}], "is_last": true}),
                "is_last: true\nitems (title: t, score: 1.5)\n",
            ),
        ] {
            assert_eq!(text(fields.clone()), expected, "{fields}");
        }
    }
}
