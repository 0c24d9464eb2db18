//! How often contents have changed.
//!
//! The database itself counts changes of its contents, whichever program makes them. What this
//! process commits is seen at once, what another program commits a moment later.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::Connection;

use crate::StoreError;
use crate::sqlite::connection::open_to_read;
use karyi_core::limits;

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

/// The way to the count.
pub(super) struct ChangeCounter {
    path: PathBuf,
    /// Commits of this process.
    commits: Arc<AtomicU64>,
    state: Mutex<CounterState>,
}

#[derive(Default)]
struct CounterState {
    /// Reads the count; opened when it is first asked for.
    connection: Option<Connection>,
    /// What it read last.
    cached: Option<CachedCount>,
}

/// The count, how many commits of this process there had been, and when that was.
#[derive(Clone, Copy)]
struct CachedCount {
    revision: u64,
    commits: u64,
    at: Instant,
}

impl ChangeCounter {
    /// Makes the way to the count of the database in `path`, of which `commits` counts the commits
    /// of this process: each before it is told to whoever wrote.
    pub(super) fn of(path: PathBuf, commits: Arc<AtomicU64>) -> Self {
        Self {
            path,
            commits,
            state: Mutex::default(),
        }
    }

    /// Returns the count; nothing when it cannot be read: then the search itself says why.
    pub(super) fn now(&self) -> Option<u64> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.read(&mut state).ok()
    }

    fn read(&self, state: &mut CounterState) -> Result<u64, StoreError> {
        // Read first: a commit that comes in between makes the count one of yesterday.
        let commits = self.commits.load(Ordering::Acquire);
        let is_fresh = |cached: &CachedCount| {
            cached.commits == commits && cached.at.elapsed() < limits::RECENT_SEARCH_TRUST
        };
        if let Some(cached) = state.cached.filter(is_fresh) {
            return Ok(cached.revision);
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
        state.cached = Some(CachedCount {
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
