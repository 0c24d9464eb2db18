//! What an edit is asked to do, before anything was looked at.

use std::path::PathBuf;

use karyi_core::secret::ByteSet;

/// The changes wanted in one file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileEdit {
    /// The file, absolute or relative to the directory of the options.
    pub path: PathBuf,
    /// What to replace, in order.
    pub pairs: Vec<EditPair>,
    /// Where the file goes after that.
    pub to: Option<PathBuf>,
    /// Whether it is removed instead.
    pub delete: bool,
    /// Whether other names of the file may keep the old content.
    pub breaks_links: bool,
}

/// One replacement.
#[derive(Clone, PartialEq, Eq)]
pub struct EditPair {
    /// Text to find; empty only for a missing or empty file.
    pub find: String,
    /// Text to put in its place.
    pub replace: String,
    /// Whether every match is replaced.
    pub all: bool,
    /// The pair before its escapes were decoded, when that changed the text to find: used when the
    /// decoded text is nowhere in the file and this one is there exactly once.
    pub written: Option<WrittenPair>,
    /// Whether one of the texts holds the value of a secret: then errors show nothing of the file.
    pub has_secret: bool,
    /// The bytes of the values that are put in.
    pub values: ByteSet,
}

/// A replacement as it was written, escapes and all.
#[derive(Clone, PartialEq, Eq)]
pub struct WrittenPair {
    /// Text to find.
    pub find: String,
    /// Text to put in its place.
    pub replace: String,
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
