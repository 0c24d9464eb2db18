//! Ids of the requests in progress in the sessions of `/mcp`. rmcp gives the answers of two requests with one id to
//! whichever of them it likes.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::RequestId;

/// Session and id of a request.
type Key = (String, RequestId);

/// Ids in use; clones share them.
#[derive(Clone, Default)]
pub struct RequestIds(Arc<Mutex<HashSet<Key>>>);

/// Use of an id, which ends when this is dropped.
pub struct ClaimedId {
    ids: RequestIds,
    key: Key,
}

impl RequestIds {
    /// Claims the id of a request; none if a request with it is in progress in the session.
    #[must_use]
    pub fn claim(&self, session: &str, id: &RequestId) -> Option<Arc<ClaimedId>> {
        let key = (session.to_owned(), id.clone());
        self.lock().insert(key.clone()).then(|| {
            Arc::new(ClaimedId {
                ids: self.clone(),
                key,
            })
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<Key>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ClaimedId {
    fn drop(&mut self) {
        self.ids.lock().remove(&self.key);
    }
}
