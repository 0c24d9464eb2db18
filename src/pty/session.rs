//! A session as its users see it.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use tokio::sync::oneshot;
use zeroize::Zeroizing;

use crate::error::{ErrorCode, ToolError};
use crate::limits;
use crate::secret::Binding;

use super::ending;
use super::engine::Engine;
use super::key::Key;
use super::live::Plan;
use super::marks::MarkCutter;
use super::options::{CommandRequest, InputRequest, Rc, SessionOptions};
use super::shell::{self, Places, STATUS_SCRIPT, Shell, variable};
use super::snapshot::Collector;
use super::state::{self, Call, Input, Order, Progress, Shared, Sink, Start, State};
use super::tracker::Tracker;
use super::wait::Watch;

/// A persistent shell on a terminal of its own. Copies are handles to the same shell; it ends with
/// the last of them.
#[derive(Clone)]
pub struct Session {
    owner: Arc<Owner>,
}

/// Ends the session when the last handle is gone.
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
        let asked = options.shell.as_deref();
        let shell = shell::choose(asked, options.preferred_shell.as_deref(), search_path)?;
        ending::adopt_orphans();
        let (mut engine, shared) = prepare(options, shell).map_err(|error| unusable(&error))?;
        let owner = Arc::new(Owner { shared });
        let (started, starts) = oneshot::channel();
        // The shell ends with the thread that starts it, so the thread lives as long as the session.
        let thread = std::thread::Builder::new().name("karyi-session".to_owned());
        let gone = Gone(owner.shared.clone());
        let body = move || {
            // Declared first, so that it drops last, after a panic too.
            let _gone = gone;
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
    /// `session_busy` while a job holds the terminal, `not_found` when its directory is none,
    /// `unsupported_shell` when the shell cannot take secrets, `session_failed`.
    pub async fn command(
        &self,
        request: CommandRequest,
        sink: Sink,
    ) -> Result<Progress, ToolError> {
        self.check_command(&request)?;
        if self.shared().lock().live.is_none() {
            self.start_again().await?;
        }
        let reply = self.begin_command(&request, sink)?;
        drop(request);
        reply.wait().await
    }

    /// Sends input to the job once it reads the terminal. Empty input only waits for what the job
    /// does next.
    ///
    /// # Errors
    /// `no_job` when nothing runs, `no_reader` when the job does not read in time, `echo_on` when a
    /// secret would be shown. In all of them nothing was sent.
    pub async fn input(
        &self,
        bytes: &[u8],
        request: InputRequest,
        sink: Sink,
    ) -> Result<Progress, ToolError> {
        let input = Input {
            bytes: Zeroizing::new(bytes.to_vec()),
            written: 0,
            is_open: false,
            is_secret: request.is_secret && !request.allow_echo,
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
        self.shared().wake();
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
            let live = state.live.clone().ok_or_else(state::no_shell)?;
            let reply = self.attach(
                &mut state,
                sink,
                Some(timeout.unwrap_or(limits::INPUT_TIMEOUT)),
                None,
            );
            if let Err(error) = live.press(key) {
                state.call = None;
                return Err(state::failure(&error));
            }
            reply
        };
        self.shared().wake();
        reply.wait().await
    }

    /// Presses Ctrl+C without waiting for what comes of it; returns whether a job runs.
    #[must_use]
    pub fn interrupt(&self) -> bool {
        let state = self.shared().lock();
        let live = state.live.as_ref().filter(|_| state.job.is_some());
        live.is_some_and(|live| live.press(Key::INTERRUPT).is_ok())
    }

    /// Returns the shell's directory after the last command.
    #[must_use]
    pub fn cwd(&self) -> PathBuf {
        self.shared().lock().cwd.clone()
    }

    /// Returns the name of the shell.
    #[must_use]
    pub fn shell_name(&self) -> String {
        self.shared().name.clone()
    }

    /// Returns when the environment was saved that a restart would bring back.
    #[must_use]
    pub fn saved_at(&self) -> Option<Instant> {
        self.shared().lock().saved_at
    }

    /// Whether a command holds the terminal.
    #[must_use]
    pub fn has_job(&self) -> bool {
        self.shared().lock().job.is_some()
    }

    /// Returns the name of the program that shows a screen of its own, when one does.
    #[must_use]
    pub fn full_screen_program(&self) -> Option<String> {
        let state = self.shared().lock();
        let live = state
            .live
            .clone()
            .filter(|_| state.shows_screen && state.job.is_some())?;
        drop(state);
        live.foreground_program()
    }

    /// Ends every process of the session with HUP, TERM and KILL, one second apart; returns the
    /// signal that ended the running job, if one ran.
    pub async fn close(&self) -> Option<&'static str> {
        let (reply, closed) = oneshot::channel();
        {
            let mut state = self.shared().lock();
            if state.is_closed {
                return None;
            }
            state.orders.push(Order::Close(reply));
        }
        self.shared().wake();
        closed.await.ok().flatten()
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.owner.shared
    }

    fn check_command(&self, request: &CommandRequest) -> Result<(), ToolError> {
        if !request.bindings.is_empty() && !self.shared().kind.takes_secrets() {
            let message = format!("{} cannot take secrets", self.shared().name);
            return Err(ToolError::new(ErrorCode::UnsupportedShell, message));
        }
        for binding in &request.bindings {
            check_binding(binding)?;
        }
        match &request.cwd {
            Some(directory) => check_directory(directory),
            None => Ok(()),
        }
    }

    async fn start_again(&self) -> Result<(), ToolError> {
        let (reply, started) = oneshot::channel();
        {
            let mut state = self.shared().lock();
            if state.is_closed {
                return Err(state::no_shell());
            }
            state.orders.push(Order::Start(reply));
        }
        self.shared().wake();
        started.await.unwrap_or_else(|_| Err(state::no_shell()))
    }

    fn begin_command(
        &self,
        request: &CommandRequest,
        sink: Sink,
    ) -> Result<Waiting<'_>, ToolError> {
        let mut state = self.shared().lock();
        if state.job.is_some() || state.call.is_some() {
            return Err(busy());
        }
        let reply = self.attach(&mut state, sink, request.timeout, None);
        if let Some(call) = &mut state.call {
            // What came before belongs to the session, not to this command.
            let earlier = std::mem::take(&mut call.earlier);
            state.backlog = earlier;
        }
        let started = state.start_job(&Start {
            kind: self.shared().kind,
            script: &request.script,
            cwd: request.cwd.as_deref(),
            bindings: &request.bindings,
        });
        if let Err(error) = started {
            state.call = None;
            return Err(error);
        }
        Ok(reply)
    }

    /// Takes the state when a job runs that no other call waits for.
    fn job_state(&self) -> Result<MutexGuard<'_, State>, ToolError> {
        let state = self.shared().lock();
        if state.call.is_some() {
            return Err(busy());
        }
        if state.job.is_none() {
            let status = (state.numbers > 1).then_some(state.last_status);
            return Err(state::too_late(status));
        }
        Ok(state)
    }

    /// Makes a call the one that waits for the job.
    fn attach(
        &self,
        state: &mut State,
        sink: Sink,
        timeout: Option<Duration>,
        input: Option<Input>,
    ) -> Waiting<'_> {
        let (reply, receiver) = oneshot::channel();
        let number = state.next_number();
        state.call = Some(Call {
            number,
            sink: Some(sink),
            reply,
            deadline: timeout.and_then(|timeout| Instant::now().checked_add(timeout)),
            earlier: std::mem::take(&mut state.backlog),
            input,
        });
        Waiting {
            shared: self.shared(),
            number,
            receiver,
        }
    }
}

/// Leaves nobody waiting for a thread that has ended.
struct Gone(Arc<Shared>);

impl Drop for Gone {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.is_closed = true;
        state.live = None;
        state.job = None;
        state.call = None;
        state.orders.clear();
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        if state.is_closed {
            return;
        }
        state.orders.push(Order::Abandon);
        drop(state);
        // At once, because the program may end before the thread gets to it.
        ending::signal_all(&self.shared.tag, Signal::SIGKILL, &mut HashSet::new());
        self.shared.wake();
    }
}

/// A call that waits for its result; dropped early, it leaves the job alone.
struct Waiting<'a> {
    shared: &'a Shared,
    number: u64,
    receiver: oneshot::Receiver<Result<Progress, ToolError>>,
}

impl Waiting<'_> {
    async fn wait(mut self) -> Result<Progress, ToolError> {
        // Most commands end sooner than it takes to look at them, and the session's thread sleeps
        // on until their mark comes.
        let first = tokio::time::timeout(limits::WAIT_SCAN_MIN, &mut self.receiver).await;
        let reply = match first {
            Ok(reply) => reply,
            Err(_) => {
                self.shared.wake();
                (&mut self.receiver).await
            }
        };
        reply.unwrap_or_else(|_| Err(state::no_shell()))
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        if state
            .call
            .as_ref()
            .is_some_and(|call| call.number == self.number)
        {
            state.call = None;
        }
    }
}

/// Makes the files of a session and the two halves of it.
fn prepare(options: SessionOptions, shell: Shell) -> io::Result<(Engine, Arc<Shared>)> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&options.runtime_dir)?;
    let directory = tempfile::Builder::new()
        .prefix("session-")
        .tempdir_in(&options.runtime_dir)?;
    let nonce = make_nonce()?;
    // Not the nonce: programs of the session see the tag.
    let tag = make_nonce()?;
    let places = Places {
        directory: directory.path().to_owned(),
        terminal: PathBuf::new(),
        nonce: nonce.clone(),
    };
    write_private(&places.file("setup"), &shell.kind.setup_script(&places))?;
    write_private(
        &places.file("snapshot"),
        &shell.kind.snapshot_script(&places),
    )?;
    write_private(&places.file("status"), STATUS_SCRIPT)?;
    let script = write_private(&places.file("script"), "")?;
    let (wakes, waker) = UnixStream::pair()?;
    wakes.set_nonblocking(true)?;
    waker.set_nonblocking(true)?;
    let state = State::new(options.cwd, script);
    let shared = Arc::new(Shared::new(state, waker, &shell, tag.clone()));
    let plan = Plan {
        shell,
        bootstrap: options.bootstrap,
        env: options.env,
        directory: directory.path().to_owned(),
        nonce: nonce.clone(),
        tag,
    };
    let now = Instant::now();
    let engine = Engine {
        shared: shared.clone(),
        plan,
        wakes,
        has_rc: options.rc == Rc::User,
        running: None,
        cutter: MarkCutter::new(&nonce),
        tracker: Tracker::new(),
        collector: Collector::new(&nonce),
        buffer: vec![0; limits::TERMINAL_READ_BYTES],
        watch: Watch::new(),
        watched: (0, 0),
        next_look: now,
        unsaved_since: None,
        ended_at: now,
        is_done: false,
        directory: Some(directory),
    };
    Ok((engine, shared))
}

fn write_private(path: &Path, text: &str) -> io::Result<File> {
    use std::io::Write as _;
    let mut file = File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(text.as_bytes())?;
    Ok(file)
}

/// Returns a word nobody can guess.
fn make_nonce() -> io::Result<String> {
    use std::io::Read as _;
    let mut bytes = [0; 8];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(format!("{:016x}", u64::from_ne_bytes(bytes)))
}

fn check_binding(binding: &Binding) -> Result<(), ToolError> {
    let is_name = crate::secret::SecretName::parse(&binding.variable).is_some();
    let value = binding.value.expose();
    if is_name && value.len() <= limits::MAX_SECRET_BYTES && !value.contains('\0') {
        return Ok(());
    }
    let message = format!(
        "the secret for ${} does not fit a shell variable",
        binding.variable
    );
    Err(ToolError::new(ErrorCode::BadValue, message))
}

fn check_directory(directory: &Path) -> Result<(), ToolError> {
    match std::fs::metadata(directory) {
        Ok(file) if file.is_dir() => Ok(()),
        Ok(_) => Err(ToolError::from_io(
            directory,
            &io::ErrorKind::NotADirectory.into(),
        )),
        Err(error) => Err(ToolError::from_io(directory, &error)),
    }
}

fn busy() -> ToolError {
    ToolError::new(ErrorCode::SessionBusy, "another command holds the terminal")
}

fn unusable(error: &io::Error) -> ToolError {
    ToolError::new(
        ErrorCode::SessionFailed,
        format!("the session could not be made: {error}"),
    )
}
