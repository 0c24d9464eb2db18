//! Ctrl+C and the signals that end the program.
//!
//! The first Ctrl+C interrupts the job in the session's foreground; a second one, or the first when
//! no job runs, cancels the run. SIGTERM, SIGHUP and SIGQUIT cancel the run at once. In every case the
//! session is closed and the terminal left as it was. SIGTSTP stops the program once no question
//! stands on the terminal.

use std::io;
use std::sync::Arc;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::cli::prompt::Outside;
use crate::tool::sessions::Sessions;

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
    pub(super) async fn watch(mut self, sessions: Arc<Sessions>, outside: Outside) {
        let Outside {
            cancel,
            received,
            suspension,
        } = outside;
        let end = |signal| {
            received.note_end(signal);
            cancel.cancel();
        };
        loop {
            tokio::select! {
                _ = self.interrupt.recv() => {
                    let presses = received.note_interrupt();
                    let has_job = sessions.interrupt();
                    if presses > 1 || !has_job {
                        cancel.cancel();
                    }
                }
                _ = self.terminate.recv() => end(15),
                _ = self.hangup.recv() => end(1),
                _ = self.quit.recv() => end(3),
                _ = self.stop.recv() => suspension.signalled(),
            }
        }
    }
}
