//! Separates the visible bytes of a text from white space, control characters and escape sequences.
//!
//! The content of escape sequences is collected separately: a title may contain a value, too.

use zeroize::Zeroizing;

const ESCAPE: u8 = 0x1b;
/// Number of eight-byte words to check before `memchr` is called.
const NEAR_WORDS: usize = 2;
/// Bytes of a sample of a secret.
pub(super) const SAMPLE: usize = 6;

/// Finds a byte. It is often near, as between colours; then a short loop is faster than a call.
#[inline]
pub(super) fn find(byte: u8, bytes: &[u8]) -> Option<usize> {
    if let Some(found) = find_near(byte, bytes) {
        return Some(found);
    }
    let near = NEAR_WORDS.min(bytes.len() / 8) * 8;
    let found = memchr::memchr(byte, bytes.get(near..)?);
    found.map(|found| near + found)
}

/// Finds a byte in the first whole words.
#[inline]
pub(super) fn find_near(byte: u8, bytes: &[u8]) -> Option<usize> {
    const LOW: u64 = u64::from_le_bytes([0x7f; 8]);
    let wanted = u64::from_le_bytes([byte; 8]);
    let mut rest = bytes;
    for words in 0..NEAR_WORDS {
        let (word, after) = rest.split_first_chunk()?;
        // The high bit of each byte that is not equal.
        let differing = u64::from_le_bytes(*word) ^ wanted;
        let differing = ((differing & LOW) + LOW) | differing | LOW;
        if differing != u64::MAX {
            return Some(8 * words + (!differing).trailing_zeros() as usize / 8);
        }
        rest = after;
    }
    None
}

/// Returns true for a byte that is compared.
#[inline]
pub(super) fn is_visible(byte: u8) -> bool {
    byte > b' ' && byte != 0x7f
}

/// Receiver of bytes with their offsets.
pub(super) trait Sink {
    /// Receives bytes, the first of which is at `at`.
    fn receive(&mut self, bytes: &[u8], at: u64);
    /// Separates later bytes from earlier ones.
    fn separate(&mut self, at: u64);
}

/// State of parsing escape sequences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum EscapeState {
    /// Outside of escape sequences.
    #[default]
    Ground,
    /// After ESC, and after intermediate bytes.
    Escape,
    /// After ESC `[`.
    Control,
    /// In a title: it ends at the end of the line.
    Title,
    /// In a device control string.
    Device,
    /// After ESC in a string.
    StringEscape,
}

impl EscapeState {
    /// Parses a byte of a sequence; returns true when the byte is not part of it.
    fn step(&mut self, byte: u8) -> bool {
        let (next, is_outside) = match (*self, byte) {
            (Self::StringEscape, b'\\') => (Self::Ground, false),
            (Self::Title, b'\n') => (Self::Ground, true),
            (Self::Title | Self::Device, ESCAPE) => (Self::StringEscape, false),
            (Self::Title | Self::Device, 0x18 | 0x1a) | (Self::Title, 0x07) => {
                (Self::Ground, false)
            }
            (Self::Title | Self::Device, _) => (*self, false),
            (_, ESCAPE) => (Self::Escape, false),
            (Self::Escape | Self::StringEscape, b'[') => (Self::Control, false),
            (Self::Escape | Self::StringEscape, b']' | b'X' | b'^' | b'_') => (Self::Title, false),
            (Self::Escape | Self::StringEscape, b'P') => (Self::Device, false),
            (Self::Escape | Self::StringEscape, 0x20..=0x2f) => (Self::Escape, false),
            (Self::Escape | Self::StringEscape, 0x30..=0x7e) => (Self::Ground, false),
            (Self::Control, 0x20..=0x3f) => (Self::Control, false),
            (Self::Control, 0x40..=0x7e) => (Self::Ground, false),
            (_, 0x18 | 0x1a) => (Self::Ground, false),
            _ => (Self::Ground, true),
        };
        *self = next;
        is_outside
    }

    /// Sends bytes, the first of which is at `at`, to the receivers.
    pub(super) fn split(
        &mut self,
        bytes: &[u8],
        at: u64,
        main: &mut impl Sink,
        inside: &mut impl Sink,
    ) {
        let mut rest = bytes;
        let mut at = at;
        while !rest.is_empty() {
            let length = if *self == Self::Ground {
                let length = find(ESCAPE, rest).unwrap_or(rest.len());
                main.receive(rest.get(..length).unwrap_or_default(), at);
                let after = rest.get(length + 1..).unwrap_or_default();
                match short_control(after) {
                    Some(short) => length + 1 + short,
                    None => {
                        if length < rest.len() {
                            *self = Self::Escape;
                        }
                        (length + 1).min(rest.len())
                    }
                }
            } else {
                self.sequence(rest, at, inside)
            };
            rest = rest.get(length..).unwrap_or_default();
            at += length as u64;
        }
    }

    /// Parses the rest of a sequence; returns its length.
    fn sequence(&mut self, bytes: &[u8], at: u64, inside: &mut impl Sink) -> usize {
        let mut length = 0;
        for byte in bytes {
            if self.step(*byte) {
                break;
            }
            length += 1;
            if *self == Self::Ground {
                break;
            }
        }
        inside.receive(bytes.get(..length).unwrap_or_default(), at);
        if *self == Self::Ground {
            // The content of the next sequence does not continue this one.
            inside.separate(at + length as u64);
        }
        length
    }
}

/// Returns the length, without ESC, of a complete control sequence that is too short to contain a part of a secret, as
/// most are.
fn short_control(bytes: &[u8]) -> Option<usize> {
    let (first, rest) = bytes.split_first()?;
    let most = rest.get(..SAMPLE - 2).unwrap_or(rest);
    let last = most.iter().position(|byte| !(0x20..=0x3f).contains(byte))?;
    let is_whole = *first == b'['
        && rest
            .get(last)
            .is_some_and(|byte| (0x40..=0x7e).contains(byte));
    is_whole.then_some(last + 2)
}

/// Returns true for each byte outside of escape sequences; an empty list when all are.
pub(super) fn visible_mask(bytes: &[u8]) -> Vec<bool> {
    if memchr::memchr(ESCAPE, bytes).is_none() {
        return Vec::new();
    }
    let mut view = EscapeState::Ground;
    let is_outside = |byte: &u8| match (view, *byte) {
        (EscapeState::Ground, ESCAPE) => {
            view = EscapeState::Escape;
            false
        }
        (EscapeState::Ground, _) => true,
        (_, byte) => view.step(byte),
    };
    bytes.iter().map(is_outside).collect()
}

/// Returns the number of bytes of a value that are compared; the others are ignored in any text.
pub fn visible_bytes(value: &str) -> usize {
    let shown = visible_mask(value.as_bytes());
    let is_shown = |at: usize| shown.get(at) != Some(&false);
    let bytes = value.bytes().enumerate();
    bytes
        .filter(|(at, byte)| is_visible(*byte) && is_shown(*at))
        .count()
}

/// Returns a text without escape sequences and carriage returns.
pub(super) fn without_escapes(bytes: &[u8]) -> Zeroizing<Vec<u8>> {
    let mut text = Zeroizing::new(Vec::with_capacity(bytes.len()));
    let shown = visible_mask(bytes);
    for (at, byte) in bytes.iter().enumerate() {
        if *byte != b'\r' && shown.get(at) != Some(&false) {
            text.push(*byte);
        }
    }
    text
}

/// Returns the length of `start` in a text, which may contain extra carriage returns, if the text begins with it.
pub(super) fn begins_with(text: &[u8], start: &[u8]) -> Option<usize> {
    let mut wanted = start.iter().peekable();
    let mut used = 0;
    for byte in text {
        let Some(next) = wanted.peek() else { break };
        if *byte == **next {
            wanted.next();
        } else if *byte != b'\r' {
            return None;
        }
        used += 1;
    }
    wanted.peek().is_none().then_some(used)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_is_found_near_and_far() {
        for byte in [ESCAPE, b'\\', 0x80, 0xff] {
            for length in 0..40 {
                // Neighbours that differ in one bit, and their carries.
                let mut bytes: Vec<u8> = (0..length).map(|at| byte ^ (1 << (at % 8))).collect();
                assert_eq!(find(byte, &bytes), None, "{byte} in {bytes:?}");
                for at in (0..length).rev() {
                    bytes[at] = byte;
                    assert_eq!(find(byte, &bytes), Some(at), "{byte} in {bytes:?}");
                }
            }
        }
    }
}
