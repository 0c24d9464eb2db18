//! What this process inherited: descriptors and variables that hold secrets, and the session it runs in.

use std::fs::File;
use std::io;
use std::os::fd::RawFd;

use karyi_core::limits;

use crate::process;
use crate::sys;
use crate::teardown::stamp;

/// The variable that names the session a process belongs to.
pub const SESSION_VARIABLE: &str = crate::teardown::registry::TAG_VARIABLE;

/// Overwrites and removes the environment variables whose names start with `prefix`: other processes of the user could
/// read them. Must be called before a second thread starts.
pub fn forget_variables(prefix: &str) {
    sys::forget_variables(prefix.as_bytes());
}

/// Takes over an inherited descriptor: no program started later gets it, and its old number leads to `/dev/null`.
///
/// # Errors
/// There is no such descriptor.
pub fn take_descriptor(descriptor: RawFd) -> io::Result<File> {
    if descriptor < 0 {
        return Err(io::Error::from_raw_os_error(nix::libc::EBADF));
    }
    sys::take_inherited(descriptor).map(File::from)
}

/// Returns true if the process runs inside a session: it carries a stamp, or one of its ancestors is karyi. A process
/// can easily lose the variable of its session, but neither of these.
#[must_use]
pub fn is_inside_session() -> bool {
    stamp::is_on_this_process() || has_ancestor("karyi")
}

/// Returns true if an ancestor of this process has a name.
fn has_ancestor(name: &str) -> bool {
    let mut pid = nix::unistd::getppid().as_raw();
    for _ in 0..limits::MAX_ANCESTORS {
        let Some((found, parent)) = name_and_parent(pid) else {
            return false;
        };
        if found == name {
            return true;
        }
        pid = parent;
    }
    false
}

/// Returns the start time of a process in clock ticks since boot; `None` when it has ended.
#[must_use]
pub fn start_time(pid: i32) -> Option<u64> {
    let seen = process::find(pid)?;
    (!seen.is_zombie()).then_some(seen.started)
}

/// Returns the start time of a process that certainly runs outside all sessions: it carries no stamp, and its
/// ancestors, down to the first process, are all known and are neither this program nor called karyi. A program of a
/// session stays below karyi, because orphans are adopted.
#[must_use]
pub fn start_time_outside_sessions(pid: i32) -> Option<u64> {
    let seen = process::find(pid).filter(|seen| !seen.is_zombie())?;
    let own = std::process::id().cast_signed();
    if pid == own || stamp::is_on_process(pid)? {
        return None;
    }
    let mut parent = seen.parent;
    for _ in 0..limits::MAX_ANCESTORS {
        if parent == 0 {
            return Some(seen.started);
        }
        let (name, next) = name_and_parent(parent)?;
        if parent == own || name == "karyi" {
            return None;
        }
        parent = next;
    }
    None
}

/// Returns the name of the parent of this process.
#[must_use]
pub fn name_of_parent() -> Option<String> {
    let parent = nix::unistd::getppid().as_raw();
    name_and_parent(parent).map(|(name, _)| name)
}

/// Returns the name and the parent of a process.
fn name_and_parent(pid: i32) -> Option<(String, i32)> {
    let parent = process::find(pid)?.parent;
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some((name.trim_end_matches('\n').to_owned(), parent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_run_outside_of_sessions() {
        assert!(has_ancestor(
            &name_and_parent(nix::unistd::getppid().as_raw()).unwrap().0
        ));
        assert!(!has_ancestor("no such program"));
    }

    #[test]
    fn only_processes_certainly_outside_count() {
        let own = std::process::id().cast_signed();
        let parent = nix::unistd::getppid().as_raw();
        assert_eq!(start_time_outside_sessions(parent), start_time(parent));
        assert!(start_time_outside_sessions(parent).is_some());
        // This program, its child, and pids without a process.
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let below = i32::try_from(child.id()).unwrap();
        assert!(start_time(below).is_some());
        for pid in [own, below, 0, -1, i32::MAX] {
            assert_eq!(start_time_outside_sessions(pid), None, "{pid}");
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(start_time(below), None);
    }

    #[test]
    fn a_missing_descriptor_is_an_error() {
        assert!(take_descriptor(-1).is_err());
        assert!(take_descriptor(1_000_000).is_err());
    }
}
