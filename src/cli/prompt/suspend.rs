//! Stopping while a question stands on the terminal: whoever comes next finds it as it was.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::{Signal, raise};

/// The wish to be stopped, told by the signal and acted on by the question.
#[derive(Debug, Clone, Default)]
pub(in crate::cli) struct Suspension {
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    is_asking: AtomicBool,
    is_wanted: AtomicBool,
}

impl Suspension {
    /// Takes the signal. Where no question stands there is nothing to put in order first.
    pub(in crate::cli) fn signalled(&self) {
        if self.state.is_asking.load(Ordering::SeqCst) {
            self.state.is_wanted.store(true, Ordering::SeqCst);
        } else {
            stop();
        }
    }

    /// Says that a question stands on the terminal as long as the result lives.
    pub(super) fn ask(&self) -> Question<'_> {
        self.state.is_asking.store(true, Ordering::SeqCst);
        Question { state: &self.state }
    }
}

/// A question on the terminal.
pub(super) struct Question<'a> {
    state: &'a State,
}

impl Question<'_> {
    /// Whether the program is to be stopped.
    pub(super) fn is_wanted(&self) -> bool {
        self.state.is_wanted.load(Ordering::SeqCst)
    }

    /// Stops the program; returns when it goes on.
    pub(super) fn stop(&self) {
        self.state.is_wanted.store(false, Ordering::SeqCst);
        stop();
    }
}

impl Drop for Question<'_> {
    fn drop(&mut self) {
        self.state.is_asking.store(false, Ordering::SeqCst);
        if self.is_wanted() {
            self.stop();
        }
    }
}

fn stop() {
    // Nobody can catch or ignore it, so it cannot fail.
    let _ = raise(Signal::SIGSTOP);
}
