//! Where the library is kept, and when it is read again.
//!
//! Reading everything pays only when it is searched often before something changes. So after a
//! change the database is searched, and the library read once such searches have taken several
//! times as long as reading it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::StoreError;
use crate::sqlite::memory_index::MemoryIndex;
use karyi_core::limits;

/// The place of the library.
#[derive(Default)]
pub(in crate::sqlite) struct IndexCache {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    index: Option<Arc<MemoryIndex>>,
    /// True if somebody reads it now.
    is_reading: bool,
    /// How long reading took the last time.
    cost: Duration,
    /// How long searches have taken in the database since.
    spent: Duration,
    /// The count of changes at which there was too much to be read.
    refused: Option<u64>,
}

impl IndexCache {
    /// Returns the library when it is that of this count of changes.
    pub(in crate::sqlite) fn get(&self, change_count: u64) -> Option<Arc<MemoryIndex>> {
        let state = self.lock();
        let index = state.index.as_ref();
        index
            .filter(|index| index.change_count() == change_count)
            .cloned()
    }

    /// Notes how long a search took in the database because there was no library. When it pays by
    /// now to read it, the caller has to: true is told once, until [`IndexCache::store`].
    pub(in crate::sqlite) fn should_load(&self, change_count: u64, took: Duration) -> bool {
        let mut state = self.lock();
        state.spent = state.spent.saturating_add(took);
        let is_due = state.spent >= state.cost.saturating_mul(limits::LIBRARY_PATIENCE);
        if state.is_reading || !is_due || state.refused == Some(change_count) {
            return false;
        }
        state.is_reading = true;
        // There need not be room for two.
        state.index = None;
        true
    }

    /// Keeps what was read at the request of [`IndexCache::should_load`].
    pub(in crate::sqlite) fn store(
        &self,
        change_count: u64,
        read: Result<Option<MemoryIndex>, StoreError>,
        took: Duration,
    ) {
        let mut state = self.lock();
        state.refused = matches!(read, Ok(None)).then_some(change_count);
        let index = read.ok().flatten().map(Arc::new);
        (state.index, state.is_reading) = (index, false);
        (state.cost, state.spent) = (took, Duration::ZERO);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn the_library_is_read_when_it_pays() {
        let shelf = IndexCache::default();
        let ms = Duration::from_millis;
        let index = MemoryIndex {
            change_count: 1,
            sites: HashMap::new(),
            contents: Vec::new(),
        };
        // At first at once, and by one only.
        assert!(shelf.should_load(1, Duration::ZERO) && !shelf.should_load(1, ms(1000)));
        shelf.store(1, Ok(Some(index)), ms(10));
        assert!(shelf.get(1).is_some() && shelf.get(2).is_none());
        let most = ms(10) * limits::LIBRARY_PATIENCE;
        assert!(!shelf.should_load(2, most - ms(1)) && shelf.should_load(2, ms(1)));
        assert!(shelf.get(1).is_none());
        // Reading that failed is tried again, but what is too large not before something has changed.
        shelf.store(2, Err(StoreError::Expired), ms(10));
        assert!(!shelf.should_load(2, most - ms(1)) && shelf.should_load(3, ms(1)));
        shelf.store(3, Ok(None), ms(10));
        assert!(!shelf.should_load(3, most) && shelf.should_load(4, Duration::ZERO));
    }
}
