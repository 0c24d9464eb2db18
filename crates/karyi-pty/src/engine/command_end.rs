//! The end of a command, which its mark reports.

use std::time::Instant;

use nix::sys::signal::Signal;

use karyi_core::limits;

use crate::engine::Engine;
use crate::engine::background::Background;
use crate::engine::job::Verdict;
use crate::engine::job_start::Resubmission;
use crate::engine::launcher::RunningShell;
use crate::shell::delivery;
use crate::terminal::live_shell::InputLocation;
use crate::terminal::marks::Mark;

impl Engine {
    /// Handles the mark of the running command.
    pub(crate) fn command_ended(&mut self, mut mark: Mark) {
        let script = self.shared.lock().job.as_ref().map(|job| job.script);
        let is_refused = mark.status == 126
            && (script.is_some_and(|script| script.may_return_126) || self.output.shows_refusal());
        mark.status = self.shared.dialect.exit_status(mark.status, is_refused);
        let Some(RunningShell { live, .. }) = &self.running else {
            return;
        };
        if live.fast_path.contradicts(&mark, &live.slave) {
            // Requested through the terminal's path, another mark shows what the shell can still do.
            live.fast_path.disable();
            return;
        }
        let place = live.input_location();
        let mut state = self.shared.lock();
        if !mark.lacks_values && !state.shell.script.was_begun() && place == InputLocation::Stdin {
            match state.resend(live, self.shared.dialect) {
                Resubmission::Sent => return,
                Resubmission::Exhausted => {
                    // The next shell has neither its traps nor its prompts and functions.
                    live.signal_shell(Signal::SIGKILL);
                    self.launcher.avoid_functions();
                    return;
                }
                Resubmission::Refused => {}
            }
        }
        match (place, &mut state.job) {
            (_, None) => return,
            (InputLocation::Stdin, Some(job))
                if job.script.may_limit && live.lacks_descriptors() || live.has_lost_terminal() =>
            {
                job.marks.decide(Verdict::Exited(mark, Instant::now()));
                return;
            }
            (InputLocation::Stdin, Some(_)) => {}
            // The script itself printed it: a mark comes when the script is done.
            (InputLocation::SetAside, Some(job)) => {
                job.marks.keep_early(mark);
                return;
            }
            (InputLocation::Lost, Some(job)) => {
                // The shell would never read the next command. The status in the mark stays valid.
                let patience = match job.script.needs_repair {
                    true => limits::REPAIR_TIMEOUT,
                    false => limits::NO_GRACE,
                };
                let until = Instant::now() + patience;
                job.marks.decide(Verdict::Exited(mark, until));
                return;
            }
        }
        drop(state);
        self.complete(mark);
    }

    /// Ends the running command, whose shell is ready for the next one.
    pub(crate) fn complete(&mut self, mark: Mark) {
        let Some(running) = &self.running else {
            return;
        };
        running.child.reset_modes(&running.live);
        let live = running.live.clone();
        self.output.end_job(&live);
        let script = self.shared.lock().job.as_ref().map(|job| job.script);
        let left = script.map(|script| self.background.left_by_command(script, &live));
        live.hints.reset();
        let mut has_stopped = live.has_stopped_child(mark.status);
        let dialect = self.shared.dialect;
        let mut state = self.shared.lock();
        let (Some(job), Some(left)) = (state.job.take(), left) else {
            return;
        };
        if job.typed.is_any() {
            live.flush_input();
        }
        let is_stop = job.script.may_hide_stop && mark.status == 0;
        has_stopped |= is_stop && left.jobs.iter().any(Background::has_stopped);
        let errexit_off = mark.is_errexit.then(|| dialect.errexit_off_line());
        let after = job.lines.after(&errexit_off.unwrap_or_default());
        if !after.is_empty() {
            let _ = live.write_lines(&after);
        }
        state.shell.cwd = match job.original_directory.clone() {
            Some(original_directory) if original_directory.is_dir() => original_directory,
            // The session's own directory is gone, so the shell stays where it is.
            Some(_) => mark.cwd,
            None if mark.cwd == state.shell.cwd => mark.cwd,
            None => live.directory(mark.cwd),
        };
        let has_begun = state.shell.script.was_begun();
        if mark.lacks_values {
            state.shell.secrets.forget();
        } else if !has_begun {
            state.shell.variables.forget();
        }
        state.seen.was_in_other_directory =
            job.original_directory.is_some() || state.seen.was_in_other_directory && !has_begun;
        state.shell.last_status = mark.status;
        state.seen.shows_screen = false;
        state.seen.has_children = self.background.has_children();
        state.seen.has_left_children |= state.seen.has_children || job.script.may_leave;
        state.history.store_background(job.number, left);
        let answer = match mark.lacks_values {
            true => state.end_unrun_job(job.number, delivery::not_delivered()),
            false if !has_begun => state.end_unbegun_job(&job),
            false => state.end_job(job.number, mark.status, has_stopped),
        };
        drop(state);
        self.background.command_ended();
        self.snapshots.command_ended();
        if let Some(answer) = answer {
            answer.send();
        }
    }
}
