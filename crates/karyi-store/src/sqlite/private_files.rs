//! Files that nobody but their owner may open: they hold what visitors said and did.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// Makes a directory for databases. One that is there stays as it is: it may be for others, too.
///
/// # Errors
/// The system does not let us.
pub fn make_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Makes the file of a database when it is not there. SQLite makes the files beside it like it.
pub(super) fn make_file(path: &Path) {
    // What stands against it SQLite tells, with the path.
    let _ = options().write(true).create_new(true).open(path);
}

/// Returns how to open such a file.
pub(super) fn options() -> OpenOptions {
    let mut options = File::options();
    options.mode(0o600);
    options
}
