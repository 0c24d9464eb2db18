//! Reads what stands in parentheses and braces: groups, arrays, heads and bodies of functions.

use std::ops::Range;

use super::{Case, Closer, IN_FLAGS, Reader, Role, Separator, Step};
use crate::vault::programs;
use crate::vault::words::{Demands, Word};

impl Reader<'_> {
    /// Reads `always {`, with which zsh goes on with the compound command before it, or whatever
    /// else starts like that.
    pub(super) fn always(&mut self) -> Step<bool> {
        let rest = self.bytes.get(self.at..self.limit).unwrap_or_default();
        let after = rest.get("always".len()..).unwrap_or_default();
        let lines = after
            .iter()
            .take_while(|byte| byte.is_ascii_whitespace())
            .count();
        let mut length = "always".len() + lines;
        length += self.blanks_at(self.at + length);
        if rest.get(length) != Some(&b'{') {
            self.word();
            self.literal();
            return Ok(false);
        }
        self.at += length + 1;
        let body = self.body_demands();
        self.nested(body, |reader| reader.commands(Closer::Brace))?;
        Ok(false)
    }

    /// Reads what starts with a parenthesis that stands alone or after a word.
    pub(super) fn parenthesis(&mut self) -> Step<bool> {
        if self.frame.in_test {
            let word = self.frame.word.as_ref();
            // `=(...)` of zsh is a file.
            let is_file = word.is_some_and(|word| word.is_plain("="));
            self.at += 1;
            return match is_file {
                true => self.nested(Demands::NONE, Self::parenthesized),
                false => Ok(()),
            }
            .map(|()| false);
        }
        if self.frame.word.is_none() && (self.frame.ends_compound || self.frame.is_coprocess()) {
            self.end_command(Separator::Other);
        }
        let frame = &self.frame;
        if frame.is_command_position() && frame.cases.last() == Some(&Case::Pattern) {
            self.at += 1;
            return Ok(false);
        }
        let is_loop = matches!(frame.words.as_slice(), [word] if word.is_plain("for"));
        if (frame.is_command_position() || is_loop && frame.word.is_none())
            && self.starts_with(b"((")
            && (is_loop || !self.starts_groups())
        {
            self.at += 2;
            self.expression(b"))")?;
            self.compound_end();
            return Ok(false);
        }
        if self.is_function_head() {
            return Ok(false);
        }
        self.group()
    }

    fn parenthesized(&mut self) -> Step {
        self.commands(Closer::Parenthesis)
    }

    /// Reads a subshell, an array, or a pattern of file names.
    fn group(&mut self) -> Step<bool> {
        let word = self.frame.word.as_ref();
        if self.frame.role == Role::RedirectTarget && word.is_none_or(|word| word.is_plain("=")) {
            // `< =(...)` and `>>(...)` of zsh.
            return self.unreadable("a substitution of zsh stands where a file is");
        }
        let is_list = self.frame.is_loop_head() && self.frame.word.is_none();
        let is_array = is_list || self.frame.is_array_head();
        let (start, first_hole) = (self.at, self.places.len());
        let in_pattern = self.frame.closer == Closer::Pattern;
        let is_subshell = self.frame.is_command_position() && !in_pattern;
        // `=(...)` of zsh holds commands.
        let has_commands = is_subshell || word.is_some_and(|word| word.is_plain("="));
        // `=(...)` of zsh is a file, which may be a script.
        let script = if is_subshell || is_array {
            Demands::NONE
        } else {
            programs::script_demands(&self.frame.words, self.frame.word.as_ref())
        };
        let body = self.body_demands().and(script);
        self.at += 1;
        self.nested(body, |reader| {
            // Here the shell itself reads the elements.
            reader.inherited.list &= !is_array;
            reader.commands(match (is_array, has_commands) {
                (true, _) => Closer::Array,
                (false, true) => Closer::Parenthesis,
                (false, false) => Closer::Pattern,
            })
        })?;
        if is_list {
            self.note_short_loop(start, first_hole);
        }
        if is_subshell || is_list {
            self.compound_end();
        } else {
            if is_array {
                self.note_elements(start);
            }
            let word = self.word();
            word.expands();
            word.is_pattern |= !is_array;
            if !is_array {
                self.pattern_flags(start, first_hole);
                self.glob_qualifiers(start..self.at, first_hole);
                if let Some(index) = self.text_from(start).split_once('[') {
                    // A qualifier of zsh, or a range of characters.
                    self.calculates_with(index.1, Demands::ZSH_NUMBER);
                }
                // Whatever else zsh makes of it: `e:program:` is code of harmless characters.
                self.require(first_hole..self.places.len(), Demands::NOT_IN_ZSH);
            }
        }
        Ok(false)
    }

    /// Notes what a loop of zsh gives its variable: `for x (a b)`.
    fn note_short_loop(&mut self, start: usize, first: usize) {
        let name = self.frame.words.get(1).map(|word| word.text().to_owned());
        if let Some(name) = name {
            let text = self.text_from(start);
            self.assigns_text(&name, &text);
            self.assigns(&name, first..self.places.len());
        }
    }

    /// Whether `((` here is surely the start of two groups: what the second closes is not all, and
    /// nothing before that is anything but plain words.
    fn starts_groups(&self) -> bool {
        let inner = self.bytes.get(self.at + 2..self.limit).unwrap_or_default();
        let is_doubtful = |byte: &u8| b"'\"\\`$#(<>{[".contains(byte);
        let Some(end) = inner
            .iter()
            .position(|byte| *byte == b')' || is_doubtful(byte))
        else {
            return false;
        };
        let start = self.at + 2;
        let has_hole = self
            .holes
            .get(self.passed)
            .is_some_and(|hole| hole.start < start + end);
        inner.get(end) == Some(&b')')
            && !has_hole
            && self.joined(start + end + 1).next() != Some(b')')
    }

    /// Refuses values in and after flags of zsh, `(#...)`.
    fn pattern_flags(&mut self, start: usize, first_hole: usize) {
        if self.joined(start + 1).next() != Some(b'#') {
            return;
        }
        self.require(first_hole..self.places.len(), IN_FLAGS);
        if let Some(word) = &mut self.frame.word {
            word.has_flags = true;
        }
    }

    /// Refuses values in the code of a qualifier of zsh, such as `*(e:code:)`.
    fn glob_qualifiers(&mut self, text: Range<usize>, first_hole: usize) {
        // What the placeholders are called says nothing.
        let mut bytes = self.bytes.get(text.clone()).unwrap_or_default().to_vec();
        let first = self.holes.partition_point(|hole| hole.start < text.start);
        for hole in self.holes.get(first..self.passed).unwrap_or_default() {
            let hole = hole.start.saturating_sub(text.start)..hole.end.saturating_sub(text.start);
            bytes.get_mut(hole).unwrap_or_default().fill(b'x');
        }
        let is_code = bytes.contains(&b'[')
            || bytes.windows(2).any(|pair| {
                matches!(pair, [b'e' | b'+', after]
                    if !after.is_ascii_alphanumeric() && !matches!(after, b'|' | b')'))
            });
        if is_code && !bytes.contains(&b'[') {
            self.changes_reading();
        }
        if is_code {
            let forbidden = Demands::forbidden("in the qualifiers of a file pattern");
            self.require(first_hole..self.places.len(), forbidden);
        }
    }

    /// Notes that a compound command stands where the words of a simple one would.
    pub(super) fn compound_end(&mut self) {
        let frame = &mut self.frame;
        frame.words.push(Word::default());
        frame.ends_compound = true;
        frame.follows_body |= std::mem::take(&mut frame.expects_body);
    }

    /// What the body that starts here demands, which is that of a function after its name.
    pub(super) fn body_demands(&mut self) -> Demands {
        if std::mem::take(&mut self.frame.expects_body) {
            self.frame.follows_body = true;
            Demands::IN_FUNCTION
        } else {
            Demands::NONE
        }
    }

    /// Passes `()` after a function's name.
    fn is_function_head(&mut self) -> bool {
        let frame = &self.frame;
        // Without a name it is an anonymous one, with more than one each names it, in zsh.
        let is_named =
            !frame.is_array_head() && !frame.word.as_ref().is_some_and(|word| word.is_assignment);
        let rest = self.bytes.get(self.at + 1..self.limit).unwrap_or_default();
        let blanks = self.blanks_at(self.at + 1);
        if frame.closer == Closer::Array
            || !is_named && !frame.expects_body
            || rest.get(blanks) != Some(&b')')
        {
            return false;
        }
        self.heads.insert(self.at);
        self.at += blanks + 2;
        let forbidden = Demands::forbidden("in the place of a function's name");
        self.require(self.frame.command_hole..self.places.len(), forbidden);
        let names = self.frame.words.drain(..).chain(self.frame.word.take());
        let names: Vec<String> = names.map(|word| word.text).collect();
        if names.is_empty() {
            // zsh runs it at once, with what follows as its arguments.
            self.later = self.later.and(Demands::ZSH);
            self.changes_reading();
        }
        self.functions.extend(names);
        self.frame.expects_body = true;
        true
    }
}
