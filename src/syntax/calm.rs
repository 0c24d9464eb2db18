//! Bytes that decide nothing: the parser only keeps them until one comes that it waits for.
//!
//! A model's answer comes in tokens of a few bytes. In the middle of a text or a tag nothing can
//! happen before a certain byte, so there is no need to go through the whole parser for each.

use super::chars::is_space;
use crate::limits::MAX_CALM_BYTES;

/// Longest piece that is looked at byte by byte; longer ones are worth a run of the parser.
const MAX_PIECE_BYTES: usize = 64;

/// What the parser waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Calm {
    /// Any byte may matter.
    Never,
    /// This byte.
    Until(u8),
    /// `<` or `>`.
    UntilAngle,
    /// `<` or the end of the line.
    UntilLine,
    /// Anything but white space.
    UntilText,
}

impl Calm {
    /// Tells whether none of `bytes` matters yet.
    pub(super) fn holds(self, bytes: &[u8]) -> bool {
        bytes.len() <= MAX_PIECE_BYTES
            && match self {
                Self::Never => false,
                Self::Until(byte) => !bytes.contains(&byte),
                Self::UntilAngle => bytes.iter().all(|b| !matches!(b, b'<' | b'>')),
                Self::UntilLine => bytes.iter().all(|b| !matches!(b, b'<' | b'\n' | b'\r')),
                Self::UntilText => bytes.iter().all(|b| is_space(*b)),
            }
    }
}

/// What the parser waits for, and for how long.
#[derive(Debug)]
pub(super) struct Waiting {
    calm: Calm,
    room: usize,
}

impl Waiting {
    /// Starts to wait.
    pub(super) fn new(calm: Calm) -> Self {
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

    fn check(calm: Calm, quiet: &str, loud: &str) {
        assert!(calm.holds(quiet.as_bytes()), "{quiet:?}");
        for byte in loud.bytes() {
            assert!(!calm.holds(&[b' ', byte]), "{:?}", char::from(byte));
        }
    }

    #[test]
    fn only_bytes_that_matter_wake_the_parser() {
        check(Calm::Until(b'<'), "a > b & c\n", "<");
        check(Calm::UntilAngle, "a='b' /\n", "<>");
        check(Calm::UntilLine, "a > b `c` {", "<\n\r");
        check(Calm::UntilText, " \t\r\n", "<a\"\0");
        assert!(!Calm::Never.holds(b" "));
    }

    #[test]
    fn it_wakes_after_a_while() {
        let mut waiting = Waiting::new(Calm::Until(b'<'));
        let taken = (0..10_000).take_while(|_| waiting.takes(b"ab")).count();
        assert_eq!(taken, MAX_CALM_BYTES / 2);
    }
}
