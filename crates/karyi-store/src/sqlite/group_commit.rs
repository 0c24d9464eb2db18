//! Group commit: one thread commits the writes of many callers together.

use std::thread::JoinHandle;

use tokio::sync::mpsc;

use crate::StoreError;
use karyi_core::limits;

/// Handle of the writing thread. Dropping it waits for the queued writes.
pub(super) struct GroupCommit<T> {
    /// `None` only while it is dropped.
    sender: Option<mpsc::Sender<T>>,
    thread: Option<JoinHandle<()>>,
}

impl<T: Send + 'static> GroupCommit<T> {
    /// Starts a thread that passes batches of items to `commit`.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub(super) fn start(
        name: &str,
        mut commit: impl FnMut(Vec<T>) + Send + 'static,
    ) -> Result<Self, StoreError> {
        let (sender, mut receiver) = mpsc::channel(limits::MAX_WAITING_WRITES);
        let work = move || {
            let mut batch = Vec::new();
            let mut last = 0;
            while receiver.blocking_recv_many(&mut batch, limits::MAX_WRITES_OF_COMMIT) > 0 {
                // A single writer is not delayed.
                if last.max(batch.len()) > 1 {
                    gather(&mut receiver, &mut batch);
                }
                last = batch.len();
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

    /// Queues an item; waits while the queue is full.
    ///
    /// # Errors
    /// The thread has ended.
    pub(super) async fn send(&self, item: T) -> Result<(), StoreError> {
        let sender = self.sender.as_ref().ok_or(StoreError::Closed)?;
        sender.send(item).await.map_err(|_| StoreError::Closed)
    }
}

/// Waits briefly for more writes while many arrive.
fn gather<T>(receiver: &mut mpsc::Receiver<T>, batch: &mut Vec<T>) {
    let mut pause = limits::GATHER_PAUSE;
    for _ in 0..limits::MAX_GATHER_PAUSES {
        if batch.len() >= limits::GATHERED_WRITES {
            return;
        }
        std::thread::sleep(pause);
        pause *= 2;
        let before = batch.len();
        while batch.len() < limits::MAX_WRITES_OF_COMMIT
            && let Ok(item) = receiver.try_recv()
        {
            batch.push(item);
        }
        let came = batch.len() - before;
        if came <= before / limits::GATHER_SHARE {
            return;
        }
    }
}

impl<T> Drop for GroupCommit<T> {
    fn drop(&mut self) {
        drop(self.sender.take());
        if let Some(thread) = self.thread.take() {
            // It ends after the queued items; a panic was already reported.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[test]
    fn writes_are_committed_in_order_and_in_batches() {
        let batches = Arc::new(Mutex::new(Vec::new()));
        let taken = Arc::clone(&batches);
        let group = GroupCommit::start("writer", move |batch: Vec<u32>| {
            taken.lock().unwrap().push(batch);
        });
        let group = group.unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        runtime.block_on(async {
            for item in 0..10_000 {
                group.send(item).await.unwrap();
            }
        });
        drop(group);
        let batches = batches.lock().unwrap();
        assert!(
            batches
                .iter()
                .all(|batch| batch.len() <= limits::MAX_WRITES_OF_COMMIT)
        );
        assert!(batches.len() < 1000, "{}", batches.len());
        assert_eq!(batches.concat(), (0..10_000).collect::<Vec<u32>>());
    }
}
