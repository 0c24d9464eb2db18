//! All connections of a server, and the clock by which they are looked at.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::http::wire::{Line, Patience};
use karyi_core::limits;

/// How long clients may take.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// How often connections are looked at.
    pub tick: Duration,
    /// For heads and answers.
    pub patience: Patience,
    /// The same for answers when the server ends.
    pub patience_at_end: Patience,
}

impl Default for Times {
    fn default() -> Self {
        let tick = limits::CONNECTION_TICK.as_secs().max(1);
        let ticks = |time: Duration| time.as_secs() / tick;
        let patience = Patience {
            head: ticks(limits::HEAD_TIMEOUT),
            answer: ticks(limits::ANSWER_TIMEOUT),
        };
        Self {
            tick: limits::CONNECTION_TICK,
            patience,
            patience_at_end: Patience {
                answer: ticks(limits::LAST_ANSWER_TIMEOUT),
                ..patience
            },
        }
    }
}

/// All connections.
pub struct Lines {
    times: Times,
    ticks: Arc<AtomicU64>,
    is_ending: AtomicBool,
    open: Mutex<Vec<Arc<Line>>>,
}

impl Lines {
    /// Makes it of no connection.
    #[must_use]
    pub fn new(times: Times) -> Self {
        Self {
            times,
            ticks: Arc::default(),
            is_ending: AtomicBool::new(false),
            open: Mutex::default(),
        }
    }

    /// Whether no connection is to stay longer than it must.
    #[must_use]
    pub fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::Relaxed)
    }

    /// Returns how long a client may take now.
    #[must_use]
    pub fn patience(&self) -> Patience {
        match self.is_ending() {
            true => self.times.patience_at_end,
            false => self.times.patience,
        }
    }

    /// Adds one.
    pub fn add(&self) -> Arc<Line> {
        let line = Arc::new(Line::new(&self.ticks));
        self.lock().push(Arc::clone(&line));
        line
    }

    /// Takes one out that has ended.
    pub fn remove(&self, line: &Arc<Line>) {
        let mut open = self.lock();
        if let Some(place) = open.iter().position(|other| Arc::ptr_eq(other, line)) {
            open.swap_remove(place);
        }
    }

    /// Ends all that wait for a request, and hurries the others.
    pub fn end(&self) {
        self.is_ending.store(true, Ordering::Relaxed);
        self.lock().iter().for_each(|line| line.wake());
    }

    /// Has those look at themselves who may have something to see, over and over.
    pub async fn keep(self: Arc<Self>) {
        loop {
            tokio::time::sleep(self.times.tick).await;
            self.ticks.fetch_add(1, Ordering::Relaxed);
            let patience = self.patience();
            let open = self.lock();
            // Behind the next request the end of the stream is not seen at once.
            let is_due = |line: &&Arc<Line>| line.is_busy() || line.is_late(patience);
            open.iter().filter(is_due).for_each(|line| line.wake());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Line>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
