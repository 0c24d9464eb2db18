//! Scans what the job in the foreground does, through `/proc` where the kernel shows it, else by its terminal.

use nix::poll::PollFlags;
use nix::sys::termios::{LocalFlags, Termios, tcgetattr};
use nix::unistd::tcgetpgrp;

use karyi_core::secret::ByteSet;

use super::guess::Guess;
#[cfg(target_os = "linux")]
use super::scan::Scanner;
use super::watched_terminal::{
    Activity, WatchedTerminal, has_no_session, is_password_prompt, passes_unchanged, poll_slave,
};

impl WatchedTerminal<'_> {
    /// Scans once.
    pub(crate) fn scan(&self, scanner: &mut Scanner) -> Activity {
        // With unread input a blocked reader continues in a moment. The poll makes the kernel deliver input that is on
        // its way.
        let state = poll_slave(self.slave);
        if state.contains(PollFlags::POLLHUP) || has_no_session(self.master) {
            return Activity::HungUp;
        }
        let has_input = state.contains(PollFlags::POLLIN);
        match self.scan_job(scanner) {
            activity @ (Activity::ShellIdle | Activity::ShellSilent | Activity::Stopped) => {
                activity
            }
            _ if has_input => Activity::Busy,
            activity => activity,
        }
    }

    #[cfg(target_os = "linux")]
    fn scan_job(&self, scanner: &mut Scanner) -> Activity {
        if self.shows_syscalls {
            return self.scan_processes(scanner);
        }
        self.scan_terminal_only()
    }

    #[cfg(not(target_os = "linux"))]
    fn scan_job(&self, _scanner: &mut Scanner) -> Activity {
        self.scan_terminal_only()
    }

    /// Scans where the kernel shows no process.
    fn scan_terminal_only(&self) -> Activity {
        let is_shell = tcgetpgrp(self.master).is_ok_and(|group| group.as_raw() == self.shell);
        let guess = self.guess();
        // A shell that asks a question has read every line, too.
        if is_shell && self.has_taken_lines() && guess == Guess::Nothing {
            return Activity::ShellSilent;
        }
        Activity::Opaque(guess)
    }

    /// Returns true if the terminal the job reads is at a password prompt: it collects lines without echo.
    pub(crate) fn hides_input(&self, scanner: &Scanner) -> bool {
        let Ok(modes) = tcgetattr(self.master) else {
            return false;
        };
        is_password_prompt(&modes)
            || !modes.local_flags.contains(LocalFlags::ECHO) && scanner.hides_input_inside()
    }

    /// Returns true if bytes reach the job unchanged: neither our terminal nor an inner terminal that the job reads
    /// acts on one of them.
    pub(crate) fn passes_unchanged(&self, bytes: ByteSet, scanner: &Scanner) -> bool {
        let passes = |modes: &Termios| passes_unchanged(modes, bytes);
        bytes.is_empty()
            || tcgetattr(self.master).is_ok_and(|modes| passes(&modes))
                && scanner.modes_inside().is_none_or(|modes| passes(&modes))
    }
}

#[cfg(not(target_os = "linux"))]
impl WatchedTerminal<'_> {
    /// Not supported on this platform.
    pub(crate) fn kill_input_thief(&self, _pid: i32) {}

    /// Not supported on this platform.
    pub(crate) fn continue_stopped_copies(&self) -> bool {
        false
    }
}

/// Not supported on this platform.
#[cfg(not(target_os = "linux"))]
#[derive(Debug, Default)]
pub(crate) struct Scanner;

#[cfg(not(target_os = "linux"))]
impl Scanner {
    /// Returns false: inner terminals are unknown.
    fn hides_input_inside(&self) -> bool {
        false
    }

    /// Returns false: readers are unknown.
    pub(crate) fn has_seen_reading(&self, _pid: i32) -> bool {
        false
    }

    /// Returns `None`: the processor time of a job is unknown.
    pub(crate) fn processor_time(&self) -> Option<std::time::Duration> {
        None
    }

    /// Returns `None`: inner terminals are unknown.
    fn modes_inside(&self) -> Option<Termios> {
        None
    }
}
