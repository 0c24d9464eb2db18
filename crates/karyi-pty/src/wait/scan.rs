//! Scans the processes of a job through `/proc`.
//!
//! One scan reads a bounded number of processes; of a larger job it covers a part, and the next scan continues there.
//! A process that was seen waiting is scanned first the next time.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::libc;
use nix::poll::PollFlags;
use nix::sys::signal::{Signal, killpg};
use nix::sys::stat::Mode;
use nix::sys::termios::{LocalFlags, SpecialCharacterIndices, Termios, tcgetattr};
use nix::unistd::{Pid, getsid, tcgetpgrp};

use karyi_core::limits;

use super::watched_terminal::{Activity, WatchedTerminal, is_password_prompt, poll_slave};
use crate::process::{self, Process};
use crate::wait::descriptors::{self, Sources, Terminal};
use crate::wait::syscall::{self, Blocked};

/// State between scans.
#[derive(Debug, Default)]
pub(crate) struct Scanner {
    last_reader: Option<LastReader>,
    /// Some processes of the foreground group, from the last walk.
    group_members: Vec<i32>,
    /// Processes still to be scanned, the next one last.
    queue: Vec<Candidate>,
    /// Processor time of the job at the last whole scan, in clock ticks.
    processor_ticks: u64,
}

/// A thread that was seen reading.
#[derive(Debug, Clone, Copy)]
struct LastReader {
    pid: i32,
    thread: i32,
    relation: Relation,
    /// The terminal it reads, if that is an inner one.
    inner: Option<Terminal>,
    /// True if the job has too many processes for one scan.
    is_in_crowd: bool,
    /// True if a part of the job goes on without it.
    is_beside_work: bool,
}

/// A process to be scanned.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    pid: i32,
    relation: Relation,
}

/// Relation of a process to the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relation {
    /// A process of the session.
    Session,
    /// A descendant of the job.
    BelowJob,
    /// A process that this program has adopted, in a session of its own, like the server of a terminal multiplexer.
    Adopted,
}

/// The terminal whose reader is searched.
#[derive(Debug, Clone, Copy)]
struct ScanTarget {
    terminal: Terminal,
    /// True if a read of it ends by itself after a time.
    is_timed: bool,
    /// Number of terminals around it.
    depth: usize,
}

/// Intermediate result of a walk over several processes.
#[derive(Debug)]
struct ScanState {
    activity: Activity,
    /// The first thread seen reading.
    reader: Option<LastReader>,
    /// True if a part of the job goes on without the reader.
    is_at_work: bool,
    /// Number of processes that may still be scanned.
    budget: usize,
}

impl ScanState {
    fn new() -> Self {
        Self {
            activity: Activity::Busy,
            reader: None,
            is_at_work: false,
            budget: limits::MAX_SCANNED_PROCESSES,
        }
    }
}

impl Scanner {
    /// Returns true if the inner terminal that the job was seen reading is at a password prompt.
    pub(super) fn hides_input_inside(&self) -> bool {
        self.modes_inside()
            .is_some_and(|modes| is_password_prompt(&modes))
    }

    /// Returns the modes of the inner terminal that the job was seen reading.
    pub(super) fn modes_inside(&self) -> Option<Termios> {
        let terminal = self.last_reader.and_then(|last_reader| last_reader.inner);
        terminal.and_then(modes_inside)
    }

    /// Returns true if this process was the last one seen reading.
    pub(crate) fn has_seen_reading(&self, pid: i32) -> bool {
        self.last_reader
            .is_some_and(|last_reader| last_reader.pid == pid)
    }

    /// Returns the processor time that the job had used at the last scan.
    pub(crate) fn processor_time(&self) -> Option<Duration> {
        process::duration_of(self.processor_ticks)
    }

    /// Records a process of the foreground group.
    fn add_member(&mut self, pid: i32) {
        if self.group_members.len() < limits::MAX_CHECKED_GROUP_MEMBERS {
            self.group_members.push(pid);
        }
    }

    /// Returns true if one of the recorded processes is stopped.
    fn has_stopped_member(&self, group: i32) -> bool {
        let is_stopped = |process: Process| process.is_stopped() && process.group == group;
        let mut others = self.group_members.iter();
        others.any(|pid| process::find(*pid).is_some_and(is_stopped))
    }
}

impl WatchedTerminal<'_> {
    /// Scans the shell, then the processes of the job.
    pub(super) fn scan_processes(&self, scanner: &mut Scanner) -> Activity {
        if self.is_shell_idle() {
            return Activity::ShellIdle;
        }
        let (Ok(group), Some(terminal)) = (tcgetpgrp(self.master), Terminal::of_own(self.slave))
        else {
            return Activity::Busy;
        };
        let is_timed = tcgetattr(self.master).is_ok_and(|modes| has_timed_reads(&modes));
        let target = ScanTarget {
            terminal,
            is_timed,
            depth: 0,
        };
        let group = group.as_raw();
        if let Some(found) = self.rescan_last_reader(scanner, group, target) {
            return found;
        }
        self.walk(scanner, group, target)
    }

    /// Returns true if the shell has read every line and waits for more.
    fn is_shell_idle(&self) -> bool {
        if !self.has_taken_lines() {
            return false;
        }
        match syscall::blocked_in(self.shell, self.shell) {
            Ok(Blocked::Read(descriptor)) => self.is_fifo(self.shell, descriptor),
            // This is the `read` of busybox in a trap.
            Ok(Blocked::Wait(descriptors, false)) => match descriptors.as_slice() {
                [descriptor] => self.is_fifo(self.shell, *descriptor),
                _ => false,
            },
            _ => false,
        }
    }

    /// Returns true if a descriptor of a process is the shell's input.
    pub(super) fn is_fifo(&self, pid: i32, descriptor: i32) -> bool {
        let fifo = nix::sys::stat::fstat(self.fifo).ok();
        let fifo = fifo.map(|file| (file.st_dev, file.st_ino));
        fifo.is_some() && file_of(pid, descriptor) == fifo
    }

    /// Kills a program that reads the shell's input, if it still does.
    pub(crate) fn kill_input_thief(&self, pid: i32) {
        let Some(process) = process::open(pid) else {
            return;
        };
        let reads = |thread| {
            let blocked = syscall::blocked_in(pid, thread);
            matches!(blocked, Ok(Blocked::Read(descriptor)) if self.is_fifo(pid, descriptor))
        };
        if pid != self.shell && process::threads(pid).into_iter().any(reads) {
            let _ = process::send(&process, Signal::SIGKILL);
        }
    }

    /// Scans the thread of a crowd that was last seen reading. A smaller job is scanned as a whole each time.
    fn rescan_last_reader(
        &self,
        scanner: &mut Scanner,
        group: i32,
        target: ScanTarget,
    ) -> Option<Activity> {
        // A part that worked may rest by now.
        let may_skip = |reader: &LastReader| reader.is_in_crowd && !reader.is_beside_work;
        let last_reader = scanner.last_reader.filter(may_skip)?;
        let found = process::find(last_reader.pid)
            .filter(|process| self.belongs(process, last_reader.relation, group))
            .filter(|process| !process.is_stopped())
            .map(|process| self.scan_thread(&process, last_reader.thread, target));
        match found {
            Some(ThreadActivity {
                activity: activity @ Activity::Reading(_),
                inner,
                ..
            }) => {
                scanner.last_reader = Some(LastReader {
                    inner,
                    ..last_reader
                });
                Some(match scanner.has_stopped_member(group) {
                    true => Activity::PartlyStopped,
                    false => activity,
                })
            }
            _ => {
                scanner.last_reader = None;
                None
            }
        }
    }

    /// Returns true if the activity of a process counts for the job in the foreground.
    fn belongs(&self, process: &Process, relation: Relation, group: i32) -> bool {
        match relation {
            _ if process.is_zombie() => false,
            Relation::Session => process.group == group,
            // The terminal does not stop a process of another session.
            Relation::BelowJob => process.group == group || process.session != self.shell,
            Relation::Adopted => true,
        }
    }

    fn walk(&self, scanner: &mut Scanner, group: i32, target: ScanTarget) -> Activity {
        let is_first_part = scanner.queue.is_empty();
        if is_first_part {
            scanner.queue = self.candidates(group);
            scanner.group_members.clear();
        }
        let mut state = ScanState::new();
        let mut ticks = 0;
        let mut stops = StopTally::default();
        let mut is_group_seen = false;
        let mut is_part_stopped = false;
        while let Some(candidate) = scanner.queue.pop() {
            let Some(process) = process::find(candidate.pid) else {
                continue;
            };
            if process.group == group {
                is_group_seen = true;
                is_part_stopped |= process.is_stopped();
                scanner.add_member(process.pid);
            }
            let is_member = self.belongs(&process, candidate.relation, group);
            if candidate.relation != Relation::Adopted {
                let is_below = candidate.relation == Relation::BelowJob
                    // Earlier children of the shell need not belong to the job.
                    || is_member && process.pid != self.shell;
                push_children(scanner, &process, is_below, group);
            }
            if is_member {
                stops.add(&process);
                ticks += process.processor_ticks;
                self.scan_process(&process, candidate.relation, target, &mut state);
            }
            state.budget = state.budget.saturating_sub(1);
            if state.budget == 0 {
                break;
            }
        }
        let is_crowd = !is_first_part || !scanner.queue.is_empty();
        if !is_crowd {
            scanner.processor_ticks = ticks;
        }
        if let Some(activity) = self.conclude_reader(scanner, &mut state, is_crowd) {
            return match is_part_stopped {
                true => Activity::PartlyStopped,
                false => activity,
            };
        }
        if !scanner.queue.is_empty() {
            return state.activity;
        }
        if is_first_part && stops.is_stopped() && waits_for_child(self.shell) {
            return Activity::Stopped;
        }
        if is_part_stopped {
            return Activity::PartlyStopped;
        }
        // Where /proc hides the processes of other users.
        if is_first_part && !is_group_seen && exists(group) {
            return self.guess_hidden();
        }
        state.activity
    }

    /// Records the reader that a walk has found, and returns the activity of its job.
    fn conclude_reader(
        &self,
        scanner: &mut Scanner,
        state: &mut ScanState,
        is_in_crowd: bool,
    ) -> Option<Activity> {
        // While the shell itself reads, what else is in its group is in the background.
        state.is_at_work &= state.reader.is_none_or(|reader| reader.pid != self.shell);
        scanner.last_reader = state.reader.map(|reader| LastReader {
            is_in_crowd,
            is_beside_work: state.is_at_work,
            ..reader
        });
        state.reader.map(|_| match state.activity {
            Activity::Reading(_) if state.is_at_work => Activity::Accepting,
            activity => activity,
        })
    }

    /// Returns the processes at which a walk begins, in reverse order.
    fn candidates(&self, group: i32) -> Vec<Candidate> {
        let candidate = |pid, relation| Candidate { pid, relation };
        if !process::lists_children() {
            let pids = process::all().into_iter().map(|process| process.pid);
            return pids.map(|pid| candidate(pid, Relation::Session)).collect();
        }
        let own_session = getsid(None).map_or(0, Pid::as_raw);
        let adopted = process::adopted();
        let newest = adopted.iter().rev().take(limits::MAX_SCANNED_ORPHANS);
        let mut candidates: Vec<Candidate> = newest
            .filter_map(|pid| process::find(*pid))
            .filter(|process| process.pid != self.shell && process.session != own_session)
            .map(|process| match process.session == self.shell {
                true => candidate(process.pid, Relation::Session),
                false => candidate(process.pid, Relation::Adopted),
            })
            .collect();
        candidates.push(candidate(self.shell, Relation::Session));
        // The most frequent case first.
        if group != self.shell {
            candidates.push(candidate(group, Relation::Session));
        }
        candidates
    }

    /// Scans the threads of a process. A stopped process only waits to be continued, although the kernel still shows its
    /// system call.
    fn scan_process(
        &self,
        process: &Process,
        relation: Relation,
        target: ScanTarget,
        state: &mut ScanState,
    ) {
        if process.is_stopped() {
            return;
        }
        // A daemon is no part of the job, and neither is what an inner shell has in its background.
        let is_apart = relation == Relation::Adopted
            || process.foreground > 0 && process.foreground != process.group;
        for thread in process::threads(process.pid) {
            let look = self.scan_thread(process, thread, target);
            let activity = match look.activity {
                Activity::Reading(_) if relation == Relation::Adopted => Activity::Accepting,
                activity => activity,
            };
            state.is_at_work |= look.is_at_work && !is_apart;
            if significance(activity) > significance(state.activity) {
                state.activity = activity;
            }
            let is_reader = matches!(activity, Activity::Reading(_) | Activity::StealsInput(_));
            if is_reader && state.reader.is_none() {
                state.reader = Some(LastReader {
                    pid: process.pid,
                    thread,
                    relation,
                    inner: look.inner,
                    is_in_crowd: false,
                    is_beside_work: false,
                });
            }
        }
    }

    fn scan_thread(&self, process: &Process, thread: i32, target: ScanTarget) -> ThreadActivity {
        let blocked = match syscall::blocked_in(process.pid, thread) {
            Ok(blocked) => blocked,
            // A program of another user, like sudo: only the terminal's modes are visible.
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                return ThreadActivity::at(self.guess_hidden());
            }
            Err(_) => return ThreadActivity::at(Activity::Busy),
        };
        match blocked {
            Blocked::Read(descriptor) if target.terminal.is_open_as(descriptor, process) => {
                ThreadActivity::at(match target.is_timed {
                    true => Activity::Accepting,
                    false => Activity::Reading(fingerprint(process.pid, thread)),
                })
            }
            Blocked::Wait(descriptors, has_limit) => {
                let mut sources = Sources::of(process, descriptors, target.terminal);
                sources.has_timer |= has_limit;
                self.classify_sources(process, thread, &sources, target)
            }
            Blocked::Read(descriptor)
                if process.pid != self.shell && self.is_fifo(process.pid, descriptor) =>
            {
                ThreadActivity::at(Activity::StealsInput(process.pid))
            }
            Blocked::Read(descriptor) | Blocked::Write(descriptor) => {
                ThreadActivity::busy(!descriptors::leads_to_job(process.pid, descriptor))
            }
            Blocked::Child | Blocked::Peer => ThreadActivity::busy(false),
            Blocked::Other => ThreadActivity::busy(true),
        }
    }

    fn guess_hidden(&self) -> Activity {
        let is_hidden = tcgetattr(self.master).is_ok_and(|modes| is_password_prompt(&modes));
        if is_hidden {
            return Activity::Hidden;
        }
        Activity::Opaque(self.guess())
    }

    fn classify_sources(
        &self,
        process: &Process,
        thread: i32,
        sources: &Sources,
        target: ScanTarget,
    ) -> ThreadActivity {
        if !sources.has_terminal {
            return ThreadActivity::busy(sources.end_without_job(process));
        }
        if target.depth < limits::MAX_INNER_TERMINALS {
            let inner = sources.inner.iter().map(|index| Terminal::numbered(*index));
            let looks = inner
                .filter_map(|inner| self.scan_inner_terminal(process, inner, target.depth + 1));
            if let Some(look) = looks.max_by_key(|look| significance(look.activity)) {
                return look;
            }
        }
        let goes_on = sources.has_timer || sources.has_others || !sources.inner.is_empty();
        ThreadActivity::at(match goes_on {
            true => Activity::Accepting,
            false => Activity::Reading(fingerprint(process.pid, thread)),
        })
    }

    /// Scans the foreground job of a terminal whose master side a process relays to ours; returns `None` if that
    /// terminal has no processes.
    fn scan_inner_terminal(
        &self,
        relay: &Process,
        terminal: Terminal,
        depth: usize,
    ) -> Option<ThreadActivity> {
        let below = below(relay.pid);
        let mut inside = below.iter().filter(|process| terminal.controls(process));
        let group = inside.next()?.foreground;
        let opened = open_inside(terminal);
        // As with our own terminal, its reader continues in a moment.
        let has_input = |inside: &OwnedFd| poll_slave(inside).contains(PollFlags::POLLIN);
        if opened.as_ref().is_some_and(has_input) {
            return Some(ThreadActivity::at(Activity::Busy));
        }
        let modes = opened.and_then(|inside| tcgetattr(inside).ok());
        let is_timed = modes.is_some_and(|modes| has_timed_reads(&modes));
        let target = ScanTarget {
            terminal,
            is_timed,
            depth,
        };
        let mut best = ThreadActivity::at(Activity::Busy);
        let members = || below.iter().filter(|process| process.group == group);
        // Only a part is stopped, but the rest is about to be.
        if members().any(Process::is_stopped) {
            return Some(best);
        }
        for process in members() {
            for thread in process::threads(process.pid) {
                let look = self.scan_thread(process, thread, target);
                if significance(look.activity) > significance(best.activity) {
                    best = ThreadActivity {
                        inner: Some(look.inner.unwrap_or(terminal)),
                        ..look
                    };
                }
            }
        }
        Some(best)
    }
}

/// Activity of one thread.
#[derive(Debug, Clone, Copy)]
struct ThreadActivity {
    activity: Activity,
    /// The terminal it reads, if that is an inner one.
    inner: Option<Terminal>,
    /// True if it goes on without a reader of the terminal.
    is_at_work: bool,
}

impl ThreadActivity {
    fn at(activity: Activity) -> Self {
        Self {
            activity,
            inner: None,
            is_at_work: false,
        }
    }

    fn busy(is_at_work: bool) -> Self {
        Self {
            is_at_work,
            ..Self::at(Activity::Busy)
        }
    }
}

/// Returns the rank of an activity among those seen in one scan.
fn significance(activity: Activity) -> u8 {
    match activity {
        Activity::StealsInput(_) => 5,
        Activity::Reading(_) => 4,
        Activity::Accepting => 3,
        Activity::Hidden => 2,
        Activity::Opaque(_) => 1,
        _ => 0,
    }
}

/// Tells whether a job cannot run until it is continued: every process is stopped, or waits for a stopped one. A shell
/// that handles the stop of its child is awake already and runs on.
#[derive(Debug, Default)]
struct StopTally {
    is_any_stopped: bool,
    is_any_awake: bool,
}

impl StopTally {
    fn add(&mut self, process: &Process) {
        if process.is_stopped() {
            self.is_any_stopped = true;
        } else if !self.is_any_awake {
            self.is_any_awake = !waits_for_child(process.pid);
        }
    }

    fn is_stopped(&self) -> bool {
        self.is_any_stopped && !self.is_any_awake
    }
}

fn push_children(scanner: &mut Scanner, process: &Process, is_below: bool, group: i32) {
    let relation = if is_below {
        Relation::BelowJob
    } else {
        Relation::Session
    };
    // The leader of the group is scanned first, on its own.
    let children = process::children(process.pid)
        .into_iter()
        .filter(|pid| *pid != group);
    scanner
        .queue
        .extend(children.map(|pid| Candidate { pid, relation }));
}

/// Returns a bounded number of descendants of a process.
fn below(root: i32) -> Vec<Process> {
    let mut found = Vec::new();
    let mut open = process::children(root);
    while let Some(pid) = open.pop() {
        if found.len() >= limits::MAX_SCANNED_PROCESSES {
            break;
        }
        found.extend(process::find(pid));
        open.extend(process::children(pid));
    }
    found
}

/// Opens an inner terminal.
fn open_inside(terminal: Terminal) -> Option<OwnedFd> {
    let flags = OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    open(&terminal.path(), flags, Mode::empty()).ok()
}

/// Returns the modes of an inner terminal.
fn modes_inside(terminal: Terminal) -> Option<Termios> {
    tcgetattr(open_inside(terminal)?).ok()
}

/// Returns true if a read from a terminal ends by itself after a time.
fn has_timed_reads(modes: &Termios) -> bool {
    let least = modes
        .control_chars
        .get(SpecialCharacterIndices::VMIN as usize);
    !modes.local_flags.contains(LocalFlags::ICANON) && least == Some(&(0 as libc::cc_t))
}

fn waits_for_child(pid: i32) -> bool {
    matches!(syscall::blocked_in(pid, pid), Ok(Blocked::Child))
}

/// Returns true if a group has processes, visible or not.
fn exists(group: i32) -> bool {
    killpg(Pid::from_raw(group), None) != Err(Errno::ESRCH)
}

/// Returns a number for the place where a thread is blocked.
fn fingerprint(pid: i32, thread: i32) -> u64 {
    let mut hasher = DefaultHasher::new();
    let place = std::fs::read(format!("/proc/{pid}/task/{thread}/syscall"));
    (pid, thread, place.unwrap_or_default()).hash(&mut hasher);
    hasher.finish()
}

fn file_of(pid: i32, descriptor: i32) -> Option<(u64, u64)> {
    use std::os::linux::fs::MetadataExt;
    let file = std::fs::metadata(format!("/proc/{pid}/fd/{descriptor}")).ok()?;
    Some((file.st_dev(), file.st_ino()))
}
