//! One file of an edit: what was found on the disk and what it is to become.

use std::fs::{File, Metadata, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nix::libc;

/// The byte order mark.
pub(super) const MARK: &str = "\u{FEFF}";

/// One file with its old and new content.
pub(super) struct Target {
    /// The path as it was given first, for messages.
    pub(super) shown: PathBuf,
    /// The path with all symlinks followed.
    pub(super) real: PathBuf,
    /// The file as it was read; none when it does not exist.
    pub(super) found: Option<Metadata>,
    /// The text as it was read, without byte order mark.
    pub(super) before: String,
    /// The text as it will be.
    pub(super) after: String,
    /// Whether the file starts with a byte order mark.
    pub(super) has_mark: bool,
}

impl Target {
    /// Whether there is something to write.
    pub(super) fn is_changed(&self) -> bool {
        self.found.is_none() || self.before != self.after
    }

    /// Returns the new content, in stretches.
    pub(super) fn new_bytes(&self) -> [&[u8]; 2] {
        [self.mark(), self.after.as_bytes()]
    }

    /// Returns the old content, in stretches.
    pub(super) fn old_bytes(&self) -> [&[u8]; 2] {
        [self.mark(), self.before.as_bytes()]
    }

    fn mark(&self) -> &'static [u8] {
        if self.has_mark { MARK.as_bytes() } else { b"" }
    }
}

/// Opens a file that was a plain one a moment ago; should it be a pipe by now, this does not hang.
pub(super) fn open_for_reading(path: &Path) -> std::io::Result<File> {
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}
