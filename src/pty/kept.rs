//! What is kept of a shell to make its commands cheap.
//!
//! bash keeps a descriptor of the terminal for itself, and a mark printed there costs no opening of
//! the terminal. A command can close it, or make the terminal one that the next script could not be
//! run on; then marks go to the terminal by its name again, which fails where a script would fail,
//! too.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::fcntl::OFlag;
use nix::sys::stat::{FileStat, Mode, fstat};

use super::kept_files::KeptFiles;
use super::marks::Mark;
use super::shell::{KEPT_TERMINAL, Kind, Places};

/// What one shell was found to be, and what would have to be made for every command.
#[derive(Debug)]
pub(super) struct Kept {
    /// What the kernel shows about the shell.
    pub(super) files: KeptFiles,
    /// The device and number of the shell's FIFO.
    pub(super) fifo: (u64, u64),
    pid: i32,
    /// Whether marks go to the descriptor on which the shell keeps the terminal.
    has_terminal: AtomicBool,
    /// Whether the kernel gives no copies of the shell's descriptors.
    #[cfg(target_os = "linux")]
    refuses_copies: AtomicBool,
    /// The lines of a command, cut where its number belongs.
    lines: OnceLock<Vec<String>>,
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
            pid,
            has_terminal: AtomicBool::new(false),
            #[cfg(target_os = "linux")]
            refuses_copies: AtomicBool::new(false),
            lines: OnceLock::new(),
        })
    }

    /// Finds out whether the shell keeps a descriptor of the terminal that marks can be printed to.
    pub(super) fn find_terminal(&self, kind: Kind, terminal: &Path) {
        let entry = format!("/proc/{}/fd/{KEPT_TERMINAL}", self.pid);
        let is_ours = fs::read_link(entry).is_ok_and(|path| path == terminal);
        let keeps = kind == Kind::Bash && is_ours && self.is_blocking(KEPT_TERMINAL);
        self.has_terminal.store(keeps, Ordering::Relaxed);
    }

    /// Has marks go to the terminal by its name: the shell's own descriptor is not to be relied on.
    pub(super) fn distrust_terminal(&self) {
        self.has_terminal.store(false, Ordering::Relaxed);
    }

    /// Returns the lines that run the script file and print the command's mark there, if marks go
    /// there.
    pub(super) fn lines(&self, kind: Kind, places: &Places, number: u64) -> Option<String> {
        if !self.has_terminal() {
            return None;
        }
        let parts = self.lines.get_or_init(|| {
            // No path has this character.
            let lines = kind.lines_with_kept_terminal(places, "\0");
            lines.split('\0').map(str::to_owned).collect()
        });
        Some(parts.join(&number.to_string()))
    }

    /// Whether marks go to the descriptor the shell keeps.
    fn has_terminal(&self) -> bool {
        self.has_terminal.load(Ordering::Relaxed)
    }

    /// Whether a mark came to the descriptor the shell keeps although the shell cannot open the
    /// terminal any more, as it must for the next script.
    pub(super) fn is_misled_by(&self, mark: &Mark, terminal: &OwnedFd) -> bool {
        let owner = Mode::S_IRUSR | Mode::S_IWUSR;
        let opens = || {
            let found = fstat(terminal);
            found.is_ok_and(|file| Mode::from_bits_truncate(file.st_mode).contains(owner))
        };
        self.has_terminal() && (mark.is_restricted || !opens())
    }

    /// Whether the shell has its FIFO as its input, so far as that can be seen at a glance.
    pub(super) fn has_input(&self, process: Option<&OwnedFd>) -> bool {
        // To take a copy of the descriptor is half the work of following its name.
        let input = self.copy_input(process).and_then(|copy| fstat(copy).ok());
        let input = input.or_else(|| self.files.input());
        input.is_some_and(|input| identity(&input) == self.fifo)
    }

    #[cfg(target_os = "linux")]
    fn copy_input(&self, process: Option<&OwnedFd>) -> Option<OwnedFd> {
        if self.refuses_copies.load(Ordering::Relaxed) {
            return None;
        }
        let copy = super::sys::descriptor_of(process?, 0);
        // Asked again for every command, some kernels would put that into their log.
        let is_refused = |error: &io::Error| error.kind() == io::ErrorKind::PermissionDenied;
        if copy.as_ref().is_err_and(is_refused) {
            self.refuses_copies.store(true, Ordering::Relaxed);
        }
        copy.ok()
    }

    #[cfg(not(target_os = "linux"))]
    fn copy_input(&self, _process: Option<&OwnedFd>) -> Option<OwnedFd> {
        None
    }

    /// Whether the shell waits when a descriptor of it takes no more: else half a mark may come.
    fn is_blocking(&self, descriptor: i32) -> bool {
        let path = format!("/proc/{}/fdinfo/{descriptor}", self.pid);
        let text = fs::read_to_string(path).unwrap_or_default();
        let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
        let flags = flags.and_then(|flags| i32::from_str_radix(flags.trim(), 8).ok());
        flags.is_some_and(|flags| !OFlag::from_bits_retain(flags).contains(OFlag::O_NONBLOCK))
    }
}

fn identity(file: &FileStat) -> (u64, u64) {
    // As the standard library spells it, with which this is compared.
    #[allow(
        clippy::unnecessary_cast,
        clippy::cast_sign_loss,
        reason = "macOS numbers devices with a sign"
    )]
    let device = file.st_dev as u64;
    (device, file.st_ino)
}
