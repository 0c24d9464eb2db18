//! The visible bytes of a text, and the runs of stretches that belong to a secret.
//!
//! A match of twelve bytes holds five stretches of eight in a row. So it is enough to look at every
//! seventh byte whether six bytes there belong to any secret; only around those that do every
//! stretch is looked up.

use std::ops::Range;

use zeroize::Zeroizing;

use super::form::Form;
use super::ngram_table::{Ngram, WINDOW, Weights, number};
use super::search_tables::SearchTables;
use crate::visible::{Sink, is_visible};
use karyi_core::limits;

/// How many bytes on either side of an escape are looked at with it: eleven characters, or fewer where a byte stands
/// many times in a row.
pub(super) const AROUND: usize = 48;

/// How many settled bytes are kept: an escape may come that they stand before, or be open at the end.
const RETAINED: usize = AROUND + limits::MAX_ESCAPE_BYTES + WINDOW;

/// Bytes that are taken at once where all of them are visible, as in long addresses.
const CHUNK: usize = 16;

/// A stretch of the text that belongs to a secret, in bytes of the whole text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SecretSpan {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) secret: usize,
    pub(super) form: Form,
    /// How many bytes are of that secret.
    pub(super) length: usize,
}

/// Where in the text a byte comes from: the place of the first byte that stands for it, and how many more do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct SourceRange(u64);

impl SourceRange {
    const MORE_BITS: u32 = 16;
    const MOST_MORE: u64 = (1 << Self::MORE_BITS) - 1;

    /// Makes the place of a byte that stands for itself.
    #[inline]
    pub(super) fn new(at: u64) -> Self {
        Self(at << Self::MORE_BITS)
    }

    /// Makes the place of what is written from one place to another one.
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

/// Visible bytes that are not settled yet and where they stand in the text.
#[derive(Clone, Default)]
pub(super) struct VisibleText {
    bytes: Zeroizing<Vec<u8>>,
    places: Vec<SourceRange>,
    /// How many of both are in use.
    length: usize,
    /// How many were forgotten.
    forgotten: u64,
    /// Stretches that start before this are settled.
    done: usize,
    /// Those before it that belong together, when the last one before `done` is one of them.
    run: Option<MatchRun>,
}

/// Stretches in a row that all belong to secrets.
#[derive(Clone)]
struct MatchRun {
    start: u64,
    end: u64,
    /// How many characters they have, but for those of the last one, and those.
    before: usize,
    last_weights: Weights,
    /// How many characters are a match.
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
    /// Starts with a stretch from one place to another one.
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

    /// Goes on with the next stretch.
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

    /// Whether it is long enough.
    fn is_match(&self) -> bool {
        self.before + self.last_weights.all >= self.need
    }

    /// Returns the stretch of the text.
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
            // Without a branch for each byte, so that many are looked at at once.
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
        // One is enough, and a row of them would be a number that no stretch has.
        if self.bytes().last() != Some(&0) {
            self.push(0, SourceRange::new(place));
        }
    }
}

impl VisibleText {
    /// Takes bytes of which any may be visible.
    #[inline]
    fn push_mixed(&mut self, bytes: &[u8], at: u64) {
        let mut length = self.length;
        let (kept, places) = (self.bytes.as_mut_slice(), self.places.as_mut_slice());
        for (byte, place) in bytes.iter().zip(at..) {
            // Written in any case and counted when it is visible: there is nothing to predict.
            if let (Some(to), Some(to_place)) = (kept.get_mut(length), places.get_mut(length)) {
                *to = *byte;
                *to_place = SourceRange::new(place);
            }
            length += usize::from(is_visible(*byte));
        }
        self.length = length;
    }

    /// Takes bytes that are all visible.
    #[inline]
    fn push_visible(&mut self, bytes: &[u8; CHUNK], at: u64) {
        let to = self.length..self.length + CHUNK;
        let to = (self.bytes.get_mut(to.clone()), self.places.get_mut(to));
        if let (Some(kept), Some(places)) = to {
            kept.copy_from_slice(bytes);
            for (place, own) in places.iter_mut().zip(at..) {
                *place = SourceRange::new(own);
            }
            self.length += CHUNK;
        }
    }

    /// Takes one byte.
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

    /// Takes visible bytes of another lane.
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
            // Few at a time: a call to copy them takes longer.
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

    /// Returns how many visible bytes there were before one of them, the forgotten ones too.
    #[inline]
    pub(super) fn count_of(&self, at: usize) -> u64 {
        self.forgotten + at as u64
    }

    /// Returns how many visible bytes there were.
    pub(super) fn count(&self) -> u64 {
        self.count_of(self.length)
    }

    /// Returns which of the bytes is the one before which so many came.
    pub(super) fn index(&self, count: u64) -> usize {
        usize::try_from(count.saturating_sub(self.forgotten)).unwrap_or(usize::MAX)
    }

    /// Returns where a visible byte stands in the text.
    #[inline]
    pub(super) fn place(&self, at: usize) -> SourceRange {
        self.places
            .get(at)
            .copied()
            .unwrap_or(SourceRange(u64::MAX))
    }

    /// Finds matches in what came.
    pub(super) fn scan(&mut self, tables: &SearchTables, found: &mut Vec<SecretSpan>) {
        while self.extend_run(tables, found) {
            let ahead = tables.step - 1;
            let sample = tables.find_sample(self.bytes(), self.done + ahead);
            // Those before it are settled.
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

    /// Looks every stretch up that starts up to `last`, until one begins a run.
    fn start_run_until(&mut self, last: usize, tables: &SearchTables) {
        while self.run.is_none() && self.done <= last && self.done + WINDOW <= self.length {
            let at = self.done;
            self.done += 1;
            let ngram = tables.ngram(number(self.bytes(), at));
            self.run = ngram
                .map(|ngram| MatchRun::new(ngram, self.place(at), self.place(at + WINDOW - 1)));
        }
    }

    /// Goes on with a run; returns whether there is none any more.
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

    /// Forgets what is settled.
    pub(super) fn forget(&mut self) {
        let settled = self.done.min(self.length).saturating_sub(RETAINED);
        self.forgotten += settled as u64;
        self.bytes.copy_within(settled..self.length, 0);
        self.places.copy_within(settled..self.length, 0);
        self.length -= settled;
        self.done -= settled;
    }

    /// Looks up what the samples left open at the end.
    pub(super) fn scan_end(&mut self, tables: &SearchTables, found: &mut Vec<SecretSpan>) {
        while self.run.is_none() && self.done + WINDOW <= self.length {
            self.start_run_until(self.length, tables);
            self.extend_run(tables, found);
        }
    }

    /// Returns the last bytes, fewer than a stretch, that nothing divides: what stands before may have
    /// come long ago, and the tables, which may say yes too often, would hold back all since then.
    fn last_piece(&self) -> &[u8] {
        let bytes = self.bytes();
        let most = bytes.len().saturating_sub(WINDOW - 1);
        let last = bytes.get(most..).unwrap_or_default();
        last.rsplit(|byte| *byte == 0).next().unwrap_or_default()
    }

    /// Returns the place from which on the text may still become a match.
    pub(super) fn open_from(&self, tables: &SearchTables) -> Option<u64> {
        let end = tables.open_end(self.last_piece());
        let end = (end > 0).then(|| self.place(self.length - end).start());
        let run = self.run.as_ref().map(|run| run.start);
        run.into_iter().chain(end).min()
    }

    /// Finds what is a match if nothing comes any more.
    pub(super) fn flush(&self, found: &mut Vec<SecretSpan>) {
        let run = self.run.as_ref().filter(|run| run.is_match());
        found.extend(run.map(MatchRun::found));
    }

    /// Finds what may be the start of a match at the end, after it was flushed.
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
