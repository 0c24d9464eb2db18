//! Caches search results until contents change.
//!
//! A result is stored with the change count from before its search, so it can be newer than its count but
//! never older. It is returned only while the count is the same.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::site::{CachedContent, Query, Scope, SearchResult};
use karyi_core::limits;

/// Query and its site.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct QueryKey {
    tenant_id: Arc<str>,
    site_id: Arc<str>,
    pub(super) query: Query,
}

impl QueryKey {
    /// Creates the key of a query.
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

/// Cache of recent results.
#[derive(Default)]
pub(super) struct QueryCache {
    results: Mutex<CachedResults>,
}

impl QueryCache {
    /// Returns the cached result if nothing has changed since.
    pub(super) fn get(&self, change_count: u64, key: &QueryKey) -> Option<Arc<SearchResult>> {
        self.lock().get(change_count, key)
    }

    /// Stores a result.
    pub(super) fn insert(&self, change_count: u64, key: QueryKey, found: &Arc<SearchResult>) {
        self.lock().put(change_count, key, Arc::clone(found));
    }

    fn lock(&self) -> MutexGuard<'_, CachedResults> {
        self.results.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Results of one change count, in two generations. Results not requested while others fill half the space
/// are dropped.
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
        const HALF: usize = limits::QUERY_CACHE_BYTES / 2;
        let size = limits::QUERY_CACHE_OVERHEAD_BYTES + key.bytes() + bytes(&found);
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

/// Estimates the size of a result in memory.
fn bytes(found: &SearchResult) -> usize {
    let texts = |list: &[String]| list.iter().map(String::len).sum::<usize>();
    let one = |content: &Arc<CachedContent>| {
        let summary = content.summary.as_ref().map_or(0, String::len);
        let all = content.title.len()
            + content.body.len()
            + summary
            + texts(&content.tags)
            + texts(&content.domains);
        // Once as a value, once in its display form.
        size_of::<CachedContent>()
            + 2 * all
            + content.metadata.len() * limits::QUERY_CACHE_OVERHEAD_BYTES
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
    fn results_belong_to_one_change_count() {
        let mut results = CachedResults::default();
        results.put(2, key("a"), found(1));
        assert_eq!(results.get(2, &key("a")), Some(found(1)));
        assert_eq!(results.get(2, &key("b")), None);
        assert_eq!(results.get(3, &key("a")), None);
        // A search that began before the last change is not cached.
        results.put(3, key("b"), found(2));
        results.put(2, key("a"), found(1));
        let now = ["a", "b"].map(|text| results.get(3, &key(text)));
        assert_eq!(now, [None, Some(found(2))]);
        assert_eq!(results.get(2, &key("a")), None);
    }

    #[test]
    fn requested_results_stay_and_others_are_dropped() {
        let mut results = CachedResults::default();
        results.put(1, key("often"), found(0));
        let most = limits::QUERY_CACHE_BYTES / limits::QUERY_CACHE_OVERHEAD_BYTES;
        for number in 0..3 * most {
            results.put(1, key(&number.to_string()), found(1));
            assert!(results.new.len() + results.old.len() <= most);
            assert!(results.get(1, &key("often")).is_some(), "{number}");
        }
        assert_eq!(results.get(1, &key("0")), None);
        let large = "x".repeat(limits::QUERY_CACHE_BYTES);
        results.put(1, key(&large), found(1));
        assert_eq!(results.get(1, &key(&large)), None);
    }
}
