//! Thread that writes the ledger.
//!
//! Records of ended calls that a commit could not write wait in memory and are written in order with the next
//! successful commit, so a finished call is never taken for an interrupted one.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rusqlite::{CachedStatement, Connection, OptionalExtension, Transaction, TransactionBehavior};
use tokio::sync::oneshot;

use crate::StoreError;
use crate::ledger::{self, GENESIS, Hash, Record};
use crate::sqlite::ledger::file_identity::FileIdentity;
use karyi_core::ids;
use karyi_core::limits;

const INSERT: &str = "INSERT INTO ledger_rows (seq, hash, record, trace_id) VALUES (?, ?, ?, ?)";
const LAST: &str = "SELECT seq, hash FROM ledger_rows ORDER BY seq DESC LIMIT 1";
const INTEND: &str = "INSERT INTO intents (call_id, record) VALUES (?, ?)";
const FORGET: &str = "DELETE FROM intents WHERE call_id = ?";
/// Call id that no call has.
const PROBE: &str = "probe";

/// Command to the writing thread.
pub(super) enum Command {
    /// Record that a call is about to change something.
    Intend { call_id: String, record: String },
    /// Append the record of a call.
    Append(EncodedRecord),
    /// Close the calls of earlier processes.
    SettleInterrupted,
    /// Write and remove a test row.
    Probe,
    /// Write the backlog.
    Flush,
}

/// Command and its reply channel.
pub(super) type QueuedCommand = (Command, oneshot::Sender<Result<usize, StoreError>>);

/// Encoded record in a single allocation, as another thread frees it.
pub(super) struct EncodedRecord {
    /// Record, call id and trace id.
    text: String,
    record_ends: usize,
    call_ends: usize,
}

impl EncodedRecord {
    /// Encodes a record.
    ///
    /// # Errors
    /// The record cannot be serialised.
    pub(super) fn of(record: &Record<'_>) -> Result<Self, StoreError> {
        let mut whole = text(record)?;
        let record_ends = whole.len();
        whole.push_str(&record.call_id);
        let call_ends = whole.len();
        whole.push_str(&record.trace_id);
        Ok(Self {
            text: whole,
            record_ends,
            call_ends,
        })
    }

    fn json(&self) -> &str {
        self.text.get(..self.record_ends).unwrap_or_default()
    }

    fn call_id(&self) -> &str {
        self.text
            .get(self.record_ends..self.call_ends)
            .unwrap_or_default()
    }

    fn trace_id(&self) -> &str {
        self.text.get(self.call_ends..).unwrap_or_default()
    }
}

/// Serialises a record.
///
/// # Errors
/// The result is not UTF-8.
pub(super) fn text(record: &Record<'_>) -> Result<String, StoreError> {
    let mut text = Vec::with_capacity(limits::RECORD_BYTES);
    record.add_to(&mut text);
    String::from_utf8(text).map_err(|error| StoreError::Broken(error.to_string()))
}

/// State of the writing thread.
pub(super) struct Writer {
    connection: Connection,
    file: Option<FileIdentity>,
    /// Calls with a written intent; most calls have none to remove.
    intended: HashSet<String>,
    /// Records that no commit has written yet, in order.
    backlog: Vec<EncodedRecord>,
    backlog_bytes: usize,
    /// Calls whose caller gave up while the intent was written; they were not made.
    void: Vec<String>,
    /// Size of the backlog: both lists above.
    waiting: Arc<AtomicUsize>,
}

/// Changes of the intents, applied after the commit.
#[derive(Default)]
struct Changes {
    added: HashSet<String>,
    removed: Vec<String>,
}

impl Writer {
    /// Creates the writer; `waiting` publishes the size of its backlog.
    pub(super) fn new(connection: Connection, waiting: Arc<AtomicUsize>) -> Self {
        Self {
            file: FileIdentity::of(&connection),
            connection,
            intended: HashSet::new(),
            backlog: Vec::new(),
            backlog_bytes: 0,
            void: Vec::new(),
            waiting,
        }
    }

    /// Commits the backlog and a batch together.
    pub(super) fn commit(&mut self, batch: Vec<QueuedCommand>) {
        let batch = self.refuse_if_moved(batch);
        match self.in_time(&batch) {
            Ok(counts) => {
                for ((command, reply), count) in batch.into_iter().zip(counts) {
                    let sent = reply.send(Ok(count));
                    if let (Command::Intend { call_id, .. }, Err(_)) = (command, sent) {
                        self.void.push(call_id);
                    }
                }
                self.publish_backlog();
            }
            Err(error) => {
                for (command, reply) in batch {
                    let answer = self.defer(command, &error);
                    // Published first, since the caller may read it after the reply.
                    self.publish_backlog();
                    // The caller may be gone.
                    let _ = reply.send(Err(answer));
                }
            }
        }
    }

    /// Refuses intents and probes if the file was moved, and returns the rest. Records of completed calls are
    /// still written to it.
    fn refuse_if_moved(&self, batch: Vec<QueuedCommand>) -> Vec<QueuedCommand> {
        let needs_file = |(command, _): &QueuedCommand| {
            matches!(command, Command::Intend { .. } | Command::Probe)
        };
        let Some(file) = &self.file else {
            return batch;
        };
        if !batch.iter().any(needs_file) {
            return batch;
        }
        let Err(error) = file.check() else {
            return batch;
        };
        let (refused, rest): (Vec<QueuedCommand>, Vec<QueuedCommand>) =
            batch.into_iter().partition(needs_file);
        for (_, reply) in refused {
            // The caller may be gone.
            let _ = reply.send(Err(error.clone()));
        }
        rest
    }

    /// Commits a batch. A mere flush does not wait for other programs, since later commands would be delayed.
    fn in_time(&mut self, batch: &[QueuedCommand]) -> Result<Vec<usize>, StoreError> {
        let is_catching_up = |(command, _): &QueuedCommand| matches!(command, Command::Flush);
        if !batch.iter().all(is_catching_up) {
            return self.commit_batch(batch);
        }
        self.connection.busy_timeout(Duration::ZERO)?;
        let result = self.commit_batch(batch);
        self.connection
            .busy_timeout(limits::DATABASE_BUSY_TIMEOUT)?;
        result
    }

    /// Adds a record to the backlog if there is room; always for a call with effects, of which none starts
    /// while the ledger is not writable. Returns the error for the caller.
    fn defer(&mut self, command: Command, error: &StoreError) -> StoreError {
        let Command::Append(record) = command else {
            return error.clone();
        };
        let bytes = self.backlog_bytes + size_of::<EncodedRecord>() + record.text.len();
        if bytes > limits::MAX_LATE_RECORD_BYTES && !self.intended.contains(record.call_id()) {
            return error.clone();
        }
        self.backlog_bytes = bytes;
        self.backlog.push(record);
        StoreError::Late
    }

    fn publish_backlog(&self) {
        let count = self.backlog.len() + self.void.len();
        self.waiting.store(count, Ordering::Relaxed);
    }

    fn commit_batch(&mut self, batch: &[QueuedCommand]) -> Result<Vec<usize>, StoreError> {
        let immediate = TransactionBehavior::Immediate;
        let transaction = Transaction::new_unchecked(&self.connection, immediate)?;
        let mut chain = Chain::of(&transaction)?;
        let mut changes = Changes::default();
        for record in &self.backlog {
            self.append_record(&mut chain, &mut changes, record)?;
        }
        for call_id in &self.void {
            forget(&transaction, call_id)?;
        }
        let mut counts = Vec::with_capacity(batch.len());
        for (command, reply) in batch {
            counts.push(match command {
                // The caller gave up and was told that nothing changed.
                Command::Intend { .. } if reply.is_closed() => 0,
                Command::Intend { call_id, record } => {
                    let mut insert = transaction.prepare_cached(INTEND)?;
                    insert.execute((call_id, record))?;
                    changes.added.insert(call_id.clone());
                    1
                }
                Command::Append(record) => self.append_record(&mut chain, &mut changes, record)?,
                Command::SettleInterrupted => settle(&mut chain)?,
                Command::Probe => probe(&transaction)?,
                Command::Flush => 0,
            });
        }
        drop(chain);
        transaction.commit()?;
        self.apply_changes(changes);
        Ok(counts)
    }

    fn append_record(
        &self,
        chain: &mut Chain<'_>,
        changes: &mut Changes,
        record: &EncodedRecord,
    ) -> Result<usize, StoreError> {
        chain.append(record)?;
        let id = record.call_id();
        if !self.intended.contains(id) && !changes.added.contains(id) {
            return Ok(0);
        }
        changes.removed.push(id.to_owned());
        forget(chain.connection, id)
    }

    /// Applies committed changes.
    fn apply_changes(&mut self, changes: Changes) {
        self.backlog.clear();
        self.backlog_bytes = 0;
        self.intended.extend(changes.added);
        for call_id in changes.removed.iter().chain(&self.void) {
            self.intended.remove(call_id);
        }
        self.void.clear();
        self.publish_backlog();
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if !self.backlog.is_empty() || !self.void.is_empty() {
            // Last attempt; the server has already reported what cannot be written.
            let _ = self.commit_batch(&[]);
        }
    }
}

/// End of the chain inside a transaction.
struct Chain<'c> {
    connection: &'c Connection,
    insert: CachedStatement<'c>,
    seq: u64,
    hash: Hash,
}

impl<'c> Chain<'c> {
    fn of(connection: &'c Connection) -> Result<Self, StoreError> {
        let last = connection
            .prepare_cached(LAST)?
            .query_row((), |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let (seq, hash) = last.unwrap_or((0, GENESIS));
        Ok(Self {
            connection,
            insert: connection.prepare_cached(INSERT)?,
            seq,
            hash,
        })
    }

    fn append(&mut self, record: &EncodedRecord) -> Result<(), StoreError> {
        let seq = self.seq + 1;
        let hash = ledger::hash(&self.hash, seq, record.json());
        let row = (seq, hash, record.json(), record.trace_id());
        self.insert.execute(row)?;
        (self.seq, self.hash) = (seq, hash);
        Ok(())
    }
}

fn forget(connection: &Connection, call_id: &str) -> Result<usize, StoreError> {
    Ok(connection.prepare_cached(FORGET)?.execute([call_id])?)
}

/// Writes and removes an intent. The page changes, so it must reach the disk.
fn probe(connection: &Connection) -> Result<usize, StoreError> {
    connection.prepare_cached(INTEND)?.execute((PROBE, ""))?;
    forget(connection, PROBE)
}

fn settle(chain: &mut Chain<'_>) -> Result<usize, StoreError> {
    let orphans: Vec<String> = chain
        .connection
        .prepare("SELECT record FROM intents ORDER BY call_id")?
        .query_map((), |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    for text in &orphans {
        chain.append(&interrupted(text)?)?;
    }
    chain.connection.execute("DELETE FROM intents", ())?;
    Ok(orphans.len())
}

fn interrupted(text_of_intent: &str) -> Result<EncodedRecord, StoreError> {
    let broken = |error: serde_json::Error| StoreError::Broken(format!("an intent: {error}"));
    let mut record: Record<'_> = serde_json::from_str(text_of_intent).map_err(broken)?;
    record.ts_end = ids::now().into();
    record.status = "error".into();
    record.error_type = Some("Interrupted".into());
    record.error = Some("the server ended while the call ran; it may have taken effect".into());
    record
        .tool_calls
        .iter_mut()
        .for_each(|call| call.status = "error".into());
    EncodedRecord::of(&record)
}
