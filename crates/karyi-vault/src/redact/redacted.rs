//! What may leave: the one type that only the redactor can make.

use std::fmt;

/// Something that has passed the redactor: text, or an event with all its texts. Only this type
/// may leave for a model, a log, a transcript or a peer, and nothing else can make one.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Redacted<T = String>(T);

impl<T> Redacted<T> {
    /// Marks something as redacted.
    pub(super) fn new(inner: T) -> Self {
        Self(inner)
    }

    /// Takes out what was redacted.
    #[must_use]
    pub fn into_inner(self) -> T {
        self.0
    }

    /// Returns what was redacted.
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

    /// Takes the text out.
    #[must_use]
    pub fn into_string(self) -> String {
        self.0
    }

    /// Whether there is no text.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Empties the text and keeps its memory.
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
