//! JSON that a server sent.
//!
//! Half of a surrogate pair is replaced by U+FFFD: a server that ends a piece inside of a character writes one half,
//! and the next piece starts with the other one.

use serde_json::Value;

/// Parses JSON.
///
/// # Errors
/// The text is something else.
pub(crate) fn parse(text: &str) -> serde_json::Result<Value> {
    serde_json::from_str(text).or_else(|error| match without_halves(text) {
        Some(whole) => serde_json::from_str(&whole),
        None => Err(error),
    })
}

/// Parses JSON in bytes; invalid UTF-8 is replaced.
///
/// # Errors
/// The bytes are something else.
pub(crate) fn parse_bytes(bytes: &[u8]) -> serde_json::Result<Value> {
    parse(&String::from_utf8_lossy(bytes))
}

/// Bytes of an escape such as `\u20ac`.
const ESCAPE: usize = 6;

/// Returns the text with each half of a pair replaced; nothing if it has none.
fn without_halves(text: &str) -> Option<String> {
    let (mut rest, mut whole, mut has_halves) = (text, String::with_capacity(text.len()), false);
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        whole.push_str(before);
        let (kept, length) = match (unit(escape), escape.get(ESCAPE..).and_then(unit)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => (None, 2 * ESCAPE),
            (Some(0xd800..=0xdfff), _) => (Some("\\ufffd"), ESCAPE),
            // The character behind the backslash may be another backslash.
            _ => (None, escape.chars().take(2).map(char::len_utf8).sum()),
        };
        let (own, after) = escape.split_at(length);
        has_halves |= kept.is_some();
        whole.push_str(kept.unwrap_or(own));
        rest = after;
    }
    whole.push_str(rest);
    has_halves.then_some(whole)
}

/// Returns the UTF-16 unit of an escape at the start of a text.
fn unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..ESCAPE - 2)?;
    let is_number = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_number.then(|| u16::from_str_radix(digits, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<&str>) {
        let found = parse(&format!("[\"{text}\"]")).ok();
        let found = found.map(|value| value[0].as_str().unwrap_or_default().to_owned());
        assert_eq!(found.as_deref(), expected, "{text}");
    }

    #[test]
    fn half_of_a_pair_is_replaced() {
        check(r"a\ud83d", Some("a\u{fffd}"));
        check(r"\ude00b", Some("\u{fffd}b"));
        check(r"\uD83D\uDE00", Some("\u{1f600}"));
        check(
            r"\ud83d\ud83d\ude00\ude00",
            Some("\u{fffd}\u{1f600}\u{fffd}"),
        );
        check(
            r"\ud83d\u20ac\n\ud83dx",
            Some("\u{fffd}\u{20ac}\n\u{fffd}x"),
        );
        check(r"\\ud83d \ud83d\\", Some("\\ud83d \u{fffd}\\"));
        check("\\ud83d\u{20ac}\\\"", Some("\u{fffd}\u{20ac}\""));
    }

    #[test]
    fn other_mistakes_stay() {
        for text in [
            r"\ud83d\u",
            r"\ud83d\u+123",
            r"\ud83d\x",
            r"\ud83",
            "\\ud83d\\\u{20ac}",
        ] {
            check(text, None);
        }
        assert!(parse("\\").is_err() && parse("\\ud83d").is_err());
        assert_eq!(parse_bytes(b"\"\xff\\ud83d\"").unwrap(), "\u{fffd}\u{fffd}");
    }
}
