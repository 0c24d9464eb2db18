//! Decodes UTF-8 from pieces; invalid bytes become replacement characters.

const MARK: &str = "\u{FFFD}";

/// The beginning of a character whose other bytes are still to come.
#[derive(Debug, Default, Clone)]
pub(super) struct Decoder {
    partial: Vec<u8>,
}

impl Decoder {
    /// Returns true if a character is incomplete.
    pub(super) fn is_open(&self) -> bool {
        !self.partial.is_empty()
    }

    /// Decodes bytes and passes their characters to `write`.
    pub(super) fn push(&mut self, bytes: &[u8], write: &mut dyn FnMut(&str)) {
        let rest = if self.partial.is_empty() {
            bytes
        } else {
            self.complete(bytes, write)
        };
        // Several times faster than searching for invalid bytes, which are rare.
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

    /// Forgets an incomplete character.
    pub(super) fn clear(&mut self) {
        self.partial.clear();
    }

    /// Ends an incomplete character as invalid.
    pub(super) fn end(&mut self, write: &mut dyn FnMut(&str)) {
        if !self.partial.is_empty() {
            self.partial.clear();
            write(MARK);
        }
    }

    /// Adds bytes to an incomplete character until it is complete or invalid; returns the other bytes.
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
                // The byte does not belong to the character: the bytes before it are invalid.
                Err(_) => {
                    self.end(write);
                    return rest;
                }
            }
        }
        rest
    }
}

/// Returns true if bytes are the beginning of a valid character.
fn is_incomplete(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

/// Drops the control characters U+0080 to U+009F, on which some terminals act.
fn without_c1(text: &str) -> std::borrow::Cow<'_, str> {
    let is_c1 = |character: char| ('\u{80}'..='\u{9f}').contains(&character);
    if memchr::memchr(0xC2, text.as_bytes()).is_some() && text.contains(is_c1) {
        return text.replace(is_c1, "").into();
    }
    text.into()
}
