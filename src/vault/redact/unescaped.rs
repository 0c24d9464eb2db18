//! A text as it is without its escapes, so that a value is known whichever of its characters are
//! escaped.
//!
//! Each encoder has its own list of what it escapes; the tables hold the usual ones whole. Here the
//! escapes themselves are read: backslashes of shells and languages, `%NN`, references of XML. Only
//! what stands near an escape is taken: a stretch without any is looked at as it is already.

use super::around::{self, Left};
use super::decoder::{Mark, Seen};
use super::escapes::{LENGTH_BITS, MOST_MORE, Reading, packed, reading};
use super::forks::{Around, Fork, Forks};
use super::glance::Glance;
use super::kinds::{KINDS, Kind, Known};
use super::lane::{Found, Lane};
use super::tables::Tables;
use crate::vault::view::{self, Sink};

/// Fewest new bytes that are looked at before they are read.
const LONG: u64 = 256;

/// The stretches of a text around its escapes of one kind, without these.
///
/// It is made from the visible bytes, block by block: what is far from any escape costs a search
/// for the sign and nothing else, however many colours stand in it.
#[derive(Clone)]
pub(super) struct Unescaped {
    kind: Kind,
    /// Its places hold the length of an escape, too.
    lane: Lane,
    /// How many visible bytes were read: what is behind them may become an escape.
    next: u64,
    /// How much is still taken.
    left: Left,
    /// Where a value may begin within an escape.
    forks: Forks,
    /// Looks at what comes first.
    glance: Glance,
    /// Where to go on when nothing came up since.
    mark: Option<Mark>,
}

impl Unescaped {
    /// Begins to read the escapes of a kind.
    pub(super) fn new(kind: Kind) -> Self {
        Self {
            kind,
            lane: Lane::default(),
            next: 0,
            left: Left::default(),
            forks: Forks::default(),
            glance: Glance::new(kind),
            mark: None,
        }
    }
}

impl Unescaped {
    /// Lets all of them take what is new of `main`.
    pub(super) fn take_all(
        all: &mut [Self; KINDS.len()],
        main: &Lane,
        known: &Known<'_>,
        tables: &Tables,
    ) {
        // The first two are the same but for blanks, which seldom stand there.
        let [parted, plain, others @ ..] = all;
        let are_alike = parted.is_like(plain);
        plain.take(main, known, tables);
        if are_alike && plain.mark.is_some() && !plain.glance.has_gap() {
            parted.follow(plain);
        } else {
            parted.take(main, known, tables);
        }
        for lane in others {
            lane.take(main, known, tables);
        }
    }

    /// Whether it goes on as another one does.
    fn is_like(&self, other: &Self) -> bool {
        let place = |of: &Self| Some((of.mark?.place(), of.next, of.left));
        place(self).is_some() && place(self) == place(other) && self.glance.is_like(&other.glance)
    }

    /// Goes on as another one does.
    fn follow(&mut self, other: &Self) {
        (self.next, self.left, self.mark) = (other.next, other.left, other.mark);
        self.glance.follow(&other.glance);
    }

    /// Takes what is new of `main`, as much as may hold something.
    fn take(&mut self, main: &Lane, known: &Known<'_>, tables: &Tables) {
        let is_long = main.count() - self.next >= LONG;
        if is_long && !self.lane.has_run() && self.is_clean(main, known, tables) {
            return;
        }
        self.catch_up(main, known);
    }

    /// Whether nothing comes up in what is new.
    fn is_clean(&mut self, main: &Lane, known: &Known<'_>, tables: &Tables) -> bool {
        if self.mark.is_none() {
            self.glance.begin_after(&self.lane, self.forks.waiting());
        }
        let seen = Seen {
            main,
            known,
            tables,
        };
        let Some(clean) = self.glance.look(self.next, self.left, seen) else {
            return false;
        };
        self.forks.clear();
        (self.next, self.left, self.mark) = (clean.next, clean.left, Some(clean.mark));
        true
    }

    /// Reads what was not taken as yet.
    pub(super) fn catch_up(&mut self, main: &Lane, known: &Known<'_>) {
        if let Some(mark) = self.mark.take() {
            (self.next, self.left) = (mark.count, mark.left);
            // What the lane has belongs to other text, also where nothing is taken as yet.
            if let Some(last) = main.bytes().len().checked_sub(1) {
                let at = main.index(mark.count).unwrap_or_default().min(last);
                self.lane.divide(main.place(at) << LENGTH_BITS);
            }
        }
        self.read(main, known, false);
    }

    /// Reads what is open to its end: nothing follows it.
    pub(super) fn close(&mut self, main: &Lane, known: &Known<'_>) {
        self.read(main, known, true);
    }

    fn read(&mut self, main: &Lane, known: &Known<'_>, is_end: bool) {
        let bytes = main.bytes();
        let mut at = main.index(self.next).unwrap_or_default();
        self.next = main.count();
        loop {
            let rest = bytes.get(at..).unwrap_or_default();
            let Some(plain) = view::find(self.kind.sign, rest) else {
                return self.plain(main, at, rest.len());
            };
            if self.left.has(plain) {
                // A sign follows, and it begins anew there.
                self.lane.copy(main, at..at + plain, LENGTH_BITS);
            } else {
                self.plain(main, at, plain);
            }
            at += plain;
            let rest = rest.get(plain..).unwrap_or_default();
            match reading(rest, is_end) {
                Reading::Open => {
                    self.begin(main, at);
                    self.next = main.count_of(at);
                    return;
                }
                Reading::Plain => {
                    // What is taken stays in one piece as long as signs follow each other.
                    if !self.left.is_none() {
                        self.lane.copy(main, at..at + 1, LENGTH_BITS);
                        self.left = Left::ALL;
                    }
                    at += 1;
                }
                escape => {
                    self.begin(main, at);
                    at += self.escape(&escape, main, at, known);
                }
            }
        }
    }

    /// Starts to take what stands around an escape.
    fn begin(&mut self, main: &Lane, at: usize) {
        if self.left.is_none() {
            let from = around::before(main.bytes(), at);
            // No place may be larger than one after it.
            self.lane.divide(main.place(from) << LENGTH_BITS);
            self.lane.copy(main, from..at, LENGTH_BITS);
        }
        self.left = Left::ALL;
    }

    /// Takes bytes that stand for themselves.
    fn plain(&mut self, main: &Lane, at: usize, count: usize) {
        let count = self.left.take(main.bytes(), at, count);
        if count == 0 {
            return;
        }
        self.lane.copy(main, at..at + count, LENGTH_BITS);
        if self.left.is_none() {
            self.lane.divide(main.place(at + count - 1) << LENGTH_BITS);
        }
    }

    /// Takes what an escape stands for; returns how many of its bytes need no other look.
    fn escape(&mut self, escape: &Reading, main: &Lane, at: usize, known: &Known<'_>) -> usize {
        match escape {
            Reading::Byte(_, 2 | 3) if self.kind.is_parted(at, main, known) => 1,
            Reading::Byte(byte, length) => self.put(&[*byte], main, at, *length),
            Reading::Char(character, length) => {
                let mut bytes = [0; 4];
                let bytes = character.encode_utf8(&mut bytes).as_bytes();
                self.put(bytes, main, at, *length)
            }
            _ => 1,
        }
    }

    /// Takes bytes that an escape of some length stands for.
    fn put(&mut self, bytes: &[u8], main: &Lane, at: usize, length: usize) -> usize {
        let place = packed(main, at, length);
        for byte in bytes {
            // Not visible ones are left out.
            self.lane.take(&[*byte], place);
        }
        let fork = Fork::new(main, at, length, self.lane.count());
        self.forks.add(fork, main);
        length
    }

    /// Returns how many escapes have too little behind them as yet.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.forks.waiting().len()
    }

    /// Finds matches in what came.
    pub(super) fn scan(&mut self, main: &Lane, tables: &Tables, found: &mut Vec<Found>) {
        if self.mark.is_some() {
            return;
        }
        let from = found.len();
        self.lane.scan(tables, found);
        unpack_all(found, from);
        let around = Around {
            main,
            lane: &self.lane,
            tables,
        };
        self.forks.scan(around, found);
        self.lane.forget(false);
    }

    /// Looks up what the samples left open at the end.
    pub(super) fn scan_end(&mut self, tables: &Tables, found: &mut Vec<Found>) {
        let from = found.len();
        self.lane.scan_end(tables, found);
        unpack_all(found, from);
    }

    /// Returns the place from which on the text may still become a match.
    pub(super) fn open_from(&self, main: &Lane, tables: &Tables) -> Option<u64> {
        let lane = self.lane.open_from(tables);
        let lane = lane.map(|place| place >> LENGTH_BITS);
        let open = lane.into_iter().chain(self.half_escape(main));
        open.chain(self.forks.open_from()).min()
    }

    /// Finds what is a match if nothing comes any more.
    pub(super) fn flush(&mut self, main: &Lane, tables: &Tables, found: &mut Vec<Found>) {
        let from = found.len();
        self.lane.flush(found);
        unpack_all(found, from);
        let around = Around {
            main,
            lane: &self.lane,
            tables,
        };
        self.forks.flush(around, found);
    }

    /// Finds what may be the start of a match at the end, after it was flushed.
    pub(super) fn cut(&self, main: &Lane, tables: &Tables) -> Option<Found> {
        let Some(mut found) = self.lane.cut(tables) else {
            let around = Around {
                main,
                lane: &self.lane,
                tables,
            };
            return self.forks.cut(around);
        };
        unpack(&mut found);
        Some(found)
    }

    /// Returns where an escape starts that the end of the text would cut in two.
    pub(super) fn half_escape(&self, main: &Lane) -> Option<u64> {
        let at = main.index(self.next)?;
        (self.next < main.count()).then(|| main.place(at))
    }
}

fn unpack_all(found: &mut [Found], from: usize) {
    found.iter_mut().skip(from).for_each(unpack);
}

/// Turns places with lengths into places.
fn unpack(found: &mut Found) {
    let last = found.end - 1;
    let more = last & MOST_MORE;
    found.start >>= LENGTH_BITS;
    found.end = (last >> LENGTH_BITS) + more + 1;
}
