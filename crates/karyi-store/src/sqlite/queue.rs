//! Queue of reads for the reader threads.
//!
//! An idle thread is woken only if none is waking up already; a thread that takes an item and leaves others
//! wakes the next one. So one or two threads answer a burst of short reads without a system call for each,
//! and a long read delays nobody.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Queue of items.
pub(super) struct Queue<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

struct State<T> {
    waiting: VecDeque<T>,
    /// Number of sleeping threads.
    idle: usize,
    /// True if a thread was woken and has not resumed yet.
    is_waking: bool,
    is_closed: bool,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        let state = State {
            waiting: VecDeque::new(),
            idle: 0,
            is_waking: false,
            is_closed: false,
        };
        Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }
}

impl<T> Queue<T> {
    /// Adds an item at the end.
    pub(super) fn add(&self, item: T) {
        let mut state = self.lock();
        state.waiting.push_back(item);
        self.wake_one(state);
    }

    /// Waits for the first item; `None` when the queue is closed and empty.
    pub(super) fn take(&self) -> Option<T> {
        let mut state = self.lock();
        loop {
            if let Some(item) = state.waiting.pop_front() {
                self.wake_one(state);
                return Some(item);
            }
            if state.is_closed {
                return None;
            }
            state.idle += 1;
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
            state.is_waking = false;
        }
    }

    /// Lets all threads end once the queue is empty.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// Wakes a sleeping thread if there are items left.
    fn wake_one(&self, mut state: MutexGuard<'_, State<T>>) {
        if state.waiting.is_empty() || state.idle == 0 || state.is_waking {
            return;
        }
        state.is_waking = true;
        drop(state);
        self.changed.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Barrier};

    #[test]
    fn everything_is_taken_once_and_then_the_threads_end() {
        let queue = Arc::new(Queue::default());
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let queue = Arc::clone(&queue);
                std::thread::spawn(move || {
                    std::iter::from_fn(|| queue.take()).collect::<Vec<u32>>()
                })
            })
            .collect();
        for item in 0..10_000 {
            queue.add(item);
        }
        queue.close();
        let taken = threads.into_iter().map(|thread| thread.join().unwrap());
        let mut taken: Vec<u32> = taken.flatten().collect();
        taken.sort_unstable();
        assert_eq!(taken, (0..10_000).collect::<Vec<u32>>());
    }

    #[test]
    fn long_items_run_in_parallel() {
        let queue = Arc::new(Queue::<Arc<Barrier>>::default());
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let queue = Arc::clone(&queue);
                std::thread::spawn(move || {
                    while let Some(all) = queue.take() {
                        all.wait();
                    }
                })
            })
            .collect();
        // Each waits for the three others.
        let all = Arc::new(Barrier::new(4));
        for _ in 0..4 {
            queue.add(Arc::clone(&all));
        }
        queue.close();
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
    }
}
