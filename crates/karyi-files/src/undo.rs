//! Takes back recorded changes, all or none.
//!
//! A text that changed since is merged. Where the changes touch, nothing is touched and the conflict is reported
//! with three contents: what karyi wrote, what is there now, and what would be restored. An undo is itself a
//! recorded change and can be undone.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::change::{Change, MetadataSource};
use super::journal::history::{PathChange, file_changes};
use super::journal::{Damage, Entry, FileRecord, Journal, Version};
use super::metadata::SavedMetadata;
use super::recover::{self, FileRecovery, RecoveryForecast, RecoveryOutcome};
use super::transaction::{Recorder, Transaction};
use conflict::obstacle;
pub use conflict::{Conflict, ConflictContent};
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;
use merge::{Merge, merge};
pub use selection::{UndoSelection, later_changes_hint, undone_numbers};

mod conflict;
mod current_paths;
mod merge;
mod restore_notes;
mod selection;

/// Changes to take back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UndoTarget {
    /// The change with this number.
    Number(u64),
    /// The last changes that were not taken back yet, up to this count.
    Last(usize),
    /// The changes of one session that were not taken back yet.
    Session(String),
}

/// Outcome of an undo or of its dry run.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct UndoOutcome {
    /// Entries taken back, latest first.
    pub numbers: Vec<u64>,
    /// Restored files.
    pub files: Vec<RestoredFile>,
    /// Number of its own entry; `None` when nothing was recorded.
    pub number: Option<u64>,
    /// Damage found in the list of changes while the undo was recorded.
    pub damage: Option<Damage>,
    /// Temporary files that could not be removed.
    pub leftovers: Option<String>,
}

/// File restored by an undo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoredFile {
    /// The file.
    pub path: PathBuf,
    /// New path; `None` when it stays where it is.
    pub to: Option<PathBuf>,
    /// Content before; `None` when the file does not exist.
    pub now: Option<Arc<Vec<u8>>>,
    /// Content after; `None` when the file is removed.
    pub restored: Option<Arc<Vec<u8>>>,
    /// Note about what could not be restored.
    pub note: Option<String>,
}

/// Failure of an undo.
#[derive(Debug, PartialEq, Eq)]
pub enum UndoError {
    /// Files are no longer what karyi wrote.
    Conflicts(Vec<Conflict>),
    /// Any other error.
    Other(ToolError),
}

impl From<ToolError> for UndoError {
    fn from(error: ToolError) -> Self {
        Self::Other(error)
    }
}

/// Goal for one path, derived from the latest entry back to the earliest.
struct PathGoal<'a> {
    /// Version that karyi wrote last, which must be there now.
    wrote: Option<&'a Version>,
    /// Version to restore.
    goal: Option<&'a Version>,
    /// Current path of the file that was here; `None` when it was removed.
    now_at: Option<&'a Path>,
    /// Places in between where something else changed the file, from the latest back.
    gaps: Vec<Gap<'a>>,
}

/// Change of a file by something else, between two changes of karyi.
struct Gap<'a> {
    /// Version that the later change found.
    found: &'a Version,
    /// Version that the earlier one wrote.
    wrote: &'a Version,
    /// Number of the earlier one.
    number: u64,
}

/// Takes changes back.
///
/// # Errors
/// The obstacle; nothing is changed.
pub fn undo(
    recorder: &Recorder,
    journal: &Journal,
    target: &UndoTarget,
) -> Result<UndoOutcome, UndoError> {
    let selection = UndoSelection::for_undo(journal, target.clone())?;
    take_back(recorder, journal, &selection, &mut Vec::new())
}

/// Takes back selected changes. Recovered files are in `recovered`, even if the undo is refused.
///
/// # Errors
/// The obstacle; nothing is changed.
pub fn take_back(
    recorder: &Recorder,
    journal: &Journal,
    selection: &UndoSelection,
    recovered: &mut Vec<FileRecovery>,
) -> Result<UndoOutcome, UndoError> {
    recovered.clone_from(&selection.recovered);
    let again = selection.reread(journal)?;
    let selection = again.as_ref().unwrap_or(selection);
    recovered.clone_from(&selection.recovered);
    let chosen = selection.chosen()?;
    let goals = goals(journal, &chosen).map_err(|e| selection.with_alternative(e, journal))?;
    check_size(&goals, limits::MAX_UNDO_BYTES)?;
    let numbers: Vec<u64> = chosen.iter().map(|entry| entry.number).collect();
    let paths: Vec<&Path> = goals.iter().map(|(path, _)| *path).collect();
    let transaction = Transaction::begin(recorder, &paths)?;
    recover::merge(recovered, transaction.recovered().to_vec());
    selection.refuse_undone(journal, &numbers)?;
    let planned = changes(journal, &goals, &selection.forecast);
    let planned = planned.map_err(|error| hint_at(error, recovered))?;
    selection.refuse_over(&chosen, |path| planned.may_be_below(path))?;
    let receipt = transaction.take_back(&planned.changes, &chosen)?;
    let notes = restore_notes::collect(&planned.changes, &receipt.losses);
    let mut files = planned.restored();
    restore_notes::attach(&mut files, notes);
    Ok(UndoOutcome {
        numbers,
        files,
        number: receipt.number,
        damage: receipt.damage,
        leftovers: receipt.leftovers,
    })
}

/// Determines what taking back the selected changes would do.
///
/// # Errors
/// The obstacle.
pub fn dry_run(journal: &Journal, selection: &UndoSelection) -> Result<UndoOutcome, UndoError> {
    let chosen = selection.chosen()?;
    let goals = goals(journal, &chosen).map_err(|e| selection.with_alternative(e, journal))?;
    check_size(&goals, limits::MAX_UNDO_BYTES)?;
    let planned = changes(journal, &goals, &selection.forecast);
    let planned = planned.map_err(|error| hint_at(error, &selection.recovered))?;
    selection.refuse_over(&chosen, |path| planned.may_be_below(path))?;
    Ok(UndoOutcome {
        numbers: chosen.iter().map(|entry| entry.number).collect(),
        files: planned.restored(),
        ..UndoOutcome::default()
    })
}

/// Explains that one of several hard links belongs to an unfinished change of karyi.
fn hint_at(mut error: UndoError, recovered: &[FileRecovery]) -> UndoError {
    if let UndoError::Other(error) = &mut error
        && error.code == ErrorCode::HardLinked
        && recovered
            .iter()
            .any(|file| file.outcome == RecoveryOutcome::Waiting)
    {
        error.hint =
            "a change is unfinished, and karyi keeps hard links beside its files; the next edit or undo \
             recovers it when it can: leave `.karyi-*` alone"
                .into();
    }
    error
}

/// Derives the goal of each path.
fn goals<'a>(
    journal: &Journal,
    chosen: &[&'a Entry],
) -> Result<Vec<(&'a Path, PathGoal<'a>)>, ToolError> {
    let mut goals: Vec<(&Path, PathGoal<'_>)> = Vec::new();
    let mut known: HashMap<&Path, usize> = HashMap::new();
    let current_paths = current_paths::current_paths(chosen);
    for entry in chosen {
        journal.check_key(entry)?;
        for file in &entry.files {
            check(entry, file)?;
            let path = file.path.as_path();
            let index = *known.entry(path).or_insert(goals.len());
            let (wrote, goal) = (file.new.as_ref(), file.old.as_ref());
            match goals.get_mut(index) {
                None => {
                    let goal = PathGoal {
                        wrote,
                        goal,
                        now_at: current_paths.get(path).copied(),
                        gaps: Vec::new(),
                    };
                    goals.push((path, goal));
                }
                Some((_, earlier)) if is_same(journal, earlier.goal, wrote) => {
                    earlier.goal = goal;
                }
                Some((_, earlier)) => {
                    let (Some(found), Some(wrote)) = (earlier.goal, wrote) else {
                        return Err(broken_chain(entry.number, path));
                    };
                    let number = entry.number;
                    earlier.gaps.push(Gap {
                        found,
                        wrote,
                        number,
                    });
                    earlier.goal = goal;
                }
            }
        }
    }
    Ok(goals)
}

/// Refuses an undo that would need too much memory: old and new contents are held at once.
fn check_size(goals: &[(&Path, PathGoal<'_>)], most: u64) -> Result<(), ToolError> {
    let size = |version: Option<&Version>| version.map_or(0, |version| version.size);
    let both = |goal: &PathGoal<'_>| size(goal.wrote).saturating_add(size(goal.goal));
    let bytes = goals
        .iter()
        .map(|(_, goal)| both(goal))
        .fold(0, u64::saturating_add);
    if bytes <= most {
        return Ok(());
    }
    let message = format!(
        "the {} files of this undo hold {} MiB before and after, more than the {} MiB that are taken back together",
        goals.len(),
        bytes >> 20,
        most >> 20
    );
    Err(ToolError::new(ErrorCode::FileTooLarge, message)
        .with_hint("take fewer changes back at a time, with `karyi undo --last K` or `karyi undo N`, the newest first"))
}

/// Tells whether a later change found what an earlier one wrote. A content has two names if only one of them
/// was encrypted.
fn is_same(journal: &Journal, found: Option<&Version>, wrote: Option<&Version>) -> bool {
    match (found, wrote) {
        (Some(found), Some(wrote)) => {
            let is_equal = || {
                journal
                    .content(found)
                    .map(|b| journal.is_content(&b, wrote))
            };
            found.content == wrote.content
                || (found.size == wrote.size && is_equal().unwrap_or(false))
        }
        (found, wrote) => found.is_none() && wrote.is_none(),
    }
}

fn broken_chain(number: u64, path: &Path) -> ToolError {
    let message = format!(
        "{}: was changed between change {number} and the later ones, by something else",
        path.display()
    );
    ToolError::new(ErrorCode::UndoConflict, message)
}

fn check(entry: &Entry, file: &FileRecord) -> Result<(), ToolError> {
    let Some(why) = file.obstacle() else {
        return Ok(());
    };
    let (number, path) = (entry.number, file.path.as_path().display());
    let message = format!("change {number} cannot be undone: {path}: {why}");
    let has_old = file.old.as_ref().is_none_or(|old| old.is_kept);
    let hint = match has_old {
        true => {
            format!("`karyi history show {number}` shows what it changed; restore that by hand")
        }
        false => "restore the file from a backup or with git".to_owned(),
    };
    Err(ToolError::new(ErrorCode::UndoUnavailable, message).with_hint(hint))
}

/// Changes of an undo.
struct UndoPlan {
    changes: Vec<Change>,
    /// Files that were merged; true if a part was restored already.
    merged: Vec<(PathBuf, bool)>,
}

impl UndoPlan {
    /// Tells whether later changes of a file stay in effect when this one is taken back.
    fn may_be_below(&self, path: &Path) -> bool {
        self.merged
            .iter()
            .any(|(merged, is_partly_restored)| merged == path && !is_partly_restored)
    }

    /// Returns the restored files, with a note on merged ones.
    fn restored(self) -> Vec<RestoredFile> {
        let note = |(path, _)| (path, "what changed there since is kept".to_owned());
        let notes = self.merged.into_iter().map(note).collect();
        let mut files = restored(self.changes);
        restore_notes::attach(&mut files, notes);
        files
    }
}

/// Compares every file with what karyi wrote and plans its change.
fn changes(
    journal: &Journal,
    goals: &[(&Path, PathGoal<'_>)],
    forecast: &RecoveryForecast,
) -> Result<UndoPlan, UndoError> {
    let (mut changes, mut conflicts, mut merged) = (Vec::new(), Vec::new(), Vec::new());
    for (path, goal) in goals {
        let read = Change::read_forecast(path, forecast);
        let mut restored = match goal.goal {
            None => None,
            Some(version) => Some((version, content(journal, path, version)?)),
        };
        let change = match read {
            Ok(change) => change,
            Err(error) => {
                let found = ConflictContent::Other(obstacle(path).ok_or(error)?);
                conflicts.push(Conflict::new(journal, path, goal.wrote, found, restored));
                continue;
            }
        };
        let is_as_written = match (change.bytes(), goal.wrote) {
            (None, None) => true,
            (Some(now), Some(wrote)) => journal.is_content(now, wrote),
            (Some(_), None) | (None, Some(_)) => false,
        };
        if !is_as_written || !goal.gaps.is_empty() {
            match merge_in(journal, (path, goal), &change, restored.as_mut()) {
                Ok(is_partly_restored) => merged.push(((*path).to_owned(), is_partly_restored)),
                Err(Obstacle::Gap(error)) => return Err(error.into()),
                Err(Obstacle::Lines(lines)) => {
                    let now = change.before.map(|found| Arc::unwrap_or_clone(found.bytes));
                    let found = now.map_or(ConflictContent::Missing, ConflictContent::Bytes);
                    let conflict = Conflict::new(journal, path, goal.wrote, found, restored);
                    conflicts.push(Conflict { lines, ..conflict });
                    continue;
                }
            }
        }
        changes.push(match restored {
            None => change,
            Some((version, bytes)) => {
                let metadata = restored_metadata(journal, &change, version, goal);
                with_metadata(change, bytes, metadata)
            }
        });
        changes.last().map_or(Ok(()), refuse_split)?;
    }
    if !conflicts.is_empty() {
        return Err(UndoError::Conflicts(conflicts));
    }
    carry_metadata(&mut changes, goals);
    Ok(UndoPlan { changes, merged })
}

/// Takes each step of a path back from the present content; where something else changed it, by a merge. Returns
/// true if a part of a merge was restored already.
///
/// # Errors
/// The first step is in conflict, or `undo_conflict` for another one.
fn merge_in(
    journal: &Journal,
    (path, goal): (&Path, &PathGoal<'_>),
    change: &Change,
    restored: Option<&mut (&Version, Vec<u8>)>,
) -> Result<bool, Obstacle> {
    let broken = |gap: &Gap<'_>| Obstacle::Gap(broken_chain(gap.number, path));
    let (Some(wrote), Some(now), Some((_, bytes))) = (goal.wrote, change.bytes(), restored) else {
        return Err(goal
            .gaps
            .first()
            .map_or(Obstacle::Lines(Vec::new()), broken));
    };
    let (mut present, mut wrote, mut is_partly_restored) = (now.to_vec(), wrote, false);
    for (index, gap) in goal.gaps.iter().map(Some).chain([None]).enumerate() {
        let target = match gap {
            Some(gap) => content(journal, path, gap.found).map_err(Obstacle::Gap)?,
            None => bytes.clone(),
        };
        let merged = match journal.is_content(&present, wrote) {
            true => Some(Merge::whole(target)),
            false => {
                let wrote = journal.content(wrote).ok();
                wrote.and_then(|wrote| merge(&wrote, &present, &target))
            }
        };
        match merged {
            Some(Merge::Merged {
                bytes,
                is_partly_restored: is_partly,
            }) => {
                present = bytes;
                is_partly_restored |= is_partly;
            }
            _ if index > 0 => {
                return Err(goal
                    .gaps
                    .get(index - 1)
                    .map_or(Obstacle::Lines(Vec::new()), broken));
            }
            Some(Merge::Conflict(lines)) => return Err(Obstacle::Lines(lines)),
            None => return Err(Obstacle::Lines(Vec::new())),
        }
        if let Some(gap) = gap {
            wrote = gap.wrote;
        }
    }
    *bytes = present;
    Ok(is_partly_restored)
}

/// Reason why a path cannot be merged.
enum Obstacle {
    /// Lines of the present content in conflict, as far as they are known.
    Lines(Vec<(usize, usize)>),
    /// Any other.
    Gap(ToolError),
}

/// Refuses to restore one of several hard links: the others would keep the new content.
fn refuse_split(change: &Change) -> Result<(), ToolError> {
    let links = change.before.as_ref().map_or(1, |found| found.stamp.links);
    if links < 2 || change.after.is_none() || !change.is_needed() {
        return Ok(());
    }
    let shown = change.shown.display();
    let message =
        format!("{shown}: the file has {links} hard links, and undo would change this one only");
    let hint = "find the others with `find DIR -samefile PATH` and take them away, then undo again; or restore the text by hand";
    Err(ToolError::new(ErrorCode::HardLinked, message).with_hint(hint))
}

/// Lets a moved file keep its current owner, attributes and permissions when it moves back. A file that was
/// only renamed is renamed back instead of copied.
fn carry_metadata(changes: &mut [Change], goals: &[(&Path, PathGoal<'_>)]) {
    let index: HashMap<&Path, usize> = goals.iter().map(|(path, _)| *path).zip(0..).collect();
    for (at, (path, goal)) in goals.iter().enumerate() {
        let Some(now_at) = goal.now_at.filter(|now_at| now_at != path) else {
            continue;
        };
        let Some(from) = index.get(now_at).copied() else {
            continue;
        };
        let wrote = goals.get(from).and_then(|(_, goal)| goal.wrote);
        let Some(metadata) = moved_metadata(changes, (from, now_at, wrote), (at, goal.goal)) else {
            continue;
        };
        if let Some(after) = changes.get_mut(at).and_then(|change| change.after.as_mut()) {
            after.metadata = metadata;
            // Otherwise undoing the undo could not follow it.
            if let Some(from) = changes.get_mut(from) {
                from.renamed_to = Some((*path).to_owned());
            }
        }
    }
}

/// Returns the metadata that a file takes along from its current path. Unchanged content keeps the current
/// mode; restored content gets no wider mode than it had.
fn moved_metadata(
    changes: &[Change],
    (from, now_at, wrote): (usize, &Path, Option<&Version>),
    (at, goal): (usize, Option<&Version>),
) -> Option<MetadataSource> {
    let found = changes.get(from)?.before.as_ref()?;
    let after = changes.get(at)?.after.as_ref()?;
    let now_at = now_at.to_owned();
    Some(match *found.bytes == after.bytes {
        true => MetadataSource::CopyOf(now_at),
        false => {
            MetadataSource::CopyWithMode(now_at, mode(found.stamp.mode & 0o7777, wrote, goal?))
        }
    })
}

/// Returns the mode of restored content: the recorded one. If somebody changed the mode since, the
/// intersection, so that nothing becomes more accessible.
fn mode(now: u32, wrote: Option<&Version>, goal: &Version) -> u32 {
    match wrote {
        Some(wrote) if wrote.mode != now => now & goal.mode,
        Some(_) | None => goal.mode,
    }
}

/// Returns the metadata of restored content. A file in its place keeps its owner and attributes, a moved one
/// brings its own along later; only a removed one gets the recorded metadata.
fn restored_metadata(
    journal: &Journal,
    change: &Change,
    goal: &Version,
    all: &PathGoal<'_>,
) -> MetadataSource {
    let found = change.before.as_ref();
    let here = found.filter(|_| all.now_at == Some(change.real.as_path()));
    match here {
        Some(found) => MetadataSource::Mode(mode(found.stamp.mode & 0o7777, all.wrote, goal)),
        None => MetadataSource::Saved(SavedMetadata {
            mode: goal.mode,
            owner: goal.owner,
            attributes: journal.attributes(goal),
        }),
    }
}

fn with_metadata(change: Change, bytes: Vec<u8>, metadata: MetadataSource) -> Change {
    let mut change = change.with_content(bytes);
    if let Some(after) = &mut change.after {
        after.metadata = metadata;
    }
    change
}

fn content(journal: &Journal, path: &Path, version: &Version) -> Result<Vec<u8>, ToolError> {
    journal.content(version).map_err(|error| {
        let message = format!(
            "{}: its earlier content cannot be read from the journal: {error}",
            path.display()
        );
        ToolError::new(ErrorCode::UndoUnavailable, message)
    })
}

/// Converts the changes to restored files. Moves the contents, which may be large.
fn restored(mut changes: Vec<Change>) -> Vec<RestoredFile> {
    let news = changes.iter_mut().map(|change| change.after.take());
    let news: Vec<_> = news
        .map(|after| after.map(|after| Arc::new(after.bytes)))
        .collect();
    let paths: Vec<PathChange<'_, &Arc<Vec<u8>>>> = changes
        .iter()
        .zip(&news)
        .map(|(change, new)| PathChange {
            path: &change.real,
            old: change.before.as_ref().map(|found| &found.bytes),
            new: new.as_ref(),
            renamed_to: change.renamed_to.as_deref(),
        })
        .collect();
    let files = file_changes(&paths).into_iter().map(|file| RestoredFile {
        path: file.path.to_owned(),
        to: file.to.map(Path::to_owned),
        now: file.old.cloned(),
        restored: file.new.cloned(),
        note: None,
    });
    files.collect()
}

#[cfg(test)]
mod tests;
