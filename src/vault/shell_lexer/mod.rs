//! Reads shell scripts: the quoting around each placeholder, and the simple commands.
//!
//! One reader serves bash and zsh. It knows quotes, expansions, here-documents, comments and word
//! boundaries, and follows nothing: no variable, no file, no pipe. Values never join a script, so
//! a wrong guess about a quote costs a wrong word and runs nothing.

mod command;
mod commands;
mod expansion;
mod heredoc;
mod list;
mod quotes;

use std::ops::Range;

pub use command::{Assignment, Redirection, SimpleCommand, Word};
pub(in crate::vault) use command::{is_declaration, is_modifier};

use crate::limits;
use list::{Closer, List};

/// Part of a script, in bytes.
pub type Span = Range<usize>;

/// Quoting of the text around a placeholder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quoting {
    /// None: the shell makes words of what stands here.
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Site {
    /// A word, by the indices of its command and of the word.
    Word(usize, usize),
    /// A here-document or here-string, by the index of its command.
    Input(usize),
    /// Anything else: an assignment, a redirection, a comment.
    Other,
}

/// Place of one placeholder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// Quoting around it.
    pub quoting: Quoting,
    /// Part of the command.
    pub site: Site,
    /// Whether the shell calculates with it.
    pub is_number: bool,
    /// Whether it stands in backticks, which take one layer of backslashes away.
    pub in_backticks: bool,
    /// Whether it stands in `${...}`.
    pub in_braces: bool,
    /// Whether zsh would expand the unquoted `=` or `~` right before it.
    pub follows_sign: bool,
    /// The reason why no value can stand here.
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

/// A script that was read.
#[derive(Debug, Default)]
pub struct Script {
    /// Places of the placeholders, in the order in which they were given.
    pub placements: Vec<Placement>,
    /// Commands, in the order of their first words.
    pub commands: Vec<SimpleCommand>,
    /// Quoted here-documents that hold placeholders.
    pub documents: Vec<QuotedDocument>,
    /// Names of the functions that it defines.
    pub functions: Vec<String>,
}

impl Script {
    /// Returns the simple commands; keywords such as `for` and `[[` are none.
    pub fn simple_commands(&self) -> impl Iterator<Item = &SimpleCommand> {
        self.commands.iter().filter(|command| command.is_simple())
    }
}

/// Error of a script that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unreadable {
    /// Offset of the problem, in bytes.
    pub offset: usize,
    /// The problem.
    pub why: &'static str,
}

type Step<T = ()> = Result<T, Unreadable>;

/// The problem of a backslash right before a placeholder.
pub const AFTER_BACKSLASH: &str = "a backslash stands before a placeholder";

/// Reads a script. The placeholders are in order and do not overlap.
///
/// # Errors
/// Unbalanced quotes and parentheses, a placeholder behind a backslash or in the place of a name, constructs
/// that bash and zsh read differently, and nesting deeper than [`limits::MAX_SCRIPT_DEPTH`].
pub fn read(script: &str, placeholders: &[Span]) -> Step<Script> {
    let mut lexer = Lexer::new(script, placeholders);
    lexer.read_list()?;
    let mut read = lexer.script;
    read_own_code(script, placeholders, &mut read);
    Ok(read)
}

/// Reads the single-quoted texts of `trap`, `alias` and `eval`, which this same shell runs: placeholders in them
/// have the quoting of that text, and its commands are listed.
fn read_own_code(script: &str, placeholders: &[Span], read: &mut Script) {
    let mut at = 0;
    while let Some(command) = read.commands.get(at) {
        at += 1;
        let depth = command.depth + 1;
        for code in command.own_code() {
            let first = placeholders.partition_point(|hole| hole.start < code.start);
            let mut lexer = Lexer::new(script, placeholders);
            (lexer.at, lexer.limit, lexer.depth) = (code.start, code.end, depth);
            (lexer.next, lexer.first_command) = (first, read.commands.len());
            // Text that is no whole script stays a word in quotes.
            if lexer.read_list().is_ok() {
                read.take(lexer.script, first);
            }
        }
    }
}

impl Script {
    /// Takes over a script that was read in a part of this one, from the placeholder `first` on.
    fn take(&mut self, part: Script, first: usize) {
        let places = self.placements.iter_mut().skip(first);
        for (place, inner) in places.zip(part.placements) {
            *place = inner;
        }
        self.commands.extend(part.commands);
        self.documents.extend(part.documents);
        self.functions.extend(part.functions);
    }
}

/// State of reading.
struct Lexer<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    /// End of the text that is read.
    limit: usize,
    placeholders: &'a [Span],
    /// Index of the next placeholder.
    next: usize,
    script: Script,
    /// Index of the first command that this lexer adds.
    first_command: usize,
    list: List,
    /// Substitutions and subshells around this place.
    depth: usize,
    /// Constructs around this place, each of which is a level of recursion.
    levels: usize,
    backticks: usize,
    braces: usize,
    /// Whether the shell calculates with what stands here.
    is_number: bool,
    /// The reason why no value can stand here.
    refusal: Option<&'static str>,
}

impl<'a> Lexer<'a> {
    fn new(text: &'a str, placeholders: &'a [Span]) -> Self {
        Self {
            text,
            bytes: text.as_bytes(),
            at: 0,
            limit: text.len(),
            placeholders,
            next: 0,
            script: Script::default(),
            first_command: 0,
            list: List::default(),
            depth: 0,
            levels: 0,
            backticks: 0,
            braces: 0,
            is_number: false,
            refusal: None,
        }
    }

    /// Reads all commands up to the limit.
    fn read_list(&mut self) -> Step {
        self.commands(Closer::End)?;
        match self.placeholders.get(self.next) {
            Some(missed) if missed.start < self.limit => Err(Unreadable {
                offset: missed.start,
                why: "a placeholder stands in a construct that is not understood",
            }),
            _ => Ok(()),
        }
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        let at = self.at + ahead;
        (at < self.limit).then(|| self.bytes.get(at).copied())?
    }

    fn starts_with(&self, text: &[u8]) -> bool {
        let rest = self.bytes.get(self.at..self.limit).unwrap_or_default();
        rest.starts_with(text)
    }

    fn text_of(&self, span: Span) -> &'a str {
        self.text.get(span).unwrap_or_default()
    }

    /// Returns the offset of the next placeholder, or of the limit.
    fn next_placeholder(&self) -> usize {
        let next = self.placeholders.get(self.next);
        next.map_or(self.limit, |span| span.start.min(self.limit))
    }

    fn at_placeholder(&self, ahead: usize) -> bool {
        let next = self.placeholders.get(self.next);
        next.is_some_and(|span| span.start == self.at + ahead)
    }

    fn fail<T>(&self, why: &'static str) -> Step<T> {
        Err(Unreadable {
            offset: self.at.min(self.bytes.len()),
            why,
        })
    }

    /// Notes the place of the placeholder that starts here, and passes it.
    fn placeholder(&mut self, quoting: Quoting) {
        let Some(span) = self.placeholders.get(self.next).cloned() else {
            return;
        };
        let placement = Placement {
            quoting,
            site: match quoting {
                Quoting::Comment => Site::Other,
                _ => self.list.site(),
            },
            is_number: self.is_number || self.list.is_descriptor(),
            in_backticks: self.backticks > 0,
            in_braces: self.braces > 0,
            follows_sign: quoting == Quoting::Bare && self.list.follows_sign(),
            refusal: self.refusal,
        };
        self.script.placements.push(placement);
        self.next += 1;
        self.list.add_text(self.text_of(span.clone()), false);
        self.at = span.end;
    }

    /// Reads something one level deeper.
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
