//! The visible bytes of a text, and the runs of stretches that belong to a secret.
//!
//! A match of twelve bytes holds five stretches of eight in a row. So it is enough to look at every
//! seventh byte whether six bytes there belong to any secret; only around those that do every
//! stretch is looked up.

use std::ops::Range;

use zeroize::Zeroizing;

use super::around::MOST_AROUND;
use super::form::Form;
use super::grams::{Gram, WINDOW, number};
use super::hot::Hot;
use super::tables::Tables;
use crate::limits;
use crate::vault::view::{SAMPLE, Sink, is_visible};

/// Most bytes in which a text stands for a character: an escape of it, or one such as `\0320` for each of its bytes.
const MOST_PER_CHARACTER: usize = 4 * "\\0320".len();

/// How many settled bytes are kept: an escape may come that they stand before, or be open at the end, and
/// as many escapes as a match has characters may follow one that is looked at again.
pub(super) const KEPT: usize = MOST_AROUND + (limits::REDACTED_RUN_BYTES + 2) * MOST_PER_CHARACTER;

/// Bytes that are taken at once where all of them are visible, as in long addresses.
const CHUNK: usize = 16;

/// A stretch of the text that belongs to a secret, in bytes of the whole text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) secret: usize,
    pub(super) form: Form,
    /// How many bytes are of that secret.
    pub(super) length: usize,
}

/// Visible bytes that are not settled yet and where they stand in the text.
#[derive(Clone, Default)]
pub(super) struct Lane {
    bytes: Zeroizing<Vec<u8>>,
    places: Vec<u64>,
    /// How many of both are in use.
    length: usize,
    /// How many were forgotten.
    forgotten: u64,
    wide: Scan,
    narrow: Scan,
}

/// How far the bytes were looked at with one width of stretch.
#[derive(Clone, Default)]
struct Scan {
    /// Stretches that start before this are settled.
    done: usize,
    /// Those before it that belong together, when the last one before `done` is one of them.
    run: Option<Run>,
}

/// Stretches in a row that all belong to secrets.
#[derive(Clone)]
pub(super) struct Run {
    start: u64,
    end: u64,
    /// How many characters they have, but for those of the last one.
    before: usize,
    /// The last one.
    gram: Gram,
    /// How many stretches they are.
    length: usize,
    /// Whether enough of them are a match.
    is_proven: bool,
    /// How many characters are a match.
    need: usize,
    /// The longest part that belongs to one secret, and the last one.
    best: Part,
    last: Part,
}

#[derive(Clone, Copy)]
struct Part {
    secret: usize,
    form: Form,
    hits: usize,
}

impl Run {
    /// Starts with a stretch.
    pub(super) fn new(gram: Gram, start: u64, end: u64) -> Self {
        let part = Part {
            secret: gram.secret(),
            form: gram.form(),
            hits: 0,
        };
        let mut run = Self {
            start,
            end,
            before: 0,
            gram,
            length: 0,
            is_proven: false,
            need: usize::MAX,
            best: part,
            last: part,
        };
        run.count(gram, end);
        run
    }

    /// Goes on with the next stretch.
    pub(super) fn add(&mut self, gram: Gram, end: u64) {
        self.before += self.gram.first_weight();
        self.gram = gram;
        self.count(gram, end);
    }

    fn count(&mut self, gram: Gram, end: u64) {
        self.end = end;
        self.length += 1;
        self.is_proven |= gram.is_proof();
        if gram.is_secret() {
            self.need = self.need.min(gram.need());
        }
        if gram.secret() != self.last.secret {
            self.last = Part {
                secret: gram.secret(),
                form: gram.form(),
                hits: 0,
            };
        }
        self.last.hits += 1;
        self.last.form = self.last.form.max(gram.form());
        if self.last.hits > self.best.hits || self.last.secret == self.best.secret {
            self.best = self.last;
        }
    }

    /// Whether it is long enough, and more than a row of known stretches where that may be chance.
    pub(super) fn is_match(&self) -> bool {
        self.is_proven && self.is_long()
    }

    fn is_long(&self) -> bool {
        self.before + self.gram.weight() >= self.need
    }

    /// Looks for a proof where one is needed; the run ends with some bytes, of which the first ones may be missing.
    pub(super) fn prove(&mut self, bytes: &[u8], tables: &Tables) {
        if !self.is_proven && self.is_long() {
            let from = bytes.len().saturating_sub(self.length + WINDOW - 1);
            let own = bytes.get(from..).unwrap_or_default();
            self.is_proven = tables.proofs.stand_in(own);
        }
    }

    /// Whether it holds anything that is secret.
    fn is_secret(&self) -> bool {
        self.need < usize::MAX
    }

    /// Returns the stretch of the text.
    pub(super) fn found(&self) -> Found {
        Found {
            start: self.start,
            end: self.end + 1,
            secret: self.best.secret,
            form: self.best.form,
            length: self.best.hits + WINDOW - 1,
        }
    }
}

/// Looks stretches of one width up.
trait Look {
    const WIDTH: usize;
    fn look(&self, key: u64, place: u64) -> Option<Gram>;
    fn tables(&self) -> &Tables;
}

impl Look for &Tables {
    const WIDTH: usize = WINDOW;
    #[inline]
    fn look(&self, key: u64, _: u64) -> Option<Gram> {
        self.grams.get(key)
    }

    fn tables(&self) -> &Tables {
        self
    }
}

impl Look for (&Tables, &Hot) {
    const WIDTH: usize = SAMPLE;
    #[inline]
    fn look(&self, key: u64, place: u64) -> Option<Gram> {
        let (tables, hot) = self;
        if tables.may_have(key) {
            hot.get(key, place)
        } else {
            None
        }
    }

    fn tables(&self) -> &Tables {
        self.0
    }
}

impl Sink for Lane {
    #[inline]
    fn take(&mut self, bytes: &[u8], at: u64) {
        self.make_room(bytes.len());
        let (chunks, rest) = bytes.as_chunks::<CHUNK>();
        let mut place = at;
        for chunk in chunks {
            // Without a branch for each byte, so that many are looked at at once.
            let is_all = chunk.iter().fold(true, |all, byte| all & is_visible(*byte));
            if is_all {
                self.take_all(chunk, place);
            } else {
                self.take_some(chunk, place);
            }
            place += CHUNK as u64;
        }
        self.take_some(rest, place);
    }

    fn divide(&mut self, place: u64) {
        // One is enough, and a row of them would be a number that no stretch has.
        if self.bytes().last() == Some(&0) {
            return;
        }
        self.make_room(1);
        if let (Some(byte), Some(at)) = (
            self.bytes.get_mut(self.length),
            self.places.get_mut(self.length),
        ) {
            (*byte, *at) = (0, place);
            self.length += 1;
        }
    }
}

impl Lane {
    /// Takes bytes of which any may be visible.
    #[inline]
    fn take_some(&mut self, bytes: &[u8], at: u64) {
        let mut length = self.length;
        let (kept, places) = (self.bytes.as_mut_slice(), self.places.as_mut_slice());
        for (byte, place) in bytes.iter().zip(at..) {
            // Written in any case and counted when it is visible: there is nothing to predict.
            if let (Some(to), Some(to_place)) = (kept.get_mut(length), places.get_mut(length)) {
                *to = *byte;
                *to_place = place;
            }
            length += usize::from(is_visible(*byte));
        }
        self.length = length;
    }

    /// Takes bytes that are all visible.
    #[inline]
    fn take_all(&mut self, bytes: &[u8; CHUNK], at: u64) {
        let to = self.length..self.length + CHUNK;
        let to = (self.bytes.get_mut(to.clone()), self.places.get_mut(to));
        if let (Some(kept), Some(places)) = to {
            kept.copy_from_slice(bytes);
            for (place, own) in places.iter_mut().zip(at..) {
                *place = own;
            }
            self.length += CHUNK;
        }
    }

    #[inline]
    fn make_room(&mut self, more: usize) {
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
        self.places.resize(room, 0);
    }

    /// Returns the visible bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    /// Returns how many visible bytes there were, the forgotten ones too.
    pub(super) fn count(&self) -> u64 {
        self.forgotten + self.length as u64
    }

    /// Returns how many there were before one of them.
    pub(super) fn count_of(&self, at: usize) -> u64 {
        self.forgotten + at as u64
    }

    /// Returns which of the bytes is the one before which so many came.
    pub(super) fn index(&self, count: u64) -> Option<usize> {
        usize::try_from(count.checked_sub(self.forgotten)?).ok()
    }

    fn key(&self, at: usize) -> u64 {
        number(self.bytes(), at)
    }

    /// Returns where a visible byte stands in the text.
    pub(super) fn place(&self, at: usize) -> u64 {
        self.places.get(at).copied().unwrap_or(u64::MAX)
    }

    /// Whether a run goes on at the end.
    pub(super) fn has_run(&self) -> bool {
        self.wide.run.is_some()
    }

    /// Takes visible bytes of another lane, their places with so many zero bits after them.
    pub(super) fn copy(&mut self, from: &Self, range: Range<usize>, bits: u32) {
        self.make_room(range.len());
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
                (*byte, *place) = (*known.0, known.1 << bits);
            }
            self.length = to.end;
        }
    }

    /// Finds matches in what came.
    pub(super) fn scan(&mut self, tables: &Tables, found: &mut Vec<Found>) {
        let mut scan = std::mem::take(&mut self.wide);
        while scan.run.is_none() || self.follow(&mut scan, &tables, found) {
            let Some(sample) = self.next_sample(&mut scan, tables) else {
                break;
            };
            if tables.is_around(self.bytes(), sample) {
                self.look_until(&mut scan, sample, tables, found);
            } else {
                scan.done = sample + 1;
            }
        }
        self.wide = scan;
    }

    /// Finds the next sample that may belong to a secret and has a whole stretch after it.
    fn next_sample(&self, scan: &mut Scan, tables: &Tables) -> Option<usize> {
        let ahead = tables.step - 1;
        let sample = tables.find_sample(self.bytes(), scan.done + ahead);
        // Those before it are settled.
        scan.done = sample.unwrap_or_else(|none| none) - ahead;
        sample.ok()
    }

    /// Looks every stretch up that starts up to `last`, and on as long as a run goes on.
    fn look_until(&self, scan: &mut Scan, last: usize, tables: &Tables, found: &mut Vec<Found>) {
        while scan.done <= last && scan.done + WINDOW <= self.length {
            if let Some(gram) = tables.grams.get(self.key(scan.done)) {
                scan.run = Some(self.run(gram, scan.done, WINDOW));
                scan.done += 1;
                if !self.follow(scan, &tables, found) {
                    return;
                }
            } else {
                scan.done += 1;
            }
        }
    }

    fn run(&self, gram: Gram, at: usize, width: usize) -> Run {
        Run::new(gram, self.place(at), self.place(at + width - 1))
    }

    /// Goes on with a run; returns whether it ended.
    fn follow<L: Look>(&self, scan: &mut Scan, looks: &L, found: &mut Vec<Found>) -> bool {
        let Some(mut run) = scan.run.take() else {
            return true;
        };
        while scan.done + L::WIDTH <= self.length {
            let hit = looks.look(self.key(scan.done), self.place(scan.done));
            scan.done += 1;
            let Some(gram) = hit else {
                run.prove(self.before(scan.done + L::WIDTH - 2), looks.tables());
                found.extend(run.is_match().then(|| run.found()));
                return true;
            };
            run.add(gram, self.place(scan.done + L::WIDTH - 2));
        }
        run.prove(self.before(scan.done + L::WIDTH - 1), looks.tables());
        scan.run = Some(run);
        false
    }

    fn before(&self, at: usize) -> &[u8] {
        self.bytes().get(..at).unwrap_or_default()
    }

    /// Finds shorter stretches of secrets that were seen before.
    pub(super) fn scan_hot(&mut self, tables: &Tables, hot: &Hot, found: &mut Vec<Found>) {
        let mut scan = std::mem::take(&mut self.narrow);
        let looks = (tables, hot);
        while self.follow(&mut scan, &looks, found) {
            let last = (self.length + 1).saturating_sub(SAMPLE);
            let mut starts = scan.done..last;
            let hit = starts.find_map(|at| Some((at, looks.look(self.key(at), self.place(at))?)));
            let Some((at, gram)) = hit else {
                scan.done = scan.done.max(last);
                break;
            };
            scan.run = Some(self.run(gram, at, SAMPLE));
            scan.done = at + 1;
        }
        self.narrow = scan;
    }

    /// Gives up what shorter stretches began.
    pub(super) fn cool(&mut self) {
        self.narrow = Scan {
            done: self.wide.done,
            run: None,
        };
    }

    /// Forgets what is settled.
    pub(super) fn forget(&mut self, is_hot: bool) {
        if !is_hot {
            self.narrow.done = self.wide.done;
        }
        let settled = self.wide.done.min(self.narrow.done).min(self.length);
        let settled = settled.saturating_sub(KEPT);
        self.forgotten += settled as u64;
        self.bytes.copy_within(settled..self.length, 0);
        self.places.copy_within(settled..self.length, 0);
        self.length -= settled;
        self.wide.done -= settled;
        self.narrow.done -= settled;
    }

    /// Looks up what the samples left open at the end.
    pub(super) fn scan_end(&mut self, tables: &Tables, found: &mut Vec<Found>) {
        let mut scan = std::mem::take(&mut self.wide);
        if scan.run.is_none() {
            self.look_until(&mut scan, self.length, tables, found);
        }
        self.wide = scan;
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
    pub(super) fn open_from(&self, tables: &Tables) -> Option<u64> {
        let runs = [self.wide.run.as_ref(), self.narrow.run.as_ref()];
        let open = runs.into_iter().flatten().map(|run| run.start).min();
        let end = tables.open_end(self.last_piece());
        let end = (end > 0).then(|| self.place(self.length - end));
        open.into_iter().chain(end).min()
    }

    /// Finds what is a match if nothing comes any more.
    pub(super) fn flush(&self, found: &mut Vec<Found>) {
        let runs = [self.wide.run.as_ref(), self.narrow.run.as_ref()];
        let matches = runs.into_iter().flatten().filter(|run| run.is_match());
        found.extend(matches.map(Run::found));
    }

    /// Finds what may be the start of a match at the end, after it was flushed.
    pub(super) fn cut(&self, tables: &Tables) -> Option<Found> {
        if let Some(run) = self.wide.run.as_ref().filter(|run| run.is_secret()) {
            return Some(run.found());
        }
        let bytes = self.bytes();
        for length in (limits::MIN_CUT_SECRET_BYTES..WINDOW).rev() {
            let Some(at) = bytes.len().checked_sub(length) else {
                continue;
            };
            let end = bytes.get(at..).unwrap_or_default();
            if let Some(gram) = tables.started_by(end).filter(|gram| gram.is_secret()) {
                return Some(Found {
                    start: self.place(at),
                    end: self.place(bytes.len() - 1) + 1,
                    secret: gram.secret(),
                    form: gram.form(),
                    length,
                });
            }
        }
        None
    }
}
