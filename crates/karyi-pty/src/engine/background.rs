//! Jobs that a command leaves in the background of its shell.
//!
//! When a command has ended, the children its shell did not have before are the background jobs of the script. The
//! kernel reports when one of them ends; its exit status goes to the shell alone. A program that forks once and
//! continues in its child, as `setsid` does when it leads a group, is followed there.

use std::collections::{BTreeMap, HashSet};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use nix::poll::{PollFd, PollFlags, PollTimeout};
use nix::sys::signal::Signal;

use karyi_core::limits;

use crate::process::group::{self, Group};
use crate::process::{self, Process};
use crate::teardown::registry;

/// A process group that a command left running.
#[derive(Debug, Clone)]
pub struct Background {
    /// Id of the process group.
    pub group: i32,
    shell: i32,
    claims: ProcessClaims,
    members: Arc<Mutex<Members>>,
    has_terminal: bool,
}

/// The processes of a session that already belong to a background job.
#[derive(Debug, Clone)]
pub(crate) struct ProcessClaims {
    pub(crate) tag: String,
    /// Processes that belong to a job, each by its id and start time.
    claimed: Arc<Mutex<HashSet<(i32, u64)>>>,
}

/// The processes of a job.
#[derive(Debug)]
struct Members {
    list: Vec<Member>,
    /// True if all have ended and none continues in a child.
    has_no_successor: bool,
}

/// A child of the shell, or the process that continues in its place.
#[derive(Debug)]
struct Member {
    pid: i32,
    /// Start time, in clock ticks since boot.
    started: u64,
    /// Readable once the process has ended; `None` when that is known.
    end: Option<OwnedFd>,
}

/// State of a background job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackgroundStatus {
    /// It runs.
    Running,
    /// A signal stopped it.
    Stopped,
    /// Every process that the shell started for it has ended, and none of them continued in a child.
    Ended,
}

/// A background job as long as somebody else follows it: each of its processes costs a descriptor.
#[derive(Debug)]
pub(crate) struct WeakBackground {
    members: Weak<Mutex<Members>>,
    job: (i32, i32, ProcessClaims, bool),
}

impl WeakBackground {
    /// Returns true if it runs and is followed. It claims the child it continues in.
    pub(crate) fn runs_on(&self) -> bool {
        let (group, shell, claims, has_terminal) = self.job.clone();
        let job = self.members.upgrade().map(|members| Background {
            group,
            shell,
            claims,
            members,
            has_terminal,
        });
        job.is_some_and(|job| job.status() != BackgroundStatus::Ended)
    }
}

impl PartialEq for Background {
    fn eq(&self, other: &Self) -> bool {
        self.group == other.group && self.ids() == other.ids()
    }
}

impl Eq for Background {}

impl Background {
    /// Returns processes of a shell as jobs, one for each process group. `has_terminal` says that the shell runs on.
    pub(crate) fn by_group(
        shell: i32,
        processes: Vec<Process>,
        claims: &ProcessClaims,
        has_terminal: bool,
    ) -> Vec<Self> {
        let mut groups: BTreeMap<i32, Vec<Member>> = BTreeMap::new();
        for process in processes {
            if let Some(member) = Member::of(&process) {
                groups.entry(process.group).or_default().push(member);
            }
        }
        let make = |(group, list)| Self {
            group,
            shell,
            claims: claims.clone(),
            members: Arc::new(Mutex::new(Members {
                list,
                has_no_successor: false,
            })),
            has_terminal,
        };
        groups.into_iter().map(make).collect()
    }

    /// Returns the number of its processes known to run, each of which holds one descriptor.
    #[must_use]
    pub fn size(&self) -> usize {
        self.members().alive().count()
    }

    pub(crate) fn downgrade(&self) -> WeakBackground {
        WeakBackground {
            members: Arc::downgrade(&self.members),
            job: (
                self.group,
                self.shell,
                self.claims.clone(),
                self.has_terminal,
            ),
        }
    }

    fn members(&self) -> MutexGuard<'_, Members> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ids(&self) -> Vec<i32> {
        let members = self.members();
        members.list.iter().map(|member| member.pid).collect()
    }

    /// Returns true if it still has the terminal it was started on: the kernel takes the terminal away when the shell
    /// ends.
    #[must_use]
    pub fn has_terminal(&self) -> bool {
        self.has_terminal
    }

    /// Returns its state now.
    #[must_use]
    pub fn status(&self) -> BackgroundStatus {
        let mut members = self.members();
        if members.alive().next().is_none() {
            self.follow(&mut members);
        }
        let mut alive = members.alive();
        let Some(first) = alive.next() else {
            return BackgroundStatus::Ended;
        };
        if is_stopped(first.pid) && alive.all(|member| is_stopped(member.pid)) {
            BackgroundStatus::Stopped
        } else {
            BackgroundStatus::Running
        }
    }

    /// Finds the processes that continue after its known ones have ended: those left in their group, and those that
    /// left the group soon after their start.
    fn follow(&self, members: &mut Members) {
        if members.has_no_successor || !process::are_shown() {
            return;
        }
        let mut orphans = registry::orphans(&self.claims.tag);
        orphans.sort_by_key(|seen| (seen.started, seen.pid));
        let is_own = |seen: &Process| {
            self.has_own_group() && (seen.group, seen.session) == (self.group, self.shell)
        };
        let mut found: Vec<Member> = Vec::new();
        for seen in orphans.iter().filter(|seen| is_own(seen)) {
            found.extend(self.claims.claim(seen).then(|| Member::of(seen)).flatten());
        }
        for ended in &members.list {
            let is_next = |seen: &&Process| ended.may_go_on_in(seen) && self.claims.claim(seen);
            let next = orphans.iter().filter(|seen| seen.session != self.shell);
            found.extend(next.clone().find(is_next).and_then(Member::of));
        }
        members.has_no_successor = found.is_empty();
        members.list.extend(found);
    }

    /// Returns true if a signal has stopped one of its processes: a shell continues as soon as the last one of a
    /// pipeline is stopped.
    pub(crate) fn has_stopped(&self) -> bool {
        let members = self.members();
        members.list.iter().any(|member| is_stopped(member.pid))
    }

    /// Returns true if it has its own process group: without job control it is in that of the shell.
    #[must_use]
    pub fn has_own_group(&self) -> bool {
        self.group != self.shell
    }

    /// Returns its process group, unless that is the shell's.
    pub(crate) fn own_group(&self) -> Option<Group> {
        let group = Group::new(self.group, self.shell)?;
        (self.has_own_group() && process::are_shown()).then_some(group)
    }

    /// Signals and continues the processes it began with that are not in `reached` yet.
    pub(crate) fn signal_members(&self, signal: Signal, reached: &mut HashSet<i32>) {
        for member in self.members().alive() {
            if let Some(end) = &member.end
                && reached.insert(member.pid)
            {
                let _ = process::send(end, signal);
                let _ = process::send(end, Signal::SIGCONT);
            }
        }
    }

    /// Returns its processes and all their descendants.
    pub(crate) fn processes(&self) -> Vec<Process> {
        let (all, _) = process::tree();
        let mut roots = self.own_group().map_or_else(Vec::new, |group| {
            group.members(&all).iter().map(|seen| seen.pid).collect()
        });
        roots.extend(self.members().alive().map(|member| member.pid));
        group::below(&all, &roots)
    }

    /// Returns the command line of its first running process; `None` while that is still a copy of the shell.
    #[must_use]
    pub fn command_line(&self) -> Option<String> {
        let words_of = |pid: i32| std::fs::read(format!("/proc/{pid}/cmdline")).ok();
        let mut members = self.members();
        let first = members.alive().next()?;
        let words = words_of(first.pid)?;
        // Its pid may belong to another process by now.
        if first.has_ended() {
            return None;
        }
        if words_of(self.shell).as_ref() == Some(&words) {
            return None;
        }
        let words = String::from_utf8_lossy(&words);
        let line = words.trim_end_matches('\0').replace('\0', " ");
        (!line.is_empty()).then_some(line)
    }
}

fn is_stopped(pid: i32) -> bool {
    process::find(pid).is_some_and(|process| process.is_stopped())
}

impl ProcessClaims {
    pub(crate) fn new(tag: &str) -> Self {
        Self {
            tag: tag.to_owned(),
            claimed: Arc::default(),
        }
    }

    /// Assigns a process to a job; returns false if it already belongs to one.
    pub(crate) fn claim(&self, seen: &Process) -> bool {
        let mut claimed = self.claimed.lock().unwrap_or_else(PoisonError::into_inner);
        if claimed.len() >= limits::MAX_CLAIMED_PROCESSES {
            // Forget those that have ended.
            claimed.retain(|(pid, started)| {
                process::find(*pid).is_some_and(|now| now.started == *started)
            });
        }
        claimed.insert((seen.pid, seen.started))
    }
}

impl Members {
    /// Returns the processes that run.
    fn alive(&mut self) -> impl Iterator<Item = &mut Member> {
        let list = self.list.iter_mut();
        list.filter_map(|member| (!member.has_ended()).then_some(member))
    }
}

impl Member {
    /// Opens a process; returns `None` when it has ended.
    fn of(seen: &Process) -> Option<Self> {
        Some(Self {
            pid: seen.pid,
            started: seen.started,
            end: Some(process::open(seen.pid)?),
        })
    }

    /// Returns true if a process may be the child in which this one continued: it was started soon after.
    fn may_go_on_in(&self, seen: &Process) -> bool {
        let later = seen.started.saturating_sub(self.started);
        let is_soon = |age| age <= limits::SUCCESSOR_AGE;
        let is_later = (seen.started, seen.pid) > (self.started, self.pid);
        is_later && process::duration_of(later).is_some_and(is_soon)
    }

    /// Returns true if it has ended, and closes its descriptor then.
    fn has_ended(&mut self) -> bool {
        let Some(end) = &self.end else {
            return true;
        };
        let mut polled = [PollFd::new(end.as_fd(), PollFlags::POLLIN)];
        let has_ended =
            nix::poll::poll(&mut polled, PollTimeout::ZERO).is_ok_and(|count| count > 0);
        if has_ended {
            self.end = None;
        }
        has_ended
    }
}
