//! Text that may leave the program: a type that only the redactor can make.

use std::fmt;

/// Redacted text, or an event with redacted texts. Only this type may reach a model, a log, a transcript or a peer,
/// and only the redactor can make one.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Redacted<T = String>(T);

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
