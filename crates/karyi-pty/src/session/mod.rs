//! Handle of a session.

mod command_check;
pub(crate) mod names;
pub(crate) mod options;
mod person;
mod setup;
pub(crate) mod status;
mod terminate;

use std::ffi::OsStr;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use zeroize::Zeroizing;

use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;
use karyi_core::outcome::Status;

use crate::engine::job_start::JobStart;
use crate::engine::pending_call::{self, PendingCall, PendingInput, Progress, Sink};
use crate::engine::poll::as_typed;
use crate::engine::state::{self, Order, Shared, State};
use crate::host::error_hints;
use crate::host::runtime;
use crate::session::options::{CommandRequest, InputRequest, SessionOptions};
use crate::shell::choice;
use crate::teardown::registry;
use crate::teardown::sweep;
use crate::terminal::key::Key;
use crate::terminal::live_shell::Size;
use crate::terminal::spawn::variable;

/// A persistent shell on a terminal of its own. Clones are handles to the same shell; it ends with the last of them.
#[derive(Clone)]
pub struct Session {
    owner: Arc<Owner>,
}

/// Ends the session when the last handle is dropped.
struct Owner {
    shared: Arc<Shared>,
}

impl Session {
    /// Starts a shell.
    ///
    /// # Errors
    /// `no_shell` when there is none to start, `session_failed` when it does not answer.
    pub async fn start(options: SessionOptions) -> Result<Self, ToolError> {
        let search_path = variable(&options.env, "PATH").unwrap_or(OsStr::new(""));
        let requested = options.shell.as_deref();
        let directories = choice::directories(search_path);
        let preferred = options.preferred_shell.as_deref();
        let choice = choice::choose(requested, preferred, &directories)?;
        registry::adopt_orphans();
        let runtime_dir = options.runtime_dir.clone();
        runtime::prepare(&runtime_dir)?;
        let engine = setup::prepare(options, choice)
            .map_err(|error| runtime::unusable(&runtime_dir, &error))?;
        let owner = Arc::new(Owner {
            shared: engine.shared.clone(),
        });
        let (started, starts) = oneshot::channel();
        // The shell ends with the thread that starts it, so the thread lives as long as the session.
        let thread = std::thread::Builder::new().name("karyi-session".to_owned());
        let closing_guard = ClosingGuard(owner.shared.clone());
        let body = move || {
            // Declared first, so that it drops last, after a panic too.
            let _closing_guard = closing_guard;
            let mut engine = engine;
            sweep::sweep(&runtime_dir);
            let result = engine.start();
            let is_started = result.is_ok();
            if started.send(result).is_ok() && is_started {
                engine.run();
            } else {
                engine.abandon();
            }
        };
        thread.spawn(body).map_err(|error| unusable(&error))?;
        starts.await.unwrap_or_else(|_| Err(state::no_shell()))?;
        Ok(Self { owner })
    }

    /// Runs a command; its output goes to `sink`.
    ///
    /// # Errors
    /// `session_busy` while a job holds the terminal, `not_found` when its directory does not exist,
    /// `unsupported_shell` when the shell cannot take secrets, `session_failed`.
    pub async fn command(
        &self,
        mut request: CommandRequest,
        sink: Sink,
    ) -> Result<Progress, ToolError> {
        self.check_command(&request)?;
        let mut sink = Some(sink);
        for _ in 0..limits::MAX_SHELLS_PER_COMMAND {
            let is_ready = self.shared().lock().is_ready();
            if !is_ready {
                self.start_again().await?;
            }
            if let Some(reply) = self.begin_command(&mut request, &mut sink)? {
                drop(request);
                return reply.wait().await;
            }
        }
        Err(state::no_shell())
    }

    /// Sends input to the job once it reads the terminal. Empty input only waits for the next state of the job.
    ///
    /// # Errors
    /// `no_job` when nothing runs, `no_reader` when the job does not read in time, `echo_on` when a secret would be
    /// echoed, `unsafe_context` when the terminal would act on a character of a secret. In all cases nothing was sent.
    pub async fn input(
        &self,
        bytes: &[u8],
        request: InputRequest,
        sink: Sink,
    ) -> Result<Progress, ToolError> {
        let input = PendingInput {
            bytes: Zeroizing::new(bytes.to_vec()),
            written: 0,
            allowed: 0,
            is_secret: request.is_secret && !request.allow_echo,
            values: request.values,
        };
        let reply = {
            let mut state = self.job_state()?;
            self.attach(
                &mut state,
                sink,
                Some(request.timeout.unwrap_or(limits::INPUT_TIMEOUT)),
                Some(input).filter(|input| !input.bytes.is_empty()),
            )
        };
        self.shared().alarm.ring();
        reply.wait().await
    }

    /// Presses a key.
    ///
    /// # Errors
    /// `no_job` when nothing runs.
    pub async fn key(
        &self,
        key: Key,
        timeout: Option<Duration>,
        sink: Sink,
    ) -> Result<Progress, ToolError> {
        let reply = {
            let mut state = self.job_state()?;
            let live = state.shell.live.clone().ok_or_else(state::no_shell)?;
            let reply = self.attach(
                &mut state,
                sink,
                Some(timeout.unwrap_or(limits::INPUT_TIMEOUT)),
                None,
            );
            if let (Some(call), Key::SUSPEND) = (&mut state.call, key) {
                call.stops = limits::MAX_REPEATED_STOPS;
            }
            state.record_key(key);
            let pressed = live.press(key);
            if pressed.is_err() {
                state.call = None;
            }
            // Unlock first: dropping the reply locks the state, too.
            drop(state);
            pressed.map_err(|error| state::failure(&error))?;
            reply
        };
        self.shared().alarm.ring();
        reply.wait().await
    }

    /// Lets a person answer the job of the next call, which does not end by waiting until the flag is set.
    pub fn set_answers(&self, answers: Option<Arc<AtomicBool>>) {
        self.shared().lock().person.answers = answers;
    }

    /// Types the keys of the person who answers the job, if it waits for them by then; returns true if it does.
    pub async fn type_keys(&self, keys: &[u8], until: Instant) -> bool {
        if !self.shared().lock().has_person() {
            return false;
        }
        let waits = [Some(Status::AwaitingInput), Some(Status::AcceptsInput)];
        while !waits.contains(&self.job_status().await) {
            if Instant::now() >= until {
                return false;
            }
            tokio::time::sleep(limits::WAIT_SCAN_MAX).await;
        }
        let mut state = self.shared().lock();
        let live = state.shell.live.clone().filter(|_| state.has_person());
        let (Some(live), Some(job)) = (live, &mut state.job) else {
            return false;
        };
        job.typed.add(keys);
        // A terminal that takes no more is full of keys that were not read.
        nix::unistd::write(&live.master, &as_typed(keys, &live)).is_ok()
    }

    /// Presses Ctrl+C without waiting for the result; returns true if a job runs. Nobody answers the job any more.
    #[must_use]
    pub fn interrupt(&self) -> bool {
        let mut state = self.shared().lock();
        state.person.answers = None;
        state.record_key(Key::INTERRUPT);
        let live = state.shell.live.as_ref().filter(|_| state.job.is_some());
        live.is_some_and(|live| live.press(Key::INTERRUPT).is_ok())
    }

    /// Returns true if the job waits for the rest of a line that was typed.
    #[must_use]
    pub fn has_open_line(&self) -> bool {
        let state = self.shared().lock();
        let has_bytes = state
            .job
            .as_ref()
            .is_some_and(|job| job.typed.open_line_bytes() > 0);
        let live = state.shell.live.as_ref().filter(|_| has_bytes);
        live.is_some_and(|live| live.watched_terminal().is_canonical())
    }

    /// Ends the time limit of the call that waits: its command goes on as a job.
    pub fn hand_over(&self) {
        if let Some(call) = &mut self.shared().lock().call {
            call.deadline = Some(Instant::now());
        }
        self.shared().alarm.ring();
    }

    /// Sets the size of the terminal, also for later shells; the job in the foreground gets WINCH.
    ///
    /// # Errors
    /// `bad_value` when a side is not between 1 and 1000, `session_failed`.
    pub fn resize(&self, rows: u16, columns: u16) -> Result<(), ToolError> {
        let sides = 1..=limits::MAX_TERMINAL_SIDE;
        if !sides.contains(&rows) || !sides.contains(&columns) {
            let most = limits::MAX_TERMINAL_SIDE;
            let message =
                format!("expected 1 to {most} rows and columns, found {rows} and {columns}");
            return Err(ToolError::new(ErrorCode::BadValue, message));
        }
        let mut state = self.shared().lock();
        state.shell.size = Size { rows, columns };
        match &state.shell.live {
            Some(live) => live
                .resize(state.shell.size)
                .map_err(|error| state::failure(&error)),
            None => Ok(()),
        }
    }

    /// Returns the rows and columns of the terminal.
    #[must_use]
    pub fn size(&self) -> (u16, u16) {
        let size = self.shared().lock().shell.size;
        (size.rows, size.columns)
    }

    /// Returns the shell's directory after the last command.
    #[must_use]
    pub fn cwd(&self) -> PathBuf {
        self.shared().lock().shell.cwd.clone()
    }

    /// Returns the name of the shell.
    #[must_use]
    pub fn shell_name(&self) -> String {
        self.shared().name.clone()
    }

    /// Returns true if the shell can print its functions, so that a restarted or forked shell has them.
    #[must_use]
    pub fn prints_functions(&self) -> bool {
        self.shared().dialect.unprintable().is_empty()
    }

    /// Returns the reason why the shell is not the user's usual one.
    #[must_use]
    pub fn fallback(&self) -> Option<String> {
        self.shared().fallback.clone()
    }

    /// Returns, once, what went wrong with the user's start-up files.
    #[must_use]
    pub fn take_startup_note(&self) -> Option<String> {
        let mut state = self.shared().lock();
        let note = state.shell.rc_failure.clone();
        let was_taken = std::mem::replace(&mut state.shell.is_rc_failure_taken, note.is_some());
        note.filter(|_| !was_taken)
    }

    /// Returns the time of the snapshot that a restart would restore.
    #[must_use]
    pub fn saved_at(&self) -> Option<Instant> {
        let state = self.shared().lock();
        state.snapshots.last.as_ref().map(|snapshot| snapshot.taken)
    }

    /// Returns true if a command holds the terminal.
    #[must_use]
    pub fn has_job(&self) -> bool {
        self.shared().lock().job.is_some()
    }

    /// Returns the name of the program that shows the alternate screen, if one does.
    #[must_use]
    pub fn full_screen_program(&self) -> Option<String> {
        let state = self.shared().lock();
        let live = state
            .shell
            .live
            .clone()
            .filter(|_| state.seen.shows_screen && state.job.is_some())?;
        drop(state);
        live.foreground_program()
    }

    /// Ends every process of the session with HUP, TERM and KILL, and lets traps finish; returns the
    /// signal that ended the running job, if one ran.
    pub async fn close(&self) -> Option<&'static str> {
        self.order(Order::Close).await.flatten()
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.owner.shared
    }

    async fn start_again(&self) -> Result<(), ToolError> {
        let started = self.order(Order::Start).await;
        started.unwrap_or_else(|| Err(state::no_shell()))
    }

    /// Gives the session's thread an order; returns its reply, or `None` if the session is closed.
    async fn order<T>(&self, make: impl FnOnce(oneshot::Sender<T>) -> Order) -> Option<T> {
        let (reply, done) = oneshot::channel();
        {
            let mut state = self.shared().lock();
            if state.owner.is_closed {
                return None;
            }
            state.owner.orders.push_back(make(reply));
        }
        self.shared().alarm.ring();
        done.await.ok()
    }

    /// Sends a command to the shell; returns `None` when the shell has just ended by itself.
    pub(crate) fn begin_command(
        &self,
        request: &mut CommandRequest,
        sink: &mut Option<Sink>,
    ) -> Result<Option<WaitingCall<'_>>, ToolError> {
        let mut state = self.shared().lock();
        if state.job.is_some() || state.call.is_some() {
            return Err(busy_error());
        }
        let sink = match state.shell.live {
            Some(_) => sink.take(),
            None => None,
        };
        let Some(sink) = sink else {
            return Ok(None);
        };
        let reply = self.attach(&mut state, sink, request.timeout, None);
        if let Some(call) = &mut state.call {
            // Earlier output belongs to the session, not to this command.
            let earlier_output = std::mem::take(&mut call.earlier_output);
            state.backlog = earlier_output;
        }
        let own = std::mem::take(&mut request.bindings);
        state.shell.secrets.remember(&own);
        let named = state.shell.secrets.named();
        let secrets = state.shell.variables.update(own, named);
        let started = state.start_job(JobStart {
            dialect: self.shared().dialect,
            script: &request.script,
            cwd: request.cwd.as_deref(),
            secrets,
            sink: request.detached_sink.take(),
        });
        if started.is_err() {
            state.call = None;
            state.shell.variables.forget();
        }
        // Unlock first: dropping the reply locks the state, too.
        drop(state);
        started?;
        // Most commands end sooner, and the session's thread sleeps until their mark comes.
        let scan = Instant::now() + limits::WAIT_SCAN_MIN;
        self.shared().alarm.ring_by(scan);
        Ok(Some(reply))
    }

    /// Locks the state if a job runs and no other call waits for it.
    pub(crate) fn job_state(&self) -> Result<MutexGuard<'_, State>, ToolError> {
        let state = self.shared().lock();
        if state.call.is_some() {
            return Err(busy_error());
        }
        if state.job.is_none() {
            let status = (state.numbers > 1).then_some(state.shell.last_status);
            return Err(pending_call::no_job_error(status));
        }
        Ok(state)
    }

    /// Makes a call wait for the job.
    pub(crate) fn attach(
        &self,
        state: &mut State,
        sink: Sink,
        timeout: Option<Duration>,
        input: Option<PendingInput>,
    ) -> WaitingCall<'_> {
        let (reply, receiver) = oneshot::channel();
        let number = state.next_number();
        state.call = Some(PendingCall {
            number,
            is_for_end: false,
            stops: 0,
            sink: Arc::new(Mutex::new(sink)),
            reply,
            deadline: timeout.and_then(|timeout| Instant::now().checked_add(timeout)),
            earlier_output: std::mem::take(&mut state.backlog),
            input,
        });
        WaitingCall {
            shared: self.shared(),
            number,
            receiver,
            is_answered: false,
        }
    }
}

/// Ends all waits when the session's thread has ended.
struct ClosingGuard(Arc<Shared>);

impl Drop for ClosingGuard {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.owner.is_closed = true;
        state.shell.live = None;
        state.job = None;
        state.call = None;
        state.owner.orders.clear();
        drop(state);
        registry::unregister(&self.0.tag);
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        if state.owner.is_closed {
            return;
        }
        state.owner.orders.push_back(Order::Abandon);
        drop(state);
        // At once, because the program may exit before the thread acts.
        registry::kill_all(&self.shared.tag);
        self.shared.alarm.ring();
    }
}

/// A call that waits for its result; dropping it leaves the job alone.
pub(crate) struct WaitingCall<'a> {
    shared: &'a Shared,
    number: u64,
    receiver: oneshot::Receiver<Result<Progress, ToolError>>,
    is_answered: bool,
}

impl WaitingCall<'_> {
    pub(crate) async fn wait(mut self) -> Result<Progress, ToolError> {
        let reply = (&mut self.receiver).await;
        self.is_answered = true;
        reply.unwrap_or_else(|_| Err(state::no_shell()))
    }
}

impl Drop for WaitingCall<'_> {
    fn drop(&mut self) {
        if self.is_answered {
            return;
        }
        let mut state = self.shared.lock();
        if state
            .call
            .as_ref()
            .is_some_and(|call| call.number == self.number)
        {
            state.call = None;
        }
        drop(state);
        // The thread may have slept through the start of the job.
        self.shared.alarm.ring();
    }
}

fn busy_error() -> ToolError {
    ToolError::new(ErrorCode::SessionBusy, "another command holds the terminal")
}

fn unusable(error: &io::Error) -> ToolError {
    error_hints::failed(format!("the session could not be created: {error}"), error)
}
