//! Calls that may run without a person's consent.

use crate::tool::Effect;
use crate::tools::Call;
use karyi_core::error::{ErrorCode, ToolError};

/// Calls that run without anybody's consent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ApprovedCalls {
    /// None.
    None,
    /// Those that only look: they read files, or ask the user.
    Looking,
    /// All.
    #[default]
    All,
}

impl ApprovedCalls {
    /// Checks that a call may run.
    ///
    /// # Errors
    /// `needs_approval`.
    pub fn check(self, call: &Call) -> Result<(), ToolError> {
        let is_approved = match (self, call.effect()) {
            (Self::All, _) | (Self::Looking, Effect::Alone) => true,
            (Self::Looking, Effect::Files(paths)) => paths.iter().all(|path| !path.is_write),
            (Self::Looking, Effect::Session) | (Self::None, _) => false,
        };
        let message = match self {
            Self::None => "nobody has permitted any call",
            Self::Looking | Self::All => "nobody has permitted calls that do more than read files",
        };
        match is_approved {
            true => Ok(()),
            false => Err(ToolError::new(ErrorCode::NeedsApproval, message)),
        }
    }
}
