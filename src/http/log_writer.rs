//! The log of the server: lines on standard error, written by a thread of their own.

use std::io::Write;
use std::thread::JoinHandle;
use std::time::Instant;

use crate::service::log::Log;
use karyi_core::limits;

/// Starts the thread; it ends with the last [`Log`].
///
/// # Errors
/// The system gives no thread.
pub fn to_stderr() -> std::io::Result<(Log, JoinHandle<()>)> {
    let (log, lines) = Log::new();
    let thread = std::thread::Builder::new()
        .name("log".into())
        .spawn(move || {
            let (mut out, mut text) = (std::io::stderr(), Vec::new());
            // Waking this thread costs a caller more than the line; so lines gather.
            lines.wait();
            std::thread::sleep(limits::LOG_PAUSE);
            while lines.take(&mut text) {
                // There is nowhere to tell that the log cannot be written.
                let _ = out.write_all(&text);
                lines.wait();
                std::thread::sleep(limits::LOG_PAUSE);
            }
        })?;
    Ok((log, thread))
}

/// Waits until the last lines are written. A log that nobody reads does not hold up the end.
pub async fn end(thread: JoinHandle<()>) {
    let until = Instant::now() + limits::LOG_END_TIMEOUT;
    while !thread.is_finished() && Instant::now() < until {
        tokio::time::sleep(limits::LOG_PAUSE).await;
    }
    if thread.is_finished() {
        let _ = thread.join();
    }
}
