//! A text as it is without its escapes, so that a value is known whichever of its characters are
//! escaped.
//!
//! Each encoder has its own list of what it escapes; the tables hold the usual ones whole. Here the
//! escapes themselves are read: backslashes of shells and languages, `%NN`, references of XML. Only
//! what stands near an escape is taken: a stretch without any is looked at as it is already.

use super::forks::{Fork, Forks};
use super::lane::{AROUND, Found, Lane};
use super::tables::Tables;
use crate::limits::MAX_ESCAPE_BYTES;
use crate::vault::view::{self, Sink};

/// Low bits of a place that hold how many bytes more the escape takes, what stands in between
/// included.
pub(super) const LENGTH_BITS: u32 = 10;
/// Longest stretch that an escape may be spread over.
pub(super) const MOST_MORE: u64 = (1 << LENGTH_BITS) - 1;

/// How the escapes of one kind are read. Text that is written in one kind may hold the signs of
/// the others as they are.
#[derive(Clone, Copy)]
pub(super) struct Kind {
    /// What they begin with.
    pub(super) sign: u8,
    /// Whether a blank after the sign may be what is escaped.
    is_parted: bool,
}

impl Kind {
    const fn new(sign: u8) -> Self {
        Self {
            sign,
            is_parted: false,
        }
    }
}

/// All of them. A blank after a backslash is one that a shell has quoted, or stands between any two
/// characters of the text.
pub(super) const KINDS: [Kind; 4] = [
    Kind {
        sign: b'\\',
        is_parted: true,
    },
    Kind::new(b'\\'),
    Kind::new(b'%'),
    Kind::new(b'&'),
];

/// The text that places are in, as far as it is known.
pub(super) struct Known<'a> {
    pub(super) bytes: &'a [u8],
    /// Where it starts.
    pub(super) base: u64,
}

impl Known<'_> {
    /// Whether a blank stands between two visible bytes that follow each other.
    fn has_blank_between(&self, first: u64, second: u64) -> bool {
        let index = |place: u64| usize::try_from(place.saturating_sub(self.base)).ok();
        let range = index(first + 1).zip(index(second));
        let between = range.and_then(|(start, end)| self.bytes.get(start..end));
        let between = between.unwrap_or_default();
        let shown = view::shown(between);
        let mut bytes = between.iter().enumerate();
        bytes.any(|(at, byte)| matches!(byte, b' ' | b'\t') && shown.get(at) != Some(&false))
    }
}

/// The stretches of a text around its escapes of one kind, without these.
///
/// It is made from the visible bytes, block by block: what is far from any escape costs a search
/// for the sign and nothing else, however many colours stand in it.
#[derive(Clone)]
pub(super) struct Unescaped {
    kind: Kind,
    /// Its places hold the length of an escape, too.
    lane: Lane,
    /// How many visible bytes at the end may become an escape.
    open: usize,
    /// How many visible bytes are still taken.
    left: usize,
    /// Where a value may begin within an escape.
    forks: Forks,
}

impl Unescaped {
    /// Begins to read the escapes of a kind.
    pub(super) fn new(kind: Kind) -> Self {
        Self {
            kind,
            lane: Lane::default(),
            open: 0,
            left: 0,
            forks: Forks::default(),
        }
    }
}

/// What some bytes are that start like an escape.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reading {
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
    /// Takes the last bytes of `main`, so many of which are new.
    pub(super) fn take(&mut self, main: &Lane, new: usize, known: &Known<'_>) {
        self.read(main, new, known, false);
    }

    /// Reads what is open to its end: nothing follows it.
    pub(super) fn close(&mut self, main: &Lane, known: &Known<'_>) {
        self.read(main, 0, known, true);
    }

    fn read(&mut self, main: &Lane, new: usize, known: &Known<'_>, is_end: bool) {
        let bytes = main.bytes();
        let mut at = bytes.len().saturating_sub(new + self.open);
        self.open = 0;
        loop {
            let rest = bytes.get(at..).unwrap_or_default();
            let Some(plain) = view::find(self.kind.sign, rest) else {
                return self.plain(main, at, rest.len());
            };
            self.plain(main, at, plain);
            at += plain;
            let rest = rest.get(plain..).unwrap_or_default();
            match reading(rest, is_end) {
                Reading::Open => {
                    self.begin(main, at);
                    self.open = rest.len();
                    return;
                }
                Reading::Plain => {
                    // What is taken stays in one piece as long as signs follow each other.
                    if self.left > 0 {
                        self.left = AROUND;
                    }
                    self.plain(main, at, 1);
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
        if self.left == 0 {
            let from = at.saturating_sub(AROUND);
            // No place may be larger than one after it.
            self.lane.divide(main.place(from) << LENGTH_BITS);
            self.lane.copy(main, from..at, LENGTH_BITS);
        }
        self.left = AROUND;
    }

    /// Takes bytes that stand for themselves.
    fn plain(&mut self, main: &Lane, at: usize, count: usize) {
        let count = count.min(self.left);
        if count == 0 {
            return;
        }
        self.lane.copy(main, at..at + count, LENGTH_BITS);
        self.left -= count;
        if self.left == 0 {
            self.lane.divide(main.place(at + count - 1) << LENGTH_BITS);
        }
    }

    /// Takes what an escape stands for; returns how many of its bytes need no other look.
    fn escape(&mut self, escape: &Reading, main: &Lane, at: usize, known: &Known<'_>) -> usize {
        let is_parted =
            || self.kind.is_parted && known.has_blank_between(main.place(at), main.place(at + 1));
        match escape {
            // Wherever white space stands, it hides nothing; but a backslash may be meant for it.
            Reading::Byte(_, 2 | 3) if is_parted() => 1,
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
        self.forks.add(Fork {
            start: main.count_of(at),
            length,
            after: self.lane.count(),
        });
        length
    }

    /// Finds matches in what came.
    pub(super) fn scan(&mut self, main: &Lane, tables: &Tables, found: &mut Vec<Found>) {
        let from = found.len();
        self.lane.scan(tables, found);
        unpack_all(found, from);
        self.forks.scan(main, &self.lane, tables, found);
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
        self.forks.flush(main, &self.lane, tables, found);
    }

    /// Finds what may be the start of a match at the end, after it was flushed.
    pub(super) fn cut(&self, main: &Lane, tables: &Tables) -> Option<Found> {
        let Some(mut found) = self.lane.cut(tables) else {
            return self.forks.cut(main, &self.lane, tables);
        };
        unpack(&mut found);
        Some(found)
    }

    /// Returns where an escape starts that the end of the text would cut in two.
    pub(super) fn half_escape(&self, main: &Lane) -> Option<u64> {
        let at = main.bytes().len().checked_sub(self.open)?;
        (self.open > 0).then(|| main.place(at))
    }
}

/// Returns the place of an escape with its length.
pub(super) fn packed(main: &Lane, at: usize, length: usize) -> u64 {
    let first = main.place(at);
    let more = main.place(at + length - 1).saturating_sub(first);
    first << LENGTH_BITS | more.min(MOST_MORE)
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

/// Reads an escape. At the end nothing follows.
pub(super) fn reading(bytes: &[u8], is_end: bool) -> Reading {
    let bytes = bytes.get(..MAX_ESCAPE_BYTES).unwrap_or(bytes);
    let reading = match bytes.first() {
        Some(b'\\') => backslash(bytes, is_end),
        Some(b'%') => percent(bytes),
        _ => reference(bytes),
    };
    match reading {
        Reading::Open if is_end || bytes.len() == MAX_ESCAPE_BYTES => Reading::Plain,
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
    let rest = bytes.get(1..).unwrap_or_default();
    if !matches!(rest.first(), None | Some(b'#' | b'a' | b'l' | b'g' | b'q')) {
        return Reading::Plain;
    }
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'#';
    let Some(end) = rest.iter().position(|byte| !is_name(byte)) else {
        return Reading::Open;
    };
    let (name, after) = rest.split_at(end);
    if after.first() != Some(&b';') {
        return Reading::Plain;
    }
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
    number.map_or(Reading::Plain, |found| Reading::Char(found, end + 2))
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
        let cases: [(&str, Reading); 29] = [
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
            ("&a-b;", Reading::Plain),
            ("&x", Reading::Plain),
            ("&#+65;", Reading::Plain),
            ("&#65;&#66;", Reading::Char('A', 5)),
        ];
        for (text, expected) in cases {
            assert_eq!(reading(text.as_bytes(), false), expected, "{text}");
        }
        assert_eq!(reading(b"\\41", true), Reading::Byte(b'!', 3));
        assert_eq!(reading(b"\\x4", true), Reading::Quoted);
        assert_eq!(reading(b"&am", true), Reading::Plain);
        assert_eq!(reading(b"&#12345678901", false), Reading::Plain);
    }

    #[test]
    fn only_blanks_that_are_shown_part_an_escape() {
        let cases = [
            ("\\n", false),
            ("\\ n", true),
            ("\\\r\n\tn", true),
            ("\\\r\nn", false),
            ("\\\u{1b}[0 qn", false),
            ("\\\u{1b}]a b\u{7}n", false),
            ("\\\u{1b}[0 q n", true),
        ];
        for (text, expected) in cases {
            let known = Known {
                bytes: text.as_bytes(),
                base: 100,
            };
            let last = 100 + text.len() as u64 - 1;
            assert_eq!(known.has_blank_between(100, last), expected, "{text:?}");
            assert!(!known.has_blank_between(0, 1), "{text:?}");
        }
    }
}
