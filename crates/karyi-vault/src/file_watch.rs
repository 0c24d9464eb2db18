//! Detects that a file was replaced.
//!
//! Files of the vault are replaced by a rename, so a new version is a new file. The check is one system call and does
//! not block. Windows has no inode numbers: there a version is identified by size and time, with a resolution of 100
//! ns.

use std::fs::{self, File, Metadata};
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};
use std::time::SystemTime;

/// Detects that a file was replaced.
pub(super) struct FileWatch {
    path: PathBuf,
    /// Version that was read last.
    read: RwLock<Option<FileVersion>>,
}

/// Version of a file, possibly missing.
pub(super) struct FileVersion {
    file_state: Option<FileState>,
    /// Open file, so that its inode number is not reused. Not on Windows: an open file would block its
    /// replacement.
    _file: Option<File>,
}

/// Identity of a version.
#[derive(Debug, PartialEq, Eq)]
struct FileState {
    /// Device, inode number, and time of its last change in seconds and nanoseconds.
    number: (u64, u64, i64, i64),
    size: u64,
    modified: Option<SystemTime>,
}

impl FileWatch {
    /// Makes a watch of a file that was not read yet.
    #[must_use]
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            path,
            read: RwLock::default(),
        }
    }

    /// Returns the current version. Take it before reading the file, and record it afterwards.
    #[must_use]
    pub(super) fn version(&self) -> FileVersion {
        let file = open(&self.path);
        let file_state = match &file {
            Some(file) => file.metadata().ok().map(|found| FileState::of(&found)),
            None => file_state_of(&self.path),
        };
        FileVersion {
            file_state,
            _file: file,
        }
    }

    /// Records that a version was read.
    pub(super) fn record(&self, version: FileVersion) {
        // A poisoned lock only means that another thread panicked between two versions.
        let mut read = self.read.write().unwrap_or_else(PoisonError::into_inner);
        *read = Some(version);
    }

    /// Returns true when the file differs from the version that was read last.
    #[must_use]
    pub(super) fn is_stale(&self) -> bool {
        let now = file_state_of(&self.path);
        let read = self.read.read().unwrap_or_else(PoisonError::into_inner);
        read.as_ref()
            .is_none_or(|version| version.file_state != now)
    }
}

fn file_state_of(path: &Path) -> Option<FileState> {
    let found = fs::symlink_metadata(path);
    found.ok().map(|found| FileState::of(&found))
}

/// Opens a regular file. Other files are never read.
#[cfg(unix)]
fn open(path: &Path) -> Option<File> {
    if !fs::symlink_metadata(path).is_ok_and(|found| found.is_file()) {
        return None;
    }
    let mut options = File::options();
    options.read(true);
    // It may be replaced by now: a pipe must not block, and a link must not be followed.
    std::os::unix::fs::OpenOptionsExt::custom_flags(
        &mut options,
        nix::libc::O_NONBLOCK | nix::libc::O_NOFOLLOW,
    );
    options.open(path).ok()
}

/// Opens nothing: there is no inode number to hold.
#[cfg(not(unix))]
fn open(_: &Path) -> Option<File> {
    None
}

impl FileState {
    fn of(found: &Metadata) -> Self {
        #[cfg(unix)]
        let number = {
            use std::os::unix::fs::MetadataExt;
            (found.dev(), found.ino(), found.ctime(), found.ctime_nsec())
        };
        #[cfg(not(unix))]
        let number = (0, 0, 0, 0);
        Self {
            number,
            size: found.len(),
            modified: found.modified().ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Puts a text in the place of a file, as old as every other one.
    fn replace(path: &Path, text: &str) {
        let beside = path.with_extension("tmp");
        fs::write(&beside, text).unwrap();
        let file = File::options().write(true).open(&beside).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        fs::rename(beside, path).unwrap();
    }

    #[test]
    fn every_version_is_noticed_once() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("vars.json");
        let watch = FileWatch::new(path.clone());
        assert!(watch.is_stale());
        watch.record(watch.version());
        assert!(!watch.is_stale());
        // Without the file that is held open one of two would get the number of the one before.
        for number in 0..100 {
            replace(&path, &format!("{number:3}"));
            assert!(watch.is_stale(), "{number}");
            let version = watch.version();
            assert!(watch.is_stale(), "{number}");
            watch.record(version);
            assert!(!watch.is_stale(), "{number}");
        }
        fs::remove_file(&path).unwrap();
        assert!(watch.is_stale());
        watch.record(watch.version());
        assert!(!watch.is_stale());
    }

    #[test]
    fn changes_after_the_read_version_are_detected() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("vars.json");
        let watch = FileWatch::new(path.clone());
        let version = watch.version();
        replace(&path, "one");
        watch.record(version);
        assert!(watch.is_stale());
    }

    #[test]
    fn irregular_files_do_not_block() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("vars.json");
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let watch = FileWatch::new(path.clone());
        watch.record(watch.version());
        assert!(!watch.is_stale());
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("none", &path).unwrap();
        assert!(watch.is_stale());
    }
}
