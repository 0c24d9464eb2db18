//! Ctrl+C and the signals that end the program.
//!
//! The first Ctrl+C interrupts the foreground job, and no further call starts; a second one, or the first when no job
//! runs, cancels the run. SIGTERM, SIGHUP, SIGQUIT and other fatal signals cancel it at once. In every case the session is
//! closed and the terminal restored.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::Poll;

use nix::libc::{SIGABRT, SIGALRM, SIGPROF, SIGVTALRM, SIGXCPU};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::cli::prompt::StopSource;
use crate::tool::sessions::Sessions;
use karyi_screen::terminal_guard;

/// Signals of a run, caught while this exists.
pub(super) struct Signals {
    interrupt: Signal,
    ends: Ends,
}

impl Signals {
    /// Starts to catch the signals.
    pub(super) fn catch() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            ends: Ends::catch(&[])?,
        })
    }

    /// Handles the signals until the task is aborted.
    pub(super) async fn watch(mut self, sessions: Arc<Sessions>, stop_source: StopSource) {
        let StopSource { cancel, received } = stop_source;
        loop {
            tokio::select! {
                _ = self.interrupt.recv() => {
                    // On a screen Ctrl+C is a key: a signal that comes late was for the program before.
                    if received.is_lent() || terminal_guard::is_taken() {
                        continue;
                    }
                    let presses = received.note_interrupt();
                    // First, since the job may end at once and the next call start.
                    cancel.interrupt();
                    let has_job = sessions.interrupt();
                    if presses > 1 || !has_job {
                        cancel.cancel();
                    }
                }
                signal = self.ends.next() => {
                    received.note_end(signal);
                    cancel.cancel();
                }
            }
        }
    }
}

/// Signals that end the program, with their numbers.
pub(super) struct Ends(Vec<(u8, Signal)>);

impl Ends {
    /// Starts to catch them and `more`.
    pub(super) fn catch(more: &[SignalKind]) -> io::Result<Self> {
        let always = [
            SignalKind::terminate(),
            SignalKind::hangup(),
            SignalKind::quit(),
        ];
        let mut kinds: Vec<SignalKind> = always.into_iter().chain(more.iter().copied()).collect();
        // The parent process may have set these to ignored.
        let ignored = ignored();
        let is_minded = |number: &i32| ignored & (1 << (number - 1)) == 0;
        let rare = [
            SignalKind::user_defined1().as_raw_value(),
            SignalKind::user_defined2().as_raw_value(),
            // An aborting program ends in any case and leaves the terminal as it is.
            SIGABRT,
            SIGALRM,
            SIGVTALRM,
            SIGPROF,
            SIGXCPU,
        ];
        let rare = rare.into_iter().filter(is_minded);
        kinds.extend(rare.map(SignalKind::from_raw));
        let caught = kinds.into_iter().map(|kind| {
            let number = u8::try_from(kind.as_raw_value()).unwrap_or(u8::MAX);
            Ok((number, signal(kind)?))
        });
        Ok(Self(caught.collect::<io::Result<_>>()?))
    }

    /// Waits for a signal and returns its number.
    pub(super) async fn next(&mut self) -> u8 {
        poll_fn(|context| {
            for (number, signal) in &mut self.0 {
                if signal.poll_recv(context).is_ready() {
                    return Poll::Ready(*number);
                }
            }
            Poll::Pending
        })
        .await
    }
}

/// Returns a bit mask of ignored signals, as far as the system reports them.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut lines = status.lines();
    let mask = lines.find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or_default()
}
