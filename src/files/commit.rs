//! Brings new contents to the disk: all of them, or none.
//!
//! First every new content is written to a temporary file beside its target, so that a full disk or
//! a missing permission shows before anything changed. Then each target is compared with what was
//! read. Only then the temporary files take their places, and should one not, the places taken are
//! given back. A file whose owner cannot be kept is refused: a new file would be somebody else's, and
//! one that is written over can be found half-written.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use super::change::{Change, Dress, Found, NewContent};
use super::directory::{Directory, Stamp, remove_made, split};
use super::dress::{Dressed, dress_again, dress_like};
use super::intent::{Decided, Plan, Step};
use super::journal::{Entry, StoredPath, Version};
use super::pair::both;
use crate::error::{ErrorCode, ToolError};
use crate::limits;

/// Bytes compared at a time.
const COMPARED_BYTES: usize = 1 << 18;

/// A change whose files are being prepared. What is not kept is removed when it is dropped.
#[derive(Debug)]
pub(super) struct Staged<'a> {
    steps: Vec<Prepared<'a>>,
    made: Vec<PathBuf>,
    names: Names,
    is_kept: bool,
}

/// How many names files got by the change itself, or lost.
#[derive(Debug, Default)]
struct Names(HashMap<(u64, u64), i64>);

impl Names {
    fn add(&mut self, file: Option<Stamp>, count: i64) {
        if let Some(file) = file {
            *self.0.entry(file.identity()).or_default() += count;
        }
    }

    fn added(&self, file: Stamp) -> i64 {
        self.0.get(&file.identity()).copied().unwrap_or(0)
    }
}

/// One file of it.
#[derive(Debug)]
struct Prepared<'a> {
    change: &'a Change,
    directory: Directory,
    name: OsString,
    temporary: Option<OsString>,
    backup: Option<OsString>,
    way: Way,
    /// The file of which its new content is another name.
    linked: Option<Stamp>,
    /// Whether the file was compared with what was read while its new content went to the disk.
    is_compared: bool,
}

/// How a file takes on its new content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Create,
    Replace,
    Remove,
}

/// Plans the change with this id: which names it will use, and which directories are missing.
pub(super) fn plan(changes: &[Change], id: &str) -> Plan {
    let needed = changes.iter().filter(|change| change.is_needed());
    let several = needed.clone().count() > 1;
    let step = |(index, change): (usize, &Change)| Step {
        path: StoredPath::from(change.real.as_path()),
        temporary: change
            .after
            .as_ref()
            .map(|_| format!(".karyi-{id}-{index}.tmp")),
        backup: change
            .before
            .as_ref()
            .filter(|_| several || change.after.is_none())
            .map(|_| format!(".karyi-{id}-{index}.old")),
    };
    let steps = needed.clone().enumerate().map(step).collect();
    let mut made: Vec<StoredPath> = needed
        .filter(|change| change.after.is_some())
        .flat_map(|change| missing_directories(&change.real))
        .collect();
    made.sort_unstable();
    made.dedup();
    Plan { steps, made }
}

fn missing_directories(path: &Path) -> impl Iterator<Item = StoredPath> {
    let above = path.ancestors().skip(1);
    above
        .take_while(|path| std::fs::symlink_metadata(path).is_err())
        .map(StoredPath::from)
}

/// Writes the new contents beside their targets.
///
/// # Errors
/// What is in the way; nothing is left behind then.
pub(super) fn stage<'a>(changes: &'a [Change], plan: &Plan) -> Result<Staged<'a>, ToolError> {
    let mut staged = Staged {
        steps: Vec::new(),
        made: Vec::new(),
        names: Names::default(),
        is_kept: false,
    };
    let needed = changes.iter().filter(|change| change.is_needed());
    for (change, step) in needed.zip(&plan.steps) {
        let io = |error: io::Error| ToolError::from_io(&change.shown, &error);
        let mut prepared = prepare(change, step, &mut staged.made).map_err(io)?;
        if change.before.is_some() && !prepared.is_as_read(&staged.names) {
            return Err(file_changed(change));
        }
        let written = prepared.write();
        staged.names.add(prepared.linked, 1);
        staged.steps.push(prepared);
        if let Dressed::No(user, group) = written.map_err(io)? {
            return Err(owner_not_kept(change, user, group));
        }
    }
    Ok(staged)
}

fn prepare<'a>(
    change: &'a Change,
    step: &Step,
    made: &mut Vec<PathBuf>,
) -> io::Result<Prepared<'a>> {
    let (parent, name) = split(&change.real).ok_or(io::ErrorKind::IsADirectory)?;
    let way = match (&change.before, &change.after) {
        (_, None) => Way::Remove,
        (None, Some(_)) => Way::Create,
        (Some(_), Some(_)) => Way::Replace,
    };
    let directory = match way {
        Way::Create => Directory::make(parent, made)?,
        Way::Replace | Way::Remove => Directory::open(parent)?,
    };
    Ok(Prepared {
        change,
        directory,
        name: name.to_owned(),
        temporary: step.temporary.as_ref().map(OsString::from),
        backup: step.backup.as_ref().map(OsString::from),
        way,
        linked: None,
        is_compared: false,
    })
}

impl Prepared<'_> {
    /// Writes the new content to its temporary file; returns whether that got the right owner.
    fn write(&mut self) -> io::Result<Dressed> {
        if self.way == Way::Replace {
            // The only sure way to learn whether the file may be written.
            self.directory.write(&self.name)?;
        }
        let (Some(temporary), Some(after)) = (&self.temporary, &self.change.after) else {
            return Ok(Dressed::Yes);
        };
        if self.is_moved() && self.link_moved(temporary, after) {
            self.linked = self.directory.stamp(temporary)?;
            return Ok(Dressed::Yes);
        }
        // Private while it holds the content of a private file.
        let mode = if after.dress == Dress::Kept && self.way == Way::Create {
            0o666
        } else {
            0o600
        };
        let mut file = self.directory.create(temporary, mode)?;
        file.write_all(&after.bytes)?;
        let dressed = self.dress(&file, after)?;
        if let Dressed::Yes = dressed {
            self.is_compared = self.sync(&file)?;
        }
        Ok(dressed)
    }

    /// Makes the new content last. A large file is compared with what was read meanwhile; returns whether it
    /// was, and is the same.
    fn sync(&self, file: &File) -> io::Result<bool> {
        let before = self.change.before.as_ref();
        let is_large = |found: &&Found| found.stamp.size >= limits::EARLY_JOURNAL_BYTES;
        let Some(before) = before.filter(is_large) else {
            return file.sync_all().map(|()| false);
        };
        let (synced, is_same) = both(
            || file.sync_all(),
            || has_content(&self.directory, &self.name, &before.bytes).unwrap_or(false),
        );
        synced.map(|()| is_same)
    }

    /// Returns what the new content has, or is about to have, of owner and permissions.
    fn new_stamp(&self) -> Option<Stamp> {
        let name = match self.way {
            Way::Create | Way::Replace => self.temporary.as_ref(),
            Way::Remove => None,
        };
        self.directory.stamp(name?).ok().flatten()
    }

    /// Whether the content comes from another file as it is.
    fn is_moved(&self) -> bool {
        matches!(&self.change.after, Some(after) if matches!(after.dress, Dress::Like(_)))
            && self.way == Way::Create
    }

    /// Takes the file itself instead of a copy, which keeps everything about it. Returns whether
    /// that was possible.
    fn link_moved(&self, temporary: &OsStr, after: &NewContent) -> bool {
        let Dress::Like(from) = &after.dress else {
            return false;
        };
        let Some((parent, name)) = split(from) else {
            return false;
        };
        let Ok(parent) = Directory::open(parent) else {
            return false;
        };
        let is_same = has_content(&parent, name, &after.bytes).unwrap_or(false);
        is_same && self.directory.link(&parent, name, temporary).is_ok()
    }

    /// Gives a new file the owner, attributes and permissions it is to have.
    fn dress(&self, file: &File, after: &NewContent) -> io::Result<Dressed> {
        let model = match &after.dress {
            Dress::Kept => self.change.before.as_ref().map(|found| {
                let opened = self.directory.read(&self.name).ok();
                (found.stamp, opened)
            }),
            Dress::Like(path) => {
                let (parent, name) = split(path).ok_or(io::ErrorKind::NotFound)?;
                let opened = Directory::open(parent)?.read(name)?;
                Some((Stamp::of(&opened)?, Some(opened)))
            }
            Dress::Mode(mode, owner) => match &self.change.before {
                Some(found) => {
                    let opened = self.directory.read(&self.name).ok();
                    let mode = (found.stamp.mode & !0o7777) | (mode & 0o7777);
                    Some((
                        Stamp {
                            mode,
                            ..found.stamp
                        },
                        opened,
                    ))
                }
                None => {
                    dress_again(file, *mode, *owner)?;
                    None
                }
            },
        };
        match model {
            None => Ok(Dressed::Yes),
            Some((stamp, opened)) => dress_like(file, stamp, opened.as_ref()),
        }
    }

    /// Keeps the original beside the file: a second name where the file system knows such, else a
    /// copy. One that is removed gets that name later. Returns the file that has a name more.
    fn back_up(&self) -> io::Result<Option<Stamp>> {
        let (Some(backup), Some(before)) = (&self.backup, &self.change.before) else {
            return Ok(None);
        };
        match self.way {
            Way::Create | Way::Remove => Ok(None),
            Way::Replace
                if self
                    .directory
                    .link(&self.directory, &self.name, backup)
                    .is_ok() =>
            {
                Ok(Some(before.stamp))
            }
            Way::Replace => {
                let mut copy = self.directory.create(backup, 0o600)?;
                copy.write_all(&before.bytes)?;
                let opened = self.directory.read(&self.name).ok();
                dress_like(&copy, before.stamp, opened.as_ref())?;
                copy.sync_all().map(|()| None)
            }
        }
    }

    /// Refuses when the file is not what was read.
    fn check(&self, names: &Names) -> Result<(), ToolError> {
        let io = |error: io::Error| ToolError::from_io(&self.change.shown, &error);
        let now = self.directory.stamp(&self.name).map_err(io)?;
        let is_same = match (&self.change.before, now) {
            (None, None) => true,
            (Some(then), Some(now)) => {
                let has_content =
                    || has_content(&self.directory, &self.name, &then.bytes).unwrap_or(false);
                now.is_unchanged(then.stamp, names.added(now))
                    && (self.is_compared || has_content())
            }
            (Some(_), None) | (None, Some(_)) => false,
        };
        match is_same && self.directory.is_in_place() {
            true => Ok(()),
            false => Err(file_changed(self.change)),
        }
    }

    /// Puts the new content in its place.
    fn put(&self, names: &Names) -> Result<(), ToolError> {
        let result = match (self.way, &self.temporary) {
            (Way::Create, Some(temporary)) => self.directory.rename_new(temporary, &self.name),
            (Way::Replace, Some(temporary)) => match self.is_as_read(names) {
                true => self.directory.rename(temporary, &self.name),
                false => return Err(file_changed(self.change)),
            },
            (Way::Remove, _) => match (&self.backup, self.is_as_read(names)) {
                (Some(backup), true) => self.directory.rename(&self.name, backup),
                _ => return Err(file_changed(self.change)),
            },
            (Way::Create | Way::Replace, None) => Err(io::ErrorKind::NotFound.into()),
        };
        result.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => file_changed(self.change),
            _ => ToolError::from_io(&self.change.shown, &error),
        })
    }

    /// Whether the file is still the one that was read, where its path still leads.
    fn is_as_read(&self, names: &Names) -> bool {
        let now = self.directory.stamp(&self.name).ok().flatten();
        let then = self.change.before.as_ref().map(|found| found.stamp);
        let is_same = now
            .zip(then)
            .is_some_and(|(a, b)| a.is_unchanged(b, names.added(a)));
        is_same && self.directory.is_in_place()
    }

    /// Undoes `put`; returns what to tell when that fails.
    fn take_back(&self) -> Result<(), String> {
        let backup = self.backup.as_deref().ok_or(io::ErrorKind::NotFound);
        let result = match self.way {
            Way::Replace | Way::Remove => backup
                .map_err(io::Error::from)
                .and_then(|backup| self.directory.rename(backup, &self.name)),
            Way::Create => self.directory.remove(&self.name),
        };
        let shown = self.change.shown.display();
        result.map_err(|error| format!("; {shown} could not be restored: {error}"))
    }
}

/// Whether a file holds these bytes.
pub(super) fn has_content(directory: &Directory, name: &OsStr, bytes: &[u8]) -> io::Result<bool> {
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

fn file_changed(change: &Change) -> ToolError {
    let message = format!(
        "{}: another program changed it between reading and writing",
        change.shown.display()
    );
    ToolError::new(ErrorCode::FileChanged, message)
}

fn owner_not_kept(change: &Change, user: u32, group: u32) -> ToolError {
    let message = format!(
        "{}: it belongs to user {user} and group {group}, and a new file cannot be given to them",
        change.shown.display()
    );
    ToolError::new(ErrorCode::OwnerNotKept, message)
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
    pub(super) fn decided(&self, entry: &Entry) -> Vec<Decided> {
        let hash = |bytes: &[u8], version: Option<&Version>| match version {
            Some(known) if entry.key.is_none() && !known.content.is_empty() => {
                known.content.clone()
            }
            Some(_) | None => blake3::hash(bytes).to_hex().to_string(),
        };
        let decided = |(index, step): (usize, &Prepared<'_>)| {
            let record = entry.files.get(index);
            let (old, new) = (step.change.bytes(), step.change.after.as_ref());
            Decided {
                old: old.map(|old| hash(old, record.and_then(|file| file.old.as_ref()))),
                new: new.map(|new| hash(&new.bytes, record.and_then(|file| file.new.as_ref()))),
            }
        };
        self.steps.iter().enumerate().map(decided).collect()
    }

    /// Returns owner and permissions of each new content, none for what is removed.
    pub(super) fn stamps(&self) -> impl Iterator<Item = Option<Stamp>> {
        self.steps.iter().map(Prepared::new_stamp)
    }

    /// Returns the directories that were made.
    pub(super) fn made(&self) -> &[PathBuf] {
        &self.made
    }

    /// Puts all contents in their places, or takes back what was put.
    ///
    /// # Errors
    /// What went wrong, and what could not be taken back.
    pub(super) fn place(mut self) -> Result<Self, ToolError> {
        for (index, step) in self.steps.iter().enumerate() {
            if let Err(error) = step.put(&self.names) {
                let done = self.steps.iter().take(index).rev();
                let losses: Vec<String> = done.filter_map(|step| step.take_back().err()).collect();
                if !losses.is_empty() {
                    // What is left of the originals may be needed.
                    self.is_kept = true;
                }
                return Err(with_losses(error, &losses));
            }
            // Another file has the name now.
            let replaced = step.change.before.as_ref();
            let replaced = replaced.filter(|_| step.way == Way::Replace);
            self.names.add(replaced.map(|found| found.stamp), -1);
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
        let mut synced: Vec<&Path> = Vec::new();
        for step in &self.steps {
            if !synced.contains(&step.directory.path()) {
                synced.push(step.directory.path());
                step.directory.sync();
            }
        }
    }

    fn remove_leftovers(&self) {
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
