//! What is told and remembered of a keyring that lets others wait.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::progress::Progress;
use crate::limits;
use crate::vault::store::disk::Guard;

/// Is told that somebody waits for the keyring, and how long at most. Returns whether the user knows now.
pub type Notice = Arc<dyn Fn(Duration) -> bool + Send + Sync>;

/// How the calls of one store wait.
#[derive(Default)]
pub(super) struct Patience {
    /// Who is told, where a user may wonder.
    pub(super) notice: Option<Notice>,
    /// Whether that was done since the keyring answered in time last.
    is_told: AtomicBool,
    /// The call that was given up last, as long as it hangs.
    given_up: Mutex<Weak<Progress>>,
}

impl Patience {
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
