//! Takes the values of secrets out of everything that is shown, logged or sent.
//!
//! A value shows as the placeholder that stands for it, so that what was read can be written back;
//! an encoded one or a part of one shows as `[KARYI:NAME:form]`. What looks like a placeholder but
//! is the program's own text gets a second `$`.
//!
//! ```text
//! value ─ parts ─ encodings ─ tables ┐
//! text ─ view (colours) ─ lanes (visible bytes, also unescaped) ─ runs of known stretches ─ stream ─ Redacted
//! ```
//!
//! Texts are compared without white space, control characters and escape sequences, so a value
//! that is coloured letter by letter or wrapped at a column is still one. SecretSpan are any twelve characters
//! in a row of a value, or of a part that programs use alone (the password of a URL, a secret string of JSON,
//! what escapes in the value stand for), and all of a shorter one:
//!
//! - as they are, as a JSON string, in base64 at any offset, in hexadecimal, in single quotes of a shell;
//! - any of these with any of their characters written by a backslash, by `%NN` or by a reference of HTML.
//!
//! A short line of a value of several that looks like a code counts as such a part; a value that is easy to guess is
//! masked as a whole word only. Behind a stray sign of an escape a value shorter than sixteen characters may be missed.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde_json::Value;

use super::session::Secrets;
use super::visible;
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
mod search_tables;
mod secret_lines;
mod secret_spans;
mod stop_ngrams;
mod stream;
mod unescaped_text;
mod visible_text;
mod weights;

/// Masks the session's secrets; clones share their tables.
#[derive(Clone)]
pub struct Redactor {
    source: LiveTables,
}

/// Returns how many bytes of the shortest password of a URL in a value count, when there is one.
#[must_use]
pub fn shortest_password(value: &str) -> Option<usize> {
    let passwords = secret_spans::passwords(value);
    passwords
        .iter()
        .map(|password| visible::visible_bytes(password))
        .min()
}

/// Whether a URL in a value has a password that is easy to guess.
#[must_use]
pub fn has_guessable_password(value: &str) -> bool {
    let passwords = secret_spans::passwords(value);
    passwords.iter().any(|password| is_guessable(password))
}

/// What holds texts that may hold values, and knows all of them.
pub trait Redactable {
    /// Masks values in every text of it.
    fn mask(&mut self, redactor: &Redactor);
}

impl Redactor {
    /// Makes the redactor of a session. It follows later changes of the secrets by itself.
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

    /// Whether there is nothing to mask so far.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.source.secrets.generation() == 0
    }

    /// Starts on a text that comes in pieces.
    #[must_use]
    pub fn stream(&self) -> RedactStream {
        RedactStream::new(&self.source, false)
    }

    /// Starts on a text that went through a redactor before: its placeholders stay as they are.
    #[must_use]
    pub fn second_stream(&self) -> RedactStream {
        RedactStream::new(&self.source, true)
    }

    /// Returns the text with every secret masked.
    #[must_use]
    pub fn redact_str<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.leaf(text, self.stream())
    }

    /// Returns a text that was cut off at its end, with every secret masked and what may be the start
    /// of one.
    #[must_use]
    pub fn redact_cut(&self, text: &str) -> String {
        let (mut stream, mut out) = (self.stream(), Redacted::default());
        stream.push(text, &mut out);
        stream.cut(&mut out);
        self.redact_again(out.as_str()).into_owned()
    }

    /// Returns a text that went through a redactor before with every secret masked.
    #[must_use]
    pub fn redact_again<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.leaf(text, self.second_stream())
    }

    /// Returns what is masked of a text over the end of a line, and what to show in its place: something may come to
    /// stand between the lines.
    #[must_use]
    pub fn masked_across_lines(&self, text: &str) -> Vec<(Range<usize>, String)> {
        let (mut stream, mut out) = (self.second_stream(), Redacted::default());
        stream.record_across_lines();
        stream.push(text, &mut out);
        stream.flush(&mut out);
        stream.into_across_lines()
    }

    /// Whether bytes hold a value, to the letter or in a form that is masked.
    #[must_use]
    pub fn is_in(&self, bytes: &[u8]) -> bool {
        if self.is_idle() {
            return false;
        }
        // To replace what is broken goes byte by byte, and most texts are whole.
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

    /// Masks a whole text that was put together from redacted ones.
    #[must_use]
    pub fn redact_whole_again(&self, text: &str) -> Redacted {
        Redacted::new(self.redact_again(text).into_owned())
    }

    /// Masks everything that holds texts, so that it may leave.
    #[must_use]
    pub fn seal<T: Redactable>(&self, mut leaves: T) -> Redacted<T> {
        leaves.mask(self);
        Redacted::new(leaves)
    }

    /// Masks every string and every object key of a JSON value.
    pub fn redact_json(&self, value: &mut Value) {
        each_text(value, &|text| self.redact_in(text));
    }

    /// Masks them where they went through a redactor before.
    pub fn redact_json_again(&self, value: &mut Value) {
        each_text(value, &|text| self.redact_in_again(text));
    }

    /// Masks every string of a JSON value whose keys are names that karyi gave: they are no data, and a report
    /// without them means nothing.
    pub fn redact_values(&self, value: &mut Value) {
        each_value(value, &|text| self.redact_in(text));
    }

    /// Masks them where they went through a redactor before.
    pub fn redact_values_again(&self, value: &mut Value) {
        each_value(value, &|text| self.redact_in_again(text));
    }

    /// Masks a text where it stands.
    pub fn redact_in(&self, text: &mut String) {
        if let Cow::Owned(masked) = self.redact_str(text) {
            *text = masked;
        }
    }

    /// Masks a text where it stands that went through a redactor before, or that the model wrote:
    /// its placeholders stay as they are.
    pub fn redact_in_again(&self, text: &mut String) {
        if let Cow::Owned(masked) = self.redact_again(text) {
            *text = masked;
        }
    }

    fn leaf<'a>(&self, text: &'a str, stream: RedactStream) -> Cow<'a, str> {
        let tables = self.source.tables();
        if tables.is_empty() {
            // There is no value to look for, so nothing need be held back, and nothing copied twice.
            return match stream.preserves_placeholders() {
                true => Cow::Borrowed(text),
                false => secret::escape(text),
            };
        }
        masked(text, stream).map_or(Cow::Borrowed(text), Cow::Owned)
    }
}

/// Lets `change` have every string and every object key.
fn each_text(value: &mut Value, change: &impl Fn(&mut String)) {
    match value {
        Value::String(text) => change(text),
        Value::Array(items) => items.iter_mut().for_each(|item| each_text(item, change)),
        Value::Object(map) => {
            for (mut key, mut value) in std::mem::take(map) {
                change(&mut key);
                each_text(&mut value, change);
                map.insert(key, value);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Lets `change` have every string.
fn each_value(value: &mut Value, change: &impl Fn(&mut String)) {
    match value {
        Value::String(text) => change(text),
        Value::Array(items) => items.iter_mut().for_each(|item| each_value(item, change)),
        Value::Object(map) => map.values_mut().for_each(|value| each_value(value, change)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns a text as a stream leaves it, when that changes it.
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
