//! Calls of a supervisor's Workers that run: nobody is there to be asked.

use clap::ValueEnum;

use crate::approval::Mode;

/// Calls of Workers that run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum WorkerPower {
    /// All but those that a rule denies or asks about
    Full,
    /// Those that only read
    ReadOnly,
}

impl WorkerPower {
    /// Every choice.
    pub(super) const ALL: [Self; 2] = [Self::Full, Self::ReadOnly];

    /// Returns its word in settings.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::ReadOnly => "read-only",
        }
    }

    /// Returns the mode of approval.
    pub(in crate::cli) fn mode(self) -> Mode {
        match self {
            Self::Full => Mode::Full,
            Self::ReadOnly => Mode::ReadOnly,
        }
    }
}
