//! The log of the server: lines on standard error, written by a thread of their own.

use std::io::Write;
use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;

use crate::limits;
use crate::service::log::Log;

/// Starts the thread; it ends with the last [`Log`].
///
/// # Errors
/// The system gives no thread.
pub fn to_stderr() -> std::io::Result<(Log, JoinHandle<()>)> {
    let (sender, lines) = sync_channel::<String>(limits::MAX_WAITING_LOG_LINES);
    let thread = std::thread::Builder::new()
        .name("log".into())
        .spawn(move || {
            let mut out = std::io::stderr();
            for line in lines {
                // There is nowhere to tell that the log cannot be written.
                let _ = out.write_all(line.as_bytes());
            }
        })?;
    Ok((Log::to(sender), thread))
}
