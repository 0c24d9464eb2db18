//! Directories a shell can change to.

use std::io;
use std::path::Path;

use nix::fcntl::{AT_FDCWD, AtFlags};
use nix::unistd::AccessFlags;

/// Checks that a shell may change to a directory.
pub(crate) fn may_enter(directory: &Path) -> io::Result<()> {
    let flags = AccessFlags::X_OK;
    Ok(nix::unistd::faccessat(
        AT_FDCWD,
        directory,
        flags,
        AtFlags::AT_EACCESS,
    )?)
}

/// Returns a directory in which a shell can start: the one given, or one of its parents.
pub(crate) fn nearest_enterable(directory: &Path) -> &Path {
    directory
        .ancestors()
        .find(|path| path.is_dir() && may_enter(path).is_ok())
        .unwrap_or(Path::new("/"))
}
