//! What a tool may use while it runs.
//!
//! A tool reaches the world only through here: it never reads the environment, the home directory
//! or the terminal by itself. The session is started by the first call that needs it.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tokio::sync::OnceCell;

use crate::error::{ErrorCode, ToolError};
use crate::files::root::Root;
use crate::pty::{Session, SessionOptions};
use crate::secret::{SecretName, SecretValue};
use crate::vault::session::Secrets;

/// Asks the user for values.
pub trait Prompter: Send + Sync {
    /// Asks for one value; one question at a time, further ones queue.
    fn ask<'a>(
        &'a self,
        question: &'a Question,
    ) -> Pin<Box<dyn Future<Output = Reply> + Send + 'a>>;
}

/// What the user is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Name of the value.
    pub name: SecretName,
    /// Why it is needed, as the model says; not yet safe to show.
    pub reason: String,
    /// A note suggested for it; not yet safe to show.
    pub note: Option<String>,
}

/// What the user answered.
pub enum Reply {
    /// The value.
    Value(SecretValue),
    /// No.
    Declined,
    /// There is nobody to ask.
    Unavailable,
    /// Nothing, in the time there was.
    Timeout,
}

/// The persistent shell of a run, started when it is first needed.
pub struct SessionSlot {
    options: SessionOptions,
    session: OnceCell<Session>,
}

impl SessionSlot {
    /// Makes a slot; nothing is started.
    #[must_use]
    pub fn new(options: SessionOptions) -> Self {
        Self {
            options,
            session: OnceCell::new(),
        }
    }

    /// Returns the session, starting it if need be.
    ///
    /// # Errors
    /// No shell could be started.
    pub async fn get(&self) -> Result<&Session, ToolError> {
        self.session
            .get_or_try_init(|| Session::start(self.options.clone()))
            .await
    }

    /// Returns the session if it was started.
    #[must_use]
    pub fn started(&self) -> Option<&Session> {
        self.session.get()
    }

    /// Returns the directory of the session, started or not.
    #[must_use]
    pub fn cwd(&self) -> PathBuf {
        self.started()
            .map_or_else(|| self.options.cwd.clone(), Session::cwd)
    }
}

/// Takes the bytes a command prints.
pub type OutputSink = Box<dyn FnMut(&[u8]) + Send>;

/// Makes a sink for the output of one call.
pub type MakeSink = Arc<dyn Fn() -> OutputSink + Send + Sync>;

/// What a tool may use while it runs.
#[derive(Clone)]
pub struct Context {
    /// The persistent shell.
    pub session: Arc<SessionSlot>,
    /// The confinement of paths.
    pub root: Arc<Root>,
    /// The values the user gave.
    pub secrets: Secrets,
    /// The way to the user.
    pub prompter: Arc<dyn Prompter>,
    /// How long a command runs when its call says nothing; forever when `None`.
    pub command_timeout: Option<Duration>,
    /// Where the bytes a command prints go.
    pub sink: MakeSink,
    /// Set when the run is cancelled.
    pub cancelled: Arc<AtomicBool>,
}

impl Context {
    /// Returns `path` as an absolute one, by the session's directory, inside the root.
    ///
    /// # Errors
    /// The path leaves the root.
    pub fn path(&self, path: &str) -> Result<PathBuf, ToolError> {
        self.root.resolve(&self.session.cwd(), Path::new(path))
    }
}

/// Does work that blocks on the disk, off the thread that everything else runs on. A panic in it
/// goes on in the caller.
///
/// # Errors
/// The error of the work.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(ToolError::new(
                ErrorCode::Cancelled,
                "the run ended while the call ran",
            )),
        },
    }
}
