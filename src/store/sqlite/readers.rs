//! Connections that read, off the async threads, each for as long as its call has time.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use rusqlite::Connection;
use tokio::sync::Semaphore;

use crate::limits;
use crate::store::StoreError;
use crate::store::sqlite::connection::open_to_read;

/// Steps of the database between two looks at the clock.
const STEPS: i32 = 1000;

/// A few connections, opened when they are needed.
#[derive(Clone)]
pub(super) struct Readers {
    path: Arc<PathBuf>,
    idle: Arc<Mutex<Vec<Connection>>>,
    permits: Arc<Semaphore>,
}

impl Readers {
    /// Makes the readers of a database.
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            path: Arc::new(path),
            idle: Arc::default(),
            permits: Arc::new(Semaphore::new(limits::MAX_DATABASE_READERS)),
        }
    }

    /// Does `work` on a connection of its own; it is interrupted at its deadline.
    ///
    /// # Errors
    /// What the work failed with, or `Expired`.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        deadline: Instant,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let permit = Arc::clone(&self.permits).acquire_owned();
        let permit = tokio::time::timeout_at(deadline.into(), permit)
            .await
            .map_err(|_| StoreError::Expired)?
            .map_err(|_| StoreError::Closed)?;
        let readers = self.clone();
        let task = tokio::task::spawn_blocking(move || {
            let result = readers.with_connection(deadline, work);
            drop(permit);
            result
        });
        match task.await {
            Ok(result) => result,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => Err(StoreError::Closed),
            },
        }
    }

    fn with_connection<T>(
        &self,
        deadline: Instant,
        work: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let idle = self.idle().pop();
        let mut connection = match idle {
            Some(connection) => connection,
            None => open_to_read(&self.path)?,
        };
        connection.progress_handler(STEPS, Some(move || Instant::now() >= deadline))?;
        let result = work(&connection);
        connection.progress_handler(STEPS, None::<fn() -> bool>)?;
        self.idle().push(connection);
        result
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::sqlite::connection::open_to_write;
    use std::time::Duration;

    #[test]
    fn a_query_without_end_is_interrupted_and_the_next_one_runs() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db");
        drop(open_to_write(&path, &["CREATE TABLE t(x)"]).unwrap());
        let readers = Readers::new(path);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        let ask = |sql: &'static str, time: Duration| {
            readers.read(Instant::now() + time, move |connection| {
                Ok(connection.query_row(sql, (), |row| row.get::<_, i64>(0))?)
            })
        };
        runtime.block_on(async {
            let endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT sum(x) FROM n";
            let found = ask(endless, Duration::from_millis(50)).await;
            assert_eq!(found, Err(StoreError::Expired));
            assert_eq!(ask("SELECT 7", Duration::from_secs(600)).await, Ok(7));
        });
    }
}
