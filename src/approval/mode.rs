//! How much runs without a question.

/// How much runs without a question, from the strictest on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Mode {
    /// Nothing.
    Nothing,
    /// Calls that only read; all others are refused.
    ReadOnly,
    /// Calls that only read, and those that a rule allows.
    #[default]
    Ask,
    /// The same, and changes of files in the project.
    Edits,
    /// All calls but those that a rule denies or asks about.
    Full,
}

impl Mode {
    /// Modes that a person can choose.
    pub const CHOICES: [Self; 4] = [Self::ReadOnly, Self::Ask, Self::Edits, Self::Full];

    /// Returns its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Nothing => "none",
            Self::ReadOnly => "read-only",
            Self::Ask => "ask",
            Self::Edits => "edits",
            Self::Full => "full",
        }
    }

    /// Returns the mode that a person calls by a name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let mut modes = Self::CHOICES.into_iter();
        modes.find(|mode| mode.as_str() == name)
    }
}
