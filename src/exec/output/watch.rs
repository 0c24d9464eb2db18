//! Who sees output at once.

use tokio::sync::mpsc;

use crate::exec::Event;
use crate::exec::cancel::Cancel;
use karyi_vault::redact::Redacted;

/// Where a watcher sees output at once.
#[derive(Clone)]
pub struct Live {
    /// Where events go.
    pub events: mpsc::Sender<Redacted<Event>>,
    /// The wish to stop.
    pub cancel: Cancel,
}

impl Live {
    /// Waits until the watcher has room; one that is gone or does not look when the run is
    /// cancelled holds up nobody.
    pub(super) async fn send(&self, event: Redacted<Event>) {
        tokio::select! {
            biased;
            _ = self.events.send(event) => {}
            () = self.cancel.cancelled() => {}
        }
    }
}
