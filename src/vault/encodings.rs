//! The forms in which a value may turn up in output.
//!
//! Programs print values encoded: a header in base64, a dump in hex, a URL percent-encoded, a trace
//! quoted for the shell. Each form becomes a needle for [`super::redact`]. Transformations that
//! are no encoding (reversal, hashes, compression) are out of reach of needles.

use std::collections::HashSet;
use std::fmt::Write;

use crate::limits;

/// How a needle relates to the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Form {
    /// The value, or the value with CRLF line ends.
    Exact,
    /// A line of it, or all of it but its last line break.
    Part,
    /// JSON string escapes.
    Json,
    /// XML references.
    Xml,
    /// Shell quoting.
    Shell,
    /// Percent-encoding.
    Percent,
    /// Base64 of any text that contains it.
    Base64,
    /// Hexadecimal digits.
    Hex,
}

impl Form {
    /// Returns the word of the marker.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Exact | Self::Part => "part",
            Self::Json => "json",
            Self::Xml => "xml",
            Self::Shell => "shell",
            Self::Percent => "percent",
            Self::Base64 => "base64",
            Self::Hex => "hex",
        }
    }
}

/// Shows every form of a value once, the plainest first.
pub(super) fn for_each_form(value: &str, mut show: impl FnMut(Form, &[u8])) {
    let mut seen: HashSet<Vec<u8>> = HashSet::new();
    let mut add = |form: Form, needle: Vec<u8>| {
        if needle.len() >= limits::MIN_SECRET_BYTES && !seen.contains(&needle) {
            show(form, &needle);
            seen.insert(needle);
        }
    };
    add(Form::Exact, value.into());
    add(Form::Exact, value.replace('\n', "\r\n").into_bytes());
    for part in parts(value) {
        add(Form::Part, part.into());
    }
    for text in json_forms(value) {
        add(Form::Json, text.into_bytes());
    }
    for shift in 0..3 {
        add(Form::Base64, base64_core(value.as_bytes(), shift, b"+/"));
        add(Form::Base64, base64_core(value.as_bytes(), shift, b"-_"));
    }
    if value.len() > limits::MAX_ENCODED_SECRET_BYTES {
        return;
    }
    add(Form::Xml, xml(value, "&apos;").into_bytes());
    add(Form::Xml, xml(value, "&#39;").into_bytes());
    add(Form::Xml, xml(value, "&#x27;").into_bytes());
    for text in shell_forms(value) {
        add(Form::Shell, text.into_bytes());
    }
    for kept in ["-_.~", "-_.~/", "-_.~!*'()"] {
        add(
            Form::Percent,
            percent(value, kept, "%20", hex_upper).into_bytes(),
        );
        add(
            Form::Percent,
            percent(value, kept, "%20", hex_lower).into_bytes(),
        );
        add(
            Form::Percent,
            percent(value, kept, "+", hex_upper).into_bytes(),
        );
    }
    add(
        Form::Hex,
        value
            .bytes()
            .map(hex_lower)
            .collect::<String>()
            .into_bytes(),
    );
    add(
        Form::Hex,
        value
            .bytes()
            .map(hex_upper)
            .collect::<String>()
            .into_bytes(),
    );
}

/// Returns the stretches of a multi-line value that are masked on their own.
fn parts(value: &str) -> impl Iterator<Item = &str> {
    let trimmed = value.trim_end_matches(['\n', '\r']);
    let whole = (trimmed.len() < value.len()).then_some(trimmed);
    let lines = trimmed.lines().filter(|line| {
        // The frame of a PEM file is no secret.
        line.len() >= limits::MIN_SECRET_LINE_BYTES && !line.starts_with("-----")
    });
    whole
        .into_iter()
        .chain(lines.filter(move |_| trimmed.contains('\n')))
}

fn json_forms(value: &str) -> [String; 4] {
    let plain = serde_json::Value::from(value).to_string();
    let plain = plain
        .get(1..plain.len().saturating_sub(1))
        .unwrap_or("")
        .to_owned();
    let slashes = plain.replace('/', "\\/");
    let mut ascii = String::new();
    for character in plain.chars() {
        if character.is_ascii() {
            ascii.push(character);
        } else {
            for unit in character.encode_utf16(&mut [0; 2]) {
                let _ = write!(ascii, "\\u{unit:04x}");
            }
        }
    }
    let html = plain
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026");
    [plain, slashes, ascii, html]
}

fn xml(value: &str, apostrophe: &str) -> String {
    let value = value
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    value.replace('"', "&quot;").replace('\'', apostrophe)
}

/// Single quotes as in `set -x`, backslashes as in `printf %q`, and `$'...'` as both do it.
fn shell_forms(value: &str) -> [String; 3] {
    let single = value.replace('\'', "'\\''");
    let mut backslashed = String::new();
    let mut dollar = String::new();
    for character in value.chars() {
        if character.is_ascii()
            && !character.is_ascii_alphanumeric()
            && !"_-./:@%+=".contains(character)
        {
            backslashed.push('\\');
        }
        backslashed.push(character);
        match character {
            '\n' => dollar.push_str("\\n"),
            '\t' => dollar.push_str("\\t"),
            '\r' => dollar.push_str("\\r"),
            '\\' => dollar.push_str("\\\\"),
            '\'' => dollar.push_str("\\'"),
            other => dollar.push(other),
        }
    }
    [single, backslashed, dollar]
}

fn hex_lower(byte: u8) -> String {
    format!("{byte:02x}")
}

fn hex_upper(byte: u8) -> String {
    format!("{byte:02X}")
}

fn percent(value: &str, kept: &str, space: &str, hex: fn(u8) -> String) -> String {
    let mut text = String::new();
    for byte in value.bytes() {
        match byte {
            b' ' => text.push_str(space),
            _ if byte.is_ascii_alphanumeric() || kept.as_bytes().contains(&byte) => {
                text.push(char::from(byte))
            }
            _ => {
                text.push('%');
                text.push_str(&hex(byte));
            }
        }
    }
    text
}

/// Returns the base64 digits that depend on the value alone when `shift` bytes stand before it in
/// the same group of three.
fn base64_core(value: &[u8], shift: usize, last_two: &[u8; 2]) -> Vec<u8> {
    let mut digits = Vec::with_capacity(value.len() * 4 / 3 + 1);
    let (mut bits, mut count) = (0_u32, 0_usize);
    // The digit that also holds bits of the bytes before the value is not determined by it.
    let mut skip = [0, 4, 2].get(shift).copied().unwrap_or(0);
    for &byte in value {
        bits = bits << 8 | u32::from(byte);
        count += 8;
        if skip > 0 {
            count -= skip;
            skip = 0;
        }
        while count >= 6 {
            count -= 6;
            digits.push(base64_digit((bits >> count & 63) as u8, last_two));
        }
        bits &= 0xFFFF;
    }
    digits
}

fn base64_digit(index: u8, last_two: &[u8; 2]) -> u8 {
    match index {
        0..=25 => b'A' + index,
        26..=51 => b'a' + (index - 26),
        52..=61 => b'0' + (index - 52),
        62 => last_two[0],
        _ => last_two[1],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(value: &str, form: Form, expected: &[&str]) {
        let mut found = Vec::new();
        for_each_form(value, |f, needle| {
            if f == form {
                found.push(String::from_utf8(needle.to_vec()).unwrap());
            }
        });
        assert_eq!(found, expected, "{value:?} {form:?}");
    }

    #[test]
    fn encoded_forms() {
        check("plain123", Form::Json, &[]);
        check(
            "a\"b/é",
            Form::Json,
            &["a\\\"b/é", "a\\\"b\\/é", "a\\\"b/\\u00e9"],
        );
        check(
            "a&b'c",
            Form::Xml,
            &["a&amp;b&apos;c", "a&amp;b&#39;c", "a&amp;b&#x27;c"],
        );
        check(
            "it's\n",
            Form::Shell,
            &["it'\\''s\n", "it\\'s\\\n", "it\\'s\\n"],
        );
        check(
            "a b/é!",
            Form::Percent,
            &[
                "a%20b%2F%C3%A9%21",
                "a%20b%2f%c3%a9%21",
                "a+b%2F%C3%A9%21",
                "a%20b/%C3%A9%21",
                "a%20b/%c3%a9%21",
                "a+b/%C3%A9%21",
                "a%20b%2F%C3%A9!",
                "a%20b%2f%c3%a9!",
                "a+b%2F%C3%A9!",
            ],
        );
        check("\u{1}JKL", Form::Hex, &["014a4b4c", "014A4B4C"]);
    }

    #[test]
    fn multi_line_values_have_parts() {
        check("one line", Form::Part, &[]);
        check("one line\n", Form::Part, &["one line"]);
        check(
            "-----BEGIN X-----\nMIIEvQIBADAN\nshort\n-----END X-----\n",
            Form::Part,
            &[
                "-----BEGIN X-----\nMIIEvQIBADAN\nshort\n-----END X-----",
                "MIIEvQIBADAN",
            ],
        );
        check("a1b2\nc3d4", Form::Exact, &["a1b2\nc3d4", "a1b2\r\nc3d4"]);
    }

    #[test]
    fn base64_cores_stand_in_every_alignment() {
        let value = "S3cr3t?~>Token";
        for before in 0..7 {
            for after in 0..5 {
                let text = format!("{}{value}{}", "x".repeat(before), "y".repeat(after));
                let encoded: String = reference_base64(text.as_bytes());
                let core = base64_core(value.as_bytes(), before % 3, b"+/");
                let core = String::from_utf8(core).unwrap();
                assert!(core.len() >= value.len() * 4 / 3 - 2);
                assert!(
                    encoded.contains(&core),
                    "{before} {after}: {encoded} {core}"
                );
            }
        }
        assert_eq!(base64_core(b"\xFB\xFF\xFE", 0, b"+/"), b"+//+");
        assert_eq!(base64_core(b"\xFB\xFF\xFE", 0, b"-_"), b"-__-");
    }

    fn reference_base64(bytes: &[u8]) -> String {
        let mut text = String::new();
        for group in bytes.chunks(3) {
            let byte = |i: usize| u32::from(group.get(i).copied().unwrap_or(0));
            let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
            for digit in 0..=group.len() {
                let index = (bits >> (18 - 6 * digit) & 63) as u8;
                text.push(char::from(base64_digit(index, b"+/")));
            }
        }
        text
    }
}
