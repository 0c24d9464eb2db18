//! Coarse rules over a whole script: what its texts may become where the shell calculates, looks names up or reads
//! code.
//!
//! A name may be made in a hundred ways (`${y,,}`, `tr`, `printf '\x78'`), so no text with a letter is followed to
//! the variable it may name. Where one may be calculated with, nothing that a variable holds may be code.

use std::ops::Range;

use super::files::file_key;
use super::spelt::literal_part;
use super::variables::{ARGUMENTS, Hidden, canonical};
use super::{ByName, Quote, Reader, Role};
use crate::vault::programs;
use crate::vault::words::{Demands, Word};

/// What the values of all variables are called here, those with the values of placeholders among them.
const ALL: &str = "* all";

/// Functions that the shell itself calls with the words of other commands.
const HANDLERS: &[&str] = &["command_not_found_handle", "preexec", "zshaddhistory"];

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

    /// Returns the placeholders; in code of another shell any variable may hold a value.
    fn all_holes(&self) -> Vec<usize> {
        let places = self.places.iter().enumerate();
        let is_any = self.holes.is_empty();
        let holes = places.filter(|(_, place)| place.variable.is_none() || is_any);
        let holes = holes.filter(|(_, place)| place.quote != Quote::Comment);
        holes.map(|(at, _)| at).collect()
    }

    /// Notes what any value of the script may come to.
    fn note_everything(&mut self) {
        let script = String::from_utf8_lossy(self.bytes);
        let spelt: String = script.chars().filter(|c| !"\\'\"".contains(*c)).collect();
        let is_handled = HANDLERS.iter().any(|name| spelt.contains(name));
        let runs_input = spelt.contains("NULLCMD");
        let has = |text: &str| spelt.contains(text);
        let may_run_input = has("ULLCMD") || has("NULL") && has("CMD");
        if has("functions[")
            || has("[##")
            || memchr::memmem::find_iter(spelt.as_bytes(), b"[#").any(|at| {
                let next = spelt.as_bytes().get(at + 2);
                next.is_some_and(u8::is_ascii_digit)
            })
        {
            // Functions, or numbers as letters, in zsh.
            self.changes_reading();
        }
        let opened = std::mem::take(&mut self.variables.opened);
        if !is_handled && !may_run_input && opened.is_empty() && !self.variables.shows_all {
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
            false if may_run_input => Demands::ZSH,
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
        self.demand_of_hidden_functions();
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
            let is_local = demands.local && spelt.has_signs();
            found.is_evaluated |= is_local || demands.unquoted && spelt.has_expansions();
            found.is_calculated |= demands.calculated && spelt.has_letters();
            found.is_calculated_in_zsh |= demands.calculated_in_zsh && spelt.has_letters();
        }
        self.variables.hidden = found;
    }
}

impl Hidden {
    /// What is demanded of every value in a variable, since its way from there is not followed.
    pub(super) fn demands(self) -> Demands {
        let code = match self.is_evaluated || self.is_indirect || self.is_calculated {
            true => Demands::SHELL.read_by(self.reader()),
            false => Demands::NONE,
        };
        match self.is_changed || self.is_calculated_in_zsh {
            true => code.and(Demands::ZSH),
            false => code,
        }
    }

    /// Returns what reads them as code, where that is a word of the script or its arithmetic.
    fn reader(self) -> Option<&'static str> {
        match (self.evaluator, self.is_evaluated, self.is_indirect) {
            (Some(word), ..) => Some(word),
            (None, false, false) => Some(ARITHMETIC),
            (None, ..) => None,
        }
    }
}

/// What is told of code that the shell may find in a text which it calculates with.
pub(in crate::vault) const ARITHMETIC: &str = "the shell's arithmetic";
