//! Writes new contents to the disk: all of them or none.
//!
//! First every new content goes to a temporary file beside its target, so that a full disk or a missing
//! permission shows before anything changed. Then each target is compared with what was read. Only then are
//! the temporary files renamed into place; if one rename fails, those already done are rolled back. A file
//! whose owner cannot be preserved is refused: a replacement would belong to somebody else, and overwriting
//! in place can be observed half-written.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::change::Change;
use super::directory::{Directory, Stamp, remove_made, split};
use super::journal::{Entry, Version};
use super::metadata::MetadataOutcome;
use super::wal::{ChangePlan, PlannedStep, StepHashes};
use karyi_core::error::{ErrorCode, ToolError};
pub(super) use plan::{leftovers, leftovers_message, plan};
use staged_file::{Operation, StagedFile, file_changed};

mod plan;
mod staged_file;

/// Prepared files of a change. Dropping it removes them unless the commit succeeded.
#[derive(Debug)]
pub(super) struct StagedChange<'a> {
    steps: Vec<StagedFile<'a>>,
    made: Vec<PathBuf>,
    names: LinkCounts,
    /// Directories of the files, by path.
    directories: HashMap<PathBuf, Arc<Directory>>,
    /// Files whose attributes could not all be set, with the names of those attributes.
    losses: Vec<(PathBuf, String)>,
    is_kept: bool,
}

/// Failed commit.
#[derive(Debug)]
pub(super) struct CommitFailure {
    /// Cause.
    pub(super) error: ToolError,
    /// True if some new contents are in place and could not be rolled back.
    pub(super) is_half: bool,
}

/// Links that the commit itself added to files, or removed.
#[derive(Debug, Default)]
struct LinkCounts(HashMap<(u64, u64), i64>);

impl LinkCounts {
    fn add(&mut self, file: Option<Stamp>, count: i64) {
        if let Some(file) = file {
            *self.0.entry(file.identity()).or_default() += count;
        }
    }

    fn added(&self, file: Stamp) -> i64 {
        self.0.get(&file.identity()).copied().unwrap_or(0)
    }
}

/// Writes the new contents beside their targets.
///
/// # Errors
/// The cause; no temporary file is left.
pub(super) fn stage<'a>(
    changes: &'a [Change],
    plan: &ChangePlan,
) -> Result<StagedChange<'a>, ToolError> {
    let mut staged = StagedChange {
        steps: Vec::new(),
        made: Vec::new(),
        names: LinkCounts::default(),
        directories: HashMap::new(),
        losses: Vec::new(),
        is_kept: false,
    };
    // A file that stays must be copied: a hard link would tie the new name to it.
    let leaving = changes.iter().filter(|change| change.moves_away());
    let leaving: HashSet<&Path> = leaving.map(|change| change.real.as_path()).collect();
    let needed = changes.iter().filter(|change| change.is_needed());
    for (change, step) in needed.zip(&plan.steps) {
        let io = |error: io::Error| ToolError::from_io(&change.shown, &error);
        let mut prepared = prepare(change, step, &mut staged).map_err(io)?;
        prepared.may_link = change.source().is_some_and(|from| leaving.contains(from));
        if prepared.is_owner_protected().map_err(io)? {
            return Err(not_ours(change));
        }
        if change.before.is_some() && !prepared.is_as_read(&staged.names).map_err(io)? {
            return Err(file_changed(change));
        }
        let written = prepared.write();
        staged.names.add(prepared.linked, 1);
        staged.steps.push(prepared);
        match written.map_err(io)? {
            MetadataOutcome::OwnerRefused(user, group) => {
                return Err(owner_refused(change, user, group));
            }
            MetadataOutcome::Applied(lost) if lost.is_empty() => {}
            MetadataOutcome::Applied(lost) => {
                staged.losses.push((change.shown.clone(), lost.names()))
            }
        }
    }
    Ok(staged)
}

fn prepare<'a>(
    change: &'a Change,
    step: &PlannedStep,
    staged: &mut StagedChange<'_>,
) -> io::Result<StagedFile<'a>> {
    let (parent, name) = split(&change.real).ok_or(io::ErrorKind::IsADirectory)?;
    // Files of one directory share the handle, since open files are limited.
    let directory = match (staged.directories.get(parent), Operation::of(change)) {
        (Some(known), _) => Arc::clone(known),
        (None, Operation::Create) => Arc::new(Directory::make(parent, &mut staged.made)?),
        (None, Operation::Replace | Operation::Remove) => Arc::new(Directory::open(parent)?),
    };
    let known = staged.directories.entry(parent.to_owned());
    known.or_insert_with(|| Arc::clone(&directory));
    Ok(StagedFile::new(change, step, directory, name))
}

fn owner_refused(change: &Change, user: u32, group: u32) -> ToolError {
    let message = format!(
        "{}: it belongs to user {user} and group {group}, and karyi cannot set that owner on a new file",
        change.shown.display()
    );
    ToolError::new(ErrorCode::OwnerNotKept, message)
}

fn not_ours(change: &Change) -> ToolError {
    let message = format!(
        "{}: it belongs to another user, and the sticky bit of its directory only lets the owner replace, rename or \
         delete it",
        change.shown.display()
    );
    let hint =
        "run karyi as the owner of the file, or change it with a command, which may ask for sudo";
    ToolError::new(ErrorCode::PermissionDenied, message).with_hint(hint)
}

impl StagedChange<'_> {
    /// Backs up the originals and compares every file with what was read: the last step before the decision.
    pub(super) fn check(&mut self) -> Result<(), ToolError> {
        let names = &self.names;
        self.steps.iter().try_for_each(|step| step.check(names))?;
        for step in &self.steps {
            let linked = step
                .back_up()
                .map_err(|error| ToolError::from_io(&step.change.shown, &error))?;
            self.names.add(linked, 1);
        }
        if self.steps.len() > 1 {
            // Otherwise a power loss could keep a rename and lose a temporary file.
            self.sync_directories();
        }
        Ok(())
    }

    /// Returns the hashes of each step. In a journal without a key the name of a content already is its hash.
    pub(super) fn step_hashes(&self, entry: &Entry) -> Vec<StepHashes> {
        let hash = |bytes: &[u8], version: Option<&Version>| match version {
            Some(known) if entry.key.is_none() && !known.content.is_empty() => {
                known.content.clone()
            }
            Some(_) | None => blake3::hash(bytes).to_hex().to_string(),
        };
        let decided = |(index, step): (usize, &StagedFile<'_>)| {
            let record = entry.files.get(index);
            let (old, new) = (step.change.bytes(), step.change.after.as_ref());
            StepHashes {
                old: old.map(|old| hash(old, record.and_then(|file| file.old.as_ref()))),
                new: new.map(|new| hash(&new.bytes, record.and_then(|file| file.new.as_ref()))),
            }
        };
        self.steps.iter().enumerate().map(decided).collect()
    }

    /// Returns owner and mode of each new content, `None` for a removed file.
    pub(super) fn stamps(&self) -> impl Iterator<Item = Option<Stamp>> {
        self.steps.iter().map(StagedFile::new_stamp)
    }

    /// Takes the files whose attributes could not all be set, with the names of those attributes.
    pub(super) fn take_losses(&mut self) -> Vec<(PathBuf, String)> {
        std::mem::take(&mut self.losses)
    }

    /// Returns the directories that were created.
    pub(super) fn made(&self) -> &[PathBuf] {
        &self.made
    }

    /// Renames all contents into place, or rolls back.
    ///
    /// # Errors
    /// The cause, and what could not be rolled back.
    pub(super) fn install_all(mut self) -> Result<Self, CommitFailure> {
        for (index, step) in self.steps.iter().enumerate() {
            if let Err(error) = step.install(&self.names) {
                let done = self.steps.iter().take(index).rev();
                let losses: Vec<String> = done.filter_map(|step| step.roll_back().err()).collect();
                if !losses.is_empty() {
                    // The remaining originals may be needed for recovery.
                    self.is_kept = true;
                }
                let is_half = !losses.is_empty();
                let error = with_losses(error, &losses);
                return Err(CommitFailure { error, is_half });
            }
            // The name now belongs to another file.
            let replaced = step
                .stamp()
                .filter(|_| step.operation == Operation::Replace);
            self.names.add(replaced, -1);
        }
        self.is_kept = true;
        Ok(self)
    }

    /// Syncs the renames, then removes backups and temporary files.
    pub(super) fn finish(self) {
        self.sync_directories();
        self.remove_leftovers();
    }

    /// Syncs the directory entries.
    fn sync_directories(&self) {
        self.directories
            .values()
            .for_each(|directory| directory.sync());
    }

    fn remove_leftovers(&self) {
        // Files that cannot be removed are reported by `leftovers`.
        for step in &self.steps {
            for name in [&step.temporary, &step.backup].into_iter().flatten() {
                let _ = step.directory.remove(name);
            }
        }
    }
}

impl Drop for StagedChange<'_> {
    fn drop(&mut self) {
        if !self.is_kept {
            self.remove_leftovers();
            remove_made(&self.made);
        }
    }
}

fn with_losses(mut error: ToolError, losses: &[String]) -> ToolError {
    losses.iter().for_each(|loss| error.message.push_str(loss));
    error
}
