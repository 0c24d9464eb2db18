//! Reads lists of commands: words, operators, keywords, redirections.

use super::command::{Assignment, Redirection, SimpleCommand, Word, is_declaration};
use super::heredoc::Pending;
use super::list::{Case, Closer, List, Role};
use super::{Lexer, Quoting, Step};

impl Lexer<'_> {
    /// Reads commands up to what closes them.
    pub(super) fn commands(&mut self, closer: Closer) -> Step {
        let list = List {
            closer,
            ..List::default()
        };
        let outer = std::mem::replace(&mut self.list, list);
        let number = std::mem::take(&mut self.is_number);
        let refusal = self.refusal.take();
        let braces = std::mem::take(&mut self.braces);
        let is_inner = matches!(closer, Closer::Parenthesis | Closer::Subshell);
        self.depth += usize::from(is_inner);
        self.nested(Self::list_body)?;
        self.depth -= usize::from(is_inner);
        (self.is_number, self.braces, self.refusal) = (number, braces, refusal);
        let inner = std::mem::replace(&mut self.list, outer);
        self.list.pending.extend(inner.pending);
        Ok(())
    }

    fn list_body(&mut self) -> Step {
        loop {
            if self.at >= self.limit {
                self.end_command();
                self.documents()?;
                return match self.list.closer {
                    Closer::End => Ok(()),
                    _ => self.fail("a parenthesis is not closed"),
                };
            }
            if self.token()? {
                // Behind a subshell they are read after the line.
                if self.list.closer != Closer::Subshell && !self.list.pending.is_empty() {
                    return self
                        .fail("a here-document begins in a substitution that ends on its line");
                }
                return Ok(());
            }
        }
    }

    /// Reads one token; returns whether it closed the list.
    fn token(&mut self) -> Step<bool> {
        if self.at_placeholder(0) {
            self.word();
            self.placeholder(Quoting::Bare);
            return Ok(false);
        }
        let Some(byte) = self.peek(0) else {
            return Ok(false);
        };
        match byte {
            b' ' | b'\t' | b'\r' => {
                self.end_word();
                self.at += 1;
            }
            b'\n' => self.newline()?,
            b';' | b'&' | b'|' => self.separator(byte),
            b'(' => self.open()?,
            b')' => return self.close(),
            b'<' | b'>' => self.angle(byte)?,
            b'#' if self.list.word.is_none() => self.comment()?,
            b'[' if self.begins_index() => self.index()?,
            b'=' => self.equals(),
            _ => self.word_part(byte)?,
        }
        Ok(false)
    }

    /// Reads a part of a word.
    fn word_part(&mut self, byte: u8) -> Step {
        if byte == b'\\' && self.peek(1) == Some(b'\n') {
            self.at += 2;
            return Ok(());
        }
        self.word();
        match byte {
            b'\\' => self.escape(),
            b'\'' => self.single(),
            b'"' => {
                self.list.add_quoted(None);
                self.double()
            }
            b'$' => self.dollar(Quoting::Bare),
            b'`' => self.backtick(),
            _ => {
                self.plain();
                Ok(())
            }
        }
    }

    /// Reads the bytes of a word that mean themselves, or a pattern.
    fn plain(&mut self) {
        let rest = self.bytes.get(self.at..self.next_placeholder());
        let rest = rest.unwrap_or_default();
        let is_special = |byte: &u8| b" \t\r\n;&|()<>\\'\"$`=[#".contains(byte);
        let length = rest.iter().skip(1).position(is_special);
        let length = length.map_or(rest.len(), |length| length + 1);
        let text = self.text_of(self.at..self.at + length);
        let is_pattern = text.contains(['*', '?', '{', '}', '~', '[', '^']);
        let is_brace = matches!(text, "{" | "}" | "[" | "[[");
        self.list.add_text(text, !is_pattern || is_brace);
        self.at += length;
    }

    /// Begins a word, and the command around it, unless they have begun.
    pub(super) fn word(&mut self) {
        if self.list.word.is_some() {
            return;
        }
        if self.list.closer != Closer::Array {
            self.begin_command();
        }
        self.list.word = Some(Word {
            is_certain: true,
            span: self.at..self.at,
            ..Word::default()
        });
    }

    /// Returns the index of the current command, which begins here if there is none.
    fn begin_command(&mut self) -> usize {
        if let Some(at) = self.list.command {
            return at;
        }
        let at = self.first_command + self.script.commands.len();
        self.list.command = Some(at);
        self.script.commands.push(SimpleCommand {
            depth: self.depth,
            ..SimpleCommand::default()
        });
        at
    }

    /// Returns the current command, which begins here if there is none.
    fn command(&mut self) -> &mut SimpleCommand {
        let at = self.begin_command() - self.first_command;
        &mut self.script.commands[at]
    }

    /// Returns the texts of the first two words of the current command.
    pub(super) fn first_words(&self) -> [Option<&str>; 2] {
        let at = self.list.command.map(|at| at - self.first_command);
        let command = at.and_then(|at| self.script.commands.get(at));
        [0, 1].map(|at| Some(command?.words.get(at)?.text.as_str()))
    }

    fn end_word(&mut self) {
        let Some(mut word) = self.list.word.take() else {
            return;
        };
        word.span.end = self.at;
        let is_assignment = std::mem::take(&mut self.list.is_assignment);
        match std::mem::take(&mut self.list.role) {
            _ if self.list.closer == Closer::Array => {}
            Role::Target(descriptor, operator) => self.end_target(descriptor, operator, word),
            Role::Argument if is_assignment && self.list.words == 0 => {
                let (name, value) = word.text.split_once('=').unwrap_or_default();
                let assignment = Assignment {
                    name: name.trim_end_matches('+').to_owned(),
                    value: value.to_owned(),
                    is_certain: word.is_certain,
                };
                self.command().assignments.push(assignment);
            }
            Role::Argument | Role::Body(_) => self.end_argument(word),
        }
    }

    fn end_target(&mut self, descriptor: Option<String>, operator: &'static str, word: Word) {
        if let "<<" | "<<-" = operator {
            let command = self.begin_command();
            let pending = Pending {
                delimiter: word.text.clone(),
                span: word.span.clone(),
                is_quoted: word.is_quoted,
                strips_tabs: operator == "<<-",
                command,
            };
            self.list.pending.push(pending);
        }
        self.command().redirections.push(Redirection {
            descriptor,
            operator: operator.to_owned(),
            target: word,
        });
    }

    fn end_argument(&mut self, word: Word) {
        let (is_plain, mut ends_test) = (!word.is_quoted, false);
        if self.list.in_test {
            ends_test = is_plain && word.text == "]]";
        } else if is_plain && self.keyword(&word.text) {
            return;
        }
        self.list.is_timed = false;
        self.list.words += 1;
        self.command().words.push(word);
        if let (2, [Some("function"), Some(name)]) = (self.list.words, self.first_words()) {
            let name = name.to_owned();
            self.script.functions.push(name);
            ends_test = true;
        }
        if ends_test {
            self.end_head();
        }
    }

    /// Handles a word that may be a keyword; returns whether it is one that no command has among its words.
    fn keyword(&mut self, text: &str) -> bool {
        match (self.list.cases.last_mut(), text) {
            (Some(case @ Case::Subject), "in") if self.list.words > 1 => {
                *case = Case::Pattern;
                self.end_head();
                return true;
            }
            (Some(Case::Pattern | Case::Body), "esac") if self.list.words == 0 => {
                self.list.cases.pop();
                self.end_command();
                return true;
            }
            (Some(Case::Pattern), _) => return false,
            _ => {}
        }
        match text {
            _ if self.list.words > 0 => false,
            "-p" if self.list.is_timed => true,
            "if" | "then" | "else" | "elif" | "fi" | "while" | "until" | "do" | "done" | "{"
            | "}" | "!" | "time" | "coproc" | "always" => {
                self.end_command();
                self.list.is_timed = text == "time";
                true
            }
            "case" => {
                self.list.cases.push(Case::Subject);
                self.command().is_head = true;
                false
            }
            "for" | "foreach" | "select" | "repeat" | "function" => {
                self.command().is_head = true;
                false
            }
            "[[" => {
                self.list.in_test = true;
                self.command().is_head = true;
                false
            }
            _ => false,
        }
    }

    fn end_head(&mut self) {
        self.command().is_head = true;
        self.end_command();
    }

    fn end_command(&mut self) {
        self.end_word();
        if let Some(at) = self.list.command.take() {
            let is_pattern = self.list.cases.last() == Some(&Case::Pattern);
            let is_last = at + 1 == self.first_command + self.script.commands.len();
            match self.script.commands.last_mut().filter(|_| is_last) {
                Some(last) if last.is_empty() => drop(self.script.commands.pop()),
                Some(last) => last.is_head |= is_pattern,
                None => {}
            }
        }
        (self.list.words, self.list.in_test) = (0, false);
        (self.list.role, self.list.is_timed) = (Role::Argument, false);
    }

    fn newline(&mut self) -> Step {
        let is_subject = self.list.cases.last() == Some(&Case::Subject);
        if self.list.in_test || is_subject || self.list.closer == Closer::Array {
            self.end_word();
            self.at += 1;
            return Ok(());
        }
        self.end_command();
        self.at += 1;
        self.documents()
    }

    /// Reads `;`, `&`, `|` and what they make together.
    fn separator(&mut self, byte: u8) {
        if byte == b'&' && self.peek(1) == Some(b'>') {
            self.end_word();
            self.at += 1;
            self.redirection(None);
            return;
        }
        if self.list.in_test || self.list.closer == Closer::Array {
            self.end_word();
            self.at += 1;
            return;
        }
        self.end_command();
        let start = self.at;
        while self.peek(0).is_some_and(|next| b";&|".contains(&next)) {
            self.at += 1;
        }
        let operator = self.bytes.get(start..self.at).unwrap_or_default();
        if let (Some(case @ Case::Body), [b';', _, ..]) = (self.list.cases.last_mut(), operator) {
            *case = Case::Pattern;
        }
        if operator == b"&" && self.peek(0) == Some(b'!') {
            // `&!` of zsh.
            self.at += 1;
        }
    }

    /// Reads an opening parenthesis.
    fn open(&mut self) -> Step {
        let is_first = self.list.words == 0 && self.list.role == Role::Argument;
        if let Some(word) = &self.list.word {
            let name = word.text.clone();
            if !word.is_quoted && is_array_start(&name) {
                self.at += 1;
                self.list.add_text("(", false);
                return self.commands(Closer::Array);
            }
            if is_first && self.opens_function() {
                self.script.functions.push(name);
                self.end_word();
                self.end_head();
                return Ok(());
            }
            return self.group();
        }
        if self.list.in_test {
            self.at += 1;
            return Ok(());
        }
        let is_loop = matches!(self.first_words(), [Some("for"), None]);
        if (is_first || is_loop) && self.peek(1) == Some(b'(') && self.closes_arithmetic() {
            self.command().is_head = true;
            self.at += 2;
            self.arithmetic(b"))")?;
            // A keyword may follow at once.
            self.end_head();
            return Ok(());
        }
        match self.list.cases.last().copied() {
            Some(Case::Pattern) if is_first => {
                self.at += 1;
                Ok(())
            }
            _ if is_first => {
                if self.opens_function() {
                    // A function of zsh without a name.
                    return Ok(());
                }
                self.at += 1;
                self.commands(Closer::Subshell)
            }
            _ if self.list.words == 1 && self.opens_function() => {
                let name = self.first_words()[0].map(str::to_owned);
                self.script.functions.extend(name);
                self.end_head();
                Ok(())
            }
            _ => {
                self.word();
                self.group()
            }
        }
    }

    /// Passes `()`; returns whether that stands here.
    fn opens_function(&mut self) -> bool {
        let rest = self.bytes.get(self.at + 1..self.limit).unwrap_or_default();
        let blanks = rest.iter().take_while(|byte| b" \t".contains(byte)).count();
        let is_empty = rest.get(blanks) == Some(&b')');
        if is_empty {
            self.at += blanks + 2;
        }
        is_empty
    }

    /// Reads a parenthesis of a pattern, as a part of a word.
    fn group(&mut self) -> Step {
        self.list.add_text("(", false);
        self.at += 1;
        self.nested(|lexer| {
            loop {
                if lexer.at_placeholder(0) {
                    // To zsh it may be a qualifier, which is code.
                    if !lexer.in_pattern() {
                        return lexer
                            .fail("a placeholder stands in the parentheses of a pattern of files");
                    }
                    lexer.placeholder(Quoting::Bare);
                    continue;
                }
                match lexer.peek(0) {
                    None => return lexer.fail("a parenthesis is not closed"),
                    Some(b')') => {
                        lexer.list.add_text(")", false);
                        lexer.at += 1;
                        return Ok(());
                    }
                    Some(b'(') => lexer.group()?,
                    Some(byte @ (b'\\' | b'\'' | b'"' | b'$' | b'`')) => lexer.word_part(byte)?,
                    Some(_) => lexer.plain(),
                }
            }
        })
    }

    /// Reads a closing parenthesis; returns whether it closed the list.
    fn close(&mut self) -> Step<bool> {
        self.end_word();
        if self.list.in_test {
            self.at += 1;
            return Ok(false);
        }
        if let Some(case @ Case::Pattern) = self.list.cases.last_mut() {
            *case = Case::Body;
            self.at += 1;
            self.end_head();
            return Ok(false);
        }
        if self.list.closer == Closer::End {
            return self.fail("a parenthesis is closed that was not opened");
        }
        self.end_command();
        self.at += 1;
        Ok(true)
    }

    /// Reads `<` or `>`: a redirection, or a process substitution.
    fn angle(&mut self, byte: u8) -> Step {
        if self.peek(1) == Some(b'(') {
            self.word();
            let start = self.at;
            self.at += 2;
            self.commands(Closer::Parenthesis)?;
            let text = self.text_of(start..self.at);
            self.list.add_text(text, false);
            return Ok(());
        }
        if self.list.in_test {
            self.end_word();
            self.at += 1;
            return Ok(());
        }
        let is_descriptor = |word: &Word| {
            let text = word.text.as_str();
            let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            let is_name = text.len() > 2 && text.starts_with('{') && text.ends_with('}');
            !word.is_quoted && (is_number || is_name) && byte != b'('
        };
        let descriptor = self.list.word.take_if(|word| is_descriptor(word));
        if descriptor
            .as_ref()
            .is_some_and(|word| word.text.contains("$KARYI"))
        {
            return self.fail(super::expansion::NAME);
        }
        self.end_word();
        self.redirection(descriptor.map(|word| word.text));
        Ok(())
    }

    /// Passes the operator of a redirection; its target is the next word.
    fn redirection(&mut self, descriptor: Option<String>) {
        let is_operator = |operator: &&&str| self.starts_with(operator.as_bytes());
        let operator = OPERATORS.iter().find(is_operator).unwrap_or(&"<");
        self.at += operator.len();
        self.list.role = Role::Target(descriptor, operator);
    }

    /// Reads a comment, or a `#` that begins a word.
    fn comment(&mut self) -> Step {
        let before = self.at.checked_sub(1).and_then(|at| self.bytes.get(at));
        // In a pattern it may be a flag of zsh, `(#i)`.
        let signs: &[u8] = if self.in_pattern() {
            b" \t\n"
        } else {
            b" \t\r\n;&|()"
        };
        if before.is_some_and(|byte| !signs.contains(byte)) {
            self.word();
            self.plain();
            return Ok(());
        }
        let rest = self.bytes.get(self.at..self.limit).unwrap_or_default();
        let end = memchr::memchr(b'\n', rest).map_or(self.limit, |end| self.at + end);
        while self.next_placeholder() < end {
            self.at = self.next_placeholder();
            self.placeholder(Quoting::Comment);
        }
        self.at = end;
        Ok(())
    }

    /// Whether a pattern of text stands here, and none of files.
    fn in_pattern(&self) -> bool {
        self.list.in_test || self.list.cases.last() == Some(&Case::Pattern)
    }

    /// Whether a `[` here begins the index of an assignment.
    fn begins_index(&self) -> bool {
        match &self.list.word {
            Some(word) => {
                let is_place = self.list.words == 0
                    || matches!(self.first_words(), [Some(name), _] if is_declaration(name));
                is_place && !self.list.in_test && !word.is_quoted && is_name(&word.text)
            }
            None => self.list.closer == Closer::Array,
        }
    }

    fn index(&mut self) -> Step {
        self.word();
        let start = self.at;
        self.at += 1;
        self.arithmetic(b"]")?;
        let text = self.text_of(start..self.at);
        self.list.add_text(text, false);
        Ok(())
    }

    fn equals(&mut self) {
        self.word();
        let is_first = self.list.words == 0 && self.list.role == Role::Argument;
        if let Some(word) = self.list.word.as_ref().filter(|_| is_first) {
            let name = word.text.strip_suffix('+').unwrap_or(&word.text);
            let name = name.strip_suffix(']').map_or(Some(name), |name| {
                name.split_once('[').map(|(name, _)| name)
            });
            self.list.is_assignment |= !word.is_quoted && name.is_some_and(is_name);
        }
        self.list.add_text("=", true);
        self.at += 1;
    }
}

/// Operators of redirections, the longer ones first.
const OPERATORS: &[&str] = &[
    "<<<", "<<-", "<<", "<&", "<>", "<", ">>|", ">>!", ">>", ">&", ">|", ">!", ">",
];

/// Whether a text is the name of a variable.
pub(super) fn is_name(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let begins = text
        .bytes()
        .next()
        .is_some_and(|byte| !byte.is_ascii_digit());
    begins && text.bytes().all(is_word)
}

/// Whether a parenthesis after this text begins the elements of an array.
fn is_array_start(text: &str) -> bool {
    let name = text
        .strip_suffix('=')
        .map(|name| name.strip_suffix('+').unwrap_or(name));
    name.is_some_and(is_name)
}
