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
use super::wal::{self, ChangePlan, Decision, PendingWork, RecordState, WalRecord};
pub(super) use forecast::{RecoveryForecast, forecast};
use karyi_core::error::ToolError;
use karyi_core::limits;
use step_recovery::{StepRecovery, StepState};

mod forecast;
mod step_recovery;

/// Why a file is half changed in what a dry run shows.
const PENDING: &str =
    "a karyi that was killed left it half changed; the next edit or undo ends that first";

/// A file of a change that was left half done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRecovery {
    /// The file.
    pub path: PathBuf,
    /// What it holds now.
    pub outcome: RecoveryOutcome,
    /// Why it is not whole; none when it is.
    pub why: Option<String>,
}

/// What a file holds after a half-done change was ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecoveryOutcome {
    /// The new content.
    New,
    /// The old content.
    Old,
    /// What somebody wrote since.
    LeftAlone,
    /// What the crash left: the change could not be ended yet.
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

/// What came of ending what was left.
pub(super) struct RecoveryRun {
    /// What became of the files.
    pub(super) files: Vec<FileRecovery>,
    /// The records that stay for the next try.
    waiting: Vec<PathBuf>,
}

impl RecoveryRun {
    /// Whether nothing is left but what waits for the next try, of all changes whose makers are gone and of those
    /// of some paths, whose locks are held.
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

/// Adds what a later try found: what waited before is told by it anew.
pub fn merge(recovered: &mut Vec<FileRecovery>, later: Vec<FileRecovery>) {
    recovered.retain(|file| file.outcome != RecoveryOutcome::Waiting);
    recovered.extend(later);
}

/// Ends every change that was left half done; returns what became of files that were touched.
///
/// # Errors
/// Another karyi is at it for too long.
pub fn recover(journal: &Journal) -> Result<Vec<FileRecovery>, ToolError> {
    Ok(run(journal)?.files)
}

/// Returns the files of changes that were left half done, and touches none.
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

/// Ends every change that was left half done, and says which could not be ended.
pub(super) fn run(journal: &Journal) -> Result<RecoveryRun, ToolError> {
    let (mut files, mut waiting) = (Vec::new(), Vec::new());
    if wal::abandoned_records(&journal.transactions()).is_empty() {
        return Ok(RecoveryRun { files, waiting });
    }
    // The others wait until the files are whole again.
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
            // The files are as they were, so there is nothing to tell.
            if !remove_undecided(&plan) && !is_old {
                return Ok(recovered);
            }
        }
        RecordState::Decided(plan, decision, rest) => {
            let _held = lock(&plan)?;
            match end_decided(journal, &plan, &decision, rest) {
                Ok(files) => recovered = files,
                // There is nothing to tell: the files are whole.
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

/// Names what a record that cannot be read was about: its files, else itself.
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

/// Removes what a change left that was not decided; returns whether all of it is gone.
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

/// Completes or takes back a decided change. When the system is in the way, says so; what is left to be
/// done can be done later then.
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

/// Whether a change is completed, and not taken back.
fn is_completed(states: &[StepState], rest: PendingWork) -> bool {
    rest == PendingWork::All && !states.contains(&StepState::Lost)
}

/// Removes what lies beside the files of a change that is over; names what another program wrote to.
fn clear(plan: &ChangePlan, decision: &Decision) -> Result<Vec<FileRecovery>, String> {
    let mut left = Vec::new();
    for work in StepRecovery::all(plan, decision) {
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
pub(super) fn with_recoveries(mut error: ToolError, recovered: &[FileRecovery]) -> ToolError {
    if recovered.is_empty() {
        return error;
    }
    let recovered_files = |file: &FileRecovery| {
        let why = file.why.as_ref().map(|why| format!(" ({why})"));
        let (path, outcome) = (file.path.display(), file.outcome.as_str());
        format!("{path} {outcome}{}", why.unwrap_or_default())
    };
    // What is not whole comes first.
    let (bad, good): (Vec<_>, Vec<_>) = recovered.iter().partition(|file| file.why.is_some());
    let shown = bad.into_iter().chain(good).map(recovered_files);
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

fn remove_planned(plan: &ChangePlan) {
    let made: Vec<PathBuf> = plan.made.iter().map(|path| path.0.clone()).collect();
    remove_made(&made);
}

#[cfg(test)]
mod tests;
