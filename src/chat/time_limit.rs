//! The longest time of a turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::task::JoinHandle;

use crate::chat::turn::TurnLimits;
use crate::exec::cancel::Cancel;

/// Cancels a turn that takes too long.
pub(super) struct TimeLimit {
    is_over: Arc<AtomicBool>,
    task: Option<JoinHandle<()>>,
}

impl TimeLimit {
    /// Starts the clock.
    pub(super) fn start(limits: &TurnLimits, cancel: &Cancel) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let task = limits.time.map(|time| {
            let (is_over, cancel) = (Arc::clone(&is_over), cancel.clone());
            tokio::spawn(async move {
                tokio::time::sleep(time).await;
                is_over.store(true, Ordering::SeqCst);
                cancel.cancel();
            })
        });
        Self { is_over, task }
    }

    /// Returns true when the time was up.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }
}

impl Drop for TimeLimit {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }
}
