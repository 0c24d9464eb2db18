//! Interface to the tools that work on this machine.

use std::pin::Pin;
use std::time::Instant;

use crate::service::caller::OutputSender;
use crate::service::envelope::Failure;
use crate::tool::FieldText;
use crate::tools::Call;

/// Future of a running call.
pub type CallFuture<'a> = Pin<Box<dyn Future<Output = Result<FieldText, Failure>> + Send + 'a>>;

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
