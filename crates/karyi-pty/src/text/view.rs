//! The text of a terminal: as lines, or as a screen once a sequence addresses it.

use karyi_core::limits;

use super::audience::Audience;
use super::colour;
use super::escape::Sequence;
use super::line::Line;
use super::recent::Recent;
use super::screen::Screen;

/// Visible state for one audience.
#[derive(Debug, Clone)]
pub(super) struct View {
    audience: Audience,
    recent: Recent,
    pub(super) line: Line,
    /// Present while the screen is addressed; then `recent` and `line` are empty.
    screen: Option<Box<Screen>>,
}

impl View {
    pub(super) fn new(audience: Audience) -> Self {
        Self {
            audience,
            recent: Recent::new(audience),
            line: Line::default(),
            screen: None,
        }
    }

    /// Returns true if a program shows the alternate screen.
    pub(super) fn is_alternate(&self) -> bool {
        let screen = self.screen.as_ref();
        screen.is_some_and(|screen| screen.alternate.is_some())
    }

    /// Returns true if the text is not used, and nothing before the last line matters.
    pub(super) fn discards_lines(&self) -> bool {
        self.recent.is_full() && self.screen.is_none()
    }

    /// Returns true if the line, a single row, can take so many more bytes without a screen.
    pub(super) fn has_room(&self, bytes: usize) -> bool {
        let is_short = self.line.held_bytes() + bytes < limits::MAX_TERMINAL_LINE_BYTES;
        self.screen.is_none() && is_short && !self.line.is_wide()
    }

    /// Returns the part of a run of characters that matters: all of it, unless only the cursor position is used.
    pub(super) fn relevant<'a>(&mut self, run: &'a [u8]) -> &'a [u8] {
        if self.discards_lines()
            && let Some(end) = memchr::memrchr(b'\n', run)
        {
            self.line.clear();
            return run.get(end + 1..).unwrap_or_default();
        }
        run
    }

    /// Writes characters, line feeds and tabs.
    pub(super) fn write(&mut self, characters: &str, text: &mut String) {
        let mut rest = characters;
        while !rest.is_empty() {
            let Some(screen) = &mut self.screen else {
                rest = self.write_lines(rest, text);
                continue;
            };
            let used = screen.write(rest, text);
            rest = rest.get(used..).unwrap_or_default();
            if screen.is_calm() {
                self.close_screen(text);
            }
        }
    }

    /// Writes as lines; returns the characters that need the screen, which is open then.
    fn write_lines<'a>(&mut self, characters: &'a str, text: &mut String) -> &'a str {
        let mut rest = characters;
        while !rest.is_empty() {
            if self.line.is_empty()
                && let Some(end) = memchr::memrchr(b'\n', rest.as_bytes())
            {
                let (lines, tail) = rest.split_at(end + 1);
                self.line.clear();
                self.recent.push(lines, text);
                rest = tail;
                continue;
            }
            let end = memchr::memchr(b'\n', rest.as_bytes());
            let (content, tail) = rest.split_at(end.unwrap_or(rest.len()));
            let mut passed = String::new();
            let used = match content {
                "" => 0,
                _ => self.line.push(content, &mut passed),
            };
            if used < content.len() {
                self.open_screen(text);
                return rest.get(used..).unwrap_or_default();
            }
            if let Some(after) = tail.strip_prefix('\n') {
                self.line.flush(&mut passed);
                passed.push('\n');
                rest = after;
            } else {
                rest = tail;
            }
            if !passed.is_empty() {
                self.recent.push(&passed, text);
            }
        }
        rest
    }

    /// Applies a control character other than line feed and tab.
    pub(super) fn control(&mut self, byte: u8, text: &mut String) {
        if byte == 0x08 && self.screen.is_none() && self.line.is_wide() {
            self.open_screen(text);
        }
        match (&mut self.screen, byte) {
            (Some(screen), _) => screen.control(byte),
            (None, b'\r') => self.line.carriage_return(),
            (None, 0x08) => self.line.backspace(),
            (None, _) => {}
        }
    }

    /// Adds a colour to plain lines; returns false if there is a screen.
    pub(super) fn colour(&mut self, sequence: &str) -> bool {
        if self.screen.is_none() {
            self.line.colour(sequence);
        }
        self.screen.is_none()
    }

    /// Applies an escape or control sequence.
    pub(super) fn act(&mut self, sequence: &Sequence, text: &mut String) {
        if let Some(screen) = &mut self.screen {
            screen.act(sequence, text);
        } else if sequence.addresses_screen() {
            self.open_screen(text).act(sequence, text);
        } else if sequence.is_control && sequence.intermediate == 0 && sequence.private == 0 {
            match self.line.is_row_of(sequence) {
                true => self.open_screen(text).act(sequence, text),
                false => self.line.act(sequence),
            }
        }
    }

    /// Returns the cursor's row and column, counted from one.
    pub(super) fn place(&mut self, text: &mut String) -> (usize, usize) {
        let screen = match &mut self.screen {
            Some(screen) => screen,
            None => self.open_screen(text),
        };
        let cursor = screen.grid().cursor;
        (cursor.row + 1, cursor.column + 1)
    }

    /// Ends the text. Only an alternate screen that is still shown stays for later output.
    pub(super) fn finish(&mut self, text: &mut String) {
        match &mut self.screen {
            Some(screen) => screen.finish(text),
            None => {
                self.recent.finish(text);
                let mut rest = String::new();
                self.line.flush(&mut rest);
                if self.audience != Audience::Terminal {
                    text.push_str(&rest);
                }
            }
        }
        if !self.is_alternate() {
            self.screen = None;
        }
    }

    /// Opens a screen with the last lines within reach and the line of the cursor.
    fn open_screen(&mut self, text: &mut String) -> &mut Screen {
        let mut screen = Screen::new(self.audience);
        let recent = self.recent.take(text);
        // A watcher has these lines.
        let mut seen = String::new();
        let target = match self.audience {
            Audience::Watcher => &mut seen,
            Audience::Result | Audience::Terminal => text,
        };
        screen.adopt(&colour::strip(&recent), target);
        let (place, is_returned) = (self.line.place(), self.line.is_returned());
        let mut line = String::new();
        self.line.flush(&mut line);
        screen.adopt(&colour::strip(&line), text);
        let grid = screen.grid();
        match place {
            _ if is_returned => grid.return_carriage(),
            Some(column) => grid.move_to(grid.cursor.row, column),
            None => {}
        }
        self.screen.insert(Box::new(screen))
    }

    /// Turns the rows of the screen back into lines.
    fn close_screen(&mut self, text: &mut String) {
        if let Some(screen) = self.screen.take() {
            let lines = screen.into_lines(text);
            self.recent.put_back(lines, text);
        }
    }
}
