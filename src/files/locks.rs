//! Locks between karyi processes of one user.
//!
//! Two edits of one file wait for each other, also from different processes: each path has one of a
//! fixed number of lock files, taken in order, so that nobody waits in a circle. The system frees
//! them when a process ends, however it ends.
//!
//! They lie beside the journal, and again in one place for all journals of a user: runs with different
//! homes change the same files. Where that place cannot be had, each journal has its own locks only, and
//! what another run wrote is still seen right before the rename.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::fs::{CWD, Mode, OFlags};

use crate::error::{ErrorCode, ToolError};
use crate::limits;

/// Lock files for paths: enough that two files rarely share one.
const STRIPES: u64 = 251;
/// Those that all journals share: fewer, as each one held is an open file.
const SHARED_STRIPES: u64 = 61;

/// Locks that are held until this is dropped.
#[derive(Debug)]
pub(super) struct Held {
    _files: Vec<File>,
}

/// Where the locks lie that all journals of a user share. No variable names it: two runs with different
/// ones must find the same place.
const SHARED: &str = "/tmp/karyi-locks";

/// Locks paths for a change, in the directory of a journal and for all other journals; waits for others.
///
/// # Errors
/// `edit_busy` when that takes too long.
pub(super) fn lock_paths(directory: Option<&Path>, paths: &[&Path]) -> Result<Held, ToolError> {
    let mut stripes: Vec<u64> = paths.iter().map(|path| stripe(path)).collect();
    stripes.sort_unstable();
    stripes.dedup();
    let mut files = Vec::new();
    for stripe in stripes.iter().filter(|_| directory.is_some()) {
        let directory = directory.unwrap_or(Path::new(""));
        match lock_file(&directory.join(name(*stripe))) {
            Ok(file) => files.push(file),
            Err(error) if error.code == ErrorCode::EditBusy => return Err(error),
            // On a full disk the locks that are shared are left.
            Err(_) => {}
        }
    }
    let mut stripes: Vec<u64> = stripes
        .iter()
        .map(|stripe| stripe % SHARED_STRIPES)
        .collect();
    stripes.sort_unstable();
    stripes.dedup();
    if let Some(shared) = shared_directory(&shared_path()) {
        for stripe in stripes {
            files.extend(lock_shared(&shared, &name(stripe))?);
        }
    }
    Ok(Held { _files: files })
}

fn name(stripe: u64) -> String {
    format!("path-{stripe}")
}

fn shared_path() -> PathBuf {
    format!("{SHARED}-{}", nix::unistd::geteuid()).into()
}

/// Opens a directory of the user's own, made if need be; nothing when somebody else could write there.
fn shared_directory(path: &Path) -> Option<OwnedFd> {
    // Whether it is there, and whose, shows when it is opened.
    let _ = rustix::fs::mkdir(path, Mode::RWXU);
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(CWD, path, flags, Mode::empty()).ok()?;
    let found = rustix::fs::fstat(&opened).ok()?;
    let is_own = found.st_uid == nix::unistd::geteuid().as_raw() && found.st_mode & 0o077 == 0;
    is_own.then_some(opened)
}

/// Locks a file there; nothing when it cannot be made.
fn lock_shared(directory: &OwnedFd, name: &str) -> Result<Option<File>, ToolError> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mode = Mode::RUSR | Mode::WUSR;
    loop {
        let Ok(opened) = rustix::fs::openat(directory, name, flags | OFlags::CLOEXEC, mode) else {
            return Ok(None);
        };
        let file = wait_for(File::from(opened), Path::new(name))?;
        // What cleans temporary files may have taken it away meanwhile: then others lock a new one.
        if file.metadata().is_ok_and(|found| found.nlink() > 0) {
            return Ok(Some(file));
        }
    }
}

/// The hash need not be strong, only the same in every process.
fn stripe(path: &Path) -> u64 {
    let bytes = path.as_os_str().as_bytes().iter();
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash % STRIPES
}

/// Locks one file, made if need be; waits for others.
///
/// # Errors
/// `edit_busy` when that takes too long, or the file cannot be made.
pub(super) fn lock_file(path: &Path) -> Result<File, ToolError> {
    let file = open(path).map_err(|error| ToolError::from_io(path, &error))?;
    wait_for(file, path)
}

/// Locks an open file.
fn wait_for(file: File, path: &Path) -> Result<File, ToolError> {
    let io = |error: io::Error| ToolError::from_io(path, &error);
    let since = Instant::now();
    let mut pause = limits::EDIT_LOCK_PAUSE_MIN;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(io(error)),
            Err(TryLockError::WouldBlock) if since.elapsed() > limits::EDIT_LOCK_TIMEOUT => {
                return Err(busy());
            }
            Err(TryLockError::WouldBlock) => {
                std::thread::sleep(pause);
                pause = (pause * 2).min(limits::EDIT_LOCK_PAUSE_MAX);
            }
        }
    }
}

/// Makes the error of a wait that was too long.
pub(super) fn busy() -> ToolError {
    let message = "another karyi has been changing the same files for too long";
    ToolError::new(ErrorCode::EditBusy, message)
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true).mode(0o600);
    options.open(path)
}

/// Makes a directory that only the user may enter.
pub(super) fn make_private(path: &Path) -> io::Result<PathBuf> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)?;
    Ok(path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn nobody_else_can_write_where_locks_are_shared() {
        let temp = tempfile::tempdir().unwrap();
        let place = temp.path().join("locks");
        assert!(shared_directory(&place).is_some());
        assert!(shared_directory(&place).is_some());
        std::fs::set_permissions(&place, Permissions::from_mode(0o770)).unwrap();
        assert!(shared_directory(&place).is_none());
        let link = temp.path().join("link");
        std::fs::set_permissions(&place, Permissions::from_mode(0o700)).unwrap();
        symlink(&place, &link).unwrap();
        assert!(shared_directory(&link).is_none());
        assert!(shared_directory(&temp.path().join("none/locks")).is_none());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_lock_that_was_taken_away_is_made_anew() {
        let temp = tempfile::tempdir().unwrap();
        let top = temp.path().join("locks");
        let place = shared_directory(&top).unwrap();
        let first = lock_shared(&place, "a").unwrap().unwrap();
        let path = top.join("a");
        let waiting = std::thread::spawn(move || lock_shared(&place, "a").unwrap().unwrap());
        let opened = || {
            let all = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
            all.filter(|entry| std::fs::read_link(entry.path()).is_ok_and(|to| to == path))
                .count()
        };
        while opened() < 2 {
            std::thread::yield_now();
        }
        std::fs::remove_file(&path).unwrap();
        drop(first);
        let second = waiting.join().unwrap();
        assert_eq!(
            second.metadata().unwrap().ino(),
            std::fs::metadata(&path).unwrap().ino()
        );
    }

    #[test]
    fn a_file_that_is_no_lock_hinders_nobody() {
        let temp = tempfile::tempdir().unwrap();
        let top = temp.path().join("locks");
        let place = shared_directory(&top).unwrap();
        std::fs::create_dir(top.join("a")).unwrap();
        assert!(lock_shared(&place, "a").unwrap().is_none());
    }
}
