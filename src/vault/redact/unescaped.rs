//! A text as it is without its escapes, so that a value is known whichever of its characters are
//! escaped.
//!
//! Each encoder has its own list of what it escapes; the tables hold the usual ones whole. Here the
//! escapes themselves are read: backslashes of shells and languages, `%NN`, references of XML. Only
//! what stands near an escape is taken: a stretch without any is looked at as it is already.

use std::collections::VecDeque;

use super::lane::{AROUND, Found, Lane};
use super::tables::Tables;
use crate::limits::MAX_ESCAPE_BYTES;
use crate::vault::view::{Sink, is_visible};

/// Low bits of a place that hold how many bytes more the escape takes, what stands in between
/// included.
const LENGTH_BITS: u32 = 10;
/// Longest stretch that an escape may be spread over.
const MOST_MORE: u64 = (1 << LENGTH_BITS) - 1;

/// What the escapes of one kind begin with. Text that is written in one kind may hold the signs of
/// the others as they are.
pub(super) const SIGNS: [u8; 3] = *b"\\%&";

/// The stretches of a text around its escapes of one kind, without these.
#[derive(Clone)]
pub(super) struct Unescaped {
    sign: u8,
    /// Its places hold the length of an escape, too.
    lane: Lane,
    /// What may become an escape, and where each byte of it stands.
    open: Vec<u8>,
    places: VecDeque<u64>,
    /// Whether a blank stands after the backslash that is open.
    is_parted: bool,
    /// How many visible bytes are still taken.
    left: usize,
}

impl Unescaped {
    /// Begins to read the escapes with a sign.
    pub(super) fn new(sign: u8) -> Self {
        Self {
            sign,
            lane: Lane::default(),
            open: Vec::with_capacity(MAX_ESCAPE_BYTES),
            places: VecDeque::with_capacity(MAX_ESCAPE_BYTES),
            is_parted: false,
            left: 0,
        }
    }
}

/// What some bytes are that start like an escape.
#[derive(Debug, PartialEq, Eq)]
enum Reading {
    /// More bytes tell.
    Open,
    /// No escape.
    Plain,
    /// The first byte counts as nothing, the second as itself.
    Quoted,
    /// So many bytes stand for a character.
    Char(char, usize),
    /// So many bytes stand for a byte.
    Byte(u8, usize),
}

impl Unescaped {
    /// Whether nothing is taken until the next sign.
    pub(super) fn is_idle(&self) -> bool {
        self.open.is_empty() && self.left == 0
    }

    /// Takes the next bytes, which `main` has at its end already.
    pub(super) fn take(&mut self, bytes: &[u8], at: u64, main: &Lane) {
        let mut index = 0;
        while index < bytes.len() {
            if self.is_idle() {
                index = self.skip(bytes, index);
            }
            let Some(byte) = bytes.get(index) else {
                return;
            };
            self.push(*byte, at + index as u64, main);
            index += 1;
        }
    }

    /// Passes over what is far from any escape; returns where the next one may start.
    fn skip(&self, bytes: &[u8], from: usize) -> usize {
        let mut start = from;
        loop {
            let rest = bytes.get(start..).unwrap_or_default();
            let Some(found) = memchr::memchr(self.sign, rest) else {
                return bytes.len();
            };
            if may_start(rest.get(found..).unwrap_or_default()) {
                return start + found;
            }
            start += found + 1;
        }
    }

    fn push(&mut self, byte: u8, place: u64, main: &Lane) {
        if self.open.is_empty() {
            if byte != self.sign {
                return self.plain(byte, place);
            }
            self.begin(place, main);
        } else if !is_visible(byte) {
            // Wherever white space stands, it hides nothing; but a backslash may be meant for it.
            let is_first = self.sign == b'\\' && self.open.len() == 1;
            self.is_parted |= is_first && matches!(byte, b' ' | b'\t');
            return;
        }
        self.open.push(byte);
        self.places.push_back(place);
        self.read(false);
    }

    /// Starts to take what stands around an escape at a place.
    fn begin(&mut self, place: u64, main: &Lane) {
        if self.left == 0 {
            let mut before = main.before(place, AROUND).peekable();
            // No place may be larger than one after it.
            let first = before.peek().map_or(place, |(_, first)| *first);
            self.lane.divide(first << LENGTH_BITS);
            for (byte, place) in before {
                self.lane.take(&[byte], place << LENGTH_BITS);
            }
        }
        self.left = AROUND;
    }

    /// Reads what is open as far as it tells; at the end of a text, or where something stands in
    /// between, all of it.
    fn read(&mut self, is_end: bool) {
        while !self.open.is_empty() {
            match reading(&self.open, is_end) {
                Reading::Open => return,
                Reading::Quoted => self.take_quoted(),
                Reading::Byte(_, 2 | 3) if self.is_parted => self.take_quoted(),
                Reading::Plain => self.take_open(),
                Reading::Byte(byte, length) => {
                    self.escaped(&[byte], length);
                    self.drop_open(length);
                }
                Reading::Char(character, length) => {
                    self.escaped(character.encode_utf8(&mut [0; 4]).as_bytes(), length);
                    self.drop_open(length);
                }
            }
            // The rest may start another one.
            while self.open.first().is_some_and(|byte| *byte != self.sign) {
                self.take_open();
            }
        }
    }

    /// Takes what stands after a backslash as itself.
    fn take_quoted(&mut self) {
        let is_blank = self.is_parted;
        self.drop_open(1);
        if !is_blank {
            self.take_open();
        }
    }

    /// Takes the first open byte as itself.
    fn take_open(&mut self) {
        if let (Some(byte), Some(place)) = (self.open.first(), self.places.front()) {
            self.plain(*byte, *place);
            self.drop_open(1);
        }
    }

    fn drop_open(&mut self, count: usize) {
        self.is_parted = false;
        self.open.drain(..count.min(self.open.len()));
        self.places.drain(..count.min(self.places.len()));
    }

    /// Takes a byte that stands for itself.
    fn plain(&mut self, byte: u8, place: u64) {
        if !is_visible(byte) {
            return;
        }
        if self.left > 0 {
            self.lane.take(&[byte], place << LENGTH_BITS);
            self.left -= 1;
            if self.left == 0 {
                self.lane.divide(place << LENGTH_BITS);
            }
        }
    }

    /// Takes what the open escape, so many bytes long, stands for.
    fn escaped(&mut self, bytes: &[u8], length: usize) {
        let first = self.places.front().copied().unwrap_or_default();
        let last = self.places.get(length.saturating_sub(1)).copied();
        let more = last.unwrap_or(first).saturating_sub(first);
        let place = first << LENGTH_BITS | more.min(MOST_MORE);
        for byte in bytes.iter().filter(|byte| is_visible(**byte)) {
            self.lane.take(&[*byte], place);
        }
        self.left = AROUND;
    }

    /// Reads what is open to its end: nothing follows it.
    pub(super) fn close(&mut self) {
        self.read(true);
    }

    /// Finds matches in what came.
    pub(super) fn scan(&mut self, tables: &Tables, found: &mut Vec<Found>) {
        let from = found.len();
        self.lane.scan(tables, found);
        self.lane.forget(false);
        unpack_all(found, from);
    }

    /// Looks up what the samples left open at the end.
    pub(super) fn scan_end(&mut self, tables: &Tables, found: &mut Vec<Found>) {
        let from = found.len();
        self.lane.scan_end(tables, found);
        unpack_all(found, from);
    }

    /// Returns the place from which on the text may still become a match.
    pub(super) fn open_from(&self, tables: &Tables) -> Option<u64> {
        let lane = self
            .lane
            .open_from(tables)
            .map(|place| place >> LENGTH_BITS);
        lane.into_iter().chain(self.half_escape()).min()
    }

    /// Finds what is a match if nothing comes any more.
    pub(super) fn flush(&self, found: &mut Vec<Found>) {
        let from = found.len();
        self.lane.flush(found);
        unpack_all(found, from);
    }

    /// Finds what may be the start of a match at the end, after it was flushed.
    pub(super) fn cut(&self, tables: &Tables) -> Option<Found> {
        let mut found = self.lane.cut(tables)?;
        unpack(&mut found);
        Some(found)
    }

    /// Returns where an escape starts that the end of the text would cut in two.
    pub(super) fn half_escape(&self) -> Option<u64> {
        self.places.front().copied()
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

/// Whether what starts with a sign of escapes may be one, by its second byte.
fn may_start(bytes: &[u8]) -> bool {
    match (bytes.first(), bytes.get(1)) {
        (_, Some(next)) if !is_visible(*next) => true,
        (Some(b'%'), Some(next)) => next.is_ascii_hexdigit() || *next == b'u',
        (Some(b'&'), Some(next)) => matches!(next, b'#' | b'a' | b'l' | b'g' | b'q'),
        _ => true,
    }
}

/// Reads an escape. At the end nothing follows.
fn reading(bytes: &[u8], is_end: bool) -> Reading {
    let reading = match bytes.first() {
        Some(b'\\') => backslash(bytes, is_end),
        Some(b'%') => percent(bytes),
        _ => reference(bytes),
    };
    match reading {
        Reading::Open if is_end || bytes.len() >= MAX_ESCAPE_BYTES => Reading::Plain,
        reading => reading,
    }
}

fn backslash(bytes: &[u8], is_end: bool) -> Reading {
    let Some(next) = bytes.get(1) else {
        return Reading::Open;
    };
    let number = match next {
        b'x' => number(bytes, 2, 2).map(|byte| Reading::Byte(byte as u8, 4)),
        b'u' if bytes.get(2) == Some(&b'{') => braced(bytes),
        b'u' => number(bytes, 2, 4).map(|code| character(code, 6)),
        b'U' => number(bytes, 2, 8).map(|code| character(code, 10)),
        b'0'..=b'7' => return octal(bytes, is_end),
        b'a' | b'b' | b'e' | b'f' | b'n' | b'r' | b't' | b'v' => Ok(Reading::Byte(b'\n', 2)),
        // A backslash stands for itself where another one stands before it.
        b'\\' => Ok(Reading::Byte(b'\\', 2)),
        _ => Err(false),
    };
    number.unwrap_or_else(|is_open| match is_open {
        true if !is_end => Reading::Open,
        _ => Reading::Quoted,
    })
}

fn percent(bytes: &[u8]) -> Reading {
    let read = match bytes.get(1) {
        None => return Reading::Open,
        Some(b'u') => number(bytes, 2, 4).map(|code| character(code, 6)),
        Some(_) => number(bytes, 1, 2).map(|byte| Reading::Byte(byte as u8, 3)),
    };
    read.unwrap_or_else(|is_open| {
        if is_open {
            Reading::Open
        } else {
            Reading::Plain
        }
    })
}

/// Reads digits of a known count; else tells whether more bytes are needed.
fn number(bytes: &[u8], at: usize, count: usize) -> Result<u32, bool> {
    let digits = bytes
        .get(at..bytes.len().min(at + count))
        .unwrap_or_default();
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return Err(false);
    }
    if digits.len() < count {
        return Err(true);
    }
    Ok(digits
        .iter()
        .fold(0, |number, digit| number << 4 | value(*digit)))
}

fn value(digit: u8) -> u32 {
    char::from(digit).to_digit(16).unwrap_or(0)
}

fn character(code: u32, length: usize) -> Reading {
    char::from_u32(code).map_or(Reading::Plain, |code| Reading::Char(code, length))
}

/// `\u{...}`
fn braced(bytes: &[u8]) -> Result<Reading, bool> {
    let digits = bytes.get(3..).unwrap_or_default();
    let count = digits.iter().take_while(|digit| digit.is_ascii_hexdigit());
    let count = count.count();
    match digits.get(count) {
        None => Err(count <= 6),
        Some(b'}') if (1..=6).contains(&count) => {
            let code = number(bytes, 3, count)?;
            Ok(character(code, count + 4))
        }
        Some(_) => Err(false),
    }
}

/// One to three octal digits, or four after a zero when that is a byte.
fn octal(bytes: &[u8], is_end: bool) -> Reading {
    let digits = bytes.get(1..).unwrap_or_default();
    let most = if digits.first() == Some(&b'0') { 4 } else { 3 };
    let count = digits.iter().take(most);
    let count = count
        .take_while(|digit| matches!(digit, b'0'..=b'7'))
        .count();
    if count == digits.len() && count < most && !is_end {
        return Reading::Open;
    }
    let number = |count: usize| {
        let digits = digits.iter().take(count);
        digits.fold(0_u32, |number, digit| number << 3 | u32::from(digit - b'0'))
    };
    let longest = (1..=count).rev().find(|count| number(*count) <= 0xFF);
    let count = longest.unwrap_or(1);
    Reading::Byte(number(count) as u8, count + 1)
}

/// `&amp;` and the like, and the number of a character.
fn reference(bytes: &[u8]) -> Reading {
    let Some(end) = memchr::memchr(b';', bytes) else {
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'#';
        let is_open = bytes.iter().skip(1).all(is_name);
        return if is_open {
            Reading::Open
        } else {
            Reading::Plain
        };
    };
    let name = bytes.get(1..end).unwrap_or_default();
    let number = match name {
        [b'#', b'x' | b'X', digits @ ..] => digits_of(digits, 16),
        [b'#', digits @ ..] => digits_of(digits, 10),
        b"amp" => Some('&'),
        b"lt" => Some('<'),
        b"gt" => Some('>'),
        b"quot" => Some('"'),
        b"apos" => Some('\''),
        _ => None,
    };
    number.map_or(Reading::Plain, |found| Reading::Char(found, end + 1))
}

fn digits_of(digits: &[u8], base: u32) -> Option<char> {
    let text = std::str::from_utf8(digits).ok()?;
    char::from_u32(u32::from_str_radix(text, base).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_read() {
        let cases: [(&str, Reading); 26] = [
            ("\\", Reading::Open),
            ("\\*", Reading::Quoted),
            ("\\n", Reading::Byte(b'\n', 2)),
            ("\\\\", Reading::Byte(b'\\', 2)),
            ("\\x4", Reading::Open),
            ("\\x41", Reading::Byte(b'A', 4)),
            ("\\xg", Reading::Quoted),
            ("\\u00e", Reading::Open),
            ("\\u00e9", Reading::Char('é', 6)),
            ("\\u{e9}", Reading::Char('é', 6)),
            ("\\u{e9", Reading::Open),
            ("\\ud83d", Reading::Plain),
            ("\\U0001F600", Reading::Char('\u{1F600}', 10)),
            ("\\10", Reading::Open),
            ("\\101", Reading::Byte(b'A', 4)),
            ("\\0101", Reading::Byte(b'A', 5)),
            ("\\0411", Reading::Byte(b'!', 4)),
            ("\\418", Reading::Byte(b'!', 3)),
            ("%4", Reading::Open),
            ("%4a", Reading::Byte(b'J', 3)),
            ("%4g", Reading::Plain),
            ("%u0041", Reading::Char('A', 6)),
            ("&am", Reading::Open),
            ("&amp;", Reading::Char('&', 5)),
            ("&#x2F;", Reading::Char('/', 6)),
            ("&a b;", Reading::Plain),
        ];
        for (text, expected) in cases {
            assert_eq!(reading(text.as_bytes(), false), expected, "{text}");
        }
        assert_eq!(reading(b"\\41", true), Reading::Byte(b'!', 3));
        assert_eq!(reading(b"\\x4", true), Reading::Quoted);
        assert_eq!(reading(b"&am", true), Reading::Plain);
        assert_eq!(reading(b"&#12345678901", false), Reading::Plain);
    }
}
