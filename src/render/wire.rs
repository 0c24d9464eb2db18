//! Outcomes and diagnostics as JSON values, in the order of the specification.
//!
//! All formats are built from these, so a field has the same name in each.

use serde_json::{Map, Value, json};

use crate::render::SeverityDiagnostic;
use crate::render::borrowed_fields::{BorrowedFields, Field};
use crate::render::paint::safe;
use karyi_core::error::Excerpt;
use karyi_core::outcome::{JobNews, Outcome};

/// Returns a result as the fields of an object.
#[must_use]
pub fn result(outcome: &Outcome) -> BorrowedFields<'_> {
    let mut fields = BorrowedFields::default();
    fields.set("id", Field::Text(&outcome.id));
    fields.set("tool", Field::Text(&outcome.tool));
    fields.set("status", Field::Text(outcome.status.as_str()));
    if let Some(error) = &outcome.error {
        fields.set("code", Field::Text(error.code.as_str()));
        fields.set("message", Field::Text(&error.message));
        fields.set("hint", Field::Text(&error.hint));
    }
    for (name, value) in &outcome.fields {
        fields.set(name, value.into());
    }
    fields.set("duration_ms", Field::Number(outcome.duration_ms));
    if let Some(view) = &outcome.output {
        fields.set("output", Field::Text(&view.text));
        if view.omitted_bytes > 0 {
            fields.set("omitted_bytes", Field::Number(view.omitted_bytes));
            fields.set("omitted_lines", Field::Number(view.omitted_lines));
        }
    }
    if !outcome.repairs.is_empty() {
        fields.set("repairs", Field::Words(&outcome.repairs));
    }
    fields
}

/// Fields that [`result`] adds to those of the tool: name, type and description.
const RESULT_FIELDS: &[(&str, &str, &str)] = &[
    (
        "id",
        "string",
        "Id of the call; a job it starts has it too.",
    ),
    (
        "status",
        "string",
        "How the call ended, or what its command does.",
    ),
    (
        "code",
        "string",
        "What could not be done beside what was, for programs.",
    ),
    ("message", "string", "The same in words."),
    ("hint", "string", "What to do next."),
    (
        "duration_ms",
        "integer",
        "Time the call took, in milliseconds.",
    ),
    (
        "output",
        "string",
        "What was printed; the middle is left out when it is long.",
    ),
    ("omitted_bytes", "integer", "Bytes of the output left out."),
    ("omitted_lines", "integer", "Lines of the output left out."),
    (
        "output_file",
        "string",
        "File with the whole output, until the session ends.",
    ),
    ("output_file_problem", "string", "Why there is none."),
    (
        "job",
        "string",
        "Id of the job that goes on, when it is not the call's own.",
    ),
    ("screen", "string", "The program that shows a full screen."),
    (
        "warnings",
        "array",
        "What to know about the secrets of the call.",
    ),
    ("jobs", "array", "What every job of the session does."),
];

/// Returns the schema of a tool's result, based on that of its own fields.
#[must_use]
pub fn result_schema(mut own: Map<String, Value>) -> Map<String, Value> {
    let properties = own.entry("properties").or_insert_with(|| json!({}));
    if let Value::Object(properties) = properties {
        for (name, kind, description) in RESULT_FIELDS {
            let field = json!({"type": kind, "description": description});
            properties.entry(*name).or_insert(field);
        }
    }
    let required = own.entry("required").or_insert_with(|| json!([]));
    if let Value::Array(required) = required {
        // The id is left out when no job can have it.
        required.extend(["status", "duration_ms"].map(Value::from));
    }
    own
}

/// Returns a diagnostic as a JSON object.
#[must_use]
pub fn diagnostic(noted: &SeverityDiagnostic) -> Map<String, Value> {
    let diagnostic = &noted.diagnostic;
    let mut map = Map::new();
    map.insert("severity".into(), json!(noted.severity.as_str()));
    map.insert("code".into(), json!(diagnostic.code.as_str()));
    map.insert("offset".into(), json!(diagnostic.position.offset));
    map.insert("line".into(), json!(diagnostic.position.line));
    map.insert("column".into(), json!(diagnostic.position.column));
    if diagnostic.is_in_json {
        map.insert("in".into(), json!("tools"));
    }
    map.insert("message".into(), json!(diagnostic.message));
    map.insert("hint".into(), json!(diagnostic.hint));
    if let Some(excerpt) = &diagnostic.excerpt {
        map.insert("excerpt".into(), json!(excerpt_text(excerpt)));
    }
    map
}

/// Returns the source line with the caret below it.
///
/// The caret is placed in terminal columns: wide characters take two, combining ones none.
#[must_use]
pub fn excerpt_text(excerpt: &Excerpt) -> String {
    let line = safe(&excerpt.line);
    let start = width(&line, excerpt.caret_start);
    let end = width(&line, excerpt.caret_start + excerpt.caret_len);
    let pad = " ".repeat(start);
    let caret = "^".repeat(end.saturating_sub(start).max(1));
    format!("{line}\n{pad}{caret}")
}

/// Returns the width of the first characters of a line in terminal columns.
#[must_use]
pub fn width(line: &str, characters: usize) -> usize {
    use unicode_width::UnicodeWidthStr;
    let end = line.char_indices().nth(characters);
    let first = end.map_or(line, |(end, _)| line.get(..end).unwrap_or(line));
    first.width()
}

/// Returns a job as a JSON object.
#[must_use]
pub fn job(job: &JobNews) -> Map<String, Value> {
    let mut map = Map::new();
    map.insert("id".into(), json!(job.id));
    map.insert("state".into(), json!(job.state.as_str()));
    if job.is_background {
        map.insert("background".into(), json!(true));
    }
    if let Some(code) = job.exit_code {
        map.insert("exit_code".into(), json!(code));
    }
    if let Some(signal) = job.signal {
        map.insert("signal".into(), json!(signal));
    }
    map.insert("age_ms".into(), json!(job.age_ms));
    map.insert("command".into(), json!(job.command));
    if let Some(line) = &job.last_line {
        map.insert("last_line".into(), json!(line));
    }
    map
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the caret below a source line in which `[...]` marks the place.
    fn check(marked: &str, expected: &str) {
        let caret_start = marked.chars().position(|c| c == '[').unwrap();
        let end = marked.chars().position(|c| c == ']').unwrap();
        let excerpt = Excerpt {
            line: marked.replace(['[', ']'], ""),
            caret_start,
            caret_len: end - caret_start - 1,
        };
        let text = excerpt_text(&excerpt);
        assert_eq!(text.lines().nth(1), Some(expected), "{text}");
    }

    #[test]
    fn the_caret_stands_under_its_place() {
        check("ab[c]d", "  ^");
        check("a中[文]", "   ^^");
        check("😀👍[x]", "    ^");
        check("e\u{301}[x]y", " ^");
        check("❤\u{FE0F}[x]", "  ^");
        check("🇩🇪[x]", "  ^");
        check("👍🏽[x]", "  ^");
        check("ｱ한[글x]", "   ^^^");
        check("ab[]", "  ^");
        check("a\u{61C}[x]", "  ^");
    }
}
