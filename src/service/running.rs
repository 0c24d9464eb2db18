//! Runs one call of a tool until its deadline; a panic in it ends nothing else.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll};
use std::time::Instant;

use crate::error::{ErrorCode, ToolError};
use crate::exec::cancel::Cancel;
use crate::limits;
use crate::tool::FieldText;
use crate::tool::service::Access;
use crate::tools::Call;

/// What a running call will come to.
pub type Running = Pin<Box<dyn Future<Output = Result<FieldText, Failed>> + Send>>;

/// Why a call did not do what was asked, and what it did nonetheless.
#[derive(Debug, Clone)]
pub struct Failed {
    /// Why not.
    pub error: ToolError,
    /// The part that went well, when there is one.
    pub output: Option<Box<FieldText>>,
}

impl From<ToolError> for Failed {
    fn from(error: ToolError) -> Self {
        Self {
            error,
            output: None,
        }
    }
}

/// Runs tools that work on this machine, each call apart from all others.
pub trait LocalTools: Send + Sync {
    /// Runs a call, in the shell of its owner when it has one. When what it returns is dropped,
    /// whatever it started is ended, or goes on as a job of its owner's shell.
    fn run(&self, call: Call, deadline: Instant, owner: Option<String>) -> Running;

    /// Ends every shell.
    fn close(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

/// The local tools, when there are any.
pub type Local = Option<Arc<dyn LocalTools>>;

/// Work whose panic is an answer.
struct Caught<F>(Pin<Box<F>>);

impl<F: Future> Future for Caught<F> {
    type Output = Result<F::Output, Broken>;

    fn poll(mut self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<Self::Output> {
        // Work that broke is never polled again, and what it shares with others are stores and
        // counters that lock for themselves.
        let work = AssertUnwindSafe(|| self.0.as_mut().poll(context).map(Ok));
        catch_unwind(work).unwrap_or(Poll::Ready(Err(Broken)))
    }
}

/// Work stopped by a panic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Broken;

/// Does work whose panic ends nothing else.
///
/// # Errors
/// It panicked.
pub async fn caught<T>(work: impl Future<Output = T>) -> Result<T, Broken> {
    Caught(Box::pin(work)).await
}

/// Gives a call up when it is cancelled.
#[must_use]
pub fn unless(cancel: Cancel, work: Running) -> Running {
    Box::pin(async move {
        tokio::select! {
            biased;
            result = work => result,
            () = cancel.cancelled() => Err(ToolError::new(
                ErrorCode::Cancelled,
                "the caller cancelled the call",
            )
            .into()),
        }
    })
}

/// Waits for a call until its deadline. A write that is being committed then gets a little longer,
/// so that its caller is not told that nothing was changed when something was.
///
/// # Errors
/// What the tool failed with, `timeout`, or `internal_error` after a panic.
pub async fn until(deadline: Instant, access: Access, work: Running) -> Result<FieldText, Failed> {
    let grace = match access {
        Access::Read => limits::READ_GRACE,
        Access::Write => limits::WRITE_GRACE,
    };
    let ended = tokio::time::timeout_at((deadline + grace).into(), caught(work)).await;
    let failed = |code, message| Err(ToolError::new(code, message).into());
    match ended {
        Ok(Ok(result)) => result,
        Ok(Err(Broken)) => failed(ErrorCode::Internal, "the tool stopped unexpectedly"),
        Err(_) => failed(ErrorCode::Timeout, "the time for the call was up"),
    }
}
