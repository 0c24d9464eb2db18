//! Reads quoted text.

use super::{AFTER_BACKSLASH, Lexer, Quoting, Step};

impl Lexer<'_> {
    /// Reads a backslash and the character that it quotes.
    pub(super) fn escape(&mut self) -> Step {
        if self.at_placeholder(1) {
            return self.fail(AFTER_BACKSLASH);
        }
        self.list.add_quoted(None);
        self.at += 1;
        self.character();
        Ok(())
    }

    /// Passes one character that means itself.
    fn character(&mut self) {
        let rest = self.text_of(self.at..self.limit);
        let length = rest.chars().next().map_or(0, char::len_utf8);
        self.list
            .add_text(rest.get(..length).unwrap_or_default(), true);
        self.at += length;
    }

    /// Reads text in single quotes.
    pub(super) fn single(&mut self) -> Step {
        self.at += 1;
        let start = self.at;
        // Before the text, so that a plain prefix counts as one.
        let rest = self.bytes.get(start..self.limit).unwrap_or_default();
        let Some(end) = memchr::memchr(b'\'', rest).map(|end| start + end) else {
            return self.fail("a single quote is not closed");
        };
        self.list.add_quoted(Some(start..end));
        while self.next_placeholder() < end {
            let text = self.text_of(self.at..self.next_placeholder());
            self.list.add_text(text, true);
            self.at = self.next_placeholder();
            self.placeholder(Quoting::Single);
        }
        let text = self.text_of(self.at..end);
        self.list.add_text(text, true);
        self.at = end + 1;
        Ok(())
    }

    /// Reads `$'...'` after its dollar sign.
    pub(super) fn dollar_single(&mut self) -> Step {
        self.list.add_quoted(None);
        self.at += 1;
        loop {
            if self.at_placeholder(0) {
                self.placeholder(Quoting::Dollar);
                continue;
            }
            match self.peek(0) {
                None => return self.fail("a single quote is not closed"),
                Some(b'\'') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => {
                    self.escape()?;
                    // It may be any character.
                    self.list.add_text("", false);
                }
                Some(_) => self.run(b"'\\$"),
            }
        }
    }

    /// Reads text in double quotes.
    pub(super) fn double(&mut self) -> Step {
        self.at += 1;
        loop {
            if self.at_placeholder(0) {
                self.placeholder(Quoting::Double);
                continue;
            }
            match self.peek(0) {
                None => return self.fail("a double quote is not closed"),
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => self.escape_in_text(b"$`\"\\\n")?,
                Some(b'$') => self.dollar(Quoting::Double)?,
                Some(b'`') => self.backtick()?,
                Some(_) => self.run(b"\"\\$`"),
            }
        }
    }

    /// Reads a backslash where it quotes only some characters.
    pub(super) fn escape_in_text(&mut self, quoted: &[u8]) -> Step {
        if self.at_placeholder(1) {
            return self.fail(AFTER_BACKSLASH);
        }
        let is_quoted = self.peek(1).is_some_and(|byte| quoted.contains(&byte));
        if !is_quoted {
            self.list.add_text("\\", true);
        }
        self.at += 1;
        if is_quoted {
            self.character();
        }
        Ok(())
    }

    /// Reads at least one byte, up to one of these or the next placeholder.
    pub(super) fn run(&mut self, stops: &[u8]) {
        let rest = self.bytes.get(self.at..self.next_placeholder());
        let rest = rest.unwrap_or_default();
        let end = rest.iter().skip(1).position(|byte| stops.contains(byte));
        let end = self.at + end.map_or(rest.len(), |end| end + 1);
        let text = self.text_of(self.at..end);
        self.list.add_text(text, true);
        self.at = end;
    }

    /// Reads a command in backticks. They end at the first one without a backslash, whatever the quotes inside say.
    pub(super) fn backtick(&mut self) -> Step {
        let start = self.at;
        let Some(end) = self.backtick_end() else {
            return self.fail("a backtick is not closed");
        };
        let body = self.text_of(start + 1..end);
        let is_nested = self.backticks > 0 || body.contains("\\`") || body.contains("\\\"");
        if is_nested && self.next_placeholder() < end {
            return self
                .fail("a placeholder stands in backticks that hold more quotes; use $(...)");
        }
        let limit = std::mem::replace(&mut self.limit, end);
        self.at = start + 1;
        self.backticks += 1;
        self.depth += 1;
        self.commands(super::list::Closer::End)?;
        self.depth -= 1;
        self.backticks -= 1;
        self.limit = limit;
        self.at = end + 1;
        let text = self.text_of(start..self.at);
        self.list.add_text(text, false);
        Ok(())
    }

    fn backtick_end(&self) -> Option<usize> {
        let mut at = self.at + 1;
        while at < self.limit {
            match self.bytes.get(at)? {
                b'`' => return Some(at),
                b'\\' => at += 2,
                _ => at += 1,
            }
        }
        None
    }
}
