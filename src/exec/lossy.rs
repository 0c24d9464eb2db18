//! Bytes to text, what is not UTF-8 replaced, whole whatever the pieces.
//!
//! A character that line ends divide, as `fold` leaves it, is whole before them: nobody could read its parts, nor see
//! that they belong to a value.

/// Most bytes of line ends that divide one character: `fold -w 1` behind each of its bytes, as a terminal prints them.
const MOST: usize = 6;

/// Decodes bytes that come in pieces; a character cut at the end of one waits for the next.
#[derive(Debug, Default)]
pub struct Lossy {
    /// The start of a character, at most three bytes, and the line ends in and behind it.
    open: Vec<u8>,
}

impl Lossy {
    /// Appends the text of the next piece to `out`.
    pub fn push(&mut self, bytes: &[u8], out: &mut String) {
        if self.open.is_empty() {
            self.decode(bytes, out);
        } else {
            let mut joined = std::mem::take(&mut self.open);
            joined.extend_from_slice(bytes);
            self.decode(&joined, out);
        }
    }

    /// Appends what is left at the end.
    pub fn finish(&mut self, out: &mut String) {
        out.push_str(&String::from_utf8_lossy(&std::mem::take(&mut self.open)));
    }

    /// Appends what is left where nobody waits for more: the line ends behind what may be the start of a character would be
    /// missed. Without any it waits on.
    pub fn cut(&mut self, out: &mut String) {
        if self.open.iter().any(|byte| is_line_end(*byte)) {
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
            match Divided::of(rest) {
                Divided::Open => return self.open.extend_from_slice(rest),
                Divided::Whole(character, between) => {
                    let (divided, after) = rest.split_at(character.len_utf8() + between);
                    out.push(character);
                    let between = divided.iter().filter(|byte| is_line_end(**byte));
                    out.extend(between.copied().map(char::from));
                    bytes = after;
                }
                Divided::Not => {
                    out.push('\u{FFFD}');
                    let bad = error.error_len().unwrap_or(rest.len());
                    bytes = rest.get(bad..).unwrap_or_default();
                }
            }
        }
    }
}

/// What bytes begin with that are no whole character.
enum Divided {
    /// What may be one when more comes.
    Open,
    /// One, and how many bytes of line ends stand between its own.
    Whole(char, usize),
    /// None.
    Not,
}

impl Divided {
    fn of(bytes: &[u8]) -> Self {
        // Nothing is allocated: what is no text at all comes here byte by byte.
        let (mut character, mut length) = ([0; 4], 0);
        for (at, byte) in bytes.iter().enumerate() {
            if is_line_end(*byte) && length > 0 && at - length < MOST {
                continue;
            }
            let Some(next) = character.get_mut(length) else {
                return Self::Not;
            };
            *next = *byte;
            length += 1;
            match std::str::from_utf8(character.get(..length).unwrap_or_default()) {
                Ok(text) => {
                    let whole = text.chars().next();
                    return whole.map_or(Self::Not, |whole| Self::Whole(whole, at + 1 - length));
                }
                Err(error) if error.error_len().is_some() => return Self::Not,
                Err(_) => {}
            }
        }
        Self::Open
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
            let (mut lossy, mut out) = (Lossy::default(), String::new());
            bytes
                .chunks(size)
                .for_each(|piece| lossy.push(piece, &mut out));
            lossy.finish(&mut out);
            assert_eq!(out, expected, "pieces of {size}");
        }
    }

    #[test]
    fn a_line_end_is_not_missed_where_nobody_waits() {
        let (mut lossy, mut out) = (Lossy::default(), String::new());
        lossy.push(b"caf\xE9\r\n", &mut out);
        assert_eq!(out, "caf");
        lossy.cut(&mut out);
        assert_eq!(out, "caf\u{FFFD}\r\n");
        lossy.push(b"\xE4\xB8", &mut out);
        lossy.cut(&mut out);
        lossy.push(b"\xAD", &mut out);
        assert_eq!(out, "caf\u{FFFD}\r\n\u{4e2d}");
    }

    #[test]
    fn a_character_that_line_ends_divide_is_whole_before_them() {
        check(b"a\xC3\n\xA9b", "a\u{e9}\nb");
        check(
            b"\xE4\xB8\r\n\xADc\xE4\n\xB8\xAD",
            "\u{4e2d}\r\nc\u{4e2d}\n",
        );
        check(b"\xF0\r\n\x9F\r\n\x98\r\n\x80\n", "\u{1f600}\r\n\r\n\r\n\n");
        // These are none.
        check(b"caf\xE9\nau lait", "caf\u{FFFD}\nau lait");
        check(b"caf\xE9\n", "caf\u{FFFD}\n");
        check(
            b"\n\xA9\xE4 \xB8\xAD",
            "\n\u{FFFD}\u{FFFD} \u{FFFD}\u{FFFD}",
        );
        check(b"\xC3\n\n\n\n\n\n\n\xA9", "\u{FFFD}\n\n\n\n\n\n\n\u{FFFD}");
    }
}
