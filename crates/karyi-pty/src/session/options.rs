//! Options of a session, a command and an input.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use karyi_core::secret::{Binding, ByteSet};

use crate::engine::pending_call::Sink;
use crate::shell::secrets::ShellSecrets;
use crate::shell::snapshot::Snapshot;

/// Start-up files of the user that a shell reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartupFiles {
    /// The user's files, for this time at most.
    User(Duration),
    /// None.
    None,
}

/// Options of a session.
#[derive(Debug, Clone)]
pub struct SessionOptions {
    /// The requested shell, a name or a path; it must be usable.
    pub shell: Option<PathBuf>,
    /// The user's usual shell, used when it is supported.
    pub preferred_shell: Option<PathBuf>,
    /// The program that calls [`bootstrap`](crate::terminal::bootstrap::bootstrap) to become a shell.
    pub bootstrap: PathBuf,
    /// A private directory for the session's files.
    pub runtime_dir: PathBuf,
    /// Directory in which the shell starts.
    pub cwd: PathBuf,
    /// The whole environment of the shell.
    pub env: Vec<(OsString, OsString)>,
    /// Variables of `env` that replace what the session sets by itself, such as `PAGER`.
    pub overrides: Vec<(OsString, OsString)>,
    /// Start-up files that the shell reads.
    pub rc: StartupFiles,
    /// State of another session to start with.
    pub fork_state: Option<ForkState>,
    /// Secrets as the shells of the session know them.
    pub secrets: ShellSecrets,
}

/// State that a new session takes over from the one it is forked from.
#[derive(Debug, Clone)]
pub struct ForkState {
    /// Its directory.
    pub cwd: PathBuf,
    /// True if the directory exists: it may be removed under a shell.
    pub is_there: bool,
    /// True if the start-up files took too long or cannot be read.
    pub(crate) skips_rc: bool,
    /// The last snapshot.
    pub(crate) snapshot: Option<Snapshot>,
    /// Commands that set the variables exported since then.
    pub(crate) exports: Vec<u8>,
}

/// A command for the shell.
#[derive(Default)]
pub struct CommandRequest {
    /// The text the shell sources.
    pub script: String,
    /// Directory to run in, if not the session's; the session stays where it was.
    pub cwd: Option<PathBuf>,
    /// Time limit of the result; the command runs on afterwards.
    pub timeout: Option<Duration>,
    /// Secrets it refers to as shell variables.
    pub bindings: Vec<Binding>,
    /// Receives the output while no call waits. Without it the output is stored, up to a limit, for the next call.
    pub detached_sink: Option<Sink>,
}

/// Options of an input.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InputRequest {
    /// Time limit of the result, including the wait for a reader.
    pub timeout: Option<Duration>,
    /// True if the input is sent only while the terminal hides it.
    pub is_secret: bool,
    /// True if a secret is sent although the terminal echoes it.
    pub allow_echo: bool,
    /// The bytes of the secrets in the input: the terminal must not act on any of them.
    pub values: ByteSet,
}
