//! Write-ahead log of changes in progress, from which a killed change is recovered.
//!
//! Each change has a record file. Its first line is the plan, which names every temporary file and backup.
//! The second, written when all new contents are on the disk, is the decision to make the change. A third
//! follows only when the change was made or refused and work is left. The writer holds a lock on the record;
//! a record whose lock is free was abandoned.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::journal::{Entry, StoredPath, milliseconds, sync_directory};
use super::state_file;
use karyi_core::limits;

/// Suffix of a complete record.
const SUFFIX: &str = ".json";
/// Suffix of a record that is being written.
const UNFINISHED: &str = ".new";

/// Plan of a change: everything it may leave behind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ChangePlan {
    /// Files that change.
    pub(super) steps: Vec<PlannedStep>,
    /// Directories to create, outermost first.
    pub(super) made: Vec<StoredPath>,
}

/// Plan for one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PlannedStep {
    /// The file.
    pub(super) path: StoredPath,
    /// Name of the temporary file with the new content.
    pub(super) temporary: Option<String>,
    /// Name of the backup with the old content.
    pub(super) backup: Option<String>,
}

/// Decision to make the change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Decision {
    /// Hashes of each step.
    pub(super) steps: Vec<StepHashes>,
    /// Entry for the journal.
    pub(super) entry: Entry,
}

/// Content hashes of one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StepHashes {
    /// Hash of the old content; `None` when there is no file.
    pub(super) old: Option<String>,
    /// Hash of the new content; `None` when the file is removed.
    pub(super) new: Option<String>,
}

/// Work left of a decided change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum PendingWork {
    /// Complete it, or roll it back if that is impossible.
    All,
    /// Roll it back: it was refused, and some files have their new content.
    TakeBack,
    /// Remove temporary files and backups.
    Clear,
}

/// Locked record of a change.
#[derive(Debug)]
pub(super) struct WalRecord {
    path: PathBuf,
    file: File,
}

/// Returns a unique id for a change.
pub(super) fn new_id() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let time = milliseconds(SystemTime::now());
    format!("{time:x}-{:x}-{count:x}", std::process::id())
}

impl WalRecord {
    /// Creates a record with a plan.
    pub(super) fn new(directory: &Path, id: &str, plan: &ChangePlan) -> io::Result<Self> {
        let early = directory.join(format!("{id}{UNFINISHED}"));
        let mut options = OpenOptions::new();
        options.create_new(true).append(true).read(true).mode(0o600);
        let mut file = options.open(&early)?;
        // No other process opens it before it has its final name.
        file.try_lock().map_err(io::Error::from)?;
        let path = directory.join(format!("{id}{SUFFIX}"));
        let written = write_line(&mut file, plan);
        let named = written.and_then(|()| std::fs::rename(&early, &path));
        if let Err(error) = named {
            let _ = std::fs::remove_file(&early);
            return Err(error);
        }
        Ok(Self { path, file })
    }

    /// Syncs the record to survive a power loss.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()?;
        self.path.parent().map(sync_directory);
        Ok(())
    }

    /// Writes the decision.
    pub(super) fn decide(&mut self, decision: &Decision) -> io::Result<()> {
        write_line(&mut self.file, decision)
    }

    /// Writes the decision and makes it durable with `sync`. If either fails, the record is truncated to the
    /// plan: the change is refused then and must not be made later.
    pub(super) fn decide_durably(
        &mut self,
        decision: &Decision,
        sync: impl FnOnce(&Self) -> io::Result<()>,
    ) -> io::Result<()> {
        let length = self.file.metadata()?.len();
        let written = self.decide(decision).and_then(|()| sync(self));
        if written.is_err() {
            let _ = self.file.set_len(length);
        }
        written
    }

    /// Writes the work that is left.
    pub(super) fn set_pending(&mut self, rest: PendingWork) -> io::Result<()> {
        write_line(&mut self.file, &rest)
    }

    /// Removes the record.
    pub(super) fn close(self) {
        let _ = std::fs::remove_file(&self.path);
    }

    /// Renames an unreadable record, so that recovery skips it.
    pub(super) fn quarantine(self) {
        let _ = std::fs::rename(&self.path, self.path.with_extension("broken"));
    }

    /// Returns its path.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the time since the last write.
    pub(super) fn age(&self) -> Option<Duration> {
        let written = self.file.metadata().and_then(|found| found.modified());
        written.ok()?.elapsed().ok()
    }

    /// Reads the state of the record.
    pub(super) fn read(&mut self) -> RecordState {
        let mut bytes = Vec::new();
        let most = limits::MAX_WAL_RECORD_BYTES;
        if (&self.file).take(most).read_to_end(&mut bytes).is_err() {
            return RecordState::Broken(None);
        }
        // A power loss left an unsynced record, so no step was made.
        if bytes.iter().all(|byte| *byte == 0) {
            return RecordState::Empty;
        }
        let mut lines = bytes.split_inclusive(|byte| *byte == b'\n');
        let Some(plan) = lines
            .next()
            .and_then(|line| serde_json::from_slice(line).ok())
        else {
            return RecordState::Broken(None);
        };
        // An unfinished decision does not count: it is written before the first step.
        let mut whole = || lines.next().filter(|line| line.ends_with(b"\n"));
        let Some(line) = whole() else {
            return RecordState::Planned(plan);
        };
        let Ok(decision) = serde_json::from_slice(line).map(Box::new) else {
            return RecordState::Broken(Some(plan));
        };
        let rest = whole().and_then(|line| serde_json::from_slice(line).ok());
        RecordState::Decided(plan, decision, rest.unwrap_or(PendingWork::All))
    }
}

/// State of a record.
pub(super) enum RecordState {
    /// Empty: no step was made.
    Empty,
    /// Planned and not decided.
    Planned(ChangePlan),
    /// Decided, with the work that is left.
    Decided(ChangePlan, Box<Decision>, PendingWork),
    /// Damaged: the progress is unknown.
    Broken(Option<ChangePlan>),
}

fn write_line(file: &mut File, value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    file.write_all(&line)
}

/// Returns the abandoned records, locked.
pub(super) fn abandoned_records(directory: &Path) -> Vec<WalRecord> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    paths.filter_map(abandoned_record).collect()
}

/// Returns the records that name one of these paths. The caller holds the locks of the paths, so the writers
/// of these records are dead or dying. The locks of the records themselves are no evidence, since other
/// processes take them to look.
pub(super) fn records_of_paths(directory: &Path, paths: &[&Path]) -> Vec<PathBuf> {
    let wanted: HashSet<&Path> = paths.iter().copied().collect();
    let names = |path: &PathBuf| {
        let plan = plan_of(path);
        let mut steps = plan.iter().flat_map(|plan| &plan.steps);
        steps.any(|step| wanted.contains(step.path.as_path()))
    };
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(names).collect()
}

fn plan_of(path: &Path) -> Option<ChangePlan> {
    let name = path.file_name()?.to_string_lossy();
    let file = state_file::open_to_read(path).ok();
    let file = file.filter(|_| name.ends_with(SUFFIX))?;
    let mut line = Vec::new();
    let most = limits::MAX_WAL_RECORD_BYTES;
    let mut reader = BufReader::new(file.take(most));
    reader.read_until(b'\n', &mut line).ok()?;
    serde_json::from_slice(&line).ok()
}

fn abandoned_record(path: PathBuf) -> Option<WalRecord> {
    let mut options = OpenOptions::new();
    let file = state_file::open(options.read(true).append(true), &path).ok()?;
    let name = path.file_name()?.to_string_lossy().into_owned();
    if !name.ends_with(SUFFIX) {
        // A quarantined record stays.
        if name.ends_with(UNFINISHED) {
            remove_unfinished(&path, &file);
        }
        return None;
    }
    file.try_lock().ok()?;
    // The writer may have removed it between opening and locking.
    let is_there = file.metadata().is_ok_and(|found| found.nlink() > 0);
    is_there.then_some(WalRecord { path, file })
}

/// Removes an incomplete record of a killed process, which made no step.
fn remove_unfinished(path: &Path, file: &File) {
    let age = file.metadata().and_then(|found| found.modified()).ok();
    let age = age.and_then(|changed| changed.elapsed().ok());
    if age.is_some_and(|age| age > limits::UNFINISHED_SESSION_AGE) && file.try_lock().is_ok() {
        let _ = std::fs::remove_file(path);
    }
}
