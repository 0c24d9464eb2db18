//! The columns of one line or row.
//!
//! A character wider than one column, or a tab, is stored in its first column; the others are marked as its rest.
//! Overwriting a part of it blanks the whole.

use unicode_width::UnicodeWidthChar as _;

use karyi_core::limits;

use super::scan;

/// Columns of the screen.
pub(super) const COLUMNS: usize = limits::TERMINAL_COLUMNS as usize;
/// Columns between two tab stops.
pub(super) const TAB: usize = 8;

/// Bytes of one character with its combining marks; more marks are dropped. The longest in use, the flag of a region,
/// takes 28.
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
    /// Never written, or erased.
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

/// Returns the number of columns of a character; 0 for a combining mark.
pub(super) fn width(character: char) -> usize {
    if character.is_ascii() {
        return 1;
    }
    character.width().unwrap_or(0).min(2)
}

/// Returns the number of bytes at the start that are ASCII characters of one column.
pub(super) fn ascii_length(bytes: &[u8]) -> usize {
    scan::length_of(bytes, |byte| matches!(byte, b' '..=b'~'))
}

/// Splits off the printable ASCII characters at the start.
pub(super) fn split_ascii(characters: &str) -> (&[u8], &str) {
    let end = ascii_length(characters.as_bytes());
    let (simple, others) = characters.split_at(end);
    (simple.as_bytes(), others)
}

/// Columns omitted at the end of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trim {
    /// Columns never written.
    Unwritten,
    /// Spaces too.
    Blank,
}

/// The columns of a line or row; those after the last one are empty.
///
/// Almost all lines are ASCII, so a column is one byte while that is so.
#[derive(Debug, Default, Clone)]
pub(super) struct Cells {
    /// A printable ASCII character for each column, or [`NOTHING`].
    narrow: Vec<u8>,
    /// All columns once one of them holds another character; then `narrow` is empty.
    wide: Vec<Cell>,
}

/// The byte of an empty column.
const NOTHING: u8 = 0;

impl Cells {
    /// Returns the number of stored columns.
    pub(super) fn len(&self) -> usize {
        self.narrow.len() + self.wide.len()
    }

    /// Returns true if every column is empty.
    pub(super) fn is_blank(&self) -> bool {
        self.narrow.iter().all(|byte| *byte == NOTHING) && self.wide.iter().all(Cell::is_empty)
    }

    /// Empties all columns.
    pub(super) fn clear(&mut self) {
        self.narrow.clear();
        self.wide.clear();
    }

    /// Writes a character of a width.
    pub(super) fn put(&mut self, column: usize, character: char, width: usize) {
        match u8::try_from(character) {
            Ok(byte @ b' '..=b'~') => self.put_ascii(column, &[byte]),
            _ => self.put_cell(column, Cell::new(character), width),
        }
    }

    /// Writes printable ASCII characters, each of which takes a column.
    pub(super) fn put_ascii(&mut self, column: usize, characters: &[u8]) {
        if characters.is_empty() {
            return;
        }
        let end = column + characters.len();
        if self.wide.is_empty() {
            if self.narrow.len() < end {
                self.narrow.resize(end, NOTHING);
            }
            let bytes = self.narrow.get_mut(column..end).unwrap_or_default();
            bytes.copy_from_slice(characters);
            return;
        }
        let cells = self.open(column, end);
        for (cell, byte) in cells.iter_mut().zip(characters) {
            *cell = Cell::ascii(*byte);
        }
    }

    /// Adds a mark to the character that ends before a column.
    pub(super) fn add_mark(&mut self, column: usize, mark: char) {
        self.widen();
        let before = self.wide.get_mut(..column).unwrap_or_default();
        let last = before.iter_mut().rev().find(|cell| !cell.is_rest());
        if let Some(cell) = last.filter(|cell| !cell.is_empty()) {
            cell.add(mark);
        }
    }

    /// Stores a tab when the columns it passes are empty.
    pub(super) fn put_tab(&mut self, from: usize, to: usize) {
        let passed = from.min(self.len())..to.min(self.len());
        let bytes = self.narrow.get(passed.clone()).unwrap_or_default();
        let cells = self.wide.get(passed).unwrap_or_default();
        let is_free = bytes.iter().all(|byte| *byte == NOTHING) && cells.iter().all(Cell::is_empty);
        if from < to && is_free {
            self.put_cell(from, Cell::new('\t'), to - from);
        }
    }

    fn put_cell(&mut self, column: usize, cell: Cell, width: usize) {
        self.widen();
        let cells = self.open(column, column + width);
        if let Some((first, rest)) = cells.split_first_mut() {
            *first = cell;
            rest.fill(Cell::REST);
        }
    }

    /// Returns wide columns for writing.
    fn open(&mut self, from: usize, to: usize) -> &mut [Cell] {
        if self.wide.len() < to {
            self.wide.resize(to, Cell::EMPTY);
        }
        self.cut(from);
        self.cut(to);
        self.wide.get_mut(from..to).unwrap_or_default()
    }

    /// Converts the columns to wide ones.
    fn widen(&mut self) {
        let cell = |byte| match byte {
            NOTHING => Cell::EMPTY,
            byte => Cell::ascii(byte),
        };
        self.wide.extend(self.narrow.drain(..).map(cell));
    }

    /// Empties columns.
    pub(super) fn erase(&mut self, from: usize, to: usize) {
        self.cut(from);
        self.cut(to);
        if to >= self.len() {
            self.narrow.truncate(from);
            self.wide.truncate(from);
        } else if let Some(bytes) = self.narrow.get_mut(from..to) {
            bytes.fill(NOTHING);
        } else if let Some(cells) = self.wide.get_mut(from..to) {
            cells.fill(Cell::EMPTY);
        }
    }

    /// Inserts empty columns; columns pushed beyond `limit` are lost.
    pub(super) fn insert(&mut self, at: usize, count: usize, limit: usize) {
        if at >= self.len() || at >= limit {
            return;
        }
        self.cut(at);
        let count = count.min(limit - at);
        if self.wide.is_empty() {
            let nothing = std::iter::repeat_n(NOTHING, count);
            self.narrow.splice(at..at, nothing);
        } else {
            let nothing = std::iter::repeat_n(Cell::EMPTY, count);
            self.wide.splice(at..at, nothing);
        }
        self.cut(limit);
        self.narrow.truncate(limit);
        self.wide.truncate(limit);
    }

    /// Deletes columns; those after them move up.
    pub(super) fn delete(&mut self, at: usize, count: usize) {
        let end = at.saturating_add(count).min(self.len());
        if at >= end {
            return;
        }
        self.cut(at);
        self.cut(end);
        if self.wide.is_empty() {
            self.narrow.drain(at..end);
        } else {
            self.wide.drain(at..end);
        }
    }

    /// Adds the text of the columns to `out`.
    pub(super) fn push_text(&self, trim: Trim, out: &mut String) {
        self.push_narrow(trim, out);
        let is_shown = |cell: &Cell| match trim {
            Trim::Unwritten => !cell.is_empty(),
            Trim::Blank => cell.text() != " ",
        };
        let last = self.wide.iter().rposition(is_shown);
        let end = last.map_or(0, |last| last + 1);
        for cell in self.wide.iter().take(end).filter(|cell| !cell.is_rest()) {
            out.push_str(cell.text());
        }
    }

    fn push_narrow(&self, trim: Trim, out: &mut String) {
        let is_shown = |byte: &u8| *byte != NOTHING && (trim == Trim::Unwritten || *byte != b' ');
        let last = self.narrow.iter().rposition(is_shown);
        let sent_text = last.and_then(|last| self.narrow.get(..=last));
        let mut parts = sent_text.unwrap_or_default().split(|byte| *byte == NOTHING);
        let first = parts.next().unwrap_or_default();
        out.push_str(std::str::from_utf8(first).unwrap_or_default());
        for part in parts {
            out.push(' ');
            out.push_str(std::str::from_utf8(part).unwrap_or_default());
        }
    }

    /// Blanks a character that spans a boundary between two columns.
    fn cut(&mut self, at: usize) {
        if self.wide.get(at).is_none_or(|cell| !cell.is_rest()) {
            return;
        }
        let (before, after) = self.wide.split_at_mut(at);
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

#[cfg(test)]
mod tests {
    use super::*;

    type Act = fn(&mut Cells, usize, usize);

    /// Narrow and wide columns have the same text after any edits.
    #[test]
    fn narrow_and_wide_columns_hold_the_same() {
        let acts: [Act; 6] = [
            |cells, at, count| cells.put_ascii(at, "0123456789".repeat(count).as_bytes()),
            |cells, at, _| cells.put(at, 'x', 1),
            |cells, at, count| cells.erase(at, at + count),
            |cells, at, _| cells.erase(at, usize::MAX),
            |cells, at, count| cells.insert(at, count, COLUMNS),
            |cells, at, count| cells.delete(at, count),
        ];
        let mut seed = 5u32;
        let mut next = |below: usize| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 16) as usize % below
        };
        for _ in 0..200 {
            let (mut narrow, mut wide) = (Cells::default(), Cells::default());
            narrow.put(0, 'e', 1);
            wide.put(0, 'é', 1);
            for _ in 0..20 {
                let (act, at, count) = (acts[next(acts.len())], 1 + next(COLUMNS), next(9));
                act(&mut narrow, at, count);
                act(&mut wide, at, count);
                assert!(wide.narrow.is_empty() && narrow.wide.is_empty());
                check_same(&narrow, &wide);
            }
            let (at, mark) = (1 + next(COLUMNS), '\u{301}');
            for cells in [&mut narrow, &mut wide] {
                cells.put_tab(at, at + 3);
                cells.add_mark(at, mark);
            }
            check_same(&narrow, &wide);
        }
    }

    fn check_same(narrow: &Cells, wide: &Cells) {
        assert_eq!(narrow.len(), wide.len());
        for trim in [Trim::Unwritten, Trim::Blank] {
            let text = |cells: &Cells| {
                let mut text = String::new();
                cells.push_text(trim, &mut text);
                text.replacen('é', "e", 1)
            };
            assert_eq!(text(narrow), text(wide), "{trim:?}");
        }
    }
}
