//! The side of `karyi var set --session`: finds the sessions that run, and gives a value to one of them.

use std::io;
use std::path::Path;

use nix::unistd::geteuid;
use tokio::net::UnixStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::message::{Hello, Reply, SetSecret, VERSION};
use super::peer::Peer;
use super::{Name, connect, doors, sweep};
use crate::cli::runtime_dir::runtime_dir;
use crate::error::{ErrorCode, ToolError};
use crate::limits;
use crate::pty::runtime;
use crate::render::paint::safe_line;
use crate::secret::{SecretName, SecretValue};
use crate::vault::policy::Policy;

/// A session that runs and takes values.
pub(in crate::cli) struct Found {
    pub(in crate::cli) pid: u32,
    name: Name,
    hello: Hello,
}

impl Found {
    /// Returns what a person knows it by, on one line.
    pub(in crate::cli) fn shown(&self) -> String {
        let Hello {
            what,
            source,
            cwd,
            since,
            ..
        } = &self.hello;
        let since = since.strftime("%Y-%m-%d %H:%M:%S UTC");
        let text = format!(
            "process {}: karyi {what} of {source} in {cwd} since {since}",
            self.pid
        );
        safe_line(&text).into_owned()
    }
}

/// Finds the sessions of this user.
///
/// # Errors
/// The directory of running sessions is not the user's own.
pub(in crate::cli) fn find() -> Result<Vec<Found>, ToolError> {
    if !cfg!(target_os = "linux") {
        let message = "a running session can be given a value on Linux only: elsewhere it cannot tell who gives it";
        return Err(ToolError::new(ErrorCode::NoSession, message));
    }
    let directory = runtime_dir();
    // Nothing is made for it.
    if !directory.exists() {
        return Ok(Vec::new());
    }
    runtime::prepare(&directory)?;
    block_on(async {
        sweep(&directory).await;
        let mut asked = JoinSet::new();
        for name in doors(&directory) {
            // Whoever is not the one it is named after is not listened to, and takes no place.
            if asked.len() < limits::MAX_DOORS
                && let Some(stream) = reach(name, &name.in_dir(&directory)).await
            {
                asked.spawn(async move { Some((name, greet(stream).await?)) });
            }
        }
        let answers = asked.join_all().await.into_iter().flatten();
        let found = answers.map(|(name, (hello, _))| Found {
            pid: name.pid,
            name,
            hello,
        });
        let mut found: Vec<Found> = found.collect();
        found.sort_by_key(|session| session.name);
        found
    })
}

/// Gives a session a value.
///
/// # Errors
/// `no_session` when it is gone; what the session refuses it for.
pub(in crate::cli) fn give(
    session: &Found,
    name: &SecretName,
    policy: &Policy,
    value: &SecretValue,
) -> Result<(), ToolError> {
    let request = SetSecret {
        name: name.clone(),
        policy: policy.clone(),
        value: value.duplicate(),
    };
    let path = session.name.in_dir(&runtime_dir());
    let reply = block_on(async {
        let stream = reach(session.name, &path).await.ok_or_else(gone)?;
        let (hello, mut stream) = greet(stream).await.ok_or_else(gone)?;
        if hello != session.hello {
            return Err(gone());
        }
        let sent = timeout(limits::DOOR_TIMEOUT, request.write(&mut stream)).await;
        sent.map_err(|_| unheard())?
            .map_err(|error| refused(&error))?;
        let answer = timeout(limits::DOOR_ANSWER_TIMEOUT, Reply::read(&mut stream)).await;
        answer.map_err(|_| unheard())?.map_err(|_| unheard())
    })??;
    match reply {
        Reply::Taken => Ok(()),
        Reply::Refused {
            code,
            message,
            hint,
        } => Err(told(&code, &message, &hint)),
        Reply::Hello(_) => Err(unheard()),
    }
}

/// Returns the way to the session that a door is named after; none when somebody else listens there, or nobody has a
/// place for a caller.
async fn reach(name: Name, path: &Path) -> Option<UnixStream> {
    let stream = connect(path).await.ok()?;
    // A program of a session can make a socket there, too, to be given what is meant for another one.
    is_of(name, &stream).then_some(stream)
}

/// Returns what a session says of itself, and the way to it; none when it says nothing that is understood.
async fn greet(mut stream: UnixStream) -> Option<(Hello, UnixStream)> {
    let reply = timeout(limits::DOOR_TIMEOUT, Reply::read(&mut stream)).await;
    match reply.ok()?.ok()? {
        Reply::Hello(hello) if hello.version == VERSION => Some((hello, stream)),
        _ => None,
    }
}

/// Whether the kernel says that who listens is the process the door is named after, one of this user, and outside of
/// every session.
fn is_of(name: Name, stream: &UnixStream) -> bool {
    let peer = Peer::of(stream).filter(|peer| {
        let is_named = u32::try_from(peer.pid) == Ok(name.pid);
        is_named && peer.uid == geteuid().as_raw()
    });
    peer.and_then(|peer| peer.started_outside()) == Some(name.started)
}

/// Makes the error that a session told.
fn told(code: &str, message: &str, hint: &str) -> ToolError {
    let known = ErrorCode::ALL.iter().find(|known| known.as_str() == code);
    let code = known.copied().unwrap_or(ErrorCode::Io);
    ToolError::new(code, safe_line(message)).with_hint(safe_line(hint))
}

fn refused(error: &io::Error) -> ToolError {
    match error.kind() {
        io::ErrorKind::InvalidData => ToolError::new(
            ErrorCode::BadValue,
            format!("the value is too long: {error}"),
        ),
        _ => unheard(),
    }
}

fn gone() -> ToolError {
    let message = "the session has ended meanwhile; nothing was given";
    ToolError::new(ErrorCode::NoSession, message)
}

fn unheard() -> ToolError {
    let message =
        "the session did not say whether it has the value: it has ended, or it is held up";
    ToolError::new(ErrorCode::Io, message)
        .with_hint("see whether it still runs, then give it again: a name it has is refused")
}

/// Waits for an answer.
fn block_on<T>(work: impl Future<Output = T>) -> Result<T, ToolError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime
        .map_err(|error| ToolError::new(ErrorCode::Io, format!("starting the runtime: {error}")))?;
    Ok(runtime.block_on(work))
}
