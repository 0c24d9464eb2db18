//! Collects the matching lines of one file with their context.

use std::borrow::Cow;
use std::io;
use std::ops::Range;

use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkContextKind, SinkMatch};

use super::SearchCaps;
use super::file_matches::{FileMatches, LineRole};

/// Sink for the matches of one file.
pub(super) struct MatchCollector<'a> {
    matcher: &'a RegexMatcher,
    free_matches: usize,
    free_bytes: usize,
    line_bytes: usize,
    /// First matching lines.
    pub(super) found: FileMatches,
    /// Number of matching lines.
    pub(super) total: u64,
    /// True if the file is binary; then its matches do not count.
    pub(super) is_binary: bool,
}

impl<'a> MatchCollector<'a> {
    /// Starts a file of which at most this many matches are kept.
    pub(super) fn new(matcher: &'a RegexMatcher, most_matches: usize, caps: SearchCaps) -> Self {
        Self {
            matcher,
            free_matches: most_matches,
            free_bytes: caps.text_bytes,
            line_bytes: caps.line_bytes,
            found: FileMatches::default(),
            total: 0,
            is_binary: false,
        }
    }

    fn has_room(&self) -> bool {
        self.found.matches() < self.free_matches && self.free_bytes > 0
    }

    /// Adds a line, cut around the place where it matches.
    fn take(&mut self, role: LineRole, number: Option<u64>, bytes: &[u8], place: Range<usize>) {
        let line = show(bytes, place, self.line_bytes);
        self.free_bytes = self.free_bytes.saturating_sub(line.len());
        self.found.push(role, number.unwrap_or(0), &line);
    }

    fn place(&self, line: &[u8]) -> Range<usize> {
        if line.len() <= self.line_bytes {
            return 0..0;
        }
        let found = self.matcher.find(line).ok().flatten();
        found.map_or(0..0, |found| found.start()..found.end())
    }
}

impl Sink for MatchCollector<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        self.total += 1;
        if self.has_room() {
            let place = self.place(found.bytes());
            self.take(LineRole::Match, found.line_number(), found.bytes(), place);
        } else {
            self.found.drop_trailing_context();
            self.free_matches = 0;
        }
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> Result<bool, io::Error> {
        let (role, is_shown) = match *context.kind() {
            // Context after an omitted match is omitted, too.
            SinkContextKind::After => {
                let is_of_shown = self.found.matches() as u64 == self.total;
                (LineRole::After, is_of_shown && self.free_bytes > 0)
            }
            _ => (LineRole::Before, self.has_room()),
        };
        if is_shown {
            self.take(role, context.line_number(), context.bytes(), 0..0);
        }
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> Result<bool, io::Error> {
        self.is_binary = true;
        Ok(false)
    }
}

/// Returns a line without its line break; a long one is cut around `place`.
fn show(bytes: &[u8], place: Range<usize>, most: usize) -> Cow<'_, str> {
    let line = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.len() <= most {
        // Most lines are valid UTF-8, and validating is much faster than replacing.
        let whole = std::str::from_utf8(line).map(Cow::Borrowed);
        return whole.unwrap_or_else(|_| String::from_utf8_lossy(line));
    }
    let around = most.saturating_sub(place.len()) / 2;
    let start = place.start.saturating_sub(around).min(line.len() - most);
    let start = border(line, start);
    let end = border(line, (start + most).min(line.len()));
    let shown = String::from_utf8_lossy(line.get(start..end).unwrap_or_default());
    Cow::Owned(format!("{}{shown}{}", gap(start), gap(line.len() - end)))
}

fn gap(bytes: usize) -> String {
    match bytes {
        0 => String::new(),
        count => format!("[... {count} bytes omitted ...]"),
    }
}

/// Returns the start of the character that contains the byte at `at`.
fn border(line: &[u8], at: usize) -> usize {
    let is_start = |at: &usize| line.get(*at).is_none_or(|byte| byte & 0xC0 != 0x80);
    let reach = at.saturating_sub(3)..=at;
    reach.rev().find(is_start).unwrap_or(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use karyi_core::limits;

    #[test]
    fn long_lines_are_shown_around_the_match() {
        let most = limits::READ_LINE_BYTES;
        let line = format!("{}needle{}\r\n", "é".repeat(5000), "x".repeat(5000));
        let shown = show(line.as_bytes(), 10_000..10_006, most);
        let (left, right) = (10_000 - (most - 6) / 2, 5000 - (most - 6) / 2 - 1);
        let left = left - left % 2;
        let (before, after) = (gap(left), gap(15_006 - left - most));
        assert!(right > 0);
        assert!(
            shown.starts_with(&before) && shown.ends_with(&after),
            "{shown}"
        );
        assert_eq!(shown.len() - before.len() - after.len(), most);
        assert!(shown.contains("éneedlex") && !shown.contains(char::REPLACEMENT_CHARACTER));
        let end = "x".repeat(3000) + "needle";
        let shown = show(end.as_bytes(), 3000..3006, most);
        assert_eq!(
            shown,
            format!("{}{}", gap(3006 - most), &end[3006 - most..])
        );
        assert_eq!(show(b"short\r\n", 0..0, most), "short");
    }
}
