//! Recovers a shell that waits for its own stopped copy.
//!
//! zsh waits until a program it starts is in its group, and reads a pipe meanwhile. A stop signal to the group may
//! reach the copy of the shell that is about to become the last program: then all are stopped, and the shell does not
//! react until the copy is continued.

use std::os::linux::fs::MetadataExt;

use nix::sys::signal::Signal;
use nix::unistd::tcgetpgrp;

use super::watched_terminal::WatchedTerminal;
use crate::process;
use crate::wait::syscall::{self, Blocked};

impl WatchedTerminal<'_> {
    /// Continues the stopped copies for which the shell waits; returns true if there are any.
    pub(crate) fn continue_stopped_copies(&self) -> bool {
        let is_held = match syscall::blocked_in(self.shell, self.shell) {
            Ok(Blocked::Read(descriptor)) => !self.is_fifo(self.shell, descriptor),
            _ => false,
        };
        let (true, Ok(group), Some(own)) = (is_held, tcgetpgrp(self.master), program(self.shell))
        else {
            return false;
        };
        let children = process::children(self.shell).into_iter();
        let copies = children.filter_map(process::find).filter(|child| {
            child.is_stopped() && child.group == group.as_raw() && program(child.pid) == Some(own)
        });
        let woken = copies.filter(|copy| process::signal(copy, Signal::SIGCONT));
        woken.count() > 0
    }
}

/// Returns device and inode of the program file of a process.
fn program(pid: i32) -> Option<(u64, u64)> {
    let file = std::fs::metadata(format!("/proc/{pid}/exe")).ok()?;
    Some((file.st_dev(), file.st_ino()))
}
