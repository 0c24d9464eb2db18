//! Runs futures with a deadline, cancellation and panic isolation.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{self, Poll};
use std::time::{Duration, Instant};

use tokio::time::error::Elapsed;

use crate::exec::cancel::Cancel;
use crate::service::local_tools::{CallFuture, ToolFailure};
use crate::tool::FieldText;
use crate::tool::service::Access;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;

/// The future panicked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PanicError;

/// Polls a future and turns a panic into an error. The future is pinned by the caller, so that a
/// large one is not moved.
///
/// # Errors
/// The future panicked.
pub async fn catch_panic<T>(
    mut work: Pin<&mut (impl Future<Output = T> + ?Sized)>,
) -> Result<T, PanicError> {
    poll_fn(|context| {
        // A future that panicked is never polled again, and it shares only stores and counters that
        // lock for themselves.
        let poll = AssertUnwindSafe(|| work.as_mut().poll(context).map(Ok));
        catch_unwind(poll).unwrap_or(Poll::Ready(Err(PanicError)))
    })
    .await
}

/// Awaits a future until a deadline. The timer, which is large, is created only if the first poll
/// is pending.
///
/// # Errors
/// The deadline passed.
pub async fn with_deadline<T>(
    deadline: Instant,
    mut work: Pin<&mut impl Future<Output = T>>,
) -> Result<T, Elapsed> {
    match poll_fn(|context| Poll::Ready(work.as_mut().poll(context))).await {
        Poll::Ready(value) => Ok(value),
        Poll::Pending => Box::pin(tokio::time::timeout_at(deadline.into(), work)).await,
    }
}

/// Awaits a future for this long. The timer is created only if the first poll is pending.
///
/// # Errors
/// The time is up.
pub async fn with_timeout<T>(
    time: Duration,
    mut work: Pin<&mut impl Future<Output = T>>,
) -> Result<T, Elapsed> {
    match poll_fn(|context| Poll::Ready(work.as_mut().poll(context))).await {
        Poll::Ready(value) => Ok(value),
        Poll::Pending => Box::pin(tokio::time::timeout(time, work)).await,
    }
}

/// Future that continues on a task of its own when it is dropped before its end.
pub struct DetachingFuture<T: Send + 'static> {
    work: Option<Pin<Box<dyn Future<Output = T> + Send>>>,
    is_detached: Arc<AtomicBool>,
}

impl<T: Send + 'static> DetachingFuture<T> {
    /// Wraps a future; `is_detached` is set when it continues on its own task.
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
        // A future that has ended or panicked is dropped and never polled again.
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

/// Ends a call with an error when it is cancelled.
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

/// Runs a call until its deadline. A write gets some extra time to commit, so that its caller does
/// not read a timeout for a change that took effect.
///
/// # Errors
/// The tool's own error, `timeout`, or `internal_error` after a panic.
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
    async fn a_dropped_future_continues_on_a_task() {
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
    async fn a_completed_future_is_not_detached() {
        let is_detached = Arc::new(AtomicBool::new(false));
        let mut work = Box::pin(DetachingFuture::new(async { 7 }, Arc::clone(&is_detached)));
        assert_eq!(work.as_mut().await, 7);
        drop(work);
        assert!(!is_detached.load(Ordering::Relaxed));
    }

    #[tokio::test]
    async fn a_panicked_future_is_not_detached() {
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
    async fn a_future_is_awaited_until_its_deadline() {
        let later = Instant::now() + Duration::from_secs(600);
        assert_eq!(with_deadline(later, pin!(async { 7 })).await.ok(), Some(7));
        // A future that is ready at once needs no time.
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
    async fn a_panic_becomes_an_error() {
        let broken = async {
            tokio::task::yield_now().await;
            panic!("a bug");
        };
        assert_eq!(catch_panic::<()>(pin!(broken)).await, Err(PanicError));
        assert_eq!(catch_panic(pin!(async { 7 })).await, Ok(7));
    }
}
