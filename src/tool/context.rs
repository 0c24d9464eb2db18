//! Resources a tool may use while it runs.
//!
//! A tool reaches the outside world only through its context: it never reads the environment, the home
//! directory or the terminal by itself.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use crate::tool::model_access::ModelAccess;
use crate::tool::plan_board::PlanBoard;
use crate::tool::sessions::{JobFiles, Sessions, Terminal};
use crate::tool::settings::ToolSettings;
use crate::tool::site::SiteAccess;
use crate::tool::supervision::SharedSupervision;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;
use karyi_core::secret::{SecretName, SecretValue};
use karyi_files::edit::Diffs;
use karyi_files::root::Root;
use karyi_files::transaction::Recorder;
use karyi_pty::background::Background;
use karyi_vault::redact::Redactor;
use karyi_vault::session::Secrets;

/// Asks the user for values and consent.
pub trait Prompter: Send + Sync {
    /// Returns true when a user may be available to enter a value.
    fn is_available(&self) -> bool {
        true
    }

    /// Asks for one value. Questions are shown one at a time; others queue.
    fn ask<'a>(&'a self, question: &'a Question) -> Boxed<'a, Reply>;

    /// Returns the reason why no user is available, when it is known.
    fn unavailable_reason(&self) -> Option<&str> {
        None
    }

    /// Asks for consent to use a secret. Requests are shown one at a time; others queue.
    fn approve<'a>(&'a self, request: &'a ApprovalRequest) -> Boxed<'a, Consent>;
}

/// Answers nothing: nobody is there to be asked.
pub struct Nobody;

impl Prompter for Nobody {
    fn is_available(&self) -> bool {
        false
    }

    fn ask<'a>(&'a self, _: &'a Question) -> Boxed<'a, Reply> {
        Box::pin(async { Reply::Unavailable })
    }

    fn approve<'a>(&'a self, _: &'a ApprovalRequest) -> Boxed<'a, Consent> {
        Box::pin(async { Consent::Unavailable })
    }
}

/// A boxed future, for traits that are used as objects.
pub type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Saves values beyond the session, in the store of the run.
pub trait SecretSaver: Send + Sync {
    /// Checks that the store can take a value, before the user types one. Returns its name for people.
    fn probe(&self) -> Boxed<'_, Result<&'static str, ToolError>>;

    /// Saves a value the user entered, with the default policy, in the store that was probed last.
    fn save<'a>(
        &'a self,
        name: &'a SecretName,
        value: &'a SecretValue,
        note: Option<&'a str>,
    ) -> Boxed<'a, Result<(), ToolError>>;
}

/// A question that asks the user for a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Name of the value.
    pub name: SecretName,
    /// The model's reason; not yet safe to show.
    pub reason: String,
    /// A suggested note; not yet safe to show.
    pub note: Option<String>,
    /// Name of the store that can save the value, when there is one.
    pub store: Option<&'static str>,
    /// The reason why the store cannot, and a remedy.
    pub cannot_save: Option<String>,
    /// True when the new value replaces an existing one.
    pub is_known: bool,
    /// Minimum length in bytes without white space.
    pub least_bytes: usize,
}

/// A request for consent to use a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalRequest {
    /// Name of the secret.
    pub name: SecretName,
    /// The tool that would use it.
    pub tool: &'static str,
    /// The texts that contain its placeholder; not yet safe to show.
    pub text: String,
    /// Hosts of the addresses in those texts.
    pub hosts: Vec<String>,
    /// Warnings for the user about this use.
    pub warnings: Vec<String>,
}

impl ApprovalRequest {
    /// Returns facts to show beside the texts, one per line.
    #[must_use]
    pub fn facts(&self) -> Vec<String> {
        let hosts = self.hosts.join(", ");
        let hosts = (!hosts.is_empty()).then(|| format!("hosts in it: {hosts}"));
        hosts.into_iter().chain(self.warnings.clone()).collect()
    }
}

/// The user's answer to a request for consent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consent {
    /// The user agreed.
    Yes,
    /// The user refused.
    No,
    /// No user is available.
    Unavailable,
}

/// Lifetime of a value the user entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    /// The next block only.
    Once,
    /// This session.
    Session,
    /// This session and, from the store, later ones.
    Saved,
}

/// The user's answer to a question.
pub enum Reply {
    /// The value and its lifetime.
    Value(SecretValue, Lifetime),
    /// The user refused.
    Declined,
    /// No user is available.
    Unavailable,
    /// No answer in time.
    Timeout,
}

/// Receives the bytes a command prints.
pub type OutputSink = Box<dyn FnMut(&[u8]) + Send>;

/// Creates a sink for the output of one call.
pub type MakeSink = Arc<dyn Fn() -> OutputSink + Send + Sync>;

/// Adds a line to a log.
pub type WriteLog = Arc<dyn Fn(&str) + Send + Sync>;

/// Resources a tool may use while it runs.
#[derive(Clone)]
pub struct Context {
    /// The shells.
    pub sessions: Arc<Sessions>,
    /// The shell of the call, for a session tool.
    pub terminal: Option<Terminal>,
    /// The background job the call ends, if any.
    pub background: Option<Background>,
    /// The confinement of paths.
    pub root: Arc<Root>,
    /// Values the user gave.
    pub secrets: Secrets,
    /// Masks those values in all output.
    pub redactor: Redactor,
    /// Access to the user.
    pub prompter: Arc<dyn Prompter>,
    /// The store that saves values beyond the session, when there is one.
    pub saver: Option<Arc<dyn SecretSaver>>,
    /// Time at which the call must have ended, for the caller of a server.
    pub deadline: Option<Instant>,
    /// Default time limit of a command; unlimited when `None`.
    pub command_timeout: Option<Duration>,
    /// Receives output while the call waits.
    pub sink: MakeSink,
    /// Receives output between calls.
    pub idle_sink: MakeSink,
    /// Files with the whole output of jobs.
    pub job_files: JobFiles,
    /// Records changes of files.
    pub recorder: Recorder,
    /// Set when the run is cancelled.
    pub cancelled: Arc<AtomicBool>,
    /// The site of a server call.
    pub site: Option<SiteAccess>,
    /// How much of files a result shows.
    pub shown: ShownTexts,
    /// Language models that tools can ask; nothing where the front end has none.
    pub models: Option<Arc<dyn ModelAccess>>,
    /// The plan that the model keeps.
    pub plan: PlanBoard,
    /// Part of the session in a supervisor's work.
    pub supervision: SharedSupervision,
    /// Settings of tools.
    pub settings: Arc<ToolSettings>,
    /// Adds a line to the log of the program, when it has one.
    pub log: Option<WriteLog>,
}

/// How much of files a result shows, when the call does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShownTexts {
    /// Changes whose diff is shown.
    pub diffs: Diffs,
    /// Bytes of an output.
    pub output_bytes: usize,
    /// Lines of one file.
    pub lines: usize,
    /// Bytes of one file, or of the lines of one search.
    pub bytes: usize,
    /// Bytes of one line.
    pub line_bytes: usize,
    /// Bytes of the texts of a report.
    pub report_bytes: usize,
}

impl Default for ShownTexts {
    fn default() -> Self {
        Self {
            diffs: Diffs::default(),
            output_bytes: limits::OUTPUT_HEAD_BYTES + limits::OUTPUT_TAIL_BYTES,
            lines: limits::READ_LINES,
            bytes: limits::READ_SHOWN_BYTES,
            line_bytes: limits::READ_LINE_BYTES,
            report_bytes: limits::REPORT_BYTES,
        }
    }
}

impl Context {
    /// Returns the absolute form of `path`, relative to the session's directory and inside the root.
    ///
    /// # Errors
    /// The path leaves the root; `not_found` when it is relative and the session's directory is gone.
    pub fn path(&self, path: &str) -> Result<PathBuf, ToolError> {
        self.root
            .resolve(&self.directory_for(path)?, Path::new(path))
    }

    /// Returns the time that is left until the deadline, if there is one.
    #[must_use]
    pub fn time_left(&self) -> Option<Duration> {
        let deadline = self.deadline?;
        Some(deadline.saturating_duration_since(Instant::now()))
    }

    /// Returns the session's directory for a path.
    ///
    /// # Errors
    /// `not_found` when the path is relative and the directory is gone.
    pub fn directory_for(&self, path: &str) -> Result<PathBuf, ToolError> {
        let cwd = self.sessions.cwd();
        if Path::new(path).is_absolute() || cwd.is_dir() {
            return Ok(cwd);
        }
        let message = format!("the session's directory {} does not exist", cwd.display());
        let hint = "change to a directory that exists with `cd`, or use an absolute path";
        Err(ToolError::new(ErrorCode::NotFound, message).with_hint(hint))
    }

    /// Returns the shell of the call.
    ///
    /// # Errors
    /// `no_job` when there is none.
    pub fn terminal(&self) -> Result<&Terminal, ToolError> {
        let nothing = || ToolError::new(ErrorCode::NoJob, "no command was started yet");
        self.terminal.as_ref().ok_or_else(nothing)
    }

    /// Returns the site of the call.
    ///
    /// # Errors
    /// `no_site` outside a server.
    pub fn site(&self) -> Result<&SiteAccess, ToolError> {
        let nothing = || ToolError::new(ErrorCode::NoSite, "the call is about no site");
        self.site.as_ref().ok_or_else(nothing)
    }
}

/// Runs blocking work on a blocking thread. A panic in it is resumed in the caller.
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
