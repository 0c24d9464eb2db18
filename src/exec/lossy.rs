//! Bytes to text, what is not UTF-8 replaced, whole whatever the pieces.

/// Decodes bytes that come in pieces; a character cut at the end of one waits for the next.
#[derive(Debug, Default)]
pub struct Lossy {
    /// The start of a character: at most three bytes.
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
        if !std::mem::take(&mut self.open).is_empty() {
            out.push('\u{FFFD}');
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
            let Some(bad) = error.error_len() else {
                self.open.extend_from_slice(rest);
                return;
            };
            out.push('\u{FFFD}');
            bytes = rest.get(bad..).unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_split_gives_the_same_text() {
        let bytes = b"a\xC3\xA9\xE4\xB8\xAD\xF0\x9F\x98\x80 \xFF\xC3( \xE4\xB8";
        let expected = String::from_utf8_lossy(bytes);
        for size in 1..=bytes.len() {
            let (mut lossy, mut out) = (Lossy::default(), String::new());
            bytes
                .chunks(size)
                .for_each(|piece| lossy.push(piece, &mut out));
            lossy.finish(&mut out);
            assert_eq!(out, expected, "pieces of {size}");
        }
    }
}
