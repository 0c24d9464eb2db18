//! Guesses what a job waits for from the modes of the terminal, and from whether the output ends in a question.

use nix::sys::termios::{LocalFlags, Termios};

/// Guess from the terminal alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Guess {
    /// Lines are read without echo: a password.
    Password,
    /// Lines are read, and the last line of the output is unfinished: a question.
    Question,
    /// Keys are read one by one.
    Keys,
    /// No hint: any program leaves the terminal like this.
    Nothing,
}

impl Guess {
    /// Guesses from the terminal's modes; `is_line_open` is true if the output ends within a line.
    pub(super) fn from_terminal(modes: &Termios, is_line_open: bool) -> Self {
        let has = |flag| modes.local_flags.contains(flag);
        match (has(LocalFlags::ICANON), has(LocalFlags::ECHO)) {
            (false, _) => Self::Keys,
            (true, false) => Self::Password,
            (true, true) if is_line_open => Self::Question,
            (true, true) => Self::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_and_output_make_a_guess() {
        let pair = nix::pty::openpty(None, None).unwrap();
        let modes = nix::sys::termios::tcgetattr(&pair.slave).unwrap();
        let check = |flags: LocalFlags, is_line_open, expected| {
            let mut modes = modes.clone();
            modes.local_flags = flags;
            assert_eq!(Guess::from_terminal(&modes, is_line_open), expected);
        };
        let (lines, echo) = (LocalFlags::ICANON, LocalFlags::ECHO);
        check(lines | echo, false, Guess::Nothing);
        check(lines | echo, true, Guess::Question);
        check(lines, true, Guess::Password);
        check(echo, true, Guess::Keys);
        check(LocalFlags::empty(), false, Guess::Keys);
    }
}
