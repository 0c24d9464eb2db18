//! Whose turn it is to ask on the terminal: one question at a time stands there, of whichever program.

use std::fs::{File, OpenOptions, TryLockError, read_dir};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use nix::errno::Errno;
use nix::libc::O_NOCTTY;
use nix::sys::signal::{Signal, killpg};
use nix::sys::termios::tcgetsid;
use nix::unistd::{getpgrp, getsid, tcgetpgrp};

use super::patience::Patience;
use super::{Outside, Suspension};
use crate::limits;
use crate::pty::inherited;

/// Stands for the terminal of whichever program opens it.
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

/// Opens the device behind the terminal, which is the same one for all programs on it, wherever their
/// streams lead. A lock of what stands for all terminals would be one for them all.
fn open_device() -> Option<File> {
    let number = inherited::terminal_number().or_else(number_of_streams)?;
    let directories = ["/dev/pts", "/dev"]
        .iter()
        .filter_map(|path| read_dir(path).ok());
    let mut paths = directories.flatten().flatten().map(|entry| entry.path());
    // Another place may have a device of the same number: that of another system, in a container.
    paths.find_map(|path| {
        let found = std::fs::metadata(&path).ok()?;
        let is_it = found.file_type().is_char_device() && found.rdev() == number;
        let is_it = is_it && path != Path::new(CONTROLLING);
        let device = is_it.then(|| open_path(&path).ok()).flatten()?;
        is_own(device.as_fd()).then_some(device)
    })
}

/// Returns the number of the terminal where only a stream that leads there tells it.
fn number_of_streams() -> Option<u64> {
    let standard: [&dyn AsFd; 3] = [&io::stdin(), &io::stdout(), &io::stderr()];
    let own = standard.iter().find(|stream| is_own(stream.as_fd()))?;
    let stream = File::from(own.as_fd().try_clone_to_owned().ok()?);
    Some(stream.metadata().ok()?.rdev())
}

/// Whether it is the terminal of the program.
fn is_own(terminal: BorrowedFd<'_>) -> bool {
    tcgetsid(terminal).is_ok_and(|session| getsid(None) == Ok(session))
}

/// The turn to ask on the terminal. While one program has it the others wait.
pub(super) struct Turn {
    /// The terminal itself.
    pub(super) terminal: File,
    /// Whether others see the turn: whoever may not open the device of the terminal asks unseen.
    is_seen: bool,
    has_come: bool,
}

impl Turn {
    /// Opens the terminal and waits until no other program of ours asks there. Nothing comes of it when the
    /// wish to stop came first, or the time was over.
    pub(super) fn wait(outside: &Outside, patience: &Patience) -> io::Result<Option<Self>> {
        let device = open_device();
        let is_seen = device.is_some();
        let mut turn = Self {
            terminal: device.map_or_else(open, Ok)?,
            is_seen,
            has_come: false,
        };
        turn.take(outside, patience)?;
        Ok(turn.has_come.then_some(turn))
    }

    /// Gives the turn back where somebody else has the terminal, and waits for it again. Returns whether it
    /// came.
    pub(super) fn again(&mut self, outside: &Outside, patience: &Patience) -> io::Result<bool> {
        if !self.is_in_front()? {
            self.give_back()?;
            self.take(outside, patience)?;
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

    fn take(&mut self, outside: &Outside, patience: &Patience) -> io::Result<()> {
        let mut is_told = false;
        loop {
            // Whoever is stopped for being in the background must not have the turn.
            if !self.come_to_front(outside)? {
                return Ok(());
            }
            let result = self.is_seen.then(|| self.terminal.try_lock());
            if !matches!(result, Some(Err(TryLockError::WouldBlock))) {
                self.has_come = true;
                if self.is_in_front()? {
                    return Ok(());
                }
                self.give_back()?;
                continue;
            }
            if outside.cancel.is_cancelled() || patience.is_over() {
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

    /// Is stopped, as every program that wants the terminal, until the shell gives it the terminal. Returns
    /// whether that came before the wish to stop.
    ///
    /// # Errors
    /// The terminal is gone, or somebody else has it and the program cannot be stopped.
    fn come_to_front(&self, outside: &Outside) -> io::Result<bool> {
        while !self.is_in_front()? {
            // What woke the program may be a signal that ends it, which is heard a moment later.
            std::thread::sleep(limits::KEY_WAIT);
            if outside.cancel.is_cancelled() {
                return Ok(false);
            }
            if !self.is_in_front()? && !is_stopped(&outside.suspension)? {
                return Err(Errno::EIO.into());
            }
        }
        Ok(true)
    }
}

/// Stops the program as the system does that refuses it the terminal, with all of its job. The system itself,
/// asked for the terminal, would ask again by itself when the program goes on, and stop it again before it
/// could hear why. Returns when it went on; false if it cannot be stopped.
fn is_stopped(suspension: &Suspension) -> io::Result<bool> {
    let times = suspension.times();
    killpg(getpgrp(), Signal::SIGTTOU)?;
    Ok((0..limits::MOST_LOOKS_FOR_STOP).any(|_| {
        std::thread::sleep(limits::KEY_WAIT);
        suspension.times() != times
    }))
}
