//! The way of a task: queued, claimed, finished; a failed one runs once more.
//!
//! ```text
//! queue ── claim: move, count ── running ── finish: write the result, apply it, leave running
//!   └──────── failed once: note the time, move back ────┘
//! ```
//!
//! A task with a result that is still in `running` has ended, and the result is applied again until it left: each step
//! of that leaves what is there already.

use jiff::Timestamp;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;

use crate::condition::Condition;
use crate::event::Event;
use crate::folder::BrokenFile;
use crate::staged_work::StagedWork;
use crate::state_directory::StateDirectory;
use crate::state_folder::{ChangeLock, Move};
use crate::task::{Aging, Task, TaskRequest, TaskRole};
use crate::task_id::TaskId;
use crate::task_result::{Ending, FailureReason, TaskResult, runs_of};
use crate::trigger::Trigger;

/// Outcome of [`finish`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// The result is final.
    Final,
    /// It failed for the first time and runs again at this time.
    Again(Timestamp),
}

/// Queues a task for the Planner, unless the identifier was used before.
///
/// # Errors
/// The system fails.
pub fn delegate(
    state: &StateDirectory,
    id: TaskId,
    request: TaskRequest,
    now: Timestamp,
) -> Result<TaskId, ToolError> {
    let _lock = state.lock()?;
    if !state.is_taken(&id)? {
        let task = Task::new(id.clone(), request, now);
        state.planner.queue.write_new(&task)?;
    }
    Ok(id)
}

/// Takes the first task of a queue that may run. The task is counted before it is returned.
///
/// # Errors
/// The system fails; the task is in its queue then.
pub fn claim(
    state: &StateDirectory,
    role: TaskRole,
    aging: Aging,
    now: Timestamp,
) -> Result<Option<Task>, ToolError> {
    let lock = state.lock()?;
    let folders = state.role(role);
    let latest = state.pauses.retry_at(now);
    loop {
        let records = folders.queue.records()?;
        let due = records.values().filter(|task| task.is_due(now, latest));
        let Some(task) = due.min_by_key(|task| task.order(now, aging)).cloned() else {
            return Ok(None);
        };
        // Taking one out of a shared list would copy the list.
        drop(records);
        match folders.queue.take_out(&lock, &task.id, &folders.running)? {
            Move::Done => return count(state, role, &task, now).map(Some),
            // It was taken away in between.
            Move::Missing => {}
            // A second task of the same name.
            Move::Occupied => {
                let broken = BrokenFile {
                    path: format!("{}/queue/{}", role.as_str(), task.id.file_name()),
                    reason: "a task with its id is running".to_owned(),
                };
                state.move_to_corrupt(folders.queue.files(), broken)?;
            }
        }
    }
}

/// Counts the attempt of a task that was just moved to `running`.
fn count(
    state: &StateDirectory,
    role: TaskRole,
    task: &Task,
    now: Timestamp,
) -> Result<Task, ToolError> {
    let folders = state.role(role);
    let claimed = Task {
        attempts: task.attempts.saturating_add(1),
        started_at: Some(now),
        not_before: None,
        ..task.clone()
    };
    let written = folders.running.write(&claimed);
    if written.is_err() {
        folders.running.move_to(&task.id, &folders.queue)?;
    }
    written.map(|()| claimed)
}

/// Puts a claimed task back into its queue, and does not count the attempt.
///
/// # Errors
/// `not_found` when the task does not run, or the system fails.
pub fn put_back(state: &StateDirectory, role: TaskRole, task: &Task) -> Result<(), ToolError> {
    let _lock = state.lock()?;
    let folders = state.role(role);
    if !folders.running.has(&task.id)? {
        return Err(not_running(&task.id));
    }
    let uncounted = Task {
        attempts: task.attempts.saturating_sub(1),
        started_at: None,
        ..task.clone()
    };
    folders.running.write(&uncounted)?;
    folders.running.move_to(&task.id, &folders.queue)?;
    Ok(())
}

fn not_running(id: &TaskId) -> ToolError {
    let message = format!("expected a running task, found none with the id {id}");
    ToolError::new(ErrorCode::NotFound, message).with_hint("see `karyi tasks`")
}

/// Ends the work on a claimed task; what a Planner staged is real then.
///
/// # Errors
/// `not_found` when the task does not run, or the system fails.
pub fn finish(
    state: &StateDirectory,
    role: TaskRole,
    task: &Task,
    ending: Ending,
    now: Timestamp,
) -> Result<Finish, ToolError> {
    let lock = state.lock()?;
    let folders = state.role(role);
    if !folders.running.has(&task.id)? {
        return Err(not_running(&task.id));
    }
    let ending = unless_stopped(state, role, &task.id, ending)?;
    // One that cannot be read is none.
    let has_result = folders.results.records()?.contains_key(&task.id);
    let again = second_attempt(task, &ending, state.pauses.retry_at(now));
    if let Some(again) = again.filter(|_| !has_result) {
        folders.running.write(&again)?;
        folders.running.move_to(&task.id, &folders.queue)?;
        return Ok(Finish::Again(again.not_before.unwrap_or(now)));
    }
    // A result that is there wins.
    if !has_result {
        let result = TaskResult::new(task.clone(), ending, now);
        write_result(state, role, &result)?;
    }
    apply_result(state, &lock, role, &task.id)?;
    Ok(Finish::Final)
}

/// Returns the task as it runs again at this time, if it does after this ending.
fn second_attempt(task: &Task, ending: &Ending, at: Timestamp) -> Option<Task> {
    let timeout = match ending {
        Ending::Done(_) | Ending::Planned(..) | Ending::NeedsInput(_) => return None,
        Ending::Failed(FailureReason::Killed, _) => return None,
        Ending::TimedOut(limit) => {
            // The limit of a role may be longer than that of any task.
            let most = limits::MAX_TASK_TIMEOUT.as_secs().saturating_mul(2);
            Some(limit.saturating_mul(2).min(most))
        }
        Ending::Failed(..) => task.timeout,
    };
    if task.attempts >= limits::MAX_TASK_ATTEMPTS {
        return None;
    }
    Some(Task {
        timeout,
        not_before: Some(at),
        ..task.clone()
    })
}

/// Makes what a Planner staged real, for a session that has no task of the queue.
///
/// # Errors
/// The system fails; then either nothing is real or the next start completes it.
pub fn commit(state: &StateDirectory, staged: StagedWork, now: Timestamp) -> Result<(), ToolError> {
    if staged.is_empty() {
        return Ok(());
    }
    let lock = state.lock()?;
    let request = TaskRequest::new("a session of the Planner without a model", None, None)?;
    let task = Task {
        attempts: 1,
        started_at: Some(now),
        ..Task::new(TaskId::random()?, request, now)
    };
    let ending = Ending::Planned(String::new(), staged);
    let result = TaskResult::new(task.clone(), ending, now);
    write_result(state, TaskRole::Planner, &result)?;
    // From here on it is decided.
    state.planner.running.write(&task)?;
    apply_result(state, &lock, TaskRole::Planner, &task.id)
}

fn write_result(
    state: &StateDirectory,
    role: TaskRole,
    result: &TaskResult,
) -> Result<(), ToolError> {
    let folder = state.role(role).results.files();
    folder.write(&result.id.file_name(), &crate::folder::json(result)?)
}

/// Does what a result says and takes its task out of `running`; steps that were done before are left out.
fn apply_result(
    state: &StateDirectory,
    _lock: &ChangeLock,
    role: TaskRole,
    id: &TaskId,
) -> Result<(), ToolError> {
    let folders = state.role(role);
    if let Some(result) = state.result(role, id)? {
        for task in &result.staged.tasks {
            if !state.is_taken(&task.id)? {
                state.worker.queue.write_new(task)?;
            }
        }
        for trigger in &result.staged.triggers {
            if !state.is_taken(&trigger.id)? {
                state.triggers.write_new(&begun(state, trigger)?)?;
            }
        }
        if let Some(event) = Event::of_result(role, &result) {
            state.events.write_new(&event)?;
        }
    }
    folders.running.files().remove(&stop_mark(id))?;
    folders.running.remove(id)?;
    Ok(())
}

/// Returns a trigger as it begins: runs of other triggers that have ended do not count for it.
fn begun(state: &StateDirectory, trigger: &Trigger) -> Result<Trigger, ToolError> {
    let results = state.worker.results.records()?;
    let mut begun = trigger.clone();
    if let Some(condition) = &trigger.condition {
        condition.each_leaf(&mut |place, leaf| {
            if let Condition::TaskDone(id) | Condition::TaskFailed(id) = leaf
                && let Some((run, _)) = runs_of(&results, id).max_by_key(|(run, _)| *run)
            {
                begun.state.leaves.entry(place).or_default().run = Some(run);
            }
        });
    }
    Ok(begun)
}

/// Applies the results of tasks that are still in `running`, and returns their identifiers.
///
/// # Errors
/// The system fails.
pub fn apply_results(state: &StateDirectory) -> Result<Vec<TaskId>, ToolError> {
    let mut applied = Vec::new();
    for role in TaskRole::ALL {
        let folders = state.role(role);
        let results = folders.results.records()?;
        let ended = folders.running.records()?;
        for id in ended.keys().filter(|id| results.contains_key(*id)) {
            let lock = state.lock()?;
            if folders.running.has(id)? {
                apply_result(state, &lock, role, id)?;
                applied.push(id.clone());
            }
        }
    }
    Ok(applied)
}

/// End of the name of the file that asks the supervisor to end a running task.
const STOP: &str = ".stop";

fn stop_mark(id: &TaskId) -> String {
    format!("{id}{STOP}")
}

/// Tells whether a person asked to end a running task for good.
///
/// # Errors
/// The system fails.
pub fn is_stopped(state: &StateDirectory, role: TaskRole, id: &TaskId) -> Result<bool, ToolError> {
    state.role(role).running.files().has(&stop_mark(id))
}

/// Returns the end of the work on a task: where it failed since a person stopped it, that it was stopped.
///
/// # Errors
/// The system fails.
pub fn unless_stopped(
    state: &StateDirectory,
    role: TaskRole,
    id: &TaskId,
    ending: Ending,
) -> Result<Ending, ToolError> {
    Ok(match ending {
        Ending::TimedOut(_) | Ending::Failed(..) if is_stopped(state, role, id)? => {
            Ending::Failed(FailureReason::Killed, "stopped by a person".into())
        }
        ending => ending,
    })
}

/// Removes the marks of tasks that neither run nor wait to run again.
pub(crate) fn sweep_stop_marks(state: &StateDirectory, role: TaskRole) -> Result<(), ToolError> {
    let _lock = state.lock()?;
    let folders = state.role(role);
    let (running, queue) = (folders.running.files(), folders.queue.files());
    running.each_entry(&mut |name, _| {
        let task = name.strip_suffix(STOP).map(|id| format!("{id}.json"));
        if let Some(task) = task
            && !running.has(&task)?
            && !queue.has(&task)?
        {
            running.remove(name)?;
        }
        Ok(())
    })
}

/// Asks the supervisor to end a running task for good; returns false when it does not run.
///
/// # Errors
/// The system fails.
pub fn stop(state: &StateDirectory, id: &TaskId) -> Result<bool, ToolError> {
    let _lock = state.lock()?;
    for role in TaskRole::ALL {
        let running = &state.role(role).running;
        if running.has(id)? {
            running.files().write(&stop_mark(id), b"")?;
            return Ok(true);
        }
    }
    Ok(false)
}
