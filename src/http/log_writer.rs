//! Writes the log of the server, on a thread of its own.

use std::io::Write;
use std::thread::JoinHandle;
use std::time::Instant;

use crate::service::log::Log;
use karyi_core::limits;

/// Starts the thread; it ends with the last [`Log`].
///
/// # Errors
/// The thread cannot be started.
pub fn start(mut out: Box<dyn Write + Send>) -> std::io::Result<(Log, JoinHandle<()>)> {
    let (log, lines) = Log::new();
    let thread = std::thread::Builder::new()
        .name("log".into())
        .spawn(move || {
            let mut text = Vec::new();
            // Waking this thread costs a caller more than writing the line, so lines accumulate
            // first.
            lines.wait();
            std::thread::sleep(limits::LOG_PAUSE);
            while lines.take(&mut text) {
                // There is no other place to report that it is closed.
                let _ = out.write_all(&text);
                lines.wait();
                std::thread::sleep(limits::LOG_PAUSE);
            }
        })?;
    Ok((log, thread))
}

/// Waits until the last lines are written, within a limit: a blocked standard error must not delay
/// the exit.
pub async fn end(thread: JoinHandle<()>) {
    let until = Instant::now() + limits::LOG_END_TIMEOUT;
    while !thread.is_finished() && Instant::now() < until {
        tokio::time::sleep(limits::LOG_PAUSE).await;
    }
    if thread.is_finished() {
        let _ = thread.join();
    }
}
