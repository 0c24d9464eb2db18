//! Times of one contestant, and what they come to.

use std::time::{Duration, Instant};

/// Times of the same act, done again and again.
#[derive(Debug, Default)]
pub(crate) struct Samples(Vec<Duration>);

impl Samples {
    /// Acts once and keeps how long it took.
    pub(crate) fn time(&mut self, act: impl FnOnce()) {
        let start = Instant::now();
        act();
        self.push(start.elapsed());
    }

    /// Keeps a time measured elsewhere.
    pub(crate) fn push(&mut self, time: Duration) {
        self.0.push(time);
    }

    /// Returns the time that a share of all did not exceed, 0.5 for the median, in seconds.
    pub(crate) fn quantile(&self, share: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort();
        let last = sorted.len().saturating_sub(1);
        let index = (last as f64 * share).round() as usize;
        sorted.get(index).map_or(f64::NAN, Duration::as_secs_f64)
    }

    /// Returns the median in seconds.
    pub(crate) fn median(&self) -> f64 {
        self.quantile(0.5)
    }
}

/// Returns the median of numbers.
pub(crate) fn median(numbers: &[f64]) -> f64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}
