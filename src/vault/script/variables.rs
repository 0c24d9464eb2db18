//! Follows values through the script's own variables: where `$x` stands, what `x` was given stands.
//!
//! Every use of a variable counts as a place of its own while the script is read. In the end what is
//! demanded there is demanded of all that the script assigns to the variable anywhere: the order of
//! commands says little when there are loops and functions.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::{IN_FUNCTION, Place, Quote, Reader};
use crate::vault::programs::DECLARATIONS;
use crate::vault::words::{Demands, Word, is_name};

/// What the arguments of the script and of its functions are called here, all of them.
const ARGUMENTS: &str = "@";

/// Which places the script assigns to which variables.
#[derive(Default)]
pub(super) struct Variables(HashMap<String, HashSet<usize>>);

impl Reader<'_> {
    /// Notes that a variable stands here, whose name is `name`.
    pub(super) fn uses(&mut self, name: Range<usize>, quote: Quote, demands: Demands) {
        let start = name.start;
        let Some(name) = self.name_at(name) else {
            return;
        };
        let around = self.inherited.and(self.frame.demands()).and(self.later);
        let mut demands = around.and(self.assignment_demands()).and(demands);
        demands.number |= self.subscript.contains(&start);
        self.places.push(Place {
            quote,
            demands,
            in_backticks: false,
            in_parameter: false,
            program: None,
            level: self.level,
            is_printed: true,
            variable: Some(name),
        });
    }

    fn name_at(&self, name: Range<usize>) -> Option<String> {
        let name = std::str::from_utf8(self.bytes.get(name)?).ok()?;
        let is_argument = matches!(name, "@" | "*") || name.parse::<u32>().is_ok_and(|at| at > 0);
        match is_argument {
            true => Some(ARGUMENTS.to_owned()),
            false => is_name(name).then(|| name.to_owned()),
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
            let known = self.variables.0.entry(name.to_owned()).or_default();
            known.extend(found);
        }
    }

    /// Notes what a word `name=...` assigns.
    pub(super) fn assigns_word(&mut self, word: &Word) {
        let name = word.text().split(['=', '+', '[']).next();
        if let Some(name) = name.filter(|name| is_name(name)) {
            self.assigns(name, word.first_place..word.places);
        }
    }

    /// Notes what a whole command assigns.
    pub(super) fn note_assigned(&mut self, words: &[Word]) {
        let Some((first, rest)) = words.split_first() else {
            return;
        };
        let all = self.frame.command_hole..self.places.len();
        match first.text() {
            "for" | "select" | "foreach" => {
                let name = rest.first().map(|word| word.text().to_owned());
                self.assigns(&name.unwrap_or_default(), all);
            }
            "set" => self.assigns(ARGUMENTS, all),
            "printf" => {
                let named = rest.windows(2).find(|pair| pair[0].text() == "-v");
                if let Some([_, name]) = named {
                    self.assigns(name.text(), all);
                }
            }
            "read" | "mapfile" | "readarray" => self.assigns_input(rest),
            _ if first.is_function => self.assigns(ARGUMENTS, all),
            name if DECLARATIONS.contains(&name) => {
                rest.iter().for_each(|word| self.assigns_word(word));
            }
            _ => {}
        }
    }

    /// Notes that a command reads its input into the variables among its words.
    fn assigns_input(&mut self, words: &[Word]) {
        let mut inputs = self.frame.input_holes.clone();
        if self.frame.follows_pipe {
            inputs.push(self.frame.pipeline_hole..self.frame.command_hole);
        }
        let names = words.iter().map(Word::text).filter(|text| is_name(text));
        let names: Vec<&str> = names.chain(["REPLY", "MAPFILE"]).collect();
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

    /// Returns the places of the holes, with what is demanded of the variables they come to.
    pub(super) fn resolved(mut self) -> Vec<Place> {
        let mut names: HashMap<String, Demands> = HashMap::new();
        let mut changed: Vec<usize> = (0..self.places.len()).collect();
        while let Some(at) = changed.pop() {
            let Some(place) = self.places.get(at) else {
                continue;
            };
            let Some(name) = &place.variable else {
                continue;
            };
            let demands = passed_on(place.demands);
            let known = names.entry(name.clone()).or_default();
            if known.and(demands) == *known {
                continue;
            }
            *known = known.and(demands);
            let demands = *known;
            for at in self.variables.0.get(name).into_iter().flatten() {
                if let Some(place) = self.places.get_mut(*at) {
                    place.demands = place.demands.and(demands);
                    changed.push(*at);
                }
            }
        }
        self.places.retain(|place| place.variable.is_none());
        self.places
    }
}

/// What a place demands of the value of a variable: where a placeholder is refused only since the value
/// would be gone, there is nothing to demand, elsewhere it must be harmless.
fn passed_on(demands: Demands) -> Demands {
    let own = Demands {
        forbidden: None,
        ..demands
    };
    match demands.forbidden {
        None => own,
        gone if gone == IN_FUNCTION.forbidden => own,
        Some(_) => own.and(Demands::ANY_CODE),
    }
}
