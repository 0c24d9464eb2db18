//! The line a terminal's cursor stands on.
//!
//! Most lines are only ever appended to and stay plain text; the first character written somewhere
//! else turns the line into cells.

use crate::limits;

/// A change inside the line, other than writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Edit {
    Right(u32),
    Left(u32),
    Column(u32),
    EraseRight,
    EraseLeft,
    EraseAll,
}

/// Farthest column the cursor moves to: a few times the width of any real terminal.
const MAX_COLUMN: usize = 4096;
/// Stands in the second column of a wide character.
const WIDE_REST: char = '\0';

/// One line and the cursor in it.
#[derive(Debug, Default, Clone)]
pub(super) struct Line {
    /// The line while it was only appended to.
    simple: String,
    /// The line since something else happened; empty while `simple` holds it.
    cells: Vec<char>,
    cursor: usize,
    is_edited: bool,
}

impl Line {
    /// Whether nothing stands on the line and the cursor is at its start.
    pub(super) fn is_empty(&self) -> bool {
        self.simple.is_empty() && self.cells.is_empty() && self.cursor == 0
    }

    /// Writes characters at the cursor.
    pub(super) fn push(&mut self, text: &str) {
        let text = super::without_c1(text);
        if !self.is_edited {
            self.simple.push_str(&text);
            return;
        }
        for character in text.chars() {
            self.write(character);
        }
    }

    /// Ends the line and adds it to `text`.
    pub(super) fn end(&mut self, text: &mut String) {
        self.flush(text);
        text.push('\n');
    }

    /// Adds what stands on the line to `text`, and empties it.
    pub(super) fn flush(&mut self, text: &mut String) {
        text.push_str(&self.simple);
        text.extend(self.cells.iter().filter(|cell| **cell != WIDE_REST));
        self.simple.clear();
        self.cells.clear();
        self.cursor = 0;
        self.is_edited = false;
    }

    /// Passes a line on that is too long to be held.
    pub(super) fn flush_when_long(&mut self, text: &mut String) {
        if self.held_bytes() > limits::MAX_TERMINAL_LINE_BYTES {
            self.flush(text);
        }
    }

    /// Returns the memory the line takes.
    pub(super) fn held_bytes(&self) -> usize {
        self.simple.len() + self.cells.len() * size_of::<char>()
    }

    /// Moves the cursor to the start of the line.
    pub(super) fn carriage_return(&mut self) {
        self.edit(Edit::Column(0));
    }

    /// Moves the cursor one column to the left.
    pub(super) fn backspace(&mut self) {
        self.edit(Edit::Left(1));
    }

    /// Changes the line.
    pub(super) fn edit(&mut self, edit: Edit) {
        if self.is_empty() && !matches!(edit, Edit::Right(_) | Edit::Column(_)) {
            return;
        }
        self.open_cells();
        match edit {
            Edit::Right(count) => self.move_to(self.cursor.saturating_add(count as usize)),
            Edit::Left(count) => self.cursor = self.cursor.saturating_sub(count as usize),
            Edit::Column(column) => self.move_to(column as usize),
            Edit::EraseRight => self.cells.truncate(self.cursor),
            Edit::EraseLeft => {
                let end = self.cursor.saturating_add(1).min(self.cells.len());
                self.cells.iter_mut().take(end).for_each(|cell| *cell = ' ');
            }
            Edit::EraseAll => self.cells.clear(),
        }
    }

    fn move_to(&mut self, column: usize) {
        // A line that is longer already keeps its own end as the limit.
        self.cursor = column.min(MAX_COLUMN.max(self.cells.len()));
    }

    fn open_cells(&mut self) {
        if self.is_edited {
            return;
        }
        self.is_edited = true;
        self.cells.clear();
        for character in self.simple.chars() {
            self.cells.push(character);
            if is_wide(character) {
                self.cells.push(WIDE_REST);
            }
        }
        self.simple.clear();
        self.cursor = self.cells.len();
    }

    fn write(&mut self, character: char) {
        self.put(character);
        if is_wide(character) {
            self.put(WIDE_REST);
        }
    }

    fn put(&mut self, character: char) {
        if self.cells.len() <= self.cursor {
            self.cells.resize(self.cursor + 1, ' ');
        }
        self.split_wide(character);
        if let Some(cell) = self.cells.get_mut(self.cursor) {
            *cell = character;
        }
        self.cursor += 1;
    }

    /// Blanks the other half of a wide character that is about to be overwritten in part.
    fn split_wide(&mut self, character: char) {
        let is_rest = self.cells.get(self.cursor) == Some(&WIDE_REST);
        if is_rest
            && character != WIDE_REST
            && let Some(before) = self
                .cursor
                .checked_sub(1)
                .and_then(|at| self.cells.get_mut(at))
        {
            *before = ' ';
        }
        if let Some(after) = self.cells.get_mut(self.cursor + 1)
            && *after == WIDE_REST
        {
            *after = ' ';
        }
    }
}

/// Whether a terminal draws the character two columns wide.
fn is_wide(character: char) -> bool {
    matches!(character,
        '\u{1100}'..='\u{115f}' | '\u{2e80}'..='\u{303e}' | '\u{3041}'..='\u{a4cf}'
        | '\u{ac00}'..='\u{d7a3}' | '\u{f900}'..='\u{faff}' | '\u{fe30}'..='\u{fe6f}'
        | '\u{ff00}'..='\u{ff60}' | '\u{ffe0}'..='\u{ffe6}' | '\u{1f300}'..='\u{1f64f}'
        | '\u{1f900}'..='\u{1f9ff}' | '\u{20000}'..='\u{3fffd}')
}
