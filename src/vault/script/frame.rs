//! The state of one list of commands while it is read.

use std::collections::HashSet;
use std::ops::Range;

use crate::vault::programs::{self, DECLARATIONS, Taker};
use crate::vault::words::{Demands, Word};

/// Words of one command that are looked at for each placeholder in it.
const MAX_WORDS: usize = 256;

/// What ends a list of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Closer {
    /// The end of the text.
    End,
    /// `)`.
    Parenthesis,
    /// `)`, and the words between are no commands.
    Array,
    /// `)` of a file pattern, in which nothing is a comment.
    Pattern,
    /// The word `}`.
    Brace,
}

/// What separates two commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Separator {
    Pipe,
    Newline,
    Other,
}

/// Where a `case` is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Case {
    Subject,
    Pattern,
    Body,
}

/// What the next word is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Argument,
    RedirectTarget,
    /// The descriptor after `>&` or `<&`, whose text bash expands once more if it is no number.
    Descriptor,
    HereString,
}

pub(super) struct HereDocument {
    pub(super) delimiter: Vec<u8>,
    pub(super) is_quoted: bool,
    pub(super) strips_tabs: bool,
    pub(super) demands: Demands,
    /// Whether the commands it feeds may print it.
    pub(super) is_printed: bool,
    /// Whether more than one command may read it.
    pub(super) is_shared: bool,
    /// Whether a shell reads it as a script, and where the words of its command stand.
    pub(super) is_script: bool,
    pub(super) words: Range<usize>,
    /// Files that its pipeline writes, and variables it is read into.
    pub(super) files: Vec<String>,
    pub(super) variables: Vec<String>,
    /// Number of its command and of its pipeline.
    pub(super) command: usize,
    pub(super) pipeline: usize,
}

/// The state of one list of commands.
pub(super) struct Frame {
    pub(super) closer: Closer,
    /// Words of the command so far, without assignments and redirections.
    pub(super) words: Vec<Word>,
    pub(super) word: Option<Word>,
    pub(super) role: Role,
    pub(super) cases: Vec<Case>,
    pub(super) documents: Vec<HereDocument>,
    pub(super) in_test: bool,
    /// Words of the command were dropped.
    pub(super) is_overlong: bool,
    /// A function's name was read; its body comes next.
    pub(super) expects_body: bool,
    /// From here to the end of the frame everything may be a function's body.
    pub(super) is_body: bool,
    /// A function's body was read; redirections that follow are a part of it.
    pub(super) follows_body: bool,
    /// A compound command ended: the next word starts another command.
    pub(super) ends_compound: bool,
    pub(super) follows_pipe: bool,
    pub(super) command: usize,
    pub(super) pipeline: usize,
    /// The first hole of the frame, the pipeline and the command.
    pub(super) first_hole: usize,
    pub(super) pipeline_hole: usize,
    pub(super) command_hole: usize,
    /// Holes in here-strings of the command.
    pub(super) input_holes: Vec<Range<usize>>,
    /// The text of these, and what the commands before a pipe print.
    pub(super) input_text: String,
    pub(super) piped_text: String,
    /// Whether a group, a loop or a function stands before the pipe.
    pub(super) pipes_many: bool,
    /// How many texts were printed before the pipeline.
    pub(super) printed_before: usize,
    /// The first hole after the operator of a regular expression.
    pub(super) pattern_hole: Option<usize>,
    /// The first hole after the last `&&` or `||` of a test.
    pub(super) clause_hole: usize,
    /// The words of that part of the test.
    pub(super) clause_text: String,
    /// What was demanded of the pipeline so far, and up to where.
    pub(super) fed_demands: Vec<(Demands, usize)>,
    /// Up to where nothing prints it.
    pub(super) hidden: usize,
    /// Files that the command writes, those it has as standard input, and those that the words
    /// before the pipe name.
    pub(super) written: Vec<String>,
    /// Those that code inside of the command writes.
    pub(super) inner_written: Vec<String>,
    pub(super) read: Vec<String>,
    pub(super) fed: Vec<String>,
    /// Where these stand.
    pub(super) read_places: Vec<Range<usize>>,
    /// Whether the redirection that is being read writes, and whether it also reads.
    pub(super) writes: bool,
    pub(super) reads_and_writes: bool,
    /// Whether the command's standard input is redirected.
    pub(super) has_input: bool,
    /// The compound commands of the frame that are open, by their keywords.
    pub(super) compounds: Vec<Compound>,
    /// What is demanded of the standard input of the command by the commands inside of it.
    pub(super) reads: Demands,
    /// The same for the whole frame: what its commands read that have no input of their own.
    pub(super) all_reads: Demands,
    /// What is demanded of what the command prints, by those it is given to.
    pub(super) sinks: Demands,
}

/// A compound command between its first and its last keyword.
pub(super) struct Compound {
    /// The holes that feed it, when it stands after a pipe.
    pub(super) feeds: Range<usize>,
    /// The first hole that may be inside.
    pub(super) first_hole: usize,
    /// What its commands demand of its standard input.
    pub(super) reads: Demands,
    pub(super) has_own_input: bool,
}

impl Frame {
    pub(super) fn new(closer: Closer, hole: usize) -> Self {
        Self {
            closer,
            words: Vec::new(),
            word: None,
            role: Role::Argument,
            cases: Vec::new(),
            documents: Vec::new(),
            in_test: false,
            is_overlong: false,
            expects_body: false,
            is_body: false,
            follows_body: false,
            ends_compound: false,
            follows_pipe: false,
            command: 0,
            pipeline: 0,
            first_hole: hole,
            pipeline_hole: hole,
            command_hole: hole,
            input_holes: Vec::new(),
            input_text: String::new(),
            piped_text: String::new(),
            pipes_many: false,
            printed_before: 0,
            pattern_hole: None,
            clause_hole: hole,
            clause_text: String::new(),
            fed_demands: Vec::new(),
            hidden: 0,
            written: Vec::new(),
            inner_written: Vec::new(),
            read: Vec::new(),
            read_places: Vec::new(),
            fed: Vec::new(),
            writes: false,
            reads_and_writes: false,
            has_input: false,
            compounds: Vec::new(),
            reads: Demands::NONE,
            all_reads: Demands::NONE,
            sinks: Demands::NONE,
        }
    }

    pub(super) fn is_command_position(&self) -> bool {
        self.words.is_empty() && self.word.is_none() && self.role == Role::Argument
    }

    /// Adds a word to the command. Of an endless one the end is kept in place.
    pub(super) fn push(&mut self, word: Word) {
        if self.words.len() >= MAX_WORDS {
            self.is_overlong = true;
            self.words.pop();
        }
        self.words.push(word);
    }

    /// Whether the words are `coproc` or `coproc NAME`, after which a compound command may come.
    pub(super) fn is_coprocess(&self) -> bool {
        matches!(self.words.as_slice(), [first] | [first, _] if first.is_plain("coproc"))
    }

    /// Whether the words are `for NAME`, whose list has not come.
    pub(super) fn is_loop_head(&self) -> bool {
        const LOOPS: &[&str] = &["for", "select", "foreach"];
        self.words.len() > 1
            && self
                .words
                .first()
                .is_some_and(|first| LOOPS.iter().any(|name| first.is_plain(name)))
            && !self.words.iter().any(|word| word.is_plain("in"))
    }

    /// Whether a word after others is a keyword: `for x do`, `coproc NAME {`.
    pub(super) fn starts_body(&self, word: &Word) -> bool {
        const COMPOUNDS: &[&str] = &[
            "{", "[[", "if", "while", "until", "for", "select", "case", "time", "!",
        ];
        self.is_loop_head() && (word.is_plain("do") || word.is_plain("{"))
            || self.is_coprocess() && COMPOUNDS.iter().any(|name| word.is_plain(name))
    }

    /// Whether the command declares variables, so that its words may be assignments.
    pub(super) fn declares(&self) -> bool {
        let first = programs::without_prefixes(&self.words).first();
        first.is_some_and(|word| DECLARATIONS.contains(&word.text()))
    }

    /// Whether the current word is `name=`, after which a parenthesis starts an array.
    pub(super) fn is_array_head(&self) -> bool {
        let word = self.word.as_ref();
        word.is_some_and(|word| {
            (word.is_assignment || self.declares()) && word.text().ends_with('=')
        })
    }

    /// Returns what gets the current word as an argument.
    pub(super) fn taker(&self, functions: &HashSet<String>) -> Option<Taker> {
        let is_argument = self.role == Role::Argument && !self.in_test;
        let is_case = matches!(self.cases.last(), Some(Case::Subject | Case::Pattern));
        if !is_argument || is_case || self.closer == Closer::Array {
            return None;
        }
        programs::argument_of(&self.words, self.word.as_ref(), |name| {
            functions.contains(name)
        })
    }

    /// What an expansion without quotes demands here: where a program is named its words are program and
    /// arguments.
    pub(super) fn program_demands(&self) -> Demands {
        let is_argument = self.role == Role::Argument && !self.in_test;
        let is_case = matches!(self.cases.last(), Some(Case::Subject | Case::Pattern));
        let is_list = matches!(self.closer, Closer::Array | Closer::Pattern);
        let empty = Word::default();
        let word = self.word.as_ref().unwrap_or(&empty);
        let is_setting =
            word.is_assignment || word.text().contains('=') || word.text().starts_with('-');
        let is_free = is_argument && !is_case && !is_list && !is_setting;
        // A function may run its first argument, `retry 3 $program`.
        let is_count =
            |word: &Word| !word.is_dynamic && word.text().bytes().all(|b| b.is_ascii_digit());
        let is_given = matches!(self.words.split_first(), Some((first, rest))
            if first.is_function && rest.iter().all(is_count));
        match is_free && (is_given || programs::names_program(&self.words)) {
            true => Demands::UNQUOTED,
            false => Demands::NONE,
        }
    }

    /// What an expansion without quotes demands here since the shell may make other words of it, which may be
    /// options, operators or a program.
    pub(super) fn split_demands(&self) -> Demands {
        let is_argument = self.role == Role::Argument && !self.in_test;
        let is_case = matches!(self.cases.last(), Some(Case::Subject | Case::Pattern));
        let is_list = matches!(self.closer, Closer::Array | Closer::Pattern);
        let empty = Word::default();
        let word = self.word.as_ref().unwrap_or(&empty);
        let declares = matches!(self.words.first(), Some(first)
            if DECLARATIONS.iter().any(|name| first.is_plain(name)));
        let is_assignment = declares && !word.is_quoted && word.text().contains('=');
        let is_free = !is_argument || is_case || is_list || word.is_assignment || is_assignment;
        match !is_free && programs::reads_words(&self.words) {
            true => Demands::WHOLE,
            false => Demands::NONE,
        }
    }

    /// The same where the words become elements of a list, which may be a command later.
    pub(super) fn list_demands(&self) -> Demands {
        let sets = matches!(self.words.first(), Some(first) if first.is_plain("set"));
        match sets || self.closer == Closer::Array {
            true => Demands::UNQUOTED,
            false => Demands::NONE,
        }
    }

    /// What is demanded of what a file holds that the current word names.
    pub(super) fn content_demands(&self) -> Demands {
        let is_argument = self.role == Role::Argument && !self.in_test;
        match is_argument {
            true => programs::argument_content(&self.words),
            false => Demands::NONE,
        }
    }

    /// Returns the words so far behind `set --`, which may be a command later.
    fn listed(&self) -> &[Word] {
        match self.words.split_first() {
            Some((set, list)) if set.is_plain("set") => match list.split_first() {
                Some((first, rest)) if first.is_plain("--") => rest,
                _ => list,
            },
            _ => &[],
        }
    }

    pub(super) fn demands(&self) -> Demands {
        let body = if self.is_body || self.expects_body || self.follows_body {
            Demands::IN_FUNCTION
        } else {
            Demands::NONE
        };
        if self.is_overlong {
            // A program that reads code may be among the words that were dropped.
            return body.and(Demands::ANY_CODE);
        }
        let empty = Word::default();
        let words = match self.role {
            Role::Argument => {
                let word = self.word.as_ref().unwrap_or(&empty);
                let list = programs::list_demands(self.listed(), word);
                programs::argument_demands(&self.words, word).and(list)
            }
            Role::RedirectTarget | Role::HereString => Demands::NONE,
            Role::Descriptor => Demands::DIGITS,
        };
        body.and(words)
    }
}
