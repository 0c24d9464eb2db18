//! Takes back changes that the journal knows, all of them or none.
//!
//! A file is restored only when it still is what karyi wrote; else nothing is touched, and the three
//! contents are shown: what karyi wrote, what is there now, and what would be restored. An undo is
//! a change like any other: it is recorded and can be undone.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::change::{Change, Dress};
use super::dress::Had;
use super::journal::told::{AtPath, told};
use super::journal::{Entry, FileRecord, Journal, Version, holds};
use super::recover::{self, Became, Foreseen, Recovered};
use super::transaction::{Recorder, Transaction};
use crate::error::{ErrorCode, ToolError};
use conflict::obstacle;
pub use conflict::{Conflict, Content};

mod conflict;
mod lineage;
mod notes;

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
    /// Where it goes; none when it stays where it is.
    pub to: Option<PathBuf>,
    /// What it holds before; none when it is not there.
    pub now: Option<Vec<u8>>,
    /// What it holds after; none when it is removed.
    pub restored: Option<Vec<u8>>,
    /// What of it could not be restored.
    pub note: Option<String>,
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

/// Returns the numbers of the changes that came after some chosen ones, stand, and are of one of these files,
/// the newest first: to take the chosen ones back, these are taken back before, in this order.
#[must_use]
pub fn later(entries: &[Entry], chosen: &[&Entry], conflicts: &[Conflict]) -> Vec<u64> {
    let undone = undone(entries);
    let last = chosen.iter().map(|entry| entry.number).max();
    let is_later = |entry: &&Entry| Some(entry.number) > last && !undone.contains(&entry.number);
    let touches = |entry: &&Entry| {
        let mut files = entry.files.iter();
        files.any(|file| conflicts.iter().any(|c| c.path == file.path.as_path()))
    };
    let later = entries.iter().rev().filter(is_later).filter(touches);
    later.map(|entry| entry.number).collect()
}

/// What one path is to be, worked out from the latest entry to the earliest.
struct Goal<'a> {
    /// What karyi wrote last: what must be there now.
    wrote: Option<&'a Version>,
    /// What is to be there.
    goal: Option<&'a Version>,
    /// Where the file is now that was at the path; none when it was removed.
    now_at: Option<&'a Path>,
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
    let (mut recovered, foreseen) = match is_real {
        true => (recover::recover(journal)?, Foreseen::default()),
        false => (recover::unended(journal), recover::foresee(journal)),
    };
    let entries = with_foreseen(journal, &foreseen)?;
    let chosen = choose(&entries, which)?;
    let goals = goals(journal, &chosen).map_err(|e| with_way_out(e, &entries, which))?;
    let numbers: Vec<u64> = chosen.iter().map(|entry| entry.number).collect();
    if !is_real {
        let changes = changes(journal, &goals, &foreseen);
        let changes = changes.map_err(|error| hint_at(error, &recovered))?;
        let (files, number) = (restored(&changes), None);
        return Ok(Undone {
            numbers,
            files,
            number,
            recovered,
        });
    }
    let paths: Vec<&Path> = goals.iter().map(|(path, _)| *path).collect();
    let transaction = Transaction::begin(recorder, &paths)?;
    refuse_undone(&journal.entries()?, &numbers)?;
    let changes = changes(journal, &goals, &foreseen);
    let changes = changes.map_err(|error| hint_at(error, &recovered))?;
    let mut files = restored(&changes);
    let receipt = transaction.take_back(&changes, &chosen)?;
    notes::note(&mut files, &changes, &receipt.losses);
    recover::add(&mut recovered, receipt.recovered);
    Ok(Undone {
        numbers,
        files,
        number: receipt.number,
        recovered,
    })
}

/// Returns the changes as they will be when those that were left half done are ended, for an undo that is only
/// tried out.
///
/// # Errors
/// The list of changes cannot be read.
pub fn entries_then(journal: &Journal) -> Result<Vec<Entry>, ToolError> {
    with_foreseen(journal, &recover::foresee(journal))
}

fn with_foreseen(journal: &Journal, foreseen: &Foreseen) -> Result<Vec<Entry>, ToolError> {
    let mut entries = journal.entries()?;
    for entry in &foreseen.entries {
        if entries.iter().any(|known| known.id == entry.id) {
            continue;
        }
        let last = entries.iter().map(|entry| entry.number).max();
        let number = last.unwrap_or(0).max(journal.last_number()) + 1;
        entries.push(Entry {
            number,
            ..entry.clone()
        });
    }
    Ok(entries)
}

/// Refuses changes that another karyi took back while this one waited for their files.
fn refuse_undone(entries: &[Entry], numbers: &[u64]) -> Result<(), ToolError> {
    let undone = undone(entries);
    match numbers.iter().find(|number| undone.contains(number)) {
        Some(number) => Err(is_undone(*number)),
        None => Ok(()),
    }
}

fn is_undone(number: u64) -> ToolError {
    let message = format!("change {number} is taken back already");
    let hint = "see `karyi history`; to make it again, undo the undo";
    ToolError::new(ErrorCode::UndoConflict, message).with_hint(hint)
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
                return Err(is_undone(*number));
            }
            found.into_iter().collect()
        }
        Which::Last(count) => open.take(*count).collect(),
        Which::Session(session) => open.filter(|entry| entry.session == *session).collect(),
    };
    if !chosen.is_empty() {
        return Ok(chosen);
    }
    let is_past =
        |number: &u64| *number > 0 && entries.first().is_some_and(|first| *number < first.number);
    let message = match which {
        Which::Number(number) if is_past(number) => {
            format!(
                "change {number} is not in the journal any more: {}",
                holds()
            )
        }
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
    let whereabouts = lineage::whereabouts(chosen);
    for entry in chosen {
        journal.check_key(entry)?;
        for file in &entry.files {
            check(entry, file)?;
            let path = file.path.as_path();
            let index = *known.entry(path).or_insert(goals.len());
            let (wrote, goal) = (file.new.as_ref(), file.old.as_ref());
            match goals.get_mut(index) {
                None => {
                    let goal = Goal {
                        wrote,
                        goal,
                        now_at: whereabouts.get(path).copied(),
                    };
                    goals.push((path, goal));
                }
                Some((_, earlier)) if is_same(journal, earlier.goal, wrote) => {
                    earlier.goal = goal;
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
    let has_old = file.old.as_ref().is_none_or(|old| old.is_kept);
    let hint = match has_old {
        true => {
            format!("`karyi history show {number}` shows what it changed; restore that by hand")
        }
        false => "restore the file from a backup or with git".to_owned(),
    };
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
fn changes(
    journal: &Journal,
    goals: &[(&Path, Goal<'_>)],
    foreseen: &Foreseen,
) -> Result<Vec<Change>, UndoError> {
    let (mut changes, mut conflicts) = (Vec::new(), Vec::new());
    for (path, goal) in goals {
        let read = Change::read_then(path, foreseen);
        let restored = match goal.goal {
            None => None,
            Some(version) => Some((version, content(journal, path, version)?)),
        };
        let change = match read {
            Ok(change) => change,
            Err(error) => {
                let found = Content::Other(obstacle(path).ok_or(error)?);
                conflicts.push(Conflict::new(journal, path, goal.wrote, found, restored));
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
            conflicts.push(Conflict::new(journal, path, goal.wrote, found, restored));
            continue;
        }
        changes.push(match restored {
            None => change,
            Some((version, bytes)) => {
                let dress = dress(journal, &change, version, goal);
                with_content(change, bytes, dress)
            }
        });
        changes.last().map_or(Ok(()), refuse_split)?;
    }
    if !conflicts.is_empty() {
        return Err(UndoError::Conflicts(conflicts));
    }
    take_along(&mut changes, goals);
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

/// Lets a file that went elsewhere take its owner, attributes and permissions back with it, whatever they are
/// by now. One that was only renamed is renamed back then instead of copied.
fn take_along(changes: &mut [Change], goals: &[(&Path, Goal<'_>)]) {
    let index: HashMap<&Path, usize> = goals.iter().map(|(path, _)| *path).zip(0..).collect();
    for (at, (path, goal)) in goals.iter().enumerate() {
        let Some(now_at) = goal.now_at.filter(|now_at| now_at != path) else {
            continue;
        };
        let Some(from) = index.get(now_at).copied() else {
            continue;
        };
        let wrote = goals.get(from).and_then(|(_, goal)| goal.wrote);
        let Some(dress) = moved_dress(changes, (from, now_at, wrote), (at, goal.goal)) else {
            continue;
        };
        if let Some(after) = changes.get_mut(at).and_then(|change| change.after.as_mut()) {
            after.dress = dress;
            // Else an undo of the undo could not follow it.
            if let Some(from) = changes.get_mut(from) {
                from.renamed_to = Some((*path).to_owned());
            }
        }
    }
}

/// Says what a file takes along from where it is now. Its own content has the permissions that somebody gave
/// it; another one that comes back gets no wider ones than it had.
fn moved_dress(
    changes: &[Change],
    (from, now_at, wrote): (usize, &Path, Option<&Version>),
    (at, goal): (usize, Option<&Version>),
) -> Option<Dress> {
    let found = changes.get(from)?.before.as_ref()?;
    let after = changes.get(at)?.after.as_ref()?;
    let now_at = now_at.to_owned();
    Some(match *found.bytes == after.bytes {
        true => Dress::Like(now_at),
        false => Dress::Within(now_at, mode(found.stamp.mode & 0o7777, wrote, goal?)),
    })
}

/// Returns the permissions of a content that comes back to a file: those it had; where somebody changed those
/// of the file since, what both allow, so that nothing is opened that was closed.
fn mode(now: u32, wrote: Option<&Version>, goal: &Version) -> u32 {
    match wrote {
        Some(wrote) if wrote.mode != now => now & goal.mode,
        Some(_) | None => goal.mode,
    }
}

/// Says what a file gets back with its content. One that is where it was keeps what it has, and one that went
/// elsewhere gets what it has there, later; only one that is gone gets what it had.
fn dress(journal: &Journal, change: &Change, goal: &Version, all: &Goal<'_>) -> Dress {
    let found = change.before.as_ref();
    let here = found.filter(|_| all.now_at == Some(change.real.as_path()));
    match here {
        Some(found) => Dress::Mode(mode(found.stamp.mode & 0o7777, all.wrote, goal)),
        None => Dress::Again(Had {
            mode: goal.mode,
            owner: goal.owner,
            attributes: journal.attributes(goal),
        }),
    }
}

fn with_content(change: Change, bytes: Vec<u8>, dress: Dress) -> Change {
    let mut change = change.into_content(bytes);
    if let Some(after) = &mut change.after {
        after.dress = dress;
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

/// Says what becomes of each file.
fn restored(changes: &[Change]) -> Vec<Restored> {
    let paths: Vec<AtPath<'_, &[u8]>> = changes
        .iter()
        .map(|change| AtPath {
            path: &change.real,
            old: change.bytes(),
            new: change.after.as_ref().map(|after| after.bytes.as_slice()),
            renamed_to: change.renamed_to.as_deref(),
        })
        .collect();
    let files = told(&paths).into_iter().map(|file| Restored {
        path: file.path.to_owned(),
        to: file.to.map(Path::to_owned),
        now: file.old.map(<[u8]>::to_vec),
        restored: file.new.map(<[u8]>::to_vec),
        note: None,
    });
    files.collect()
}

#[cfg(test)]
mod tests;
