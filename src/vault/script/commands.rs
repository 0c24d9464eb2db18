//! Reads lists of commands: words, operators, compound commands, functions.
//!
//! Only as much of the grammar is known as decides where a command starts, which words it has and
//! where a construct ends.

use super::{Case, Closer, Compound, Frame, HereDocument, Quote, Reader, Role, Separator, Step};
use crate::limits;
use crate::vault::programs::ARITHMETIC_TESTS;
use crate::vault::words::{Demands, Word, is_name};

/// Variables whose elements are aliases.
const ALIAS_TABLES: &[&str] = &[
    "BASH_ALIASES",
    "BASH_CMDS",
    "aliases",
    "galiases",
    "saliases",
    "commands",
];

impl Reader<'_> {
    /// Reads a list of commands and what closes it.
    pub(super) fn commands(&mut self, closer: Closer) -> Step {
        let outer = std::mem::replace(&mut self.frame, Frame::new(closer, self.places.len()));
        let parameters = std::mem::take(&mut self.parameters);
        let around = self.around_braces.take();
        self.frame.printed_before = self.printed.len();
        let result = self.list();
        self.parameters = parameters;
        self.around_braces = around;
        let inner = std::mem::replace(&mut self.frame, outer);
        self.take_documents(inner.documents);
        if self.frame.follows_pipe {
            self.feeds_reads(self.frame.pipeline_hole..self.frame.command_hole);
        }
        self.reads_inside(inner.all_reads);
        result
    }

    /// Takes here-documents that start inside of a list whose end stands on the same line: their
    /// bodies come after the line, and what holds of the list holds of them.
    fn take_documents(&mut self, documents: Vec<HereDocument>) {
        for mut document in documents {
            document.demands = document.demands.and(self.inherited);
            document.command = self.frame.command;
            document.pipeline = self.frame.pipeline;
            self.frame.documents.push(document);
        }
    }

    /// Takes what commands inside of the current one read: its standard input is theirs.
    fn reads_inside(&mut self, demands: Demands) {
        if demands == Demands::NONE {
            return;
        }
        let frame = &mut self.frame;
        frame.reads = frame.reads.and(demands);
        if frame.follows_pipe {
            let feeds = frame.pipeline_hole..frame.command_hole;
            self.require(feeds, demands);
        }
    }

    /// Opens a compound command at its first keyword.
    fn open_compound(&mut self) {
        let frame = &mut self.frame;
        let feeds = if frame.follows_pipe {
            frame.pipeline_hole..frame.command_hole
        } else {
            0..0
        };
        frame.compounds.push(Compound {
            feeds,
            first_hole: frame.command_hole,
            reads: Demands::NONE,
            has_own_input: frame.follows_pipe,
        });
    }

    /// Closes a compound command at its last keyword: what follows is redirections of all of it.
    fn close_compound(&mut self) {
        let Some(compound) = self.frame.compounds.pop() else {
            return;
        };
        let frame = &mut self.frame;
        frame.reads = frame.reads.and(compound.reads);
        let feeds = compound.feeds.clone();
        frame.command_hole = compound.first_hole;
        frame.pipeline_hole = frame.pipeline_hole.min(compound.first_hole);
        frame.fed_demands.clear();
        frame.hidden = frame.hidden.min(compound.first_hole);
        frame.has_input |= compound.has_own_input;
        self.feeds_reads(feeds);
    }

    fn list(&mut self) -> Step {
        loop {
            if self.at >= self.limit {
                let closed = self.end_word()?;
                self.end_command(Separator::Other);
                self.here_documents()?;
                return if closed || self.frame.closer == Closer::End {
                    Ok(())
                } else {
                    self.unreadable("a parenthesis or brace is not closed")
                };
            }
            if self.token()? {
                return Ok(());
            }
        }
    }

    /// Reads one token; returns whether it closed the list.
    pub(super) fn token(&mut self) -> Step<bool> {
        if self.hole_at(self.at) {
            self.word();
            self.hole(Quote::Bare, Demands::NONE);
            return Ok(false);
        }
        let Some(byte) = self.peek(0) else {
            return Ok(false);
        };
        if self.frame.ends_compound && self.frame.word.is_none() && self.starts_with(b"always") {
            return self.always();
        }
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' | b';' | b'&' | b'|' | b')' => {
                return self.separator(byte);
            }
            b'(' => return self.parenthesis(),
            b'<' | b'>' => return self.redirection(byte),
            b'#' if self.starts_comment() => self.comment()?,
            b'\\' if self.continues_at(self.at) => self.continuation()?,
            b'\\' => {
                self.word().is_quoted = true;
                self.escape()?;
            }
            b'\'' => {
                self.word().is_quoted = true;
                self.single()?;
            }
            b'"' => {
                self.word().is_quoted = true;
                self.double()?;
            }
            b'$' => {
                self.word();
                self.dollar(Quote::Bare)?;
            }
            b'`' => {
                self.word();
                self.backtick(Quote::Bare)?;
            }
            b'[' if self.starts_subscript() => {
                self.word();
                self.at += 1;
                self.expression(b"]")?;
                self.no_continuation()?;
                // The name and its subscript still make an assignment.
                self.subscript_assignment();
            }
            b'=' => self.equals()?,
            b'}' if self.closes_group() => return self.close_group(),
            _ => {
                self.word().note_pattern(byte);
                self.literal();
            }
        }
        Ok(false)
    }

    /// Ends the word before the brace, and the group.
    fn close_group(&mut self) -> Step<bool> {
        let start = self.at;
        if self.end_word()? {
            return Ok(true);
        }
        let is_next = self.at == start;
        if is_next {
            self.at += 1;
            self.end_command(Separator::Other);
        }
        Ok(is_next)
    }

    /// Whether a brace here closes a group of zsh.
    fn closes_group(&self) -> bool {
        let frame = &self.frame;
        let is_free = frame
            .word
            .as_ref()
            .is_none_or(|word| !word.text().contains('{'));
        let is_place = frame.role == Role::Argument && !frame.in_test;
        self.is_zsh && frame.closer == Closer::Brace && is_free && is_place
    }

    /// Whether a `[` here starts the index of an array.
    fn starts_subscript(&self) -> bool {
        let frame = &self.frame;
        match &frame.word {
            Some(word) => {
                word.is_name() && (frame.words.is_empty() || frame.declares()) && !frame.in_test
            }
            None => frame.closer == Closer::Array,
        }
    }

    fn subscript_assignment(&mut self) {
        let is_assignment = self.starts_with(b"=") || self.starts_with(b"+=");
        let is_command = self.frame.words.is_empty();
        if is_command && let Some(word) = &mut self.frame.word {
            word.is_assignment |= is_assignment;
            // `b[a]sh` is a pattern.
            word.is_pattern |= !is_assignment;
        }
    }

    fn equals(&mut self) -> Step {
        let is_first = self.frame.words.is_empty();
        let word = self.word();
        let name = word.text().strip_suffix('+').unwrap_or(word.text());
        if is_first && !word.is_quoted && !word.is_dynamic && is_name(name) {
            word.is_assignment = true;
        }
        let has_value_name =
            is_first && word.is_dynamic && !word.is_assignment && word.text().is_empty();
        self.literal();
        if has_value_name && self.has_hole(self.frame.command_hole) {
            return self.unreadable("a placeholder stands in the place of a variable's name");
        }
        Ok(())
    }

    /// Reads white space or an operator between words; returns whether the list is closed.
    fn separator(&mut self, byte: u8) -> Step<bool> {
        let start = self.at;
        if self.end_word()? {
            return Ok(true);
        }
        if self.at != start {
            // The word was a brace, and what it opened has been read.
            return Ok(false);
        }
        if byte == b')' {
            return Ok(self.closing_parenthesis());
        }
        if byte == b'&' && self.peek(1) == Some(b'>') {
            self.at += 1;
            return Ok(false);
        }
        self.at += 1;
        if self.frame.in_test
            && matches!(byte, b'&' | b'|')
            && self.joined(self.at).next() == Some(byte)
        {
            self.end_clause();
        }
        if matches!(byte, b' ' | b'\t' | b'\r')
            || self.frame.closer == Closer::Array
            || self.frame.in_test
        {
            return Ok(false);
        }
        let separator = match byte {
            b'\n' => Separator::Newline,
            b'|' if self.peek(0) != Some(b'|') => Separator::Pipe,
            _ => Separator::Other,
        };
        while matches!(byte, b';' | b'&' | b'|')
            && self
                .peek(0)
                .is_some_and(|next| matches!(next, b';' | b'&' | b'|'))
            && !self.hole_at(self.at)
        {
            self.at += 1;
            self.next_pattern(byte);
        }
        if byte == b'&' && self.peek(0) == Some(b'!') && !self.hole_at(self.at) {
            // `&!` of zsh; elsewhere a blank must follow.
            self.at += 1;
        }
        self.end_command(separator);
        if byte == b'\n' {
            self.here_documents()?;
        }
        Ok(false)
    }

    /// After `;;`, `;&` and `;;&` comes the next pattern of a `case`.
    fn next_pattern(&mut self, byte: u8) {
        if byte == b';'
            && let Some(case) = self.frame.cases.last_mut()
        {
            *case = Case::Pattern;
        }
    }

    fn closing_parenthesis(&mut self) -> bool {
        self.at += 1;
        if self.frame.in_test {
            return false;
        }
        if let Some(case @ Case::Pattern) = self.frame.cases.last_mut() {
            *case = Case::Body;
            self.frame.words.clear();
            self.frame.command_hole = self.places.len();
            return false;
        }
        self.end_command(Separator::Other);
        matches!(
            self.frame.closer,
            Closer::Parenthesis | Closer::Array | Closer::Pattern
        )
    }

    /// Starts a word. After a compound command only a keyword can follow, or the command of a
    /// loop in the short form of zsh, so that a new command starts.
    pub(super) fn start_word(&mut self) {
        let frame = &self.frame;
        if frame.ends_compound
            && frame.role == Role::Argument
            && !frame.in_test
            && !self.starts_descriptor()
        {
            self.end_command(Separator::Other);
        }
    }

    /// Whether the word here is the descriptor of a redirection.
    fn starts_descriptor(&self) -> bool {
        let ends = |byte: &u8| b" \t\r\n;&|()<>".contains(byte);
        let mut rest = self.joined(self.at).peekable();
        let first = rest.peek().copied();
        let (mut is_number, mut is_empty, mut last) = (true, true, None);
        while let Some(byte) = rest.next_if(|byte| !ends(byte)) {
            is_number &= byte.is_ascii_digit();
            (is_empty, last) = (false, Some(byte));
        }
        let is_name = first == Some(b'{') && last == Some(b'}');
        matches!(rest.next(), Some(b'<' | b'>'))
            && (is_number || is_name)
            && !is_empty
            && rest.next() != Some(b'(')
    }

    /// Ends the current word; returns whether it closed the list.
    pub(super) fn end_word(&mut self) -> Step<bool> {
        let Some(mut word) = self.frame.word.take() else {
            return Ok(false);
        };
        (word.span.1, word.places) = (self.at, self.places.len());
        if self.frame.closer == Closer::Array {
            return Ok(false);
        }
        if self.frame.role == Role::Descriptor {
            self.descriptor(&word);
        }
        if self.frame.role == Role::RedirectTarget {
            self.target(&word);
            self.note_both_ways(&word);
        }
        if self.frame.role != Role::Argument {
            self.frame.role = Role::Argument;
            return Ok(false);
        }
        if self.frame.in_test {
            self.test_word(word);
            return Ok(false);
        }
        match self.frame.cases.last_mut() {
            Some(case @ Case::Subject) if word.is_plain("in") && self.frame.words.len() != 1 => {
                *case = Case::Pattern;
                self.frame.words.clear();
                return Ok(false);
            }
            Some(Case::Subject) if word.is_plain("{") && self.frame.words.len() > 1 => {
                return self.unreadable("a case with braces is not understood");
            }
            Some(Case::Pattern) => {
                if word.is_plain("esac") && self.frame.words.is_empty() {
                    self.frame.cases.pop();
                    self.close_compound();
                    self.compound_end();
                }
                return Ok(false);
            }
            _ => {}
        }
        if self.frame.starts_body(&word) {
            self.end_command(Separator::Other);
        }
        if self.frame.words.is_empty() {
            return self.first_word(word);
        }
        if matches!(self.frame.words.as_slice(), [first] if first.is_plain("function")) {
            self.heads.insert(word.span.0);
            self.functions.insert(word.text);
            self.frame.words.clear();
            self.frame.expects_body = true;
            return Ok(false);
        }
        let is_count = matches!(self.frame.words.as_slice(), [first] if first.is_plain("repeat"));
        self.frame.push(word);
        self.frame.ends_compound |= is_count;
        Ok(false)
    }

    fn note_assignment(&mut self, word: &Word) {
        self.assigns_word(word);
        self.note_kept_code(word);
        let is_table = |table: &&str| word.text().starts_with(*table);
        if ALIAS_TABLES.iter().any(is_table) {
            self.aliases.insert(String::new());
        }
    }

    /// Takes a word in the position of a command.
    fn first_word(&mut self, mut word: Word) -> Step<bool> {
        word.is_function = self.functions.contains(word.text());
        let is_plain = !word.is_quoted && !word.is_dynamic;
        if word.is_assignment {
            self.note_assignment(&word);
            return Ok(false);
        }
        let starts_brace = self.bytes.get(word.span.0) == Some(&b'{');
        if starts_brace && !(is_plain && word.text() == "{") && !word.is_pattern {
            // A group to zsh.
            return self.unreadable("a brace stands before a command without a blank between them");
        }
        match word.text() {
            "{" if is_plain => {
                let body = self.body_demands();
                self.nested(body, |reader| reader.commands(Closer::Brace))?;
                self.compound_end();
                return Ok(false);
            }
            "}" if is_plain && self.frame.closer == Closer::Brace => {
                self.end_command(Separator::Other);
                return Ok(true);
            }
            _ => {}
        }
        if std::mem::take(&mut self.frame.expects_body) {
            // A body without braces ends where its compound command does; that is not tracked.
            self.frame.is_body = true;
        }
        match word.text() {
            "if" | "while" | "until" if is_plain => {
                self.open_compound();
                return Ok(false);
            }
            "then" | "else" | "elif" | "do" | "!" | "time" | "always" if is_plain => {
                return Ok(false);
            }
            // Options of `time`, and a modifier of zsh.
            "-p" | "--" | "-" if is_plain => return Ok(false),
            "for" | "select" | "foreach" | "repeat" if is_plain => self.open_compound(),
            "fi" | "done" | "end" if is_plain => {
                self.close_compound();
                self.frame.ends_compound = true;
            }
            "case" if is_plain => {
                self.open_compound();
                self.frame.cases.push(Case::Subject);
            }
            "esac" if is_plain => {
                self.frame.cases.pop();
                self.close_compound();
                self.frame.ends_compound = true;
            }
            "[[" if is_plain => {
                self.frame.in_test = true;
                self.frame.clause_hole = self.places.len();
            }
            _ => {}
        }
        self.frame.words.push(word);
        Ok(false)
    }

    fn test_word(&mut self, word: Word) {
        if self.frame.clause_text.len() < limits::MAX_CLAUSE_BYTES {
            self.frame.clause_text.push_str(word.text());
            self.frame.clause_text.push(' ');
        }
        if word.is_plain("=~") {
            self.frame.pattern_hole = Some(self.places.len());
        }
        if !word.is_plain("]]") {
            // In `[[` an operator is always written out.
            let is_operator = (ARITHMETIC_TESTS.contains(&word.text())
                || matches!(word.text(), "-t" | "-R"))
                && !word.is_dynamic;
            // Long tests keep only what decides.
            if is_operator || word.is_plain("-v") || self.frame.words.len() < 3 && !word.is_dynamic
            {
                self.frame.words.push(word);
            }
            return;
        }
        self.frame.in_test = false;
        self.frame.ends_compound = true;
        if let Some(first) = self.frame.pattern_hole.take() {
            // Not every shell takes the quoted part of a regular expression literally.
            self.require(first..self.places.len(), Demands::PROGRAM);
        }
        // What `=~`, and `==` in zsh, has found.
        let clause = self.frame.clause_hole..self.places.len();
        self.assigns("BASH_REMATCH", clause);
        let text = self.frame.clause_text.clone();
        self.assigns_text("BASH_REMATCH", &text);
        self.end_clause();
    }
}
