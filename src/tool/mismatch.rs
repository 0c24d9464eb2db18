//! Errors in arguments: the path, the expected type and the value found.
//!
//! Attributes, elements and JSON give the same error, so models read the same words.

use serde_json::Value;

use karyi_core::call::RawElement;

/// Maximum length of a shown value in characters.
const MAX_FOUND_CHARS: usize = 80;

/// An argument that does not fit its type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch<'e> {
    /// Path in the arguments: `headers.Accept`, `items[2].name`; empty for all of them.
    pub path: String,
    /// The expected value in words.
    pub expected: String,
    /// The value found, shortened.
    pub found: String,
    /// Words of the tool in front of the message.
    pub words: Option<Box<str>>,
    /// A remedy, when it says more than the reference to the types.
    pub hint: Option<Box<str>>,
    /// True when the value is in JSON text.
    pub is_in_json: bool,
    /// The element that contains it.
    pub element: Option<&'e RawElement>,
}

impl<'e> Mismatch<'e> {
    /// Returns the error of a text.
    #[must_use]
    pub fn text(path: &str, expected: impl Into<String>, found: &str) -> Self {
        Self::new(path, expected, format!("{:?}", shortened(found)))
    }

    /// Returns the error of a JSON value.
    #[must_use]
    pub fn value(path: &str, expected: impl Into<String>, found: &Value) -> Self {
        let shown = match found {
            Value::String(text) => format!("{:?}", shortened(text)),
            Value::Array(_) | Value::Object(_) => shortened(&compact(found)),
            Value::Null | Value::Bool(_) | Value::Number(_) => found.to_string(),
        };
        Self::new(path, expected, shown)
    }

    /// Returns an error described in words.
    #[must_use]
    pub fn new(path: &str, expected: impl Into<String>, found: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            expected: expected.into(),
            found: found.into(),
            words: None,
            hint: None,
            is_in_json: false,
            element: None,
        }
    }

    /// Sets the hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into().into());
        self
    }

    /// Puts words of the tool in front of the message, when it has some.
    #[must_use]
    pub fn with_words(mut self, words: Option<&str>) -> Self {
        self.words = words.map(Into::into).or(self.words);
        self
    }

    /// Marks the value as part of JSON text.
    #[must_use]
    pub fn in_json(mut self) -> Self {
        self.is_in_json = true;
        self
    }

    /// Sets the element, unless an inner one is known.
    #[must_use]
    pub fn at(mut self, element: &'e RawElement) -> Self {
        self.element = self.element.or(Some(element));
        self
    }

    /// Returns the message for the arguments of `tool`.
    #[must_use]
    pub fn message(&self, tool: &str) -> String {
        let (expected, found) = (&self.expected, &self.found);
        let message = match self.path.is_empty() {
            true => format!("the arguments of {tool} must be {expected}, found {found}"),
            false => format!(
                "`{}` of {tool} must be {expected}, found {found}",
                self.path
            ),
        };
        led_by(self.words.as_deref(), message)
    }
}

/// Returns a message with words of a tool in front of it.
#[must_use]
pub fn led_by(words: Option<&str>, message: String) -> String {
    match words {
        None => message,
        Some(words) => format!("{}: {message}", words.trim_end_matches(':')),
    }
}

/// Returns the path of `name` inside `path`.
#[must_use]
pub fn join(path: &str, name: &str) -> String {
    let name = shortened(name);
    if path.is_empty() {
        return name;
    }
    format!("{path}.{name}")
}

/// Returns a value as JSON text, or a summary of a list or object.
fn compact(value: &Value) -> String {
    match value {
        Value::Array(list) => match list.as_slice() {
            [] => "[]".into(),
            items => format!("a list of {}", items.len()),
        },
        Value::Object(map) => {
            let keys: Vec<&str> = map.keys().take(8).map(String::as_str).collect();
            let keys: Vec<String> = keys.into_iter().map(shortened).collect();
            format!("an object with the keys {}", keys.join(", "))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

/// Returns text on one line, shortened for a message.
#[must_use]
pub fn shortened(text: &str) -> String {
    let visible = |c: char| match c {
        '\n' => '\u{240A}',
        '\t' => '\u{2409}',
        c if c.is_control() => '\u{FFFD}',
        c => c,
    };
    let mut shown: String = text.chars().take(MAX_FOUND_CHARS).map(visible).collect();
    if text.chars().nth(MAX_FOUND_CHARS).is_some() {
        shown.push('…');
    }
    shown
}
