//! Turns a command into the job in the foreground.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

use karyi_core::error::ToolError;
use karyi_core::secret::VariableContent;

use crate::engine::job::{Job, JobMarks, JobOutput, TypedInput};
use crate::engine::job_lines::JobLines;
use crate::engine::pending_call::Sink;
use crate::engine::state::{State, failure, no_shell};
use crate::shell::Dialect;
use crate::shell::delivery::{self, DeliveryCheck};
use crate::shell::script_traits::ScriptTraits;
use crate::shell::script_words;
use crate::shell::secret_carriers::{SecretCarrier, carriers};
use crate::shell::secrets::VariableChanges;
use crate::terminal::directory::may_enter;
use crate::terminal::live_shell::LiveShell;

/// Request to start a command.
pub(crate) struct JobStart<'a> {
    pub(crate) dialect: &'static dyn Dialect,
    pub(crate) script: &'a str,
    pub(crate) cwd: Option<&'a Path>,
    pub(crate) secrets: VariableChanges,
    /// Takes the output while no call waits.
    pub(crate) sink: Option<Sink>,
}

/// Result of sending a job again whose script the shell has not begun.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Resubmission {
    /// Its lines were sent again.
    Sent,
    /// They were sent too often already.
    Exhausted,
    /// They must not be sent again, or another shell is the better choice.
    Refused,
}

impl State {
    /// Sends a command to the shell. The caller attaches its call first.
    ///
    /// # Errors
    /// There is no shell, or its files cannot be written.
    pub(crate) fn start_job(&mut self, start: JobStart<'_>) -> Result<(), ToolError> {
        let live = self.shell.live.clone().ok_or_else(no_shell)?;
        self.shell
            .script
            .write(start.script)
            .map_err(|error| failure(&error))?;
        let (script, dialect) = (start.script, start.dialect);
        let mut job = self
            .prepare_job(&live, start)
            .map_err(|error| failure(&error))?;
        job.send(&live, dialect, self.is_alone(&job))
            .map_err(|error| failure(&error))?;
        // Not earlier: a job that was not sent has requested no snapshot.
        self.snapshots.is_needed = may_define(script);
        self.history.begin(job.number);
        self.job = Some(job);
        Ok(())
    }

    /// Sends a job again whose script the shell has not begun.
    pub(crate) fn resend(&mut self, live: &LiveShell, dialect: &dyn Dialect) -> Resubmission {
        let mark = self.next_number();
        let job = self.job.as_mut().filter(|job| job.may_be_resent());
        let Some(job) = job else {
            return Resubmission::Refused;
        };
        match job.resend(live, dialect, mark) {
            true => Resubmission::Sent,
            // The directory may be the reason; for the next shell the way back is shorter.
            false if job.original_directory.is_some() => Resubmission::Refused,
            false => Resubmission::Exhausted,
        }
    }

    /// Returns the directory the shell must change to before a script: the requested one, or the session's own after a
    /// command that ran elsewhere, in case something else has read the line that changes back.
    fn required_directory<'a>(
        &'a self,
        live: &LiveShell,
        wanted: Option<&'a Path>,
    ) -> Option<&'a Path> {
        let back = || {
            let is_needed = self.seen.was_in_other_directory && !live.is_in(&self.shell.cwd);
            (is_needed && may_enter(&self.shell.cwd).is_ok()).then_some(self.shell.cwd.as_path())
        };
        wanted.or_else(back)
    }

    /// Sends a job to the new shell after one that never read it; returns the job if that fails.
    pub(crate) fn restart_unread_job(
        &mut self,
        mut job: Job,
        dialect: &dyn Dialect,
    ) -> Result<(), Box<Job>> {
        job.move_to_next_shell();
        let is_alone = self.is_alone(&job);
        match &self.shell.live {
            // The file may have been created anew, without the script.
            Some(live)
                if !self.shell.script.is_empty() && job.send(live, dialect, is_alone).is_ok() =>
            {
                self.job = Some(job);
                Ok(())
            }
            _ => Err(Box::new(job)),
        }
    }

    /// Returns the lines around those that run a script; `own` are those for its secrets.
    fn lines_around(
        &mut self,
        live: &LiveShell,
        start: &JobStart<'_>,
        own: (String, String),
    ) -> JobLines {
        let (dialect, paths) = (start.dialect, &live.paths);
        let (mut before, mut after) = (Vec::new(), Vec::new());
        if self.snapshots.is_needed {
            self.snapshots.requested += 1;
            before.extend(dialect.snapshot_line(paths).into_bytes());
        }
        let saving = before.len();
        let (taking, forgetting) = own;
        before.extend(taking.into_bytes());
        after.extend(forgetting.into_bytes());
        let status = dialect.status_line(paths, self.shell.last_status);
        if start.cwd.is_some() {
            after.extend(dialect.directory_line(&self.shell.cwd));
        }
        let required_directory = self.required_directory(live, start.cwd);
        let prelude = required_directory.map(|directory| {
            let line = dialect.prelude(directory, status.as_deref());
            (directory.to_owned(), line)
        });
        if let Some(line) = status.filter(|_| prelude.is_none()) {
            before.extend(line.into_bytes());
        }
        let needed = saving..before.len();
        let farewell = dialect.exit_trap_output_lines(paths);
        if let Some((first, last)) = farewell.filter(|_| script_words::may_exit(start.script)) {
            before.extend(first.into_bytes());
            after.extend(last.bytes());
        }
        if dialect.keeps_last_word() && dialect.may_hide_builtins(start.script) {
            after.extend(dialect.unset_line("KARYI_LAST").into_bytes());
        }
        let enabling = dialect.enable_line_if_needed(start.script);
        after.extend(enabling.unwrap_or_default().bytes());
        JobLines::new(before, needed, prelude, after)
    }

    /// Returns true if no process besides a job uses the terminal, now or after the job has ended.
    fn is_alone(&self, job: &Job) -> bool {
        !self.seen.has_children && !job.script.may_leave
    }

    /// Creates the job of a command.
    fn prepare_job(&mut self, live: &LiveShell, start: JobStart<'_>) -> io::Result<Job> {
        let number = self.next_number();
        // Unique names: the carriers of the last command may be removed later.
        let place = |index| live.paths.file(&format!("secret{number}-{index}"));
        let secrets = carriers(&start.secrets.sent, place)?;
        let own = secret_lines(start.dialect, &start.secrets, &secrets);
        let script = ScriptTraits::of(start.script, start.dialect);
        Ok(Job {
            number,
            script,
            original_directory: start.cwd.map(|_| self.shell.cwd.clone()),
            lines: self.lines_around(live, &start, own),
            marks: JobMarks::new(number),
            typed: TypedInput::default(),
            output: JobOutput {
                sink: start.sink.map(|sink| Arc::new(Mutex::new(sink))),
                may_notify: (self.seen.has_left_children || script.may_leave)
                    && !script.may_list_jobs,
            },
            secrets,
            was_moved: false,
            was_interrupted: false,
        })
    }
}

/// Words in scripts that define functions, aliases, options or variables. The kernel shows the directory, and the
/// environment of a job; all else needs a snapshot taken before the shell is busy or gone, and one after every command
/// would cost too much.
const DEFINING: [&str; 12] = [
    "()", "function", "alias", "source", "eval", "set ", "shopt", "setopt", "\n. ", "export",
    "declare", "typeset",
];

/// Returns true if a script may define something that a forked shell should have.
fn may_define(script: &str) -> bool {
    script.starts_with(". ") || DEFINING.iter().any(|word| script.contains(word))
}

/// Returns the lines that update the variables of secrets, and those that unset the paths of secret files after the
/// command.
fn secret_lines(
    dialect: &dyn Dialect,
    changes: &VariableChanges,
    carriers: &[SecretCarrier],
) -> (String, String) {
    let (mut taking, mut forgetting) = (String::new(), String::new());
    for name in &changes.removed {
        taking.push_str(&dialect.unset_line(&name.variable(VariableContent::Value)));
    }
    if let Some(delivery) = DeliveryCheck::of(&changes.sent) {
        // Attributes set by scripts, such as integer or upper case, must not change the values.
        let values = changes
            .sent
            .iter()
            .filter(|b| b.holds == VariableContent::Value);
        taking.extend(values.map(|value| dialect.unset_line(&value.variable())));
        taking.push_str(&delivery.first_line());
        taking.extend(carriers.iter().map(|carrier| carrier.line(dialect)));
        taking.push_str(&delivery.check_line());
        forgetting.push_str(&dialect.unset_line(delivery::ARRIVED_VARIABLE));
    }
    let paths = changes
        .sent
        .iter()
        .filter(|b| b.holds == VariableContent::Path);
    forgetting.extend(paths.map(|path| dialect.unset_line(&path.variable())));
    (taking, forgetting)
}
