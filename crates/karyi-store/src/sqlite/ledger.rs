//! Ledger in an SQLite file of its own.
//!
//! The table holds each record as the text that was hashed. A view computes columns from that text, so SQL
//! queries see what is verified, and only queries pay for it. The trace is also stored in an indexed column,
//! since extracting it would cost more than the insert; verification checks that both agree.

mod file_identity;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rusqlite::{Connection, OptionalExtension};
use tokio::sync::oneshot;

use crate::ledger::{self, GENESIS, Hash, Record, Row};
use crate::sqlite::connection::{open_to_read, open_to_write};
use crate::sqlite::group_commit::GroupCommit;
use crate::sqlite::ledger::writer::{Command, EncodedRecord, QueuedCommand, Writer};
use crate::{Ledger, Pending, StoreError};
use karyi_core::limits;

const STEPS: &[&str] = &[
    "
CREATE TABLE trace_ledger (
  seq INTEGER PRIMARY KEY,
  hash BLOB NOT NULL CHECK (length(hash) = 32),
  record TEXT NOT NULL,
  call_id TEXT GENERATED ALWAYS AS (record ->> 'call_id') VIRTUAL,
  trace_id TEXT GENERATED ALWAYS AS (record ->> 'trace_id') VIRTUAL,
  tenant_id TEXT GENERATED ALWAYS AS (record ->> 'tenant_id') VIRTUAL,
  site_id TEXT GENERATED ALWAYS AS (record ->> 'site_id') VIRTUAL,
  tool_name TEXT GENERATED ALWAYS AS (record ->> 'tool_name') VIRTUAL,
  tool_calls TEXT GENERATED ALWAYS AS (record -> 'tool_calls') VIRTUAL,
  latency_ms INTEGER GENERATED ALWAYS AS (record ->> 'latency_ms') VIRTUAL,
  status TEXT GENERATED ALWAYS AS (record ->> 'status') VIRTUAL,
  error_type TEXT GENERATED ALWAYS AS (record ->> 'error_type') VIRTUAL,
  error TEXT GENERATED ALWAYS AS (record ->> 'error') VIRTUAL,
  ts_end TEXT GENERATED ALWAYS AS (record ->> 'ts_end') VIRTUAL
) STRICT;
CREATE INDEX trace_ledger_trace ON trace_ledger (trace_id);
CREATE TABLE intents (call_id TEXT PRIMARY KEY, record TEXT NOT NULL) STRICT, WITHOUT ROWID;
",
    "
DROP INDEX trace_ledger_trace;
ALTER TABLE trace_ledger RENAME TO ledger_rows;
ALTER TABLE ledger_rows DROP COLUMN call_id;
ALTER TABLE ledger_rows DROP COLUMN trace_id;
ALTER TABLE ledger_rows DROP COLUMN tenant_id;
ALTER TABLE ledger_rows DROP COLUMN site_id;
ALTER TABLE ledger_rows DROP COLUMN tool_name;
ALTER TABLE ledger_rows DROP COLUMN tool_calls;
ALTER TABLE ledger_rows DROP COLUMN latency_ms;
ALTER TABLE ledger_rows DROP COLUMN status;
ALTER TABLE ledger_rows DROP COLUMN error_type;
ALTER TABLE ledger_rows DROP COLUMN error;
ALTER TABLE ledger_rows DROP COLUMN ts_end;
ALTER TABLE ledger_rows ADD COLUMN trace_id TEXT;
UPDATE ledger_rows SET trace_id = record ->> 'trace_id';
CREATE INDEX ledger_rows_trace ON ledger_rows (trace_id);
CREATE VIEW trace_ledger AS SELECT seq, hash, record, trace_id,
  record ->> 'call_id' AS call_id,
  record ->> 'tenant_id' AS tenant_id,
  record ->> 'site_id' AS site_id,
  record ->> 'tool_name' AS tool_name,
  record -> 'tool_calls' AS tool_calls,
  record ->> 'latency_ms' AS latency_ms,
  record ->> 'status' AS status,
  record ->> 'error_type' AS error_type,
  record ->> 'error' AS error,
  record ->> 'ts_end' AS ts_end
FROM ledger_rows;
",
];

/// Ledger, open for writing.
pub struct SqliteLedger {
    group: GroupCommit<QueuedCommand>,
    /// Number of records waiting in memory.
    backlog: Arc<AtomicUsize>,
}

impl SqliteLedger {
    /// Opens the ledger in `path` and creates it if needed.
    ///
    /// # Errors
    /// The file cannot be opened or is not a ledger.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let connection = open_to_write(path, STEPS)?;
        let pages = limits::LEDGER_CHECKPOINT_PAGES;
        connection.pragma_update_and_check(None, "wal_autocheckpoint", pages, |_| Ok(()))?;
        // A negative number counts KiB.
        connection.pragma_update(None, "cache_size", -limits::LEDGER_CACHE_KIB)?;
        let backlog = Arc::default();
        let mut writer = Writer::new(connection, Arc::clone(&backlog));
        let group = GroupCommit::start("ledger writer", move |batch| writer.commit(batch))?;
        Ok(Self { group, backlog })
    }

    async fn send(&self, command: Command) -> Result<usize, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.group.send((command, reply)).await?;
        answer.await.map_err(|_| StoreError::Closed)?
    }
}

impl Ledger for SqliteLedger {
    fn record_intent<'a>(&'a self, record: &'a Record<'_>) -> Pending<'a, ()> {
        Box::pin(async move {
            let command = Command::Intend {
                call_id: record.call_id.clone().into_owned(),
                record: writer::text(record)?,
            };
            self.send(command).await.map(drop)
        })
    }

    fn append<'a>(&'a self, record: &Record<'_>) -> Pending<'a, ()> {
        let record = EncodedRecord::of(record);
        Box::pin(async move { self.send(Command::Append(record?)).await.map(drop) })
    }

    fn settle_interrupted(&self) -> Pending<'_, usize> {
        Box::pin(self.send(Command::SettleInterrupted))
    }

    fn probe(&self) -> Pending<'_, ()> {
        Box::pin(async move { self.send(Command::Probe).await.map(drop) })
    }

    fn flush(&self) -> Pending<'_, ()> {
        Box::pin(async move { self.send(Command::Flush).await.map(drop) })
    }

    fn backlog(&self) -> usize {
        self.backlog.load(Ordering::Relaxed)
    }
}

/// Result of verifying the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Every record is intact.
    Whole {
        /// Number of records.
        rows: u64,
        /// Hash of the last record: the anchor to save.
        hash: Hash,
    },
    /// A record was changed, or one before it is missing.
    Broken {
        /// Number of the record.
        seq: u64,
    },
    /// No record has the anchor's hash.
    NoAnchor {
        /// Number of records.
        rows: u64,
    },
}

/// Ledger, open for reading.
pub struct LedgerFile {
    connection: Connection,
    path: PathBuf,
}

impl LedgerFile {
    /// Opens the ledger in `path`.
    ///
    /// # Errors
    /// It does not exist or is not a database.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Ok(Self {
            connection: open_to_read(path)?,
            path: path.to_owned(),
        })
    }

    /// Returns the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the last records, oldest first.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn tail(&self, count: usize) -> Result<Vec<Row>, StoreError> {
        let sql = "SELECT seq, hash, record FROM trace_ledger ORDER BY seq DESC LIMIT ?";
        let mut rows = self.rows(sql, [i64::try_from(count).unwrap_or(i64::MAX)])?;
        rows.reverse();
        Ok(rows)
    }

    /// Returns the records of a trace, or the record of a call.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn about(&self, id: &str) -> Result<Vec<Row>, StoreError> {
        let traced = "SELECT seq, hash, record FROM trace_ledger WHERE trace_id = ? ORDER BY seq";
        let found = self.rows(traced, [id])?;
        if !found.is_empty() {
            return Ok(found);
        }
        let called = "SELECT seq, hash, record FROM trace_ledger WHERE call_id = ?";
        self.rows(called, [id])
    }

    /// Passes every record to `take`, in order.
    ///
    /// # Errors
    /// The database cannot be read, or the error of `take`.
    pub fn each(
        &self,
        take: &mut dyn FnMut(Row) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let sql = "SELECT seq, hash, record FROM trace_ledger ORDER BY seq";
        let mut statement = self.connection.prepare(sql)?;
        let mut rows = statement.query(())?;
        while let Some(row) = rows.next()? {
            take(row_of(row)?)?;
        }
        Ok(())
    }

    /// Verifies every record, and that one has the hash `anchor`.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn verify(&self, anchor: Option<&Hash>) -> Result<Verdict, StoreError> {
        let (mut seq, mut hash) = (0, GENESIS);
        let mut broken = None;
        let mut has_anchor = anchor.is_none_or(|anchor| *anchor == GENESIS);
        let hidden = self.hidden()?;
        self.each(&mut |row| {
            let expected = ledger::hash(&hash, seq + 1, &row.record);
            let is_whole = row.seq == seq + 1 && row.hash == expected && hidden != Some(row.seq);
            if broken.is_none() && !is_whole {
                broken = Some(row.seq);
            }
            has_anchor |= anchor == Some(&row.hash);
            (seq, hash) = (row.seq, row.hash);
            Ok(())
        })?;
        Ok(match broken {
            Some(seq) => Verdict::Broken { seq },
            None if has_anchor => Verdict::Whole { rows: seq, hash },
            None => Verdict::NoAnchor { rows: seq },
        })
    }

    /// Returns the first record whose trace column differs from its text.
    fn hidden(&self) -> Result<Option<u64>, StoreError> {
        // Older tables have no such column.
        let has_both =
            "SELECT count(*) FROM pragma_table_info('ledger_rows') WHERE name = 'trace_id'";
        if self
            .connection
            .query_row(has_both, (), |row| row.get(0))
            .map(|count: u64| count == 0)?
        {
            return Ok(None);
        }
        let sql = "SELECT seq FROM ledger_rows WHERE NOT json_valid(record) \
            OR trace_id IS NOT record ->> 'trace_id' ORDER BY seq LIMIT 1";
        let found = self.connection.query_row(sql, (), |row| row.get(0));
        Ok(found.optional()?)
    }

    fn rows(&self, sql: &str, with: impl rusqlite::Params) -> Result<Vec<Row>, StoreError> {
        let mut statement = self.connection.prepare(sql)?;
        let rows = statement.query_map(with, row_of)?;
        let rows: Result<Vec<Row>, _> = rows.take(limits::MAX_LEDGER_ROWS_SHOWN).collect();
        Ok(rows?)
    }
}

fn row_of(row: &rusqlite::Row<'_>) -> rusqlite::Result<Row> {
    Ok(Row {
        seq: row.get(0)?,
        hash: row.get(1)?,
        record: row.get(2)?,
    })
}

#[cfg(test)]
#[path = "ledger/tests.rs"]
mod tests;
