//! The wish to stop, told to everything that runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::watch;

/// A switch that can be thrown once, and watched.
#[derive(Debug, Clone)]
pub struct Cancel {
    state: Arc<watch::Sender<bool>>,
    flag: Arc<AtomicBool>,
}

impl Default for Cancel {
    fn default() -> Self {
        Self {
            state: Arc::new(watch::Sender::new(false)),
            flag: Arc::default(),
        }
    }
}

impl Cancel {
    /// Throws the switch.
    pub fn cancel(&self) {
        self.flag.store(true, Ordering::Relaxed);
        self.state.send_replace(true);
    }

    /// Whether the switch was thrown.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        *self.state.borrow()
    }

    /// Waits until the switch is thrown, and then as long as `patience`.
    pub async fn cancelled_for(&self, patience: Duration) {
        self.cancelled().await;
        if !patience.is_zero() {
            tokio::time::sleep(patience).await;
        }
    }

    /// Returns a flag that is set with the switch, for work that cannot wait for it.
    #[must_use]
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.flag)
    }

    /// Waits until the switch is thrown.
    pub async fn cancelled(&self) {
        let mut watcher = self.state.subscribe();
        // An error would mean that the sender is gone, and `self` holds it.
        let _ = watcher.wait_for(|is_cancelled| *is_cancelled).await;
    }
}
