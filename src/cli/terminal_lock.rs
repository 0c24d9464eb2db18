//! The terminal lock: who may write to the terminal now, the report or a question.
//!
//! A question waits until the report shows everything that was told before it, so that nobody is
//! asked about something the screen does not show yet; the report then waits for the answer.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::task::Poll;

use tokio::sync::mpsc;

use crate::exec::Event;
use crate::exec::cancel::Cancel;
use karyi_core::limits;
use karyi_vault::redact::Redacted;

/// What is told to a report.
pub(super) type Told = Redacted<Event>;

/// The right to write to the terminal; the report and the questions of one run share it.
#[derive(Clone, Default)]
pub(super) struct TerminalLock {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The way to the report, while there is one.
    report: Option<mpsc::WeakSender<Told>>,
    /// How many events the report was given and has written.
    written: u64,
    /// How many of them come before the question that waits.
    wanted: Option<u64>,
    /// Whether a question has the terminal.
    is_taken: bool,
}

impl State {
    /// Returns how many events were told and are not written.
    fn waiting(&self) -> u64 {
        let report = self.report.as_ref().and_then(mpsc::WeakSender::upgrade);
        match report.filter(|report| !report.is_closed()) {
            Some(report) => (report.max_capacity() - report.capacity()) as u64,
            None => 0,
        }
    }

    /// Whether the report shows everything that comes before the question that waits.
    fn is_caught_up(&self) -> bool {
        self.wanted.is_some_and(|wanted| self.written >= wanted)
    }
}

/// The terminal_lock in the hands of a question, until it is dropped.
pub(super) struct Held {
    shared: Arc<Shared>,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.shared.lock().is_taken = false;
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        // A run that ends, or a report that broke, tells nobody.
        let waited = self.changed.wait_timeout(state, limits::TERMINAL_LOCK_STEP);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

impl TerminalLock {
    /// Takes the terminal for a question, once the report shows everything it was told before. It blocks.
    /// Returns nothing when the run is to end.
    pub(super) fn take(&self, cancel: &Cancel) -> Option<Held> {
        let mut state = self.shared.lock();
        while state.is_taken || state.wanted.is_some() {
            if cancel.is_cancelled() {
                return None;
            }
            state = self.shared.wait(state);
        }
        state.wanted = Some(state.written + state.waiting());
        while !state.is_caught_up() && state.waiting() > 0 && !cancel.is_cancelled() {
            state = self.shared.wait(state);
        }
        state.wanted = None;
        state.is_taken = !cancel.is_cancelled();
        let is_taken = state.is_taken;
        drop(state);
        self.shared.changed.notify_all();
        is_taken.then(|| Held {
            shared: Arc::clone(&self.shared),
        })
    }

    /// Whether nobody writes and no question has the terminal or waits for it. It never blocks.
    pub(super) fn is_free(&self) -> bool {
        let state = match self.shared.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return false,
        };
        !state.is_taken && state.wanted.is_none()
    }

    /// Says where the report is told what it shows.
    pub(super) fn hear(&self, report: &mpsc::Sender<Told>) {
        self.shared.lock().report = Some(report.downgrade());
    }

    /// Gives the next event to the report while no question has the terminal. Returns what the report
    /// makes of it; nothing when no more is told.
    ///
    /// An event leaves the channel and is written under one lock: in between it would be neither
    /// waiting nor shown.
    pub(super) async fn next<T>(
        &self,
        events: &mut mpsc::Receiver<Told>,
        mut write: impl FnMut(Told) -> T,
    ) -> Option<T> {
        std::future::poll_fn(|context| {
            let mut state = self.shared.lock();
            while state.is_taken || state.is_caught_up() {
                state = self.shared.wait(state);
            }
            let Poll::Ready(event) = events.poll_recv(context) else {
                return Poll::Pending;
            };
            let made = event.map(&mut write);
            state.written += 1;
            drop(state);
            self.shared.changed.notify_all();
            Poll::Ready(made)
        })
        .await
    }
}

#[cfg(test)]
mod tests;
