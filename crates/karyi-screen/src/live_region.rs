//! Draws a live region below the history of a terminal that scrolls.
//!
//! A frame erases the region, prints new history lines where it was, so that the terminal scrolls by itself, and draws
//! the region again, in one write. No absolute position is used, so it does not matter what stood above.
//!
//! A terminal that is resized wraps its long lines anew, and moves the cursor with them. What stands before the caret is
//! written with wrapping on and what follows with wrapping off. So the number of rows from the top of the region to the
//! cursor follows from the widths of those lines and the new size, whether a frame was written before or after the
//! terminal had that size.

use std::io::{self, Write};

use crate::styled_line::{Line, Palette, cluster_widths, fit, split_at_column, write_line};

/// Columns and rows of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Columns.
    pub columns: u16,
    /// Rows.
    pub rows: u16,
}

/// Behaviour of a terminal that becomes narrower.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reflow {
    /// It wraps lines that have become too long.
    Wraps,
    /// It wraps them but for the line of the cursor, which it cuts. A line that it wraps below the cursor moves the
    /// cursor, so nothing long should stand there. xterm.js does this, which is the terminal of VS Code.
    WrapsOthers,
    /// It cuts them.
    Cuts,
}

/// Content of the live region.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Region {
    /// Its lines.
    pub lines: Vec<Line<'static>>,
    /// Row and column of the cursor; hidden without one.
    pub caret: Option<(usize, usize)>,
}

/// The live region of a terminal.
#[derive(Debug)]
pub struct LiveRegion {
    palette: Palette,
    reflow: Reflow,
    drawn: Option<Drawn>,
}

/// A region on the screen.
#[derive(Debug)]
struct Drawn {
    region: Region,
    size: Size,
    /// Widths of the clusters of each line before the cursor, and of its own line up to it.
    before_cursor: Vec<Vec<usize>>,
}

impl LiveRegion {
    /// Creates a region that is not on the screen yet.
    #[must_use]
    pub fn new(palette: Palette, reflow: Reflow) -> Self {
        Self {
            palette,
            reflow,
            drawn: None,
        }
    }

    /// Prints history and draws the region below it. Nothing is written when neither would change anything.
    ///
    /// # Errors
    /// The terminal could not be written to.
    pub fn draw(
        &mut self,
        out: &mut impl Write,
        size: Size,
        history: &[Line<'_>],
        region: &Region,
    ) -> io::Result<()> {
        let region = clipped(region, size);
        let same = |drawn: &Drawn| drawn.region == region && drawn.size == size;
        if history.is_empty() && self.drawn.as_ref().is_some_and(same) {
            return Ok(());
        }
        let mut bytes = b"\x1b[?2026h\x1b[?25l".to_vec();
        self.erase(&mut bytes, size);
        for line in history {
            write_line(&mut bytes, line, self.palette);
            bytes.extend_from_slice(b"\r\n");
        }
        let before_cursor = self.write_region(&mut bytes, &region);
        if region.caret.is_some() {
            bytes.extend_from_slice(b"\x1b[?25h");
        }
        bytes.extend_from_slice(b"\x1b[?2026l");
        self.drawn = Some(Drawn {
            region,
            size,
            before_cursor,
        });
        out.write_all(&bytes)?;
        out.flush()
    }

    /// Removes the region from the screen; the cursor stands where it began.
    ///
    /// # Errors
    /// The terminal could not be written to.
    pub fn finish(&mut self, out: &mut impl Write, size: Size) -> io::Result<()> {
        let mut bytes = Vec::new();
        self.erase(&mut bytes, size);
        bytes.extend_from_slice(b"\x1b[?25h");
        self.drawn = None;
        out.write_all(&bytes)?;
        out.flush()
    }

    /// Adds the bytes that erase the region.
    fn erase(&self, bytes: &mut Vec<u8>, size: Size) {
        bytes.extend_from_slice(b"\r");
        let up = self.drawn.as_ref().map_or(0, |drawn| {
            let columns = usize::from(size.columns.max(1));
            let last = drawn.before_cursor.len().saturating_sub(1);
            let rows = |(number, widths): (usize, &Vec<usize>)| match self.reflow {
                Reflow::WrapsOthers if number == last => 1,
                Reflow::Wraps | Reflow::WrapsOthers => wrapped_rows(widths, columns),
                Reflow::Cuts => 1,
            };
            let rows = drawn.before_cursor.iter().enumerate().map(rows);
            rows.sum::<usize>().saturating_sub(1)
        });
        if up > 0 {
            bytes.extend_from_slice(format!("\x1b[{up}A").as_bytes());
        }
        bytes.extend_from_slice(b"\x1b[J");
    }

    /// Adds the bytes of the region, and returns what stands before the cursor.
    fn write_region(&self, bytes: &mut Vec<u8>, region: &Region) -> Vec<Vec<usize>> {
        let (row, column) = region.caret.unwrap_or_default();
        let mut before_cursor = Vec::new();
        for (number, line) in region.lines.iter().enumerate() {
            if number > 0 {
                bytes.extend_from_slice(b"\r\n");
            }
            if number == row {
                let (head, tail) = split_at_column(line, column);
                write_line(bytes, &head, self.palette);
                bytes.extend_from_slice(b"\x1b[?7l");
                write_line(bytes, &tail, self.palette);
                before_cursor.push(cluster_widths(&head));
                continue;
            }
            write_line(bytes, line, self.palette);
            if number < row {
                before_cursor.push(cluster_widths(line));
            }
        }
        let below = region.lines.len().saturating_sub(row + 1);
        bytes.extend_from_slice(b"\x1b[?7h\r");
        if below > 0 {
            bytes.extend_from_slice(format!("\x1b[{below}A").as_bytes());
        }
        if column > 0 {
            bytes.extend_from_slice(format!("\x1b[{column}C").as_bytes());
        }
        if before_cursor.is_empty() {
            before_cursor.push(Vec::new());
        }
        before_cursor
    }
}

/// Returns the most rows of a region on a screen of this size.
#[must_use]
pub fn most_rows(size: Size) -> usize {
    usize::from(size.rows / 2).max(2)
}

/// Returns the region with lines narrower than the screen, and at most half its rows: those at the caret stay.
fn clipped(region: &Region, size: Size) -> Region {
    let columns = usize::from(size.columns.saturating_sub(1)).max(1);
    let most = most_rows(size);
    let surplus = region.lines.len().saturating_sub(most);
    let (row, column) = region.caret.unwrap_or((region.lines.len(), 0));
    let start = surplus.min(row);
    let lines = region.lines.iter().skip(start).take(most);
    Region {
        lines: lines.map(|line| fit(line, columns)).collect(),
        caret: region.caret.map(|_| (row - start, column.min(columns - 1))),
    }
}

/// Returns the rows of a line on a screen that wraps it.
fn wrapped_rows(widths: &[usize], columns: usize) -> usize {
    let (mut rows, mut used) = (1, 0);
    for width in widths {
        if used + width > columns {
            rows += 1;
            used = 0;
        }
        used += width;
    }
    rows
}

#[cfg(test)]
mod tests;
