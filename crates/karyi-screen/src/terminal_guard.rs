//! Takes a terminal for a screen and gives it back: at the end, after a panic, and while another program has it.

use std::fs::File;
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

use nix::sys::termios::{
    InputFlags, LocalFlags, SetArg, SpecialCharacterIndices, Termios, tcgetattr, tcsetattr,
};
use nix::unistd::{getpgrp, tcgetpgrp};

/// Turns on pastes as one input, reports of the focus, and kitty's encoding of ambiguous keys.
const ENTER: &[u8] = b"\x1b[?2004h\x1b[?1004h\x1b[>1u";
/// Turns them off, ends a frame, shows the cursor, and turns wrapping on.
const LEAVE: &[u8] = b"\x1b[?2026l\x1b[0m\x1b[<u\x1b[?1004l\x1b[?2004l\x1b[?7h\x1b[?25h";

/// The terminal to give back, while a screen has it.
static TAKEN: Mutex<Option<Taken>> = Mutex::new(None);

struct Taken {
    terminal: File,
    prior: Termios,
}

/// The terminal of a screen. Dropping it gives the terminal back.
pub struct TerminalGuard {
    terminal: File,
}

impl TerminalGuard {
    /// Takes a terminal.
    ///
    /// # Errors
    /// It is none, or it is gone.
    pub fn take(terminal: File) -> io::Result<Self> {
        let guard = Self { terminal };
        guard.enter()?;
        Ok(guard)
    }

    /// Takes the terminal again, after [`give_back`].
    ///
    /// # Errors
    /// It is gone.
    pub fn enter(&self) -> io::Result<()> {
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        if taken.is_some() {
            return Ok(());
        }
        let prior = tcgetattr(&self.terminal)?;
        let mut modes = prior.clone();
        // What is printed stays as it is: a message of another thread must not run down the screen in steps.
        let collected = LocalFlags::ECHO | LocalFlags::ECHONL | LocalFlags::ICANON;
        let signals = LocalFlags::ISIG | LocalFlags::IEXTEN;
        modes.local_flags.remove(collected | signals);
        let changed = InputFlags::ICRNL | InputFlags::INLCR | InputFlags::IGNCR;
        modes.input_flags.remove(changed | InputFlags::IXON);
        modes.control_chars[SpecialCharacterIndices::VMIN as usize] = 1;
        modes.control_chars[SpecialCharacterIndices::VTIME as usize] = 0;
        let terminal = self.terminal.try_clone()?;
        tcsetattr(&self.terminal, SetArg::TCSANOW, &modes)?;
        *taken = Some(Taken { terminal, prior });
        (&self.terminal).write_all(ENTER)
    }

    /// Turns off what the screen had turned on, and keeps the modes: nothing that is typed meanwhile is shown.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn lend(&self) -> io::Result<()> {
        (&self.terminal).write_all(LEAVE)
    }

    /// Turns it on again.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn reclaim(&self) -> io::Result<()> {
        (&self.terminal).write_all(ENTER)
    }
}

impl Drop for TerminalGuard {
    fn drop(&mut self) {
        give_back();
    }
}

/// Returns true while a screen has the terminal: what others print would damage it.
#[must_use]
pub fn is_taken() -> bool {
    TAKEN.try_lock().is_ok_and(|taken| taken.is_some())
}

/// Gives the terminal back, if a screen has it.
pub fn give_back() {
    let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(Taken {
        mut terminal,
        prior,
    }) = taken.take()
    {
        // A terminal that is gone needs nothing.
        let _ = terminal.write_all(LEAVE);
        // The modes are another program's when that is in the foreground, and a change would stop this one.
        if tcgetpgrp(&terminal).is_ok_and(|group| group != getpgrp()) {
            return;
        }
        let _ = tcsetattr(&terminal, SetArg::TCSANOW, &prior);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::pty::openpty;
    use std::io::Read as _;

    fn read(master: &mut File, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        master.read_exact(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn the_terminal_is_given_back_as_it_was() {
        let pty = openpty(None, None).unwrap();
        let (mut master, slave) = (File::from(pty.master), File::from(pty.slave));
        let before = tcgetattr(&slave).unwrap();
        let guard = TerminalGuard::take(slave.try_clone().unwrap()).unwrap();
        let during = tcgetattr(&slave).unwrap();
        assert!(
            !during
                .local_flags
                .intersects(LocalFlags::ECHO | LocalFlags::ISIG)
        );
        assert_eq!(read(&mut master, ENTER.len()), ENTER);
        assert!(is_taken());
        guard.lend().unwrap();
        assert_eq!(read(&mut master, LEAVE.len()), LEAVE);
        assert_eq!(tcgetattr(&slave).unwrap(), during);
        guard.reclaim().unwrap();
        assert_eq!(read(&mut master, ENTER.len()), ENTER);
        give_back();
        assert!(!is_taken());
        assert_eq!(read(&mut master, LEAVE.len()), LEAVE);
        assert_eq!(tcgetattr(&slave).unwrap(), before);
        guard.enter().unwrap();
        assert_eq!(read(&mut master, ENTER.len()), ENTER);
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _guard = guard;
            std::panic::resume_unwind(Box::new("a test"));
        }));
        assert!(panicked.is_err());
        assert_eq!(read(&mut master, LEAVE.len()), LEAVE);
        assert_eq!(tcgetattr(&slave).unwrap(), before);
    }
}
