//! Iterates over the characters of a text with their positions, with escapes decoded.

use std::ops::Range;

/// Treatment of escapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EscapeMode {
    /// Every character stands for itself.
    Literal,
    /// Decodes `&lt;`, `&#xE9;`, `\u00e9` and the like.
    Escapes,
}

/// Character, or an escape that stands for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unit {
    /// Range in the text.
    pub(crate) range: Range<usize>,
    /// Decoded character.
    pub(crate) character: char,
}

/// Longest XML reference: `&#x10FFFF;`.
const MOST_REFERENCE_BYTES: usize = 10;
/// High and low surrogates of UTF-16.
const FIRST_HALVES: Range<u32> = 0xD800..0xDC00;
const SECOND_HALVES: Range<u32> = 0xDC00..0xE000;

/// Returns the characters of a text.
pub(crate) fn units(text: &str, mode: EscapeMode) -> impl Iterator<Item = Unit> + Clone + '_ {
    let mut chars = text.chars();
    let next = move || {
        let rest = chars.as_str();
        let first = chars.next()?;
        let escaped = match (mode, first) {
            (EscapeMode::Escapes, '&') => reference(rest),
            (EscapeMode::Escapes, '\\') => escape(rest),
            (EscapeMode::Escapes | EscapeMode::Literal, _) => None,
        };
        let (character, length) = escaped.unwrap_or((first, first.len_utf8()));
        if escaped.is_some() {
            chars = rest.get(length..)?.chars();
        }
        let start = text.len() - rest.len();
        let range = start..start + length;
        Some(Unit { range, character })
    };
    std::iter::from_fn(next)
}

/// Decodes an XML reference at the start of a text; returns the character and the length of the reference.
fn reference(text: &str) -> Option<(char, usize)> {
    let bytes = text.as_bytes();
    let head = bytes.get(..bytes.len().min(MOST_REFERENCE_BYTES))?;
    let end = memchr::memchr(b';', head)?;
    let name = text.get(1..end)?;
    let character = match name {
        "lt" => '<',
        "gt" => '>',
        "amp" => '&',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => '\u{A0}',
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(digits) => u32::from_str_radix(digits, 16),
                None => number.parse(),
            };
            // `parse` would accept a sign.
            let is_plain = number.bytes().all(|byte| byte.is_ascii_alphanumeric());
            char::from_u32(code.ok().filter(|_| is_plain)?)?
        }
    };
    Some((character, end + 1))
}

/// Decodes an escape of JSON, C or Rust at the start of a text; returns the character and the length of the
/// escape.
fn escape(text: &str) -> Option<(char, usize)> {
    let simple = |character| Some((character, 2));
    match text.as_bytes().get(1)? {
        b'n' => simple('\n'),
        b'r' => simple('\r'),
        b't' => simple('\t'),
        byte @ (b'"' | b'\'' | b'\\' | b'/' | b'`') => simple(char::from(*byte)),
        b'x' => Some((char::from_u32(hexadecimal(text.get(2..4)?)?)?, 4)),
        b'u' => match text.get(2..)?.strip_prefix('{') {
            Some(rest) => {
                let digits = rest.get(..rest.find('}').filter(|end| *end <= 6)?)?;
                Some((char::from_u32(hexadecimal(digits)?)?, digits.len() + 4))
            }
            None => four_digits(text),
        },
        _ => None,
    }
}

/// Decodes `\uXXXX` or a surrogate pair.
fn four_digits(text: &str) -> Option<(char, usize)> {
    let code = hexadecimal(text.get(2..6)?)?;
    if !FIRST_HALVES.contains(&code) {
        return Some((char::from_u32(code)?, 6));
    }
    let second = text.get(6..12)?.strip_prefix("\\u")?;
    let second = hexadecimal(second).filter(|code| SECOND_HALVES.contains(code))?;
    let (high, low) = (code - FIRST_HALVES.start, second - SECOND_HALVES.start);
    Some((char::from_u32(0x10000 + (high << 10) + low)?, 12))
}

fn hexadecimal(digits: &str) -> Option<u32> {
    let is_number = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_number.then(|| u32::from_str_radix(digits, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_decoded() {
        for (text, expected) in [
            ("&lt;&gt;&amp;&quot;&apos;", "<>&\"'"),
            ("&#233;&#xe9;&#X1F600;", "\u{E9}\u{E9}\u{1F600}"),
            (
                r"\u00e9\u{E9}\xe9\ud83d\ude00",
                "\u{E9}\u{E9}\u{E9}\u{1F600}",
            ),
            (r#"\"\'\\\/\n\t\r"#, "\"'\\/\n\t\r"),
            (
                "&; &lt &unknown; &#xD800; &#; &#+1; &\u{E9};",
                "&; &lt &unknown; &#xD800; &#; &#+1; &\u{E9};",
            ),
            (
                r"\u12 \u{} \ud83d \ud83d\u0041 \xg1 \q \",
                r"\u12 \u{} \ud83d \ud83dA \xg1 \q \",
            ),
            ("&amp;lt;", "&lt;"),
            ("a\u{E9}\u{1F600}", "a\u{E9}\u{1F600}"),
        ] {
            let found: String = units(text, EscapeMode::Escapes)
                .map(|unit| unit.character)
                .collect();
            assert_eq!(found, expected, "{text}");
            for mode in [EscapeMode::Literal, EscapeMode::Escapes] {
                let pieces: String = units(text, mode).map(|unit| &text[unit.range]).collect();
                assert_eq!(pieces, text);
            }
            let letters: String = units(text, EscapeMode::Literal)
                .map(|unit| unit.character)
                .collect();
            assert_eq!(letters, text);
        }
    }
}
