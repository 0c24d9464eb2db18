//! Notice for the user that a store takes time.

#![cfg_attr(
    not(all(feature = "os", feature = "age")),
    allow(dead_code, reason = "each store uses its part")
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use karyi_core::limits;

/// Called when a store takes time, with the longest wait. Returns true when the user was notified.
pub type Notice = Arc<dyn Fn(Duration) -> bool + Send + Sync>;

/// Waits for the calls of one store and notifies the user.
#[derive(Default)]
pub(in crate::store) struct SlowNotice {
    /// Callback, when a user is present.
    notice: Option<Notice>,
    /// True after the notice: a slow store causes one notice only.
    is_sent: AtomicBool,
}

impl SlowNotice {
    pub(in crate::store) fn with_notice(notice: Notice) -> Self {
        Self {
            notice: Some(notice),
            is_sent: AtomicBool::new(false),
        }
    }

    /// Runs `work` on this thread, with a notice when it takes long.
    pub(in crate::store) fn during<T>(&self, work: impl FnOnce() -> T) -> T {
        if self.notice.is_none() {
            return work();
        }
        thread::scope(|scope| {
            let (done, receiver) = mpsc::channel::<()>();
            let most = limits::KEYRING_UNLOCK_TIMEOUT;
            // Without the thread there is no notice.
            let telling = thread::Builder::new().name("slow-notice".into());
            let _ = telling.spawn_scoped(scope, move || self.receive(&receiver, most));
            let result = work();
            drop(done);
            result
        })
    }

    /// Waits for the result of a call, with a notice when it takes long.
    pub(in crate::store) fn receive<T>(
        &self,
        receiver: &Receiver<T>,
        deadline: Duration,
    ) -> Result<T, RecvTimeoutError> {
        let start = Instant::now();
        let left = || deadline.saturating_sub(start.elapsed());
        while let Some(notice) = &self.notice
            && !self.is_sent.load(Ordering::SeqCst)
        {
            let step = limits::KEYRING_NOTICE_AFTER.min(left());
            let came = receiver.recv_timeout(step);
            if !matches!(came, Err(RecvTimeoutError::Timeout)) || left().is_zero() {
                return came;
            }
            // A failed notice is tried again.
            self.is_sent.store(notice(deadline), Ordering::SeqCst);
        }
        receiver.recv_timeout(left())
    }
}
