//! Encoded forms of a value.
//!
//! Programs print values in base64, in hex, or quoted for a shell. Each form maps its bytes to bytes of the value, so
//! that the secret parts are known in all of them. Escapes of single characters are no forms: they are decoded in the
//! text.

use zeroize::Zeroizing;

use super::form::Form;
use crate::visible::{self, is_visible};

/// Visible bytes of one form of a value.
pub(super) struct EncodedValue {
    /// Its bytes.
    pub(super) bytes: Zeroizing<Vec<u8>>,
    /// Offset in the value of each byte.
    pub(super) sources: Vec<usize>,
}

impl EncodedValue {
    /// Largest number of bytes for one byte of the value.
    const WORST: usize = 6;

    /// Makes an empty form with room for any form of the value, so that it never moves in memory.
    fn for_value(value: &str) -> Self {
        let room = value.len() * Self::WORST + 16;
        Self {
            bytes: Zeroizing::new(Vec::with_capacity(room)),
            sources: Vec::with_capacity(room),
        }
    }

    fn byte(&mut self, byte: u8, source: usize) {
        self.bytes.push(byte);
        self.sources.push(source);
    }

    fn text(&mut self, text: &str, source: usize) {
        text.bytes().for_each(|byte| self.byte(byte, source));
    }

    /// Adds the low digits of a number in base 16.
    fn hex(&mut self, number: u32, count: u32, digits: &[u8; 16], source: usize) {
        for place in (0..count).rev() {
            let digit = digits.get((number >> (4 * place) & 15) as usize).copied();
            self.byte(digit.unwrap_or(b'0'), source);
        }
    }

    /// Removes bytes that are not visible.
    fn keep_visible(&mut self) {
        let shown = visible::visible_mask(&self.bytes);
        let mut length = 0;
        for at in 0..self.bytes.len() {
            if shown.get(at) != Some(&false) && self.bytes.get(at).is_some_and(|b| is_visible(*b)) {
                self.bytes.swap(length, at);
                self.sources.swap(length, at);
                length += 1;
            }
        }
        self.bytes.truncate(length);
        self.sources.truncate(length);
    }
}

const LOWER: &[u8; 16] = b"0123456789abcdef";
const UPPER: &[u8; 16] = b"0123456789ABCDEF";

/// Calls `show` with every form of a value, the plainest first; some may be equal.
pub(super) fn for_each_form(value: &str, mut show: impl FnMut(Form, &EncodedValue)) {
    let mut encoded = EncodedValue::for_value(value);
    let mut make = |form: Form, encode: &dyn Fn(&mut EncodedValue)| {
        encoded.bytes.clear();
        encoded.sources.clear();
        encode(&mut encoded);
        encoded.keep_visible();
        show(form, &encoded);
    };
    make(Form::Raw, &|out| each(value, out, |_| None));
    for (is_ascii, is_html) in [(false, false), (true, false), (false, true)] {
        make(Form::Json, &|out| json(value, is_ascii, is_html, out));
    }
    for shift in 0..3 {
        for last in [b"+/", b"-_"] {
            make(Form::Base64, &|out| base64(value, shift, last, out));
        }
    }
    for digits in [LOWER, UPPER] {
        make(Form::Hex, &|out| {
            let bytes = value.bytes().enumerate();
            bytes.for_each(|(at, byte)| out.hex(byte.into(), 2, digits, at));
        });
    }
    if value.contains('\'') {
        // `set -x` and `${v@Q}`, and Python's `shlex.quote`.
        for quote in ["'\\''", "'\"'\"'"] {
            make(Form::Shell, &|out| {
                each(value, out, |c| (c == '\'').then_some(quote));
            });
        }
    }
    if value.contains(' ') {
        // A form field of a page after decoding of `%NN`.
        make(Form::Percent, &|out| {
            each(value, out, |c| (c == ' ').then_some("+"));
        });
    }
    if !value.is_ascii() {
        make(Form::Escaped, &|out| latin(value, out));
    }
}

/// Writes the characters of a value, or the replacement of one.
fn each(value: &str, out: &mut EncodedValue, replaced: impl Fn(char) -> Option<&'static str>) {
    for (at, character) in value.char_indices() {
        match replaced(character) {
            Some(text) => out.text(text, at),
            None => plain(character, at, out),
        }
    }
}

fn plain(character: char, at: usize, out: &mut EncodedValue) {
    for (offset, byte) in character.encode_utf8(&mut [0; 4]).bytes().enumerate() {
        out.byte(byte, at + offset);
    }
}

/// Writes a JSON string; characters that are not ASCII or special in HTML may be numeric escapes.
fn json(value: &str, is_ascii: bool, is_html: bool, out: &mut EncodedValue) {
    for (at, character) in value.char_indices() {
        let is_number = character.is_ascii_control()
            || is_ascii && !character.is_ascii()
            || is_html && matches!(character, '<' | '>' | '&');
        match character {
            '"' => out.text("\\\"", at),
            '\\' => out.text("\\\\", at),
            '\n' => out.text("\\n", at),
            '\r' => out.text("\\r", at),
            '\t' => out.text("\\t", at),
            _ if is_number => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    out.text("\\u", at);
                    out.hex((*unit).into(), 4, LOWER, at);
                }
            }
            _ => plain(character, at, out),
        }
    }
}

/// Writes the bytes of numeric escapes of characters, such as `\xe9`.
fn latin(value: &str, out: &mut EncodedValue) {
    for (at, character) in value.char_indices() {
        match u8::try_from(u32::from(character)) {
            Ok(byte) => out.byte(byte, at),
            Err(_) => plain(character, at, out),
        }
    }
}

/// Writes the base64 digits that depend on the value alone, after `shift` bytes in the same group of three.
fn base64(value: &str, shift: usize, last_two: &[u8; 2], out: &mut EncodedValue) {
    let digit = |index: u8| match index {
        0..=25 => b'A' + index,
        26..=51 => b'a' + (index - 26),
        52..=61 => b'0' + (index - 52),
        62 => last_two[0],
        _ => last_two[1],
    };
    let skip = [0, 4, 2].get(shift).copied().unwrap_or(0);
    let (mut bits, mut count) = (0_u32, 0_u32);
    for (at, byte) in value.bytes().enumerate() {
        bits = (bits << 8 | u32::from(byte)) & 0xFFFF;
        count += if at == 0 { 8 - skip } else { 8 };
        while count >= 6 {
            count -= 6;
            out.byte(digit((bits >> count & 63) as u8), at);
        }
    }
}
