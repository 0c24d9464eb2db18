//! The automaton that finds every form of every secret.
//!
//! It reports all matches, also those inside of others, and for each of its states how much of a
//! needle has been seen: that is what a stream has to hold back.

use std::borrow::Cow;
use std::collections::HashMap;

use aho_corasick::automaton::{Automaton, StateID};
use aho_corasick::nfa::contiguous::NFA;
use aho_corasick::{Anchored, MatchKind};
use zeroize::Zeroizing;

use super::encodings::{Form, for_each_form};
use super::session::Secrets;
use crate::secret::SecretName;

/// What a match means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Needle {
    /// A form of the secret with this index.
    Value(Form, usize),
    /// `$KARYI{` or `$KARYI<`: the text's own.
    Marker(&'static str),
}

/// The needles of one generation of the secrets and the automaton that finds them.
pub(super) struct Tables {
    pub(super) generation: u64,
    pub(super) names: Vec<SecretName>,
    pub(super) needles: Vec<Needle>,
    automaton: NFA,
    pub(super) start: StateID,
    /// For each state that is the start of a needle: how many bytes of it, and which needle.
    pub(super) starts: HashMap<StateID, (usize, usize)>,
    /// The bytes that leave the start state, when they are few enough to jump to.
    first_bytes: Option<[u8; 3]>,
}

impl Tables {
    pub(super) fn build(secrets: &Secrets) -> Self {
        let mut names = Vec::new();
        let mut needles = vec![Needle::Marker("$$KARYI{"), Needle::Marker("$$KARYI<")];
        let mut patterns: Vec<Zeroizing<Vec<u8>>> = vec![
            Zeroizing::new(b"$KARYI{".to_vec()),
            Zeroizing::new(b"$KARYI<".to_vec()),
        ];
        let generation = secrets.for_each(|name, value| {
            let index = names.len();
            names.push(name.clone());
            for_each_form(value.expose(), |form, needle| {
                needles.push(Needle::Value(form, index));
                patterns.push(Zeroizing::new(needle.to_vec()));
            });
        });
        let automaton = build_automaton(&patterns);
        let start = start_state(&automaton);
        let mut starts = HashMap::new();
        for (index, pattern) in patterns.iter().enumerate() {
            let mut state = start;
            for (at, &byte) in pattern.iter().enumerate() {
                state = automaton.next_state(Anchored::No, state, byte);
                starts.entry(state).or_insert((at + 1, index));
            }
        }
        let first_bytes = first_bytes(&patterns);
        Self {
            generation,
            names,
            needles,
            automaton,
            start,
            starts,
            first_bytes,
        }
    }

    /// Bytes at the end of what led to `state` that may be the start of a needle.
    pub(super) fn open_bytes(&self, state: StateID) -> usize {
        self.starts.get(&state).map_or(0, |(bytes, _)| *bytes)
    }

    /// Returns the next offset from `at` on whose byte can leave the start state.
    fn skip(&self, bytes: &[u8], at: usize) -> usize {
        let Some([a, b, c]) = self.first_bytes else {
            return at;
        };
        let rest = bytes.get(at..).unwrap_or_default();
        memchr::memchr3(a, b, c, rest).map_or(bytes.len(), |found| at + found)
    }

    pub(super) fn has_match(&self, bytes: &[u8]) -> bool {
        let mut is_found = false;
        self.scan(self.start, bytes, |_, _| {
            is_found = true;
            false
        });
        is_found
    }

    /// Runs the automaton over `bytes`; `on_match` gets the offset after a match and the state
    /// there, and says whether to go on. Returns the last state.
    pub(super) fn scan(
        &self,
        mut state: StateID,
        bytes: &[u8],
        mut on_match: impl FnMut(usize, StateID) -> bool,
    ) -> StateID {
        let automaton = &self.automaton;
        let mut at = 0;
        while at < bytes.len() {
            if state == self.start {
                at = self.skip(bytes, at);
            }
            let Some(&byte) = bytes.get(at) else { break };
            state = automaton.next_state(Anchored::No, state, byte);
            at += 1;
            if automaton.is_special(state) && automaton.is_match(state) && !on_match(at, state) {
                break;
            }
        }
        state
    }

    /// Returns the needles that end where `state` is reached, with their lengths.
    pub(super) fn matches(&self, state: StateID) -> impl Iterator<Item = (Needle, usize)> {
        let ends = (0..self.automaton.match_len(state))
            .map(move |i| self.automaton.match_pattern(state, i));
        ends.filter_map(|pattern| {
            let needle = self.needles.get(pattern.as_usize()).copied()?;
            Some((needle, self.automaton.pattern_len(pattern)))
        })
    }

    /// Returns what is shown in place of a match, or of several of which this is the longest.
    pub(super) fn marker(&self, needle: Needle, is_whole: bool) -> Cow<'static, str> {
        let (form, index) = match needle {
            Needle::Marker(text) => return Cow::Borrowed(text),
            Needle::Value(form, index) => (form, index),
        };
        let Some(name) = self.names.get(index) else {
            return Cow::Borrowed("[KARYI]");
        };
        Cow::Owned(match form {
            Form::Exact if is_whole => format!("$KARYI{{{name}}}"),
            _ if is_whole => format!("[KARYI:{name}:{}]", form.as_str()),
            _ => format!("[KARYI:{name}:part]"),
        })
    }
}

/// Returns the distinct first bytes of the needles when there are at most three.
fn first_bytes(patterns: &[Zeroizing<Vec<u8>>]) -> Option<[u8; 3]> {
    let mut bytes: Vec<u8> = patterns.iter().filter_map(|p| p.first().copied()).collect();
    bytes.sort_unstable();
    bytes.dedup();
    match bytes.as_slice() {
        [a] => Some([*a; 3]),
        [a, b] => Some([*a, *b, *b]),
        [a, b, c] => Some([*a, *b, *c]),
        _ => None,
    }
}

/// Builds the automaton. Its other form, a table of all transitions, is hardly faster here and
/// takes time and memory out of proportion for values that repeat themselves.
fn build_automaton(patterns: &[Zeroizing<Vec<u8>>]) -> NFA {
    let mut builder = NFA::builder();
    builder.match_kind(MatchKind::Standard).prefilter(false);
    match builder.build(patterns.iter().map(|pattern| pattern.as_slice())) {
        Ok(automaton) => automaton,
        Err(_) => unreachable!("the needles of all secrets together stay far below 2^31 states"),
    }
}

fn start_state(automaton: &NFA) -> StateID {
    match automaton.start_state(Anchored::No) {
        Ok(state) => state,
        Err(_) => unreachable!("unanchored search is what it is built for"),
    }
}
