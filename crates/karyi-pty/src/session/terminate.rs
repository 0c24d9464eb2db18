//! Ends a job by signal escalation: INT, TERM, KILL.
//!
//! The signals go to the process group in the foreground, and to every group that follows it while the script runs on;
//! or to the group of a background job. Each signal is followed by CONT for stopped processes. The shell itself is
//! killed only when it is the job: when it stays in the foreground, or starts one program after the other although
//! each is killed.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;

use crate::engine::background::{Background, BackgroundStatus};
use crate::engine::pending_call::{self, Progress, Sink};
use crate::process::group::{self, Group};
use crate::process::{self, Process};
use crate::session::Session;
use crate::terminal::live_shell::LiveShell;

/// The signals, in this order.
const SIGNALS: [(Signal, &str); 3] = [
    (Signal::SIGINT, "INT"),
    (Signal::SIGTERM, "TERM"),
    (Signal::SIGKILL, "KILL"),
];

impl Session {
    /// Ends the running command with INT, TERM and KILL, one second apart; returns the signal that ended it. If the
    /// shell had to be killed, another one is started.
    ///
    /// # Errors
    /// `no_job` when nothing runs, `session_failed` when the command survives all signals.
    pub async fn end_job(&self) -> Result<&'static str, ToolError> {
        let job = self.job().ok_or_else(|| pending_call::no_job_error(None))?;
        let processes = self.processes().await;
        for (signal, name) in SIGNALS {
            if self.escalate(job, signal).await {
                let rest = move || group::end_survivors(&processes);
                let _ = tokio::task::spawn_blocking(rest).await;
                return Ok(name);
            }
        }
        Err(survival_error())
    }

    /// Ends the running command as [`Session::end_job`] does, and sends its last output to `sink`.
    ///
    /// # Errors
    /// Those of [`Session::end_job`].
    pub async fn end_job_with_output(&self, sink: Sink) -> Result<Progress, ToolError> {
        let reply = {
            let mut state = self.job_state()?;
            let reply = self.attach(&mut state, sink, Some(limits::INPUT_TIMEOUT), None);
            if let Some(call) = &mut state.call {
                call.is_for_end = true;
                state.mark_interrupted();
            }
            reply
        };
        self.shared().alarm.ring();
        let (ended, progress) = tokio::join!(self.end_job(), reply.wait());
        ended?;
        progress
    }

    /// Ends a background job with INT, TERM and KILL, one second apart, even if it is stopped; returns the signal that
    /// ended it.
    ///
    /// # Errors
    /// `no_job` when it has ended, `session_failed` when it survives all signals.
    pub async fn end_background(&self, job: &Background) -> Result<&'static str, ToolError> {
        if job.status() == BackgroundStatus::Ended {
            let message = "the job has ended; nothing was sent";
            return Err(ToolError::new(ErrorCode::NoJob, message));
        }
        let job = job.clone();
        let ending = move || {
            let processes = job.processes();
            let ended = SIGNALS
                .into_iter()
                .find(|(signal, _)| job.escalate(*signal));
            group::end_survivors(&processes);
            ended.map(|(_, name)| name)
        };
        let ended = tokio::task::spawn_blocking(ending).await;
        ended.ok().flatten().ok_or_else(survival_error)
    }

    /// Returns the processes of the job in the foreground and all their descendants.
    async fn processes(&self) -> Vec<Process> {
        let Some(live) = self.shared().lock().shell.live.clone() else {
            return Vec::new();
        };
        let found = tokio::task::spawn_blocking(move || {
            let Some(group) = live.foreground_group() else {
                return Vec::new();
            };
            let (all, _) = process::tree();
            // Descendants of the shell itself may be in the background.
            let mut members = group.members(&all);
            members.retain(|seen| seen.pid != live.pid);
            let members: Vec<i32> = members.iter().map(|seen| seen.pid).collect();
            group::below(&all, &members)
        });
        found.await.unwrap_or_default()
    }

    /// Sends one signal and waits; returns true if the job has ended.
    async fn escalate(&self, job: u64, signal: Signal) -> bool {
        let start = Instant::now();
        let mut step = SignalStep::new(signal);
        let mut pause = limits::WAIT_SCAN_MIN;
        while start.elapsed() < step_time(signal) {
            if self.job() != Some(job) {
                return true;
            }
            let live = self.shared().lock().shell.live.clone();
            if let Some(group) = live.and_then(|live| step.next_group(&live)) {
                // Off the runtime's thread, because it scans processes.
                let work = move || group.signal_all(signal);
                let _ = tokio::task::spawn_blocking(work).await;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(limits::WAIT_SCAN_MAX);
        }
        self.job() != Some(job)
    }
}

impl Background {
    /// Signals all its processes, including new ones, for the time of one step; returns true if it has ended.
    fn escalate(&self, signal: Signal) -> bool {
        let start = Instant::now();
        let mut reached = HashSet::new();
        let mut pause = limits::WAIT_SCAN_MIN;
        loop {
            self.signal_members(signal, &mut reached);
            let group = self.own_group();
            let fresh = group.map_or(0, |group| group.signal_fresh(signal, &mut reached));
            if fresh == 0 && self.status() == BackgroundStatus::Ended {
                return true;
            }
            if start.elapsed() >= step_time(signal) {
                return false;
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(limits::WAIT_SCAN_MAX);
        }
    }
}

/// Returns how long a signal may take to end a job. Nothing follows KILL.
fn step_time(signal: Signal) -> Duration {
    match signal {
        Signal::SIGKILL => limits::JOB_KILL_TIMEOUT,
        _ => limits::JOB_LADDER_STEP,
    }
}

/// Returns the error of a job that no signal ends.
fn survival_error() -> ToolError {
    let message = "the command survived INT, TERM and KILL";
    ToolError::new(ErrorCode::SessionFailed, message)
}

/// One signal on its way to the groups in the foreground.
#[derive(Debug)]
struct SignalStep {
    signal: Signal,
    /// Groups that have received it.
    reached: Vec<Group>,
    /// The time since which the shell itself has been in the foreground.
    shell_since: Option<Instant>,
    start: Instant,
    is_repeated: bool,
}

impl SignalStep {
    fn new(signal: Signal) -> Self {
        Self {
            signal,
            reached: Vec::new(),
            shell_since: None,
            start: Instant::now(),
            is_repeated: false,
        }
    }

    /// Returns the next group to signal.
    fn next_group(&mut self, live: &LiveShell) -> Option<Group> {
        let group = live.foreground_group()?;
        let is_shell = group.is_of_shell();
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

    /// Sends the signal once more in the middle of a step: a program that was just being started may have lost the
    /// first one.
    fn repeat_if_due(&mut self) {
        let is_due = self.start.elapsed() >= limits::JOB_LADDER_STEP / 2;
        if is_due && !self.is_repeated && self.signal != Signal::SIGKILL {
            self.is_repeated = true;
            self.reached.clear();
        }
    }

    /// Returns true if the shell runs on with other programs although all were killed.
    fn is_outrun(&self) -> bool {
        self.signal == Signal::SIGKILL
            && self.reached.len() > 1
            && self.start.elapsed() >= limits::SHELL_GRACE
    }

    /// Returns true if the shell may be signalled, too. Between two programs of a script, and when it handles the end
    /// of a program, it is in the foreground for a moment only: a signal then would make dash and ksh lose the line
    /// that prints the mark.
    fn may_reach_shell(&mut self) -> bool {
        let since = *self.shell_since.get_or_insert_with(Instant::now);
        let grace = match self.signal {
            Signal::SIGKILL => limits::SHELL_GRACE,
            _ => limits::SHELL_GRACE / 3,
        };
        since.elapsed() >= grace
    }
}
