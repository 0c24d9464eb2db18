//! Ends a job with ever stronger signals: INT, TERM, KILL.
//!
//! The signals go to the group in the foreground, and to every group that takes its place while the
//! script goes on. The shell itself is killed only when it is the job: when it is that group for
//! some time, or starts one program after the other although each is killed.

use std::time::Instant;

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

use crate::error::{ErrorCode, ToolError};
use crate::limits;

use super::live::Live;
use super::session::Session;
use super::state;

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
        let job = self.job_number().ok_or_else(|| state::too_late(None))?;
        for (signal, name) in LADDER {
            if self.climb(job, signal).await {
                return Ok(name);
            }
        }
        let message = "the command runs on after INT, TERM and KILL";
        Err(ToolError::new(ErrorCode::SessionFailed, message))
    }

    fn job_number(&self) -> Option<u64> {
        let state = self.shared().lock();
        state.job.as_ref().map(|job| job.number)
    }

    /// Sends one signal and waits; returns whether the job has ended.
    async fn climb(&self, job: u64, signal: Signal) -> bool {
        let start = Instant::now();
        let mut step = Step::new(signal);
        let mut pause = limits::WAIT_SCAN_MIN;
        while start.elapsed() < limits::JOB_LADDER_STEP {
            if self.job_number() != Some(job) {
                return true;
            }
            let live = self.shared().lock().live.clone();
            if let Some(live) = live {
                step.signal(&live);
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(limits::WAIT_SCAN_MAX);
        }
        self.job_number() != Some(job)
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

    fn signal(&mut self, live: &Live) {
        let Ok(group) = live.foreground_group() else {
            return;
        };
        let is_shell = group.as_raw() == live.pid;
        if !is_shell {
            self.shell_since = None;
        }
        self.repeat_if_due();
        if self.is_outrun() {
            let _ = kill(Pid::from_raw(live.pid), self.signal);
        }
        if self.reached.contains(&group) || is_shell && !self.may_reach_shell() {
            return;
        }
        self.reached.push(group);
        let _ = killpg(group, self.signal);
        // A stopped process acts on a signal only when it goes on.
        let _ = killpg(group, Signal::SIGCONT);
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
    /// foreground for a moment only.
    fn may_reach_shell(&mut self) -> bool {
        let since = *self.shell_since.get_or_insert_with(Instant::now);
        self.signal != Signal::SIGKILL || since.elapsed() >= limits::SHELL_GRACE
    }
}
