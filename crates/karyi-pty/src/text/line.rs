//! The line of the cursor while no sequence addresses the screen.
//!
//! Most lines are only appended to and stay plain text; the first character written elsewhere converts the line to
//! cells. A line does not wrap, whatever its length. Sequences that act on the rows of a line wider than the terminal
//! are left to the screen.

use karyi_core::limits;

use super::cell::{COLUMNS, Cells, Trim, split_ascii, width};
use super::colour;
use super::escape::Sequence;
use super::rows;

/// One line and the cursor in it.
#[derive(Debug, Default, Clone)]
pub(super) struct Line {
    /// The line while it was only appended to.
    simple: String,
    /// The line after another change, one row at most; empty while `simple` holds it.
    cells: Cells,
    /// The column of the cursor in `cells`. Behind the last column the next character wraps.
    cursor: usize,
    is_edited: bool,
    /// True if a carriage return came last: a line feed after it means the same as alone.
    is_returned: bool,
    /// True if earlier rows of the line were passed on.
    is_continued: bool,
    /// The colours of a line that was changed inside: they are set at its end.
    colours: String,
}

impl Line {
    /// Returns true if the line is empty and the cursor is at its start.
    pub(super) fn is_empty(&self) -> bool {
        self.simple.is_empty() && self.cells.len() == 0 && self.cursor == 0
    }

    /// Writes characters at the cursor; the first rows of a very long line go to `text`. Returns the number of bytes
    /// written: the others need the screen.
    pub(super) fn push(&mut self, characters: &str, text: &mut String) -> usize {
        if self.is_returned && self.is_wide() {
            return 0;
        }
        self.settle_return();
        if self.is_edited {
            return self.write(characters);
        }
        let mut rest = characters;
        loop {
            let room = limits::MAX_TERMINAL_LINE_BYTES.saturating_sub(self.simple.len());
            let (fitting, more) = rest.split_at(rest.floor_char_boundary(room));
            self.simple.push_str(fitting);
            if more.is_empty() {
                return characters.len();
            }
            rest = more;
            self.pass_on_rows(text);
        }
    }

    /// Passes on all rows but the last one, the cursor's.
    fn pass_on_rows(&mut self, text: &mut String) {
        let end = match rows::start_of_last(&self.simple) {
            // A single row may have very many combining marks.
            0 => self.simple.len(),
            start => start,
        };
        text.push_str(self.simple.get(..end).unwrap_or_default());
        self.simple.drain(..end);
        self.is_continued = true;
    }

    /// Returns true if it is wider than the terminal.
    pub(super) fn is_wide(&self) -> bool {
        !self.is_edited && (self.is_continued || rows::overflow(&self.simple))
    }

    /// Returns true if a control sequence acts on one row of a line that has several.
    pub(super) fn is_row_of(&self, sequence: &Sequence) -> bool {
        let is_appended = !self.is_edited && !self.is_returned;
        match (sequence.last, sequence.number(0)) {
            // Nothing is behind the cursor.
            (b'K', 0) if is_appended => false,
            (b'C' | b'a' | b'D' | b'G' | b'`', _) | (b'K', 0..=2) => self.is_wide(),
            _ => false,
        }
    }

    /// Moves the text of the line to `text`.
    pub(super) fn flush(&mut self, text: &mut String) {
        text.push_str(&self.simple);
        self.cells.push_text(Trim::Unwritten, text);
        text.push_str(&self.colours);
        self.clear();
    }

    /// Empties the line.
    pub(super) fn clear(&mut self) {
        self.simple.clear();
        self.cells.clear();
        self.cursor = 0;
        self.is_edited = false;
        self.is_returned = false;
        self.is_continued = false;
        self.colours.clear();
    }

    /// Adds a colour sequence.
    pub(super) fn colour(&mut self, sequence: &str) {
        if self.is_edited || self.is_returned {
            colour::add(&mut self.colours, sequence);
        } else if self.simple.len() + sequence.len() <= limits::MAX_TERMINAL_LINE_BYTES {
            self.simple.push_str(sequence);
        }
    }

    /// Returns the number of stored bytes.
    pub(super) fn held_bytes(&self) -> usize {
        self.simple.len() + self.cells.len()
    }

    /// Returns true if a carriage return came last.
    pub(super) fn is_returned(&self) -> bool {
        self.is_returned
    }

    /// Returns the cursor's column on its row, unless it is behind everything written.
    pub(super) fn place(&self) -> Option<usize> {
        (self.is_edited && self.cursor < COLUMNS).then_some(self.cursor)
    }

    /// Moves the cursor to the start of the line.
    pub(super) fn carriage_return(&mut self) {
        self.is_returned = !self.is_empty();
    }

    /// Moves the cursor one column to the left.
    pub(super) fn backspace(&mut self) {
        self.edit(|line| line.cursor = line.column().saturating_sub(1));
    }

    /// Applies a control sequence that works inside one line.
    pub(super) fn act(&mut self, sequence: &Sequence) {
        let count = sequence.count(0);
        match (sequence.last, sequence.number(0)) {
            (b'K', 0 | 2) if self.is_returned => self.erase(),
            (b'C' | b'a', _) => self.edit(|line| line.move_to(line.column() + count)),
            (b'D', _) => self.edit(|line| line.cursor = line.column().saturating_sub(count)),
            (b'G' | b'`', _) => self.edit(|line| line.move_to(count - 1)),
            // Nothing is behind the cursor: `grep` sends this after every match.
            (b'K', 0) if !self.is_edited => {}
            (b'K', 0) => self.edit(|line| line.cells.erase(line.cursor, usize::MAX)),
            (b'K', 1) => self.edit(|line| {
                line.cursor = line.column();
                line.cells.erase(0, line.cursor + 1);
            }),
            (b'K', 2) => self.edit(|line| {
                line.cursor = line.column();
                line.cells.clear();
            }),
            _ => {}
        }
    }

    /// Erases the line when the cursor is at its start, as most bars do before each state.
    fn erase(&mut self) {
        let simple = &self.simple;
        colour::each(simple, |sequence| colour::add(&mut self.colours, sequence));
        self.simple.clear();
        self.cells.clear();
        self.cursor = 0;
        self.is_edited = false;
        self.is_returned = false;
    }

    fn edit(&mut self, change: impl FnOnce(&mut Self)) {
        self.settle_return();
        self.open_cells();
        change(self);
        // Erased from its start, the line is a plain one again.
        self.is_edited = !self.is_empty();
    }

    fn settle_return(&mut self) {
        if std::mem::take(&mut self.is_returned) {
            self.open_cells();
            self.cursor = 0;
        }
    }

    fn move_to(&mut self, column: usize) {
        self.cursor = column.min(COLUMNS - 1);
    }

    /// Returns the visible column of the cursor.
    fn column(&self) -> usize {
        self.cursor.min(COLUMNS - 1)
    }

    fn open_cells(&mut self) {
        if self.is_edited {
            return;
        }
        self.is_edited = true;
        let simple = std::mem::take(&mut self.simple);
        colour::each(&simple, |sequence| colour::add(&mut self.colours, sequence));
        let simple = colour::strip(&simple);
        let (start, others) = split_ascii(&simple);
        self.cells.put_ascii(0, start);
        self.cursor = start.len();
        for character in others.chars() {
            self.write_character(character);
        }
    }

    /// Writes characters that fit into the row; returns the number of bytes.
    fn write(&mut self, characters: &str) -> usize {
        let mut rest = characters;
        loop {
            let (simple, _) = split_ascii(rest);
            let room = COLUMNS.saturating_sub(self.cursor);
            let (fitting, _) = simple.split_at(simple.len().min(room));
            self.cells.put_ascii(self.cursor, fitting);
            self.cursor += fitting.len();
            rest = rest.get(fitting.len()..).unwrap_or_default();
            let mut others = rest.chars();
            match others.next() {
                Some(character) if self.has_room(character) => self.write_character(character),
                _ => return characters.len() - rest.len(),
            }
            rest = others.as_str();
        }
    }

    fn has_room(&self, character: char) -> bool {
        character == '\t' || self.cursor + width(character) <= COLUMNS
    }

    fn write_character(&mut self, character: char) {
        if character == '\t' {
            let stop = rows::next_stop(self.cursor);
            self.cells.put_tab(self.cursor, stop);
            self.cursor = self.cursor.max(stop);
            return;
        }
        match width(character) {
            0 => self.cells.add_mark(self.cursor, character),
            width => {
                self.cells.put(self.cursor, character, width);
                self.cursor += width;
            }
        }
    }
}
