//! The smallest parts of JSON: escapes in strings, numbers and literals.

/// An escape in a string.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Escape {
    /// It is complete.
    Is {
        /// Its UTF-8 bytes; half a surrogate pair gives three bytes that no UTF-8 decoder accepts.
        bytes: [u8; 4],
        /// Number of used `bytes`.
        length: usize,
        /// Bytes of the escape.
        used: usize,
    },
    /// More bytes decide.
    Cut,
    /// There is no such escape.
    Bad,
}

/// Reads the escape whose backslash starts `rest`.
pub(super) fn escape(rest: &[u8], is_last: bool) -> Escape {
    let simple = match rest.get(1) {
        None => return Escape::Cut,
        Some(b'u') => return unicode(rest, is_last),
        Some(b'n') => b'\n',
        Some(b'r') => b'\r',
        Some(b't') => b'\t',
        Some(b'b') => 8,
        Some(b'f') => 12,
        Some(same @ (b'"' | b'\\' | b'/')) => *same,
        Some(_) => return Escape::Bad,
    };
    Escape::Is {
        bytes: [simple, 0, 0, 0],
        length: 1,
        used: 2,
    }
}

fn unicode(rest: &[u8], is_last: bool) -> Escape {
    let high = match unit(rest) {
        Unit::Cut => return Escape::Cut,
        Unit::No => return Escape::Bad,
        Unit::Is(unit) => unit,
    };
    if let 0xD800..=0xDBFF = high {
        match unit(rest.get(6..).unwrap_or_default()) {
            Unit::Cut if !is_last => return Escape::Cut,
            Unit::Is(low @ 0xDC00..=0xDFFF) => {
                let number = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
                return encoded(number, 12);
            }
            Unit::Cut | Unit::Is(_) | Unit::No => {}
        }
    }
    encoded(high, 6)
}

fn encoded(number: u32, used: usize) -> Escape {
    let mut bytes = [0; 4];
    let length = match char::from_u32(number) {
        Some(c) => c.encode_utf8(&mut bytes).len(),
        None => {
            let low = |shift: u32| u8::try_from((number >> shift) & 0x3F).unwrap_or(0) | 0x80;
            bytes = [0xED, low(6), low(0), 0];
            3
        }
    };
    Escape::Is {
        bytes,
        length,
        used,
    }
}

enum Unit {
    Is(u32),
    Cut,
    No,
}

/// Reads `\uHHHH`.
fn unit(rest: &[u8]) -> Unit {
    let is_start = b"\\u".starts_with(rest.get(..2).unwrap_or(rest));
    let digits = rest.get(2..rest.len().min(6)).unwrap_or_default();
    if !is_start || !digits.iter().all(u8::is_ascii_hexdigit) {
        return Unit::No;
    }
    if digits.len() < 4 {
        return Unit::Cut;
    }
    let digits = std::str::from_utf8(digits).unwrap_or_default();
    u32::from_str_radix(digits, 16).map_or(Unit::No, Unit::Is)
}

/// Finds the first control character, which is illegal in a string.
pub(super) fn control(run: &[u8]) -> Option<usize> {
    run.iter().position(|b| *b < b' ')
}

/// Tells whether `token` is a number or a literal.
pub(super) fn is_scalar(token: &[u8]) -> bool {
    matches!(token, b"true" | b"false" | b"null") || is_number(token)
}

fn is_number(token: &[u8]) -> bool {
    let token = token.strip_prefix(b"-").unwrap_or(token);
    let (whole, rest) = digits(token);
    let is_whole = !whole.is_empty() && (whole.len() == 1 || !whole.starts_with(b"0"));
    let (is_fraction, rest) = match rest.strip_prefix(b".") {
        None => (true, rest),
        Some(rest) => {
            let (fraction, rest) = digits(rest);
            (!fraction.is_empty(), rest)
        }
    };
    let is_exponent = match rest {
        [] => true,
        [b'e' | b'E', b'+' | b'-', rest @ ..] | [b'e' | b'E', rest @ ..] => {
            let (exponent, rest) = digits(rest);
            !exponent.is_empty() && rest.is_empty()
        }
        _ => false,
    };
    is_whole && is_fraction && is_exponent
}

fn digits(token: &[u8]) -> (&[u8], &[u8]) {
    token.split_at(token.iter().take_while(|b| b.is_ascii_digit()).count())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rest: &str, is_last: bool, expected: Option<(&[u8], usize)>) {
        let found = match escape(rest.as_bytes(), is_last) {
            Escape::Is {
                bytes,
                length,
                used,
            } => Some((bytes[..length].to_vec(), used)),
            Escape::Cut | Escape::Bad => None,
        };
        let expected = expected.map(|(bytes, used)| (bytes.to_vec(), used));
        assert_eq!(found, expected, "{rest}");
    }

    #[test]
    fn escapes_are_decoded() {
        check("\\nx", false, Some((b"\n", 2)));
        check("\\/", false, Some((b"/", 2)));
        check("\\u003cb", false, Some((b"<", 6)));
        check("\\ud83d\\ude00x", false, Some(("😀".as_bytes(), 12)));
        check("\\ud83d b", false, Some((b"\xed\xa0\xbd", 6)));
        check("\\ud83d\\n", false, Some((b"\xed\xa0\xbd", 6)));
        check("\\ud83d\\u0041", false, Some((b"\xed\xa0\xbd", 6)));
        check("\\ude00\\ude00", false, Some((b"\xed\xb8\x80", 6)));
    }

    #[test]
    fn incomplete_and_malformed_escapes_differ() {
        for rest in [
            "\\",
            "\\u",
            "\\u12",
            "\\ud83d",
            "\\ud83d\\",
            "\\ud83d\\ude0",
        ] {
            assert_eq!(escape(rest.as_bytes(), false), Escape::Cut, "{rest}");
        }
        for rest in ["\\q", "\\u12g", "\\u+123", "\\x41"] {
            assert_eq!(escape(rest.as_bytes(), false), Escape::Bad, "{rest}");
        }
        check("\\ud83d", true, Some((b"\xed\xa0\xbd", 6)));
    }

    #[test]
    fn scalars_follow_json() {
        for good in ["true", "null", "0", "-1", "1.5", "10e3", "2E-10", "-0.0e+1"] {
            assert!(is_scalar(good.as_bytes()), "{good}");
        }
        for bad in [
            "", "-", "01", "1.", ".5", "1e", "True", "nul", "1x", "+1", "NaN",
        ] {
            assert!(!is_scalar(bad.as_bytes()), "{bad}");
        }
    }
}
