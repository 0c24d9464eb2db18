//! Work that a Planner delegates: it has its identifiers at once and becomes real when the Planner ends well.

use jiff::Timestamp;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;
use serde::{Deserialize, Serialize};

use crate::task::{Task, TaskRequest};
use crate::task_id::TaskId;
use crate::trigger::{Trigger, TriggerPlan};

/// Tasks and triggers that do not exist yet.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StagedWork {
    /// Tasks for Workers.
    pub tasks: Vec<Task>,
    /// Triggers.
    pub triggers: Vec<Trigger>,
}

impl StagedWork {
    /// Tells whether nothing is staged.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty() && self.triggers.is_empty()
    }

    /// Tells whether a task or trigger is staged.
    #[must_use]
    pub fn contains(&self, id: &TaskId) -> bool {
        let mut ids = self.tasks.iter().map(|task| &task.id);
        ids.any(|task| task == id) || self.triggers.iter().any(|trigger| trigger.id == *id)
    }

    fn remove(&mut self, id: &TaskId) -> bool {
        let found = self.contains(id);
        self.tasks.retain(|task| task.id != *id);
        self.triggers.retain(|trigger| trigger.id != *id);
        found
    }
}

/// Checks that a session that has handed over so many tasks and triggers may hand over another one.
///
/// # Errors
/// `bad_arguments` when it may not.
pub fn check_count(count: usize) -> Result<(), ToolError> {
    if count < limits::MAX_STAGED_ITEMS {
        return Ok(());
    }
    let message = format!(
        "expected at most {} tasks of one session, found one more",
        limits::MAX_STAGED_ITEMS
    );
    let hint = "give one task several of the steps, or hand over the rest in another session";
    Err(ToolError::new(ErrorCode::BadArguments, message).with_hint(hint))
}

/// Session of a Planner: counts what it makes, so that a repeated session makes the same identifiers.
#[derive(Debug)]
pub struct PlannerSession {
    name: String,
    calls: u64,
    staged: StagedWork,
}

impl PlannerSession {
    /// Begins a session; its name tells it from all others.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            calls: 0,
            staged: StagedWork::default(),
        }
    }

    /// Returns what is staged.
    #[must_use]
    pub fn staged(&self) -> &StagedWork {
        &self.staged
    }

    /// Ends the session and returns what is staged.
    #[must_use]
    pub fn into_staged(self) -> StagedWork {
        self.staged
    }

    /// Stages a task, or a trigger that makes one.
    ///
    /// The tasks of the plan's condition have been checked by [`crate::state_directory::StateDirectory::check_waits`].
    ///
    /// # Errors
    /// `bad_arguments` when the session has staged too much.
    pub fn stage(
        &mut self,
        request: TaskRequest,
        plan: Option<TriggerPlan>,
        now: Timestamp,
    ) -> Result<TaskId, ToolError> {
        check_count(self.staged.tasks.len() + self.staged.triggers.len())?;
        self.calls += 1;
        let id = TaskId::derived(&self.name, self.calls);
        match plan {
            None => self.staged.tasks.push(Task::new(id.clone(), request, now)),
            Some(plan) => {
                let trigger = Trigger::new(id.clone(), request, plan, now);
                self.staged.triggers.push(trigger);
            }
        }
        Ok(id)
    }

    /// Drops a staged task or trigger; returns false when this is none.
    pub fn cancel(&mut self, id: &TaskId) -> bool {
        self.staged.remove(id)
    }
}
