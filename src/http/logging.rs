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
            let mut text = String::new();
            while let Ok(line) = lines.recv() {
                text.push_str(&line);
                // What has gathered meanwhile is written at once.
                while text.len() < limits::LOG_WRITE_BYTES
                    && let Ok(line) = lines.try_recv()
                {
                    text.push_str(&line);
                }
                // There is nowhere to tell that the log cannot be written.
                let _ = out.write_all(text.as_bytes());
                text.clear();
            }
        })?;
    Ok((Log::to(sender), thread))
}
