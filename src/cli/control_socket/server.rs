//! The side of the session: listens, checks who connects, and takes a value under a new name.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::{Head, Reply, SocketName, live_sockets, peer, read, write};
use crate::cli::runtime_dir::runtime_dir;
use crate::cli::vault;
use crate::error::{ErrorCode, ToolError};
use crate::exec::resolve;
use crate::limits;
use crate::mcp::stdio::GetSecrets;
use crate::pty::{inherited, runtime};
use crate::secret::{SecretName, SecretValue};
use crate::vault::policy::Policy;
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

/// Takes a value from one process that connected; of one that does not go on nothing comes.
async fn serve(hello: &[u8], secrets: &GetSecrets, mut stream: UnixStream) {
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

/// Reads a request.
///
/// # Errors
/// `bad_arguments` for what is none, and `io_error` when it does not come to its end.
pub(super) async fn receive(
    stream: &mut UnixStream,
) -> Result<(SecretName, Policy, SecretValue), ToolError> {
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
    ToolError::new(code, format!("the value did not come: {error}"))
}

async fn set(
    secrets: &GetSecrets,
    (name, policy, value): (SecretName, Policy, SecretValue),
) -> Result<(), ToolError> {
    let secrets = secrets().await?;
    resolve::refresh(&secrets, Need::Listed).await;
    // Also what is kept in a store that this session has not, or cannot read.
    for taken in vault::taken_names(&secrets)? {
        if taken == name {
            return Err(known(&taken));
        }
        if taken.differs_only_in_case(&name) {
            return Err(only_case(&taken, &name));
        }
    }
    secrets.insert_new(name, value, policy)
}
