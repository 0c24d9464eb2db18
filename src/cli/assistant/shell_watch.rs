//! Watches the live shell for the status line: the program in front, and what it waits for.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::tool::sessions::Sessions;
use karyi_core::limits;
use karyi_core::outcome::Status;

/// Input that the foreground program waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    /// A line or a key.
    Input,
    /// Text that is not shown.
    Password,
}

impl Wait {
    /// Returns the words for people.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Input => "waiting for input",
            Self::Password => "waiting for a password",
        }
    }
}

/// State of the shell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ShellState {
    pub(super) directory: PathBuf,
    pub(super) wait: Option<Wait>,
    /// Shells whose terminal a command holds.
    pub(super) jobs: usize,
}

/// Watches the shell while it exists.
pub(super) struct ShellWatch {
    state: Arc<Mutex<ShellState>>,
    task: JoinHandle<()>,
}

impl ShellWatch {
    /// Starts to watch; `changed` is told of each change.
    pub(super) fn start(sessions: Arc<Sessions>, changed: Arc<Notify>) -> Self {
        let state = Arc::new(Mutex::new(ShellState {
            directory: sessions.cwd(),
            ..ShellState::default()
        }));
        let kept = Arc::clone(&state);
        let task = tokio::spawn(async move {
            loop {
                let seen = look(&sessions).await;
                if note(&kept, seen) {
                    changed.notify_one();
                }
                tokio::time::sleep(limits::SHELL_WATCH_STEP).await;
            }
        });
        Self { state, task }
    }

    /// Returns the state that was seen last.
    pub(super) fn state(&self) -> ShellState {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.clone()
    }
}

impl Drop for ShellWatch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Keeps a state; returns true when it differs from the one before.
fn note(kept: &Mutex<ShellState>, seen: ShellState) -> bool {
    let mut known = kept.lock().unwrap_or_else(PoisonError::into_inner);
    let is_new = *known != seen;
    *known = seen;
    is_new
}

async fn look(sessions: &Sessions) -> ShellState {
    let mut state = ShellState {
        directory: sessions.cwd(),
        ..ShellState::default()
    };
    for terminal in sessions.all() {
        let status = terminal.session.job_status().await;
        state.jobs += usize::from(status.is_some());
        if status == Some(Status::AwaitingInput) {
            state.wait = Some(match terminal.session.hides_typing() {
                true => Wait::Password,
                false => Wait::Input,
            });
        }
    }
    state
}
