//! Values that begin within what was read as an escape.
//!
//! A sign may stand for itself: `100% BC%7d` is read as `%BC`, and a value after the blank has lost its
//! beginning then. So every escape is looked at once more, from each of its bytes after the sign on, together
//! with what the text behind it stands for. A longer value is known by the rest of it alone; what is sought
//! here is no longer than a match.

use zeroize::Zeroizing;

use super::around;
use super::escapes::{LENGTH_BITS, MOST_MORE, Reading, packed, reading};
use super::grams::{WINDOW, first, number};
use super::lane::{Found, Lane, Run};
use super::tables::Tables;
use crate::limits;
use crate::vault::view::{SAMPLE, is_visible};

/// How many characters behind an escape are looked at: a match that has more of them is found without it.
const BEHIND: usize = limits::REDACTED_RUN_BYTES;

/// An escape that was read.
#[derive(Clone, Copy)]
pub(super) struct Fork {
    /// How many visible bytes stand before it.
    pub(super) start: u64,
    /// How many it takes.
    pub(super) length: usize,
    /// How many bytes of the text without escapes stand before what follows it.
    pub(super) after: u64,
    /// Its first bytes.
    text: u64,
}

impl Fork {
    /// Makes the one that stands at a place in `main`.
    pub(super) fn new(main: &Lane, at: usize, length: usize, after: u64) -> Self {
        let bytes = length.min(WINDOW);
        Self {
            start: main.count_of(at),
            length,
            after,
            text: first(number(main.bytes(), at), bytes),
        }
    }

    /// Whether two are the same as plain text, and not a sign twice: that is read on from where it stands.
    #[inline]
    fn has_text_of(&self, other: &Self, main: &Lane) -> bool {
        let rest = |of: &Self| {
            let at = main.index(of.start)?;
            main.bytes().get(at + WINDOW..at + of.length)
        };
        self.text == other.text
            && self.length == other.length
            && self.text as u8 != (self.text >> 8) as u8
            && (self.length <= WINDOW || rest(self).is_some_and(|own| Some(own) == rest(other)))
    }
}

/// What escapes are looked at with: the text with them and without, and what is looked for.
#[derive(Clone, Copy)]
pub(super) struct Around<'a> {
    pub(super) main: &'a Lane,
    pub(super) lane: &'a Lane,
    pub(super) tables: &'a Tables,
}

/// The escapes with too little behind them as yet.
#[derive(Clone, Default)]
pub(super) struct Forks {
    forks: Vec<Fork>,
    /// The place from which on one of them may still become a match.
    open: Option<u64>,
}

/// What an escape and the text behind it are, read from its second byte on.
struct Text {
    bytes: Zeroizing<[u8; Text::MOST]>,
    /// For each byte the first and the last place of what it stands for.
    places: [(u64, u64); Text::MOST],
    length: usize,
    /// How many bytes are the escape's own, so that a value may begin there.
    own: usize,
    /// How many characters are behind these.
    behind: usize,
    /// Whether nothing can follow that matters.
    is_whole: bool,
}

/// What a text is from one of its bytes on.
enum Begun {
    Nothing,
    Open,
    Match(Run),
}

impl Text {
    const MOST: usize = limits::MAX_ESCAPE_BYTES + 4 * BEHIND;

    fn new() -> Self {
        Self {
            bytes: Zeroizing::new([0; Self::MOST]),
            places: [(0, 0); Self::MOST],
            length: 0,
            own: 0,
            behind: 0,
            is_whole: false,
        }
    }

    fn push(&mut self, byte: u8, places: (u64, u64)) {
        if let (Some(to), Some(to_places)) = (
            self.bytes.get_mut(self.length),
            self.places.get_mut(self.length),
        ) {
            (*to, *to_places) = (byte, places);
            self.length += 1;
        }
    }

    /// Takes a byte that is not the escape's own.
    fn push_behind(&mut self, byte: u8, places: (u64, u64)) {
        self.push(byte, places);
        let bytes = self.bytes.get(..self.length).unwrap_or_default();
        self.behind += usize::from(around::counts(bytes, self.length - 1));
    }

    /// Whether a match that goes on is found without it.
    fn is_full(&self) -> bool {
        self.behind == BEHIND || self.length == Self::MOST
    }

    /// Returns the bytes from one on.
    fn from(&self, at: usize) -> &[u8] {
        self.bytes.get(at..self.length).unwrap_or_default()
    }

    fn place(&self, at: usize) -> (u64, u64) {
        self.places.get(at).copied().unwrap_or_default()
    }

    /// Reads an escape as plain text, and behind it what `lane` has.
    fn plain(fork: &Fork, at: usize, main: &Lane, lane: &Lane) -> Option<Self> {
        let mut text = Self::new();
        let own = at + 1..at + fork.length;
        for (index, byte) in own.clone().zip(main.bytes().get(own)?) {
            let place = main.place(index);
            text.push(*byte, (place, place));
        }
        text.own = text.length;
        let after = lane.index(fork.after)?;
        let behind = lane.bytes().get(after..)?;
        for (index, byte) in (after..).zip(behind) {
            let place = lane.place(index);
            let first = place >> LENGTH_BITS;
            text.push_behind(*byte, (first, first + (place & MOST_MORE)));
            text.is_whole = text.is_full();
            if text.is_whole {
                break;
            }
        }
        Some(text)
    }

    /// Reads from the second of two signs on: it may begin an escape itself.
    fn shifted(at: usize, main: &Lane, is_end: bool) -> Option<Self> {
        let mut text = Self::new();
        let bytes = main.bytes();
        let sign = *bytes.get(at)?;
        let mut at = at + 1;
        text.own = 1;
        while !text.is_full() {
            let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) else {
                return Some(text);
            };
            let read = match rest.first() {
                Some(first) if *first == sign => reading(rest, is_end),
                _ => Reading::Plain,
            };
            at += match read {
                Reading::Open => return Some(text),
                Reading::Quoted => 1,
                Reading::Plain => {
                    let place = main.place(at);
                    rest.iter()
                        .take(1)
                        .for_each(|byte| text.push_behind(*byte, (place, place)));
                    1
                }
                Reading::Byte(byte, length) => {
                    text.push_escape(&[byte], packed(main, at, length));
                    length
                }
                Reading::Char(character, length) => {
                    let bytes = &mut [0; 4];
                    let bytes = character.encode_utf8(bytes).as_bytes();
                    text.push_escape(bytes, packed(main, at, length));
                    length
                }
            };
        }
        text.is_whole = true;
        Some(text)
    }

    fn push_escape(&mut self, bytes: &[u8], place: u64) {
        let first = place >> LENGTH_BITS;
        let visible = bytes.iter().filter(|byte| is_visible(**byte));
        visible.for_each(|byte| self.push_behind(*byte, (first, first + (place & MOST_MORE))));
    }

    /// Looks whether a value begins with one of the bytes.
    fn begun(&self, at: usize, tables: &Tables) -> Begun {
        let bytes = self.from(at);
        if bytes.len() < WINDOW {
            let is_known = !self.is_whole && tables.may_begin(bytes);
            return if is_known {
                Begun::Open
            } else {
                Begun::Nothing
            };
        }
        let mut run: Option<Run> = None;
        let mut count = 0;
        let mut is_open = !self.is_whole;
        for start in at..=self.length - WINDOW {
            let key = number(self.bytes.as_slice(), start);
            let Some(gram) = tables.gram(key) else {
                is_open = false;
                break;
            };
            count += 1;
            let end = self.place(start + WINDOW - 1).1;
            match &mut run {
                None => run = Some(Run::new(gram, self.place(start).0, end)),
                Some(run) => run.add(gram, end),
            }
        }
        if let Some(run) = &mut run {
            let own = bytes.get(..count + WINDOW - 1).unwrap_or(bytes);
            run.prove(own, tables);
        }
        match run {
            Some(_) if is_open => Begun::Open,
            Some(run) if run.is_match() => Begun::Match(run),
            _ => Begun::Nothing,
        }
    }
}

impl Forks {
    /// Takes note of an escape.
    pub(super) fn add(&mut self, fork: Fork, main: &Lane) {
        add(&mut self.forks, fork, main);
    }

    /// Returns the escapes with too little behind them as yet.
    pub(super) fn waiting(&self) -> &[Fork] {
        &self.forks
    }

    /// Forgets them: nothing begins there.
    pub(super) fn clear(&mut self) {
        self.forks.clear();
        self.open = None;
    }

    /// Finds matches that begin within an escape.
    pub(super) fn scan(&mut self, around: Around<'_>, found: &mut Vec<Found>) {
        self.open = None;
        let mut forks = std::mem::take(&mut self.forks);
        forks.retain(|fork| {
            let open = look(fork, around, false, found);
            self.open = self.open.into_iter().chain(open).min();
            open.is_some()
        });
        self.forks = forks;
    }

    /// Returns the place from which on the text may still become a match.
    pub(super) fn open_from(&self) -> Option<u64> {
        self.open
    }

    /// Finds what is a match if nothing comes any more.
    pub(super) fn flush(&self, around: Around<'_>, found: &mut Vec<Found>) {
        for fork in &self.forks {
            look(fork, around, true, found);
        }
    }

    /// Finds what may be the start of a match at the end, after it was flushed.
    pub(super) fn cut(&self, around: Around<'_>) -> Option<Found> {
        let tables = around.tables;
        self.forks.iter().find_map(|fork| {
            let text = read(fork, around, true)?;
            let at = (0..text.own).find(|at| matches!(text.begun(*at, tables), Begun::Open))?;
            let bytes = text.from(at);
            let is_long = bytes.len() >= limits::MIN_CUT_SECRET_BYTES;
            let gram = tables.started_by(bytes.get(..bytes.len().min(WINDOW))?);
            let gram = gram.filter(|gram| is_long && gram.is_secret())?;
            Some(Found {
                start: text.place(at).0,
                end: text.place(text.length - 1).1 + 1,
                secret: gram.secret(),
                form: gram.form(),
                length: bytes.len(),
            })
        })
    }
}

/// Whether an escape begins with its sign twice.
fn is_double(bytes: &[u8], at: usize) -> bool {
    bytes
        .get(at)
        .is_some_and(|sign| bytes.get(at + 1) == Some(sign))
}

/// Reads an escape otherwise; nothing when it is not there any more.
fn read(fork: &Fork, around: Around<'_>, is_end: bool) -> Option<Text> {
    let Around { main, lane, .. } = around;
    let at = main.index(fork.start)?;
    match is_double(main.bytes(), at) {
        true => Text::shifted(at, main, is_end),
        false => Text::plain(fork, at, main, lane),
    }
}

/// Whether enough stands behind an escape to see that no value begins within it: so it is with almost all.
#[inline]
fn is_harmless(fork: &Fork, around: Around<'_>) -> bool {
    let Around { main, lane, tables } = around;
    let (Some(at), Some(after)) = (main.index(fork.start), lane.index(fork.after)) else {
        return true;
    };
    let own = main.bytes().get(at + 1..at + fork.length);
    let (Some(own), true) = (own, after + WINDOW <= lane.bytes().len()) else {
        return false;
    };
    if is_double(main.bytes(), at) {
        return is_in_step(main, at) || is_other_when_shifted(main, at, tables);
    }
    begins_nothing(own, number(lane.bytes(), after), tables)
}

/// Whether no value begins with some bytes and the eight behind them.
#[inline]
fn begins_nothing(own: &[u8], behind: u64, tables: &Tables) -> bool {
    // A stretch that begins with one of two bytes goes on with six of these.
    if own.len() + SAMPLE <= WINDOW && !tables.may_have(behind) {
        return true;
    }
    // As a number they leave nothing in memory that had to be wiped.
    let mut stretch = behind;
    own.iter().rev().all(|byte| {
        stretch = stretch << 8 | u64::from(*byte);
        tables.gram(stretch).is_none()
    })
}

/// Whether no value begins within an escape with what it is followed by; nothing while that is too little.
pub(super) fn is_clean(fork: &Fork, behind: &[u8], main: &Lane, tables: &Tables) -> Option<bool> {
    let Some(at) = main.index(fork.start) else {
        return Some(false);
    };
    if !is_double(main.bytes(), at) {
        let own = main.bytes().get(at + 1..at + fork.length)?;
        return (behind.len() >= WINDOW).then(|| begins_nothing(own, number(behind, 0), tables));
    }
    if is_in_step(main, at) || is_other_when_shifted(main, at, tables) {
        return Some(true);
    }
    let text = Text::shifted(at, main, false)?;
    let is_unknown = text.length == 0 && !text.is_whole;
    match text.begun(0, tables) {
        Begun::Open => None,
        Begun::Nothing => (!is_unknown).then_some(true),
        Begun::Match(_) => Some(false),
    }
}

/// Signs in a row of which as many are left as are looked at behind an escape, from the first or the second one on.
const MANY_SIGNS: usize = 2 * BEHIND + 2;

/// Whether a text in which a sign follows its like is the same, from the second one on, as what was read from the first
/// one on, or a part of it that comes last: then what begins in it is found there. Pairs of signs stand for one each, and
/// so it is where what follows them is itself with a sign before it as well as without, or is too far to matter.
fn is_in_step(main: &Lane, at: usize) -> bool {
    let bytes = main.bytes().get(at..).unwrap_or_default();
    let Some(sign) = bytes.first() else {
        return false;
    };
    let signs = bytes.iter().take(MANY_SIGNS);
    let signs = signs.take_while(|byte| *byte == sign).count();
    let is_many = signs == MANY_SIGNS;
    let last = if is_many { signs - 1 } else { signs };
    let Some(next) = bytes.get(last) else {
        return false;
    };
    // White space between them is read in several ways.
    if main.place(at + last).checked_sub(main.place(at)) != Some(last as u64) {
        return false;
    }
    match next {
        _ if is_many => true,
        b'x' | b'u' | b'U' | b'0'..=b'7' => false,
        // With a sign they are not visible, and what follows them is a part of both.
        b'a' | b'b' | b'e' | b'f' | b'n' | b'r' | b't' | b'v' => signs == 2,
        _ => true,
    }
}

/// Whether no value begins with the first bytes of a text that is read from the second of two signs on. As a number they
/// leave nothing in memory that had to be wiped.
fn is_other_when_shifted(main: &Lane, at: usize, tables: &Tables) -> bool {
    let here = main.bytes().get(at..).unwrap_or_default();
    let Some((sign, mut bytes)) = here.split_first() else {
        return false;
    };
    let (mut stretch, mut count) = (0_u64, 0);
    while count < WINDOW {
        let (byte, length) = match bytes {
            [first, second, ..] if first == sign && second == sign => (*sign, 2),
            [first, ..] if first == sign => match reading(bytes, false) {
                Reading::Byte(byte, length) => (byte, length),
                // Rare here, and read with its place.
                _ => return false,
            },
            [first, ..] => (*first, 1),
            [] => return false,
        };
        if is_visible(byte) {
            stretch = stretch >> 8 | u64::from(byte) << 56;
            count += 1;
        }
        bytes = bytes.get(length..).unwrap_or_default();
    }
    tables.gram(stretch).is_none()
}

/// Adds an escape. Where those before it stand for nothing visible, as in a row of `\n`, each like it is followed by the
/// same text, so what begins in it begins in the last one, too.
pub(super) fn add(forks: &mut Vec<Fork>, fork: Fork, main: &Lane) {
    let near = forks.iter_mut().rev();
    let mut near = near.take_while(|old| old.after == fork.after);
    match near.find(|old| old.has_text_of(&fork, main)) {
        Some(old) => *old = fork,
        None => forks.push(fork),
    }
}

/// Looks whether a value begins within an escape; returns from where on it may still.
fn look(fork: &Fork, around: Around<'_>, is_end: bool, found: &mut Vec<Found>) -> Option<u64> {
    let Around { main, tables, .. } = around;
    if is_harmless(fork, around) {
        return None;
    }
    let mut text = read(fork, around, is_end)?;
    text.is_whole |= is_end;
    if text.length == 0 && !text.is_whole {
        // Behind the first sign nothing is known as yet.
        return main.index(fork.start).map(|at| main.place(at + 1));
    }
    for at in 0..text.own {
        match text.begun(at, tables) {
            Begun::Nothing => {}
            Begun::Open => return Some(text.place(at).0),
            Begun::Match(run) => {
                found.push(run.found());
                return None;
            }
        }
    }
    None
}
