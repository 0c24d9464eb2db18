//! The wish to stop, told to everything that runs.

use std::sync::Arc;

use tokio::sync::watch;

/// A switch that can be thrown once, and watched.
#[derive(Debug, Clone)]
pub struct Cancel {
    state: Arc<watch::Sender<bool>>,
}

impl Default for Cancel {
    fn default() -> Self {
        Self {
            state: Arc::new(watch::Sender::new(false)),
        }
    }
}

impl Cancel {
    /// Throws the switch.
    pub fn cancel(&self) {
        self.state.send_replace(true);
    }

    /// Whether the switch was thrown.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        *self.state.borrow()
    }

    /// Waits until the switch is thrown.
    pub async fn cancelled(&self) {
        let mut watcher = self.state.subscribe();
        // An error would mean that the sender is gone, and `self` holds it.
        let _ = watcher.wait_for(|is_cancelled| *is_cancelled).await;
    }
}
