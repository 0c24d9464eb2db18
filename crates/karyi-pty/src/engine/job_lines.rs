//! The lines a shell gets for one command: those before the script, those that run it, those after its mark.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use karyi_core::limits;

use crate::terminal::live_shell::LiveShell;

/// Lines of one command, and how much of them the shell has.
pub(crate) struct JobLines {
    /// Lines before those that run the script.
    before: Vec<u8>,
    /// Range of `before` that the script needs: without the lines for a snapshot and for the output of an exit trap.
    needed: Range<usize>,
    /// The directory the shell changes to, and the start of the line that runs the script, an open group.
    prelude: Option<(PathBuf, Vec<u8>)>,
    /// Lines the shell gets after the mark.
    after: Vec<u8>,
    /// The line that prints the mark of a script that broke off the line before; empty once sent.
    last: String,
    /// Number of bytes sent.
    length: usize,
    /// Number of times they were sent again because something else had read them.
    repeats: u32,
}

impl JobLines {
    /// Takes the lines around those that run the script: lines before it and the range of them that it needs, the
    /// directory to change to with the start of the line that does so, and lines after the mark.
    pub(crate) fn new(
        before: Vec<u8>,
        needed: Range<usize>,
        prelude: Option<(PathBuf, Vec<u8>)>,
        after: Vec<u8>,
    ) -> Self {
        Self {
            before,
            needed,
            prelude,
            after,
            last: String::new(),
            length: 0,
            repeats: 0,
        }
    }

    /// Adds a line after the mark.
    pub(crate) fn add_after(&mut self, line: String) {
        self.after.extend(line.into_bytes());
    }

    /// Sends them to a shell; `run` are the lines that run the script, `last` the one kept for later, `repair` those
    /// that repair the shell's descriptors.
    pub(crate) fn send(
        &mut self,
        [run, last]: [String; 2],
        repair: &str,
        live: &LiveShell,
    ) -> io::Result<()> {
        let lines = self.all("", run, repair);
        self.last = last;
        self.length = lines.len();
        live.write_lines(&lines)
    }

    /// Sends them again to a shell that has not read those that run the script; returns false if that is not possible.
    /// `first` comes before the ones that run the script.
    pub(crate) fn resend(
        &mut self,
        first: &str,
        run: String,
        repair: &str,
        live: &LiveShell,
    ) -> bool {
        self.repeats += 1;
        self.last.clear();
        let lines = spaced(&self.all(first, run, repair), limits::LINES_FOR_HOOKS);
        self.length = lines.len();
        live.write_lines(&lines).is_ok()
    }

    /// Returns true if they may be sent once more.
    pub(crate) fn may_repeat(&self) -> bool {
        self.repeats < limits::MAX_REPEATED_LINES
    }

    /// Returns true if they were sent more than once.
    pub(crate) fn was_repeated(&self) -> bool {
        self.repeats > 0
    }

    /// Returns the lines up to the script, those that run it after the prelude, and those of the repair.
    fn all(&self, first: &str, run: String, repair: &str) -> Vec<u8> {
        let mut lines = [&self.before, first.as_bytes()].concat();
        match (&self.prelude, run.split_once('\n')) {
            (Some((_, prelude)), Some((first, rest))) => {
                lines.extend([prelude, first.as_bytes(), b"; }\n", rest.as_bytes()].concat());
            }
            _ => lines.extend(run.into_bytes()),
        }
        lines.extend_from_slice(repair.as_bytes());
        lines
    }

    /// Sends the line that most commands end without: reading it costs the shell a tenth of the time of `true`.
    pub(crate) fn send_last(&mut self, live: &LiveShell) {
        let line = std::mem::take(&mut self.last);
        // If that fails, the lost mark is requested as soon as the shell waits.
        if !line.is_empty() && live.write_lines(line.as_bytes()).is_ok() {
            self.length += line.len();
        }
    }

    /// Drops the lines the script can do without: one of them may have kept the shell from the script.
    pub(crate) fn drop_optional(&mut self) {
        let needed = self.before.get(self.needed.clone());
        self.before = needed.unwrap_or_default().to_vec();
        self.needed = 0..self.before.len();
    }

    /// Returns the lines the shell gets when the command has ended. They are padded if something else has read the
    /// shell's input before.
    pub(crate) fn after(&self, errexit_off: &str) -> Vec<u8> {
        let after = [&self.after, errexit_off.as_bytes()].concat();
        match self.repeats {
            0 => after,
            _ => spaced(&after, limits::LINES_FOR_HOOKS),
        }
    }

    /// Returns the directory the shell must change to first.
    pub(crate) fn directory(&self) -> Option<&Path> {
        let prelude = self.prelude.as_ref();
        prelude.map(|(directory, _)| directory.as_path())
    }

    /// Returns true if the shell has read none of them.
    pub(crate) fn are_unread(&self, live: &LiveShell) -> bool {
        let waiting = crate::sys::bytes_waiting(&live.fifo).unwrap_or(0);
        self.length > 0 && waiting >= self.length
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
