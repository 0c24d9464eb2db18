//! The command in the foreground.

use std::io;
use std::path::PathBuf;
use std::time::Instant;

use crate::engine::job_lines::JobLines;
use crate::engine::pending_call::SharedSink;
use crate::shell::Dialect;
use crate::shell::script_traits::ScriptTraits;
use crate::shell::secret_carriers::SecretCarrier;
use crate::terminal::live_shell::LiveShell;
use crate::terminal::marks::Mark;

/// The command in the foreground.
pub(crate) struct Job {
    pub(crate) number: u64,
    /// Guesses about its script.
    pub(crate) script: ScriptTraits,
    /// The session's directory, when the command runs in another one.
    pub(crate) original_directory: Option<PathBuf>,
    pub(crate) lines: JobLines,
    pub(crate) marks: JobMarks,
    pub(crate) typed: TypedInput,
    pub(crate) output: JobOutput,
    /// Carriers of its secrets, held until the job ends; empty when the shell gets no secret for it.
    pub(crate) secrets: Vec<SecretCarrier>,
    /// True if it was sent to a second shell.
    pub(crate) was_moved: bool,
    /// True if a caller wanted it to end.
    pub(crate) was_interrupted: bool,
}

/// Marks that the end of a job brings, or should bring.
pub(crate) struct JobMarks {
    /// Number of its mark. It changes whenever the lines are sent again, so that no earlier mark ends the job.
    pub(crate) number: u64,
    /// Number of requests for a lost mark.
    requests: u32,
    /// A mark that came while the shell seemed to be in the middle of the script.
    early: Option<Mark>,
    /// The outcome, when it is known before the shell is ready or gone.
    verdict: Option<Verdict>,
}

/// Input typed for a job.
#[derive(Default)]
pub(crate) struct TypedInput {
    is_any: bool,
    /// Bytes typed since the last line break.
    open_line_bytes: usize,
}

/// Output of a job that no call waits for.
pub(crate) struct JobOutput {
    /// Takes it; without one it is stored for the next call.
    pub(crate) sink: Option<SharedSink>,
    /// True if the shell may tell meanwhile that a background job has ended, and the script does not ask for that.
    pub(crate) may_notify: bool,
}

/// Outcome of a command whose shell is not ready for the next one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The mark came; the shell must have its input back by then.
    Exited(Mark, Instant),
    /// The shell could not report a status and was killed.
    Killed,
}

impl Job {
    /// Sends its lines to a shell. `is_alone` says that no other process uses the terminal, now or after the script.
    pub(crate) fn send(
        &mut self,
        live: &LiveShell,
        dialect: &dyn Dialect,
        is_alone: bool,
    ) -> io::Result<()> {
        let (paths, mark, may_hide) = (
            &live.paths,
            self.marks.number,
            self.script.may_hide_builtins,
        );
        // The repair after the mark may replace the descriptor that the fast path uses.
        let is_simple = is_alone && !self.script.needs_repair && !may_hide;
        let fast_lines = || {
            let process = live.process.as_ref();
            live.fast_path.lines(dialect, paths, process, mark)
        };
        let run = match self.secrets.is_empty() {
            false => [
                dialect.lines_if_delivered(paths, mark, may_hide),
                String::new(),
            ],
            true => (is_simple.then(fast_lines).flatten())
                .unwrap_or_else(|| [dialect.command_lines(paths, mark, may_hide), String::new()]),
        };
        let repair = self.repair(live, dialect);
        self.lines.send(run, &repair, live)
    }

    /// Returns the lines that repair the shell's descriptors, if they may be needed.
    fn repair(&self, live: &LiveShell, dialect: &dyn Dialect) -> String {
        let needs_repair = self.script.needs_repair;
        let lines = needs_repair.then(|| dialect.descriptor_lines(&live.paths));
        lines.unwrap_or_default()
    }

    /// Returns true if its lines may be sent again to a shell that has not begun the script: values are delivered only
    /// once.
    pub(crate) fn may_be_resent(&self) -> bool {
        !self.was_moved && !self.was_interrupted && self.secrets.is_empty()
    }

    /// Sends its lines again to a shell that has not read those that run the script, with a new number for its mark;
    /// returns false if that is not possible.
    pub(crate) fn resend(&mut self, live: &LiveShell, dialect: &dyn Dialect, mark: u64) -> bool {
        if !self.lines.may_repeat() {
            return false;
        }
        self.marks.number = mark;
        self.marks.requests = 0;
        self.lines.drop_optional();
        // Its value belongs to a round that ran nothing, and would be taken for the result of this one.
        let unset = dialect.unset_line("KARYI_LAST");
        let run = dialect.command_lines(&live.paths, mark, self.script.may_hide_builtins);
        let repair = self.repair(live, dialect);
        self.lines.resend(&unset, run, &repair, live)
    }

    /// Returns true if the shell has read none of its lines; then another shell may run it, once.
    pub(crate) fn is_unread(&self, live: &LiveShell) -> bool {
        // Requests sent later are not part of it.
        let is_first = !self.was_moved && !self.was_interrupted && self.marks.requests == 0;
        is_first && self.lines.are_unread(live)
    }

    /// Prepares it for another shell, after one that never read it.
    pub(crate) fn move_to_next_shell(&mut self) {
        self.was_moved = true;
        self.lines.drop_optional();
        // Requests sent to the old shell are not part of it.
        self.marks = JobMarks::new(self.marks.number);
    }
}

impl JobMarks {
    /// Awaits the mark with a number.
    pub(crate) fn new(number: u64) -> Self {
        Self {
            number,
            requests: 0,
            early: None,
            verdict: None,
        }
    }

    /// Returns the outcome, if it is known.
    pub(crate) fn verdict(&self) -> Option<&Verdict> {
        self.verdict.as_ref()
    }

    /// Sets the outcome.
    pub(crate) fn decide(&mut self, verdict: Verdict) {
        self.verdict = Some(verdict);
    }

    /// Keeps a mark that came while the shell seemed to be in the middle of the script.
    pub(crate) fn keep_early(&mut self, mark: Mark) {
        self.early = Some(mark);
    }

    /// Takes the mark that came early.
    pub(crate) fn take_early(&mut self) -> Option<Mark> {
        self.early.take()
    }

    /// Counts a request for the mark; returns the number of those before it.
    pub(crate) fn count_request(&mut self) -> u32 {
        self.requests += 1;
        self.requests - 1
    }
}

impl TypedInput {
    /// Adds bytes that were typed.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.is_any = true;
        let end = bytes.iter().rposition(|byte| *byte == b'\n');
        self.open_line_bytes = match end {
            Some(end) => bytes.len() - end - 1,
            None => self.open_line_bytes + bytes.len(),
        };
    }

    /// Returns true if anything was typed.
    pub(crate) fn is_any(&self) -> bool {
        self.is_any
    }

    /// Returns the number of bytes typed since the last line break.
    pub(crate) fn open_line_bytes(&self) -> usize {
        self.open_line_bytes
    }
}
