//! The control socket of a session, by which `karyi var set --session` gives it a value.
//!
//! Each `karyi run` and each `karyi mcp` on standard input has one in the private directory for running sessions,
//! named by its process and the start of that. The kernel says who is at each end: both must be processes of the same
//! user, and neither may be inside a session. So no program that a model runs can send a value or receive one.

pub(super) mod client;
mod message;
mod peer;
mod server;

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use tokio::net::UnixStream;

use crate::limits;
use crate::pty::inherited;

pub(super) use server::{ControlSocket, open};

/// Start of the sockets' names.
const PREFIX: &str = "control-";

/// The name of a session's socket.
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

/// Lists the control sockets in a directory.
fn sockets(directory: &Path) -> impl Iterator<Item = SocketName> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let name = SocketName::parse(&entry.file_name())?;
        let is_socket = entry.file_type().is_ok_and(|kind| kind.is_socket());
        is_socket.then_some(name)
    })
}

/// Lists the sockets of processes that are alive: at most as many as processes, whatever else lies there.
fn live_sockets(directory: &Path) -> Vec<SocketName> {
    let mut names: Vec<SocketName> = sockets(directory).filter(|name| name.is_alive()).collect();
    names.sort();
    names
}

/// Removes sockets of sessions that were killed; of very many a part.
async fn sweep(directory: &Path) {
    let dead = sockets(directory).filter(|name| !name.is_alive());
    let dead: Vec<SocketName> = dead.take(limits::MAX_CONTROL_SOCKETS).collect();
    for path in dead.into_iter().map(|name| name.in_dir(directory)) {
        // The process of one that is listened on may be out of sight, in another container.
        let answer = UnixStream::connect(&path).await;
        if answer.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused) {
            let _ = std::fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests;
