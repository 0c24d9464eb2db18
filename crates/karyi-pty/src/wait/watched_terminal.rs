//! The terminal and the shell that wait detection scans, and the activities it can find.

use std::os::fd::{AsFd, OwnedFd};

use nix::poll::{PollFd, PollFlags, PollTimeout};
use nix::sys::termios::{InputFlags, LocalFlags, SpecialCharacterIndices, Termios, tcgetattr};
use nix::unistd::tcgetpgrp;

use karyi_core::secret::ByteSet;

use super::guess::Guess;
use crate::sys;

/// Result of one scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Activity {
    /// The shell waits for its next line: nothing runs.
    ShellIdle,
    /// The shell may wait for its next line: its own group is in the foreground and it has read every line.
    ShellSilent,
    /// A thread is blocked in a read of the terminal; the number identifies the thread and its place.
    Reading(u64),
    /// A program of another user runs, and the terminal's modes are those of a password prompt.
    Hidden,
    /// A thread waits for the terminal with a time limit, or for other sources as well.
    Accepting,
    /// Every process of the job is stopped.
    Stopped,
    /// Some processes of the job are stopped, others are not.
    PartlyStopped,
    /// The kernel does not show the job; this is a guess from the terminal.
    Opaque(Guess),
    /// The terminal was hung up: input and output are impossible.
    HungUp,
    /// The process with this id reads the shell's input.
    StealsInput(i32),
    /// None of these.
    Busy,
}

impl Activity {
    /// Returns true if the job reads input but may go on without it.
    pub(super) fn accepts_input(self) -> bool {
        matches!(self, Self::Accepting | Self::Opaque(Guess::Keys))
    }
}

/// The terminal and the shell to scan.
#[derive(Debug)]
pub(crate) struct WatchedTerminal<'a> {
    pub(crate) shell: i32,
    pub(crate) master: &'a OwnedFd,
    /// The slave side of the terminal.
    pub(crate) slave: &'a OwnedFd,
    /// The shell's standard input.
    pub(crate) fifo: &'a OwnedFd,
    /// True if the kernel shows the system calls of threads.
    pub(crate) shows_syscalls: bool,
    /// True if the output ends within a line, as after a question.
    pub(crate) is_line_open: bool,
}

impl WatchedTerminal<'_> {
    /// Returns true if the shell has read every line it got.
    pub(super) fn has_taken_lines(&self) -> bool {
        sys::bytes_waiting(self.fifo).is_ok_and(|count| count == 0)
    }

    /// Guesses from the terminal alone.
    pub(super) fn guess(&self) -> Guess {
        tcgetattr(self.master).map_or(Guess::Nothing, |modes| {
            Guess::from_terminal(&modes, self.is_line_open)
        })
    }

    /// Returns true if the terminal collects lines.
    pub(crate) fn is_canonical(&self) -> bool {
        tcgetattr(self.master).is_ok_and(|modes| modes.local_flags.contains(LocalFlags::ICANON))
    }

    /// Returns true if the terminal collects a line without showing it.
    pub(crate) fn hides_line(&self) -> bool {
        tcgetattr(self.master).is_ok_and(|modes| is_password_prompt(&modes))
    }
}

pub(super) fn is_password_prompt(modes: &Termios) -> bool {
    modes.local_flags.contains(LocalFlags::ICANON) && !modes.local_flags.contains(LocalFlags::ECHO)
}

/// Returns true if a terminal in these modes passes bytes unchanged.
pub(super) fn passes_unchanged(modes: &Termios, bytes: ByteSet) -> bool {
    use SpecialCharacterIndices as Place;
    let (local, input) = (modes.local_flags, modes.input_flags);
    let is_canonical = local.contains(LocalFlags::ICANON);
    let mut acted_on: Vec<Place> = Vec::new();
    if is_canonical {
        let lines = [
            Place::VEOF,
            Place::VEOL,
            Place::VEOL2,
            Place::VERASE,
            Place::VKILL,
        ];
        acted_on.extend(lines);
    }
    if is_canonical && local.contains(LocalFlags::IEXTEN) {
        acted_on.extend([Place::VWERASE, Place::VREPRINT, Place::VLNEXT]);
    }
    if local.contains(LocalFlags::ISIG) {
        acted_on.extend([Place::VINTR, Place::VQUIT, Place::VSUSP]);
    }
    if input.contains(InputFlags::IXON) {
        acted_on.extend([Place::VSTART, Place::VSTOP]);
    }
    let is_special = |place: &Place| {
        let byte = modes.control_chars.get(*place as usize).copied();
        byte.is_some_and(|byte| byte != 0 && bytes.has(byte))
    };
    let cuts = input.contains(InputFlags::ISTRIP) && (0x80..=u8::MAX).any(|byte| bytes.has(byte));
    // A program that reads keys takes them for keys.
    let is_key = |byte: u8| bytes.has(byte) && !(is_canonical && byte == b'\t');
    !cuts && !acted_on.iter().any(is_special) && !(0..b' ').chain([0x7f]).any(is_key)
}

/// Returns true if the terminal echoes input.
pub(crate) fn shows_input(master: impl AsFd) -> bool {
    tcgetattr(master).is_ok_and(|modes| modes.local_flags.contains(LocalFlags::ECHO))
}

/// Returns true if the terminal belongs to no session.
pub(crate) fn has_no_session(master: &OwnedFd) -> bool {
    tcgetpgrp(master).is_ok_and(|group| group.as_raw() == 0)
}

/// Polls the terminal for unread input and for a hang-up.
pub(super) fn poll_slave(slave: &OwnedFd) -> PollFlags {
    let mut polled = [PollFd::new(slave.as_fd(), PollFlags::POLLIN)];
    let _ = nix::poll::poll(&mut polled, PollTimeout::ZERO);
    let [polled] = polled;
    polled.revents().unwrap_or(PollFlags::empty())
}
