//! Opening a file to read it.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::libc;

/// Opens a file that was a plain one a moment ago; should it be a pipe by now, this does not hang.
pub(super) fn open_for_reading(path: &Path) -> std::io::Result<File> {
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}
