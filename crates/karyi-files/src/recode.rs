//! Decodes text of another encoding to UTF-8 while it is read.

use std::io::{self, Read};

use encoding_rs::{CoderResult, Decoder, Encoding};

/// Hint for a text whose encoding is uncertain.
pub const CONVERT: &str = "convert it to UTF-8 first with the command `iconv -f gb18030 -t utf-8 OLD > NEW`, with its real \
                           encoding for gb18030";

/// Bytes read at once.
const BUFFER_BYTES: usize = 16 << 10;

/// Reader that converts the bytes of another reader to UTF-8. Undecodable bytes become U+FFFD.
pub(super) struct Utf8Reader<R> {
    below: R,
    decoder: Decoder,
    buffer: Vec<u8>,
    /// Range of the buffer that is not decoded yet.
    start: usize,
    end: usize,
    is_at_end: bool,
    /// True if the decoder has returned its last character.
    is_done: bool,
    has_errors: bool,
}

impl<R: Read> Utf8Reader<R> {
    /// Starts at the first byte of a text and skips its byte order mark.
    pub(super) fn new(below: R, encoding: &'static Encoding) -> Self {
        Self::with(below, encoding.new_decoder_with_bom_removal())
    }

    /// Starts at a character inside a text, where U+FEFF is no byte order mark.
    pub(super) fn within(below: R, encoding: &'static Encoding) -> Self {
        Self::with(below, encoding.new_decoder_without_bom_handling())
    }

    fn with(below: R, decoder: Decoder) -> Self {
        Self {
            below,
            decoder,
            buffer: vec![0; BUFFER_BYTES],
            start: 0,
            end: 0,
            is_at_end: false,
            is_done: false,
            has_errors: false,
        }
    }

    /// Tells whether anything so far was undecodable.
    pub(super) fn has_errors(&self) -> bool {
        self.has_errors
    }
}

impl<R: Read> Read for Utf8Reader<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while !self.is_done {
            if self.start == self.end && !self.is_at_end {
                self.start = 0;
                self.end = self.below.read(&mut self.buffer)?;
                self.is_at_end = self.end == 0;
            }
            let bytes = self.buffer.get(self.start..self.end).unwrap_or_default();
            let is_last = self.is_at_end;
            let (result, read, written, has_errors) =
                self.decoder.decode_to_utf8(bytes, out, is_last);
            self.start += read;
            self.has_errors |= has_errors;
            self.is_done = is_last && result == CoderResult::InputEmpty;
            if written > 0 {
                return Ok(written);
            }
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], encoding: &'static Encoding, expected: &str) {
        for size in [4, 5, 7, 64] {
            let mut reader = Utf8Reader::new(bytes, encoding);
            let mut found = Vec::new();
            let mut out = vec![0; size];
            loop {
                let count = reader.read(&mut out).unwrap();
                if count == 0 {
                    break;
                }
                found.extend_from_slice(&out[..count]);
            }
            assert_eq!(String::from_utf8(found).unwrap(), expected, "{size}");
        }
    }

    #[test]
    fn text_is_converted_to_utf_8() {
        check(b"\xFF\xFEa\0\n\0", encoding_rs::UTF_16LE, "a\n");
        check(
            b"\0a\x4E\x2D\xD8\x3D\xDE\x00",
            encoding_rs::UTF_16BE,
            "a\u{4E2D}\u{1F600}",
        );
        check(b"a\0\0\xD8", encoding_rs::UTF_16LE, "a\u{FFFD}");
        check(b"a\0b", encoding_rs::UTF_16LE, "a\u{FFFD}");
        check(b"", encoding_rs::UTF_16LE, "");
    }
}
