//! Applies find and replace pairs to one text.
//!
//! Pairs apply in order, each to the result of the ones before it. A text to find must occur exactly once
//! unless all matches are to be replaced: guessing would damage files silently. LF and CRLF match each other.
//!
//! A text that is not found may have been meant as written, without decoding its escapes: an HTML file
//! contains `&amp;`. If the pair comes with that form and it occurs exactly once, it is used, even for a
//! replacement of all matches. Otherwise a text may differ from its only match in blanks at line ends. A
//! match inside an occurrence of the undecoded form does not count: replacing `&` in `&amp;` would leave half
//! an escape.
//!
//! A pair whose replacement is present and whose text to find is not may have been applied before. That is
//! only reported when the surroundings agree; otherwise a call would seem done that did nothing.

use std::ops::Range;

use memchr::memmem;

use super::closest::{self, Passage};
use super::document::{Document, count_breaks, with_lf};
use super::trailing_blanks;
use karyi_core::limits;

mod already_applied;

/// One replacement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair<'a> {
    /// Text to find; empty only to fill an empty file.
    pub find: &'a str,
    /// Text to put in its place.
    pub replace: &'a str,
    /// True if every match is replaced.
    pub all: bool,
    /// Undecoded form, when decoding changed a text.
    pub written: Option<UndecodedPair<'a>>,
    /// Extent of a replacement.
    pub scope: Scope,
}

/// Extent of a replacement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scope {
    /// The match.
    #[default]
    Text,
    /// The match; with its last line break when it is whole lines and nothing takes its place.
    Lines,
    /// The whole text.
    File,
}

/// Pair before its escapes were decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UndecodedPair<'a> {
    /// Text to find.
    pub find: &'a str,
    /// Text to put in its place.
    pub replace: &'a str,
}

/// Result of one pair. Lines count from 1 in the text that the pair was applied to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PairResult {
    /// It replaced text.
    Replaced {
        /// Number of matches.
        count: usize,
        /// Line of the first match.
        first_line: usize,
        /// Match mode.
        found_as: MatchMode,
    },
    /// The text to find is gone and its replacement is already there.
    AlreadyApplied {
        /// Line of the replacement.
        line: usize,
    },
}

/// Match mode of a text to find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatchMode {
    /// Literal match.
    Exact,
    /// Match of the undecoded form.
    Written,
    /// Match up to blanks at line ends.
    Trailing,
}

/// Failure of a pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatchError {
    /// Index of the pair, from 0.
    pub pair: usize,
    /// Kind of failure.
    pub kind: MatchErrorKind,
}

/// Kind of failure of a pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MatchErrorKind {
    /// The text to find does not occur.
    NotFound {
        /// Closest passage.
        closest: Option<Passage>,
        /// Number of searched lines, when the text has more.
        searched_lines: Option<usize>,
        /// Line of the replacement, when it is present but too short to prove that the pair was applied
        /// before.
        replacement: Option<usize>,
    },
    /// The text to find does not occur, and its undecoded form occurs more than once.
    AmbiguousAsWritten {
        /// Lines of the first matches.
        lines: Vec<usize>,
        /// Number of matches.
        total: usize,
    },
    /// The text to find occurs, also inside occurrences of its undecoded form.
    TwoReadings {
        /// Lines of the first matches of either form.
        lines: Vec<usize>,
        /// Number of matches.
        total: usize,
    },
    /// The text to find occurs more than once.
    Ambiguous {
        /// Lines of the first matches.
        lines: Vec<usize>,
        /// Number of matches.
        total: usize,
    },
    /// The text to find is empty and the file is not.
    EmptyFind,
    /// The result would exceed the size limit, or there are too many matches.
    TooLarge,
}

/// Most lines listed for an ambiguous text.
const MOST_LINES: usize = 10;
/// Most matches replaced by one pair; each takes memory while the text is rebuilt.
const MOST_MATCHES: usize = 8 << 20;

/// Applies the pairs in order; returns the new text and the result of each pair.
///
/// # Errors
/// The first pair that cannot be applied.
pub fn apply(text: &str, pairs: &[Pair<'_>]) -> Result<(String, Vec<PairResult>), MatchError> {
    let (new, results) = apply_once(text, pairs)?;
    let as_written = |result: &PairResult| result.mode() == Some(MatchMode::Written);
    let differs =
        |(result, pair): (&PairResult, &Pair<'_>)| pair.written.is_some() && !as_written(result);
    if !results.iter().any(as_written) || !results.iter().zip(pairs).any(differs) {
        return Ok((new, results));
    }
    // One file has one reading.
    let verbatim: Vec<Pair<'_>> = pairs.iter().map(Pair::as_written).collect();
    let (new, mut read) = match apply_once(text, &verbatim) {
        Ok(done) => done,
        // The text it finds may come from an earlier pair.
        Err(error) if results.get(error.pair).is_some_and(as_written) => return Ok((new, results)),
        Err(error) => return Err(error),
    };
    for (result, pair) in read.iter_mut().zip(pairs) {
        if let (PairResult::Replaced { found_as, .. }, Some(_)) = (result, pair.written) {
            *found_as = MatchMode::Written;
        }
    }
    Ok((new, read))
}

impl<'a> Pair<'a> {
    /// Returns the undecoded form, when its text to find differs.
    fn other_reading(&self) -> Option<UndecodedPair<'a>> {
        self.written.filter(|written| written.find != self.find)
    }

    /// Returns the pair in its undecoded form.
    fn as_written(&self) -> Self {
        let (find, replace) = self.written.map_or((self.find, self.replace), |written| {
            (written.find, written.replace)
        });
        Self {
            find,
            replace,
            written: None,
            ..*self
        }
    }
}

impl PairResult {
    /// Returns how the text to find was found, when it was replaced.
    pub(super) fn mode(&self) -> Option<MatchMode> {
        match self {
            Self::Replaced { found_as, .. } => Some(*found_as),
            Self::AlreadyApplied { .. } => None,
        }
    }
}

/// Applies the pairs, each in the reading that its text to find shows.
fn apply_once(text: &str, pairs: &[Pair<'_>]) -> Result<(String, Vec<PairResult>), MatchError> {
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
    if pair.scope == Scope::File {
        return fill_anew(document, pair.replace);
    }
    if pair.find.is_empty() {
        return fill(document, pair.replace);
    }
    let (find, replace) = (with_lf(pair.find), with_lf(pair.replace));
    let source = pair.other_reading().map(|written| with_lf(written.find));
    // CDATA means its text literally.
    let is_there = |source: &str| !source.contains("<![CDATA[") && document.text().contains(source);
    let found = match source.filter(|source| is_there(source)) {
        Some(source) => find_outside(document.text(), pair.all, &find, &source)?,
        None => find_matches(document.text(), pair.all, &find)?,
    };
    if found.is_empty() {
        return replace_as_written(document, pair, &find, &replace);
    }
    replace_at(
        document,
        found,
        pair.scope,
        (&find, &replace),
        MatchMode::Exact,
    )
}

/// Adds its last line break to each match of whole lines that nothing replaces.
fn whole_lines(
    text: &str,
    mut found: Vec<Range<usize>>,
    scope: Scope,
    replace: &str,
) -> Vec<Range<usize>> {
    if scope == Scope::Lines && replace.is_empty() {
        let bytes = text.as_bytes();
        for place in &mut found {
            let starts = place.start == 0 || bytes.get(place.start - 1) == Some(&b'\n');
            if starts && bytes.get(place.end) == Some(&b'\n') {
                place.end += 1;
            }
        }
    }
    found
}

/// Replaces a whole text.
fn fill_anew<'a>(
    document: &mut Document<'a>,
    replace: &'a str,
) -> Result<PairResult, MatchErrorKind> {
    if document.text().is_empty() {
        return fill(document, replace);
    }
    let replace = with_lf(replace);
    let whole = 0..document.text().len();
    replace_at(
        document,
        vec![whole],
        Scope::File,
        ("", &replace),
        MatchMode::Exact,
    )
}

fn find_matches(text: &str, all: bool, find: &str) -> Result<Vec<Range<usize>>, MatchErrorKind> {
    match all {
        true => Ok(find_all(text, find)),
        false => find_once(text, find),
    }
}

/// Finds `find` outside occurrences of `source`, its undecoded form.
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
        0 => find_matches(text, all, find),
        inside if inside == found.len() => Ok(Vec::new()),
        _ => Err(MatchErrorKind::TwoReadings {
            lines: lines_of(text, &found),
            total: found.len(),
        }),
    }
}

/// Replaces the matches.
fn replace_at(
    document: &mut Document<'_>,
    found: Vec<Range<usize>>,
    scope: Scope,
    (find, replace): (&str, &str),
    found_as: MatchMode,
) -> Result<PairResult, MatchErrorKind> {
    let found = whole_lines(document.text(), found, scope, replace);
    let text = document.text().len();
    check_size(text, found.len(), find.len(), replace.len())?;
    let first = found.first().map_or(0, |first| first.start);
    let result = PairResult::Replaced {
        count: found.len(),
        first_line: line_at(document.text(), first),
        found_as,
    };
    document.replace(&found, replace);
    Ok(result)
}

/// Tries the undecoded form of a pair that does not match; otherwise the pair may have been applied before,
/// in either form.
fn replace_as_written(
    document: &mut Document<'_>,
    pair: &Pair<'_>,
    find: &str,
    replace: &str,
) -> Result<PairResult, MatchErrorKind> {
    let Some(written) = pair.other_reading() else {
        return replace_trailing(document, pair, find, replace);
    };
    let (source, source_replace) = (with_lf(written.find), with_lf(written.replace));
    let found = find_once(document.text(), &source);
    match found {
        Ok(found) if !found.is_empty() => {
            let texts = (&*source, &*source_replace);
            replace_at(document, found, pair.scope, texts, MatchMode::Written)
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

impl MatchErrorKind {
    fn into_written(self) -> Self {
        match self {
            Self::Ambiguous { lines, total } => Self::AmbiguousAsWritten { lines, total },
            other => other,
        }
    }
}

/// Tries a match up to blanks at line ends. If that changes nothing or does not exist, the pair may have been
/// applied before.
fn replace_trailing(
    document: &mut Document<'_>,
    pair: &Pair<'_>,
    find: &str,
    replace: &str,
) -> Result<PairResult, MatchErrorKind> {
    let place = match pair.all {
        true => None,
        false => trailing_blanks::find_once(document.text(), find),
    };
    match place {
        Some(place) if document.text().get(place.clone()) != Some(replace) => {
            let texts = (find, replace);
            replace_at(
                document,
                vec![place],
                pair.scope,
                texts,
                MatchMode::Trailing,
            )
        }
        _ => already_applied(document.text(), pair, find, replace),
    }
}

/// Fills an empty file, which an empty text to find stands for.
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

/// Returns the only match, or none. Overlapping matches count separately.
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

/// Returns the only place of a replacement, or the first ones when all matches are wanted: each check takes
/// time, and a few suffice.
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
