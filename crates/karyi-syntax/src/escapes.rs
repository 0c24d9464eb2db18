//! Backslash escapes of `<input>`: text to the bytes a terminal gets.

/// An escape without its code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadEscape {
    /// Byte offset of its backslash in the text.
    pub offset: usize,
    /// Expected form.
    pub message: &'static str,
}

/// Turns `\n \r \t \e \0 \\ \xHH \u{H..}` into the bytes they denote.
///
/// A backslash before any other character stays as written. `\xHH` is one byte, `\u{H..}` one
/// character in UTF-8.
///
/// # Errors
/// Returns the first `\x` or `\u` that is not followed by its code.
pub fn unescape(text: &str) -> Result<Vec<u8>, BadEscape> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        let (plain, escape) = rest.split_at(at);
        bytes.extend_from_slice(plain.as_bytes());
        let used = push_escape(escape, &mut bytes).map_err(|message| BadEscape {
            offset: text.len() - escape.len(),
            message,
        })?;
        rest = escape.get(used..).unwrap_or_default();
    }
    bytes.extend_from_slice(rest.as_bytes());
    Ok(bytes)
}

/// Decodes the escape that `text` starts with; returns how many bytes of it were used.
fn push_escape(text: &str, bytes: &mut Vec<u8>) -> Result<usize, &'static str> {
    let simple = match text.as_bytes().get(1) {
        Some(b'n') => b'\n',
        Some(b'r') => b'\r',
        Some(b't') => b'\t',
        Some(b'e') => 0x1B,
        Some(b'0') => 0,
        Some(b'\\') => b'\\',
        Some(b'x') => return push_byte(text, bytes),
        Some(b'u') => return push_char(text, bytes),
        Some(_) | None => {
            bytes.push(b'\\');
            return Ok(1);
        }
    };
    bytes.push(simple);
    Ok(2)
}

fn push_byte(text: &str, bytes: &mut Vec<u8>) -> Result<usize, &'static str> {
    let digits = text.get(2..4).filter(|d| is_hex(d));
    let value = digits.and_then(|d| u8::from_str_radix(d, 16).ok());
    bytes.push(value.ok_or("`\\x` needs two hexadecimal digits")?);
    Ok(4)
}

fn push_char(text: &str, bytes: &mut Vec<u8>) -> Result<usize, &'static str> {
    let problem = "`\\u` needs a character's number in braces, as in `\\u{1F600}`";
    let inside = text
        .get(2..)
        .and_then(|t| t.strip_prefix('{'))
        .ok_or(problem)?;
    // Six digits are enough for every character; a longer look would read the whole text.
    let close = inside
        .bytes()
        .take(7)
        .position(|b| b == b'}')
        .ok_or(problem)?;
    let digits = inside.get(..close).filter(|d| is_hex(d)).ok_or(problem)?;
    let number = u32::from_str_radix(digits, 16).ok();
    let c = number.and_then(char::from_u32).ok_or(problem)?;
    bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    Ok(close + 4)
}

fn is_hex(digits: &str) -> bool {
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<&[u8], usize>) {
        let found = unescape(text).map_err(|bad| bad.offset);
        assert_eq!(found.as_deref(), expected.as_ref().map(|b| *b), "{text:?}");
    }

    #[test]
    fn known_escapes_become_bytes() {
        check("y\\n", Ok(b"y\n"));
        check("\\r\\t\\e\\0\\\\", Ok(b"\r\t\x1b\0\\"));
        check("\\x1b[A\\xFF", Ok(b"\x1b[A\xff"));
        check("\\u{1F600}\\u{e9}", Ok("😀é".as_bytes()));
        check("\\\\n", Ok(b"\\n"));
    }

    #[test]
    fn unknown_escapes_stay() {
        check("a\\d\\", Ok(b"a\\d\\"));
        check("\\é\\N", Ok("\\é\\N".as_bytes()));
    }

    #[test]
    fn broken_codes_are_errors() {
        check("ab\\x1", Err(2));
        check("\\xg0", Err(0));
        check("\\x+1", Err(0));
        check("\\xé", Err(0));
        check("a\\u{}", Err(1));
        check("a\\u41", Err(1));
        check("a\\u{41", Err(1));
        check("a\\u{d800}", Err(1));
        check("a\\u{0000041}", Err(1));
        check("é\\u{110000}", Err(2));
    }
}
