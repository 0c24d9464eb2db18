//! Lists tasks: those that run, then queues in the order in which they run, then triggers by their time.

use std::sync::Arc;

use jiff::Timestamp;
use karyi_core::error::ToolError;
use karyi_core::limits;
use serde::Serialize;
use serde_json::Value;

use crate::argument::shortened;
use crate::evaluation::is_hopeless;
use crate::folder::{LoadFailure, load_json};
use crate::state_directory::StateDirectory;
use crate::task::{Aging, Task, TaskRole};
use crate::task_id::TaskId;
use crate::trigger::Trigger;

/// Part of the tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ListScope {
    /// Waiting tasks.
    Queue,
    /// Running tasks.
    Running,
    /// Triggers.
    Triggers,
    /// All of them.
    #[default]
    All,
}

/// Selection and order of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ListOptions {
    /// Part of the tasks.
    pub scope: ListScope,
    /// Role whose tasks are listed; triggers are listed for each.
    pub role: Option<TaskRole>,
    /// Effect of waiting on the order.
    pub aging: Aging,
}

/// Task or trigger in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TaskSummary {
    /// Identifier.
    pub id: TaskId,
    /// `oneshot`, `recurring`, `scheduled` or `conditional`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// At most 100 characters of the prompt.
    pub prompt: String,
    /// 0 to 10.
    pub priority: u8,
    /// `queued`, `running` or `trigger`.
    pub status: &'static str,
    /// Time when it was made.
    pub created_at: Timestamp,
    /// Role that works on it; absent for a trigger.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<&'static str>,
    /// Time of the next task of a trigger, or of the next attempt of a task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub due_at: Option<Timestamp>,
    /// True for a trigger whose condition can never hold.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub blocked: bool,
}

impl TaskSummary {
    fn of_task(role: TaskRole, task: &Task, status: &'static str) -> Self {
        Self {
            id: task.id.clone(),
            kind: "oneshot",
            prompt: shortened(&task.prompt, limits::MAX_TASK_SUMMARY_CHARS),
            priority: task.priority,
            status,
            created_at: task.created_at,
            role: Some(role.as_str()),
            due_at: task.not_before,
            blocked: false,
        }
    }

    fn of_trigger(trigger: &Trigger, blocked: bool) -> Self {
        Self {
            id: trigger.id.clone(),
            kind: trigger.kind.as_str(),
            prompt: shortened(&trigger.prompt, limits::MAX_TASK_SUMMARY_CHARS),
            priority: trigger.priority,
            status: "trigger",
            created_at: trigger.created_at,
            role: None,
            due_at: trigger.due_at(),
            blocked,
        }
    }
}

/// Task, trigger or result with its place.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundItem {
    /// Path of its directory in the state directory.
    pub folder: String,
    /// Content of its file.
    pub content: Value,
}

/// Finds a task, a trigger or a result by its identifier.
///
/// # Errors
/// The system fails.
pub fn find(state: &StateDirectory, id: &TaskId) -> Result<Option<FoundItem>, ToolError> {
    let folders = TaskRole::ALL.into_iter().flat_map(|role| {
        let (name, folders) = (role.as_str(), state.role(role));
        [
            // A task that runs may have its result already.
            (format!("{name}/results"), folders.results.files()),
            (format!("{name}/running"), folders.running.files()),
            (format!("{name}/queue"), folders.queue.files()),
            (format!("{name}/cancelled"), folders.cancelled.files()),
        ]
    });
    let triggers = ("triggers".to_owned(), state.triggers.files());
    for (folder, files) in folders.chain([triggers]) {
        match load_json(files, &id.file_name()) {
            Ok(Some(content)) => return Ok(Some(FoundItem { folder, content })),
            // One that is no JSON is set aside by the next list.
            Ok(None) | Err(LoadFailure::Broken(_)) => {}
            Err(LoadFailure::System(error)) => return Err(error),
        }
    }
    Ok(None)
}

/// Returns the tasks and triggers.
///
/// # Errors
/// The system fails.
pub fn list(
    state: &StateDirectory,
    options: ListOptions,
    now: Timestamp,
) -> Result<Vec<TaskSummary>, ToolError> {
    let ListOptions { scope, role, aging } = options;
    let roles = TaskRole::ALL.into_iter();
    let roles: Vec<TaskRole> = roles
        .filter(|one| role.is_none_or(|role| role == *one))
        .collect();
    let latest = state.pauses.retry_at(now);
    let mut all = Vec::new();
    let parts = [ListScope::Running, ListScope::Queue].into_iter();
    for part in parts.filter(|part| scope == *part || scope == ListScope::All) {
        for role in &roles {
            let folders = state.role(*role);
            let (folder, status) = match part {
                ListScope::Running => (&folders.running, "running"),
                _ => (&folders.queue, "queued"),
            };
            let records = folder.records()?;
            let mut tasks: Vec<_> = records.values().collect();
            match part {
                ListScope::Running => tasks.sort_by_key(|task| (task.started_at, &task.id)),
                _ => tasks
                    .sort_by_cached_key(|task| (!task.is_due(now, latest), task.order(now, aging))),
            }
            let summary = |task: &&Arc<Task>| TaskSummary::of_task(*role, task, status);
            all.extend(tasks.iter().map(summary));
        }
    }
    if matches!(scope, ListScope::Triggers | ListScope::All) {
        let records = state.triggers.records()?;
        let mut triggers: Vec<_> = records.values().collect();
        // Those without a time come last.
        triggers.sort_by_key(|trigger| {
            let due_at = trigger.due_at();
            (due_at.is_none(), due_at, trigger.created_at, &trigger.id)
        });
        for trigger in triggers {
            let condition = trigger
                .condition
                .as_ref()
                .filter(|_| !trigger.state.is_pending);
            let blocked = condition.map(|condition| is_hopeless(state, condition));
            all.push(TaskSummary::of_trigger(
                trigger,
                blocked.transpose()?.unwrap_or(false),
            ));
        }
    }
    Ok(all)
}
