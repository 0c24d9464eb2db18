//! Request of an edit, before any file is read.

use std::path::PathBuf;

use super::matching::Scope;
use karyi_core::secret::ByteSet;

/// Requested changes of one file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileEdit {
    /// Path, absolute or relative to the directory of the options.
    pub path: PathBuf,
    /// Replacements, applied in order.
    pub pairs: Vec<EditPair>,
    /// New path of the file.
    pub to: Option<PathBuf>,
    /// Removes the file instead.
    pub delete: bool,
    /// Allows other hard links of the file to keep the old content.
    pub breaks_links: bool,
}

/// One replacement.
#[derive(Clone, PartialEq, Eq)]
pub struct EditPair {
    /// Text to find; empty only for a missing or empty file.
    pub find: String,
    /// Text to put in its place.
    pub replace: String,
    /// Replaces every match.
    pub all: bool,
    /// Undecoded form, when decoding escapes changed a text. It is used when the decoded text to find does not occur and
    /// this form occurs exactly once, or when another pair of the file is found so.
    pub written: Option<WrittenPair>,
    /// Extent of a replacement.
    pub scope: Scope,
    /// True if one of the texts contains a secret: then errors show nothing of the file.
    pub has_secret: bool,
    /// Bytes of the inserted secrets.
    pub values: ByteSet,
}

/// Replacement before its escapes were decoded.
#[derive(Clone, PartialEq, Eq)]
pub struct WrittenPair {
    /// Text to find.
    pub find: String,
    /// Text to put in its place.
    pub replace: String,
}

impl EditPair {
    /// Returns true when decoding changed the text to find.
    pub(super) fn has_written_find(&self) -> bool {
        self.written
            .as_ref()
            .is_some_and(|written| written.find != self.find)
    }

    /// Replaces the only occurrence of `find`; neither text contains a secret.
    pub fn new(find: impl Into<String>, replace: impl Into<String>) -> Self {
        Self {
            find: find.into(),
            replace: replace.into(),
            all: false,
            written: None,
            scope: Scope::Text,
            has_secret: false,
            values: ByteSet::EMPTY,
        }
    }
}

impl std::fmt::Debug for EditPair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("EditPair");
        if !self.has_secret {
            shown
                .field("find", &self.find)
                .field("replace", &self.replace);
        }
        shown.field("all", &self.all).finish_non_exhaustive()
    }
}
