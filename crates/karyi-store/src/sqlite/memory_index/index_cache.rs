//! Where the library is kept, and when it is read again.
//!
//! Reading everything pays only when it is searched often before something changes. So after a
//! change the database is searched, and the library read once such searches have taken several
//! times as long as reading it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::StoreError;
use crate::sqlite::memory_index::Library;
use karyi_core::limits;

/// The place of the library.
#[derive(Default)]
pub(in crate::sqlite) struct Shelf {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    library: Option<Arc<Library>>,
    /// Whether somebody reads it now.
    is_reading: bool,
    /// How long reading took the last time.
    cost: Duration,
    /// How long searches have taken in the database since.
    spent: Duration,
    /// The count of changes at which there was too much to be read.
    refused: Option<u64>,
}

impl Shelf {
    /// Returns the library when it is that of this count of changes.
    pub(in crate::sqlite) fn look(&self, revision: u64) -> Option<Arc<Library>> {
        let state = self.lock();
        let library = state.library.as_ref();
        library
            .filter(|library| library.revision() == revision)
            .cloned()
    }

    /// Notes how long a search took in the database because there was no library. When it pays by
    /// now to read it, the caller has to: true is told once, until [`Shelf::put`].
    pub(in crate::sqlite) fn is_wanted(&self, revision: u64, took: Duration) -> bool {
        let mut state = self.lock();
        state.spent = state.spent.saturating_add(took);
        let is_due = state.spent >= state.cost.saturating_mul(limits::LIBRARY_PATIENCE);
        if state.is_reading || !is_due || state.refused == Some(revision) {
            return false;
        }
        state.is_reading = true;
        // There need not be room for two.
        state.library = None;
        true
    }

    /// Keeps what was read at the request of [`Shelf::is_wanted`].
    pub(in crate::sqlite) fn put(
        &self,
        revision: u64,
        read: Result<Option<Library>, StoreError>,
        took: Duration,
    ) {
        let mut state = self.lock();
        state.refused = matches!(read, Ok(None)).then_some(revision);
        let library = read.ok().flatten().map(Arc::new);
        (state.library, state.is_reading) = (library, false);
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
        let shelf = Shelf::default();
        let ms = Duration::from_millis;
        let library = Library {
            revision: 1,
            sites: HashMap::new(),
            contents: Vec::new(),
        };
        // At first at once, and by one only.
        assert!(shelf.is_wanted(1, Duration::ZERO) && !shelf.is_wanted(1, ms(1000)));
        shelf.put(1, Ok(Some(library)), ms(10));
        assert!(shelf.look(1).is_some() && shelf.look(2).is_none());
        let most = ms(10) * limits::LIBRARY_PATIENCE;
        assert!(!shelf.is_wanted(2, most - ms(1)) && shelf.is_wanted(2, ms(1)));
        assert!(shelf.look(1).is_none());
        // Reading that failed is tried again, but what is too large not before something has changed.
        shelf.put(2, Err(StoreError::Expired), ms(10));
        assert!(!shelf.is_wanted(2, most - ms(1)) && shelf.is_wanted(3, ms(1)));
        shelf.put(3, Ok(None), ms(10));
        assert!(!shelf.is_wanted(3, most) && shelf.is_wanted(4, Duration::ZERO));
    }
}
