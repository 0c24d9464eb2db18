//! Pauses of a supervisor's work.

use std::time::Duration;

use jiff::Timestamp;
use karyi_core::limits;

/// Pauses of the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pauses {
    /// Pause before a failed task runs again.
    pub retry: Duration,
    /// Shortest time between two questions about conditions to a model.
    pub question: Duration,
}

impl Default for Pauses {
    fn default() -> Self {
        Self {
            retry: limits::TASK_RETRY_PAUSE,
            question: limits::CONDITION_QUESTION_PAUSE,
        }
    }
}

impl Pauses {
    /// Returns the time at which a task that failed now runs again.
    pub(crate) fn retry_at(&self, now: Timestamp) -> Timestamp {
        now.checked_add(self.retry).unwrap_or(Timestamp::MAX)
    }

    /// Returns the time from which on a model may be asked again.
    pub(crate) fn question_at(&self, last: Timestamp) -> Timestamp {
        last.checked_add(self.question).unwrap_or(Timestamp::MAX)
    }
}
