//! Counts bytes, lines and columns of a message.
//!
//! The message arrives in slices that may be cut anywhere except inside a valid UTF-8 character; [`incomplete_suffix`]
//! returns the number of bytes to hold back for that.

use memchr::{memchr, memchr_iter, memrchr, memrchr2};

use karyi_core::span::Position;

/// The place of the next byte.
#[derive(Debug, Clone, Default)]
pub(super) struct PositionTracker {
    position: Position,
    /// True when the last byte was a CR: an LF after it belongs to the same line break.
    after_cr: bool,
}

impl PositionTracker {
    /// Returns the place of the next byte.
    pub(super) fn position(&self) -> Position {
        self.position
    }

    /// Counts bytes that have no column, as a byte order mark.
    pub(super) fn skip_mark(&mut self, bytes: usize) {
        self.position.offset += bytes as u64;
    }

    /// Counts the next bytes of the message, which hold no CR.
    pub(super) fn advance_by_lines(&mut self, bytes: &[u8]) {
        if self.after_cr {
            return self.advance(bytes);
        }
        self.position.offset += bytes.len() as u64;
        match memrchr(b'\n', bytes) {
            None => self.position.column += columns(bytes),
            Some(at) => {
                let (lines, tail) = bytes.split_at(at + 1);
                self.position.line += memchr_iter(b'\n', lines).count() as u64;
                self.position.column = 1 + columns(tail);
            }
        }
    }

    /// Counts the next bytes of the message.
    pub(super) fn advance(&mut self, bytes: &[u8]) {
        let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else {
            return;
        };
        self.position.offset += bytes.len() as u64;
        match memrchr2(b'\n', b'\r', bytes) {
            None => self.position.column += columns(bytes),
            Some(at) => {
                let (lines, tail) = bytes.split_at(at + 1);
                let counted = u64::from(self.after_cr && *first == b'\n');
                self.position.line += breaks(lines) - counted;
                self.position.column = 1 + columns(tail);
            }
        }
        self.after_cr = *last == b'\r';
    }
}

/// Counts line breaks: CR, LF and CRLF are one each.
fn breaks(bytes: &[u8]) -> u64 {
    let feeds = memchr_iter(b'\n', bytes).count();
    if memchr(b'\r', bytes).is_none() {
        return feeds as u64;
    }
    let lone_returns = memchr_iter(b'\r', bytes)
        .filter(|at| bytes.get(at + 1) != Some(&b'\n'))
        .count();
    (feeds + lone_returns) as u64
}

/// Counts Unicode scalars; an invalid byte counts as one.
fn columns(bytes: &[u8]) -> u64 {
    if bytes.is_ascii() {
        return bytes.len() as u64;
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        return text.chars().count() as u64;
    }
    let chunks = bytes.utf8_chunks();
    chunks
        .map(|chunk| (chunk.valid().chars().count() + chunk.invalid().len()) as u64)
        .sum()
}

/// Returns how many bytes at the end are the start of a character that more bytes may complete.
pub(super) fn incomplete_suffix(bytes: &[u8]) -> usize {
    let tail = bytes
        .get(bytes.len().saturating_sub(4)..)
        .unwrap_or_default();
    for length in 1..=tail.len().min(3) {
        let suffix = tail.get(tail.len() - length..).unwrap_or_default();
        if let Err(error) = std::str::from_utf8(suffix)
            && error.valid_up_to() == 0
            && error.error_len().is_none()
        {
            return length;
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pieces: &[&[u8]], expected: (u64, u64, u64)) {
        let (mut tracker, mut by_lines) = (PositionTracker::default(), PositionTracker::default());
        for piece in pieces {
            tracker.advance(piece);
            match piece.contains(&b'\r') {
                true => by_lines.advance(piece),
                false => by_lines.advance_by_lines(piece),
            }
        }
        let (offset, line, column) = expected;
        let expected = Position {
            offset,
            line,
            column,
        };
        assert_eq!(tracker.position(), expected, "{pieces:?}");
        assert_eq!(by_lines.position(), expected, "{pieces:?} by lines");
    }

    #[test]
    fn every_kind_of_line_break_is_one() {
        check(&[b"a\nb"], (3, 2, 2));
        check(&[b"a\r\nb"], (4, 2, 2));
        check(&[b"a\rb\r"], (4, 3, 1));
        check(&[b"\r\n\r\n"], (4, 3, 1));
        check(&[b"\n\r\n"], (3, 3, 1));
        check(&[b"a\r", b"\nb"], (4, 2, 2));
        check(&[b"a\r", b"\n", b"\nb"], (5, 3, 2));
        check(&[b"a\r", b"", b"\nb"], (4, 2, 2));
    }

    #[test]
    fn columns_are_scalars_and_invalid_bytes() {
        check(&["é中😀".as_bytes()], (9, 1, 4));
        check(&[b"caf\xe9x"], (5, 1, 6));
        check(&[b"\xf0\x9f\x98x"], (4, 1, 5));
        check(&[b"\xc0\xaf"], (2, 1, 3));
    }

    #[test]
    fn a_cut_character_is_held_back() {
        let held = |bytes: &[u8]| incomplete_suffix(bytes);
        assert_eq!(held(b""), 0);
        assert_eq!(held(b"abc"), 0);
        assert_eq!(held("a中".as_bytes()), 0);
        assert_eq!(held(b"a\xe4"), 1);
        assert_eq!(held(b"a\xe4\xb8"), 2);
        assert_eq!(held(b"\xf0\x9f\x98"), 3);
        assert_eq!(held(b"\xff"), 0);
        assert_eq!(held(b"\x80\x80"), 0);
    }
}
