//! Keeps the session's thread asleep while a caller reads the terminal in its place.
//!
//! The thread does not wait for the terminal itself but for this gate, which is readable when the
//! terminal is, unless it is shut. To open and to shut it wakes nobody.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

#[cfg(target_os = "linux")]
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};

/// Whether a terminal has output, for who may know.
#[derive(Debug)]
pub(super) struct Gate {
    #[cfg(target_os = "linux")]
    epoll: Epoll,
    #[cfg(not(target_os = "linux"))]
    never: std::convert::Infallible,
}

#[cfg(target_os = "linux")]
impl Gate {
    /// Makes an open one; none where the system has none left.
    pub(super) fn new(master: &OwnedFd) -> Option<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).ok()?;
        let event = EpollEvent::new(EpollFlags::EPOLLIN, 0);
        epoll.add(master, event).ok()?;
        Some(Self { epoll })
    }

    /// Hides output; returns whether that is so.
    pub(super) fn shut(&self, master: &OwnedFd) -> bool {
        let mut event = EpollEvent::new(EpollFlags::empty(), 0);
        self.epoll.modify(master, &mut event).is_ok()
    }

    /// Shows output again.
    pub(super) fn open(&self, master: &OwnedFd) {
        let mut event = EpollEvent::new(EpollFlags::EPOLLIN, 0);
        let _ = self.epoll.modify(master, &mut event);
    }
}

#[cfg(target_os = "linux")]
impl AsFd for Gate {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.0.as_fd()
    }
}

#[cfg(not(target_os = "linux"))]
impl Gate {
    /// There is none: the session's thread reads the terminal alone.
    pub(super) fn new(_master: &OwnedFd) -> Option<Self> {
        None
    }

    /// Never called.
    pub(super) fn shut(&self, _master: &OwnedFd) -> bool {
        match self.never {}
    }

    /// Never called.
    pub(super) fn open(&self, _master: &OwnedFd) {
        match self.never {}
    }
}

#[cfg(not(target_os = "linux"))]
impl AsFd for Gate {
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
    fn output_is_seen_through_an_open_gate_only() {
        let pair = nix::pty::openpty(None, None).unwrap();
        let gate = Gate::new(&pair.master).unwrap();
        let is_seen = |wait_ms: u16| {
            let mut asked = [PollFd::new(gate.as_fd(), PollFlags::POLLIN)];
            poll(&mut asked, PollTimeout::from(wait_ms)).unwrap() > 0
        };
        assert!(!is_seen(0));
        assert!(gate.shut(&pair.master));
        nix::unistd::write(&pair.slave, b"x").unwrap();
        assert!(!is_seen(50));
        gate.open(&pair.master);
        assert!(is_seen(10_000));
        assert!(gate.shut(&pair.master));
        assert!(!is_seen(0));
    }
}
