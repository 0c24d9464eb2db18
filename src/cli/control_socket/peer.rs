//! Who is at the other end of a socket, as the kernel says.

use std::os::fd::{AsFd, OwnedFd};

use nix::errno::Errno;
use tokio::net::UnixStream;

use crate::pty::inherited;

/// The process that connected, or that listens.
pub(super) struct Peer {
    pub(super) uid: u32,
    pub(super) pid: i32,
    /// The process itself, where the system hands it out.
    process: Option<OwnedFd>,
}

impl Peer {
    /// Asks who is there; none when nobody can be seen or who was there has ended.
    pub(super) fn of(stream: &UnixStream) -> Option<Self> {
        let seen = stream.peer_cred().ok()?;
        let pid = seen.pid().filter(|pid| *pid > 0)?;
        let process = match process(stream) {
            Ok(process) => Some(process),
            // Linux before 6.5.
            Err(Errno::ENOPROTOOPT) => None,
            Err(_) => return None,
        };
        Some(Self {
            uid: seen.uid(),
            pid,
            process,
        })
    }

    /// Returns when it was started, when it is surely inside no session. What is read by its number is of this process
    /// and of no later one that has the number by now: as long as a process is there nobody else gets it.
    pub(super) fn started_outside(&self) -> Option<u64> {
        let started = inherited::started_outside(self.pid)?;
        self.process.as_ref().is_none_or(runs).then_some(started)
    }
}

#[cfg(target_os = "linux")]
fn process(stream: &UnixStream) -> Result<OwnedFd, Errno> {
    use nix::sys::socket::{getsockopt, sockopt};

    getsockopt(&stream.as_fd(), sockopt::PeerPidfd)
}

#[cfg(not(target_os = "linux"))]
fn process(_: &UnixStream) -> Result<OwnedFd, Errno> {
    Err(Errno::ENOPROTOOPT)
}

/// Whether a process has not ended.
fn runs(process: &OwnedFd) -> bool {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

    let mut wanted = [PollFd::new(process.as_fd(), PollFlags::POLLIN)];
    poll(&mut wanted, PollTimeout::ZERO) == Ok(0)
}

#[cfg(test)]
mod tests;
