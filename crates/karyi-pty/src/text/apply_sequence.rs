//! Effects of escape sequences on the screen.

use super::cell::{COLUMNS, TAB};
use super::escape::Sequence;
use super::grid::{Cursor, Grid, ROWS};
use super::screen::{Modes, Screen};

impl Sequence {
    /// Returns true if it affects only the line of the cursor and is no query.
    pub(super) fn stays_in_line(&self) -> bool {
        !self.addresses_screen() && !matches!(self.last, b'n' | b'c')
    }

    /// Returns true if the next character may be further right than without it.
    pub(super) fn moves_right(&self) -> bool {
        self.is_control && matches!(self.last, b'C' | b'a' | b'G' | b'`')
    }

    /// Returns true if it affects more than the line of the cursor, so that the screen is needed.
    pub(super) fn addresses_screen(&self) -> bool {
        match (self.is_control, self.private, self.intermediate) {
            (true, 0, 0) => match self.last {
                b'h' | b'l' => self.numbers().any(|mode| mode == 4),
                last => b"ABEFHIJLMPSTXZ@bdefrsu".contains(&last),
            },
            (true, b'?', 0) => match self.last {
                b'J' => true,
                b'h' | b'l' => self
                    .numbers()
                    .any(|mode| matches!(mode, 6 | 7 | 47 | 1047..=1049)),
                _ => false,
            },
            (true, 0, b'!') => self.last == b'p',
            (true, ..) => false,
            (false, _, 0) => b"78DEMc".contains(&self.last),
            (false, _, set) => b"()".contains(&set) && self.last == b'0',
        }
    }
}

impl Screen {
    /// Applies a sequence.
    pub(super) fn act(&mut self, sequence: &Sequence, text: &mut String) {
        if sequence.addresses_screen() {
            self.calm = 0;
            self.starts_at_home &= sequence.last == b'J';
        }
        match (sequence.is_control, sequence.private, sequence.intermediate) {
            (true, 0, 0) => self.control_sequence(sequence, text),
            (true, b'?', 0) => self.private_sequence(sequence, text),
            (true, 0, b'!') if sequence.last == b'p' => self.reset_modes(),
            (false, _, 0) => self.escape_sequence(sequence.last, text),
            (false, _, set @ (b'(' | b')')) => {
                let [first, second] = &mut self.modes.draws_lines;
                let chosen = if set == b'(' { first } else { second };
                *chosen = sequence.last == b'0';
            }
            _ => {}
        }
    }

    fn control_sequence(&mut self, sequence: &Sequence, text: &mut String) {
        let (count, number) = (sequence.count(0), sequence.number(0));
        let grid = self.grid();
        let row = grid.cursor.row;
        match sequence.last {
            b'A' => grid.move_up(count),
            b'B' | b'e' => grid.move_down(count),
            b'E' => {
                grid.move_down(count);
                grid.move_to(grid.cursor.row, 0);
            }
            b'F' => {
                grid.move_up(count);
                grid.move_to(grid.cursor.row, 0);
            }
            b'H' | b'f' => {
                let (row, column) = (count - 1, sequence.count(1) - 1);
                self.starts_at_home = (row, column) == (0, 0);
                self.go_to(row, column);
            }
            b'd' => {
                let column = grid.cursor.column;
                self.go_to(count - 1, column);
            }
            b'I' => (0..count.min(COLUMNS)).for_each(|_| grid.tab()),
            b'Z' => {
                let stop = grid.cursor.column.div_ceil(TAB).saturating_sub(count) * TAB;
                grid.move_to(row, stop);
            }
            b'J' => self.erase_display(number, text),
            b'L' | b'M' => self.change_rows(sequence.last, count),
            b'P' => grid.delete(count),
            b'@' => grid.insert(count),
            b'X' => {
                let from = grid.cursor.column;
                grid.erase(from, from.saturating_add(count).min(COLUMNS));
            }
            b'S' => self.scroll_up(count.min(ROWS), text),
            b'T' => grid.scroll_down(grid.top, count),
            b'b' => {
                // Not beyond the row: a few bytes must not become many lines.
                let room = grid.room();
                let last = self.last;
                (0..count.min(room)).for_each(|_| self.print(last, text));
            }
            b'r' => self.set_margins(sequence),
            b's' => grid.saved = grid.cursor,
            b'u' => grid.cursor = grid.saved,
            b'h' | b'l' if number == 4 => self.modes.inserts = sequence.last == b'h',
            _ => self.act_in_line(sequence),
        }
    }

    /// Moves the cursor to a position, which counts from the top of the scrolling region in origin mode.
    fn go_to(&mut self, row: usize, column: usize) {
        let is_relative = self.modes.is_relative;
        let grid = self.grid();
        if is_relative {
            grid.move_to((grid.top + row).min(grid.bottom), column);
        } else {
            grid.move_to(row, column);
        }
    }

    fn erase_display(&mut self, how: usize, text: &mut String) {
        let starts_at_home = self.starts_at_home;
        let grid = self.grid();
        let Cursor { row, column, .. } = grid.cursor;
        match how {
            // Progress bars of several lines move to the first row and erase from there.
            0 if starts_at_home && (row, column) == (0, 0) => self.clear(text),
            0 => {
                grid.erase_line(0);
                grid.clear_rows(row + 1..ROWS);
            }
            1 => {
                grid.clear_rows(0..row);
                grid.erase_line(1);
            }
            2 => self.clear(text),
            _ => {}
        }
    }

    /// Inserts or deletes rows at the cursor.
    fn change_rows(&mut self, last: u8, count: usize) {
        let grid = self.grid();
        let row = grid.cursor.row;
        if !(grid.top..=grid.bottom).contains(&row) {
            return;
        }
        if last == b'L' {
            grid.scroll_down(row, count);
        } else {
            grid.scroll_up(row, count);
        }
        grid.move_to(row, 0);
    }

    fn set_margins(&mut self, sequence: &Sequence) {
        let grid = self.grid();
        let top = sequence.count(0) - 1;
        let bottom = match sequence.number(1) {
            0 => ROWS - 1,
            last => last.min(ROWS) - 1,
        };
        if top < bottom {
            (grid.top, grid.bottom) = (top, bottom);
            self.go_to(0, 0);
        }
    }

    fn private_sequence(&mut self, sequence: &Sequence, text: &mut String) {
        let is_on = sequence.last == b'h';
        match sequence.last {
            b'J' => self.erase_display(sequence.number(0), text),
            b'K' => self.act_in_line(sequence),
            b'h' | b'l' => sequence
                .numbers()
                .for_each(|mode| self.set_mode(mode, is_on)),
            _ => {}
        }
    }

    fn set_mode(&mut self, mode: usize, is_on: bool) {
        match mode {
            6 => {
                self.modes.is_relative = is_on;
                self.go_to(0, 0);
            }
            7 => self.modes.wraps = is_on,
            47 | 1047 => self.show_alternate(is_on),
            1048 | 1049 if is_on => {
                let grid = self.grid();
                grid.saved = grid.cursor;
                self.show_alternate(mode == 1049 || self.alternate.is_some());
            }
            1048 | 1049 => {
                if mode == 1049 {
                    self.show_alternate(false);
                }
                let grid = self.grid();
                grid.cursor = grid.saved;
            }
            _ => {}
        }
    }

    fn show_alternate(&mut self, is_on: bool) {
        let cursor = self.grid().cursor;
        if is_on && self.alternate.is_none() {
            self.alternate = Some(Grid {
                cursor,
                ..Grid::default()
            });
        } else if !is_on && self.alternate.take().is_some() {
            self.main.cursor = cursor;
        }
    }

    fn escape_sequence(&mut self, last: u8, text: &mut String) {
        let grid = self.grid();
        match last {
            b'7' => grid.saved = grid.cursor,
            b'8' => grid.cursor = grid.saved,
            b'D' => self.index(text),
            b'E' => {
                self.index(text);
                self.control(b'\r');
            }
            b'M' if grid.cursor.row == grid.top => grid.scroll_down(grid.top, 1),
            b'M' => grid.move_up(1),
            b'c' => {
                self.reset_modes();
                self.alternate = None;
                self.clear(text);
                self.main.move_to(0, 0);
            }
            _ => {}
        }
    }

    fn reset_modes(&mut self) {
        self.modes = Modes::default();
        let grid = self.grid();
        (grid.top, grid.bottom) = (0, ROWS - 1);
        grid.saved = Cursor::default();
    }
}
