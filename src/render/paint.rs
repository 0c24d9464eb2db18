//! Colours text, and makes it safe for a terminal.

pub use karyi_screen::safe_text::{safe, safe_in_colour, safe_json, safe_line, safe_question};

/// Use of colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// ANSI colours.
    On,
    /// Plain text.
    Off,
}

/// Meaning of a stretch of text, which decides its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ink {
    /// A heading.
    Heading,
    /// Something good.
    Good,
    /// Something bad.
    Bad,
    /// Something doubtful.
    Warning,
    /// Something less important.
    Faint,
}

impl Colour {
    /// Returns `text` in the colour of `ink`.
    #[must_use]
    pub fn paint(self, ink: Ink, text: &str) -> String {
        let code = match ink {
            Ink::Heading => "1;36",
            Ink::Good => "32",
            Ink::Bad => "1;31",
            Ink::Warning => "33",
            Ink::Faint => "2",
        };
        match self {
            Self::On => format!("\x1b[{code}m{text}\x1b[0m"),
            Self::Off => text.to_owned(),
        }
    }
}
