//! What a tool may use while it runs.
//!
//! A tool reaches the world only through here: it never reads the environment, the home directory
//! or the terminal by itself.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::tool::sessions::{JobFiles, Sessions, Terminal};
use crate::tool::site::SiteAccess;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::secret::{SecretName, SecretValue};
use karyi_files::root::Root;
use karyi_files::transaction::Recorder;
use karyi_pty::background::Background;
use karyi_vault::session::Secrets;

/// Asks the user.
pub trait Prompter: Send + Sync {
    /// Whether somebody may be there to be asked for a value.
    fn is_there(&self) -> bool {
        true
    }

    /// Asks for one value; one question at a time, further ones queue.
    fn ask<'a>(&'a self, question: &'a Question) -> Boxed<'a, Reply>;

    /// Says why nobody is asked where that is known.
    fn absence(&self) -> Option<&str> {
        None
    }

    /// Asks whether a secret may be used; one question at a time, further ones queue.
    fn agree<'a>(&'a self, request: &'a Request) -> Boxed<'a, Consent>;
}

/// Answers nothing: nobody is there to be asked.
pub struct Nobody;

impl Prompter for Nobody {
    fn is_there(&self) -> bool {
        false
    }

    fn ask<'a>(&'a self, _: &'a Question) -> Boxed<'a, Reply> {
        Box::pin(async { Reply::Unavailable })
    }

    fn agree<'a>(&'a self, _: &'a Request) -> Boxed<'a, Consent> {
        Box::pin(async { Consent::Unavailable })
    }
}

/// A boxed future, for traits that are used as objects.
pub type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Keeps values beyond the session, in the store of the run.
pub trait Keeper: Send + Sync {
    /// Checks that the store can take a value, before the user types one. Returns what it is called, for a person.
    fn probe(&self) -> Boxed<'_, Result<&'static str, ToolError>>;

    /// Keeps a value the user gave when asked, with the default policy, in the store that was tried last.
    fn keep<'a>(
        &'a self,
        name: &'a SecretName,
        value: &'a SecretValue,
        note: Option<&'a str>,
    ) -> Boxed<'a, Result<(), ToolError>>;
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
    /// Name of the store that could keep the value, when there is one.
    pub store: Option<&'static str>,
    /// Why the store cannot, and what to do about it.
    pub cannot_save: Option<String>,
    /// Whether there is a value already, which the new one takes the place of.
    pub is_known: bool,
    /// How many bytes it must have, white space not counted.
    pub least_bytes: usize,
}

/// What the user is asked to agree to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Name of the secret.
    pub name: SecretName,
    /// The tool that would use it.
    pub tool: &'static str,
    /// The texts it stands in; not yet safe to show.
    pub text: String,
    /// Hosts of the addresses that those texts spell out.
    pub hosts: Vec<String>,
    /// What a person should know about its use there.
    pub warnings: Vec<String>,
}

impl Request {
    /// Returns what a person is told beside the texts, a line each.
    #[must_use]
    pub fn facts(&self) -> Vec<String> {
        let hosts = self.hosts.join(", ");
        let hosts = (!hosts.is_empty()).then(|| format!("hosts in it: {hosts}"));
        hosts.into_iter().chain(self.warnings.clone()).collect()
    }
}

/// Whether the user agreed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consent {
    /// They did.
    Yes,
    /// They did not.
    No,
    /// Nobody answered.
    Unavailable,
}

/// How long a value the user gave is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    /// In the next block only.
    Once,
    /// In this session.
    Session,
    /// In this session and, by the store, in later ones.
    Saved,
}

/// What the user answered.
pub enum Reply {
    /// The value, and how long it is wanted.
    Value(SecretValue, Lifetime),
    /// No.
    Declined,
    /// There is nobody to ask.
    Unavailable,
    /// Nothing, in the time there was.
    Timeout,
}

/// Takes the bytes a command prints.
pub type OutputSink = Box<dyn FnMut(&[u8]) + Send>;

/// Makes a sink for the output of one call.
pub type MakeSink = Arc<dyn Fn() -> OutputSink + Send + Sync>;

/// What a tool may use while it runs.
#[derive(Clone)]
pub struct Context {
    /// The shells.
    pub sessions: Arc<Sessions>,
    /// The shell that the call speaks to, for a tool of the session.
    pub terminal: Option<Terminal>,
    /// The job that the call is to end, when it is in the background of that shell.
    pub background: Option<Background>,
    /// The confinement of paths.
    pub root: Arc<Root>,
    /// The values the user gave.
    pub secrets: Secrets,
    /// The way to the user.
    pub prompter: Arc<dyn Prompter>,
    /// The store that keeps values beyond the session, when there is one.
    pub keeper: Option<Arc<dyn Keeper>>,
    /// How long a command runs when its call says nothing; forever when `None`.
    pub command_timeout: Option<Duration>,
    /// Where the bytes go that a command prints while its call waits.
    pub sink: MakeSink,
    /// Where those go that it prints while no call waits.
    pub rest: MakeSink,
    /// The files with the whole output of jobs.
    pub job_files: JobFiles,
    /// Where changes of files are recorded.
    pub recorder: Recorder,
    /// Set when the run is cancelled.
    pub cancelled: Arc<AtomicBool>,
    /// The site a call of the server is about.
    pub site: Option<SiteAccess>,
}

impl Context {
    /// Returns `path` as an absolute one, by the session's directory, inside the root.
    ///
    /// # Errors
    /// The path leaves the root.
    pub fn path(&self, path: &str) -> Result<PathBuf, ToolError> {
        self.root.resolve(&self.sessions.cwd(), Path::new(path))
    }

    /// Returns the shell that the call speaks to.
    ///
    /// # Errors
    /// `no_job` when there is none.
    pub fn terminal(&self) -> Result<&Terminal, ToolError> {
        let nothing = || ToolError::new(ErrorCode::NoJob, "no command was started yet");
        self.terminal.as_ref().ok_or_else(nothing)
    }

    /// Returns the site that the call is about.
    ///
    /// # Errors
    /// `no_site` outside a server.
    pub fn site(&self) -> Result<&SiteAccess, ToolError> {
        let nothing = || ToolError::new(ErrorCode::NoSite, "the call is about no site");
        self.site.as_ref().ok_or_else(nothing)
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
