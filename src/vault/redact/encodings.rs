//! The forms in which a value may turn up in output.
//!
//! Programs print values encoded: a header in base64, a dump in hex, a URL percent-encoded, a trace
//! quoted for the shell. Each form remembers which byte of the value each of its bytes comes from,
//! so that the secret parts of a value are known in all of them. What is no encoding (hashes,
//! compression, another case) is out of reach.

use zeroize::Zeroizing;

use super::form::Form;
use crate::limits;

/// A form of a value.
pub(super) struct Encoded {
    /// Its bytes.
    pub(super) bytes: Zeroizing<Vec<u8>>,
    /// For each byte where in the value it comes from.
    pub(super) sources: Vec<u32>,
}

impl Encoded {
    /// Most bytes that a form makes of one of the value, and a little more.
    const WORST: usize = 12;

    /// Makes an empty form that has room for any of the value, so that it never moves in memory.
    fn for_value(value: &str) -> Self {
        let room = value.len() * Self::WORST + 16;
        Self {
            bytes: Zeroizing::new(Vec::with_capacity(room)),
            sources: Vec::with_capacity(room),
        }
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.sources.clear();
    }

    fn byte(&mut self, byte: u8, source: usize) {
        self.bytes.push(byte);
        self.sources.push(u32::try_from(source).unwrap_or(u32::MAX));
    }

    fn text(&mut self, text: &str, source: usize) {
        text.bytes().for_each(|byte| self.byte(byte, source));
    }

    /// Two hexadecimal digits.
    fn hex(&mut self, byte: u8, digits: &[u8; 16], source: usize) {
        for half in [byte >> 4, byte & 15] {
            let digit = digits.get(usize::from(half)).copied();
            self.byte(digit.unwrap_or(b'0'), source);
        }
    }

    /// A number in four or more hexadecimal digits.
    fn wide_hex(&mut self, number: u16, digits: &[u8; 16], source: usize) {
        let [high, low] = number.to_be_bytes();
        self.hex(high, digits, source);
        self.hex(low, digits, source);
    }

    /// A number in at least `width` decimal digits.
    fn decimal(&mut self, number: u32, width: u32, source: usize) {
        let first = (0..9).rev().find(|place| number / 10_u32.pow(*place) > 0);
        let first = first.unwrap_or(0).max(width.saturating_sub(1));
        for place in (0..=first).rev() {
            let digit = number / 10_u32.pow(place) % 10;
            self.byte(b'0' + digit as u8, source);
        }
    }

    /// A number in at least `width` hexadecimal digits.
    fn hex_number(&mut self, number: u32, digits: &[u8; 16], width: u32, source: usize) {
        let first = (0..8).rev().find(|place| number >> (4 * place) > 0);
        let first = first.unwrap_or(0).max(width.saturating_sub(1));
        for place in (0..=first).rev() {
            let digit = digits.get((number >> (4 * place) & 15) as usize).copied();
            self.byte(digit.unwrap_or(b'0'), source);
        }
    }
}

const LOWER: &[u8; 16] = b"0123456789abcdef";
const UPPER: &[u8; 16] = b"0123456789ABCDEF";

/// Writes a value in hexadecimal digits.
type InDigits = fn(&str, &[u8; 16], &mut Encoded);

/// The forms in which every byte or character is a number.
const IN_DIGITS: [(Form, InDigits); 5] = [
    (Form::Hex, hex),
    (Form::Escaped, backslash_x),
    (Form::Escaped, |value, digits, out| {
        units(value, "%u", digits, out)
    }),
    (Form::Escaped, |value, digits, out| {
        units(value, "\\u", digits, out)
    }),
    (Form::Escaped, every_percent),
];

/// Shows every form of a value, the plainest first; some may be the same.
pub(super) fn for_each_form(value: &str, mut show: impl FnMut(Form, &Encoded)) {
    let mut encoded = Encoded::for_value(value);
    let mut make = |form: Form, encode: &dyn Fn(&mut Encoded)| {
        encoded.clear();
        encode(&mut encoded);
        show(form, &encoded);
    };
    make(Form::Raw, &|out| raw(value, out));
    for style in JSON_STYLES {
        make(Form::Json, &|out| json(value, style, out));
    }
    for shift in 0..3 {
        for last in [b"+/", b"-_"] {
            make(Form::Base64, &|out| base64(value, shift, last, out));
        }
    }
    if value.len() > limits::MAX_ENCODED_SECRET_BYTES {
        return;
    }
    for apostrophe in ["&apos;", "&#39;", "&#x27;"] {
        make(Form::Xml, &|out| xml(value, apostrophe, out));
    }
    for base in BASES {
        make(Form::Xml, &|out| numeric_references(value, base, out));
    }
    for quoting in QUOTINGS {
        make(Form::Shell, &|out| shell(value, quoting, out));
    }
    for kept in ["-_.~", "-_.~/", "-_.~!*'()"] {
        for (digits, space) in [(UPPER, "%20"), (LOWER, "%20"), (UPPER, "+")] {
            make(Form::Percent, &|out| {
                percent(value, kept, space, digits, out)
            });
        }
    }
    if value.contains(' ') {
        make(Form::Percent, &|out| plus(value, out));
    }
    make(Form::Reversed, &|out| reversed(value, out));
    for shift in 0..5 {
        for first in [b'A', b'a'] {
            make(Form::Base32, &|out| base32(value, shift, first, out));
        }
    }
    for (form, encode) in IN_DIGITS {
        // What differs in a few capitals comes one after the other: the rest of it is known then.
        for digits in [LOWER, UPPER] {
            make(form, &|out| encode(value, digits, out));
        }
    }
    for_each_escaped(value, &mut make);
    for first in 0..2 {
        make(Form::Hex, &|out| swapped_hex(value, first, out));
    }
}

/// Makes the forms in which what is not ASCII, or every byte, is a number.
fn for_each_escaped(value: &str, mut make: impl FnMut(Form, &dyn Fn(&mut Encoded))) {
    make(Form::Escaped, &|out| bytes_repr(value, out));
    make(Form::Escaped, &|out| octal(value, "\\", out));
    make(Form::Escaped, &|out| octal(value, "\\0", out));
    if !value.is_ascii() {
        make(Form::Escaped, &|out| latin(value, out));
        for quote in ["\\'", "'"] {
            make(Form::Escaped, &|out| dollar_octal(value, quote, out));
        }
        make(Form::Escaped, &|out| bare_octal(value, out));
        make(Form::Escaped, &|out| meta(value, out));
    }
}

fn raw(value: &str, out: &mut Encoded) {
    let bytes = value.bytes().enumerate();
    bytes.for_each(|(at, byte)| out.byte(byte, at));
}

/// Lets `encode` write each character.
fn each(value: &str, out: &mut Encoded, mut encode: impl FnMut(char, usize, &mut Encoded)) {
    for (at, character) in value.char_indices() {
        encode(character, at, out);
    }
}

fn plain(character: char, at: usize, out: &mut Encoded) {
    for (offset, byte) in character.encode_utf8(&mut [0; 4]).bytes().enumerate() {
        out.byte(byte, at + offset);
    }
}

/// How JSON is written: which characters get an escape they need not have, and how often it is done.
#[derive(Clone, Copy)]
struct JsonStyle {
    escapes_slash: bool,
    escapes_html: bool,
    is_ascii: bool,
    is_nested: bool,
}

const JSON_PLAIN: JsonStyle = JsonStyle {
    escapes_slash: false,
    escapes_html: false,
    is_ascii: false,
    is_nested: false,
};

const JSON_STYLES: [JsonStyle; 6] = [
    JSON_PLAIN,
    JsonStyle {
        escapes_slash: true,
        ..JSON_PLAIN
    },
    JsonStyle {
        is_ascii: true,
        ..JSON_PLAIN
    },
    JsonStyle {
        escapes_html: true,
        ..JSON_PLAIN
    },
    JsonStyle {
        is_nested: true,
        ..JSON_PLAIN
    },
    JsonStyle {
        is_nested: true,
        is_ascii: true,
        ..JSON_PLAIN
    },
];

fn json(value: &str, style: JsonStyle, out: &mut Encoded) {
    // Written into a string once more, a backslash is two.
    let backslash = if style.is_nested { "\\\\" } else { "\\" };
    each(value, out, |character, at, out| {
        let short = match character {
            '"' => Some(if style.is_nested { "\\\"" } else { "\"" }),
            '\\' => Some(backslash),
            '\n' => Some("n"),
            '\r' => Some("r"),
            '\t' => Some("t"),
            '/' if style.escapes_slash => Some("/"),
            _ => None,
        };
        let is_html = style.escapes_html && matches!(character, '<' | '>' | '&');
        if let Some(short) = short {
            out.text(backslash, at);
            out.text(short, at);
        } else if character.is_ascii_control()
            || is_html
            || (style.is_ascii && !character.is_ascii())
        {
            for unit in character.encode_utf16(&mut [0; 2]) {
                out.text(backslash, at);
                out.byte(b'u', at);
                out.wide_hex(*unit, LOWER, at);
            }
        } else {
            plain(character, at, out);
        }
    });
}

fn xml(value: &str, apostrophe: &str, out: &mut Encoded) {
    each(value, out, |character, at, out| match character {
        '&' => out.text("&amp;", at),
        '<' => out.text("&lt;", at),
        '>' => out.text("&gt;", at),
        '"' => out.text("&quot;", at),
        '\'' => out.text(apostrophe, at),
        other => plain(other, at, out),
    });
}

/// How a numeric reference writes its number.
#[derive(Clone, Copy)]
enum Base {
    /// With at least so many digits.
    Decimal(u32),
    /// With these digits, at least so many of them.
    Hex(&'static [u8; 16], u32),
    /// The same after a capital `X`.
    CapitalHex(&'static [u8; 16], u32),
}

const BASES: [Base; 9] = [
    Base::Decimal(1),
    Base::Decimal(3),
    Base::Decimal(4),
    Base::Hex(LOWER, 1),
    Base::Hex(UPPER, 1),
    Base::Hex(LOWER, 4),
    Base::Hex(UPPER, 4),
    Base::CapitalHex(LOWER, 1),
    Base::CapitalHex(UPPER, 1),
];

fn numeric_references(value: &str, base: Base, out: &mut Encoded) {
    each(value, out, |character, at, out| {
        let number = u32::from(character);
        out.text("&#", at);
        match base {
            Base::Decimal(width) => out.decimal(number, width, at),
            Base::Hex(digits, width) => {
                out.text("x", at);
                out.hex_number(number, digits, width, at);
            }
            Base::CapitalHex(digits, width) => {
                out.text("X", at);
                out.hex_number(number, digits, width, at);
            }
        }
        out.byte(b';', at);
    });
}

/// How a shell or a language quotes.
#[derive(Clone, Copy)]
enum Quoting {
    /// `'it'\''s'`, as in `set -x` and `${v@Q}`.
    Single,
    /// `'it'"'"'s'`, as Python's `shlex.quote`.
    SingleInDouble,
    /// `it\'s`, as `printf %q`.
    Backslash,
    /// `$'it\'s\n'`, as both do it with control characters, and Python's `repr`.
    Dollar,
    /// `"\$x"`, as `declare -p`.
    Double,
}

const QUOTINGS: [Quoting; 5] = [
    Quoting::Single,
    Quoting::SingleInDouble,
    Quoting::Backslash,
    Quoting::Dollar,
    Quoting::Double,
];

fn shell(value: &str, quoting: Quoting, out: &mut Encoded) {
    each(value, out, |character, at, out| {
        let replaced = match (quoting, character) {
            (Quoting::Single, '\'') => Some("'\\''"),
            (Quoting::SingleInDouble, '\'') => Some("'\"'\"'"),
            (Quoting::Dollar, '\n') => Some("\\n"),
            (Quoting::Dollar, '\t') => Some("\\t"),
            (Quoting::Dollar, '\r') => Some("\\r"),
            _ => None,
        };
        if let Some(text) = replaced {
            return out.text(text, at);
        }
        let has_backslash = match quoting {
            Quoting::Single | Quoting::SingleInDouble => false,
            Quoting::Backslash => {
                character.is_ascii()
                    && !character.is_ascii_alphanumeric()
                    && !"_-./:@%+=".contains(character)
            }
            Quoting::Dollar => matches!(character, '\\' | '\''),
            Quoting::Double => matches!(character, '\\' | '"' | '$' | '`'),
        };
        if has_backslash {
            out.byte(b'\\', at);
        }
        plain(character, at, out);
    });
}

fn percent(value: &str, kept: &str, space: &str, digits: &[u8; 16], out: &mut Encoded) {
    for (at, byte) in value.bytes().enumerate() {
        match byte {
            b' ' => out.text(space, at),
            _ if byte.is_ascii_alphanumeric() || kept.as_bytes().contains(&byte) => {
                out.byte(byte, at);
            }
            _ => {
                out.byte(b'%', at);
                out.hex(byte, digits, at);
            }
        }
    }
}

/// What is left of a form's percent-encoding without its escapes.
fn plus(value: &str, out: &mut Encoded) {
    for (at, byte) in value.bytes().enumerate() {
        out.byte(if byte == b' ' { b'+' } else { byte }, at);
    }
}

/// What is left of escapes with the numbers of characters, as `\xe9`; a program that writes them
/// escapes none that is larger than a byte that way.
fn latin(value: &str, out: &mut Encoded) {
    each(value, out, |character, at, out| {
        match u8::try_from(u32::from(character)) {
            Ok(byte) => out.byte(byte, at),
            Err(_) => plain(character, at, out),
        }
    });
}

fn reversed(value: &str, out: &mut Encoded) {
    for (at, character) in value.char_indices().rev() {
        plain(character, at, out);
    }
}

fn hex(value: &str, digits: &[u8; 16], out: &mut Encoded) {
    for (at, byte) in value.bytes().enumerate() {
        out.hex(byte, digits, at);
    }
}

/// Hexadecimal digits of 16-bit words, the second byte first, as `hexdump` and `od -x` print them.
fn swapped_hex(value: &str, first: usize, out: &mut Encoded) {
    let bytes = value.as_bytes();
    let words = bytes.get(first..).unwrap_or_default().chunks_exact(2);
    for (word, pair) in words.enumerate() {
        for (offset, byte) in pair.iter().enumerate().rev() {
            out.hex(*byte, LOWER, first + 2 * word + offset);
        }
    }
}

fn backslash_x(value: &str, digits: &[u8; 16], out: &mut Encoded) {
    for (at, byte) in value.bytes().enumerate() {
        out.text("\\x", at);
        out.hex(byte, digits, at);
    }
}

/// Percent-encoding of every byte, also of those that need none.
fn every_percent(value: &str, digits: &[u8; 16], out: &mut Encoded) {
    for (at, byte) in value.bytes().enumerate() {
        out.byte(b'%', at);
        out.hex(byte, digits, at);
    }
}

/// Each unit of UTF-16 as four digits after `before`.
fn units(value: &str, before: &str, digits: &[u8; 16], out: &mut Encoded) {
    each(value, out, |character, at, out| {
        for unit in character.encode_utf16(&mut [0; 2]) {
            out.text(before, at);
            out.wide_hex(*unit, digits, at);
        }
    });
}

/// Python's `repr` of bytes: what is not printable ASCII as `\xNN`.
fn bytes_repr(value: &str, out: &mut Encoded) {
    for (at, byte) in value.bytes().enumerate() {
        match byte {
            b'\n' => out.text("\\n", at),
            b'\r' => out.text("\\r", at),
            b'\t' => out.text("\\t", at),
            b'\\' | b'\'' => {
                out.byte(b'\\', at);
                out.byte(byte, at);
            }
            0x20..=0x7e => out.byte(byte, at),
            _ => {
                out.text("\\x", at);
                out.hex(byte, LOWER, at);
            }
        }
    }
}

/// A byte as three octal digits after `before`.
fn octal_byte(byte: u8, before: &str, at: usize, out: &mut Encoded) {
    out.text(before, at);
    for shift in [6, 3, 0] {
        out.byte(b'0' + (byte >> shift & 7), at);
    }
}

/// Octal digits of every byte, after a backslash, or after that and a zero as `echo -e` reads it.
fn octal(value: &str, before: &str, out: &mut Encoded) {
    for (at, byte) in value.bytes().enumerate() {
        octal_byte(byte, before, at, out);
    }
}

/// Bash's `$'...'` where the locale has no such characters: octal digits of what is not ASCII, or of
/// a control character without a letter of its own.
fn dollar_octal(value: &str, quote: &str, out: &mut Encoded) {
    for (at, byte) in value.bytes().enumerate() {
        match byte {
            b'\n' => out.text("\\n", at),
            b'\r' => out.text("\\r", at),
            b'\t' => out.text("\\t", at),
            b'\\' => out.text("\\\\", at),
            b'\'' => out.text(quote, at),
            0x20..=0x7e => out.byte(byte, at),
            _ => octal_byte(byte, "\\", at, out),
        }
    }
}

/// What `od -c` prints: octal digits of what is not ASCII, without a sign.
fn bare_octal(value: &str, out: &mut Encoded) {
    for (at, byte) in value.bytes().enumerate() {
        match byte {
            b'\n' => out.text("\\n", at),
            b'\r' => out.text("\\r", at),
            b'\t' => out.text("\\t", at),
            0x20..=0x7e => out.byte(byte, at),
            _ => octal_byte(byte, "", at, out),
        }
    }
}

/// What `cat -A` prints: `M-` before a byte that is not ASCII, as the rest of its bits is shown.
fn meta(value: &str, out: &mut Encoded) {
    for (at, byte) in value.bytes().enumerate() {
        if byte >= 0x80 {
            out.text("M-", at);
        }
        match byte & 0x7f {
            // The end of a line is one there, too.
            b'\n' if byte == b'\n' => out.byte(byte, at),
            rest @ 0x20..=0x7e => out.byte(rest, at),
            rest => {
                out.byte(b'^', at);
                out.byte(rest ^ 0x40, at);
            }
        }
    }
}

/// Writes the base64 digits that depend on the value alone when `shift` bytes stand before it in
/// the same group of three.
fn base64(value: &str, shift: usize, last_two: &[u8; 2], out: &mut Encoded) {
    let digit = |index: u8| match index {
        0..=25 => b'A' + index,
        26..=51 => b'a' + (index - 26),
        52..=61 => b'0' + (index - 52),
        62 => last_two[0],
        _ => last_two[1],
    };
    let skip = [0, 4, 2].get(shift).copied().unwrap_or(0);
    digits(value, 6, skip, digit, out);
}

/// The same of base32, with groups of five, in capital letters or small ones.
fn base32(value: &str, shift: usize, first: u8, out: &mut Encoded) {
    let digit = |index: u8| match index {
        0..=25 => first + index,
        _ => b'2' + (index - 26),
    };
    // Bits of the value in the digit that also holds bits of what stands before it.
    let skip = [0, 2, 4, 1, 3].get(shift).copied().unwrap_or(0);
    digits(value, 5, skip, digit, out);
}

/// Writes digits of `width` bits each, from the bit `skip` of the value on.
fn digits(value: &str, width: u32, skip: u32, digit: impl Fn(u8) -> u8, out: &mut Encoded) {
    let (mut bits, mut count) = (0_u32, 0_u32);
    for (at, byte) in value.bytes().enumerate() {
        bits = bits << 8 | u32::from(byte);
        count += 8;
        if at == 0 {
            count -= skip;
        }
        while count >= width {
            count -= width;
            let index = bits >> count & ((1 << width) - 1);
            out.byte(digit(index as u8), at);
        }
        bits &= 0xFFFF;
    }
}
