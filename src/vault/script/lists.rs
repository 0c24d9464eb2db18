//! What runs as a command or a function though it stands elsewhere: the arguments of code, and functions in text.

use std::ops::Range;

use super::Reader;
use super::variables::ARGUMENTS;
use crate::vault::programs;
use crate::vault::words::{Demands, Word};

impl Reader<'_> {
    /// Notes that code of another shell runs its arguments as a command: nothing is known of these.
    pub(super) fn note_run_arguments(&mut self, words: &[Word]) {
        let Some(first) = words.first() else {
            return;
        };
        let in_function = self.inherited.in_function || self.frame.is_body;
        let runs = first.is_unknown_program() || first.is_function || programs::is_wrapper(first);
        if !self.holes.is_empty() || in_function || !runs {
            return;
        }
        for word in words.iter().filter(|word| word.is_list) {
            let places = word.first_place..word.places;
            let names = self.places.get(places.clone()).unwrap_or_default();
            let is_own = |name: &str| name == ARGUMENTS;
            if names
                .iter()
                .any(|place| place.variable.as_deref().is_some_and(is_own))
            {
                self.require(places, Demands::SHELL);
            }
        }
    }

    /// Notes a command whose name may be that of a function which text defines.
    pub(super) fn note_called(&mut self, words: &[Word]) {
        let places = self.frame.pipeline_hole..self.places.len();
        let Some(first) = words.first().filter(|_| !places.is_empty()) else {
            return;
        };
        if !first.is_dynamic && !first.is_nothing() {
            self.called.push((first.text().to_owned(), places));
        }
    }

    /// Demands harmless values of what functions get that stand in text of the script, which may be read as code.
    pub(super) fn demand_of_hidden_functions(&mut self) {
        // A comment or a text for others makes no function.
        if self.called.is_empty() || !self.variables.hidden.is_evaluated {
            return;
        }
        let found = self.hidden_functions();
        let any = found.iter().any(|name| name.contains(['$', '`']));
        let called = std::mem::take(&mut self.called).into_iter();
        let called: Vec<Range<usize>> = called
            .filter(|(name, _)| any || found.contains(name))
            .map(|(_, places)| places)
            .collect();
        for places in called {
            self.require(places, Demands::SHELL);
        }
    }

    /// Returns the names of functions in the text of the script that are no functions of it.
    fn hidden_functions(&self) -> Vec<String> {
        let mut found = Vec::new();
        let text = |range: Range<usize>| {
            let name = self.bytes.get(range).unwrap_or_default();
            String::from_utf8_lossy(name).into_owned()
        };
        for at in memchr::memchr_iter(b'(', self.bytes) {
            let after = self.bytes.get(at + 1..).unwrap_or_default();
            let is_head = after.iter().find(|byte| !b" \t".contains(byte)) == Some(&b')');
            if is_head && !self.heads.contains(&at) {
                let before = self.bytes.get(..at).unwrap_or_default().trim_ascii_end();
                let start = before.iter().rposition(|byte| !is_name_byte(*byte));
                found.push(text(start.map_or(0, |at| at + 1)..before.len()));
            }
        }
        for at in memchr::memmem::find_iter(self.bytes, b"function") {
            let after = self.bytes.get(at + "function".len()..).unwrap_or_default();
            let blanks = after
                .iter()
                .take_while(|byte| b" \t".contains(byte))
                .count();
            let start = at + "function".len() + blanks;
            let name = after.get(blanks..).unwrap_or_default();
            let length = name.iter().take_while(|byte| is_name_byte(**byte)).count();
            if blanks > 0 && !self.heads.contains(&start) {
                found.push(text(start..start + length));
            }
        }
        found
    }
}

/// Whether a character may stand in the name of a function, or be a part of an expansion in it.
fn is_name_byte(byte: u8) -> bool {
    !byte.is_ascii_whitespace() && !b"'\"\\;&|()<>".contains(&byte)
}
