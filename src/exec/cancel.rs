//! Interruption and cancellation of a run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::watch;

/// A one-way cancellation switch that tasks can await.
#[derive(Debug, Clone)]
pub struct Cancel {
    state: Arc<watch::Sender<bool>>,
    flag: Arc<AtomicBool>,
    is_interrupted: Arc<AtomicBool>,
}

impl Default for Cancel {
    fn default() -> Self {
        Self {
            state: Arc::new(watch::Sender::new(false)),
            flag: Arc::default(),
            is_interrupted: Arc::default(),
        }
    }
}

impl Cancel {
    /// Keeps calls from starting; those that run go on.
    pub fn interrupt(&self) {
        self.is_interrupted.store(true, Ordering::SeqCst);
        self.state.send_modify(|_| {});
    }

    /// Returns true when no further call may start: the run was interrupted or cancelled.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        self.is_interrupted.load(Ordering::SeqCst) || self.is_cancelled()
    }

    /// Cancels the run.
    pub fn cancel(&self) {
        self.flag.store(true, Ordering::Relaxed);
        self.state.send_replace(true);
    }

    /// Returns true when the run was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        *self.state.borrow()
    }

    /// Waits until the run is cancelled, and then for `patience`.
    pub async fn cancelled_for(&self, patience: Duration) {
        self.cancelled().await;
        if !patience.is_zero() {
            tokio::time::sleep(patience).await;
        }
    }

    /// Returns a flag that is set on cancellation, for code that cannot await.
    #[must_use]
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.flag)
    }

    /// Waits until no further call may start.
    pub async fn interrupted(&self) {
        let mut watcher = self.state.subscribe();
        // As below.
        let _ = watcher
            .wait_for(|is_cancelled| *is_cancelled || self.is_interrupted.load(Ordering::SeqCst))
            .await;
    }

    /// Waits until the run is cancelled.
    pub async fn cancelled(&self) {
        let mut watcher = self.state.subscribe();
        // `wait_for` fails only when the sender is gone, and `self` owns it.
        let _ = watcher.wait_for(|is_cancelled| *is_cancelled).await;
    }
}
