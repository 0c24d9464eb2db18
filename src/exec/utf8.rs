//! Decodes UTF-8 incrementally and replaces invalid bytes.
//!
//! A character split by line ends, as `fold` splits it, is joined and moved before them. Otherwise a
//! split secret could not be recognised.

/// Most line-end bytes within one character: `fold -w 1` ends a line after each byte, and terminals print CR LF.
const MAX_LINE_END_BYTES: usize = 6;

/// Incremental decoder; a character cut at the end of a chunk waits for the next one.
#[derive(Debug, Default)]
pub struct Utf8Decoder {
    /// The start of a character, at most three bytes, with the line ends in and after it.
    pending: Vec<u8>,
}

impl Utf8Decoder {
    /// Appends the text of the next chunk to `out`.
    pub fn push(&mut self, bytes: &[u8], out: &mut String) {
        if self.pending.is_empty() {
            self.decode(bytes, out);
        } else {
            let mut joined = std::mem::take(&mut self.pending);
            joined.extend_from_slice(bytes);
            self.decode(&joined, out);
        }
    }

    /// Appends the pending bytes at the end of the input.
    pub fn finish(&mut self, out: &mut String) {
        out.push_str(&String::from_utf8_lossy(&std::mem::take(&mut self.pending)));
    }

    /// Appends the pending bytes if they contain a line end, which would be missing on the screen; otherwise
    /// keeps waiting.
    pub fn flush_line_ends(&mut self, out: &mut String) {
        if self.pending.iter().any(|byte| is_line_end(*byte)) {
            self.finish(out);
        }
    }

    fn decode(&mut self, mut bytes: &[u8], out: &mut String) {
        loop {
            let error = match std::str::from_utf8(bytes) {
                Ok(text) => return out.push_str(text),
                Err(error) => error,
            };
            let (good, rest) = bytes.split_at(error.valid_up_to());
            out.push_str(&String::from_utf8_lossy(good));
            match SplitChar::parse(rest) {
                SplitChar::Incomplete => return self.pending.extend_from_slice(rest),
                SplitChar::Complete(character, between) => {
                    let (divided, after) = rest.split_at(character.len_utf8() + between);
                    out.push(character);
                    let between = divided.iter().filter(|byte| is_line_end(**byte));
                    out.extend(between.copied().map(char::from));
                    bytes = after;
                }
                SplitChar::Invalid => {
                    out.push('\u{FFFD}');
                    let bad = error.error_len().unwrap_or(rest.len());
                    bytes = rest.get(bad..).unwrap_or_default();
                }
            }
        }
    }
}

/// A character at the start of some bytes, possibly split by line ends.
enum SplitChar {
    /// More bytes may complete it.
    Incomplete,
    /// A character, and the number of line-end bytes within it.
    Complete(char, usize),
    /// Not a character.
    Invalid,
}

impl SplitChar {
    fn parse(bytes: &[u8]) -> Self {
        // No allocation: binary data comes here byte by byte.
        let (mut character, mut length) = ([0; 4], 0);
        for (at, byte) in bytes.iter().enumerate() {
            if is_line_end(*byte) && length > 0 && at - length < MAX_LINE_END_BYTES {
                continue;
            }
            let Some(next) = character.get_mut(length) else {
                return Self::Invalid;
            };
            *next = *byte;
            length += 1;
            match std::str::from_utf8(character.get(..length).unwrap_or_default()) {
                Ok(text) => {
                    let whole = text.chars().next();
                    return whole.map_or(Self::Invalid, |whole| {
                        Self::Complete(whole, at + 1 - length)
                    });
                }
                Err(error) if error.error_len().is_some() => return Self::Invalid,
                Err(_) => {}
            }
        }
        Self::Incomplete
    }
}

fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\r' | b'\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_split_gives_the_same_text() {
        let bytes = b"a\xC3\xA9\xE4\xB8\xAD\xF0\x9F\x98\x80 \xFF\xC3( \xE4\xB8";
        check(bytes, &String::from_utf8_lossy(bytes));
    }

    fn check(bytes: &[u8], expected: &str) {
        for size in 1..=bytes.len() {
            let (mut decoder, mut out) = (Utf8Decoder::default(), String::new());
            bytes
                .chunks(size)
                .for_each(|piece| decoder.push(piece, &mut out));
            decoder.finish(&mut out);
            assert_eq!(out, expected, "pieces of {size}");
        }
    }

    #[test]
    fn a_line_end_is_flushed_when_output_pauses() {
        let (mut decoder, mut out) = (Utf8Decoder::default(), String::new());
        decoder.push(b"caf\xE9\r\n", &mut out);
        assert_eq!(out, "caf");
        decoder.flush_line_ends(&mut out);
        assert_eq!(out, "caf\u{FFFD}\r\n");
        decoder.push(b"\xE4\xB8", &mut out);
        decoder.flush_line_ends(&mut out);
        decoder.push(b"\xAD", &mut out);
        assert_eq!(out, "caf\u{FFFD}\r\n\u{4e2d}");
    }

    #[test]
    fn a_character_split_by_line_ends_is_joined_before_them() {
        check(b"a\xC3\n\xA9b", "a\u{e9}\nb");
        check(
            b"\xE4\xB8\r\n\xADc\xE4\n\xB8\xAD",
            "\u{4e2d}\r\nc\u{4e2d}\n",
        );
        check(b"\xF0\r\n\x9F\r\n\x98\r\n\x80\n", "\u{1f600}\r\n\r\n\r\n\n");
        // None of these is a split character.
        check(b"caf\xE9\nau lait", "caf\u{FFFD}\nau lait");
        check(b"caf\xE9\n", "caf\u{FFFD}\n");
        check(
            b"\n\xA9\xE4 \xB8\xAD",
            "\n\u{FFFD}\u{FFFD} \u{FFFD}\u{FFFD}",
        );
        check(b"\xC3\n\n\n\n\n\n\n\xA9", "\u{FFFD}\n\n\n\n\n\n\n\u{FFFD}");
    }
}
