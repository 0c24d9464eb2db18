//! Lexer for shell scripts: finds the quoting around each placeholder, and the simple commands.
//!
//! One lexer serves bash and zsh. It handles quotes, expansions, here-documents, comments and word boundaries, and
//! evaluates nothing: no variable, file or pipe. Values never become part of a script, so a wrong guess about a quote
//! yields a wrong word and runs no code.

mod command;
mod commands;
mod heredoc;
mod list;
mod text;

use std::ops::Range;

pub use command::{Assignment, Redirection, SimpleCommand, Word};
pub(crate) use command::{is_declaration, is_modifier};

use karyi_core::limits;
use list::{Closer, List};

/// Part of a script, in bytes.
pub type Span = Range<usize>;

/// Quoting of the text around a placeholder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Quoting {
    /// None: the shell splits the text into words.
    #[default]
    Bare,
    /// Double quotes.
    Double,
    /// Single quotes.
    Single,
    /// `$'...'`.
    Dollar,
    /// The body of a here-document with expansions, or an arithmetic expression.
    Text,
    /// The body of a here-document whose delimiter is quoted.
    Literal,
    /// A comment.
    Comment,
}

/// Part of a command that holds a placeholder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Site {
    /// A word, by the indices of its command and of the word.
    Word(usize, usize),
    /// A here-document or here-string, by the index of its command.
    Input(usize),
    /// Anything else: an assignment, a redirection, a comment.
    #[default]
    Other,
}

/// Context of one placeholder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Placement {
    /// Quoting around it.
    pub quoting: Quoting,
    /// Part of the command.
    pub site: Site,
    /// True when the shell evaluates it as a number.
    pub is_number: bool,
    /// True when it is in backticks, which remove one layer of backslashes.
    pub in_backticks: bool,
    /// True when it is in `${...}`.
    pub in_braces: bool,
    /// True when zsh would expand the unquoted `=` or `~` right before it.
    pub follows_sign: bool,
    /// Reason why no value is permitted here.
    pub refusal: Option<&'static str>,
}

/// Here-document with a quoted delimiter and a placeholder in its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuotedDocument {
    /// The delimiter after `<<`, with its quotes.
    pub delimiter: Span,
    /// The lines up to the one that ends it.
    pub body: Span,
    /// The delimiter in the line that ends it; empty when the script ends first.
    pub end: Span,
}

/// Parsed script.
#[derive(Debug, Default)]
pub struct Script {
    /// Contexts of the placeholders, in their order.
    pub placements: Vec<Placement>,
    /// Commands, in the order of their first words.
    pub commands: Vec<SimpleCommand>,
    /// Quoted here-documents that hold placeholders.
    pub documents: Vec<QuotedDocument>,
    /// Names of functions that it defines.
    pub functions: Vec<String>,
    /// Expansions that may run code which is not listed, or set a variable: calculations with variables, references to
    /// variables by name, and assignments in an expansion.
    pub doubts: Vec<Span>,
}

impl Script {
    /// Returns the simple commands, without keywords such as `for` and `[[`.
    pub fn simple_commands(&self) -> impl Iterator<Item = &SimpleCommand> {
        self.commands.iter().filter(|command| command.is_simple())
    }
}

/// Error of a script that cannot be parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScriptError {
    /// Byte offset of the problem.
    pub offset: usize,
    /// Description of the problem.
    pub why: &'static str,
}

type Step<T = ()> = Result<T, ScriptError>;

/// Problem of a backslash right before a placeholder.
pub const AFTER_BACKSLASH: &str = "a backslash stands before a placeholder";

/// Parses a script. The placeholders are in order and do not overlap.
///
/// # Errors
/// Unbalanced quotes and parentheses, a placeholder after a backslash or in place of a name, constructs that bash and
/// zsh parse differently, and nesting deeper than [`limits::MAX_SCRIPT_DEPTH`].
pub fn read(script: &str, placeholders: &[Span]) -> Step<Script> {
    let mut lexer = Lexer::new(script, placeholders);
    lexer.read_all()?;
    let mut at = 0;
    while let Some(command) = lexer.script.commands.get(at) {
        let depth = command.depth + 1;
        for code in command.own_code() {
            lexer = lexer.read_own_code(code, depth);
        }
        at += 1;
    }
    Ok(lexer.script)
}

const NOT_UNDERSTOOD: &str = "a placeholder stands in a construct that is not understood";

/// State of the lexer.
#[derive(Default)]
struct Lexer<'a> {
    text: &'a str,
    at: usize,
    /// End of the text to read.
    limit: usize,
    placeholders: &'a [Span],
    /// Index of the next placeholder.
    next: usize,
    script: Script,
    list: List,
    /// Number of substitutions and subshells around the position.
    depth: usize,
    /// Number of constructs around the position, each a level of recursion.
    levels: usize,
    /// Context of a placeholder at the position.
    place: Placement,
    /// Offset before which no index contains a placeholder.
    no_index: usize,
}

impl<'a> Lexer<'a> {
    fn new(text: &'a str, placeholders: &'a [Span]) -> Self {
        let limit = text.len();
        Self {
            text,
            limit,
            placeholders,
            ..Self::default()
        }
    }

    /// Parses all commands up to the limit.
    fn read_all(&mut self) -> Step {
        self.commands(Closer::End)?;
        if self.next_placeholder() < self.limit {
            self.at = self.next_placeholder();
            return self.fail(NOT_UNDERSTOOD);
        }
        Ok(())
    }

    /// Parses the single-quoted code of `trap`, `alias` or `eval`, which the current shell runs: its placeholders get
    /// the quoting inside that code, and its commands are listed. Text that is no complete script stays a quoted word.
    fn read_own_code(mut self, code: Span, depth: usize) -> Self {
        let first = self
            .placeholders
            .partition_point(|span| span.start < code.start);
        let last = self
            .placeholders
            .partition_point(|span| span.start < code.end);
        let script = &mut self.script;
        let places = script.placements[first..last].to_vec();
        let lengths = (
            script.commands.len(),
            script.documents.len(),
            script.functions.len(),
            script.doubts.len(),
        );
        let mut lexer = Lexer {
            at: code.start,
            limit: code.end,
            next: first,
            depth,
            script: std::mem::take(script),
            ..Lexer::new(self.text, self.placeholders)
        };
        if lexer.read_all().is_err() {
            lexer.script.placements.splice(first..last, places);
            lexer.script.commands.truncate(lengths.0);
            lexer.script.documents.truncate(lengths.1);
            lexer.script.functions.truncate(lengths.2);
            lexer.script.doubts.truncate(lengths.3);
        }
        lexer
    }

    /// Returns the text from the position on.
    fn rest(&self) -> &'a [u8] {
        let bytes = self.text.as_bytes();
        bytes.get(self.at..self.limit).unwrap_or_default()
    }

    /// Returns the text up to the next placeholder.
    fn before_placeholder(&self) -> &'a [u8] {
        let bytes = self.text.as_bytes();
        bytes
            .get(self.at..self.next_placeholder())
            .unwrap_or_default()
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.rest().get(ahead).copied()
    }

    fn text_of(&self, span: Span) -> &'a str {
        self.text.get(span).unwrap_or_default()
    }

    /// Returns the offset of the next placeholder, or of the limit.
    fn next_placeholder(&self) -> usize {
        let next = self.placeholders.get(self.next);
        next.map_or(self.limit, |span| span.start.min(self.limit))
    }

    /// Fails when the lexer has consumed a part of a placeholder.
    fn check_passed(&self) -> Step {
        match self.placeholders.get(self.next) {
            Some(span) if span.start < self.at => self.fail(NOT_UNDERSTOOD),
            _ => Ok(()),
        }
    }

    fn at_placeholder(&self, ahead: usize) -> bool {
        let next = self.placeholders.get(self.next);
        next.is_some_and(|span| span.start == self.at + ahead)
    }

    fn fail<T>(&self, why: &'static str) -> Step<T> {
        let offset = self.at.min(self.text.len());
        Err(ScriptError { offset, why })
    }

    /// Records the context of the placeholder at the position, and skips it.
    fn placeholder(&mut self, quoting: Quoting) {
        let Some(span) = self.placeholders.get(self.next).cloned() else {
            return;
        };
        let mut place = self.place;
        place.quoting = quoting;
        if quoting != Quoting::Comment {
            place.site = self.list.site();
        }
        place.is_number |= self.list.is_descriptor();
        place.follows_sign = quoting == Quoting::Bare && self.list.follows_sign();
        match self.script.placements.get_mut(self.next) {
            Some(known) => *known = place,
            None => self.script.placements.push(place),
        }
        self.next += 1;
        self.at = span.end;
        self.list.add_text(self.text_of(span), false);
    }

    /// Records all placeholders up to an offset.
    fn placeholders(&mut self, end: usize, quoting: Quoting) {
        while self.next_placeholder() < end {
            let text = self.text_of(self.at..self.next_placeholder());
            self.list.add_text(text, true);
            self.at = self.next_placeholder();
            self.placeholder(quoting);
        }
        self.list.add_text(self.text_of(self.at..end), true);
        self.at = end;
    }

    /// Parses something one level deeper.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Step<T>) -> Step<T> {
        if self.levels >= limits::MAX_SCRIPT_DEPTH {
            return self.fail("quotes and substitutions are nested too deeply");
        }
        self.levels += 1;
        let result = read(self);
        self.levels -= 1;
        result
    }
}

#[cfg(test)]
mod tests;
