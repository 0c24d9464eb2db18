//! Notes what a whole command gives to variables: builtins that assign, loops, and what reads an input.

use std::ops::Range;

use super::spelt::Spelt;
use super::variables::{ARGUMENTS, MAX_NAMES};
use super::{Quote, Reader};
use crate::vault::programs::{self, DECLARATIONS};
use crate::vault::words::{Demands, Word, is_name};

impl Reader<'_> {
    /// Notes what a whole command assigns.
    pub(super) fn note_assigned(&mut self, words: &[Word]) {
        let Some((first, rest)) = words.split_first() else {
            return;
        };
        let all = self.frame.command_hole..self.places.len();
        self.note_readings(first, rest);
        // `$_` is the last word.
        if self.uses_last_word {
            self.assigns("_", all.clone());
        }
        match first.text() {
            "for" | "select" | "foreach" => self.note_loop(first, rest),
            "cd" | "pushd" => {
                self.assigns("PWD", all.clone());
                self.assigns("OLDPWD", all);
                self.assigns_text("PWD", &texts(rest));
                self.assigns_text("OLDPWD", &texts(rest));
            }
            "printf" | "print" => self.note_printed(first, rest),
            "read" | "mapfile" | "readarray" => {
                let is_number = |word: &Word| self.integers.contains(word.text());
                if rest.iter().any(|word| word.is_dynamic || is_number(word)) {
                    self.is_indirect();
                }
                self.assigns_input(rest);
            }
            "let" => self.calculates_with(&texts(rest), Demands::NUMBER),
            "zparseopts" => self.calculates_with(&indexes(rest), Demands::ZSH_NUMBER),
            "getopts" => {
                self.calculates_with(&indexes(rest), Demands::NUMBER);
                let mut names = rest.iter().skip(1).map(Word::text);
                if let Some(name) = names.next() {
                    self.assigns_text(name, &texts(rest));
                }
            }
            name if first.is_function || name == "set" => {
                self.note_arguments(rest, &all);
            }
            name if DECLARATIONS.contains(&name) => self.note_declared(rest),
            "unset" => {
                for word in rest {
                    let index = word.text().split_once('[').map_or("", |(_, index)| index);
                    self.calculates_with(index, Demands::NUMBER);
                }
            }
            "nameref" => self.is_indirect(),
            _ => {
                for (name, word) in programs::settings(words) {
                    self.assigns(name, word.first_place..word.places);
                    self.note_kept_code(word);
                }
            }
        }
    }

    /// Notes what a declaration gives its variables.
    fn note_declared(&mut self, rest: &[Word]) {
        if rest.iter().any(|word| word.has_option('n')) {
            self.is_indirect();
        }
        if rest.iter().any(|word| word.text().contains('[')) {
            self.calculates_with(&texts(rest), Demands::NUMBER);
        }
        for word in rest {
            self.assigns_word(word);
            self.note_kept_code(word);
        }
    }

    /// Notes what the arguments become, of a function or by `set`.
    fn note_arguments(&mut self, words: &[Word], all: &Range<usize>) {
        self.assigns_text(ARGUMENTS, &texts(words));
        // `set -A NAME` of zsh and ksh.
        if let [option, name, list @ ..] = words
            && (option.has_option('A') || option.text().starts_with("+A"))
        {
            self.assigns_text(name.text(), &texts(list));
            self.assigns(name.text(), all.clone());
        }
        self.assigns(ARGUMENTS, all.clone());
    }

    /// Notes that a command changes how values are read.
    fn note_readings(&mut self, first: &Word, rest: &[Word]) {
        let has = |letter| rest.iter().any(|word| word.has_option(letter));
        let changes = match first.text() {
            "setopt" | "unsetopt" | "emulate" => true,
            "set" => {
                let is_other = |word: &Word| {
                    word.may_be_flags()
                        || word.text().starts_with(['-', '+'])
                            && word
                                .text()
                                .contains(|c: char| !"+-euxvnfahmBCo".contains(c))
                };
                let ends = |word: &Word| word.is_plain("--");
                let options = rest.split(ends).next().unwrap_or_default();
                programs::changes_inner(options) || options.iter().any(is_other)
            }
            name => DECLARATIONS.contains(&name) && has('T'),
        };
        if changes {
            self.changes_reading();
        }
    }

    /// Notes what a loop gives its variable.
    fn note_loop(&mut self, first: &Word, rest: &[Word]) {
        let all = self.frame.command_hole..self.places.len();
        if first.text() == "select" {
            self.variables.read.insert("REPLY".to_owned());
        }
        let Some((name, list)) = rest.split_first() else {
            return;
        };
        if !rest.iter().any(|word| word.is_plain("in")) {
            // `for x` goes over the arguments.
            let at = self.stands(ARGUMENTS.to_owned(), Quote::Double, Demands::NONE);
            self.assigns(name.text(), at..at + 1);
        }
        let list: Vec<Word> = list
            .iter()
            .filter(|word| !word.is_plain("in"))
            .cloned()
            .collect();
        self.assigns_text(name.text(), &texts(&list));
        if list.iter().any(|word| word.is_made) {
            self.spells(name.text(), Spelt::LETTERS);
        }
        self.assigns(name.text(), all);
    }

    /// Notes what is printed into a variable.
    fn note_printed(&mut self, first: &Word, rest: &[Word]) {
        let all = self.frame.command_hole..self.places.len();
        let named = rest.windows(2).find(|pair| pair[0].text() == "-v");
        let Some([_, name]) = named else {
            return;
        };
        match name.is_dynamic {
            true if first.text() == "printf" => self.is_indirect(),
            true => self.changes_reading(),
            false => {}
        }
        let (name, index) = name.text().split_once('[').unwrap_or((name.text(), ""));
        self.calculates_with(index, Demands::NUMBER);
        let text = texts(rest).replace("-v", "").replace(name, "");
        self.assigns_text(name, &without_fields(&text));
        let is_format = |word: &&Word| word.text() != "--" && word.text() != "-v";
        if let Some(format) = rest.iter().filter(is_format).nth(1) {
            self.leads(all.start, format.text());
        }
        self.assigns(name, all);
    }

    /// Notes that a command reads its input into the variables among its words.
    fn assigns_input(&mut self, words: &[Word]) {
        let mut inputs = self.frame.input_holes.clone();
        if self.frame.follows_pipe {
            inputs.push(self.frame.pipeline_hole..self.frame.command_hole);
        }
        let bare = |text| -> &str { str::split(text, ['?', '[']).next().unwrap_or_default() };
        let indexes: Vec<&str> = words
            .iter()
            .filter_map(|word| Some(word.text().split_once('[')?.1))
            .collect();
        if !indexes.is_empty() {
            self.calculates_with(&indexes.join(" "), Demands::NUMBER);
        }
        let names = words
            .iter()
            .map(Word::text)
            .map(bare)
            .filter(|text| is_name(text));
        let names: Vec<&str> = names.chain(["REPLY", "MAPFILE"]).collect();
        let text = self.frame.input_text.clone() + &self.frame.piped_text;
        for name in &names {
            self.assigns_text(name, &text);
        }
        let known: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        self.variables.read.extend(known);
        for name in &names {
            for holes in &inputs {
                self.assigns(name, holes.clone());
            }
        }
        let (command, pipeline) = (self.frame.command, self.frame.pipeline);
        let follows = self.frame.follows_pipe;
        for document in &mut self.frame.documents {
            if document.command == command || follows && document.pipeline == pipeline {
                document
                    .variables
                    .extend(names.iter().map(|name| (*name).to_owned()));
            }
        }
    }

    /// Notes that what files hold comes somewhere that are named at places.
    pub(super) fn shows_content(&mut self, places: &Range<usize>) {
        for place in self.places.get_mut(places.clone()).unwrap_or_default() {
            place.is_shown = true;
        }
    }

    /// Notes that a command reads a file, named at these places, into the variables among its words.
    pub(super) fn assigns_read(&mut self, words: &[Word], places: &Range<usize>) {
        let own = programs::without_prefixes(words);
        let reads = |word: &Word| matches!(word.text(), "read" | "mapfile" | "readarray");
        let Some((_, rest)) = own.split_first().filter(|(first, _)| reads(first)) else {
            return;
        };
        self.shows_content(places);
        for name in rest.iter().map(Word::text).chain(["REPLY", "MAPFILE"]) {
            if is_name(name) {
                self.assigns(name, places.clone());
            }
        }
    }
}

/// Returns the text that `printf` prints without its fields.
fn without_fields(text: &str) -> String {
    let mut rest = text.split('%');
    let mut whole = rest.next().unwrap_or_default().to_owned();
    for part in rest {
        let flags = part.trim_start_matches(|c: char| c.is_ascii_digit() || "-+.' ".contains(c));
        whole.push_str(flags.get(1..).unwrap_or_default());
    }
    whole
}

/// Returns what stands behind brackets in words.
fn indexes(words: &[Word]) -> String {
    let indexes = words.iter().filter_map(|word| word.text().split_once('['));
    let indexes: Vec<&str> = indexes.map(|(_, index)| index).collect();
    indexes.join(" ")
}

/// Returns the texts of words.
fn texts(words: &[Word]) -> String {
    let words = words.iter().take(MAX_NAMES).map(Word::text);
    words.collect::<Vec<_>>().join(" ")
}
