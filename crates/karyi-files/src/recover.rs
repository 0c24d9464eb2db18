//! Recovers changes that a killed process left unfinished.
//!
//! An undecided change is discarded. A decided change is completed if every file either has its new content
//! or still has the temporary file with it; otherwise, or if its process had already begun to roll it back,
//! it is rolled back from the backups beside the files or from the journal. What another program wrote since,
//! to a file or to its backup, is left alone and reported, and so are the files of a change whose record is
//! damaged. If the system prevents recovery (a missing directory, a read-only file system) the record stays
//! and the next run tries again. Changes of running processes are never touched: those hold a lock.

use std::path::{Path, PathBuf};

use super::directory::remove_made;
use super::journal::{Entry, Journal};
use super::locks;
use super::wal::{self, ChangePlan, Decision, PendingWork, RecordState, WalRecord};
pub(super) use forecast::{RecoveryForecast, forecast};
use karyi_core::error::ToolError;
use karyi_core::limits;
use step_recovery::{StepRecovery, StepState};

mod forecast;
mod step_recovery;

/// Reason shown for an unfinished change in a dry run.
const PENDING: &str =
    "a killed karyi left it half changed; the next edit or undo recovers it first";

/// Recovery of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRecovery {
    /// The file.
    pub path: PathBuf,
    /// Content of the file now.
    pub outcome: RecoveryOutcome,
    /// Reason why it is not consistent; `None` when it is.
    pub why: Option<String>,
}

/// Content of a file after recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecoveryOutcome {
    /// The new content.
    New,
    /// The old content.
    Old,
    /// The content that another program wrote.
    LeftAlone,
    /// The content at the time of the crash: recovery has to wait.
    Waiting,
}

impl RecoveryOutcome {
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

/// Result of a recovery.
pub(super) struct RecoveryRun {
    /// Files that were touched or reported.
    pub(super) files: Vec<FileRecovery>,
    /// Records that stay for the next try.
    waiting: Vec<PathBuf>,
}

impl RecoveryRun {
    /// Tells whether only known records are left, of dead processes and of these paths, whose locks the
    /// caller holds.
    pub(super) fn is_all(&self, journal: &Journal, paths: &[&Path]) -> bool {
        let transactions = journal.transactions();
        let is_known = |path: &Path| self.waiting.iter().any(|known| known == path);
        let left = wal::abandoned_records(&transactions);
        left.iter().all(|record| is_known(record.path()))
            && wal::records_of_paths(&transactions, paths)
                .iter()
                .all(|path| is_known(path))
    }
}

/// Adds the results of a later recovery, which reports waiting files again.
pub fn merge(recovered: &mut Vec<FileRecovery>, later: Vec<FileRecovery>) {
    recovered.retain(|file| file.outcome != RecoveryOutcome::Waiting);
    recovered.extend(later);
}

/// Recovers every unfinished change; returns the files concerned.
///
/// # Errors
/// Another process is recovering and takes too long.
pub fn recover(journal: &Journal) -> Result<Vec<FileRecovery>, ToolError> {
    Ok(run(journal)?.files)
}

/// Lists the files of unfinished changes without touching them.
#[must_use]
pub fn pending_files(journal: &Journal) -> Vec<FileRecovery> {
    let files = |mut record: WalRecord| match record.read() {
        RecordState::Decided(_, _, PendingWork::Clear) => Vec::new(),
        RecordState::Decided(plan, ..) => recovered_files(&plan, RecoveryOutcome::Waiting, PENDING),
        RecordState::Empty | RecordState::Planned(_) | RecordState::Broken(_) => Vec::new(),
    };
    let records = wal::abandoned_records(&journal.transactions()).into_iter();
    records.flat_map(files).collect()
}

/// Recovers every unfinished change, and lists those that have to wait.
pub(super) fn run(journal: &Journal) -> Result<RecoveryRun, ToolError> {
    let (mut files, mut waiting) = (Vec::new(), Vec::new());
    if wal::abandoned_records(&journal.transactions()).is_empty() {
        return Ok(RecoveryRun { files, waiting });
    }
    // Other processes wait until the files are consistent again.
    let _one_at_a_time = locks::lock_file(&journal.locks().join("recovery"))?;
    for record in wal::abandoned_records(&journal.transactions()) {
        let path = record.path().to_owned();
        let ended = end(journal, record).map_err(|error| with_recoveries(error, &files))?;
        files.extend(ended);
        if path.exists() {
            waiting.push(path);
        }
    }
    Ok(RecoveryRun { files, waiting })
}

fn end(journal: &Journal, mut record: WalRecord) -> Result<Vec<FileRecovery>, ToolError> {
    let lock = |plan: &ChangePlan| {
        let paths: Vec<_> = plan.steps.iter().map(|step| step.path.as_path()).collect();
        locks::lock_paths(Some(&journal.locks()), &paths)
    };
    let is_old = record
        .age()
        .is_some_and(|age| age > limits::INCOMPLETE_CHANGE_AGE);
    let mut recovered = Vec::new();
    match record.read() {
        RecordState::Empty => {}
        RecordState::Planned(plan) => {
            let _held = lock(&plan)?;
            // The files are unchanged, so there is nothing to report.
            if !remove_undecided(&plan) && !is_old {
                return Ok(recovered);
            }
        }
        RecordState::Decided(plan, decision, rest) => {
            let _held = lock(&plan)?;
            match end_decided(journal, &plan, &decision, rest) {
                Ok(files) => recovered = files,
                // The files are consistent, so there is nothing to report.
                Err(_) if rest == PendingWork::Clear && !is_old => return Ok(recovered),
                Err(_) if rest == PendingWork::Clear => {}
                Err(why) if is_old => {
                    record.quarantine();
                    return Ok(recovered_files(&plan, RecoveryOutcome::LeftAlone, &why));
                }
                Err(why) => {
                    let why = format!("{why}; will be tried again");
                    return Ok(recovered_files(&plan, RecoveryOutcome::Waiting, &why));
                }
            }
        }
        RecordState::Broken(plan) => {
            let recovered = left_alone(&record, plan);
            record.quarantine();
            return Ok(recovered);
        }
    }
    record.close();
    Ok(recovered)
}

fn recovered_files(plan: &ChangePlan, outcome: RecoveryOutcome, why: &str) -> Vec<FileRecovery> {
    let recovered_files = |path: PathBuf| FileRecovery {
        path,
        outcome,
        why: Some(why.to_owned()),
    };
    let paths = plan.steps.iter().map(|step| step.path.0.clone());
    paths.map(recovered_files).collect()
}

/// Reports the files of a damaged record, or else the record itself.
fn left_alone(record: &WalRecord, plan: Option<ChangePlan>) -> Vec<FileRecovery> {
    let why = "the record of its change is damaged";
    match plan.filter(|plan| !plan.steps.is_empty()) {
        Some(plan) => recovered_files(&plan, RecoveryOutcome::LeftAlone, why),
        None => vec![FileRecovery {
            path: record.path().to_owned(),
            outcome: RecoveryOutcome::LeftAlone,
            why: Some(why.to_owned()),
        }],
    }
}

/// Removes the temporary files of an undecided change; returns true when all are gone.
fn remove_undecided(plan: &ChangePlan) -> bool {
    let mut is_gone = true;
    for step in &plan.steps {
        is_gone &= step_recovery::remove_leftovers(plan, step).is_ok();
    }
    if is_gone {
        remove_planned(plan);
    }
    is_gone
}

/// Completes or rolls back a decided change. Fails if the system prevents it; the rest can be done later.
fn end_decided(
    journal: &Journal,
    plan: &ChangePlan,
    decision: &Decision,
    rest: PendingWork,
) -> Result<Vec<FileRecovery>, String> {
    if rest == PendingWork::Clear {
        return clear(plan, decision);
    }
    let works = StepRecovery::all(plan, decision);
    let states = works.iter().map(|work| work.in_words(work.state(plan)));
    let states: Vec<StepState> = states.collect::<Result<_, _>>()?;
    let is_new = is_completed(&states, rest);
    let mut recovered = Vec::new();
    for (work, state) in works.iter().zip(&states) {
        let (outcome, why) = work.in_words(work.end(*state, is_new, journal))?;
        recovered.push(FileRecovery {
            path: work.step.path.0.clone(),
            outcome,
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

/// Tells whether a change is completed rather than rolled back.
fn is_completed(states: &[StepState], rest: PendingWork) -> bool {
    rest == PendingWork::All && !states.contains(&StepState::Lost)
}

/// Removes temporary files and backups of a finished change; reports those that another program changed.
fn clear(plan: &ChangePlan, decision: &Decision) -> Result<Vec<FileRecovery>, String> {
    let mut left = Vec::new();
    for work in StepRecovery::all(plan, decision) {
        left.extend(work.in_words(work.clear(plan))?);
    }
    Ok(left)
}

/// Removes the directories created by the changes that an undo took back.
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

/// Adds the recovered files to an error, which is the only report of them.
pub(super) fn with_recoveries(mut error: ToolError, recovered: &[FileRecovery]) -> ToolError {
    if recovered.is_empty() {
        return error;
    }
    let recovered_files = |file: &FileRecovery| {
        let why = file.why.as_ref().map(|why| format!(" ({why})"));
        let (path, outcome) = (file.path.display(), file.outcome.as_str());
        format!("{path} {outcome}{}", why.unwrap_or_default())
    };
    // Inconsistent files come first.
    let (bad, good): (Vec<_>, Vec<_>) = recovered.iter().partition(|file| file.why.is_some());
    let shown = bad.into_iter().chain(good).map(recovered_files);
    let shown: Vec<String> = shown.take(limits::MAX_LISTED_RECOVERED).collect();
    error.message.push_str(&format!(
        "; before that, files that a killed karyi had left half changed were recovered: {}",
        shown.join(", ")
    ));
    let more = recovered.len() - shown.len();
    if more > 0 {
        error.message.push_str(&format!(" and {more} more"));
    }
    error
}

fn remove_planned(plan: &ChangePlan) {
    let made: Vec<PathBuf> = plan.made.iter().map(|path| path.0.clone()).collect();
    remove_made(&made);
}

#[cfg(test)]
mod tests;
