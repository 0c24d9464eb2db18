//! State of a session: the job in the foreground, the call that waits for it, earlier jobs.
//!
//! Callers and the session's thread share it. Callers write the lines of a command, keys and the size to the shell
//! themselves, which saves time; the session's thread writes all else, reads the terminal and ends calls. Who holds the
//! lock for that: `docs/decisions/0013-who-writes-to-the-shell.md`.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;

use crate::engine::alarm::Alarm;
use crate::engine::history::JobHistory;
use crate::engine::job::Job;
use crate::engine::observation::Observation;
use crate::engine::pending_call::{PendingCall, PendingInput, Restart, SharedSink, Sink};
use crate::host::error_hints;
use crate::shell::secrets::{ShellSecrets, ShellVariables};
use crate::shell::snapshot::Snapshot;
use crate::shell::{Dialect, Shell};
use crate::terminal::key::Key;
use crate::terminal::live_shell::{LiveShell, Size};
use crate::terminal::script_file::ScriptFile;

/// Request of a session's owner to its thread.
pub(crate) enum Order {
    /// Start the shell if none runs.
    Start(oneshot::Sender<Result<(), ToolError>>),
    /// End everything in steps; the reply names the signal that ended the job.
    Close(oneshot::Sender<Option<&'static str>>),
    /// The owner is gone, and everything was killed.
    Abandon,
}

/// State of a session.
pub(crate) struct State {
    pub(crate) shell: ShellState,
    pub(crate) job: Option<Job>,
    pub(crate) call: Option<PendingCall>,
    pub(crate) person: PersonState,
    pub(crate) owner: OwnerState,
    pub(crate) snapshots: SnapshotState,
    pub(crate) seen: SeenState,
    pub(crate) history: JobHistory,
    /// Number of the last mark or call.
    pub(crate) numbers: u64,
    /// Output from before the next call.
    pub(crate) backlog: Vec<u8>,
}

/// The shell that runs, and what the next one gets from it.
pub(crate) struct ShellState {
    pub(crate) live: Option<Arc<LiveShell>>,
    pub(crate) cwd: PathBuf,
    pub(crate) size: Size,
    pub(crate) last_status: i32,
    /// A restart that was not reported yet.
    pub(crate) restart: Option<Restart>,
    pub(crate) script: ScriptFile,
    /// Secrets as the shells of the session know them.
    pub(crate) secrets: ShellSecrets,
    /// Secrets that the shell has variables for.
    pub(crate) variables: ShellVariables,
    /// Reason why the shell runs without the user's start-up files, or with a part of them.
    pub(crate) rc_failure: Option<String>,
    /// True if a caller has taken that reason.
    pub(crate) is_rc_failure_taken: bool,
}

/// What a person does at the terminal.
#[derive(Default)]
pub(crate) struct PersonState {
    /// Set while a person answers the job of the call: it does not end the call by waiting. The flag is true when
    /// another call answers instead.
    pub(crate) answers: Option<Arc<AtomicBool>>,
    /// True while a person has the terminal: what they see and type passes as it is, and no call ends because the job
    /// waits.
    pub(crate) has_terminal: bool,
}

/// What the owner of the session wants.
#[derive(Default)]
pub(crate) struct OwnerState {
    /// Pending orders, in this order.
    pub(crate) orders: VecDeque<Order>,
    pub(crate) is_closed: bool,
    /// The last signal that was needed to end the session.
    pub(crate) last_signal: Option<&'static str>,
}

/// Snapshots of the shell.
#[derive(Default)]
pub(crate) struct SnapshotState {
    /// The last one, which a restart would restore.
    pub(crate) last: Option<Snapshot>,
    /// True if a script since then may have defined something that only a snapshot can show.
    pub(crate) is_needed: bool,
    /// Number of those requested from the running shell.
    pub(crate) requested: u64,
}

/// What was seen of the job and of what commands left.
#[derive(Default)]
pub(crate) struct SeenState {
    /// Last observed state of the job.
    pub(crate) observation: Observation,
    /// True if the job shows the alternate screen.
    pub(crate) shows_screen: bool,
    /// True if the last directory change was that of a command that ran in another directory.
    pub(crate) was_in_other_directory: bool,
    /// True if the shell had children when the last command ended.
    pub(crate) has_children: bool,
    /// True if a command has left a child: the shell may tell of its end at any later time.
    pub(crate) has_left_children: bool,
}

pub(crate) struct Shared {
    state: Mutex<State>,
    /// Receives output while no command runs. It has its own lock because the state is needed while it runs; this one
    /// is locked first.
    idle_sink: Mutex<Option<Sink>>,
    /// Wakes the session's thread.
    pub(crate) alarm: Alarm,
    pub(crate) dialect: &'static dyn Dialect,
    pub(crate) name: String,
    /// Reason why it is not the user's usual shell, if it is not.
    pub(crate) fallback: Option<String>,
    /// Name of the session within this program.
    pub(crate) tag: String,
}

impl Shared {
    pub(crate) fn new(
        state: State,
        alarm: Alarm,
        shell: &Shell,
        fallback: Option<String>,
        tag: String,
    ) -> Self {
        Self {
            state: Mutex::new(state),
            idle_sink: Mutex::default(),
            alarm,
            dialect: shell.dialect,
            name: shell.name.clone(),
            fallback,
            tag,
        }
    }

    /// Locks the state. A panic in another thread left it consistent: no step stops halfway.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the sink for output while no command runs. A panic of the sink left it consistent.
    pub(crate) fn idle_sink(&self) -> MutexGuard<'_, Option<Sink>> {
        self.idle_sink
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    pub(crate) fn new(cwd: PathBuf, script: ScriptFile, secrets: ShellSecrets) -> Self {
        Self {
            shell: ShellState {
                live: None,
                cwd,
                size: Size {
                    rows: limits::TERMINAL_ROWS,
                    columns: limits::TERMINAL_COLUMNS,
                },
                last_status: 0,
                restart: None,
                script,
                secrets,
                variables: ShellVariables::default(),
                rc_failure: None,
                is_rc_failure_taken: false,
            },
            job: None,
            call: None,
            person: PersonState::default(),
            owner: OwnerState::default(),
            snapshots: SnapshotState::default(),
            seen: SeenState::default(),
            history: JobHistory::default(),
            numbers: 0,
            backlog: Vec::new(),
        }
    }

    pub(crate) fn next_number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// Returns the number of the mark that ends the running job.
    pub(crate) fn awaited_mark(&self) -> Option<u64> {
        self.job.as_ref().map(|job| job.marks.number)
    }

    /// Returns the sink of the call that waits, else that of the job, and output from before the call that goes first.
    pub(crate) fn sink(&mut self) -> (Option<SharedSink>, Vec<u8>) {
        match (&mut self.call, &self.job) {
            (Some(call), _) => {
                let earlier_output = std::mem::take(&mut call.earlier_output);
                (Some(call.sink.clone()), earlier_output)
            }
            (None, Some(job)) => (job.output.sink.clone(), Vec::new()),
            (None, None) => (None, Vec::new()),
        }
    }

    /// Returns the input that the call is to type.
    pub(crate) fn input(&self) -> Option<&PendingInput> {
        self.call.as_ref().and_then(|call| call.input.as_ref())
    }

    /// Returns true if input is being typed.
    pub(crate) fn is_typing(&self) -> bool {
        self.input().is_some_and(|input| !input.rest().is_empty())
    }

    /// Stores output for the next call; the oldest is dropped first.
    pub(crate) fn store_backlog(&mut self, bytes: &[u8]) {
        let limit = limits::MAX_BACKLOG_BYTES;
        let tail = bytes
            .get(bytes.len().saturating_sub(limit)..)
            .unwrap_or(bytes);
        self.backlog.extend_from_slice(tail);
        // Dropped in large steps, so that each byte is moved once on average.
        if self.backlog.len() > 2 * limit {
            self.backlog.drain(..self.backlog.len() - limit);
        }
    }

    /// Returns true if a person answers the job of the call.
    pub(crate) fn has_person(&self) -> bool {
        let answers = self.person.answers.as_ref();
        let is_answered = answers.is_some_and(|is_over| !is_over.load(Ordering::Relaxed));
        self.call.is_some() && (self.person.has_terminal || is_answered)
    }

    /// Records a key for the job: after an interrupt it must not begin.
    pub(crate) fn record_key(&mut self, key: Key) {
        if key == Key::INTERRUPT || key == Key::QUIT {
            self.mark_interrupted();
        }
    }

    /// Records that a caller wants the job to end.
    pub(crate) fn mark_interrupted(&mut self) {
        if let Some(job) = self.job.as_mut() {
            job.was_interrupted = true;
        }
    }

    /// Returns the numbers of the job and of the call that waits for it; 0 stands for none.
    pub(crate) fn watched(&self) -> (u64, u64) {
        let job = self.job.as_ref().map_or(0, |job| job.number);
        (job, self.call.as_ref().map_or(0, |call| call.number))
    }

    /// Returns true if the shell can take a command, or a job runs.
    pub(crate) fn is_ready(&self) -> bool {
        self.shell.live.is_some() && (self.job.is_some() || self.shell.script.exists())
    }

    /// Records the exit status of a job.
    pub(crate) fn record_end(&mut self, job: u64, status: i32) {
        self.seen.observation.notify_waiters();
        self.history.end(job, status);
    }
}

/// Returns the error of a session without a shell.
pub(crate) fn no_shell() -> ToolError {
    ToolError::new(ErrorCode::SessionFailed, "the session has no shell")
}

/// Returns the error of a failed system call.
pub(crate) fn failure(error: &io::Error) -> ToolError {
    error_hints::failed(
        format!("communication with the shell failed: {error}"),
        error,
    )
}
