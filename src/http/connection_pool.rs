//! All connections of a server, and the clock that checks their timeouts.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::http::connection_state::{ConnectionState, TickLimits};
use karyi_core::limits;

/// Timeouts of connections.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionTimeouts {
    /// Interval of the clock.
    pub tick: Duration,
    /// Limits in normal operation.
    pub limits: TickLimits,
    /// Limits during shutdown.
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

/// All connections of a server.
pub struct ConnectionPool {
    timeouts: ConnectionTimeouts,
    ticks: Arc<AtomicU64>,
    is_ending: AtomicBool,
    open: Mutex<Vec<Arc<ConnectionState>>>,
}

impl ConnectionPool {
    /// Creates an empty pool.
    #[must_use]
    pub fn new(timeouts: ConnectionTimeouts) -> Self {
        Self {
            timeouts,
            ticks: Arc::default(),
            is_ending: AtomicBool::new(false),
            open: Mutex::default(),
        }
    }

    /// Tells whether the server is shutting down.
    #[must_use]
    pub fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::Relaxed)
    }

    /// Returns the limits that apply now.
    #[must_use]
    pub fn limits(&self) -> TickLimits {
        match self.is_ending() {
            true => self.timeouts.shutdown_limits,
            false => self.timeouts.limits,
        }
    }

    /// Adds a connection.
    pub fn add(&self) -> Arc<ConnectionState> {
        let state = Arc::new(ConnectionState::new(&self.ticks));
        self.lock().push(Arc::clone(&state));
        state
    }

    /// Removes a connection that has ended.
    pub fn remove(&self, state: &Arc<ConnectionState>) {
        let mut open = self.lock();
        if let Some(place) = open.iter().position(|other| Arc::ptr_eq(other, state)) {
            open.swap_remove(place);
        }
    }

    /// Starts the shutdown: idle connections close, busy ones get stricter limits.
    pub fn begin_shutdown(&self) {
        self.is_ending.store(true, Ordering::Relaxed);
        self.lock().iter().for_each(|state| state.wake());
    }

    /// Advances the clock and wakes connections that need a check, until the task is aborted.
    pub async fn run_clock(self: Arc<Self>) {
        loop {
            tokio::time::sleep(self.timeouts.tick).await;
            self.ticks.fetch_add(1, Ordering::Relaxed);
            let limits = self.limits();
            let open = self.lock();
            // A busy connection cannot see the end of the stream behind a pipelined request, so it
            // is woken.
            let is_due = |state: &&Arc<ConnectionState>| state.is_busy() || state.is_late(limits);
            open.iter().filter(is_due).for_each(|state| state.wake());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<ConnectionState>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
