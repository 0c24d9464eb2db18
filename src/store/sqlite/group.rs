//! Group commit: one thread takes what many callers want written and commits it together.

use std::thread::JoinHandle;

use tokio::sync::mpsc;

use crate::limits;
use crate::store::StoreError;

/// The way to the writing thread; dropping it lets the thread finish and waits for that.
pub(super) struct Group<T> {
    /// Taken only when dropped.
    sender: Option<mpsc::Sender<T>>,
    thread: Option<JoinHandle<()>>,
}

impl<T: Send + 'static> Group<T> {
    /// Starts a thread that hands everything that has arrived to `commit`, over and over.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(super) fn start(
        name: &str,
        mut commit: impl FnMut(Vec<T>) + Send + 'static,
    ) -> Result<Self, StoreError> {
        let (sender, mut receiver) = mpsc::channel(limits::MAX_WAITING_WRITES);
        let work = move || {
            let mut batch = Vec::new();
            while receiver.blocking_recv_many(&mut batch, limits::MAX_WRITES_OF_COMMIT) > 0 {
                commit(std::mem::take(&mut batch));
            }
        };
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(work)
            .map_err(|error| StoreError::Broken(format!("starting the thread {name}: {error}")))?;
        Ok(Self {
            sender: Some(sender),
            thread: Some(thread),
        })
    }

    /// Hands one item over; waits while too many wait already.
    ///
    /// # Errors
    /// The thread has ended.
    pub(super) async fn send(&self, item: T) -> Result<(), StoreError> {
        let sender = self.sender.as_ref().ok_or(StoreError::Closed)?;
        sender.send(item).await.map_err(|_| StoreError::Closed)
    }
}

impl<T> Drop for Group<T> {
    fn drop(&mut self) {
        drop(self.sender.take());
        if let Some(thread) = self.thread.take() {
            // It ends once the items that wait are written; a panic in it was told already.
            let _ = thread.join();
        }
    }
}
