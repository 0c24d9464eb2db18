//! All connections of a server, and the clock by which they are looked at.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::http::connection_state::{ConnectionState, TickLimits};
use karyi_core::limits;

/// How long clients may take.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionTimeouts {
    /// How often connections are looked at.
    pub tick: Duration,
    /// For heads and answers.
    pub limits: TickLimits,
    /// The same for answers when the server ends.
    pub shutdown_limits: TickLimits,
}

impl Default for ConnectionTimeouts {
    fn default() -> Self {
        let tick = limits::CONNECTION_TICK.as_secs().max(1);
        let ticks = |time: Duration| time.as_secs() / tick;
        let ticks_allowed = TickLimits {
            head: ticks(limits::HEAD_TIMEOUT),
            answer: ticks(limits::ANSWER_TIMEOUT),
        };
        Self {
            tick: limits::CONNECTION_TICK,
            limits: ticks_allowed,
            shutdown_limits: TickLimits {
                answer: ticks(limits::LAST_ANSWER_TIMEOUT),
                ..ticks_allowed
            },
        }
    }
}

/// All connections.
pub struct ConnectionPool {
    timeouts: ConnectionTimeouts,
    ticks: Arc<AtomicU64>,
    is_ending: AtomicBool,
    open: Mutex<Vec<Arc<ConnectionState>>>,
}

impl ConnectionPool {
    /// Makes it of no connection.
    #[must_use]
    pub fn new(timeouts: ConnectionTimeouts) -> Self {
        Self {
            timeouts,
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
    pub fn limits(&self) -> TickLimits {
        match self.is_ending() {
            true => self.timeouts.shutdown_limits,
            false => self.timeouts.limits,
        }
    }

    /// Adds one.
    pub fn add(&self) -> Arc<ConnectionState> {
        let state = Arc::new(ConnectionState::new(&self.ticks));
        self.lock().push(Arc::clone(&state));
        state
    }

    /// Takes one out that has ended.
    pub fn remove(&self, state: &Arc<ConnectionState>) {
        let mut open = self.lock();
        if let Some(place) = open.iter().position(|other| Arc::ptr_eq(other, state)) {
            open.swap_remove(place);
        }
    }

    /// Ends all that wait for a request, and hurries the others.
    pub fn end(&self) {
        self.is_ending.store(true, Ordering::Relaxed);
        self.lock().iter().for_each(|state| state.wake());
    }

    /// Has those look at themselves who may have something to see, over and over.
    pub async fn run_clock(self: Arc<Self>) {
        loop {
            tokio::time::sleep(self.timeouts.tick).await;
            self.ticks.fetch_add(1, Ordering::Relaxed);
            let limits = self.limits();
            let open = self.lock();
            // Behind the next request the end of the stream is not seen at once.
            let is_due = |state: &&Arc<ConnectionState>| state.is_busy() || state.is_late(limits);
            open.iter().filter(is_due).for_each(|state| state.wake());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<ConnectionState>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
