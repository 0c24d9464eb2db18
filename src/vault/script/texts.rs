//! Coarse rules over a whole script: what its texts may become where the shell calculates, looks names up or reads
//! code.
//!
//! A name may be made in a hundred ways (`${y,,}`, `tr`, `printf '\x78'`), so no text with a letter is followed to
//! the variable it may name. Where one may be calculated with, nothing that a variable holds may be code.

use std::ops::Range;

use super::files::file_key;
use super::variables::{ARGUMENTS, Hidden, canonical};
use super::{ByName, Quote, Reader, Role};
use crate::vault::programs;
use crate::vault::words::{Demands, Word, is_name};

/// What the values of all variables are called here, those with the values of placeholders among them.
const ALL: &str = "* all";

/// What a text holds that a variable is given.
#[derive(Default, Clone, Copy)]
pub(super) struct Spelt {
    /// Letters, or what the shell makes letters of.
    has_letters: bool,
    /// More than the characters that mean nothing to a shell.
    has_signs: bool,
    /// What a shell expands.
    has_expansions: bool,
}

impl Spelt {
    pub(super) const LETTERS: Self = Self {
        has_letters: true,
        has_signs: false,
        has_expansions: false,
    };

    pub(super) fn of(text: &str) -> Self {
        let makes_letters = |c: char| c.is_alphabetic() || "_\\*?[~\0".contains(c);
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./:@%+,-".contains(c);
        let text = text.trim();
        Self {
            has_letters: text.contains(makes_letters),
            has_signs: !text.chars().all(is_plain),
            has_expansions: text.contains(['$', '`', '\0']),
        }
    }

    pub(super) fn has_signs(self) -> bool {
        self.has_signs
    }

    pub(super) fn has_letters(self) -> bool {
        self.has_letters
    }

    pub(super) fn and(self, other: Self) -> Self {
        Self {
            has_letters: self.has_letters || other.has_letters,
            has_signs: self.has_signs || other.has_signs,
            has_expansions: self.has_expansions || other.has_expansions,
        }
    }
}

/// Variables whose text the shell makes of the script.
pub(super) const MADE: &[&str] = &[
    "FUNCNAME",
    "BASH_COMMAND",
    "BASH_SOURCE",
    "BASH_EXECUTION_STRING",
    "SHELLOPTS",
    "BASHOPTS",
    "DIRSTACK",
    "dirstack",
    "funcstack",
    "functrace",
    "funcfiletrace",
    "funcsourcetrace",
    "history",
    "historywords",
    "functions",
    "aliases",
    "options",
    "commands",
    "builtins",
    "parameters",
    "mapfile",
    "ZSH_SCRIPT",
    "ZSH_ARGZERO",
    "-",
];

/// Functions that the shell itself calls with the words of other commands.
const HANDLERS: &[&str] = &["command_not_found_handle", "preexec", "zshaddhistory"];

/// Whether `$_` may be meant somewhere: the underscore stands alone.
pub(super) fn names_last_word(script: &str) -> bool {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let bytes = script.as_bytes();
    memchr::memchr_iter(b'_', bytes).any(|at| {
        let before = at.checked_sub(1).and_then(|at| bytes.get(at));
        !before.is_some_and(is_word) && !bytes.get(at + 1).is_some_and(is_word)
    })
}

/// Returns a text without the expansions in it.
pub(super) fn literal_part(text: &str) -> String {
    let mut literal = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '`' => _ = chars.by_ref().find(|c| *c == '`'),
            '$' => match chars.peek() {
                Some('{' | '(' | '[') => {
                    let mut open = 0_usize;
                    _ = chars.by_ref().find(|c| {
                        match c {
                            '{' | '(' | '[' => open += 1,
                            '}' | ')' | ']' => open = open.saturating_sub(1),
                            _ => {}
                        }
                        open == 0
                    });
                }
                _ => {
                    while chars
                        .next_if(|c| c.is_ascii_alphanumeric() || *c == '_')
                        .is_some()
                    {}
                }
            },
            _ => literal.push(c),
        }
    }
    literal
}

impl Reader<'_> {
    /// Notes that the names in a text are calculated with, and what it is made of besides.
    pub(super) fn calculates_literal(&mut self, raw: Range<usize>, demands: Demands) {
        let text = self.bytes.get(raw).unwrap_or_default();
        let text = literal_part(&String::from_utf8_lossy(text));
        if text.contains('\\') {
            self.is_calculated(demands);
        }
        self.calculates_with(&text, demands);
    }

    /// Notes that a text with letters is calculated with, that may be the name of any variable.
    pub(super) fn is_calculated(&mut self, demands: Demands) {
        let hidden = &mut self.variables.hidden;
        hidden.is_calculated |= demands.calculated;
        hidden.is_calculated_in_zsh |= demands.calculated_in_zsh;
    }

    /// Notes that what shows all variables stands here.
    pub(super) fn shows_variables(&mut self, demands: Demands) {
        self.variables.shows_all = true;
        let at = self.stands(ALL.to_owned(), Quote::Text, demands);
        if let Some(place) = self.places.get_mut(at) {
            place.content = demands;
        }
    }

    /// Notes a command that shows variables, or names of them.
    pub(super) fn note_shown(&mut self, words: &[Word]) {
        let environ = |name: &String| name.contains("/environ");
        if programs::shows_variables(words) || self.frame.read.iter().any(environ) {
            self.shows_variables(self.inherited);
        }
    }

    /// Notes files that stay open while other commands run: what any of these prints may come there.
    pub(super) fn note_opened(&mut self, words: &[Word], written: &[String]) {
        let is_exec = words.iter().any(|word| word.text() == "exec");
        if is_exec || self.sinks > 0 {
            self.variables.opened.extend(written.iter().cloned());
            written.iter().for_each(|name| self.knows_file(name));
        }
    }

    /// Notes that a redirection whose target is the current word reads and writes.
    pub(super) fn note_both_ways(&mut self, word: &Word) {
        if self.frame.role == Role::RedirectTarget && self.frame.reads_and_writes {
            self.frame.written.extend(self.file_name(word));
        }
        self.frame.reads_and_writes = false;
    }

    /// Whether `${!prefix*}` with this prefix may be the names of placeholders' variables.
    pub(super) fn may_list(&self, prefix: Range<usize>) -> bool {
        const OURS: &[u8] = b"__karyi";
        let prefix = self.bytes.get(prefix).unwrap_or_default();
        self.peek(0) != Some(b'[') && (OURS.starts_with(prefix) || prefix.starts_with(OURS))
    }

    /// Returns the placeholders.
    fn all_holes(&self) -> Vec<usize> {
        let places = self.places.iter().enumerate();
        let holes = places.filter(|(_, place)| place.variable.is_none());
        let holes = holes.filter(|(_, place)| place.quote != Quote::Comment);
        holes.map(|(at, _)| at).collect()
    }

    /// Notes what any value of the script may come to.
    fn note_everything(&mut self) {
        let script = String::from_utf8_lossy(self.bytes);
        let spelt: String = script.chars().filter(|c| !"\\'\"".contains(*c)).collect();
        let is_handled = HANDLERS.iter().any(|name| spelt.contains(name));
        let runs_input = spelt.contains("NULLCMD");
        let opened = std::mem::take(&mut self.variables.opened);
        if !is_handled && !runs_input && opened.is_empty() && !self.variables.shows_all {
            return;
        }
        let holes = self.all_holes();
        if self.variables.shows_all {
            self.variables.gets(ALL, &holes);
        }
        if is_handled {
            self.variables.gets(ARGUMENTS, &holes);
        }
        let mut demands = match runs_input {
            // zsh runs it for a redirection without a command.
            true => Demands::ANY_CODE,
            false => Demands::NONE,
        };
        for name in opened {
            demands = demands.and(self.opened_file_demands(&name));
            self.variables.gets(&file_key(&name), &holes);
        }
        for at in holes {
            self.require(at..at + 1, demands);
        }
    }

    /// Variables that were declared as integers, or are so, are calculated whenever they are given a text.
    fn note_integer_variables(&mut self) {
        let known = self.variables.names().into_iter();
        let numbers = known.filter(|name| programs::assignment_demands(name).number);
        let declared = self.integers.iter().map(|name| canonical(name));
        let names: Vec<String> = numbers.chain(declared).collect();
        for name in names {
            self.level = 0;
            self.stands(name, Quote::Text, Demands::NUMBER);
        }
    }

    /// Brings all demands to where they belong; returns those of variables by name.
    pub(super) fn settled(&mut self) -> ByName {
        self.assign_inputs();
        self.note_integer_variables();
        self.note_run_files();
        self.note_everything();
        let mut hidden = self.hidden_demands();
        self.demand_of_kept(hidden);
        let mut names = self.propagate();
        loop {
            self.note_texts(&names);
            let found = self.hidden_demands();
            if found == hidden {
                return names;
            }
            hidden = found;
            self.demand_of_kept(hidden);
            names = self.propagate();
        }
    }

    /// Notes what the texts of variables mean where those stand.
    fn note_texts(&mut self, names: &ByName) {
        let mut found = self.variables.hidden;
        for (name, (demands, _)) in names {
            let spelt = self.variables.spelt(name);
            let is_local = demands.local && spelt.has_signs;
            found.is_evaluated |= is_local || demands.unquoted && spelt.has_expansions;
            found.is_calculated |= demands.calculated && spelt.has_letters;
            found.is_calculated_in_zsh |= demands.calculated_in_zsh && spelt.has_letters;
        }
        self.variables.hidden = found;
    }
}

impl Hidden {
    /// What is demanded of every value in a variable, since its way from there is not followed.
    pub(super) fn demands(self) -> Demands {
        let code = match self.is_evaluated || self.is_indirect || self.is_calculated {
            true => Demands::SHELL,
            false => Demands::NONE,
        };
        match self.is_changed || self.is_calculated_in_zsh {
            true => code.and(Demands::ZSH),
            false => code,
        }
    }
}

/// Returns a printer's word as far as it may be among what is printed: an option of one letter is not.
pub(super) fn shown_text(program: &str, word: &Word) -> bool {
    let text = word.text();
    const READERS: &[&str] = &[
        "cat", "head", "tail", "tac", "sort", "uniq", "nl", "cut", "rev", "fold", "paste",
    ];
    let is_builtin = matches!(program, "echo" | "printf" | "print");
    let is_file = READERS.contains(&program) && !text.starts_with('-');
    let letters = |text: &str| text.chars().filter(char::is_ascii_alphabetic).count();
    let is_option = text.starts_with('-') && !text.starts_with("--");
    let is_short = is_option && (letters(text) < 2 || program.ends_with("grep"));
    let without = |names: &[&str]| {
        let whole = text.to_owned();
        names
            .iter()
            .fold(whole, |text, name| text.replace(name, ""))
    };
    let is_number = match program {
        "date" => {
            let fields = ["%s", "%N", "%Y", "%m", "%d", "%H", "%M", "%S", "%j", "%u"];
            text.starts_with('+') && letters(&without(&fields)) == 0
        }
        "awk" | "gawk" | "mawk" => letters(&without(&["print", "NF", "NR", "END"])) == 0,
        "sed" => letters(&without(&["p"])) == 0 || matches!(text, "s/[^0-9]*//g" | "s/[^0-9]//g"),
        "jq" => {
            let is_path = |c: char| c.is_ascii_alphanumeric() || "._[]".contains(c);
            text.starts_with('.') && text.chars().all(is_path)
        }
        _ => false,
    };
    is_builtin || !is_short && !is_number && !is_file
}

/// Whether a command prints what it is told as it is written there.
pub(super) fn prints_exactly(words: &[Word]) -> bool {
    let own = programs::without_prefixes(words);
    let Some((first, rest)) = own.split_first() else {
        return true;
    };
    let is_literal = |word: &Word| !word.text().contains(['\\', '%']);
    match first.text() {
        "cat" | "tee" => true,
        "echo" | "print" | "printf" => rest.iter().all(|word| {
            is_literal(word) && !word.may_be_flags() && !word.is_made
                || matches!(word.text(), "%s" | "%s\\n" | "%s\n")
        }),
        _ => {
            rest.iter().all(|word| word.text().starts_with('-'))
                && !MAKERS.contains(&first.program())
        }
    }
}

/// Programs that make other text of what they read, whatever they are told.
const MAKERS: &[&str] = &[
    "base64", "base32", "xxd", "rev", "tr", "sed", "awk", "gawk", "mawk", "perl", "iconv", "od",
    "tac", "shuf", "sort", "python", "python3", "openssl", "gunzip", "zcat", "envsubst",
];

/// Stands in a text for what a program makes of it, which is not known.
pub(super) const UNKNOWN: char = '\0';

/// Returns the names of the files that a command may write other than by a redirection.
pub(super) fn written_names(words: &[Word]) -> Vec<String> {
    const WRITERS: &[&str] = &[
        "sponge", "sort", "split", "csplit", "uniq", "xxd", "iconv", "openssl", "gpg", "uudecode",
        "sed", "awk", "gawk", "mawk", "base64", "perl", "ruby",
    ];
    let Some(at) = words
        .iter()
        .position(|word| WRITERS.contains(&word.program()))
    else {
        return Vec::new();
    };
    let is_end = |c: char| c.is_whitespace() || ";&|()<>\"'`{}$=,".contains(c);
    let words = words.iter().skip(at + 1).take(MAX_WORDS);
    let names = words.flat_map(|word| word.text().split(is_end));
    let names = names.filter(|name| !name.is_empty());
    names.take(MAX_WORDS).map(str::to_owned).collect()
}

/// Words of one command that are looked at.
const MAX_WORDS: usize = 32;

/// Returns what a word assigns, without the name and the index.
pub(super) fn assigned_text(word: &Word) -> &str {
    let text = word.text();
    let Some((before, value)) = text.split_once('=') else {
        return "";
    };
    let name = before.split(['[', '+']).next().unwrap_or_default();
    if is_name(name) { value } else { text }
}
