//! Merges the matches of all search threads, sorted by path.
//!
//! Threads finish files in any order. Only what can still be among the first matches is kept, so memory does
//! not grow with the number of matches, and the result is deterministic.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{FileMatches, SearchOutcome};

/// Counts and first matches so far.
pub(super) struct Tally {
    most_matches: usize,
    most_bytes: usize,
    total_matches: AtomicU64,
    files_matched: AtomicU64,
    files_searched: AtomicU64,
    files_binary: AtomicU64,
    files_unreadable: AtomicU64,
    first: Mutex<FirstMatches>,
}

/// Matches of the first files.
#[derive(Default)]
struct FirstMatches {
    files: Vec<FileMatches>,
    matches: usize,
    bytes: usize,
}

impl Tally {
    /// Starts a search that shows at most this many matches, and bytes of lines.
    pub(super) fn new(most_matches: usize, most_bytes: usize) -> Self {
        Self {
            most_matches,
            most_bytes,
            total_matches: AtomicU64::new(0),
            files_matched: AtomicU64::new(0),
            files_searched: AtomicU64::new(0),
            files_binary: AtomicU64::new(0),
            files_unreadable: AtomicU64::new(0),
            first: Mutex::default(),
        }
    }

    /// Returns the maximum number of shown matches.
    pub(super) fn most_matches(&self) -> usize {
        self.most_matches
    }

    /// Counts something unreadable.
    pub(super) fn unreadable(&self) {
        self.files_unreadable.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a binary file.
    pub(super) fn binary(&self) {
        self.files_binary.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a text file and adds its matches.
    pub(super) fn searched(&self, found: FileMatches, total: u64) {
        self.files_searched.fetch_add(1, Ordering::Relaxed);
        if total > 0 {
            self.files_matched.fetch_add(1, Ordering::Relaxed);
            self.total_matches.fetch_add(total, Ordering::Relaxed);
        }
        if found.matches() > 0 {
            let mut first = self.first();
            first.add(found);
            // Cutting at twice the need amortises the sorting.
            let is_much = first.matches > 2 * self.most_matches;
            if is_much || first.bytes > self.most_bytes.saturating_mul(2) {
                first.cut(self.most_matches, self.most_bytes);
            }
        }
    }

    /// Returns the outcome.
    pub(super) fn finish(self) -> SearchOutcome {
        let mut first = std::mem::take(&mut *self.first());
        first.cut(self.most_matches, self.most_bytes);
        SearchOutcome {
            has_context: false,
            files: first.files,
            total_matches: self.total_matches.into_inner(),
            files_matched: self.files_matched.into_inner(),
            files_searched: self.files_searched.into_inner(),
            files_binary: self.files_binary.into_inner(),
            files_unreadable: self.files_unreadable.into_inner(),
        }
    }

    fn first(&self) -> MutexGuard<'_, FirstMatches> {
        // A panic cannot leave it inconsistent: it changes in one step.
        self.first.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FirstMatches {
    fn add(&mut self, found: FileMatches) {
        self.matches += found.matches();
        self.bytes += found.bytes();
        self.files.push(found);
    }

    /// Sorts the files by path and drops everything beyond the limits. The last match may exceed the size, as
    /// long lines are cut anyway.
    fn cut(&mut self, most_matches: usize, most_bytes: usize) {
        let mut all = std::mem::take(self).files;
        all.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        self.files.reserve(all.len());
        for mut found in all {
            found.cut(
                most_matches.saturating_sub(self.matches),
                most_bytes.saturating_sub(self.bytes),
            );
            if found.matches() == 0 {
                return;
            }
            self.add(found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::file_matches::LineRole;
    use karyi_core::limits;
    use std::path::Path;

    fn found(file: usize, count: u64, text: &str) -> FileMatches {
        let mut found = FileMatches::named(&format!("{file:04}"));
        for line in 1..=count {
            found.push(LineRole::Match, line, text);
        }
        found
    }

    fn run(order: impl Iterator<Item = usize>, most: usize, text: &str) -> SearchOutcome {
        let tally = Tally::new(most, limits::READ_SHOWN_BYTES);
        for file in order {
            tally.searched(found(file, 3, text), 5);
            assert!(tally.first().matches <= 2 * most + 3);
        }
        tally.finish()
    }

    fn shown(found: &SearchOutcome) -> usize {
        found.files.iter().map(FileMatches::matches).sum()
    }

    #[test]
    fn the_order_of_files_does_not_matter() {
        let forward = run(0..500, 10, "x");
        let backward = run((0..500).rev(), 10, "x");
        let mixed = run((0..500).map(|file| file * 7 % 500), 10, "x");
        assert_eq!(forward, backward);
        assert_eq!(forward, mixed);
        assert_eq!((forward.total_matches, forward.files_matched), (2500, 500));
        let last = forward.files.last().unwrap();
        assert_eq!(shown(&forward), 10);
        assert_eq!(
            (last.path.as_path(), last.matches()),
            (Path::new("0003"), 1)
        );
    }

    #[test]
    fn much_text_is_cut_in_any_order() {
        let text = "x".repeat(limits::READ_SHOWN_BYTES / 5 - 1);
        let forward = run(0..20, 100, &text);
        let backward = run((0..20).rev(), 100, &text);
        assert_eq!(forward, backward);
        assert_eq!(shown(&forward), 6);
    }
}
