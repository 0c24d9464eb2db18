//! Settings of a supervisor.

use std::time::Duration;

use karyi_core::limits;
use karyi_tasks::pauses::Pauses;
use karyi_tasks::task::Aging;

/// Settings of a supervisor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SupervisorSettings {
    /// Workers at a time.
    pub workers: usize,
    /// Tokens of a day, in UTC.
    pub max_tokens_per_day: u64,
    /// Effect of waiting on the order of tasks.
    pub aging: Aging,
    /// Times of the loop.
    pub intervals: Intervals,
    /// Pauses of tasks and conditions.
    pub pauses: Pauses,
    /// Limits of the Teller.
    pub teller: RoleLimits,
    /// Limits of a Planner.
    pub planner: RoleLimits,
    /// Limits of a Worker.
    pub worker: RoleLimits,
}

/// Times of the loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Intervals {
    /// Time between two looks that nothing wakes.
    pub tick: Duration,
    /// Time that the Teller waits for another message.
    pub debounce: Duration,
    /// First pause of the Teller after its model failed.
    pub model_pause: Duration,
}

/// Limits of the sessions of a role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoleLimits {
    /// Longest time, where a task names none.
    pub timeout: Duration,
    /// Most requests to the model.
    pub steps: u64,
}

impl Default for SupervisorSettings {
    fn default() -> Self {
        let limits = |timeout, steps| RoleLimits { timeout, steps };
        Self {
            workers: limits::WORKERS,
            max_tokens_per_day: limits::MAX_TOKENS_PER_DAY,
            aging: Aging::Off,
            intervals: Intervals {
                tick: limits::SUPERVISOR_TICK,
                debounce: limits::INPUT_DEBOUNCE,
                model_pause: limits::MODEL_PAUSE,
            },
            pauses: Pauses::default(),
            teller: limits(limits::TELLER_TIMEOUT, limits::TELLER_STEPS),
            planner: limits(limits::PLANNER_TIMEOUT, limits::PLANNER_STEPS),
            worker: limits(limits::WORKER_TIMEOUT, limits::WORKER_STEPS),
        }
    }
}
