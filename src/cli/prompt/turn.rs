//! Whose turn it is to ask on the terminal: one question at a time stands there, of whichever program.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Instant;

use nix::errno::Errno;
use nix::libc::O_NOCTTY;
use nix::sys::termios::{tcdrain, tcgetsid};
use nix::unistd::{getpgrp, getsid, tcgetpgrp, ttyname};

use super::Outside;
use crate::limits;

const CONTROLLING: &str = "/dev/tty";

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

/// The turn to ask on the terminal. While one program has it the others wait.
pub(super) struct Turn {
    /// The terminal itself.
    pub(super) terminal: File,
    /// Whether others see the turn: only whoever has no stream on the terminal asks unseen.
    is_seen: bool,
    has_come: bool,
}

impl Turn {
    /// Opens the terminal and waits until no other program of ours asks there. Nothing comes of it when the
    /// wish to stop or the deadline came first.
    pub(super) fn wait(outside: &Outside, deadline: Instant) -> io::Result<Option<Self>> {
        let device = open_device();
        let is_seen = device.is_some();
        let mut turn = Self {
            terminal: device.map_or_else(open, Ok)?,
            is_seen,
            has_come: false,
        };
        turn.take(outside, deadline)?;
        Ok(turn.has_come.then_some(turn))
    }

    /// Gives the turn back where somebody else has the terminal, and waits for it again. Returns whether it
    /// came.
    pub(super) fn again(&mut self, outside: &Outside, deadline: Instant) -> io::Result<bool> {
        if !self.is_in_front()? {
            self.give_back()?;
            self.take(outside, deadline)?;
        }
        Ok(self.has_come)
    }

    /// Whether the terminal is the program's to change: it is its turn, and nobody else is in front.
    pub(super) fn is_ours(&self) -> bool {
        self.has_come && self.is_in_front().unwrap_or(false)
    }

    /// Whether the program may use the terminal.
    ///
    /// # Errors
    /// The terminal is gone.
    pub(super) fn is_in_front(&self) -> io::Result<bool> {
        Ok(tcgetpgrp(&self.terminal)? == getpgrp())
    }

    fn take(&mut self, outside: &Outside, deadline: Instant) -> io::Result<()> {
        let mut is_told = false;
        loop {
            // Whoever is stopped for being in the background must not have the turn.
            self.come_to_front()?;
            let result = self.is_seen.then(|| self.terminal.try_lock());
            if !matches!(result, Some(Err(TryLockError::WouldBlock))) {
                self.has_come = true;
                if self.is_in_front()? {
                    return Ok(());
                }
                self.give_back()?;
                continue;
            }
            if outside.cancel.is_cancelled() || Instant::now() >= deadline {
                return Ok(());
            }
            if !std::mem::replace(&mut is_told, true) {
                let text =
                    "\r\nkaryi: waits for the question that stands on this terminal already\r\n";
                self.terminal.write_all(text.as_bytes())?;
            }
            std::thread::sleep(limits::KEY_WAIT);
        }
    }

    fn give_back(&mut self) -> io::Result<()> {
        self.has_come = false;
        if self.is_seen {
            self.terminal.unlock()?;
        }
        Ok(())
    }

    /// Is stopped, as every program that wants the terminal, until the shell gives it the terminal.
    ///
    /// # Errors
    /// The terminal is gone, or somebody else has it and the program cannot be stopped.
    fn come_to_front(&self) -> io::Result<()> {
        while !self.is_in_front()? {
            // It changes nothing, and stops whoever is in the background.
            match tcdrain(&self.terminal) {
                Ok(()) if self.is_in_front()? => {}
                Ok(()) => return Err(Errno::EIO.into()),
                Err(Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}
