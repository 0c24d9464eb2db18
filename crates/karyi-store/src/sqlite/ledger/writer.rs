//! The thread that writes the ledger.
//!
//! What a commit could not write of calls that have ended waits in memory and is written, in its order,
//! with the next commit that succeeds: a call has its record as soon as the ledger can be written again,
//! and is never taken for one that was interrupted.

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
/// Stands for no call.
const PROBE: &str = "probe";

/// What is asked of the writing thread.
pub(super) enum Command {
    /// To note that a call is about to change something.
    Intend { call_id: String, record: String },
    /// To keep the record of a call.
    Append(EncodedRecord),
    /// To end the calls of earlier processes.
    SettleInterrupted,
    /// To write something at all.
    Probe,
    /// To write what waits.
    Flush,
}

/// A wish and who waits for it.
pub(super) type QueuedCommand = (Command, oneshot::Sender<Result<usize, StoreError>>);

/// A record that is to be kept: one text, which another thread gives back.
pub(super) struct EncodedRecord {
    /// The record, then the call, then the trace.
    text: String,
    record_ends: usize,
    call_ends: usize,
}

impl EncodedRecord {
    /// Makes it of a record.
    ///
    /// # Errors
    /// The record cannot be written as text.
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

/// Returns the text of a record.
///
/// # Errors
/// It is no text.
pub(super) fn text(record: &Record<'_>) -> Result<String, StoreError> {
    let mut text = Vec::with_capacity(limits::RECORD_BYTES);
    record.add_to(&mut text);
    String::from_utf8(text).map_err(|error| StoreError::Broken(error.to_string()))
}

/// What the writing thread has.
pub(super) struct Writer {
    connection: Connection,
    file: Option<FileIdentity>,
    /// Calls whose intent was written; most calls have none to be taken away.
    intended: HashSet<String>,
    /// Records that no commit has written yet, in their order.
    late: Vec<EncodedRecord>,
    late_bytes: usize,
    /// Calls that nobody waited for any more when their intent was written: they were not made.
    void: Vec<String>,
    /// How many of both there are.
    waiting: Arc<AtomicUsize>,
}

/// What a transaction changes in the intents, to be noted once it is committed.
#[derive(Default)]
struct Changes {
    added: HashSet<String>,
    removed: Vec<String>,
}

impl Writer {
    /// Makes it; `waiting` tells others how much was not written yet.
    pub(super) fn new(connection: Connection, waiting: Arc<AtomicUsize>) -> Self {
        Self {
            file: FileIdentity::of(&connection),
            connection,
            intended: HashSet::new(),
            late: Vec::new(),
            late_bytes: 0,
            void: Vec::new(),
            waiting,
        }
    }

    /// Writes what waited, then all of a batch, together.
    pub(super) fn commit(&mut self, batch: Vec<QueuedCommand>) {
        let batch = self.refuse_if_moved(batch);
        match self.in_time(&batch) {
            Ok(counts) => {
                for ((command, reply), count) in batch.into_iter().zip(counts) {
                    let told = reply.send(Ok(count));
                    if let (Command::Intend { call_id, .. }, Err(_)) = (command, told) {
                        self.void.push(call_id);
                    }
                }
                self.publish_backlog();
            }
            Err(error) => {
                for (command, reply) in batch {
                    let answer = self.defer(command, &error);
                    // Whoever is told may look how much waits.
                    self.publish_backlog();
                    // A caller that is gone needs no answer.
                    let _ = reply.send(Err(answer));
                }
            }
        }
    }

    /// Returns what can be done of a batch: in a file that is not where it was no intent counts, since
    /// nobody would find it, and it does not work. Records of calls that were made are kept in it all the same.
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
            // A caller that is gone needs no answer.
            let _ = reply.send(Err(error.clone()));
        }
        rest
    }

    /// Writes a batch. Nobody waits for another program only to write what waits: others would have to wait
    /// behind that.
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

    /// Keeps a record for the next commit when there is room for it: always when something was
    /// changed, which no call does while nothing can be written. Returns what its caller is told.
    fn defer(&mut self, command: Command, error: &StoreError) -> StoreError {
        let Command::Append(record) = command else {
            return error.clone();
        };
        let bytes = self.late_bytes + size_of::<EncodedRecord>() + record.text.len();
        if bytes > limits::MAX_LATE_RECORD_BYTES && !self.intended.contains(record.call_id()) {
            return error.clone();
        }
        self.late_bytes = bytes;
        self.late.push(record);
        StoreError::Late
    }

    fn publish_backlog(&self) {
        let count = self.late.len() + self.void.len();
        self.waiting.store(count, Ordering::Relaxed);
    }

    fn commit_batch(&mut self, batch: &[QueuedCommand]) -> Result<Vec<usize>, StoreError> {
        let immediate = TransactionBehavior::Immediate;
        let transaction = Transaction::new_unchecked(&self.connection, immediate)?;
        let mut chain = Chain::of(&transaction)?;
        let mut changes = Changes::default();
        for record in &self.late {
            self.keep(&mut chain, &mut changes, record)?;
        }
        for call_id in &self.void {
            forget(&transaction, call_id)?;
        }
        let mut counts = Vec::with_capacity(batch.len());
        for (command, reply) in batch {
            counts.push(match command {
                // Who has given up was told that nothing is changed.
                Command::Intend { .. } if reply.is_closed() => 0,
                Command::Intend { call_id, record } => {
                    let mut insert = transaction.prepare_cached(INTEND)?;
                    insert.execute((call_id, record))?;
                    changes.added.insert(call_id.clone());
                    1
                }
                Command::Append(record) => self.keep(&mut chain, &mut changes, record)?,
                Command::SettleInterrupted => settle(&mut chain)?,
                Command::Probe => probe(&transaction)?,
                Command::Flush => 0,
            });
        }
        drop(chain);
        transaction.commit()?;
        self.note(changes);
        Ok(counts)
    }

    fn keep(
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

    /// Notes what was committed.
    fn note(&mut self, changes: Changes) {
        self.late.clear();
        self.late_bytes = 0;
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
        if !self.late.is_empty() || !self.void.is_empty() {
            // The last try; the server has told by now what cannot be written.
            let _ = self.commit_batch(&[]);
        }
    }
}

/// The end of the chain inside a transaction.
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

/// Writes an intent and takes it away: the page has changed, so it has to reach the disk.
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
