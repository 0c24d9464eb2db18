//! The last lines of a stream, which a program may still change.
//!
//! For a result they are held back until they are out of reach; a watcher has them already.

use karyi_core::limits;

use super::audience::Audience;
use super::grid::ROWS;
use super::rows;

/// Ended lines within reach of the cursor.
#[derive(Debug, Clone)]
pub(super) struct Recent {
    audience: Audience,
    lines: String,
    /// True if dropped lines fill the screen; only where the lines themselves do not matter.
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

    /// Returns true if the lines themselves do not matter and fill the screen.
    pub(super) fn is_full(&self) -> bool {
        self.is_full
    }

    /// Adds ended lines, or the beginning of one that is too long.
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

    /// Takes the lines within reach.
    pub(super) fn take(&mut self, text: &mut String) -> String {
        self.trim(text);
        if std::mem::take(&mut self.is_full) {
            return "\n".repeat(ROWS);
        }
        std::mem::take(&mut self.lines)
    }

    /// Puts back the changed result of [`take`](Self::take).
    pub(super) fn put_back(&mut self, lines: String, text: &mut String) {
        self.lines = lines;
        if self.audience == Audience::Terminal {
            self.push("", text);
        }
    }

    /// Adds the held lines to `text`, and forgets everything.
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

/// Returns the position of the last lines that can be on the screen.
fn start_of_last_rows(lines: &str) -> usize {
    let least = lines.len().saturating_sub(limits::TERMINAL_REACH_BYTES);
    let least = lines.ceil_char_boundary(least);
    let reach = lines.as_bytes().get(least..).unwrap_or_default();
    // The row of the cursor comes after them.
    let mut breaks = memchr::memrchr_iter(b'\n', reach).skip(ROWS - 1);
    if let Some(before) = breaks.next() {
        return least + before + 1;
    }
    // The position begins a row, so that all later rows begin where they did on the terminal.
    match rows::start_of_last(lines.get(..least).unwrap_or_default()) {
        // A single row may have very many combining marks.
        0 if least > limits::TERMINAL_REACH_BYTES => least,
        start => start,
    }
}
