//! Stopping while a question stands on the terminal: whoever comes next finds it as it was, and the
//! question comes again.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nix::sys::signal::{Signal, killpg, raise};
use nix::unistd::{getpgid, getpgrp, getppid, getsid};

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
    /// How often the program went on.
    times: u64,
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
        state.times = state.times.wrapping_add(1);
        let knows = std::mem::take(&mut state.has_stopped);
        state.has_gone_on |= state.is_asking && !knows;
    }

    /// Returns how often the program went on, as far as it was told.
    pub(super) fn times(&self) -> u64 {
        self.state().times
    }

    /// Says that a question stands on the terminal as long as the result lives.
    pub(super) fn ask(&self) -> Question<'_> {
        let mut state = self.state();
        state.is_asking = true;
        state.has_gone_on = false;
        Question { suspension: self }
    }
}

/// Stops the program and all of its job as Ctrl+Z does, which is no signal while a question stands. Where
/// no shell waits for the job nobody would let it go on again.
pub(super) fn stop_job() {
    let parent = Some(getppid());
    let has_shell = getsid(parent).is_ok_and(|session| getsid(None) == Ok(session))
        && getpgid(parent).is_ok_and(|group| group != getpgrp());
    if has_shell {
        // The program hears of it as of every signal; whoever it cannot be sent to is stopped by nobody.
        let _ = killpg(getpgrp(), Signal::SIGTSTP);
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

    /// Whether the program was stopped and goes on, and the question did not know of it until now.
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
