//! Parses the escapes of shells, languages, URLs and XML.

use zeroize::Zeroizing;

use karyi_core::limits::MAX_ESCAPE_BYTES;

/// Result of parsing a possible escape.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ParsedEscape {
    /// More bytes are needed.
    Open,
    /// No escape.
    Plain,
    /// A quoted character: the first byte is dropped.
    Quoted,
    /// A character, written in so many bytes.
    Char(char, usize),
    /// A byte, written in so many bytes.
    Byte(u8, usize),
}

/// Decodes the escapes that begin with `sign`; `None` when there are none or the result is not text.
pub(super) fn unescape(text: &str, sign: u8) -> Option<Zeroizing<String>> {
    let bytes = text.as_bytes();
    memchr::memchr(sign, bytes)?;
    let mut plain = Zeroizing::new(Vec::with_capacity(bytes.len()));
    let mut at = 0;
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        let read = match rest.first() {
            Some(first) if *first == sign => parse_escape(rest, true),
            _ => ParsedEscape::Plain,
        };
        at += match read {
            ParsedEscape::Byte(byte, length) => {
                plain.push(byte);
                length
            }
            ParsedEscape::Char(character, length) => {
                plain.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                length
            }
            ParsedEscape::Quoted => 1,
            ParsedEscape::Plain | ParsedEscape::Open => {
                plain.extend(rest.first());
                1
            }
        };
    }
    let plain = String::from_utf8(std::mem::take(&mut *plain)).ok()?;
    (plain != text).then(|| Zeroizing::new(plain))
}

/// Parses an escape; at the end of the text nothing follows.
#[inline]
pub(super) fn parse_escape(bytes: &[u8], is_end: bool) -> ParsedEscape {
    match bytes {
        // Fast path: some texts consist of these.
        [b'\\', next, ..] => short(*next).unwrap_or_else(|| long(bytes, is_end)),
        [b'%', high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
            ParsedEscape::Byte((value(*high) << 4 | value(*low)) as u8, 3)
        }
        _ => long(bytes, is_end),
    }
}

/// Parses a backslash and one more byte.
#[inline]
fn short(next: u8) -> Option<ParsedEscape> {
    match next {
        b'a' | b'b' | b'e' | b'f' | b'n' | b'r' | b't' | b'v' => Some(ParsedEscape::Byte(b'\n', 2)),
        // An escaped backslash.
        b'\\' => Some(ParsedEscape::Byte(b'\\', 2)),
        b'u' | b'U' | b'x' | b'0'..=b'7' => None,
        _ => Some(ParsedEscape::Quoted),
    }
}

fn long(bytes: &[u8], is_end: bool) -> ParsedEscape {
    let bytes = bytes.get(..MAX_ESCAPE_BYTES).unwrap_or(bytes);
    let reading = match bytes {
        [b'\\', ..] => backslash(bytes, is_end),
        [b'%', ..] => percent(bytes),
        // `&nbsp` is frequent in pages, and no known name begins like it.
        [_, b'n', b'b', b's', b'p', ..] => ParsedEscape::Plain,
        _ => reference(bytes),
    };
    match reading {
        ParsedEscape::Open if is_end || bytes.len() == MAX_ESCAPE_BYTES => ParsedEscape::Plain,
        reading => reading,
    }
}

fn backslash(bytes: &[u8], is_end: bool) -> ParsedEscape {
    let Some(next) = bytes.get(1) else {
        return ParsedEscape::Open;
    };
    let number = match next {
        b'u' | b'x' if bytes.get(2) == Some(&b'{') => braced(bytes),
        b'x' => number(bytes, 2, 2).map(|byte| ParsedEscape::Byte(byte as u8, 4)),
        b'u' => unit(bytes),
        b'U' => number(bytes, 2, 8).map(|code| character(code, 10)),
        b'0'..=b'7' => return octal(bytes, is_end),
        _ => Err(false),
    };
    number.unwrap_or_else(|is_open| match is_open {
        true if !is_end => ParsedEscape::Open,
        _ => ParsedEscape::Quoted,
    })
}

fn percent(bytes: &[u8]) -> ParsedEscape {
    let read = match bytes.get(1) {
        None => return ParsedEscape::Open,
        Some(b'u') => unit(bytes),
        Some(_) => number(bytes, 1, 2).map(|byte| ParsedEscape::Byte(byte as u8, 3)),
    };
    read.unwrap_or_else(|is_open| {
        if is_open {
            ParsedEscape::Open
        } else {
            ParsedEscape::Plain
        }
    })
}

/// Parses a fixed number of digits; the error is true when more bytes are needed.
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

fn character(code: u32, length: usize) -> ParsedEscape {
    char::from_u32(code).map_or(ParsedEscape::Plain, |code| ParsedEscape::Char(code, length))
}

/// Parses four digits after a sign and `u`, and a second unit of a UTF-16 surrogate pair.
fn unit(bytes: &[u8]) -> Result<ParsedEscape, bool> {
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
            Ok(ParsedEscape::Plain)
        };
    }
    match number(bytes, 8, 4) {
        Ok(low) if (0xDC00..0xE000).contains(&low) => {
            let code = 0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00);
            Ok(character(code, 12))
        }
        Err(true) => Err(true),
        Ok(_) | Err(false) => Ok(ParsedEscape::Plain),
    }
}

/// Parses `\u{...}`, and `\x{...}` of Perl.
fn braced(bytes: &[u8]) -> Result<ParsedEscape, bool> {
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

/// Parses one to three octal digits, or four after a zero when they are a byte.
fn octal(bytes: &[u8], is_end: bool) -> ParsedEscape {
    let digits = bytes.get(1..).unwrap_or_default();
    let most = if digits.first() == Some(&b'0') { 4 } else { 3 };
    let count = digits.iter().take(most);
    let count = count
        .take_while(|digit| matches!(digit, b'0'..=b'7'))
        .count();
    if count == digits.len() && count < most && !is_end {
        return ParsedEscape::Open;
    }
    let number = |count: usize| {
        let digits = digits.iter().take(count);
        digits.fold(0_u32, |number, digit| number << 3 | u32::from(digit - b'0'))
    };
    let longest = (1..=count).rev().find(|count| number(*count) <= 0xFF);
    let count = longest.unwrap_or(1);
    ParsedEscape::Byte(number(count) as u8, count + 1)
}

/// Parses a reference such as `&amp;` or `&#38;`.
fn reference(bytes: &[u8]) -> ParsedEscape {
    let rest = bytes.get(1..).unwrap_or_default();
    if !matches!(rest.first(), None | Some(b'#' | b'a'..=b'z' | b'A'..=b'Z')) {
        return ParsedEscape::Plain;
    }
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'#';
    let Some(end) = rest.iter().position(|byte| !is_name(byte)) else {
        return ParsedEscape::Open;
    };
    let (name, after) = rest.split_at(end);
    if after.first() != Some(&b';') {
        return ParsedEscape::Plain;
    }
    let number = match name {
        [b'#', b'x' | b'X', digits @ ..] => digits_of(digits, 16),
        [b'#', digits @ ..] => digits_of(digits, 10),
        name => named(name),
    };
    number.map_or(ParsedEscape::Plain, |found| {
        ParsedEscape::Char(found, end + 2)
    })
}

fn digits_of(digits: &[u8], base: u32) -> Option<char> {
    let text = std::str::from_utf8(digits).ok()?;
    char::from_u32(u32::from_str_radix(text, base).ok()?)
}

/// Returns the character of a named reference. Only names of ASCII characters are known: encoders write no others.
fn named(name: &[u8]) -> Option<char> {
    /// Names, each followed by its character; those that every encoder writes come first.
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
        let cases: [(&str, ParsedEscape); 42] = [
            ("\\", ParsedEscape::Open),
            ("\\*", ParsedEscape::Quoted),
            ("\\n", ParsedEscape::Byte(b'\n', 2)),
            ("\\\\", ParsedEscape::Byte(b'\\', 2)),
            ("\\x4", ParsedEscape::Open),
            ("\\x41", ParsedEscape::Byte(b'A', 4)),
            ("\\xg", ParsedEscape::Quoted),
            ("\\u00e", ParsedEscape::Open),
            ("\\u00e9", ParsedEscape::Char('é', 6)),
            ("\\u{e9}", ParsedEscape::Char('é', 6)),
            ("\\u{e9", ParsedEscape::Open),
            ("\\x{6f22}", ParsedEscape::Char('\u{6f22}', 8)),
            ("\\x{4", ParsedEscape::Open),
            ("\\x{4-", ParsedEscape::Quoted),
            ("\\ud83d", ParsedEscape::Open),
            ("\\ud83dx", ParsedEscape::Plain),
            ("\\ud83d\\", ParsedEscape::Open),
            ("\\ud83d\\n", ParsedEscape::Plain),
            ("\\ud83d\\udd1", ParsedEscape::Open),
            ("\\ud83d\\udd11", ParsedEscape::Char('\u{1F511}', 12)),
            ("\\ud83d\\u0041", ParsedEscape::Plain),
            ("%uD83D%uDD11", ParsedEscape::Char('\u{1F511}', 12)),
            ("\\U0001F600", ParsedEscape::Char('\u{1F600}', 10)),
            ("\\10", ParsedEscape::Open),
            ("\\101", ParsedEscape::Byte(b'A', 4)),
            ("\\0101", ParsedEscape::Byte(b'A', 5)),
            ("\\0411", ParsedEscape::Byte(b'!', 4)),
            ("\\418", ParsedEscape::Byte(b'!', 3)),
            ("%4", ParsedEscape::Open),
            ("%4a", ParsedEscape::Byte(b'J', 3)),
            ("%4g", ParsedEscape::Plain),
            ("%u0041", ParsedEscape::Char('A', 6)),
            ("&am", ParsedEscape::Open),
            ("&amp;", ParsedEscape::Char('&', 5)),
            ("&#x2F;", ParsedEscape::Char('/', 6)),
            ("&a-b;", ParsedEscape::Plain),
            ("&hyphen;", ParsedEscape::Char('-', 8)),
            ("&eacute;", ParsedEscape::Plain),
            ("&x", ParsedEscape::Open),
            ("&x=1", ParsedEscape::Plain),
            ("&#+65;", ParsedEscape::Plain),
            ("&#65;&#66;", ParsedEscape::Char('A', 5)),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_escape(text.as_bytes(), false), expected, "{text}");
        }
        assert_eq!(parse_escape(b"\\41", true), ParsedEscape::Byte(b'!', 3));
        assert_eq!(parse_escape(b"\\x4", true), ParsedEscape::Quoted);
        assert_eq!(parse_escape(b"&am", true), ParsedEscape::Plain);
        assert_eq!(parse_escape(b"&#12345678901", false), ParsedEscape::Plain);
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
            let plain = unescape(text, sign);
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
