//! What is told and remembered of a store that lets others wait.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use super::progress::Progress;
use crate::limits;
use crate::vault::store::disk::Guard;

/// Is told that somebody waits for the store, and how long at most. Returns whether the user knows now.
pub type Notice = Arc<dyn Fn(Duration) -> bool + Send + Sync>;

/// How the calls of one store wait.
#[derive(Default)]
pub(in crate::vault::store) struct Patience {
    /// Who is told, where a user may wonder.
    pub(super) notice: Option<Notice>,
    /// Whether that was done since the keyring answered in time last.
    is_told: AtomicBool,
    /// The call that was given up last, as long as it hangs.
    given_up: Mutex<Weak<Progress>>,
}

impl Patience {
    pub(in crate::vault::store) fn telling(notice: Notice) -> Self {
        Self {
            notice: Some(notice),
            ..Self::default()
        }
    }

    /// Whether the call that was given up last hangs still: then the next one would, too.
    pub(super) fn is_over(&self) -> bool {
        self.given_up().upgrade().is_some()
    }

    /// Gives up a call, which keeps its progress until it ends.
    pub(super) fn give_up(&self, call: Weak<Progress>) {
        *self.given_up() = call;
    }

    /// Has the call that was given up last keep a lock until it ends, if it may change something until then.
    pub(super) fn hold(&self, lock: Guard) {
        let call = self.given_up().upgrade();
        if let Some(call) = call {
            call.hold(lock);
        }
    }

    /// Does something on this thread, and tells of it when that takes long.
    pub(in crate::vault::store) fn during<T>(&self, work: impl FnOnce() -> T) -> T {
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
    pub(super) fn receive<T>(
        &self,
        receiver: &Receiver<T>,
        deadline: Duration,
    ) -> Result<T, RecvTimeoutError> {
        let Some(notice) = &self.notice else {
            return receiver.recv_timeout(deadline);
        };
        let start = Instant::now();
        let mut step = limits::KEYRING_NOTICE_AFTER.min(deadline);
        let mut is_first = true;
        loop {
            let came = receiver.recv_timeout(step);
            let left = deadline.saturating_sub(start.elapsed());
            if !matches!(came, Err(RecvTimeoutError::Timeout)) || left.is_zero() {
                if is_first {
                    self.is_told.store(false, Ordering::SeqCst);
                }
                return came;
            }
            is_first = false;
            // A keyring that is slow each time is told of once; what could not be said is tried again.
            let is_told = self.is_told.load(Ordering::SeqCst) || notice(deadline);
            self.is_told.store(is_told, Ordering::SeqCst);
            step = match is_told {
                true => left,
                false => limits::KEYRING_NOTICE_AFTER.min(left),
            };
        }
    }

    // A poisoned lock only means that another thread panicked between two calls.
    fn given_up(&self) -> MutexGuard<'_, Weak<Progress>> {
        self.given_up.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
