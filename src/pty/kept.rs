//! What is kept of a shell to make its commands cheap.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

use nix::sys::stat::{FileStat, fstat};

use super::kept_files::KeptFiles;

/// What one shell was found to be, and what would have to be made for every command.
#[derive(Debug)]
pub(super) struct Kept {
    /// What the kernel shows about the shell.
    pub(super) files: KeptFiles,
    /// The device and number of the shell's FIFO.
    pub(super) fifo: (u64, u64),
    /// Whether marks go to the descriptor on which the shell keeps the terminal.
    pub(super) has_terminal: AtomicBool,
    /// Whether the kernel gives no copies of the shell's descriptors.
    #[cfg(target_os = "linux")]
    pub(super) refuses_copies: AtomicBool,
    /// The lines of a command, cut where its number belongs.
    pub(super) lines: OnceLock<Vec<String>>,
}

impl Kept {
    /// Makes that of a new shell.
    ///
    /// # Errors
    /// When the system does not know the FIFO.
    pub(super) fn of(pid: i32, fifo: &OwnedFd) -> io::Result<Self> {
        Ok(Self {
            files: KeptFiles::of(pid),
            fifo: identity(&fstat(fifo)?),
            has_terminal: AtomicBool::new(false),
            #[cfg(target_os = "linux")]
            refuses_copies: AtomicBool::new(false),
            lines: OnceLock::new(),
        })
    }
}

/// Names a file.
pub(super) fn identity(file: &FileStat) -> (u64, u64) {
    (file.st_dev, file.st_ino)
}
