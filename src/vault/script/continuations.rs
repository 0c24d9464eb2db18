//! Passes line continuations, a backslash and a newline, which are nothing at all to a shell.
//!
//! A word, a name or a keyword goes on across them. Inside of what the reader takes for one sign,
//! such as `$(` or `<<`, nobody writes one; there the script counts as unreadable.

use super::{Reader, Step};

const CONTINUATION: &[u8] = b"\\\n";

impl Reader<'_> {
    /// Whether a line continuation stands at an offset.
    pub(super) fn continues_at(&self, offset: usize) -> bool {
        let rest = self.bytes.get(offset..self.limit).unwrap_or_default();
        rest.starts_with(CONTINUATION)
    }

    /// Returns the bytes from an offset on, as a shell reads them.
    pub(super) fn joined(&self, mut offset: usize) -> impl Iterator<Item = u8> {
        std::iter::from_fn(move || {
            while self.continues_at(offset) {
                offset += CONTINUATION.len();
            }
            let byte = self.bytes.get(offset).filter(|_| offset < self.limit)?;
            offset += 1;
            Some(*byte)
        })
    }

    /// Returns how many bytes from an offset on are blanks and line continuations.
    pub(super) fn blanks_at(&self, start: usize) -> usize {
        let mut offset = start;
        loop {
            let byte = self.bytes.get(offset).filter(|_| offset < self.limit);
            offset += match byte {
                Some(b' ' | b'\t') => 1,
                _ if self.continues_at(offset) => CONTINUATION.len(),
                _ => return offset - start,
            };
        }
    }

    /// Passes line continuations between and inside of words.
    pub(super) fn continuation(&mut self) -> Step {
        let before = self.at.checked_sub(1).and_then(|at| self.bytes.get(at));
        let before = before.copied().unwrap_or(b' ');
        while self.continues_at(self.at) && !self.hole_at(self.at) {
            self.at += CONTINUATION.len();
        }
        let after = self.peek(0).unwrap_or(b' ');
        if is_sign(before, after) || self.splits_keyword(after) {
            return self.unreadable(SPLIT);
        }
        Ok(())
    }

    /// Refuses a line continuation here, where a sign or a name may go on after it.
    pub(super) fn no_continuation(&self) -> Step {
        if self.continues_at(self.at) {
            return self.unreadable(SPLIT);
        }
        Ok(())
    }

    /// Refuses a line continuation that is followed by a part of a name or by an index.
    pub(super) fn no_continued_name(&self, offset: usize) -> Step {
        let goes_on = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'[' | b'(');
        if self.continues_at(offset) && self.joined(offset).next().is_some_and(goes_on) {
            return self.unreadable(SPLIT);
        }
        Ok(())
    }

    /// Whether `always` of zsh, which is looked for as a whole, may go on with the byte.
    fn splits_keyword(&self, after: u8) -> bool {
        let word = self.frame.word.as_ref();
        let is_start = |text: &str| !text.is_empty() && "always".starts_with(text);
        self.frame.words.is_empty()
            && after.is_ascii_alphabetic()
            && word.is_some_and(|word| is_start(word.text()))
    }
}

const SPLIT: &str = "a line continuation stands inside of a sign or a name";

/// Whether two bytes may be one sign.
fn is_sign(before: u8, after: u8) -> bool {
    let operators = b"<>&|;()";
    operators.contains(&before)
        && (operators.contains(&after) || matches!(after, b'#' | b'-' | b'0'..=b'9'))
}
