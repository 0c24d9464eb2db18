//! How often somebody may call: one bucket per tenant, one per principal, tenant and tool.

use std::num::NonZeroU32;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use governor::clock::{Clock, DefaultClock};
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};

use crate::limits;

/// So many calls in a second, and so many at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Calls that are added in a second.
    pub per_second: NonZeroU32,
    /// Calls the bucket holds.
    pub burst: NonZeroU32,
}

impl Rate {
    /// Reads `RATE` or `RATE:BURST`; the burst is the rate when absent.
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

/// Buckets of one rate, by name.
pub struct Limiter {
    buckets: Buckets,
    clock: DefaultClock,
    swept: Mutex<Instant>,
}

impl Limiter {
    /// Makes the buckets; all are full.
    #[must_use]
    pub fn new(rate: Rate) -> Self {
        let quota = Quota::per_second(rate.per_second).allow_burst(rate.burst);
        Self {
            buckets: RateLimiter::hashmap(quota),
            clock: DefaultClock::default(),
            swept: Mutex::new(Instant::now()),
        }
    }

    /// Takes one from a bucket.
    ///
    /// # Errors
    /// It is empty: the whole seconds after which it is not, at least 1.
    pub fn take(&self, bucket: String) -> Result<(), u64> {
        self.sweep();
        self.buckets.check_key(&bucket).map_err(|until| {
            let wait = until.wait_time_from(self.clock.now());
            let part = u64::from(wait.subsec_nanos() > 0);
            (wait.as_secs() + part).max(1)
        })
    }

    /// Forgets full buckets, so that names nobody uses take no room.
    fn sweep(&self) {
        if let Ok(mut swept) = self.swept.try_lock()
            && swept.elapsed() >= limits::SWEEP_BUCKETS_EVERY
        {
            self.buckets.retain_recent();
            self.buckets.shrink_to_fit();
            *swept = Instant::now();
        }
    }
}

/// Lets so many refusals per second and caller into the ledger one by one; the rest are counted.
pub struct Flood {
    most: u64,
    seen: Mutex<std::collections::HashMap<String, Seen>>,
}

struct Seen {
    since: Instant,
    told: u64,
    held: u64,
}

/// What to do with a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// Write one record that stands for so many.
    Write(u64),
    /// It is counted in a later one.
    Hold,
}

impl Flood {
    /// Makes a gate that lets so many through in a second.
    #[must_use]
    pub fn new(most: u64) -> Self {
        Self {
            most,
            seen: Mutex::default(),
        }
    }

    /// Decides about one refusal of a caller.
    pub fn decide(&self, caller: &str, now: Instant) -> Entry {
        let mut seen = self
            .seen
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let entry = seen.entry(caller.to_owned()).or_insert(Seen {
            since: now,
            told: 0,
            held: 0,
        });
        if now.duration_since(entry.since) >= limits::FLOOD_WINDOW {
            let held = std::mem::take(&mut entry.held);
            (entry.since, entry.told) = (now, 1);
            return Entry::Write(held + 1);
        }
        if entry.told < self.most {
            entry.told += 1;
            return Entry::Write(1);
        }
        entry.held += 1;
        Entry::Hold
    }

    /// Takes out what was held back for callers who have been silent since.
    pub fn overdue(&self, now: Instant) -> Vec<(String, u64)> {
        let mut seen = self
            .seen
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let is_old = |seen: &Seen, window: Duration| now.duration_since(seen.since) >= window;
        let mut overdue = Vec::new();
        seen.retain(|caller, seen| {
            let is_old = is_old(seen, limits::FLOOD_WINDOW);
            if is_old && seen.held > 0 {
                overdue.push((caller.clone(), seen.held));
            }
            !is_old
        });
        overdue
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_empty_after_its_burst_and_others_are_not() {
        let limiter = Limiter::new(Rate::parse("1:5").unwrap());
        for _ in 0..5 {
            assert_eq!(limiter.take("a".into()), Ok(()));
        }
        assert_eq!(limiter.take("a".into()), Err(1));
        assert_eq!(limiter.take("b".into()), Ok(()));
    }

    #[test]
    fn rates_are_read() {
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
    fn a_flood_becomes_one_record_a_second() {
        let flood = Flood::new(2);
        let start = Instant::now();
        let decide = |caller: &str, at: Duration| flood.decide(caller, start + at);
        let now = Duration::ZERO;
        let window = limits::FLOOD_WINDOW;
        assert_eq!(decide("a", now), Entry::Write(1));
        assert_eq!(decide("a", now), Entry::Write(1));
        assert_eq!(decide("a", now), Entry::Hold);
        assert_eq!(decide("a", now), Entry::Hold);
        assert_eq!(decide("b", now), Entry::Write(1));
        assert_eq!(decide("a", window), Entry::Write(3));
        assert_eq!(decide("a", window), Entry::Write(1));
        assert_eq!(decide("a", window), Entry::Hold);
        assert_eq!(flood.overdue(start + window), vec![]);
        assert_eq!(flood.overdue(start + window * 2), vec![("a".to_owned(), 1)]);
        assert_eq!(flood.overdue(start + window * 2), vec![]);
    }
}
