//! Handles signals while no run does, so that a question restores the terminal before the program ends.

use std::io;
use std::sync::mpsc::{SyncSender, sync_channel};

use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use crate::cli::prompt::StopSource;
use crate::cli::signal_state::SignalState;
use crate::cli::signals::Ends;
use karyi_core::limits;

/// Catches signals while it exists. The first one cancels; the program ends a moment later unless the
/// command has ended.
pub(super) struct Interrupts {
    received: SignalState,
    _stop: oneshot::Sender<()>,
}

impl Interrupts {
    /// Starts to catch signals.
    pub(super) fn watch(stop_source: &StopSource) -> io::Result<Self> {
        let (stop, stopped) = oneshot::channel();
        let (ready, started) = sync_channel(1);
        let watched = stop_source.clone();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        std::thread::Builder::new()
            .name("signals".into())
            .spawn(move || runtime.block_on(wait(&watched, stopped, &ready)))?;
        match started.recv() {
            Ok(result) => result?,
            Err(error) => return Err(io::Error::other(error)),
        }
        Ok(Self {
            received: stop_source.received.clone(),
            _stop: stop,
        })
    }

    /// Returns the exit status of an interrupted command: after a signal, or after Ctrl+C at a question.
    pub(super) fn exit_code(&self) -> Option<u8> {
        let pressed = self.received.is_interrupted();
        let signalled = self.received.exit_code();
        signalled.or(pressed.then_some(INTERRUPTED))
    }
}

/// Exit status after Ctrl+C.
const INTERRUPTED: u8 = 130;

async fn wait(
    stop_source: &StopSource,
    mut stopped: oneshot::Receiver<()>,
    ready: &SyncSender<io::Result<()>>,
) {
    let mut ends = match catch() {
        Ok(ends) => ends,
        Err(error) => return drop(ready.send(Err(error))),
    };
    let _ = ready.send(Ok(()));
    let number = tokio::select! {
        // A signal that arrived before this point is not lost.
        biased;
        number = ends.next() => number,
        _ = &mut stopped => return,
    };
    stop_source.received.note_end(number);
    stop_source.cancel.cancel();
    tokio::select! {
        // The run handles signals now.
        _ = stopped => {}
        () = tokio::time::sleep(limits::CANCEL_GRACE) => {
            // Whatever still runs is waiting for a keyring that does not answer.
            std::process::exit(128 + i32::from(number));
        }
    }
}

fn catch() -> io::Result<Ends> {
    let interrupt = SignalKind::interrupt();
    let file_limit = SignalKind::from_raw(nix::libc::SIGXFSZ);
    Ends::catch(&[interrupt, file_limit])
}

/// Makes a write beyond the file size limit fail instead of ending the program. Child processes keep the
/// default.
pub(super) fn outlive_file_limit(runtime: &Runtime) {
    let _context = runtime.enter();
    // Once requested, the signal stays caught for the life of the program.
    let _ = signal(SignalKind::from_raw(nix::libc::SIGXFSZ));
}
