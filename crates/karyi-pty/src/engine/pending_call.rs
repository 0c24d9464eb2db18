//! A call that waits for the job in the foreground: its input, and its result.

use std::path::PathBuf;
use std::time::Instant;

use tokio::sync::oneshot;
use zeroize::Zeroizing;

use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::outcome::Status;
use karyi_core::secret::ByteSet;

/// Takes the output that belongs to a call. It may block; it must not call back into the session.
pub type Sink = Box<dyn FnMut(&[u8]) + Send>;

/// What came of a call when its result became final.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// How the job ended, or what it does.
    pub status: Status,
    /// Its exit status, when it ended.
    pub exit_code: Option<i32>,
    /// The session's directory, when the job ended.
    pub cwd: Option<PathBuf>,
    /// True if the terminal shows what is typed, when the job waits for input; if not, it asks for
    /// a password.
    pub echo: Option<bool>,
    /// What became of the shell, when it had to be started again.
    pub restarted: Option<Restart>,
    /// True if the status is a guess: the kernel did not show what the job does.
    pub is_probable: bool,
    /// Bytes of the input that were not typed, because the job ended or did not read them.
    pub unsent_bytes: usize,
}

impl Progress {
    /// Makes that of a job that was ended and whose exit status is not known.
    #[must_use]
    pub fn killed() -> Self {
        Self {
            status: Status::Killed,
            exit_code: None,
            cwd: None,
            echo: None,
            restarted: None,
            is_probable: false,
            unsent_bytes: 0,
        }
    }
}

/// A shell that took the place of another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restart {
    /// What the new shell got back.
    pub restored: Vec<String>,
    /// What is gone.
    pub lost: Vec<String>,
    /// Age of the snapshot that was used, in milliseconds.
    pub snapshot_age_ms: Option<u64>,
}

pub(crate) type ReplySender = oneshot::Sender<Result<Progress, ToolError>>;

/// The call that waits for the job.
pub(crate) struct PendingCall {
    pub(crate) number: u64,
    /// Out while the session's thread uses it.
    pub(crate) sink: Option<Sink>,
    pub(crate) reply: ReplySender,
    pub(crate) deadline: Option<Instant>,
    /// True if nothing but the end of the job answers it.
    pub(crate) is_for_end: bool,
    /// How often the key that stops the job is still repeated for a part that goes on.
    pub(crate) stops: u32,
    /// Output from before the call that belongs to it.
    pub(crate) earlier: Vec<u8>,
    pub(crate) input: Option<PendingInput>,
}

/// Bytes to be typed.
pub(crate) struct PendingInput {
    pub(crate) bytes: Zeroizing<Vec<u8>>,
    pub(crate) written: usize,
    /// How many bytes may be written: as many as a job was seen waiting for.
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

/// What a call is told. Sent while the state is held, it would wake a caller who then waits for it.
#[must_use]
pub(crate) struct CallOutcome {
    pub(crate) reply: ReplySender,
    pub(crate) result: Result<Progress, ToolError>,
}

impl CallOutcome {
    /// Tells it.
    pub(crate) fn send(self) {
        // A receiver that is gone wants no result.
        let _ = self.reply.send(self.result);
    }
}

/// The error of input for a command that has ended, or for none.
pub(crate) fn too_late(status: Option<i32>) -> ToolError {
    let message = match status {
        Some(status) => {
            format!("the command has ended with exit status {status}; nothing was sent")
        }
        None => "no command is running; nothing was sent".to_owned(),
    };
    ToolError::new(ErrorCode::NoJob, message)
}
