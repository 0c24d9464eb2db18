//! Looks at the triggers: makes the tasks that are due and collects the questions that a model has to decide.
//!
//! The parts of a condition are levels: each holds or does not hold at a look. The whole condition has the edge: a task
//! is made when it becomes true. Watched files hold while they differ from their state at the last task, and the runs of
//! a trigger while one ended since then, so each change counts once. An edge during the cooldown waits for its end.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use jiff::Timestamp;
use karyi_core::error::ToolError;

use crate::condition::{Condition, leaf_place};
use crate::folder::Records;
use crate::lifecycle::apply_results;
use crate::state_directory::StateDirectory;
use crate::task_id::TaskId;
use crate::task_result::{ResultSummary, TaskStatus, runs_of};
use crate::trigger::{Trigger, TriggerSchedule, TriggerState, after, next_run};
use crate::watched_files;

/// Outcome of a look.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Evaluation {
    /// Tasks that were queued.
    pub queued: Vec<TaskId>,
    /// Questions to ask a model in one request, now; the answers go to [`record_verdicts`].
    pub questions: Vec<ConditionQuestion>,
}

/// Question of a condition.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConditionQuestion {
    /// Trigger of the condition.
    pub trigger: TaskId,
    /// Place in the condition.
    pub place: String,
    /// Question to be answered by yes or no.
    pub prompt: String,
}

/// Looks at every trigger; watched paths are relative to `work`.
///
/// # Errors
/// The system fails.
pub fn evaluate(
    state: &StateDirectory,
    work: &Path,
    now: Timestamp,
) -> Result<Evaluation, ToolError> {
    // A trigger may wait for one of these results, and a new trigger may be among what they staged.
    apply_results(state)?;
    let triggers = state.triggers.records()?;
    let look = Look::new(state, work, now)?;
    let mut evaluation = Evaluation::default();
    for trigger in triggers.values() {
        let questions = look.trigger(trigger, &mut evaluation.queued)?;
        evaluation.questions.extend(questions);
    }
    let last = triggers
        .values()
        .flat_map(|trigger| trigger.state.leaves.values());
    let last = last.filter_map(|leaf| leaf.asked_at);
    let mut asked_at = state
        .asked_at
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    // A later time comes from a clock that was set back.
    let last = last.chain(*asked_at).filter(|last| *last <= now).max();
    let is_due = last.is_none_or(|last| state.pauses.question_at(last) <= now);
    if !is_due {
        evaluation.questions.clear();
    } else if !evaluation.questions.is_empty() {
        *asked_at = Some(now);
    }
    Ok(evaluation)
}

/// Returns the directories in which a change may make a condition true.
///
/// # Errors
/// The system fails.
pub fn watched_directories(
    state: &StateDirectory,
    work: &Path,
) -> Result<BTreeSet<PathBuf>, ToolError> {
    let triggers = state.triggers.records()?;
    let mut found = BTreeSet::new();
    for condition in triggers.values().filter_map(|one| one.condition.as_ref()) {
        condition.each_leaf(&mut |_, leaf| {
            if let Condition::FileChanged(path) | Condition::FileExists(path) = leaf {
                found.insert(watched_files::directory(work, path));
            }
        });
    }
    Ok(found)
}

/// Records the answers of a model, and queues the tasks of the conditions that became true.
///
/// # Errors
/// The system fails.
pub fn record_verdicts(
    state: &StateDirectory,
    work: &Path,
    now: Timestamp,
    verdicts: &[(ConditionQuestion, bool)],
) -> Result<Vec<TaskId>, ToolError> {
    let triggers = state.triggers.records()?;
    let look = Look::new(state, work, now)?;
    let mut queued = Vec::new();
    let mut answered: BTreeMap<&TaskId, Trigger> = BTreeMap::new();
    for (question, verdict) in verdicts {
        if let Some(stored) = triggers.get(&question.trigger) {
            let trigger = answered
                .entry(&stored.id)
                .or_insert_with(|| Trigger::clone(stored));
            let leaf = trigger.state.leaves.entry(question.place.clone());
            let leaf = leaf.or_default();
            (leaf.verdict, leaf.asked_at) = (Some(*verdict), Some(now));
        }
    }
    for (id, trigger) in answered {
        if let Some(stored) = triggers.get(id) {
            look.conditional(stored, trigger, &mut queued)?;
        }
    }
    Ok(queued)
}

/// State of a part of a condition at a look.
enum Observation {
    /// It holds or not, whatever was before.
    Held(bool),
    /// Fingerprint of watched files.
    Files(String),
    /// Last run of a trigger that counts.
    Run(Option<u64>),
    /// A model decides.
    Question,
}

/// Value of a condition.
struct Value<'a> {
    /// Value without a model, if it needs none.
    decided: Option<bool>,
    /// Value with the last answers of the model.
    is_true: bool,
    /// Places and texts of the questions that decide.
    questions: Vec<(String, &'a str)>,
}

/// One look at the triggers.
struct Look<'a> {
    state: &'a StateDirectory,
    work: &'a Path,
    now: Timestamp,
    results: [Arc<Records<ResultSummary>>; 2],
}

impl<'a> Look<'a> {
    fn new(state: &'a StateDirectory, work: &'a Path, now: Timestamp) -> Result<Self, ToolError> {
        Ok(Self {
            state,
            work,
            now,
            results: [
                state.worker.results.records()?,
                state.planner.results.records()?,
            ],
        })
    }

    fn trigger(
        &self,
        trigger: &Trigger,
        queued: &mut Vec<TaskId>,
    ) -> Result<Vec<ConditionQuestion>, ToolError> {
        match trigger.schedule {
            Some(TriggerSchedule::Recurring {
                interval,
                next_run_at,
            }) => {
                self.recurring(trigger, interval, next_run_at, queued)?;
            }
            Some(TriggerSchedule::Scheduled { run_at }) if run_at <= self.now => {
                self.make_task(trigger, trigger.state.clone(), Vec::new(), queued)?;
            }
            Some(TriggerSchedule::Scheduled { .. }) => {}
            None => return self.conditional(trigger, trigger.clone(), queued),
        }
        Ok(Vec::new())
    }

    fn recurring(
        &self,
        trigger: &Trigger,
        interval: u64,
        planned: Timestamp,
        queued: &mut Vec<TaskId>,
    ) -> Result<(), ToolError> {
        // A clock that was set back by less than an interval only makes it wait: no planned time counts twice.
        let has_jumped = planned > after(self.now, interval.saturating_mul(2));
        if planned > self.now && !has_jumped {
            return Ok(());
        }
        let next_run_at = next_run(planned, interval, self.now);
        let moved = Trigger {
            schedule: Some(TriggerSchedule::Recurring {
                interval,
                next_run_at,
            }),
            ..trigger.clone()
        };
        // While the last run waits, another one would only be the same work twice.
        let last = trigger.id.run(trigger.state.runs);
        if has_jumped || self.state.worker.queue.has(&last)? {
            return self.store(&moved);
        }
        self.make_task(&moved, moved.state.clone(), Vec::new(), queued)
    }

    /// Looks at a condition; `stored` is the trigger as its file has it, `trigger` may have newer answers.
    fn conditional(
        &self,
        stored: &Trigger,
        trigger: Trigger,
        queued: &mut Vec<TaskId>,
    ) -> Result<Vec<ConditionQuestion>, ToolError> {
        let Some(condition) = &trigger.condition else {
            return Ok(Vec::new());
        };
        let mut state = trigger.state.clone();
        let observations = self.observe(condition);
        for (place, observation) in &observations {
            if let Observation::Files(files) = observation {
                let leaf = state.leaves.entry(place.clone()).or_default();
                leaf.files.get_or_insert_with(|| files.clone());
            }
        }
        let value = value(condition, String::new(), &observations, &state);
        state.is_pending |= value.is_true && !state.is_true;
        state.is_true = value.is_true;
        if state.is_pending && trigger.is_cool(self.now) {
            let upstream = self.upstream(condition, &observations);
            renew(&mut state, &observations);
            state.is_true = self::value(condition, String::new(), &observations, &state).is_true;
            state.is_pending = false;
            self.make_task(&trigger, state, upstream, queued)?;
            return Ok(Vec::new());
        }
        let questions = value
            .questions
            .into_iter()
            .map(|(place, prompt)| ConditionQuestion {
                trigger: trigger.id.clone(),
                place,
                prompt: prompt.to_owned(),
            });
        let questions = questions.collect();
        if state != stored.state {
            self.store(&Trigger { state, ..trigger })?;
        }
        Ok(questions)
    }

    /// Looks at every part of a condition.
    fn observe(&self, condition: &Condition) -> BTreeMap<String, Observation> {
        let mut found = BTreeMap::new();
        condition.each_leaf(&mut |place, leaf| {
            let observation = match leaf {
                Condition::FileChanged(path) => {
                    Observation::Files(watched_files::fingerprint(self.work, path))
                }
                Condition::FileExists(path) => {
                    Observation::Held(watched_files::exist(self.work, path))
                }
                Condition::TaskDone(id) => self.task(id, TaskStatus::Done),
                Condition::TaskFailed(id) => self.task(id, TaskStatus::Failed),
                Condition::LlmEval(_) => Observation::Question,
                Condition::And(_) | Condition::Or(_) => return,
            };
            found.insert(place, observation);
        });
        found
    }

    fn task(&self, id: &TaskId, status: TaskStatus) -> Observation {
        if let Some(result) = self.results.iter().find_map(|results| results.get(id)) {
            return Observation::Held(result.status == status);
        }
        let [results, _] = &self.results;
        let runs = runs_of(results, id).filter(|(_, result)| result.status == status);
        Observation::Run(runs.map(|(run, _)| run).max())
    }

    /// Returns the tasks with results that a condition waited for.
    fn upstream(
        &self,
        condition: &Condition,
        observations: &BTreeMap<String, Observation>,
    ) -> Vec<TaskId> {
        let mut ids = Vec::new();
        condition.each_leaf(&mut |place, leaf| {
            let (Condition::TaskDone(id) | Condition::TaskFailed(id)) = leaf else {
                return;
            };
            let id = match observations.get(&place) {
                Some(Observation::Held(true)) => id.clone(),
                Some(Observation::Run(Some(run))) => id.run(*run),
                _ => return,
            };
            if !ids.contains(&id) {
                ids.push(id);
            }
        });
        ids
    }

    /// Queues the next task of a trigger, unless it was queued before, and counts it.
    fn make_task(
        &self,
        trigger: &Trigger,
        mut state: TriggerState,
        upstream: Vec<TaskId>,
        queued: &mut Vec<TaskId>,
    ) -> Result<(), ToolError> {
        let _lock = self.state.lock()?;
        if !self.state.triggers.has(&trigger.id)? {
            // It was cancelled in between.
            return Ok(());
        }
        let task = trigger.task(upstream, self.now);
        if !self.state.worker.has(&task.id)? && self.state.worker.queue.write_new(&task)? {
            queued.push(task.id);
        }
        if trigger.ends_with_task() {
            self.state.triggers.remove(&trigger.id)?;
            return Ok(());
        }
        state.runs = state.runs.saturating_add(1);
        state.last_triggered_at = Some(self.now);
        let counted = Trigger {
            state,
            ..trigger.clone()
        };
        self.state.triggers.write(&counted)
    }

    /// Writes the new state of a trigger, unless it was cancelled.
    fn store(&self, trigger: &Trigger) -> Result<(), ToolError> {
        let _lock = self.state.lock()?;
        if self.state.triggers.has(&trigger.id)? {
            self.state.triggers.write(trigger)?;
        }
        Ok(())
    }
}

/// Makes what was observed the state that later changes are compared with.
fn renew(state: &mut TriggerState, observations: &BTreeMap<String, Observation>) {
    for (place, observation) in observations {
        let leaf = state.leaves.entry(place.clone());
        match observation {
            Observation::Files(files) => leaf.or_default().files = Some(files.clone()),
            Observation::Run(Some(run)) => leaf.or_default().run = Some(*run),
            Observation::Held(_) | Observation::Run(None) | Observation::Question => {}
        }
    }
}

/// Returns the value of a condition.
fn value<'a>(
    condition: &'a Condition,
    place: String,
    observations: &BTreeMap<String, Observation>,
    state: &TriggerState,
) -> Value<'a> {
    let (parts, is_and) = match condition {
        Condition::And(parts) => (parts, true),
        Condition::Or(parts) => (parts, false),
        leaf => return leaf_value(leaf, place, observations, state),
    };
    let values = parts.iter().enumerate();
    let values =
        values.map(|(number, part)| value(part, leaf_place(&place, number), observations, state));
    let values: Vec<Value<'a>> = values.collect();
    // One part that is `!is_and` decides for the whole.
    let decided = match values.iter().any(|value| value.decided == Some(!is_and)) {
        true => Some(!is_and),
        false => values
            .iter()
            .all(|value| value.decided.is_some())
            .then_some(is_and),
    };
    let is_true = match is_and {
        true => values.iter().all(|value| value.is_true),
        false => values.iter().any(|value| value.is_true),
    };
    let questions = values.into_iter().flat_map(|value| value.questions);
    Value {
        decided,
        is_true,
        questions: questions.filter(|_| decided.is_none()).collect(),
    }
}

fn leaf_value<'a>(
    leaf: &'a Condition,
    place: String,
    observations: &BTreeMap<String, Observation>,
    state: &TriggerState,
) -> Value<'a> {
    let known = state.leaves.get(&place);
    let is_true = match observations.get(&place) {
        Some(Observation::Held(is_held)) => *is_held,
        Some(Observation::Files(files)) => known
            .and_then(|leaf| leaf.files.as_ref())
            .is_some_and(|before| before != files),
        Some(Observation::Run(run)) => *run > known.and_then(|leaf| leaf.run),
        Some(Observation::Question) | None => {
            known.and_then(|leaf| leaf.verdict).unwrap_or_default()
        }
    };
    let questions = match leaf {
        Condition::LlmEval(prompt) => vec![(place, prompt.as_str())],
        _ => Vec::new(),
    };
    Value {
        decided: questions.is_empty().then_some(is_true),
        is_true,
        questions,
    }
}

/// Tells whether a condition can never hold: a task it needs ended otherwise, was cancelled, or is unknown.
pub(crate) fn is_hopeless(
    state: &StateDirectory,
    condition: &Condition,
) -> Result<bool, ToolError> {
    match condition {
        Condition::And(parts) => parts
            .iter()
            .try_fold(false, |found, part| Ok(found || is_hopeless(state, part)?)),
        Condition::Or(parts) => parts
            .iter()
            .try_fold(true, |all, part| Ok(all && is_hopeless(state, part)?)),
        Condition::TaskDone(id) => is_lost(state, id, TaskStatus::Done),
        Condition::TaskFailed(id) => is_lost(state, id, TaskStatus::Failed),
        Condition::FileChanged(_) | Condition::FileExists(_) | Condition::LlmEval(_) => Ok(false),
    }
}

fn is_lost(state: &StateDirectory, id: &TaskId, wanted: TaskStatus) -> Result<bool, ToolError> {
    for results in [
        state.worker.results.records()?,
        state.planner.results.records()?,
    ] {
        if let Some(result) = results.get(id) {
            return Ok(result.status != wanted);
        }
    }
    Ok(!state.can_be_waited_for(id)?)
}
