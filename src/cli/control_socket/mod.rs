//! The control socket of a session, by which `karyi var set --session` gives it a value.
//!
//! Each `karyi run` and each `karyi mcp` on standard input has one in the private directory for running sessions,
//! named by its process and the start of that. The kernel says who is at each end: both must be processes of the same
//! user, and neither may be inside a session. So no program that a model runs can send a value or receive one.
//!
//! The session speaks first: [`Reply::Hello`] or a refusal. The other side sends a [`Head`] and a value, and reads one
//! reply. A message is its length in four bytes, the highest first, and so many bytes: JSON, or the value as it is.

pub(super) mod client;
mod server;

use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use nix::unistd::geteuid;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use zeroize::Zeroizing;

use crate::error::{ErrorCode, ToolError};
use crate::limits;
use crate::pty::inherited;
use crate::render::paint::safe_line;
use crate::vault::policy::Policy;

pub(super) use server::{ControlSocket, open};

/// Start of the sockets' names.
const PREFIX: &str = "control-";

/// A process, which a session's socket is named after.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct SocketName {
    pid: u32,
    /// Start of the process, in ticks since the system was started.
    started: u64,
}

impl SocketName {
    fn parse(name: &OsStr) -> Option<Self> {
        let (pid, started) = name.to_str()?.strip_prefix(PREFIX)?.split_once('-')?;
        Some(Self {
            pid: pid.parse().ok()?,
            started: started.parse().ok()?,
        })
    }

    fn in_dir(self, directory: &Path) -> PathBuf {
        directory.join(format!("{PREFIX}{}-{}", self.pid, self.started))
    }

    fn is_alive(self) -> bool {
        let pid = i32::try_from(self.pid).ok();
        pid.and_then(inherited::started) == Some(self.started)
    }
}

/// Lists the control sockets of processes that are alive, and removes those of sessions that were killed.
async fn live_sockets(directory: &Path) -> Vec<SocketName> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let sockets = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_socket()));
    let names = sockets.filter_map(|entry| SocketName::parse(&entry.file_name()));
    let (mut alive, dead): (Vec<_>, Vec<_>) = names.partition(|name| name.is_alive());
    for path in dead.into_iter().map(|name| name.in_dir(directory)) {
        // The process of one that is listened on is out of sight, in another container.
        let answer = UnixStream::connect(&path).await;
        if answer.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
            let _ = std::fs::remove_file(path);
        }
    }
    alive.sort();
    alive
}

/// Returns the process at the other end of a socket.
///
/// # Errors
/// `permission_denied` for another user; `inside_session` for a process of a session, and for one of which nobody can
/// tell that it is none.
fn peer(stream: &UnixStream) -> Result<SocketName, ToolError> {
    let seen = stream.peer_cred().ok();
    if seen.is_some_and(|seen| seen.uid() != geteuid().as_raw()) {
        let message = "a session takes values of its own user only";
        return Err(ToolError::new(ErrorCode::PermissionDenied, message)
            .with_hint("run `karyi var set` as the user of the session"));
    }
    let pid = seen.and_then(|seen| seen.pid()).filter(|pid| *pid > 0);
    pid.and_then(|pid| outside(stream, pid)).ok_or_else(|| {
        let message = "this runs inside a session of karyi, or nobody can tell that it does not: all its ancestors \
                       must be seen in /proc";
        ToolError::new(ErrorCode::InsideSession, message)
    })
}

/// Returns the process of this number at the other end of a socket, when it is surely inside no session and has not
/// ended: as long as it is there no other process gets its number.
fn outside(stream: &UnixStream, pid: i32) -> Option<SocketName> {
    let started = inherited::started_outside(pid)?;
    let name = SocketName {
        pid: pid.try_into().ok()?,
        started,
    };
    has_not_ended(stream).then_some(name)
}

#[cfg(target_os = "linux")]
fn has_not_ended(stream: &UnixStream) -> bool {
    use nix::errno::Errno;
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use nix::sys::socket::{getsockopt, sockopt};
    use std::os::fd::AsFd;

    match getsockopt(&stream.as_fd(), sockopt::PeerPidfd) {
        Ok(process) => {
            let mut end = [PollFd::new(process.as_fd(), PollFlags::POLLIN)];
            poll(&mut end, PollTimeout::ZERO) == Ok(0)
        }
        // Linux before 6.5 does not tell.
        Err(error) => error == Errno::ENOPROTOOPT,
    }
}

#[cfg(not(target_os = "linux"))]
fn has_not_ended(_: &UnixStream) -> bool {
    true
}

/// A message of the session.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Reply {
    /// What the session says of itself, for a person; it proves nothing.
    Hello(String),
    Done,
    Refused {
        code: String,
        message: String,
        hint: String,
    },
}

impl From<Result<(), ToolError>> for Reply {
    fn from(result: Result<(), ToolError>) -> Self {
        match result {
            Ok(()) => Self::Done,
            Err(error) => Self::Refused {
                code: error.code.as_str().to_owned(),
                message: error.message,
                hint: error.hint,
            },
        }
    }
}

/// Returns the error that a session answered with.
fn refusal(code: &str, message: &str, hint: &str) -> ToolError {
    let known = ErrorCode::ALL.iter().find(|known| known.as_str() == code);
    let code = known.copied().unwrap_or(ErrorCode::Io);
    ToolError::new(code, safe_line(message)).with_hint(safe_line(hint))
}

/// The part of a request before the value.
#[derive(Serialize, Deserialize)]
struct Head {
    name: String,
    policy: Policy,
}

/// Sends a message.
async fn write(stream: &mut UnixStream, bytes: &[u8]) -> io::Result<()> {
    let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
    stream.write_all(&length.to_be_bytes()).await?;
    stream.write_all(bytes).await
}

/// Reads the bytes of a message.
async fn read(stream: &mut UnixStream) -> io::Result<Zeroizing<Vec<u8>>> {
    let length = usize::try_from(stream.read_u32().await?).unwrap_or(usize::MAX);
    let most = limits::MAX_CONTROL_FRAME_BYTES;
    if length > most {
        let message = format!("expected at most {most} bytes, found more");
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    let mut bytes = Zeroizing::new(vec![0; length]);
    stream.read_exact(&mut bytes).await?;
    Ok(bytes)
}

#[cfg(test)]
mod tests;
