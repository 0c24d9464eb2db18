//! Arbitrates the terminal between the report, questions and the keyboard of commands.
//!
//! A question waits until the report has written all events before it, so that the user sees what the
//! question is about; the report then waits for the answer. The keyboard is given back before a question.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::task::Poll;

use tokio::sync::mpsc;

use crate::exec::Event;
use crate::exec::cancel::Cancel;
use karyi_core::limits;
use karyi_vault::redact::Redacted;

/// An event for the report.
pub(super) type ReportEvent = Redacted<Event>;

/// The right to write to the terminal, shared by the report and the questions of a run.
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
    /// Channel to the report, while there is one.
    report: Option<mpsc::WeakSender<ReportEvent>>,
    /// Number of events the report has received and written.
    written: u64,
    /// Number of events before the waiting question.
    events_before_question: Option<u64>,
    /// True while a question has the terminal.
    is_held: bool,
    /// True while the keyboard is read for commands.
    reads_keys: bool,
}

impl State {
    /// Returns the number of events sent and not written.
    fn waiting(&self) -> u64 {
        let report = self.report.as_ref().and_then(mpsc::WeakSender::upgrade);
        match report.filter(|report| !report.is_closed()) {
            Some(report) => (report.max_capacity() - report.capacity()) as u64,
            None => 0,
        }
    }

    /// Returns true when the report has written all events before the waiting question.
    fn is_caught_up(&self) -> bool {
        self.events_before_question
            .is_some_and(|events_before_question| self.written >= events_before_question)
    }

    /// Returns true when a question has or waits for the terminal.
    fn has_question(&self) -> bool {
        self.is_held || self.events_before_question.is_some()
    }
}

/// The terminal lock while a question holds it.
pub(super) struct TerminalGuard {
    shared: Arc<Shared>,
}

impl Drop for TerminalGuard {
    fn drop(&mut self) {
        self.shared.lock().is_held = false;
        self.shared.changed.notify_all();
    }
}

/// The keyboard while keys are read for commands.
pub(super) struct KeysGuard {
    shared: Arc<Shared>,
}

impl KeysGuard {
    /// Returns true while no question waits for the keyboard.
    pub(super) fn goes_on(&self) -> bool {
        !self.shared.lock().has_question()
    }
}

impl Drop for KeysGuard {
    fn drop(&mut self) {
        self.shared.lock().reads_keys = false;
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        // A run that ends, or a broken report, wakes nobody.
        let waited = self.changed.wait_timeout(state, limits::TERMINAL_LOCK_STEP);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

impl TerminalLock {
    /// Locks the terminal for a question, once the report has written all earlier events. Blocks. Returns `None`
    /// when the run is cancelled.
    pub(super) fn lock_for_question(&self, cancel: &Cancel) -> Option<TerminalGuard> {
        let mut state = self.shared.lock();
        while state.has_question() {
            if cancel.is_cancelled() {
                return None;
            }
            state = self.shared.wait(state);
        }
        state.events_before_question = Some(state.written + state.waiting());
        while (state.reads_keys || !state.is_caught_up() && state.waiting() > 0)
            && !cancel.is_cancelled()
        {
            state = self.shared.wait(state);
        }
        state.events_before_question = None;
        state.is_held = !cancel.is_cancelled();
        let is_held = state.is_held;
        drop(state);
        self.shared.changed.notify_all();
        is_held.then(|| TerminalGuard {
            shared: Arc::clone(&self.shared),
        })
    }

    /// Locks the keyboard for commands. Returns `None` when a question has or waits for the terminal, after a moment.
    pub(super) fn lock_for_keys(&self) -> Option<KeysGuard> {
        let mut state = self.shared.lock();
        if state.has_question() {
            state = self.shared.wait(state);
        }
        state.reads_keys = !state.has_question();
        state.reads_keys.then(|| KeysGuard {
            shared: Arc::clone(&self.shared),
        })
    }

    /// Returns true when nothing writes and no question has or waits for the terminal. Never blocks.
    pub(super) fn is_free(&self) -> bool {
        let state = match self.shared.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return false,
        };
        !state.has_question()
    }

    /// Sets the channel to the report.
    pub(super) fn attach_report(&self, report: &mpsc::Sender<ReportEvent>) {
        self.shared.lock().report = Some(report.downgrade());
    }

    /// Passes the next event to the report while no question has the terminal. Returns the result of `write`, or
    /// `None` when the channel is closed.
    ///
    /// An event leaves the channel and is written under one lock: otherwise it would count as neither waiting nor
    /// written.
    pub(super) async fn next<T>(
        &self,
        events: &mut mpsc::Receiver<ReportEvent>,
        mut write: impl FnMut(ReportEvent) -> T,
    ) -> Option<T> {
        std::future::poll_fn(|context| {
            let mut state = self.shared.lock();
            while state.is_held || state.is_caught_up() {
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
