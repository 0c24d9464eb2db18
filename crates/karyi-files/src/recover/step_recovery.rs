//! Recovery of one file of a decided change: its state, its completion and its rollback.

use std::ffi::OsStr;
use std::fs::Permissions;
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;

use super::super::attributes::Attributes;
use super::super::directory::{Directory, Stamp, split};
use super::super::journal::{Entry, FileRecord, Journal, Version};
use super::super::metadata::{MetadataOutcome, SavedMetadata, copy_metadata, restore_metadata};
use super::super::wal::{ChangePlan, Decision, PlannedStep, StepHashes};
use super::{FileRecovery, RecoveryOutcome};

/// Outcome of a file, and the reason why it is not consistent.
type StepOutcome = (RecoveryOutcome, Option<&'static str>);

/// Outcome for a file that another program changed.
const FOREIGN: StepOutcome = (
    RecoveryOutcome::LeftAlone,
    Some("another program changed it since"),
);
/// Outcome for a file whose original is lost.
const NO_ORIGINAL: StepOutcome = (
    RecoveryOutcome::LeftAlone,
    Some("it has its new content, other files of the change do not, and its old content is lost"),
);

/// Progress of one file of a decided change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StepState {
    /// The file has its new content.
    Done,
    /// The file has its old content, and the new content is ready.
    Pending,
    /// The file has its old content, and the new content is lost.
    Lost,
    /// The file has neither content.
    Foreign,
}

/// Content found under a name.
enum NameContent {
    Nothing,
    /// File with this hash.
    Content(String),
    Other,
}

impl NameContent {
    fn read(directory: &Directory, name: &OsStr) -> io::Result<Self> {
        let Some(stamp) = directory.stamp(name)? else {
            return Ok(Self::Nothing);
        };
        // Merely opening a device or a pipe can have an effect.
        if !stamp.is_file() {
            return Ok(Self::Other);
        }
        let mut hasher = blake3::Hasher::new();
        let file = directory.read(name)?;
        // Bounded, in case the file keeps growing.
        hasher.update_reader(file.take(stamp.size.saturating_add(1)))?;
        Ok(Self::Content(hasher.finalize().to_hex().to_string()))
    }

    fn is(&self, hash: Option<&String>) -> bool {
        match (self, hash) {
            (Self::Nothing, None) => true,
            (Self::Content(found), Some(hash)) => found == hash,
            _ => false,
        }
    }
}

/// File of a decided change with its part of the record.
pub(super) struct StepRecovery<'a> {
    /// Plan for the file.
    pub(super) step: &'a PlannedStep,
    hashes: &'a StepHashes,
    entry: &'a Entry,
    file: Option<&'a FileRecord>,
}

impl<'a> StepRecovery<'a> {
    /// Returns all files of a change.
    pub(super) fn all(plan: &'a ChangePlan, decision: &'a Decision) -> Vec<Self> {
        let steps = plan.steps.iter().zip(&decision.steps).enumerate();
        let work = |(index, (step, hashes))| Self {
            step,
            hashes,
            entry: &decision.entry,
            file: decision.entry.files.get(index),
        };
        steps.map(work).collect()
    }

    /// Adds the path to an error.
    pub(super) fn in_words<T>(&self, result: io::Result<T>) -> Result<T, String> {
        let path = self.step.path.as_path().display();
        result.map_err(|error| format!("{path}: {error}"))
    }

    fn old_version(&self) -> Option<&Version> {
        self.file?.old.as_ref()
    }

    fn new_version(&self) -> Option<&Version> {
        self.file?.new.as_ref()
    }

    /// Determines the progress of the file.
    pub(super) fn state(&self, plan: &ChangePlan) -> io::Result<StepState> {
        let Some((directory, name)) = open_parent_if_present(plan, self.step)? else {
            return Ok(StepState::Lost);
        };
        let now = NameContent::read(&directory, name)?;
        if now.is(self.hashes.new.as_ref()) {
            return Ok(StepState::Done);
        }
        if !now.is(self.hashes.old.as_ref()) {
            return Ok(StepState::Foreign);
        }
        let is_ready = match &self.step.temporary {
            Some(name) => {
                NameContent::read(&directory, OsStr::new(name))?.is(self.hashes.new.as_ref())
            }
            None => self.hashes.new.is_none(),
        };
        Ok(if is_ready {
            StepState::Pending
        } else {
            StepState::Lost
        })
    }

    /// Completes or rolls back the file.
    pub(super) fn end(
        &self,
        state: StepState,
        is_new: bool,
        journal: &Journal,
    ) -> io::Result<StepOutcome> {
        let whole = match is_new {
            true => (RecoveryOutcome::New, None),
            false => (RecoveryOutcome::Old, None),
        };
        let result = match (is_new, state) {
            (_, StepState::Foreign) => return Ok(FOREIGN),
            (true, StepState::Done) | (false, StepState::Pending | StepState::Lost) => {
                return Ok(whole);
            }
            (true, StepState::Pending | StepState::Lost) => self.complete().map(|()| whole),
            (false, StepState::Done) => self.take_back(journal),
        };
        match result {
            // Another program created the file just now.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(FOREIGN),
            other => other,
        }
    }

    /// Gives the file its new content.
    pub(super) fn complete(&self) -> io::Result<()> {
        let (directory, name) = open_parent(self.step)?;
        match (&self.step.temporary, &self.step.backup) {
            (Some(temporary), _) if self.hashes.old.is_none() => {
                directory.rename_new(OsStr::new(temporary), name)?;
            }
            (Some(temporary), _) => {
                let temporary = OsStr::new(temporary);
                carry_mode(
                    &directory,
                    (name, self.old_version()),
                    (temporary, self.new_version()),
                )?;
                directory.rename(temporary, name)?;
            }
            (None, Some(backup)) => directory.rename(name, OsStr::new(backup))?,
            (None, None) => return Err(io::ErrorKind::NotFound.into()),
        }
        directory.sync();
        Ok(())
    }

    fn take_back(&self, journal: &Journal) -> io::Result<StepOutcome> {
        let (directory, name) = open_parent(self.step)?;
        if self.hashes.old.is_none() {
            directory.remove(name)?;
            directory.sync();
            return Ok((RecoveryOutcome::Old, None));
        }
        let Some(original) = self.original(&directory, name, journal)? else {
            return Ok(NO_ORIGINAL);
        };
        let original = OsStr::new(&original);
        carry_mode(
            &directory,
            (name, self.new_version()),
            (original, self.old_version()),
        )?;
        // A removed file was renamed to its backup. If another program created a new one, it stays.
        match self.hashes.new {
            Some(_) => directory.rename(original, name)?,
            None => directory.rename_new(original, name)?,
        }
        directory.sync();
        Ok((RecoveryOutcome::Old, None))
    }

    /// Returns the name of a file with the old content: the backup, or a copy written from the journal.
    fn original(
        &self,
        directory: &Directory,
        name: &OsStr,
        journal: &Journal,
    ) -> io::Result<Option<String>> {
        let Some(backup) = &self.step.backup else {
            return Ok(None);
        };
        if NameContent::read(directory, OsStr::new(backup))?.is(self.hashes.old.as_ref()) {
            return Ok(Some(backup.clone()));
        }
        let Some(version) = self.old_version().filter(|old| old.is_kept) else {
            return Ok(None);
        };
        // A run with the key can restore it.
        if journal.check_key(self.entry).is_err() {
            let message =
                "its old content is encrypted in the journal, and this run does not have the key";
            return Err(io::Error::other(message));
        }
        let Ok(bytes) = journal.content(version) else {
            return Ok(None);
        };
        let spare = spare(backup);
        let is_written = write((directory, name), &spare, &bytes, version, journal)?;
        Ok(is_written.then_some(spare))
    }

    /// Removes the temporary file and the backup; returns those that another program changed, which stay.
    pub(super) fn clear(&self, plan: &ChangePlan) -> io::Result<Vec<FileRecovery>> {
        let Some((directory, name)) = open_parent_if_present(plan, self.step)? else {
            return Ok(Vec::new());
        };
        let mut left = Vec::new();
        let own = [
            (&self.step.temporary, self.hashes.new.as_ref()),
            (&self.step.backup, self.hashes.old.as_ref()),
        ];
        for (leftover, hash) in own {
            let Some(leftover) = leftover.as_ref().map(OsStr::new) else {
                continue;
            };
            let found = NameContent::read(&directory, leftover)?;
            let is_own = found.is(hash) || is_one_file(&directory, leftover, name)?;
            if is_own || matches!(found, NameContent::Nothing) {
                directory.remove(leftover)?;
                continue;
            }
            left.push(FileRecovery {
                path: directory.path().join(leftover),
                outcome: RecoveryOutcome::LeftAlone,
                why: Some("another program changed what karyi had stored there".to_owned()),
            });
        }
        if let Some(backup) = &self.step.backup {
            directory.remove(OsStr::new(&spare(backup)))?;
        }
        Ok(left)
    }
}

/// Returns the name for an original that is written from the journal.
fn spare(backup: &str) -> String {
    format!("{backup}.new")
}

/// Writes a content from the journal beside a file; returns true if it got the owner of that file.
fn write(
    (directory, name): (&Directory, &OsStr),
    spare: &str,
    bytes: &[u8],
    version: &Version,
    journal: &Journal,
) -> io::Result<bool> {
    let spare = OsStr::new(spare);
    directory.remove(spare)?;
    let mut file = directory.create(spare, 0o600)?;
    file.write_all(bytes)?;
    let mode = version.mode & 0o7777;
    let applied = match directory.stamp(name)? {
        Some(now) => {
            let mode = (now.mode & !0o7777) | mode;
            let opened = directory.read(name).ok();
            copy_metadata(&file, Stamp { mode, ..now }, opened.as_ref())?
        }
        None => {
            let saved = SavedMetadata {
                mode,
                owner: version.owner,
                attributes: journal.attributes(version),
            };
            restore_metadata(&file, &saved)?;
            MetadataOutcome::Applied(Attributes::default())
        }
    };
    file.sync_all()?;
    Ok(matches!(applied, MetadataOutcome::Applied(_)))
}

/// Carries over permissions that somebody changed meanwhile. If the change sets other permissions, too, the
/// result is their intersection.
fn carry_mode(
    directory: &Directory,
    (name, recorded): (&OsStr, Option<&Version>),
    (from, incoming): (&OsStr, Option<&Version>),
) -> io::Result<()> {
    let (Some(recorded), Some(incoming), Some(now)) = (recorded, incoming, directory.stamp(name)?)
    else {
        return Ok(());
    };
    let [now, recorded, incoming] =
        [now.mode, recorded.mode, incoming.mode].map(|mode| mode & 0o7777);
    if now == recorded {
        return Ok(());
    }
    let mode = if recorded == incoming {
        now
    } else {
        now & incoming
    };
    let file = directory.read(from)?;
    file.set_permissions(Permissions::from_mode(mode))
}

fn is_one_file(directory: &Directory, one: &OsStr, other: &OsStr) -> io::Result<bool> {
    let both = directory.stamp(one)?.zip(directory.stamp(other)?);
    Ok(both.is_some_and(|(a, b)| a.identity() == b.identity()))
}

/// Removes the temporary file and the backup of an undecided change.
pub(super) fn remove_leftovers(plan: &ChangePlan, step: &PlannedStep) -> io::Result<()> {
    let Some((directory, _)) = open_parent_if_present(plan, step)? else {
        return Ok(());
    };
    let names = [&step.temporary, &step.backup];
    let mut names = names.into_iter().flatten();
    names.try_for_each(|name| directory.remove(OsStr::new(name)))
}

/// Opens the directory of a step.
fn open_parent(step: &PlannedStep) -> io::Result<(Directory, &OsStr)> {
    let (parent, name) = split(step.path.as_path()).ok_or(io::ErrorKind::NotFound)?;
    Ok((Directory::open(parent)?, name))
}

/// Opens the directory of a step; `None` when it is missing and the change itself was to create it.
fn open_parent_if_present<'a>(
    plan: &ChangePlan,
    step: &'a PlannedStep,
) -> io::Result<Option<(Directory, &'a OsStr)>> {
    let is_made = |path: &std::path::Path| plan.made.iter().any(|made| made.as_path() == path);
    match open_parent(step) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let mut above = step.path.as_path().ancestors().skip(1).peekable();
            let made = above.peek().is_some_and(|parent| is_made(parent));
            let existing = above.find(|path| !is_made(path));
            match existing.map(Directory::open) {
                Some(Ok(_)) if made => Ok(None),
                _ => Err(error),
            }
        }
        opened => opened.map(Some),
    }
}
