//! Outcomes and diagnostics as JSON values, in the order of the specification.
//!
//! All shapes of report are made from these, so a field has one name everywhere.

use serde_json::{Map, Value, json};

use crate::error::Excerpt;
use crate::outcome::{EndedJob, Outcome};
use crate::render::Noted;

/// Returns a result as a JSON object.
#[must_use]
pub fn result(outcome: &Outcome) -> Map<String, Value> {
    let mut map = Map::new();
    map.insert("id".into(), json!(outcome.id));
    map.insert("tool".into(), json!(outcome.tool));
    map.insert("status".into(), json!(outcome.status.as_str()));
    if let Some(error) = &outcome.error {
        map.insert("code".into(), json!(error.code.as_str()));
        map.insert("message".into(), json!(error.message));
        map.insert("hint".into(), json!(error.hint));
    }
    map.extend(outcome.fields.clone());
    map.insert("duration_ms".into(), json!(outcome.duration_ms));
    if let Some(view) = &outcome.output {
        map.insert("output".into(), json!(view.text));
        if view.omitted_bytes > 0 {
            map.insert("omitted_bytes".into(), json!(view.omitted_bytes));
            map.insert("omitted_lines".into(), json!(view.omitted_lines));
        }
    }
    if !outcome.repairs.is_empty() {
        map.insert("repairs".into(), json!(outcome.repairs));
    }
    map
}

/// Returns a diagnostic as a JSON object.
#[must_use]
pub fn diagnostic(noted: &Noted) -> Map<String, Value> {
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

/// Returns the source line and, under it, the caret.
#[must_use]
pub fn excerpt_text(excerpt: &Excerpt) -> String {
    let pad = " ".repeat(width(&excerpt.line, 0, excerpt.caret_start));
    let len = width(&excerpt.line, excerpt.caret_start, excerpt.caret_len).max(1);
    format!("{}\n{pad}{}", excerpt.line, "^".repeat(len))
}

/// Returns how many columns of a terminal some characters of a line take.
#[must_use]
pub fn width(line: &str, skip: usize, take: usize) -> usize {
    use unicode_width::UnicodeWidthChar;
    line.chars()
        .skip(skip)
        .take(take)
        .map(|c| c.width().unwrap_or(1))
        .sum()
}

/// Returns an ended job as a JSON object.
#[must_use]
pub fn job(job: &EndedJob) -> Map<String, Value> {
    let mut map = Map::new();
    map.insert("id".into(), json!(job.id));
    map.insert("status".into(), json!("killed"));
    map.insert("signal".into(), json!(job.signal));
    map
}
