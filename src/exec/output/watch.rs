//! Who sees output while it comes: a watcher at once, and the logs of jobs in the background.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc;

use crate::exec::Event;
use crate::exec::cancel::Cancel;
use crate::exec::log::{Log, Printer};
use crate::vault::redact::Redacted;

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

/// The logs of the jobs in the background of one terminal: what is printed there may be theirs.
#[derive(Clone, Default)]
pub struct Followers(Arc<Mutex<Vec<(String, Log)>>>);

impl Followers {
    /// Adds the log of a job, which is made at once.
    pub fn add(&self, id: &str, mut log: Log) {
        log.begin(&Redacted::default());
        self.lock().push((id.to_owned(), log));
    }

    /// Removes the log of a job that has ended.
    pub fn remove(&self, id: &str) {
        self.lock().retain(|(known, _)| known != id);
    }

    /// Whether there is nobody.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Returns the end of what is in the log of a job.
    #[must_use]
    pub fn tail(&self, id: &str) -> String {
        let logs = self.lock();
        let found = logs.iter().find(|(known, _)| known == id);
        found.map_or_else(String::new, |(_, log)| log.tail().to_owned())
    }

    pub(super) fn append(&self, text: &Redacted, by: Printer) {
        for (_, log) in self.lock().iter_mut() {
            log.append(text, by);
        }
    }

    pub(super) fn show_unfinished(&self, line: &Redacted) {
        for (_, log) in self.lock().iter_mut() {
            log.show_unfinished(line);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(String, Log)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
