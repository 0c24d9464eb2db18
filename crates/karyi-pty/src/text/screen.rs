//! The screen of a terminal, drawn while a program addresses it.
//!
//! A row that leaves the screen at the top is final and goes to the text; the others can still be rewritten and go
//! there at the end. The alternate screen is dropped unless it is shown when the text ends. Rows of a wrapped line are
//! joined again.

use super::audience::Audience;
use super::cell::{COLUMNS, Trim, ascii_length, width};
use super::escape::Sequence;
use super::grid::{End, Grid, ROWS, Row};

/// The screens of a terminal and its modes.
#[derive(Debug, Clone)]
pub(super) struct Screen {
    audience: Audience,
    pub(super) main: Grid,
    pub(super) alternate: Option<Grid>,
    pub(super) modes: Modes,
    /// The last character written, for repetition.
    pub(super) last: char,
    /// Line feeds since a sequence addressed the screen.
    pub(super) calm: usize,
    /// True if the screen was cleared: what is drawn from then on is replaced by the next clear.
    is_drawn: bool,
    /// True if the cursor was sent to the first position of the screen, to draw from there.
    pub(super) starts_at_home: bool,
    /// True if the last row that went to the text is not the end of its line.
    is_line_open: bool,
    /// True if any row went to the text.
    has_begun: bool,
}

/// Modes that change the meaning of characters and positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Modes {
    pub(super) wraps: bool,
    pub(super) inserts: bool,
    /// True if positions count from the top of the scrolling region.
    pub(super) is_relative: bool,
    /// True for each of the two character sets that draws lines.
    pub(super) draws_lines: [bool; 2],
    pub(super) charset: usize,
}

impl Default for Modes {
    fn default() -> Self {
        Self {
            wraps: true,
            inserts: false,
            is_relative: false,
            draws_lines: [false; 2],
            charset: 0,
        }
    }
}

impl Screen {
    /// Makes an empty screen.
    pub(super) fn new(audience: Audience) -> Self {
        Self {
            audience,
            main: Grid::default(),
            alternate: None,
            modes: Modes::default(),
            last: ' ',
            calm: 0,
            is_drawn: false,
            starts_at_home: false,
            is_line_open: false,
            has_begun: false,
        }
    }

    /// Returns the visible screen.
    pub(super) fn grid(&mut self) -> &mut Grid {
        self.alternate.as_mut().unwrap_or(&mut self.main)
    }

    /// Writes characters, line feeds and tabs. Returns the number of bytes used: all, unless the screen is no longer
    /// needed.
    pub(super) fn write(&mut self, characters: &str, text: &mut String) -> usize {
        let mut rest = characters;
        loop {
            rest = self.print_ascii(rest);
            let mut others = rest.chars();
            match others.next() {
                None => return characters.len(),
                Some('\n') => {
                    self.feed_line(text);
                    if self.is_calm() {
                        return characters.len() - others.as_str().len();
                    }
                }
                Some('\t') => self.grid().tab(),
                Some(character) => self.print(character, text),
            }
            rest = others.as_str();
        }
    }

    /// Writes the ASCII characters at the start that stay before the last column; returns the rest.
    fn print_ascii<'a>(&mut self, characters: &'a str) -> &'a str {
        if self.modes.changes_characters() {
            return characters;
        }
        let grid = self.grid();
        let room = grid.room().saturating_sub(1).min(characters.len());
        // The characters after the last column are handled in the next row.
        let near = characters.as_bytes().get(..room).unwrap_or_default();
        let fitting = near.get(..ascii_length(near)).unwrap_or_default();
        let Some(last) = fitting.last() else {
            return characters;
        };
        grid.put_ascii(fitting);
        self.last = char::from(*last);
        characters.get(fitting.len()..).unwrap_or_default()
    }

    /// Writes earlier output, from before the screen was needed.
    pub(super) fn adopt(&mut self, characters: &str, text: &mut String) {
        let mut rest = characters;
        while !rest.is_empty() {
            let used = self.write(rest, text);
            rest = rest.get(used..).unwrap_or_default();
        }
        self.calm = 0;
    }

    /// Applies a control character.
    pub(super) fn control(&mut self, byte: u8) {
        let grid = self.grid();
        match byte {
            b'\r' => grid.return_carriage(),
            0x08 => grid.move_to(grid.cursor.row, grid.cursor.column.saturating_sub(1)),
            0x0e => self.modes.charset = 1,
            0x0f => self.modes.charset = 0,
            _ => {}
        }
    }

    /// Writes a character.
    pub(super) fn print(&mut self, character: char, text: &mut String) {
        let character = self.modes.drawn(character);
        let width = width(character);
        if width == 0 {
            return self.grid().add_mark(character);
        }
        if self.grid().lacks_room(character) {
            self.wrap(width, text);
        }
        let inserts = self.modes.inserts;
        let grid = self.grid();
        if inserts {
            grid.insert(width);
        }
        grid.put(character, width);
        self.last = character;
    }

    fn wrap(&mut self, width: usize, text: &mut String) {
        if !self.modes.wraps {
            let grid = self.grid();
            return grid.move_to(grid.cursor.row, COLUMNS - width);
        }
        if let Some(row) = self.grid().row() {
            row.end = End::Wrapped;
        }
        self.index(text);
        let grid = self.grid();
        grid.move_to(grid.cursor.row, 0);
    }

    /// Moves the cursor down a row; at the end the screen scrolls.
    pub(super) fn index(&mut self, text: &mut String) {
        let grid = self.grid();
        if grid.cursor.row == grid.bottom {
            grid.cursor.is_wrapping = false;
            self.scroll_up(1, text);
        } else {
            grid.move_to(grid.cursor.row + 1, grid.cursor.column);
        }
    }

    /// Applies a line feed. Programs print it alone for a new line, because the terminal does not process output; on
    /// the alternate screen it depends on the modes that the program has set.
    fn feed_line(&mut self, text: &mut String) {
        if self.alternate.is_some() {
            return self.index(text);
        }
        let is_wrapping = self.main.cursor.is_wrapping;
        if let Some(row) = self.main.row()
            && (row.end != End::Wrapped || is_wrapping)
        {
            row.end = End::Ended;
        }
        if self.audience == Audience::Watcher {
            self.send_new_line(text);
        }
        self.index(text);
        self.control(b'\r');
        self.calm += 1;
    }

    /// Scrolls; rows that leave the top of the main screen go to the text.
    pub(super) fn scroll_up(&mut self, count: usize, text: &mut String) {
        if self.alternate.is_none() && self.main.top == 0 {
            self.send_rows(count.min(self.main.bottom + 1), text);
        }
        let grid = self.grid();
        grid.scroll_up(grid.top, count);
    }

    /// Clears the screen. Output from before the first clear stays in the text; what is drawn between two clears is a
    /// picture that the next one replaces.
    pub(super) fn clear(&mut self, text: &mut String) {
        if self.alternate.is_none() {
            if !self.is_drawn {
                self.send_rows(self.main.used_rows(), text);
            }
            if std::mem::take(&mut self.is_line_open) && self.audience != Audience::Terminal {
                text.push('\n');
            }
            self.is_drawn = true;
        }
        self.grid().clear_rows(0..ROWS);
        self.grid().cursor.is_wrapping = false;
    }

    /// Adds the first rows of the main screen to the text.
    fn send_rows(&mut self, count: usize, text: &mut String) {
        let trim = self.trim();
        self.has_begun |= count > 0;
        for row in self.main.rows.iter_mut().take(count) {
            self.is_line_open = row.end == End::Wrapped;
            match self.audience {
                Audience::Terminal => {}
                Audience::Result => text.push_str(&row.text(trim)),
                Audience::Watcher => send_row(row, trim, text),
            }
        }
    }

    /// Programs fill pictures with spaces.
    fn trim(&self) -> Trim {
        if self.is_drawn {
            Trim::Blank
        } else {
            Trim::Unwritten
        }
    }

    /// Sends a watcher the line that has just ended, if it is a new one.
    fn send_new_line(&mut self, text: &mut String) {
        let trim = self.trim();
        let last = self.main.cursor.row;
        let before = self.main.rows.get(..last).unwrap_or_default();
        // Rows of one line, and a row that became a line of its own: a bar wider than the terminal.
        let is_other = |row: &Row| row.end == End::Open || row.sent_text.is_some();
        let first = before.iter().rposition(is_other).map_or(0, |row| row + 1);
        let line = self.main.rows.get_mut(first..=last).unwrap_or_default();
        for row in line.iter_mut().filter(|row| row.sent_text.is_none()) {
            send_row(row, trim, text);
        }
    }

    /// Returns true if only lines came for a while, so that the screen can be lines again.
    pub(super) fn is_calm(&self) -> bool {
        self.calm >= ROWS
            && self.alternate.is_none()
            && self.modes == Modes::default()
            && self.main.scrolls_whole()
            && self.main.used_rows() <= self.main.cursor.row
    }

    /// Returns the lines of a screen that is no longer needed.
    pub(super) fn into_lines(mut self, text: &mut String) -> String {
        let mut lines = String::new();
        let trim = self.trim();
        let ended = self.main.rows.iter_mut().take(self.main.cursor.row);
        for row in ended {
            lines.push_str(&row.text(trim));
            if self.audience == Audience::Watcher {
                send_row(row, trim, text);
            }
        }
        lines
    }

    /// Adds the rows of the screen to the text at its end. An alternate screen stays for later output.
    pub(super) fn finish(&mut self, text: &mut String) {
        if self.audience == Audience::Terminal {
            return;
        }
        let mut rest = String::new();
        if !self.has_begun {
            // Rows above the first used one were only passed by the cursor.
            let skipped = self.main.rows.iter().position(|row| !row.is_unused());
            self.main.rows.drain(..skipped.unwrap_or(0));
        }
        let used = self.main.used_rows();
        let last = self.main.rows.iter().take(used).next_back();
        let is_open = last.is_some_and(|row| row.end == End::Open);
        self.send_rows(used, &mut rest);
        if is_open && rest.ends_with('\n') && self.alternate.is_none() {
            rest.pop();
        }
        text.push_str(&rest);
        self.main = Grid::default();
        self.is_line_open = false;
        self.has_begun = false;
        if let Some(grid) = &self.alternate {
            push_picture(grid, text);
        }
    }

    /// Applies the control sequences that work inside one line.
    pub(super) fn act_in_line(&mut self, sequence: &Sequence) {
        let count = sequence.count(0);
        let grid = self.grid();
        let (row, column) = (grid.cursor.row, grid.cursor.column);
        match sequence.last {
            b'C' | b'a' => grid.move_to(row, column + count),
            b'D' => grid.move_to(row, column.saturating_sub(count)),
            b'G' | b'`' => grid.move_to(row, count - 1),
            b'K' => grid.erase_line(sequence.number(0)),
            _ => {}
        }
    }
}

impl Modes {
    /// Returns true if the modes change more than the position of a character.
    fn changes_characters(&self) -> bool {
        self.inserts || self.draws_lines != [false; 2]
    }

    /// Returns the character that is drawn for a written one.
    fn drawn(&self, character: char) -> char {
        let draws_lines = self.draws_lines.get(self.charset) == Some(&true);
        if !draws_lines {
            return character;
        }
        let index = u32::from(character).checked_sub(u32::from('`'));
        let drawn = index.and_then(|index| LINES.chars().nth(index as usize));
        drawn.unwrap_or(character)
    }
}

/// Characters of the line-drawing set, from the backquote on.
const LINES: &str = "◆▒␉␌␍␊°±␤␋┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·";

/// Sends a row to a watcher, unless the same text was sent before.
fn send_row(row: &mut Row, trim: Trim, text: &mut String) {
    let sent_text = row.text(trim);
    if row.sent_text.as_ref() != Some(&sent_text) {
        text.push_str(&sent_text);
        row.sent_text = Some(sent_text);
    }
}

/// Adds the picture on a screen to the text.
fn push_picture(grid: &Grid, text: &mut String) {
    let start = text.len();
    for row in &grid.rows {
        row.cells.push_text(Trim::Blank, text);
        text.push('\n');
    }
    let sent_text = text.get(start..).unwrap_or_default();
    text.truncate(start + sent_text.trim_end_matches('\n').len());
}
