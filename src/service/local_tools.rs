//! Interface to the tools that work on this machine.

use std::pin::Pin;
use std::time::Instant;

use tokio::sync::mpsc;

use crate::tool::FieldText;
use crate::tools::Call;
use karyi_core::error::ToolError;
use karyi_vault::redact::Redacted;

/// Future of a running call.
pub type CallFuture<'a> = Pin<Box<dyn Future<Output = Result<FieldText, ToolFailure>> + Send + 'a>>;

/// Error of a call, with the part of the result that succeeded.
#[derive(Debug, Clone)]
pub struct ToolFailure {
    /// Cause.
    pub error: ToolError,
    /// Partial result.
    pub output: Option<Box<FieldText>>,
    /// True if the call was abandoned while the tool ran: it may still take effect.
    pub is_abandoned: bool,
}

impl From<ToolError> for ToolFailure {
    fn from(error: ToolError) -> Self {
        Self {
            error,
            output: None,
            is_abandoned: false,
        }
    }
}

/// Channel for live output of a running command. Output is dropped when the channel is full.
pub type OutputSender = mpsc::Sender<Redacted>;

/// Runs the tools that work on this machine, each call isolated from all others.
pub trait LocalTools: Send + Sync {
    /// Runs a call, in the shell of its owner if it has one. Dropping the future ends everything
    /// the call started, or leaves it as a job of the owner's shell.
    fn run(
        &self,
        call: Call,
        deadline: Instant,
        owner: Option<String>,
        printed: Option<OutputSender>,
    ) -> CallFuture<'static>;

    /// Ends every shell.
    fn close(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}
