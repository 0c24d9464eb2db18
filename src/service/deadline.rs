//! Runs one call of a tool until its deadline; a panic in it ends nothing else.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{self, Poll};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::time::error::Elapsed;

use crate::exec::cancel::Cancel;
use crate::tool::FieldText;
use crate::tool::service::Access;
use crate::tools::Call;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;
use karyi_vault::redact::Redacted;

/// What a running call will come to.
pub type CallFuture<'a> = Pin<Box<dyn Future<Output = Result<FieldText, ToolFailure>> + Send + 'a>>;

/// Why a call did not do what was asked, and what it did nonetheless.
#[derive(Debug, Clone)]
pub struct ToolFailure {
    /// Why not.
    pub error: ToolError,
    /// The part that went well, when there is one.
    pub output: Option<Box<FieldText>>,
    /// Whether the tool did not say so itself: what it began may yet come to its end.
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

/// Where what a running command prints goes, for who follows it. Pieces nobody takes are lost.
pub type OutputSender = mpsc::Sender<Redacted>;

/// Runs tools that work on this machine, each call apart from all others.
pub trait LocalTools: Send + Sync {
    /// Runs a call, in the shell of its owner when it has one. When what it returns is dropped,
    /// whatever it started is ended, or goes on as a job of its owner's shell.
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

/// Work stopped by a panic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PanicError;

/// Does work whose panic ends nothing else. It stays where it is: it may be large, and to be taken
/// over it would have to be here as well.
///
/// # Errors
/// It panicked.
pub async fn catch_panic<T>(
    mut work: Pin<&mut (impl Future<Output = T> + ?Sized)>,
) -> Result<T, PanicError> {
    poll_fn(|context| {
        // Work that broke is never polled again, and what it shares with others are stores and
        // counters that lock for themselves.
        let poll = AssertUnwindSafe(|| work.as_mut().poll(context).map(Ok));
        catch_unwind(poll).unwrap_or(Poll::Ready(Err(PanicError)))
    })
    .await
}

/// Waits for work until a deadline. Work that is done at once needs no clock, which is large.
///
/// # Errors
/// The time was up.
pub async fn with_deadline<T>(
    deadline: Instant,
    mut work: Pin<&mut impl Future<Output = T>>,
) -> Result<T, Elapsed> {
    match poll_fn(|context| Poll::Ready(work.as_mut().poll(context))).await {
        Poll::Ready(value) => Ok(value),
        Poll::Pending => Box::pin(tokio::time::timeout_at(deadline.into(), work)).await,
    }
}

/// Waits for work so long. What is done at once is not timed at all.
///
/// # Errors
/// The time was up.
pub async fn with_timeout<T>(
    time: Duration,
    mut work: Pin<&mut impl Future<Output = T>>,
) -> Result<T, Elapsed> {
    match poll_fn(|context| Poll::Ready(work.as_mut().poll(context))).await {
        Poll::Ready(value) => Ok(value),
        Poll::Pending => Box::pin(tokio::time::timeout(time, work)).await,
    }
}

/// Work that is done to its end on a task of its own when nobody waits for it any more.
pub struct DetachingFuture<T: Send + 'static> {
    work: Option<Pin<Box<dyn Future<Output = T> + Send>>>,
    is_detached: Arc<AtomicBool>,
}

impl<T: Send + 'static> DetachingFuture<T> {
    /// Makes it of work that is done by whoever waits for it, as long as somebody does; `is_detached` is
    /// set when nobody does.
    pub fn new(
        work: impl Future<Output = T> + Send + 'static,
        is_detached: Arc<AtomicBool>,
    ) -> Self {
        let work: Pin<Box<dyn Future<Output = T> + Send>> = Box::pin(work);
        Self {
            work: Some(work),
            is_detached,
        }
    }
}

impl<T: Send + 'static> Future for DetachingFuture<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<T> {
        // Work that has ended or broke is dropped and never waited for again.
        let Some(mut work) = self.work.take() else {
            return Poll::Pending;
        };
        let polled = work.as_mut().poll(context);
        if polled.is_pending() {
            self.work = Some(work);
        }
        polled
    }
}

impl<T: Send + 'static> Drop for DetachingFuture<T> {
    fn drop(&mut self) {
        let Some(work) = self.work.take() else { return };
        self.is_detached.store(true, Ordering::Relaxed);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(work);
        }
    }
}

/// Gives a call up when it is cancelled.
#[must_use]
pub fn with_cancel(cancel: Cancel, work: CallFuture<'_>) -> CallFuture<'_> {
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
pub async fn run_until(
    deadline: Instant,
    access: Access,
    mut work: CallFuture<'_>,
) -> Result<FieldText, ToolFailure> {
    let grace = match access {
        Access::Read => limits::READ_GRACE,
        Access::Write => limits::WRITE_GRACE,
    };
    let ended = with_deadline(deadline + grace, pin!(catch_panic(work.as_mut()))).await;
    let failed = |code, message| {
        Err(ToolFailure {
            is_abandoned: true,
            ..ToolError::new(code, message).into()
        })
    };
    match ended {
        Ok(Ok(result)) => result,
        Ok(Err(PanicError)) => failed(ErrorCode::Internal, "the tool stopped unexpectedly"),
        Err(_) => failed(ErrorCode::Timeout, "the time for the call was up"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_that_nobody_waits_for_is_done_to_its_end() {
        let is_detached = Arc::new(AtomicBool::new(false));
        let (go, gone) = tokio::sync::oneshot::channel::<()>();
        let (done, end) = tokio::sync::oneshot::channel();
        let flag = Arc::clone(&is_detached);
        let work = async move {
            gone.await.unwrap();
            done.send(flag.load(Ordering::Relaxed)).unwrap();
        };
        let mut work = Box::pin(DetachingFuture::new(work, Arc::clone(&is_detached)));
        let begun = poll_fn(|context| Poll::Ready(work.as_mut().poll(context))).await;
        assert!(begun.is_pending());
        drop(work);
        go.send(()).unwrap();
        assert_eq!(end.await, Ok(true));
    }

    #[tokio::test]
    async fn work_that_has_ended_is_not_left() {
        let is_detached = Arc::new(AtomicBool::new(false));
        let mut work = Box::pin(DetachingFuture::new(async { 7 }, Arc::clone(&is_detached)));
        assert_eq!(work.as_mut().await, 7);
        drop(work);
        assert!(!is_detached.load(Ordering::Relaxed));
    }

    #[tokio::test]
    async fn work_that_broke_is_not_done_again() {
        let is_detached = Arc::new(AtomicBool::new(false));
        let broken = async {
            tokio::task::yield_now().await;
            panic!("a bug");
        };
        let mut work = Box::pin(DetachingFuture::new(broken, Arc::clone(&is_detached)));
        assert_eq!(catch_panic::<()>(work.as_mut()).await, Err(PanicError));
        drop(work);
        assert!(!is_detached.load(Ordering::Relaxed));
    }

    #[tokio::test]
    async fn work_is_waited_for_until_its_deadline() {
        let later = Instant::now() + Duration::from_secs(600);
        assert_eq!(with_deadline(later, pin!(async { 7 })).await.ok(), Some(7));
        // What is done at once needs no time.
        assert_eq!(
            with_deadline(Instant::now(), pin!(async { 7 })).await.ok(),
            Some(7)
        );
        let yielding = async {
            tokio::task::yield_now().await;
            7
        };
        assert_eq!(with_deadline(later, pin!(yielding)).await.ok(), Some(7));
        let endless = std::future::pending::<()>();
        assert!(with_deadline(Instant::now(), pin!(endless)).await.is_err());
    }

    #[tokio::test]
    async fn a_panic_is_an_answer() {
        let broken = async {
            tokio::task::yield_now().await;
            panic!("a bug");
        };
        assert_eq!(catch_panic::<()>(pin!(broken)).await, Err(PanicError));
        assert_eq!(catch_panic(pin!(async { 7 })).await, Ok(7));
    }
}
