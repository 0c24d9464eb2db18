//! How the word begins in which a value stands: behind a dash it names an option, also when a variable holds the dash, or
//! both.

use std::collections::HashSet;

use super::{Place, Reader};
use crate::vault::words::Demands;

/// What stands before a value in its word.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) enum Lead {
    /// Nothing, or text that starts no option.
    #[default]
    Plain,
    /// A sign with which an option starts, or what a substitution prints.
    Sign,
    /// A variable.
    Variable(String),
}

/// Signs with which a program takes a word for an option or a command.
pub(super) const SIGNS: [char; 4] = ['-', '+', '|', '!'];

impl Reader<'_> {
    /// Returns what stands before the expansion that starts at `start`, of which the word has noted so many already.
    pub(super) fn lead(&self, start: usize, noted: usize) -> Lead {
        if self.parameters > 0 && self.follows_dash(start) {
            return Lead::Sign;
        }
        let Some(word) = &self.frame.word else {
            return Lead::Plain;
        };
        let text = word.text();
        let is_assignment = word.is_assignment || self.frame.declares();
        let from = match text.find('=') {
            Some(at) if is_assignment => at + 1,
            _ => 0,
        };
        let name = text.get(..from).unwrap_or_default();
        if let Some(name) = name.strip_suffix("+=") {
            return Lead::Variable(name.to_owned());
        }
        let before = word.expansions.len().saturating_sub(noted);
        let mut before = word.expansions.iter().take(before);
        let begins = before.find(|at| **at >= from) == Some(&from);
        let first = text.get(from..).and_then(|text| text.chars().next());
        if begins {
            return self.first_lead(word.first_place);
        }
        match first {
            Some(sign) if SIGNS.contains(&sign) => Lead::Sign,
            _ => Lead::Plain,
        }
    }

    /// Returns what the first expansion of a word is for those behind it.
    fn first_lead(&self, first_place: usize) -> Lead {
        match self.places.get(first_place) {
            Some(place) if place.level > self.level => Lead::Sign,
            Some(place) => match &place.variable {
                Some(name) => Lead::Variable(name.clone()),
                // A value that starts like an option is refused itself.
                None => Lead::Plain,
            },
            None => Lead::Sign,
        }
    }

    /// Whether a sign stands right before an offset that starts a text: `${x:=-$y}`.
    fn follows_dash(&self, start: usize) -> bool {
        let before = self.bytes.get(..start).unwrap_or_default();
        let mut before = before.iter().rev().filter(|byte| !b"\"'".contains(byte));
        let is_sign = before
            .next()
            .is_some_and(|byte| SIGNS.contains(&char::from(*byte)));
        is_sign && before.next().is_some_and(|byte| b"=-+?:".contains(byte))
    }

    /// Notes that a text stands before what is given to a variable: `printf -v x -- "-%s"`.
    pub(super) fn leads(&mut self, first: usize, text: &str) {
        if text.starts_with(SIGNS) {
            for place in self.places.get_mut(first..).unwrap_or_default() {
                place.lead = Lead::Sign;
            }
        }
    }

    /// Returns the variables whose texts may start an option.
    pub(super) fn signed(&self) -> HashSet<String> {
        let names = self.variables.names().into_iter();
        let mut signed: HashSet<String> = names
            .filter(|name| self.variables.spelt(name).has_signs_first())
            .collect();
        loop {
            let is_signed = |at: usize| {
                let variable = self
                    .places
                    .get(at)
                    .and_then(|place| place.variable.as_ref());
                variable.is_some_and(|name| signed.contains(name))
            };
            let names = self.variables.names().into_iter();
            let more: Vec<String> = names
                .filter(|name| !signed.contains(name))
                .filter(|name| self.variables.given(name).into_iter().any(is_signed))
                .collect();
            if more.is_empty() {
                return signed;
            }
            signed.extend(more);
        }
    }
}

impl Place {
    /// Demands more of what stands behind the start of an option, where one is read.
    pub(super) fn demand_behind(&mut self, signed: &HashSet<String>) {
        let is_behind = match &self.lead {
            Lead::Plain => false,
            Lead::Sign => true,
            Lead::Variable(name) => signed.contains(name),
        };
        if is_behind && self.demands.operand {
            self.demands = self.demands.and(Demands::ANY_CODE);
        }
    }
}
