//! Text that may leave the program: a type that only the redactor can make.

use std::fmt;

use serde::ser::{Serialize, SerializeMap, Serializer};

/// Redacted text, or a value with redacted texts. Only this type may reach a model, a log, a transcript or a peer, and
/// only the redactor can make one. Others change it by functions that capture nothing, so no text can be added.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Redacted<T = String>(T);

/// Name under which a redacted text is serialized, so that the redactor recognises it in a result and leaves it as it is.
pub(super) const REDACTED: &str = "\u{0}redacted";

impl<T> Redacted<T> {
    /// Marks a value as redacted.
    pub(super) fn new(inner: T) -> Self {
        Self(inner)
    }

    /// Returns the redacted value.
    #[must_use]
    pub fn into_inner(self) -> T {
        self.0
    }

    /// Returns a reference to the redacted value.
    #[must_use]
    pub fn get(&self) -> &T {
        &self.0
    }

    /// Returns a redacted reference.
    #[must_use]
    pub fn as_ref(&self) -> Redacted<&T> {
        Redacted(&self.0)
    }

    /// Converts the value.
    #[must_use]
    pub fn map<U>(self, convert: fn(T) -> U) -> Redacted<U> {
        Redacted(convert(self.0))
    }

    /// Converts the value with limits or other numbers.
    #[must_use]
    pub fn map_by<A: Copy + 'static, U>(self, by: A, convert: fn(T, A) -> U) -> Redacted<U> {
        Redacted(convert(self.0, by))
    }

    /// Changes the value by another one that is redacted.
    pub fn change<U>(&mut self, by: Redacted<U>, change: fn(&mut T, U)) {
        change(&mut self.0, by.0);
    }
}

impl Redacted {
    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the text as a string.
    #[must_use]
    pub fn into_string(self) -> String {
        self.0
    }

    /// Returns true when there is no text.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Clears the text and retains its capacity.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Returns the end of the text that starts at a byte.
    #[must_use]
    pub fn from(&self, start: usize) -> Self {
        Self(self.0.get(start..).unwrap_or_default().to_owned())
    }

    /// Returns the start of the text up to a byte.
    #[must_use]
    pub fn until(&self, end: usize) -> Self {
        Self(self.0.get(..end).unwrap_or_default().to_owned())
    }

    /// The text, to append to.
    pub(super) fn text(&mut self) -> &mut String {
        &mut self.0
    }
}

/// Only for [`super::Redactor::redact_result`].
impl Serialize for Redacted {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry(REDACTED, &self.0)?;
        map.end()
    }
}

impl<T: fmt::Debug> fmt::Debug for Redacted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Redacted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
