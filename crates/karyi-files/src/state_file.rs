//! Opens files of karyi's own state, which other programs may have replaced by something else.
//!
//! Opening a pipe or reading a device can block forever; a symlink would lead elsewhere.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use karyi_core::error::{ErrorCode, NoFile, ToolError};

/// Opens a regular file.
///
/// # Errors
/// The error of the system; [`NoFile`] for a pipe, a socket or a device.
pub(super) fn open(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOFOLLOW;
    let flags = i32::try_from(flags.bits()).map_err(io::Error::other)?;
    let opened = options.custom_flags(flags).open(path);
    let file = opened.map_err(|error| match error.raw_os_error() {
        // A pipe without a reader, or a socket.
        Some(nix::libc::ENXIO) => io::Error::other(NoFile),
        _ => error,
    })?;
    let kind = file.metadata()?.file_type();
    match (kind.is_file(), kind.is_dir()) {
        (true, _) => Ok(file),
        (false, true) => Err(io::ErrorKind::IsADirectory.into()),
        (false, false) => Err(io::Error::other(NoFile)),
    }
}

/// Opens a file to read it.
///
/// # Errors
/// As [`open`].
pub(super) fn open_to_read(path: &Path) -> io::Result<File> {
    open(OpenOptions::new().read(true), path)
}

/// Reads a whole file.
///
/// # Errors
/// As [`open`], or reading fails.
pub(super) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_to_read(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Describes the failure to open such a file.
pub(super) fn error(path: &Path, error: &io::Error) -> ToolError {
    let found = ToolError::from_io(path, error);
    match found.code {
        ErrorCode::NotAFile | ErrorCode::IsDirectory | ErrorCode::SymlinkLoop => found.with_hint(
            "karyi keeps a file of its own there: move away what is in its place, and karyi creates it again",
        ),
        _ => found,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_are_opened() {
        let temp = tempfile::tempdir().unwrap();
        let at = |name: &str| temp.path().join(name);
        std::fs::write(at("file"), "x").unwrap();
        std::fs::create_dir(at("directory")).unwrap();
        nix::unistd::mkfifo(&at("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        std::os::unix::fs::symlink("file", at("link")).unwrap();
        for (name, expected) in [
            ("file", None),
            ("directory", Some(ErrorCode::IsDirectory)),
            ("pipe", Some(ErrorCode::NotAFile)),
            ("socket", Some(ErrorCode::NotAFile)),
            ("link", Some(ErrorCode::SymlinkLoop)),
            ("none", Some(ErrorCode::NotFound)),
        ] {
            let path = at(name);
            let found = |result: io::Result<File>| result.err().map(|e| error(&path, &e).code);
            assert_eq!(found(open_to_read(&path)), expected, "{name}");
            let mut options = OpenOptions::new();
            assert_eq!(found(open(options.write(true), &path)), expected, "{name}");
            let mut options = OpenOptions::new();
            let opened = open(options.read(true).append(true), &path);
            assert_eq!(found(opened), expected, "{name}");
        }
    }
}
