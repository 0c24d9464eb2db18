//! Caches the memory index and decides when to load it.
//!
//! Loading pays only if many searches follow before the next change. So after a change the database is
//! searched, and the index is loaded once those searches have taken several times as long as loading.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::StoreError;
use crate::sqlite::memory_index::MemoryIndex;
use karyi_core::limits;

/// Cache of the memory index.
#[derive(Default)]
pub(in crate::sqlite) struct IndexCache {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    index: Option<Arc<MemoryIndex>>,
    /// True while somebody loads the index.
    is_reading: bool,
    /// Duration of the last load.
    cost: Duration,
    /// Total duration of database searches since.
    spent: Duration,
    /// Change count at which the contents were too large.
    refused: Option<u64>,
}

impl IndexCache {
    /// Returns the index if it has this change count.
    pub(in crate::sqlite) fn get(&self, change_count: u64) -> Option<Arc<MemoryIndex>> {
        let state = self.lock();
        let index = state.index.as_ref();
        index
            .filter(|index| index.change_count() == change_count)
            .cloned()
    }

    /// Adds the duration of a database search. Returns true when loading has become worthwhile: then the
    /// caller must load the index and call [`IndexCache::store`].
    pub(in crate::sqlite) fn should_load(&self, change_count: u64, took: Duration) -> bool {
        let mut state = self.lock();
        state.spent = state.spent.saturating_add(took);
        let is_due = state.spent >= state.cost.saturating_mul(limits::MEMORY_INDEX_LOAD_RATIO);
        if state.is_reading || !is_due || state.refused == Some(change_count) {
            return false;
        }
        state.is_reading = true;
        // Memory may not suffice for two.
        state.index = None;
        true
    }

    /// Stores the index that [`IndexCache::should_load`] asked for.
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
    fn the_index_is_loaded_when_it_pays() {
        let cache = IndexCache::default();
        let ms = Duration::from_millis;
        let index = MemoryIndex {
            change_count: 1,
            sites: HashMap::new(),
            contents: Vec::new(),
        };
        // The first time at once, and only by one caller.
        assert!(cache.should_load(1, Duration::ZERO) && !cache.should_load(1, ms(1000)));
        cache.store(1, Ok(Some(index)), ms(10));
        assert!(cache.get(1).is_some() && cache.get(2).is_none());
        let most = ms(10) * limits::MEMORY_INDEX_LOAD_RATIO;
        assert!(!cache.should_load(2, most - ms(1)) && cache.should_load(2, ms(1)));
        assert!(cache.get(1).is_none());
        // A failed load is repeated; contents that are too large are only loaded again after a change.
        cache.store(2, Err(StoreError::Expired), ms(10));
        assert!(!cache.should_load(2, most - ms(1)) && cache.should_load(3, ms(1)));
        cache.store(3, Ok(None), ms(10));
        assert!(!cache.should_load(3, most) && cache.should_load(4, Duration::ZERO));
    }
}
