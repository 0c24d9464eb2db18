//! Decodes keys from terminal input and assembles a value from them. Buffers are overwritten after use.

use zeroize::{Zeroize, Zeroizing};

use karyi_core::limits;
use karyi_core::secret::SecretValue;

const ESCAPE: u8 = 0x1b;
const PASTE_END: &[u8] = b"\x1b[201~";
/// Maximum bytes of a paste: more than a value may have, even if each line ends in two bytes.
const MOST_PASTED: usize = 2 * limits::MAX_SECRET_BYTES + 2;
/// Room for a value and one more character, so that a value that is too long stays too long.
const ROOM: usize = limits::MAX_SECRET_BYTES + 4;

/// A key or paste.
pub(super) enum Key {
    /// A character.
    Char(char),
    /// A lowercase letter with Ctrl; Tab is one.
    Control(char),
    Enter,
    Backspace,
    Escape,
    /// Pasted text with its line breaks.
    Paste(Zeroizing<String>),
    /// Any other key.
    Other,
}

/// Reads a key, if one arrives. `next` returns the next byte, or `None` when the user pauses, which ends an
/// incomplete key.
pub(super) fn read_key<E>(
    next: &mut impl FnMut() -> Result<Option<u8>, E>,
) -> Result<Option<Key>, E> {
    let Some(byte) = next()? else {
        return Ok(None);
    };
    Ok(Some(match byte {
        b'\r' | b'\n' => Key::Enter,
        0x08 | 0x7f => Key::Backspace,
        ESCAPE => escaped(next)?,
        0x01..=0x1a => Key::Control(char::from(byte - 1 + b'a')),
        0x20..=0x7e => Key::Char(char::from(byte)),
        0xc2..=0xf4 => character(byte, next)?,
        _ => Key::Other,
    }))
}

/// Reads the rest after Esc: a sequence, a paste, a key with Alt, or nothing.
fn escaped<E>(next: &mut impl FnMut() -> Result<Option<u8>, E>) -> Result<Key, E> {
    match next()? {
        None | Some(0x00..=0x1f | 0x7f) => return Ok(Key::Escape),
        Some(b'[') => {}
        Some(b'O') => return next().map(|_| Key::Other),
        Some(_) => return Ok(Key::Other),
    }
    let (mut number, mut length) = (0_u32, 0);
    loop {
        match next()? {
            Some(b'~') if number == 200 && length == 3 => return pasted(next),
            Some(byte @ 0x20..=0x3f) => {
                number = number.wrapping_mul(10) + u32::from(byte.wrapping_sub(b'0'));
                length += 1;
            }
            _ => return Ok(Key::Other),
        }
    }
}

/// Reads a paste to its end.
fn pasted<E>(next: &mut impl FnMut() -> Result<Option<u8>, E>) -> Result<Key, E> {
    // A reallocation would leave a copy behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(MOST_PASTED + PASTE_END.len()));
    while !bytes.ends_with(PASTE_END) {
        if bytes.len() == bytes.capacity() {
            bytes.remove(MOST_PASTED);
        }
        bytes.extend(next()?);
    }
    let end = bytes.len() - PASTE_END.len();
    bytes.truncate(end);
    // A value is text.
    Ok(match String::from_utf8(std::mem::take(&mut *bytes)) {
        Ok(text) => Key::Paste(Zeroizing::new(text)),
        Err(error) => {
            error.into_bytes().zeroize();
            Key::Other
        }
    })
}

fn character<E>(first: u8, next: &mut impl FnMut() -> Result<Option<u8>, E>) -> Result<Key, E> {
    let length = first.leading_ones() as usize;
    let mut bytes = Zeroizing::new([first, 0, 0, 0]);
    for place in &mut bytes[1..length] {
        *place = next()?.unwrap_or_default();
    }
    let text = std::str::from_utf8(&bytes[..length]);
    let character = text.ok().and_then(|text| text.chars().next());
    Ok(character.map_or(Key::Other, Key::Char))
}

/// Result of one key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    More,
    /// Line breaks belong to the value from now on.
    SeveralLines,
    Complete,
    Declined,
}

/// A value being typed.
pub(super) struct ValueInput {
    typed: Zeroizing<String>,
    /// Number of characters beyond the available room.
    lost: usize,
    has_lines: bool,
}

impl ValueInput {
    pub(super) fn new() -> Self {
        Self {
            typed: Zeroizing::new(String::with_capacity(ROOM)),
            lost: 0,
            has_lines: false,
        }
    }

    /// Returns the value; one that is too long is truncated.
    pub(super) fn into_value(mut self) -> SecretValue {
        SecretValue::new(std::mem::take(&mut *self.typed))
    }

    /// Processes one key; `has_more` is true when another one is available already.
    pub(super) fn take(&mut self, key: Key, has_more: bool) -> Step {
        match key {
            Key::Paste(text) => return self.paste(&text),
            Key::Escape => return Step::Declined,
            // Nobody types that fast: a line break followed by more input was pasted.
            Key::Enter if self.has_lines || has_more => {
                self.add(['\n']);
                return self.several_lines();
            }
            Key::Enter | Key::Control('d') if self.typed.is_empty() => return Step::Declined,
            Key::Enter | Key::Control('d') => return Step::Complete,
            Key::Char(c) => self.add([c]),
            Key::Control('i') => self.add(['\t']),
            Key::Control('u') => {
                self.typed.zeroize();
                self.lost = 0;
            }
            Key::Backspace if self.lost > 0 => self.lost -= 1,
            Key::Backspace => drop(self.typed.pop()),
            Key::Control(_) | Key::Other => {}
        }
        Step::More
    }

    /// Processes pasted text. The line break after a single line is dropped; those of several lines are kept.
    fn paste(&mut self, text: &str) -> Step {
        let breaks = unified(text).filter(|c| *c == '\n').count();
        if breaks <= usize::from(text.ends_with(['\r', '\n'])) && !self.has_lines {
            self.add(unified(text).take_while(|c| *c != '\n'));
            return Step::More;
        }
        self.add(unified(text));
        self.several_lines()
    }

    fn several_lines(&mut self) -> Step {
        match std::mem::replace(&mut self.has_lines, true) {
            true => Step::More,
            false => Step::SeveralLines,
        }
    }

    fn add(&mut self, text: impl IntoIterator<Item = char>) {
        for c in text {
            if self.lost == 0 && self.typed.len() + c.len_utf8() <= ROOM {
                self.typed.push(c);
            } else {
                self.lost += 1;
            }
        }
    }
}

/// Normalises line breaks to one character each, without a copy that would stay in memory.
fn unified(text: &str) -> impl Iterator<Item = char> {
    let mut last = ' ';
    text.chars().filter_map(move |c| {
        let is_second = c == '\n' && std::mem::replace(&mut last, c) == '\r';
        last = c;
        (!is_second).then_some(if c == '\r' { '\n' } else { c })
    })
}

#[cfg(test)]
mod tests;
