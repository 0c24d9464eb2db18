//! How long a question waits for its answer. Time in which the program was stopped does not count: nobody
//! could answer then.

use std::cell::Cell;
use std::time::{Duration, Instant};

use crate::limits;

/// Time that runs out while it is looked at, which whoever waits does often.
pub(super) struct Patience {
    left: Cell<Duration>,
    last: Cell<Instant>,
}

impl Patience {
    /// Starts with so much time.
    pub(super) fn new(limit: Duration) -> Self {
        Self {
            left: Cell::new(limit),
            last: Cell::new(Instant::now()),
        }
    }

    /// Whether nothing of it is left.
    pub(super) fn is_over(&self) -> bool {
        self.is_over_at(Instant::now())
    }

    fn is_over_at(&self, now: Instant) -> bool {
        let passed = now.saturating_duration_since(self.last.replace(now));
        // Whoever runs looks more often. The clock of the system goes on while a program is stopped.
        let counted = passed.min(limits::PROMPT_STEP);
        self.left.set(self.left.get().saturating_sub(counted));
        self.left.get().is_zero()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_of_a_stopped_program_does_not_count() {
        let patience = Patience::new(limits::PROMPT_TIMEOUT);
        let mut now = patience.last.get();
        let mut steps = |time: Duration, step: Duration| {
            (0..).take_while(|number| step * *number < time).any(|_| {
                now += step;
                patience.is_over_at(now)
            })
        };
        let (some, hour) = (Duration::from_secs(3), Duration::from_secs(3600));
        assert!(!steps(limits::PROMPT_TIMEOUT - some, limits::KEY_WAIT));
        assert!(!steps(hour, hour), "stopped for an hour");
        assert!(steps(some, limits::KEY_WAIT));
    }
}
