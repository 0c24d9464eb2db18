//! Applies find and replace pairs to one text.
//!
//! The pairs work in order, each on what the ones before it left. A text to find must be there
//! exactly once, unless it is to be replaced everywhere: guessing which place was meant would
//! damage files quietly. LF and CRLF are the same to matching.
//!
//! A text to find that is nowhere may have been meant as it was written, escapes and all: a file of
//! HTML holds `&amp;`. When the pair comes with that reading and it is there exactly once, also where
//! every match was wanted, the pair is used as written. A text that is nowhere else may differ from its
//! only place in blanks at the ends of lines; then that place is meant. A match inside a place that holds the text as
//! written is none: to replace `&` in `&amp;` would leave half of an escape.
//!
//! A text to find that is gone while its replacement is there may have been replaced before. That is
//! said only where the surroundings agree: else a call would seem to be done that did nothing.

use std::ops::Range;

use memchr::memmem;

use super::closest::{self, Passage};
use super::document::{Document, count_breaks, with_lf};
use super::trailing;
use karyi_core::limits;

mod already_applied;

/// One replacement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair<'a> {
    /// Text to find; empty only to fill an empty file.
    pub find: &'a str,
    /// Text to put in its place.
    pub replace: &'a str,
    /// Whether every match is replaced.
    pub all: bool,
    /// The pair as it was written, when decoding changed the text to find.
    pub written: Option<UndecodedPair<'a>>,
}

/// A pair before its escapes were decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UndecodedPair<'a> {
    /// Text to find.
    pub find: &'a str,
    /// Text to put in its place.
    pub replace: &'a str,
}

/// What one pair did. Lines count from 1 in the text the pair worked on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PairResult {
    /// It replaced text.
    Replaced {
        /// How many matches.
        count: usize,
        /// Line of the first.
        first_line: usize,
        /// How the text was found.
        found_as: MatchMode,
    },
    /// The text to find is gone and its replacement is there already.
    AlreadyApplied {
        /// Line of the replacement.
        line: usize,
    },
}

/// How a text to find was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatchMode {
    /// To the letter.
    Exact,
    /// As it was written, without decoding its escapes.
    Written,
    /// But for blanks at the ends of lines.
    Trailing,
}

/// Why a pair could not be applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatchError {
    /// Which pair, from 0.
    pub pair: usize,
    /// What was wrong.
    pub kind: MatchErrorKind,
}

/// What was wrong with a pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MatchErrorKind {
    /// The text to find is not there.
    NotFound {
        /// What comes closest to it.
        closest: Option<Passage>,
        /// Lines of the text among which that was looked for, when it has more.
        searched_lines: Option<usize>,
        /// Line of the replacement, when that is there and says too little to tell that the pair was
        /// applied before.
        replacement: Option<usize>,
    },
    /// The text to find is not there; as written, escapes and all, it is there more than once.
    AmbiguousAsWritten {
        /// Lines of the first matches.
        lines: Vec<usize>,
        /// How many matches there are.
        total: usize,
    },
    /// The text to find is there, and also as a part of places that hold it as written.
    TwoReadings {
        /// Lines of the first matches, in either reading.
        lines: Vec<usize>,
        /// How many matches there are.
        total: usize,
    },
    /// The text to find is there more than once.
    Ambiguous {
        /// Lines of the first matches.
        lines: Vec<usize>,
        /// How many matches there are.
        total: usize,
    },
    /// The text to find is empty and the file is not.
    EmptyFind,
    /// The result would be longer than a file may be, or the matches are too many.
    TooLarge,
}

/// Most lines named for an ambiguous text.
const MOST_LINES: usize = 10;
/// Most matches replaced by one pair: each takes some memory while the text is rebuilt.
const MOST_MATCHES: usize = 8 << 20;

/// Applies the pairs in order; returns the new text and what each pair did.
///
/// # Errors
/// The first pair that cannot be applied.
pub fn apply(text: &str, pairs: &[Pair<'_>]) -> Result<(String, Vec<PairResult>), MatchError> {
    let mut document = Document::new(text);
    let mut results = Vec::with_capacity(pairs.len());
    for (pair, wanted) in pairs.iter().enumerate() {
        let result = apply_pair(&mut document, wanted).map_err(|kind| MatchError { pair, kind })?;
        results.push(result);
    }
    Ok((document.into_file_text(), results))
}

fn apply_pair<'a>(
    document: &mut Document<'a>,
    pair: &Pair<'a>,
) -> Result<PairResult, MatchErrorKind> {
    if pair.find.is_empty() {
        return fill(document, pair.replace);
    }
    let (find, replace) = (with_lf(pair.find), with_lf(pair.replace));
    let source = pair.written.map(|written| with_lf(written.find));
    // CDATA says that its text is meant to the letter.
    let is_there = |source: &str| !source.contains("<![CDATA[") && document.text().contains(source);
    let found = match source.filter(|source| is_there(source)) {
        Some(source) => find_outside(document.text(), pair.all, &find, &source)?,
        None => find_wanted(document.text(), pair.all, &find)?,
    };
    if found.is_empty() {
        return replace_as_written(document, pair, &find, &replace);
    }
    replace_at(document, &found, &find, &replace)
}

fn find_wanted(text: &str, all: bool, find: &str) -> Result<Vec<Range<usize>>, MatchErrorKind> {
    match all {
        true => Ok(find_all(text, find)),
        false => find_once(text, find),
    }
}

/// Finds `find` where it is no part of `source`, the same text as it was written.
fn find_outside(
    text: &str,
    all: bool,
    find: &str,
    source: &str,
) -> Result<Vec<Range<usize>>, MatchErrorKind> {
    let found = find_all(text, find);
    let mut written = find_all(text, source).into_iter().peekable();
    let mut is_inside = |place: &Range<usize>| {
        while written.next_if(|w| w.end <= place.start).is_some() {}
        written.peek().is_some_and(|w| w.start < place.end)
    };
    match found.iter().filter(|place| is_inside(place)).count() {
        0 => find_wanted(text, all, find),
        inside if inside == found.len() => Ok(Vec::new()),
        _ => Err(MatchErrorKind::TwoReadings {
            lines: lines_of(text, &found),
            total: found.len(),
        }),
    }
}

/// Replaces matches that were found.
fn replace_at(
    document: &mut Document<'_>,
    found: &[Range<usize>],
    find: &str,
    replace: &str,
) -> Result<PairResult, MatchErrorKind> {
    check_size(
        document.text().len(),
        found.len(),
        find.len(),
        replace.len(),
    )?;
    let first = found.first().map_or(0, |first| first.start);
    let result = PairResult::Replaced {
        count: found.len(),
        first_line: line_at(document.text(), first),
        found_as: MatchMode::Exact,
    };
    document.replace(found, replace);
    Ok(result)
}

/// Uses a pair whose text to find is nowhere as it was written, if that is unambiguous; else it may
/// have been applied before, in either reading.
fn replace_as_written(
    document: &mut Document<'_>,
    pair: &Pair<'_>,
    find: &str,
    replace: &str,
) -> Result<PairResult, MatchErrorKind> {
    let Some(written) = pair.written else {
        return replace_trailing(document, pair, find, replace);
    };
    let (source, source_replace) = (with_lf(written.find), with_lf(written.replace));
    let found = find_once(document.text(), &source);
    match found {
        Ok(found) if !found.is_empty() => {
            let result = replace_at(document, &found, &source, &source_replace)?;
            Ok(result.found_as(MatchMode::Written))
        }
        Ok(_) => replace_trailing(document, pair, find, replace).or_else(|error| {
            already_applied(document.text(), pair, &source, &source_replace).map_err(|_| error)
        }),
        Err(ambiguous) => {
            let applied = already_applied(document.text(), pair, find, replace);
            applied.map_err(|_| ambiguous.into_written())
        }
    }
}

impl PairResult {
    fn found_as(self, how: MatchMode) -> Self {
        match self {
            Self::Replaced {
                count, first_line, ..
            } => Self::Replaced {
                count,
                first_line,
                found_as: how,
            },
            Self::AlreadyApplied { .. } => self,
        }
    }
}

impl MatchErrorKind {
    fn into_written(self) -> Self {
        match self {
            Self::Ambiguous { lines, total } => Self::AmbiguousAsWritten { lines, total },
            other => other,
        }
    }
}

/// Uses a pair whose text to find differs from the only place that comes near it in blanks at the ends
/// of lines. When that changes nothing, and when there is no such place, it may have been applied
/// before.
fn replace_trailing(
    document: &mut Document<'_>,
    pair: &Pair<'_>,
    find: &str,
    replace: &str,
) -> Result<PairResult, MatchErrorKind> {
    let place = match pair.all {
        true => None,
        false => trailing::find_once(document.text(), find),
    };
    match place {
        Some(place) if document.text().get(place.clone()) != Some(replace) => {
            let result = replace_at(document, &[place], find, replace)?;
            Ok(result.found_as(MatchMode::Trailing))
        }
        _ => already_applied(document.text(), pair, find, replace),
    }
}

/// An empty text to find stands for the content of an empty file.
fn fill<'a>(document: &mut Document<'a>, replace: &'a str) -> Result<PairResult, MatchErrorKind> {
    if document.text().is_empty() {
        *document = Document::new(replace);
        return Ok(PairResult::Replaced {
            count: 1,
            first_line: 1,
            found_as: MatchMode::Exact,
        });
    }
    if document.text() == with_lf(replace) {
        return Ok(PairResult::AlreadyApplied { line: 1 });
    }
    Err(MatchErrorKind::EmptyFind)
}

fn find_all(text: &str, find: &str) -> Vec<Range<usize>> {
    memmem::find_iter(text.as_bytes(), find.as_bytes())
        .take(MOST_MATCHES + 1)
        .map(|at| at..at + find.len())
        .collect()
}

/// Returns the only match, or none. Matches that overlap are two places all the same.
fn find_once(text: &str, find: &str) -> Result<Vec<Range<usize>>, MatchErrorKind> {
    let finder = memmem::Finder::new(find);
    let Some(first) = finder.find(text.as_bytes()) else {
        return Ok(Vec::new());
    };
    let rest = text.as_bytes().get(first + 1..).unwrap_or_default();
    let Some(second) = finder.find(rest) else {
        return Ok(std::iter::once(first..first + find.len()).collect());
    };
    let mut line = line_at(text, first);
    let (mut lines, mut at) = (vec![line], first);
    let mut total = 1;
    let later = finder.find_iter(rest.get(second..).unwrap_or_default());
    for next in later.map(|offset| first + 1 + second + offset) {
        total += 1;
        if lines.len() < MOST_LINES {
            line += count_breaks(text.get(at..next).unwrap_or_default());
            lines.push(line);
            at = next;
        }
    }
    Err(MatchErrorKind::Ambiguous { lines, total })
}

/// Returns the lines of the first matches.
fn lines_of(text: &str, found: &[Range<usize>]) -> Vec<usize> {
    let (mut line, mut at) = (1, 0);
    let lines = found.iter().take(MOST_LINES).map(|place| {
        line += count_breaks(text.get(at..place.start).unwrap_or_default());
        at = place.start;
        line
    });
    lines.collect()
}

fn already_applied(
    text: &str,
    pair: &Pair<'_>,
    find: &str,
    replace: &str,
) -> Result<PairResult, MatchErrorKind> {
    let places = match replace.is_empty() {
        true => Vec::new(),
        false => first_places(text, pair.all, replace),
    };
    let line = |place: &Range<usize>| line_at(text, place.start);
    if let Some(place) = already_applied::find_trace(text, &places, find, replace) {
        return Ok(PairResult::AlreadyApplied { line: line(&place) });
    }
    Err(MatchErrorKind::NotFound {
        closest: closest::closest(text, find),
        searched_lines: closest::searched_lines(text),
        replacement: places.first().map(line),
    })
}

/// Returns the only place of a replacement, or the first ones where all are wanted: each look takes time, and
/// one place tells as much as all.
fn first_places(text: &str, all: bool, replace: &str) -> Vec<Range<usize>> {
    match all {
        true => memmem::find_iter(text.as_bytes(), replace.as_bytes())
            .take(MOST_LINES)
            .map(|at| at..at + replace.len())
            .collect(),
        false => find_once(text, replace).unwrap_or_default(),
    }
}

fn check_size(
    text: usize,
    count: usize,
    find: usize,
    replace: usize,
) -> Result<(), MatchErrorKind> {
    let removed = count.saturating_mul(find);
    let added = count.saturating_mul(replace);
    let size = text.saturating_sub(removed).saturating_add(added);
    if size as u64 > limits::MAX_EDIT_FILE_BYTES || count > MOST_MATCHES {
        return Err(MatchErrorKind::TooLarge);
    }
    Ok(())
}

fn line_at(text: &str, offset: usize) -> usize {
    1 + count_breaks(text.get(..offset).unwrap_or_default())
}

#[cfg(test)]
mod tests;
