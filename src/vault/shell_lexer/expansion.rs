//! Reads expansions: variables, substitutions, arithmetic.

use super::list::Closer;
use super::{Lexer, Quoting, Step};

const SPLIT: &str =
    "in the text of an expansion that is split into words; put double quotes around the expansion";
const FLAGS: &str = "in an expansion with flags of zsh";
pub(super) const NAME: &str = "a placeholder stands in the place of a variable's name";

impl Lexer<'_> {
    /// Reads an expansion, or `$'...'` and `$"..."`, in text that is quoted like this.
    pub(super) fn dollar(&mut self, quoting: Quoting) -> Step {
        match self.peek(1) {
            Some(b'\'') if quoting == Quoting::Bare => {
                self.at += 1;
                return self.dollar_single();
            }
            Some(b'"') if quoting == Quoting::Bare => {
                self.at += 1;
                self.list.add_quoted(None);
                return self.double();
            }
            _ => {}
        }
        let start = self.at;
        // Text inside of it is none of the word.
        let word = self.list.take_word();
        self.expansion(quoting)?;
        self.list.put_word_back(word);
        let text = self.text_of(start..self.at);
        self.list.add_text(text, text == "$");
        Ok(())
    }

    fn expansion(&mut self, quoting: Quoting) -> Step {
        match self.peek(1) {
            Some(b'\\') if self.peek(2) == Some(b'\n') => {
                self.fail("a line continuation stands after a dollar sign")
            }
            Some(b'(') => {
                self.at += 1;
                if self.peek(1) == Some(b'(') && self.closes_arithmetic() {
                    self.at += 2;
                    return self.arithmetic(b"))");
                }
                self.at += 1;
                self.commands(Closer::Parenthesis)
            }
            Some(b'[') => {
                self.at += 2;
                self.arithmetic(b"]")
            }
            Some(b'{') => {
                self.at += 2;
                let braces = self.braces;
                self.braces += 1;
                let refusal = self.refusal;
                let result = self.nested(|lexer| lexer.parameter(quoting));
                self.refusal = refusal;
                self.braces = braces;
                result
            }
            _ => self.variable(),
        }
    }

    /// Reads `$name`, or `$` and a special character.
    fn variable(&mut self) -> Step {
        self.at += 1;
        let rest = self.bytes.get(self.at..self.next_placeholder());
        let rest = rest.unwrap_or_default();
        let is_word = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
        let length = match rest.iter().take_while(is_word).count() {
            0 => usize::from(rest.first().is_some_and(|byte| b"#?!@*-$".contains(byte))),
            length => length,
        };
        self.at += length;
        // zsh calculates with the index of `$name[...]`.
        let index = rest.get(length..).unwrap_or_default();
        let has_index = length > 0 && index.first() == Some(&b'[') && !index.contains(&b']');
        if has_index && !index.contains(&b'\n') && self.next_placeholder() < self.limit {
            self.at += 1;
            return self.arithmetic(b"]");
        }
        Ok(())
    }

    /// Reads the rest of `${...}`.
    fn parameter(&mut self, quoting: Quoting) -> Step {
        match self.peek(0) {
            Some(b' ' | b'\t' | b'\n' | b'|') => {
                return self.fail("`${ command; }` is not understood; use $(...)");
            }
            Some(b'(') => {
                self.refusal = Some(FLAGS);
                self.run(b")");
                self.at += 1;
            }
            _ => {}
        }
        while self.peek(0).is_some_and(|byte| b"!#=^~+".contains(&byte))
            && self
                .peek(1)
                .is_some_and(|byte| byte != b'}' && !b":-%/".contains(&byte))
        {
            self.at += 1;
        }
        self.parameter_name()?;
        if self.peek(0) == Some(b'[') {
            self.at += 1;
            self.arithmetic(b"]")?;
        }
        self.operator(quoting)
    }

    fn parameter_name(&mut self) -> Step {
        if self.at_placeholder(0) {
            return self.fail(NAME);
        }
        if self.peek(0) == Some(b'$') && matches!(self.peek(1), Some(b'{' | b'(')) {
            // An expansion in the place of a name is one of zsh.
            self.refusal = Some(FLAGS);
            return self.dollar(Quoting::Double);
        }
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let start = self.at;
        while self.peek(0).is_some_and(is_word) {
            self.at += 1;
        }
        if self.at == start && self.peek(0).is_some_and(|byte| b"@*?-$!#".contains(&byte)) {
            self.at += 1;
        }
        match self.at_placeholder(0) {
            true => self.fail(NAME),
            false => Ok(()),
        }
    }

    /// Reads the operator after a name, its operands, and the brace.
    fn operator(&mut self, quoting: Quoting) -> Step {
        match (self.peek(0), self.peek(1)) {
            (Some(b':'), Some(b'=')) | (Some(b'='), _) => {
                self.refuse_split(quoting);
                self.operand(quoting, false).map(drop)
            }
            (Some(b':'), Some(b'-' | b'?' | b'+')) | (Some(b'-' | b'?' | b'+'), _) => {
                self.operand(quoting, false).map(drop)
            }
            (Some(b':'), _) => self.arithmetic(b"}"),
            (Some(b'/'), _) => {
                self.at += 1;
                if self.peek(0) == Some(b'/') {
                    self.at += 1;
                }
                // In a pattern quotes quote, even inside double quotes.
                if self.operand(Quoting::Bare, true)? {
                    self.refuse_split(quoting);
                    self.operand(Quoting::Bare, false)?;
                }
                Ok(())
            }
            _ => self.operand(Quoting::Bare, false).map(drop),
        }
    }

    /// Refuses values in an expansion without quotes whose result is split into words.
    fn refuse_split(&mut self, quoting: Quoting) {
        // The command `:` drops its words.
        let is_dropped = matches!(self.first_words(), [Some(":"), _]);
        if quoting == Quoting::Bare && !self.list.is_unsplit() && !is_dropped {
            self.refusal = Some(SPLIT);
        }
    }

    /// Reads up to the brace, or to a slash where one ends the operand; returns whether it was that.
    fn operand(&mut self, quoting: Quoting, ends_at_slash: bool) -> Step<bool> {
        loop {
            if self.at_placeholder(0) {
                self.placeholder(quoting);
                continue;
            }
            match self.peek(0) {
                None => return self.fail("a brace is not closed"),
                Some(byte) if byte == b'}' || ends_at_slash && byte == b'/' => {
                    self.at += 1;
                    return Ok(byte == b'/');
                }
                Some(b'\\') => self.escape()?,
                Some(b'\'') if quoting == Quoting::Bare => self.single()?,
                Some(b'"') => self.double()?,
                Some(b'$') => self.dollar(quoting)?,
                Some(b'`') => self.backtick()?,
                Some(_) => self.at += 1,
            }
        }
    }

    /// Reads an arithmetic expression up to what closes it.
    pub(super) fn arithmetic(&mut self, closer: &[u8]) -> Step {
        let outer = std::mem::replace(&mut self.is_number, true);
        let result = self.nested(|lexer| lexer.expression(closer));
        self.is_number = outer;
        result
    }

    fn expression(&mut self, closer: &[u8]) -> Step {
        let mut open = 0_usize;
        loop {
            if self.at_placeholder(0) {
                self.placeholder(Quoting::Text);
                continue;
            }
            if open == 0 && self.starts_with(closer) {
                self.at += closer.len();
                return Ok(());
            }
            match self.peek(0) {
                None => return self.fail("an arithmetic expression is not closed"),
                Some(b'\\') => self.escape()?,
                Some(b'"') => self.double()?,
                Some(b'$') => self.dollar(Quoting::Text)?,
                Some(b'`') => self.backtick()?,
                Some(byte) => {
                    match byte {
                        b'(' | b'[' | b'{' => open += 1,
                        b')' | b']' | b'}' => open = open.saturating_sub(1),
                        _ => {}
                    }
                    self.at += 1;
                }
            }
        }
    }

    /// Whether the `((` here is closed by `))`: else it is a subshell in a subshell or substitution.
    pub(super) fn closes_arithmetic(&self) -> bool {
        let mut bytes = self.bytes.get(self.at..self.limit).unwrap_or_default();
        let mut open = 0_usize;
        while let Some((byte, rest)) = bytes.split_first() {
            bytes = match byte {
                b'\\' => rest.get(1..).unwrap_or_default(),
                b'\'' | b'"' => {
                    let end = memchr::memchr(*byte, rest).map_or(rest.len(), |end| end + 1);
                    rest.get(end..).unwrap_or_default()
                }
                _ => rest,
            };
            match byte {
                b'(' => open += 1,
                b')' if open == 2 => return bytes.first() == Some(&b')'),
                b')' => open = open.saturating_sub(1),
                _ => {}
            }
        }
        false
    }
}
