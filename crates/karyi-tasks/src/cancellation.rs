//! Cancels what does not run yet. A cancelled task is neither done nor failed.

use karyi_core::error::ToolError;

use crate::state_directory::StateDirectory;
use crate::state_folder::Move;
use crate::task::TaskRole;
use crate::task_id::TaskId;

/// Outcome of a cancellation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelReason {
    /// It will not run, or not again.
    Cancelled,
    /// It runs already.
    Running,
    /// It has ended.
    Finished,
    /// No task and no trigger has this identifier.
    NotFound,
}

impl CancelReason {
    /// Returns the word of the reason.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cancelled => "cancelled",
            Self::Running => "running",
            Self::Finished => "finished",
            Self::NotFound => "not_found",
        }
    }
}

/// Cancels a queued task or a trigger. The move out of the queue decides whether a claim came first.
///
/// # Errors
/// The system fails.
pub fn cancel(state: &StateDirectory, id: &TaskId) -> Result<CancelReason, ToolError> {
    // A trigger that makes a task is not written again behind its cancellation.
    let _lock = state.lock()?;
    let cancelled = &state.worker.cancelled;
    let moves = [
        state.planner.queue.move_to(id, &state.planner.cancelled)?,
        state.worker.queue.move_to(id, cancelled)?,
        state.triggers.move_to(id, cancelled)?,
    ];
    if moves.contains(&Move::Done) {
        return Ok(CancelReason::Cancelled);
    }
    for role in TaskRole::ALL {
        let folders = state.role(role);
        if folders.running.has(id)? {
            return Ok(CancelReason::Running);
        }
        if folders.results.has(id)? {
            return Ok(CancelReason::Finished);
        }
        // It was to run again and has just been put back.
        if folders.queue.has(id)? {
            return Ok(CancelReason::Running);
        }
    }
    match state.worker.cancelled.has(id)? || state.planner.cancelled.has(id)? {
        true => Ok(CancelReason::Cancelled),
        false => Ok(CancelReason::NotFound),
    }
}

/// Returns the triggers whose conditions name a task or trigger.
///
/// # Errors
/// The system fails.
pub fn dependents(state: &StateDirectory, id: &TaskId) -> Result<Vec<TaskId>, ToolError> {
    let triggers = state.triggers.records()?;
    let waits = triggers.values().filter(|trigger| {
        let condition = trigger.condition.as_ref();
        condition.is_some_and(|condition| condition.task_ids().contains(&id))
    });
    Ok(waits.map(|trigger| trigger.id.clone()).collect())
}
