//! Parses lists of commands: words, operators, keywords, redirections.

use super::command::{Assignment, Redirection, SimpleCommand, Word, is_declaration};
use super::list::{Case, Closer, List, Role};
use super::text::{NAME, name_length};
use super::{Lexer, Quoting, Step};

impl Lexer<'_> {
    /// Reads commands up to what closes them.
    pub(super) fn commands(&mut self, closer: Closer) -> Step {
        let list = List {
            closer,
            ..List::default()
        };
        let outer = std::mem::replace(&mut self.list, list);
        let place = std::mem::take(&mut self.place);
        self.place.in_backticks = place.in_backticks;
        let is_inner = matches!(closer, Closer::Parenthesis | Closer::Subshell);
        self.depth += usize::from(is_inner);
        self.nested(Self::list_body)?;
        self.depth -= usize::from(is_inner);
        self.place = place;
        let inner = std::mem::replace(&mut self.list, outer);
        self.list.pending.extend(inner.pending);
        Ok(())
    }

    fn list_body(&mut self) -> Step {
        while self.at < self.limit {
            self.check_passed()?;
            if self.token()? {
                // After a subshell they are read after the line.
                if self.list.closer == Closer::Subshell || self.list.pending.is_empty() {
                    return Ok(());
                }
                return self.fail("a here-document begins in a substitution that ends on its line");
            }
        }
        self.end_command();
        self.documents()?;
        match self.list.closer {
            Closer::End => Ok(()),
            _ => self.fail("a parenthesis is not closed"),
        }
    }

    /// Reads one token; returns whether it closed the list.
    fn token(&mut self) -> Step<bool> {
        let Some(byte) = self.peek(0) else {
            return Ok(false);
        };
        match byte {
            _ if self.at_placeholder(0) => {
                self.begin_word()?;
                self.placeholder(Quoting::Bare);
            }
            _ if self.divides_words(byte) => {
                self.end_word();
                self.at += 1;
            }
            b'\n' => {
                self.end_command();
                self.at += 1;
                self.documents()?;
            }
            b';' | b'&' | b'|' => self.separator(byte),
            b'(' => self.open()?,
            b')' => return self.close(),
            b'<' | b'>' => self.angle()?,
            b'#' if self.list.word.is_none() && self.begins_comment() => {
                let line = memchr::memchr(b'\n', self.rest());
                let end = line.map_or(self.limit, |length| self.at + length);
                self.placeholders(end, Quoting::Comment);
            }
            b'\\' if self.peek(1) == Some(b'\n') => self.at += 2,
            _ => {
                let start = self.at;
                self.begin_word()?;
                if self.at == start {
                    self.word_part()?;
                }
            }
        }
        Ok(false)
    }

    /// Reads a part of a word.
    fn word_part(&mut self) -> Step {
        match self.peek(0) {
            Some(b'\\') => self.escape(false, Quoting::Bare),
            Some(b'\'') => self.single(),
            Some(b'"') => self.double(),
            Some(b'$') => self.dollar(Quoting::Bare),
            Some(b'`') => {
                self.list.split_word();
                self.backtick()
            }
            _ => {
                let start = self.at;
                self.run(b" \t\r\n;&|()<>\\'\"$`");
                let text = self.text_of(start..self.at);
                let is_pattern = text.contains('~') || text.contains(PATTERN_SIGNS);
                // `=NAME` is the path of a program in zsh.
                let is_program = text.starts_with('=');
                let is_keyword = matches!(
                    text,
                    "{" | "}" | "[" | "]" | "[[" | "]]" | "=" | "==" | "=~"
                );
                let ends = self
                    .peek(0)
                    .is_none_or(|byte| b" \t\r\n;&|()<>".contains(&byte));
                let word = self.list.word.as_ref().filter(|word| !word.is_quoted);
                let begins = word.is_some_and(|word| word.text == text);
                let is_expanded = is_pattern || is_program && begins;
                let is_certain = !is_expanded || is_keyword && begins && ends;
                self.list.add_text("", is_certain);
                if !is_certain && text.trim_start_matches('~').contains(PATTERN_SIGNS) {
                    self.list.split_word();
                }
                Ok(())
            }
        }
    }

    /// Starts a word, and its command, unless they are started. Parses the name and index of an assignment.
    fn begin_word(&mut self) -> Step {
        if self.list.word.is_some() {
            return Ok(());
        }
        let is_array = self.list.closer == Closer::Array;
        if !is_array {
            self.begin_command();
        }
        let span = self.at..self.at;
        self.list.word = Some(Word {
            is_certain: true,
            span,
            ..Word::default()
        });
        self.list.value_at = 0;
        let text = self.before_placeholder();
        let length = name_length(text);
        let is_place = match self.first_words() {
            _ if self.list.in_test => false,
            [Some(name), _] => is_array || is_declaration(name),
            [None, _] => true,
        };
        let mut is_name = length > 0 && text.get(length) != Some(&b'[');
        if text.get(length) == Some(&b'[') && is_place && (length == 0) == is_array {
            is_name = true;
            let start = self.at;
            self.at += length;
            let word = self.list.word.take();
            self.index()?;
            self.list.word = word;
            self.list.add_text(self.text_of(start..self.at), false);
        } else {
            self.list
                .add_text(self.text_of(self.at..self.at + length), true);
            self.at += length;
        }
        let sign = self.before_placeholder();
        let sign = match sign {
            [b'+', b'=', ..] => "+=",
            [b'=', ..] => "=",
            _ => "",
        };
        if is_name && !sign.is_empty() && !self.list.in_test {
            self.list.add_text(sign, true);
            self.at += sign.len();
            let word = self.list.word.as_ref();
            self.list.value_at = word.map_or(0, |word| word.text.len());
        }
        Ok(())
    }

    /// Returns the index of the current command, and starts one if there is none.
    fn begin_command(&mut self) -> usize {
        let (at, depth) = (self.script.commands.len(), self.depth);
        let is_tail = self.list.is_closed;
        *self.list.command.get_or_insert_with(|| {
            self.script.commands.push(SimpleCommand {
                depth,
                is_tail,
                ..SimpleCommand::default()
            });
            at
        })
    }

    /// Returns the current command, and starts one if there is none.
    fn command(&mut self) -> &mut SimpleCommand {
        let at = self.begin_command();
        &mut self.script.commands[at]
    }

    /// Returns the texts of the first two words of the current command.
    pub(super) fn first_words(&self) -> [Option<&str>; 2] {
        let command = self
            .list
            .command
            .and_then(|at| self.script.commands.get(at));
        [0, 1].map(|at| Some(command?.words.get(at)?.text.as_str()))
    }

    fn end_word(&mut self) {
        let Some(mut word) = self.list.word.take() else {
            return;
        };
        word.span.end = self.at;
        let is_assignment = self.list.is_assignment();
        let value_at = std::mem::take(&mut self.list.value_at);
        match std::mem::take(&mut self.list.role) {
            _ if self.list.closer == Closer::Array => {}
            Role::Target(descriptor, operator) => self.end_target(descriptor, operator, word),
            Role::Argument if is_assignment => {
                let (name, value) = word.text.split_at(value_at);
                let assignment = Assignment {
                    name: name.trim_end_matches(['=', '+']).to_owned(),
                    value: value.to_owned(),
                    is_certain: word.is_certain,
                };
                self.command().assignments.push(assignment);
            }
            Role::Argument | Role::Body(_) => self.end_argument(word),
        }
    }

    fn end_target(&mut self, descriptor: Option<String>, operator: &'static str, word: Word) {
        if let ("<<" | "<<-", false) = (operator, word.span.is_empty()) {
            let command = self.begin_command();
            let index = self.command().redirections.len();
            self.list.pending.push((command, index));
        }
        let operator = operator.to_owned();
        let redirection = Redirection {
            descriptor,
            operator,
            target: word,
        };
        self.command().redirections.push(redirection);
    }

    fn end_argument(&mut self, word: Word) {
        let is_plain = !word.is_quoted;
        let ends_test = self.list.in_test && is_plain && word.text == "]]";
        if is_plain && !self.list.in_test && self.keyword(&word.text) {
            return;
        }
        if is_plain && word.text == "}" {
            // In zsh it closes a brace wherever it stands.
            self.script.doubts.push(word.span.clone());
        }
        self.list.words += 1;
        self.command().words.push(word);
        let function = match (self.list.words, self.first_words()) {
            (2, [Some("function"), Some(name)]) => Some(name.to_owned()),
            _ => None,
        };
        if ends_test || function.is_some() {
            self.script.functions.extend(function);
            self.end_head();
            self.list.is_closed = ends_test;
        }
    }

    /// Handles a possible keyword; returns true for a keyword that is no word of a command.
    fn keyword(&mut self, text: &str) -> bool {
        let has_begun = self.has_begun();
        match (self.list.cases.last_mut(), text) {
            (Some(case @ Case::Subject), "in") if self.list.words > 1 => {
                *case = Case::Pattern;
                self.end_head();
                return true;
            }
            (Some(Case::Pattern | Case::Body), "esac") if self.list.words == 0 => {
                self.list.cases.pop();
                self.end_command();
                self.list.is_closed = true;
                return true;
            }
            (Some(Case::Pattern), _) => return false,
            _ if self.list.words > 0 || has_begun => return false,
            _ => {}
        }
        match text {
            "if" | "then" | "else" | "elif" | "fi" | "while" | "until" | "do" | "done" | "{"
            | "}" | "!" | "time" | "coproc" | "always" => {
                self.end_command();
                self.list.is_closed = matches!(text, "fi" | "done" | "}");
                let is_portable = text == "time" && self.rest().starts_with(b" -p ");
                self.at += if is_portable { 3 } else { 0 };
                return true;
            }
            "case" => self.list.cases.push(Case::Subject),
            "[[" => self.list.in_test = true,
            "for" | "foreach" | "select" | "repeat" | "function" => {}
            _ => return false,
        }
        self.command().is_head = true;
        false
    }

    /// Returns true after an assignment or a redirection of the current command: no keyword follows it.
    fn has_begun(&self) -> bool {
        let commands = &self.script.commands;
        let command = self.list.command.and_then(|at| commands.get(at));
        command.is_some_and(|one| !one.assignments.is_empty() || !one.redirections.is_empty())
    }

    fn end_head(&mut self) {
        self.command().is_head = true;
        self.end_command();
    }

    fn end_command(&mut self) {
        self.end_word();
        if let Role::Target(descriptor, operator) = std::mem::take(&mut self.list.role) {
            // Its target is missing.
            self.end_target(descriptor, operator, Word::default());
        }
        if let Some(at) = self.list.command.take() {
            let is_pattern = self.list.cases.last() == Some(&Case::Pattern);
            let is_last = at + 1 == self.script.commands.len();
            match self.script.commands.last_mut().filter(|_| is_last) {
                Some(last) if last.is_empty() => drop(self.script.commands.pop()),
                Some(last) => last.is_head |= is_pattern,
                None => {}
            }
        }
        (self.list.words, self.list.in_test, self.list.role) = (0, false, Role::Argument);
        self.list.is_closed = false;
    }

    /// Returns true for a blank, and for an operator that only divides words in `[[ ]]`, in an array or before `in`.
    fn divides_words(&self, byte: u8) -> bool {
        let in_test = self.list.in_test;
        match byte {
            b' ' | b'\t' | b'\r' => true,
            b'\n' if self.list.cases.last() == Some(&Case::Subject) => true,
            b'\n' | b';' | b'&' | b'|' => in_test || self.list.closer == Closer::Array,
            b')' => in_test,
            b'(' => in_test && self.list.word.is_none(),
            b'<' | b'>' => in_test && self.peek(1) != Some(b'('),
            _ => false,
        }
    }

    /// Parses `;`, `&`, `|` and their combinations.
    fn separator(&mut self, byte: u8) {
        if byte == b'&' && self.peek(1) == Some(b'>') {
            self.end_word();
            self.at += 1;
            self.redirection(None);
            return;
        }
        self.end_command();
        let is_sign = |byte: &&u8| b";&|".contains(byte);
        let length = self.rest().iter().take_while(is_sign).count();
        if let (Some(case @ Case::Body), true) =
            (self.list.cases.last_mut(), byte == b';' && length > 1)
        {
            *case = Case::Pattern;
        }
        // `&!` of zsh.
        let is_disowned = byte == b'&' && length == 1 && self.peek(1) == Some(b'!');
        self.at += length + usize::from(is_disowned);
    }

    /// Reads an opening parenthesis.
    fn open(&mut self) -> Step {
        let is_first = self.list.is_first();
        if let Some(word) = &self.list.word {
            let (is_quoted, length) = (word.is_quoted, word.text.len());
            if !is_quoted && length > 0 && length == self.list.value_at {
                self.at += 1;
                self.list.add_text("(", false);
                return self.commands(Closer::Array);
            }
            return if is_first && self.opens_function() {
                Ok(())
            } else {
                self.group()
            };
        }
        let is_loop = matches!(self.first_words(), [Some("for"), None]);
        if (is_first || is_loop) && self.closes_arithmetic() {
            self.command();
            self.expression()?;
            // A keyword may follow at once.
            self.end_head();
            self.list.is_closed = true;
        } else if is_first && self.list.cases.last() == Some(&Case::Pattern) {
            self.at += 1;
        } else if self.list.words < 2 && self.opens_function() {
            // A function of zsh may have no name.
        } else if is_first {
            self.at += 1;
            self.commands(Closer::Subshell)?;
            self.list.is_closed = true;
        } else {
            self.begin_word()?;
            return self.group();
        }
        Ok(())
    }

    /// Skips `()` after the name of a function and records the name; returns true when they are there.
    fn opens_function(&mut self) -> bool {
        let rest = self.rest().get(1..).unwrap_or_default();
        let blanks = rest.iter().take_while(|byte| b" \t".contains(byte)).count();
        if rest.get(blanks) != Some(&b')') {
            return false;
        }
        self.end_word();
        self.at += blanks + 2;
        if let Some(name) = self.first_words()[0].map(str::to_owned) {
            self.script.functions.push(name);
            self.end_head();
        }
        true
    }

    /// Reads a closing parenthesis; returns whether it closed the list.
    fn close(&mut self) -> Step<bool> {
        self.end_word();
        self.at += 1;
        if let Some(case @ Case::Pattern) = self.list.cases.last_mut() {
            *case = Case::Body;
            self.end_head();
            return Ok(false);
        }
        if self.list.closer == Closer::End {
            self.at -= 1;
            return self.fail("a parenthesis is closed that was not opened");
        }
        self.end_command();
        Ok(true)
    }

    /// Reads `<` or `>`: a redirection, or a process substitution.
    fn angle(&mut self) -> Step {
        if self.peek(1) == Some(b'(') {
            self.begin_word()?;
            let start = self.at;
            self.at += 2;
            self.commands(Closer::Parenthesis)?;
            self.list.add_text(self.text_of(start..self.at), false);
            return Ok(());
        }
        let is_descriptor = |word: &mut Word| {
            let text = word.text.as_str();
            let is_name = text.len() > 2 && text.starts_with('{') && text.ends_with('}');
            let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            !word.is_quoted && (is_number || is_name)
        };
        let descriptor = self.list.word.take_if(is_descriptor).map(|word| word.text);
        if descriptor
            .as_ref()
            .is_some_and(|name| name.contains("$KARYI"))
        {
            return self.fail(NAME);
        }
        self.end_word();
        self.redirection(descriptor);
        Ok(())
    }

    /// Skips the operator of a redirection; its target is the next word.
    fn redirection(&mut self, descriptor: Option<String>) {
        let rest = self.rest();
        let is_operator = |operator: &&&str| rest.starts_with(operator.as_bytes());
        let operator = OPERATORS.iter().find(is_operator).unwrap_or(&"<");
        self.at += operator.len();
        self.list.role = Role::Target(descriptor, operator);
    }

    /// Returns true when `#` starts a comment here. In a pattern it may be a flag of zsh, `(#i)`.
    fn begins_comment(&self) -> bool {
        let before = self
            .at
            .checked_sub(1)
            .and_then(|at| self.text.as_bytes().get(at));
        let signs: &[u8] = if self.list.in_pattern() {
            b" \t\n"
        } else {
            b" \t\r\n;&|()"
        };
        before.is_none_or(|byte| signs.contains(byte))
    }
}

/// Signs of patterns and of braces that are expanded.
const PATTERN_SIGNS: [char; 7] = ['*', '?', '{', '}', '[', ']', '^'];

/// Operators of redirections, longer ones first.
const OPERATORS: &[&str] = &[
    "<<<", "<<-", "<<", "<&", "<>", "<", ">>&|", ">>&!", ">>&", ">>|", ">>!", ">>", ">&|", ">&!",
    ">&", ">|", ">!", ">",
];
