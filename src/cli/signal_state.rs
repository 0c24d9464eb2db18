//! Records received signals for the exit status of the program.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};

/// Received signals.
#[derive(Debug, Clone, Default)]
pub(super) struct SignalState {
    presses: Arc<AtomicU32>,
    ending: Arc<AtomicU8>,
    is_lent: Arc<AtomicBool>,
}

impl SignalState {
    /// Returns true when the user pressed Ctrl+C.
    pub(super) fn is_interrupted(&self) -> bool {
        self.presses.load(Ordering::SeqCst) > 0
    }

    /// Records a Ctrl+C, from a signal or a key during a question. Returns the number so far.
    pub(super) fn note_interrupt(&self) -> u32 {
        self.presses.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// Lends the terminal to another program, or takes it back.
    pub(super) fn lend(&self, is_lent: bool) {
        self.is_lent.store(is_lent, Ordering::SeqCst);
    }

    /// Returns true while another program has the terminal: Ctrl+C is for that one.
    pub(super) fn is_lent(&self) -> bool {
        self.is_lent.load(Ordering::SeqCst)
    }

    /// Records the signal that ends the program.
    pub(super) fn note_end(&self, signal: u8) {
        self.ending.store(signal, Ordering::SeqCst);
    }

    /// Returns the exit status of the signal that ends the program, if one came.
    pub(super) fn exit_code(&self) -> Option<u8> {
        match self.ending.load(Ordering::SeqCst) {
            0 => None,
            signal => Some(128 + signal),
        }
    }
}
