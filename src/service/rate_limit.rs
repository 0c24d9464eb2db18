//! Rate limits of calls per tenant, and per principal, tenant and tool; limit of rejections in the
//! ledger.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use governor::clock::{Clock, DefaultClock};
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};

use crate::service::rejection::Rejection;
use karyi_core::limits;

/// Rate and burst of a token bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Calls added per second.
    pub per_second: NonZeroU32,
    /// Capacity of the bucket.
    pub burst: NonZeroU32,
}

impl Rate {
    /// Reads `RATE` or `RATE:BURST`; the burst defaults to the rate.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (rate, burst) = text.split_once(':').unwrap_or((text, text));
        Some(Self {
            per_second: rate.parse().ok()?,
            burst: burst.parse().ok()?,
        })
    }
}

type Buckets = RateLimiter<String, HashMapStateStore<String>, DefaultClock>;

/// Token buckets of one rate, by name.
pub struct Limiter {
    buckets: Buckets,
    clock: DefaultClock,
    swept: Mutex<Instant>,
}

impl Limiter {
    /// Creates full buckets.
    #[must_use]
    pub fn new(rate: Rate) -> Self {
        let quota = Quota::per_second(rate.per_second).allow_burst(rate.burst);
        Self {
            buckets: RateLimiter::hashmap(quota),
            clock: DefaultClock::default(),
            swept: Mutex::new(Instant::now()),
        }
    }

    /// Takes one token from a bucket.
    ///
    /// # Errors
    /// 429 if the bucket is empty, with whole seconds until it is not.
    pub fn consume(&self, bucket: &String, whose: &str) -> Result<(), Rejection> {
        self.buckets.check_key(bucket).map_err(|until| {
            let wait = until.wait_time_from(self.clock.now());
            let part = u64::from(wait.subsec_nanos() > 0);
            let seconds = (wait.as_secs() + part).max(1);
            let detail = format!("too many calls {whose}; try again in {seconds} s");
            Rejection::rate_limited(detail).with_retry_after(seconds)
        })
    }

    /// Drops full buckets from time to time, so that unused names take no memory.
    pub fn sweep(&self) {
        if let Ok(mut swept) = self.swept.try_lock()
            && swept.elapsed() >= limits::SWEEP_BUCKETS_EVERY
        {
            self.buckets.retain_recent();
            self.buckets.shrink_to_fit();
            *swept = Instant::now();
        }
    }
}

/// Limits how many rejections per second of one caller are recorded one by one; the rest are
/// counted.
pub struct RefusalLimiter<T> {
    most: u64,
    windows: Mutex<HashMap<String, CallerWindow<T>>>,
}

struct CallerWindow<T> {
    since: Instant,
    recorded: u64,
    suppressed: u64,
    /// The last suppressed rejection.
    last: Option<T>,
}

impl<T> CallerWindow<T> {
    fn take_suppressed(&mut self) -> Option<(T, u64)> {
        let count = std::mem::take(&mut self.suppressed);
        self.last.take().map(|last| (last, count))
    }
}

/// Records to write now.
#[derive(Debug, PartialEq, Eq)]
pub struct DueRecords<T> {
    /// The last suppressed rejection, and how many there were.
    pub suppressed: Option<(T, u64)>,
    /// The current rejection, unless it is suppressed.
    pub own: Option<T>,
}

impl<T> RefusalLimiter<T> {
    /// Creates a limiter that passes `most` rejections per second.
    #[must_use]
    pub fn new(most: u64) -> Self {
        Self {
            most,
            windows: Mutex::default(),
        }
    }

    /// Decides about one rejection of a caller.
    pub fn decide(&self, caller: &str, now: Instant, refusal: T) -> DueRecords<T> {
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = windows.entry(caller.to_owned()).or_insert(CallerWindow {
            since: now,
            recorded: 0,
            suppressed: 0,
            last: None,
        });
        let is_over = now.duration_since(entry.since) >= limits::FLOOD_WINDOW;
        let suppressed = if is_over {
            entry.take_suppressed()
        } else {
            None
        };
        if is_over {
            (entry.since, entry.recorded) = (now, 0);
        }
        let own = if entry.recorded < self.most {
            entry.recorded += 1;
            Some(refusal)
        } else {
            entry.suppressed += 1;
            entry.last = Some(refusal);
            None
        };
        DueRecords { suppressed, own }
    }

    /// Returns the suppressed rejections of callers who have been silent since.
    pub fn overdue(&self, now: Instant) -> Vec<(T, u64)> {
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        let mut overdue = Vec::new();
        windows.retain(|_, window| {
            let is_over = now.duration_since(window.since) >= limits::FLOOD_WINDOW;
            if is_over {
                overdue.extend(window.take_suppressed());
            }
            !is_over
        });
        overdue
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_bucket_is_empty_after_its_burst_and_others_are_not() {
        let limiter = Limiter::new(Rate::parse("1:5").unwrap());
        let consume = |bucket: &str| {
            let taken = limiter.consume(&bucket.to_owned(), "of this tool");
            taken.map_err(|rejection| rejection.retry_after)
        };
        for _ in 0..5 {
            assert_eq!(consume("a"), Ok(()));
        }
        assert_eq!(consume("a"), Err(Some(1)));
        assert_eq!(consume("b"), Ok(()));
    }

    #[test]
    fn rates_are_parsed() {
        assert_eq!(Rate::parse("0"), None);
        assert_eq!(Rate::parse("5:0"), None);
        assert_eq!(Rate::parse("x"), None);
        assert_eq!(
            Rate::parse("5").map(|r| (r.per_second.get(), r.burst.get())),
            Some((5, 5))
        );
        assert_eq!(
            Rate::parse("5:9").map(|r| (r.per_second.get(), r.burst.get())),
            Some((5, 9))
        );
    }

    #[test]
    fn suppressed_rejections_become_one_record_a_second() {
        let limiter = RefusalLimiter::new(2);
        let start = Instant::now();
        let decide = |caller: &str, at: Duration, refusal: u32| {
            let due = limiter.decide(caller, start + at, refusal);
            (due.suppressed, due.own)
        };
        let now = Duration::ZERO;
        let window = limits::FLOOD_WINDOW;
        assert_eq!(decide("a", now, 1), (None, Some(1)));
        assert_eq!(decide("a", now, 2), (None, Some(2)));
        assert_eq!(decide("a", now, 3), (None, None));
        assert_eq!(decide("a", now, 4), (None, None));
        assert_eq!(decide("b", now, 5), (None, Some(5)));
        assert_eq!(decide("a", window, 6), (Some((4, 2)), Some(6)));
        assert_eq!(decide("a", window, 7), (None, Some(7)));
        assert_eq!(decide("a", window, 8), (None, None));
        assert_eq!(limiter.overdue(start + window), vec![]);
        assert_eq!(limiter.overdue(start + window * 2), vec![(8, 1)]);
        assert_eq!(limiter.overdue(start + window * 2), vec![]);
    }
}
