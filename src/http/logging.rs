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
    let (sender, lines) = sync_channel::<Vec<u8>>(limits::MAX_WAITING_LOG_LINES);
    let thread = std::thread::Builder::new()
        .name("log".into())
        .spawn(move || {
            let mut out = std::io::stderr();
            let mut text = Vec::new();
            while let Ok(line) = lines.recv() {
                text.extend_from_slice(&line);
                // Waking this thread costs a caller more than the line; so lines gather.
                std::thread::sleep(limits::LOG_PAUSE);
                // What has gathered meanwhile is written at once.
                while text.len() < limits::LOG_WRITE_BYTES
                    && let Ok(line) = lines.try_recv()
                {
                    text.extend_from_slice(&line);
                }
                // There is nowhere to tell that the log cannot be written.
                let _ = out.write_all(&text);
                text.clear();
            }
        })?;
    Ok((Log::to(sender), thread))
}
