//! The terminal while a question stands on it: nothing that is typed is shown, and its modes are restored at the end.
//!
//! Keys are read here and not with crossterm's events: those read for ever from a terminal that is gone, and leave
//! a pasted value in memory.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, Instant};

use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use crossterm::style::Print;
use crossterm::terminal::{Clear, ClearType};
use crossterm::{Command, ExecutableCommand};
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
use super::keys::{Key, Keys};
use crate::cli::screen::is_dumb;
use crate::limits;

/// The signal of a terminal that is gone.
const HANGUP: u8 = 1;

/// Reason why a question has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unanswered {
    Declined,
    Timeout,
    Unavailable,
}

impl From<io::Error> for Unanswered {
    fn from(_: io::Error) -> Self {
        Self::Unavailable
    }
}

impl From<Errno> for Unanswered {
    fn from(_: Errno) -> Self {
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
    keys: Keys,
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
            keys: Keys::new(),
            outside: outside.clone(),
            deadline: Instant::now() + limits::PROMPT_TIMEOUT,
            question: String::new(),
            breaks_run,
            was_interrupted: false,
        };
        tty.enter()?;
        Ok(tty)
    }

    /// Sets raw mode, once the program is in the foreground and no other one asks.
    fn enter(&mut self) -> Result<(), Unanswered> {
        self.come_to_front()?;
        self.lock()?;
        let modes = tcgetattr(&self.terminal)?;
        if is_echoing(&modes) {
            self.prior = modes;
        }
        let mut modes = self.prior.clone();
        cfmakeraw(&mut modes);
        tcsetattr(&self.terminal, SetArg::TCSANOW, &modes)?;
        self.deadline = Instant::now() + limits::PROMPT_TIMEOUT;
        self.command(EnableBracketedPaste)?;
        self.command(Print('\r'))?;
        Ok(self.command(Clear(ClearType::CurrentLine))?)
    }

    /// Stops the job, as the system stops every program in the background that wants the terminal, until it is in
    /// the foreground. The system would stop it again before it could act on a signal that ends it.
    fn come_to_front(&self) -> Result<(), Unanswered> {
        while tcgetpgrp(&self.terminal)? != getpgrp() {
            if !has_shell() {
                return Err(Unanswered::Unavailable);
            }
            killpg(getpgrp(), Signal::SIGTTOU)?;
            std::thread::sleep(limits::KEY_WAIT);
            if self.outside.cancel.is_cancelled() {
                return Err(Unanswered::Declined);
            }
        }
        Ok(())
    }

    fn lock(&mut self) -> Result<(), Unanswered> {
        let Some(device) = &self.device else {
            return Ok(());
        };
        let mut is_told = false;
        while let Err(TryLockError::WouldBlock) = device.try_lock() {
            self.check_time()?;
            if !std::mem::replace(&mut is_told, true) {
                let text =
                    "\r\nkaryi: waits for the question that stands on this terminal already\r\n";
                (&self.terminal).write_all(text.as_bytes())?;
            }
            std::thread::sleep(limits::KEY_WAIT);
        }
        Ok(())
    }

    /// Restores the modes, unless another program has the terminal meanwhile.
    fn leave(&mut self) {
        if tcgetpgrp(&self.terminal) == Ok(getpgrp()) {
            let _ = self.command(DisableBracketedPaste);
            let _ = self.terminal.write_all(b"\r\n");
            if self.was_interrupted && self.has_typed_interrupt() {
                self.cancel_run();
            }
            let _ = tcflush(&self.terminal, FlushArg::TCIFLUSH);
            let _ = tcsetattr(&self.terminal, SetArg::TCSANOW, &self.prior);
        }
        if let Some(device) = &self.device {
            let _ = device.unlock();
        }
    }

    /// Sends the terminal a control sequence, if it understands any.
    fn command(&mut self, command: impl Command) -> io::Result<()> {
        if !is_dumb() {
            self.terminal.execute(command)?;
        }
        Ok(())
    }

    /// Shows a text.
    pub(super) fn show(&mut self, text: &str) -> Result<(), Unanswered> {
        let text = text.replace('\n', "\r\n");
        self.terminal.write_all(text.as_bytes())?;
        Ok(self.terminal.flush()?)
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
        loop {
            while let Some(key) = self.keys.next(true) {
                if key.is_break() {
                    return Err(self.interrupt());
                }
            }
            self.check_time()?;
            if Instant::now() >= end || !self.is_readable(limits::TYPING_PAUSE)? {
                break;
            }
            self.read()?;
        }
        self.keys = Keys::new();
        Ok(())
    }

    /// Waits for the next key of the answer.
    pub(super) fn key(&mut self) -> Result<Key, Unanswered> {
        loop {
            self.check_time()?;
            let key = match self.keys.next(false) {
                Some(key) => key,
                None if self.is_readable(limits::KEY_WAIT)? => {
                    self.read()?;
                    continue;
                }
                None => match self.keys.next(true) {
                    Some(key) => key,
                    None => {
                        self.hide_again()?;
                        continue;
                    }
                },
            };
            match key {
                Key::Control('c') => return Err(self.interrupt()),
                Key::Control('z') => self.stop()?,
                key => return Ok(key),
            }
        }
    }

    /// Returns true when more was typed already.
    pub(super) fn has_more(&self) -> Result<bool, Unanswered> {
        Ok(!self.keys.is_empty() || self.is_readable(limits::NO_GRACE)?)
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

    /// Takes the first Ctrl+C as an answer; a second one ends the run, as for a job.
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

    /// Returns true when Ctrl+C is among the keys that were typed already.
    fn has_typed_interrupt(&mut self) -> bool {
        loop {
            while let Some(key) = self.keys.next(true) {
                if key.is_break() {
                    return true;
                }
            }
            let is_readable = self.is_readable(limits::NO_GRACE).unwrap_or(false);
            if !is_readable || self.read().is_err() || self.keys.is_empty() {
                return false;
            }
        }
    }

    /// Stops the job where a shell waits for it.
    fn stop(&mut self) -> Result<(), Unanswered> {
        if has_shell() {
            self.leave();
            killpg(getpgrp(), Signal::SIGTSTP)?;
            // Another thread may take the signal a moment later.
            std::thread::sleep(limits::KEY_WAIT);
            self.enter()?;
            self.show(&self.question.clone())?;
        }
        Ok(())
    }

    /// Asks again, hidden, when the program was stopped and somebody else changed the modes.
    fn hide_again(&mut self) -> Result<(), Unanswered> {
        if is_echoing(&tcgetattr(&self.terminal)?) {
            self.enter()?;
            self.show(&self.question.clone())?;
        }
        Ok(())
    }

    fn is_readable(&self, patience: Duration) -> Result<bool, Unanswered> {
        let timeout = PollTimeout::try_from(patience).unwrap_or(PollTimeout::MAX);
        let mut polled = [PollFd::new(self.terminal.as_fd(), PollFlags::POLLIN)];
        match poll(&mut polled, timeout) {
            Ok(0) | Err(Errno::EINTR) => return Ok(false),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        match polled[0].revents() == Some(PollFlags::POLLIN) {
            true => Ok(true),
            false => Err(self.hang_up()),
        }
    }

    fn read(&mut self) -> Result<(), Unanswered> {
        let mut chunk = Zeroizing::new([0; Keys::CHUNK]);
        match self.terminal.read(chunk.as_mut_slice()) {
            Ok(0) => Err(self.hang_up()),
            Ok(length) => {
                self.keys.add(&chunk[..length]);
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(_) => Err(self.hang_up()),
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

/// Opens the device of the terminal, which is the same file for all programs on it.
fn device() -> Option<File> {
    let streams: [&dyn AsFd; 3] = [&io::stderr(), &io::stdout(), &io::stdin()];
    let path = streams
        .iter()
        .find_map(|stream| ttyname(stream.as_fd()).ok())?;
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(O_NOCTTY).open(path).ok()
}
