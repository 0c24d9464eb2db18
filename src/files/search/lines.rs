//! Collects the matching lines of one file, with those around them.

use std::io;
use std::ops::Range;
use std::path::Path;

use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkContextKind, SinkMatch};

use super::Match;
use crate::limits;

/// What was found in one file.
pub(super) struct Lines<'a> {
    matcher: &'a RegexMatcher,
    path: &'a Path,
    free_matches: usize,
    free_bytes: usize,
    /// The first matching lines.
    pub(super) matches: Vec<Match>,
    /// Context lines that wait for the match they stand before.
    before: Vec<String>,
    /// All matching lines.
    pub(super) total: u64,
    /// Whether the file is no text; then what was found in it does not count.
    pub(super) is_binary: bool,
}

impl<'a> Lines<'a> {
    /// Starts a file of which at most so many matches are kept.
    pub(super) fn new(matcher: &'a RegexMatcher, path: &'a Path, most_matches: usize) -> Self {
        Self {
            matcher,
            path,
            free_matches: most_matches,
            free_bytes: limits::MAX_SEARCH_TEXT_BYTES,
            matches: Vec::new(),
            before: Vec::new(),
            total: 0,
            is_binary: false,
        }
    }

    fn has_room(&self) -> bool {
        self.matches.len() < self.free_matches && self.free_bytes > 0
    }

    /// Returns a line to show, around the place where it matches.
    fn take(&mut self, bytes: &[u8], place: Range<usize>) -> String {
        let line = show(bytes, place);
        self.free_bytes = self.free_bytes.saturating_sub(line.len());
        line
    }

    fn place(&self, line: &[u8]) -> Range<usize> {
        if line.len() <= limits::MAX_SEARCH_LINE_BYTES {
            return 0..0;
        }
        let found = self.matcher.find(line).ok().flatten();
        found.map_or(0..0, |found| found.start()..found.end())
    }
}

impl Sink for Lines<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        self.total += 1;
        let before = std::mem::take(&mut self.before);
        if self.has_room() {
            let place = self.place(found.bytes());
            let text = self.take(found.bytes(), place);
            self.matches.push(Match {
                path: self.path.to_owned(),
                line: found.line_number().unwrap_or(0),
                text,
                before,
                after: Vec::new(),
            });
        } else {
            self.free_matches = 0;
        }
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> Result<bool, io::Error> {
        let is_after = *context.kind() == SinkContextKind::After;
        if !is_after && self.has_room() {
            let line = self.take(context.bytes(), 0..0);
            self.before.push(line);
        }
        // The lines after a match that is not shown belong to no shown one either.
        if is_after && self.matches.len() as u64 == self.total && self.free_bytes > 0 {
            let line = self.take(context.bytes(), 0..0);
            if let Some(last) = self.matches.last_mut() {
                last.after.push(line);
            }
        }
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> Result<bool, io::Error> {
        self.is_binary = true;
        Ok(false)
    }
}

/// Returns a line without its end; of a long one what stands around `place`.
fn show(bytes: &[u8], place: Range<usize>) -> String {
    let line = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let most = limits::MAX_SEARCH_LINE_BYTES;
    if line.len() <= most {
        return String::from_utf8_lossy(line).into_owned();
    }
    let around = most.saturating_sub(place.len()) / 2;
    let start = place.start.saturating_sub(around).min(line.len() - most);
    let start = border(line, start);
    let end = border(line, (start + most).min(line.len()));
    let shown = String::from_utf8_lossy(line.get(start..end).unwrap_or_default());
    format!("{}{shown}{}", gap(start), gap(line.len() - end))
}

fn gap(bytes: usize) -> String {
    match bytes {
        0 => String::new(),
        count => format!("[... {count} bytes omitted ...]"),
    }
}

/// Returns the start of the character that holds the byte at `at`.
fn border(line: &[u8], at: usize) -> usize {
    let is_start = |at: &usize| line.get(*at).is_none_or(|byte| byte & 0xC0 != 0x80);
    let reach = at.saturating_sub(3)..=at;
    reach.rev().find(is_start).unwrap_or(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_shown_around_the_match() {
        let most = limits::MAX_SEARCH_LINE_BYTES;
        let line = format!("{}needle{}\r\n", "é".repeat(5000), "x".repeat(5000));
        let shown = show(line.as_bytes(), 10_000..10_006);
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
        let shown = show(end.as_bytes(), 3000..3006);
        assert_eq!(
            shown,
            format!("{}{}", gap(3006 - most), &end[3006 - most..])
        );
        assert_eq!(show(b"short\r\n", 0..0), "short");
    }
}
