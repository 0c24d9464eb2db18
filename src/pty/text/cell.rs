//! What stands in the columns of one line or row.
//!
//! A character wider than one column, and a tab, takes its first column itself and marks the others
//! as its rest; what overwrites a part of it blanks the whole.

use unicode_width::UnicodeWidthChar as _;

use crate::limits;

/// Columns of the screen.
pub(super) const COLUMNS: usize = limits::TERMINAL_COLUMNS as usize;
/// Columns between two tab stops.
pub(super) const TAB: usize = 8;

/// Bytes of one character with its marks; more marks than fit are dropped. The longest that people
/// use, a flag of a region, takes 28.
const CAPACITY: usize = 31;
/// The length of a cell that is the rest of the one before.
const REST_LENGTH: u8 = u8::MAX;

/// One column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cell {
    length: u8,
    bytes: [u8; CAPACITY],
}

impl Cell {
    /// Nothing was ever written here, or it was erased.
    const EMPTY: Self = Self {
        length: 0,
        bytes: [0; CAPACITY],
    };
    const REST: Self = Self {
        length: REST_LENGTH,
        ..Self::EMPTY
    };
    const SPACE: Self = Self {
        length: 1,
        bytes: [b' '; CAPACITY],
    };

    fn new(character: char) -> Self {
        let mut cell = Self::EMPTY;
        cell.add(character);
        cell
    }

    fn ascii(byte: u8) -> Self {
        let mut cell = Self::SPACE;
        if let Some(first) = cell.bytes.first_mut() {
            *first = byte;
        }
        cell
    }

    fn add(&mut self, mark: char) {
        let start = usize::from(self.length);
        let room = self.bytes.get_mut(start..start + mark.len_utf8());
        if let Some(room) = room {
            let added = mark.encode_utf8(room).len();
            self.length = u8::try_from(start + added).unwrap_or(self.length);
        }
    }

    fn text(&self) -> &str {
        if self.length == 0 {
            return " ";
        }
        let bytes = self.bytes.get(..usize::from(self.length));
        std::str::from_utf8(bytes.unwrap_or_default()).unwrap_or_default()
    }

    fn is_rest(&self) -> bool {
        self.length == REST_LENGTH
    }

    fn is_empty(&self) -> bool {
        self.length == 0
    }

    fn is_tab(&self) -> bool {
        self.text() == "\t"
    }
}

/// Returns how many columns a terminal gives to a character; none to a combining mark.
pub(super) fn width(character: char) -> usize {
    if character.is_ascii() {
        return 1;
    }
    character.width().unwrap_or(0).min(2)
}

/// Splits off the characters at the start that take a column each and need no thought.
pub(super) fn split_ascii(characters: &str) -> (&[u8], &str) {
    let is_simple = |byte: &u8| matches!(byte, b' '..=b'~');
    let bytes = characters.as_bytes();
    let end = bytes.iter().position(|byte| !is_simple(byte));
    let end = end.unwrap_or(bytes.len());
    let (simple, _) = bytes.split_at(end);
    (simple, characters.get(end..).unwrap_or_default())
}

/// What is left out at the end of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trim {
    /// Columns nobody wrote to.
    Unwritten,
    /// Spaces too.
    Blank,
}

/// The columns of a line or row; those after the last one are empty.
#[derive(Debug, Default, Clone)]
pub(super) struct Cells(Vec<Cell>);

impl Cells {
    /// Returns how many columns are held.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nothing stands here.
    pub(super) fn is_blank(&self) -> bool {
        self.0.iter().all(Cell::is_empty)
    }

    /// Empties all columns.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Writes a character of a width.
    pub(super) fn put(&mut self, column: usize, character: char, width: usize) {
        self.put_cell(column, Cell::new(character), width);
    }

    /// Writes ASCII characters, each of which takes a column.
    pub(super) fn put_ascii(&mut self, column: usize, characters: &[u8]) {
        let end = column + characters.len();
        if self.0.len() < end {
            self.0.resize(end, Cell::EMPTY);
        }
        self.cut(column);
        self.cut(end);
        let cells = self.0.get_mut(column..end).unwrap_or_default();
        for (cell, byte) in cells.iter_mut().zip(characters) {
            *cell = Cell::ascii(*byte);
        }
    }

    /// Adds a mark to the character that ends before a column.
    pub(super) fn add_mark(&mut self, column: usize, mark: char) {
        let before = self.0.get_mut(..column).unwrap_or_default();
        let last = before.iter_mut().rev().find(|cell| !cell.is_rest());
        if let Some(cell) = last.filter(|cell| !cell.is_empty()) {
            cell.add(mark);
        }
    }

    /// Keeps a tab as what it is when nothing stands in the columns it passes over.
    pub(super) fn put_tab(&mut self, from: usize, to: usize) {
        let passed = self.0.get(from.min(self.0.len())..to.min(self.0.len()));
        if from < to && passed.is_some_and(|cells| cells.iter().all(Cell::is_empty)) {
            self.put_cell(from, Cell::new('\t'), to - from);
        }
    }

    fn put_cell(&mut self, column: usize, cell: Cell, width: usize) {
        let end = column + width;
        if self.0.len() < end {
            self.0.resize(end, Cell::EMPTY);
        }
        self.cut(column);
        self.cut(end);
        let cells = self.0.get_mut(column..end).unwrap_or_default();
        if let Some((first, rest)) = cells.split_first_mut() {
            *first = cell;
            rest.fill(Cell::REST);
        }
    }

    /// Empties columns.
    pub(super) fn erase(&mut self, from: usize, to: usize) {
        self.cut(from);
        self.cut(to);
        if to >= self.0.len() {
            self.0.truncate(from);
        } else if let Some(cells) = self.0.get_mut(from..to) {
            cells.fill(Cell::EMPTY);
        }
    }

    /// Inserts empty columns; what is pushed beyond `limit` is lost.
    pub(super) fn insert(&mut self, at: usize, count: usize, limit: usize) {
        if at >= self.0.len() || at >= limit {
            return;
        }
        self.cut(at);
        let count = count.min(limit - at);
        self.0
            .splice(at..at, std::iter::repeat_n(Cell::EMPTY, count));
        self.cut(limit);
        self.0.truncate(limit);
    }

    /// Takes columns out; what stands after them moves up.
    pub(super) fn delete(&mut self, at: usize, count: usize) {
        let end = at.saturating_add(count).min(self.0.len());
        if at < end {
            self.cut(at);
            self.cut(end);
            self.0.drain(at..end);
        }
    }

    /// Adds what stands here to `out`.
    pub(super) fn push_text(&self, trim: Trim, out: &mut String) {
        let is_shown = |cell: &Cell| match trim {
            Trim::Unwritten => !cell.is_empty(),
            Trim::Blank => cell.text() != " ",
        };
        let end = self.0.iter().rposition(is_shown).map_or(0, |last| last + 1);
        for cell in self.0.iter().take(end).filter(|cell| !cell.is_rest()) {
            out.push_str(cell.text());
        }
    }

    /// Blanks a character that a boundary between two columns would cut in two.
    fn cut(&mut self, at: usize) {
        if self.0.get(at).is_none_or(|cell| !cell.is_rest()) {
            return;
        }
        let (before, after) = self.0.split_at_mut(at);
        let rests = after.iter_mut().take_while(|cell| cell.is_rest());
        let first = before.iter().rposition(|cell| !cell.is_rest());
        let start = before.get_mut(first.unwrap_or(0)..).unwrap_or_default();
        let blank = if start.first().is_some_and(Cell::is_tab) {
            Cell::EMPTY
        } else {
            Cell::SPACE
        };
        start.fill(blank);
        rests.for_each(|cell| *cell = blank);
    }
}
