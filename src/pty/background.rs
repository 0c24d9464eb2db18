//! What a command leaves behind in the background of its shell.
//!
//! When a command has ended, the children its shell did not have before are what the script put in
//! the background. The kernel tells when one of them ends; its exit status is for the shell alone.

use std::collections::{BTreeMap, HashSet};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use nix::poll::{PollFd, PollFlags, PollTimeout};
use nix::sys::signal::Signal;

use crate::limits;

use super::group::{self, Group};
use super::process::{self, Process};

/// A process group that a command left behind.
#[derive(Debug, Clone)]
pub struct Background {
    /// Id of the process group.
    pub group: i32,
    shell: i32,
    members: Arc<Vec<Member>>,
    has_terminal: bool,
}

/// A child of the shell.
#[derive(Debug)]
struct Member {
    pid: i32,
    /// Readable once the process has ended.
    end: OwnedFd,
}

/// What a job in the background does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    /// It runs.
    Running,
    /// A signal stopped it.
    Stopped,
    /// Every process of it that the shell started has ended.
    Ended,
}

impl PartialEq for Background {
    fn eq(&self, other: &Self) -> bool {
        let ids = |job: &Self| job.members.iter().map(|m| m.pid).collect::<Vec<_>>();
        (self.group, ids(self)) == (other.group, ids(other))
    }
}

impl Eq for Background {}

impl Background {
    /// Returns how many processes it began with: how many descriptors it holds.
    #[must_use]
    pub fn size(&self) -> usize {
        self.members.len()
    }

    /// Whether it still has the terminal it was started on: the kernel takes that away with the
    /// shell.
    #[must_use]
    pub fn has_terminal(&self) -> bool {
        self.has_terminal
    }

    /// Returns what it does now.
    #[must_use]
    pub fn doing(&self) -> Doing {
        let mut alive = self.members.iter().filter(|member| !member.has_ended());
        let Some(first) = alive.next() else {
            return Doing::Ended;
        };
        let is_stopped = |pid: i32| process::find(pid).is_some_and(|process| process.is_stopped());
        if is_stopped(first.pid) && alive.all(|member| is_stopped(member.pid)) {
            Doing::Stopped
        } else {
            Doing::Running
        }
    }

    /// Whether it is in a group of its own: without job control it is in that of the shell.
    #[must_use]
    pub fn has_own_group(&self) -> bool {
        self.group != self.shell
    }

    /// Returns its group, when it is its own.
    pub(super) fn own_group(&self) -> Option<Group> {
        let group = Group::new(self.group, self.shell)?;
        (self.has_own_group() && process::are_shown()).then_some(group)
    }

    /// Signals those of the processes it began with that are not among `reached` yet; one that is
    /// stopped goes on with it.
    pub(super) fn signal_members(&self, signal: Signal, reached: &mut HashSet<i32>) {
        for member in self.members.iter().filter(|member| !member.has_ended()) {
            if reached.insert(member.pid) {
                let _ = process::send(&member.end, signal);
                let _ = process::send(&member.end, Signal::SIGCONT);
            }
        }
    }

    /// Returns the processes of it, and all they have started.
    pub(super) fn processes(&self) -> Vec<Process> {
        let all = process::all();
        let mut roots = self.own_group().map_or_else(Vec::new, |group| {
            group.members(&all).iter().map(|seen| seen.pid).collect()
        });
        let alive = self.members.iter().filter(|member| !member.has_ended());
        roots.extend(alive.map(|member| member.pid));
        group::below(&all, &roots)
    }

    /// Returns the words of its first process that runs as they were given to it; nothing while that
    /// is a copy of the shell.
    #[must_use]
    pub fn command_line(&self) -> Option<String> {
        let words_of = |pid: i32| std::fs::read(format!("/proc/{pid}/cmdline")).ok();
        let first = self.members.iter().find(|member| !member.has_ended())?;
        let words = words_of(first.pid)?;
        // Its number may be another's by now.
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

impl Member {
    fn has_ended(&self) -> bool {
        let mut asked = [PollFd::new(self.end.as_fd(), PollFlags::POLLIN)];
        nix::poll::poll(&mut asked, PollTimeout::ZERO).is_ok_and(|count| count > 0)
    }
}

/// Returns those jobs among the children of `shell` that are not known yet, and makes them known.
///
/// The second value counts the processes that are left out because there are too many.
pub(super) fn left_by(
    shell: i32,
    children: Vec<i32>,
    known: &mut HashSet<i32>,
) -> (Vec<Background>, u64) {
    if children.is_empty() {
        known.clear();
        return (Vec::new(), 0);
    }
    let unknown: Vec<i32> = children
        .iter()
        .copied()
        .filter(|pid| !known.contains(pid))
        .collect();
    let omitted = unknown
        .len()
        .saturating_sub(limits::MAX_FOLLOWED_PROCESSES_OF_COMMAND) as u64;
    let fresh: Vec<Process> = unknown
        .iter()
        .take(limits::MAX_FOLLOWED_PROCESSES_OF_COMMAND)
        .filter_map(|pid| process::find(*pid))
        .filter(|process| !process.is_zombie() && process.parent == shell)
        .collect();
    *known = children.into_iter().collect();
    (by_group(shell, fresh), omitted)
}

/// Returns what a command left where the kernel does not list the children of a shell, as
/// [`left_by`] does. To ask for each process takes long, so it is done only for a script that may
/// have left something.
pub(super) fn left_unseen(
    shell: i32,
    may_leave: bool,
    known: &mut HashSet<i32>,
) -> (Vec<Background>, u64) {
    if !may_leave {
        return (Vec::new(), 0);
    }
    let mut found = process::all();
    found.retain(|seen| seen.session == shell && seen.pid != shell && !seen.is_zombie());
    let all = found.iter().map(|seen| seen.pid).collect();
    found.retain(|seen| !known.contains(&seen.pid));
    *known = all;
    let most = limits::MAX_FOLLOWED_PROCESSES_OF_COMMAND;
    let omitted = found.len().saturating_sub(most) as u64;
    found.truncate(most);
    let mut jobs = by_group(shell, found);
    // Nothing else tells that a process has ended which is none of our children.
    jobs.retain(|job| job.doing() != Doing::Ended);
    (jobs, omitted)
}

/// Returns the jobs among the processes that are there after their shell has ended and that are not
/// known yet, and makes them known. The second value is that of [`left_by`].
pub(super) fn left_without(
    shell: i32,
    mut processes: Vec<Process>,
    known: &mut HashSet<i32>,
) -> (Vec<Background>, u64) {
    let own = std::process::id();
    // What those have started belongs to them.
    processes.retain(|process| u32::try_from(process.parent) == Ok(own) && process.pid != shell);
    processes.retain(|process| known.insert(process.pid));
    let most = limits::MAX_FOLLOWED_PROCESSES_OF_COMMAND;
    let omitted = processes.len().saturating_sub(most) as u64;
    processes.truncate(most);
    let mut jobs = by_group(shell, processes);
    for job in &mut jobs {
        job.has_terminal = false;
    }
    (jobs, omitted)
}

fn by_group(shell: i32, processes: Vec<Process>) -> Vec<Background> {
    let mut groups: BTreeMap<i32, Vec<Member>> = BTreeMap::new();
    for process in processes {
        if let Some(end) = process::open(process.pid) {
            let pid = process.pid;
            groups
                .entry(process.group)
                .or_default()
                .push(Member { pid, end });
        }
    }
    groups
        .into_iter()
        .map(|(group, members)| Background {
            group,
            shell,
            members: Arc::new(members),
            has_terminal: true,
        })
        .collect()
}
