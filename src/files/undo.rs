//! Takes back changes that the journal knows, all of them or none.
//!
//! A file is restored only when it still is what karyi wrote; else nothing is touched, and the three
//! contents are shown: what karyi wrote, what is there now, and what would be restored. An undo is
//! a change like any other: it is recorded and can be undone.

use std::collections::{HashMap, HashSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::change::{Change, Dress};
use super::directory::remove_made;
use super::journal::{Entry, FileRecord, Journal, StoredPath, Version};
use super::recover::{self, Became, Recovered};
use super::transaction::{Recorder, Transaction};
use crate::error::{ErrorCode, ToolError};
use crate::limits;

/// Which changes are taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// The one with this number.
    Number(u64),
    /// So many of the last that were not taken back yet.
    Last(usize),
    /// Those of one run of karyi that were not taken back yet.
    Session(String),
}

/// What an undo did, or would do.
#[derive(Debug, PartialEq, Eq)]
pub struct Undone {
    /// The entries that it takes back, the latest first.
    pub numbers: Vec<u64>,
    /// What it does to each file.
    pub files: Vec<Restored>,
    /// The number of its own entry; none when nothing was done.
    pub number: Option<u64>,
    /// Files of earlier changes that were left half done and are whole now.
    pub recovered: Vec<Recovered>,
}

/// What an undo does to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// The file.
    pub path: PathBuf,
    /// What it holds before; none when it is not there.
    pub now: Option<Vec<u8>>,
    /// What it holds after; none when it is removed.
    pub restored: Option<Vec<u8>>,
    /// What of it could not be restored.
    pub note: Option<String>,
}

/// A file that is not what karyi wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The file.
    pub path: PathBuf,
    /// What karyi wrote; none when it removed the file.
    pub wrote: Content,
    /// What is there now; none when there is no file.
    pub now: Content,
    /// What would be restored; none when the file would be removed.
    pub restored: Content,
}

/// One of the contents of a conflict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// There is no file.
    Missing,
    /// The content is not kept, or cannot be read.
    Unknown,
    /// The content.
    Bytes(Vec<u8>),
    /// Something else than a file, in words: `a link to X`, `a directory`.
    Other(String),
}

/// Why nothing was taken back.
#[derive(Debug, PartialEq, Eq)]
pub enum UndoError {
    /// Files are not what karyi wrote.
    Conflicts(Vec<Conflict>),
    /// Something else.
    Other(ToolError),
}

impl From<ToolError> for UndoError {
    fn from(error: ToolError) -> Self {
        Self::Other(error)
    }
}

/// Returns the numbers of the entries that are taken back by now.
#[must_use]
pub fn undone(entries: &[Entry]) -> HashSet<u64> {
    let mut undone = HashSet::new();
    for entry in entries.iter().rev() {
        // An undo that was taken back itself took nothing back.
        if !undone.contains(&entry.number) {
            undone.extend(&entry.undoes);
        }
    }
    undone
}

/// What one path is to be, worked out from the latest entry to the earliest.
struct Goal<'a> {
    /// What karyi wrote last: what must be there now.
    wrote: Option<&'a Version>,
    /// What is to be there.
    goal: Option<&'a Version>,
    /// Where its content went by a rename.
    moved_to: Option<&'a Path>,
}

/// Takes changes back.
///
/// # Errors
/// What is in the way; nothing is changed then.
pub fn undo(recorder: &Recorder, journal: &Journal, which: &Which) -> Result<Undone, UndoError> {
    run(recorder, journal, which, true)
}

/// Says what that would do.
///
/// # Errors
/// What would be in the way.
pub fn dry_run(recorder: &Recorder, journal: &Journal, which: &Which) -> Result<Undone, UndoError> {
    run(recorder, journal, which, false)
}

fn run(
    recorder: &Recorder,
    journal: &Journal,
    which: &Which,
    is_real: bool,
) -> Result<Undone, UndoError> {
    // What was left half done is among the changes only when it is ended.
    let mut recovered = match is_real {
        true => recover::recover(journal)?,
        false => recover::unended(journal),
    };
    let entries = journal.entries()?;
    let chosen = choose(&entries, which)?;
    let goals = goals(journal, &chosen).map_err(|e| with_way_out(e, &entries, which))?;
    let numbers: Vec<u64> = chosen.iter().map(|entry| entry.number).collect();
    if !is_real {
        let changes = changes(journal, &goals);
        let changes = changes.map_err(|error| hint_at(error, &recovered))?;
        let (files, number) = (changes.iter().map(restored).collect(), None);
        return Ok(Undone {
            numbers,
            files,
            number,
            recovered,
        });
    }
    let paths: Vec<&Path> = goals.iter().map(|(path, _)| *path).collect();
    let transaction = Transaction::begin(recorder, &paths)?;
    let changes = changes(journal, &goals).map_err(|error| hint_at(error, &recovered))?;
    let mut files: Vec<Restored> = changes.iter().map(restored).collect();
    let receipt = transaction.commit(&changes, numbers.clone(), &|_| false)?;
    note_owners(&mut files, &goals);
    for entry in &chosen {
        let made: Vec<PathBuf> = entry.made.iter().map(|path| path.0.clone()).collect();
        remove_made(&made);
    }
    recover::add(&mut recovered, receipt.recovered);
    Ok(Undone {
        numbers,
        files,
        number: receipt.number,
        recovered,
    })
}

/// Says of a file with several names that one of them is karyi's own, while a change of it is half done.
fn hint_at(mut error: UndoError, recovered: &[Recovered]) -> UndoError {
    if let UndoError::Other(error) = &mut error
        && error.code == ErrorCode::HardLinked
        && recovered.iter().any(|file| file.became == Became::Waiting)
    {
        error.hint =
            "a change was left half done, and karyi keeps names beside its files; the next edit or undo \
             ends it when it can: leave `.karyi-*` to it"
                .into();
    }
    error
}

/// Returns the entries to take back, the latest first.
///
/// # Errors
/// `not_found`, or `undo_conflict` for a change that is taken back already.
pub fn choose<'a>(entries: &'a [Entry], which: &Which) -> Result<Vec<&'a Entry>, ToolError> {
    let undone = undone(entries);
    let is_open = |entry: &&Entry| !undone.contains(&entry.number) && entry.undoes.is_empty();
    let open = entries.iter().rev().filter(is_open);
    let chosen: Vec<&Entry> = match which {
        Which::Number(number) => {
            let found = entries.iter().find(|entry| entry.number == *number);
            if undone.contains(number) {
                let message = format!("change {number} is taken back already");
                let hint = "see `karyi history`; to make it again, undo the undo";
                return Err(ToolError::new(ErrorCode::UndoConflict, message).with_hint(hint));
            }
            found.into_iter().collect()
        }
        Which::Last(count) => open.take(*count).collect(),
        Which::Session(session) => open.filter(|entry| entry.session == *session).collect(),
    };
    if !chosen.is_empty() {
        return Ok(chosen);
    }
    let message = match which {
        Which::Number(number) => format!("there is no change {number} in the journal"),
        Which::Last(_) => "there is nothing to undo".to_owned(),
        Which::Session(session) => format!("there is nothing to undo of session {session}"),
    };
    let hint = "see `karyi history` for what can be undone";
    Err(ToolError::new(ErrorCode::NotFound, message).with_hint(hint))
}

/// Works out what each path must be and is to be.
fn goals<'a>(
    journal: &Journal,
    chosen: &[&'a Entry],
) -> Result<Vec<(&'a Path, Goal<'a>)>, ToolError> {
    let mut goals: Vec<(&Path, Goal<'_>)> = Vec::new();
    let mut known: HashMap<&Path, usize> = HashMap::new();
    for entry in chosen {
        journal.check_key(entry)?;
        for file in &entry.files {
            check(entry, file)?;
            let path = file.path.as_path();
            let index = *known.entry(path).or_insert(goals.len());
            let (wrote, goal) = (file.new.as_ref(), file.old.as_ref());
            let moved_to = file.renamed_to.as_ref().map(StoredPath::as_path);
            match goals.get_mut(index) {
                None => {
                    let goal = Goal {
                        wrote,
                        goal,
                        moved_to,
                    };
                    goals.push((path, goal));
                }
                Some((_, earlier)) if is_same(journal, earlier.goal, wrote) => {
                    earlier.goal = goal;
                    earlier.moved_to = moved_to.or(earlier.moved_to);
                }
                Some(_) => return Err(broken_chain(entry, path)),
            }
        }
    }
    Ok(goals)
}

/// Whether a later change found what an earlier one wrote. One of both may be encrypted and the other
/// not: then the same content has two names.
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

fn broken_chain(entry: &Entry, path: &Path) -> ToolError {
    let message = format!(
        "{}: was changed between change {} and the later ones, by something else",
        path.display(),
        entry.number
    );
    ToolError::new(ErrorCode::UndoConflict, message)
}

fn check(entry: &Entry, file: &FileRecord) -> Result<(), ToolError> {
    let Some(why) = file.obstacle() else {
        return Ok(());
    };
    let (number, path) = (entry.number, file.path.as_path().display());
    let message = format!("change {number} cannot be undone: {path}: {why}");
    let hint = format!("`karyi history show {number}` shows what it changed; restore that by hand");
    Err(ToolError::new(ErrorCode::UndoUnavailable, message).with_hint(hint))
}

/// Says how to take back an earlier change when one that cannot be undone is in the way.
fn with_way_out(error: ToolError, entries: &[Entry], which: &Which) -> ToolError {
    if error.code != ErrorCode::UndoUnavailable || matches!(which, Which::Number(_)) {
        return error;
    }
    let undone = undone(entries);
    let is_asked = |entry: &&Entry| match which {
        Which::Session(session) => entry.session == *session,
        Which::Number(_) | Which::Last(_) => true,
    };
    let mut open = entries
        .iter()
        .rev()
        .filter(|entry| !undone.contains(&entry.number) && entry.undoes.is_empty())
        .filter(is_asked);
    let Some(number) = open.find(|entry| entry.can_be_undone()).map(|e| e.number) else {
        return error;
    };
    let hint = format!(
        "{}; `karyi undo {number}` takes back the newest change that can be undone, and `karyi undo N` any other by its number",
        error.hint
    );
    error.with_hint(hint)
}

/// Compares every file with what karyi wrote, and says what each becomes.
fn changes(journal: &Journal, goals: &[(&Path, Goal<'_>)]) -> Result<Vec<Change>, UndoError> {
    let (mut changes, mut conflicts) = (Vec::new(), Vec::new());
    for (path, goal) in goals {
        let read = Change::read(path, path);
        let restored = match goal.goal {
            None => None,
            Some(version) => Some((version, content(journal, path, version)?)),
        };
        let change = match read {
            Ok(change) => change,
            Err(error) => {
                let found = Content::Other(obstacle(path).ok_or(error)?);
                conflicts.push(conflict(journal, path, goal.wrote, found, restored));
                continue;
            }
        };
        let is_as_written = match (change.bytes(), goal.wrote) {
            (None, None) => true,
            (Some(now), Some(wrote)) => journal.is_content(now, wrote),
            (Some(_), None) | (None, Some(_)) => false,
        };
        if !is_as_written {
            let now = change.bytes().map(<[u8]>::to_vec);
            let found = now.map_or(Content::Missing, Content::Bytes);
            conflicts.push(conflict(journal, path, goal.wrote, found, restored));
            continue;
        }
        changes.push(match restored {
            None => change,
            Some((version, bytes)) => with_content(change, bytes, version, goal.wrote),
        });
        changes.last().map_or(Ok(()), refuse_split)?;
    }
    if !conflicts.is_empty() {
        return Err(UndoError::Conflicts(conflicts));
    }
    rename_back(&mut changes, goals);
    Ok(changes)
}

/// Refuses to restore one name of a file that has several: the others would keep the new content.
fn refuse_split(change: &Change) -> Result<(), ToolError> {
    let links = change.before.as_ref().map_or(1, |found| found.stamp.links);
    if links < 2 || change.after.is_none() || !change.is_needed() {
        return Ok(());
    }
    let shown = change.shown.display();
    let message =
        format!("{shown}: the file has {links} names, and undo would change this one only");
    let hint = "find the others with `find DIR -samefile PATH` and take them away, then undo again; or restore the text by hand";
    Err(ToolError::new(ErrorCode::HardLinked, message).with_hint(hint))
}

/// Lets a file that was renamed, and is as it was, take its earlier name again instead of a copy.
fn rename_back(changes: &mut [Change], goals: &[(&Path, Goal<'_>)]) {
    let index: HashMap<&Path, usize> = goals.iter().map(|(path, _)| *path).zip(0..).collect();
    let next = |goal: &Goal<'_>| index.get(goal.moved_to?).and_then(|at| goals.get(*at));
    for (at, (path, goal)) in goals.iter().enumerate() {
        // A chain of renames ends at the latest name; one that leads in a circle at any.
        let chain = std::iter::successors(next(goal), |(_, goal)| next(goal));
        let Some((last, _)) = chain.take(limits::MAX_UNDO_RENAMES).last() else {
            continue;
        };
        let is_same = |change: &Change| is_renamed(change, changes.get(at), goal.goal);
        let from = index.get(last).and_then(|from| changes.get(*from));
        if *last != *path && from.is_some_and(is_same) {
            let after = changes.get_mut(at).and_then(|change| change.after.as_mut());
            after
                .into_iter()
                .for_each(|after| after.dress = Dress::Like((*last).to_owned()));
        }
    }
}

/// Whether a file that goes is the one that is to come back elsewhere.
fn is_renamed(from: &Change, to: Option<&Change>, goal: Option<&Version>) -> bool {
    let (Some(found), None) = (&from.before, &from.after) else {
        return false;
    };
    // Of permissions that were widened since nothing is taken over.
    let has_mode = goal.is_some_and(|goal| found.stamp.mode & !goal.mode & 0o7777 == 0);
    let back = to
        .filter(|to| to.before.is_none())
        .and_then(|to| to.after.as_ref());
    has_mode && back.is_some_and(|after| after.bytes == *found.bytes)
}

/// Says what a file becomes: the version with its permissions. Where somebody changed those since, it
/// gets what both allow, so that nothing is opened that was closed.
fn with_content(change: Change, bytes: Vec<u8>, goal: &Version, wrote: Option<&Version>) -> Change {
    let now = change
        .before
        .as_ref()
        .map(|found| found.stamp.mode & 0o7777);
    let mode = match now {
        Some(now) if wrote.is_none_or(|wrote| wrote.mode != now) => now & goal.mode,
        _ => goal.mode,
    };
    let mut change = change.into_content(bytes);
    if let Some(after) = &mut change.after {
        after.dress = Dress::Mode(mode, goal.owner);
    }
    change
}

/// Says what is where a file or one of its directories was; nothing when each is what it should be.
fn obstacle(path: &Path) -> Option<String> {
    let mut above: Vec<&Path> = path.ancestors().skip(1).collect();
    above.reverse();
    let is_no_directory =
        |path: &&&Path| !std::fs::symlink_metadata(path).is_ok_and(|m| m.is_dir());
    if let Some(parent) = above.iter().find(is_no_directory) {
        let found = what_is(parent)?;
        return Some(format!(
            "nothing: its directory {} is {found}",
            parent.display()
        ));
    }
    what_is(path).filter(|found| found != "a file")
}

fn what_is(path: &Path) -> Option<String> {
    let kind = std::fs::symlink_metadata(path).ok()?.file_type();
    Some(match std::fs::read_link(path) {
        Ok(target) => format!("a link to {}", target.display()),
        Err(_) if kind.is_dir() => "a directory".to_owned(),
        Err(_) if kind.is_file() => "a file".to_owned(),
        Err(_) => "a pipe, socket or device".to_owned(),
    })
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

fn conflict(
    journal: &Journal,
    path: &Path,
    wrote: Option<&Version>,
    now: Content,
    restored: Option<(&Version, Vec<u8>)>,
) -> Conflict {
    let wrote = match wrote {
        None => Content::Missing,
        Some(version) => journal
            .content(version)
            .map_or(Content::Unknown, Content::Bytes),
    };
    Conflict {
        path: path.to_owned(),
        wrote,
        now,
        restored: restored.map_or(Content::Missing, |(_, bytes)| Content::Bytes(bytes)),
    }
}

fn restored(change: &Change) -> Restored {
    Restored {
        path: change.real.clone(),
        now: change.bytes().map(<[u8]>::to_vec),
        restored: change.after.as_ref().map(|after| after.bytes.clone()),
        note: None,
    }
}

/// Says of which files that came back the owner is another one now.
fn note_owners(files: &mut [Restored], goals: &[(&Path, Goal<'_>)]) {
    let came_back = |file: &&mut Restored| file.now.is_none() && file.restored.is_some();
    for file in files.iter_mut().filter(came_back) {
        let goal = goals.iter().find(|(path, _)| *path == file.path);
        let Some(goal) = goal.and_then(|(_, goal)| goal.goal) else {
            continue;
        };
        let found = std::fs::symlink_metadata(&file.path).ok();
        file.note =
            found.and_then(|found| owner_note(goal, (found.uid(), found.gid()), found.mode()));
    }
}

fn owner_note(goal: &Version, (user, group): (u32, u32), mode: u32) -> Option<String> {
    let lost = match goal.mode & !mode & 0o6000 {
        0 => "",
        _ => "; it does not run with the rights of its owner or group any more",
    };
    match goal.owner {
        Some(owner) if owner == (user, group) => None,
        Some((was, of)) => Some(format!(
            "it belonged to user {was} and group {of}, which could not be given back: it belongs to user {user} and group {group} now{lost}"
        )),
        // Who it belonged to was not recorded; most belong to whom they did.
        None if lost.is_empty() => None,
        None => Some(format!(
            "its owner was not recorded: it belongs to user {user} and group {group} now{lost}"
        )),
    }
}

#[cfg(test)]
mod tests;
