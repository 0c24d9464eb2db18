//! Follows values through the script's own variables: where `$x` stands, what `x` was given stands.
//!
//! Every use of a variable counts as a place of its own while the script is read. In the end what is
//! demanded there is demanded of all that the script assigns to the variable anywhere: the order of
//! commands says little when there are loops and functions.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::files::{file_key, is_file_key};
use super::leads::Lead;
use super::spelt::{self, MADE, Spelt};
use super::{ByName, Inner, Place, Quote, Reader};
use crate::limits;
use crate::vault::programs::{self, Taker};
use crate::vault::words::{Demands, Word, is_name};

/// What the arguments of the script and of its functions are called here, all of them.
pub(super) const ARGUMENTS: &str = "@";

/// What the texts are called here that more than one command may read.
pub(super) const INPUTS: &str = "<";

/// What the script assigns to its variables.
#[derive(Default)]
pub(super) struct Variables {
    /// Which places.
    places: HashMap<String, HashSet<usize>>,
    /// Which names stand in the texts it assigns: where the shell calculates with a variable, it does so with
    /// those, too.
    names: HashMap<String, HashSet<String>>,
    /// What the texts hold that it assigns.
    spelt: HashMap<String, Spelt>,
    /// Files that stay open while commands run.
    pub(super) opened: Vec<String>,
    /// Whether all variables are shown somewhere.
    pub(super) shows_all: bool,
    /// Variables that a `read` gets pieces of a text in.
    parted: HashSet<String>,
    /// Variables that some `read` gets, and files that a command writes which may copy such an input.
    pub(super) read: HashSet<String>,
    pub(super) fed_files: HashSet<String>,
    /// What loops, groups, functions and coprocesses get as their input, or print, and how deep: any `read` may
    /// get it.
    inputs: Vec<(usize, Range<usize>)>,
    /// What this shell may do with any variable, without its name standing there.
    pub(super) hidden: Hidden,
}

/// Ways of a value that are not followed: then no variable, and no file of the script, may hold what could be code.
#[derive(Default, Clone, Copy)]
pub(super) struct Hidden {
    /// A variable may stand for another one: `${!x}`, `declare -n`.
    pub(super) is_indirect: bool,
    /// Text is read as code, by this shell and with its variables.
    pub(super) is_evaluated: bool,
    /// With this word.
    pub(super) evaluator: Option<&'static str>,
    /// zsh is told to read values otherwise.
    pub(super) is_changed: bool,
    /// Text with letters is calculated with, which may be any name.
    pub(super) is_calculated: bool,
    /// The same, by zsh only.
    pub(super) is_calculated_in_zsh: bool,
}

impl Variables {
    /// Notes that a variable, or a file, is given places.
    pub(super) fn gets(&mut self, name: &str, places: &[usize]) {
        let known = self.places.entry(name.to_owned()).or_default();
        known.extend(places.iter().copied());
    }

    /// Returns the places that a variable is given.
    pub(super) fn given(&self, name: &str) -> Vec<usize> {
        self.places
            .get(name)
            .into_iter()
            .flatten()
            .copied()
            .collect()
    }

    /// Returns what the texts of a variable hold.
    pub(super) fn spelt(&self, name: &str) -> Spelt {
        let known = self.spelt.get(name).copied().unwrap_or_default();
        match MADE.contains(&name) {
            true => known.and(Spelt::LETTERS),
            false => known,
        }
    }

    /// Whether a text that some variable is given holds a name.
    pub(super) fn is_given_name(&self, name: &str) -> bool {
        let mut known = self.names.iter();
        known.any(|(of, names)| !is_file_key(of) && names.contains(name))
    }

    /// Returns the names of all variables that are given something.
    pub(super) fn names(&self) -> HashSet<String> {
        let given = self.places.keys().chain(self.spelt.keys());
        given.cloned().collect()
    }
}

/// Builtins that have any text read as code by this shell.
const SOURCES: &[&str] = &["eval", "source", "."];

/// Commands and variables with which the shell reads text as code.
const EVALUATORS: &[&str] = &[
    "trap",
    "alias",
    "mapfile",
    "readarray",
    "compgen",
    "complete",
    "bind",
    "fc",
    "emulate",
    "zle",
    "sched",
];

/// Variables of zsh that share their value with those in lower case.
const TIED: &[&str] = &[
    "CDPATH",
    "FPATH",
    "PATH",
    "MANPATH",
    "MAILPATH",
    "MODULE_PATH",
    "FIGNORE",
    "PSVAR",
    "WATCH",
];

/// Returns the name under which a variable is followed.
pub(super) fn canonical(name: &str) -> String {
    match name {
        "argv" | "OPTARG" | "BASH_ARGV" => ARGUMENTS.to_owned(),
        "match" | "MATCH" => "BASH_REMATCH".to_owned(),
        _ if TIED.contains(&name) => name.to_ascii_lowercase(),
        _ => name.to_owned(),
    }
}

/// Returns the names in a text.
pub(super) fn names_in(text: &str) -> impl Iterator<Item = &str> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.split(move |c| !is_word(c))
        .filter(|name| is_name(name))
}

impl Reader<'_> {
    /// Notes that a variable stands here, whose name is `name`.
    pub(super) fn uses(&mut self, name: Range<usize>, quote: Quote, demands: Demands) {
        let start = name.start;
        let Some(name) = self.name_at(name) else {
            return;
        };
        let around = self.inherited.and(self.frame.demands()).and(self.later);
        let mut demands = around.and(self.assignment_demands()).and(demands);
        if self.subscript.contains(&start) {
            demands = demands.and(Demands::PLAIN_NUMBER);
        }
        if quote == Quote::Bare {
            demands = demands.and(self.frame.program_demands());
            demands = demands.and(self.frame.list_demands());
            demands = demands.and(self.frame.split_demands());
        }
        // The words of a command say nothing of what a file holds that is named among them.
        let around = self.around_braces.unwrap_or(self.inherited);
        let content = around.and(self.frame.content_demands());
        let sign = self.bytes.get(..start).unwrap_or_default();
        let sign = sign.iter().rposition(|byte| *byte == b'$').unwrap_or(start);
        let lead = self.lead(sign, 1);
        let at = self.stands(name, quote, demands);
        if let Some(place) = self.places.get_mut(at) {
            place.content = content;
            place.is_split = quote == Quote::Bare;
            place.lead = lead;
        }
    }

    fn name_at(&self, name: Range<usize>) -> Option<String> {
        let name = std::str::from_utf8(self.bytes.get(name)?).ok()?;
        let is_argument = matches!(name, "@" | "*") || name.parse::<u32>().is_ok();
        match is_argument {
            true => Some(ARGUMENTS.to_owned()),
            false => (is_name(name) || name == "-").then(|| canonical(name)),
        }
    }

    /// Notes that places are assigned to a variable: they, or what a substitution prints of them.
    pub(super) fn assigns(&mut self, name: &str, places: Range<usize>) {
        let level = self.level;
        let end = places.end.min(self.places.len());
        let found: Vec<usize> = (places.start..end)
            .filter(|at| {
                self.places
                    .get(*at)
                    .is_some_and(|place| place.level <= level)
            })
            .collect();
        if !found.is_empty() {
            let known = self.variables.places.entry(canonical(name)).or_default();
            known.extend(found);
        }
    }

    /// Notes that a variable is given a text, with which it may be calculated later.
    pub(super) fn assigns_text(&mut self, name: &str, text: &str) {
        let names: Vec<&str> = names_in(text).take(MAX_NAMES).collect();
        if !names.is_empty() {
            let known = self.variables.names.entry(canonical(name)).or_default();
            known.extend(names.into_iter().map(canonical));
        }
        if !text.is_empty() {
            self.spells(name, Spelt::of(text));
        }
    }

    /// Notes what the text holds that a variable is given.
    pub(super) fn spells(&mut self, name: &str, spelt: Spelt) {
        if name == "options" {
            // `options[globsubst]=on` of zsh.
            self.changes_reading();
        }
        let known = self.variables.spelt.entry(canonical(name)).or_default();
        *known = known.and(spelt);
    }

    /// Notes that the names in a text are calculated with.
    pub(super) fn calculates_with(&mut self, text: &str, demands: Demands) {
        let names: Vec<String> = names_in(text).take(MAX_NAMES).map(canonical).collect();
        for name in names {
            self.stands(name, Quote::Text, demands);
        }
    }

    /// Notes that what a file of the script holds stands here.
    pub(super) fn file_stands(&mut self, name: &str) {
        self.stands(file_key(name), Quote::Text, self.inherited);
    }

    /// Notes that places are written to a file.
    pub(super) fn file_gets(&mut self, name: &str, places: Range<usize>) {
        self.assigns(&file_key(name), places);
    }

    /// Notes that a text is written to a file.
    pub(super) fn file_gets_text(&mut self, name: &str, text: &str) {
        self.assigns_text(&file_key(name), text);
    }

    /// Adds a place where a variable stands; returns which one it is.
    pub(super) fn stands(&mut self, name: String, quote: Quote, demands: Demands) -> usize {
        if name == ARGUMENTS && self.passed_on.is_none() {
            let taker = self.frame.taker(&self.functions);
            self.passed_on = taker.filter(|taker| *taker != Taker::Function);
        }
        self.places.push(Place {
            quote,
            demands,
            content: Demands::NONE,
            in_backticks: false,
            in_parameter: false,
            taker: None,
            level: self.level,
            is_printed: true,
            is_split: false,
            is_changed: false,
            is_piece: false,
            is_shown: false,
            follows_sign: false,
            lead: Lead::Plain,
            variable: Some(name),
        });
        self.places.len() - 1
    }

    /// Notes that one of the arguments stands here.
    pub(super) fn uses_arguments(&mut self) {
        self.stands(ARGUMENTS.to_owned(), Quote::Text, Demands::ANY_CODE);
    }

    /// Notes code that a variable keeps for the shell, `PROMPT_COMMAND=...`.
    pub(super) fn note_kept_code(&mut self, word: &Word) {
        let Some((name, code)) = word.text().split_once('=') else {
            return;
        };
        let demands = programs::assignment_demands(name);
        if demands.code_variable && !word.is_dynamic {
            self.note_script(code);
        }
        if demands.forbidden.is_some() {
            self.reads_file(code.to_owned(), Demands::ANY_CODE);
            self.note_code(word, code);
        }
    }

    /// Notes code among the words of a command that this shell reads.
    pub(super) fn note_code_words(&mut self, words: &[Word]) {
        let Some((first, rest)) = words.split_first() else {
            return;
        };
        let has = |letter| rest.iter().any(|word| word.has_option(letter));
        let reads = match first.text() {
            "mapfile" | "readarray" => has('C'),
            "bind" => has('x'),
            name if SOURCES.contains(&name) => {
                let known = SOURCES.iter().find(|source| **source == name).copied();
                self.variables.hidden.evaluator = self.variables.hidden.evaluator.or(known);
                return self.evaluates();
            }
            name => EVALUATORS.contains(&name),
        };
        for word in rest.iter().filter(|_| reads).take(MAX_NAMES) {
            let code = match first.text() {
                "alias" => word.text().split_once('=').map_or("", |(_, code)| code),
                _ => word.text(),
            };
            self.note_code(word, code);
        }
        if reads && self.frame.has_input {
            self.evaluates();
        }
    }

    /// Notes what code in quotes does with the variables; where that cannot be said it may do anything.
    fn note_code(&mut self, word: &Word, code: &str) {
        if word.is_dynamic || word.is_cut {
            return self.evaluates();
        }
        if !code.contains(['$', '`', '(']) || self.depth >= limits::MAX_SCRIPT_DEPTH {
            return;
        }
        match super::variable_demands(code) {
            Some(names) => {
                for (name, (value, content)) in names {
                    self.stands_inside(name, value, content);
                }
            }
            None => self.evaluates(),
        }
    }

    /// Notes that a variable stands in code of another shell.
    pub(super) fn stands_inside(&mut self, name: String, value: Demands, content: Demands) {
        let at = self.stands(name, Quote::Text, value);
        if let Some(place) = self.places.get_mut(at) {
            place.content = content;
        }
    }

    /// Notes that a variable stands for another one.
    pub(super) fn is_indirect(&mut self) {
        self.variables.hidden.is_indirect = true;
    }

    /// Notes that text is read as code.
    pub(super) fn evaluates(&mut self) {
        self.variables.hidden.is_evaluated = true;
    }

    /// Notes that zsh may read values otherwise from here on.
    pub(super) fn changes_reading(&mut self) {
        self.variables.hidden.is_changed = true;
    }

    /// Notes what a word `name=...` assigns.
    pub(super) fn assigns_word(&mut self, word: &Word) {
        let name = word.text().split(['=', '+', '[']).next();
        if let Some(name) = name.filter(|name| is_name(name)) {
            self.assigns(name, word.first_place..word.places);
            self.assigns_text(name, spelt::assigned_text(word));
            if word.is_made {
                self.spells(name, Spelt::LETTERS);
            }
        }
    }

    /// Returns the places of the holes, with what is demanded of the variables they come to.
    pub(super) fn resolved(mut self) -> Vec<Place> {
        self.settled();
        self.places.retain(|place| place.variable.is_none());
        for place in &mut self.places {
            if place.taker == Some(Taker::Function) {
                place.taker.clone_from(&self.passed_on);
            }
            place.demands.split |= place.is_split && place.demands.is_code();
        }
        self.places
    }

    /// Returns what is demanded of each variable of a script; nothing when it gives one to another.
    pub(super) fn names(mut self) -> Option<ByName> {
        let is_plain = self.variables.places.is_empty();
        let names = self.settled();
        let is_followed = !self.hidden_demands().shell;
        (is_plain && is_followed).then_some(names)
    }

    /// Returns what is demanded of the arguments of a script, and of what files hold that they name.
    pub(super) fn arguments(mut self) -> (Demands, Demands) {
        let names = self.settled();
        let hidden = self.hidden_demands();
        names
            .get(ARGUMENTS)
            .map_or((hidden, hidden), |(own, content)| {
                (hidden.and(*own), hidden.and(*content))
            })
    }

    /// Returns what is demanded of what a script of another shell is given.
    pub(super) fn inherited(mut self) -> Inner {
        let mut names = self.settled();
        let hidden = self.hidden_demands();
        let (value, content) = names.remove(ARGUMENTS).unwrap_or_default();
        Inner {
            names,
            hidden,
            arguments: (hidden.and(value), hidden.and(content)),
            writes: self.files.names(),
            reads: self.files.code.into_iter().collect(),
        }
    }

    /// Notes the names in a text that is an input of more than one command.
    pub(super) fn feeds_names(&mut self, text: &str) {
        self.assigns_text(INPUTS, text);
    }

    /// What is demanded of every value in a variable, since its way from there is not followed.
    pub(super) fn hidden_demands(&self) -> Demands {
        self.variables.hidden.demands()
    }

    /// Notes what is an input of more than one command.
    pub(super) fn feeds_reads(&mut self, places: Range<usize>) {
        if !places.is_empty() {
            self.variables.inputs.push((self.level, places));
        }
    }

    pub(super) fn assign_inputs(&mut self) {
        let names: Vec<String> = self.variables.read.drain().collect();
        self.variables
            .parted
            .extend(names.iter().map(|name| canonical(name)));
        let files = std::mem::take(&mut self.variables.fed_files);
        for (level, places) in std::mem::take(&mut self.variables.inputs) {
            self.level = level;
            for name in &names {
                self.assigns(name, places.clone());
            }
            for name in &files {
                self.writes_file(name, places.clone());
            }
        }
        for name in &names {
            let known = self.variables.names.entry(canonical(name)).or_default();
            known.insert(INPUTS.to_owned());
        }
    }

    pub(super) fn demand_of_kept(&mut self, demands: Demands) {
        let kept = self.variables.places.values().flatten().copied();
        let kept: Vec<usize> = kept.chain(self.files.written()).collect();
        for at in kept {
            if let Some(place) = self.places.get_mut(at) {
                place.demands = place.demands.and(demands);
                place.content = place.content.and(demands);
            }
        }
    }

    /// Brings what is demanded of variables to what they are given; returns it by name, of values and of what
    /// files hold.
    pub(super) fn propagate(&mut self) -> ByName {
        let mut names = ByName::new();
        let signed = self.signed();
        self.places
            .iter_mut()
            .for_each(|place| place.demand_behind(&signed));
        let mut changed: Vec<usize> = (0..self.places.len()).collect();
        while let Some(at) = changed.pop() {
            let Some(place) = self.places.get(at) else {
                continue;
            };
            let Some(name) = place.variable.clone() else {
                continue;
            };
            let mut new = (passed_on(place.demands), passed_on(place.content));
            if place.is_shown {
                new.1 = new.1.and(new.0);
            }
            new.0.split |= place.is_split && new.0.is_code();
            new.0.changed |= place.is_changed && new.0.is_code();
            new.0.shell |= place.is_piece && new.0.operand;
            if place.is_split && new.0.operand {
                new.0 = new.0.and(Demands::WHOLE);
            }
            let first = changed.len();
            self.demand_of_name(name, new, &mut names, &mut changed);
            for at in changed.get(first..).unwrap_or_default() {
                if let Some(place) = self.places.get_mut(*at) {
                    place.demand_behind(&signed);
                }
            }
        }
        names
    }

    fn demand_of_name(
        &mut self,
        name: String,
        new: (Demands, Demands),
        names: &mut ByName,
        changed: &mut Vec<usize>,
    ) {
        let mut open = vec![(name, new)];
        while let Some((name, new)) = open.pop() {
            let known = names.entry(name.clone()).or_default();
            let mut new = new;
            // What a `read` gets is a piece.
            new.0.shell |= new.0.operand && self.variables.parted.contains(&name);
            let both = (known.0.and(new.0), known.1.and(new.1));
            if both == *known {
                continue;
            }
            *known = both;
            let number = Demands::NUMBER.only(both.0);
            if number.number || number.calculated_in_zsh {
                let own = match number.number {
                    true => number,
                    false => Demands::ZSH_NUMBER,
                };
                let texts = self.variables.names.get(&name).into_iter().flatten();
                open.extend(texts.map(|name| (name.clone(), (own, Demands::NONE))));
            }
            for at in self.variables.places.get(&name).into_iter().flatten() {
                if let Some(place) = self.places.get_mut(*at) {
                    place.demands = place.demands.and(both.0);
                    place.content = place.content.and(both.1);
                    if place.is_shown {
                        place.content = place.content.and(both.0);
                    }
                    changed.push(*at);
                }
            }
        }
    }
}

/// Names of one text that are looked at.
pub(super) const MAX_NAMES: usize = 64;

/// What a place demands of the value of a variable: where a placeholder is refused only since the value
/// would be gone, there is nothing to demand, elsewhere it must be harmless.
fn passed_on(demands: Demands) -> Demands {
    let own = Demands {
        forbidden: None,
        in_function: false,
        code_variable: false,
        ..demands
    };
    match demands.forbidden {
        None if demands.code_variable => own.and(Demands::ANY_CODE),
        None => own,
        Some(_) => own.and(Demands::ANY_CODE),
    }
}
