//! The terminal during a question: input is not echoed, and the modes are restored at the end.
//!
//! Keys are not read with crossterm's events, which loop forever on a lost terminal and leave pasted values
//! in memory.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::libc::O_NOCTTY;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, killpg};
use nix::sys::termios::{
    FlushArg, LocalFlags, SetArg, Termios, cfmakeraw, tcflush, tcgetattr, tcsetattr,
};
use nix::unistd::{getpgid, getpgrp, getppid, getsid, tcgetpgrp, ttyname};
use zeroize::Zeroizing;

use super::StopSource;
use super::keys::{Key, read_key};
use crate::cli::screen::is_dumb;
use karyi_core::limits;
use karyi_pty::between_starts;

/// Signal of a lost terminal.
const HANGUP: u8 = 1;
/// Bytes to read at once.
const CHUNK: usize = 1024;

/// The reason why a question has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoAnswer {
    Declined,
    Timeout,
    Unavailable,
}

impl<E: std::error::Error> From<E> for NoAnswer {
    fn from(_: E) -> Self {
        Self::Unavailable
    }
}

/// Opens the terminal of the program.
pub(in crate::cli) fn open() -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(O_NOCTTY);
    options.open("/dev/tty")
}

/// The terminal in raw mode, during one question.
pub(super) struct Tty {
    terminal: File,
    /// Modes to restore.
    prior: Termios,
    /// The locked device: only one of our processes asks at a time. `None` when no stream is a terminal.
    device: Option<File>,
    /// Bytes read, and the part of them not decoded yet.
    read: Zeroizing<[u8; CHUNK]>,
    unused: std::ops::Range<usize>,
    stop_source: StopSource,
    deadline: Instant,
    /// The question, shown again after the program was stopped.
    question: String,
    /// True when Ctrl+C ends the run instead of declining.
    breaks_run: bool,
    /// True once Ctrl+C was typed.
    was_interrupted: bool,
}

impl Tty {
    /// Opens the terminal for a question.
    pub(super) fn open(stop_source: &StopSource, breaks_run: bool) -> Result<Self, NoAnswer> {
        let terminal = open()?;
        let mut tty = Self {
            prior: tcgetattr(&terminal)?,
            terminal,
            device: device(),
            read: Zeroizing::new([0; CHUNK]),
            unused: 0..0,
            stop_source: stop_source.clone(),
            deadline: Instant::now() + limits::PROMPT_TIMEOUT,
            question: String::new(),
            breaks_run,
            was_interrupted: false,
        };
        tty.enter()?;
        Ok(tty)
    }

    /// Sets raw mode, once the program is in the foreground and no other process of ours asks.
    fn enter(&mut self) -> Result<(), NoAnswer> {
        self.come_to_front()?;
        while let Some(Err(TryLockError::WouldBlock)) = self.device.as_ref().map(File::try_lock) {
            self.check_time()?;
            std::thread::sleep(limits::KEY_WAIT);
        }
        let modes = tcgetattr(&self.terminal)?;
        if is_echoing(&modes) {
            self.prior = modes;
        }
        let mut modes = self.prior.clone();
        cfmakeraw(&mut modes);
        tcsetattr(&self.terminal, SetArg::TCSANOW, &modes)?;
        self.deadline = Instant::now() + limits::PROMPT_TIMEOUT;
        // Distinguish pastes from typing, and clear the line.
        self.control("\x1b[?2004h\r\x1b[2K")?;
        self.show(&self.question.clone())
    }

    /// Stops the process, as the system does with background programs that use the terminal, until it is in the
    /// foreground. The system itself would stop it again before it could handle a signal.
    fn come_to_front(&self) -> Result<(), NoAnswer> {
        while tcgetpgrp(&self.terminal)? != getpgrp() {
            if !has_shell() {
                return Err(NoAnswer::Unavailable);
            }
            stop_job(Signal::SIGTTOU)?;
            self.check_time()?;
        }
        Ok(())
    }

    /// Restores the modes, unless another program has the terminal.
    fn leave(&mut self) {
        if is_in_front(&self.terminal) {
            let _ = self.control("\x1b[?2004l");
            let _ = self.show("\n");
            // A second Ctrl+C ends the run, as for a job.
            while self.was_interrupted
                && let Ok(Some(key)) = self.next_key(limits::NO_GRACE)
            {
                if matches!(key, Key::Control('c')) {
                    self.cancel_run();
                }
            }
            let _ = tcflush(&self.terminal, FlushArg::TCIFLUSH);
            let _ = tcsetattr(&self.terminal, SetArg::TCSANOW, &self.prior);
        }
        if let Some(device) = &self.device {
            let _ = device.unlock();
        }
    }

    /// Sends control sequences, if the terminal supports them.
    fn control(&mut self, sequences: &str) -> Result<(), NoAnswer> {
        match is_dumb() {
            true => Ok(()),
            false => self.show(sequences),
        }
    }

    /// Shows a text.
    pub(super) fn show(&mut self, text: &str) -> Result<(), NoAnswer> {
        let text = text.replace('\n', "\r\n");
        Ok(self.terminal.write_all(text.as_bytes())?)
    }

    /// Shows a question. Input typed before it is discarded.
    pub(super) fn ask(&mut self, question: &str) -> Result<(), NoAnswer> {
        self.settle()?;
        question.clone_into(&mut self.question);
        self.show(question)
    }

    /// Discards input until the user pauses.
    pub(super) fn settle(&mut self) -> Result<(), NoAnswer> {
        let end = Instant::now() + limits::TYPING_LIMIT;
        while let Some(key) = self.next_key(limits::TYPING_PAUSE)? {
            if matches!(key, Key::Control('c')) {
                return Err(self.interrupt());
            }
            if Instant::now() >= end && self.unused.is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// Waits for the next key.
    pub(super) fn key(&mut self) -> Result<Key, NoAnswer> {
        loop {
            match self.next_key(limits::KEY_WAIT)? {
                Some(Key::Control('c')) => return Err(self.interrupt()),
                Some(Key::Control('z')) if has_shell() => {
                    self.leave();
                    stop_job(Signal::SIGTSTP)?;
                    self.enter()?;
                }
                Some(key) => return Ok(key),
                // The program was stopped, and another program changed the modes.
                None if is_echoing(&tcgetattr(&self.terminal)?) => self.enter()?,
                None => {}
            }
        }
    }

    /// Returns true when more input is available.
    pub(super) fn has_more(&self) -> Result<bool, NoAnswer> {
        Ok(!self.unused.is_empty() || self.is_readable(limits::NO_GRACE)?)
    }

    fn check_time(&self) -> Result<(), NoAnswer> {
        if self.stop_source.cancel.is_cancelled() {
            return Err(NoAnswer::Declined);
        }
        match Instant::now() < self.deadline {
            true => Ok(()),
            false => Err(NoAnswer::Timeout),
        }
    }

    /// Treats the first Ctrl+C as an answer.
    fn interrupt(&mut self) -> NoAnswer {
        self.was_interrupted = true;
        if self.breaks_run {
            self.cancel_run();
        }
        NoAnswer::Declined
    }

    fn cancel_run(&self) {
        self.stop_source.received.note_interrupt();
        self.stop_source.cancel.cancel();
    }

    /// Returns the next key, if one arrives in time.
    fn next_key(&mut self, patience: Duration) -> Result<Option<Key>, NoAnswer> {
        let mut first = Some(patience);
        read_key(&mut || self.byte(first.take().unwrap_or(limits::KEY_WAIT)))
    }

    fn byte(&mut self, patience: Duration) -> Result<Option<u8>, NoAnswer> {
        if self.unused.is_empty() {
            self.check_time()?;
            if !self.is_readable(patience)? {
                return Ok(None);
            }
            match self.terminal.read(self.read.as_mut_slice()) {
                Ok(length @ 1..) => self.unused = 0..length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(None),
                Ok(0) | Err(_) => return Err(self.hang_up()),
            }
        }
        Ok(self.unused.next().map(|at| self.read[at]))
    }

    fn is_readable(&self, patience: Duration) -> Result<bool, NoAnswer> {
        let timeout = PollTimeout::try_from(patience).unwrap_or(PollTimeout::MAX);
        let mut polled = [PollFd::new(self.terminal.as_fd(), PollFlags::POLLIN)];
        match poll(&mut polled, timeout) {
            Ok(0) | Err(Errno::EINTR) => Ok(false),
            Ok(_) if polled[0].revents() == Some(PollFlags::POLLIN) => Ok(true),
            Ok(_) => Err(self.hang_up()),
            Err(error) => Err(error.into()),
        }
    }

    /// Ends the run as the hangup signal does, which may arrive later.
    fn hang_up(&self) -> NoAnswer {
        self.stop_source.received.note_end(HANGUP);
        self.stop_source.cancel.cancel();
        NoAnswer::Unavailable
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Returns true if a terminal in these modes shows what is typed, or collects lines.
pub(in crate::cli) fn is_echoing(modes: &Termios) -> bool {
    let shown = LocalFlags::ECHO | LocalFlags::ICANON;
    modes.local_flags.intersects(shown)
}

/// Returns true when the program is in the foreground of the terminal.
pub(in crate::cli) fn is_in_front(terminal: impl AsFd) -> bool {
    tcgetpgrp(terminal) == Ok(getpgrp())
}

/// Returns true when a shell waits for the job and can continue it.
pub(in crate::cli) fn has_shell() -> bool {
    let parent = Some(getppid());
    getsid(parent).is_ok_and(|session| getsid(None) == Ok(session))
        && getpgid(parent).is_ok_and(|group| group != getpgrp())
}

/// Stops the job until its shell continues it, but for a shell of karyi's own that is just being started: it leaves the
/// job, so nothing would continue it.
pub(in crate::cli) fn stop_job(signal: Signal) -> nix::Result<()> {
    between_starts(|| killpg(getpgrp(), signal))?;
    // Another thread may receive the signal a moment later.
    std::thread::sleep(limits::KEY_WAIT);
    Ok(())
}

/// Opens the terminal device, which is the same file for all programs on it.
fn device() -> Option<File> {
    let streams: [&dyn AsFd; 3] = [&io::stderr(), &io::stdout(), &io::stdin()];
    let mut paths = streams
        .iter()
        .filter_map(|stream| ttyname(stream.as_fd()).ok());
    let mut options = OpenOptions::new();
    let options = options.read(true).custom_flags(O_NOCTTY);
    options.open(paths.next()?).ok()
}
