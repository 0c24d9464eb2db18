//! The terminal while a question stands on it: nothing that is typed is shown, and whoever comes next
//! finds it as it was.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::libc::O_NOCTTY;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::termios::{
    FlushArg, LocalFlags, SetArg, Termios, cfmakeraw, tcdrain, tcflush, tcgetattr, tcgetsid,
    tcsetattr,
};
use nix::unistd::{getpgrp, getsid, tcgetpgrp, ttyname};
use zeroize::Zeroizing;

use super::Outside;
use super::keys::{Key, Keys};
use crate::limits;

const CONTROLLING: &str = "/dev/tty";
const PASTES_MARKED: &[u8] = b"\x1b[?2004h";
const PASTES_BARE: &[u8] = b"\x1b[?2004l";

/// Opens the terminal of the program.
pub(super) fn open() -> io::Result<File> {
    open_path(Path::new(CONTROLLING))
}

fn open_path(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(O_NOCTTY);
    options.open(path)
}

/// Opens the device behind the terminal. `/dev/tty` stands for the terminals of all programs, and a lock
/// of it for them all.
fn open_device() -> Option<File> {
    let standard: [&dyn AsFd; 3] = [&io::stdin(), &io::stdout(), &io::stderr()];
    standard
        .iter()
        .find_map(|stream| device_behind(stream.as_fd()))
}

fn device_behind(stream: BorrowedFd<'_>) -> Option<File> {
    let is_own = |terminal: BorrowedFd<'_>| {
        tcgetsid(terminal).is_ok_and(|session| getsid(None) == Ok(session))
    };
    let path = is_own(stream).then(|| ttyname(stream).ok()).flatten()?;
    let device = (path != Path::new(CONTROLLING))
        .then(|| open_path(&path).ok())
        .flatten()?;
    is_own(device.as_fd()).then_some(device)
}

/// Waits until no other program of ours asks on the terminal, and opens it. Until it is closed the others
/// wait. Nothing comes of it when the wish to stop or the deadline came first.
pub(super) fn wait_for_turn(outside: &Outside, deadline: Instant) -> io::Result<Option<File>> {
    let Some(mut device) = open_device() else {
        // Only whoever has no stream on the terminal asks without a lock.
        let terminal = open()?;
        come_to_front(&terminal);
        return Ok(Some(terminal));
    };
    // Whoever is stopped for being in the background must not have the lock.
    come_to_front(&device);
    let mut is_told = false;
    while let Err(std::fs::TryLockError::WouldBlock) = device.try_lock() {
        if outside.cancel.is_cancelled() || Instant::now() >= deadline {
            return Ok(None);
        }
        if !std::mem::replace(&mut is_told, true) {
            let text = "\r\nkaryi: waits for the question that stands on this terminal already\r\n";
            device.write_all(text.as_bytes())?;
        }
        std::thread::sleep(limits::KEY_WAIT);
    }
    Ok(Some(device))
}

/// Whether the program may use the terminal. One that is gone is nobody's.
fn is_in_front(terminal: &File) -> bool {
    tcgetpgrp(terminal).is_ok_and(|group| group == getpgrp())
}

/// Is stopped, as every program that wants the terminal, until the shell gives it the terminal.
fn come_to_front(terminal: &File) {
    if !is_in_front(terminal) {
        // It changes nothing. Whoever cannot be stopped hears of it with the next thing it does.
        let _ = tcdrain(terminal);
    }
}

/// Keeps the terminal in raw mode as long as it lives. Nothing that was typed before is read in it, and
/// nothing typed in it is left to whoever reads the terminal next.
pub(super) struct RawMode {
    terminal: File,
    /// How the terminal is given back.
    prior: Termios,
    keys: Keys,
}

impl RawMode {
    /// Takes a terminal.
    pub(super) fn enter(terminal: File) -> io::Result<Self> {
        let mut raw = Self {
            prior: tcgetattr(&terminal)?,
            terminal,
            keys: Keys::new(),
        };
        raw.hide()?;
        Ok(raw)
    }

    /// Takes the terminal again after somebody else had it, who gets it back as it is now.
    pub(super) fn again(&mut self) -> io::Result<()> {
        come_to_front(&self.terminal);
        let modes = tcgetattr(&self.terminal)?;
        if !hides(&modes) {
            self.prior = modes;
        }
        self.hide()
    }

    fn hide(&mut self) -> io::Result<()> {
        let mut modes = self.prior.clone();
        cfmakeraw(&mut modes);
        tcsetattr(&self.terminal, SetArg::TCSANOW, &modes)?;
        self.forget();
        self.terminal.write_all(PASTES_MARKED)
    }

    /// Whether nothing that is typed is shown: somebody else may have changed that.
    pub(super) fn is_hidden(&self) -> io::Result<bool> {
        Ok(hides(&tcgetattr(&self.terminal)?))
    }

    pub(super) fn show(&mut self, text: &str) -> io::Result<()> {
        let text = text.replace('\n', "\r\n");
        self.terminal.write_all(text.as_bytes())?;
        self.terminal.flush()
    }

    /// Throws away what was typed and did not become a key.
    pub(super) fn forget(&mut self) {
        self.keys = Keys::new();
        // Only a terminal that is gone refuses, and the next read tells that.
        let _ = tcflush(&self.terminal, FlushArg::TCIFLUSH);
    }

    /// Returns the next key, if one comes in time.
    ///
    /// # Errors
    /// The terminal is gone.
    pub(super) fn key(&mut self, patience: Duration) -> io::Result<Option<Key>> {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(key) = self.keys.next(false) {
                return Ok(Some(key));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if !self.is_readable(left)? {
                return Ok(self.keys.next(true));
            }
            self.read()?;
        }
    }

    /// Whether more was typed already.
    pub(super) fn has_more(&self) -> io::Result<bool> {
        Ok(!self.keys.is_empty() || self.is_readable(limits::NO_GRACE)?)
    }

    fn is_readable(&self, patience: Duration) -> io::Result<bool> {
        let timeout = PollTimeout::try_from(patience).unwrap_or(PollTimeout::MAX);
        let mut polled = [PollFd::new(self.terminal.as_fd(), PollFlags::POLLIN)];
        match poll(&mut polled, timeout) {
            Ok(0) | Err(Errno::EINTR) => return Ok(false),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let seen = polled[0].revents().unwrap_or(PollFlags::POLLERR);
        let is_gone = PollFlags::POLLHUP | PollFlags::POLLERR | PollFlags::POLLNVAL;
        match seen.intersects(is_gone) {
            true => Err(Errno::EIO.into()),
            false => Ok(true),
        }
    }

    fn read(&mut self) -> io::Result<()> {
        let mut chunk = Zeroizing::new([0; Keys::CHUNK]);
        match self.terminal.read(chunk.as_mut_slice()) {
            Ok(0) => return Err(Errno::EIO.into()),
            Ok(length) => self.keys.add(&chunk[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

fn hides(modes: &Termios) -> bool {
    !modes
        .local_flags
        .intersects(LocalFlags::ECHO | LocalFlags::ICANON)
}

impl Drop for RawMode {
    fn drop(&mut self) {
        // Whoever has the terminal meanwhile has set its modes, and this would stop us.
        if is_in_front(&self.terminal) {
            let _ = self.terminal.write_all(PASTES_BARE);
            let _ = self.terminal.write_all(b"\r\n");
            self.forget();
            let _ = tcsetattr(&self.terminal, SetArg::TCSANOW, &self.prior);
        }
    }
}
