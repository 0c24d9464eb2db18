//! One file of a commit: its temporary file, its backup and the rename into place.

use std::cell::Cell;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

use super::LinkCounts;
use crate::attributes::Attributes;
use crate::change::{Change, FileSnapshot, MetadataSource, NewContent};
use crate::directory::{Directory, Stamp, is_gone, split};
use crate::metadata::{MetadataOutcome, SavedMetadata, copy_metadata, restore_metadata};
use crate::parallel::join;
use crate::wal::PlannedStep;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;

/// Bytes compared at a time.
const COMPARED_BYTES: usize = 1 << 18;

/// Prepared file of a commit.
#[derive(Debug)]
pub(super) struct StagedFile<'a> {
    pub(super) change: &'a Change,
    pub(super) directory: Arc<Directory>,
    name: OsString,
    pub(super) temporary: Option<OsString>,
    pub(super) backup: Option<OsString>,
    pub(super) operation: Operation,
    /// True if its new content may be a hard link to the file it comes from.
    pub(super) may_link: bool,
    /// The file of which its new content is a hard link.
    pub(super) linked: Option<Stamp>,
    /// The target as it was read; on overlayfs it may since be the copy in the upper layer.
    stamp: Cell<Option<Stamp>>,
    /// True if the target was compared with what was read while the new content was synced.
    is_compared: bool,
}

/// Operation on the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Create,
    Replace,
    Remove,
}

impl<'a> StagedFile<'a> {
    /// Prepares a file in its opened directory.
    pub(super) fn new(
        change: &'a Change,
        step: &PlannedStep,
        directory: Arc<Directory>,
        name: &OsStr,
    ) -> Self {
        Self {
            change,
            directory,
            name: name.to_owned(),
            temporary: step.temporary.as_ref().map(OsString::from),
            backup: step.backup.as_ref().map(OsString::from),
            operation: Operation::of(change),
            may_link: false,
            linked: None,
            stamp: Cell::new(change.before.as_ref().map(|found| found.stamp)),
            is_compared: false,
        }
    }
}

impl Operation {
    /// Returns the operation that a change needs.
    pub(super) fn of(change: &Change) -> Self {
        match (&change.before, &change.after) {
            (_, None) => Self::Remove,
            (None, Some(_)) => Self::Create,
            (Some(_), Some(_)) => Self::Replace,
        }
    }
}

impl StagedFile<'_> {
    /// Writes the new content to its temporary file and applies the metadata.
    pub(super) fn write(&mut self) -> io::Result<MetadataOutcome> {
        if self.operation == Operation::Replace {
            // Opening is the only reliable test of write permission.
            self.directory.write(&self.name)?;
        }
        let (Some(temporary), Some(after)) = (&self.temporary, &self.change.after) else {
            return Ok(MetadataOutcome::Applied(Attributes::default()));
        };
        if self.is_moved() && self.link_moved(temporary, after) {
            self.linked = self.directory.stamp(temporary)?;
            return Ok(MetadataOutcome::Applied(Attributes::default()));
        }
        // Restrictive until the final mode is set, as the content may be private.
        let mode =
            if after.metadata == MetadataSource::Replaced && self.operation == Operation::Create {
                0o666
            } else {
                0o600
            };
        let mut file = self.directory.create(temporary, mode)?;
        file.write_all(&after.bytes)?;
        let applied = self.apply_metadata(&file, after)?;
        if let MetadataOutcome::Applied(_) = applied {
            self.is_compared = self.sync(&file)?;
        }
        Ok(applied)
    }

    /// Syncs the new content. A large target is compared with what was read at the same time; returns true
    /// when that was done and it is unchanged.
    fn sync(&self, file: &File) -> io::Result<bool> {
        let before = self.change.before.as_ref();
        let is_large = |found: &&FileSnapshot| found.stamp.size >= limits::PREFETCH_BYTES;
        let Some(before) = before.filter(is_large) else {
            return file.sync_all().map(|()| false);
        };
        let (directory, name) = (&self.directory, &self.name);
        let (synced, is_same) = join(
            || file.sync_all(),
            || has_content(directory, name, &before.bytes).unwrap_or(false),
        );
        synced.map(|()| is_same)
    }

    /// Returns the stamp of the new content.
    pub(super) fn new_stamp(&self) -> Option<Stamp> {
        let name = match self.operation {
            Operation::Create | Operation::Replace => self.temporary.as_ref(),
            Operation::Remove => None,
        };
        self.directory.stamp(name?).ok().flatten()
    }

    /// Tells whether the content is moved unchanged from another file, which is removed.
    fn is_moved(&self) -> bool {
        self.may_link && self.operation == Operation::Create && self.change.source().is_some()
    }

    /// Tells whether the sticky bit keeps this user from renaming or removing the file.
    pub(super) fn is_owner_protected(&self) -> io::Result<bool> {
        match &self.change.before {
            Some(found) => self.directory.is_sticky_for(found.stamp),
            None => Ok(false),
        }
    }

    /// Links the moved file instead of copying it, which preserves everything about it. Returns true on
    /// success.
    fn link_moved(&self, temporary: &OsStr, after: &NewContent) -> bool {
        let MetadataSource::CopyOf(from) = &after.metadata else {
            return false;
        };
        let Some((parent, name)) = split(from) else {
            return false;
        };
        let Ok(parent) = Directory::open(parent) else {
            return false;
        };
        let is_same = has_content(&parent, name, &after.bytes).unwrap_or(false);
        let stamp = parent.stamp(name).ok().flatten();
        // In a sticky directory the second name could never be removed.
        let is_stuck =
            stamp.is_none_or(|found| self.directory.is_sticky_for(found).unwrap_or(true));
        is_same && !is_stuck && self.directory.link(&parent, name, temporary).is_ok()
    }

    /// Applies owner, attributes and mode to a new file.
    fn apply_metadata(&self, file: &File, after: &NewContent) -> io::Result<MetadataOutcome> {
        let replaced = |mode: Option<u32>| {
            let stamp = self.change.before.as_ref()?.stamp;
            let stamp = mode.map_or(stamp, |mode| stamp.with_mode(mode));
            Some((stamp, self.directory.read(&self.name).ok()))
        };
        let model = match &after.metadata {
            MetadataSource::Replaced => replaced(None),
            MetadataSource::CopyOf(path) => Some(model(path, None)?),
            MetadataSource::CopyWithMode(path, mode) => Some(model(path, Some(*mode))?),
            MetadataSource::Saved(saved) => {
                restore_metadata(file, saved)?;
                None
            }
            MetadataSource::Mode(mode) => {
                let model = replaced(Some(*mode));
                if model.is_none() {
                    restore_metadata(file, &SavedMetadata::of_new_file(*mode))?;
                }
                model
            }
        };
        match model {
            None => Ok(MetadataOutcome::Applied(Attributes::default())),
            Some((stamp, opened)) => copy_metadata(file, stamp, opened.as_ref()),
        }
    }

    /// Backs up the original beside the file, as a hard link where possible, else as a copy. A removed file
    /// is renamed later instead. Returns the file that gained a link.
    pub(super) fn back_up(&self) -> io::Result<Option<Stamp>> {
        let (Some(backup), Some(before)) = (&self.backup, &self.change.before) else {
            return Ok(None);
        };
        let stamp = self.stamp.get();
        match self.operation {
            Operation::Create | Operation::Remove => Ok(None),
            Operation::Replace
                if self
                    .directory
                    .link(&self.directory, &self.name, backup)
                    .is_ok() =>
            {
                Ok(stamp)
            }
            Operation::Replace => {
                let mut copy = self.directory.create(backup, 0o600)?;
                copy.write_all(&before.bytes)?;
                let opened = self.directory.read(&self.name).ok();
                copy_metadata(&copy, before.stamp, opened.as_ref())?;
                copy.sync_all().map(|()| None)
            }
        }
    }

    /// Refuses the change when the file is not what was read.
    pub(super) fn check(&self, names: &LinkCounts) -> Result<(), ToolError> {
        let io = |error: io::Error| ToolError::from_io(&self.change.shown, &error);
        let now = self.directory.stamp(&self.name).map_err(io)?;
        let is_same = match (&self.change.before, now) {
            (None, None) => true,
            (Some(then), Some(now)) => {
                self.is_same_file(now, names).map_err(io)?
                    && (self.is_compared || self.holds(then).map_err(io)?)
            }
            (Some(_), None) | (None, Some(_)) => false,
        };
        match is_same && self.directory.is_in_place().map_err(io)? {
            true => Ok(()),
            false => Err(file_changed(self.change)),
        }
    }

    /// Renames the new content into place, or removes the file.
    pub(super) fn install(&self, names: &LinkCounts) -> Result<(), ToolError> {
        let is_as_read = || {
            let found = self.is_as_read(names);
            found.map_err(|error| ToolError::from_io(&self.change.shown, &error))
        };
        let result = match (self.operation, &self.temporary) {
            (Operation::Create, Some(temporary)) => {
                self.directory.rename_new(temporary, &self.name)
            }
            (Operation::Replace, Some(temporary)) => match is_as_read()? {
                true => self.directory.rename(temporary, &self.name),
                false => return Err(file_changed(self.change)),
            },
            (Operation::Remove, _) => match (&self.backup, is_as_read()?) {
                (Some(backup), true) => self.directory.rename(&self.name, backup),
                _ => return Err(file_changed(self.change)),
            },
            (Operation::Create | Operation::Replace, None) => Err(io::ErrorKind::NotFound.into()),
        };
        result.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => file_changed(self.change),
            _ => ToolError::from_io(&self.change.shown, &error),
        })
    }

    /// Tells whether the path still leads to the file that was read.
    pub(super) fn is_as_read(&self, names: &LinkCounts) -> io::Result<bool> {
        let is_same = match self.directory.stamp(&self.name)? {
            Some(now) => self.is_same_file(now, names)?,
            None => false,
        };
        Ok(is_same && self.directory.is_in_place()?)
    }

    /// Returns the target as it is now.
    pub(super) fn stamp(&self) -> Option<Stamp> {
        self.stamp.get()
    }

    /// Tells whether `now` is the file that was read. On overlayfs a file of a lower layer becomes another
    /// one when it is opened for writing or linked; then its content decides.
    fn is_same_file(&self, now: Stamp, names: &LinkCounts) -> io::Result<bool> {
        let (Some(then), Some(before)) = (self.stamp.get(), &self.change.before) else {
            return Ok(false);
        };
        let added = names.added(now);
        if now.is_unchanged(then, added) {
            return Ok(true);
        }
        let is_copy = now.is_copy_of(then, added) && self.directory.is_layered();
        if then != before.stamp || !is_copy || !self.holds(before)? {
            return Ok(false);
        }
        let links = now.links.saturating_add_signed(-added);
        self.stamp.set(Some(Stamp { links, ..now }));
        Ok(true)
    }

    /// Tells whether the file has the content that was read; false when it is gone.
    fn holds(&self, found: &FileSnapshot) -> io::Result<bool> {
        match has_content(&self.directory, &self.name, &found.bytes) {
            Err(error) if is_gone(&error) => Ok(false),
            compared => compared,
        }
    }

    /// Reverts `install`; returns the message for a failure.
    pub(super) fn roll_back(&self) -> Result<(), String> {
        let backup = self.backup.as_deref().ok_or(io::ErrorKind::NotFound);
        let result = match self.operation {
            Operation::Replace | Operation::Remove => backup
                .map_err(io::Error::from)
                .and_then(|backup| self.directory.rename(backup, &self.name)),
            Operation::Create => self.directory.remove(&self.name),
        };
        let shown = self.change.shown.display();
        result.map_err(|error| format!("; {shown} could not be restored: {error}"))
    }
}

/// Opens the file that metadata is copied from; `mode` overrides its mode.
fn model(path: &Path, mode: Option<u32>) -> io::Result<(Stamp, Option<File>)> {
    let (parent, name) = split(path).ok_or(io::ErrorKind::NotFound)?;
    let opened = Directory::open(parent)?.read(name)?;
    let stamp = Stamp::of(&opened)?;
    let stamp = mode.map_or(stamp, |mode| stamp.with_mode(mode));
    Ok((stamp, Some(opened)))
}

/// Tells whether a file has exactly these bytes.
fn has_content(directory: &Directory, name: &OsStr, bytes: &[u8]) -> io::Result<bool> {
    let mut file = directory.read(name)?;
    let mut buffer = vec![0; COMPARED_BYTES.min(bytes.len() + 1)];
    let mut rest = bytes;
    loop {
        let length = match file.read(&mut buffer) {
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let read = buffer.get(..length).unwrap_or_default();
        match rest.strip_prefix(read) {
            Some(_) if length == 0 => return Ok(rest.is_empty()),
            Some(after) => rest = after,
            None => return Ok(false),
        }
    }
}

/// Error for a file that another program changed.
pub(super) fn file_changed(change: &Change) -> ToolError {
    let message = format!(
        "{}: another program changed it between reading and writing",
        change.shown.display()
    );
    ToolError::new(ErrorCode::FileChanged, message)
}
