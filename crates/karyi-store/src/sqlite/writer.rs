//! Writes to the site database: each atomic, many in one commit.
//!
//! A write whose deadline passes before or while it runs is rolled back; one in time is committed before its
//! caller gets the reply.

use std::time::Instant;

use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::oneshot;

use crate::StoreError;
use crate::sqlite::group_commit::GroupCommit;
use karyi_core::limits;

/// Queued write.
trait WriteTask: Send {
    /// Runs the work inside a transaction.
    fn run(&mut self, connection: &Connection) -> Result<(), StoreError>;
    /// Sends the result to the caller.
    fn reply(self: Box<Self>, result: Result<(), StoreError>);
    /// Deadline for starting and completing the write.
    fn deadline(&self) -> Instant;
}

struct Write<T, F> {
    deadline: Instant,
    work: Option<F>,
    value: Option<T>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<T: Send, F: FnOnce(&Connection) -> Result<T, StoreError> + Send> WriteTask for Write<T, F> {
    fn run(&mut self, connection: &Connection) -> Result<(), StoreError> {
        let work = self.work.take().ok_or(StoreError::Closed)?;
        self.value = Some(work(connection)?);
        Ok(())
    }

    fn reply(self: Box<Self>, result: Result<(), StoreError>) {
        let Self { value, reply, .. } = *self;
        let answer = result.and_then(|()| value.ok_or(StoreError::Closed));
        // The caller may be gone.
        let _ = reply.send(answer);
    }

    fn deadline(&self) -> Instant {
        self.deadline
    }
}

/// Writer of the site database.
pub(super) struct Writer {
    group: GroupCommit<Box<dyn WriteTask>>,
}

impl Writer {
    /// Starts the writer on the only writing connection.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub(super) fn start(connection: Connection) -> Result<Self, StoreError> {
        let write = move |batch| commit(&connection, batch);
        let group = GroupCommit::start("site writer", write)?;
        Ok(Self { group })
    }

    /// Runs `work` in a transaction and returns its value once that is durable.
    ///
    /// # Errors
    /// The error of the work or of the commit; then nothing is changed.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        deadline: Instant,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let write = Write {
            deadline,
            work: Some(work),
            value: None,
            reply,
        };
        self.group.send(Box::new(write)).await?;
        answer.await.map_err(|_| StoreError::Closed)?
    }
}

fn commit(connection: &Connection, mut batch: Vec<Box<dyn WriteTask>>) {
    match run_batch(connection, &mut batch) {
        Ok(results) => {
            for (task, result) in batch.into_iter().zip(results) {
                task.reply(result);
            }
        }
        Err(error) => batch
            .into_iter()
            .for_each(|task| task.reply(Err(error.clone()))),
    }
}

fn run_batch(
    connection: &Connection,
    batch: &mut Vec<Box<dyn WriteTask>>,
) -> Result<Vec<Result<(), StoreError>>, StoreError> {
    let mut transaction = begin(connection, batch)?;
    let mut results = Vec::with_capacity(batch.len());
    for task in batch {
        let result = one(&mut transaction, task.as_mut());
        // On a full disk or an I/O error SQLite aborts the whole transaction, and later writes would be
        // committed separately.
        if transaction.is_autocommit() {
            return Err(result.err().unwrap_or(StoreError::Closed));
        }
        results.push(result);
    }
    transaction.commit()?;
    Ok(results)
}

/// Begins a transaction. While another program holds the lock, each caller waits until its deadline at most;
/// expired callers are notified and removed.
fn begin<'c>(
    connection: &'c Connection,
    batch: &mut Vec<Box<dyn WriteTask>>,
) -> Result<Transaction<'c>, StoreError> {
    let limit = Instant::now() + limits::DATABASE_BUSY_TIMEOUT;
    loop {
        let now = Instant::now();
        let next = batch.iter().map(|task| task.deadline()).min();
        let until = next.map_or(limit, |next| next.min(limit));
        connection.busy_timeout(until.saturating_duration_since(now))?;
        let begun = Transaction::new_unchecked(connection, TransactionBehavior::Immediate);
        let error = match begun {
            Ok(transaction) => return Ok(transaction),
            Err(error) => StoreError::from(error),
        };
        let now = Instant::now();
        for late in batch.extract_if(.., |task| task.deadline() <= now) {
            late.reply(Err(StoreError::Expired));
        }
        if error != StoreError::Busy || batch.is_empty() || now >= limit {
            return Err(error);
        }
    }
}

fn is_late(task: &dyn WriteTask) -> bool {
    Instant::now() >= task.deadline()
}

fn one(
    transaction: &mut rusqlite::Transaction<'_>,
    task: &mut dyn WriteTask,
) -> Result<(), StoreError> {
    if is_late(task) {
        return Err(StoreError::Expired);
    }
    // Rolled back when dropped without a commit.
    let savepoint = transaction.savepoint()?;
    task.run(&savepoint)?;
    if is_late(task) {
        return Err(StoreError::Expired);
    }
    Ok(savepoint.commit()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::connection;
    use std::time::Duration;

    #[test]
    fn a_failed_write_leaves_nothing_and_its_neighbours_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db");
        let first = connection::open_to_write(&path, &["CREATE TABLE t(x UNIQUE)"]).unwrap();
        let writer = Writer::start(first).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let later = Instant::now() + Duration::from_secs(600);
        let insert = |x: i64, deadline| {
            writer.write(deadline, move |connection| {
                connection.execute("INSERT INTO t VALUES (?)", [x])?;
                if x == 3 {
                    connection.execute("INSERT INTO t VALUES (?)", [4])?;
                    return Err(StoreError::Conflict("three".into()));
                }
                Ok(x)
            })
        };
        let results = runtime.block_on(async {
            tokio::join!(
                insert(1, later),
                insert(3, later),
                insert(5, Instant::now()),
                insert(2, later)
            )
        });
        let expected = (
            Ok(1),
            Err(StoreError::Conflict("three".into())),
            Err(StoreError::Expired),
            Ok(2),
        );
        assert_eq!(results, expected);
        drop(writer);
        let connection = connection::open_to_read(&path).unwrap();
        let sum: i64 = connection
            .query_row("SELECT sum(x) FROM t", (), |row| row.get(0))
            .unwrap();
        assert_eq!(sum, 3);
    }

    #[test]
    fn aborted_transactions_leave_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db");
        let connection = connection::open_to_write(&path, &["CREATE TABLE t(x)"]).unwrap();
        connection
            .execute_batch("PRAGMA max_page_count = 50")
            .unwrap();
        let insert = |bytes: usize| -> Box<dyn WriteTask> {
            Box::new(Write {
                deadline: Instant::now() + Duration::from_secs(600),
                work: Some(move |connection: &Connection| {
                    Ok(connection.execute("INSERT INTO t VALUES (zeroblob(?))", [bytes])?)
                }),
                value: None,
                reply: oneshot::channel().0,
            })
        };
        let mut batch = vec![insert(1), insert(1_000_000), insert(2)];
        assert_eq!(run_batch(&connection, &mut batch), Err(StoreError::Full));
        let count = || -> u64 {
            connection
                .query_row("SELECT count(*) FROM t", (), |row| row.get(0))
                .unwrap()
        };
        assert_eq!(count(), 0);
        let next = run_batch(&connection, &mut vec![insert(1)]);
        assert_eq!((next, count()), (Ok(vec![Ok(())]), 1));
    }

    #[test]
    fn callers_wait_for_a_lock_until_their_deadline() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db");
        let first = connection::open_to_write(&path, &["CREATE TABLE t(x)"]).unwrap();
        let other = Connection::open(&path).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let writer = Writer::start(first).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let write = |time: Duration| {
            let deadline = Instant::now() + time;
            writer.write(deadline, |connection| {
                Ok(connection.execute("INSERT INTO t VALUES (1)", ())?)
            })
        };
        let (soon, later) = (Duration::from_millis(20), Duration::from_secs(600));
        let results = runtime.block_on(async { tokio::join!(write(soon), write(later)) });
        assert_eq!(results, (Err(StoreError::Expired), Err(StoreError::Busy)));
        other.execute_batch("ROLLBACK").unwrap();
        assert_eq!(runtime.block_on(write(later)), Ok(1));
    }
}
