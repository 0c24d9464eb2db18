//! Brings new contents to the disk: all of them, or none.
//!
//! First every new content is written to a temporary file beside its target, so that a full disk or
//! a missing permission shows before anything changed. Then each target is compared with what was
//! read. Only then the temporary files take their places, and should one not, the places taken are
//! given back. A file whose owner cannot be kept is refused: a new file would be somebody else's, and
//! one that is written over can be found half-written.

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

/// A change whose files are being prepared. What is not kept is removed when it is dropped.
#[derive(Debug)]
pub(super) struct Staged<'a> {
    steps: Vec<StagedFile<'a>>,
    made: Vec<PathBuf>,
    names: LinkCounts,
    /// Every directory that a file is in.
    directories: HashMap<PathBuf, Arc<Directory>>,
    /// Files whose new ones lack attributes, which are named.
    losses: Vec<(PathBuf, String)>,
    is_kept: bool,
}

/// Why contents are not in their places.
#[derive(Debug)]
pub(super) struct CommitFailure {
    /// What went wrong.
    pub(super) error: ToolError,
    /// Whether some of them are all the same.
    pub(super) is_half: bool,
}

/// How many names files got by the change itself, or lost.
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
/// What is in the way; nothing is left behind then.
pub(super) fn stage<'a>(changes: &'a [Change], plan: &ChangePlan) -> Result<Staged<'a>, ToolError> {
    let mut staged = Staged {
        steps: Vec::new(),
        made: Vec::new(),
        names: LinkCounts::default(),
        directories: HashMap::new(),
        losses: Vec::new(),
        is_kept: false,
    };
    // Of a file that stays, a second name would be no file of its own.
    let leaving = changes.iter().filter(|change| change.leaves());
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
                return Err(owner_not_kept(change, user, group));
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
    staged: &mut Staged<'_>,
) -> io::Result<StagedFile<'a>> {
    let (parent, name) = split(&change.real).ok_or(io::ErrorKind::IsADirectory)?;
    // Files of one directory share it: a process may have so many files open.
    let directory = match (staged.directories.get(parent), Operation::of(change)) {
        (Some(known), _) => Arc::clone(known),
        (None, Operation::Create) => Arc::new(Directory::make(parent, &mut staged.made)?),
        (None, Operation::Replace | Operation::Remove) => Arc::new(Directory::open(parent)?),
    };
    let known = staged.directories.entry(parent.to_owned());
    known.or_insert_with(|| Arc::clone(&directory));
    Ok(StagedFile::new(change, step, directory, name))
}

fn owner_not_kept(change: &Change, user: u32, group: u32) -> ToolError {
    let message = format!(
        "{}: it belongs to user {user} and group {group}, and a new file cannot be given to them",
        change.shown.display()
    );
    ToolError::new(ErrorCode::OwnerNotKept, message)
}

fn not_ours(change: &Change) -> ToolError {
    let message = format!(
        "{}: it belongs to somebody else, and in its directory only the owner of a file may replace, rename or \
         delete it",
        change.shown.display()
    );
    let hint =
        "run karyi as the owner of the file, or change it with <command>, which may ask for sudo";
    ToolError::new(ErrorCode::PermissionDenied, message).with_hint(hint)
}

impl Staged<'_> {
    /// Keeps the originals and compares every file with what was read: the last step before the
    /// decision.
    pub(super) fn check(&mut self) -> Result<(), ToolError> {
        let names = &self.names;
        self.steps.iter().try_for_each(|step| step.check(names))?;
        for step in &self.steps {
            let kept = step.back_up();
            let linked = kept.map_err(|error| ToolError::from_io(&step.change.shown, &error))?;
            self.names.add(linked, 1);
        }
        if self.steps.len() > 1 {
            // Else a loss of power could leave a new name and lose a temporary one.
            self.sync_directories();
        }
        Ok(())
    }

    /// Returns what is known of each step. The name of a content in a journal without a key is its hash
    /// already.
    pub(super) fn decided(&self, entry: &Entry) -> Vec<StepHashes> {
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

    /// Returns owner and permissions of each new content, none for what is removed.
    pub(super) fn stamps(&self) -> impl Iterator<Item = Option<Stamp>> {
        self.steps.iter().map(StagedFile::new_stamp)
    }

    /// Returns the files whose new ones lack attributes, and which.
    pub(super) fn take_losses(&mut self) -> Vec<(PathBuf, String)> {
        std::mem::take(&mut self.losses)
    }

    /// Returns the directories that were made.
    pub(super) fn made(&self) -> &[PathBuf] {
        &self.made
    }

    /// Puts all contents in their places, or takes back what was put.
    ///
    /// # Errors
    /// What went wrong, and what could not be taken back.
    pub(super) fn place(mut self) -> Result<Self, CommitFailure> {
        for (index, step) in self.steps.iter().enumerate() {
            if let Err(error) = step.install(&self.names) {
                let done = self.steps.iter().take(index).rev();
                let losses: Vec<String> = done.filter_map(|step| step.roll_back().err()).collect();
                if !losses.is_empty() {
                    // What is left of the originals may be needed.
                    self.is_kept = true;
                }
                let is_half = !losses.is_empty();
                let error = with_losses(error, &losses);
                return Err(CommitFailure { error, is_half });
            }
            // Another file has the name now.
            let replaced = step
                .stamp()
                .filter(|_| step.operation == Operation::Replace);
            self.names.add(replaced, -1);
        }
        self.is_kept = true;
        Ok(self)
    }

    /// Makes the places last, and removes what is not needed any more.
    pub(super) fn settle(self) {
        self.sync_directories();
        self.remove_leftovers();
    }

    /// Makes the new names last.
    fn sync_directories(&self) {
        self.directories
            .values()
            .for_each(|directory| directory.sync());
    }

    fn remove_leftovers(&self) {
        // What stays is found by `leftovers`.
        for step in &self.steps {
            for name in [&step.temporary, &step.backup].into_iter().flatten() {
                let _ = step.directory.remove(name);
            }
        }
    }
}

impl Drop for Staged<'_> {
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
