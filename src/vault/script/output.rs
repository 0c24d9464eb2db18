//! Follows what a substitution prints: a value that a command of it repeats may be calculated with
//! outside, one that is only told to a program is not.

use super::Reader;
use crate::vault::programs;
use crate::vault::words::Word;

impl Reader<'_> {
    /// Notes that what feeds a command ends there, unless it may print it.
    pub(super) fn note_output(&mut self, words: &[Word]) {
        let is_simple = words.first().is_some_and(|word| !word.is_nothing());
        if self.level == 0 || !is_simple || self.may_print(words) {
            return;
        }
        self.hide(self.frame.pipeline_hole.max(self.frame.hidden));
        self.frame.hidden = self.places.len();
        let pipeline = self.frame.pipeline;
        for document in &mut self.frame.documents {
            document.is_printed &= document.pipeline != pipeline;
        }
    }

    /// Whether a command may print what it is told.
    pub(super) fn may_print(&self, words: &[Word]) -> bool {
        let is_alias = |word: &Word| self.aliases.contains(word.text());
        self.aliases.contains("") || words.iter().any(is_alias) || programs::prints(words)
    }

    /// Notes that nothing prints the holes from the first one on.
    pub(super) fn hide(&mut self, first: usize) {
        let level = self.level;
        for place in self.places.get_mut(first..).unwrap_or_default() {
            place.is_printed &= place.level != level;
        }
    }
}
