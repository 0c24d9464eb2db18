//! Registry of sessions and their processes. Ends every process of a session, even if it was disowned, has its own
//! session, lost its parent or cleared its environment.
//!
//! A process is identified by the [`Stamp`] it inherited; without one, by the tag in its environment, by its session
//! or by its ancestors. This program adopts orphans (it is the subreaper), so no process leaves the tree below it.
//! Other children of this program carry no stamp and are left alone. Only where stamps do not work, an adopted process
//! without any hint is ended with the last session; there, other parts of the program must not start a child in a
//! session of its own.
//!
//! A scan follows the children of this program. If more than the shell was left at the end of a session, one scan
//! covers every process of the system: a program that adopts orphans itself could hide some.
//!
//! Processes start and end while a scan runs. So a session is gone only after two scans in a row have found nothing,
//! neither running nor just ended; and KILL goes to whole process groups, which no fork escapes.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::Instant;

use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, getpid, getsid};

use karyi_core::limits;

use crate::process::{self, Process};
use crate::teardown::session_record::DirectoryClaim;
use crate::teardown::stamp::{self, Stamp};

/// The environment variable with the tag of a session.
pub(crate) const TAG_VARIABLE: &str = "KARYI_SESSION";

/// The sessions of this program.
static SESSIONS: LazyLock<Mutex<Registry>> = LazyLock::new(Mutex::default);

#[derive(Debug, Default)]
struct Registry {
    sessions: Vec<RegisteredSession>,
    /// Foreign processes, by pid and session, that need no second check while a session is ended: a stamp is never
    /// added later.
    foreign: HashSet<(i32, i32)>,
}

impl Registry {
    fn find(&mut self, tag: &str) -> Option<&mut RegisteredSession> {
        self.sessions.iter_mut().find(|session| session.tag == tag)
    }
}

#[derive(Debug)]
struct RegisteredSession {
    tag: String,
    stamp: Option<Stamp>,
    /// True if its processes were found to carry no stamp.
    is_unstamped: bool,
    /// Every shell the session had: their jobs are found by session id.
    shells: Vec<i32>,
    /// Shells whose exit status was not collected yet.
    children: HashSet<i32>,
    /// True if processes of it may be outside the tree below this program.
    may_be_hidden: bool,
    claim: DirectoryClaim,
}

impl RegisteredSession {
    /// Adds a shell; if there are many, those without any process left are removed.
    fn add_shell(&mut self, pid: i32) {
        self.shells.push(pid);
        if self.shells.len() < limits::MAX_KNOWN_SHELLS {
            self.claim.add_shell(pid);
            return;
        }
        let sessions: HashSet<i32> = process::tree().0.iter().map(|p| p.session).collect();
        let children = &self.children;
        self.shells
            .retain(|shell| children.contains(shell) || sessions.contains(shell));
        self.claim.set_shells(&self.shells);
    }
}

/// The processes that a scan covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// Those below this program.
    Tree,
    /// Those of the system.
    System,
}

/// Result of one scan for a session.
#[derive(Debug, Default)]
struct ProcessScan {
    running: Vec<Process>,
    /// Number of ended processes that were reaped.
    collected: usize,
}

/// Makes this program adopt the orphans of its sessions.
pub(crate) fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    let _ = nix::sys::prctl::set_child_subreaper(true);
}

/// Registers a session with its `directory`; its processes get a stamp made of `random`.
///
/// # Errors
/// The directory is not writable.
pub(crate) fn register_session(
    directory: &Path,
    tag: &str,
    random: u64,
) -> std::io::Result<Option<Stamp>> {
    let stamp = Stamp::new(random);
    let claim = DirectoryClaim::new(directory, tag, stamp)?;
    sessions().sessions.push(RegisteredSession {
        tag: tag.to_owned(),
        stamp,
        is_unstamped: stamp.is_none(),
        shells: Vec::new(),
        children: HashSet::new(),
        may_be_hidden: false,
        claim,
    });
    Ok(stamp)
}

/// Starts a shell with `spawn`, which returns its pid. The registry is locked meanwhile, so that no scan takes the new
/// process for an orphan; `spawn` must not call this module.
pub(crate) fn spawn_registered<T, E>(
    tag: &str,
    spawn: impl FnOnce() -> Result<(i32, T), E>,
) -> Result<T, E> {
    let mut registry = sessions();
    let (pid, value) = spawn()?;
    if let Some(session) = registry.find(tag) {
        session.children.insert(pid);
        session.add_shell(pid);
    }
    Ok(value)
}

/// Records that the exit status of a shell was collected: its pid may be reused.
pub(crate) fn shell_reaped(pid: i32) {
    for session in &mut sessions().sessions {
        session.children.remove(&pid);
    }
}

/// Checks by a running shell whether the processes of a session carry its stamp.
pub(crate) fn verify_stamp(tag: &str, shell: i32) {
    let mut registry = sessions();
    if let Some(session) = registry.find(tag) {
        let limits = stamp::limits_of(shell);
        let found = session.stamp.zip(limits);
        session.is_unstamped = !found.is_some_and(|(stamp, limits)| stamp.is_on(limits));
    }
}

/// Removes a session that has ended.
pub(crate) fn unregister(tag: &str) {
    let mut registry = sessions();
    registry.sessions.retain(|session| session.tag != tag);
    registry.foreign.clear();
}

/// One signal on its way to the processes of a session, once to each.
///
/// KILL reaches every process, also those that are started meanwhile. Another signal spares what its receivers start
/// while they end: the programs of a trap.
#[derive(Debug)]
pub(crate) struct SignalRound {
    pub(crate) signal: Signal,
    reached: HashSet<i32>,
    has_begun: bool,
    /// A process whose turn comes later.
    pub(crate) held_back: Option<i32>,
}

/// The running processes after one pass of a round.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Remaining {
    /// Their number. It is 0 only when nothing can be left.
    pub(crate) count: usize,
    /// True if one of them may still end by the signal.
    pub(crate) may_end: bool,
}

impl SignalRound {
    pub(crate) fn new(signal: Signal) -> Self {
        Self {
            signal,
            reached: HashSet::new(),
            has_begun: false,
            held_back: None,
        }
    }

    /// Signals the processes it has not reached yet.
    fn send(&mut self, running: &[Process]) {
        let own = getpid().as_raw();
        for seen in running {
            // Nobody waits for an orphan.
            let is_due = !self.has_begun || seen.parent == own;
            let is_fresh = !self.reached.contains(&seen.pid) && self.held_back != Some(seen.pid);
            if is_due && is_fresh && process::signal(seen, self.signal) {
                self.reached.insert(seen.pid);
                // A stopped process handles a signal only when it is continued.
                process::signal(seen, Signal::SIGCONT);
            }
        }
        self.has_begun = true;
    }

    fn remaining(&self, running: &[Process]) -> Remaining {
        let is_awaited = |seen: &Process| {
            self.held_back != Some(seen.pid) && !process::ignores(seen.pid, self.signal)
        };
        Remaining {
            count: running.len(),
            may_end: running.iter().any(is_awaited),
        }
    }
}

/// Sends a signal to the running processes of a session; returns those that were left.
pub(crate) fn signal_all(tag: &str, round: &mut SignalRound) -> Remaining {
    let mut quiet = 0;
    let mut reach = Reach::Tree;
    for _ in 0..limits::MAX_ENDING_SCANS {
        let look = scan(tag, reach);
        if !look.running.is_empty() {
            match round.signal {
                Signal::SIGKILL => kill_now(tag, &look.running),
                _ => round.send(&look.running),
            }
            return round.remaining(&look.running);
        }
        quiet = if look.collected == 0 { quiet + 1 } else { 0 };
        if quiet == limits::QUIET_ENDING_SCANS {
            if !take_doubt(tag) {
                return Remaining::default();
            }
            (quiet, reach) = (quiet - 1, Reach::System);
        }
    }
    Remaining {
        count: 1,
        may_end: true,
    }
}

/// Returns true if processes of a session may be outside the tree below this program, and forgets it.
fn take_doubt(tag: &str) -> bool {
    let mut registry = sessions();
    let session = registry.find(tag);
    session.is_some_and(|session| std::mem::take(&mut session.may_be_hidden))
}

/// Kills every process of a session; waits until they are gone, for a limited time.
pub(crate) fn kill_all(tag: &str) {
    let until = Instant::now() + limits::SIGNAL_LADDER_STEP;
    let mut round = SignalRound::new(Signal::SIGKILL);
    while signal_all(tag, &mut round).count > 0 && Instant::now() < until {
        sleep(limits::WAIT_SCAN_MIN);
    }
}

/// Reaps adopted processes that have ended.
pub(crate) fn reap_orphans() {
    let registry = sessions();
    let children = process::children(getpid().as_raw());
    for process in children.into_iter().filter_map(process::find) {
        if process.is_zombie() && may_reap(&process, &registry.sessions) {
            reap(process.pid);
        }
    }
}

/// Kills processes with their whole groups: while a group is killed, no fork in it succeeds.
fn kill_now(tag: &str, running: &[Process]) {
    let mut groups = HashSet::new();
    for seen in running {
        let Some(now) = process::find_or_query(seen.pid).filter(|now| now.is_same(seen)) else {
            continue;
        };
        // A group never belongs to two sessions.
        if !now.is_zombie() && process::may_be_signalled(now.group) && groups.insert(now.group) {
            let _ = killpg(Pid::from_raw(now.group), Signal::SIGKILL);
        }
        process::signal(seen, Signal::SIGKILL);
    }
    let stamp = {
        let mut registry = sessions();
        let session = registry.find(tag);
        session.and_then(|session| session.stamp)
    };
    if let Some(stamp) = stamp {
        kill_newly_adopted(stamp);
    }
}

/// Kills processes that this program has just adopted.
fn kill_newly_adopted(stamp: Stamp) {
    for _ in 0..limits::QUICK_ENDING_SCANS {
        let mut is_any = false;
        // The kernel gives orphans to the first thread.
        for pid in process::own_children(getpid().as_raw()) {
            // Opened before its stamp is checked: the pid may be reused.
            let descriptor = process::open(pid);
            if stamp::limits_of(pid).is_some_and(|limits| stamp.is_on(limits)) {
                let result = match descriptor {
                    Some(descriptor) => process::send(&descriptor, Signal::SIGKILL).is_ok(),
                    None => kill(Pid::from_raw(pid), Signal::SIGKILL).is_ok(),
                };
                is_any = result || is_any;
            }
        }
        if !is_any {
            return;
        }
    }
}

/// Returns the number of running processes of a session, including its shell.
pub(crate) fn count_running(tag: &str) -> usize {
    scan(tag, Reach::Tree).running.len()
}

/// Returns the running processes of a session, including its shell.
pub(crate) fn processes(tag: &str) -> Vec<Process> {
    scan(tag, Reach::Tree).running
}

/// Returns the running processes of a session that this program has adopted.
pub(crate) fn orphans(tag: &str) -> Vec<Process> {
    let mut found = scan(tag, Reach::Tree).running;
    let registry = sessions();
    found.retain(|process| is_adopted(process, &registry.sessions));
    found
}

/// Scans the processes once, and reaps those that have ended.
fn scan(tag: &str, reach: Reach) -> ProcessScan {
    let mut registry = sessions();
    let mut own = registry
        .sessions
        .iter()
        .filter(|session| session.tag == tag);
    if own.all(|session| session.shells.is_empty()) {
        // The session never had a process.
        return ProcessScan::default();
    }
    if (reach == Reach::Tree || !process::are_shown()) && has_no_children() {
        return ProcessScan::default();
    }
    let (all, is_whole) = match reach {
        Reach::Tree => process::tree(),
        Reach::System => (process::all(), true),
    };
    let below = process::belonging(&all, &[], &[getpid().as_raw()]);
    let stamped = stamped(&all, &below, &mut registry);
    // Without /proc neither stamps nor parents are visible: only sessions are.
    let is_seen = process::find(getpid().as_raw()).is_some();
    let is_shell = |pid: &i32| {
        registry
            .sessions
            .iter()
            .any(|registry| registry.shells.contains(pid))
    };
    let is_near = |p: &&Process| {
        let is_inside = !is_seen && is_shell(&p.session);
        below.contains(&p.pid) || stamped.contains_key(&p.pid) || is_inside
    };
    // The pids of earlier shells may be reused elsewhere.
    let near: Vec<Process> = all.iter().filter(is_near).copied().collect();
    let targets = targets(tag, &near, &stamped, &registry.sessions);
    let mut look = ProcessScan::default();
    for process in near
        .into_iter()
        .filter(|process| targets.contains(&process.pid))
    {
        if !process.is_zombie() {
            look.running.push(process);
        // Shells are reaped by the engine that started them.
        } else if may_reap(&process, &registry.sessions) && reap(process.pid) {
            look.collected += 1;
        }
    }
    if reach == Reach::Tree
        && let Some(session) = registry.find(tag)
    {
        let is_more = |seen: &Process| !session.children.contains(&seen.pid);
        session.may_be_hidden |= !is_whole || look.running.iter().any(is_more);
    }
    look
}

/// Returns true if this program has no children, and so no adopted ones either. This takes one system call, while
/// querying every process takes long.
#[cfg(target_os = "linux")]
pub(crate) fn has_no_children() -> bool {
    use nix::errno::Errno;
    use nix::sys::wait::{Id, waitid};
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    let adopts = nix::sys::prctl::get_child_subreaper().unwrap_or(false);
    adopts && waitid(Id::All, flags) == Err(Errno::ECHILD)
}

/// Returns false: this platform has no subreaper.
#[cfg(not(target_os = "linux"))]
pub(crate) fn has_no_children() -> bool {
    false
}

/// Returns the processes that carry one of our stamps, each with the index of its session.
fn stamped(all: &[Process], below: &HashSet<i32>, registry: &mut Registry) -> HashMap<i32, usize> {
    let own_session = own_session();
    let mut found = HashMap::new();
    for process in all {
        let name = (process.pid, process.session);
        let is_none_of_ours = process.session == own_session || process.session <= 0;
        let is_below = below.contains(&process.pid);
        if is_none_of_ours || (!is_below && registry.foreign.contains(&name)) {
            continue;
        }
        match place_of(process.pid, &registry.sessions) {
            Some(place) => {
                found.insert(process.pid, place);
            }
            None if is_below => {}
            None => {
                registry.foreign.insert(name);
            }
        }
    }
    found
}

fn place_of(pid: i32, registry: &[RegisteredSession]) -> Option<usize> {
    let limits = stamp::limits_of(pid)?;
    registry
        .iter()
        .position(|session| session.stamp.is_some_and(|stamp| stamp.is_on(limits)))
}

/// Returns the ids of all processes of a session, ended or not.
fn targets(
    tag: &str,
    near: &[Process],
    stamped: &HashMap<i32, usize>,
    registry: &[RegisteredSession],
) -> HashSet<i32> {
    let own = registry.iter().position(|session| session.tag == tag);
    let is_last = registry.iter().all(|session| session.tag == tag);
    let is_alone = is_last && registry.iter().all(|session| session.is_unstamped);
    let is_own = |process: &&Process| match stamped.get(&process.pid) {
        Some(place) => Some(*place) == own,
        None => {
            is_adopted(process, registry)
                && match find_tag(process.pid) {
                    Some(found) => found == tag,
                    None => is_alone || is_last && has_lost_stamp(process.pid),
                }
        }
    };
    let roots: Vec<i32> = near
        .iter()
        .filter(is_own)
        .map(|process| process.pid)
        .collect();
    let shells = |is_mine: bool| -> Vec<i32> {
        let sessions = registry
            .iter()
            .filter(|session| (session.tag == tag) == is_mine);
        sessions
            .flat_map(|session| session.shells.iter().copied())
            .collect()
    };
    let mut mine = process::belonging(near, &shells(true), &roots);
    let others = process::belonging(near, &shells(false), &[]);
    mine.retain(|pid| match stamped.get(pid) {
        Some(place) => Some(*place) == own,
        None => !others.contains(pid),
    });
    mine.remove(&getpid().as_raw());
    mine
}

/// Returns true if a process has another limit of file locks than this program and its own children: a process of a
/// session has changed the limit.
fn has_lost_stamp(pid: i32) -> bool {
    let own = stamp::limits_of(getpid().as_raw());
    stamp::limits_of(pid).is_some_and(|limits| Some(limits) != own)
}

/// Returns true if a process became our child by adoption: no session has started it.
fn is_adopted(process: &Process, registry: &[RegisteredSession]) -> bool {
    process.parent == getpid().as_raw()
        && process.session != own_session()
        && !registry
            .iter()
            .any(|session| session.children.contains(&process.pid))
}

/// Returns true if an adopted process that has ended came from one of our sessions. Other parts of the program wait
/// for their own children, some of them in sessions of their own.
fn may_reap(process: &Process, registry: &[RegisteredSession]) -> bool {
    let is_of_shell = |session: &RegisteredSession| session.shells.contains(&process.session);
    is_adopted(process, registry)
        && (place_of(process.pid, registry).is_some()
            || registry
                .iter()
                .any(|session| session.is_unstamped || is_of_shell(session)))
}

fn own_session() -> i32 {
    getsid(None).map_or(0, Pid::as_raw)
}

/// Returns the tag in a process's environment.
pub(crate) fn find_tag(pid: i32) -> Option<String> {
    let environment = process::environment(pid)?;
    let prefix = format!("{TAG_VARIABLE}=");
    let mut variables = environment.split(|byte| *byte == 0);
    let value = variables.find_map(|variable| variable.strip_prefix(prefix.as_bytes()))?;
    Some(String::from_utf8_lossy(value).into_owned())
}

fn sessions() -> MutexGuard<'static, Registry> {
    SESSIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn reap(pid: i32) -> bool {
    let ended = waitpid(Pid::from_raw(pid), Some(WaitPidFlag::WNOHANG));
    ended.is_ok_and(|status| !matches!(status, WaitStatus::StillAlive))
}
