//! Bytes to characters, whatever the pieces; what is not UTF-8 is marked.

const MARK: &str = "\u{FFFD}";

/// The beginning of a character whose other bytes have not come yet.
#[derive(Debug, Default, Clone)]
pub(super) struct Decoder {
    partial: Vec<u8>,
}

impl Decoder {
    /// Returns true if a character is open.
    pub(super) fn is_open(&self) -> bool {
        !self.partial.is_empty()
    }

    /// Reads bytes and hands on their characters.
    pub(super) fn push(&mut self, bytes: &[u8], write: &mut dyn FnMut(&str)) {
        let rest = if self.partial.is_empty() {
            bytes
        } else {
            self.complete(bytes, write)
        };
        // Several times faster than looking for broken bytes, and there are hardly ever any.
        if let Ok(text) = std::str::from_utf8(rest) {
            return write(&without_c1(text));
        }
        for chunk in rest.utf8_chunks() {
            write(&without_c1(chunk.valid()));
            let invalid = chunk.invalid();
            let is_cut = invalid.as_ptr_range().end == rest.as_ptr_range().end;
            if is_cut && is_incomplete(invalid) {
                self.partial.extend_from_slice(invalid);
            } else if !invalid.is_empty() {
                write(MARK);
            }
        }
    }

    /// Forgets an open character.
    pub(super) fn clear(&mut self) {
        self.partial.clear();
    }

    /// Ends an open character: no more of it comes.
    pub(super) fn end(&mut self, write: &mut dyn FnMut(&str)) {
        if !self.partial.is_empty() {
            self.partial.clear();
            write(MARK);
        }
    }

    /// Adds bytes to an open character until it is whole or broken; returns what is left.
    fn complete<'a>(&mut self, bytes: &'a [u8], write: &mut dyn FnMut(&str)) -> &'a [u8] {
        let mut rest = bytes;
        while let Some((first, after)) = rest.split_first() {
            self.partial.push(*first);
            match std::str::from_utf8(&self.partial) {
                Ok(character) => {
                    write(&without_c1(character));
                    self.partial.clear();
                    return after;
                }
                Err(error) if error.error_len().is_none() => rest = after,
                // The byte does not belong to the character: what came before it is broken.
                Err(_) => {
                    self.end(write);
                    return rest;
                }
            }
        }
        rest
    }
}

/// Returns true if bytes begin a character that may still become whole.
fn is_incomplete(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

/// Drops the control characters U+0080 to U+009F, which some terminals act on.
fn without_c1(text: &str) -> std::borrow::Cow<'_, str> {
    let is_c1 = |character: char| ('\u{80}'..='\u{9f}').contains(&character);
    if memchr::memchr(0xC2, text.as_bytes()).is_some() && text.contains(is_c1) {
        return text.replace(is_c1, "").into();
    }
    text.into()
}
