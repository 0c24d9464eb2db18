//! Creates files that only their owner may open: they hold what visitors said and did.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// Creates a directory for databases. An existing one keeps its permissions, as it may have other uses.
///
/// # Errors
/// The system refuses.
pub fn make_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Creates the file of a database if it does not exist. SQLite gives its side files the same permissions.
pub(super) fn make_file(path: &Path) {
    // SQLite reports a failure with the path.
    let _ = options().write(true).create_new(true).open(path);
}

/// Returns options that create a private file.
pub(super) fn options() -> OpenOptions {
    let mut options = File::options();
    options.mode(0o600);
    options
}
