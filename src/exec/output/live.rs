//! Live output for a watcher.

use tokio::sync::mpsc;

use crate::exec::Event;
use crate::exec::cancel::Cancel;
use karyi_vault::redact::Redacted;

/// Channel to a watcher of live output.
#[derive(Clone)]
pub struct LiveOutput {
    /// Receiver of the events.
    pub events: mpsc::Sender<Redacted<Event>>,
    /// Cancellation of the run.
    pub cancel: Cancel,
}

impl LiveOutput {
    /// Waits until the watcher has room. After cancellation a watcher that does not read blocks nothing.
    pub(super) async fn send(&self, event: Redacted<Event>) {
        tokio::select! {
            biased;
            _ = self.events.send(event) => {}
            () = self.cancel.cancelled() => {}
        }
    }
}
