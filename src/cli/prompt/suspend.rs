//! Stopping while a question stands on the terminal: whoever comes next finds it as it was, and the
//! question comes again.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nix::sys::signal::{Signal, raise};

/// The wish to be stopped, told by the signal and acted on by the question.
#[derive(Debug, Clone, Default)]
pub(in crate::cli) struct Suspension {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    is_asking: bool,
    is_wanted: bool,
    /// Whether the program goes on after somebody stopped it who asked nobody.
    has_gone_on: bool,
    /// Whether the program stopped itself: it knows by itself that it goes on.
    has_stopped: bool,
}

impl State {
    /// Stops the program; returns when it goes on.
    fn stop(&mut self) {
        self.is_wanted = false;
        self.has_stopped = true;
        // Nobody can catch or ignore it, so it cannot fail.
        let _ = raise(Signal::SIGSTOP);
    }
}

impl Suspension {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the signal that stops. Where no question stands there is nothing to put in order first.
    pub(in crate::cli) fn signalled(&self) {
        let mut state = self.state();
        if state.is_asking {
            state.is_wanted = true;
        } else {
            state.stop();
        }
    }

    /// Takes the signal to go on.
    pub(in crate::cli) fn continued(&self) {
        let mut state = self.state();
        let knows = std::mem::take(&mut state.has_stopped);
        state.has_gone_on |= state.is_asking && !knows;
    }

    /// Says that a question stands on the terminal as long as the result lives.
    pub(super) fn ask(&self) -> Question<'_> {
        let mut state = self.state();
        state.is_asking = true;
        state.has_gone_on = false;
        Question { suspension: self }
    }
}

/// A question on the terminal.
pub(super) struct Question<'a> {
    suspension: &'a Suspension,
}

impl Question<'_> {
    /// Whether the program is to be stopped.
    pub(super) fn is_wanted(&self) -> bool {
        self.suspension.state().is_wanted
    }

    /// Whether the program was stopped and goes on, and the question did not know of it.
    pub(super) fn has_gone_on(&self) -> bool {
        std::mem::take(&mut self.suspension.state().has_gone_on)
    }

    /// Stops the program; returns when it goes on.
    pub(super) fn stop(&self) {
        self.suspension.state().stop();
    }
}

impl Drop for Question<'_> {
    fn drop(&mut self) {
        let mut state = self.suspension.state();
        state.is_asking = false;
        if state.is_wanted {
            state.stop();
        }
    }
}
