//! Decodes a text without a place for each byte.
//!
//! All of it is one loop over values of its own: a text of a page has an escape in every third byte, and what stands in
//! memory would be read and written for each.

use super::around::{self, Left};
use super::escapes::{Reading, reading, short};
use super::forks::Fork;
use super::grams::WINDOW;
use super::kinds::{Kind, Known};
use super::lane::Lane;
use super::tables::Tables;
use crate::vault::view::{self, SAMPLE, is_visible};

/// Decoded bytes that are looked at again with those that follow. A match that was not seen has fewer of them before
/// the end, as samples are close to each other: a window and what lies between two samples.
pub(super) const CARRIED: usize = 24;
/// Bytes that are copied at once where no more are wanted.
const AT_ONCE: usize = 16;

/// Where the text can be read from, with places.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Mark {
    /// How many visible bytes stand before it.
    pub(super) count: u64,
    /// How much is taken from it on without an escape.
    pub(super) left: Left,
    /// How many decoded bytes stand before it.
    pub(super) decoded: u64,
}

impl Mark {
    pub(super) fn new(count: u64, left: Left, decoded: u64) -> Self {
        Self {
            count,
            left,
            decoded,
        }
    }

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

/// An escape that was decoded.
#[derive(Clone, Copy, Default)]
pub(super) struct Escape {
    /// Where it stands in what is visible.
    at: u32,
    /// How many bytes of what is decoded stand before what follows it.
    pub(super) after: u32,
    length: u16,
    /// Whether a stretch that begins with some of its bytes goes on with a sample of what follows it.
    pub(super) is_short: bool,
}

impl Escape {
    #[inline(always)]
    fn new(at: usize, length: usize, byte: u8, after: usize) -> Self {
        Self {
            at: at as u32,
            after: after as u32,
            length: length as u16,
            // A sign that stands twice is read from the second one on.
            is_short: length - 1 + SAMPLE <= WINDOW && byte != b'\\',
        }
    }

    /// Returns it as one that may hold the beginning of a value.
    pub(super) fn fork(&self, main: &Lane, forgotten: u64) -> Fork {
        let after = forgotten + u64::from(self.after);
        Fork::new(main, self.at as usize, self.length.into(), after)
    }
}

/// Decodes the escapes of one kind.
pub(super) struct Decoder<'a> {
    pub(super) kind: Kind,
    pub(super) seen: Seen<'a>,
    /// What is decoded, with room for more, and how many of it are in use.
    pub(super) bytes: &'a mut [u8],
    pub(super) length: usize,
    /// How many came before these.
    pub(super) forgotten: u64,
    /// The escapes, with room for more, and how many of it are in use.
    pub(super) escapes: &'a mut [Escape],
    pub(super) count: usize,
    /// How much is still taken.
    pub(super) left: Left,
    /// Whether anything stands between a sign and what follows it.
    pub(super) has_gap: bool,
    /// Two places where an escape or plain text begins: enough stands behind the first one.
    pub(super) older: Mark,
    pub(super) newer: Mark,
}

impl Decoder<'_> {
    /// Decodes the visible bytes from one on; returns where it ends.
    #[inline(always)]
    pub(super) fn decode(&mut self, from: usize) -> usize {
        let bytes = self.seen.main.bytes();
        let mut at = from;
        self.older = self.mark(at);
        self.newer = self.older;
        loop {
            if self.left == Left::ALL {
                at = self.near(at);
            }
            let rest = bytes.get(at..).unwrap_or_default();
            let Some(plain) = view::find(self.kind.sign, rest) else {
                self.plain(at, rest.len());
                return bytes.len();
            };
            if self.left.has(plain) {
                // A sign follows, and it begins anew there.
                self.length = copied(self.bytes, self.length, plain, rest);
            } else {
                self.plain(at, plain);
            }
            at += plain;
            let rest = rest.get(plain..).unwrap_or_default();
            self.pass(at);
            match self.reading(rest) {
                Reading::Open => {
                    self.around(at);
                    return at;
                }
                Reading::Plain => {
                    if !self.left.is_none() {
                        self.push(self.kind.sign);
                        self.left = Left::ALL;
                    }
                    at += 1;
                }
                escape => {
                    self.around(at);
                    at += self.escape(&escape, at);
                }
            }
        }
    }

    /// Decodes what follows an escape as long as it is of the usual form and near; returns where it ends.
    #[inline(always)]
    fn near(&mut self, at: usize) -> usize {
        let Self { seen, kind, .. } = self;
        let from = Near {
            at,
            length: self.length,
            count: self.count,
            has_gap: self.has_gap,
        };
        let to = (&mut *self.bytes, &mut *self.escapes);
        // Those that differ only where a blank stands go the same way everywhere else, so that one can follow the other.
        let near = match kind.sign {
            b'%' => from.decode(*kind, percent, seen.main, to),
            b'\\' => from.decode(*kind, backslash, seen.main, to),
            _ => return at,
        };
        (self.length, self.count, self.has_gap) = (near.length, near.count, near.has_gap);
        near.at
    }

    #[inline(always)]
    fn mark(&self, at: usize) -> Mark {
        let count = self.seen.main.count_of(at);
        Mark::new(count, self.left, self.forgotten + self.length as u64)
    }

    /// Takes note that an escape or plain text begins.
    #[inline(always)]
    fn pass(&mut self, at: usize) {
        let decoded = self.forgotten + self.length as u64;
        if decoded - self.newer.decoded >= CARRIED as u64 && !self.left.is_none() {
            self.older = self.newer;
            self.newer = self.mark(at);
        }
    }

    #[inline(always)]
    fn push(&mut self, byte: u8) {
        if let Some(to) = self.bytes.get_mut(self.length) {
            *to = byte;
            self.length += 1;
        }
    }

    #[inline(always)]
    fn reading(&self, bytes: &[u8]) -> Reading {
        if self.kind.sign == b'%'
            && let Some(byte) = pair(bytes)
        {
            return Reading::Byte(byte, 3);
        }
        reading(bytes, false)
    }

    /// Takes so many bytes that stand for themselves.
    #[inline(always)]
    fn plain(&mut self, at: usize, count: usize) {
        if !self.left.is_none() {
            let to = (&mut *self.bytes, self.length);
            (self.left, self.length) = plain(self.left, to, self.seen.main, (at, count));
        }
    }

    /// Starts to take what stands around an escape.
    #[inline(always)]
    fn around(&mut self, at: usize) {
        if self.left.is_none() {
            self.push(0);
            // Nothing before it belongs to what comes.
            self.older = self.mark(at);
            self.newer = self.older;
            self.length = before(self.bytes, self.length, self.seen.main, at);
        }
        self.left = Left::ALL;
    }

    /// Takes what an escape stands for; returns how many of its bytes need no other look.
    #[inline(always)]
    fn escape(&mut self, escape: &Reading, at: usize) -> usize {
        let Seen { main, known, .. } = self.seen;
        match escape {
            Reading::Byte(byte, length) => {
                if self.kind.sign == b'\\' && *length < 4 {
                    self.has_gap |= main.place(at + 1) != main.place(at) + 1;
                    if self.kind.is_parted(at, main, known) {
                        return 1;
                    }
                }
                // Written in any case and counted when it is visible: there is nothing to predict.
                if let Some(to) = self.bytes.get_mut(self.length) {
                    *to = *byte;
                    self.length += usize::from(is_visible(*byte));
                }
                self.note(at, *length, *byte)
            }
            Reading::Char(character, length) => {
                let mut bytes = [0; 4];
                let bytes = character.encode_utf8(&mut bytes).as_bytes();
                for byte in bytes.iter().filter(|byte| is_visible(**byte)) {
                    self.push(*byte);
                }
                self.note(at, *length, 0)
            }
            _ => 1,
        }
    }

    /// Takes note of an escape of some length; returns that.
    #[inline(always)]
    fn note(&mut self, at: usize, length: usize, byte: u8) -> usize {
        if let Some(to) = self.escapes.get_mut(self.count) {
            *to = Escape::new(at, length, byte, self.length);
            self.count += 1;
        }
        length
    }
}

/// How far escapes that are near each other were decoded.
struct Near {
    at: usize,
    length: usize,
    count: usize,
    has_gap: bool,
}

impl Near {
    /// Goes on with what `read` knows, about as far as two marks are apart.
    #[inline(always)]
    fn decode(
        mut self,
        kind: Kind,
        read: impl Fn(&[u8]) -> Option<(u8, usize)>,
        main: &Lane,
        (to, escapes): (&mut [u8], &mut [Escape]),
    ) -> Self {
        let most = self.length + CARRIED;
        while self.length < most {
            let rest = main.bytes().get(self.at..).unwrap_or_default();
            let Some(plain) = view::find_near(kind.sign, rest) else {
                break;
            };
            let Some((byte, taken)) = read(rest.get(plain..).unwrap_or_default()) else {
                break;
            };
            let at = self.at + plain;
            let has_gap = taken == 2 && main.place(at + 1) != main.place(at) + 1;
            if has_gap && kind.is_parted {
                break;
            }
            self.has_gap |= has_gap;
            let length = copied(to, self.length, plain, rest);
            let (Some(to), Some(escape)) = (to.get_mut(length), escapes.get_mut(self.count)) else {
                break;
            };
            // Written in any case and counted when it is one: there is nothing to predict.
            *to = byte;
            self.length = length + usize::from(is_visible(byte));
            *escape = Escape::new(at, taken, byte, self.length);
            self.count += usize::from(taken > 1);
            self.at = at + taken;
        }
        self
    }
}

/// Reads two hexadecimal digits behind a sign; returns what they stand for and how many bytes it takes.
#[inline(always)]
fn percent(bytes: &[u8]) -> Option<(u8, usize)> {
    pair(bytes).map(|byte| (byte, 3))
}

/// Reads a backslash and one more byte. A sign that quotes stands for nothing.
#[inline(always)]
fn backslash(bytes: &[u8]) -> Option<(u8, usize)> {
    match short(*bytes.get(1)?)? {
        Reading::Byte(byte, length) => Some((byte, length)),
        _ => Some((0, 1)),
    }
}

/// Writes the first of some bytes behind so many; returns how many there are then.
#[inline(always)]
fn copied(to: &mut [u8], length: usize, count: usize, of: &[u8]) -> usize {
    let room = to.get_mut(length..length + AT_ONCE);
    if let (Some(room), Some(from), true) = (room, of.get(..AT_ONCE), count <= AT_ONCE) {
        // As many at once as there mostly are: what is too many is written over.
        room.copy_from_slice(from);
        return length + count;
    }
    copied_each(to, length, of.get(..count).unwrap_or_default())
}

#[inline(never)]
fn copied_each(to: &mut [u8], length: usize, of: &[u8]) -> usize {
    let room = to.get_mut(length..length + of.len());
    room.map_or(length, |room| {
        room.copy_from_slice(of);
        length + of.len()
    })
}

/// Writes what is taken of so many bytes that stand for themselves; returns what is left then, and how many there are.
#[inline(never)]
fn plain(
    mut left: Left,
    (to, length): (&mut [u8], usize),
    main: &Lane,
    (at, count): (usize, usize),
) -> (Left, usize) {
    let count = left.take(main.bytes(), at, count);
    let of = main.bytes().get(at..).unwrap_or_default();
    let mut length = copied(to, length, count, of);
    if let Some(to) = to.get_mut(length).filter(|_| left.is_none()) {
        *to = 0;
        length += 1;
    }
    (left, length)
}

/// Writes what stands before an escape; returns how many there are then.
#[inline(never)]
fn before(to: &mut [u8], length: usize, main: &Lane, at: usize) -> usize {
    let from = around::before(main.bytes(), at);
    let of = main.bytes().get(from..).unwrap_or_default();
    copied(to, length, at - from, of)
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
