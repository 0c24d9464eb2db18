//! Reads expressions, with which the shell calculates.

use super::{Quote, Reader, Step};
use crate::vault::words::Demands;

impl Reader<'_> {
    /// Reads an arithmetic expression up to `closer`.
    pub(super) fn expression(&mut self, closer: &'static [u8]) -> Step {
        self.nested(Demands::NUMBER, |reader| reader.expression_body(closer))
    }

    fn expression_body(&mut self, closer: &'static [u8]) -> Step {
        let mut open = 0_usize;
        loop {
            if self.hole_at(self.at) {
                self.hole(Quote::Text, Demands::NUMBER);
                continue;
            }
            if open == 0 && self.starts_with(closer) {
                self.at += closer.len();
                return Ok(());
            }
            match self.peek(0) {
                None => return self.unreadable("an expression is not closed"),
                Some(b'(' | b'[' | b'{') => open += 1,
                Some(b')' | b']' | b'}') => open = open.saturating_sub(1),
                Some(b'\\') if self.continues_at(self.at) => {
                    self.continuation()?;
                    continue;
                }
                Some(b'\\') => {
                    self.escape()?;
                    continue;
                }
                Some(quote @ (b'\'' | b'"')) => {
                    let start = self.at;
                    match quote {
                        b'"' => self.double()?,
                        _ => self.single()?,
                    }
                    let number = Demands::NUMBER.only(self.inherited);
                    self.calculates_literal(start..self.at, number);
                    continue;
                }
                Some(b'$') => {
                    self.dollar(Quote::Text)?;
                    continue;
                }
                Some(b'`') => {
                    self.backtick(Quote::Text)?;
                    continue;
                }
                Some(byte) if byte.is_ascii_alphabetic() || byte == b'_' => {
                    self.bare_name();
                    continue;
                }
                Some(_) => {}
            }
            self.at += 1;
        }
    }

    /// Passes the flags of zsh, `(...)` before the name.
    pub(super) fn flags(&mut self) -> Step {
        let start = self.at;
        while self.peek(0).is_some_and(|byte| byte != b')') {
            if self.hole_at(self.at) {
                return self.unreadable("a placeholder stands among the flags of an expansion");
            }
            self.at += 1;
        }
        let text = self.bytes.get(start..self.at).unwrap_or_default();
        let text = String::from_utf8_lossy(text).into_owned();
        if text.contains(['P', 'e']) {
            self.is_indirect();
        }
        if text.contains('#') {
            // Letters of numbers.
            self.changes_reading();
        }
        // How wide a text becomes is calculated.
        self.calculates_with(&text, Demands::NUMBER);
        self.note_given(&text);
        self.at += 1;
        Ok(())
    }

    /// Passes a name in an expression, where it stands for its value without a dollar sign.
    fn bare_name(&mut self) {
        let start = self.at;
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        while self.peek(0).is_some_and(is_word) && !self.hole_at(self.at) {
            self.at += 1;
        }
        self.uses(start..self.at, Quote::Text, Demands::NUMBER);
    }
}
