//! A quick look at a text without its escapes, before each byte of it gets a place.
//!
//! Most texts that are full of escapes hold no value. So what comes is decoded alone first and looked through. Only where
//! a stretch of a value comes up, and at the end of what there is, it is read with the place of each byte, from a mark
//! on that is far enough before.

use zeroize::Zeroizing;

use super::around::{Left, MOST_AROUND};
use super::decoder::{CARRIED, Decoder, Escape, Mark, Seen};
use super::forks::{self, Fork, is_clean};
use super::kinds::Kind;
use super::lane::{KEPT, Lane};
use super::tables::Tables;
use crate::limits::MAX_ESCAPE_BYTES;

/// Visible bytes before the end that a mark may stand at most: farther back they are forgotten.
const MOST_BACK: u64 = (KEPT - MAX_ESCAPE_BYTES) as u64;

/// The text without escapes of one kind, without places.
#[derive(Clone)]
pub(super) struct Glance {
    kind: Kind,
    bytes: Zeroizing<Vec<u8>>,
    /// How many of them are in use.
    length: usize,
    /// How many bytes came before these.
    forgotten: u64,
    /// Whether anything stands between a sign and what follows it.
    has_gap: bool,
    /// The escapes of what was looked at last, and room for more.
    escapes: Vec<Escape>,
    /// Those before it with too little behind them as yet.
    forks: Vec<Fork>,
}

/// What is left to read, and from where on it can be read with places.
pub(super) struct Clean {
    pub(super) next: u64,
    pub(super) mark: Mark,
    pub(super) left: Left,
}

impl Glance {
    pub(super) fn new(kind: Kind) -> Self {
        Self {
            kind,
            bytes: Zeroizing::new(Vec::new()),
            length: 0,
            forgotten: 0,
            has_gap: false,
            escapes: Vec::new(),
            forks: Vec::new(),
        }
    }

    /// Begins where a text was read with places so far.
    pub(super) fn begin_after(&mut self, lane: &Lane, forks: &[Fork]) {
        let bytes = lane.bytes();
        let from = bytes.len().saturating_sub(CARRIED);
        self.length = 0;
        self.copy(bytes.get(from..).unwrap_or_default());
        self.forgotten = lane.count() - self.length as u64;
        self.forks.clear();
        self.forks.extend_from_slice(forks);
    }

    /// Whether what was looked at last is the same where blanks part escapes.
    pub(super) fn has_gap(&self) -> bool {
        self.has_gap
    }

    /// Whether it goes on as another one does.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let fork = |fork: &Fork, of: &Self| (fork.start, fork.after.checked_sub(of.forgotten));
        let own = self.forks.iter().map(|own| fork(own, self));
        self.bytes() == other.bytes() && own.eq(other.forks.iter().map(|own| fork(own, other)))
    }

    /// Goes on as another one does.
    pub(super) fn follow(&mut self, other: &Self) {
        self.length = 0;
        self.copy(other.bytes());
        self.forgotten = other.forgotten;
        self.forks.clone_from(&other.forks);
    }

    /// Looks at the text from a visible byte on; returns how it goes on when there is nothing in it.
    pub(super) fn look(&mut self, next: u64, left: Left, seen: Seen<'_>) -> Option<Clean> {
        let main = seen.main;
        let from = main.index(next)?;
        let new = main.bytes().len() - from;
        // Each stretch around an escape has some bytes before it a second time.
        self.make_room(2 * new + 3 * MOST_AROUND);
        if self.escapes.len() < new {
            self.escapes.resize(new, Escape::default());
        }
        let mut decoder = Decoder {
            kind: self.kind,
            seen,
            bytes: &mut self.bytes,
            length: self.length,
            forgotten: self.forgotten,
            escapes: &mut self.escapes,
            count: 0,
            left,
            has_gap: false,
            older: Mark::default(),
            newer: Mark::default(),
        };
        let end = decoder.decode(from);
        let (left, older, newer) = (decoder.left, decoder.older, decoder.newer);
        (self.length, self.has_gap) = (decoder.length, decoder.has_gap);
        let count = decoder.count;
        if self.has_stretch(seen.tables) || !self.are_clean(count, seen) {
            return None;
        }
        let next = main.count_of(end);
        let mark = self.mark_of([newer, older], next, left, main)?;
        self.forget();
        Some(Clean { next, mark, left })
    }

    /// Returns from where on the text can be read with places after nothing came up in it.
    fn mark_of(&self, marks: [Mark; 2], next: u64, left: Left, main: &Lane) -> Option<Mark> {
        let [newer, older] = marks;
        let count = main.count();
        let mark = if left.is_none() && self.forks.is_empty() && next == count {
            Mark::new(count, left, self.decoded())
        } else if self.is_enough(newer) {
            newer
        } else {
            older
        };
        let is_known = mark.count + MOST_BACK >= count && self.is_enough(mark);
        let is_known = is_known && self.forks.iter().all(|fork| fork.start >= mark.count);
        is_known.then_some(mark)
    }

    fn decoded(&self) -> u64 {
        self.forgotten + self.length as u64
    }

    /// Whether no match that was not seen begins before a mark: it has too much behind it, or nothing before it that
    /// belongs to it.
    fn is_enough(&self, mark: Mark) -> bool {
        mark.left.is_none() || self.decoded() - mark.decoded >= CARRIED as u64
    }

    fn make_room(&mut self, more: usize) {
        let needed = self.length + more;
        if needed > self.bytes.len() {
            // What is there would not be wiped if it moved.
            let mut larger = Zeroizing::new(vec![0; needed.next_power_of_two()]);
            let used = self.bytes.get(..self.length).unwrap_or_default();
            if let Some(to) = larger.get_mut(..used.len()) {
                to.copy_from_slice(used);
            }
            self.bytes = larger;
        }
    }

    fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    /// Takes bytes of which there are few.
    fn copy(&mut self, bytes: &[u8]) {
        self.make_room(bytes.len());
        let to = self.length..self.length + bytes.len();
        if let Some(to) = self.bytes.get_mut(to) {
            to.copy_from_slice(bytes);
            self.length += bytes.len();
        }
    }

    /// Whether a stretch of a form comes up.
    fn has_stretch(&self, tables: &Tables) -> bool {
        let bytes = self.bytes();
        let mut next = tables.step - 1;
        while let Ok(sample) = tables.find_sample(bytes, next) {
            if tables.is_around(bytes, sample) {
                return true;
            }
            next = sample + tables.step;
        }
        false
    }

    /// Whether no value begins within an escape, as far as that is known.
    fn are_clean(&mut self, count: usize, seen: Seen<'_>) -> bool {
        let bytes = self.bytes.get(..self.length).unwrap_or_default();
        let Seen { main, tables, .. } = seen;
        let forgotten = self.forgotten;
        let is_clean = |fork: &Fork| {
            let after = fork.after.checked_sub(forgotten);
            let behind = bytes.get(after.map_or(0, |at| at as usize)..);
            is_clean(fork, behind.unwrap_or_default(), main, tables)
        };
        let mut are_clean = true;
        self.forks.retain(|fork| {
            let is_clean = is_clean(fork);
            are_clean &= is_clean != Some(false);
            is_clean.is_none()
        });
        // Behind a row of escapes of white space stands the same.
        let mut quiet = u32::MAX;
        for escape in self.escapes.iter().take(count) {
            if escape.is_short {
                let after = escape.after as usize;
                if escape.after != quiet && tables.is_quiet(bytes, after) {
                    quiet = escape.after;
                }
                if escape.after == quiet {
                    continue;
                }
            }
            let fork = escape.fork(main, forgotten);
            match is_clean(&fork) {
                Some(is_clean) => are_clean &= is_clean,
                None => forks::add(&mut self.forks, fork, main),
            }
        }
        are_clean
    }

    fn forget(&mut self) {
        let settled = self.length.saturating_sub(CARRIED);
        self.forgotten += settled as u64;
        self.bytes.copy_within(settled..self.length, 0);
        self.length -= settled;
    }
}
