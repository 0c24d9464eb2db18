//! Rewrites a script: each placeholder becomes a reference to a shell variable, quoted for its context.
//!
//! A program then receives the value as one literal word, whatever characters it has. A value is inspected only where
//! unusual characters would be code or no number; no value becomes part of the script.

use std::collections::{BTreeMap, BTreeSet};

use super::interpreters::CodeWords;
use super::shell_lexer::{self, Placement, Quoting, Script, ScriptError, Site, Span};
use super::substitute;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::secret::{Piece, SecretName, SecretValue, VariableContent};

/// Rewritten script.
#[derive(Debug)]
pub struct RewrittenScript {
    /// Text of the script.
    pub text: String,
    /// Secrets that it refers to, as values or as file paths.
    pub secrets: BTreeSet<(SecretName, VariableContent)>,
}

/// Rewrites a script; `value_of` returns the value of a name.
///
/// # Errors
/// `bad_placeholder`, `undefined_variable`; `unsafe_context` for a placeholder in a context that permits no value, or
/// only a number; `unsafe_nested_parse` for a value that a second interpreter would read as code.
pub fn rewrite(
    text: &str,
    value_of: &dyn Fn(&SecretName) -> Option<SecretValue>,
) -> Result<RewrittenScript, ToolError> {
    let placeholders = find_placeholders(text)?;
    if placeholders.is_empty() {
        return Ok(RewrittenScript {
            text: text.to_owned(),
            secrets: BTreeSet::new(),
        });
    }
    let spans: Vec<Span> = placeholders
        .iter()
        .map(|placeholder| placeholder.span.clone())
        .collect();
    let read = shell_lexer::read(text, &spans).map_err(|error| unreadable(text, error))?;
    let mut edits = document_edits(text, &read, &spans);
    let (mut secrets, mut readings) = (BTreeSet::new(), BTreeMap::new());
    for (placeholder, place) in placeholders.iter().zip(&read.placements) {
        let Span { mut start, end } = placeholder.span;
        let at_line = |error| at_line(error, line(text, start));
        let replacement = match &placeholder.name {
            None => literal(text.get(start + 1..end), place).map_err(at_line)?,
            Some((name, _)) if place.quoting == Quoting::Comment => format!("[KARYI:{name}]"),
            Some((name, holds)) => {
                let missing = || substitute::undefined(std::slice::from_ref(name));
                let value = value_of(name).ok_or_else(missing)?;
                let reading = match place.site {
                    Site::Word(command, _) | Site::Input(command) => {
                        let own = || read.commands.get(command).map(CodeWords::of);
                        let reading = readings.entry(command);
                        reading.or_insert_with(|| own().unwrap_or_default())
                    }
                    Site::Other => &CodeWords::default(),
                };
                check((name, *holds), value.expose(), place, reading).map_err(at_line)?;
                secrets.insert((name.clone(), *holds));
                // zsh treats the sign as part of the word only after a backslash.
                let sign = text
                    .get(start - usize::from(place.follows_sign)..start)
                    .unwrap_or_default();
                start -= sign.len();
                let escape = if sign.is_empty() { "" } else { "\\" };
                format!(
                    "{escape}{sign}{}",
                    reference(&name.variable(*holds), place.quoting)
                )
            }
        };
        edits.push((start..end, replacement));
    }
    Ok(RewrittenScript {
        text: edited(text, edits),
        secrets,
    })
}

/// Placeholder of a script; `None` names an escaped one.
pub(super) struct Placeholder {
    pub(super) span: Span,
    pub(super) name: Option<(SecretName, VariableContent)>,
}

/// Returns the placeholders of a script. An escaped one includes its closing bracket, so that a `>` is no redirection.
pub(super) fn find_placeholders(text: &str) -> Result<Vec<Placeholder>, ToolError> {
    let (mut placeholders, mut at) = (Vec::new(), 0);
    for piece in substitute::pieces(text)? {
        let (length, name) = match piece {
            Piece::Literal(literal) => {
                at += literal.len();
                continue;
            }
            Piece::Escaped(sign) => {
                let start = at;
                // Its rest follows as literal text.
                at += 1 + sign.len();
                let rest = text.get(at..).unwrap_or_default();
                let closer = if sign.ends_with('<') { '>' } else { '}' };
                let name = rest
                    .bytes()
                    .take(SecretName::MAX_LEN + 1)
                    .position(|byte| char::from(byte) == closer);
                let name = name
                    .and_then(|length| rest.get(..length))
                    .and_then(SecretName::parse);
                let end = at + name.map_or(0, |name| name.as_str().len() + 1);
                placeholders.push(Placeholder {
                    span: start..end,
                    name: None,
                });
                continue;
            }
            Piece::Secret(name) => (
                "$KARYI{}".len() + name.as_str().len(),
                (name, VariableContent::Value),
            ),
            Piece::File(name) => (
                "$KARYI{|file}".len() + name.as_str().len(),
                (name, VariableContent::Path),
            ),
        };
        placeholders.push(Placeholder {
            span: at..at + length,
            name: Some(name),
        });
        at += length;
    }
    Ok(placeholders)
}

/// Returns the reference to a variable for a kind of quoting.
fn reference(variable: &str, quoting: Quoting) -> String {
    match quoting {
        Quoting::Bare => format!("\"${{{variable}}}\""),
        Quoting::Single => format!("'\"${{{variable}}}\"'"),
        Quoting::Dollar => format!("'\"${{{variable}}}\"$'"),
        Quoting::Double | Quoting::Text | Quoting::Literal | Quoting::Comment => {
            format!("${{{variable}}}")
        }
    }
}

/// Converts quoted here-documents with placeholders into unquoted ones, with a delimiter that is none of their lines,
/// and a backslash before everything that would be expanded.
fn document_edits(text: &str, read: &Script, placeholders: &[Span]) -> Vec<(Span, String)> {
    let mut edits = Vec::new();
    for document in &read.documents {
        let body = text.get(document.body.clone()).unwrap_or_default();
        let taken: BTreeSet<&str> = body
            .lines()
            .map(|line| line.trim_start_matches('\t'))
            .collect();
        let mut delimiter = String::from("KARYI_EOF");
        while taken.contains(delimiter.as_str()) {
            delimiter.push('_');
        }
        edits.push((document.delimiter.clone(), delimiter.clone()));
        // An empty delimiter ends the document at an empty line.
        let is_ended = text.as_bytes().get(document.end.start) == Some(&b'\n');
        if is_ended || !document.end.is_empty() {
            edits.push((document.end.clone(), delimiter));
        }
        let first = placeholders.partition_point(|span| span.start < document.body.start);
        let mut inside = placeholders.iter().skip(first).peekable();
        let mut at = document.body.start;
        let signs = memchr::memchr3_iter(b'\\', b'$', b'`', body.as_bytes());
        for sign in signs.map(|sign| document.body.start + sign) {
            while let Some(span) = inside.next_if(|span| span.start <= sign) {
                at = span.end;
            }
            if sign >= at {
                edits.push((sign..sign, "\\".to_owned()));
            }
        }
    }
    edits
}

/// Applies edits that do not overlap.
fn edited(text: &str, mut edits: Vec<(Span, String)>) -> String {
    edits.sort_by_key(|(span, _)| span.start);
    let grown: usize = edits.iter().map(|(_, new)| new.len()).sum();
    let mut result = String::with_capacity(text.len() + grown);
    let mut at = 0;
    for (span, new) in edits {
        result.push_str(text.get(at..span.start).unwrap_or_default());
        result.push_str(&new);
        at = span.end;
    }
    result.push_str(text.get(at..).unwrap_or_default());
    result
}

/// Returns the literal text of an escaped placeholder, quoted for its context.
fn literal(text: Option<&str>, place: &Placement) -> Result<String, ToolError> {
    let text = text.unwrap_or_default();
    let rest = text.strip_prefix('$').unwrap_or(text);
    let dollar = if place.in_backticks { "\\\\\\$" } else { "\\$" };
    match place.quoting {
        Quoting::Single | Quoting::Dollar | Quoting::Comment => Ok(text.to_owned()),
        Quoting::Literal => Ok(format!("\\${rest}")),
        _ if place.in_braces || place.is_number => {
            let message = "an escaped placeholder stands inside of an expansion";
            Err(ToolError::new(ErrorCode::UnsafeContext, message)
                .with_hint("assign the text to a variable first: x='$$KARYI{NAME}'"))
        }
        Quoting::Double | Quoting::Text => Ok(format!("{dollar}{rest}")),
        Quoting::Bare => {
            let quoted = ["{", "}", "<", ">"]
                .iter()
                .fold(rest.to_owned(), |rest, sign| {
                    rest.replace(sign, &format!("\\{sign}"))
                });
            Ok(format!("{dollar}{quoted}"))
        }
    }
}

/// Checks that a value is safe in its context.
fn check(
    (name, holds): (&SecretName, VariableContent),
    value: &str,
    place: &Placement,
    reading: &CodeWords<'_>,
) -> Result<(), ToolError> {
    let refuse = |code, what: &str| ToolError::new(code, format!("{name} stands {what}"));
    if let Some(what) = place.refusal {
        return Err(refuse(ErrorCode::UnsafeContext, what));
    }
    // A number with a leading zero is octal.
    let is_decimal = (1..=18).contains(&value.len()) && (value == "0" || !value.starts_with('0'));
    let is_digits = value.bytes().all(|byte| byte.is_ascii_digit());
    let is_number = holds == VariableContent::Value && is_decimal && is_digits;
    let (reader, calculates) = match place.site {
        Site::Word(_, word) => (reading.reader_of(word), reading.calculates(word)),
        Site::Input(_) => (reading.input, false),
        Site::Other => (None, false),
    };
    if (place.is_number || calculates) && !is_number {
        let what = "where the shell calculates, and its value is no decimal number";
        return Err(refuse(ErrorCode::UnsafeContext, what)
            .with_hint("give it a decimal number; compare text with = or !=, in double quotes"));
    }
    // The characters of a path are harmless everywhere.
    match reader.filter(|reader| holds == VariableContent::Value && !reader.accepts(value)) {
        None => Ok(()),
        Some(reader) => {
            let what = format!(
                "in code that `{}` reads, and its value has characters that could be code there",
                reader.name
            );
            Err(refuse(ErrorCode::UnsafeNestedParse, &what)
                .with_hint(reader.safe_command(name.as_str())))
        }
    }
}

fn at_line(error: ToolError, line: usize) -> ToolError {
    let message = format!("line {line}: {}", error.message);
    ToolError { message, ..error }
}

fn unreadable(text: &str, error: ScriptError) -> ToolError {
    let message = format!("line {}: {}", line(text, error.offset), error.why);
    let refused = ToolError::new(ErrorCode::UnsafeContext, message);
    match error.why {
        shell_lexer::AFTER_BACKSLASH => refused.with_hint(
            "leave out the backslash; for the characters themselves write $$KARYI{NAME}",
        ),
        _ => refused,
    }
}

fn line(text: &str, offset: usize) -> usize {
    let before = text.as_bytes().get(..offset).unwrap_or_default();
    1 + memchr::memchr_iter(b'\n', before).count()
}

#[cfg(test)]
mod tests;
