//! Bytes that decide nothing: the parser only keeps them until one comes that it waits for.
//!
//! A model's answer comes in tokens of a few bytes. In the middle of a text or a tag nothing can
//! happen before a certain byte, so there is no need to go through the whole parser for each.

use karyi_core::limits::MAX_CALM_BYTES;

/// Longest piece that is looked at byte by byte; longer ones are worth a run of the parser.
const MAX_PIECE_BYTES: usize = 64;

/// The bytes that the parser waits for: true for each that may matter.
#[derive(Debug)]
pub(super) struct Calm([bool; 256]);

impl Calm {
    /// Any byte may matter.
    pub(super) const NEVER: &'static Self = &Self([true; 256]);
    /// `<`.
    pub(super) const UNTIL_LESS: &'static Self = &Self::until(b"<");
    /// `>`.
    pub(super) const UNTIL_GREATER: &'static Self = &Self::until(b">");
    /// `<` or `>`.
    pub(super) const UNTIL_ANGLE: &'static Self = &Self::until(b"<>");
    /// `<` or the end of the line.
    pub(super) const UNTIL_LINE: &'static Self = &Self::until(b"<\n\r");
    /// Anything but white space.
    pub(super) const UNTIL_TEXT: &'static Self = &Self::while_in(b" \t\n\r");

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

    /// Tells whether none of `bytes` matters yet.
    fn holds(&self, bytes: &[u8]) -> bool {
        let matters = |byte: &u8| self.0[usize::from(*byte)];
        bytes.len() <= MAX_PIECE_BYTES && !bytes.iter().any(matters)
    }
}

/// What the parser waits for, and for how long.
#[derive(Debug)]
pub(super) struct Waiting {
    calm: &'static Calm,
    room: usize,
}

impl Waiting {
    /// Starts to wait.
    pub(super) fn new(calm: &'static Calm) -> Self {
        Self {
            calm,
            room: MAX_CALM_BYTES,
        }
    }

    /// Tells whether `bytes` need not be looked at now.
    pub(super) fn takes(&mut self, bytes: &[u8]) -> bool {
        if self.room < bytes.len() || !self.calm.holds(bytes) {
            return false;
        }
        self.room -= bytes.len();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(calm: &Calm, quiet: &str, loud: &str) {
        assert!(calm.holds(quiet.as_bytes()), "{quiet:?}");
        for byte in loud.bytes() {
            assert!(!calm.holds(&[b' ', byte]), "{:?}", char::from(byte));
        }
    }

    #[test]
    fn only_bytes_that_matter_wake_the_parser() {
        check(Calm::UNTIL_LESS, "a > b & c\n", "<");
        check(Calm::UNTIL_ANGLE, "a='b' /\n", "<>");
        check(Calm::UNTIL_LINE, "a > b `c` {", "<\n\r");
        check(Calm::UNTIL_TEXT, " \t\r\n", "<a\"\0");
        assert!(!Calm::NEVER.holds(b" "));
    }

    #[test]
    fn it_wakes_after_a_while() {
        let mut waiting = Waiting::new(Calm::UNTIL_LESS);
        let taken = (0..10_000).take_while(|_| waiting.takes(b"ab")).count();
        assert_eq!(taken, MAX_CALM_BYTES / 2);
    }
}
