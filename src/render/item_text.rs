//! Items of `read` and `edit` in a few words for people: one for each file or search.

use serde_json::{Map, Value};

use crate::render::paint::safe_line;

/// Returns the words for a file that was read or changed, or for a search.
#[must_use]
pub fn words(item: &Map<String, Value>) -> String {
    let name = match (text(item, "src"), text(item, "pattern")) {
        (Some(path), _) => safe_line(path).into_owned(),
        (None, pattern) => format!("\"{}\"", safe_line(pattern.unwrap_or_default())),
    };
    let notes = notes(item);
    match notes.is_empty() {
        true => name,
        false => format!("{name} ({})", notes.join(", ")),
    }
}

fn notes(item: &Map<String, Value>) -> Vec<String> {
    let mut notes = Vec::new();
    if text(item, "code").is_some() {
        return vec!["not read".to_owned()];
    }
    match (text(item, "change"), text(item, "kind")) {
        (Some(change), _) => change_notes(item, change, &mut notes),
        (None, Some("text")) => notes.push(lines_shown(item)),
        (None, Some("directory")) => {
            let shown = text(item, "output").map_or(0, |output| output.lines().count() as u64);
            notes.push(counted(shown, "entry", "entries"));
            left_out(item, "omitted_entries", &mut notes);
        }
        (None, Some(kind)) => {
            notes.push(kind.to_owned());
            if let Some(bytes) = count(item, "bytes") {
                notes.push(counted(bytes, "byte", "bytes"));
            }
        }
        (None, None) => {
            let matches = count(item, "total_matches").unwrap_or(0);
            let files = count(item, "files_matched").unwrap_or(0);
            let files = counted(files, "file", "files");
            notes.push(format!(
                "{} in {files}",
                counted(matches, "match", "matches")
            ));
            left_out(item, "omitted_matches", &mut notes);
        }
    }
    if let Some(encoding) = text(item, "encoding") {
        notes.push(encoding.to_owned());
    }
    notes
}

fn change_notes(item: &Map<String, Value>, change: &str, notes: &mut Vec<String>) {
    let lines = text(item, "lines");
    match change {
        "created" => {
            notes.push("new".to_owned());
            let last = lines.and_then(|lines| lines.rsplit('-').next()?.parse().ok());
            notes.extend(last.map(|last| counted(last, "line", "lines")));
            return;
        }
        "already_applied" => notes.push("done before".to_owned()),
        "edited" => {}
        other => notes.push(other.to_owned()),
    }
    if let Some(to) = text(item, "to") {
        notes.push(format!("to {}", safe_line(to)));
    }
    if let Some(count) = count(item, "replacements").filter(|count| *count > 1) {
        notes.push(format!("{count} replacements"));
    }
    if let Some(lines) = lines {
        let word = if lines.contains('-') { "lines" } else { "line" };
        notes.push(format!("{word} {lines}"));
    }
    if text(item, "match").is_some() {
        notes.push("other blanks at line ends".to_owned());
    }
    if text(item, "fallback").is_some() {
        notes.push("escapes as written".to_owned());
    }
    if let Some(risk) = text(item, "risk") {
        notes.push(format!("look again: {risk}"));
    }
    if text(item, "tracked").is_some() {
        notes.push("a secret in a file that git tracks".to_owned());
    }
}

/// Returns which lines of a text were read.
fn lines_shown(item: &Map<String, Value>) -> String {
    let shown = text(item, "output").map_or(0, |output| output.lines().count() as u64);
    let (first, total) = (count(item, "first_line"), count(item, "total_lines"));
    let (first, total) = (first.unwrap_or(1), total.unwrap_or(shown));
    match shown {
        _ if shown == total => counted(total, "line", "lines"),
        0 => format!("no line of {total}"),
        1 => format!("line {first} of {total}"),
        _ => format!("lines {first}-{} of {total}", first + shown - 1),
    }
}

fn left_out(item: &Map<String, Value>, name: &str, notes: &mut Vec<String>) {
    notes.extend(count(item, name).map(|count| format!("{count} more")));
}

fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

fn text<'a>(item: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    item.get(name).and_then(Value::as_str)
}

fn count(item: &Map<String, Value>, name: &str) -> Option<u64> {
    item.get(name).and_then(Value::as_u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_file_is_a_few_words() {
        let check = |item: Value, expected: &str| {
            assert_eq!(words(item.as_object().unwrap()), expected);
        };
        let read = |output: &str| json!({"src": "a", "kind": "text", "first_line": 2, "total_lines": 4, "output": output});
        check(read("x\ny\n"), "a (lines 2-3 of 4)");
        check(read("x\n"), "a (line 2 of 4)");
        check(read(""), "a (no line of 4)");
        check(
            json!({"src": "d", "kind": "directory", "output": "x\n", "omitted_entries": 3}),
            "d (1 entry, 3 more)",
        );
        check(
            json!({"src": "p", "kind": "png", "bytes": 8}),
            "p (png, 8 bytes)",
        );
        check(
            json!({"pattern": "x", "total_matches": 2, "files_matched": 1, "output": ""}),
            "\"x\" (2 matches in 1 file)",
        );
        check(
            json!({"src": "a", "change": "edited", "replacements": 2, "lines": "1-9"}),
            "a (2 replacements, lines 1-9)",
        );
        check(
            json!({"src": "a", "change": "created", "replacements": 1, "lines": "1-9"}),
            "a (new, 9 lines)",
        );
        check(
            json!({"src": "a", "change": "renamed", "to": "b\n", "replacements": 0}),
            "a (renamed, to b␊)",
        );
    }
}
