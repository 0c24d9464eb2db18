//! The line below a running call, on a terminal: a picture, the elapsed time, and the line that the call has printed
//! without its end, else what runs.
//!
//! The line is never wider than the terminal, and it is erased before anything else is written.

use std::borrow::Cow;
use std::io::{self, Write};
use std::time::Instant;

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::render::paint::{Colour, Ink, safe_line};
use karyi_core::limits;

const PICTURES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// Moves the cursor to the start of the line and clears it.
const CLEAR_LINE: &[u8] = b"\r\x1b[2K";

/// The spinner and its terminal.
pub struct Spinner {
    out: Box<dyn Write + Send>,
    /// Returns the width of the terminal.
    columns: fn() -> usize,
    step: usize,
    is_shown: bool,
    /// The time it last showed a change of the output.
    changed_at: Option<Instant>,
}

impl Spinner {
    /// Makes a spinner that is not shown.
    #[must_use]
    pub fn new(out: Box<dyn Write + Send>, columns: fn() -> usize) -> Self {
        Self {
            out,
            columns,
            step: 0,
            is_shown: false,
            changed_at: None,
        }
    }

    /// Erases it.
    pub(super) fn hide(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.is_shown) {
            self.out.write_all(CLEAR_LINE)?;
            self.out.flush()?;
        }
        Ok(())
    }

    /// Returns true when a change of the output was shown a moment ago: the next picture can wait.
    pub(super) fn is_fresh(&self) -> bool {
        self.changed_at
            .is_some_and(|at| at.elapsed() < limits::SPINNER_STEP)
    }

    /// Shows output that has changed.
    pub(super) fn show_change(
        &mut self,
        colour: Colour,
        since: Instant,
        line: &str,
    ) -> io::Result<()> {
        self.changed_at = Some(Instant::now());
        self.show(colour, since, (line, ""))
    }

    /// Shows a line, cut where necessary, with `end` behind it.
    pub(super) fn show(
        &mut self,
        colour: Colour,
        since: Instant,
        (line, end): (&str, &str),
    ) -> io::Result<()> {
        let picture = PICTURES[self.step % PICTURES.len()];
        self.step += 1;
        let start = format!("{picture} {} s  ", since.elapsed().as_secs());
        // In the last column some terminals begin another line.
        let columns = (self.columns)().saturating_sub(1);
        let line = line.replace('\t', " ");
        let (line, end) = (safe_line(&line), safe_line(end));
        let room = columns.saturating_sub(start.width() + end.width());
        let text = format!("{start}{}{end}", cut(&line, room));
        let text = colour.paint(Ink::Faint, &cut(&text, columns));
        self.is_shown = true;
        self.out
            .write_all(&[CLEAR_LINE, text.as_bytes()].concat())?;
        self.out.flush()
    }
}

/// Returns the start of a line that takes at most so many columns.
fn cut(line: &str, columns: usize) -> Cow<'_, str> {
    if line.width() <= columns {
        return line.into();
    }
    let mut left = columns.saturating_sub(1);
    let fits = |c: &char| match left.checked_sub(c.width().unwrap_or(0)) {
        Some(rest) => {
            left = rest;
            true
        }
        None => false,
    };
    let mut start: String = line.chars().take_while(fits).collect();
    start.push('…');
    start.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, columns: usize, expected: &str) {
        assert_eq!(cut(line, columns), expected, "{line:?} {columns}");
    }

    #[test]
    fn a_line_is_cut_to_its_columns() {
        check("12345", 5, "12345");
        check("12345", 4, "123…");
        check("中中中", 6, "中中中");
        check("中中中", 5, "中中…");
        check("中中中", 4, "中…");
        check("e\u{301}e\u{301}e", 3, "e\u{301}e\u{301}e");
        check("12345", 1, "…");
    }
}
