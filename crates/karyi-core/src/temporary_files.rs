//! Temporary files that a killed process left behind.

use std::fs;
use std::path::Path;

use crate::limits;

/// Removes old temporary files (`.tmp` and six letters or digits) from a directory that belongs to karyi.
///
/// Only files older than [`limits::LEFTOVER_AGE`] go, since a younger one may be in use. The caller
/// holds the lock of the directory.
pub fn remove_old_temporary_files(directory: &Path) {
    let is_temporary = |name: &str| {
        let chance = name.strip_prefix(".tmp");
        chance.is_some_and(|c| c.len() == 6 && c.bytes().all(|b| b.is_ascii_alphanumeric()))
    };
    let is_old = |found: fs::Metadata| {
        let age = found.modified().ok().and_then(|time| time.elapsed().ok());
        found.is_file() && age.is_some_and(|age| age > limits::LEFTOVER_AGE)
    };
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().to_str().is_some_and(is_temporary)) {
        if entry.metadata().is_ok_and(is_old) {
            // A file that cannot be removed now may go next time.
            let _ = fs::remove_file(entry.path());
        }
    }
}
