//! The side of `karyi var set --session`: finds the sessions that run, and sends a value to one of them.

use std::io;

use tokio::net::UnixStream;
use tokio::time::timeout;

use super::{Head, Reply, SocketName, live_sockets, peer, read, refusal, write};
use crate::cli::runtime_dir::runtime_dir;
use crate::error::{ErrorCode, ToolError};
use crate::limits;
use crate::pty::runtime;
use crate::render::paint::safe_line;
use crate::secret::{SecretName, SecretValue};
use crate::vault::policy::Policy;

/// A session that runs and takes values.
pub(in crate::cli) struct RunningSession {
    pub(in crate::cli) pid: u32,
    /// What a person is told of it, on one line.
    pub(in crate::cli) description: String,
    name: SocketName,
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
pub(in crate::cli) fn send(
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
            let message = "the session has ended meanwhile; nothing was given";
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
                let message = "the session did not say whether it has the value: it has ended, or it is held up";
                Err(ToolError::new(ErrorCode::Io, message).with_hint(
                    "see whether it still runs, then give it again: a name it has is refused",
                ))
            }
        }
    })
}

/// Connects to the session that a socket is named after, and reads its greeting.
async fn greet(name: SocketName) -> Option<(String, UnixStream)> {
    // One that takes no call is not waited for.
    let path = name.in_dir(&runtime_dir());
    let mut stream = UnixStream::connect(path).await.ok()?;
    // A program of a session can make a socket there, too, to receive a value that is meant for another one.
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
