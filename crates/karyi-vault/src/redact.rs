//! Masks the values of secrets in everything that is shown, logged or sent.
//!
//! A value is replaced by its placeholder, so that text that was read can be written back. An encoded value or a part
//! of one becomes `[KARYI:NAME:form]`. A literal placeholder in the text gets a second `$`.
//!
//! ```text
//! value ─ secret_spans ─ encoded_forms ─ search_tables ┐
//! text ─ visible_text, unescaped_text ─ runs of known n-grams ─ stream ─ Redacted
//! ```
//!
//! Comparison ignores white space, control characters and escape sequences, so that a value is found when it is
//! coloured or wrapped. A match is any twelve characters in a row of a value, or of a part that programs use alone
//! (the password of a URL, a secret JSON string, the decoded form of escapes in the value), or all of a shorter one:
//!
//! - as written, as a JSON string, in base64 at any offset, in hexadecimal, in single quotes of a shell;
//! - any of these with some characters written as a backslash escape, as `%NN` or as an HTML reference.
//!
//! A short code-like line of a value with several lines counts as such a part. An easily guessed value is masked as a
//! whole word only. A value under 16 characters right after an escape that is not part of it may be missed.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::Serialize;
use serde_json::Value;

use super::session::Secrets;
use super::visible;
use karyi_core::error::ToolError;
use karyi_core::secret;
use stream::LiveTables;

pub use guessable::is_guessable;
pub use redacted::Redacted;
pub use stream::RedactStream;

mod boundaries;
mod encoded_forms;
mod escapes;
mod form;
mod guessable;
mod ngram_table;
mod redacted;
mod report;
mod search_tables;
mod secret_lines;
mod secret_spans;
mod stop_ngrams;
mod stream;
mod unescaped_text;
mod visible_text;
mod weights;

/// Masks the secrets of a session; clones share their tables.
#[derive(Clone)]
pub struct Redactor {
    source: LiveTables,
}

/// Returns the length of the shortest URL password in a value, in compared bytes.
#[must_use]
pub fn shortest_password(value: &str) -> Option<usize> {
    let passwords = secret_spans::passwords(value);
    passwords
        .iter()
        .map(|password| visible::visible_bytes(password))
        .min()
}

/// Returns true when a value contains a URL with an easily guessed password.
#[must_use]
pub fn has_guessable_password(value: &str) -> bool {
    let passwords = secret_spans::passwords(value);
    passwords.iter().any(|password| is_guessable(password))
}

/// Value with texts that may contain secrets.
pub trait Redactable {
    /// Masks every text.
    fn mask(&mut self, redactor: &Redactor);
}

impl Redactor {
    /// Makes a redactor, which follows later changes of the secrets.
    #[must_use]
    pub fn new(secrets: &Secrets) -> Self {
        Self {
            source: LiveTables::new(secrets),
        }
    }

    /// Returns the secrets that are masked.
    #[must_use]
    pub fn secrets(&self) -> &Secrets {
        &self.source.secrets
    }

    /// Returns true when no secret was ever stored.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.source.secrets.generation() == 0
    }

    /// Starts a stream for a text that arrives in pieces.
    #[must_use]
    pub fn stream(&self) -> RedactStream {
        RedactStream::new(&self.source, false)
    }

    /// Starts a stream for a text that was redacted before: its placeholders are preserved.
    #[must_use]
    pub fn second_stream(&self) -> RedactStream {
        RedactStream::new(&self.source, true)
    }

    /// Returns the text with every secret masked.
    #[must_use]
    pub fn redact_str<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.leaf(text, self.stream())
    }

    /// Returns the masked form of a text that was cut off; a possible start of a value at the end is masked, too.
    #[must_use]
    pub fn redact_cut(&self, text: &str) -> Redacted {
        masked_cut(self.stream(), text)
    }

    /// Masks a text that was redacted before, or that keeps its placeholders, and was cut off.
    #[must_use]
    pub fn redact_cut_again(&self, text: &str) -> Redacted {
        masked_cut(self.second_stream(), text)
    }

    /// Masks a text that was redacted before.
    #[must_use]
    pub fn redact_again<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.leaf(text, self.second_stream())
    }

    /// Returns the masked ranges that span line ends, with the replacement: text may be inserted between the lines.
    #[must_use]
    pub fn masked_across_lines(&self, text: &str) -> Vec<(Range<usize>, String)> {
        let (mut stream, mut out) = (self.second_stream(), Redacted::default());
        stream.record_across_lines();
        stream.push(text, &mut out);
        stream.flush(&mut out);
        stream.into_across_lines()
    }

    /// Returns true when the bytes contain a value, literally or in a form that is masked.
    #[must_use]
    pub fn is_in(&self, bytes: &[u8]) -> bool {
        if self.is_idle() {
            return false;
        }
        // Lossy decoding is slow, and most texts are valid.
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => String::from_utf8_lossy(bytes),
        };
        self.source.secrets.occur_in(bytes) || self.redact_again(&text) != text
    }

    /// Masks a whole text.
    #[must_use]
    pub fn redact(&self, text: &str) -> Redacted {
        Redacted::new(self.redact_str(text).into_owned())
    }

    /// Masks a whole text that was composed of redacted ones.
    #[must_use]
    pub fn redact_whole_again(&self, text: &str) -> Redacted {
        Redacted::new(self.redact_again(text).into_owned())
    }

    /// Masks a value with texts, so that it may be sent out.
    #[must_use]
    pub fn seal<T: Redactable>(&self, mut leaves: T) -> Redacted<T> {
        leaves.mask(self);
        Redacted::new(leaves)
    }

    /// Serializes the result of a tool and masks every string in it. What is redacted stays as it is.
    ///
    /// # Errors
    /// The result is no JSON.
    pub fn redact_result(&self, result: &impl Serialize) -> serde_json::Result<Redacted<Value>> {
        let mut value = serde_json::to_value(result)?;
        self.redact_unmarked(&mut value);
        Ok(Redacted::new(value))
    }

    fn redact_unmarked(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.redact_in(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact_unmarked(item)),
            Value::Object(map) => match map.get_mut(redacted::REDACTED) {
                Some(text) => *value = text.take(),
                None => map.values_mut().for_each(|item| self.redact_unmarked(item)),
            },
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Masks an error of a tool, whose message may repeat any text. The placeholders of its hint are to be written as they
    /// stand, unless it quotes text of a file.
    #[must_use]
    pub fn redact_error(&self, mut error: ToolError) -> Redacted<ToolError> {
        self.redact_in(&mut error.message);
        match error.is_hint_quoted {
            true => self.redact_in(&mut error.hint),
            false => self.redact_in_again(&mut error.hint),
        }
        Redacted::new(error)
    }

    /// Masks every string, number and object key of a JSON value that was redacted before. A masked number becomes a
    /// string.
    pub fn redact_json_again(&self, value: &mut Value) {
        each_text(value, &|text| self.redact_in_again(text));
    }

    /// Masks every string of a JSON value that was redacted before, but not its keys, which are fixed names of a report.
    pub fn redact_values_again(&self, value: &mut Value) {
        each_value(value, &|text| self.redact_in_again(text));
    }

    /// Masks a text in place.
    pub fn redact_in(&self, text: &mut String) {
        if let Cow::Owned(masked) = self.redact_str(text) {
            *text = masked;
        }
    }

    /// Masks a text in place that was redacted before or that the model wrote: its placeholders are preserved.
    pub fn redact_in_again(&self, text: &mut String) {
        if let Cow::Owned(masked) = self.redact_again(text) {
            *text = masked;
        }
    }

    fn leaf<'a>(&self, text: &'a str, stream: RedactStream) -> Cow<'a, str> {
        let tables = self.source.tables();
        if tables.is_empty() {
            // Without values nothing is held back, and no copy is needed.
            return match stream.preserves_placeholders() {
                true => Cow::Borrowed(text),
                false => secret::escape(text),
            };
        }
        masked(text, stream).map_or(Cow::Borrowed(text), Cow::Owned)
    }
}

/// Masks a text whose end was cut off: a possible start of a value at the end, too.
fn masked_cut(mut stream: RedactStream, text: &str) -> Redacted {
    let mut out = Redacted::default();
    stream.push(text, &mut out);
    stream.finish_cut(&mut out);
    out
}

/// Applies `change` to every string and object key, and to the digits of every number.
fn each_text(value: &mut Value, change: &impl Fn(&mut String)) {
    match value {
        Value::String(text) => change(text),
        Value::Number(number) => {
            let (digits, mut changed) = (number.to_string(), number.to_string());
            change(&mut changed);
            if changed != digits {
                *value = Value::String(changed);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| each_text(item, change)),
        Value::Object(map) => {
            for (mut key, mut value) in std::mem::take(map) {
                change(&mut key);
                each_text(&mut value, change);
                map.insert(key, value);
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
}

/// Applies `change` to every string.
fn each_value(value: &mut Value, change: &impl Fn(&mut String)) {
    match value {
        Value::String(text) => change(text),
        Value::Array(items) => items.iter_mut().for_each(|item| each_value(item, change)),
        Value::Object(map) => map.values_mut().for_each(|value| each_value(value, change)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns the masked text, or `None` when the stream does not change it.
fn masked(text: &str, mut stream: RedactStream) -> Option<String> {
    let mut out = Redacted::default();
    stream.push(text, &mut out);
    stream.flush(&mut out);
    stream.is_changed().then(|| out.into_string())
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Redactor")
            .field(&self.source.secrets)
            .finish()
    }
}

#[cfg(test)]
mod tests;
