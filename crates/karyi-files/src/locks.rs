//! Locks between karyi processes of one user.
//!
//! Edits of the same file wait for each other across processes. Each path maps to one of a fixed number of
//! lock files, which are taken in order to avoid deadlocks. The system releases them when a process ends,
//! however it ends.
//!
//! The lock files lie beside the journal, and a second set in one place for all journals of a user, since
//! runs with different homes can change the same files. Where that place is unavailable only the first set is
//! used, and a concurrent change is still detected right before the rename.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::fs::{CWD, Mode, OFlags};

use super::state_file;
use karyi_core::error::{ErrorCode, NoFile, ToolError};
use karyi_core::limits;

/// Number of lock files beside a journal: enough that two paths rarely share one.
const STRIPES: u64 = 251;
/// Number of lock files for all journals: fewer, as each held lock is an open file.
const SHARED_STRIPES: u64 = 61;

/// Locks that are held until this is dropped.
#[derive(Debug)]
pub(super) struct PathLocks {
    _files: Vec<File>,
}

/// Prefix of the lock directory for all journals of a user. It depends on no variable: runs with different
/// environments must agree on it.
const SHARED: &str = "/tmp/karyi-locks";

/// Locks paths for a change, in the directory of a journal and for all journals; waits for other holders.
///
/// A full or read-only state directory does not prevent changes: then only the shared locks are used.
///
/// # Errors
/// `edit_busy` on timeout, and temporary failures to open a lock, such as too many open files.
pub(super) fn lock_paths(
    directory: Option<&Path>,
    paths: &[&Path],
) -> Result<PathLocks, ToolError> {
    let stripes: BTreeSet<u64> = paths.iter().flat_map(|path| stripes(path)).collect();
    let mut files = Vec::new();
    for stripe in stripes.iter().filter(|_| directory.is_some()) {
        let directory = directory.unwrap_or(Path::new(""));
        let path = directory.join(name(*stripe));
        match open(&path).and_then(wait_for) {
            Ok(Some(file)) => files.push(file),
            Ok(None) => return Err(busy()),
            // The shared locks remain.
            Err(error) if is_permanent(&error) => {}
            Err(error) => return Err(ToolError::from_io(&path, &error)),
        }
    }
    let stripes = stripes.iter().map(|stripe| stripe % SHARED_STRIPES);
    let stripes: BTreeSet<u64> = stripes.collect();
    let place = shared_path();
    let shared = shared_directory(&place).map_err(|error| ToolError::from_io(&place, &error))?;
    if let Some(shared) = shared {
        for stripe in stripes {
            files.extend(lock_shared((&place, &shared), &name(stripe))?);
        }
    }
    Ok(PathLocks { _files: files })
}

fn name(stripe: u64) -> String {
    format!("path-{stripe}")
}

fn shared_path() -> PathBuf {
    format!("{SHARED}-{}", nix::unistd::geteuid()).into()
}

/// Opens a directory of this user, created if needed; `None` when others could write to it.
fn shared_directory(path: &Path) -> io::Result<Option<OwnedFd>> {
    // Opening it shows whether it exists and who owns it.
    let _ = rustix::fs::mkdir(path, Mode::RWXU);
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = match rustix::fs::openat(CWD, path, flags, Mode::empty()) {
        Ok(opened) => opened,
        Err(error) if is_permanent(&error.into()) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let found = rustix::fs::fstat(&opened)?;
    let is_own = found.st_uid == nix::unistd::geteuid().as_raw() && found.st_mode & 0o077 == 0;
    Ok(is_own.then_some(opened))
}

/// Tells whether a failure lies in the place itself and is the same for every run. After a temporary failure
/// another run may hold the lock, so continuing without it would be unsafe.
fn is_permanent(error: &io::Error) -> bool {
    use io::ErrorKind;
    let nameless = [nix::libc::ENOLCK, nix::libc::ELOOP, nix::libc::ENXIO];
    let number = error.raw_os_error();
    let is_no_file = || error.get_ref().is_some_and(|inner| inner.is::<NoFile>());
    number.is_some_and(|number| nameless.contains(&number))
        || is_no_file()
        || matches!(
            error.kind(),
            ErrorKind::StorageFull
                | ErrorKind::QuotaExceeded
                | ErrorKind::ReadOnlyFilesystem
                | ErrorKind::PermissionDenied
                | ErrorKind::NotFound
                | ErrorKind::NotADirectory
                | ErrorKind::IsADirectory
                | ErrorKind::Unsupported
        )
}

/// Locks a shared lock file; `None` when the place cannot have one.
fn lock_shared(
    (path, directory): (&Path, &OwnedFd),
    name: &str,
) -> Result<Option<File>, ToolError> {
    let failed = |error: io::Error| ToolError::from_io(&path.join(name), &error);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mode = Mode::RUSR | Mode::WUSR;
    loop {
        let opened = rustix::fs::openat(directory, name, flags | OFlags::CLOEXEC, mode);
        let locked = opened.map_err(io::Error::from);
        let file = match locked.and_then(|opened| wait_for(File::from(opened))) {
            Ok(Some(file)) => file,
            Ok(None) => return Err(busy()),
            Err(error) if is_permanent(&error) => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        // A cleaner of temporary files may have removed it meanwhile; others would lock a new one.
        if file.metadata().is_ok_and(|found| found.nlink() > 0) {
            return Ok(Some(file));
        }
    }
}

/// Returns the lock numbers of a path: one for its name, and one for its directory, which has several names
/// where it is mounted twice. In a directory that does not exist yet only the name counts.
fn stripes(path: &Path) -> [u64; 2] {
    let name = path.as_os_str().as_bytes();
    [
        stripe(name),
        stripe(&shared_identity(path).unwrap_or(name.to_owned())),
    ]
}

/// Returns an identity that all names of a path share: its nearest existing directory, and the rest.
fn shared_identity(path: &Path) -> Option<Vec<u8>> {
    let mut above = path.ancestors().skip(1);
    let (top, found) = above.find_map(|top| Some((top, std::fs::metadata(top).ok()?)))?;
    let rest = path.strip_prefix(top).ok()?.as_os_str().as_bytes();
    Some([&found.dev().to_le_bytes(), &found.ino().to_le_bytes(), rest].concat())
}

/// FNV-1a; it need not be strong, only equal in every process.
fn stripe(bytes: &[u8]) -> u64 {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash % STRIPES
}

/// Locks one file, created if needed; waits for other holders.
///
/// # Errors
/// `edit_busy` on timeout, or the file cannot be created.
pub(super) fn lock_file(path: &Path) -> Result<File, ToolError> {
    let locked = open(path).and_then(wait_for);
    let locked = locked.map_err(|error| state_file::error(path, &error))?;
    locked.ok_or_else(busy)
}

/// Locks an open file; `None` on timeout.
fn wait_for(file: File) -> io::Result<Option<File>> {
    let since = Instant::now();
    let mut pause = limits::EDIT_LOCK_PAUSE_MIN;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if since.elapsed() > limits::EDIT_LOCK_TIMEOUT => {
                return Ok(None);
            }
            Err(TryLockError::WouldBlock) => {
                std::thread::sleep(pause);
                pause = (pause * 2).min(limits::EDIT_LOCK_PAUSE_MAX);
            }
        }
    }
}

/// Error of a lock timeout.
pub(super) fn busy() -> ToolError {
    let message = "another karyi has been changing the same files for too long";
    ToolError::new(ErrorCode::EditBusy, message)
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true).mode(0o600);
    state_file::open(&mut options, path)
}

/// Creates a directory that only the user may enter.
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
    fn shared_locks_need_a_private_directory() {
        let temp = tempfile::tempdir().unwrap();
        let place = temp.path().join("locks");
        assert!(shared_directory(&place).unwrap().is_some());
        assert!(shared_directory(&place).unwrap().is_some());
        std::fs::set_permissions(&place, Permissions::from_mode(0o770)).unwrap();
        assert!(shared_directory(&place).unwrap().is_none());
        let link = temp.path().join("link");
        std::fs::set_permissions(&place, Permissions::from_mode(0o700)).unwrap();
        symlink(&place, &link).unwrap();
        assert!(shared_directory(&link).unwrap().is_none());
        assert!(
            shared_directory(&temp.path().join("none/locks"))
                .unwrap()
                .is_none()
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_removed_lock_file_is_created_again() {
        let temp = tempfile::tempdir().unwrap();
        let top = temp.path().join("locks");
        let place = shared_directory(&top).unwrap().unwrap();
        let first = lock_shared((&top, &place), "a").unwrap().unwrap();
        let path = top.join("a");
        let waiting =
            std::thread::spawn(move || lock_shared((&top, &place), "a").unwrap().unwrap());
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
    fn a_directory_with_two_names_has_one_lock() {
        let temp = tempfile::tempdir().unwrap();
        std::fs::create_dir(temp.path().join("a")).unwrap();
        symlink("a", temp.path().join("b")).unwrap();
        for rest in ["x", "new/x"] {
            let [a, b] = ["a", "b"].map(|top| temp.path().join(top).join(rest));
            assert_ne!(a, b);
            assert_eq!(shared_identity(&a), shared_identity(&b));
            assert_eq!(stripes(&a)[1], stripes(&b)[1]);
            assert_ne!(shared_identity(&a), shared_identity(&a.with_file_name("y")));
        }
    }

    #[test]
    fn only_permanent_failures_skip_the_shared_locks() {
        use nix::libc;
        let check = |number: i32, expected: bool| {
            let error = io::Error::from_raw_os_error(number);
            assert_eq!(is_permanent(&error), expected, "{error}");
        };
        for number in [
            libc::ENOSPC,
            libc::EDQUOT,
            libc::EROFS,
            libc::EACCES,
            libc::ENOLCK,
        ] {
            check(number, true);
        }
        for number in [
            libc::EMFILE,
            libc::ENFILE,
            libc::ENOMEM,
            libc::EIO,
            libc::EINTR,
        ] {
            check(number, false);
        }
    }

    #[test]
    fn special_files_as_locks_are_skipped() {
        let temp = tempfile::tempdir().unwrap();
        let top = temp.path().join("locks");
        let place = shared_directory(&top).unwrap().unwrap();
        std::fs::create_dir(top.join("a")).unwrap();
        assert!(lock_shared((&top, &place), "a").unwrap().is_none());
    }
}
