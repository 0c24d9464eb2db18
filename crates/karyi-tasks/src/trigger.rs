//! A trigger: makes a task at a time, again and again, or when a condition holds.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use karyi_core::error::ToolError;
use karyi_core::limits;
use serde::{Deserialize, Serialize};

use crate::argument::{read_time, seconds};
use crate::condition::Condition;
use crate::folder::Record;
use crate::task::{Task, TaskOrigin, TaskRequest};
use crate::task_id::TaskId;

/// Type of a trigger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TriggerKind {
    /// Makes a task each interval.
    Recurring,
    /// Makes a task at one time.
    Scheduled,
    /// Makes a task when its condition becomes true.
    Conditional,
}

impl TriggerKind {
    /// Returns the word of the type.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Recurring => "recurring",
            Self::Scheduled => "scheduled",
            Self::Conditional => "conditional",
        }
    }
}

/// Checked time or condition of a trigger that does not exist yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TriggerPlan {
    /// Each so many seconds.
    Recurring(u64),
    /// At a time.
    Scheduled(Timestamp),
    /// When a condition becomes true, and then not for so many seconds.
    Conditional(Condition, u64),
    /// When a condition becomes true for the first time; the task has the identifier of the trigger.
    Once(Condition),
}

impl TriggerPlan {
    /// Checks an interval in seconds.
    ///
    /// # Errors
    /// `bad_arguments` naming `interval`.
    pub fn recurring(interval: i64) -> Result<Self, ToolError> {
        let most = limits::MAX_TRIGGER_INTERVAL;
        Ok(Self::Recurring(seconds("interval", interval, 1, most)?))
    }

    /// Reads a time with its zone; one in the past is due at once.
    ///
    /// # Errors
    /// `bad_arguments` naming `run_at`.
    pub fn scheduled(run_at: &str) -> Result<Self, ToolError> {
        Ok(Self::Scheduled(read_time("run_at", run_at)?))
    }

    /// Takes a condition and checks the cooldown in seconds.
    ///
    /// # Errors
    /// `bad_arguments` naming `cooldown`.
    pub fn conditional(condition: Condition, cooldown: i64) -> Result<Self, ToolError> {
        let cooldown = seconds("cooldown", cooldown, 0, limits::MAX_TRIGGER_INTERVAL)?;
        Ok(Self::Conditional(condition, cooldown))
    }
}

/// Trigger with its state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Trigger {
    /// Identifier.
    pub id: TaskId,
    /// Type.
    #[serde(rename = "type")]
    pub kind: TriggerKind,
    /// Prompt of its tasks.
    pub prompt: String,
    /// Priority of its tasks.
    pub priority: u8,
    /// Time when it was made.
    pub created_at: Timestamp,
    /// Time limit of its tasks in seconds.
    pub timeout: Option<u64>,
    /// Seconds after a task before the next one; absent for a trigger that makes one task of its own identifier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cooldown: Option<u64>,
    /// Times of `recurring` and `scheduled`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<TriggerSchedule>,
    /// Condition of `conditional`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<Condition>,
    /// State.
    #[serde(default)]
    pub state: TriggerState,
}

/// Times of a trigger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, untagged)]
pub enum TriggerSchedule {
    /// Again and again.
    #[serde(rename_all = "camelCase")]
    Recurring {
        /// Seconds between two runs.
        interval: u64,
        /// Time of the next run.
        next_run_at: Timestamp,
    },
    /// Once.
    #[serde(rename_all = "camelCase")]
    Scheduled {
        /// Time of the run.
        run_at: Timestamp,
    },
}

/// State of a trigger, and of each part of its condition.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct TriggerState {
    /// Number of tasks it has made.
    pub runs: u64,
    /// Time of the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_triggered_at: Option<Timestamp>,
    /// True if the condition held at the last look.
    pub is_true: bool,
    /// True if it became true and no task was made yet.
    pub is_pending: bool,
    /// State of the parts of the condition, by their places.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub leaves: BTreeMap<String, LeafState>,
}

/// State of one part of a condition.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct LeafState {
    /// Fingerprint of the watched files that is compared with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<String>,
    /// Number of the last run of a trigger that counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<u64>,
    /// Last answer of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<bool>,
    /// Time of that answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked_at: Option<Timestamp>,
}

impl Trigger {
    /// Makes a trigger.
    pub(crate) fn new(id: TaskId, request: TaskRequest, plan: TriggerPlan, now: Timestamp) -> Self {
        let (kind, cooldown, schedule, condition) = match plan {
            TriggerPlan::Recurring(interval) => {
                let next_run_at = after(now, interval);
                let schedule = TriggerSchedule::Recurring {
                    interval,
                    next_run_at,
                };
                (TriggerKind::Recurring, Some(0), Some(schedule), None)
            }
            TriggerPlan::Scheduled(run_at) => {
                let schedule = TriggerSchedule::Scheduled { run_at };
                (TriggerKind::Scheduled, Some(0), Some(schedule), None)
            }
            TriggerPlan::Conditional(condition, cooldown) => (
                TriggerKind::Conditional,
                Some(cooldown),
                None,
                Some(condition),
            ),
            TriggerPlan::Once(condition) => (TriggerKind::Conditional, None, None, Some(condition)),
        };
        Self {
            id,
            kind,
            prompt: request.prompt,
            priority: request.priority,
            created_at: now,
            timeout: request.timeout,
            cooldown,
            schedule,
            condition,
            state: TriggerState::default(),
        }
    }

    /// Returns the time of the next task, if it is known.
    #[must_use]
    pub fn due_at(&self) -> Option<Timestamp> {
        match self.schedule.as_ref()? {
            TriggerSchedule::Recurring { next_run_at, .. } => Some(*next_run_at),
            TriggerSchedule::Scheduled { run_at } => Some(*run_at),
        }
    }

    /// Tells whether its one task has its identifier.
    #[must_use]
    pub fn is_once(&self) -> bool {
        self.cooldown.is_none()
    }

    /// Tells whether it ends with its next task.
    pub(crate) fn ends_with_task(&self) -> bool {
        self.is_once() || self.kind == TriggerKind::Scheduled
    }

    /// Returns the identifier of its next task: the same one until the task is counted.
    pub(crate) fn next_task_id(&self) -> TaskId {
        match self.is_once() {
            true => self.id.clone(),
            false => self.id.run(self.state.runs.saturating_add(1)),
        }
    }

    /// Makes its next task.
    pub(crate) fn task(&self, upstream: Vec<TaskId>, now: Timestamp) -> Task {
        let request = TaskRequest {
            prompt: self.prompt.clone(),
            priority: self.priority,
            timeout: self.timeout,
        };
        let is_from_question = self.condition.as_ref().is_some_and(Condition::has_question);
        let origin = TaskOrigin {
            trigger_id: self.id.clone(),
            upstream,
            is_from_question,
        };
        Task {
            origin: Some(origin),
            ..Task::new(self.next_task_id(), request, now)
        }
    }

    /// Tells whether the cooldown is over. A last task in the future comes from a clock that jumped.
    pub(crate) fn is_cool(&self, now: Timestamp) -> bool {
        self.state
            .last_triggered_at
            .is_none_or(|last| last > now || after(last, self.cooldown.unwrap_or(0)) <= now)
    }
}

/// Returns the time so many seconds later.
pub(crate) fn after(time: Timestamp, seconds: u64) -> Timestamp {
    let later = time.checked_add(Duration::from_secs(seconds));
    later.unwrap_or(Timestamp::MAX)
}

/// Returns the first time after `now` that is a whole number of intervals after a planned one.
pub(crate) fn next_run(planned: Timestamp, interval: u64, now: Timestamp) -> Timestamp {
    let interval = i64::try_from(interval).unwrap_or(i64::MAX).max(1);
    let late = now.as_second().saturating_sub(planned.as_second());
    let steps = late.div_euclid(interval) + 1;
    let planned_second = planned
        .as_second()
        .saturating_add(steps.saturating_mul(interval));
    let next =
        Timestamp::new(planned_second, planned.subsec_nanosecond()).unwrap_or(Timestamp::MAX);
    match next > now {
        true => next,
        // The planned time has a fraction of a second.
        false => after(next, interval.unsigned_abs()),
    }
}

impl Record for Trigger {
    fn id(&self) -> &TaskId {
        &self.id
    }

    fn check(&self, folder: &str) -> Result<(), String> {
        let most = limits::MAX_TRIGGER_ID_CHARS;
        if self.id.as_str().len() > most {
            return Err(format!("the id is longer than {most} characters"));
        }
        let (mut interval, most) = (1, limits::MAX_TRIGGER_INTERVAL);
        let kind = match (&self.schedule, &self.condition) {
            (Some(TriggerSchedule::Recurring { interval: each, .. }), None) => {
                interval = *each;
                Some(TriggerKind::Recurring)
            }
            (Some(TriggerSchedule::Scheduled { .. }), None) => Some(TriggerKind::Scheduled),
            (None, Some(_)) => Some(TriggerKind::Conditional),
            _ => None,
        };
        if kind != Some(self.kind) {
            return Err("schedule and condition do not fit the type".into());
        }
        let checked = seconds("interval", interval, 1, most)
            .and_then(|_| seconds("cooldown", self.cooldown.unwrap_or(0), 0, most));
        checked.map_err(|error| error.message)?;
        self.task(Vec::new(), self.created_at).check(folder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_run_is_the_first_planned_one_in_the_future() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let check = |planned: &str, interval, now: &str, expected: &str| {
            assert_eq!(next_run(at(planned), interval, at(now)), at(expected));
        };
        check(
            "2026-01-01T00:01:00Z",
            60,
            "2026-01-01T00:01:00Z",
            "2026-01-01T00:02:00Z",
        );
        check(
            "2026-01-01T00:01:00Z",
            60,
            "2026-01-01T00:10:00Z",
            "2026-01-01T00:11:00Z",
        );
        check(
            "2026-01-01T00:01:00Z",
            60,
            "2026-01-01T00:10:59.5Z",
            "2026-01-01T00:11:00Z",
        );
        check(
            "2026-01-01T00:01:00.7Z",
            60,
            "2026-01-01T00:02:00.8Z",
            "2026-01-01T00:03:00.7Z",
        );
        check(
            "2026-01-01T00:01:00Z",
            86400,
            "2027-01-01T00:01:00Z",
            "2027-01-02T00:01:00Z",
        );
    }

    #[test]
    fn times_need_a_zone_and_numbers_their_range() {
        for text in ["tomorrow", "", "2026-01-31T09:00:00", "2026-01-31", "9"] {
            assert!(
                TriggerPlan::scheduled(text)
                    .unwrap_err()
                    .message
                    .starts_with("`run_at`"),
                "{text}"
            );
        }
        let time = TriggerPlan::scheduled("2026-01-31T09:00:00+08:00").unwrap();
        assert_eq!(
            time,
            TriggerPlan::scheduled("2026-01-31T01:00:00Z").unwrap()
        );
        for interval in [0, -5, i64::MIN, i64::MAX] {
            assert!(
                TriggerPlan::recurring(interval)
                    .unwrap_err()
                    .message
                    .starts_with("`interval`")
            );
        }
    }
}
