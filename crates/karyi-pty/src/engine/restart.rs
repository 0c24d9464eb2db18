//! Restarts the shell of a session when it has ended.

use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::time::Instant;

use karyi_core::error::ToolError;
use karyi_core::limits;

use crate::engine::Engine;
use crate::engine::background::BackgroundStatus;
use crate::engine::job::{Job, Verdict};
use crate::engine::pending_call::Restart;
use crate::teardown::registry;

/// State that every restart loses.
const ALWAYS_LOST: [&str; 3] = ["variables", "traps", "jobs"];

impl Engine {
    /// Starts the shell unless one runs, and restores its files if they are gone.
    pub(crate) fn start_again(&mut self) -> Result<(), ToolError> {
        self.restore_files()?;
        if self.running.is_some() {
            return Ok(());
        }
        let cwd = self.shared.lock().shell.cwd.clone();
        let restart = self.restart_in(cwd, true)?;
        self.shared.lock().shell.restart = Some(restart);
        Ok(())
    }

    /// Restores the session's files when a command has removed them.
    pub(crate) fn restore_files(&mut self) -> Result<(), ToolError> {
        if self.shared.lock().shell.script.exists() {
            return Ok(());
        }
        let script = self.launcher.restore_files(self.running.as_mut())?;
        if self.running.is_some() {
            self.snapshots.forget_partial();
        }
        self.shared.lock().shell.script = script;
        Ok(())
    }

    /// Handles the end of the shell: reports the status of its command and starts another shell.
    pub(crate) fn shell_ended(&mut self) {
        self.read_last_output();
        let Some(mut running) = self.running.take() else {
            return;
        };
        let status = running.child.process.wait().map_or(1, exit_code);
        registry::shell_reaped(running.live.pid);
        self.snapshots.read(&running.child.snapshots);
        self.snapshots.forget_partial();
        let script = self.shared.lock().job.as_ref().map(|job| job.script);
        let may_leave = script.is_some_and(|script| script.may_leave);
        let mut left = self.background.left_by_shell(running.live.pid, may_leave);
        let mut state = self.shared.lock();
        state.shell.live = None;
        // The job stays until there is a shell for another one.
        let job = state.job.as_ref();
        let number = job.map(|job| job.number);
        let has_begun = state.shell.script.was_begun();
        let is_unread = job
            .is_some_and(|job| job.is_unread(&running.live) || !has_begun && job.may_be_resent());
        let reported = self.reported_cwd(job, state.snapshots.requested);
        let is_known = reported.is_some() || !job.is_some_and(|job| job.script.may_move);
        let cwd = reported.unwrap_or_else(|| state.shell.cwd.clone());
        drop(state);
        let restart = self.restart_in(cwd, is_known);
        // Drop those that ended with the shell.
        left.jobs
            .retain(|left| left.status() != BackgroundStatus::Ended);
        let mut state = self.shared.lock();
        // Another job may have begun with the new shell.
        let job = state.job.take_if(|job| Some(job.number) == number);
        state
            .history
            .store_background(number.unwrap_or_default(), left);
        state.shell.restart = Some(restart.unwrap_or_else(|_| everything_lost()));
        let job = match job {
            Some(job) if is_unread => match state.restart_unread_job(job, self.shared.dialect) {
                Ok(()) => return,
                Err(job) => Some(*job),
            },
            job => job,
        };
        let answer = job.and_then(|job| match job.marks.verdict() {
            _ if !has_begun && !job.lines.was_repeated() => state.end_unstarted_job(&job),
            _ if !has_begun => state.end_unbegun_job(&job),
            Some(Verdict::Killed) => state.end_killed_job(job.number),
            Some(Verdict::Exited(mark, _)) => state.end_job(job.number, mark.status, false),
            None => state.end_job(job.number, status, false),
        });
        drop(state);
        if let Some(answer) = answer {
            answer.send();
        }
    }

    /// Returns the shell's directory at its end, if the shell reported it.
    fn reported_cwd(&self, job: Option<&Job>, requested_snapshots: u64) -> Option<PathBuf> {
        if let Some(original_directory) = job.and_then(|job| job.original_directory.clone()) {
            return Some(original_directory);
        }
        if let Some(Verdict::Exited(mark, _)) = job.and_then(|job| job.marks.verdict()) {
            return Some(mark.cwd.clone());
        }
        // A snapshot that was not requested is that of the shell's exit trap.
        let last = self.snapshots.last.as_ref();
        let last = last.filter(|_| self.snapshots.received > requested_snapshots);
        last.map(|snapshot| snapshot.cwd.clone())
    }

    /// Starts the next shell in a directory; `is_known` is false if the last shell may have been in another one.
    fn restart_in(&mut self, cwd: PathBuf, is_known: bool) -> Result<Restart, ToolError> {
        let snapshot = self.launcher.usable(self.snapshots.last.clone());
        let (fit, left_out) = match &snapshot {
            Some(whole) => {
                let secrets = self.shared.lock().shell.secrets.clone();
                let (fit, left_out) = whole.without_secrets(&secrets);
                (Some(fit), left_out)
            }
            None => (None, Vec::new()),
        };
        self.start_shell(&cwd, fit.as_ref(), &[])?;
        let dialect = self.shared.dialect;
        let (restored, age) = match (&snapshot, &self.snapshots.last) {
            (Some(old), Some(new)) if new.taken > old.taken => {
                let restored_parts = old.unchanged_parts(dialect.restorable(), new);
                (restored_parts, Some(old.taken.elapsed()))
            }
            _ => (Vec::new(), None),
        };
        let is_lost = |name: &&&str| !restored.contains(*name);
        let lost = dialect.restorable().iter().filter(is_lost);
        let is_there = is_known && self.shared.lock().shell.cwd == cwd;
        let place = |is_wanted: bool| ["cwd"].into_iter().filter(move |_| is_wanted);
        let lost = place(!is_there)
            .chain(lost.copied())
            .chain(dialect.unprintable().iter().copied())
            .chain(ALWAYS_LOST);
        Ok(Restart {
            lost: lost.map(str::to_owned).chain(left_out).collect(),
            restored: place(is_there)
                .chain(restored.iter().copied())
                .map(str::to_owned)
                .collect(),
            snapshot_age_ms: age.map(|age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX)),
        })
    }

    /// Reads what the shell printed before it ended; other programs may print on.
    pub(crate) fn read_last_output(&mut self) {
        self.poll_marks();
        let until = Instant::now() + limits::LAST_OUTPUT_TIMEOUT;
        while Instant::now() < until && self.read_terminal() {}
    }
}

/// Returns the status a shell would report for an ended process.
fn exit_code(status: std::process::ExitStatus) -> i32 {
    let signal = status.signal().map_or(1, |signal| 128 + signal);
    status.code().unwrap_or(signal)
}

fn everything_lost() -> Restart {
    let lost = ["cwd", "environment", "functions", "aliases", "options"];
    Restart {
        restored: Vec::new(),
        lost: lost
            .iter()
            .chain(&ALWAYS_LOST)
            .map(|word| (*word).to_owned())
            .collect(),
        snapshot_age_ms: None,
    }
}
