//! Value with one shard per thread, because processors that write to the same cache line slow each
//! other down.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Number of shards; more threads than these share some.
const PARTS: usize = 16;

/// Threads that have a shard.
static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static PLACE: usize = THREADS.fetch_add(1, Ordering::Relaxed) % PARTS;
}

/// Shard on a cache line of its own.
#[derive(Default)]
#[repr(align(128))]
struct Part<T>(Mutex<T>);

/// Shards for all threads.
#[derive(Default)]
pub(super) struct Shards<T>([Part<T>; PARTS]);

impl<T> Shards<T> {
    /// Returns the shard of this thread.
    pub(super) fn own(&self) -> MutexGuard<'_, T> {
        let [first, ..] = &self.0;
        let own = self.0.get(PLACE.with(|place| *place));
        lock(own.unwrap_or(first))
    }

    /// Returns all shards, one after another.
    pub(super) fn all(&self) -> impl Iterator<Item = MutexGuard<'_, T>> {
        self.0.iter().map(lock)
    }
}

fn lock<T>(part: &Part<T>) -> MutexGuard<'_, T> {
    part.0.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_sum_up() {
        let shards = Shards::<u64>::default();
        std::thread::scope(|scope| {
            for _ in 0..2 * PARTS {
                scope.spawn(|| (0..100).for_each(|_| *shards.own() += 1));
            }
        });
        let sum: u64 = shards.all().map(|part| *part).sum();
        assert_eq!(sum, 200 * PARTS as u64);
    }
}
