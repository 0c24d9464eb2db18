//! The command in the foreground and the lines the shell gets for it.

use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Instant;

use karyi_core::limits;

use crate::engine::pending_call::Sink;
use crate::shell::Dialect;
use crate::shell::secret_carriers::SecretCarrier;
use crate::terminal::live_shell::LiveShell;
use crate::terminal::marks::Mark;

/// The command in the foreground.
pub(crate) struct Job {
    pub(crate) number: u64,
    /// Number of its mark. It changes whenever the lines are sent again, so that no earlier mark ends the job.
    pub(crate) mark: u64,
    /// The session's directory, when the command runs in another one.
    pub(crate) original_directory: Option<PathBuf>,
    /// Lines the shell gets after the mark.
    pub(crate) after: Vec<u8>,
    /// Carriers of its secrets, held until the job ends; empty when the shell gets no secret for it.
    pub(crate) secrets: Vec<SecretCarrier>,
    /// Lines before those that run the script.
    pub(crate) before: Vec<u8>,
    /// Range of `before` that the script needs: without the lines for a snapshot and for the output of an exit trap.
    pub(crate) needed: Range<usize>,
    /// The directory the shell changes to, and the start of the line that runs the script, an open group.
    pub(crate) prelude: Option<(PathBuf, Vec<u8>)>,
    /// Number of times its lines were sent again because something else had read them.
    pub(crate) repeats: u32,
    /// Length of all lines sent.
    pub(crate) length: usize,
    /// The line that prints the mark of a script that broke off the line before; empty once sent.
    pub(crate) last_line: String,
    /// True if it was sent to a second shell.
    pub(crate) was_moved: bool,
    /// Number of requests for a lost mark.
    pub(crate) lost_mark_requests: u32,
    /// Takes the output while no call waits; absent while the session's thread uses it.
    pub(crate) detached_sink: Option<Sink>,
    /// True if input was typed for it.
    pub(crate) was_typed_to: bool,
    /// True if a caller wanted it to end.
    pub(crate) was_interrupted: bool,
    /// Bytes typed since the last line break.
    pub(crate) open_line_bytes: usize,
    /// True if the shell's descriptors are repaired after it.
    pub(crate) is_repaired: bool,
    /// True if it may close the shell's input, so that the shell retries the read forever.
    pub(crate) may_close_input: bool,
    /// True if it may hide a built-in command that prints its mark.
    pub(crate) may_hide_builtins: bool,
    /// True if no other process uses the terminal, now or after it has ended.
    pub(crate) is_alone: bool,
    /// True if its exit status may be 0 although a signal has stopped its last program.
    pub(crate) may_hide_stop: bool,
    /// True if it may leave a background job.
    pub(crate) may_leave: bool,
    /// True if that job may have left the shell's session by the time the command ends.
    pub(crate) may_leave_session: bool,
    /// True if it may have changed the directory.
    pub(crate) may_move: bool,
    /// True if it may have limited the shell's descriptors.
    pub(crate) may_limit: bool,
    /// True if the shell may tell meanwhile that a background job has ended, and the script does not ask for that.
    pub(crate) may_notify: bool,
    /// True if its exit status may be 126 although nothing could not be executed.
    pub(crate) may_return_126: bool,
    /// A mark that came while the shell seemed to be in the middle of the script.
    pub(crate) early_mark: Option<Mark>,
    /// The outcome, when it is known before the shell is ready or gone.
    pub(crate) verdict: Option<Verdict>,
}

impl Job {
    /// Records input that was typed.
    pub(crate) fn typed(&mut self, bytes: &[u8]) {
        self.was_typed_to = true;
        let end = bytes.iter().rposition(|byte| *byte == b'\n');
        self.open_line_bytes = match end {
            Some(end) => bytes.len() - end - 1,
            None => self.open_line_bytes + bytes.len(),
        };
    }

    /// Sends its lines to a shell.
    pub(crate) fn send(&mut self, live: &LiveShell, dialect: &dyn Dialect) -> io::Result<()> {
        let mut lines = self.before.clone();
        // The repair after the mark may replace that descriptor.
        let is_simple = self.is_alone && !self.is_repaired && !self.may_hide_builtins;
        let fast_lines = match is_simple && self.secrets.is_empty() {
            true => {
                let process = live.process.as_ref();
                live.fast_path
                    .lines(dialect, &live.paths, process, self.mark)
            }
            false => None,
        };
        let (paths, number, may_hide_builtins) = (&live.paths, self.mark, self.may_hide_builtins);
        let [run, last_line] = match (self.secrets.is_empty(), fast_lines) {
            (false, _) => [
                dialect.lines_if_delivered(paths, number, may_hide_builtins),
                String::new(),
            ],
            (true, Some(lines)) => lines,
            (true, None) => [
                dialect.command_lines(paths, number, may_hide_builtins),
                String::new(),
            ],
        };
        self.last_line = last_line;
        lines.extend(self.placed(run));
        if self.is_repaired {
            lines.extend(dialect.descriptor_lines(&live.paths).into_bytes());
        }
        self.length = lines.len();
        live.write_lines(&lines)
    }

    /// Inserts the prelude before the first of the lines that run the script.
    fn placed(&self, lines: String) -> Vec<u8> {
        match (&self.prelude, lines.split_once('\n')) {
            (Some((_, prelude)), Some((run, rest))) => {
                [prelude, run.as_bytes(), b"; }\n", rest.as_bytes()].concat()
            }
            _ => lines.into_bytes(),
        }
    }

    /// Sends the line that most commands end without: reading it costs the shell a tenth of the time of `true`.
    pub(crate) fn send_last_line(&mut self, live: &LiveShell) {
        let line = std::mem::take(&mut self.last_line);
        // If that fails, the lost mark is requested as soon as the shell waits.
        if !line.is_empty() && live.write_lines(line.as_bytes()).is_ok() {
            self.length += line.len();
        }
    }

    /// Returns true if its lines may be sent again to a shell that has not begun the script: values are delivered only
    /// once.
    pub(crate) fn may_be_resent(&self) -> bool {
        !self.was_moved && !self.was_interrupted && self.secrets.is_empty()
    }

    /// Drops the lines the script can do without: one of them may have kept the shell from the script.
    pub(crate) fn drop_optional_lines(&mut self) {
        let needed = self.before.get(self.needed.clone());
        self.before = needed.unwrap_or_default().to_vec();
        self.needed = 0..self.before.len();
    }

    /// Sends its lines again to a shell that has not read those that run the script, with a new number for its mark;
    /// returns false if that is not possible.
    pub(crate) fn resend(&mut self, live: &LiveShell, dialect: &dyn Dialect, mark: u64) -> bool {
        if self.repeats >= limits::MAX_REPEATED_LINES {
            return false;
        }
        self.repeats += 1;
        self.mark = mark;
        self.drop_optional_lines();
        let mut lines = self.before.clone();
        // Its value belongs to a round that ran nothing, and would be taken for the result of this one.
        lines.extend(dialect.unset_line("KARYI_LAST").into_bytes());
        self.lost_mark_requests = 0;
        let run = dialect.command_lines(&live.paths, mark, self.may_hide_builtins);
        lines.extend(self.placed(run));
        if self.is_repaired {
            lines.extend(dialect.descriptor_lines(&live.paths).into_bytes());
        }
        let lines = spaced(&lines, limits::LINES_FOR_HOOKS);
        self.last_line.clear();
        self.length = lines.len();
        live.write_lines(&lines).is_ok()
    }

    /// Returns the lines the shell gets when the command has ended. They are padded if something else has read the
    /// shell's input before.
    pub(crate) fn last_lines(&self, is_errexit: bool, dialect: &dyn Dialect) -> Vec<u8> {
        let mut after = self.after.clone();
        if is_errexit {
            after.extend(dialect.errexit_off_line().into_bytes());
        }
        match self.repeats {
            0 => after,
            _ => spaced(&after, limits::LINES_FOR_HOOKS),
        }
    }

    /// Returns true if the shell has read none of its lines; then another shell may run it, once.
    pub(crate) fn is_unread(&self, live: &LiveShell) -> bool {
        let waiting = crate::sys::bytes_waiting(&live.fifo).unwrap_or(0);
        // Requests sent later are not part of it.
        let is_first = !self.was_moved && !self.was_interrupted && self.lost_mark_requests == 0;
        is_first && self.length > 0 && waiting >= self.length
    }
}

/// Puts empty lines before each line, `first` of them before the first one, for hooks and traps that read the shell's
/// input. Where a line break may be inside a word, only before all lines.
pub(crate) fn spaced(lines: &[u8], first: usize) -> Vec<u8> {
    let is_whole = |line: &[u8]| line.iter().filter(|byte| **byte == b'\'').count() % 2 == 0;
    let each: Vec<&[u8]> = lines.split_inclusive(|byte| *byte == b'\n').collect();
    let parts = match each.iter().all(|line| is_whole(line)) {
        true => each,
        false => vec![lines],
    };
    let empty = [b'\n'; limits::LINES_FOR_HOOKS];
    let mut spaced = empty.get(..first).unwrap_or(&empty).to_vec();
    spaced.extend(parts.join(empty.as_slice()));
    spaced
}

/// Outcome of a command whose shell is not ready for the next one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The mark came; the shell must have its input back by then.
    Exited(Mark, Instant),
    /// The shell could not report a status and was killed.
    Killed,
}
