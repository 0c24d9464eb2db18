//! Consequences of the end of a session: the result of its task, and the event for the next session of the Teller.

use std::time::{Duration, Instant};

use karyi_core::limits;
use karyi_tasks::task_result::{Ending, FailureReason, TaskStatus};

use crate::supervisor::planner_end::PlannerEnd;
use crate::supervisor::session::SessionResult;
use crate::supervisor::told::word;

/// Returns the end of a task whose session ended so, within this time limit.
pub(super) fn task_ending(result: &SessionResult, limit: Duration) -> Ending {
    let failed = |text: &str| Ending::Failed(FailureReason::Error, text.to_owned());
    match result {
        SessionResult::Done(text) => Ending::Done(text.clone()),
        SessionResult::Planner(PlannerEnd::Done(text), staged) => {
            Ending::Planned(text.clone(), staged.clone())
        }
        SessionResult::Planner(PlannerEnd::NeedsInput(question), _) => {
            Ending::NeedsInput(question.clone())
        }
        SessionResult::Planner(PlannerEnd::Failed(error), _) => failed(error),
        SessionResult::Unreadable(reason) => {
            failed(&format!("its last message cannot be read: {reason}"))
        }
        SessionResult::TimeIsUp => {
            let whole = limit.as_secs() + u64::from(limit.subsec_nanos() > 0);
            Ending::TimedOut(whole.max(1))
        }
        SessionResult::Cancelled => Ending::Failed(
            FailureReason::Interrupted,
            "the supervisor ended while it ran".to_owned(),
        ),
        SessionResult::TokensUsedUp => failed("the tokens of the day are used up"),
        SessionResult::ModelFailed(reason) | SessionResult::Stuck(reason) => failed(reason),
        SessionResult::Asked => failed("only the Teller asks questions"),
    }
}

/// Returns status and text of the end of a task, for people.
pub(super) fn words(ending: &Ending) -> (&'static str, String) {
    let (status, text) = match ending {
        Ending::Done(text) | Ending::Planned(text, _) => (TaskStatus::Done, text.clone()),
        Ending::NeedsInput(question) => (TaskStatus::NeedsInput, question.question.clone()),
        Ending::TimedOut(limit) => {
            let text = format!("the time limit of {limit} s passed");
            (TaskStatus::Failed, text)
        }
        Ending::Failed(_, error) => (TaskStatus::Failed, error.clone()),
    };
    (word(status), text)
}

/// Pause of the Teller after its model failed; it doubles each time.
#[derive(Debug)]
pub(super) struct TellerPause {
    first: Duration,
    next: Duration,
    until: Option<Instant>,
}

impl TellerPause {
    pub(super) fn new(first: Duration) -> Self {
        Self {
            first,
            next: first,
            until: None,
        }
    }

    /// Returns the time that is left of the pause.
    pub(super) fn left(&self) -> Option<Duration> {
        let left = self.until?.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }

    /// Begins the next pause and returns it.
    pub(super) fn begin(&mut self) -> Duration {
        let pause = self.next;
        self.until = Some(Instant::now() + pause);
        self.next = (pause * 2).min(limits::MAX_MODEL_PAUSE.max(self.first));
        pause
    }

    /// Forgets the pauses.
    pub(super) fn reset(&mut self) {
        *self = Self::new(self.first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_five_minutes() {
        let mut pause = TellerPause::new(limits::MODEL_PAUSE);
        let begun: Vec<u64> = (0..8).map(|_| pause.begin().as_secs()).collect();
        assert_eq!(begun, [5, 10, 20, 40, 80, 160, 300, 300]);
        assert!(pause.left().is_some());
        pause.reset();
        assert_eq!((pause.left(), pause.begin().as_secs()), (None, 5));
    }

    #[test]
    fn a_limit_below_a_second_counts_as_one() {
        let limit = |text: &str| jiff::SignedDuration::from_millis(text.parse().unwrap());
        for (millis, expected) in [("200", 1), ("1000", 1), ("1500", 2)] {
            let limit = Duration::try_from(limit(millis)).unwrap();
            let ending = task_ending(&SessionResult::TimeIsUp, limit);
            assert_eq!(ending, Ending::TimedOut(expected));
        }
    }
}
