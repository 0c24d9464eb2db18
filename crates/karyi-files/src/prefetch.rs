//! Prepares the old content of a large file for the journal while the change is still being worked out.
//!
//! Hashing and compressing a large content takes about as long as the rest of a change, so it starts in a
//! thread as soon as the file was read. If the change fails, nothing of it is stored.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, Scope};

use super::journal::{IsPrivate, Journal, PreparedBlob};
use karyi_core::limits;

/// Content in preparation; it can be taken once.
#[derive(Debug)]
pub(super) struct Prefetch(Mutex<Option<Receiver<PreparedBlob>>>);

impl Prefetch {
    /// Waits for the prepared content; `None` when it must not or cannot be stored.
    pub(super) fn take(&self) -> Option<PreparedBlob> {
        let mut receiver = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        receiver.take()?.recv().ok()
    }
}

/// Starts the preparation for the first large file of a change.
pub(super) struct Prefetcher<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    journal: Option<&'env Journal>,
    is_private: IsPrivate<'env>,
    is_live: &'env AtomicBool,
}

impl<'scope, 'env> Prefetcher<'scope, 'env> {
    /// Creates a prefetcher that runs its thread in a scope while `is_live` holds.
    pub(super) fn new(
        scope: &'scope Scope<'scope, 'env>,
        journal: Option<&'env Journal>,
        is_private: IsPrivate<'env>,
        is_live: &'env AtomicBool,
    ) -> Self {
        Self {
            scope,
            journal,
            is_private,
            is_live,
        }
    }

    /// Starts preparing a content if it is the first large one. If no thread can be started, the content is
    /// prepared later.
    pub(super) fn start(&mut self, bytes: &Arc<Vec<u8>>) -> Option<Prefetch> {
        self.start_with(Builder::new(), bytes)
    }

    fn start_with(&mut self, builder: Builder, bytes: &Arc<Vec<u8>>) -> Option<Prefetch> {
        if (bytes.len() as u64) < limits::PREFETCH_BYTES {
            return None;
        }
        let journal = self.journal.take()?;
        let bytes = Arc::clone(bytes);
        let (is_private, is_live) = (self.is_private, self.is_live);
        let (sender, receiver) = sync_channel(1);
        let started = builder.spawn_scoped(self.scope, move || {
            if !journal.is_encrypted() && is_private(&bytes) {
                return;
            }
            let is_live = || is_live.load(Ordering::Relaxed);
            if let Ok(prepared) = journal.prepare(&bytes, &is_live) {
                let _ = sender.send(prepared);
            }
        });
        started.ok()?;
        Some(Prefetch(Mutex::new(Some(receiver))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_storable_contents_are_prefetched() {
        let temp = tempfile::tempdir().unwrap();
        let open = |key| Journal::open(temp.path(), key).unwrap();
        let large = Arc::new(vec![0; usize::try_from(limits::PREFETCH_BYTES).unwrap()]);
        let small = Arc::new(large[1..].to_vec());
        let check = |journal: &Journal, is_private: bool, is_live: bool, expected: bool| {
            let is_live = AtomicBool::new(is_live);
            let is_private = |_: &[u8]| is_private;
            std::thread::scope(|scope| {
                let mut prefetcher = Prefetcher::new(scope, Some(journal), &is_private, &is_live);
                assert!(prefetcher.start(&small).is_none());
                let prefetch = prefetcher.start(&large).unwrap();
                // One at a time.
                assert!(prefetcher.start(&large).is_none());
                assert_eq!(prefetch.take().is_some(), expected);
                assert!(prefetch.take().is_none());
            });
        };
        let (plain, encrypted) = (open(None), open(Some(&[7; 32])));
        check(&plain, true, true, false);
        check(&plain, false, false, false);
        check(&encrypted, true, true, true);
    }

    #[test]
    fn without_a_thread_nothing_is_prefetched() {
        let temp = tempfile::tempdir().unwrap();
        let journal = Journal::open(temp.path(), None).unwrap();
        let size = usize::try_from(limits::PREFETCH_BYTES).unwrap();
        let large = Arc::new(vec![0; size]);
        let is_live = AtomicBool::new(true);
        std::thread::scope(|scope| {
            let mut prefetcher = Prefetcher::new(scope, Some(&journal), &|_| false, &is_live);
            // No address space is this large.
            let builder = Builder::new().stack_size(1 << 60);
            assert!(prefetcher.start_with(builder, &large).is_none());
        });
    }
}
