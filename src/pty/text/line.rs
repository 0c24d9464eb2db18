//! The line a terminal's cursor stands on while nothing addresses the screen.
//!
//! Most lines are only ever appended to and stay plain text; the first character written somewhere
//! else turns the line into cells. It is as long as it is: nothing wraps.

use crate::limits;

use super::cell::{COLUMNS, Cells, TAB, Trim, split_ascii, width};
use super::colour;
use super::escape::Sequence;

/// One line and the cursor in it.
#[derive(Debug, Default, Clone)]
pub(super) struct Line {
    /// The line while it was only appended to.
    simple: String,
    /// The line since something else happened; empty while `simple` holds it.
    cells: Cells,
    cursor: usize,
    is_edited: bool,
    /// Whether a carriage return came last: a line feed after it means nothing more than alone.
    is_returned: bool,
    /// The colours of a line that was changed inside: they are set at its end.
    colours: String,
}

impl Line {
    /// Whether nothing stands on the line and the cursor is at its start.
    pub(super) fn is_empty(&self) -> bool {
        self.simple.is_empty() && self.cells.len() == 0 && self.cursor == 0
    }

    /// Writes characters at the cursor; a line that becomes too long to be held goes to `text`.
    pub(super) fn push(&mut self, characters: &str, text: &mut String) {
        self.settle_return();
        if self.is_edited {
            return self.write(characters, text);
        }
        let mut rest = characters;
        loop {
            let room = limits::MAX_TERMINAL_LINE_BYTES.saturating_sub(self.simple.len());
            let (fitting, more) = rest.split_at(rest.floor_char_boundary(room));
            self.simple.push_str(fitting);
            if more.is_empty() {
                return;
            }
            rest = more;
            self.flush(text);
        }
    }

    /// Adds what stands on the line to `text`, and empties it.
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
        self.colours.clear();
    }

    /// Takes a colour sequence.
    pub(super) fn colour(&mut self, sequence: &str) {
        if self.is_edited || self.is_returned {
            colour::add(&mut self.colours, sequence);
        } else if self.simple.len() + sequence.len() <= limits::MAX_TERMINAL_LINE_BYTES {
            self.simple.push_str(sequence);
        }
    }

    /// Returns how much of the line is held.
    pub(super) fn held_bytes(&self) -> usize {
        self.simple.len() + self.cells.len()
    }

    /// Returns the columns taken and the cursor's column, once the line was changed inside.
    pub(super) fn place(&mut self) -> Option<(usize, usize)> {
        self.settle_return();
        self.is_edited.then_some((self.cells.len(), self.cursor))
    }

    /// Moves the cursor to the start of the line.
    pub(super) fn carriage_return(&mut self) {
        self.is_returned = !self.is_empty();
    }

    /// Moves the cursor one column to the left.
    pub(super) fn backspace(&mut self) {
        self.edit(|line| line.cursor = line.cursor.saturating_sub(1));
    }

    /// Acts on a control sequence that works inside one line.
    pub(super) fn act(&mut self, sequence: &Sequence) {
        let count = sequence.count(0);
        match (sequence.last, sequence.number(0)) {
            (b'K', 0 | 2) if self.is_returned => self.erase(),
            (b'C' | b'a', _) => self.edit(|line| line.move_to(line.cursor + count)),
            (b'D', _) => self.edit(|line| line.cursor = line.cursor.saturating_sub(count)),
            (b'G' | b'`', _) => self.edit(|line| line.move_to(count - 1)),
            (b'K', 0) => self.edit(|line| line.cells.erase(line.cursor, usize::MAX)),
            // Not more than a row of it, so that the time it takes has a limit.
            (b'K', 1) => self.edit(|line| {
                let row = line.cursor / COLUMNS * COLUMNS;
                line.cells.erase(row, line.cursor + 1);
            }),
            (b'K', 2) => self.edit(|line| line.cells.clear()),
            _ => {}
        }
    }

    /// Erases all of it, with the cursor at its start: what most bars do before each state.
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
        // What is erased at the start of a line leaves a plain one.
        self.is_edited = !self.is_empty();
    }

    fn settle_return(&mut self) {
        if std::mem::take(&mut self.is_returned) {
            self.open_cells();
            self.cursor = 0;
        }
    }

    fn move_to(&mut self, column: usize) {
        // A line that is longer already keeps its own end as the limit.
        self.cursor = column.min(self.cells.len().max(COLUMNS - 1));
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

    fn write(&mut self, characters: &str, text: &mut String) {
        let mut rest = characters;
        while !rest.is_empty() {
            // One at a time where the line may become too long.
            let is_short = self.cursor + rest.len() < limits::MAX_TERMINAL_LINE_BYTES;
            if is_short {
                let (simple, others) = split_ascii(rest);
                self.cells.put_ascii(self.cursor, simple);
                self.cursor += simple.len();
                rest = others;
            }
            let mut others = rest.chars();
            if let Some(character) = others.next() {
                self.write_character(character);
            }
            rest = others.as_str();
            if self.cells.len() > limits::MAX_TERMINAL_LINE_BYTES {
                self.flush(text);
                self.is_edited = true;
            }
        }
    }

    fn write_character(&mut self, character: char) {
        if character == '\t' {
            let stop = (self.cursor / TAB + 1) * TAB;
            self.cells.put_tab(self.cursor, stop);
            self.cursor = stop;
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
