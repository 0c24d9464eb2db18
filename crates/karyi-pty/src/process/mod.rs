//! Processes as the kernel shows them: parents, groups, sessions and states.
//!
//! All data comes from `/proc` and may be outdated when it is used; a process that ends while it is read is left out.
//! Without `/proc` only ids, groups, sessions and our own children are known.

pub(crate) mod group;

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getpgrp, getsid};

use karyi_core::limits;

/// One process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    pub(crate) session: i32,
    /// Device number of its terminal, as `stat` writes it; 0 when it has none.
    pub(crate) terminal: i32,
    /// The foreground group of its terminal.
    pub(crate) foreground: i32,
    /// Processor time of the process and of its children that have ended, in clock ticks.
    pub(crate) processor_ticks: u64,
    /// State letter of `/proc/PID/stat`.
    pub(crate) state: u8,
    /// Start time, in clock ticks since boot; 0 where it is unknown. A pid and a start time identify one process for
    /// ever.
    pub(crate) started: u64,
}

impl Process {
    /// Returns true if it has ended and only its exit status is left.
    pub(crate) fn is_zombie(&self) -> bool {
        matches!(self.state, b'Z' | b'X')
    }

    /// Returns true if it was stopped by a signal.
    pub(crate) fn is_stopped(&self) -> bool {
        self.state == b'T'
    }

    /// Returns the time since its start, where that is known.
    #[cfg(target_os = "linux")]
    pub(crate) fn age(&self) -> Option<Duration> {
        use nix::time::{ClockId, clock_gettime};
        let started = duration_of(self.started)?;
        let now = Duration::from(clock_gettime(ClockId::CLOCK_BOOTTIME).ok()?);
        let is_known = self.started > 0;
        is_known.then(|| now.saturating_sub(started))
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn age(&self) -> Option<Duration> {
        None
    }

    /// Returns true if both are the same process.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let is_one = (self.pid, self.started) == (other.pid, other.started);
        is_one && (self.started > 0 || self.session == other.session)
    }
}

/// Returns the duration of a number of clock ticks.
pub(crate) fn duration_of(ticks: u64) -> Option<Duration> {
    use nix::unistd::{SysconfVar, sysconf};
    let per_second = u64::try_from(sysconf(SysconfVar::CLK_TCK).ok()??).ok()?;
    let in_ms = ticks.checked_mul(1000)?.checked_div(per_second)?;
    Some(Duration::from_millis(in_ms))
}

/// Returns a process.
pub(crate) fn find(pid: i32) -> Option<Process> {
    parse_stat(&read_line(&format!("/proc/{pid}/stat")).ok()?)
}

/// Returns a process, even without `/proc`.
pub(crate) fn find_or_query(pid: i32) -> Option<Process> {
    find(pid).or_else(|| query(pid))
}

/// Sends a signal to a known process, never to another one with its pid; returns true if it was sent.
pub(crate) fn signal(seen: &Process, signal: Signal) -> bool {
    // An open descriptor stands for one process even when the pid is reused.
    let descriptor = open(seen.pid);
    if !find_or_query(seen.pid).is_some_and(|now| now.is_same(seen) && !now.is_zombie()) {
        return false;
    }
    match descriptor {
        Some(descriptor) => send(&descriptor, signal).is_ok(),
        None => kill(Pid::from_raw(seen.pid), signal).is_ok(),
    }
}

/// Returns true if `/proc` shows processes, and files can be opened.
pub(crate) fn are_shown() -> bool {
    find(std::process::id().cast_signed()).is_some()
}

/// Returns true if an id may name the group of other processes. 0 and our own id name the group of this program; 1 and
/// negative ids name more than a group.
pub(crate) fn may_be_signalled(group: i32) -> bool {
    group > 1 && group != getpgrp().as_raw()
}

/// Returns true if the processes of a group show that it belongs to a session.
pub(crate) fn is_in_session(group: i32, session: i32) -> bool {
    if let Ok(found) = getsid(Some(Pid::from_raw(group))) {
        return found.as_raw() == session;
    }
    // The leader of the group has ended.
    let (all, _) = tree();
    all.iter()
        .any(|seen| (seen.group, seen.session) == (group, session))
}

/// Opens a process; the descriptor is readable once it has ended. Returns `None` where the system lacks such
/// descriptors.
#[cfg(target_os = "linux")]
pub(crate) fn open(pid: i32) -> Option<OwnedFd> {
    crate::sys::open_process(pid).ok()
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn open(_pid: i32) -> Option<OwnedFd> {
    None
}

/// Returns true if a child of this program is stopped, without `/proc` and without consuming its status.
#[cfg(target_os = "linux")]
pub(crate) fn is_child_stopped(pid: i32) -> bool {
    use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
    let flags = WaitPidFlag::WSTOPPED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    let found = waitid(Id::Pid(nix::unistd::Pid::from_raw(pid)), flags);
    matches!(found, Ok(WaitStatus::Stopped(..)))
}

/// Returns false: unknown on this platform.
#[cfg(not(target_os = "linux"))]
pub(crate) fn is_child_stopped(_pid: i32) -> bool {
    false
}

/// Sends a signal to an open process.
///
/// # Errors
/// It has ended, or belongs to another user.
#[cfg(target_os = "linux")]
pub(crate) fn send(process: &OwnedFd, signal: Signal) -> io::Result<()> {
    crate::sys::signal_process(process, signal as i32)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn send(_process: &OwnedFd, _signal: Signal) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Returns the initial environment of a process; zeros separate the variables.
pub(crate) fn environment(pid: i32) -> Option<Vec<u8>> {
    fs::read(format!("/proc/{pid}/environ")).ok()
}

/// Returns true if a process is known to ignore a signal.
pub(crate) fn ignores(pid: i32, signal: Signal) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal as i32 - 1) & 1 == 1)
}

/// Returns the soft and the hard limit of a process by its name in `/proc/PID/limits`; `None` stands for unlimited.
pub(crate) fn limits_of(pid: i32, name: &str) -> Option<(Option<u64>, Option<u64>)> {
    parse_limits(
        &fs::read_to_string(format!("/proc/{pid}/limits")).ok()?,
        name,
    )
}

fn parse_limits(text: &str, name: &str) -> Option<(Option<u64>, Option<u64>)> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
    let mut words = line.split_ascii_whitespace();
    Some((words.next()?.parse().ok(), words.next()?.parse().ok()))
}

/// Reads a file of one short line with the fewest system calls.
pub(crate) fn read_line(path: &str) -> io::Result<String> {
    let mut bytes = [0; 1024];
    let count = fs::File::open(path)?.read(&mut bytes)?;
    let line = bytes.get(..count).unwrap_or_default();
    Ok(String::from_utf8_lossy(line).into_owned())
}

/// Returns every process of the system.
pub(crate) fn all() -> Vec<Process> {
    let found: Vec<Process> = numbers("/proc").into_iter().filter_map(find).collect();
    if found.is_empty() { query_all() } else { found }
}

/// Returns this program and the processes below it, or every process where the kernel does not list children. This
/// program adopts orphans, so that no process leaves the tree below it. The second value is false if a part of the tree
/// may be hidden.
pub(crate) fn tree() -> (Vec<Process>, bool) {
    if !is_tree_kept() {
        return (all(), true);
    }
    let own = std::process::id().cast_signed();
    let mut found: Vec<Process> = find(own).into_iter().collect();
    let mut known = HashSet::from([own]);
    let mut is_whole = true;
    // Again, because the children of a process that ends meanwhile become ours.
    for _ in 0..limits::MAX_TREE_ROUNDS {
        let mut open: Vec<i32> = children(own);
        let before = known.len();
        while let Some(pid) = open.pop() {
            if !known.insert(pid) {
                continue;
            }
            let process = find(pid);
            is_whole &= process.is_some();
            found.extend(process);
            open.extend(children(pid));
        }
        if known.len() == before {
            break;
        }
    }
    (found, is_whole)
}

/// Returns true if this program adopts orphans and can list them.
#[cfg(target_os = "linux")]
fn is_tree_kept() -> bool {
    nix::sys::prctl::get_child_subreaper().unwrap_or(false) && lists_children()
}

/// Returns false: this platform has no subreaper.
#[cfg(not(target_os = "linux"))]
fn is_tree_kept() -> bool {
    false
}

/// Returns every process without `/proc`: queries every id, which takes a good part of a second.
fn query_all() -> Vec<Process> {
    (1..=limits::MAX_PROCESS_ID).filter_map(query).collect()
}

/// Queries the kernel for one process. It only tells whether this program is the parent.
fn query(number: i32) -> Option<Process> {
    use nix::unistd::{getpgid, getpid};
    let pid = Pid::from_raw(number);
    let session = getsid(Some(pid)).ok()?.as_raw();
    let group = getpgid(Some(pid)).ok()?.as_raw();
    let is_ended = query_child(pid);
    Some(Process {
        pid: number,
        parent: is_ended.map_or(0, |_| getpid().as_raw()),
        group,
        session,
        terminal: 0,
        foreground: -1,
        state: if is_ended == Some(true) { b'Z' } else { b'S' },
        processor_ticks: 0,
        started: 0,
    })
}

/// Returns whether a child of this program has ended; `None` when it is not a child.
#[cfg(target_os = "linux")]
fn query_child(pid: nix::unistd::Pid) -> Option<bool> {
    use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    let status = waitid(Id::Pid(pid), flags).ok()?;
    Some(status != WaitStatus::StillAlive)
}

/// Returns `None`: this platform has no subreaper, and the end of the shell is reported otherwise.
#[cfg(not(target_os = "linux"))]
fn query_child(_pid: nix::unistd::Pid) -> Option<bool> {
    None
}

/// Returns the threads of a process.
pub(crate) fn threads(pid: i32) -> Vec<i32> {
    numbers(&format!("/proc/{pid}/task"))
}

/// Returns the processes whose parent is `pid`.
pub(crate) fn children(pid: i32) -> Vec<i32> {
    let mut found = Vec::new();
    for thread in threads(pid) {
        let path = format!("/proc/{pid}/task/{thread}/children");
        found.extend(parse_list(&fs::read_to_string(path).unwrap_or_default()));
    }
    found
}

/// Returns the children of the first thread of a process.
pub(crate) fn own_children(pid: i32) -> Vec<i32> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    parse_list(&fs::read_to_string(path).unwrap_or_default())
}

/// Returns the ids of all processes in one of the sessions, of the roots, and of their descendants.
pub(crate) fn belonging(processes: &[Process], sessions: &[i32], roots: &[i32]) -> HashSet<i32> {
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

/// Returns the processes that this program has adopted or started in its first thread.
#[cfg(target_os = "linux")]
pub(crate) fn adopted() -> Vec<i32> {
    own_children(std::process::id().cast_signed())
}

/// Returns the id of the newest process.
pub(crate) fn newest() -> Option<i32> {
    let line = read_line("/proc/loadavg").ok()?;
    line.split_ascii_whitespace().last()?.parse().ok()
}

/// Returns true if the kernel lists the children of a process.
#[cfg(target_os = "linux")]
pub(crate) fn lists_children() -> bool {
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

/// Reads `PID (NAME) STATE PARENT GROUP SESSION TERMINAL FOREGROUND …`; the name may contain anything. The 22nd field
/// is the start time.
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
        processor_ticks: ticks(&mut fields),
        started: fields.nth(STARTED_AFTER_TICKS)?.parse().ok()?,
    })
}

/// Number of fields of `/proc/PID/stat` between foreground group and processor times.
const TICKS_AFTER_FOREGROUND: usize = 5;
/// Number of fields between processor times and start time.
const STARTED_AFTER_TICKS: usize = 4;

/// Adds the processor times: in user and kernel mode, of the process and of its children.
fn ticks<'a>(fields: &mut impl Iterator<Item = &'a str>) -> u64 {
    let times = fields.skip(TICKS_AFTER_FOREGROUND).take(4);
    times.filter_map(|time| time.parse::<u64>().ok()).sum()
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
            processor_ticks: 14 + 15 + 16 + 17,
            started: 22,
        };
        for name in ["sh", "a b", ") T 9 9 9", "(((", ""] {
            assert_eq!(
                parse_stat(&format!(
                    "7 ({name}) S 1 2 3 34816 -1 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23"
                )),
                Some(expected)
            );
        }
        for text in [
            "",
            "7",
            "7 (sh",
            "7 (sh) S 1 2 3 0",
            "x (sh) S 1 2 3 0 0",
            "7 (sh) S 1 2 3 0 0 9",
        ] {
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
            processor_ticks: 0,
            started: 0,
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

    #[test]
    fn the_limits_of_a_process_are_read() {
        let text = "Limit                     Soft Limit           Hard Limit           Units\n\
                    Max open files            20                   unlimited            files\n\
                    Max file locks            12                   4611686018427387000  locks\n\
                    Max file locks here       1                    2                    locks\n";
        let locks = Some((Some(12), Some(4_611_686_018_427_387_000)));
        assert_eq!(parse_limits(text, "Max file locks"), locks);
        assert_eq!(parse_limits(text, "Max open files"), Some((Some(20), None)));
        assert_eq!(parse_limits(text, "Max"), Some((None, None)));
        assert_eq!(parse_limits("", "Max open files"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_signal_reaches_the_process_that_was_seen_and_no_other() {
        let mut child = std::process::Command::new("sleep")
            .arg("100")
            .spawn()
            .unwrap();
        let seen = find(i32::try_from(child.id()).unwrap()).unwrap();
        let earlier = Process {
            started: seen.started - 1,
            ..seen
        };
        assert!(!signal(&earlier, Signal::SIGKILL));
        assert!(child.try_wait().unwrap().is_none());
        assert!(signal(&seen, Signal::SIGKILL));
        child.wait().unwrap();
        assert!(!signal(&seen, Signal::SIGKILL));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn processes_are_found_without_proc() {
        let mut child = std::process::Command::new("sleep")
            .arg("100")
            .spawn()
            .unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let own = i32::try_from(std::process::id()).unwrap();
        let found = query(pid).unwrap();
        assert_eq!((found.parent, found.is_zombie()), (own, false));
        let parent = query(own).unwrap();
        assert_ne!(parent.parent, own);
        assert_eq!((found.group, found.session), (parent.group, parent.session));
        child.kill().unwrap();
        let start = std::time::Instant::now();
        while !query(pid).unwrap().is_zombie() {
            assert!(start.elapsed().as_secs() < 10);
        }
        child.wait().unwrap();
        assert_eq!(query(pid), None);
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
