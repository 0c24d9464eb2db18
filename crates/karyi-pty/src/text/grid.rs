//! The rows of a screen, and the cursor on them.

use karyi_core::limits;

use super::cell::{COLUMNS, Cells, Trim, width};
use super::rows;

/// Rows of the screen.
pub(super) const ROWS: usize = limits::TERMINAL_ROWS as usize;

/// Continuation of a row.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// Unknown.
    #[default]
    Open,
    /// A line feed ended it.
    Ended,
    /// The next row is the rest of the same line.
    Wrapped,
}

/// One row.
#[derive(Debug, Default, Clone)]
pub(super) struct Row {
    pub(super) cells: Cells,
    pub(super) end: End,
    /// The text of the row that a watcher has got.
    pub(super) sent_text: Option<String>,
}

impl Row {
    /// Returns true if the row is empty and does not continue.
    pub(super) fn is_unused(&self) -> bool {
        self.end != End::Ended && self.cells.is_blank()
    }

    /// Returns true if it has only spaces.
    fn is_space(&self) -> bool {
        let mut text = String::new();
        self.cells.push_text(Trim::Blank, &mut text);
        text.is_empty()
    }

    /// Returns its text, with a line feed if the line ends here.
    pub(super) fn text(&self, trim: Trim) -> String {
        let mut text = String::new();
        match self.end {
            End::Wrapped => self.cells.push_text(Trim::Unwritten, &mut text),
            End::Open | End::Ended => self.cells.push_text(trim, &mut text),
        }
        if self.end != End::Wrapped {
            text.push('\n');
        }
        text
    }

    /// Records that the end of the row has changed: the next row no longer continues it.
    fn end_wrap(&mut self) {
        if self.end == End::Wrapped {
            self.end = End::Open;
        }
    }

    fn erase(&mut self, from: usize, to: usize) {
        if to >= COLUMNS {
            self.end_wrap();
        }
        if to >= COLUMNS && from == 0 {
            self.end = End::Open;
        }
        self.cells.erase(from, to);
    }
}

/// Position of the next character.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Cursor {
    pub(super) row: usize,
    pub(super) column: usize,
    /// True if the last column was just written: the next character wraps.
    pub(super) is_wrapping: bool,
    /// Number of columns of the row, a continuation, when the cursor was sent to its start. Once all of them are
    /// rewritten, the row is a line of its own.
    rest: Option<usize>,
}

/// The rows and the cursor.
#[derive(Debug, Clone)]
pub(super) struct Grid {
    pub(super) rows: Vec<Row>,
    pub(super) cursor: Cursor,
    pub(super) saved: Cursor,
    /// First and last row of the scrolling region.
    pub(super) top: usize,
    pub(super) bottom: usize,
}

impl Default for Grid {
    fn default() -> Self {
        Self {
            rows: std::iter::repeat_with(Row::default).take(ROWS).collect(),
            cursor: Cursor::default(),
            saved: Cursor::default(),
            top: 0,
            bottom: ROWS - 1,
        }
    }
}

impl Grid {
    /// Returns the row of the cursor.
    pub(super) fn row(&mut self) -> Option<&mut Row> {
        self.rows.get_mut(self.cursor.row)
    }

    /// Returns true if the whole screen scrolls.
    pub(super) fn scrolls_whole(&self) -> bool {
        (self.top, self.bottom) == (0, ROWS - 1)
    }

    /// Returns the number of rows up to the last used one.
    pub(super) fn used_rows(&self) -> usize {
        let last = self.rows.iter().rposition(|row| !row.is_unused());
        last.map_or(0, |last| last + 1)
    }

    /// Moves the cursor to a position, within the screen.
    pub(super) fn move_to(&mut self, row: usize, column: usize) {
        self.cursor = Cursor {
            row: row.min(ROWS - 1),
            column: column.min(COLUMNS - 1),
            is_wrapping: false,
            rest: None,
        };
    }

    /// Moves the cursor to the start of its row.
    pub(super) fn return_carriage(&mut self) {
        let row = self.cursor.row;
        self.move_to(row, 0);
        let is_rest = self
            .row_above()
            .is_some_and(|above| above.end == End::Wrapped);
        let columns = self.row().map_or(0, |row| row.cells.len());
        // A program that wraps a line itself prints a space behind the row, and continues in its place.
        let is_made_by_hand = columns == 1 && self.row().is_some_and(|row| row.is_space());
        if is_rest && columns > 0 && !is_made_by_hand {
            self.cursor.rest = Some(columns);
        }
    }

    fn row_above(&mut self) -> Option<&mut Row> {
        self.rows.get_mut(self.cursor.row.checked_sub(1)?)
    }

    /// Makes the cursor's row a line of its own once it is rewritten completely.
    fn record_written(&mut self) {
        let end = self.cursor.column + usize::from(self.cursor.is_wrapping);
        if self.cursor.rest.is_some_and(|columns| end >= columns) {
            self.part();
        }
    }

    /// Makes the cursor's row a line of its own.
    fn part(&mut self) {
        self.cursor.rest = None;
        if let Some(above) = self.row_above().filter(|above| above.end == End::Wrapped) {
            above.end = End::Ended;
        }
    }

    /// Moves the cursor up within the scrolling region.
    pub(super) fn move_up(&mut self, count: usize) {
        let is_below = self.cursor.row >= self.top;
        let limit = if is_below { self.top } else { 0 };
        let row = self.cursor.row.saturating_sub(count).max(limit);
        self.move_to(row, self.cursor.column);
    }

    /// Moves the cursor down within the scrolling region.
    pub(super) fn move_down(&mut self, count: usize) {
        let is_above = self.cursor.row <= self.bottom;
        let limit = if is_above { self.bottom } else { ROWS - 1 };
        let row = self.cursor.row.saturating_add(count).min(limit);
        self.move_to(row, self.cursor.column);
    }

    /// Moves the cursor to the next tab stop.
    pub(super) fn tab(&mut self) {
        let column = self.cursor.column;
        let stop = rows::next_stop(column);
        if let Some(row) = self.row() {
            row.cells.put_tab(column, stop);
        }
        self.cursor.column = stop;
    }

    /// Writes a character that fits at the cursor.
    pub(super) fn put(&mut self, character: char, width: usize) {
        let column = self.cursor.column;
        if let Some(row) = self.row() {
            row.cells.put(column, character, width);
        }
        let next = column + width;
        self.cursor.column = next.min(COLUMNS - 1);
        self.cursor.is_wrapping = next >= COLUMNS;
        self.record_written();
    }

    /// Writes ASCII characters that fit before the last column.
    pub(super) fn put_ascii(&mut self, characters: &[u8]) {
        let column = self.cursor.column;
        if let Some(row) = self.row() {
            row.cells.put_ascii(column, characters);
        }
        self.cursor.column = column + characters.len();
        self.record_written();
    }

    /// Adds a combining mark to the character before the cursor.
    pub(super) fn add_mark(&mut self, mark: char) {
        let column = self.cursor.column + usize::from(self.cursor.is_wrapping);
        if let Some(row) = self.row() {
            row.cells.add_mark(column, mark);
        }
    }

    /// Returns the number of columns from the cursor on.
    pub(super) fn room(&self) -> usize {
        let used = self.cursor.column + usize::from(self.cursor.is_wrapping);
        COLUMNS.saturating_sub(used)
    }

    /// Returns true if a character does not fit before the end of the row.
    pub(super) fn lacks_room(&self, character: char) -> bool {
        self.cursor.is_wrapping || self.cursor.column + width(character) > COLUMNS
    }

    /// Erases the cursor's row: after the cursor, before it, or all of it.
    pub(super) fn erase_line(&mut self, how: usize) {
        let column = self.cursor.column;
        let (from, to) = match how {
            // The cursor is behind a full row. Some terminals erase its last column, which loses text where `grep`
            // colours a match.
            0 if self.cursor.is_wrapping => return,
            0 => (column, COLUMNS),
            1 => (0, column + 1),
            2 => (0, COLUMNS),
            _ => return,
        };
        self.erase(from, to);
    }

    /// Empties columns of the cursor's row.
    pub(super) fn erase(&mut self, from: usize, to: usize) {
        self.cursor.is_wrapping = false;
        if to >= COLUMNS && (from == 0 || self.cursor.rest.is_some()) {
            self.part();
        }
        if let Some(row) = self.row() {
            row.erase(from, to);
        }
    }

    /// Inserts empty columns at the cursor.
    pub(super) fn insert(&mut self, count: usize) {
        let column = self.cursor.column;
        if let Some(row) = self.row() {
            row.cells.insert(column, count, COLUMNS);
            row.end_wrap();
        }
    }

    /// Deletes columns at the cursor.
    pub(super) fn delete(&mut self, count: usize) {
        let column = self.cursor.column;
        self.cursor.is_wrapping = false;
        if let Some(row) = self.row() {
            row.cells.delete(column, count);
            row.end_wrap();
        }
    }

    /// Empties rows.
    pub(super) fn clear_rows(&mut self, rows: std::ops::Range<usize>) {
        for row in self.rows.get_mut(rows).unwrap_or_default() {
            *row = Row::default();
        }
    }

    /// Scrolls the rows from `top` to the end of the region up; the first ones are lost.
    pub(super) fn scroll_up(&mut self, top: usize, count: usize) {
        let rows = self.rows.get_mut(top..=self.bottom).unwrap_or_default();
        let count = count.min(rows.len());
        let remaining = rows.len() - count;
        rows.rotate_left(count);
        self.clear_rows(top + remaining..top + remaining + count);
    }

    /// Scrolls the rows from `top` to the end of the region down; the last ones are lost.
    pub(super) fn scroll_down(&mut self, top: usize, count: usize) {
        let rows = self.rows.get_mut(top..=self.bottom).unwrap_or_default();
        let count = count.min(rows.len());
        rows.rotate_right(count);
        self.clear_rows(top..top + count);
    }
}
