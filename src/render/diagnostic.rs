//! A diagnostic for people: message, position, source line with a caret, and hint.

use crate::render::paint::{Colour, Ink, safe, safe_line};
use crate::render::{SeverityDiagnostic, wire};
use karyi_core::error::{Diagnostic, Severity};

/// Returns the lines of a diagnostic.
#[must_use]
pub fn text(noted: &SeverityDiagnostic, colour: Colour) -> String {
    let diagnostic = &noted.diagnostic;
    let ink = match noted.severity {
        Severity::Warning => Ink::Warning,
        Severity::Error => Ink::Bad,
    };
    let head = format!("{}[{}]", noted.severity.as_str(), diagnostic.code.as_str());
    let head = colour.paint(ink, &head);
    let mut lines = format!("{head}: {}\n", safe_line(&diagnostic.message));
    lines.push_str(&place(diagnostic));
    lines.push_str(&hint(&diagnostic.hint, colour));
    lines
}

/// Returns the line of a hint.
#[must_use]
pub fn hint(hint: &str, colour: Colour) -> String {
    let label = colour.paint(Ink::Good, "hint");
    let hint = safe(hint).trim_end().replace('\n', "\n        ");
    format!("  {label}: {hint}\n")
}

fn place(diagnostic: &Diagnostic) -> String {
    let position = diagnostic.position;
    let inside = if diagnostic.is_in_json { "tools:" } else { "" };
    let mut lines = format!("  --> {inside}{}:{}\n", position.line, position.column);
    let Some(excerpt) = &diagnostic.excerpt else {
        return lines;
    };
    let number = position.line.to_string();
    let pad = " ".repeat(number.len());
    lines.push_str(&format!(" {pad} |\n"));
    let shown = wire::excerpt_text(excerpt);
    for (index, line) in shown.lines().enumerate() {
        let gutter = if index == 0 { number.as_str() } else { &pad };
        lines.push_str(&format!(" {gutter} | {line}\n"));
    }
    lines
}
