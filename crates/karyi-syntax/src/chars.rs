//! Character classes of XML.

use memchr::memmem;

use karyi_core::error::Code;

/// Tells whether two names are the same, upper or lower case.
pub(super) fn is_same_name(one: &[u8], other: &[u8]) -> bool {
    // Names are nearly always spelled as declared, and equality is faster.
    one == other || one.eq_ignore_ascii_case(other)
}

/// Tells whether `byte` is XML white space.
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// Counts the white space at the start of `bytes`.
pub(super) fn leading_space(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|b| is_space(**b)).count()
}

/// Tells whether `byte` may be part of a name; every byte above ASCII may.
pub(super) fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b':') || byte >= 0x80
}

/// Tells whether `byte` may start a name; every byte above ASCII may.
pub(super) fn is_name_start_byte(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'_' | b':') || byte >= 0x80
}

/// Tells whether `name` is a name as XML 1.0 defines it.
pub(super) fn is_name(name: &str) -> bool {
    let Some(first) = name.chars().next() else {
        return false;
    };
    is_name_start(first) && name.chars().all(|c| is_name_start(c) || is_name_more(c))
}

fn is_name_start(c: char) -> bool {
    matches!(c, ':' | '_' | 'A'..='Z' | 'a'..='z'
        | '\u{C0}'..='\u{D6}' | '\u{D8}'..='\u{F6}' | '\u{F8}'..='\u{2FF}'
        | '\u{370}'..='\u{37D}' | '\u{37F}'..='\u{1FFF}' | '\u{200C}'..='\u{200D}'
        | '\u{2070}'..='\u{218F}' | '\u{2C00}'..='\u{2FEF}' | '\u{3001}'..='\u{D7FF}'
        | '\u{F900}'..='\u{FDCF}' | '\u{FDF0}'..='\u{FFFD}' | '\u{10000}'..='\u{EFFFF}')
}

fn is_name_more(c: char) -> bool {
    matches!(c, '-' | '.' | '0'..='9' | '\u{B7}' | '\u{300}'..='\u{36F}' | '\u{203F}'..='\u{2040}')
}

/// Tells whether XML allows the character with this number.
pub(super) fn is_xml_char(number: u32) -> bool {
    match char::from_u32(number) {
        Some('\u{FFFE}' | '\u{FFFF}') | None => false,
        Some(c) => c >= ' ' || matches!(c, '\t' | '\n' | '\r'),
    }
}

/// The first byte that is illegal inside a block.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BadByte {
    /// Offset in the bytes.
    pub(super) at: usize,
    /// [`Code::Encoding`] or [`Code::IllegalChar`].
    pub(super) code: Code,
}

/// Checks a stretch that ends between two characters, and returns it as text.
pub(super) fn text(bytes: &[u8]) -> Result<&str, BadByte> {
    text_after(bytes, 0)
}

/// Does so with a stretch whose first `checked` bytes are known to be good.
pub(super) fn text_after(bytes: &[u8], checked: usize) -> Result<&str, BadByte> {
    let unchecked = bytes.get(checked..).unwrap_or_default();
    let bad = |at, code| BadByte {
        at: checked + at,
        code,
    };
    match std::str::from_utf8(bytes) {
        Ok(text) => match illegal(unchecked) {
            None => Ok(text),
            Some(at) => Err(bad(at, Code::IllegalChar)),
        },
        Err(error) => Err(match check_cut(unchecked) {
            Err(found) => bad(found.at, found.code),
            Ok(_) => BadByte {
                at: error.valid_up_to(),
                code: Code::Encoding,
            },
        }),
    }
}

/// Checks a stretch that ends between two characters.
pub(super) fn check(bytes: &[u8]) -> Result<(), BadByte> {
    match check_cut(bytes)? {
        checked if checked == bytes.len() => Ok(()),
        at => Err(BadByte {
            at,
            code: Code::Encoding,
        }),
    }
}

/// Checks a stretch that may end inside a character; returns how many bytes are known to be good.
pub(super) fn check_cut(bytes: &[u8]) -> Result<usize, BadByte> {
    if is_plain(bytes) {
        return Ok(bytes.len());
    }
    let (valid, is_broken) = match std::str::from_utf8(bytes) {
        Ok(_) => (bytes.len(), false),
        Err(error) => (error.valid_up_to(), error.error_len().is_some()),
    };
    if let Some(at) = illegal(bytes.get(..valid).unwrap_or_default()) {
        return Err(BadByte {
            at,
            code: Code::IllegalChar,
        });
    }
    if is_broken {
        return Err(BadByte {
            at: valid,
            code: Code::Encoding,
        });
    }
    Ok(valid)
}

/// Bytes checked together: without early exit among them the compiler uses vector instructions.
const STRETCH: usize = 256;
/// Bytes of one vector.
const VECTOR: usize = 16;

/// Tells whether all bytes are ASCII and legal in a block: the usual case, in one pass.
fn is_plain(bytes: &[u8]) -> bool {
    let (stretches, rest) = bytes.as_chunks::<STRETCH>();
    if stretches.iter().any(|stretch| has(stretch, is_special)) {
        return false;
    }
    let (vectors, rest) = rest.as_chunks::<VECTOR>();
    let is_clean = !vectors.iter().any(|vector| has(vector, is_special));
    // The rest is checked together with the bytes before it.
    is_clean
        && match bytes.last_chunk::<VECTOR>() {
            Some(last) => !has(last, is_special),
            None => !has(rest, is_special),
        }
}

/// Tells whether one of the bytes is of a kind.
fn has(bytes: &[u8], kind: impl Fn(u8) -> bool) -> bool {
    let found = bytes.iter().fold(0, |found, b| found | u8::from(kind(*b)));
    found != 0
}

/// Tells whether a byte is neither ASCII text nor a blank. Without branches, for the sake of vector
/// instructions: as a signed number every byte above ASCII is negative.
fn is_special(byte: u8) -> bool {
    (byte.cast_signed() < 0x20) & (byte != b'\t') & (byte != b'\n') & (byte != b'\r')
}

/// Tells whether a byte is a control character that XML does not allow.
fn is_control(byte: u8) -> bool {
    (byte < 0x20) & (byte != b'\t') & (byte != b'\n') & (byte != b'\r')
}

/// Finds the first character of valid UTF-8 that XML does not allow.
fn illegal(bytes: &[u8]) -> Option<usize> {
    if is_plain(bytes) {
        return None;
    }
    let control = control(bytes);
    let before = bytes.get(..control.unwrap_or(bytes.len()));
    let special = memmem::find_iter(before.unwrap_or_default(), b"\xEF\xBF")
        .find(|at| matches!(bytes.get(at + 2), Some(0xBE | 0xBF)));
    special.or(control)
}

/// Finds the first control character that XML does not allow.
fn control(bytes: &[u8]) -> Option<usize> {
    let is_clean = |stretch: &&[u8]| !has(stretch, is_control);
    let clean = bytes.chunks(STRETCH).take_while(is_clean).count() * STRETCH;
    let found = bytes.get(clean..)?.iter().position(|b| is_control(*b));
    found.map(|at| clean + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(bytes: &[u8], expected: Result<usize, (usize, Code)>) {
        let found = check_cut(bytes).map_err(|bad| (bad.at, bad.code));
        assert_eq!(found, expected, "{bytes:?}");
    }

    #[test]
    fn the_first_bad_byte_is_found() {
        row(b"a\tb\r\n\x7f", Ok(6));
        row("é\u{FFFD}\u{85}".as_bytes(), Ok(7));
        row(b"ab\x00\xff", Err((2, Code::IllegalChar)));
        row(b"ab\xff\x00", Err((2, Code::Encoding)));
        row("ab\u{FFFE}\u{1b}".as_bytes(), Err((2, Code::IllegalChar)));
        row("ab\u{1b}\u{FFFF}".as_bytes(), Err((2, Code::IllegalChar)));
        row(b"ab\xf0\x9f", Ok(2));
        row(b"\xed\xa0\xbd", Err((0, Code::Encoding)));
        let long = [vec![b'x'; 2000], vec![0x1b]].concat();
        row(&long, Err((2000, Code::IllegalChar)));
    }

    #[test]
    fn a_cut_character_is_an_error_at_the_end() {
        let bad = BadByte {
            at: 1,
            code: Code::Encoding,
        };
        assert_eq!(check(b"a\xe4\xb8"), Err(bad));
        assert_eq!(check("a中".as_bytes()), Ok(()));
    }

    #[test]
    fn names_follow_xml() {
        for good in ["a", "_a", "a-b.c", "k:v", "é", "中文"] {
            assert!(is_name(good), "{good}");
        }
        for bad in ["", "1a", "-a", ".a", "a b", "a/b", "“a”", "×"] {
            assert!(!is_name(bad), "{bad}");
        }
    }
}
