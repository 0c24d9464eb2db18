//! What was searched for lately and what was found, given again while no content has changed.
//!
//! The database itself counts changes of its contents, whichever program makes them. A result
//! belongs to the count from before the search began, so that it can be too new for its count but
//! never too old, and is given again only while the count is the same. What this process commits
//! is seen at once, what another program commits a moment later.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::Connection;

use crate::limits;
use crate::store::StoreError;
use crate::store::site::{Content, Found, Query, Scope};
use crate::store::sqlite::connection::open_to_read;

/// The step of the database that makes the count and what counts.
pub(super) const STEP: &str = "
CREATE TABLE revision (number INTEGER NOT NULL) STRICT;
INSERT INTO revision VALUES (1);
CREATE TRIGGER contents_added AFTER INSERT ON contents BEGIN UPDATE revision SET number = number + 1; END;
CREATE TRIGGER contents_changed AFTER UPDATE ON contents BEGIN UPDATE revision SET number = number + 1; END;
CREATE TRIGGER contents_removed AFTER DELETE ON contents BEGIN UPDATE revision SET number = number + 1; END;
CREATE TRIGGER sites_added AFTER INSERT ON sites BEGIN UPDATE revision SET number = number + 1; END;
CREATE TRIGGER sites_changed AFTER UPDATE ON sites BEGIN UPDATE revision SET number = number + 1; END;
CREATE TRIGGER sites_removed AFTER DELETE ON sites BEGIN UPDATE revision SET number = number + 1; END;
";

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
pub(super) struct Recent {
    path: PathBuf,
    /// Commits of this process.
    commits: Arc<AtomicU64>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Reads the count; opened when it is first asked for.
    connection: Option<Connection>,
    /// What it read last.
    counted: Option<Counted>,
    results: Results,
}

/// The count, how many commits of this process there had been, and when that was.
#[derive(Clone, Copy)]
struct Counted {
    revision: u64,
    commits: u64,
    at: Instant,
}

impl Recent {
    /// Makes room for results of the database in `path`, of which `commits` counts the commits of
    /// this process: each before it is told to whoever wrote.
    pub(super) fn of(path: PathBuf, commits: Arc<AtomicU64>) -> Self {
        Self {
            path,
            commits,
            state: Mutex::default(),
        }
    }

    /// Returns what was found for this, when nothing has changed since.
    ///
    /// # Errors
    /// It must be searched for: the count of changes to keep the result with, when it can be told.
    pub(super) fn look(&self, asked: &Asked) -> Result<Arc<Found>, Option<u64>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // Where the count cannot be read, the search itself says why.
        let revision = self.revision(&mut state).map_err(|_| None)?;
        let found = state.results.get(revision, asked);
        found.ok_or(Some(revision))
    }

    /// Keeps what was found.
    pub(super) fn keep(&self, revision: u64, asked: Asked, found: &Arc<Found>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.results.put(revision, asked, Arc::clone(found));
    }

    fn revision(&self, state: &mut State) -> Result<u64, StoreError> {
        // Read first: a commit that comes in between makes the count one of yesterday.
        let commits = self.commits.load(Ordering::Acquire);
        let is_fresh = |counted: &Counted| {
            counted.commits == commits && counted.at.elapsed() < limits::RECENT_SEARCH_TRUST
        };
        if let Some(counted) = state.counted.filter(is_fresh) {
            return Ok(counted.revision);
        }
        let at = Instant::now();
        // One that fails is not used again.
        let connection = match state.connection.take() {
            Some(connection) => connection,
            None => self.open()?,
        };
        let revision = connection
            .prepare_cached("SELECT number FROM revision")?
            .query_row((), |row| row.get(0))?;
        state.connection = Some(connection);
        state.counted = Some(Counted {
            revision,
            commits,
            at,
        });
        Ok(revision)
    }

    fn open(&self) -> Result<Connection, StoreError> {
        let connection = open_to_read(&self.path)?;
        // The caller is a thread that must not wait.
        connection.busy_timeout(Duration::ZERO)?;
        Ok(connection)
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
    let one = |content: &Content| {
        let summary = content.summary.as_ref().map_or(0, String::len);
        size_of::<Content>()
            + content.title.len()
            + content.body.len()
            + summary
            + texts(&content.tags)
            + texts(&content.domains)
            + content.metadata.len() * limits::RECENT_SEARCH_OVERHEAD_BYTES
    };
    found.items.iter().map(one).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

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
