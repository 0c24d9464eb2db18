//! Keeps the session's thread asleep while a caller reads the terminal instead.
//!
//! The thread polls this gate instead of the terminal and the mark FIFO. The gate is readable when one of them is,
//! unless it is shut. Opening and shutting it wakes no thread.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

#[cfg(target_os = "linux")]
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};

/// Descriptor that is readable when one of its sources is, unless it is shut.
#[derive(Debug)]
pub(crate) struct OutputGate {
    #[cfg(target_os = "linux")]
    epoll: Epoll,
    #[cfg(not(target_os = "linux"))]
    never: std::convert::Infallible,
}

#[cfg(target_os = "linux")]
impl OutputGate {
    /// Creates an open gate; returns `None` when the system has no descriptor left.
    pub(crate) fn new(sources: [&OwnedFd; 2]) -> Option<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).ok()?;
        for source in sources {
            let event = EpollEvent::new(EpollFlags::EPOLLIN, 0);
            epoll.add(source, event).ok()?;
        }
        Some(Self { epoll })
    }

    /// Hides the sources; returns false if that fails.
    pub(crate) fn shut(&self, sources: [&OwnedFd; 2]) -> bool {
        let is_hidden = |source| {
            let mut event = EpollEvent::new(EpollFlags::empty(), 0);
            self.epoll.modify(source, &mut event).is_ok()
        };
        sources.into_iter().all(is_hidden)
    }

    /// Shows the sources again.
    pub(crate) fn open(&self, sources: [&OwnedFd; 2]) {
        for source in sources {
            let mut event = EpollEvent::new(EpollFlags::EPOLLIN, 0);
            let _ = self.epoll.modify(source, &mut event);
        }
    }
}

#[cfg(target_os = "linux")]
impl AsFd for OutputGate {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.0.as_fd()
    }
}

#[cfg(not(target_os = "linux"))]
impl OutputGate {
    /// Returns `None`: only the session's thread reads the terminal.
    pub(crate) fn new(_sources: [&OwnedFd; 2]) -> Option<Self> {
        None
    }

    /// Never called.
    pub(crate) fn shut(&self, _sources: [&OwnedFd; 2]) -> bool {
        match self.never {}
    }

    /// Never called.
    pub(crate) fn open(&self, _sources: [&OwnedFd; 2]) {
        match self.never {}
    }
}

#[cfg(not(target_os = "linux"))]
impl AsFd for OutputGate {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self.never {}
    }
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

    use super::*;

    #[test]
    fn only_an_open_gate_shows_output() {
        let pair = nix::pty::openpty(None, None).unwrap();
        let (pipe_reader, pipe_writer) = nix::unistd::pipe().unwrap();
        let sources = [&pair.master, &pipe_reader];
        let gate = OutputGate::new(sources).unwrap();
        let is_seen = |wait_ms: u16| {
            let mut polled = [PollFd::new(gate.as_fd(), PollFlags::POLLIN)];
            poll(&mut polled, PollTimeout::from(wait_ms)).unwrap() > 0
        };
        for (source, writer) in [(&pipe_reader, &pipe_writer), (&pair.master, &pair.slave)] {
            assert!(!is_seen(0));
            assert!(gate.shut(sources));
            nix::unistd::write(writer, b"x").unwrap();
            assert!(!is_seen(50));
            gate.open(sources);
            assert!(is_seen(10_000));
            assert!(gate.shut(sources));
            assert!(!is_seen(0));
            nix::unistd::read(source, &mut [0; 9]).unwrap();
            gate.open(sources);
        }
    }
}
