//! A call that waits for the job in the foreground: its input and its result.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use tokio::sync::oneshot;
use zeroize::Zeroizing;

use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::outcome::Status;
use karyi_core::secret::ByteSet;

/// Receives the output that belongs to a call. It may block; it must not call back into the session.
pub type Sink = Box<dyn FnMut(&[u8]) + Send>;

/// A sink that the session's thread uses while the state is not locked.
pub(crate) type SharedSink = Arc<Mutex<Sink>>;

/// Result of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// Outcome of the job, or its state.
    pub status: Status,
    /// Its exit status, when it ended.
    pub exit_code: Option<i32>,
    /// The session's directory, when the job ended.
    pub cwd: Option<PathBuf>,
    /// True if the terminal echoes input, when the job waits for input; false when it asks for a password.
    pub echo: Option<bool>,
    /// The restart of the shell, if there was one.
    pub restarted: Option<Restart>,
    /// True if the status is a guess: the kernel did not show what the job does.
    pub is_probable: bool,
    /// Bytes of the input that were not typed, because the job ended or did not read them.
    pub unsent_bytes: usize,
}

impl Progress {
    /// Returns the result of a job that was ended with an unknown exit status.
    #[must_use]
    pub fn killed() -> Self {
        Self::of(Status::Killed)
    }

    /// Returns the result of a job of which no more is known.
    pub(crate) fn of(status: Status) -> Self {
        Self {
            status,
            exit_code: None,
            cwd: None,
            echo: None,
            restarted: None,
            is_probable: false,
            unsent_bytes: 0,
        }
    }
}

/// A shell that replaced another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restart {
    /// State that the new shell has.
    pub restored: Vec<String>,
    /// State that was lost.
    pub lost: Vec<String>,
    /// Age of the snapshot that was used, in milliseconds.
    pub snapshot_age_ms: Option<u64>,
}

pub(crate) type ReplySender = oneshot::Sender<Result<Progress, ToolError>>;

/// The call that waits for the job.
pub(crate) struct PendingCall {
    pub(crate) number: u64,
    pub(crate) sink: SharedSink,
    pub(crate) reply: ReplySender,
    pub(crate) deadline: Option<Instant>,
    /// True if only the end of the job ends the call.
    pub(crate) is_for_end: bool,
    /// Number of times the stop key is still repeated for a part of the job that runs on.
    pub(crate) stops: u32,
    /// Output from before the call that belongs to it.
    pub(crate) earlier_output: Vec<u8>,
    pub(crate) input: Option<PendingInput>,
}

/// Input to be typed.
pub(crate) struct PendingInput {
    pub(crate) bytes: Zeroizing<Vec<u8>>,
    pub(crate) written: usize,
    /// End of the bytes that may be written: as many as a job was seen waiting for.
    pub(crate) allowed: usize,
    pub(crate) is_secret: bool,
    /// The bytes of the secrets in it.
    pub(crate) values: ByteSet,
}

impl PendingInput {
    /// Returns what may be written now.
    pub(crate) fn rest(&self) -> &[u8] {
        self.bytes
            .get(self.written..self.allowed)
            .unwrap_or_default()
    }

    /// Returns what was not written.
    pub(crate) fn unsent(&self) -> &[u8] {
        self.bytes.get(self.written..).unwrap_or_default()
    }

    /// Returns true if it waits for a reader.
    pub(crate) fn awaits_reader(&self) -> bool {
        self.rest().is_empty() && !self.unsent().is_empty()
    }

    /// Returns true if nothing of it was written.
    pub(crate) fn is_untouched(&self) -> bool {
        self.allowed == 0
    }

    /// Allows the next line to be written, or everything.
    pub(crate) fn allow(&mut self, is_by_line: bool) {
        let end = self.unsent().iter().position(|byte| *byte == b'\n');
        self.allowed = match end {
            Some(end) if is_by_line => self.written + end + 1,
            _ => self.bytes.len(),
        };
    }
}

/// Result of a call with its receiver. Send it after unlocking the state: it wakes a caller that needs the lock.
#[must_use]
pub(crate) struct CallOutcome {
    pub(crate) reply: ReplySender,
    pub(crate) result: Result<Progress, ToolError>,
}

impl CallOutcome {
    /// Sends the result.
    pub(crate) fn send(self) {
        // The receiver may be gone.
        let _ = self.reply.send(self.result);
    }
}

/// Returns the error of input without a running command.
pub(crate) fn no_job_error(status: Option<i32>) -> ToolError {
    let message = match status {
        Some(status) => {
            format!("the command has ended with exit status {status}; nothing was sent")
        }
        None => "no command is running; nothing was sent".to_owned(),
    };
    ToolError::new(ErrorCode::NoJob, message)
}
