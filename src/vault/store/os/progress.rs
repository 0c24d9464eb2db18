//! How far a call of the keyring is, and the lock it keeps when nobody waits for it any more.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::error::{ErrorCode, ToolError};
use crate::vault::store::disk::Guard;

/// How far a task is, which its thread and whoever waits for it agree about.
#[derive(Default)]
pub(super) struct Progress {
    step: AtomicU8,
    /// What nobody else may do until the task has ended, when nobody waits for it any more.
    lock: Mutex<Option<Guard>>,
}

impl Progress {
    /// Nothing is changed so far.
    const READS: u8 = 0;
    /// Something is being changed, or was.
    const CHANGES: u8 = 1;
    /// Nobody waits for it any more, and nothing was changed.
    const IS_LEFT: u8 = 2;

    /// Begins to change something, unless nobody waits for it any more: what somebody else has changed since must
    /// not be replaced.
    ///
    /// # Errors
    /// `keyring_timeout`, which nobody hears.
    pub(super) fn begin(&self) -> Result<(), ToolError> {
        match self.go_on_to(Self::CHANGES) {
            Self::IS_LEFT => Err(ToolError::new(ErrorCode::KeyringTimeout, "it was left")),
            _ => Ok(()),
        }
    }

    /// Leaves the task to itself. Returns whether it may have changed something, or still do so.
    pub(super) fn leave(&self) -> bool {
        self.go_on_to(Self::IS_LEFT) == Self::CHANGES
    }

    /// Keeps a lock until the task ends, if it may change something.
    pub(super) fn hold(&self, lock: Guard) {
        if self.step.load(Ordering::SeqCst) == Self::CHANGES {
            // A poisoned lock only means that another thread panicked between two locks.
            let mut kept = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
            *kept = Some(lock);
        }
    }

    /// Goes on from reading, and returns how far it was.
    fn go_on_to(&self, next: u8) -> u8 {
        let order = Ordering::SeqCst;
        let was = self.step.compare_exchange(Self::READS, next, order, order);
        was.unwrap_or_else(|was| was)
    }
}
