//! Changes several files or none, and records it.
//!
//! The one way by which tools write files: what a crash leaves is ended first, other changes of the
//! same files are waited for, new contents are prepared, the decision is written down, they take
//! their places, and the journal gets its entry. Without a journal one file changes all the same, and
//! several do unless the recorder says that it needs one: a crash in between is then not healed. Nothing
//! can be undone.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use super::change::Change;
use super::commit;
use super::directory::{Stamp, remove_made};
use super::journal::{
    Damage, Durability, Entry, FileRecord, IsPrivate, Journal, PreparedBlob, PrunedChanges,
    StoredPath, Version, milliseconds,
};
use super::locks::{self, PathLocks};
use super::parallel::join;
use super::prefetch::Prefetch;
use super::recover::{self, FileRecovery, with_recoveries};
use super::wal::{self, Decision, PendingWork, WalRecord};
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;

/// Where changes are recorded, and by whom they are made.
#[derive(Clone, Default)]
pub struct Recorder {
    /// The journal; without one nothing can be undone.
    pub journal: Option<Arc<Journal>>,
    /// Whether a change of several files is refused without a journal, as nothing would end it after a
    /// crash.
    pub needs_journal: bool,
    /// The run of karyi.
    pub session: String,
    /// The call.
    pub call: String,
    /// The tool.
    pub tool: String,
}

/// What there is to know of a change that was made.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Receipt {
    /// The number of its entry; none when nothing was recorded.
    pub number: Option<u64>,
    /// Why it cannot be undone; none when it can.
    pub no_undo: Option<String>,
    /// Files of earlier changes that were left half done and are whole now.
    pub recovered: Vec<FileRecovery>,
    /// What of the list of changes was found broken.
    pub damage: Option<Damage>,
    /// Files whose attributes could not all be kept, and which.
    pub losses: Vec<(PathBuf, String)>,
    /// What lies beside the files and could not be removed.
    pub leftovers: Option<String>,
    /// Earlier changes that were removed from the journal as it was full.
    pub pruned: Option<PrunedChanges>,
}

/// A change that is about to be made: nobody else changes its files.
pub struct Transaction<'a> {
    recorder: &'a Recorder,
    recovered: Vec<FileRecovery>,
    _locks: PathLocks,
}

impl<'a> Transaction<'a> {
    /// Ends what a crash left and waits for other changes of these files, which have every link
    /// resolved. What is read from now on stays as it is, as far as karyi is concerned.
    ///
    /// # Errors
    /// `edit_busy` when others take too long.
    pub fn begin(recorder: &'a Recorder, paths: &[&Path]) -> Result<Self, ToolError> {
        let mut recovered = Vec::new();
        let Some(journal) = &recorder.journal else {
            let _locks = locks::lock_paths(None, paths)?;
            return Ok(Self {
                recorder,
                recovered,
                _locks,
            });
        };
        let (since, mut pause) = (Instant::now(), limits::EDIT_LOCK_PAUSE_MIN);
        loop {
            let recovery = recover::run(journal);
            let recovery = recovery.map_err(|error| with_recoveries(error, &recovered))?;
            recover::merge(&mut recovered, recovery.files.clone());
            let held = locks::lock_paths(Some(&journal.locks()), paths);
            let held = held.map_err(|error| with_recoveries(error, &recovered))?;
            // Whoever held these locks before may have been killed a moment ago, or dies this very moment.
            if recovery.is_all(journal, paths) {
                let _locks = held;
                return Ok(Self {
                    recorder,
                    recovered,
                    _locks,
                });
            }
            drop(held);
            if since.elapsed() > limits::EDIT_LOCK_TIMEOUT {
                return Err(with_recoveries(locks::busy(), &recovered));
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(limits::EDIT_LOCK_PAUSE_MAX);
        }
    }

    /// Returns what became of files that were left half changed, which its receipt says, too.
    pub(super) fn recovered(&self) -> &[FileRecovery] {
        &self.recovered
    }

    /// Makes the changes, all or none of them. Contents for which `is_private` are kept for undo only
    /// when the journal is encrypted.
    ///
    /// # Errors
    /// What is in the way; nothing is changed then.
    pub fn commit(
        self,
        changes: &[Change],
        is_private: IsPrivate<'_>,
    ) -> Result<Receipt, ToolError> {
        self.make(changes, &[], is_private)
    }

    /// Makes the changes that take earlier ones back, all or none of them, and removes the directories that
    /// those had made and in which nothing is left.
    ///
    /// # Errors
    /// What is in the way; nothing is changed then.
    pub(super) fn take_back(
        self,
        changes: &[Change],
        undone: &[&Entry],
    ) -> Result<Receipt, ToolError> {
        self.make(changes, undone, &|_| false)
    }

    fn make(
        self,
        changes: &[Change],
        undone: &[&Entry],
        is_private: IsPrivate<'_>,
    ) -> Result<Receipt, ToolError> {
        if !changes.iter().any(Change::is_needed) {
            return Ok(self.without_change(undone));
        }
        let id = wal::new_id();
        let plan = commit::plan(changes, &id);
        let journal = self.recorder.journal.as_deref();
        let mut record = self.write_down(&id, &plan)?;
        let mut progress = Progress::Planned;
        let (staged, kept) = prepare(journal, changes, &plan, is_private);
        let result = staged.and_then(|mut staged| {
            staged.check()?;
            let undoes = undone.iter().map(|entry| entry.number).collect();
            let mut entry = self.entry(id, kept.files, undoes);
            for (file, stamp) in entry.files.iter_mut().zip(staged.stamps()) {
                if let (Some(new), Some(stamp)) = (&mut file.new, stamp) {
                    new.mode = stamp.mode & 0o7777;
                    new.owner = Some(stamp.owner);
                }
            }
            entry.made = staged
                .made()
                .iter()
                .map(|path| path.as_path().into())
                .collect();
            if let Some(record) = &mut record {
                progress = decide(record, &staged, &entry, plan.steps.len() > 1)?;
            }
            let losses = staged.take_losses();
            let placed = staged.place().map_err(|failed| {
                if failed.is_half {
                    progress = Progress::Half;
                }
                failed.error
            });
            Ok((placed?, entry, losses))
        });
        let receipt = result.map(|(placed, entry, losses)| {
            let ((), receipt) = join(
                || placed.settle(),
                || self.receipt(journal, entry.clone(), &kept.why),
            );
            // As long as its record is there: should this be killed, the next run does it.
            remove_directories(undone);
            Receipt { losses, ..receipt }
        });
        match (receipt, end(record, &plan, progress)) {
            (Ok(receipt), leftovers) => Ok(Receipt {
                leftovers,
                ..receipt
            }),
            (Err(error), None) => Err(error),
            (Err(mut error), Some(told)) => {
                error.message = format!("{}; {told}", error.message);
                Err(error)
            }
        }
    }

    /// Ends what finds every file as it is to be. Changes that are taken back by that are recorded as such: else
    /// they would stand, and be chosen again.
    fn without_change(self, undone: &[&Entry]) -> Receipt {
        let receipt = match undone {
            [] => Receipt {
                recovered: self.recovered,
                ..Receipt::default()
            },
            undone => {
                let undoes = undone.iter().map(|entry| entry.number).collect();
                let entry = self.entry(wal::new_id(), Vec::new(), undoes);
                self.receipt(self.recorder.journal.as_deref(), entry, &[])
            }
        };
        remove_directories(undone);
        receipt
    }

    /// Writes the plan down. One file alone is old or new by itself, so it changes without, too.
    fn write_down(&self, id: &str, plan: &wal::ChangePlan) -> Result<Option<WalRecord>, ToolError> {
        let files = plan.steps.len();
        let may_do_without = files == 1 || !self.recorder.needs_journal;
        let Some(journal) = &self.recorder.journal else {
            return match may_do_without {
                true => Ok(None),
                false => Err(no_journal(files, "")),
            };
        };
        match WalRecord::new(&journal.transactions(), id, plan) {
            Ok(record) => Ok(Some(record)),
            Err(_) if may_do_without => Ok(None),
            Err(error) => Err(no_journal(files, &format!(": {error}"))),
        }
    }

    fn entry(&self, id: String, files: Vec<FileRecord>, undoes: Vec<u64>) -> Entry {
        Entry {
            number: 0,
            id,
            time_ms: milliseconds(SystemTime::now()),
            session: self.recorder.session.clone(),
            call: self.recorder.call.clone(),
            tool: self.recorder.tool.clone(),
            key: self.key_name(),
            undoes,
            files,
            made: Vec::new(),
        }
    }

    fn key_name(&self) -> Option<String> {
        let journal = self.recorder.journal.as_deref()?;
        journal.key_name().map(str::to_owned)
    }

    /// Adds the entry to the journal. The files are changed by now: should it not be written, they
    /// stay so, and the receipt says that it cannot be undone, and why.
    fn receipt(&self, journal: Option<&Journal>, entry: Entry, why: &[Option<String>]) -> Receipt {
        let obstacle = obstacle(&entry, why);
        let added = journal.map(|journal| journal.append(entry));
        let (number, no_undo) = match added {
            None => (None, Some(NO_JOURNAL.to_owned())),
            Some(Ok(number)) => (Some(number), obstacle),
            Some(Err(error)) => {
                let why = format!(
                    "the list of changes could not be written: {}",
                    error.message
                );
                (None, Some(why))
            }
        };
        Receipt {
            no_undo,
            number,
            recovered: self.recovered.clone(),
            damage: journal.and_then(Journal::take_damage),
            losses: Vec::new(),
            leftovers: None,
            pruned: journal.and_then(Journal::take_pruned),
        }
    }
}

/// Why a change that nothing records cannot be undone.
const NO_JOURNAL: &str = "the state directory, where changes are recorded, cannot be written";

/// Says of the first file that can never be taken back which it is and why; `why` says of each what kept its
/// content from being kept.
fn obstacle(entry: &Entry, why: &[Option<String>]) -> Option<String> {
    let why = why
        .iter()
        .map(Option::as_deref)
        .chain(std::iter::repeat(None));
    entry.files.iter().zip(why).find_map(|(file, why)| {
        let obstacle = file.obstacle()?;
        let path = file.path.as_path().display();
        Some(match why {
            Some(why) => format!("{path}: {obstacle}: {why}"),
            None => format!("{path}: {obstacle}"),
        })
    })
}

/// Removes what changes that are taken back had made.
fn remove_directories(undone: &[&Entry]) {
    undone
        .iter()
        .for_each(|entry| remove_made(&entry.made_paths()));
}

fn no_journal(files: usize, why: &str) -> ToolError {
    let message = format!(
        "{files} files are to change together, and the state directory, where that would be recorded, cannot be written{why}"
    );
    ToolError::new(ErrorCode::NoJournal, message)
}

/// How far a change came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// Nothing says that it is to happen.
    Planned,
    /// Its record says so. It was made, or taken back.
    Decided,
    /// So it does, and some of its files could not be taken back.
    Half,
}

/// Ends the record of a change; returns what is left to be done. The next run does it.
fn end(record: Option<WalRecord>, plan: &wal::ChangePlan, progress: Progress) -> Option<String> {
    let left = commit::leftovers(plan);
    let Some(mut record) = record else {
        return commit::leftovers_message(&left, false);
    };
    let stays = match progress {
        // Should it not take that, the next run finds out how far it can go.
        Progress::Half => {
            let _ = record.set_pending(PendingWork::TakeBack);
            true
        }
        Progress::Planned => !left.is_empty(),
        // Else it would say that the change is to be made.
        Progress::Decided => !left.is_empty() && record.set_pending(PendingWork::Clear).is_ok(),
    };
    if !stays {
        record.close();
    }
    match progress {
        Progress::Half => Some(
            "the change is half done: the next edit or undo takes the rest of it back, with what lies beside the \
             files as `.karyi-*`; leave that to it"
                .to_owned(),
        ),
        Progress::Planned | Progress::Decided => commit::leftovers_message(&left, stays),
    }
}

/// Writes down that the change is to happen. One file alone is old or new by itself, so nothing
/// needs to reach the disk for it, and no full disk is in its way.
fn decide(
    record: &mut WalRecord,
    staged: &commit::Staged<'_>,
    entry: &Entry,
    has_several: bool,
) -> Result<Progress, ToolError> {
    let decision = Decision {
        steps: staged.decided(entry),
        entry: entry.clone(),
    };
    if !has_several {
        return Ok(match record.decide(&decision) {
            Ok(()) => Progress::Decided,
            Err(_) => Progress::Planned,
        });
    }
    let written = record.decide_durably(&decision, WalRecord::sync);
    written.map_err(|error| ToolError::from_io(Path::new("the record of the change"), &error))?;
    Ok(Progress::Decided)
}

/// Prepares the new contents on the disk and keeps the old ones in the journal, at the same time: either
/// waits for the disk.
fn prepare<'a>(
    journal: Option<&Journal>,
    changes: &'a [Change],
    plan: &wal::ChangePlan,
    is_private: IsPrivate<'_>,
) -> (Result<commit::Staged<'a>, ToolError>, StoredVersions) {
    let Some(journal) = journal else {
        return (commit::stage(changes, plan), StoredVersions::default());
    };
    join(
        || commit::stage(changes, plan),
        || keep_all(journal, changes, is_private),
    )
}

/// What the journal has of a change before its entry.
#[derive(Default)]
struct StoredVersions {
    files: Vec<FileRecord>,
    /// Of each file, what kept a content that an undo needs from being kept.
    why: Vec<Option<String>>,
}

fn keep_all(journal: &Journal, changes: &[Change], is_private: IsPrivate<'_>) -> StoredVersions {
    let needed = || changes.iter().filter(|change| change.is_needed());
    let old = |change: &Change| {
        let before = change.before.as_ref()?;
        let known = VersionContext {
            prefetch: change.prefetch.as_ref().and_then(Prefetch::take),
            durability: Durability::PowerLoss,
            stamp: Some(before.stamp),
        };
        let (mut version, why) = version(journal, &before.bytes, known, is_private);
        version.attributes = journal.store_attributes(&before.attributes, is_private);
        Some((version, why))
    };
    let new = |change: &Change| {
        let after = change.after.as_ref()?;
        let known = VersionContext {
            prefetch: None,
            durability: Durability::Process,
            // What its owner and permissions are is known when the file is there.
            stamp: None,
        };
        Some(version(journal, &after.bytes, known, is_private))
    };
    let (olds, news) = join(
        || needed().map(old).collect::<Vec<_>>(),
        || needed().map(new).collect::<Vec<_>>(),
    );
    let mut kept = StoredVersions::default();
    for (change, (old, new)) in needed().zip(olds.into_iter().zip(news)) {
        let (old, old_why) = old.unzip();
        let (new, new_why) = new.unzip();
        kept.files.push(FileRecord {
            path: StoredPath::from(change.real.as_path()),
            old,
            new,
            renamed_to: change.renamed_to.as_deref().map(StoredPath::from),
        });
        kept.why.push(old_why.flatten().or(new_why.flatten()));
    }
    kept
}

/// What is known of a content that is to be kept.
struct VersionContext {
    /// It was made ready already.
    prefetch: Option<PreparedBlob>,
    durability: Durability,
    stamp: Option<Stamp>,
}

/// Keeps one content, unless it must not be or cannot be kept, and says why not. One that is not needed to undo
/// the change is kept when it is small.
fn version(
    journal: &Journal,
    bytes: &[u8],
    known: VersionContext,
    is_private: IsPrivate<'_>,
) -> (Version, Option<String>) {
    // What was made ready was looked through before.
    let may_keep = known.prefetch.is_some() || journal.is_encrypted() || !is_private(bytes);
    let size = bytes.len() as u64;
    let is_wanted = known.durability == Durability::PowerLoss || size <= limits::JOURNAL_NEW_BYTES;
    let durability = match size > limits::JOURNAL_SYNCED_BYTES {
        true => Durability::Process,
        false => known.durability,
    };
    let keep = |prefetch: Option<PreparedBlob>| match prefetch {
        Some(prepared) => journal.store_prepared(prepared, durability),
        None => journal.keep(bytes, durability),
    };
    let (kept, why) = match (may_keep, is_wanted) {
        (false, _) => (None, Some(PRIVATE.to_owned())),
        (true, false) => (None, None),
        (true, true) => match keep(known.prefetch) {
            Ok(name) => (Some(name), None),
            Err(error) => (None, Some(error.to_string())),
        },
    };
    // The name of a content that may not be kept would confirm a guess of it.
    let name = || match may_keep {
        true => journal.name(bytes),
        false => String::new(),
    };
    let version = Version {
        is_kept: kept.is_some(),
        content: kept.unwrap_or_else(name),
        size,
        mode: known.stamp.map_or(0, |stamp| stamp.mode & 0o7777),
        owner: known.stamp.map(|stamp| stamp.owner),
        attributes: None,
    };
    (version, why)
}

/// Why a content must not be kept.
const PRIVATE: &str =
    "it holds the value of a secret, and this run has no vault whose key would encrypt it";

#[cfg(test)]
mod tests;
