//! The available bytes, and the little that later diagnostics need of earlier ones.
//!
//! The parser works on one [`View`] at a time: all bytes that are not yet consumed. What a later
//! diagnostic may need of consumed bytes is small: the end of the current line, and a
//! [`Mark`] for every element that is still open.

use memchr::{memchr, memchr2, memrchr2};

use super::position_tracker::PositionTracker;
use karyi_core::error::Excerpt;
use karyi_core::limits::EXCERPT_REACH_BYTES;
use karyi_core::span::Position;

/// State that survives between two views.
#[derive(Debug, Default)]
pub(super) struct Source {
    tracker: PositionTracker,
    /// The end of the current line as far as it was consumed.
    history: Vec<u8>,
}

impl Source {
    /// Returns the offset of the first byte that is not consumed.
    pub(super) fn offset(&self) -> u64 {
        self.tracker.position().offset
    }
}

/// A stretch of one source line around a place, not yet made safe to show.
#[derive(Debug, Clone)]
pub(super) struct SourceLine {
    bytes: Vec<u8>,
    /// Index of the position. The bytes before it exceed the excerpt's reach when more were cut off.
    place: usize,
}

/// A place that a later diagnostic may point at, with the length of the tag there.
#[derive(Debug, Clone)]
pub(super) struct Mark {
    /// Position in the message.
    pub(super) position: Position,
    /// Length of the tag or delimiter there.
    pub(super) length: usize,
    /// Its line up to the end of the tag, once the bytes are gone.
    frozen: Option<Box<SourceLine>>,
}

/// Continuation of the message after the available bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// More bytes may.
    Open,
    /// Nothing that counts: report errors so far, but nothing as missing.
    Cut,
    /// Nothing: the message ends.
    Last,
}

/// All bytes that are not yet consumed.
#[derive(Debug)]
pub(super) struct View<'v> {
    bytes: &'v [u8],
    /// Offset of the first of `bytes` in the message.
    base: u64,
    at: usize,
    /// Up to here lines and columns are counted; done only when somebody asks for a place.
    counted: usize,
    /// Up to here no CR stands after what is counted.
    without_cr: usize,
    /// Continuation of the message.
    pub(super) ending: Ending,
    source: &'v mut Source,
}

impl<'v> View<'v> {
    /// Makes a view of the bytes that follow what `source` has seen.
    pub(super) fn new(bytes: &'v [u8], ending: Ending, source: &'v mut Source) -> Self {
        Self {
            bytes,
            base: source.tracker.position().offset,
            at: 0,
            counted: 0,
            without_cr: 0,
            ending,
            source,
        }
    }

    /// Returns the bytes that are not consumed.
    pub(super) fn rest(&self) -> &'v [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// Returns how many bytes of the view are consumed.
    pub(super) fn consumed(&self) -> usize {
        self.at
    }

    /// Returns the place of the first byte that is not consumed.
    pub(super) fn position(&mut self) -> Position {
        self.count();
        self.source.tracker.position()
    }

    /// Returns the offset of the first byte that is not consumed.
    pub(super) fn offset(&self) -> u64 {
        self.base + self.at as u64
    }

    /// Returns the place `ahead` bytes further on.
    pub(super) fn position_ahead(&mut self, ahead: usize) -> Position {
        self.count();
        let mut tracker = self.source.tracker.clone();
        tracker.advance(self.rest().get(..ahead).unwrap_or(self.rest()));
        tracker.position()
    }

    /// Moves on by `count` bytes.
    pub(super) fn consume(&mut self, count: usize) {
        self.at = self.at.saturating_add(count).min(self.bytes.len());
    }

    /// Moves on by a byte order mark, which is no column.
    pub(super) fn consume_mark(&mut self, count: usize) {
        self.count();
        self.source.tracker.skip_mark(count);
        self.at += count;
        self.counted = self.at;
    }

    fn count(&mut self) {
        let more = self.bytes.get(self.counted..self.at).unwrap_or_default();
        if self.is_without_cr() {
            self.source.tracker.advance_by_lines(more);
        } else {
            self.source.tracker.advance(more);
        }
        self.counted = self.at;
    }

    /// Returns true when the uncounted bytes contain no CR; searches far ahead, and so rarely.
    fn is_without_cr(&mut self) -> bool {
        if self.without_cr < self.at {
            let ahead = self.bytes.get(self.counted..).unwrap_or_default();
            self.without_cr = memchr(b'\r', ahead).map_or(self.bytes.len(), |at| self.counted + at);
        }
        self.without_cr >= self.at
    }

    /// Tells whether all that an excerpt at `ahead` can show is here.
    pub(super) fn has_line(&self, ahead: usize) -> bool {
        self.ending == Ending::Last || is_complete(self.from(ahead))
    }

    /// Returns the line around the place `ahead` bytes further on, as far as it is here.
    pub(super) fn line(&self, ahead: usize) -> SourceLine {
        self.line_at(self.at + ahead, line_start(self.from(ahead)))
    }

    /// Marks the next byte, where a tag of `length` bytes stands.
    pub(super) fn mark(&mut self, length: usize) -> Mark {
        Mark {
            position: self.position(),
            length,
            frozen: None,
        }
    }

    /// Returns the line around a mark, up to the end of its tag.
    pub(super) fn line_of(&self, mark: &Mark) -> SourceLine {
        if let Some(line) = &mark.frozen {
            return SourceLine::clone(line);
        }
        let start = mark.position.offset.saturating_sub(self.base);
        let start = usize::try_from(start).unwrap_or(self.bytes.len());
        let end = start.saturating_add(mark.length).min(self.bytes.len());
        let tag = self.bytes.get(start..end).unwrap_or_default();
        self.line_at(start, line_start(tag))
    }

    /// Makes a mark outlive the view; returns whether it was not frozen before.
    pub(super) fn freeze(&self, mark: &mut Mark) -> bool {
        let is_new = mark.frozen.is_none();
        if is_new {
            mark.frozen = Some(Box::new(self.line_of(mark)));
        }
        is_new
    }

    /// Stores the consumed bytes that later excerpts need.
    pub(super) fn close(mut self) {
        self.count();
        let consumed = self.bytes.get(..self.at).unwrap_or_default();
        let tail = tail(consumed);
        let history = &mut self.source.history;
        match memrchr2(b'\n', b'\r', tail) {
            Some(at) => {
                history.clear();
                history.extend_from_slice(tail.get(at + 1..).unwrap_or_default());
            }
            None if tail.len() < consumed.len() => {
                history.clear();
                history.extend_from_slice(tail);
            }
            None => history.extend_from_slice(tail),
        }
        if history.len() > 4 * EXCERPT_REACH_BYTES {
            history.drain(..history.len() - EXCERPT_REACH_BYTES - 1);
        }
    }

    fn from(&self, ahead: usize) -> &'v [u8] {
        self.rest().get(ahead..).unwrap_or_default()
    }

    /// Returns the line around index `at`, from where on `from` is shown.
    fn line_at(&self, at: usize, from: &[u8]) -> SourceLine {
        let known = self.bytes.get(..at).unwrap_or(self.bytes);
        let near = tail(known);
        let history = self.source.history.as_slice();
        let (earlier, before): (&[u8], &[u8]) = match memrchr2(b'\n', b'\r', near) {
            Some(at) => (&[], near.get(at + 1..).unwrap_or_default()),
            None if near.len() < known.len() => (&[], near),
            None => (tail_of(history, near.len()), near),
        };
        SourceLine {
            bytes: [earlier, before, from].concat(),
            place: earlier.len() + before.len(),
        }
    }
}

/// Returns the last bytes an excerpt may show, and one more that tells of a cut.
fn tail(bytes: &[u8]) -> &[u8] {
    tail_of(bytes, 0)
}

/// Returns the part of them to display when `follow` bytes follow.
fn tail_of(bytes: &[u8], follow: usize) -> &[u8] {
    let room = (EXCERPT_REACH_BYTES + 1).saturating_sub(follow);
    bytes
        .get(bytes.len().saturating_sub(room)..)
        .unwrap_or_default()
}

/// Returns the bytes up to the line's end that an excerpt may show, and one more.
fn line_start(bytes: &[u8]) -> &[u8] {
    let near = bytes.get(..EXCERPT_REACH_BYTES + 1).unwrap_or(bytes);
    let end = memchr2(b'\n', b'\r', near).unwrap_or(near.len());
    near.get(..end).unwrap_or_default()
}

fn is_complete(bytes: &[u8]) -> bool {
    bytes.len() > EXCERPT_REACH_BYTES || line_start(bytes).len() < bytes.len()
}

impl SourceLine {
    /// Returns what is known from the place on.
    pub(super) fn from(&self) -> &[u8] {
        self.bytes.get(self.place..).unwrap_or_default()
    }

    /// Keeps at most `length` bytes from the place on.
    pub(super) fn truncate(&mut self, length: usize) {
        self.bytes.truncate(self.place.saturating_add(length));
    }

    /// Adds bytes that follow the line's known part; returns whether it is whole now.
    pub(super) fn extend(&mut self, bytes: &[u8]) -> bool {
        let room = (EXCERPT_REACH_BYTES + 1).saturating_sub(self.from().len());
        let more = bytes.get(..room).unwrap_or(bytes);
        let end = memchr2(b'\n', b'\r', more).unwrap_or(more.len());
        self.bytes
            .extend_from_slice(more.get(..end).unwrap_or_default());
        end < more.len() || self.from().len() > EXCERPT_REACH_BYTES
    }

    /// Makes the line safe to show, with `length` bytes underlined.
    pub(super) fn excerpt(&self, length: usize) -> Excerpt {
        let mut line = String::new();
        let mut before = self.bytes.get(..self.place).unwrap_or_default();
        let from = self.from();
        if before.len() > EXCERPT_REACH_BYTES {
            line.push('…');
            before = before.get(1..).unwrap_or_default();
            let cut = before.iter().take_while(|b| **b & 0xC0 == 0x80).count();
            before = before.get(cut.min(3)..).unwrap_or_default();
        }
        push_safe(&mut line, before);
        let caret_start = line.chars().count();
        let shown = from.get(..EXCERPT_REACH_BYTES).unwrap_or(from);
        let cut = if shown.len() < from.len() {
            super::position_tracker::incomplete_suffix(shown)
        } else {
            0
        };
        let shown = shown.get(..shown.len() - cut).unwrap_or_default();
        let (marked, after) = shown.split_at(length.min(shown.len()));
        push_safe(&mut line, marked);
        let caret_len = (line.chars().count() - caret_start).max(1);
        push_safe(&mut line, after);
        if shown.len() < from.len() {
            line.push('…');
        }
        Excerpt {
            line,
            caret_start,
            caret_len,
        }
    }
}

/// Adds text with everything replaced that a terminal would act on.
fn push_safe(line: &mut String, bytes: &[u8]) {
    for chunk in bytes.utf8_chunks() {
        line.extend(chunk.valid().chars().map(safe));
        line.extend(chunk.invalid().iter().map(|_| '\u{FFFD}'));
    }
}

fn safe(c: char) -> char {
    match c {
        '\t' => ' ',
        '\u{200B}'..='\u{200F}'
        | '\u{2028}'..='\u{202E}'
        | '\u{2060}'..='\u{206F}'
        | '\u{FEFF}' => '\u{FFFD}',
        c if c.is_control() => '\u{FFFD}',
        c => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds `consumed` in pieces and returns the excerpt at the start of `rest`.
    fn excerpt(consumed: &[u8], chunk: usize, rest: &[u8], length: usize) -> Excerpt {
        let mut source = Source::default();
        for piece in consumed.chunks(chunk) {
            let mut view = View::new(piece, Ending::Open, &mut source);
            view.consume(piece.len());
            view.close();
        }
        let view = View::new(rest, Ending::Last, &mut source);
        view.line(0).excerpt(length)
    }

    fn check(consumed: &str, rest: &str, length: usize, expected: (&str, usize, usize)) {
        let (line, caret_start, caret_len) = expected;
        let expected = Excerpt {
            line: line.into(),
            caret_start,
            caret_len,
        };
        for chunk in [1, 2, 3, 100, 10_000] {
            let found = excerpt(consumed.as_bytes(), chunk, rest.as_bytes(), length);
            assert_eq!(found, expected, "chunks of {chunk}");
        }
    }

    #[test]
    fn the_line_is_shown_around_the_place() {
        check("one\ntwo ", "<a> three\nfour", 3, ("two <a> three", 4, 3));
        check("", "", 1, ("", 0, 1));
        check("é\r\n中", "文x", 3, ("中文x", 1, 1));
        check("a\r", "b", 9, ("b", 0, 1));
    }

    #[test]
    fn control_characters_are_replaced() {
        check(
            "a\t\u{1b}[31m",
            "b\u{202e}c\u{85}",
            1,
            ("a \u{FFFD}[31mb\u{FFFD}c\u{FFFD}", 7, 1),
        );
    }

    #[test]
    fn long_lines_are_windowed() {
        let (before, after) = ("x".repeat(3000), "y".repeat(3000));
        let reach = EXCERPT_REACH_BYTES;
        let line = format!("…{}{}…", &before[..reach], &after[..reach]);
        check(&before, &after, 2, (&line, reach + 1, 2));
        check(
            &before,
            "y",
            2,
            (&format!("…{}y", &before[..reach]), reach + 1, 1),
        );
    }

    #[test]
    fn a_mark_outlives_its_bytes() {
        let mut source = Source::default();
        let mut view = View::new(b"ab <c d>e", Ending::Open, &mut source);
        view.consume(3);
        let mut mark = view.mark(5);
        view.consume(6);
        assert!(view.freeze(&mut mark));
        assert!(!view.freeze(&mut mark));
        view.close();
        let view = View::new(b"\nother", Ending::Last, &mut source);
        let expected = Excerpt {
            line: "ab <c d>".into(),
            caret_start: 3,
            caret_len: 5,
        };
        assert_eq!(view.line_of(&mark).excerpt(mark.length), expected);
    }
}
