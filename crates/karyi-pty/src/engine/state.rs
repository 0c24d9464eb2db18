//! What a session knows: the job in the foreground, the call that waits for it, what came before.
//!
//! Both sides of a session share it: calls are attached on the caller's side, which keeps the way
//! of a command to the shell short; the session's thread reads the terminal and ends them.

use std::collections::VecDeque;
use std::io;
use std::io::Write as _;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::oneshot;

use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;

use crate::engine::background::Background;
use crate::engine::job::Job;
use crate::engine::observation::Observation;
use crate::engine::pending_call::{PendingCall, Restart, Sink};
use crate::host::error_hints;
use crate::shell::secrets::{ShellSecrets, ShellVariables};
use crate::shell::snapshot::Snapshot;
use crate::shell::{Dialect, Shell};
use crate::terminal::key::Key;
use crate::terminal::live_shell::{LiveShell, ScriptFile, Size};

/// What the owner of a session wants of its thread.
pub(crate) enum Order {
    /// Start the shell if none runs.
    Start(oneshot::Sender<Result<(), ToolError>>),
    /// End everything in steps; the reply names the signal that ended the job.
    Close(oneshot::Sender<Option<&'static str>>),
    /// The owner is gone, and everything was killed.
    Abandon,
}

pub(crate) struct State {
    pub(crate) live: Option<Arc<LiveShell>>,
    pub(crate) job: Option<Job>,
    pub(crate) call: Option<PendingCall>,
    /// What is to be done, in this order.
    pub(crate) orders: VecDeque<Order>,
    /// Number of the last mark or call given out.
    pub(crate) numbers: u64,
    /// Output nobody waited for.
    pub(crate) backlog: Vec<u8>,
    pub(crate) cwd: PathBuf,
    pub(crate) size: Size,
    pub(crate) last_status: i32,
    /// A restart nobody was told of.
    pub(crate) restart: Option<Restart>,
    pub(crate) is_closed: bool,
    /// When the environment a restart would bring back was saved.
    pub(crate) saved_at: Option<Instant>,
    /// The last snapshot.
    pub(crate) snapshot: Option<Snapshot>,
    /// What commands left in the background, by the number of their job; the newest last.
    pub(crate) background: VecDeque<(u64, Background)>,
    /// How much of what commands left in the background is not kept account of.
    pub(crate) omitted_background: u64,
    /// The signal that ended the last process of the session.
    pub(crate) last_signal: Option<&'static str>,
    /// Number of the job that was started last.
    pub(crate) newest_job: u64,
    /// True if a script since the last snapshot may have defined what only a snapshot can tell.
    pub(crate) needs_snapshot: bool,
    /// How many snapshots the shell that runs was asked for.
    pub(crate) requested_snapshots: u64,
    /// Jobs that ended while no call waited for them, and their exit status; the newest last.
    pub(crate) ended: VecDeque<(u64, i32)>,
    pub(crate) script: ScriptFile,
    /// What the job was last seen doing.
    pub(crate) observation: Observation,
    /// True if the job shows a screen of its own.
    pub(crate) shows_screen: bool,
    /// True if a command that ran elsewhere was the last one to tell the shell where to be.
    pub(crate) was_in_other_directory: bool,
    /// True if the shell had children when the last command ended.
    pub(crate) has_children: bool,
    /// Why the shell is without the user's start-up files, when it is.
    pub(crate) rc_failure: Option<String>,
    /// Secrets as the shells of the session know them.
    pub(crate) secrets: ShellSecrets,
    /// Secrets that the shell has variables for.
    pub(crate) variables: ShellVariables,
    script_length: u64,
}

pub(crate) struct Shared {
    state: Mutex<State>,
    /// Takes what is printed while no command runs. Beside the state, which others need while it
    /// takes something; whoever holds both has taken this one first.
    idle_sink: Mutex<Option<Sink>>,
    waker: UnixStream,
    /// True if the session's thread waits for the engine.
    is_claimed: AtomicBool,
    pub(crate) dialect: &'static dyn Dialect,
    pub(crate) name: String,
    /// Why it is not the user's usual shell, when it is not.
    pub(crate) fallback: Option<String>,
    /// The session's name among those of this program.
    pub(crate) tag: String,
}

impl Shared {
    pub(crate) fn new(
        state: State,
        waker: UnixStream,
        shell: &Shell,
        fallback: Option<String>,
        tag: String,
    ) -> Self {
        Self {
            state: Mutex::new(state),
            idle_sink: Mutex::default(),
            waker,
            is_claimed: AtomicBool::new(false),
            dialect: shell.dialect,
            name: shell.name.clone(),
            fallback,
            tag,
        }
    }

    /// Takes the state. A panic elsewhere left it whole: no step of ours stops halfway.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the place of the sink for what is printed while no command runs. A panic of the sink
    /// left it as whole as it was.
    pub(crate) fn idle_sink(&self) -> MutexGuard<'_, Option<Sink>> {
        self.idle_sink
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the engine for the session's thread: callers who always want it next get it no more.
    pub(crate) fn claim<T>(&self, take: impl FnOnce() -> T) -> T {
        self.is_claimed.store(true, Ordering::Relaxed);
        let taken = take();
        self.is_claimed.store(false, Ordering::Relaxed);
        taken
    }

    /// Returns true if the session's thread waits for the engine.
    pub(crate) fn is_claimed(&self) -> bool {
        self.is_claimed.load(Ordering::Relaxed)
    }

    /// Returns true if the running command may leave something in the background, and whether that may have
    /// left the shell's session.
    pub(crate) fn may_leave(&self) -> (bool, bool) {
        let state = self.lock();
        let job = state.job.as_ref();
        job.map_or((false, false), |job| (job.may_leave, job.may_leave_session))
    }

    /// Has the session's thread look at the state.
    pub(crate) fn wake(&self) {
        // A full pipe wakes as well.
        let _ = (&self.waker).write(&[1]);
    }
}

impl State {
    pub(crate) fn new(cwd: PathBuf, script: ScriptFile, secrets: ShellSecrets) -> Self {
        Self {
            live: None,
            job: None,
            call: None,
            orders: VecDeque::new(),
            numbers: 0,
            backlog: Vec::new(),
            cwd,
            size: Size {
                rows: limits::TERMINAL_ROWS,
                columns: limits::TERMINAL_COLUMNS,
            },
            last_status: 0,
            restart: None,
            is_closed: false,
            saved_at: None,
            snapshot: None,
            newest_job: 0,
            needs_snapshot: false,
            requested_snapshots: 0,
            rc_failure: None,
            background: VecDeque::new(),
            omitted_background: 0,
            last_signal: None,
            ended: VecDeque::new(),
            observation: Observation::default(),
            shows_screen: false,
            was_in_other_directory: false,
            has_children: false,
            script,
            secrets,
            variables: ShellVariables::default(),
            script_length: 0,
        }
    }

    pub(crate) fn next_number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// Returns the number of the mark that the running job ends with.
    pub(crate) fn awaited_mark(&self) -> Option<u64> {
        self.job.as_ref().map(|job| job.mark)
    }

    /// Returns the place of the running job's sink for output no call waits for, while it is that
    /// job.
    pub(crate) fn output_sink_of(&mut self, number: u64) -> Option<&mut Option<Sink>> {
        let job = self.job.as_mut().filter(|job| job.number == number);
        job.map(|job| &mut job.rest)
    }

    /// Keeps output nobody waits for; the oldest goes first.
    pub(crate) fn store_backlog(&mut self, bytes: &[u8]) {
        let limit = limits::MAX_BACKLOG_BYTES;
        let kept = bytes
            .get(bytes.len().saturating_sub(limit)..)
            .unwrap_or(bytes);
        self.backlog.extend_from_slice(kept);
        // Dropped in large steps, so that each byte is moved once on average.
        if self.backlog.len() > 2 * limit {
            self.backlog.drain(..self.backlog.len() - limit);
        }
    }

    pub(crate) fn write_script(&mut self, script: &str) -> io::Result<()> {
        let length = script.len() as u64;
        if length < self.script_length {
            self.script.file.set_len(0)?;
        }
        // Until all of it stands there, nothing is known about the file.
        self.script_length = u64::MAX;
        self.script.file.write_all_at(script.as_bytes(), 0)?;
        // Where that cannot be done everything counts as read.
        let _ = self.script.forget_reads();
        self.script_length = length;
        Ok(())
    }

    /// Returns true if the shell has begun to read the script: something else may have taken the line that
    /// says so, as a trap does that reads its standard input while the shell rests.
    pub(crate) fn has_begun_script(&self) -> bool {
        self.script_length == 0 || self.script.was_read()
    }

    /// Returns device and number of the file for scripts.
    pub(crate) fn script_identity(&self) -> (u64, u64) {
        self.script.identity
    }

    /// Returns true if there is a script in the file: it may have been made again.
    pub(crate) fn has_script(&self) -> bool {
        self.script_length > 0
    }

    /// Takes note of a key for the job: who interrupts it does not want it to begin.
    pub(crate) fn record_key(&mut self, key: Key) {
        if key == Key::INTERRUPT || key == Key::QUIT {
            self.mark_interrupted();
        }
    }

    /// Takes note that somebody wants the job to end.
    pub(crate) fn mark_interrupted(&mut self) {
        if let Some(job) = self.job.as_mut() {
            job.was_interrupted = true;
        }
    }

    /// Takes another file for scripts, an empty one.
    pub(crate) fn set_script(&mut self, script: ScriptFile) {
        self.script = script;
        self.script_length = 0;
    }

    /// Returns the numbers of the job and of the call that waits for it, 0 where there is none.
    pub(crate) fn watched(&self) -> (u64, u64) {
        let job = self.job.as_ref().map_or(0, |job| job.number);
        (job, self.call.as_ref().map_or(0, |call| call.number))
    }

    /// Returns true if there is a shell, and what it needs for a command.
    pub(crate) fn is_ready(&self) -> bool {
        self.live.is_some() && (self.job.is_some() || self.script.exists())
    }

    /// Keeps what a job left in the background until it is asked for; the oldest goes first. Nobody
    /// may ever ask, so neither their number nor that of their descriptors grows without end.
    pub(crate) fn store_background(&mut self, job: u64, left: Vec<Background>, omitted: u64) {
        self.omitted_background += omitted;
        if left.is_empty() {
            return;
        }
        self.background
            .extend(left.into_iter().map(|left| (job, left)));
        let mut open: usize = self.background.iter().map(|(_, job)| job.size()).sum();
        while open > limits::MAX_FOLLOWED_PROCESSES
            || self.background.len() > limits::MAX_ENDED_JOBS
        {
            let Some((_, oldest)) = self.background.pop_front() else {
                break;
            };
            let size = oldest.size();
            open = open.saturating_sub(size);
            self.omitted_background += size.max(1) as u64;
        }
    }

    /// Remembers how a job ended.
    pub(crate) fn record_end(&mut self, job: u64, status: i32) {
        self.observation.notify_waiters();
        if self.ended.back() == Some(&(job, status)) {
            return;
        }
        if self.ended.len() >= limits::MAX_ENDED_JOBS {
            self.ended.pop_front();
        }
        self.ended.push_back((job, status));
    }
}

/// The error of a session without a shell.
pub(crate) fn no_shell() -> ToolError {
    ToolError::new(ErrorCode::SessionFailed, "the session has no shell")
}

/// The error of a session that the system failed.
pub(crate) fn failure(error: &io::Error) -> ToolError {
    error_hints::failed(format!("talking to the shell: {error}"), error)
}
