//! Parses quoted text and expansions: variables, substitutions, arithmetic.

use super::list::Closer;
use super::{AFTER_BACKSLASH, Lexer, Quoting, Step};

const SPLIT: &str =
    "in the text of an expansion that is split into words; put double quotes around the expansion";
const FLAGS: &str = "in an expansion with flags of zsh";
pub(super) const NAME: &str = "a placeholder stands in the place of a variable's name";

/// Kind of text with expansions: closing bytes (none for the limit), a bracket that nests, whether quotes quote, and
/// the problem of a missing end.
type Text = (&'static [u8], u8, bool, &'static str);

const DOUBLE: Text = (b"\"", 0, false, "a double quote is not closed");
const DOLLAR: Text = (b"'", 0, true, "a single quote is not closed");
pub(super) const BODY: Text = (b"", 0, false, "");
const OPERAND: Text = (b"}", 0, true, "a brace is not closed");
const PATTERN: Text = (b"}/", 0, true, "a brace is not closed");
const GROUP: Text = (b")", b'(', true, "a parenthesis is not closed");
const EXPRESSION: Text = (b")", b'(', true, UNCLOSED);
const INDEX: Text = (b"]", b'[', true, UNCLOSED);
const OFFSET: Text = (b"}", b'{', true, UNCLOSED);
const UNCLOSED: &str = "an arithmetic expression is not closed";

impl Lexer<'_> {
    /// Parses text up to its closing byte, and returns that.
    pub(super) fn text(&mut self, text: Text, quoting: Quoting) -> Step<Option<u8>> {
        let ((closers, bracket, has_quotes, unclosed), mut open) = (text, 0_usize);
        loop {
            self.check_passed()?;
            match self.peek(0) {
                _ if self.at_placeholder(0) => self.placeholder(quoting),
                None if closers.is_empty() => return Ok(None),
                None => return self.fail(unclosed),
                Some(byte) if open == 0 && closers.contains(&byte) => {
                    self.at += 1;
                    return Ok(Some(byte));
                }
                Some(b'\\') => self.escape(!has_quotes, quoting)?,
                Some(_) if quoting == Quoting::Dollar => self.run(b"\\'"),
                Some(b'\'') if has_quotes && quoting == Quoting::Bare => self.single()?,
                Some(b'"') if has_quotes => self.double()?,
                Some(b'$') => self.dollar(quoting)?,
                Some(b'`') => self.backtick()?,
                Some(byte) => {
                    if byte == b'(' {
                        self.parenthesis(quoting);
                    }
                    open += usize::from(byte == bracket);
                    open -= usize::from(open > 0 && closers.contains(&byte));
                    self.run(b"\\\"'$`(){}[]/");
                }
            }
        }
    }

    /// Notes a parenthesis that zsh may take for code in a pattern of files, or that may begin a process substitution.
    fn parenthesis(&mut self, quoting: Quoting) {
        let before = self.at.saturating_sub(1);
        let is_bare = quoting == Quoting::Bare;
        let is_process = matches!(self.text_of(before..self.at), "<" | ">" | "=");
        let in_braces = self.place.in_braces;
        if is_bare && in_braces || is_process && (is_bare || in_braces) {
            self.script.doubts.push(before..self.at + 1);
        }
    }

    /// Reads a backslash and the character that it quotes; in double quotes and here-documents only some are.
    pub(super) fn escape(&mut self, is_text: bool, quoting: Quoting) -> Step {
        if self.at_placeholder(1) {
            return self.fail(AFTER_BACKSLASH);
        }
        let is_quoted =
            |byte: u8| b"$`\\\n".contains(&byte) || byte == b'"' && quoting != Quoting::Text;
        self.at += 1;
        if is_text && !self.peek(0).is_some_and(is_quoted) {
            self.list.add_text("\\", true);
            return Ok(());
        }
        if !is_text {
            self.list.add_quoted(None);
        }
        let rest = self.text_of(self.at..self.limit);
        let length = rest.chars().next().map_or(0, char::len_utf8);
        self.list
            .add_text(rest.get(..length).unwrap_or_default(), true);
        self.at += length;
        Ok(())
    }

    /// Reads at least one byte, up to one of these or the next placeholder.
    pub(super) fn run(&mut self, stops: &[u8]) {
        let rest = self.before_placeholder();
        let end = rest.iter().skip(1).position(|byte| stops.contains(byte));
        let end = self.at + end.map_or(rest.len(), |end| end + 1);
        self.list.add_text(self.text_of(self.at..end), true);
        self.at = end;
    }

    /// Reads text in single quotes.
    pub(super) fn single(&mut self) -> Step {
        self.at += 1;
        let Some(length) = memchr::memchr(b'\'', self.rest()) else {
            return self.fail("a single quote is not closed");
        };
        let end = self.at + length;
        // Before the text, so that a plain prefix is recognised.
        self.list.add_quoted(Some(self.at..end));
        self.placeholders(end, Quoting::Single);
        self.at += 1;
        Ok(())
    }

    /// Reads text in double quotes.
    pub(super) fn double(&mut self) -> Step {
        self.list.add_quoted(None);
        self.at += 1;
        self.text(DOUBLE, Quoting::Double).map(drop)
    }

    /// Parses a command in backticks. It ends at the first backtick without a backslash, regardless of quotes inside.
    pub(super) fn backtick(&mut self) -> Step {
        let start = self.at;
        let (mut length, rest) = (1, self.rest());
        while rest.get(length).is_some_and(|byte| *byte != b'`') {
            length += 1 + usize::from(rest.get(length) == Some(&b'\\'));
        }
        if length >= rest.len() {
            return self.fail("a backtick is not closed");
        }
        let end = start + length;
        let body = self.text_of(start + 1..end);
        if body.contains('\\') {
            // The shell removes backslashes before it reads the commands.
            self.script.doubts.push(start..end + 1);
        }
        let is_outer = std::mem::replace(&mut self.place.in_backticks, true);
        let is_nested = is_outer || body.contains("\\`") || body.contains("\\\"");
        if is_nested && self.next_placeholder() < end {
            return self
                .fail("a placeholder stands in backticks that hold more quotes; use $(...)");
        }
        let limit = std::mem::replace(&mut self.limit, end);
        self.at = start + 1;
        self.depth += 1;
        self.commands(Closer::End)?;
        self.depth -= 1;
        self.place.in_backticks = is_outer;
        self.limit = limit;
        self.at = end + 1;
        self.list.add_text(self.text_of(start..self.at), false);
        Ok(())
    }

    /// Reads an expansion, or `$'...'` and `$"..."`, in text that is quoted like this.
    pub(super) fn dollar(&mut self, quoting: Quoting) -> Step {
        if quoting == Quoting::Bare && matches!(self.peek(1), Some(b'\'' | b'"')) {
            self.at += 1;
            if self.peek(0) == Some(b'"') {
                return self.double();
            }
            self.list.add_quoted(None);
            // It may contain any character.
            self.list.add_text("", false);
            self.at += 1;
            return self.text(DOLLAR, Quoting::Dollar).map(drop);
        }
        let start = self.at;
        // The text inside is not part of the word.
        let word = self.list.word.take();
        self.expansion(quoting)?;
        self.list.word = word;
        let text = self.text_of(start..self.at);
        self.list.add_text(text, text == "$");
        let is_number = matches!(text, "$" | "$?" | "$#");
        if !is_number && (quoting == Quoting::Bare || text.contains('@')) {
            self.list.split_word();
        }
        Ok(())
    }

    fn expansion(&mut self, quoting: Quoting) -> Step {
        self.at += 1;
        match self.peek(0) {
            Some(b'\\') if self.peek(1) == Some(b'\n') => {
                self.fail("a line continuation stands after a dollar sign")
            }
            Some(b'(') if self.closes_arithmetic() => self.expression(),
            Some(b'(') => {
                self.at += 1;
                self.commands(Closer::Parenthesis)
            }
            Some(b'[') => self.index(),
            Some(b'{') => {
                self.at += 1;
                let place = self.place;
                self.place.in_braces = true;
                let result = self.nested(|lexer| lexer.parameter(quoting));
                self.place = place;
                result
            }
            _ => self.variable(),
        }
    }

    /// Parses the name of `$name`, or a special parameter. zsh evaluates the index of `$name[...]`, and takes the value
    /// of `$~name`, `$=name` and `$^name` for a pattern or for several words.
    fn variable(&mut self) -> Step {
        let rest = self.before_placeholder();
        let flags = rest.iter().take_while(|byte| b"~=^+".contains(byte));
        let flags = flags.count();
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"_@*#$".contains(byte);
        if flags > 0 && rest.get(flags).is_some_and(is_name) {
            self.script.doubts.push(self.at - 1..self.at + flags);
            self.at += flags;
        }
        let rest = self.before_placeholder();
        let length = match name_length(rest) {
            0 => usize::from(
                rest.first()
                    .is_some_and(|byte| b"#?!@*-$0123456789".contains(byte)),
            ),
            length => length,
        };
        self.at += length;
        let index = rest.get(length..).unwrap_or_default();
        if length > 0 && index.first() == Some(&b'[') {
            self.script.doubts.push(self.at..self.at + 1);
        }
        let is_last = self.next_placeholder() == self.limit || self.at < self.no_index;
        if length == 0 || index.first() != Some(&b'[') || is_last {
            return Ok(());
        }
        match memchr::memchr2(b']', b'\n', index) {
            None => self.index(),
            Some(end) => {
                self.no_index = self.at + end;
                Ok(())
            }
        }
    }

    /// Reads the rest of `${...}`.
    fn parameter(&mut self, quoting: Quoting) -> Step {
        let start = self.at;
        match self.peek(0) {
            Some(b' ' | b'\t' | b'\n' | b'|') => {
                return self.fail("`${ command; }` is not understood; use $(...)");
            }
            Some(b'(') => {
                self.place.refusal = Some(FLAGS);
                let end = memchr::memchr(b')', self.rest());
                let end = end.map_or(self.limit, |length| self.at + length);
                self.placeholders(end, quoting);
                self.at += 1;
            }
            _ => {}
        }
        let is_operator = |byte: u8| b"}:-%/".contains(&byte);
        while self.peek(0).is_some_and(|byte| b"!#=^~+".contains(&byte))
            && self.peek(1).is_some_and(|byte| !is_operator(byte))
        {
            self.at += 1;
        }
        // `#` alone gives a length.
        if !matches!(self.text_of(start..self.at), "" | "#") {
            self.script.doubts.push(start..self.at);
        }
        match (self.peek(0), self.peek(1)) {
            _ if self.at_placeholder(0) => return self.fail(NAME),
            (Some(b'$'), Some(b'{' | b'(')) => {
                // An expansion in place of a name is specific to zsh.
                self.place.refusal = Some(FLAGS);
                self.dollar(Quoting::Double)?;
            }
            (Some(byte), _) => {
                let rest = self.before_placeholder();
                let is_word = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
                let length = rest.iter().take_while(is_word).count();
                let is_special = length == 0 && b"@*?-$!#".contains(&byte);
                self.at += length + usize::from(is_special);
            }
            (None, _) => {}
        }
        if self.at_placeholder(0) {
            return self.fail(NAME);
        }
        if self.peek(0) == Some(b'[') {
            self.index()?;
        }
        self.operator(quoting)
    }

    /// Reads the operator after a name, its operands, and the brace.
    fn operator(&mut self, quoting: Quoting) -> Step {
        let is_colon = self.peek(0) == Some(b':');
        // zsh assigns with `::=`, too.
        let is_forced = self.rest().starts_with(b"::=");
        if is_forced || matches!(self.peek(usize::from(is_colon)), Some(b'=' | b'@')) {
            self.script.doubts.push(self.at..self.at + 1);
        }
        let start = self.at;
        let sign = self.peek(usize::from(is_colon));
        let has_pattern = !is_colon && !matches!(sign, Some(b'=' | b'-' | b'?' | b'+'));
        match sign {
            sign if is_forced || sign == Some(b'=') => {
                self.refuse_split(quoting);
                self.text(OPERAND, quoting)?;
            }
            Some(b'-' | b'?' | b'+') => drop(self.text(OPERAND, quoting)?),
            _ if is_colon => self.calculated(OFFSET)?,
            Some(b'/') => {
                self.at += 1 + usize::from(self.peek(1) == Some(b'/'));
                // In a pattern quotes quote, even inside double quotes.
                if self.text(PATTERN, Quoting::Bare)? == Some(b'/') {
                    self.refuse_split(quoting);
                    self.text(OPERAND, Quoting::Bare)?;
                }
            }
            _ => drop(self.text(OPERAND, Quoting::Bare)?),
        }
        if has_pattern && quoting != Quoting::Bare && self.text_of(start..self.at).contains('\'') {
            // Shells do not agree on single quotes in an expansion that is itself quoted.
            self.script.doubts.push(start..self.at);
        }
        Ok(())
    }

    /// Refuses values in an unquoted expansion, whose result is split into words. The command `:` discards its own.
    fn refuse_split(&mut self, quoting: Quoting) {
        let is_dropped = matches!(self.first_words(), [Some(":"), _]);
        if quoting == Quoting::Bare && !self.list.is_unsplit() && !is_dropped {
            self.place.refusal = Some(SPLIT);
        }
    }

    /// Reads `((...))`.
    pub(super) fn expression(&mut self) -> Step {
        self.at += 2;
        self.calculated(EXPRESSION)?;
        self.at += 1;
        Ok(())
    }

    /// Parses `[...]`, which the shell evaluates.
    pub(super) fn index(&mut self) -> Step {
        self.at += 1;
        self.calculated(INDEX)
    }

    fn calculated(&mut self, text: Text) -> Step {
        let start = self.at;
        let outer = std::mem::replace(&mut self.place.is_number, true);
        let result = self.nested(|lexer| lexer.text(text, Quoting::Text));
        self.place.is_number = outer;
        let is_plain =
            |byte: u8| byte.is_ascii_digit() || b" \t+-*/%()<>=!&|^~?:,@]}".contains(&byte);
        // The value of a variable may have an index, which is calculated in turn and may run commands.
        if !self.text_of(start..self.at).bytes().all(is_plain) {
            self.script.doubts.push(start..self.at);
        }
        result.map(drop)
    }

    /// Parses a group of a pattern, as a part of a word.
    pub(super) fn group(&mut self) -> Step {
        let start = self.at;
        let next = self.next;
        self.list.add_text("(", false);
        self.list.split_word();
        if let Some(word) = self.list.word.as_mut() {
            word.has_group = true;
        }
        if !self.list.is_argument() {
            self.script.doubts.push(start..start + 1);
        }
        self.at += 1;
        self.nested(|lexer| lexer.text(GROUP, Quoting::Bare))?;
        self.list.add_text(")", false);
        if self.next > next && !self.list.in_pattern() {
            self.at = start;
            // In zsh it may be a glob qualifier, which is code.
            return self.fail("a placeholder stands in the parentheses of a pattern of files");
        }
        Ok(())
    }

    /// Returns true for `((` that is closed by `))`; otherwise it is a subshell in a subshell or substitution.
    pub(super) fn closes_arithmetic(&self) -> bool {
        let (bytes, mut at, mut open) = (self.rest(), 0, 0_usize);
        while let Some(byte) = bytes.get(at).copied().filter(|_| bytes.starts_with(b"((")) {
            at += 1;
            match byte {
                b'\\' => at += 1,
                b'\'' | b'"' => {
                    let rest = bytes.get(at..).unwrap_or_default();
                    at += memchr::memchr(byte, rest).map_or(rest.len(), |end| end + 1);
                }
                b'(' => open += 1,
                b')' if open == 2 => return bytes.get(at) == Some(&b')'),
                b')' => open -= 1,
                _ => {}
            }
        }
        false
    }
}

/// Returns the length of the name of a variable at the start of a text.
pub(super) fn name_length(text: &[u8]) -> usize {
    let is_word = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
    match text.first() {
        Some(byte) if byte.is_ascii_digit() => 0,
        _ => text.iter().take_while(is_word).count(),
    }
}
