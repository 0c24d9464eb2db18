//! Predicts the result of a recovery without touching anything.
//!
//! A dry run of undo needs this, because the real one recovers first.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::super::directory::{Directory, split};
use super::super::journal::{Entry, Journal};
use super::super::wal::{self, ChangePlan, Decision, PendingWork, RecordState};
use super::is_completed;
use super::step_recovery::{StepRecovery, StepState};

/// State of the files and the journal after recovery.
#[derive(Debug, Default)]
pub(crate) struct RecoveryForecast {
    /// Entries that will be added, without numbers.
    pub(crate) entries: Vec<Entry>,
    files: HashMap<PathBuf, ContentLocation>,
}

/// Current location of a future content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ContentLocation {
    /// File that has the content; `None` when there will be no file.
    pub(crate) at: Option<PathBuf>,
    /// Number of its hard links that recovery removes.
    pub(crate) names_less: u64,
}

/// Predicts the recovery of every unfinished change.
pub(crate) fn forecast(journal: &Journal) -> RecoveryForecast {
    let mut forecast = RecoveryForecast::default();
    for mut record in wal::abandoned_records(&journal.transactions()) {
        match record.read() {
            RecordState::Empty | RecordState::Broken(_) => {}
            RecordState::Planned(plan) | RecordState::Decided(plan, _, PendingWork::Clear) => {
                let at = |path: &Path| Some(path.to_owned());
                forecast.add(&plan, |index| at(plan.steps.get(index)?.path.as_path()));
            }
            RecordState::Decided(plan, decision, rest) => {
                forecast.add_decided(&plan, *decision, rest)
            }
        }
    }
    forecast
}

impl RecoveryForecast {
    /// Returns the current location of a file's future content; `None` when recovery does not move it.
    pub(crate) fn location(&self, path: &Path) -> Option<&ContentLocation> {
        self.files.get(path)
    }

    fn add_decided(&mut self, plan: &ChangePlan, decision: Decision, rest: PendingWork) {
        let works = StepRecovery::all(plan, &decision);
        let states: Result<Vec<StepState>, _> = works.iter().map(|work| work.state(plan)).collect();
        // The system prevents recovery, so this change will wait.
        let Ok(states) = states else {
            return;
        };
        let is_new = is_completed(&states, rest);
        self.add(plan, |index| {
            let (work, state) = (works.get(index)?, states.get(index)?);
            work.future_content(*state, is_new)
        });
        drop(works);
        if is_new {
            self.entries.push(decision.entry);
        }
    }

    fn add(&mut self, plan: &ChangePlan, future_content: impl Fn(usize) -> Option<PathBuf>) {
        let names = plan.steps.iter().flat_map(|step| {
            let path = step.path.as_path();
            let beside = [&step.temporary, &step.backup].into_iter().flatten();
            let beside = beside.map(move |name| path.with_file_name(name));
            std::iter::once(path.to_owned()).chain(beside)
        });
        let own: Vec<(u64, u64)> = names.filter_map(|name| identity(&name)).collect();
        for (index, step) in plan.steps.iter().enumerate() {
            let at = future_content(index);
            let found = at.as_deref().and_then(identity);
            let names = own.iter().filter(|own| Some(**own) == found).count() as u64;
            let names_less = names.saturating_sub(1);
            let path = step.path.as_path().to_owned();
            self.files.insert(path, ContentLocation { at, names_less });
        }
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    let (parent, name) = split(path)?;
    let stamp = Directory::open(parent).ok()?.stamp(name).ok()??;
    Some(stamp.identity())
}

impl StepRecovery<'_> {
    /// Returns the current location of the content that the file will have after recovery.
    fn future_content(&self, state: StepState, is_new: bool) -> Option<PathBuf> {
        let path = self.step.path.as_path();
        let beside = |name: &Option<String>| Some(path.with_file_name(OsStr::new(name.as_ref()?)));
        let here = || identity(path).map(|_| path.to_owned());
        match (is_new, state) {
            (true, StepState::Pending) => beside(&self.step.temporary),
            (false, StepState::Done) => match beside(&self.step.backup) {
                Some(backup) if identity(&backup).is_none() => here(),
                backup => backup,
            },
            (true, StepState::Done | StepState::Lost | StepState::Foreign)
            | (false, StepState::Pending | StepState::Lost | StepState::Foreign) => here(),
        }
    }
}
