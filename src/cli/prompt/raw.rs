//! The terminal while a question stands on it: nothing that is typed is shown, and whoever comes next
//! finds it as it was.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use crossterm::style::Print;
use crossterm::terminal::{Clear, ClearType};
use crossterm::{Command, ExecutableCommand};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::termios::{
    FlushArg, LocalFlags, SetArg, Termios, cfmakeraw, tcflush, tcgetattr, tcsetattr,
};
use zeroize::Zeroizing;

use super::Outside;
use super::keys::{Key, Keys};
use super::patience::Patience;
use super::turn::Turn;
use crate::cli::screen::is_dumb;
use crate::limits;

/// Keeps the terminal in raw mode as long as it lives. Nothing that was typed before is read in it, and
/// nothing typed in it is left to whoever reads the terminal next.
pub(super) struct RawMode {
    turn: Turn,
    /// How the terminal is given back.
    prior: Termios,
    keys: Keys,
    /// Whether the terminal shows whatever is written to it as it stands.
    is_dumb: bool,
}

impl RawMode {
    /// Takes the terminal.
    pub(super) fn enter(turn: Turn) -> io::Result<Self> {
        let mut raw = Self {
            prior: tcgetattr(&turn.terminal)?,
            turn,
            keys: Keys::new(),
            is_dumb: is_dumb(),
        };
        raw.hide()?;
        Ok(raw)
    }

    /// Takes the terminal again after somebody else had it, who gets it back as it is now. Returns whether
    /// it is the program's turn again.
    pub(super) fn again(&mut self, outside: &Outside, patience: &Patience) -> io::Result<bool> {
        if !self.turn.again(outside, patience)? {
            return Ok(false);
        }
        let modes = tcgetattr(&self.turn.terminal)?;
        if !hides(&modes) {
            self.prior = modes;
        }
        self.hide()?;
        Ok(true)
    }

    fn hide(&mut self) -> io::Result<()> {
        let mut modes = self.prior.clone();
        cfmakeraw(&mut modes);
        tcsetattr(&self.turn.terminal, SetArg::TCSANOW, &modes)?;
        self.forget();
        self.command(EnableBracketedPaste)
    }

    /// Goes to the start of an empty line: what stood there is no longer true.
    pub(super) fn clear_line(&mut self) -> io::Result<()> {
        self.command(Print('\r'))?;
        self.command(Clear(ClearType::CurrentLine))
    }

    /// Tells the terminal something that is no text, if it can do more than print.
    fn command(&mut self, command: impl Command) -> io::Result<()> {
        if !self.is_dumb {
            self.turn.terminal.execute(command)?;
        }
        Ok(())
    }

    /// Whether the terminal is the program's and nothing that is typed is shown: somebody else may have
    /// changed that.
    pub(super) fn is_kept(&self) -> io::Result<bool> {
        Ok(self.turn.is_in_front()? && hides(&tcgetattr(&self.turn.terminal)?))
    }

    pub(super) fn show(&mut self, text: &str) -> io::Result<()> {
        let text = text.replace('\n', "\r\n");
        self.turn.terminal.write_all(text.as_bytes())?;
        self.turn.terminal.flush()
    }

    /// Throws away what was typed and did not become a key.
    pub(super) fn forget(&mut self) {
        self.keys = Keys::new();
        if self.turn.is_ours() {
            // Only a terminal that is gone refuses, and the next read tells that.
            let _ = tcflush(&self.turn.terminal, FlushArg::TCIFLUSH);
        }
    }

    /// Returns the next key, if one comes in time, and at once where somebody else has the terminal.
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
            if !self.turn.is_in_front()? {
                // What is typed is for somebody else, and reading would stop us while it is our turn.
                return Ok(None);
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
        let mut polled = [PollFd::new(self.turn.terminal.as_fd(), PollFlags::POLLIN)];
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
        match self.turn.terminal.read(chunk.as_mut_slice()) {
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
        if self.turn.is_ours() {
            let _ = self.command(DisableBracketedPaste);
            let _ = self.turn.terminal.write_all(b"\r\n");
            self.forget();
            let _ = tcsetattr(&self.turn.terminal, SetArg::TCSANOW, &self.prior);
        }
    }
}
