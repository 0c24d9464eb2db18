//! The signals that end the program while no run listens to them: a question gives the terminal
//! back first.

use std::io;
use std::sync::mpsc::{SyncSender, sync_channel};

use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use crate::cli::prompt::Outside;
use crate::cli::signal_state::SignalState;
use crate::cli::signals::Ends;
use karyi_core::limits;

/// Signals are caught as long as this exists: the first one cancels, and ends the program a moment
/// later if neither it nor this has ended by then.
pub(super) struct Interrupts {
    received: SignalState,
    _stop: oneshot::Sender<()>,
}

impl Interrupts {
    /// Starts to catch the signals.
    pub(super) fn watch(outside: &Outside) -> io::Result<Self> {
        let (stop, stopped) = oneshot::channel();
        let (ready, started) = sync_channel(1);
        let watched = outside.clone();
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
            received: outside.received.clone(),
            _stop: stop,
        })
    }

    /// Returns the exit status of a command that was interrupted: by a signal that came, or by Ctrl+C at
    /// a question.
    pub(super) fn exit_code(&self) -> Option<u8> {
        let pressed = self.received.is_interrupted();
        let signalled = self.received.exit_code();
        signalled.or(pressed.then_some(INTERRUPTED))
    }
}

/// Exit status after Ctrl+C.
const INTERRUPTED: u8 = 130;

async fn wait(
    outside: &Outside,
    mut stopped: oneshot::Receiver<()>,
    ready: &SyncSender<io::Result<()>>,
) {
    let mut ends = match catch() {
        Ok(ends) => ends,
        Err(error) => return drop(ready.send(Err(error))),
    };
    let _ = ready.send(Ok(()));
    let number = tokio::select! {
        // A signal that came before the end of this is not lost.
        biased;
        number = ends.next() => number,
        _ = &mut stopped => return,
    };
    outside.received.note_end(number);
    outside.cancel.cancel();
    tokio::select! {
        // Somebody else listens now.
        _ = stopped => {}
        () = tokio::time::sleep(limits::CANCEL_GRACE) => {
            // Whatever still runs waits for a keyring that does not answer.
            std::process::exit(128 + i32::from(number));
        }
    }
}

fn catch() -> io::Result<Ends> {
    let interrupt = SignalKind::interrupt();
    let file_limit = SignalKind::from_raw(nix::libc::SIGXFSZ);
    Ends::catch(&[interrupt, file_limit])
}

/// Lets a write beyond the limit of the size of files fail, where the system would end the program. Programs that are
/// started later have it as it was.
pub(super) fn outlive_file_limit(runtime: &Runtime) {
    let _context = runtime.enter();
    // Once asked for, it is caught as long as the program runs.
    let _ = signal(SignalKind::from_raw(nix::libc::SIGXFSZ));
}
