//! What was asked of the database lately and what was found, given again while no content has changed.
//!
//! A result belongs to the count of changes from before the search began, so that it can be too new
//! for its count but never too old, and is given again only while the count is the same.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::site::{CachedContent, Query, Scope, SearchResult};
use karyi_core::limits;

/// What was asked, and of which site.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct QueryKey {
    tenant_id: Arc<str>,
    site_id: Arc<str>,
    pub(super) query: Query,
}

impl QueryKey {
    /// Makes it.
    pub(super) fn of(scope: &Scope, query: Query) -> Self {
        Self {
            tenant_id: Arc::clone(&scope.tenant_id),
            site_id: Arc::clone(&scope.site_id),
            query,
        }
    }

    fn bytes(&self) -> usize {
        let query = &self.query;
        let tags: usize = query.tags.iter().map(String::len).sum();
        query.text.len() + tags + self.tenant_id.len() + self.site_id.len()
    }
}

/// The results of late.
#[derive(Default)]
pub(super) struct QueryCache {
    results: Mutex<CachedResults>,
}

impl QueryCache {
    /// Returns what was found for this, when nothing has changed since.
    pub(super) fn get(&self, change_count: u64, key: &QueryKey) -> Option<Arc<SearchResult>> {
        self.lock().get(change_count, key)
    }

    /// Keeps what was found.
    pub(super) fn insert(&self, change_count: u64, key: QueryKey, found: &Arc<SearchResult>) {
        self.lock().put(change_count, key, Arc::clone(found));
    }

    fn lock(&self) -> MutexGuard<'_, CachedResults> {
        self.results.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Results of one count of changes. Those that nobody asks for while others fill half the room go.
#[derive(Default)]
struct CachedResults {
    change_count: u64,
    new: HashMap<QueryKey, Arc<SearchResult>>,
    new_bytes: usize,
    old: HashMap<QueryKey, Arc<SearchResult>>,
}

impl CachedResults {
    fn get(&mut self, change_count: u64, key: &QueryKey) -> Option<Arc<SearchResult>> {
        if self.change_count != change_count {
            return None;
        }
        if let Some(found) = self.new.get(key) {
            return Some(Arc::clone(found));
        }
        let (key, found) = self.old.remove_entry(key)?;
        self.add(key, Arc::clone(&found));
        Some(found)
    }

    fn put(&mut self, change_count: u64, key: QueryKey, found: Arc<SearchResult>) {
        if change_count < self.change_count {
            return;
        }
        if change_count > self.change_count {
            *self = Self {
                change_count,
                ..Self::default()
            };
        }
        self.add(key, found);
    }

    fn add(&mut self, key: QueryKey, found: Arc<SearchResult>) {
        const HALF: usize = limits::RECENT_SEARCH_BYTES / 2;
        let size = limits::RECENT_SEARCH_OVERHEAD_BYTES + key.bytes() + bytes(&found);
        if size > HALF {
            return;
        }
        if self.new_bytes + size > HALF {
            self.old = std::mem::take(&mut self.new);
            self.new_bytes = 0;
        }
        self.new_bytes += size;
        self.new.insert(key, found);
    }
}

/// Returns about how much memory a result takes.
fn bytes(found: &SearchResult) -> usize {
    let texts = |list: &[String]| list.iter().map(String::len).sum::<usize>();
    let one = |content: &Arc<CachedContent>| {
        let summary = content.summary.as_ref().map_or(0, String::len);
        let all = content.title.len()
            + content.body.len()
            + summary
            + texts(&content.tags)
            + texts(&content.domains);
        // Once as a value, once as it is shown.
        size_of::<CachedContent>()
            + 2 * all
            + content.metadata.len() * limits::RECENT_SEARCH_OVERHEAD_BYTES
    };
    found.items.iter().map(one).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    fn key(text: &str) -> QueryKey {
        let scope = Scope {
            tenant_id: "t".into(),
            site_id: "s".into(),
            deadline: Instant::now(),
        };
        let query = Query {
            text: text.into(),
            ..Query::default()
        };
        QueryKey::of(&scope, query)
    }

    fn found(total: u64) -> Arc<SearchResult> {
        let items = Vec::new();
        Arc::new(SearchResult { items, total })
    }

    #[test]
    fn a_result_is_of_one_count_only() {
        let mut results = CachedResults::default();
        results.put(2, key("a"), found(1));
        assert_eq!(results.get(2, &key("a")), Some(found(1)));
        assert_eq!(results.get(2, &key("b")), None);
        assert_eq!(results.get(3, &key("a")), None);
        // One that began before the last change is not kept.
        results.put(3, key("b"), found(2));
        results.put(2, key("a"), found(1));
        let now = ["a", "b"].map(|text| results.get(3, &key(text)));
        assert_eq!(now, [None, Some(found(2))]);
        assert_eq!(results.get(2, &key("a")), None);
    }

    #[test]
    fn what_is_asked_for_stays_and_the_rest_goes() {
        let mut results = CachedResults::default();
        results.put(1, key("often"), found(0));
        let most = limits::RECENT_SEARCH_BYTES / limits::RECENT_SEARCH_OVERHEAD_BYTES;
        for number in 0..3 * most {
            results.put(1, key(&number.to_string()), found(1));
            assert!(results.new.len() + results.old.len() <= most);
            assert!(results.get(1, &key("often")).is_some(), "{number}");
        }
        assert_eq!(results.get(1, &key("0")), None);
        let large = "x".repeat(limits::RECENT_SEARCH_BYTES);
        results.put(1, key(&large), found(1));
        assert_eq!(results.get(1, &key(&large)), None);
    }
}
