//! Shown lines of one file, in one buffer.
//!
//! A search may show ten thousand short lines. One allocation per line would cost more than the search.

use std::borrow::Cow;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Role of a shown line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineRole {
    /// Context before the following match.
    Before,
    /// Matching line.
    Match,
    /// Context after the preceding match.
    After,
}

/// Shown line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MatchLine<'a> {
    /// Role of the line.
    pub role: LineRole,
    /// Line number, from 1.
    pub number: u64,
    /// Text without the line break; long lines are cut.
    pub text: &'a str,
}

/// Shown matches of one file, with their context.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileMatches {
    /// File, relative like the searched path.
    pub path: PathBuf,
    text: String,
    places: Vec<LineSpan>,
    matches: usize,
}

/// Span of a line in the buffer; it starts where the previous one ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LineSpan {
    role: LineRole,
    number: u64,
    end: usize,
}

impl FileMatches {
    /// Starts a file without shown lines.
    #[cfg(test)]
    pub(super) fn named(path: &str) -> Self {
        Self {
            path: path.into(),
            ..Self::default()
        }
    }

    /// Returns the path without a leading `./`.
    #[must_use]
    pub fn short_path(&self) -> &Path {
        self.path.strip_prefix(".").unwrap_or(&self.path)
    }

    /// Returns the number of shown matches.
    #[must_use]
    pub fn matches(&self) -> usize {
        self.matches
    }

    /// Returns the size of the shown lines, without line breaks.
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

    /// Replaces stretches that span consecutive lines. `find` returns the stretches of several lines joined
    /// with line breaks; each line gets the replacement of its part.
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

    /// Drops trailing context before a match that is not shown.
    pub(super) fn drop_trailing_context(&mut self) {
        let is_waiting = |place: &LineSpan| place.role == LineRole::Before;
        let waiting = self
            .places
            .iter()
            .rev()
            .take_while(|place| is_waiting(place));
        self.truncate_lines(self.places.len() - waiting.count());
    }

    /// Drops all lines after this many matches, or after this much text. The last kept match may exceed the
    /// size.
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
                return self.truncate_lines(at);
            }
            free -= usize::from(is_first);
            before = *place;
        }
    }

    fn truncate_lines(&mut self, count: usize) {
        self.places.truncate(count);
        let end = self.places.last().map_or(0, |last| last.end);
        self.text.truncate(end);
    }
}

/// Replaces the stretches that overlap a line, which starts at offset `at`.
fn replaced<'a>(line: &'a str, at: usize, found: &[(Range<usize>, String)]) -> Cow<'a, str> {
    let (mut text, mut rest) = (String::new(), 0);
    for (range, replacement) in found {
        let inside = |place: usize| place.clamp(at, at + line.len()) - at;
        let (start, end) = (inside(range.start), inside(range.end));
        if start < end {
            text.push_str(line.get(rest..start).unwrap_or_default());
            text.push_str(replacement);
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
    fn matches_are_cut_with_their_context() {
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
        let check = |most_matches, most_bytes, matches, line_count: usize| {
            let mut some = found(&lines);
            some.cut(most_matches, most_bytes);
            assert_eq!(
                some,
                found(&lines[..line_count]),
                "{most_matches} {most_bytes}"
            );
            assert_eq!(some.matches(), matches, "{most_matches} {most_bytes}");
        };
        check(9, 100, 3, 8);
        check(3, 100, 3, 8);
        check(2, 100, 2, 6);
        check(1, 100, 1, 3);
        check(0, 100, 0, 0);
        // A match is kept when it starts before the limit.
        for (most_bytes, matches, line_count) in [
            (0, 0, 0),
            (1, 1, 3),
            (4, 1, 3),
            (5, 2, 6),
            (6, 2, 6),
            (7, 3, 8),
        ] {
            check(9, most_bytes, matches, line_count);
        }
    }

    #[test]
    fn context_of_omitted_matches_is_dropped() {
        let mut some = found(&[(Match, "a"), (After, "b"), (Before, "c"), (Before, "d")]);
        some.drop_trailing_context();
        assert_eq!(some, found(&[(Match, "a"), (After, "b")]));
        some.drop_trailing_context();
        assert_eq!(some.lines().len(), 2);
        let mut all = found(&[(Before, "a")]);
        all.drop_trailing_context();
        assert_eq!(all, FileMatches::default());
    }

    #[test]
    fn stretches_across_lines_are_replaced_in_each() {
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
