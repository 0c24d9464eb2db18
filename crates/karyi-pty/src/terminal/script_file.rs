//! The file that scripts are written to, one after the other.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;

use nix::sys::stat::futimens;
use nix::sys::time::TimeSpec;

/// The file with the current script.
#[derive(Debug)]
pub(crate) struct ScriptFile {
    file: File,
    path: PathBuf,
    /// Device and inode.
    identity: (u64, u64),
    /// Length of the script.
    length: u64,
}

impl ScriptFile {
    /// Takes a new, empty file.
    ///
    /// # Errors
    /// It cannot be inspected.
    pub(crate) fn new(file: File, path: PathBuf) -> io::Result<Self> {
        let found = file.metadata()?;
        Ok(Self {
            file,
            path,
            identity: (found.dev(), found.ino()),
            length: 0,
        })
    }

    /// Writes the next script.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn write(&mut self, script: &str) -> io::Result<()> {
        let length = script.len() as u64;
        if length < self.length {
            self.file.set_len(0)?;
        }
        // Until the write is complete, the content of the file is unknown.
        self.length = u64::MAX;
        self.file.write_all_at(script.as_bytes(), 0)?;
        // If that fails, the script counts as read.
        let _ = self.forget_reads();
        self.length = length;
        Ok(())
    }

    /// Returns true if the shell would find it: a command may have removed it, or its directory.
    pub(crate) fn exists(&self) -> bool {
        let found = fs::symlink_metadata(&self.path);
        found.is_ok_and(|file| (file.dev(), file.ino()) == self.identity)
    }

    /// Returns its device and inode.
    pub(crate) fn identity(&self) -> (u64, u64) {
        self.identity
    }

    /// Returns true if it holds no script: it may have been created anew.
    pub(crate) fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Returns true if the shell has begun to read the script: another program may have taken the line that runs it,
    /// such as a trap that reads standard input while the shell is idle. Where the file system does not update access
    /// times, as with `noatime`, that is always so.
    pub(crate) fn was_begun(&self) -> bool {
        if self.is_empty() || self.shows_read() {
            return true;
        }
        let tells = self.file.read_at(&mut [0], 0).is_ok() && self.shows_read();
        !tells || self.forget_reads().is_err()
    }

    fn shows_read(&self) -> bool {
        let found = self.file.metadata();
        found.map_or(true, |file| (file.atime(), file.atime_nsec()) != (0, 0))
    }

    /// Resets the access time, so that a later read shows.
    fn forget_reads(&self) -> io::Result<()> {
        let (never, same) = (TimeSpec::new(0, 0), TimeSpec::UTIME_OMIT);
        Ok(futimens(&self.file, &never, &same)?)
    }
}
