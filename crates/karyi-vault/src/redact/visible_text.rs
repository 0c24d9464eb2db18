//! Collects the visible bytes of a text and finds runs of n-grams of secrets in them.
//!
//! A match of twelve bytes contains five consecutive n-grams of eight. So it is enough to check at every seventh byte
//! whether six bytes belong to any secret; only around hits every n-gram is looked up.

use std::ops::Range;

use zeroize::Zeroizing;

use super::form::Form;
use super::ngram_table::{Ngram, WINDOW, Weights, number};
use super::search_tables::SearchTables;
use crate::visible::{Sink, is_visible};
use karyi_core::limits;

/// Number of bytes on either side of an escape that are searched with it: eleven characters, or fewer where one byte
/// is repeated.
pub(super) const AROUND: usize = 48;

/// Number of settled bytes to retain: an escape after them may need them.
const RETAINED: usize = AROUND + limits::MAX_ESCAPE_BYTES + WINDOW;

/// Block size for input in which all bytes are visible.
const CHUNK: usize = 16;

/// Span of the text that belongs to a secret, in offsets of the whole text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SecretSpan {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) secret: usize,
    pub(super) form: Form,
    /// Number of visible bytes of that secret.
    pub(super) length: usize,
}

/// Source range of a visible byte: offset of its first source byte, and the number of further ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct SourceRange(u64);

impl SourceRange {
    const MORE_BITS: u32 = 16;
    const MOST_MORE: u64 = (1 << Self::MORE_BITS) - 1;

    /// Makes the range of an unescaped byte.
    #[inline]
    pub(super) fn new(at: u64) -> Self {
        Self(at << Self::MORE_BITS)
    }

    /// Makes the range from one byte to another.
    pub(super) fn over(first: Self, last: Self) -> Self {
        let more = last.start() - first.start();
        Self(first.start() << Self::MORE_BITS | more.min(Self::MOST_MORE))
    }

    #[inline]
    pub(super) fn start(self) -> u64 {
        self.0 >> Self::MORE_BITS
    }

    #[inline]
    fn end(self) -> u64 {
        self.start() + (self.0 & Self::MOST_MORE) + 1
    }
}

/// Unsettled visible bytes and their source ranges.
#[derive(Clone, Default)]
pub(super) struct VisibleText {
    bytes: Zeroizing<Vec<u8>>,
    places: Vec<SourceRange>,
    /// Number of used entries of both.
    length: usize,
    /// Number of dropped entries.
    forgotten: u64,
    /// N-grams that start before this index are settled.
    done: usize,
    /// Current run, when the n-gram before `done` belongs to one.
    run: Option<MatchRun>,
}

/// Consecutive n-grams that all belong to secrets.
#[derive(Clone)]
struct MatchRun {
    start: u64,
    end: u64,
    /// Weight of all n-grams but the last one, and the weights of that.
    before: usize,
    last_weights: Weights,
    /// Weight needed for a match.
    need: usize,
    /// The longest part that belongs to one secret, and the last one.
    best: RunPart,
    last: RunPart,
}

#[derive(Clone, Copy)]
struct RunPart {
    secret: usize,
    form: Form,
    hits: usize,
}

impl MatchRun {
    /// Starts a run with an n-gram.
    fn new(ngram: Ngram, first: SourceRange, last: SourceRange) -> Self {
        let part = RunPart {
            secret: ngram.secret(),
            form: ngram.form(),
            hits: 0,
        };
        let mut run = Self {
            start: first.start(),
            end: 0,
            before: 0,
            last_weights: ngram.weights(),
            need: usize::MAX,
            best: part,
            last: part,
        };
        run.count(ngram, last);
        run
    }

    /// Extends the run by an n-gram.
    fn add(&mut self, ngram: Ngram, last: SourceRange) {
        self.before += self.last_weights.first;
        self.last_weights = ngram.weights();
        self.count(ngram, last);
    }

    fn count(&mut self, ngram: Ngram, last: SourceRange) {
        self.end = last.end();
        self.need = self.need.min(self.last_weights.need.unwrap_or(usize::MAX));
        if ngram.secret() != self.last.secret {
            self.last = RunPart {
                secret: ngram.secret(),
                form: ngram.form(),
                hits: 0,
            };
        }
        self.last.hits += 1;
        self.last.form = self.last.form.max(ngram.form());
        if self.last.hits > self.best.hits || self.last.secret == self.best.secret {
            self.best = self.last;
        }
    }

    /// Returns true when the run is long enough for a match.
    fn is_match(&self) -> bool {
        self.before + self.last_weights.all >= self.need
    }

    /// Returns the matched span.
    fn found(&self) -> SecretSpan {
        SecretSpan {
            start: self.start,
            end: self.end,
            secret: self.best.secret,
            form: self.best.form,
            length: self.best.hits + WINDOW - 1,
        }
    }
}

impl Sink for VisibleText {
    #[inline]
    fn receive(&mut self, bytes: &[u8], at: u64) {
        self.reserve(bytes.len());
        let (chunks, rest) = bytes.as_chunks::<CHUNK>();
        let mut place = at;
        for chunk in chunks {
            // Branch-free, so that the compiler vectorises it.
            let is_all = chunk.iter().fold(true, |all, byte| all & is_visible(*byte));
            if is_all {
                self.push_visible(chunk, place);
            } else {
                self.push_mixed(chunk, place);
            }
            place += CHUNK as u64;
        }
        self.push_mixed(rest, place);
    }

    fn separate(&mut self, place: u64) {
        // One separator is enough, and several would form a number that no n-gram has.
        if self.bytes().last() != Some(&0) {
            self.push(0, SourceRange::new(place));
        }
    }
}

impl VisibleText {
    /// Adds the visible ones of some bytes.
    #[inline]
    fn push_mixed(&mut self, bytes: &[u8], at: u64) {
        let mut length = self.length;
        let (to_bytes, places) = (self.bytes.as_mut_slice(), self.places.as_mut_slice());
        for (byte, place) in bytes.iter().zip(at..) {
            // Written always and counted only when visible, to avoid a branch.
            if let (Some(to), Some(to_place)) = (to_bytes.get_mut(length), places.get_mut(length)) {
                *to = *byte;
                *to_place = SourceRange::new(place);
            }
            length += usize::from(is_visible(*byte));
        }
        self.length = length;
    }

    /// Adds bytes that are all visible.
    #[inline]
    fn push_visible(&mut self, bytes: &[u8; CHUNK], at: u64) {
        let to = self.length..self.length + CHUNK;
        let to = (self.bytes.get_mut(to.clone()), self.places.get_mut(to));
        if let (Some(to_bytes), Some(places)) = to {
            to_bytes.copy_from_slice(bytes);
            for (place, own) in places.iter_mut().zip(at..) {
                *place = SourceRange::new(own);
            }
            self.length += CHUNK;
        }
    }

    /// Adds one byte.
    #[inline]
    pub(super) fn push(&mut self, byte: u8, place: SourceRange) {
        self.reserve(1);
        let to = (
            self.bytes.get_mut(self.length),
            self.places.get_mut(self.length),
        );
        if let (Some(to), Some(to_place)) = to {
            (*to, *to_place) = (byte, place);
            self.length += 1;
        }
    }

    /// Copies visible bytes of another text.
    #[inline]
    pub(super) fn copy(&mut self, from: &Self, range: Range<usize>) {
        self.reserve(range.len());
        let to = self.length..self.length + range.len();
        if let (Some(bytes), Some(places), Some(from_bytes), Some(from_places)) = (
            self.bytes.get_mut(to.clone()),
            self.places.get_mut(to.clone()),
            from.bytes.get(range.clone()),
            from.places.get(range),
        ) {
            // A loop: the copies are too short for a call to pay off.
            let known = from_bytes.iter().zip(from_places);
            for ((byte, place), known) in bytes.iter_mut().zip(places).zip(known) {
                (*byte, *place) = (*known.0, *known.1);
            }
            self.length = to.end;
        }
    }

    #[inline]
    fn reserve(&mut self, more: usize) {
        let needed = self.length + more + 1;
        if self.bytes.len() < needed {
            self.grow(needed);
        }
    }

    #[cold]
    fn grow(&mut self, needed: usize) {
        let room = needed.next_power_of_two();
        let mut larger = Zeroizing::new(vec![0; room]);
        let used = self.bytes.len().min(self.length);
        if let (Some(to), Some(from)) = (larger.get_mut(..used), self.bytes.get(..used)) {
            to.copy_from_slice(from);
        }
        self.bytes = larger;
        self.places.resize(room, SourceRange::default());
    }

    /// Returns the visible bytes.
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    /// Returns the number of visible bytes before an index, dropped ones included.
    #[inline]
    pub(super) fn count_of(&self, at: usize) -> u64 {
        self.forgotten + at as u64
    }

    /// Returns the number of visible bytes, dropped ones included.
    pub(super) fn count(&self) -> u64 {
        self.count_of(self.length)
    }

    /// Returns the index of the byte with a given count before it.
    pub(super) fn index(&self, count: u64) -> usize {
        usize::try_from(count.saturating_sub(self.forgotten)).unwrap_or(usize::MAX)
    }

    /// Returns the source range of a visible byte.
    #[inline]
    pub(super) fn place(&self, at: usize) -> SourceRange {
        self.places
            .get(at)
            .copied()
            .unwrap_or(SourceRange(u64::MAX))
    }

    /// Finds matches in new bytes.
    pub(super) fn scan(&mut self, tables: &SearchTables, found: &mut Vec<SecretSpan>) {
        while self.extend_run(tables, found) {
            let ahead = tables.step - 1;
            let sample = tables.find_sample(self.bytes(), self.done + ahead);
            // The n-grams before the sample are settled.
            self.done = sample.unwrap_or_else(|none| none) - ahead;
            match sample {
                Err(_) => break,
                Ok(sample) if tables.is_around(self.bytes(), sample) => {
                    self.start_run_until(sample, tables);
                }
                Ok(sample) => self.done = sample + 1,
            }
        }
    }

    /// Looks up every n-gram that starts up to `last`, until one starts a run.
    fn start_run_until(&mut self, last: usize, tables: &SearchTables) {
        while self.run.is_none() && self.done <= last && self.done + WINDOW <= self.length {
            let at = self.done;
            self.done += 1;
            let ngram = tables.ngram(number(self.bytes(), at));
            self.run = ngram
                .map(|ngram| MatchRun::new(ngram, self.place(at), self.place(at + WINDOW - 1)));
        }
    }

    /// Extends the current run; returns true when there is none any more.
    fn extend_run(&mut self, tables: &SearchTables, found: &mut Vec<SecretSpan>) -> bool {
        let Some(mut run) = self.run.take() else {
            return true;
        };
        while self.done + WINDOW <= self.length {
            let at = self.done;
            self.done += 1;
            let Some(ngram) = tables.ngram(number(self.bytes(), at)) else {
                found.extend(run.is_match().then(|| run.found()));
                return true;
            };
            run.add(ngram, self.place(at + WINDOW - 1));
        }
        self.run = Some(run);
        false
    }

    /// Drops settled bytes.
    pub(super) fn forget(&mut self) {
        let settled = self.done.min(self.length).saturating_sub(RETAINED);
        self.forgotten += settled as u64;
        self.bytes.copy_within(settled..self.length, 0);
        self.places.copy_within(settled..self.length, 0);
        self.length -= settled;
        self.done -= settled;
    }

    /// Looks up the n-grams at the end that the samples left open.
    pub(super) fn scan_end(&mut self, tables: &SearchTables, found: &mut Vec<SecretSpan>) {
        while self.run.is_none() && self.done + WINDOW <= self.length {
            self.start_run_until(self.length, tables);
            self.extend_run(tables, found);
        }
    }

    /// Returns the bytes after the last separator, fewer than an n-gram. Earlier bytes may be old, and false positives
    /// of the tables would hold back everything since then.
    fn last_piece(&self) -> &[u8] {
        let bytes = self.bytes();
        let most = bytes.len().saturating_sub(WINDOW - 1);
        let last = bytes.get(most..).unwrap_or_default();
        last.rsplit(|byte| *byte == 0).next().unwrap_or_default()
    }

    /// Returns the offset from which the text may still become a match.
    pub(super) fn open_from(&self, tables: &SearchTables) -> Option<u64> {
        let end = tables.open_end(self.last_piece());
        let end = (end > 0).then(|| self.place(self.length - end).start());
        let run = self.run.as_ref().map(|run| run.start);
        run.into_iter().chain(end).min()
    }

    /// Reports the current run if it is a match at the end of the text.
    pub(super) fn flush(&self, found: &mut Vec<SecretSpan>) {
        let run = self.run.as_ref().filter(|run| run.is_match());
        found.extend(run.map(MatchRun::found));
    }

    /// Returns a possible start of a match at the end, after `flush`.
    pub(super) fn cut(&self, tables: &SearchTables) -> Option<SecretSpan> {
        let is_secret = |run: &&MatchRun| run.need < usize::MAX;
        if let Some(run) = self.run.as_ref().filter(is_secret) {
            return Some(run.found());
        }
        let bytes = self.bytes();
        let mut lengths = (limits::MIN_CUT_SECRET_BYTES..WINDOW).rev();
        lengths.find_map(|length| {
            let at = bytes.len().checked_sub(length)?;
            let ngram = tables.form_starting_with(bytes.get(at..)?)?;
            ngram.weights().need.map(|_| SecretSpan {
                start: self.place(at).start(),
                end: self.place(bytes.len() - 1).end(),
                secret: ngram.secret(),
                form: ngram.form(),
                length,
            })
        })
    }
}
