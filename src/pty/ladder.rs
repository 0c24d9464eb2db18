//! Ends a job with ever stronger signals: INT, TERM, KILL.
//!
//! The signals go to the group in the foreground, and to every group that takes its place while the
//! script goes on. The shell itself is killed only when it is the job: when it is that group for
//! some time, or starts one program after the other although each is killed.

use std::collections::HashSet;
use std::time::Instant;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::error::{ErrorCode, ToolError};
use crate::limits;

use super::live::Live;
use super::process::{self, Process};
use super::session::Session;
use super::state::{self, Progress, Sink};

/// The signals, in this order.
const LADDER: [(Signal, &str); 3] = [
    (Signal::SIGINT, "INT"),
    (Signal::SIGTERM, "TERM"),
    (Signal::SIGKILL, "KILL"),
];

impl Session {
    /// Ends the running command with INT, TERM and KILL, one second apart; returns the signal that
    /// ended it. Another shell takes the place of one that had to be killed.
    ///
    /// # Errors
    /// `no_job` when nothing runs, `session_failed` when the command outlives all signals.
    pub async fn end_job(&self) -> Result<&'static str, ToolError> {
        let job = self.job().ok_or_else(|| state::too_late(None))?;
        let away = self.away().await;
        for (signal, name) in LADDER {
            if self.climb(job, signal).await {
                let _ = tokio::task::spawn_blocking(move || end_those_away(&away)).await;
                return Ok(name);
            }
        }
        let message = "the command runs on after INT, TERM and KILL";
        Err(ToolError::new(ErrorCode::SessionFailed, message))
    }

    /// Ends the running command as [`Session::end_job`] does, and hands its last output to `sink`.
    ///
    /// # Errors
    /// Those of [`Session::end_job`].
    pub async fn end_job_telling(&self, sink: Sink) -> Result<Progress, ToolError> {
        let reply = {
            let mut state = self.job_state()?;
            let reply = self.attach(&mut state, sink, Some(limits::INPUT_TIMEOUT), None);
            if let Some(call) = &mut state.call {
                call.is_for_end = true;
            }
            reply
        };
        self.shared().wake();
        let (ended, progress) = tokio::join!(self.end_job(), reply.wait());
        ended?;
        progress
    }

    /// Returns the processes of the job that have left its session, where no signal to its group
    /// reaches them.
    async fn away(&self) -> Vec<Process> {
        let Some(live) = self.shared().lock().live.clone() else {
            return Vec::new();
        };
        let found = tokio::task::spawn_blocking(move || {
            let Ok(group) = live.foreground_group().map(Pid::as_raw) else {
                return Vec::new();
            };
            let all = process::all();
            // What stands below the shell itself may be in the background.
            let is_member = |seen: &&Process| seen.group == group && seen.pid != live.pid;
            let members: Vec<i32> = all.iter().filter(is_member).map(|seen| seen.pid).collect();
            let below = process::belonging(&all, &[], &members);
            let is_away = |seen: &Process| below.contains(&seen.pid) && seen.session != live.pid;
            all.into_iter().filter(is_away).collect()
        });
        found.await.unwrap_or_default()
    }

    /// Sends one signal and waits; returns whether the job has ended.
    async fn climb(&self, job: u64, signal: Signal) -> bool {
        let start = Instant::now();
        let mut step = Step::new(signal);
        let mut pause = limits::WAIT_SCAN_MIN;
        while start.elapsed() < limits::JOB_LADDER_STEP {
            if self.job() != Some(job) {
                return true;
            }
            let live = self.shared().lock().live.clone();
            if let Some((live, group)) =
                live.and_then(|live| Some((live.clone(), step.next_group(&live)?)))
            {
                // Off the runtime's thread: its processes are looked for.
                let work = move || signal_group(&live, group, signal);
                let _ = tokio::task::spawn_blocking(work).await;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(limits::WAIT_SCAN_MAX);
        }
        self.job() != Some(job)
    }
}

/// Kills those that are still there, and what they have started.
fn end_those_away(away: &[Process]) {
    if away.is_empty() {
        return;
    }
    let all = process::all();
    let is_same = |seen: &&Process| away.iter().any(|known| known.is_same(seen));
    let roots: Vec<i32> = all.iter().filter(is_same).map(|seen| seen.pid).collect();
    let below = process::belonging(&all, &[], &roots);
    for seen in all.iter().filter(|seen| below.contains(&seen.pid)) {
        process::signal(seen, Signal::SIGKILL);
    }
}

/// Signals every process of a group of the shell's session, also what is started meanwhile. Each is
/// opened first, so that none is hit that only has the number of one that has ended.
fn signal_group(live: &Live, group: Pid, signal: Signal) {
    if process::find(live.pid).is_none() {
        let _ = killpg(group, signal);
        let _ = killpg(group, Signal::SIGCONT);
        return;
    }
    let mut reached = HashSet::new();
    for _ in 0..limits::MAX_SIGNALLING_LOOKS {
        let is_fresh = |seen: &Process| {
            (seen.group, seen.session) == (group.as_raw(), live.pid)
                && !seen.is_zombie()
                && !reached.contains(&seen.pid)
        };
        let mut fresh = process::all();
        fresh.retain(is_fresh);
        if fresh.is_empty() {
            return;
        }
        if signal == Signal::SIGKILL {
            // No fork in it succeeds meanwhile; and nobody else has its number while it is in use.
            let _ = killpg(group, signal);
        }
        for seen in fresh {
            process::signal(&seen, signal);
            // A stopped process acts on a signal only when it goes on.
            process::signal(&seen, Signal::SIGCONT);
            reached.insert(seen.pid);
        }
    }
}

/// One signal on its way to whoever is in the foreground.
#[derive(Debug)]
struct Step {
    signal: Signal,
    /// The groups that have it.
    reached: Vec<Pid>,
    /// Since when the shell itself has been in the foreground.
    shell_since: Option<Instant>,
    start: Instant,
    is_repeated: bool,
}

impl Step {
    fn new(signal: Signal) -> Self {
        Self {
            signal,
            reached: Vec::new(),
            shell_since: None,
            start: Instant::now(),
            is_repeated: false,
        }
    }

    /// Returns the group that is to get the signal now.
    fn next_group(&mut self, live: &Live) -> Option<Pid> {
        let group = live.foreground_group().ok()?;
        let is_shell = group.as_raw() == live.pid;
        if !is_shell {
            self.shell_since = None;
        }
        self.repeat_if_due();
        if self.is_outrun() {
            live.signal_shell(self.signal);
        }
        if self.reached.contains(&group) || is_shell && !self.may_reach_shell() {
            return None;
        }
        self.reached.push(group);
        Some(group)
    }

    /// Has the groups get the signal once more in the middle of a step: a program that was just being
    /// started lost the first one.
    fn repeat_if_due(&mut self) {
        let is_due = self.start.elapsed() >= limits::JOB_LADDER_STEP / 2;
        if is_due && !self.is_repeated && self.signal != Signal::SIGKILL {
            self.is_repeated = true;
            self.reached.clear();
        }
    }

    /// Whether the shell has gone on to other programs although all were killed.
    fn is_outrun(&self) -> bool {
        self.signal == Signal::SIGKILL
            && self.reached.len() > 1
            && self.start.elapsed() >= limits::SHELL_GRACE
    }

    /// Whether the shell gets the signal, too. Between two programs of a script it is in the
    /// foreground for a moment only, and so it is when it takes notice of the end of its program:
    /// a signal then would make dash and ksh lose the line that tells the end.
    fn may_reach_shell(&mut self) -> bool {
        let since = *self.shell_since.get_or_insert_with(Instant::now);
        let grace = match self.signal {
            Signal::SIGKILL => limits::SHELL_GRACE,
            _ => limits::SHELL_GRACE / 3,
        };
        since.elapsed() >= grace
    }
}

#[cfg(test)]
mod tests {
    use nix::errno::Errno;

    use super::super::live::foreground_group;

    #[test]
    fn a_terminal_whose_shell_is_gone_has_no_group_to_signal() {
        let pair = nix::pty::openpty(None, None).unwrap();
        let raw = nix::unistd::tcgetpgrp(&pair.master).map(nix::unistd::Pid::as_raw);
        if cfg!(target_os = "linux") {
            assert_eq!(raw, Ok(0));
        }
        let error = foreground_group(&pair.master).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(Errno::ESRCH as i32));
    }
}
