//! A cheaper way to run commands in bash.
//!
//! bash keeps a descriptor of the terminal for itself. A script that runs on copies of it need not open the terminal,
//! and its mark goes to the FIFO that is the standard output of bash between commands (`mark_fifo`). A command can
//! close either descriptor, or make the terminal one that cannot be opened again; then all lines use the terminal's
//! path, which fails where a script would fail, too. A program can also change the flags of all copies, such as
//! O_NONBLOCK, as ssh and node do. So only a script that is alone on the terminal gets the descriptor, and its flags
//! are restored before the next one.

use std::io;
use std::os::fd::OwnedFd;
#[cfg(target_os = "linux")]
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
#[cfg(target_os = "linux")]
use std::thread::sleep;
#[cfg(target_os = "linux")]
use std::time::Instant;

use nix::sys::stat::{FileStat, Mode, fstat};
#[cfg(target_os = "linux")]
use nix::{fcntl::OFlag, libc::EBADF};

#[cfg(target_os = "linux")]
use karyi_core::limits;

#[cfg(target_os = "linux")]
use crate::shell::bash::TERMINAL_DESCRIPTOR;
use crate::shell::{Dialect, SessionPaths};
use crate::terminal::marks::Mark;
use crate::terminal::procfs_handles::ProcfsHandles;
#[cfg(target_os = "linux")]
use crate::wait::syscall::{self, Blocked};

/// State of the cheaper way for one shell, and data that would cost time in every command.
#[derive(Debug)]
pub(crate) struct FastPath {
    /// Open files of `/proc` about the shell.
    pub(crate) procfs: ProcfsHandles,
    /// Device and inode of the shell's FIFO.
    pub(crate) fifo: (u64, u64),
    pid: i32,
    /// True if scripts run on the shell's own descriptor of the terminal, with marks in the FIFO.
    is_enabled: AtomicBool,
    /// A copy of that descriptor.
    #[cfg(target_os = "linux")]
    terminal: OnceLock<OwnedFd>,
    /// A copy of the shell's standard input.
    #[cfg(target_os = "linux")]
    input: OnceLock<OwnedFd>,
    /// True if the kernel does not compare descriptors.
    #[cfg(target_os = "linux")]
    refuses_comparing: AtomicBool,
    /// True if the kernel does not let us copy the shell's descriptors.
    #[cfg(target_os = "linux")]
    refuses_copies: AtomicBool,
    /// The two lines of a command, split where its number goes.
    lines: OnceLock<[Vec<String>; 2]>,
}

impl FastPath {
    /// Creates the state for a new shell, disabled.
    ///
    /// # Errors
    /// The FIFO cannot be inspected.
    pub(crate) fn of(pid: i32, fifo: &OwnedFd) -> io::Result<Self> {
        Ok(Self {
            procfs: ProcfsHandles::of(pid),
            fifo: identity(&fstat(fifo)?),
            pid,
            is_enabled: AtomicBool::new(false),
            #[cfg(target_os = "linux")]
            terminal: OnceLock::new(),
            #[cfg(target_os = "linux")]
            input: OnceLock::new(),
            #[cfg(target_os = "linux")]
            refuses_comparing: AtomicBool::new(false),
            #[cfg(target_os = "linux")]
            refuses_copies: AtomicBool::new(false),
            lines: OnceLock::new(),
        })
    }

    /// Enables the cheaper way if the shell keeps a usable descriptor of the terminal and its marks go to the FIFO.
    #[cfg(target_os = "linux")]
    pub(crate) fn enable_if_possible(
        &self,
        dialect: &dyn Dialect,
        paths: &SessionPaths,
        process: Option<&OwnedFd>,
    ) {
        let is_at = |descriptor: i32, path: &Path| {
            let entry = format!("/proc/{}/fd/{descriptor}", self.pid);
            std::fs::read_link(entry).is_ok_and(|found| found == path)
        };
        if !dialect.keeps_terminal()
            || !is_at(TERMINAL_DESCRIPTOR, &paths.terminal)
            || !self.procfs.lists_children()
        {
            return;
        }
        // The first mark went to the terminal's path: on a busy machine it is read before the shell has restored its
        // standard output.
        let marks = paths.file("marks");
        let until = Instant::now() + limits::REPAIR_TIMEOUT;
        while !is_at(1, &marks) && !self.waits_for_line() && Instant::now() < until {
            sleep(limits::WAIT_SCAN_MIN);
        }
        if !is_at(1, &marks) {
            return;
        }
        let copy_of = |number| crate::sys::descriptor_of(process?, number).ok();
        if let Some(input) = copy_of(0).filter(|input| self.is_fifo(input)) {
            let _ = self.input.set(input);
        }
        if let Some(terminal) = copy_of(TERMINAL_DESCRIPTOR).filter(has_default_flags)
            && self.terminal.set(terminal).is_ok()
        {
            self.is_enabled.store(true, Ordering::Relaxed);
        }
    }

    /// Returns true if the shell reads its next line, and thus changes nothing by itself any more.
    #[cfg(target_os = "linux")]
    fn waits_for_line(&self) -> bool {
        let blocked = syscall::blocked_in(self.pid, self.pid);
        matches!(blocked, Err(_) | Ok(Blocked::Read(_) | Blocked::Wait(..)))
    }

    /// Returns true if a descriptor is open on the shell's FIFO.
    #[cfg(target_os = "linux")]
    fn is_fifo(&self, descriptor: &OwnedFd) -> bool {
        fstat(descriptor).is_ok_and(|file| identity(&file) == self.fifo)
    }

    /// Returns true if a copy and a descriptor of the shell are one open file; `None` where the kernel does not tell.
    #[cfg(target_os = "linux")]
    fn still_has(&self, number: i32, copy: &OwnedFd) -> Option<bool> {
        if self.refuses_comparing.load(Ordering::Relaxed) {
            return None;
        }
        let is_same = crate::sys::is_copied_from(self.pid, number, copy);
        // A closed descriptor is an answer as well.
        if is_same
            .as_ref()
            .is_err_and(|error| error.raw_os_error() == Some(EBADF))
        {
            return Some(false);
        }
        if is_same.is_err() {
            self.refuses_comparing.store(true, Ordering::Relaxed);
        }
        is_same.ok()
    }

    /// Returns true if the shell still has the descriptor of the terminal. Without it no script runs, and the mark in
    /// the FIFO would report a wrong status.
    #[cfg(target_os = "linux")]
    fn keeps_terminal(&self, process: Option<&OwnedFd>) -> bool {
        let Some(terminal) = self.terminal.get() else {
            return false;
        };
        self.still_has(TERMINAL_DESCRIPTOR, terminal)
            .unwrap_or_else(|| {
                let copy =
                    process.and_then(|p| crate::sys::descriptor_of(p, TERMINAL_DESCRIPTOR).ok());
                let both = copy.and_then(|copy| Some((fstat(copy).ok()?, fstat(terminal).ok()?)));
                both.is_some_and(|(found, ours)| identity(&found) == identity(&ours))
            })
    }

    #[cfg(not(target_os = "linux"))]
    fn keeps_terminal(&self, _: Option<&OwnedFd>) -> bool {
        false
    }

    /// Not supported on this platform.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn enable_if_possible(
        &self,
        _: &dyn Dialect,
        _: &SessionPaths,
        _: Option<&OwnedFd>,
    ) {
    }

    /// Returns true if the shell can save its own descriptors: it does so above the one it copies.
    #[cfg(target_os = "linux")]
    fn has_room(&self) -> bool {
        const MOST: u64 = TERMINAL_DESCRIPTOR as u64 + 4;
        crate::sys::descriptor_limit(self.pid).is_ok_and(|limit| limit >= MOST)
    }

    #[cfg(not(target_os = "linux"))]
    fn has_room(&self) -> bool {
        false
    }

    /// Restores the flags of the descriptor if a program has changed them.
    #[cfg(target_os = "linux")]
    fn restore_terminal_flags(&self) {
        use nix::fcntl::{FcntlArg, fcntl};
        if let Some(terminal) = self.terminal.get()
            && !has_default_flags(terminal)
        {
            let _ = fcntl(terminal, FcntlArg::F_SETFL(OFlag::O_RDWR));
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn restore_terminal_flags(&self) {}

    /// Makes scripts and marks use the terminal's path: the shell's own descriptors are not reliable.
    pub(crate) fn disable(&self) {
        self.is_enabled.store(false, Ordering::Relaxed);
    }

    /// Returns the lines that run the script file this way, if it is enabled. The script must be alone on the
    /// terminal.
    pub(crate) fn lines(
        &self,
        dialect: &dyn Dialect,
        paths: &SessionPaths,
        process: Option<&OwnedFd>,
        number: u64,
    ) -> Option<[String; 2]> {
        if !self.is_enabled() || !self.has_room() {
            return None;
        }
        if !self.keeps_terminal(process) {
            self.disable();
            return None;
        }
        self.restore_terminal_flags();
        let parts = self.lines.get_or_init(|| {
            // No path contains this character.
            let lines = dialect.kept_terminal_lines(paths, "\0");
            lines
                .unwrap_or_default()
                .map(|line| line.split('\0').map(str::to_owned).collect())
        });
        let number = number.to_string();
        Some(parts.each_ref().map(|parts| parts.join(&number)))
    }

    /// Returns true if the cheaper way is enabled.
    fn is_enabled(&self) -> bool {
        self.is_enabled.load(Ordering::Relaxed)
    }

    /// Returns true if a mark came although the shell cannot open the terminal any more, which the next script needs.
    pub(crate) fn contradicts(&self, mark: &Mark, terminal: &OwnedFd) -> bool {
        let owner = Mode::S_IRUSR | Mode::S_IWUSR;
        let opens = || {
            let found = fstat(terminal);
            found.is_ok_and(|file| Mode::from_bits_truncate(file.st_mode).contains(owner))
        };
        self.is_enabled() && (mark.is_restricted || !opens())
    }

    /// Returns true if a cheap check shows that the shell's standard input is its FIFO.
    pub(crate) fn has_input(&self, process: Option<&OwnedFd>) -> bool {
        #[cfg(target_os = "linux")]
        if let Some(input) = self.input.get()
            && self.still_has(0, input) == Some(true)
        {
            return true;
        }
        // Copying the descriptor costs half as much as resolving its path.
        let input = self.copy_input(process).and_then(|copy| fstat(copy).ok());
        let input = input.or_else(|| self.procfs.input());
        input.is_some_and(|input| identity(&input) == self.fifo)
    }

    #[cfg(target_os = "linux")]
    fn copy_input(&self, process: Option<&OwnedFd>) -> Option<OwnedFd> {
        if self.refuses_copies.load(Ordering::Relaxed) {
            return None;
        }
        let copy = crate::sys::descriptor_of(process?, 0);
        // Some kernels would log every further attempt.
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
}

/// Returns true if a descriptor has the flags of a terminal: blocking, for reading and writing.
#[cfg(target_os = "linux")]
fn has_default_flags(descriptor: &OwnedFd) -> bool {
    use nix::fcntl::{FcntlArg, fcntl};
    let unusual = OFlag::O_NONBLOCK | OFlag::O_ASYNC | OFlag::O_APPEND | OFlag::O_DIRECT;
    let flags = fcntl(descriptor, FcntlArg::F_GETFL).map(OFlag::from_bits_retain);
    flags.is_ok_and(|flags| !flags.intersects(unusual) && flags & OFlag::O_ACCMODE == OFlag::O_RDWR)
}

fn identity(file: &FileStat) -> (u64, u64) {
    // The type the standard library uses, with which this is compared.
    #[allow(
        clippy::unnecessary_cast,
        clippy::cast_sign_loss,
        reason = "macOS numbers devices with a sign"
    )]
    let device = file.st_dev as u64;
    (device, file.st_ino)
}
