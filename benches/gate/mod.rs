//! What a bench must reach, as a ratio to its peer in the same run; absolute times mean nothing.

use std::ops::{Bound, RangeBounds};

/// Counts what was missed.
#[derive(Default)]
pub(crate) struct Gate {
    missed: u32,
}

impl Gate {
    /// Prints a ratio and whether it is in the range it must be in.
    pub(crate) fn check(&mut self, what: &str, ratio: f64, range: impl RangeBounds<f64>) {
        let is_reached = range.contains(&ratio);
        let verdict = if is_reached { "ok" } else { "MISSED" };
        let limit = match (range.start_bound(), range.end_bound()) {
            (_, Bound::Included(most) | Bound::Excluded(most)) => format!("at most {most}"),
            (Bound::Included(least) | Bound::Excluded(least), _) => format!("at least {least}"),
            (Bound::Unbounded, Bound::Unbounded) => "any".into(),
        };
        println!("{what:<44} {ratio:>7.2}   ({limit}: {verdict})");
        self.missed += u32::from(!is_reached);
    }

    /// Ends the bench with a failure when something was missed.
    pub(crate) fn close(self) {
        if self.missed > 0 {
            println!("{} ratios were missed", self.missed);
            std::process::exit(1);
        }
    }
}
