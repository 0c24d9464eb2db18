//! One file of a change that was decided: how far it is, and how it is completed or taken back.

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

/// What became of a file, and why it is not whole.
type StepOutcome = (RecoveryOutcome, Option<&'static str>);

/// A file that somebody changed.
const FOREIGN: StepOutcome = (
    RecoveryOutcome::LeftAlone,
    Some("another program changed it since"),
);
/// A file whose original is nowhere.
const NO_ORIGINAL: StepOutcome = (
    RecoveryOutcome::LeftAlone,
    Some(
        "it has its new content, other files of the change have not, and its old one is not there any more",
    ),
);

/// How far one file of a decided change is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StepState {
    /// It has its new content.
    Done,
    /// It has its old content, and the new one is ready.
    Pending,
    /// It has its old content, and the new one is lost.
    Lost,
    /// It has neither.
    Foreign,
}

/// What is under a name.
enum NameContent {
    Nothing,
    /// A file whose content has this hash.
    Content(String),
    Other,
}

impl NameContent {
    fn read(directory: &Directory, name: &OsStr) -> io::Result<Self> {
        let Some(stamp) = directory.stamp(name)? else {
            return Ok(Self::Nothing);
        };
        // Opening a device or a pipe can do something already.
        if !stamp.is_file() {
            return Ok(Self::Other);
        }
        let mut hasher = blake3::Hasher::new();
        let file = directory.read(name)?;
        // One that grows meanwhile is read to an end.
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

/// One file of a change, with all that its record says.
pub(super) struct StepRecovery<'a> {
    /// What is done to it.
    pub(super) step: &'a PlannedStep,
    hashes: &'a StepHashes,
    entry: &'a Entry,
    file: Option<&'a FileRecord>,
}

impl<'a> StepRecovery<'a> {
    /// Returns those of a change.
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

    /// Puts what is in the way into words, with the file.
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

    /// Says how far the file is.
    pub(super) fn state(&self, plan: &ChangePlan) -> io::Result<StepState> {
        let Some((directory, name)) = place_or_gone(plan, self.step)? else {
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

    /// Brings the file to its new content, or to its old one.
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
            // Somebody made the file a moment ago.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(FOREIGN),
            other => other,
        }
    }

    /// Gives the file its new content.
    pub(super) fn complete(&self) -> io::Result<()> {
        let (directory, name) = place(self.step)?;
        match (&self.step.temporary, &self.step.backup) {
            (Some(temporary), _) if self.hashes.old.is_none() => {
                directory.rename_new(OsStr::new(temporary), name)?;
            }
            (Some(temporary), _) => {
                let temporary = OsStr::new(temporary);
                keep_mode(
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
        let (directory, name) = place(self.step)?;
        if self.hashes.old.is_none() {
            directory.remove(name)?;
            directory.sync();
            return Ok((RecoveryOutcome::Old, None));
        }
        let Some(original) = self.original(&directory, name, journal)? else {
            return Ok(NO_ORIGINAL);
        };
        let original = OsStr::new(&original);
        keep_mode(
            &directory,
            (name, self.new_version()),
            (original, self.old_version()),
        )?;
        // A removed file was given another name; should somebody have made a new one, it stays.
        match self.hashes.new {
            Some(_) => directory.rename(original, name)?,
            None => directory.rename_new(original, name)?,
        }
        directory.sync();
        Ok((RecoveryOutcome::Old, None))
    }

    /// Returns the name of a file with the old content: the one that was kept, else one that is written
    /// from the journal.
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
        // A run that has the key can do it.
        if journal.check_key(self.entry).is_err() {
            let message =
                "its old content is encrypted in the journal, and this run has not the key";
            return Err(io::Error::other(message));
        }
        let Ok(bytes) = journal.content(version) else {
            return Ok(None);
        };
        let spare = spare(backup);
        let is_written = write((directory, name), &spare, &bytes, version, journal)?;
        Ok(is_written.then_some(spare))
    }

    /// Removes what is not needed any more; names what another program wrote to, which stays.
    pub(super) fn clear(&self, plan: &ChangePlan) -> io::Result<Vec<FileRecovery>> {
        let Some((directory, name)) = place_or_gone(plan, self.step)? else {
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
                why: Some("another program changed what karyi had kept there".to_owned()),
            });
        }
        if let Some(backup) = &self.step.backup {
            directory.remove(OsStr::new(&spare(backup)))?;
        }
        Ok(left)
    }
}

/// Returns the name under which an original is written anew.
fn spare(backup: &str) -> String {
    format!("{backup}.new")
}

/// Writes a content of the journal beside a file; returns whether it got the owner of that.
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

/// Gives what takes the place of a file the permissions that somebody gave that file since; where both
/// changed them, what both allow.
fn keep_mode(
    directory: &Directory,
    (name, was): (&OsStr, Option<&Version>),
    (from, comes): (&OsStr, Option<&Version>),
) -> io::Result<()> {
    let (Some(was), Some(comes), Some(now)) = (was, comes, directory.stamp(name)?) else {
        return Ok(());
    };
    let [now, was, comes] = [now.mode, was.mode, comes.mode].map(|mode| mode & 0o7777);
    if now == was {
        return Ok(());
    }
    let mode = if was == comes { now } else { now & comes };
    let file = directory.read(from)?;
    file.set_permissions(Permissions::from_mode(mode))
}

fn is_one_file(directory: &Directory, one: &OsStr, other: &OsStr) -> io::Result<bool> {
    let both = directory.stamp(one)?.zip(directory.stamp(other)?);
    Ok(both.is_some_and(|(a, b)| (a.device, a.inode) == (b.device, b.inode)))
}

/// Removes all that may lie beside a file of a change that was not decided.
pub(super) fn remove_leftovers(plan: &ChangePlan, step: &PlannedStep) -> io::Result<()> {
    let Some((directory, _)) = place_or_gone(plan, step)? else {
        return Ok(());
    };
    let names = [&step.temporary, &step.backup];
    let mut names = names.into_iter().flatten();
    names.try_for_each(|name| directory.remove(OsStr::new(name)))
}

/// Opens the directory of a step.
fn place(step: &PlannedStep) -> io::Result<(Directory, &OsStr)> {
    let (parent, name) = split(step.path.as_path()).ok_or(io::ErrorKind::NotFound)?;
    Ok((Directory::open(parent)?, name))
}

/// Does so; nothing when the change itself made it, or was to make it, and it alone is not there.
fn place_or_gone<'a>(
    plan: &ChangePlan,
    step: &'a PlannedStep,
) -> io::Result<Option<(Directory, &'a OsStr)>> {
    let is_made = |path: &std::path::Path| plan.made.iter().any(|made| made.as_path() == path);
    match place(step) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let mut above = step.path.as_path().ancestors().skip(1).peekable();
            let made = above.peek().is_some_and(|parent| is_made(parent));
            let kept = above.find(|path| !is_made(path));
            match kept.map(Directory::open) {
                Some(Ok(_)) if made => Ok(None),
                _ => Err(error),
            }
        }
        opened => opened.map(Some),
    }
}
