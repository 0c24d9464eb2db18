//! State of the visits of the user in the shell, which outlives each of them.

use crate::cli::assistant::person_output::PrivateModes;
use karyi_screen::input_box::InputBox;

/// Visits of the user in the shell.
#[derive(Default)]
pub(super) struct ShellVisits {
    /// True when the next one is to begin.
    pub(super) is_wanted: bool,
    /// True when it ends with the program in front.
    pub(super) is_for_program: bool,
    /// True once the user was told that a program waits for a password.
    pub(super) is_warned: bool,
    /// The line at the prompt; its history lives as long as the program.
    pub(super) input: InputBox,
    /// Modes of the terminal that the program which goes on had turned on.
    pub(super) modes: PrivateModes,
    /// Exit status of the last command, unless it is 0.
    pub(super) exit: Option<i32>,
    /// True when something was typed.
    pub(super) is_used: bool,
}
