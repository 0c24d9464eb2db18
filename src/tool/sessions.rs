//! The shells of a run: the first one, and siblings used while it is busy.
//!
//! A command runs in the first shell when that is free. While a job has its terminal, commands run in a
//! sibling with the same directory, environment and functions, until the first shell is free again.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::OnceCell;

use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;
use karyi_pty::{Session, SessionOptions, StartupFiles};

/// Prefix of a job id in a path.
pub const JOB_PREFIX: &str = "job:";
/// The number of the first shell.
pub const FIRST: u64 = 1;

/// The shells of a run, each started on first use.
pub struct Sessions {
    options: SessionOptions,
    first: OnceCell<Session>,
    siblings: Mutex<Siblings>,
}

#[derive(Default)]
struct Siblings {
    open: Vec<Terminal>,
    /// The sibling that commands run in; the first shell when `None`.
    current: Option<u64>,
    opened: u64,
}

/// A shell and its number in the run.
#[derive(Clone)]
pub struct Terminal {
    /// The shell.
    pub session: Session,
    /// Its number, from 1.
    pub number: u64,
    /// Start information of a sibling, on its first command.
    pub opening: Option<Opening>,
    /// The sibling of the previous command, on the first command that runs here again.
    pub back_from: Option<u64>,
}

/// Start information of a sibling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opening {
    /// Number of the busy shell it was copied from.
    pub after: u64,
    /// Its start directory, when it differs from that of the busy shell.
    pub elsewhere: Option<PathBuf>,
    /// Age of the functions, aliases and options it received; `None` when it received none.
    pub snapshot_age: Option<Duration>,
}

/// Returns true when a session with this shell has bash, which it has without any.
#[must_use]
pub fn is_bash(shell: Option<&PathBuf>) -> bool {
    shell.is_none_or(|shell| shell.file_name().is_some_and(|name| name == "bash"))
}

impl Sessions {
    /// Creates the shells of a run without starting any.
    #[must_use]
    pub fn new(options: SessionOptions) -> Self {
        Self {
            options,
            first: OnceCell::new(),
            siblings: Mutex::default(),
        }
    }

    /// Returns shells that are set up in the same way, without starting any.
    #[must_use]
    pub fn separate(&self) -> Self {
        Self::new(self.options.clone())
    }

    /// Returns the first shell, and starts it if necessary.
    ///
    /// # Errors
    /// No shell could be started.
    pub async fn first(&self) -> Result<&Session, ToolError> {
        self.first
            .get_or_try_init(|| Session::start(self.options.clone()))
            .await
    }

    /// Starts a bash without start-up files, which is none of these shells and ends with its last handle.
    ///
    /// # Errors
    /// There is no bash, or it does not start.
    pub async fn start_bash(&self, cwd: PathBuf) -> Result<Session, ToolError> {
        Session::start(SessionOptions {
            shell: Some("bash".into()),
            rc: StartupFiles::None,
            cwd,
            fork_state: None,
            ..self.options.clone()
        })
        .await
    }

    /// Returns all started shells.
    #[must_use]
    pub fn all(&self) -> Vec<Terminal> {
        let first = self.first.get().map(|session| terminal(session, FIRST));
        let siblings = self.siblings().open.clone();
        first.into_iter().chain(siblings).collect()
    }

    /// Returns the shell that commands run in, if it was started.
    #[must_use]
    pub fn current(&self) -> Option<Terminal> {
        let siblings = self.siblings();
        let current = siblings.current.and_then(|number| siblings.find(number));
        current.or_else(|| self.first.get().map(|session| terminal(session, FIRST)))
    }

    /// Returns the directory of the shell that commands run in, started or not.
    #[must_use]
    pub fn cwd(&self) -> PathBuf {
        self.current().map_or_else(
            || self.options.cwd.clone(),
            |terminal| terminal.session.cwd(),
        )
    }

    /// Returns true when the shell that commands run in, started or not, is known to be bash.
    #[must_use]
    pub fn has_bash(&self) -> bool {
        let options = &self.options;
        match self.current() {
            Some(terminal) => terminal.session.shell_name() == "bash",
            None => is_bash(options.shell.as_ref().or(options.preferred_shell.as_ref())),
        }
    }

    /// Sends Ctrl+C to the shell that commands run in, else to another one with a job. Returns true when
    /// there was a job.
    #[must_use]
    pub fn interrupt(&self) -> bool {
        let current = self.current();
        let others = self.all().into_iter().rev();
        let mut terminals = current.into_iter().chain(others);
        terminals.any(|terminal| terminal.session.interrupt())
    }

    /// Returns the shell for the next command: the first one when it is free, else a sibling.
    ///
    /// # Errors
    /// No shell could be started; `session_busy` when there are too many already.
    pub async fn for_command(&self) -> Result<Terminal, ToolError> {
        let first = self.first().await?.clone();
        if !first.has_job() {
            let last = self.siblings().current.take();
            self.close_idle().await;
            return Ok(Terminal {
                back_from: last,
                ..terminal(&first, FIRST)
            });
        }
        if let Some(free) = self.siblings().take_free() {
            return Ok(free);
        }
        if self.siblings().open.len() + 1 >= limits::MAX_SESSIONS {
            self.close_idle().await;
        }
        self.open().await
    }

    /// Opens a sibling of the shell that commands run in.
    async fn open(&self) -> Result<Terminal, ToolError> {
        let (number, busy) = {
            let mut siblings = self.siblings();
            if siblings.open.len() + 1 >= limits::MAX_SESSIONS {
                return Err(too_many());
            }
            siblings.opened += 1;
            (FIRST + siblings.opened, siblings.current)
        };
        let busy = busy.and_then(|number| self.siblings().find(number));
        let busy = match busy {
            Some(sibling) => sibling,
            None => terminal(self.first().await?, FIRST),
        };
        let (snapshot_age, fork_state) = (busy.session.snapshot_age(), busy.session.fork_state());
        let (wanted, is_there) = (fork_state.cwd.clone(), fork_state.is_there);
        let mut options = self.options.clone();
        options.fork_state = Some(fork_state);
        let session = Session::start(options).await?;
        let place = session.cwd();
        let real = |path: &Path| path.canonicalize().ok();
        let is_same = is_there && (place == wanted || real(&place) == real(&wanted));
        let opening = Opening {
            after: busy.number,
            elsewhere: (!is_same).then_some(place),
            snapshot_age,
        };
        let sibling = terminal(&session, number);
        let mut siblings = self.siblings();
        siblings.open.push(sibling.clone());
        siblings.current = Some(number);
        Ok(Terminal {
            opening: Some(opening),
            ..sibling
        })
    }

    /// Closes idle siblings.
    async fn close_idle(&self) {
        let is_idle = |session: &Session| !session.has_job() && !session.has_others();
        let idle: Vec<Terminal> = {
            let mut siblings = self.siblings();
            let open = std::mem::take(&mut siblings.open);
            let (idle, busy) = open.into_iter().partition(|t| is_idle(&t.session));
            siblings.open = busy;
            idle
        };
        for terminal in idle {
            terminal.session.close().await;
        }
    }

    fn siblings(&self) -> MutexGuard<'_, Siblings> {
        self.siblings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Siblings {
    fn find(&self, number: u64) -> Option<Terminal> {
        let mut open = self.open.iter();
        open.find(|terminal| terminal.number == number).cloned()
    }

    /// Returns the current sibling when it is free. Others may have an outdated directory and environment.
    fn take_free(&mut self) -> Option<Terminal> {
        let current = self.current.and_then(|number| self.find(number));
        let free = current.filter(|terminal| !terminal.session.has_job())?;
        self.current = Some(free.number);
        Some(free)
    }
}

fn terminal(session: &Session, number: u64) -> Terminal {
    Terminal {
        session: session.clone(),
        number,
        opening: None,
        back_from: None,
    }
}

fn too_many() -> ToolError {
    let message = format!(
        "{} terminals are held by jobs, and no more are opened",
        limits::MAX_SESSIONS
    );
    ToolError::new(ErrorCode::SessionBusy, message)
}

/// Files with the whole output of jobs, by job id.
#[derive(Debug, Clone, Default)]
pub struct JobFiles(Arc<Mutex<Vec<(String, PathBuf)>>>);

impl JobFiles {
    /// Adds the file of a job.
    pub fn insert(&self, id: &str, path: PathBuf) {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        files.retain(|(known, _)| known != id);
        files.push((id.to_owned(), path));
    }

    /// Removes a deleted file.
    pub fn remove(&self, path: &Path) {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        files.retain(|(_, known)| known != path);
    }

    /// Returns true when a job has a file.
    #[must_use]
    pub fn contains(&self, id: &str) -> bool {
        let files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        files.iter().any(|(known, _)| known == id)
    }

    /// Returns the file of a job.
    ///
    /// # Errors
    /// `not_found` when there is none; lists the ids that have one.
    pub fn find(&self, id: &str) -> Result<PathBuf, ToolError> {
        let files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = files.iter().find(|(known, _)| known == id);
        found.map(|(_, path)| path.clone()).ok_or_else(|| {
            let known: Vec<&str> = files.iter().map(|(id, _)| id.as_str()).collect();
            let known = match known.as_slice() {
                [] => "no call has left a job or a long output".to_owned(),
                ids => format!("there are {}", ids.join(", ")),
            };
            let shown: String = id.chars().take(limits::MAX_TITLE_CHARS).collect();
            let message = format!("no job {shown:?} with output of its own; {known}");
            ToolError::new(ErrorCode::NotFound, message)
                .with_hint("name a job of the list `jobs`, or a file as ./NAME")
        })
    }
}
