//! Finds out in which context of a shell script each placeholder stands.
//!
//! This is a reader of bash and zsh that knows quotes, expansions, here-documents, comments and
//! the words of simple commands, and no more. The values never join the script, so that a wrong
//! guess about a quote costs a wrong word; where a value would be read as code or calculated with,
//! the reader errs on the side of demanding more of it.

mod assigned;
mod commands;
mod continuations;
mod endings;
mod expressions;
mod files;
mod frame;
mod groups;
mod inner;
mod leads;
mod lists;
mod output;
mod quotes;
mod redirections;
mod spelt;
mod texts;
mod variables;
mod written;

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use files::Files;
use frame::{Case, Closer, Compound, Frame, HereDocument, Role, Separator};
use leads::Lead;
use variables::Variables;

use super::programs::{self, Taker};
use super::words::{Demands, Word};
use crate::limits;

/// A stretch of the script that is replaced: a placeholder or an escaped one, in bytes.
pub(in crate::vault) type Hole = Range<usize>;

/// How the text around a hole is quoted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::vault) enum Quote {
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::vault) struct Place {
    pub(in crate::vault) quote: Quote,
    pub(in crate::vault) demands: Demands,
    /// What is demanded of the value when it stands in a file that is named here.
    pub(in crate::vault) content: Demands,
    /// Inside backticks, whose text loses a layer of backslashes.
    pub(in crate::vault) in_backticks: bool,
    /// Inside `${...}`, where a brace cannot be quoted in every shell.
    pub(in crate::vault) in_parameter: bool,
    /// What it is a part of an argument of.
    pub(in crate::vault) taker: Option<Taker>,
    /// How many substitutions around it pass it on: what their commands print may hold it.
    level: usize,
    /// Whether the command it stands in may print it.
    is_printed: bool,
    /// Whether what stands here is parted at the characters of `IFS`.
    is_split: bool,
    /// Whether other text is put into what stands here.
    is_changed: bool,
    /// Whether a part of what stands here is used.
    is_piece: bool,
    /// Whether what a file holds stands here whose name is written: `$(cat FILE)`.
    is_shown: bool,
    /// Whether zsh would expand the sign before it, `=` or `~`, unless that is quoted.
    pub(in crate::vault) follows_sign: bool,
    /// What stands before it in its word.
    lead: Lead,
    /// The variable that stands here, which is no placeholder.
    variable: Option<String>,
}

/// A script that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::vault) struct Unreadable {
    /// Where, in bytes.
    pub(in crate::vault) offset: usize,
    /// What is wrong there.
    pub(in crate::vault) why: &'static str,
}

type Step<T = ()> = Result<T, Unreadable>;

pub(in crate::vault) use quotes::AFTER_BACKSLASH;
pub(in crate::vault) use texts::ARITHMETIC;

/// What is demanded of variables, each by its name: of their values, and of what the files hold that they name.
type ByName = HashMap<String, (Demands, Demands)>;

/// Returns the place of every hole. The holes are in order and do not overlap.
pub(in crate::vault) fn places(script: &str, holes: &[Hole]) -> Step<Vec<Place>> {
    read(Reader::new(script, holes))
}

/// The same for a script that only zsh can read: there a brace closes a group wherever it stands.
pub(in crate::vault) fn places_in_zsh(script: &str, holes: &[Hole]) -> Step<Vec<Place>> {
    read(Reader {
        is_zsh: true,
        ..Reader::new(script, holes)
    })
}

fn read(mut reader: Reader<'_>) -> Step<Vec<Place>> {
    reader.commands(Closer::End)?;
    match reader.holes.get(reader.passed) {
        None => Ok(reader.resolved()),
        Some(missed) => Err(Unreadable {
            offset: missed.start,
            why: "a placeholder stands in a construct that is not understood",
        }),
    }
}

/// Returns what the commands of a script demand of its standard input, if it can be read.
pub(in crate::vault) fn reads(script: &str) -> Option<Demands> {
    let mut reader = Reader::new(script, &[]);
    reader.commands(Closer::End).ok()?;
    Some(reader.frame.reads)
}

/// Returns what a script demands of its arguments, and of what files hold that they name, if it can be read.
pub(in crate::vault) fn argument_demands(script: &str) -> Option<(Demands, Demands)> {
    let mut reader = Reader::new(script, &[]);
    reader.commands(Closer::End).ok()?;
    Some(reader.arguments())
}

/// Returns what a script demands of each variable, by value and by what a file of that name holds; nothing when
/// that cannot be said.
fn variable_demands(script: &str) -> Option<ByName> {
    let mut reader = Reader::new(script, &[]);
    reader.commands(Closer::End).ok()?;
    reader.names()
}

/// What a script of another shell demands of what it is given, the files it writes, and those it reads as code.
struct Inner {
    /// Of each variable that it inherits.
    names: ByName,
    /// Of all of them.
    hidden: Demands,
    /// Of its arguments, and of what files hold that they name.
    arguments: (Demands, Demands),
    writes: Vec<String>,
    reads: Vec<String>,
}

/// Reads a script of another shell, that stands in so many others, as bash or zsh does; nothing if it cannot be read.
fn inner_demands(script: &str, inner: usize, is_zsh: bool) -> Option<Inner> {
    let mut reader = Reader {
        inner,
        is_zsh,
        ..Reader::new(script, &[])
    };
    reader.commands(Closer::End).ok()?;
    Some(reader.inherited())
}

const IN_FLAGS: Demands = Demands::forbidden("after # in a file pattern");

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Where the text that is being read ends.
    limit: usize,
    holes: &'a [Hole],
    /// One for each hole passed, and for each variable.
    places: Vec<Place>,
    /// How many holes were passed.
    passed: usize,
    /// What the script assigns to its variables.
    variables: Variables,
    /// What the constructs around the current list of commands demand; and around the expansion in braces that is read.
    inherited: Demands,
    around_braces: Option<Demands>,
    frame: Frame,
    depth: usize,
    backticks: usize,
    parameters: usize,
    /// How many substitutions stand around.
    level: usize,
    /// Whether braces are those of zsh.
    is_zsh: bool,
    /// Variables the script declares as integers.
    integers: HashSet<String>,
    /// Variables the script declares as names of others.
    namerefs: HashSet<String>,
    /// Words the script defines as aliases; the empty one stands for names that are not known.
    aliases: HashSet<String>,
    /// Whether an alias declares what its words name.
    declares_by_alias: bool,
    /// Files that the script writes and has read as code.
    files: Files,
    /// Functions the script defines.
    functions: HashSet<String>,
    /// A program that gets arguments of a function as its own, `f() { curl "$1"; }`.
    passed_on: Option<Taker>,
    /// What is demanded of their standard input, of all of them together.
    function_reads: Demands,
    /// The last index without braces, `$name[...]`, in bytes.
    subscript: Range<usize>,
    /// Whether `echo` was told to read backslashes.
    reads_escapes: bool,
    /// What is demanded of everything that follows.
    later: Demands,
    /// Whether `$_` may stand somewhere.
    uses_last_word: bool,
    /// Texts that the commands of substitutions may print.
    printed: Vec<String>,
    /// How many process substitutions stand around whose output is an input.
    listening: usize,
    /// How many process substitutions that are written to.
    sinks: usize,
    /// How many scripts stand around that are read by other shells.
    inner: usize,
    /// Where the heads of its functions stand.
    heads: HashSet<usize>,
    /// Shells whose script is an input from around them, by the places of their words.
    fed_shells: Vec<Range<usize>>,
    /// Commands whose names say nothing, and their places: text that is read as code may define functions.
    called: Vec<(String, Range<usize>)>,
}

impl<'a> Reader<'a> {
    fn new(script: &'a str, holes: &'a [Hole]) -> Self {
        Self {
            bytes: script.as_bytes(),
            at: 0,
            limit: script.len(),
            holes,
            places: Vec::with_capacity(holes.len()),
            passed: 0,
            variables: Variables::default(),
            inherited: Demands::NONE,
            around_braces: None,
            frame: Frame::new(Closer::End, 0),
            depth: 0,
            backticks: 0,
            parameters: 0,
            level: 0,
            is_zsh: false,
            files: Files::default(),
            integers: HashSet::new(),
            namerefs: HashSet::new(),
            aliases: HashSet::new(),
            declares_by_alias: false,
            functions: HashSet::new(),
            passed_on: None,
            function_reads: Demands::NONE,
            later: Demands::NONE,
            uses_last_word: spelt::names_last_word(script),
            reads_escapes: false,
            subscript: 0..0,
            printed: Vec::new(),
            listening: 0,
            sinks: 0,
            inner: 0,
            heads: HashSet::new(),
            fed_shells: Vec::new(),
            called: Vec::new(),
        }
    }
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
            .get(self.passed)
            .is_some_and(|hole| hole.start == offset)
    }

    /// Whether a placeholder is among the places from the first one on.
    fn has_hole(&self, first: usize) -> bool {
        let places = self.places.get(first..).unwrap_or_default();
        places.iter().any(|place| place.variable.is_none())
    }

    fn unreadable<T>(&self, why: &'static str) -> Step<T> {
        Err(Unreadable {
            offset: self.at,
            why,
        })
    }

    fn word(&mut self) -> &mut Word {
        if self.frame.word.is_none() {
            self.start_word();
        }
        let (start, first_place) = (self.at, self.places.len());
        self.frame.word.get_or_insert_with(|| Word {
            span: (start, start),
            first_place,
            ..Word::default()
        })
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
        let Some(hole) = self.holes.get(self.passed) else {
            return;
        };
        let around = self.inherited.and(self.frame.demands()).and(self.later);
        let mut demands = around
            .and(self.range_demands(quote, hole))
            .and(self.assignment_demands())
            .and(demands);
        let word = self.frame.word.as_ref();
        if word.is_some_and(|word| word.has_flags) && quote != Quote::Comment {
            demands = demands.and(IN_FLAGS);
        }
        if demands.echo && self.reads_escapes {
            demands = demands.and(Demands::FORMAT);
        }
        let around = self.around_braces.unwrap_or(self.inherited);
        let mut content = around.and(self.frame.content_demands());
        if word
            .is_some_and(|word| programs::opens_file(word.text()) || programs::names_loaded(word))
        {
            content = content.and(Demands::ANY_CODE);
        }
        if self.subscript.contains(&hole.start) && quote != Quote::Comment {
            demands = demands.and(Demands::NUMBER);
        }
        if self.parameters > 0 && matches!(quote, Quote::Single | Quote::Dollar) {
            // Shells disagree about such quotes, and some with themselves: bash finds another pattern
            // when an empty pair of them stands beside a reference.
            demands = demands.and(Demands::forbidden(
                "in single quotes inside of an expansion",
            ));
        }
        let follows_sign = quote == Quote::Bare && self.follows_sign(hole.start);
        let taker = self.frame.taker(&self.functions);
        let taker = taker.filter(|_| quote != Quote::Comment);
        let lead = self.lead(hole.start, 0);
        self.places.push(Place {
            quote,
            demands,
            content,
            taker,
            in_backticks: self.backticks > 0,
            in_parameter: self.parameters > 0,
            level: self.level,
            is_printed: true,
            is_split: false,
            is_changed: false,
            is_piece: false,
            is_shown: false,
            follows_sign,
            lead,
            variable: None,
        });
        self.passed += 1;
        if let Some(word) = &mut self.frame.word {
            word.expands();
        }
        self.at = hole.end;
    }

    /// Whether zsh expands the sign right before an offset: `=` at the start of a word is the path of a program, `~`
    /// somebody's home.
    fn follows_sign(&self, offset: usize) -> bool {
        let before = |back: usize| offset.checked_sub(back).and_then(|at| self.bytes.get(at));
        let Some(word) = self.frame.word.as_ref().filter(|word| !word.is_dynamic) else {
            return false;
        };
        let text = word.text();
        match before(1) {
            _ if before(2) == Some(&b'\\') => false,
            Some(b'~') => true,
            Some(b'=') if self.frame.in_test => false,
            Some(b'=') if text == "=" => {
                before(2).is_none_or(|byte| byte.is_ascii_whitespace() || b"(<>|&;".contains(byte))
            }
            Some(b'=') => text.ends_with("==") || text.ends_with(":="),
            _ => false,
        }
    }

    /// What a range of numbers in braces demands: some shells make as many words as a value says.
    fn range_demands(&self, quote: Quote, hole: &Hole) -> Demands {
        let is_range = self.frame.word.as_ref().is_some_and(|word| {
            let is_followed = || self.joined(hole.end).take(2).eq(*b"..");
            word.text().contains('{') && (word.text().contains("..") || is_followed())
        });
        if is_range && quote != Quote::Comment {
            Demands::forbidden("in a range in braces")
        } else {
            Demands::NONE
        }
    }

    /// What the variable demands that the current word assigns to.
    fn assignment_demands(&self) -> Demands {
        let Some(word) = &self.frame.word else {
            return Demands::NONE;
        };
        let name = word
            .text()
            .split(['=', '+', '['])
            .next()
            .unwrap_or_default();
        let is_assignment = word.is_assignment || self.frame.declares();
        match is_assignment {
            false => programs::setting_demands(&self.frame.words, word),
            true => self.variable_demands(name, true),
        }
    }

    /// Demands more of holes that were passed already. What is calculated with is what they stand
    /// for here, or what a substitution prints of them.
    fn require(&mut self, holes: Range<usize>, demands: Demands) {
        if demands == Demands::NONE {
            return;
        }
        let level = self.level;
        let printed = demands.uncalculated();
        for place in self.places.get_mut(holes).unwrap_or_default() {
            let is_here = place.level <= level;
            let demands = if is_here { demands } else { printed };
            place.demands = place.demands.and(demands);
            place.content = place.content.and(demands);
        }
    }

    /// Demands something of what a substitution prints whose places these are.
    fn require_printed(&mut self, first: usize, demands: Demands) {
        let level = self.level;
        let places = self.places.get_mut(first..).unwrap_or_default().iter_mut();
        for place in places.filter(|place| place.level <= level) {
            place.demands = place.demands.and(demands);
            place.content = place.content.and(demands);
        }
    }

    /// Demands something of what stands in files that are named at places.
    fn require_content(&mut self, places: Range<usize>, demands: Demands) {
        for place in self.places.get_mut(places).unwrap_or_default() {
            place.content = place.content.and(demands);
        }
    }

    /// Reads the commands of a substitution: the shell may calculate with what they print, and
    /// not with what they are told.
    fn substitution(&mut self, demands: Demands, read: impl FnOnce(&mut Self) -> Step) -> Step {
        let first = self.places.len();
        let around = self.inherited.and(self.frame.demands());
        let around = around.and(self.assignment_demands());
        let number = Demands::NUMBER.only(around);
        let is_number = number.number;
        // `$(echo ...)` without quotes may be a program and its arguments.
        let is_bare = self.frame.word.as_ref().is_some_and(|word| word.is_split);
        let program = match is_bare {
            true => self.frame.program_demands(),
            false => Demands::NONE,
        };
        self.level += 1;
        let printed = self.printed.len();
        let result = self.nested(demands, |reader| {
            reader.inherited = reader.inherited.uncalculated();
            read(reader)
        });
        self.level -= 1;
        let level = self.level;
        self.note_substituted(printed, number);
        for place in self.places.get_mut(first..).unwrap_or_default() {
            place.is_split |= is_bare;
            if place.level == level + 1 {
                place.level -= usize::from(place.is_printed);
                place.is_shown |= place.is_printed;
                place.is_printed = true;
            }
        }
        if is_number {
            self.require(first..self.places.len(), number);
        }
        self.require(first..self.places.len(), program);
        let pieces = match around.operand {
            true => Demands::SHELL,
            false => Demands::NONE,
        };
        let split = match is_bare {
            true => self.frame.split_demands(),
            false => Demands::NONE,
        };
        self.require_printed(first, pieces.and(split));
        result
    }

    /// Reads what is nested inside of the current word, which passes on what it demands.
    fn nested<T>(&mut self, demands: Demands, read: impl FnOnce(&mut Self) -> Step<T>) -> Step<T> {
        if self.depth >= limits::MAX_SCRIPT_DEPTH {
            return self.unreadable("quotes and substitutions are nested too deep");
        }
        let before = self.inherited;
        let around = before.and(self.frame.demands());
        self.inherited = around.and(self.assignment_demands()).and(demands);
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        self.inherited = before;
        result
    }
}

#[cfg(test)]
mod tests;
