//! Questions that wait for a thread.
//!
//! A thread that is idle is woken only when none is on its way already; one that takes a question and
//! leaves others behind wakes the next. So a burst of short questions is answered by one or two
//! threads without a system call for each, and a long one holds up nobody.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// What waits, in order.
pub(super) struct Queue<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

struct State<T> {
    waiting: VecDeque<T>,
    /// Threads that sleep.
    idle: usize,
    /// True if a thread was woken and has not come yet.
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
    /// Adds one item at the end.
    pub(super) fn add(&self, item: T) {
        let mut state = self.lock();
        state.waiting.push_back(item);
        self.wake_one(state);
    }

    /// Takes the first item; waits for one. Nothing when the queue was closed and is empty.
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

    /// Ends the waiting of all threads once the queue is empty.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// Wakes a thread when there is something left to take and one that sleeps.
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
    fn items_that_take_long_are_worked_on_at_the_same_time() {
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
