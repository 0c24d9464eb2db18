//! Changes several files or none, and records the change.
//!
//! All tools write files through this module: it recovers unfinished changes, locks the paths, stages the new
//! contents, records the decision, renames the files into place, and appends to the journal. Without a
//! journal a single file can still be changed, and several can unless the recorder requires a journal; such a
//! change cannot be recovered after a crash or undone.

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

/// Journal and origin of changes.
#[derive(Clone, Default)]
pub struct Recorder {
    /// Journal; without one nothing can be undone.
    pub journal: Option<Arc<Journal>>,
    /// Refuses changes of several files without a journal, as a crash could leave them half done.
    pub needs_journal: bool,
    /// Session that makes the changes.
    pub session: String,
    /// Call that makes the changes.
    pub call: String,
    /// Tool that makes the changes.
    pub tool: String,
}

/// Report of a committed change.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Receipt {
    /// Number of its entry; `None` when nothing was recorded.
    pub number: Option<u64>,
    /// Reason why it cannot be undone; `None` when it can.
    pub no_undo: Option<String>,
    /// Files of interrupted changes that were recovered first.
    pub recovered: Vec<FileRecovery>,
    /// Damage found in the list of changes.
    pub damage: Option<Damage>,
    /// Files whose attributes could not all be preserved, with the names of those attributes.
    pub losses: Vec<(PathBuf, String)>,
    /// Temporary files that could not be removed.
    pub leftovers: Option<String>,
    /// Changes removed from the full journal.
    pub pruned: Option<PrunedChanges>,
}

impl Receipt {
    /// Returns what to know about the change beyond its success.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let no_undo = self.no_undo.as_ref();
        let no_undo = no_undo.map(|why| format!("this change cannot be undone: {why}"));
        let damage = self.damage.as_ref();
        let damage =
            damage.map(|damage| format!("the journal of earlier changes is damaged: {damage}"));
        let lost = |(path, names): &(PathBuf, String)| {
            format!("{}: could not be kept: {names}", path.display())
        };
        let warnings = no_undo.into_iter().chain(damage);
        let warnings = warnings
            .chain(self.losses.iter().map(lost))
            .chain(self.leftovers.clone());
        warnings
            .chain(self.pruned.as_ref().map(ToString::to_string))
            .collect()
    }
}

/// Locked files that are about to change.
pub struct Transaction<'a> {
    recorder: &'a Recorder,
    recovered: Vec<FileRecovery>,
    _locks: PathLocks,
}

impl<'a> Transaction<'a> {
    /// Recovers unfinished changes and locks the paths, which have every symlink resolved. Until the end of
    /// the transaction no other karyi changes these files.
    ///
    /// # Errors
    /// `edit_busy` on timeout.
    pub fn begin(recorder: &'a Recorder, paths: &[&Path]) -> Result<Self, ToolError> {
        let mut recovered = Vec::new();
        let Some(journal) = &recorder.journal else {
            return Ok(Self {
                recorder,
                recovered,
                _locks: locks::lock_paths(None, paths)?,
            });
        };
        let (since, mut pause) = (Instant::now(), limits::EDIT_LOCK_PAUSE_MIN);
        loop {
            let recovery = recover::run(journal);
            let recovery = recovery.map_err(|error| with_recoveries(error, &recovered))?;
            recover::merge(&mut recovered, recovery.files.clone());
            let guard = locks::lock_paths(Some(&journal.locks()), paths);
            let guard = guard.map_err(|error| with_recoveries(error, &recovered))?;
            // A previous holder of these locks may have been killed just now.
            if recovery.is_all(journal, paths) {
                return Ok(Self {
                    recorder,
                    recovered,
                    _locks: guard,
                });
            }
            drop(guard);
            if since.elapsed() > limits::EDIT_LOCK_TIMEOUT {
                return Err(with_recoveries(locks::busy(), &recovered));
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(limits::EDIT_LOCK_PAUSE_MAX);
        }
    }

    /// Returns the recovered files, which the receipt repeats.
    pub(super) fn recovered(&self) -> &[FileRecovery] {
        &self.recovered
    }

    /// Makes all changes or none. Contents for which `is_private` holds are only stored for undo in an
    /// encrypted journal.
    ///
    /// # Errors
    /// The cause; nothing is changed.
    pub fn commit(
        self,
        changes: &[Change],
        is_private: IsPrivate<'_>,
    ) -> Result<Receipt, ToolError> {
        self.make(changes, &[], is_private)
    }

    /// Takes changes back, all or none, and removes directories that they created and that are empty now.
    ///
    /// # Errors
    /// The cause; nothing is changed.
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
        let (staged, stored) = prepare(journal, changes, &plan, is_private);
        let result = staged.and_then(|mut staged| {
            staged.check()?;
            let undoes = undone.iter().map(|entry| entry.number).collect();
            let mut entry = self.entry(id, stored.files, undoes);
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
            let placed = staged.install_all().map_err(|failed| {
                if failed.is_half {
                    progress = Progress::Half;
                }
                failed.error
            });
            Ok((placed?, entry, losses))
        });
        let receipt = result.map(|(placed, entry, losses)| {
            let ((), receipt) = join(
                || placed.finish(),
                || self.receipt(journal, entry.clone(), &stored.why),
            );
            // Before the record is closed, so that recovery repeats this after a crash.
            remove_directories(undone);
            Receipt { losses, ..receipt }
        });
        match (receipt, end(record, &plan, progress)) {
            (Ok(receipt), leftovers) => Ok(Receipt {
                leftovers,
                ..receipt
            }),
            (Err(error), None) => Err(error),
            (Err(mut error), Some(leftovers)) => {
                error.message = format!("{}; {leftovers}", error.message);
                Err(error)
            }
        }
    }

    /// Finishes a transaction that changes no file. An undo is recorded all the same: otherwise its changes
    /// would stay open and be selected again.
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

    /// Writes the plan to the log. A single file is always either old or new, so it can do without.
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

    /// Appends the entry to the journal. The files are already changed: if this fails, the receipt says that
    /// undo is impossible and why.
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

/// Reason why an unrecorded change cannot be undone.
const NO_JOURNAL: &str = "the state directory, where changes are recorded, cannot be written";

/// Describes the first file that can never be undone; `why` has the reasons why contents could not be stored.
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

/// Removes directories created by the changes that are taken back.
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

/// Progress of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// Not decided.
    Planned,
    /// Decided, and made or rolled back.
    Decided,
    /// Decided, and some files could not be rolled back.
    Half,
}

/// Closes the record of a change; returns a message about work that is left to the next run.
fn end(record: Option<WalRecord>, plan: &wal::ChangePlan, progress: Progress) -> Option<String> {
    let left = commit::leftovers(plan);
    let Some(mut record) = record else {
        return commit::leftovers_message(&left, false);
    };
    let keeps_record = match progress {
        // If this fails, the next run determines how far it can go.
        Progress::Half => {
            let _ = record.set_pending(PendingWork::TakeBack);
            true
        }
        Progress::Planned => !left.is_empty(),
        // Otherwise the record would demand that the change be made.
        Progress::Decided => !left.is_empty() && record.set_pending(PendingWork::Clear).is_ok(),
    };
    if !keeps_record {
        record.close();
    }
    match progress {
        Progress::Half => Some(
            "the change is half done: the next edit or undo rolls it back and removes its `.karyi-*` files; leave \
             those alone"
                .to_owned(),
        ),
        Progress::Planned | Progress::Decided => commit::leftovers_message(&left, keeps_record),
    }
}

/// Records the decision to make the change. A single file is always either old or new, so its record need not
/// reach the disk.
fn decide(
    record: &mut WalRecord,
    staged: &commit::StagedChange<'_>,
    entry: &Entry,
    has_several: bool,
) -> Result<Progress, ToolError> {
    let decision = Decision {
        steps: staged.step_hashes(entry),
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

/// Stages the new contents and stores the old ones in the journal in parallel, since both wait for the disk.
fn prepare<'a>(
    journal: Option<&Journal>,
    changes: &'a [Change],
    plan: &wal::ChangePlan,
    is_private: IsPrivate<'_>,
) -> (Result<commit::StagedChange<'a>, ToolError>, StoredVersions) {
    let Some(journal) = journal else {
        return (commit::stage(changes, plan), StoredVersions::default());
    };
    join(
        || commit::stage(changes, plan),
        || store_all(journal, changes, is_private),
    )
}

/// Versions stored in the journal before the entry is written.
#[derive(Default)]
struct StoredVersions {
    files: Vec<FileRecord>,
    /// Reason why a content that undo needs could not be stored, per file.
    why: Vec<Option<String>>,
}

fn store_all(journal: &Journal, changes: &[Change], is_private: IsPrivate<'_>) -> StoredVersions {
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
            // Owner and mode are known once the file exists.
            stamp: None,
        };
        Some(version(journal, &after.bytes, known, is_private))
    };
    let (olds, news) = join(
        || needed().map(old).collect::<Vec<_>>(),
        || needed().map(new).collect::<Vec<_>>(),
    );
    let mut stored = StoredVersions::default();
    for (change, (old, new)) in needed().zip(olds.into_iter().zip(news)) {
        let (old, old_why) = old.unzip();
        let (new, new_why) = new.unzip();
        stored.files.push(FileRecord {
            path: StoredPath::from(change.real.as_path()),
            old,
            new,
            renamed_to: change.renamed_to.as_deref().map(StoredPath::from),
        });
        stored.why.push(old_why.flatten().or(new_why.flatten()));
    }
    stored
}

/// Context of a content to be stored.
struct VersionContext {
    /// The content, if prefetched.
    prefetch: Option<PreparedBlob>,
    durability: Durability,
    stamp: Option<Stamp>,
}

/// Stores one content if that is allowed and possible, and returns the reason if not. Content that undo does
/// not need is only stored when it is small.
fn version(
    journal: &Journal,
    bytes: &[u8],
    known: VersionContext,
    is_private: IsPrivate<'_>,
) -> (Version, Option<String>) {
    // A prefetched content was already checked.
    let may_keep = known.prefetch.is_some() || journal.is_encrypted() || !is_private(bytes);
    let size = bytes.len() as u64;
    let is_wanted = known.durability == Durability::PowerLoss || size <= limits::JOURNAL_NEW_BYTES;
    let durability = match size > limits::JOURNAL_SYNCED_BYTES {
        true => Durability::Process,
        false => known.durability,
    };
    let keep = |prefetch: Option<PreparedBlob>| match prefetch {
        Some(prepared) => journal.store_prepared(prepared, durability),
        None => journal.store(bytes, durability),
    };
    let (stored, why) = match (may_keep, is_wanted) {
        (false, _) => (None, Some(PRIVATE.to_owned())),
        (true, false) => (None, None),
        (true, true) => match keep(known.prefetch) {
            Ok(name) => (Some(name), None),
            Err(error) => (None, Some(error.to_string())),
        },
    };
    // The name of a content that must not be stored would confirm a guess of it.
    let name = || match may_keep {
        true => journal.name(bytes),
        false => String::new(),
    };
    let version = Version {
        is_kept: stored.is_some(),
        content: stored.unwrap_or_else(name),
        size,
        mode: known.stamp.map_or(0, |stamp| stamp.mode & 0o7777),
        owner: known.stamp.map(|stamp| stamp.owner),
        attributes: None,
    };
    (version, why)
}

/// Reason why a private content is not stored.
const PRIVATE: &str =
    "it holds the value of a secret, and this run has no vault whose key would encrypt it";

#[cfg(test)]
mod tests;
