//! Ends what a killed karyi left half done.
//!
//! A change that was not decided leaves nothing. One that was decided is completed when every file
//! of it either has its new content or still has the temporary file with it; else it is taken back.
//! A file that somebody changed since is left alone and reported, and so are the files of a change whose
//! record was damaged. Changes of a karyi that still
//! runs are never touched: it holds a lock.

use std::ffi::OsStr;
use std::io;
use std::path::PathBuf;

use super::commit::hash_of;
use super::directory::{Directory, remove_made, split};
use super::intent::{self, Decided, Decision, Plan, Record, Said, Step};
use super::journal::Journal;
use super::locks;
use crate::error::ToolError;

/// A file of a change that was left half done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    /// The file.
    pub path: PathBuf,
    /// What it holds now.
    pub became: Became,
}

/// What a file holds after a half-done change was ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Became {
    /// The new content.
    New,
    /// The old content.
    Old,
    /// What somebody wrote since.
    LeftAlone,
}

impl Became {
    /// Returns the word used on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::New => "completed",
            Self::Old => "taken_back",
            Self::LeftAlone => "left_alone",
        }
    }
}

/// How far one file of a decided change is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// It has its new content.
    Done,
    /// It has its old content, and the new one is ready.
    Pending,
    /// It has its old content, and the new one is lost.
    Lost,
    /// It has neither.
    Foreign,
}

/// Ends every change that was left half done; returns what became of files that were touched.
///
/// # Errors
/// Another karyi is at it for too long.
pub fn recover(journal: &Journal) -> Result<Vec<Recovered>, ToolError> {
    if intent::abandoned(&journal.transactions()).is_empty() {
        return Ok(Vec::new());
    }
    // The others wait until the files are whole again.
    let _one_at_a_time = locks::lock_file(&journal.locks().join("recovery"))?;
    let mut recovered = Vec::new();
    for record in intent::abandoned(&journal.transactions()) {
        recovered.extend(end(journal, record)?);
    }
    Ok(recovered)
}

fn end(journal: &Journal, mut record: Record) -> Result<Vec<Recovered>, ToolError> {
    let lock = |plan: &Plan| {
        let paths: Vec<_> = plan.steps.iter().map(|step| step.path.as_path()).collect();
        locks::lock_paths(&journal.locks(), &paths)
    };
    let mut recovered = Vec::new();
    match record.read() {
        Said::Nothing => {}
        Said::Planned(plan) => {
            let _held = lock(&plan)?;
            plan.steps.iter().for_each(remove_leftovers);
            remove_planned(&plan);
        }
        Said::Decided(plan, decision) => {
            let _held = lock(&plan)?;
            let is_new;
            (recovered, is_new) = end_decided(&plan, &decision);
            if is_new {
                journal.append(decision.entry)?;
            }
        }
        Said::Broken(plan) => {
            let recovered = left_alone(&record, plan);
            record.set_aside();
            return Ok(recovered);
        }
    }
    record.close();
    Ok(recovered)
}

/// Names what a record that cannot be read was about: its files, else itself.
fn left_alone(record: &Record, plan: Option<Plan>) -> Vec<Recovered> {
    let files = plan.into_iter().flat_map(|plan| plan.steps);
    let mut paths: Vec<PathBuf> = files.map(|step| step.path.0).collect();
    if paths.is_empty() {
        paths.push(record.path().to_owned());
    }
    let became = Became::LeftAlone;
    let paths = paths.into_iter();
    paths.map(|path| Recovered { path, became }).collect()
}

/// Completes or takes back a decided change; returns whether it was completed.
fn end_decided(plan: &Plan, decision: &Decision) -> (Vec<Recovered>, bool) {
    let steps: Vec<_> = plan.steps.iter().zip(&decision.steps).collect();
    let states: Vec<State> = steps.iter().map(|(s, d)| state(s, d)).collect();
    let is_new = !states.contains(&State::Lost);
    let mut recovered = Vec::new();
    for ((step, decided), state) in steps.iter().zip(&states) {
        let result = match (is_new, state) {
            (_, State::Foreign) => Ok(Became::LeftAlone),
            (true, State::Done) => Ok(Became::New),
            (true, State::Pending) => complete(step, decided).map(|()| Became::New),
            (true, State::Lost) => complete(step, decided).map(|()| Became::New),
            (false, State::Pending | State::Lost) => Ok(Became::Old),
            (false, State::Done) => take_back(step, decided).map(|()| Became::Old),
        };
        recovered.push(Recovered {
            path: step.path.0.clone(),
            became: result.unwrap_or(Became::LeftAlone),
        });
    }
    plan.steps.iter().for_each(remove_leftovers);
    if !is_new {
        remove_planned(plan);
    }
    (recovered, is_new)
}

fn remove_planned(plan: &Plan) {
    let made: Vec<PathBuf> = plan.made.iter().map(|path| path.0.clone()).collect();
    remove_made(&made);
}

/// Opens the directory of a step.
fn place(step: &Step) -> io::Result<(Directory, &OsStr)> {
    let (parent, name) = split(step.path.as_path()).ok_or(io::ErrorKind::NotFound)?;
    Ok((Directory::open(parent)?, name))
}

fn state(step: &Step, decided: &Decided) -> State {
    read_state(step, decided).unwrap_or(State::Foreign)
}

fn read_state(step: &Step, decided: &Decided) -> io::Result<State> {
    let (directory, name) = place(step)?;
    let now = hash_of(&directory, name)?;
    let has = |name: &Option<String>| match name {
        Some(name) => directory
            .stamp(OsStr::new(name))
            .map(|stamp| stamp.is_some()),
        None => Ok(false),
    };
    let is_ready = has(&step.temporary)? || decided.new.is_none();
    if now == decided.new {
        return Ok(State::Done);
    }
    if now == decided.old {
        return Ok(if is_ready {
            State::Pending
        } else {
            State::Lost
        });
    }
    Ok(State::Foreign)
}

fn complete(step: &Step, decided: &Decided) -> io::Result<()> {
    let (directory, name) = place(step)?;
    match (&step.temporary, &step.backup) {
        (Some(temporary), _) if decided.old.is_none() => {
            directory.rename_new(OsStr::new(temporary), name)?;
        }
        (Some(temporary), _) => directory.rename(OsStr::new(temporary), name)?,
        (None, Some(backup)) => directory.rename(name, OsStr::new(backup))?,
        (None, None) => return Err(io::ErrorKind::NotFound.into()),
    }
    directory.sync();
    Ok(())
}

fn take_back(step: &Step, decided: &Decided) -> io::Result<()> {
    let (directory, name) = place(step)?;
    match &step.backup {
        Some(backup) if decided.old.is_some() => {
            // A removed file was given this name; should somebody have made a new one, it stays.
            match decided.new {
                Some(_) => directory.rename(OsStr::new(backup), name)?,
                None => directory.rename_new(OsStr::new(backup), name)?,
            }
        }
        _ => directory.remove(name)?,
    }
    directory.sync();
    Ok(())
}

fn remove_leftovers(step: &Step) {
    if let Ok((directory, _)) = place(step) {
        for name in [&step.temporary, &step.backup].into_iter().flatten() {
            let _ = directory.remove(OsStr::new(name));
        }
    }
}

#[cfg(test)]
mod tests;
