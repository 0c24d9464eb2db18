//! What is told of a store that lets others wait.

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

/// Is told that somebody waits for the store, and how long at most. Returns whether the user knows now.
pub type Notice = Arc<dyn Fn(Duration) -> bool + Send + Sync>;

/// How the calls of one store wait.
#[derive(Default)]
pub(in crate::store) struct SlowNotice {
    /// Who is told, where a user may wonder.
    notice: Option<Notice>,
    /// Whether that was done: a store that is slow each time is told of once.
    is_sent: AtomicBool,
}

impl SlowNotice {
    pub(in crate::store) fn with_notice(notice: Notice) -> Self {
        Self {
            notice: Some(notice),
            is_sent: AtomicBool::new(false),
        }
    }

    /// Does something on this thread, and tells of it when that takes long.
    pub(in crate::store) fn during<T>(&self, work: impl FnOnce() -> T) -> T {
        if self.notice.is_none() {
            return work();
        }
        thread::scope(|scope| {
            let (done, receiver) = mpsc::channel::<()>();
            let most = limits::KEYRING_UNLOCK_TIMEOUT;
            // Without the thread nobody is told.
            let telling = thread::Builder::new().name("patience".into());
            let _ = telling.spawn_scoped(scope, move || self.receive(&receiver, most));
            let result = work();
            drop(done);
            result
        })
    }

    /// Waits for what comes of a call, and tells of it when that takes long.
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
            // What could not be said is tried again.
            self.is_sent.store(notice(deadline), Ordering::SeqCst);
        }
        receiver.recv_timeout(left())
    }
}
