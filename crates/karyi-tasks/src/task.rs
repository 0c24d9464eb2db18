//! A task: a prompt that a Planner or a Worker works on, with its place in the order.

use jiff::Timestamp;
use karyi_core::error::ToolError;
use karyi_core::limits;
use serde::{Deserialize, Serialize};

use crate::argument::{check_text, misfit, seconds, whole};
use crate::folder::Record;
use crate::task_id::TaskId;

/// Role that works on tasks of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskRole {
    /// Plans work and delegates it.
    Planner,
    /// Does the work in a shell.
    Worker,
}

impl TaskRole {
    /// Both roles.
    pub const ALL: [Self; 2] = [Self::Planner, Self::Worker];

    /// Returns the word of the role.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Planner => "planner",
            Self::Worker => "worker",
        }
    }
}

/// Checked content of a task that does not exist yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskRequest {
    pub(crate) prompt: String,
    pub(crate) priority: u8,
    pub(crate) timeout: Option<u64>,
}

impl TaskRequest {
    /// Checks the content of a task; `timeout` is in seconds, and without one the role's applies.
    ///
    /// # Errors
    /// `bad_arguments` naming the argument.
    pub fn new(
        prompt: &str,
        priority: Option<i64>,
        timeout: Option<i64>,
    ) -> Result<Self, ToolError> {
        check_text("prompt", prompt)?;
        let priority = priority.unwrap_or(limits::DEFAULT_TASK_PRIORITY.into());
        let most = limits::MAX_TASK_PRIORITY;
        let priority = whole("priority", priority, 0, usize::from(most))?;
        let timeout = timeout.map(|value| seconds("timeout", value, 1, limits::MAX_TASK_TIMEOUT));
        Ok(Self {
            prompt: prompt.to_owned(),
            priority: u8::try_from(priority).unwrap_or(most),
            timeout: timeout.transpose()?,
        })
    }
}

/// Task in a queue or running.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Task {
    /// Identifier.
    pub id: TaskId,
    /// Always `oneshot`: what repeats is a trigger.
    #[serde(rename = "type")]
    pub kind: TaskKind,
    /// Work to do.
    pub prompt: String,
    /// 0 to 10; higher ones run first.
    pub priority: u8,
    /// Time when it was queued first.
    pub created_at: Timestamp,
    /// Number of times it was claimed.
    pub attempts: u32,
    /// Time limit in seconds; without one the role's applies.
    pub timeout: Option<u64>,
    /// Time before which it does not run again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    /// Time of the last claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// Trigger that made it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<TaskOrigin>,
}

/// Word in the field `type` of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskKind {
    /// Runs once.
    Oneshot,
}

/// Trigger that made a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TaskOrigin {
    /// Identifier of the trigger.
    pub trigger_id: TaskId,
    /// Tasks whose results it waited for, in the order of its condition.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub upstream: Vec<TaskId>,
    /// True if a model was asked about the condition: such tasks go before others of their priority.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_from_question: bool,
}

impl Task {
    /// Makes a task.
    pub(crate) fn new(id: TaskId, request: TaskRequest, now: Timestamp) -> Self {
        Self {
            id,
            kind: TaskKind::Oneshot,
            prompt: request.prompt,
            priority: request.priority,
            created_at: now,
            attempts: 0,
            timeout: request.timeout,
            not_before: None,
            started_at: None,
            origin: None,
        }
    }

    /// Returns the name of the session that runs it, which tells it from all others.
    #[must_use]
    pub fn session_name(&self) -> String {
        format!("{}/{}", self.id, self.attempts)
    }

    /// Tells whether it may run. No pause ends behind `latest`: a later time comes from a clock that jumped.
    pub(crate) fn is_due(&self, now: Timestamp, latest: Timestamp) -> bool {
        self.not_before
            .is_none_or(|time| time <= now || latest < time)
    }

    /// Returns the key by which a queue is sorted, the first one to run first.
    pub(crate) fn order(&self, now: Timestamp, aging: Aging) -> QueueOrder<'_> {
        let step = i64::try_from(limits::TASK_AGING_STEP.as_secs()).unwrap_or(i64::MAX);
        let waited = now.as_second().saturating_sub(self.created_at.as_second()) / step;
        let aged = match aging {
            Aging::Off => 0,
            Aging::On => waited.clamp(0, limits::MAX_TASK_AGING),
        };
        let is_from_question = self
            .origin
            .as_ref()
            .is_some_and(|origin| origin.is_from_question);
        let priority = i64::from(self.priority) + aged;
        (-priority, !is_from_question, self.created_at, &self.id)
    }
}

/// Priority, source, age and identifier: the smallest one runs first.
pub(crate) type QueueOrder<'a> = (i64, bool, Timestamp, &'a TaskId);

/// Effect of waiting on the order of tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Aging {
    /// The priority stays.
    #[default]
    Off,
    /// A task gains a step of priority each minute, five at most.
    On,
}

impl Record for Task {
    fn id(&self) -> &TaskId {
        &self.id
    }

    fn check(&self, folder: &str) -> Result<(), String> {
        // One that waits runs once more.
        let most = limits::MAX_TASK_ATTEMPTS - u32::from(folder.ends_with("/queue"));
        let found = self.attempts;
        if found > most {
            return Err(misfit("attempts", &format!("at most {most}"), found).message);
        }
        // A task that ran may have twice the longest limit: a timeout doubles it.
        let part = |seconds: u64| match found {
            0 => seconds,
            _ => seconds.div_ceil(2),
        };
        let timeout = self.timeout.map(part);
        let timeout = timeout.map(|seconds| i64::try_from(seconds).unwrap_or(i64::MAX));
        let checked = TaskRequest::new(&self.prompt, Some(self.priority.into()), timeout);
        checked.map(|_| ()).map_err(|error| error.message)
    }
}
