//! What a supervisor does first: completes what a killed one left half done.

use jiff::Timestamp;
use karyi_core::error::ToolError;
use karyi_core::limits;

use crate::event::Event;
use crate::folder::BrokenFile;
use crate::instance_lock::InstanceLock;
use crate::lifecycle::{self, apply_results, finish};
use crate::question;
use crate::state_directory::StateDirectory;
use crate::task::TaskRole;
use crate::task_id::TaskId;
use crate::task_result::{Ending, FailureReason};
use crate::trigger::after;

/// Outcome of [`settle`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settlement {
    /// Answer of a question that ended meanwhile.
    pub answer: Option<Event>,
    /// Files that could not be used.
    pub broken: Vec<BrokenFile>,
    /// Tasks that had ended already.
    pub applied: Vec<TaskId>,
    /// Tasks that were cut; they run once more, or have failed for good.
    pub interrupted: Vec<TaskId>,
}

/// Completes what a killed supervisor left; only the process with the lock of the directory may do so.
///
/// # Errors
/// The system fails.
pub fn settle(
    state: &StateDirectory,
    _lock: &InstanceLock,
    now: Timestamp,
) -> Result<Settlement, ToolError> {
    let answer = question::expire(state, now)?;
    state.sweep()?;
    let broken = state.set_broken_aside()?;
    let applied = apply_results(state)?;
    let mut interrupted = Vec::new();
    for role in TaskRole::ALL {
        lifecycle::sweep_stop_marks(state, role)?;
        let folders = state.role(role);
        for (id, task) in &*folders.running.records()? {
            if !folders.running.has(id)? {
                continue;
            }
            // Cut between the move and the count, so it never ran, or before the move of one that is to run again.
            if task.attempts == 0 || task.not_before.is_some() {
                folders.running.move_to(id, &folders.queue)?;
                continue;
            }
            let error = "the supervisor ended while it ran".to_owned();
            let ending = Ending::Failed(FailureReason::Interrupted, error);
            finish(state, role, task, ending, now)?;
            interrupted.push(id.clone());
        }
    }
    Ok(Settlement {
        answer,
        broken,
        applied,
        interrupted,
    })
}

/// Removes results that are older than 30 days and that no trigger names, and returns their number.
///
/// # Errors
/// The system fails.
pub fn prune(state: &StateDirectory, now: Timestamp) -> Result<usize, ToolError> {
    let triggers = state.triggers.records()?;
    let conditions = triggers
        .values()
        .filter_map(|trigger| trigger.condition.as_ref());
    let named: Vec<&TaskId> = conditions
        .flat_map(|condition| condition.task_ids())
        .collect();
    let is_named = |id: &TaskId| {
        named
            .iter()
            .any(|named| id == *named || id.run_number(named).is_some())
    };
    let is_old = |time: Timestamp| after(time, limits::TASK_RESULT_AGE.as_secs()) < now;
    let mut count = 0;
    for role in TaskRole::ALL {
        let folders = state.role(role);
        for (id, result) in &*folders.results.records()? {
            if is_old(result.completed_at) && !is_named(id) && folders.results.remove(id)? {
                count += 1;
            }
        }
        for (id, item) in &*folders.cancelled.records()? {
            if is_old(item.created_at) && folders.cancelled.remove(id)? {
                count += 1;
            }
        }
    }
    Ok(count)
}
