//! The record of a change that is under way: what must be done should karyi be killed meanwhile.
//!
//! A record is a file of its own with two lines. The first names everything that may lie around from
//! now on. The second, written when all new contents are on the disk, says that the change is to
//! happen. A third one is written only when the change is made or refused and something is left to be done.
//! Its maker holds a lock on it, which ends with the process: a record whose lock is free
//! was left behind.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::journal::{Entry, StoredPath, milliseconds};
use super::state_file;
use karyi_core::limits;

/// End of the name of a finished record; until then it has another one.
const SUFFIX: &str = ".json";
/// End of the name of one that is being written.
const UNFINISHED: &str = ".new";

/// What may lie around.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ChangePlan {
    /// Every file that changes.
    pub(super) steps: Vec<PlannedStep>,
    /// Directories that are made, outer ones first.
    pub(super) made: Vec<StoredPath>,
}

/// What is done to one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PlannedStep {
    /// The file.
    pub(super) path: StoredPath,
    /// Name of its new content beside it, until that takes its place.
    pub(super) temporary: Option<String>,
    /// Name under which the old file is kept beside it, until the change is over.
    pub(super) backup: Option<String>,
}

/// That the change is to happen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Decision {
    /// What is known of each step.
    pub(super) steps: Vec<StepHashes>,
    /// What the journal will say.
    pub(super) entry: Entry,
}

/// What is known of one step when it is decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StepHashes {
    /// Hash of the old content; none when there is no file.
    pub(super) old: Option<String>,
    /// Hash of the new content; none when the file goes.
    pub(super) new: Option<String>,
}

/// What is left to be done of a change that was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum PendingWork {
    /// It is to be made, or taken back when that cannot be.
    All,
    /// It was refused, and the files that have their new content get the old one again.
    TakeBack,
    /// Its files are as they are to be; something lies beside them still.
    Clear,
}

/// A record, locked.
#[derive(Debug)]
pub(super) struct WalRecord {
    path: PathBuf,
    file: File,
}

/// Returns a name for a change that no other one has.
pub(super) fn new_id() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let time = milliseconds(SystemTime::now());
    format!("{time:x}-{:x}-{count:x}", std::process::id())
}

impl WalRecord {
    /// Writes the plan down.
    pub(super) fn new(directory: &Path, id: &str, plan: &ChangePlan) -> io::Result<Self> {
        let early = directory.join(format!("{id}{UNFINISHED}"));
        let mut options = OpenOptions::new();
        options.create_new(true).append(true).read(true).mode(0o600);
        let mut file = options.open(&early)?;
        // Nobody else looks at it before it has its name.
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

    /// Makes sure that the record outlives a loss of power.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()?;
        if let Some(directory) = self.path.parent().and_then(|path| File::open(path).ok()) {
            // A file system that cannot make names last has no more to offer.
            let _ = directory.sync_all();
        }
        Ok(())
    }

    /// Writes down that the change is to happen.
    pub(super) fn decide(&mut self, decision: &Decision) -> io::Result<()> {
        write_line(&mut self.file, decision)
    }

    /// Writes down that the change is to happen, and lets `sync` make that last. Should one of both fail, the
    /// record says what it said before: the change is refused then, and must not be made later.
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

    /// Writes down what is left to be done of a change that was decided.
    pub(super) fn set_pending(&mut self, rest: PendingWork) -> io::Result<()> {
        write_line(&mut self.file, &rest)
    }

    /// Ends the record: nothing is left to be done.
    pub(super) fn close(self) {
        let _ = std::fs::remove_file(&self.path);
    }

    /// Sets a record aside that cannot be read: nobody ends it any more.
    pub(super) fn quarantine(self) {
        let _ = std::fs::rename(&self.path, self.path.with_extension("broken"));
    }

    /// Returns its path.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns how long ago the last was written into it.
    pub(super) fn age(&self) -> Option<Duration> {
        let written = self.file.metadata().and_then(|found| found.modified());
        written.ok()?.elapsed().ok()
    }

    /// Reads what the record says.
    pub(super) fn read(&mut self) -> RecordState {
        let mut bytes = Vec::new();
        let most = limits::MAX_INTENT_BYTES;
        if (&self.file).take(most).read_to_end(&mut bytes).is_err() {
            return RecordState::Broken(None);
        }
        // What a loss of power left was never synced, so no step was made.
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
        // A line that was cut decides nothing: it is written before the first step.
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

/// What a record says.
pub(super) enum RecordState {
    /// Nothing: no step was made.
    Empty,
    /// What may lie around; it was not decided.
    Planned(ChangePlan),
    /// That the change is to happen, and what of it is left to be done.
    Decided(ChangePlan, Box<Decision>, PendingWork),
    /// It was damaged: nobody knows how far the change is.
    Broken(Option<ChangePlan>),
}

fn write_line(file: &mut File, value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    file.write_all(&line)
}

/// Returns the records that were left behind, locked.
pub(super) fn abandoned_records(directory: &Path) -> Vec<WalRecord> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    paths.filter_map(abandoned_record).collect()
}

/// Returns the records that name one of these paths. Who holds the locks of the paths knows then that nobody is
/// making such a change: its maker was killed, or is being killed, which frees one lock after another. Their own
/// locks say nothing, as others look at them, too.
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
    let most = limits::MAX_INTENT_BYTES;
    let mut reader = BufReader::new(file.take(most));
    reader.read_until(b'\n', &mut line).ok()?;
    serde_json::from_slice(&line).ok()
}

fn abandoned_record(path: PathBuf) -> Option<WalRecord> {
    let mut options = OpenOptions::new();
    let file = state_file::open(options.read(true).append(true), &path).ok()?;
    let name = path.file_name()?.to_string_lossy().into_owned();
    if !name.ends_with(SUFFIX) {
        // One that was set aside stays.
        if name.ends_with(UNFINISHED) {
            remove_unfinished(&path, &file);
        }
        return None;
    }
    file.try_lock().ok()?;
    // Its maker may have ended it between opening and locking.
    let is_there = file.metadata().is_ok_and(|found| found.nlink() > 0);
    is_there.then_some(WalRecord { path, file })
}

/// Removes a record whose maker was killed before it had its name: nothing was done yet.
fn remove_unfinished(path: &Path, file: &File) {
    let age = file.metadata().and_then(|found| found.modified()).ok();
    let age = age.and_then(|changed| changed.elapsed().ok());
    if age.is_some_and(|age| age > limits::UNFINISHED_SESSION_AGE) && file.try_lock().is_ok() {
        let _ = std::fs::remove_file(path);
    }
}
