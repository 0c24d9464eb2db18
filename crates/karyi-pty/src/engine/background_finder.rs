//! Finds the background jobs that commands leave.
//!
//! Each search begins with the children of the shell, which the kernel lists; querying every process takes long, so
//! that is done only for a script that may have left something.

use std::collections::HashSet;
use std::time::Instant;

use karyi_core::limits;

use crate::engine::background::{Background, BackgroundStatus, ProcessClaims, WeakBackground};
use crate::process::{self, Process};
use crate::shell::script_traits::ScriptTraits;
use crate::teardown::registry;
use crate::terminal::live_shell::LiveShell;

/// Background jobs of one command.
#[derive(Default)]
pub(crate) struct LeftJobs {
    pub(crate) jobs: Vec<Background>,
    /// Number of processes left out because there are too many.
    pub(crate) omitted: u64,
}

/// Search for the background jobs of a session, command by command.
pub(crate) struct BackgroundFinder {
    /// Children that earlier commands left.
    known: HashSet<i32>,
    /// Processes that belong to a background job.
    claims: ProcessClaims,
    /// Background jobs of earlier commands.
    followed: Vec<WeakBackground>,
    /// End of the last command.
    since: Instant,
}

impl LeftJobs {
    /// Groups processes of a shell into jobs, up to a number of processes.
    fn of(
        shell: i32,
        mut processes: Vec<Process>,
        claims: &ProcessClaims,
        has_terminal: bool,
    ) -> Self {
        let most = limits::MAX_FOLLOWED_PROCESSES_OF_COMMAND;
        let omitted = processes.len().saturating_sub(most) as u64;
        processes.truncate(most);
        Self {
            jobs: Background::by_group(shell, processes, claims, has_terminal),
            omitted,
        }
    }
}

impl BackgroundFinder {
    /// Creates the search of a session.
    pub(crate) fn new(tag: &str) -> Self {
        Self {
            known: HashSet::new(),
            claims: ProcessClaims::new(tag),
            followed: Vec::new(),
            since: Instant::now(),
        }
    }

    /// Records that a command has ended: what starts later belongs to the next one.
    pub(crate) fn command_ended(&mut self) {
        self.since = Instant::now();
    }

    /// Returns true if the shell had children at the last search.
    pub(crate) fn has_children(&self) -> bool {
        !self.known.is_empty()
    }

    /// Returns the background jobs of a command that has ended.
    pub(crate) fn left_by_command(&mut self, script: ScriptTraits, live: &LiveShell) -> LeftJobs {
        let mut left = match live.fast_path.procfs.children() {
            Some(children) => self.new_children(live.pid, children),
            None if script.may_leave => self.new_processes(live.pid),
            None => LeftJobs::default(),
        };
        if !script.may_leave {
            return left;
        }
        // An earlier job claims the child it continues in before it counts as one of this command.
        self.followed.retain(WeakBackground::runs_on);
        self.followed
            .extend(left.jobs.iter().map(Background::downgrade));
        if script.may_leave_session {
            let apart = self.detached(live.pid, &left.jobs);
            left.jobs.extend(apart.jobs);
            left.omitted += apart.omitted;
        }
        left
    }

    /// Returns the background jobs that the last command of an ended shell left. `may_leave` says that its script may
    /// leave some.
    pub(crate) fn left_by_shell(&mut self, shell: i32, may_leave: bool) -> LeftJobs {
        let own = std::process::id();
        // Older ones belong to earlier commands: they were reported, or are daemons.
        let mut processes = registry::processes(&self.claims.tag);
        processes.retain(|seen| seen.age().is_none_or(|_| self.is_young(seen)));
        // Their descendants belong to them.
        processes.retain(|seen| u32::try_from(seen.parent) == Ok(own) && seen.pid != shell);
        processes.retain(|seen| self.known.insert(seen.pid) && self.claims.claim(seen));
        let mut left = LeftJobs::of(shell, processes, &self.claims, false);
        if !may_leave && !process::are_shown() {
            // The command they belong to is unknown.
            left.omitted += left.jobs.drain(..).len() as u64;
        }
        left
    }

    /// Returns new jobs among the children of a shell.
    fn new_children(&mut self, shell: i32, children: Vec<i32>) -> LeftJobs {
        let unknown = children.iter().copied();
        let unknown: Vec<i32> = unknown.filter(|pid| !self.known.contains(pid)).collect();
        let most = limits::MAX_FOLLOWED_PROCESSES_OF_COMMAND;
        let fresh = unknown.iter().take(most);
        let fresh = fresh.filter_map(|pid| process::find(*pid));
        let fresh = fresh.filter(|seen| !seen.is_zombie() && seen.parent == shell);
        let left = LeftJobs::of(shell, fresh.collect(), &self.claims, true);
        self.known = children.into_iter().collect();
        LeftJobs {
            omitted: unknown.len().saturating_sub(most) as u64,
            ..left
        }
    }

    /// Returns new jobs in the session of a shell, where the kernel does not list the children of a process.
    fn new_processes(&mut self, shell: i32) -> LeftJobs {
        let mut found = process::all();
        found.retain(|seen| seen.session == shell && seen.pid != shell && !seen.is_zombie());
        let all = found.iter().map(|seen| seen.pid).collect();
        found.retain(|seen| !self.known.contains(&seen.pid));
        self.known = all;
        let mut left = LeftJobs::of(shell, found, &self.claims, true);
        // Nothing else reports the end of a process that is not our child.
        left.jobs
            .retain(|job| job.status() != BackgroundStatus::Ended);
        left
    }

    /// Returns jobs that had left the shell's session when the command ended, like the program of `setsid x &`;
    /// `fresh` are the jobs that stayed in it.
    fn detached(&self, shell: i32, fresh: &[Background]) -> LeftJobs {
        let is_apart =
            |seen: &Process| seen.session == seen.pid && seen.pid != shell && self.is_young(seen);
        if !process::are_shown() || !has_adopted(is_apart) {
            return LeftJobs::default();
        }
        for job in fresh {
            // A job claims the child it continues in before others can.
            let _ = job.status();
        }
        let mut apart = registry::orphans(&self.claims.tag);
        apart.retain(|seen| is_apart(seen) && self.claims.claim(seen));
        LeftJobs::of(shell, apart, &self.claims, true)
    }

    /// Returns true if a process has started since the last command ended.
    fn is_young(&self, seen: &Process) -> bool {
        let longest = self.since.elapsed() + limits::PROCESS_CLOCK_TICK;
        seen.age().is_some_and(|age| age <= longest)
    }
}

/// Returns true if this program may have adopted a matching process. That is rare, and scanning all processes takes
/// long.
#[cfg(target_os = "linux")]
fn has_adopted(is_wanted: impl Fn(&Process) -> bool) -> bool {
    let mut adopted = process::adopted().into_iter().filter_map(process::find);
    !process::lists_children() || adopted.any(|seen| is_wanted(&seen))
}

#[cfg(not(target_os = "linux"))]
fn has_adopted(_: impl Fn(&Process) -> bool) -> bool {
    true
}
