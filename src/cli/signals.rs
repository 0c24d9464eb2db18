//! Ctrl+C and the signals that end the program.
//!
//! The first Ctrl+C interrupts the job in the session's foreground; a second one, or the first when
//! no job runs, cancels the run. SIGTERM and SIGHUP cancel the run at once. In every case the
//! session is closed and the terminal left as it was.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

use crate::exec::Event;
use crate::exec::cancel::Cancel;
use crate::tool::context::SessionSlot;

/// Remembers the signal that ends the program.
#[derive(Debug, Clone, Default)]
pub(super) struct Ending(Arc<AtomicU8>);

impl Ending {
    /// Returns the exit status of the signal that came, if one did.
    pub(super) fn exit_code(&self) -> Option<u8> {
        match self.0.load(Ordering::SeqCst) {
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
}

impl Signals {
    /// Starts to catch the signals.
    pub(super) fn catch() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Acts on the signals until the task is aborted.
    pub(super) async fn watch(
        mut self,
        session: Arc<SessionSlot>,
        events: mpsc::Sender<Event>,
        cancel: Cancel,
        ending: Ending,
    ) {
        let mut presses = 0;
        loop {
            tokio::select! {
                _ = self.interrupt.recv() => {
                    presses += 1;
                    let _ = events.send(Event::Interrupted).await;
                    let has_job = session.started().is_some_and(|session| session.interrupt());
                    if presses > 1 || !has_job {
                        cancel.cancel();
                    }
                }
                _ = self.terminate.recv() => end(&ending, &cancel, 15),
                _ = self.hangup.recv() => end(&ending, &cancel, 1),
            }
        }
    }
}

fn end(ending: &Ending, cancel: &Cancel, signal: u8) {
    ending.0.store(signal, Ordering::SeqCst);
    cancel.cancel();
}
