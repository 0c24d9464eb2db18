//! What the kernel knows about processes: who belongs to whom, and in which state.
//!
//! Everything is read from `/proc` and may be outdated when it is used; a process that ends while
//! it is looked at is simply not there. Where there is no `/proc` only ids, groups, sessions and our
//! own children are known.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::{self, Read as _};

/// Largest process id of Linux; other systems have smaller ones.
const MAX_PID: i32 = 1 << 22;

/// One process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: i32,
    pub(super) parent: i32,
    pub(super) group: i32,
    pub(super) session: i32,
    /// The device number of its terminal, as `stat` writes it; 0 when it has none.
    pub(super) terminal: i32,
    /// The group in the foreground of its terminal.
    pub(super) foreground: i32,
    /// The letter of `/proc/PID/stat`.
    pub(super) state: u8,
}

impl Process {
    /// Whether it has ended and only its exit status is left.
    pub(super) fn is_zombie(&self) -> bool {
        matches!(self.state, b'Z' | b'X')
    }

    /// Whether it was stopped by a signal.
    pub(super) fn is_stopped(&self) -> bool {
        self.state == b'T'
    }
}

/// Returns a process.
pub(super) fn find(pid: i32) -> Option<Process> {
    parse_stat(&read_line(&format!("/proc/{pid}/stat")).ok()?)
}

/// Returns a process, also where there is no `/proc`.
pub(super) fn find_or_ask(pid: i32) -> Option<Process> {
    find(pid).or_else(|| ask(pid))
}

/// Reads a file of one short line with as few calls as that takes.
pub(super) fn read_line(path: &str) -> io::Result<String> {
    let mut bytes = [0; 1024];
    let count = fs::File::open(path)?.read(&mut bytes)?;
    let line = bytes.get(..count).unwrap_or_default();
    Ok(String::from_utf8_lossy(line).into_owned())
}

/// Returns every process of the system.
pub(super) fn all() -> Vec<Process> {
    let found: Vec<Process> = numbers("/proc").into_iter().filter_map(find).collect();
    if found.is_empty() { asked() } else { found }
}

/// Returns every process without the help of `/proc`: asks for each number by itself. It takes a
/// good part of a second.
fn asked() -> Vec<Process> {
    (1..=MAX_PID).filter_map(ask).collect()
}

/// Asks the kernel for one process. Of its parent it tells only whether that is this program.
fn ask(number: i32) -> Option<Process> {
    use nix::unistd::{Pid, getpgid, getpid, getsid};
    let pid = Pid::from_raw(number);
    let session = getsid(Some(pid)).ok()?.as_raw();
    let group = getpgid(Some(pid)).ok()?.as_raw();
    let is_ended = ask_child(pid);
    Some(Process {
        pid: number,
        parent: is_ended.map_or(0, |_| getpid().as_raw()),
        group,
        session,
        terminal: 0,
        foreground: -1,
        state: if is_ended == Some(true) { b'Z' } else { b'S' },
    })
}

/// Whether a child of this program has ended; nothing when it is none.
#[cfg(target_os = "linux")]
fn ask_child(pid: nix::unistd::Pid) -> Option<bool> {
    use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    let status = waitid(Id::Pid(pid), flags).ok()?;
    Some(status != WaitStatus::StillAlive)
}

/// Elsewhere nobody adopts orphans, and the shell's end is known without this.
#[cfg(not(target_os = "linux"))]
fn ask_child(_pid: nix::unistd::Pid) -> Option<bool> {
    None
}

/// Returns the threads of a process.
pub(super) fn threads(pid: i32) -> Vec<i32> {
    numbers(&format!("/proc/{pid}/task"))
}

/// Returns the processes whose parent is `pid`.
pub(super) fn children(pid: i32) -> Vec<i32> {
    let mut found = Vec::new();
    for thread in threads(pid) {
        let path = format!("/proc/{pid}/task/{thread}/children");
        found.extend(parse_list(&fs::read_to_string(path).unwrap_or_default()));
    }
    found
}

/// Returns the processes that the first thread of `pid` started.
pub(super) fn own_children(pid: i32) -> Vec<i32> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let list = fs::read_to_string(path).unwrap_or_default();
    let ids = list.split_ascii_whitespace();
    ids.filter_map(|pid| pid.parse().ok()).collect()
}

/// Returns the ids of all processes that are in one of the sessions or below one of the roots.
pub(super) fn belonging(processes: &[Process], sessions: &[i32], roots: &[i32]) -> HashSet<i32> {
    let mut below: HashMap<i32, Vec<i32>> = HashMap::new();
    for process in processes {
        below.entry(process.parent).or_default().push(process.pid);
    }
    let mut open: Vec<i32> = processes
        .iter()
        .filter(|p| sessions.contains(&p.session) || roots.contains(&p.pid))
        .map(|p| p.pid)
        .collect();
    let mut found = HashSet::new();
    while let Some(pid) = open.pop() {
        if found.insert(pid) {
            open.extend(below.remove(&pid).unwrap_or_default());
        }
    }
    found
}

/// Returns the processes that this program adopted or started in its first thread.
#[cfg(target_os = "linux")]
pub(super) fn adopted() -> Vec<i32> {
    let own = std::process::id();
    let list = fs::read_to_string(format!("/proc/{own}/task/{own}/children")).unwrap_or_default();
    parse_list(&list)
}

/// Whether the kernel lists the children of a process.
#[cfg(target_os = "linux")]
pub(super) fn lists_children() -> bool {
    let own = std::process::id();
    fs::exists(format!("/proc/{own}/task/{own}/children")).unwrap_or(false)
}

fn parse_list(list: &str) -> Vec<i32> {
    list.split_ascii_whitespace()
        .filter_map(|pid| pid.parse().ok())
        .collect()
}

fn numbers(directory: &str) -> Vec<i32> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// Reads `PID (NAME) STATE PARENT GROUP SESSION TERMINAL FOREGROUND …`; the name may hold anything.
fn parse_stat(text: &str) -> Option<Process> {
    let pid = text.split(' ').next()?.parse().ok()?;
    let (_, rest) = text.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    let state = *fields.next()?.as_bytes().first()?;
    let mut number = || fields.next()?.parse::<i32>().ok();
    Some(Process {
        pid,
        parent: number()?,
        group: number()?,
        session: number()?,
        terminal: number()?,
        foreground: number()?,
        state,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_anything() {
        let expected = Process {
            pid: 7,
            parent: 1,
            group: 2,
            session: 3,
            terminal: 34816,
            foreground: -1,
            state: b'S',
        };
        for name in ["sh", "a b", ") T 9 9 9", "(((", ""] {
            assert_eq!(
                parse_stat(&format!("7 ({name}) S 1 2 3 34816 -1 4")),
                Some(expected)
            );
        }
        for text in ["", "7", "7 (sh", "7 (sh) S 1 2 3 0", "x (sh) S 1 2 3 0 0"] {
            assert_eq!(parse_stat(text), None);
        }
    }

    #[test]
    fn escapees_belong_by_session_or_by_parent() {
        let process = |pid, parent, session| Process {
            pid,
            parent,
            group: pid,
            session,
            terminal: 0,
            foreground: -1,
            state: b'S',
        };
        let all = [
            process(1, 0, 1),
            process(10, 1, 10),
            process(11, 10, 11),
            process(12, 11, 11),
            process(13, 1, 10),
            process(20, 1, 20),
            process(21, 20, 21),
        ];
        assert_eq!(belonging(&all, &[10], &[]), HashSet::from([10, 11, 12, 13]));
        assert_eq!(belonging(&all, &[], &[20]), HashSet::from([20, 21]));
        assert_eq!(belonging(&all, &[9], &[]), HashSet::new());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn processes_are_found_by_asking() {
        let mut child = std::process::Command::new("sleep")
            .arg("100")
            .spawn()
            .unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let own = i32::try_from(std::process::id()).unwrap();
        let found = ask(pid).unwrap();
        assert_eq!((found.parent, found.is_zombie()), (own, false));
        let parent = ask(own).unwrap();
        assert_ne!(parent.parent, own);
        assert_eq!((found.group, found.session), (parent.group, parent.session));
        child.kill().unwrap();
        let start = std::time::Instant::now();
        while !ask(pid).unwrap().is_zombie() {
            assert!(start.elapsed().as_secs() < 10);
        }
        child.wait().unwrap();
        assert_eq!(ask(pid), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_is_found() {
        let own = i32::try_from(std::process::id()).unwrap();
        let found = find(own).unwrap();
        assert_eq!(found.pid, own);
        assert!(!found.is_zombie() && !found.is_stopped());
        assert!(all().iter().any(|process| process.pid == own));
        assert!(threads(own).contains(&own));
    }
}
