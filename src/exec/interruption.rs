//! Stops the command of a call that the user interrupted, while its shell lives on.

use std::pin::Pin;
use std::time::Instant;

use crate::tool::sessions::Terminal;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;

/// Way to stop the command on a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StopKind {
    /// INT, TERM and KILL: the call started the command.
    End,
    /// Ctrl+C: the call typed into a job that an earlier one started, and that may be a dialogue.
    Press,
}

/// Stops the command of a call and waits for the result of the call; nothing when the command survives, or the call
/// does not return.
pub(super) async fn stop<T>(
    terminal: &Terminal,
    kind: StopKind,
    mut result: Pin<&mut impl Future<Output = T>>,
) -> Option<T> {
    if kind == StopKind::Press {
        let _ = terminal.session.interrupt();
    }
    let mut idle_since = Instant::now();
    while idle_since.elapsed() < limits::CANCEL_GRACE {
        tokio::select! {
            biased;
            result = &mut result => return Some(result),
            has_ended = end(terminal, kind) => match has_ended {
                Some(true) => idle_since = Instant::now(),
                Some(false) => {}
                None => return None,
            },
        }
        tokio::select! {
            biased;
            result = &mut result => return Some(result),
            () = tokio::time::sleep(limits::WAIT_SCAN_MIN) => {}
        }
    }
    None
}

/// Returns the error of a call that was not started because the run was interrupted.
pub(super) fn not_started_error() -> ToolError {
    let message = "the run was interrupted before the call could start";
    ToolError::new(ErrorCode::Cancelled, message)
}

/// Ends the command; returns false when none runs, as before the shell has begun it, and nothing when it survives.
async fn end(terminal: &Terminal, kind: StopKind) -> Option<bool> {
    if kind == StopKind::Press {
        return Some(false);
    }
    match terminal.session.end_job().await {
        Ok(_) => Some(true),
        Err(error) if error.code == ErrorCode::NoJob => Some(false),
        Err(_) => None,
    }
}
