//! Sets of bytes at which a waiting parser must run again.
//!
//! A model's output arrives in tokens of a few bytes. Inside a text or a tag nothing can happen before a certain byte,
//! so other bytes are only buffered.

use karyi_core::limits::MAX_BUFFERED_BYTES;

/// Longest piece that is checked byte by byte; for longer ones a parser run is cheaper.
const MAX_PIECE_BYTES: usize = 64;

/// Set of stop bytes: true for each byte that may matter.
#[derive(Debug)]
pub(super) struct StopBytes([bool; 256]);

impl StopBytes {
    /// Any byte may matter.
    pub(super) const ANY: &'static Self = &Self([true; 256]);
    /// `<`.
    pub(super) const LESS: &'static Self = &Self::until(b"<");
    /// `>`.
    pub(super) const GREATER: &'static Self = &Self::until(b">");
    /// `<` or `>`.
    pub(super) const ANGLE: &'static Self = &Self::until(b"<>");
    /// What may matter inside a line of prose.
    pub(super) const PROSE: &'static Self = &Self::until(b"<[`\n\r");
    /// What may matter in a draft.
    pub(super) const DRAFT: &'static Self = &Self::until(b"<[-");
    /// Anything but white space.
    pub(super) const NON_SPACE: &'static Self = &Self::while_in(b" \t\n\r");

    const fn until(bytes: &[u8]) -> Self {
        Self::filled(bytes, false)
    }

    const fn while_in(bytes: &[u8]) -> Self {
        Self::filled(bytes, true)
    }

    /// Makes the table in which `bytes` differ from all others.
    const fn filled(bytes: &[u8], others: bool) -> Self {
        let mut table = [others; 256];
        let mut at = 0;
        while at < bytes.len() {
            table[bytes[at] as usize] = !others;
            at += 1;
        }
        Self(table)
    }

    /// Finds the first stop byte.
    pub(super) fn find(&self, bytes: &[u8]) -> Option<usize> {
        bytes.iter().position(|byte| self.0[usize::from(*byte)])
    }

    /// Returns true when none of `bytes` is a stop byte.
    fn holds(&self, bytes: &[u8]) -> bool {
        let matters = |byte: &u8| self.0[usize::from(*byte)];
        bytes.len() <= MAX_PIECE_BYTES && !bytes.iter().any(matters)
    }
}

/// Stop bytes, and the number of bytes that may still be buffered.
#[derive(Debug)]
pub(super) struct BufferWindow {
    stop: &'static StopBytes,
    room: usize,
}

impl BufferWindow {
    /// Starts to wait.
    pub(super) fn new(stop: &'static StopBytes) -> Self {
        Self {
            stop,
            room: MAX_BUFFERED_BYTES,
        }
    }

    /// Returns true when `bytes` can be buffered without a parser run.
    pub(super) fn accepts(&mut self, bytes: &[u8]) -> bool {
        if self.room < bytes.len() || !self.stop.holds(bytes) {
            return false;
        }
        self.room -= bytes.len();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(stop: &StopBytes, quiet: &str, loud: &str) {
        assert!(stop.holds(quiet.as_bytes()), "{quiet:?}");
        for byte in loud.bytes() {
            assert!(!stop.holds(&[b' ', byte]), "{:?}", char::from(byte));
        }
    }

    #[test]
    fn only_bytes_that_matter_wake_the_parser() {
        check(StopBytes::LESS, "a > b & c\n", "<");
        check(StopBytes::ANGLE, "a='b' /\n", "<>");
        check(StopBytes::PROSE, "a > b c {", "<[`\n\r");
        check(StopBytes::NON_SPACE, " \t\r\n", "<a\"\0");
        assert!(!StopBytes::ANY.holds(b" "));
    }

    #[test]
    fn it_wakes_after_a_while() {
        let mut waiting = BufferWindow::new(StopBytes::LESS);
        let taken = (0..10_000).take_while(|_| waiting.accepts(b"ab")).count();
        assert_eq!(taken, MAX_BUFFERED_BYTES / 2);
    }
}
