//! The door of a session: a socket by which `karyi var set --session` gives it a value.
//!
//! Each `karyi run` and each `karyi mcp` on standard input has one in the private directory for running sessions,
//! named by its process and when that was started. Who it belongs to and who knocks is told by the kernel and by
//! nothing that either of them says: both are processes of the same user, and neither is inside a session. What a
//! model runs thus gets neither in nor between.

pub(super) mod client;
mod message;
mod peer;
mod server;

use std::ffi::OsStr;
use std::fs::File;
use std::io::ErrorKind;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use tokio::net::UnixStream;

use crate::limits;
use crate::pty::inherited;

pub(super) use server::{ControlSocket, open};

/// How the names of the sockets begin.
const PREFIX: &str = "door-";

/// The name of a session's socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Name {
    pid: u32,
    /// When the process was started, in ticks since the system was.
    started: u64,
}

impl Name {
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

/// Returns what the sockets of a directory are called that have the name of a door.
fn names(directory: &Path) -> impl Iterator<Item = Name> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let name = Name::parse(&entry.file_name())?;
        let is_socket = entry.file_type().is_ok_and(|kind| kind.is_socket());
        is_socket.then_some(name)
    })
}

/// Returns the doors in a directory that are named after processes which are alive, by process. There are at most as
/// many as processes, whatever else lies there.
fn doors(directory: &Path) -> Vec<Name> {
    let mut names: Vec<Name> = names(directory).filter(|name| name.is_alive()).collect();
    names.sort();
    names
}

/// Removes what sessions left in a directory that were killed; of very much a part.
async fn sweep(directory: &Path) {
    let dead = names(directory).filter(|name| !name.is_alive());
    let dead: Vec<Name> = dead.take(limits::MAX_DOORS).collect();
    for path in dead.into_iter().map(|name| name.in_dir(directory)) {
        // The process of one that is listened on may be out of sight, in another container.
        let answer = connect(&path).await;
        if answer.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused) {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Connects to a socket, and waits for nobody: where others wait to be heard already, and no more may, it fails.
async fn connect(path: &Path) -> std::io::Result<UnixStream> {
    let reached = Reach::new(path)?;
    UnixStream::connect(&reached.path).await
}

/// A path by which a socket can be reached, however long its own is.
struct Reach {
    path: PathBuf,
    /// Open as long as the path is used.
    _directory: Option<File>,
}

impl Reach {
    fn new(path: &Path) -> std::io::Result<Self> {
        if path.as_os_str().as_bytes().len() < limits::MAX_SOCKET_PATH_BYTES {
            return Ok(Self {
                path: path.to_owned(),
                _directory: None,
            });
        }
        let directory = File::open(path.parent().unwrap_or(path))?;
        let short = Path::new("/proc/self/fd").join(directory.as_raw_fd().to_string());
        Ok(Self {
            path: short.join(path.file_name().unwrap_or_default()),
            _directory: Some(directory),
        })
    }
}

#[cfg(test)]
mod tests;
