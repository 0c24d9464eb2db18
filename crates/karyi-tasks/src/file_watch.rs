//! Wakes a supervisor when files change, with inotify. The events are read from its
//! descriptor, and only wake: what changed is looked up.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use karyi_core::error::{ErrorCode, ToolError};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;

/// Directories whose changes make a descriptor readable.
#[derive(Debug)]
pub struct FileWatch {
    inotify: OwnedFd,
    watched: BTreeMap<PathBuf, i32>,
}

impl FileWatch {
    /// Begins to watch nothing.
    ///
    /// # Errors
    /// The user has as many watchers as the system allows.
    pub fn new() -> Result<Self, ToolError> {
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK);
        let inotify = inotify.map_err(failure)?;
        Ok(Self {
            inotify,
            watched: BTreeMap::new(),
        })
    }

    /// Watches these directories and no others; those that do not exist are left out.
    ///
    /// # Errors
    /// The user has as many watches as the system allows; those that were possible are there.
    pub fn watch(&mut self, paths: impl IntoIterator<Item = PathBuf>) -> Result<(), ToolError> {
        let mut before = std::mem::take(&mut self.watched);
        let mut problem = None;
        for path in paths {
            if self.watched.contains_key(&path) {
                continue;
            }
            // Again for one that is watched, since another directory may have its name now.
            match inotify::add_watch(&self.inotify, &path, flags()) {
                Ok(watch) => {
                    before.retain(|_, known| *known != watch);
                    self.watched.insert(path, watch);
                }
                Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) => {}
                Err(error) => problem = Some(failure(error)),
            }
        }
        for watch in before.into_values() {
            // It ended by itself when its directory was removed.
            let _ = inotify::remove_watch(&self.inotify, watch);
        }
        problem.map_or(Ok(()), Err)
    }
}

fn flags() -> WatchFlags {
    WatchFlags::CREATE
        | WatchFlags::MOVED_FROM
        | WatchFlags::MOVED_TO
        | WatchFlags::DELETE
        | WatchFlags::CLOSE_WRITE
        | WatchFlags::ATTRIB
        | WatchFlags::ONLYDIR
}

fn failure(error: Errno) -> ToolError {
    let message = format!("watching directories: {error}");
    ToolError::new(ErrorCode::Io, message)
        .with_hint("raise fs.inotify.max_user_watches or max_user_instances with sysctl")
}

impl AsFd for FileWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }
}
