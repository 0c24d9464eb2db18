//! Ends what a killed karyi left half done.
//!
//! A change that was not decided leaves nothing. One that was decided is completed when every file
//! of it either has its new content or still has the temporary file with it; else, and when it was refused
//! as its maker could neither make it nor take all of it back, it is taken back, from the originals beside
//! the files or from the journal. What another program wrote since is left
//! alone and reported, be it a file or what was kept beside it, and so are the files of a change whose
//! record was damaged. Where the system is in the way (a directory that is not there, a file system that
//! is read-only now) the record stays, and the next run tries again. Changes of a karyi that still
//! runs are never touched: it holds a lock.

use std::path::{Path, PathBuf};

use super::directory::remove_made;
use super::journal::{Entry, Journal};
use super::locks;
use super::wal::{self, Decision, Plan, Record, Rest, Said};
pub(super) use forecast::{Foreseen, foresee};
use karyi_core::error::ToolError;
use karyi_core::limits;
use step_recovery::{State, Work};

mod forecast;
mod step_recovery;

/// Why a file is half changed in what a dry run shows.
const UNENDED: &str =
    "a karyi that was killed left it half changed; the next edit or undo ends that first";

/// A file of a change that was left half done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    /// The file.
    pub path: PathBuf,
    /// What it holds now.
    pub became: Became,
    /// Why it is not whole; none when it is.
    pub why: Option<String>,
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
    /// What the crash left: the change could not be ended yet.
    Waiting,
}

impl Became {
    /// Returns the word used on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::New => "completed",
            Self::Old => "taken_back",
            Self::LeftAlone => "left_alone",
            Self::Waiting => "waiting",
        }
    }
}

/// What came of ending what was left.
pub(super) struct Recovery {
    /// What became of the files.
    pub(super) files: Vec<Recovered>,
    /// The records that stay for the next try.
    waiting: Vec<PathBuf>,
}

impl Recovery {
    /// Whether nothing is left but what waits for the next try, of all changes whose makers are gone and of those
    /// of some paths, whose locks are held.
    pub(super) fn is_all(&self, journal: &Journal, paths: &[&Path]) -> bool {
        let transactions = journal.transactions();
        let is_known = |path: &Path| self.waiting.iter().any(|known| known == path);
        let left = wal::abandoned(&transactions);
        left.iter().all(|record| is_known(record.path()))
            && wal::naming(&transactions, paths)
                .iter()
                .all(|path| is_known(path))
    }
}

/// Adds what a later try found: what waited before is told by it anew.
pub fn add(recovered: &mut Vec<Recovered>, later: Vec<Recovered>) {
    recovered.retain(|file| file.became != Became::Waiting);
    recovered.extend(later);
}

/// Ends every change that was left half done; returns what became of files that were touched.
///
/// # Errors
/// Another karyi is at it for too long.
pub fn recover(journal: &Journal) -> Result<Vec<Recovered>, ToolError> {
    Ok(run(journal)?.files)
}

/// Returns the files of changes that were left half done, and touches none.
#[must_use]
pub fn unended(journal: &Journal) -> Vec<Recovered> {
    let files = |mut record: Record| match record.read() {
        Said::Decided(_, _, Rest::Clear) => Vec::new(),
        Said::Decided(plan, ..) => told(&plan, Became::Waiting, UNENDED),
        Said::Nothing | Said::Planned(_) | Said::Broken(_) => Vec::new(),
    };
    let records = wal::abandoned(&journal.transactions()).into_iter();
    records.flat_map(files).collect()
}

/// Ends every change that was left half done, and says which could not be ended.
pub(super) fn run(journal: &Journal) -> Result<Recovery, ToolError> {
    let (mut files, mut waiting) = (Vec::new(), Vec::new());
    if wal::abandoned(&journal.transactions()).is_empty() {
        return Ok(Recovery { files, waiting });
    }
    // The others wait until the files are whole again.
    let _one_at_a_time = locks::lock_file(&journal.locks().join("recovery"))?;
    for record in wal::abandoned(&journal.transactions()) {
        let path = record.path().to_owned();
        let ended = end(journal, record).map_err(|error| with_recovered(error, &files))?;
        files.extend(ended);
        if path.exists() {
            waiting.push(path);
        }
    }
    Ok(Recovery { files, waiting })
}

fn end(journal: &Journal, mut record: Record) -> Result<Vec<Recovered>, ToolError> {
    let lock = |plan: &Plan| {
        let paths: Vec<_> = plan.steps.iter().map(|step| step.path.as_path()).collect();
        locks::lock_paths(Some(&journal.locks()), &paths)
    };
    let is_old = record
        .age()
        .is_some_and(|age| age > limits::INCOMPLETE_CHANGE_AGE);
    let mut recovered = Vec::new();
    match record.read() {
        Said::Nothing => {}
        Said::Planned(plan) => {
            let _held = lock(&plan)?;
            // The files are as they were, so there is nothing to tell.
            if !remove_undecided(&plan) && !is_old {
                return Ok(recovered);
            }
        }
        Said::Decided(plan, decision, rest) => {
            let _held = lock(&plan)?;
            match end_decided(journal, &plan, &decision, rest) {
                Ok(files) => recovered = files,
                // There is nothing to tell: the files are whole.
                Err(_) if rest == Rest::Clear && !is_old => return Ok(recovered),
                Err(_) if rest == Rest::Clear => {}
                Err(why) if is_old => {
                    record.set_aside();
                    return Ok(told(&plan, Became::LeftAlone, &why));
                }
                Err(why) => {
                    let why = format!("{why}; will be tried again");
                    return Ok(told(&plan, Became::Waiting, &why));
                }
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

fn told(plan: &Plan, became: Became, why: &str) -> Vec<Recovered> {
    let told = |path: PathBuf| Recovered {
        path,
        became,
        why: Some(why.to_owned()),
    };
    let paths = plan.steps.iter().map(|step| step.path.0.clone());
    paths.map(told).collect()
}

/// Names what a record that cannot be read was about: its files, else itself.
fn left_alone(record: &Record, plan: Option<Plan>) -> Vec<Recovered> {
    let why = "the record of its change is damaged";
    match plan.filter(|plan| !plan.steps.is_empty()) {
        Some(plan) => told(&plan, Became::LeftAlone, why),
        None => vec![Recovered {
            path: record.path().to_owned(),
            became: Became::LeftAlone,
            why: Some(why.to_owned()),
        }],
    }
}

/// Removes what a change left that was not decided; returns whether all of it is gone.
fn remove_undecided(plan: &Plan) -> bool {
    let mut is_gone = true;
    for step in &plan.steps {
        is_gone &= step_recovery::remove_leftovers(plan, step).is_ok();
    }
    if is_gone {
        remove_planned(plan);
    }
    is_gone
}

/// Completes or takes back a decided change. When the system is in the way, says so; what is left to be
/// done can be done later then.
fn end_decided(
    journal: &Journal,
    plan: &Plan,
    decision: &Decision,
    rest: Rest,
) -> Result<Vec<Recovered>, String> {
    if rest == Rest::Clear {
        return clear(plan, decision);
    }
    let works = Work::all(plan, decision);
    let states = works.iter().map(|work| work.in_words(work.state(plan)));
    let states: Vec<State> = states.collect::<Result<_, _>>()?;
    let is_new = is_made(&states, rest);
    let mut recovered = Vec::new();
    for (work, state) in works.iter().zip(&states) {
        let (became, why) = work.in_words(work.end(*state, is_new, journal))?;
        recovered.push(Recovered {
            path: work.step.path.0.clone(),
            became,
            why: why.map(str::to_owned),
        });
    }
    recovered.extend(clear(plan, decision)?);
    if is_new {
        let added = journal.append(decision.entry.clone());
        added.map_err(|error| error.message)?;
        remove_undone(journal, &decision.entry);
    } else {
        remove_planned(plan);
    }
    Ok(recovered)
}

/// Whether a change is completed, and not taken back.
fn is_made(states: &[State], rest: Rest) -> bool {
    rest == Rest::All && !states.contains(&State::Lost)
}

/// Removes what lies beside the files of a change that is over; names what another program wrote to.
fn clear(plan: &Plan, decision: &Decision) -> Result<Vec<Recovered>, String> {
    let mut left = Vec::new();
    for work in Work::all(plan, decision) {
        left.extend(work.in_words(work.clear(plan))?);
    }
    Ok(left)
}

/// Removes the directories that the changes had made which an undo took back.
fn remove_undone(journal: &Journal, undo: &Entry) {
    if undo.undoes.is_empty() {
        return;
    }
    let first = undo.undoes.iter().min().copied().unwrap_or(0);
    let latest = journal.latest(|entry| entry.number <= first);
    for entry in latest.map_or_else(|_| Vec::new(), |(entries, _)| entries) {
        if undo.undoes.contains(&entry.number) {
            remove_made(&entry.made_paths());
        }
    }
}

/// Adds to an error which files were left half changed and what became of them before it: nothing else
/// would tell.
pub(super) fn with_recovered(mut error: ToolError, recovered: &[Recovered]) -> ToolError {
    if recovered.is_empty() {
        return error;
    }
    let told = |file: &Recovered| {
        let why = file.why.as_ref().map(|why| format!(" ({why})"));
        let (path, became) = (file.path.display(), file.became.as_str());
        format!("{path} {became}{}", why.unwrap_or_default())
    };
    // What is not whole comes first.
    let (bad, good): (Vec<_>, Vec<_>) = recovered.iter().partition(|file| file.why.is_some());
    let shown = bad.into_iter().chain(good).map(told);
    let shown: Vec<String> = shown.take(limits::MAX_LISTED_RECOVERED).collect();
    error.message.push_str(&format!(
        "; before that, files which a killed karyi had left half changed were looked at: {}",
        shown.join(", ")
    ));
    let more = recovered.len() - shown.len();
    if more > 0 {
        error.message.push_str(&format!(" and {more} more"));
    }
    error
}

fn remove_planned(plan: &Plan) {
    let made: Vec<PathBuf> = plan.made.iter().map(|path| path.0.clone()).collect();
    remove_made(&made);
}

#[cfg(test)]
mod tests;
