//! Finds out in which context of a shell script each placeholder stands.
//!
//! This is a reader of bash and zsh that knows quotes, expansions, here-documents, comments and
//! the words of simple commands, and no more. The values never join the script, so that a wrong
//! guess about a quote costs a wrong word; where a value would be read as code or calculated with,
//! the reader errs on the side of demanding more of it.

use std::collections::HashSet;
use std::ops::Range;

use super::programs::{self, ARITHMETIC_TESTS, DECLARATIONS, Demands, INTEGER_VARIABLES, Word};
use crate::limits;

/// A stretch of the script that is replaced: a placeholder or an escaped one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hole {
    /// Where it stands, in bytes.
    pub(super) range: Range<usize>,
    /// Whether it stands for literal characters.
    pub(super) is_escaped: bool,
}

/// How the text around a hole is quoted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quote {
    /// Not at all.
    Bare,
    /// By double quotes.
    Double,
    /// By single quotes.
    Single,
    /// By `$'...'`.
    Dollar,
    /// As the body of a here-document with expansions, or an expression.
    Text,
    /// As the body of a here-document without expansions.
    Literal,
    /// As a comment.
    Comment,
}

/// Where a hole stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) quote: Quote,
    pub(super) demands: Demands,
    /// Inside backticks, whose text loses a layer of backslashes.
    pub(super) in_backticks: bool,
    /// Inside `${...}`, where a brace cannot be quoted in every shell.
    pub(super) in_parameter: bool,
}

/// A script that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unreadable {
    /// Where, in bytes.
    pub(super) offset: usize,
    /// What is wrong there.
    pub(super) why: &'static str,
}

type Step<T = ()> = Result<T, Unreadable>;

/// Returns the place of every hole. The holes are in order and do not overlap.
pub(super) fn places(script: &str, holes: &[Hole]) -> Step<Vec<Place>> {
    let mut reader = Reader {
        bytes: script.as_bytes(),
        at: 0,
        limit: script.len(),
        holes,
        places: Vec::with_capacity(holes.len()),
        inherited: Demands::NONE,
        frame: Frame::new(Closer::End, 0),
        depth: 0,
        backticks: 0,
        parameters: 0,
        integers: HashSet::new(),
    };
    reader.commands(Closer::End)?;
    match holes.get(reader.places.len()) {
        None => Ok(reader.places),
        Some(missed) => Err(Unreadable {
            offset: missed.range.start,
            why: "a placeholder stands in a construct that is not understood",
        }),
    }
}

/// What ends a list of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Closer {
    /// The end of the text.
    End,
    /// `)`.
    Parenthesis,
    /// `)`, and the words between are no commands.
    Array,
    /// The word `}`.
    Brace,
}

/// What separates two commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Separator {
    Pipe,
    Newline,
    Other,
}

/// Where a `case` is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Case {
    Subject,
    Pattern,
    Body,
}

/// What the next word is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Argument,
    RedirectTarget,
    HereString,
}

struct HereDocument {
    delimiter: Vec<u8>,
    is_quoted: bool,
    strips_tabs: bool,
    demands: Demands,
    /// Number of its command and of its pipeline.
    command: usize,
    pipeline: usize,
}

/// The state of one list of commands.
struct Frame {
    closer: Closer,
    /// Words of the command so far, without assignments and redirections.
    words: Vec<Word>,
    word: Option<Word>,
    role: Role,
    cases: Vec<Case>,
    documents: Vec<HereDocument>,
    in_test: bool,
    /// A function's name was read; its body comes next.
    expects_body: bool,
    /// From here to the end of the frame everything may be a function's body.
    is_body: bool,
    follows_pipe: bool,
    command: usize,
    pipeline: usize,
    /// The first hole of the frame, the pipeline and the command.
    first_hole: usize,
    pipeline_hole: usize,
    command_hole: usize,
    /// Holes in here-strings of the command.
    input_holes: Vec<Range<usize>>,
}

impl Frame {
    fn new(closer: Closer, hole: usize) -> Self {
        Self {
            closer,
            words: Vec::new(),
            word: None,
            role: Role::Argument,
            cases: Vec::new(),
            documents: Vec::new(),
            in_test: false,
            expects_body: false,
            is_body: false,
            follows_pipe: false,
            command: 0,
            pipeline: 0,
            first_hole: hole,
            pipeline_hole: hole,
            command_hole: hole,
            input_holes: Vec::new(),
        }
    }

    fn is_command_position(&self) -> bool {
        self.words.is_empty() && self.word.is_none() && self.role == Role::Argument
    }

    fn demands(&self) -> Demands {
        let body = if self.is_body {
            IN_FUNCTION
        } else {
            Demands::NONE
        };
        let empty = Word::default();
        let words = match self.role {
            Role::Argument => {
                programs::argument_demands(&self.words, self.word.as_ref().unwrap_or(&empty))
            }
            Role::RedirectTarget | Role::HereString => Demands::NONE,
        };
        body.and(words)
    }
}

const IN_FUNCTION: Demands = Demands::forbidden("in the body of a function");

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Where the text that is being read ends.
    limit: usize,
    holes: &'a [Hole],
    /// One for each hole passed.
    places: Vec<Place>,
    /// What the constructs around the current list of commands demand.
    inherited: Demands,
    frame: Frame,
    depth: usize,
    backticks: usize,
    parameters: usize,
    /// Variables the script declares as integers.
    integers: HashSet<String>,
}

impl Reader<'_> {
    fn peek(&self, ahead: usize) -> Option<u8> {
        let at = self.at + ahead;
        if at < self.limit {
            self.bytes.get(at).copied()
        } else {
            None
        }
    }

    fn starts_with(&self, text: &[u8]) -> bool {
        self.bytes
            .get(self.at..self.limit)
            .is_some_and(|rest| rest.starts_with(text))
    }

    fn hole_at(&self, offset: usize) -> bool {
        self.holes
            .get(self.places.len())
            .is_some_and(|hole| hole.range.start == offset)
    }

    fn unreadable<T>(&self, why: &'static str) -> Step<T> {
        Err(Unreadable {
            offset: self.at,
            why,
        })
    }

    fn word(&mut self) -> &mut Word {
        self.frame.word.get_or_insert_default()
    }

    /// Passes one byte that means nothing here but itself.
    fn literal(&mut self) {
        if let (Some(byte), Some(word)) = (self.peek(0), &mut self.frame.word) {
            word.push(byte);
        }
        self.at += 1;
    }

    /// Passes a hole.
    fn hole(&mut self, quote: Quote, demands: Demands) {
        let Some(hole) = self.holes.get(self.places.len()) else {
            return;
        };
        let mut demands = self.inherited.and(self.frame.demands()).and(demands);
        if self.is_integer_assignment() {
            demands = demands.and(Demands::NUMBER);
        }
        self.places.push(Place {
            quote,
            demands,
            in_backticks: self.backticks > 0,
            in_parameter: self.parameters > 0,
        });
        if let Some(word) = &mut self.frame.word {
            word.is_dynamic = true;
        }
        self.at = hole.range.end;
    }

    fn is_integer_assignment(&self) -> bool {
        let Some(word) = self.frame.word.as_ref().filter(|word| word.is_assignment) else {
            return false;
        };
        let name = word
            .text()
            .split(['=', '+', '['])
            .next()
            .unwrap_or_default();
        INTEGER_VARIABLES.contains(&name) || self.integers.contains(name)
    }

    /// Demands more of holes that were passed already.
    fn require(&mut self, holes: Range<usize>, demands: Demands) {
        for place in self.places.get_mut(holes).unwrap_or_default() {
            place.demands = place.demands.and(demands);
        }
    }

    /// Reads what is nested inside of the current word, which passes on what it demands.
    fn nested<T>(&mut self, demands: Demands, read: impl FnOnce(&mut Self) -> Step<T>) -> Step<T> {
        if self.depth >= limits::MAX_SCRIPT_DEPTH {
            return self.unreadable("quotes and substitutions are nested too deep");
        }
        let before = self.inherited;
        self.inherited = before.and(self.frame.demands()).and(demands);
        if self.is_integer_assignment() {
            self.inherited = self.inherited.and(Demands::NUMBER);
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        self.inherited = before;
        result
    }

    /// Reads a list of commands and what closes it.
    fn commands(&mut self, closer: Closer) -> Step {
        let outer = std::mem::replace(&mut self.frame, Frame::new(closer, self.places.len()));
        let result = self.list();
        self.frame = outer;
        result
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
    fn token(&mut self) -> Step<bool> {
        if self.hole_at(self.at) {
            self.word();
            self.hole(Quote::Bare, Demands::NONE);
            return Ok(false);
        }
        let Some(byte) = self.peek(0) else {
            return Ok(false);
        };
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' | b';' | b'&' | b'|' | b')' => {
                return self.separator(byte);
            }
            b'(' => return self.parenthesis(),
            b'<' | b'>' => return self.redirection(byte),
            b'#' if self.frame.word.is_none() => self.comment(),
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
                self.word().is_dynamic = true;
                self.backtick(Quote::Bare)?;
            }
            b'[' if self.starts_subscript() => {
                self.word();
                self.at += 1;
                self.expression(b"]")?;
                // The name and its subscript still make an assignment.
                self.subscript_assignment();
            }
            b'=' => self.equals()?,
            _ => {
                self.word();
                self.literal();
            }
        }
        Ok(false)
    }

    /// Whether a `[` here starts the index of an array.
    fn starts_subscript(&self) -> bool {
        let frame = &self.frame;
        let declares = frame
            .words
            .first()
            .is_some_and(|word| DECLARATIONS.contains(&word.text()));
        match &frame.word {
            Some(word) => word.is_name() && (frame.words.is_empty() || declares) && !frame.in_test,
            None => frame.closer == Closer::Array,
        }
    }

    fn subscript_assignment(&mut self) {
        let is_assignment = self.starts_with(b"=") || self.starts_with(b"+=");
        let is_command = self.frame.words.is_empty();
        if is_assignment
            && is_command
            && let Some(word) = &mut self.frame.word
        {
            word.is_assignment = true;
        }
    }

    fn equals(&mut self) -> Step {
        let is_first = self.frame.words.is_empty();
        let word = self.word();
        let name = word.text().strip_suffix('+').unwrap_or(word.text());
        if is_first && !word.is_quoted && !word.is_dynamic && programs::is_name(name) {
            word.is_assignment = true;
        }
        let has_value_name =
            is_first && word.is_dynamic && !word.is_assignment && word.text().is_empty();
        self.literal();
        if has_value_name && self.places.len() > self.frame.command_hole {
            return self.unreadable("a placeholder stands in the place of a variable's name");
        }
        Ok(())
    }

    /// Reads white space or an operator between words; returns whether the list is closed.
    fn separator(&mut self, byte: u8) -> Step<bool> {
        if self.end_word()? {
            return Ok(true);
        }
        if byte == b')' {
            return Ok(self.closing_parenthesis());
        }
        if byte == b'&' && self.peek(1) == Some(b'>') {
            self.at += 1;
            return Ok(false);
        }
        self.at += 1;
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
            return false;
        }
        self.end_command(Separator::Other);
        matches!(self.frame.closer, Closer::Parenthesis | Closer::Array)
    }

    /// Reads what starts with a parenthesis that stands alone or after a word.
    fn parenthesis(&mut self) -> Step<bool> {
        let frame = &self.frame;
        if frame.in_test {
            self.at += 1;
            return Ok(false);
        }
        if frame.is_command_position() && frame.cases.last() == Some(&Case::Pattern) {
            self.at += 1;
            return Ok(false);
        }
        let is_loop = matches!(frame.words.as_slice(), [word] if word.is_plain("for"));
        if (frame.is_command_position() || is_loop && frame.word.is_none())
            && self.starts_with(b"((")
        {
            self.at += 2;
            self.expression(b"))")?;
            self.compound_end();
            return Ok(false);
        }
        if self.is_function_head() {
            return Ok(false);
        }
        let is_array = frame_is_assigned(&self.frame);
        let is_subshell = self.frame.is_command_position();
        let body = if std::mem::take(&mut self.frame.expects_body) {
            IN_FUNCTION
        } else {
            Demands::NONE
        };
        self.at += 1;
        self.nested(body, |reader| {
            reader.commands(if is_array {
                Closer::Array
            } else {
                Closer::Parenthesis
            })
        })?;
        if is_subshell {
            self.compound_end();
        } else {
            self.word().is_dynamic = true;
        }
        Ok(false)
    }

    /// Notes that a compound command stands where the words of a simple one would.
    fn compound_end(&mut self) {
        self.frame.words.push(Word::default());
    }

    /// Passes `()` after a function's name.
    fn is_function_head(&mut self) -> bool {
        let frame = &self.frame;
        let names = frame.words.len() + usize::from(frame.word.is_some());
        let is_named = names == 1 && !frame.word.as_ref().is_some_and(|word| word.is_assignment);
        let rest = self.bytes.get(self.at + 1..self.limit).unwrap_or_default();
        let blanks = rest
            .iter()
            .take_while(|byte| matches!(byte, b' ' | b'\t'))
            .count();
        if frame.closer == Closer::Array
            || !is_named && !frame.expects_body
            || rest.get(blanks) != Some(&b')')
        {
            return false;
        }
        self.at += blanks + 2;
        let forbidden = Demands::forbidden("in the place of a function's name");
        self.require(self.frame.command_hole..self.places.len(), forbidden);
        self.frame.word = None;
        self.frame.words.clear();
        self.frame.expects_body = true;
        true
    }

    /// Ends the current word; returns whether it closed the list.
    fn end_word(&mut self) -> Step<bool> {
        let Some(word) = self.frame.word.take() else {
            return Ok(false);
        };
        if self.frame.closer == Closer::Array {
            return Ok(false);
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
            Some(Case::Pattern) => {
                if word.is_plain("esac") && self.frame.words.is_empty() {
                    self.frame.cases.pop();
                    self.compound_end();
                }
                return Ok(false);
            }
            _ => {}
        }
        if self.frame.words.is_empty() {
            return self.first_word(word);
        }
        if matches!(self.frame.words.as_slice(), [first] if first.is_plain("function")) {
            self.frame.words.clear();
            self.frame.expects_body = true;
            return Ok(false);
        }
        self.frame.words.push(word);
        Ok(false)
    }

    /// Takes a word in the position of a command.
    fn first_word(&mut self, word: Word) -> Step<bool> {
        let is_plain = !word.is_quoted && !word.is_dynamic;
        if word.is_assignment {
            return Ok(false);
        }
        match word.text() {
            "{" if is_plain => {
                let body = if std::mem::take(&mut self.frame.expects_body) {
                    IN_FUNCTION
                } else {
                    Demands::NONE
                };
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
            "if" | "then" | "else" | "elif" | "do" | "while" | "until" | "!" | "time"
                if is_plain =>
            {
                return Ok(false);
            }
            "case" if is_plain => self.frame.cases.push(Case::Subject),
            "esac" if is_plain => {
                self.frame.cases.pop();
            }
            "[[" if is_plain => self.frame.in_test = true,
            _ => {}
        }
        self.frame.words.push(word);
        Ok(false)
    }

    fn test_word(&mut self, word: Word) {
        if !word.is_plain("]]") {
            let is_name = ARITHMETIC_TESTS.contains(&word.text())
                || word.is_plain("-v")
                || self.frame.words.len() < 3;
            // Long tests keep only what decides.
            if is_name {
                self.frame.words.push(word);
            }
            return;
        }
        self.frame.in_test = false;
        self.end_test();
    }

    /// A test that calculates does so with every value in it.
    fn end_test(&mut self) {
        let calculates = self
            .frame
            .words
            .iter()
            .any(|word| ARITHMETIC_TESTS.contains(&word.text()));
        if calculates {
            self.require(self.frame.command_hole..self.places.len(), Demands::NUMBER);
        }
        if self.frame.words.iter().any(|word| word.text() == "-v") {
            let forbidden = Demands::forbidden("in the place of a variable's name");
            self.require(self.frame.command_hole..self.places.len(), forbidden);
        }
    }

    fn end_command(&mut self, separator: Separator) {
        let words = std::mem::take(&mut self.frame.words);
        let first = words.first().map_or("", Word::text);
        if separator == Separator::Newline && words.is_empty() && self.frame.follows_pipe {
            return;
        }
        if matches!(first, "[" | "test") {
            self.frame.words = words.clone();
            self.end_test();
            self.frame.words.clear();
        }
        if DECLARATIONS.contains(&first) {
            self.note_integers(&words);
        }
        self.demand_of_input(&words);
        let frame = &mut self.frame;
        frame.in_test = false;
        frame.follows_pipe = separator == Separator::Pipe;
        frame.command += 1;
        frame.command_hole = self.places.len();
        if frame.follows_pipe {
            // What a loop prints came from all its commands.
            if matches!(first, "done" | "fi" | "esac" | "}") {
                frame.pipeline_hole = frame.first_hole;
            }
        } else {
            frame.pipeline += 1;
            frame.pipeline_hole = self.places.len();
        }
    }

    /// Applies what a command demands of its standard input to what feeds it.
    fn demand_of_input(&mut self, words: &[Word]) {
        let demands = programs::input_demands(words);
        for holes in std::mem::take(&mut self.frame.input_holes) {
            self.require(holes, demands);
        }
        let (command, pipeline, follows) = (
            self.frame.command,
            self.frame.pipeline,
            self.frame.follows_pipe,
        );
        for document in &mut self.frame.documents {
            if document.command == command || follows && document.pipeline == pipeline {
                document.demands = document.demands.and(demands);
            }
        }
        if follows {
            self.require(self.frame.pipeline_hole..self.frame.command_hole, demands);
        }
    }

    fn note_integers(&mut self, words: &[Word]) {
        let is_integer = words
            .iter()
            .any(|word| word.text().starts_with('-') && word.text().contains(['i', 'E', 'F']));
        if is_integer
            || words
                .first()
                .is_some_and(|word| matches!(word.text(), "integer" | "float"))
        {
            let names = words
                .iter()
                .map(|word| word.text().split('=').next().unwrap_or_default().to_owned());
            self.integers.extend(names);
        }
    }

    fn comment(&mut self) {
        while self.peek(0).is_some_and(|byte| byte != b'\n') {
            if self.hole_at(self.at) {
                self.hole(Quote::Comment, Demands::NONE);
            } else {
                self.at += 1;
            }
        }
    }

    /// Passes a backslash and what it quotes.
    fn escape(&mut self) -> Step {
        if self.hole_at(self.at + 1) {
            return self.unreadable("a backslash stands before a placeholder");
        }
        self.at += 1;
        match self.peek(0) {
            Some(b'\n') => self.at += 1,
            Some(_) => self.literal(),
            None => {}
        }
        Ok(())
    }

    fn single(&mut self) -> Step {
        self.quoted(Quote::Single)
    }

    /// Reads a string in single quotes, with or without `$`.
    fn quoted(&mut self, quote: Quote) -> Step {
        self.at += if quote == Quote::Dollar { 2 } else { 1 };
        loop {
            if self.hole_at(self.at) {
                self.hole(quote, Demands::NONE);
                continue;
            }
            match self.peek(0) {
                None => return self.unreadable("a single quote is not closed"),
                Some(b'\'') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') if quote == Quote::Dollar => self.escape()?,
                Some(_) => self.literal(),
            }
        }
    }

    fn double(&mut self) -> Step {
        self.at += 1;
        loop {
            if self.hole_at(self.at) {
                self.hole(Quote::Double, Demands::NONE);
                continue;
            }
            match self.peek(0) {
                None => return self.unreadable("a double quote is not closed"),
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => self.escape()?,
                Some(b'$') => self.dollar(Quote::Double)?,
                Some(b'`') => self.backtick(Quote::Double)?,
                Some(_) => self.literal(),
            }
        }
    }

    /// Reads what starts with a dollar sign, inside of text quoted by `quote`.
    fn dollar(&mut self, quote: Quote) -> Step {
        let is_bare = quote == Quote::Bare;
        if self.hole_at(self.at + 1) {
            self.literal();
            return Ok(());
        }
        if is_bare && self.peek(1) == Some(b'\'') {
            self.word().is_quoted = true;
            return self.quoted(Quote::Dollar);
        }
        if is_bare && self.peek(1) == Some(b'"') {
            self.word().is_quoted = true;
            self.at += 1;
            return self.double();
        }
        if let Some(word) = &mut self.frame.word {
            word.is_dynamic = true;
        }
        match self.peek(1) {
            Some(b'(') if self.peek(2) == Some(b'(') => {
                self.at += 3;
                self.expression(b"))")
            }
            Some(b'(') => {
                self.at += 2;
                self.nested(Demands::NONE, |reader| reader.commands(Closer::Parenthesis))
            }
            Some(b'[') => {
                self.at += 2;
                self.expression(b"]")
            }
            Some(b'{') => self.parameter(quote),
            _ => {
                self.variable();
                Ok(())
            }
        }
    }

    /// Passes `$name` or `$` and one special character.
    fn variable(&mut self) {
        self.at += 1;
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        match self.peek(0) {
            Some(byte) if is_word(byte) => {
                while self.peek(0).is_some_and(is_word) && !self.hole_at(self.at) {
                    self.at += 1;
                }
            }
            Some(b'#' | b'?' | b'!' | b'@' | b'*' | b'-') => self.at += 1,
            _ => {}
        }
    }

    /// Reads `${...}`.
    fn parameter(&mut self, quote: Quote) -> Step {
        self.at += 2;
        if matches!(self.peek(0), Some(b' ' | b'\t' | b'\n' | b'|')) {
            // `${ command; }`
            return self.nested(Demands::NONE, |reader| reader.commands(Closer::Brace));
        }
        self.parameters += 1;
        let result = self.nested(Demands::NONE, |reader| reader.parameter_body(quote));
        self.parameters -= 1;
        result
    }

    fn parameter_body(&mut self, quote: Quote) -> Step {
        while self.peek(0).is_some_and(|byte| matches!(byte, b'!' | b'#'))
            && self.peek(1) != Some(b'}')
            && !self.hole_at(self.at)
        {
            self.at += 1;
        }
        if self.peek(0) == Some(b'(') {
            self.flags()?;
        }
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        if self.hole_at(self.at) {
            return self.unreadable("a placeholder stands in the place of a variable's name");
        }
        if self.peek(0).is_some_and(is_word) {
            while self.peek(0).is_some_and(is_word) {
                self.at += 1;
            }
        } else if self.peek(0).is_some_and(|byte| b"@*?-$!#".contains(&byte)) {
            self.at += 1;
        }
        if self.hole_at(self.at) {
            return self.unreadable("a placeholder stands in the place of a variable's name");
        }
        if self.peek(0) == Some(b'[') {
            self.at += 1;
            self.expression(b"]")?;
        }
        match (self.peek(0), self.peek(1)) {
            (Some(b':'), Some(b'-' | b'=' | b'?' | b'+'))
            | (Some(b'-' | b'=' | b'?' | b'+'), _) => self.parameter_word(quote, false),
            (Some(b':'), _) => self.expression(b"}"),
            _ => self.parameter_word(quote, true),
        }
    }

    /// Passes the flags of zsh, `(...)` before the name.
    fn flags(&mut self) -> Step {
        while self.peek(0).is_some_and(|byte| byte != b')') {
            if self.hole_at(self.at) {
                return self.unreadable("a placeholder stands among the flags of an expansion");
            }
            self.at += 1;
        }
        self.at += 1;
        Ok(())
    }

    /// Reads the word after an operator of `${...}`, up to the brace. In a pattern quotes quote,
    /// even inside double quotes.
    fn parameter_word(&mut self, quote: Quote, is_pattern: bool) -> Step {
        let own = if is_pattern { Quote::Bare } else { quote };
        loop {
            if self.hole_at(self.at) {
                self.hole(own, Demands::NONE);
                continue;
            }
            match self.peek(0) {
                None => return self.unreadable("a brace is not closed"),
                Some(b'}') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => self.escape()?,
                Some(b'\'') if own == Quote::Bare => self.single()?,
                Some(b'"') => self.double()?,
                Some(b'$') => self.dollar(own)?,
                Some(b'`') => self.backtick(own)?,
                Some(_) => self.at += 1,
            }
        }
    }

    /// Reads an arithmetic expression up to `closer`.
    fn expression(&mut self, closer: &'static [u8]) -> Step {
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
                Some(b'\\') => {
                    self.escape()?;
                    continue;
                }
                Some(b'\'') => {
                    self.single()?;
                    continue;
                }
                Some(b'"') => {
                    self.double()?;
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
                Some(_) => {}
            }
            self.at += 1;
        }
    }

    /// Reads a command in backticks. They end at the first one without a backslash, whatever the
    /// quotes inside say.
    fn backtick(&mut self, quote: Quote) -> Step {
        let start = self.at + 1;
        let Some(end) = self.backtick_end(start) else {
            return self.unreadable("a backtick is not closed");
        };
        let body = self.bytes.get(start..end).unwrap_or_default();
        let is_nested = memchr::memmem::find(body, b"\\`").is_some();
        let is_requoted = quote != Quote::Bare && memchr::memmem::find(body, b"\\\"").is_some();
        let demands = if is_nested || is_requoted || self.backticks > 0 {
            Demands::forbidden("in backticks that hold escaped quotes")
        } else {
            Demands::NONE
        };
        let limit = std::mem::replace(&mut self.limit, end);
        self.at = start;
        self.backticks += 1;
        let result = self.nested(demands, |reader| reader.commands(Closer::End));
        self.backticks -= 1;
        self.limit = limit;
        self.at = end + 1;
        result
    }

    fn backtick_end(&self, start: usize) -> Option<usize> {
        let mut at = start;
        while at < self.limit {
            match self.bytes.get(at)? {
                b'`' => return Some(at),
                b'\\' => at += 2,
                _ => at += 1,
            }
        }
        None
    }

    /// Reads a redirection operator; its target is the next word.
    fn redirection(&mut self, byte: u8) -> Step<bool> {
        if self.frame.in_test {
            if self.end_word()? {
                return Ok(true);
            }
            self.at += 1;
            return Ok(false);
        }
        self.drop_descriptor();
        if self.end_word()? {
            return Ok(true);
        }
        if self.peek(1) == Some(b'(') {
            // A process substitution is a word.
            self.word().is_dynamic = true;
            self.at += 2;
            self.nested(Demands::NONE, |reader| reader.commands(Closer::Parenthesis))?;
            return Ok(false);
        }
        if self.starts_with(b"<<<") {
            self.at += 3;
            return self.here_string();
        }
        if self.starts_with(b"<<") {
            return self.here_document_head();
        }
        self.at += 1;
        while self
            .peek(0)
            .is_some_and(|next| matches!(next, b'>' | b'&' | b'|') || byte == b'<' && next == b'>')
        {
            self.at += 1;
        }
        self.frame.role = Role::RedirectTarget;
        Ok(false)
    }

    /// `2>` and `{fd}>` name a descriptor, no argument.
    fn drop_descriptor(&mut self) {
        let is_descriptor = self.frame.word.as_ref().is_some_and(|word| {
            let text = word.text();
            let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
            !word.is_quoted
                && !word.is_dynamic
                && (is_number || text.starts_with('{') && text.ends_with('}'))
        });
        if is_descriptor {
            self.frame.word = None;
        }
    }

    fn here_string(&mut self) -> Step<bool> {
        while matches!(self.peek(0), Some(b' ' | b'\t')) {
            self.at += 1;
        }
        self.frame.role = Role::HereString;
        let first = self.places.len();
        while let Some(byte) = self.peek(0) {
            if matches!(
                byte,
                b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b')' | b'<' | b'>'
            ) && !self.hole_at(self.at)
            {
                break;
            }
            self.token()?;
        }
        self.frame.input_holes.push(first..self.places.len());
        self.frame.word = None;
        self.frame.role = Role::Argument;
        Ok(false)
    }

    fn here_document_head(&mut self) -> Step<bool> {
        self.at += 2;
        let strips_tabs = self.peek(0) == Some(b'-');
        self.at += usize::from(strips_tabs);
        while matches!(self.peek(0), Some(b' ' | b'\t')) {
            self.at += 1;
        }
        let (mut delimiter, mut is_quoted) = (Vec::new(), false);
        let mut quote = None;
        while let Some(byte) = self.peek(0) {
            if self.hole_at(self.at) {
                return self.unreadable("a placeholder stands in the delimiter of a here-document");
            }
            match (quote, byte) {
                (None, b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'<' | b'>' | b'(' | b')') => {
                    break;
                }
                (None, b'\'' | b'"') => (quote, is_quoted) = (Some(byte), true),
                (None, b'\\') => {
                    is_quoted = true;
                    self.at += 1;
                    delimiter.extend(self.peek(0));
                }
                (Some(open), _) if open == byte => quote = None,
                (_, _) => delimiter.push(byte),
            }
            self.at += 1;
        }
        let (command, pipeline) = (self.frame.command, self.frame.pipeline);
        self.frame.documents.push(HereDocument {
            delimiter,
            is_quoted,
            strips_tabs,
            demands: Demands::NONE,
            command,
            pipeline,
        });
        Ok(false)
    }

    /// Reads the bodies of the here-documents that start on this line.
    fn here_documents(&mut self) -> Step {
        for document in std::mem::take(&mut self.frame.documents) {
            let (end, after) = self.body_end(&document);
            let limit = std::mem::replace(&mut self.limit, end);
            let result = if document.is_quoted {
                self.literal_body();
                Ok(())
            } else {
                self.nested(document.demands, Self::expanded_body)
            };
            self.limit = limit;
            result?;
            self.at = after;
        }
        Ok(())
    }

    /// Returns where a body ends and where the script goes on.
    fn body_end(&self, document: &HereDocument) -> (usize, usize) {
        let mut start = self.at;
        let mut continues = false;
        while start < self.limit {
            let rest = self.bytes.get(start..self.limit).unwrap_or_default();
            let length = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            let line = rest.get(..length).unwrap_or_default();
            let tabs = if document.strips_tabs {
                line.iter().take_while(|byte| **byte == b'\t').count()
            } else {
                0
            };
            let after = (start + length + 1).min(self.limit);
            if !continues && line.get(tabs..) == Some(document.delimiter.as_slice()) {
                return (start, after);
            }
            let backslashes = line.iter().rev().take_while(|byte| **byte == b'\\').count();
            continues = !document.is_quoted && backslashes % 2 == 1;
            start = after;
        }
        (self.limit, self.limit)
    }

    fn literal_body(&mut self) {
        let forbidden = Demands::forbidden("in a here-document with a quoted delimiter");
        while self
            .holes
            .get(self.places.len())
            .is_some_and(|hole| hole.range.start < self.limit)
        {
            self.hole(Quote::Literal, forbidden);
        }
    }

    fn expanded_body(&mut self) -> Step {
        while self.at < self.limit {
            if self.hole_at(self.at) {
                self.hole(Quote::Text, Demands::NONE);
                continue;
            }
            match self.peek(0) {
                Some(b'\\') => self.escape()?,
                Some(b'$') => self.dollar(Quote::Text)?,
                Some(b'`') => self.backtick(Quote::Text)?,
                _ => self.at += 1,
            }
        }
        Ok(())
    }
}

/// Whether the current word is `name=`, after which a parenthesis starts an array.
fn frame_is_assigned(frame: &Frame) -> bool {
    let declares = frame
        .words
        .first()
        .is_some_and(|word| DECLARATIONS.contains(&word.text()));
    frame
        .word
        .as_ref()
        .is_some_and(|word| (word.is_assignment || declares) && word.text().ends_with('='))
}
