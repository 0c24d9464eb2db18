//! Prunes the journal to its limits, oldest changes first.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::super::state_file;
use super::blobs::StoredBlob;
use super::{Entry, Journal, milliseconds, sync_directory, write_private};
use karyi_core::error::ToolError;
use karyi_core::limits;
use karyi_core::temporary_files::remove_old_temporary_files;

/// Changes removed because the journal was full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrunedChanges {
    /// Number of changes.
    pub changes: usize,
    /// Number of the last of them.
    pub last: u64,
}

impl fmt::Display for PrunedChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { changes, last } = self;
        let what = match changes {
            1 => format!("its oldest change, number {last}, was"),
            _ => format!("its {changes} oldest changes, up to number {last}, were"),
        };
        let capacity_text = capacity_text();
        write!(
            f,
            "the journal is full ({capacity_text}): {what} removed and cannot be undone any more"
        )
    }
}

/// Describes the limits of the journal.
#[must_use]
pub fn capacity_text() -> String {
    let days = limits::JOURNAL_AGE.as_secs() / (24 * 60 * 60);
    let (gib, changes) = (limits::JOURNAL_BYTES >> 30, limits::JOURNAL_ENTRIES);
    format!("it holds {gib} GiB, {days} days and {changes} changes")
}

/// State of the last scan, which spares most changes a scan of the whole journal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct ScanState {
    /// Time of the scan, in milliseconds since 1970.
    time_ms: u64,
    /// Bytes stored since.
    taken: u64,
    /// The list as karyi left it.
    list: ListMark,
}

/// Size and modification time of the list of changes; others mean that something else wrote to it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in super::super) struct ListMark {
    bytes: u64,
    changed: (i64, i64),
}

impl Journal {
    /// Returns the file with the state of the last scan.
    pub(super) fn scan_state_path(&self) -> PathBuf {
        self.directory().join("looked")
    }

    /// Returns size and modification time of the list of changes.
    pub(in super::super) fn list_mark(&self) -> ListMark {
        let found = std::fs::metadata(self.entries_path());
        found.map_or_else(
            |_| ListMark::default(),
            |found| ListMark {
                bytes: found.len(),
                changed: (found.mtime(), found.mtime_nsec()),
            },
        )
    }

    /// Scans the journal for damage and prunes it when that is due: once an hour, after much was stored, and
    /// when something else wrote to the list. The caller holds the lock of the entries.
    pub(super) fn scan(&self, before: ListMark, now: SystemTime) {
        let path = self.scan_state_path();
        let known = state_file::read(&path).ok();
        let known: Option<ScanState> = known.and_then(|known| serde_json::from_slice(&known).ok());
        let taken = self.taken.swap(0, Ordering::Relaxed);
        let now_ms = milliseconds(now);
        let most = limits::JOURNAL_PRUNE_BYTES.min(self.caps.bytes / 16);
        let is_recent = |known: &ScanState| {
            let age_ms = now_ms.checked_sub(known.time_ms);
            let most_ms = limits::JOURNAL_CHECK_INTERVAL.as_millis() as u64;
            known.list == before
                && known.taken.saturating_add(taken) <= most
                && age_ms.is_some_and(|age_ms| age_ms < most_ms)
        };
        let mut scan_state = match known.filter(is_recent) {
            Some(known) => ScanState {
                taken: known.taken + taken,
                ..known
            },
            None => {
                let all = self.entries_and_damage();
                let (entries, damage) =
                    all.map_or((None, None), |(all, damage)| (Some(all), damage));
                self.record_broken_lines(damage);
                // What cannot be removed now is tried again at the next scan.
                let _ = entries.map(|entries| self.prune(&entries, now));
                ScanState {
                    time_ms: now_ms,
                    ..ScanState::default()
                }
            }
        };
        scan_state.list = self.list_mark();
        // If this fails, the next change scans again.
        let text = serde_json::to_string(&scan_state).unwrap_or_default();
        let _ = write_private(&path, &text);
    }

    /// Prunes entries past the limits, then unreferenced blobs. The caller holds the lock of the entries.
    pub(super) fn prune(&self, entries: &[Entry], now: SystemTime) -> Result<(), ToolError> {
        remove_old_temporary_files(&self.directory);
        let blobs = self.blobs.list();
        let first = self.first_retained(entries, &blobs, now);
        let stay = entries.get(first..).unwrap_or_default();
        let times = times(entries);
        if let Some((last, time)) = first
            .checked_sub(1)
            .and_then(|last| Some((entries.get(last)?, *times.get(last)?)))
        {
            self.rewrite(stay)
                .map_err(|error| ToolError::from_io(&self.entries_path(), &error))?;
            // Entries that expire are routine and not reported.
            if time >= self.oldest_ms(now) {
                self.record_pruned(PrunedChanges {
                    changes: first,
                    last: last.number,
                });
            }
        }
        // The rollback of an unfinished change needs its blobs.
        let under_way = self.under_way();
        let named = stay.iter().chain(&under_way).flat_map(contents);
        let named: HashSet<&str> = named.collect();
        for content in blobs {
            let age = now.duration_since(content.changed).unwrap_or_default();
            if !named.contains(content.name.as_str()) && age > limits::JOURNAL_UNCLAIMED_AGE {
                let _ = std::fs::remove_file(content.path);
            }
        }
        Ok(())
    }

    /// Returns the entries of decided changes that are not in the list yet.
    fn under_way(&self) -> Vec<Entry> {
        #[derive(serde::Deserialize)]
        struct DecisionLine {
            entry: Entry,
        }
        let records = std::fs::read_dir(self.transactions()).into_iter().flatten();
        let read = |path: PathBuf| {
            let mut bytes = Vec::new();
            let file = state_file::open_to_read(&path).ok()?;
            let read = file
                .take(limits::MAX_WAL_RECORD_BYTES)
                .read_to_end(&mut bytes);
            // The first line is the plan.
            let line = bytes.split(|byte| *byte == b'\n').nth(1)?;
            let decided: DecisionLine = serde_json::from_slice(line).ok()?;
            read.is_ok().then_some(decided.entry)
        };
        records
            .flatten()
            .filter_map(|record| read(record.path()))
            .collect()
    }

    fn oldest_ms(&self, now: SystemTime) -> u64 {
        milliseconds(now).saturating_sub(self.caps.age.as_millis() as u64)
    }

    /// Returns the index of the oldest entry that stays.
    fn first_retained(&self, entries: &[Entry], blobs: &[StoredBlob], now: SystemTime) -> usize {
        let sizes: HashMap<&str, u64> = blobs
            .iter()
            .map(|content| (content.name.as_str(), content.bytes))
            .collect();
        let oldest = self.oldest_ms(now);
        let times = times(entries);
        let mut seen = HashSet::new();
        let (mut bytes, mut count) = (0_u64, 0);
        for (index, entry) in entries.iter().enumerate().rev() {
            count += 1;
            let new = contents(entry).filter(|name| seen.insert(*name));
            bytes += new.filter_map(|name| sizes.get(name)).sum::<u64>();
            // The latest change can always be undone.
            let is_past = bytes > self.caps.bytes || count > self.caps.entries;
            let is_old = times.get(index).is_some_and(|time| *time < oldest);
            if count > 1 && (is_past || is_old) {
                return index + 1;
            }
        }
        0
    }

    fn rewrite(&self, entries: &[Entry]) -> io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(&self.directory)?;
        for entry in entries {
            writeln!(file, "{}", serde_json::to_string(entry)?)?;
        }
        file.as_file().sync_data()?;
        file.persist(self.entries_path())?;
        sync_directory(&self.directory);
        Ok(())
    }
}

/// Returns the latest time up to each entry, so that an entry made while the clock was wrong is not older
/// than its predecessors.
fn times(entries: &[Entry]) -> Vec<u64> {
    let mut latest = 0;
    let time = |entry: &Entry| {
        latest = entry.time_ms.max(latest);
        latest
    };
    entries.iter().map(time).collect()
}

fn contents(entry: &Entry) -> impl Iterator<Item = &str> {
    let versions = entry.files.iter().flat_map(|file| [&file.old, &file.new]);
    versions
        .flatten()
        .flat_map(|version| {
            [
                Some(version.content.as_str()),
                version.attributes.as_deref(),
            ]
        })
        .flatten()
}
