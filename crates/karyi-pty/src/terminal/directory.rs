//! Directories a shell goes to.

use std::io;
use std::path::Path;

use nix::fcntl::{AT_FDCWD, AtFlags};
use nix::unistd::AccessFlags;

/// Asks whether a shell may make a directory its own.
pub(crate) fn may_enter(directory: &Path) -> io::Result<()> {
    let flags = AccessFlags::X_OK;
    Ok(nix::unistd::faccessat(
        AT_FDCWD,
        directory,
        flags,
        AtFlags::AT_EACCESS,
    )?)
}

/// Returns a directory that a shell can start in: the one given, or one of its parents.
pub(crate) fn nearest_enterable(directory: &Path) -> &Path {
    directory
        .ancestors()
        .find(|path| path.is_dir() && may_enter(path).is_ok())
        .unwrap_or(Path::new("/"))
}
