//! Ctrl+C and the signals that end the program.
//!
//! The first Ctrl+C interrupts the job in the session's foreground; a second one, or the first when
//! no job runs, cancels the run. SIGTERM, SIGHUP and SIGQUIT cancel the run at once. In every case the
//! session is closed and the terminal left as it was. SIGTSTP stops the program once no question
//! stands on the terminal.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::cli::prompt::Suspension;
use crate::exec::cancel::Cancel;
use crate::tool::sessions::Sessions;

/// Remembers which signals came.
#[derive(Debug, Clone, Default)]
pub(super) struct Received {
    presses: Arc<AtomicU32>,
    ending: Arc<AtomicU8>,
}

impl Received {
    /// Whether the user pressed Ctrl+C.
    pub(super) fn is_interrupted(&self) -> bool {
        self.presses.load(Ordering::SeqCst) > 0
    }

    /// Takes note of a Ctrl+C that was a key and no signal: a question stood on the terminal.
    pub(super) fn note_interrupt(&self) {
        self.presses.fetch_add(1, Ordering::SeqCst);
    }

    /// Returns the exit status of the signal that ends the program, if one came.
    pub(super) fn exit_code(&self) -> Option<u8> {
        match self.ending.load(Ordering::SeqCst) {
            0 => None,
            signal => Some(128 + signal),
        }
    }
}

/// The signals, caught from the moment this exists.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
    quit: Signal,
    stop: Signal,
}

impl Signals {
    /// Starts to catch the signals.
    pub(super) fn catch() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            quit: signal(SignalKind::quit())?,
            stop: signal(SignalKind::from_raw(nix::libc::SIGTSTP))?,
        })
    }

    /// Acts on the signals until the task is aborted. It waits for nothing but them.
    pub(super) async fn watch(
        mut self,
        sessions: Arc<Sessions>,
        cancel: Cancel,
        received: Received,
        suspension: Suspension,
    ) {
        loop {
            tokio::select! {
                _ = self.interrupt.recv() => {
                    let presses = received.presses.fetch_add(1, Ordering::SeqCst) + 1;
                    let has_job = sessions.interrupt();
                    if presses > 1 || !has_job {
                        cancel.cancel();
                    }
                }
                _ = self.terminate.recv() => end(&received, &cancel, 15),
                _ = self.hangup.recv() => end(&received, &cancel, 1),
                _ = self.quit.recv() => end(&received, &cancel, 3),
                _ = self.stop.recv() => suspension.signalled(),
            }
        }
    }
}

fn end(received: &Received, cancel: &Cancel, signal: u8) {
    received.ending.store(signal, Ordering::SeqCst);
    cancel.cancel();
}
