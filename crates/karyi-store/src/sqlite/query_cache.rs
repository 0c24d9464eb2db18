//! What was asked of the database lately and what was found, given again while no content has changed.
//!
//! A result belongs to the count of changes from before the search began, so that it can be too new
//! for its count but never too old, and is given again only while the count is the same.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::site::{Found, Kept, Query, Scope};
use karyi_core::limits;

/// What was asked, and of which site.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Asked {
    tenant_id: Arc<str>,
    site_id: Arc<str>,
    pub(super) query: Query,
}

impl Asked {
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
pub(super) struct Recent {
    results: Mutex<Results>,
}

impl Recent {
    /// Returns what was found for this, when nothing has changed since.
    pub(super) fn look(&self, revision: u64, asked: &Asked) -> Option<Arc<Found>> {
        self.lock().get(revision, asked)
    }

    /// Keeps what was found.
    pub(super) fn keep(&self, revision: u64, asked: Asked, found: &Arc<Found>) {
        self.lock().put(revision, asked, Arc::clone(found));
    }

    fn lock(&self) -> MutexGuard<'_, Results> {
        self.results.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Results of one count of changes. Those that nobody asks for while others fill half the room go.
#[derive(Default)]
struct Results {
    revision: u64,
    young: HashMap<Asked, Arc<Found>>,
    young_bytes: usize,
    old: HashMap<Asked, Arc<Found>>,
}

impl Results {
    fn get(&mut self, revision: u64, asked: &Asked) -> Option<Arc<Found>> {
        if self.revision != revision {
            return None;
        }
        if let Some(found) = self.young.get(asked) {
            return Some(Arc::clone(found));
        }
        let (asked, found) = self.old.remove_entry(asked)?;
        self.add(asked, Arc::clone(&found));
        Some(found)
    }

    fn put(&mut self, revision: u64, asked: Asked, found: Arc<Found>) {
        if revision < self.revision {
            return;
        }
        if revision > self.revision {
            *self = Self {
                revision,
                ..Self::default()
            };
        }
        self.add(asked, found);
    }

    fn add(&mut self, asked: Asked, found: Arc<Found>) {
        const HALF: usize = limits::RECENT_SEARCH_BYTES / 2;
        let size = limits::RECENT_SEARCH_OVERHEAD_BYTES + asked.bytes() + bytes(&found);
        if size > HALF {
            return;
        }
        if self.young_bytes + size > HALF {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
        self.young_bytes += size;
        self.young.insert(asked, found);
    }
}

/// Returns about how much memory a result takes.
fn bytes(found: &Found) -> usize {
    let texts = |list: &[String]| list.iter().map(String::len).sum::<usize>();
    let one = |content: &Arc<Kept>| {
        let summary = content.summary.as_ref().map_or(0, String::len);
        let all = content.title.len()
            + content.body.len()
            + summary
            + texts(&content.tags)
            + texts(&content.domains);
        // Once as a value, once as it is shown.
        size_of::<Kept>() + 2 * all + content.metadata.len() * limits::RECENT_SEARCH_OVERHEAD_BYTES
    };
    found.items.iter().map(one).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    fn asked(text: &str) -> Asked {
        let scope = Scope {
            tenant_id: "t".into(),
            site_id: "s".into(),
            deadline: Instant::now(),
        };
        let query = Query {
            text: text.into(),
            ..Query::default()
        };
        Asked::of(&scope, query)
    }

    fn found(total: u64) -> Arc<Found> {
        let items = Vec::new();
        Arc::new(Found { items, total })
    }

    #[test]
    fn a_result_is_of_one_count_only() {
        let mut results = Results::default();
        results.put(2, asked("a"), found(1));
        assert_eq!(results.get(2, &asked("a")), Some(found(1)));
        assert_eq!(results.get(2, &asked("b")), None);
        assert_eq!(results.get(3, &asked("a")), None);
        // One that began before the last change is not kept.
        results.put(3, asked("b"), found(2));
        results.put(2, asked("a"), found(1));
        let now = ["a", "b"].map(|text| results.get(3, &asked(text)));
        assert_eq!(now, [None, Some(found(2))]);
        assert_eq!(results.get(2, &asked("a")), None);
    }

    #[test]
    fn what_is_asked_for_stays_and_the_rest_goes() {
        let mut results = Results::default();
        results.put(1, asked("often"), found(0));
        let most = limits::RECENT_SEARCH_BYTES / limits::RECENT_SEARCH_OVERHEAD_BYTES;
        for number in 0..3 * most {
            results.put(1, asked(&number.to_string()), found(1));
            assert!(results.young.len() + results.old.len() <= most);
            assert!(results.get(1, &asked("often")).is_some(), "{number}");
        }
        assert_eq!(results.get(1, &asked("0")), None);
        let large = "x".repeat(limits::RECENT_SEARCH_BYTES);
        results.put(1, asked(&large), found(1));
        assert_eq!(results.get(1, &asked(&large)), None);
    }
}
