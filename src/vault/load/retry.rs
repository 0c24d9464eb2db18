//! When a store that could not be read is tried again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::error::{ErrorCode, ToolError};
use crate::limits;
use crate::vault::store::Store;

/// Whether and when that is. To ask for it blocks nobody.
pub(super) struct Retry {
    /// How long a store that could not be read is left alone.
    pause: Duration,
    next: Mutex<Next>,
}

/// What is waited for.
#[derive(Default)]
enum Next {
    /// Nothing: it could be read.
    #[default]
    Never,
    /// The end of a pause.
    Pause { since: Instant, length: Duration },
    /// An answer, since it let somebody wait; set when there was one. And the end of a pause.
    Answer {
        has_answered: Arc<AtomicBool>,
        since: Instant,
        pause: Duration,
    },
}

impl Retry {
    pub(super) fn new(pause: Duration) -> Self {
        Self {
            pause,
            next: Mutex::default(),
        }
    }

    /// Notes that the store could be read.
    pub(super) fn not_again(&self) {
        *self.next() = Next::Never;
    }

    /// Notes that the store said why it could not be read.
    pub(super) fn after(&self, error: &ToolError) {
        let length = match error.code {
            // That takes seconds each time.
            ErrorCode::KeyringTimeout | ErrorCode::WrongKey => self.slow_pause(),
            _ => self.pause,
        };
        *self.next() = Next::Pause {
            since: Instant::now(),
            length,
        };
    }

    /// Notes that the store let somebody wait. It is asked in the background from now on, until it answers. One that is
    /// slow answers that, and is left alone nevertheless.
    pub(super) fn once_it_answers(&self, store: Arc<dyn Store>, error: &ToolError, is_slow: bool) {
        let (since, pause) = match is_slow {
            true => (Instant::now(), self.slow_pause()),
            false => (Instant::now(), Duration::ZERO),
        };
        match watch(store, self.pause) {
            Some(has_answered) => {
                *self.next() = Next::Answer {
                    has_answered,
                    since,
                    pause,
                };
            }
            None => self.after(error),
        }
    }

    /// Whether the store let somebody wait, and did not answer since.
    pub(super) fn hangs(&self) -> bool {
        self.answer() == Some(false)
    }

    /// Whether the store let somebody wait, and has answered since.
    pub(super) fn has_answered(&self) -> bool {
        self.answer() == Some(true)
    }

    fn answer(&self) -> Option<bool> {
        match &*self.next() {
            Next::Answer { has_answered, .. } => Some(has_answered.load(Ordering::SeqCst)),
            Next::Never | Next::Pause { .. } => None,
        }
    }

    fn slow_pause(&self) -> Duration {
        self.pause.saturating_mul(limits::VAULT_SLOW_RETRY)
    }

    /// Whether a store that could not be read may be there by now.
    pub(super) fn is_due(&self) -> bool {
        match &*self.next() {
            Next::Never => false,
            Next::Pause { since, length } => since.elapsed() >= *length,
            Next::Answer {
                has_answered,
                since,
                pause,
            } => has_answered.load(Ordering::SeqCst) && since.elapsed() >= *pause,
        }
    }

    // A poisoned lock only means that another thread panicked between two changes.
    fn next(&self) -> MutexGuard<'_, Next> {
        self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a store that failed after a time let somebody wait.
pub(super) fn is_hanging(error: &ToolError, took: Duration) -> bool {
    // A bus gives up by itself, and later than is waited where nobody is there.
    let is_late = error.code == ErrorCode::KeyringUnavailable && took >= limits::KEYRING_TIMEOUT;
    error.code == ErrorCode::KeyringTimeout || is_late
}

/// Asks a store for its names, in a thread that ends when it answers or nobody wants to know any more.
fn watch(store: Arc<dyn Store>, pause: Duration) -> Option<Arc<AtomicBool>> {
    let has_answered = Arc::new(AtomicBool::new(false));
    let told = Arc::downgrade(&has_answered);
    let work = move || {
        while told.strong_count() > 0 {
            let start = Instant::now();
            let result = store.list();
            if !result.is_err_and(|error| is_hanging(&error, start.elapsed())) {
                if let Some(has_answered) = told.upgrade() {
                    has_answered.store(true, Ordering::SeqCst);
                }
                return;
            }
            std::thread::sleep(pause);
        }
    };
    let thread = std::thread::Builder::new().name("vault-watch".into());
    thread.spawn(work).is_ok().then_some(has_answered)
}
