//! What is told and remembered of a keyring that lets others wait.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use crate::limits;

/// Is told that somebody waits for the keyring, and how long at most.
pub type Notice = Arc<dyn Fn(Duration) + Send + Sync>;

/// How the calls of one store wait.
#[derive(Default)]
pub(super) struct Patience {
    /// Who is told, where a user may wonder.
    pub(super) notice: Option<Notice>,
    /// Whether that was done since the keyring answered in time last.
    is_told: AtomicBool,
    /// What the call that was given up last holds until it ends.
    given_up: Mutex<Weak<()>>,
}

impl Patience {
    /// Whether the call that was given up last hangs still: then the next one would, too.
    pub(super) fn is_over(&self) -> bool {
        self.given_up().upgrade().is_some()
    }

    /// Gives up a call, which holds this until it ends.
    pub(super) fn give_up(&self, held: Weak<()>) {
        *self.given_up() = held;
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
        let first = limits::KEYRING_NOTICE_AFTER.min(deadline);
        match receiver.recv_timeout(first) {
            Err(RecvTimeoutError::Timeout) if first < deadline => {
                // A keyring that is slow each time is told of once.
                if !self.is_told.swap(true, Ordering::SeqCst) {
                    notice(deadline);
                }
                receiver.recv_timeout(deadline - first)
            }
            came => {
                self.is_told.store(false, Ordering::SeqCst);
                came
            }
        }
    }

    // A poisoned lock only means that another thread panicked between two calls.
    fn given_up(&self) -> MutexGuard<'_, Weak<()>> {
        self.given_up.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
