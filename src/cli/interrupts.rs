//! The signals that end the program while no run listens to them: a question gives the terminal back
//! first.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};

use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

use crate::exec::cancel::Cancel;
use crate::limits;

/// Signals are caught as long as this exists: the first one cancels, and ends the program a moment
/// later if it has not ended by then.
pub(super) struct Interrupts {
    received: Arc<AtomicU8>,
    _stop: oneshot::Sender<()>,
}

impl Interrupts {
    /// Starts to catch the signals.
    pub(super) fn watch(cancel: Cancel) -> io::Result<Self> {
        let received = Arc::new(AtomicU8::new(0));
        let (stop, stopped) = oneshot::channel();
        let (ready, started) = sync_channel(1);
        let watch = (Arc::clone(&received), cancel, stopped);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        std::thread::Builder::new()
            .name("signals".into())
            .spawn(move || runtime.block_on(wait(watch, &ready)))?;
        match started.recv() {
            Ok(result) => result?,
            Err(error) => return Err(io::Error::other(error)),
        }
        Ok(Self {
            received,
            _stop: stop,
        })
    }

    /// Returns the exit status of the signal that came, if one did.
    pub(super) fn exit_code(&self) -> Option<u8> {
        match self.received.load(Ordering::SeqCst) {
            0 => None,
            signal => Some(128 + signal),
        }
    }
}

type Watch = (Arc<AtomicU8>, Cancel, oneshot::Receiver<()>);

async fn wait((received, cancel, stopped): Watch, ready: &SyncSender<io::Result<()>>) {
    let mut signals = match catch() {
        Ok(signals) => signals,
        Err(error) => return drop(ready.send(Err(error))),
    };
    let _ = ready.send(Ok(()));
    let [interrupt, terminate, hangup, quit] = &mut signals;
    let number: u8 = tokio::select! {
        _ = stopped => return,
        _ = interrupt.recv() => 2,
        _ = terminate.recv() => 15,
        _ = hangup.recv() => 1,
        _ = quit.recv() => 3,
    };
    received.store(number, Ordering::SeqCst);
    cancel.cancel();
    tokio::time::sleep(limits::CANCEL_GRACE).await;
    // Whatever still runs waits for a keyring that does not answer.
    std::process::exit(128 + i32::from(number));
}

/// Lets a write beyond the limit of the size of files fail, where the system would end the program. Programs that are
/// started later have it as it was.
pub(super) fn outlive_file_limit(runtime: &Runtime) {
    let _context = runtime.enter();
    // Once asked for, it is caught as long as the program runs.
    let _ = signal(SignalKind::from_raw(nix::libc::SIGXFSZ));
}

fn catch() -> io::Result<[Signal; 4]> {
    Ok([
        signal(SignalKind::interrupt())?,
        signal(SignalKind::terminate())?,
        signal(SignalKind::hangup())?,
        signal(SignalKind::quit())?,
    ])
}
