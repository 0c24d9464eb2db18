//! Events that the next session of the Teller is given.

use jiff::Timestamp;
use karyi_core::limits;
use serde::{Deserialize, Serialize};

use crate::argument::shortened;
use crate::folder::Record;
use crate::task::TaskRole;
use crate::task_id::TaskId;
use crate::task_result::{TaskResult, TaskStatus};

/// One event. Its identifier is that of the task or question, so that it is made once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// Identifier.
    pub id: TaskId,
    /// Time.
    pub created_at: Timestamp,
    /// Content.
    #[serde(flatten)]
    pub content: EventContent,
}

/// Source of the answer to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerSource {
    /// A person answered.
    User,
    /// The time passed, and the question had a default.
    Default,
    /// The time passed without an answer.
    Timeout,
}

/// Content of an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    tag = "kind",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
pub enum EventContent {
    /// A Worker's task ended.
    TaskResult {
        /// Start of the prompt.
        prompt: String,
        /// Outcome.
        status: TaskStatus,
        /// Start of the result, or the message of the failure.
        text: String,
    },
    /// A Planner ended with a text for the Teller.
    PlannerDone {
        /// Start of the prompt.
        prompt: String,
        /// Start of the text.
        text: String,
    },
    /// A Planner failed for good.
    PlannerFailed {
        /// Start of the prompt.
        prompt: String,
        /// Message of the failure.
        text: String,
    },
    /// A Planner needs an answer before it can plan.
    NeedsInput {
        /// Start of the prompt.
        prompt: String,
        /// Question.
        question: String,
        /// Possible answers, if they are limited.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        options: Vec<String>,
        /// Answer to assume.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        default: Option<String>,
    },
    /// The question to the user has an answer.
    Answer {
        /// Question.
        question: String,
        /// Answer; empty after a timeout without a default.
        answer: String,
        /// Source of the answer.
        source: AnswerSource,
    },
}

impl Event {
    /// Makes the event of a final result; `None` for a Planner that ended well and said nothing.
    pub(crate) fn of_result(role: TaskRole, result: &TaskResult) -> Option<Self> {
        let prompt = shortened(&result.task.prompt, limits::MAX_TASK_SUMMARY_CHARS);
        let text = result.error.as_ref().or(result.result.as_ref());
        let text = text.map(|text| shortened(text.trim(), limits::MAX_EVENT_CHARS));
        let text = text.unwrap_or_default();
        let question = result.question.clone();
        let content = match (role, result.status, question) {
            (TaskRole::Planner, TaskStatus::NeedsInput, Some(question)) => {
                EventContent::NeedsInput {
                    prompt,
                    question: question.question,
                    options: question.options,
                    default: question.default,
                }
            }
            (TaskRole::Planner, TaskStatus::Done, _) if text.is_empty() => return None,
            (TaskRole::Planner, TaskStatus::Done, _) => EventContent::PlannerDone { prompt, text },
            (TaskRole::Planner, _, _) => EventContent::PlannerFailed { prompt, text },
            (TaskRole::Worker, status, _) => EventContent::TaskResult {
                prompt,
                status,
                text,
            },
        };
        Some(Self {
            id: result.id.clone(),
            created_at: result.completed_at,
            content,
        })
    }
}

impl Record for Event {
    fn id(&self) -> &TaskId {
        &self.id
    }
}
