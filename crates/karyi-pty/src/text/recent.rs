//! The last lines of a stream, which a program may still go back to.
//!
//! For a result they are held back until they are out of reach; a watcher has seen them already.

use karyi_core::limits;

use super::Audience;
use super::grid::ROWS;
use super::rows;

/// Ended lines within reach of the cursor.
#[derive(Debug, Clone)]
pub(super) struct Recent {
    audience: Audience,
    lines: String,
    /// True if lines that are not kept fill the screen; only where the lines themselves do not
    /// matter.
    is_full: bool,
}

impl Recent {
    pub(super) fn new(audience: Audience) -> Self {
        Self {
            audience,
            lines: String::new(),
            is_full: false,
        }
    }

    /// Returns true if it only matters that there are more lines, not what they are.
    pub(super) fn is_full(&self) -> bool {
        self.is_full
    }

    /// Takes lines that are ended, or the beginning of one too long to be held elsewhere.
    pub(super) fn push(&mut self, lines: &str, text: &mut String) {
        if self.audience == Audience::Watcher {
            text.push_str(lines);
        }
        if self.is_full {
            return;
        }
        self.lines.push_str(lines);
        // Dropped in large steps, so that each byte is moved once on average.
        if self.lines.len() > 2 * limits::TERMINAL_REACH_BYTES {
            self.trim(text);
        }
        if self.audience == Audience::Terminal && start_of_last_rows(&self.lines) > 0 {
            self.is_full = true;
            self.lines.clear();
        }
    }

    /// Takes what is within reach.
    pub(super) fn take(&mut self, text: &mut String) -> String {
        self.trim(text);
        if std::mem::take(&mut self.is_full) {
            return "\n".repeat(ROWS);
        }
        std::mem::take(&mut self.lines)
    }

    /// Puts back what [`take`](Self::take) gave, changed.
    pub(super) fn put_back(&mut self, lines: String, text: &mut String) {
        self.lines = lines;
        if self.audience == Audience::Terminal {
            self.push("", text);
        }
    }

    /// Adds to `text` what it has not got yet, and forgets everything.
    pub(super) fn finish(&mut self, text: &mut String) {
        if self.audience == Audience::Result {
            text.push_str(&self.lines);
        }
        self.lines.clear();
        self.is_full = false;
    }

    fn trim(&mut self, text: &mut String) {
        let start = start_of_last_rows(&self.lines);
        let far = self.lines.drain(..start);
        if self.audience == Audience::Result {
            text.push_str(far.as_str());
        }
    }
}

/// Returns where the last lines begin that can be on the screen.
fn start_of_last_rows(lines: &str) -> usize {
    let least = lines.len().saturating_sub(limits::TERMINAL_REACH_BYTES);
    let least = lines.ceil_char_boundary(least);
    let reach = lines.as_bytes().get(least..).unwrap_or_default();
    // The row of the cursor comes after them.
    let mut breaks = memchr::memrchr_iter(b'\n', reach).skip(ROWS - 1);
    if let Some(before) = breaks.next() {
        return least + before + 1;
    }
    // Where a row begins, so that the others begin where they did on the terminal.
    match rows::start_of_last(lines.get(..least).unwrap_or_default()) {
        // A single row of very many marks.
        0 if least > limits::TERMINAL_REACH_BYTES => least,
        start => start,
    }
}
