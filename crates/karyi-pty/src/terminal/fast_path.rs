//! What is kept of a shell to make its commands cheap.
//!
//! bash keeps a descriptor of the terminal for itself. A script run on copies of it costs no opening of
//! the terminal, and its mark goes where bash prints between commands (`told`). A command can close
//! either, or make the terminal one that could not be opened again; then all goes to the terminal by
//! its name, which fails where a script would fail, too. And a program can change how all copies of it work - make it return at
//! once instead of waiting, as ssh and node do. So it is lent only to a script that is alone on the
//! terminal, and is set back before the next one.

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

/// What one shell was found to be, and what would have to be made for every command.
#[derive(Debug)]
pub(crate) struct FastPath {
    /// What the kernel shows about the shell.
    pub(crate) procfs: ProcfsHandles,
    /// The device and number of the shell's FIFO.
    pub(crate) fifo: (u64, u64),
    pid: i32,
    /// True if scripts go to the descriptor on which the shell keeps the terminal, and marks beside it.
    is_enabled: AtomicBool,
    /// A copy of that descriptor.
    #[cfg(target_os = "linux")]
    terminal: OnceLock<OwnedFd>,
    /// A copy of the shell's standard input.
    #[cfg(target_os = "linux")]
    input: OnceLock<OwnedFd>,
    /// True if the kernel does not compare the shell's descriptors with copies of them.
    #[cfg(target_os = "linux")]
    refuses_comparing: AtomicBool,
    /// True if the kernel gives no copies of the shell's descriptors.
    #[cfg(target_os = "linux")]
    refuses_copies: AtomicBool,
    /// The two lines of a command, cut where its number belongs.
    lines: OnceLock<[Vec<String>; 2]>,
}

impl FastPath {
    /// Makes that of a new shell.
    ///
    /// # Errors
    /// When the system does not know the FIFO.
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

    /// Finds out whether the shell keeps a descriptor of the terminal that can be lent, and tells its
    /// marks beside the terminal.
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
        // The mark that says that the shell is there went to the terminal by its name: on a busy machine
        // it is read before the shell has put back what it prints to between commands.
        let marks = paths.file("marks");
        let until = Instant::now() + limits::MEND_TIMEOUT;
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

    /// Returns true if the shell reads its next line: it changes nothing by itself any more.
    #[cfg(target_os = "linux")]
    fn waits_for_line(&self) -> bool {
        let blocked = syscall::blocked_in(self.pid, self.pid);
        !matches!(blocked, Ok(Blocked::Other | Blocked::Child))
    }

    /// Returns true if a descriptor is open on the shell's FIFO.
    #[cfg(target_os = "linux")]
    fn is_fifo(&self, descriptor: &OwnedFd) -> bool {
        fstat(descriptor).is_ok_and(|file| identity(&file) == self.fifo)
    }

    /// Returns whether the shell still has under a number what a copy was made of; unknown where the kernel does
    /// not tell.
    #[cfg(target_os = "linux")]
    fn still_has(&self, number: i32, copy: &OwnedFd) -> Option<bool> {
        if self.refuses_comparing.load(Ordering::Relaxed) {
            return None;
        }
        let is_same = crate::sys::is_copied_from(self.pid, number, copy);
        // A descriptor that was closed is an answer as well.
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

    /// Returns true if the shell still keeps the descriptor of the terminal. Without it no script runs, and the
    /// mark, which is told elsewhere, would give its command a status that nothing has.
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

    /// Elsewhere nothing tells what it is.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn enable_if_possible(
        &self,
        _: &dyn Dialect,
        _: &SessionPaths,
        _: Option<&OwnedFd>,
    ) {
    }

    /// Returns true if the shell can put its own descriptors aside: it does so behind the one it copies.
    #[cfg(target_os = "linux")]
    fn has_room(&self) -> bool {
        const MOST: u64 = TERMINAL_DESCRIPTOR as u64 + 4;
        crate::sys::descriptor_limit(self.pid).is_ok_and(|limit| limit >= MOST)
    }

    #[cfg(not(target_os = "linux"))]
    fn has_room(&self) -> bool {
        false
    }

    /// Sets the kept descriptor back to how it was found, if a program has changed that.
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

    /// Has scripts and marks go to the terminal by its name: the shell's own descriptors are not to be relied on.
    pub(crate) fn disable(&self) {
        self.is_enabled.store(false, Ordering::Relaxed);
    }

    /// Returns the lines that run the script file there and tell the command's mark, if they may.
    /// The script must be alone on the terminal.
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
            // No path has this character.
            let lines = dialect.kept_terminal_lines(paths, "\0");
            lines
                .unwrap_or_default()
                .map(|line| line.split('\0').map(str::to_owned).collect())
        });
        let number = number.to_string();
        Some(parts.each_ref().map(|parts| parts.join(&number)))
    }

    /// Returns true if scripts go to the descriptor the shell keeps.
    fn is_enabled(&self) -> bool {
        self.is_enabled.load(Ordering::Relaxed)
    }

    /// Returns true if a mark was told although the shell cannot open the terminal any more, as it must for the
    /// next script.
    pub(crate) fn contradicts(&self, mark: &Mark, terminal: &OwnedFd) -> bool {
        let owner = Mode::S_IRUSR | Mode::S_IWUSR;
        let opens = || {
            let found = fstat(terminal);
            found.is_ok_and(|file| Mode::from_bits_truncate(file.st_mode).contains(owner))
        };
        self.is_enabled() && (mark.is_restricted || !opens())
    }

    /// Returns true if the shell has its FIFO as its input, so far as that can be seen at a glance.
    pub(crate) fn has_input(&self, process: Option<&OwnedFd>) -> bool {
        #[cfg(target_os = "linux")]
        if let Some(input) = self.input.get()
            && self.still_has(0, input) == Some(true)
        {
            return true;
        }
        // To take a copy of the descriptor is half the work of following its name.
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
}

/// Returns true if a descriptor works as terminals do: waits until it can read or take all that is written.
#[cfg(target_os = "linux")]
fn has_default_flags(descriptor: &OwnedFd) -> bool {
    use nix::fcntl::{FcntlArg, fcntl};
    let unusual = OFlag::O_NONBLOCK | OFlag::O_ASYNC | OFlag::O_APPEND | OFlag::O_DIRECT;
    let flags = fcntl(descriptor, FcntlArg::F_GETFL).map(OFlag::from_bits_retain);
    flags.is_ok_and(|flags| !flags.intersects(unusual) && flags & OFlag::O_ACCMODE == OFlag::O_RDWR)
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
