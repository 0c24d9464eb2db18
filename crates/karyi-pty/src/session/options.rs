//! What a session, a command and an input are asked for with.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use karyi_core::secret::{Binding, ByteSet};

use crate::engine::pending_call::Sink;
use crate::shell::secrets::ShellSecrets;
use crate::shell::snapshot::Snapshot;

/// True if the user's start-up files are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartupFiles {
    /// They are, for a limited time.
    User,
    /// They are not.
    None,
}

/// What a session is started with.
#[derive(Debug, Clone)]
pub struct SessionOptions {
    /// The shell the user asked for; it must be usable.
    pub shell: Option<PathBuf>,
    /// The user's usual shell; taken when it is supported.
    pub preferred_shell: Option<PathBuf>,
    /// The program that starts shells with [`bootstrap`](crate::terminal::bootstrap::bootstrap).
    pub bootstrap: PathBuf,
    /// A private directory for the session's files.
    pub runtime_dir: PathBuf,
    /// Where the shell starts.
    pub cwd: PathBuf,
    /// The whole environment to start from.
    pub env: Vec<(OsString, OsString)>,
    /// True if the user's start-up files are read.
    pub rc: StartupFiles,
    /// What the shell begins with, for one that stands beside another.
    pub fork_state: Option<ForkState>,
    /// Secrets as the shells of the session know them.
    pub secrets: ShellSecrets,
}

/// What a shell passes on to one that is started beside it.
#[derive(Debug, Clone)]
pub struct ForkState {
    /// Its directory.
    pub cwd: PathBuf,
    /// True if it is there: a directory may be removed under a shell.
    pub is_there: bool,
    /// What it last said about itself.
    pub(crate) snapshot: Option<Snapshot>,
    /// Commands that bring its environment up to date.
    pub(crate) exports: Vec<u8>,
}

/// A command for the shell.
#[derive(Default)]
pub struct CommandRequest {
    /// The text the shell sources.
    pub script: String,
    /// Where it runs, when not in the session's directory; the session stays where it was.
    pub cwd: Option<PathBuf>,
    /// How long its result may take; it goes on afterwards.
    pub timeout: Option<Duration>,
    /// Secrets it refers to as shell variables.
    pub bindings: Vec<Binding>,
    /// Takes what it prints while no call waits for it. Without one that is kept, up to a limit, for
    /// the next call.
    pub rest: Option<Sink>,
}

/// How input is to be sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InputRequest {
    /// How long the result may take, waiting for a reader included.
    pub timeout: Option<Duration>,
    /// True if the input is sent only while the terminal hides it.
    pub is_secret: bool,
    /// True if a secret is sent all the same.
    pub allow_echo: bool,
    /// The bytes of the secrets in it: the terminal must act on none of them.
    pub values: ByteSet,
}
