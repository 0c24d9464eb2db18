//! What the kernel knows about processes: who belongs to whom, and in which state.
//!
//! Everything is read from `/proc` and may be outdated when it is used; a process that ends while
//! it is looked at is simply not there. Where there is no `/proc` nothing is found.

use std::collections::{HashMap, HashSet};
use std::fs;

/// Most processes looked at in one walk: a fork bomb must not take the session down with it.
const MAX_PROCESSES: usize = 4096;

/// One process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: i32,
    pub(super) parent: i32,
    pub(super) group: i32,
    pub(super) session: i32,
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
    parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Returns every process of the system.
pub(super) fn all() -> Vec<Process> {
    numbers("/proc").into_iter().filter_map(find).collect()
}

/// Returns the threads of a process.
pub(super) fn threads(pid: i32) -> Vec<i32> {
    numbers(&format!("/proc/{pid}/task"))
}

/// Returns the processes of a group: those below `root`, or, when none of them is, any.
pub(super) fn group_members(root: i32, group: i32) -> Vec<Process> {
    let below = descendants(root);
    let members: Vec<_> = below.into_iter().filter(|p| p.group == group).collect();
    if !members.is_empty() {
        return members;
    }
    all().into_iter().filter(|p| p.group == group).collect()
}

/// Returns a process and all below it.
fn descendants(root: i32) -> Vec<Process> {
    let mut found: Vec<Process> = Vec::new();
    let mut open = vec![root];
    while let Some(pid) = open.pop() {
        if found.len() >= MAX_PROCESSES {
            break;
        }
        if let Some(process) = find(pid) {
            found.push(process);
            open.extend(children(pid));
        }
    }
    found
}

/// Returns the processes whose parent is `pid`.
pub(super) fn children(pid: i32) -> Vec<i32> {
    let mut found = Vec::new();
    for thread in threads(pid) {
        let path = format!("/proc/{pid}/task/{thread}/children");
        let list = fs::read_to_string(path).unwrap_or_default();
        found.extend(
            list.split_ascii_whitespace()
                .filter_map(|pid| pid.parse::<i32>().ok()),
        );
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

fn numbers(directory: &str) -> Vec<i32> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// Reads `PID (NAME) STATE PARENT GROUP SESSION …`; the name may hold anything.
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
            state: b'S',
        };
        for name in ["sh", "a b", ") T 9 9 9", "(((", ""] {
            assert_eq!(
                parse_stat(&format!("7 ({name}) S 1 2 3 0 -1")),
                Some(expected)
            );
        }
        for text in ["", "7", "7 (sh", "7 (sh) S 1 2", "x (sh) S 1 2 3"] {
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
    fn this_process_is_found() {
        let own = i32::try_from(std::process::id()).unwrap();
        let found = find(own).unwrap();
        assert_eq!(found.pid, own);
        assert!(!found.is_zombie() && !found.is_stopped());
        assert!(all().iter().any(|process| process.pid == own));
        assert!(threads(own).contains(&own));
    }
}
