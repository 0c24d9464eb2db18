//! Reader threads, each with its own connection, that respect the deadline of a call.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{JoinHandle, available_parallelism};
use std::time::Instant;

use rusqlite::Connection;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::StoreError;
use crate::sqlite::connection::open_to_read;
use crate::sqlite::queue::Queue;
use karyi_core::limits;

/// SQLite steps between two checks of the deadline.
const STEPS: i32 = 1000;

/// Task for a thread's connection, which is opened on first use.
type ReadTask = Box<dyn FnOnce(&mut Option<Connection>) + Send>;

/// Task with its permit to wait.
type QueuedRead = (ReadTask, OwnedSemaphorePermit);

/// Handle of the threads. Dropping it waits for the queued reads.
pub(super) struct Readers {
    path: Arc<PathBuf>,
    queue: Arc<Queue<QueuedRead>>,
    places: Arc<Semaphore>,
    threads: Vec<JoinHandle<()>>,
}

impl Readers {
    /// Starts the threads for a database.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub(super) fn start(path: PathBuf) -> Result<Self, StoreError> {
        let processors = available_parallelism().map_or(1, usize::from);
        let count = processors.clamp(limits::MIN_DATABASE_READERS, limits::MAX_DATABASE_READERS);
        let mut readers = Self {
            path: Arc::new(path),
            queue: Arc::default(),
            places: Arc::new(Semaphore::new(limits::MAX_WAITING_READS)),
            threads: Vec::new(),
        };
        for _ in 0..count {
            let queue = Arc::clone(&readers.queue);
            let thread = std::thread::Builder::new().name("site reader".into());
            let thread = thread.spawn(move || work(&queue));
            let failed = |error| StoreError::Broken(format!("starting a thread: {error}"));
            readers.threads.push(thread.map_err(failed)?);
        }
        Ok(readers)
    }

    /// Runs `work` on a thread's connection and interrupts it at the deadline. All its reads see one
    /// snapshot.
    ///
    /// # Errors
    /// The error of `work`, or `Expired`.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        deadline: Instant,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let path = Arc::clone(&self.path);
        let work: ReadTask = Box::new(move |connection| {
            let result = catch_unwind(AssertUnwindSafe(|| {
                until(deadline, connection, &path, work)
            }));
            let _ = reply.send(result);
        });
        let place = Arc::clone(&self.places).acquire_owned();
        let place = tokio::time::timeout_at(deadline.into(), place).await;
        let place = place.map_err(|_| StoreError::Expired)?;
        self.queue
            .add((work, place.map_err(|_| StoreError::Closed)?));
        match answer.await.map_err(|_| StoreError::Closed)? {
            Ok(result) => result,
            Err(panic) => resume_unwind(panic),
        }
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.queue.close();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn work(queue: &Queue<QueuedRead>) {
    let mut connection = None;
    while let Some((job, place)) = queue.take() {
        drop(place);
        job(&mut connection);
    }
}

fn until<T>(
    deadline: Instant,
    connection: &mut Option<Connection>,
    path: &Path,
    work: impl FnOnce(&Connection) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    if Instant::now() >= deadline {
        return Err(StoreError::Expired);
    }
    let mut own = match connection.take() {
        Some(own) => own,
        None => open_to_read(path)?,
    };
    let result = within(deadline, &mut own, work);
    // A connection stuck in a transaction is not used again.
    if own.is_autocommit() {
        *connection = Some(own);
    }
    result
}

/// Runs `work` in a transaction, which locks and checks the file once instead of per statement.
fn within<T>(
    deadline: Instant,
    connection: &mut Connection,
    work: impl FnOnce(&Connection) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    connection.progress_handler(STEPS, Some(move || Instant::now() >= deadline))?;
    connection.prepare_cached("BEGIN")?.execute(())?;
    let result = work(connection);
    connection.progress_handler(STEPS, None::<fn() -> bool>)?;
    // Some errors have already ended the transaction.
    if !connection.is_autocommit() {
        connection.prepare_cached("COMMIT")?.execute(())?;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::connection::open_to_write;
    use std::time::Duration;

    /// Readers of a database with one table.
    fn started() -> (tempfile::TempDir, Readers, tokio::runtime::Runtime) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db");
        drop(open_to_write(&path, &["CREATE TABLE t(x)"]).unwrap());
        let readers = Readers::start(path).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        (dir, readers, runtime)
    }

    #[test]
    fn endless_queries_are_interrupted() {
        let (_dir, readers, runtime) = started();
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
            assert_eq!(ask("SELECT 8", Duration::ZERO).await, Err(StoreError::Expired));
        });
    }

    #[test]
    fn a_panic_only_reaches_its_caller() {
        let (_dir, readers, runtime) = started();
        let later = Instant::now() + Duration::from_secs(600);
        // More often than there are threads.
        for _ in 0..limits::MAX_DATABASE_READERS * 2 {
            let broken = readers.read::<()>(later, |_| panic!("a bug"));
            let caught = catch_unwind(AssertUnwindSafe(|| runtime.block_on(broken)));
            assert!(caught.is_err());
        }
        let seven = readers.read(later, |connection| {
            Ok(connection.query_row("SELECT 7", (), |row| row.get::<_, i64>(0))?)
        });
        assert_eq!(runtime.block_on(seven), Ok(7));
    }
}
