//! The terminal while a question stands on it: nothing that is typed is shown, and its modes are restored at the end.
//!
//! Keys are read here and not with crossterm's events: those read for ever from a terminal that is gone, and leave
//! a pasted value in memory.

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

use super::Outside;
use super::keys::{Key, read_key};
use crate::cli::screen::is_dumb;
use karyi_core::limits;

/// The signal of a terminal that is gone.
const HANGUP: u8 = 1;
/// Bytes to read at once.
const CHUNK: usize = 1024;

/// Reason why a question has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unanswered {
    Declined,
    Timeout,
    Unavailable,
}

impl<E: std::error::Error> From<E> for Unanswered {
    fn from(_: E) -> Self {
        Self::Unavailable
    }
}

/// Opens the terminal of the program.
pub(super) fn open() -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(O_NOCTTY);
    options.open("/dev/tty")
}

/// The terminal in raw mode, with one question on it.
pub(super) struct Tty {
    terminal: File,
    /// The modes that are restored.
    prior: Termios,
    /// The locked device: one program of ours asks at a time. None where no stream leads to the terminal.
    device: Option<File>,
    /// Bytes that were read, and the part of them that is not a key yet.
    read: Zeroizing<[u8; CHUNK]>,
    unused: std::ops::Range<usize>,
    outside: Outside,
    deadline: Instant,
    /// The question, which is shown again when the program was stopped.
    question: String,
    /// True when Ctrl+C ends the run instead of declining.
    breaks_run: bool,
    /// True once Ctrl+C was typed.
    was_interrupted: bool,
}

impl Tty {
    /// Takes the terminal for a question.
    pub(super) fn open(outside: &Outside, breaks_run: bool) -> Result<Self, Unanswered> {
        let terminal = open()?;
        let mut tty = Self {
            prior: tcgetattr(&terminal)?,
            terminal,
            device: device(),
            read: Zeroizing::new([0; CHUNK]),
            unused: 0..0,
            outside: outside.clone(),
            deadline: Instant::now() + limits::PROMPT_TIMEOUT,
            question: String::new(),
            breaks_run,
            was_interrupted: false,
        };
        tty.enter()?;
        Ok(tty)
    }

    /// Sets raw mode, once the program is in the foreground and no other one of ours asks.
    fn enter(&mut self) -> Result<(), Unanswered> {
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
        // Pastes are told from typing, and the line is cleared.
        self.control("\x1b[?2004h\r\x1b[2K")?;
        self.show(&self.question.clone())
    }

    /// Stops the job, as the system stops every program in the background that wants the terminal, until it is in
    /// the foreground. The system would stop it again before it could act on a signal that ends it.
    fn come_to_front(&self) -> Result<(), Unanswered> {
        while tcgetpgrp(&self.terminal)? != getpgrp() {
            if !has_shell() {
                return Err(Unanswered::Unavailable);
            }
            stop_job(Signal::SIGTTOU)?;
            self.check_time()?;
        }
        Ok(())
    }

    /// Restores the modes, unless another program has the terminal meanwhile.
    fn leave(&mut self) {
        if tcgetpgrp(&self.terminal) == Ok(getpgrp()) {
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

    /// Sends the terminal control sequences, if it understands any.
    fn control(&mut self, sequences: &str) -> Result<(), Unanswered> {
        match is_dumb() {
            true => Ok(()),
            false => self.show(sequences),
        }
    }

    /// Shows a text.
    pub(super) fn show(&mut self, text: &str) -> Result<(), Unanswered> {
        let text = text.replace('\n', "\r\n");
        Ok(self.terminal.write_all(text.as_bytes())?)
    }

    /// Shows a question. What was typed before it stands there is no answer to it.
    pub(super) fn ask(&mut self, question: &str) -> Result<(), Unanswered> {
        self.settle()?;
        question.clone_into(&mut self.question);
        self.show(question)
    }

    /// Discards what is typed until the user pauses.
    pub(super) fn settle(&mut self) -> Result<(), Unanswered> {
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

    /// Waits for the next key of the answer.
    pub(super) fn key(&mut self) -> Result<Key, Unanswered> {
        loop {
            match self.next_key(limits::KEY_WAIT)? {
                Some(Key::Control('c')) => return Err(self.interrupt()),
                Some(Key::Control('z')) if has_shell() => {
                    self.leave();
                    stop_job(Signal::SIGTSTP)?;
                    self.enter()?;
                }
                Some(key) => return Ok(key),
                // The program was stopped, and somebody else changed the modes.
                None if is_echoing(&tcgetattr(&self.terminal)?) => self.enter()?,
                None => {}
            }
        }
    }

    /// Returns true when more was typed already.
    pub(super) fn has_more(&self) -> Result<bool, Unanswered> {
        Ok(!self.unused.is_empty() || self.is_readable(limits::NO_GRACE)?)
    }

    fn check_time(&self) -> Result<(), Unanswered> {
        if self.outside.cancel.is_cancelled() {
            return Err(Unanswered::Declined);
        }
        match Instant::now() < self.deadline {
            true => Ok(()),
            false => Err(Unanswered::Timeout),
        }
    }

    /// Takes the first Ctrl+C as an answer.
    fn interrupt(&mut self) -> Unanswered {
        self.was_interrupted = true;
        if self.breaks_run {
            self.cancel_run();
        }
        Unanswered::Declined
    }

    fn cancel_run(&self) {
        self.outside.received.note_interrupt();
        self.outside.cancel.cancel();
    }

    /// Returns the next key, if one comes within this time.
    fn next_key(&mut self, patience: Duration) -> Result<Option<Key>, Unanswered> {
        let mut first = Some(patience);
        read_key(&mut || self.byte(first.take().unwrap_or(limits::KEY_WAIT)))
    }

    fn byte(&mut self, patience: Duration) -> Result<Option<u8>, Unanswered> {
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

    fn is_readable(&self, patience: Duration) -> Result<bool, Unanswered> {
        let timeout = PollTimeout::try_from(patience).unwrap_or(PollTimeout::MAX);
        let mut polled = [PollFd::new(self.terminal.as_fd(), PollFlags::POLLIN)];
        match poll(&mut polled, timeout) {
            Ok(0) | Err(Errno::EINTR) => Ok(false),
            Ok(_) if polled[0].revents() == Some(PollFlags::POLLIN) => Ok(true),
            Ok(_) => Err(self.hang_up()),
            Err(error) => Err(error.into()),
        }
    }

    /// Ends the run as the signal of a terminal that is gone does, which may come later.
    fn hang_up(&self) -> Unanswered {
        self.outside.received.note_end(HANGUP);
        self.outside.cancel.cancel();
        Unanswered::Unavailable
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        self.leave();
    }
}

fn is_echoing(modes: &Termios) -> bool {
    let shown = LocalFlags::ECHO | LocalFlags::ICANON;
    modes.local_flags.intersects(shown)
}

/// Whether a shell waits for the job and can continue it.
fn has_shell() -> bool {
    let parent = Some(getppid());
    getsid(parent).is_ok_and(|session| getsid(None) == Ok(session))
        && getpgid(parent).is_ok_and(|group| group != getpgrp())
}

/// Stops the job until its shell lets it go on.
fn stop_job(signal: Signal) -> Result<(), Unanswered> {
    killpg(getpgrp(), signal)?;
    // Another thread may take the signal a moment later.
    std::thread::sleep(limits::KEY_WAIT);
    Ok(())
}

/// Opens the device of the terminal, which is the same file for all programs on it.
fn device() -> Option<File> {
    let streams: [&dyn AsFd; 3] = [&io::stderr(), &io::stdout(), &io::stdin()];
    let mut paths = streams
        .iter()
        .filter_map(|stream| ttyname(stream.as_fd()).ok());
    let mut options = OpenOptions::new();
    let options = options.read(true).custom_flags(O_NOCTTY);
    options.open(paths.next()?).ok()
}
