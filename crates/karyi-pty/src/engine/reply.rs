//! Ends the call that waits for the job in the foreground.

use std::path::Path;

use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::outcome::Status;

use crate::engine::job::Job;
use crate::engine::pending_call::{CallOutcome, PendingInput, Progress, no_job_error};
use crate::engine::state::State;
use crate::shell::delivery;

impl State {
    /// Ends the call that waits for a job, also for one that was stopped and returned the terminal to the shell. The
    /// result is sent when the state is unlocked.
    pub(crate) fn end_job(
        &mut self,
        job: u64,
        exit_code: i32,
        has_stopped: bool,
    ) -> Option<CallOutcome> {
        self.shell.last_status = exit_code;
        self.record_end(job, exit_code);
        let status = match exit_code {
            _ if has_stopped => Status::Stopped,
            0 => Status::Ok,
            _ => Status::Failed,
        };
        self.end_call(status, Some(exit_code))
    }

    /// Ends the call that waits for a job that was not run.
    pub(crate) fn end_unrun_job(&mut self, job: u64, error: ToolError) -> Option<CallOutcome> {
        self.record_end(job, 1);
        let call = self.call.take()?;
        Some(CallOutcome {
            reply: call.reply,
            result: Err(error),
        })
    }

    /// Ends the call that waits for a job whose lines another program read, so that the shell has not begun the
    /// script.
    pub(crate) fn end_unbegun_job(&mut self, job: &Job) -> Option<CallOutcome> {
        let way = job.lines.directory();
        let error = way.map_or_else(delivery::not_begun, directory_error);
        self.end_not_begun(job, error)
    }

    /// Ends the call that waits for a job whose shell ended before it began the script.
    pub(crate) fn end_unstarted_job(&mut self, job: &Job) -> Option<CallOutcome> {
        self.end_not_begun(job, delivery::not_started())
    }

    fn end_not_begun(&mut self, job: &Job, error: ToolError) -> Option<CallOutcome> {
        const INTERRUPTED_STATUS: i32 = 128 + nix::libc::SIGINT;
        match job.was_interrupted {
            true => self.end_job(job.number, INTERRUPTED_STATUS, false),
            false => self.end_unrun_job(job.number, error),
        }
    }

    /// Ends the call that waits for a job that was killed without a known status.
    pub(crate) fn end_killed_job(&mut self, job: u64) -> Option<CallOutcome> {
        self.record_end(job, KILLED_STATUS);
        self.end_call(Status::Killed, None)
    }

    fn end_call(&mut self, status: Status, exit_code: Option<i32>) -> Option<CallOutcome> {
        let unsent_bytes = self.unsent_bytes();
        let call = self.call.take()?;
        let result = if call.input.as_ref().is_some_and(PendingInput::is_untouched) {
            Err(no_job_error(exit_code))
        } else {
            Ok(Progress {
                exit_code,
                cwd: Some(self.shell.cwd.clone()),
                restarted: self.shell.restart.take(),
                unsent_bytes,
                ..Progress::of(status)
            })
        };
        Some(CallOutcome {
            reply: call.reply,
            result,
        })
    }

    /// Ends the call whose input cannot be typed, or not completely.
    pub(crate) fn refuse_input(&mut self, error: ToolError, is_shown: bool) {
        if self.input().is_none_or(PendingInput::is_untouched) {
            self.reply(Err(error));
            return;
        }
        self.report(Progress {
            echo: Some(is_shown),
            ..Progress::of(Status::AwaitingInput)
        });
    }

    /// Ends the call, if there is one, with the state of a job that runs on.
    pub(crate) fn report(&mut self, progress: Progress) {
        if self.call.is_some() {
            let unsent_bytes = self.unsent_bytes();
            let restarted = self.shell.restart.take();
            self.reply(Ok(Progress {
                restarted,
                unsent_bytes,
                ..progress
            }));
        }
    }

    /// Returns the number of input bytes that were not typed.
    pub(crate) fn unsent_bytes(&self) -> usize {
        self.input().map_or(0, |input| input.unsent().len())
    }

    /// Ends the call, if there is one.
    pub(crate) fn reply(&mut self, result: Result<Progress, ToolError>) {
        if let Some(call) = self.call.take() {
            // The receiver may be gone.
            let _ = call.reply.send(result);
        }
    }
}

/// Exit status of a killed command.
const KILLED_STATUS: i32 = 137;

/// Returns the error of a command whose shell could not change to its directory.
fn directory_error(directory: &Path) -> ToolError {
    let message = format!(
        "the shell could not change to {}, so the command was not run",
        directory.display()
    );
    ToolError::new(ErrorCode::SessionFailed, message).with_hint(
        "run `cd` there in a command of its own to learn why: the directory may be gone, OLDPWD may be read-only, \
         or a hook may read the input of the shell",
    )
}
