//! Result of a task, which conditions read.

use std::sync::Arc;

use jiff::Timestamp;
use karyi_core::limits;
use serde::{Deserialize, Serialize};

use crate::argument::cut_bytes;
use crate::folder::{Record, Records};
use crate::staged_work::StagedWork;
use crate::task::Task;
use crate::task_id::TaskId;

/// Outcome of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// It ended well.
    Done,
    /// It failed for good.
    Failed,
    /// A Planner needs an answer first.
    NeedsInput,
}

/// Reason of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureReason {
    /// The time limit passed.
    Timeout,
    /// The work failed.
    Error,
    /// The supervisor ended while it ran.
    Interrupted,
    /// A person stopped it.
    Killed,
}

/// Question of a Planner that cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannerQuestion {
    /// Text of the question.
    pub question: String,
    /// Possible answers, if they are limited.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// Answer to assume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

/// End of the work on a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// It ended well, with the text of the last message.
    Done(String),
    /// A Planner ended well, with the text of the last message and the work it delegated.
    Planned(String, StagedWork),
    /// A Planner needs an answer.
    NeedsInput(PlannerQuestion),
    /// The time limit of so many seconds passed.
    TimedOut(u64),
    /// It failed.
    Failed(FailureReason, String),
}

/// Final result of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TaskResult {
    /// Identifier of the task.
    pub id: TaskId,
    /// Outcome.
    pub status: TaskStatus,
    /// Text of the last message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// Message of the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Reason of the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_reason: Option<FailureReason>,
    /// Start of its last run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// End of its last run.
    pub completed_at: Timestamp,
    /// Task as it ran, with the number of its runs.
    pub task: Task,
    /// Work that a Planner delegated.
    #[serde(default, skip_serializing_if = "StagedWork::is_empty")]
    pub staged: StagedWork,
    /// Question of a Planner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<PlannerQuestion>,
}

impl TaskResult {
    /// Makes the result of a task.
    pub(crate) fn new(task: Task, ending: Ending, now: Timestamp) -> Self {
        let kept = |text: &str| cut_bytes(text, limits::MAX_TASK_RESULT_BYTES).to_owned();
        let mut result = Self {
            id: task.id.clone(),
            status: TaskStatus::Done,
            result: None,
            error: None,
            failure_reason: None,
            started_at: task.started_at,
            completed_at: now,
            task,
            staged: StagedWork::default(),
            question: None,
        };
        match ending {
            Ending::Done(text) => result.result = Some(kept(&text)),
            Ending::Planned(text, staged) => {
                result.result = Some(kept(&text));
                result.staged = staged;
            }
            Ending::NeedsInput(question) => {
                result.status = TaskStatus::NeedsInput;
                result.question = Some(question);
            }
            Ending::TimedOut(limit) => {
                result.status = TaskStatus::Failed;
                result.error = Some(format!("the time limit of {limit} s passed"));
                result.failure_reason = Some(FailureReason::Timeout);
            }
            Ending::Failed(reason, error) => {
                result.status = TaskStatus::Failed;
                result.error = Some(kept(&error));
                result.failure_reason = Some(reason);
            }
        }
        result
    }
}

impl Record for TaskResult {
    fn id(&self) -> &TaskId {
        &self.id
    }
}

/// What conditions need of a result; its texts stay on the disk.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "TaskResult")]
pub struct ResultSummary {
    /// Identifier of the task.
    pub id: TaskId,
    /// Outcome.
    pub status: TaskStatus,
    /// End of its last run.
    pub completed_at: Timestamp,
}

impl From<TaskResult> for ResultSummary {
    fn from(result: TaskResult) -> Self {
        Self {
            id: result.id,
            status: result.status,
            completed_at: result.completed_at,
        }
    }
}

impl Record for ResultSummary {
    fn id(&self) -> &TaskId {
        &self.id
    }
}

/// Returns the finished runs of a trigger, with their numbers.
pub(crate) fn runs_of<'r>(
    results: &'r Records<ResultSummary>,
    trigger: &'r TaskId,
) -> impl Iterator<Item = (u64, &'r Arc<ResultSummary>)> {
    let below = results.range(trigger.clone()..);
    let below = below.take_while(|(id, _)| id.as_str().starts_with(trigger.as_str()));
    below.filter_map(|(id, result)| Some((id.run_number(trigger)?, result)))
}
