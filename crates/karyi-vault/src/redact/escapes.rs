//! The escapes of shells, languages, URLs and XML: what stands for which character.

use zeroize::Zeroizing;

use karyi_core::limits::MAX_ESCAPE_BYTES;

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

/// Returns a text without the escapes that begin with a sign; nothing when there are none, or it is no text then.
pub(super) fn decoded(text: &str, sign: u8) -> Option<Zeroizing<String>> {
    let bytes = text.as_bytes();
    memchr::memchr(sign, bytes)?;
    let mut plain = Zeroizing::new(Vec::with_capacity(bytes.len()));
    let mut at = 0;
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        let read = match rest.first() {
            Some(first) if *first == sign => reading(rest, true),
            _ => Reading::Plain,
        };
        at += match read {
            Reading::Byte(byte, length) => {
                plain.push(byte);
                length
            }
            Reading::Char(character, length) => {
                plain.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                length
            }
            Reading::Quoted => 1,
            Reading::Plain | Reading::Open => {
                plain.extend(rest.first());
                1
            }
        };
    }
    let plain = String::from_utf8(std::mem::take(&mut *plain)).ok()?;
    (plain != text).then(|| Zeroizing::new(plain))
}

/// Reads an escape. At the end nothing follows.
#[inline]
pub(super) fn reading(bytes: &[u8], is_end: bool) -> Reading {
    match bytes {
        // Whole texts consist of these.
        [b'\\', next, ..] => short(*next).unwrap_or_else(|| long(bytes, is_end)),
        [b'%', high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
            Reading::Byte((value(*high) << 4 | value(*low)) as u8, 3)
        }
        _ => long(bytes, is_end),
    }
}

/// Reads an escape of a backslash and one more byte.
#[inline]
fn short(next: u8) -> Option<Reading> {
    match next {
        b'a' | b'b' | b'e' | b'f' | b'n' | b'r' | b't' | b'v' => Some(Reading::Byte(b'\n', 2)),
        // A backslash stands for itself where another one stands before it.
        b'\\' => Some(Reading::Byte(b'\\', 2)),
        b'u' | b'U' | b'x' | b'0'..=b'7' => None,
        _ => Some(Reading::Quoted),
    }
}

fn long(bytes: &[u8], is_end: bool) -> Reading {
    let bytes = bytes.get(..MAX_ESCAPE_BYTES).unwrap_or(bytes);
    let reading = match bytes {
        [b'\\', ..] => backslash(bytes, is_end),
        [b'%', ..] => percent(bytes),
        // Pages are full of it, and it begins as no name does that is known.
        [_, b'n', b'b', b's', b'p', ..] => Reading::Plain,
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
        b'u' | b'x' if bytes.get(2) == Some(&b'{') => braced(bytes),
        b'x' => number(bytes, 2, 2).map(|byte| Reading::Byte(byte as u8, 4)),
        b'u' => unit(bytes),
        b'U' => number(bytes, 2, 8).map(|code| character(code, 10)),
        b'0'..=b'7' => return octal(bytes, is_end),
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
        Some(b'u') => unit(bytes),
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

/// Four digits behind a sign and `u`, and the same once more where UTF-16 takes two for a character.
fn unit(bytes: &[u8]) -> Result<Reading, bool> {
    let high = number(bytes, 2, 4)?;
    if !(0xD800..0xDC00).contains(&high) {
        return Ok(character(high, 6));
    }
    let sign = bytes.get(..2).unwrap_or_default();
    let next = bytes.get(6..bytes.len().min(8)).unwrap_or_default();
    if next != sign {
        let is_open = next.len() < sign.len() && sign.starts_with(next);
        return if is_open {
            Err(true)
        } else {
            Ok(Reading::Plain)
        };
    }
    match number(bytes, 8, 4) {
        Ok(low) if (0xDC00..0xE000).contains(&low) => {
            let code = 0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00);
            Ok(character(code, 12))
        }
        Err(true) => Err(true),
        Ok(_) | Err(false) => Ok(Reading::Plain),
    }
}

/// `\u{...}`, and `\x{...}` as Perl writes it.
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
    if !matches!(rest.first(), None | Some(b'#' | b'a'..=b'z' | b'A'..=b'Z')) {
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
        name => named(name),
    };
    number.map_or(Reading::Plain, |found| Reading::Char(found, end + 2))
}

fn digits_of(digits: &[u8], base: u32) -> Option<char> {
    let text = std::str::from_utf8(digits).ok()?;
    char::from_u32(u32::from_str_radix(text, base).ok()?)
}

/// Returns the character that a name stands for. Only names of ASCII are known: encoders write no others.
fn named(name: &[u8]) -> Option<char> {
    /// Each name with its character behind it, the ones that every encoder writes first.
    const NAMES: &str = "amp& lt< gt> quot\" apos' sol/ equals= plus+ hyphen- dash- colon: comma, period. semi; excl! \
        num# dollar$ percnt% lpar( rpar) ast* midast* quest? commat@ lsqb[ lbrack[ bsol\\ rsqb] rbrack] Hat^ lowbar_ \
        UnderBar_ grave` lcub{ lbrace{ verbar| vert| rcub} rbrace} minus- AMP& LT< GT> QUOT\"";
    let mut names = NAMES.split(' ').map(str::as_bytes);
    names.find_map(|entry| match entry.strip_prefix(name)? {
        [character] => Some(char::from(*character)),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_read() {
        let cases: [(&str, Reading); 42] = [
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
            ("\\x{6f22}", Reading::Char('\u{6f22}', 8)),
            ("\\x{4", Reading::Open),
            ("\\x{4-", Reading::Quoted),
            ("\\ud83d", Reading::Open),
            ("\\ud83dx", Reading::Plain),
            ("\\ud83d\\", Reading::Open),
            ("\\ud83d\\n", Reading::Plain),
            ("\\ud83d\\udd1", Reading::Open),
            ("\\ud83d\\udd11", Reading::Char('\u{1F511}', 12)),
            ("\\ud83d\\u0041", Reading::Plain),
            ("%uD83D%uDD11", Reading::Char('\u{1F511}', 12)),
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
            ("&hyphen;", Reading::Char('-', 8)),
            ("&eacute;", Reading::Plain),
            ("&x", Reading::Open),
            ("&x=1", Reading::Plain),
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
    fn every_name_stands_for_its_character() {
        for (name, expected) in [
            ("amp", Some('&')),
            ("AMP", Some('&')),
            ("quot", Some('"')),
            ("bsol", Some('\\')),
            ("vert", Some('|')),
            ("QUOT", Some('"')),
            ("am", None),
            ("Amp", None),
            ("nbsp", None),
            ("", None),
        ] {
            assert_eq!(named(name.as_bytes()), expected, "{name}");
        }
    }

    #[test]
    fn a_value_is_read_without_its_escapes() {
        let check = |text: &str, sign: u8, expected: Option<&str>| {
            let plain = decoded(text, sign);
            assert_eq!(plain.as_deref().map(String::as_str), expected, "{text}");
        };
        check("a%40b%zz%", b'%', Some("a@b%zz%"));
        check("plain", b'%', None);
        check("100%", b'%', None);
        check("%ff", b'%', None);
        check("k\\nl\\\"\\u00e9\\", b'\\', Some("k\nl\"é\\"));
        check("a&lt;b&&", b'&', Some("a<b&&"));
    }
}
