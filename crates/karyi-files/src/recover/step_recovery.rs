//! One file of a change that was decided: how far it is, and how it is completed or taken back.

use std::ffi::OsStr;
use std::fs::Permissions;
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;

use super::super::attributes::Attributes;
use super::super::directory::{Directory, Stamp, split};
use super::super::journal::{Entry, FileRecord, Journal, Version};
use super::super::metadata::{Dressed, Had, dress_again, dress_like};
use super::super::wal::{Decided, Decision, Plan, Step};
use super::{Became, Recovered};

/// What became of a file, and why it is not whole.
type Ended = (Became, Option<&'static str>);

/// A file that somebody changed.
const FOREIGN: Ended = (Became::LeftAlone, Some("another program changed it since"));
/// A file whose original is nowhere.
const NO_ORIGINAL: Ended = (
    Became::LeftAlone,
    Some(
        "it has its new content, other files of the change have not, and its old one is not there any more",
    ),
);

/// How far one file of a decided change is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
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
enum Holds {
    Nothing,
    /// A file whose content has this hash.
    Content(String),
    Other,
}

impl Holds {
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
pub(super) struct Work<'a> {
    /// What is done to it.
    pub(super) step: &'a Step,
    decided: &'a Decided,
    entry: &'a Entry,
    file: Option<&'a FileRecord>,
}

impl<'a> Work<'a> {
    /// Returns those of a change.
    pub(super) fn all(plan: &'a Plan, decision: &'a Decision) -> Vec<Self> {
        let steps = plan.steps.iter().zip(&decision.steps).enumerate();
        let work = |(index, (step, decided))| Self {
            step,
            decided,
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
    pub(super) fn state(&self, plan: &Plan) -> io::Result<State> {
        let Some((directory, name)) = place_or_gone(plan, self.step)? else {
            return Ok(State::Lost);
        };
        let now = Holds::read(&directory, name)?;
        if now.is(self.decided.new.as_ref()) {
            return Ok(State::Done);
        }
        if !now.is(self.decided.old.as_ref()) {
            return Ok(State::Foreign);
        }
        let is_ready = match &self.step.temporary {
            Some(name) => Holds::read(&directory, OsStr::new(name))?.is(self.decided.new.as_ref()),
            None => self.decided.new.is_none(),
        };
        Ok(if is_ready {
            State::Pending
        } else {
            State::Lost
        })
    }

    /// Brings the file to its new content, or to its old one.
    pub(super) fn end(&self, state: State, is_new: bool, journal: &Journal) -> io::Result<Ended> {
        let whole = match is_new {
            true => (Became::New, None),
            false => (Became::Old, None),
        };
        let result = match (is_new, state) {
            (_, State::Foreign) => return Ok(FOREIGN),
            (true, State::Done) | (false, State::Pending | State::Lost) => return Ok(whole),
            (true, State::Pending | State::Lost) => self.complete().map(|()| whole),
            (false, State::Done) => self.take_back(journal),
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
            (Some(temporary), _) if self.decided.old.is_none() => {
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

    fn take_back(&self, journal: &Journal) -> io::Result<Ended> {
        let (directory, name) = place(self.step)?;
        if self.decided.old.is_none() {
            directory.remove(name)?;
            directory.sync();
            return Ok((Became::Old, None));
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
        match self.decided.new {
            Some(_) => directory.rename(original, name)?,
            None => directory.rename_new(original, name)?,
        }
        directory.sync();
        Ok((Became::Old, None))
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
        if Holds::read(directory, OsStr::new(backup))?.is(self.decided.old.as_ref()) {
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
    pub(super) fn clear(&self, plan: &Plan) -> io::Result<Vec<Recovered>> {
        let Some((directory, name)) = place_or_gone(plan, self.step)? else {
            return Ok(Vec::new());
        };
        let mut left = Vec::new();
        let own = [
            (&self.step.temporary, self.decided.new.as_ref()),
            (&self.step.backup, self.decided.old.as_ref()),
        ];
        for (leftover, hash) in own {
            let Some(leftover) = leftover.as_ref().map(OsStr::new) else {
                continue;
            };
            let found = Holds::read(&directory, leftover)?;
            let is_own = found.is(hash) || is_one_file(&directory, leftover, name)?;
            if is_own || matches!(found, Holds::Nothing) {
                directory.remove(leftover)?;
                continue;
            }
            left.push(Recovered {
                path: directory.path().join(leftover),
                became: Became::LeftAlone,
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
    let dressed = match directory.stamp(name)? {
        Some(now) => {
            let mode = (now.mode & !0o7777) | mode;
            let opened = directory.read(name).ok();
            dress_like(&file, Stamp { mode, ..now }, opened.as_ref())?
        }
        None => {
            let had = Had {
                mode,
                owner: version.owner,
                attributes: journal.attributes(version),
            };
            dress_again(&file, &had)?;
            Dressed::Yes(Attributes::default())
        }
    };
    file.sync_all()?;
    Ok(matches!(dressed, Dressed::Yes(_)))
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
pub(super) fn remove_leftovers(plan: &Plan, step: &Step) -> io::Result<()> {
    let Some((directory, _)) = place_or_gone(plan, step)? else {
        return Ok(());
    };
    let names = [&step.temporary, &step.backup];
    let mut names = names.into_iter().flatten();
    names.try_for_each(|name| directory.remove(OsStr::new(name)))
}

/// Opens the directory of a step.
fn place(step: &Step) -> io::Result<(Directory, &OsStr)> {
    let (parent, name) = split(step.path.as_path()).ok_or(io::ErrorKind::NotFound)?;
    Ok((Directory::open(parent)?, name))
}

/// Does so; nothing when the change itself made it, or was to make it, and it alone is not there.
fn place_or_gone<'a>(plan: &Plan, step: &'a Step) -> io::Result<Option<(Directory, &'a OsStr)>> {
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
