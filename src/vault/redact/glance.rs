//! A quick look at a text without its escapes, before each byte of it gets a place.
//!
//! Most texts that are full of escapes hold no value. So what comes is decoded alone first and looked through. Only where
//! a stretch of a value comes up, and at the end of what there is, it is read with the place of each byte, from a mark
//! on that is far enough before.

use zeroize::Zeroizing;

use super::around::{self, Left, MOST_AROUND};
use super::escapes::{Reading, reading};
use super::forks::{self, Fork, is_clean};
use super::grams::{WINDOW, number};
use super::kinds::{Kind, Known};
use super::lane::{KEPT, Lane};
use super::tables::Tables;
use crate::limits::MAX_ESCAPE_BYTES;
use crate::vault::view::{self, is_visible};

/// Decoded bytes that are looked at again with those that follow. A match that was not seen has fewer of them before
/// the end, as samples are close to each other: a window and what lies between two samples.
const CARRIED: usize = 24;
/// Bytes that are copied at once where no more are wanted.
const AT_ONCE: usize = 16;
/// Visible bytes before the end that a mark may stand at most: farther back they are forgotten.
const MOST_BACK: u64 = (KEPT - MAX_ESCAPE_BYTES) as u64;

/// Where the text can be read from, with places.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Mark {
    /// How many visible bytes stand before it.
    pub(super) count: u64,
    /// How much is taken from it on without an escape.
    pub(super) left: Left,
    /// How many decoded bytes stand before it.
    decoded: u64,
}

impl Mark {
    /// Returns where it is, and how it goes on.
    pub(super) fn place(self) -> (u64, Left) {
        (self.count, self.left)
    }
}

/// What is looked at.
#[derive(Clone, Copy)]
pub(super) struct Seen<'a> {
    pub(super) main: &'a Lane,
    pub(super) known: &'a Known<'a>,
    pub(super) tables: &'a Tables,
}

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
    /// The escapes with too little behind them as yet.
    forks: Vec<Fork>,
    /// How much is still taken.
    left: Left,
    /// Two places where an escape or plain text begins: enough stands behind the first one.
    older: Mark,
    newer: Mark,
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
            forks: Vec::new(),
            left: Left::default(),
            older: Mark::default(),
            newer: Mark::default(),
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
        // Each stretch around an escape has some bytes before it a second time.
        self.make_room(2 * (main.bytes().len() - from) + 3 * MOST_AROUND);
        (self.left, self.has_gap) = (left, false);
        self.older = self.mark(next);
        self.newer = self.older;
        let end = self.decode(from, seen);
        if self.has_stretch(seen.tables) || !self.are_clean(seen) {
            return None;
        }
        let (next, count) = (main.count_of(end), main.count());
        let mark = if self.left.is_none() && self.forks.is_empty() && next == count {
            self.mark(count)
        } else if self.is_enough(self.newer) {
            self.newer
        } else {
            self.older
        };
        let is_known = mark.count + MOST_BACK >= count && self.is_enough(mark);
        if !is_known || self.forks.iter().any(|fork| fork.start < mark.count) {
            return None;
        }
        self.forget();
        Some(Clean {
            next,
            mark,
            left: self.left,
        })
    }

    fn decoded(&self) -> u64 {
        self.forgotten + self.length as u64
    }

    fn mark(&self, count: u64) -> Mark {
        Mark {
            count,
            left: self.left,
            decoded: self.decoded(),
        }
    }

    /// Whether no match that was not seen begins before a mark: it has too much behind it, or nothing before it that
    /// belongs to it.
    fn is_enough(&self, mark: Mark) -> bool {
        mark.left.is_none() || self.decoded() - mark.decoded >= CARRIED as u64
    }

    /// Takes note that an escape or plain text begins.
    fn pass(&mut self, count: u64) {
        if self.decoded() - self.newer.decoded >= CARRIED as u64 {
            self.older = self.newer;
            self.newer = self.mark(count);
        }
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

    #[inline]
    fn push(&mut self, byte: u8) {
        if let Some(to) = self.bytes.get_mut(self.length) {
            *to = byte;
            self.length += 1;
        }
    }

    /// Takes bytes of which there are few.
    fn copy(&mut self, bytes: &[u8]) {
        self.make_room(bytes.len());
        bytes.iter().for_each(|byte| self.push(*byte));
    }

    /// Takes the first of some bytes.
    #[inline]
    fn copy_first(&mut self, count: usize, of: &[u8]) {
        let to = self.bytes.get_mut(self.length..self.length + AT_ONCE);
        if let (Some(to), Some(from), true) = (to, of.get(..AT_ONCE), count <= AT_ONCE) {
            // As many at once as there mostly are: what is too many is written over.
            to.copy_from_slice(from);
            self.length += count;
        } else {
            of.iter().take(count).for_each(|byte| self.push(*byte));
        }
    }

    /// Decodes the visible bytes from one on; returns where it ends.
    fn decode(&mut self, from: usize, seen: Seen<'_>) -> usize {
        let (main, bytes) = (seen.main, seen.main.bytes());
        let mut at = from;
        loop {
            let rest = bytes.get(at..).unwrap_or_default();
            let Some(plain) = view::find(self.kind.sign, rest) else {
                self.plain(main, at, rest.len());
                return bytes.len();
            };
            if self.left.has(plain) {
                // A sign follows, and it begins anew there.
                self.copy_first(plain, rest);
            } else {
                self.plain(main, at, plain);
            }
            let rest = rest.get(plain..).unwrap_or_default();
            at += plain;
            if !self.left.is_none() {
                self.pass(main.count_of(at));
            }
            let read = match pair(rest).filter(|_| self.kind.sign == b'%') {
                Some(byte) => Reading::Byte(byte, 3),
                None => reading(rest, false),
            };
            match read {
                Reading::Open => {
                    self.around(main, at);
                    return at;
                }
                Reading::Plain => {
                    if !self.left.is_none() {
                        self.copy_first(1, rest);
                        self.left = Left::ALL;
                    }
                    at += 1;
                }
                escape => {
                    self.around(main, at);
                    at += self.escape(&escape, at, seen);
                }
            }
        }
    }

    /// Takes so many bytes that stand for themselves.
    #[inline]
    fn plain(&mut self, main: &Lane, at: usize, count: usize) {
        if self.left.is_none() {
            return;
        }
        let count = self.left.take(main.bytes(), at, count);
        self.copy_first(count, main.bytes().get(at..).unwrap_or_default());
        if self.left.is_none() {
            self.push(0);
        }
    }

    /// Starts to take what stands around an escape.
    #[inline]
    fn around(&mut self, main: &Lane, at: usize) {
        if self.left.is_none() {
            self.push(0);
            // Nothing before it belongs to what comes.
            self.older = self.mark(main.count_of(at));
            self.newer = self.older;
            let from = around::before(main.bytes(), at);
            self.copy_first(at - from, main.bytes().get(from..).unwrap_or_default());
        }
        self.left = Left::ALL;
    }

    /// Takes what an escape stands for; returns how many of its bytes need no other look.
    #[inline]
    fn escape(&mut self, escape: &Reading, at: usize, seen: Seen<'_>) -> usize {
        let gap = || seen.main.place(at + 1) != seen.main.place(at) + 1;
        self.has_gap = self.has_gap || matches!(escape, Reading::Byte(_, 2 | 3)) && gap();
        match escape {
            Reading::Byte(_, 2 | 3) if self.kind.is_parted(at, seen.main, seen.known) => 1,
            Reading::Byte(byte, length) => self.put(&[*byte], at, *length, seen.main),
            Reading::Char(character, length) => {
                let mut bytes = [0; 4];
                let bytes = character.encode_utf8(&mut bytes).as_bytes();
                self.put(bytes, at, *length, seen.main)
            }
            _ => 1,
        }
    }

    #[inline]
    fn put(&mut self, bytes: &[u8], at: usize, length: usize, main: &Lane) -> usize {
        for byte in bytes.iter().filter(|byte| is_visible(**byte)) {
            self.push(*byte);
        }
        let fork = Fork {
            start: main.count_of(at),
            length,
            after: self.decoded(),
        };
        forks::add(&mut self.forks, fork, main);
        length
    }

    /// Whether a stretch of a form comes up.
    fn has_stretch(&self, tables: &Tables) -> bool {
        let bytes = self.bytes();
        let last = (bytes.len() + 1).saturating_sub(WINDOW);
        (tables.step - 1..last)
            .step_by(tables.step)
            .any(|sample| tables.may_have(number(bytes, sample)) && tables.is_around(bytes, sample))
    }

    /// Whether no value begins within an escape, as far as that is known.
    fn are_clean(&mut self, seen: Seen<'_>) -> bool {
        let bytes = self.bytes.get(..self.length).unwrap_or_default();
        let forgotten = self.forgotten;
        let mut are_clean = true;
        self.forks.retain(|fork| {
            let after = fork
                .after
                .checked_sub(forgotten)
                .map_or(0, |at| at as usize);
            let behind = bytes.get(after..).unwrap_or_default();
            let is_clean = is_clean(fork, behind, seen.main, seen.tables);
            are_clean &= is_clean != Some(false);
            is_clean.is_none()
        });
        are_clean
    }

    fn forget(&mut self) {
        let settled = self.length.saturating_sub(CARRIED);
        self.forgotten += settled as u64;
        self.bytes.copy_within(settled..self.length, 0);
        self.length -= settled;
    }
}

/// Reads two hexadecimal digits behind a sign.
#[inline]
fn pair(bytes: &[u8]) -> Option<u8> {
    let &[_, high, low, ..] = bytes else {
        return None;
    };
    let digit = |byte: u8| DIGITS.get(usize::from(byte)).copied().unwrap_or(NO_DIGIT);
    let (high, low) = (digit(high), digit(low));
    (high | low < NO_DIGIT).then_some(high << 4 | low)
}

const NO_DIGIT: u8 = 16;

/// What each byte is as a hexadecimal digit.
static DIGITS: [u8; 256] = {
    let mut digits = [NO_DIGIT; 256];
    let mut value = 0;
    while value < 16 {
        digits[b"0123456789abcdef"[value as usize] as usize] = value;
        digits[b"0123456789ABCDEF"[value as usize] as usize] = value;
        value += 1;
    }
    digits
};
