//! The side of `karyi var set --session`: finds the sessions that run, and sends a value to one of them.

use std::io;

use nix::unistd::geteuid;
use tokio::net::UnixStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::message::{Hello, Reply, SetSecret, VERSION};
use super::peer::Peer;
use super::{SocketName, live_sockets, sweep};
use crate::cli::runtime_dir::runtime_dir;
use crate::error::{ErrorCode, ToolError};
use crate::limits;
use crate::pty::runtime;
use crate::render::paint::safe_line;

pub(in crate::cli) use super::message::SetSecret as SecretForSession;

/// A session that runs and takes values.
pub(in crate::cli) struct RunningSession {
    pub(in crate::cli) pid: u32,
    name: SocketName,
    hello: Hello,
}

impl RunningSession {
    /// Describes it to a person, on one line.
    pub(in crate::cli) fn description(&self) -> String {
        let hello = &self.hello;
        let text = format!(
            "process {}: karyi {} of {} in {} since {}",
            self.pid,
            hello.what,
            hello.source,
            hello.cwd,
            hello.since.strftime("%Y-%m-%d %H:%M:%S UTC")
        );
        safe_line(&text).into_owned()
    }
}

/// Finds the sessions of this user.
///
/// # Errors
/// The directory of running sessions is not the user's own.
pub(in crate::cli) fn find() -> Result<Vec<RunningSession>, ToolError> {
    if !cfg!(target_os = "linux") {
        let message = "a running session can be given a value on Linux only: elsewhere it cannot tell who gives it";
        return Err(ToolError::new(ErrorCode::NoSession, message));
    }
    let directory = runtime_dir();
    if !directory.exists() {
        return Ok(Vec::new());
    }
    runtime::prepare(&directory)?;
    block_on(async {
        sweep(&directory).await;
        let mut greetings = JoinSet::new();
        for name in live_sockets(&directory) {
            if greetings.len() < limits::MAX_CONTROL_SOCKETS
                && let Some(stream) = connect(name).await
            {
                greetings.spawn(async move { Some((name, greet(stream).await?)) });
            }
        }
        let greeted = greetings.join_all().await.into_iter().flatten();
        let sessions = greeted.map(|(name, (hello, _))| RunningSession {
            pid: name.pid,
            name,
            hello,
        });
        let mut sessions: Vec<RunningSession> = sessions.collect();
        sessions.sort_by_key(|session| session.name);
        sessions
    })
}

/// Sends a value to a session.
///
/// # Errors
/// `no_session` when it is gone; the session's own refusal.
pub(in crate::cli) fn send(session: &RunningSession, secret: &SetSecret) -> Result<(), ToolError> {
    let reply = block_on(async {
        let stream = connect(session.name).await.ok_or_else(gone)?;
        let (hello, mut stream) = greet(stream).await.ok_or_else(gone)?;
        if hello != session.hello {
            return Err(gone());
        }
        let exchange = async {
            secret.write(&mut stream).await?;
            Reply::read(&mut stream).await
        };
        match timeout(limits::CONTROL_ANSWER_TIMEOUT, exchange).await {
            Ok(Ok(reply)) => Ok(reply),
            Ok(Err(error)) if error.kind() == io::ErrorKind::InvalidData => Err(ToolError::new(
                ErrorCode::BadValue,
                format!("the value is too long: {error}"),
            )),
            _ => Err(no_answer()),
        }
    })??;
    match reply {
        Reply::Done => Ok(()),
        Reply::Refused(refusal) => Err(refusal.into_error()),
        Reply::Hello(_) => Err(no_answer()),
    }
}

/// Connects to the session that a socket is named after. It waits for nobody.
async fn connect(name: SocketName) -> Option<UnixStream> {
    let path = name.in_dir(&runtime_dir());
    let stream = UnixStream::connect(path).await.ok()?;
    // A program of a session can make a socket there, too, to receive a value that is meant for another one.
    let peer = Peer::of(&stream)?;
    let is_named = u32::try_from(peer.pid) == Ok(name.pid) && peer.uid == geteuid().as_raw();
    (is_named && peer.started_outside() == Some(name.started)).then_some(stream)
}

/// Reads the greeting of a session.
async fn greet(mut stream: UnixStream) -> Option<(Hello, UnixStream)> {
    let reply = timeout(limits::CONTROL_TIMEOUT, Reply::read(&mut stream)).await;
    match reply.ok()?.ok()? {
        Reply::Hello(hello) if hello.version == VERSION => Some((hello, stream)),
        _ => None,
    }
}

fn gone() -> ToolError {
    let message = "the session has ended meanwhile; nothing was given";
    ToolError::new(ErrorCode::NoSession, message)
}

fn no_answer() -> ToolError {
    let message =
        "the session did not say whether it has the value: it has ended, or it is held up";
    ToolError::new(ErrorCode::Io, message)
        .with_hint("see whether it still runs, then give it again: a name it has is refused")
}

fn block_on<T>(work: impl Future<Output = T>) -> Result<T, ToolError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| ToolError::new(ErrorCode::Io, format!("starting the runtime: {error}")))?;
    Ok(runtime.block_on(work))
}
