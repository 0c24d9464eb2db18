//! Counts changes of contents.
//!
//! Triggers in the database count every change, whichever program makes it. Commits of this process are seen
//! at once, those of other programs after a moment.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::Connection;

use crate::StoreError;
use crate::sqlite::connection::open_to_read;
use karyi_core::limits;

/// Migration that creates the counter and its triggers.
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

/// Cached access to the counter.
pub(super) struct ChangeCounter {
    path: PathBuf,
    /// Commits of this process.
    commits: Arc<AtomicU64>,
    state: Mutex<CounterState>,
}

#[derive(Default)]
struct CounterState {
    /// Connection that reads the counter, opened on first use.
    connection: Option<Connection>,
    /// Last value read.
    cached: Option<CachedCount>,
}

/// Counter value, with the commits of this process at that time.
#[derive(Clone, Copy)]
struct CachedCount {
    count: u64,
    commits: u64,
    at: Instant,
}

impl ChangeCounter {
    /// Opens the counter of the database in `path`. `commits` counts the commits of this process, each before
    /// its caller is notified.
    pub(super) fn of(path: PathBuf, commits: Arc<AtomicU64>) -> Self {
        Self {
            path,
            commits,
            state: Mutex::default(),
        }
    }

    /// Returns the counter; `None` when it cannot be read, which the search itself then reports.
    pub(super) fn now(&self) -> Option<u64> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.read(&mut state).ok()
    }

    fn read(&self, state: &mut CounterState) -> Result<u64, StoreError> {
        // Loaded first: a commit in between makes the cached value outdated.
        let commits = self.commits.load(Ordering::Acquire);
        let is_fresh = |cached: &CachedCount| {
            cached.commits == commits && cached.at.elapsed() < limits::CHANGE_COUNT_TTL
        };
        if let Some(cached) = state.cached.filter(is_fresh) {
            return Ok(cached.count);
        }
        let at = Instant::now();
        // A connection that fails is not used again.
        let connection = match state.connection.take() {
            Some(connection) => connection,
            None => self.open()?,
        };
        let count = connection
            .prepare_cached("SELECT number FROM revision")?
            .query_row((), |row| row.get(0))?;
        state.connection = Some(connection);
        state.cached = Some(CachedCount { count, commits, at });
        Ok(count)
    }

    fn open(&self) -> Result<Connection, StoreError> {
        let connection = open_to_read(&self.path)?;
        // The caller's thread must not block.
        connection.busy_timeout(Duration::ZERO)?;
        Ok(connection)
    }
}
