//! Hints for system errors that prevent a session.

use std::error::Error;
use std::fmt;
use std::io::{self, ErrorKind};
use std::path::Path;

use nix::errno::Errno;

use karyi_core::error::{ErrorCode, ToolError};

/// Hint for a runtime directory that cannot be used.
pub(crate) const OTHER_DIRECTORY: &str =
    "set XDG_RUNTIME_DIR, or TMPDIR, to a directory you may write to";

/// Error of a resource other than the runtime directory.
#[derive(Debug)]
pub(crate) struct MissingResource {
    what: &'static str,
    advice: &'static str,
    cause: io::Error,
}

impl MissingResource {
    /// Wraps the error of opening a terminal.
    pub(crate) fn of_terminal(cause: io::Error) -> io::Error {
        let advice = match cause.kind() {
            ErrorKind::PermissionDenied => "allow this user to read and write /dev/ptmx",
            ErrorKind::StorageFull => {
                "end programs that hold many terminals, or raise /proc/sys/kernel/pty/max"
            }
            _ => "mount devpts on /dev/pts, and have /dev/ptmx lead there",
        };
        Self::error("opening a terminal", advice, cause)
    }

    /// Wraps the error of reading random numbers.
    pub(crate) fn of_random(cause: io::Error) -> io::Error {
        let advice = "have the devices of the system in /dev";
        Self::error("opening /dev/urandom", advice, cause)
    }

    /// Wraps the error of creating a pair of sockets.
    pub(crate) fn of_sockets(cause: io::Error) -> io::Error {
        Self::error("creating a pair of sockets", "free some memory", cause)
    }

    fn error(what: &'static str, advice: &'static str, cause: io::Error) -> io::Error {
        let kind = cause.kind();
        let resource = Self {
            what,
            advice,
            cause,
        };
        io::Error::new(kind, resource)
    }

    fn within(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }
}

impl fmt::Display for MissingResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.cause)
    }
}

impl Error for MissingResource {}

/// Returns true if the error is not about the runtime directory.
pub(crate) fn is_unrelated_to_directory(error: &io::Error) -> bool {
    MissingResource::within(error).is_some() || files_advice(error).is_some()
}

/// Returns a hint for an error, if there is one.
pub(crate) fn advice(error: &io::Error) -> Option<&'static str> {
    if let Some(resource) = MissingResource::within(error) {
        return files_advice(&resource.cause).or(Some(resource.advice));
    }
    files_advice(error).or(match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            Some("make room there, or set XDG_RUNTIME_DIR, or TMPDIR, to a directory with room")
        }
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => Some(OTHER_DIRECTORY),
        ErrorKind::WouldBlock => Some("raise the limit of processes (`ulimit -u`), or end some"),
        ErrorKind::OutOfMemory => Some("free some memory"),
        _ => None,
    })
}

/// Returns a hint when no more files can be opened.
fn files_advice(error: &io::Error) -> Option<&'static str> {
    match Errno::from_raw(error.raw_os_error()?) {
        Errno::EMFILE => {
            Some("raise the limit of open files (`ulimit -n`): a session needs about 20")
        }
        Errno::ENFILE => {
            Some("end programs that hold many files open: the system has no room for more")
        }
        _ => None,
    }
}

/// Returns a note for a directory without free inodes.
pub(crate) fn inode_note(directory: &Path, error: &io::Error) -> &'static str {
    let place = directory.ancestors().find(|path| path.exists());
    let disk = place.and_then(|place| nix::sys::statvfs::statvfs(place).ok());
    let is_out_of_files = disk.is_some_and(|disk| disk.files() > 0 && disk.files_available() == 0);
    match error.kind() {
        ErrorKind::StorageFull if is_out_of_files => " (no inodes are left: remove some files)",
        _ => "",
    }
}

/// Returns the error of a session, with a hint about its cause.
pub(crate) fn failed(message: String, error: &io::Error) -> ToolError {
    let failed = ToolError::new(ErrorCode::SessionFailed, message);
    match advice(error) {
        Some(advice) => failed.with_hint(advice),
        None => failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_has_its_own_advice() {
        let check = |error: io::Error, expected: &str| {
            let found = advice(&error).unwrap_or_default();
            assert!(found.contains(expected), "{error}: {found}");
        };
        let of = |code: Errno| io::Error::from_raw_os_error(code as i32);
        check(of(Errno::EMFILE), "ulimit -n");
        check(of(Errno::ENFILE), "the system");
        check(of(Errno::ENOSPC), "make room");
        check(of(Errno::EDQUOT), "make room");
        check(of(Errno::EACCES), "TMPDIR");
        check(of(Errno::EROFS), "TMPDIR");
        check(of(Errno::EAGAIN), "ulimit -u");
        check(MissingResource::of_terminal(of(Errno::ENOENT)), "devpts");
        check(MissingResource::of_terminal(of(Errno::ENOSPC)), "pty/max");
        check(
            MissingResource::of_terminal(of(Errno::EACCES)),
            "read and write /dev/ptmx",
        );
        check(MissingResource::of_terminal(of(Errno::EMFILE)), "ulimit -n");
        check(MissingResource::of_random(of(Errno::ENOENT)), "/dev");
        check(MissingResource::of_sockets(of(Errno::EMFILE)), "ulimit -n");
        assert_eq!(advice(&of(Errno::ENOENT)), None);
    }
}
