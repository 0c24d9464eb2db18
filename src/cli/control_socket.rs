//! The control socket of a session, through which `karyi var set --session` sends it a value.
//!
//! Each `karyi run` and each `karyi mcp` on standard input has one in the runtime directory, named after its
//! process and its start time. The kernel identifies both ends: they must be processes of the same user, and
//! neither may be inside a session. So no program run by a model can send or receive a value.
//!
//! The session speaks first: [`Reply::Hello`] or a refusal. The client sends a [`Head`] and a value and reads one
//! reply. A message is its length in four bytes, big-endian, followed by JSON or by the raw value.

use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use nix::unistd::geteuid;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use zeroize::Zeroizing;

use crate::cli::runtime_dir::runtime_dir;
use crate::cli::vault;
use crate::exec::resolve;
use crate::mcp::stdio::SecretsGetter;
use crate::render::paint::safe_line;
use crate::tool::context::{Boxed, Context};
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;
use karyi_core::secret::{SecretName, SecretValue};
use karyi_pty::{inherited, runtime};
use karyi_vault::policy::Policy;
use karyi_vault::session::{Need, case_conflict, name_taken};

/// Prefix of the sockets' names.
const PREFIX: &str = "control-";

/// The process that a session's socket is named after.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct SocketName {
    pid: u32,
    /// Start of the process, in ticks since boot.
    started: u64,
}

impl SocketName {
    fn parse(name: &OsStr) -> Option<Self> {
        let (pid, started) = name.to_str()?.strip_prefix(PREFIX)?.split_once('-')?;
        Some(Self {
            pid: pid.parse().ok()?,
            started: started.parse().ok()?,
        })
    }

    fn in_dir(self, directory: &Path) -> PathBuf {
        directory.join(format!("{PREFIX}{}-{}", self.pid, self.started))
    }

    fn is_alive(self) -> bool {
        let pid = i32::try_from(self.pid).ok();
        pid.and_then(inherited::start_time) == Some(self.started)
    }
}

/// Lists the control sockets of live processes and removes those of killed sessions.
async fn live_sockets(directory: &Path) -> Vec<SocketName> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let sockets = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_socket()));
    let names = sockets.filter_map(|entry| SocketName::parse(&entry.file_name()));
    let (mut alive, dead): (Vec<_>, Vec<_>) = names.partition(|name| name.is_alive());
    for path in dead.into_iter().map(|name| name.in_dir(directory)) {
        // The process of a live socket may be invisible, in another container.
        let answer = UnixStream::connect(&path).await;
        if answer.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
            let _ = std::fs::remove_file(path);
        }
    }
    alive.sort();
    alive
}

/// Returns the process at the other end of a socket.
///
/// # Errors
/// `permission_denied` for another user; `inside_session` for a process of a session, and for one that cannot be
/// shown to be outside.
fn peer(stream: &UnixStream) -> Result<SocketName, ToolError> {
    let seen = stream.peer_cred().ok();
    if seen.is_some_and(|seen| seen.uid() != geteuid().as_raw()) {
        let message = "a session accepts values only from its own user";
        return Err(ToolError::new(ErrorCode::PermissionDenied, message)
            .with_hint("run `karyi var set` as the user of the session"));
    }
    let pid = seen.and_then(|seen| seen.pid()).filter(|pid| *pid > 0);
    pid.and_then(|pid| process_outside_sessions(stream, pid))
        .ok_or_else(|| {
            let message = "this runs inside a session of karyi, or may do so: all its ancestors \
                       must be seen in /proc";
            ToolError::new(ErrorCode::InsideSession, message)
        })
}

/// Returns the process with this number at the other end of a socket, when it is certainly outside any session and
/// has not ended: while it exists no other process gets its number.
fn process_outside_sessions(stream: &UnixStream, pid: i32) -> Option<SocketName> {
    let started = inherited::start_time_outside_sessions(pid)?;
    let name = SocketName {
        pid: pid.try_into().ok()?,
        started,
    };
    has_not_ended(stream).then_some(name)
}

#[cfg(target_os = "linux")]
fn has_not_ended(stream: &UnixStream) -> bool {
    use nix::errno::Errno;
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use nix::sys::socket::{getsockopt, sockopt};
    use std::os::fd::AsFd;

    match getsockopt(&stream.as_fd(), sockopt::PeerPidfd) {
        Ok(process) => {
            let mut end = [PollFd::new(process.as_fd(), PollFlags::POLLIN)];
            poll(&mut end, PollTimeout::ZERO) == Ok(0)
        }
        // Not supported before Linux 6.5.
        Err(error) => error == Errno::ENOPROTOOPT,
    }
}

#[cfg(not(target_os = "linux"))]
fn has_not_ended(_: &UnixStream) -> bool {
    true
}

/// A message of the session.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Reply {
    /// Description of the session for people; it proves nothing.
    Hello(String),
    Done,
    Refused {
        code: String,
        message: String,
        hint: String,
    },
}

impl From<Result<(), ToolError>> for Reply {
    fn from(result: Result<(), ToolError>) -> Self {
        match result {
            Ok(()) => Self::Done,
            Err(error) => Self::Refused {
                code: error.code.as_str().to_owned(),
                message: error.message,
                hint: error.hint,
            },
        }
    }
}

/// Returns the error in a session's reply.
fn refusal(code: &str, message: &str, hint: &str) -> ToolError {
    let known = ErrorCode::ALL.iter().find(|known| known.as_str() == code);
    let code = known.copied().unwrap_or(ErrorCode::Io);
    ToolError::new(code, safe_line(message)).with_hint(safe_line(hint))
}

/// The part of a request before the value.
#[derive(Serialize, Deserialize)]
struct Head {
    name: String,
    policy: Policy,
}

/// Sends a message.
async fn write(stream: &mut UnixStream, bytes: &[u8]) -> io::Result<()> {
    let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
    stream.write_all(&length.to_be_bytes()).await?;
    stream.write_all(bytes).await
}

/// Receives the bytes of a message.
async fn read(stream: &mut UnixStream) -> io::Result<Zeroizing<Vec<u8>>> {
    let length = usize::try_from(stream.read_u32().await?).unwrap_or(usize::MAX);
    let most = limits::MAX_CONTROL_FRAME_BYTES;
    if length > most {
        let message = format!("expected at most {most} bytes, found more");
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    let mut bytes = Zeroizing::new(vec![0; length]);
    stream.read_exact(&mut bytes).await?;
    Ok(bytes)
}

/// A running session that accepts values.
pub(super) struct RunningSession {
    pub(super) pid: u32,
    /// Description for people, on one line.
    pub(super) description: String,
    name: SocketName,
}

/// Finds the sessions of this user.
///
/// # Errors
/// The directory of running sessions is not the user's own.
pub(super) fn find() -> Result<Vec<RunningSession>, ToolError> {
    if !cfg!(target_os = "linux") {
        let message = "a running session can be given a value on Linux only: other systems do not identify the sender";
        return Err(ToolError::new(ErrorCode::NoSession, message));
    }
    let directory = runtime_dir();
    if !directory.exists() {
        return Ok(Vec::new());
    }
    runtime::prepare(&directory)?;
    block_on(async {
        let mut sessions = Vec::new();
        for name in live_sockets(&directory).await {
            let greeted = greet(name).await;
            sessions.extend(greeted.map(|(hello, _)| RunningSession {
                pid: name.pid,
                description: safe_line(&format!("process {}: {hello}", name.pid)).into_owned(),
                name,
            }));
        }
        Ok(sessions)
    })
}

/// Sends a value to a session.
///
/// # Errors
/// `no_session` when it is gone; the session's own refusal.
pub(super) fn send(
    session: &RunningSession,
    name: &SecretName,
    policy: &Policy,
    value: &SecretValue,
) -> Result<(), ToolError> {
    let head = Head {
        name: name.as_str().to_owned(),
        policy: policy.clone(),
    };
    block_on(async {
        let Some((_, mut stream)) = greet(session.name).await else {
            let message = "the session has ended; nothing was sent";
            return Err(ToolError::new(ErrorCode::NoSession, message));
        };
        let exchange = async {
            write(&mut stream, &serde_json::to_vec(&head)?).await?;
            write(&mut stream, value.expose().as_bytes()).await?;
            answer(&mut stream).await
        };
        match timeout(limits::CONTROL_ANSWER_TIMEOUT, exchange).await {
            Ok(Ok(Reply::Done)) => Ok(()),
            Ok(Ok(Reply::Refused {
                code,
                message,
                hint,
            })) => Err(refusal(&code, &message, &hint)),
            _ => {
                let message =
                    "the session did not confirm the value: it has ended, or it is blocked";
                Err(ToolError::new(ErrorCode::Io, message).with_hint(
                    "see whether it still runs, then give it again: a name it has is refused",
                ))
            }
        }
    })
}

/// Connects to the session that a socket is named after, and reads its greeting.
async fn greet(name: SocketName) -> Option<(String, UnixStream)> {
    // A session that does not accept connections is skipped.
    let path = name.in_dir(&runtime_dir());
    let mut stream = UnixStream::connect(path).await.ok()?;
    // A program inside a session could create a socket here, too, to receive a value meant for another session.
    if peer(&stream).ok()? != name {
        return None;
    }
    let greeting = timeout(limits::CONTROL_TIMEOUT, answer(&mut stream)).await;
    match greeting.ok()?.ok()? {
        Reply::Hello(hello) => Some((hello, stream)),
        Reply::Done | Reply::Refused { .. } => None,
    }
}

async fn answer(stream: &mut UnixStream) -> io::Result<Reply> {
    Ok(serde_json::from_slice(&read(stream).await?)?)
}

fn block_on<T>(work: impl Future<Output = Result<T, ToolError>>) -> Result<T, ToolError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| ToolError::new(ErrorCode::Io, format!("starting the runtime: {error}")))?;
    runtime.block_on(work)
}

/// The control socket of this session; closed on drop.
pub(super) struct ControlSocket {
    path: PathBuf,
    task: JoinHandle<()>,
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        self.task.abort();
        let _ = std::fs::remove_file(&self.path);
    }
}

/// As [`open`], of a session whose secrets are known.
pub(super) fn open_for(what: &str, source: &str, context: &Context) -> Option<ControlSocket> {
    let secrets = context.secrets.clone();
    let get = move || Box::pin(std::future::ready(Ok(secrets.clone()))) as Boxed<'_, _>;
    open(
        (what, source.to_owned()),
        &context.sessions.cwd(),
        Arc::new(get),
    )
}

/// Opens the control socket of this session; `what` describes its script or client, its directory and its secrets.
/// The session also runs without one; `karyi var set --session` does not find it then.
pub(super) fn open(
    (what, source): (&str, String),
    cwd: &Path,
    secrets: SecretsGetter,
) -> Option<ControlSocket> {
    // Without /proc the peer cannot be identified.
    if !cfg!(target_os = "linux") || inherited::is_inside_session() {
        return None;
    }
    let (cwd, since) = (cwd.display(), Timestamp::now());
    let since = since.strftime("%Y-%m-%d %H:%M:%S UTC");
    let hello = format!("karyi {what} of {source} in {cwd} since {since}");
    let hello: Arc<[u8]> = serde_json::to_vec(&Reply::Hello(hello)).ok()?.into();
    let directory = runtime_dir();
    let (path, listener) = listen(&directory).ok()?;
    let task = tokio::spawn(async move {
        live_sockets(&directory).await;
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    let (hello, secrets) = (Arc::clone(&hello), Arc::clone(&secrets));
                    tokio::spawn(async move { serve(&hello, &secrets, stream).await });
                }
                Err(_) => tokio::time::sleep(limits::ACCEPT_PAUSE).await,
            }
        }
    });
    Some(ControlSocket { path, task })
}

fn listen(directory: &Path) -> io::Result<(PathBuf, UnixListener)> {
    runtime::prepare(directory).map_err(io::Error::other)?;
    let pid = std::process::id();
    let started = inherited::start_time(pid.cast_signed()).ok_or(io::ErrorKind::NotFound)?;
    let path = SocketName { pid, started }.in_dir(directory);
    // The name contains our process id, so an existing socket is stale.
    let _ = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path)?;
    // The directory already excludes other users; this makes sure.
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600))?;
    Ok((path, listener))
}

/// Receives a value from one process that connected; gives up when it stalls.
async fn serve(hello: &[u8], secrets: &SecretsGetter, mut stream: UnixStream) {
    let received = timeout(limits::CONTROL_TIMEOUT, async {
        peer(&stream)?;
        write(&mut stream, hello).await.map_err(broken)?;
        let given = receive(&mut stream).await?;
        // It may have ended since, and another process may have its number.
        peer(&stream).map(|_| given)
    });
    let result = match received.await {
        Ok(Ok(given)) => set(secrets, given).await,
        Ok(Err(error)) => Err(error),
        Err(_) => return,
    };
    let reply = serde_json::to_vec(&Reply::from(result)).unwrap_or_default();
    let _ = timeout(limits::CONTROL_TIMEOUT, write(&mut stream, &reply)).await;
}

/// Receives a request.
///
/// # Errors
/// `bad_arguments` for an invalid request, and `io_error` for an incomplete one.
async fn receive(stream: &mut UnixStream) -> Result<(SecretName, Policy, SecretValue), ToolError> {
    let other = || {
        let message = "expected a value from a karyi of the same version, found something else";
        ToolError::new(ErrorCode::BadArguments, message)
            .with_hint("start the session again with this karyi")
    };
    let head = read(stream).await.map_err(broken)?;
    let head: Head = serde_json::from_slice(&head).map_err(|_| other())?;
    let name = SecretName::parse(&head.name).ok_or_else(other)?;
    let value = read(stream).await.map_err(broken)?;
    let value = std::str::from_utf8(&value).map_err(|_| other())?;
    Ok((name, head.policy, SecretValue::new(value.to_owned())))
}

fn broken(error: io::Error) -> ToolError {
    let code = match error.kind() {
        io::ErrorKind::InvalidData => ErrorCode::BadArguments,
        _ => ErrorCode::Io,
    };
    ToolError::new(code, format!("the value did not arrive: {error}"))
}

async fn set(
    secrets: &SecretsGetter,
    (name, policy, value): (SecretName, Policy, SecretValue),
) -> Result<(), ToolError> {
    let secrets = secrets().await?;
    resolve::refresh(&secrets, Need::Listed).await;
    // Includes names in a store that this session does not have or cannot read.
    for taken in vault::taken_names(&secrets)? {
        if taken == name {
            return Err(name_taken(&taken));
        }
        if taken.differs_only_in_case(&name) {
            return Err(case_conflict(&taken, &name));
        }
    }
    secrets.insert_new(name, value, policy)
}

#[cfg(test)]
mod tests;
