//! Locks between karyi processes of one user.
//!
//! Two edits of one file wait for each other, also from different processes: each path has one of a
//! fixed number of lock files, taken in order, so that nobody waits in a circle. The system frees
//! them when a process ends, however it ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::error::{ErrorCode, ToolError};
use crate::limits;

/// Lock files for paths: enough that two files rarely share one.
const STRIPES: u64 = 251;

/// Locks that are held until this is dropped.
#[derive(Debug)]
pub(super) struct Held {
    _files: Vec<File>,
}

/// Locks paths for a change; waits for others.
///
/// # Errors
/// `edit_busy` when that takes too long, or the lock files cannot be made.
pub(super) fn lock_paths(directory: &Path, paths: &[&Path]) -> Result<Held, ToolError> {
    let mut stripes: Vec<u64> = paths.iter().map(|path| stripe(path)).collect();
    stripes.sort_unstable();
    stripes.dedup();
    let lock = |stripe: &u64| lock_file(&directory.join(format!("path-{stripe}")));
    Ok(Held {
        _files: stripes.iter().map(lock).collect::<Result<_, _>>()?,
    })
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
    let io = |error: io::Error| ToolError::from_io(path, &error);
    let file = open(path).map_err(io)?;
    let since = Instant::now();
    let mut pause = limits::EDIT_LOCK_PAUSE_MIN;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(io(error)),
            Err(TryLockError::WouldBlock) if since.elapsed() > limits::EDIT_LOCK_TIMEOUT => {
                let message = "another karyi has been changing the same files for too long";
                return Err(ToolError::new(ErrorCode::EditBusy, message));
            }
            Err(TryLockError::WouldBlock) => {
                std::thread::sleep(pause);
                pause = (pause * 2).min(limits::EDIT_LOCK_PAUSE_MAX);
            }
        }
    }
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
