//! The side of the session: listens, checks who connects, and takes a value under a new name.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use nix::unistd::geteuid;
use tokio::io::AsyncWriteExt;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;

use super::message::{Hello, Reply, SetSecret, VERSION};
use super::peer::Peer;
use super::{SocketName, sweep};
use crate::cli::runtime_dir::runtime_dir;
use crate::cli::vault;
use crate::error::{ErrorCode, ToolError};
use crate::exec::resolve;
use crate::limits;
use crate::mcp::stdio::GetSecrets;
use crate::pty::{inherited, runtime};
use crate::vault::session::{Need, known, only_case};

/// The control socket of this session; it closes when this is dropped.
pub(in crate::cli) struct ControlSocket {
    path: PathBuf,
    task: JoinHandle<()>,
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        self.task.abort();
        let _ = std::fs::remove_file(&self.path);
    }
}

/// The session behind the socket.
struct Session {
    /// The greeting, as it is sent.
    hello: Vec<u8>,
    secrets: GetSecrets,
}

/// Opens the control socket of this session: `what` it is with its script or client, its directory and its secrets.
/// Without one the session runs as well; `karyi var set --session` does not find it then.
pub(in crate::cli) fn open(
    (what, source): (&str, String),
    cwd: &Path,
    secrets: GetSecrets,
) -> Option<ControlSocket> {
    // Without /proc nobody can tell who connects.
    if !cfg!(target_os = "linux") || inherited::is_inside_session() {
        return None;
    }
    let hello = Reply::Hello(Hello {
        version: VERSION,
        what: what.to_owned(),
        source,
        cwd: cwd.display().to_string(),
        since: Timestamp::now(),
    });
    let directory = runtime_dir();
    let (path, listener) = listen(&directory).ok()?;
    let session = Session {
        hello: hello.frame().ok()?,
        secrets,
    };
    let task = tokio::spawn(async move {
        sweep(&directory).await;
        accept_all(listener, Arc::new(session)).await;
    });
    Some(ControlSocket { path, task })
}

pub(super) fn listen(directory: &Path) -> io::Result<(PathBuf, UnixListener)> {
    runtime::prepare(directory).map_err(io::Error::other)?;
    let pid = std::process::id();
    let started = inherited::started(pid.cast_signed()).ok_or(io::ErrorKind::NotFound)?;
    let path = SocketName { pid, started }.in_dir(directory);
    // The name is that of this process: whoever was there first has no right to it.
    let _ = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path)?;
    // The directory keeps others out; this says so once more.
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600))?;
    Ok((path, listener))
}

async fn accept_all(listener: UnixListener, session: Arc<Session>) {
    let places = Arc::new(Semaphore::new(limits::MAX_CONTROL_CALLERS));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(limits::ACCEPT_PAUSE).await;
            continue;
        };
        // In another thread, and one at a time: a program that connects again and again does not slow the session.
        let checked = spawn_blocking(move || (check_peer(&stream), stream));
        match checked.await {
            // Whoever is refused takes no place.
            Ok((Err(error), stream)) => {
                let _ = stream.try_write(&Reply::refused(error).frame().unwrap_or_default());
            }
            Ok((Ok(()), stream)) => {
                if let Ok(place) = Arc::clone(&places).try_acquire_owned() {
                    let session = Arc::clone(&session);
                    tokio::spawn(async move {
                        serve(&session, stream).await;
                        drop(place);
                    });
                }
            }
            Err(_) => {}
        }
    }
}

/// Takes a value from one process that connected.
async fn serve(session: &Session, mut stream: UnixStream) {
    let received = timeout(limits::CONTROL_TIMEOUT, async {
        stream.write_all(&session.hello).await.ok()?;
        Some(SetSecret::read(&mut stream).await)
    });
    let Ok(Some(request)) = received.await else {
        return;
    };
    let result = match request.and_then(|request| check_peer(&stream).map(|()| request)) {
        Ok(request) => set(session, request).await,
        Err(error) => Err(error),
    };
    let reply = result.map_or_else(Reply::refused, |()| Reply::Done);
    let frame = reply.frame().unwrap_or_default();
    let _ = timeout(limits::CONTROL_TIMEOUT, stream.write_all(&frame)).await;
}

async fn set(session: &Session, request: SetSecret) -> Result<(), ToolError> {
    let secrets = (session.secrets)().await?;
    resolve::refresh(&secrets, Need::Listed).await;
    // Also what is kept in a store that this session has not, or cannot read.
    for name in vault::taken_names(&secrets)? {
        if name == request.name {
            return Err(known(&name));
        }
        if name.differs_only_in_case(&request.name) {
            return Err(only_case(&name, &request.name));
        }
    }
    secrets.insert_new(request.name, request.value, request.policy)
}

/// Checks who connected.
///
/// # Errors
/// `permission_denied` for another user; `inside_session` for a process of a session, and for one of which nobody can
/// tell that it is none.
fn check_peer(stream: &UnixStream) -> Result<(), ToolError> {
    let peer = Peer::of(stream);
    if peer
        .as_ref()
        .is_some_and(|peer| peer.uid != geteuid().as_raw())
    {
        let message = "a session takes values of its own user only";
        return Err(ToolError::new(ErrorCode::PermissionDenied, message)
            .with_hint("run `karyi var set` as the user of the session"));
    }
    match peer.and_then(|peer| peer.started_outside()) {
        Some(_) => Ok(()),
        None => Err(ToolError::new(
            ErrorCode::InsideSession,
            "this runs inside a session of karyi, or nobody can tell that it does not: all its ancestors must be seen \
             in /proc",
        )),
    }
}
