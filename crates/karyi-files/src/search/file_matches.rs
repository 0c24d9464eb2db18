//! The shown lines of one file, all in one text.
//!
//! A search may show ten thousand short lines. Memory that is touched for the first time costs more
//! than to search it, so no line has a memory of its own.

use std::borrow::Cow;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// What a shown line is to a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineRole {
    /// It stands before the match that follows.
    Before,
    /// It matches.
    Match,
    /// It stands after the match that precedes.
    After,
}

/// A shown line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MatchLine<'a> {
    /// What it is to a match.
    pub role: LineRole,
    /// Its number, from 1.
    pub number: u64,
    /// The line without its end; a long one is cut.
    pub text: &'a str,
}

/// The matching lines of one file that are shown, with the lines around them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileMatches {
    /// The file, as the searched path was given.
    pub path: PathBuf,
    text: String,
    places: Vec<LineSpan>,
    matches: usize,
}

/// Where a line stands in the text: behind the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LineSpan {
    role: LineRole,
    number: u64,
    end: usize,
}

impl FileMatches {
    /// Starts a file of which nothing is shown.
    #[cfg(test)]
    pub(super) fn named(path: &str) -> Self {
        Self {
            path: path.into(),
            ..Self::default()
        }
    }

    /// Returns the file, as the searched path was given and without a leading `./`.
    #[must_use]
    pub fn short_path(&self) -> &Path {
        self.path.strip_prefix(".").unwrap_or(&self.path)
    }

    /// Returns how many matching lines are shown.
    #[must_use]
    pub fn matches(&self) -> usize {
        self.matches
    }

    /// Returns how many bytes the shown lines have, without their ends.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.text.len()
    }

    /// Returns the shown lines in order.
    pub fn lines(&self) -> impl ExactSizeIterator<Item = MatchLine<'_>> {
        let mut start = 0;
        self.places.iter().map(move |place| {
            let text = self.text.get(start..place.end).unwrap_or_default();
            start = place.end;
            MatchLine {
                role: place.role,
                number: place.number,
                text,
            }
        })
    }

    /// Replaces stretches that go on over the end of a line, which `find` looks for in lines that follow each other, by
    /// what is to be shown in their place, in each of the lines.
    pub fn replace(&mut self, find: &impl Fn(&str) -> Vec<(Range<usize>, String)>) {
        let mut whole = Self::default();
        let mut is_changed = false;
        let lines: Vec<MatchLine<'_>> = self.lines().collect();
        for near in lines.chunk_by(|first, second| first.number + 1 == second.number) {
            let texts: Vec<&str> = near.iter().map(|line| line.text).collect();
            let found = match near.len() {
                1 => Vec::new(),
                _ => find(&texts.join("\n")),
            };
            is_changed |= !found.is_empty();
            let mut at = 0;
            for line in near {
                let text = replaced(line.text, at, &found);
                whole.push(line.role, line.number, &text);
                at += line.text.len() + 1;
            }
        }
        if is_changed {
            (self.text, self.places) = (whole.text, whole.places);
        }
    }

    /// Adds a line.
    pub(super) fn push(&mut self, role: LineRole, number: u64, text: &str) {
        self.text.push_str(text);
        self.matches += usize::from(role == LineRole::Match);
        let end = self.text.len();
        self.places.push(LineSpan { role, number, end });
    }

    /// Drops the last lines that wait for a match, which is not shown.
    pub(super) fn drop_waiting(&mut self) {
        let is_waiting = |place: &LineSpan| place.role == LineRole::Before;
        let waiting = self
            .places
            .iter()
            .rev()
            .take_while(|place| is_waiting(place));
        self.keep_lines(self.places.len() - waiting.count());
    }

    /// Drops what stands behind so many matches, or behind so much text. The last match that is kept
    /// may reach over it.
    pub(super) fn cut(&mut self, most_matches: usize, most_bytes: usize) {
        let mut before = LineSpan {
            role: LineRole::After,
            number: 0,
            end: 0,
        };
        let mut free = most_matches;
        for (at, place) in self.places.iter().enumerate() {
            let is_first = place.role != LineRole::After && before.role != LineRole::Before;
            if is_first && (free == 0 || before.end >= most_bytes) {
                self.matches = most_matches - free;
                return self.keep_lines(at);
            }
            free -= usize::from(is_first);
            before = *place;
        }
    }

    fn keep_lines(&mut self, count: usize) {
        self.places.truncate(count);
        let end = self.places.last().map_or(0, |last| last.end);
        self.text.truncate(end);
    }
}

/// Returns a line that begins at a place of a text, with some stretches of the text replaced.
fn replaced<'a>(line: &'a str, at: usize, found: &[(Range<usize>, String)]) -> Cow<'a, str> {
    let (mut text, mut rest) = (String::new(), 0);
    for (range, instead) in found {
        let inside = |place: usize| place.clamp(at, at + line.len()) - at;
        let (start, end) = (inside(range.start), inside(range.end));
        if start < end {
            text.push_str(line.get(rest..start).unwrap_or_default());
            text.push_str(instead);
            rest = end;
        }
    }
    if rest == 0 {
        return Cow::Borrowed(line);
    }
    text.push_str(line.get(rest..).unwrap_or_default());
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use LineRole::{After, Before, Match};

    fn found(lines: &[(LineRole, &str)]) -> FileMatches {
        let mut found = FileMatches::default();
        for (number, (role, text)) in (1..).zip(lines) {
            found.push(*role, number, text);
        }
        found
    }

    #[test]
    fn a_match_is_kept_with_the_lines_around_it_or_not_at_all() {
        let lines = [
            (Before, "a"),
            (Match, "bc"),
            (After, "d"),
            (Before, "e"),
            (Before, ""),
            (Match, "f"),
            (Match, "g"),
            (After, "h"),
        ];
        let check = |most_matches, most_bytes, matches, kept: usize| {
            let mut some = found(&lines);
            some.cut(most_matches, most_bytes);
            assert_eq!(some, found(&lines[..kept]), "{most_matches} {most_bytes}");
            assert_eq!(some.matches(), matches, "{most_matches} {most_bytes}");
        };
        check(9, 100, 3, 8);
        check(3, 100, 3, 8);
        check(2, 100, 2, 6);
        check(1, 100, 1, 3);
        check(0, 100, 0, 0);
        // A match counts when it starts before the limit.
        for (most_bytes, matches, kept) in [
            (0, 0, 0),
            (1, 1, 3),
            (4, 1, 3),
            (5, 2, 6),
            (6, 2, 6),
            (7, 3, 8),
        ] {
            check(9, most_bytes, matches, kept);
        }
    }

    #[test]
    fn lines_before_a_match_that_is_not_shown_are_dropped() {
        let mut some = found(&[(Match, "a"), (After, "b"), (Before, "c"), (Before, "d")]);
        some.drop_waiting();
        assert_eq!(some, found(&[(Match, "a"), (After, "b")]));
        some.drop_waiting();
        assert_eq!(some.lines().len(), 2);
        let mut all = found(&[(Before, "a")]);
        all.drop_waiting();
        assert_eq!(all, FileMatches::default());
    }

    #[test]
    fn a_stretch_over_lines_is_replaced_in_each() {
        let lines = [
            (Before, "one"),
            (Match, "two three"),
            (After, "four"),
            (Match, "x"),
        ];
        let mut some = found(&lines);
        some.places[3].number = 9;
        let mut texts = Vec::new();
        let seen = std::cell::RefCell::new(&mut texts);
        some.replace(&|text| {
            seen.borrow_mut().push(text.to_owned());
            vec![(1..7, "A".into()), (10..15, "B".into())]
        });
        assert_eq!(texts, ["one\ntwo three\nfour"]);
        let mut expected = found(&[
            (Before, "oA"),
            (Match, "A thB"),
            (After, "Bour"),
            (Match, "x"),
        ]);
        expected.places[3].number = 9;
        assert_eq!(some, expected);
        some.replace(&|_| Vec::new());
        assert_eq!(some, expected);
    }
}
