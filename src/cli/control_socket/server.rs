//! The side of the session: listens, looks at who knocks, and takes a value under a new name.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use nix::unistd::geteuid;
use tokio::io::AsyncWriteExt;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;

use super::message::{Hello, Reply, SetSecret, VERSION};
use super::peer::Peer;
use super::{Name, Reach, sweep};
use crate::cli::runtime_dir::runtime_dir;
use crate::cli::vault;
use crate::error::{ErrorCode, ToolError};
use crate::exec::resolve;
use crate::limits;
use crate::mcp::stdio::GetSecrets;
use crate::pty::{inherited, runtime};
use crate::secret::SecretName;
use crate::vault::session::{Need, known, only_case};

/// The door of this session; it closes when this is dropped.
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

/// What those who knock are told and given to.
struct Session {
    hello: Vec<u8>,
    secrets: GetSecrets,
    given: Mutex<Given>,
}

impl Session {
    fn given(&self) -> MutexGuard<'_, Given> {
        // Two numbers are whole whoever panicked.
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What was taken: other values of the session need their place, too.
#[derive(Default)]
struct Given {
    values: usize,
    bytes: usize,
}

impl Given {
    /// Checks that one more value may be taken.
    fn check(&self, bytes: usize) -> Result<(), ToolError> {
        let (values, most) = (limits::MAX_GIVEN_VALUES, limits::MAX_GIVEN_BYTES);
        let message = if self.values >= values {
            format!("the session has been given {values} values, and takes no more")
        } else if self.bytes + bytes > most {
            let given = self.bytes;
            format!(
                "the session has been given values of {given} bytes, and takes {most} of them together"
            )
        } else {
            return Ok(());
        };
        Err(ToolError::new(ErrorCode::BadArguments, message).with_hint(
            "keep it with `karyi var set NAME`: a session that runs has what is kept from the next block on",
        ))
    }
}

/// Opens the door of this session: `what` it is and its script or client, where it is and its secrets. Without one the
/// session runs as well; `karyi var set --session` does not find it then.
pub(in crate::cli) fn open(
    (what, source): (&str, String),
    cwd: &Path,
    secrets: GetSecrets,
) -> Option<ControlSocket> {
    // Without /proc nobody can tell who knocks.
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
        given: Mutex::default(),
    };
    let task = tokio::spawn(async move {
        sweep(&directory).await;
        attend_all(listener, Arc::new(session)).await;
    });
    Some(ControlSocket { path, task })
}

pub(super) fn listen(directory: &Path) -> io::Result<(PathBuf, UnixListener)> {
    runtime::prepare(directory).map_err(io::Error::other)?;
    let pid = std::process::id();
    let started = inherited::started(pid.cast_signed()).ok_or(io::ErrorKind::NotFound)?;
    let path = Name { pid, started }.in_dir(directory);
    let reached = Reach::new(&path)?;
    let listener = UnixListener::bind(&reached.path).or_else(|error| {
        if error.kind() != io::ErrorKind::AddrInUse {
            return Err(error);
        }
        // The name is that of this process: whoever was there first has no right to it.
        std::fs::remove_file(&path)?;
        UnixListener::bind(&reached.path)
    })?;
    // The directory keeps others out; this says so once more.
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600))?;
    Ok((path, listener))
}

async fn attend_all(listener: UnixListener, session: Arc<Session>) {
    let places = Arc::new(Semaphore::new(limits::MAX_DOOR_CALLERS));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(limits::ACCEPT_PAUSE).await;
            continue;
        };
        // In another thread, and one at a time: a program that knocks again and again holds the session up in nothing.
        let looked = spawn_blocking(move || (Caller::of(&stream), stream));
        let Ok((caller, stream)) = looked.await else {
            continue;
        };
        // Whoever must not come in takes no place.
        let caller = match caller {
            Ok(caller) => caller,
            Err(error) => {
                let frame = Reply::refused(error).frame().unwrap_or_default();
                let _ = stream.try_write(&frame);
                continue;
            }
        };
        if let Ok(place) = Arc::clone(&places).try_acquire_owned() {
            let session = Arc::clone(&session);
            tokio::spawn(async move {
                attend(&session, &caller, stream).await;
                drop(place);
            });
        }
    }
}

/// Hears one caller.
async fn attend(session: &Session, caller: &Caller, mut stream: UnixStream) {
    let heard = timeout(limits::DOOR_TIMEOUT, async {
        stream.write_all(&session.hello).await.ok()?;
        Some(SetSecret::read(&mut stream).await)
    });
    let Ok(Some(request)) = heard.await else {
        return;
    };
    let result = match request {
        Ok(request) => take(session, caller, request).await,
        Err(error) => Err(error),
    };
    let reply = result.map_or_else(Reply::refused, |()| Reply::Taken);
    let frame = reply.frame().unwrap_or_default();
    let _ = timeout(limits::DOOR_TIMEOUT, stream.write_all(&frame)).await;
}

async fn take(session: &Session, caller: &Caller, request: SetSecret) -> Result<(), ToolError> {
    caller.check()?;
    let bytes = request.value.expose().len();
    session.given().check(bytes)?;
    let secrets = (session.secrets)().await?;
    resolve::refresh(&secrets, Need::Listed).await;
    // Also what is kept in a store that this session has not, or cannot read.
    for name in vault::taken_names(&secrets)? {
        check_other(&name, &request.name)?;
    }
    // Two that come at the same time take their places one after the other.
    let mut given = session.given();
    given.check(bytes)?;
    secrets.insert_new(request.name, request.value, request.policy)?;
    given.values += 1;
    given.bytes += bytes;
    Ok(())
}

fn check_other(name: &SecretName, new: &SecretName) -> Result<(), ToolError> {
    if name == new {
        return Err(known(name));
    }
    if name.differs_only_in_case(new) {
        return Err(only_case(name, new));
    }
    Ok(())
}

/// Who knocks.
struct Caller {
    peer: Peer,
    /// When it was started: a number alone may be another process by now.
    started: u64,
}

impl Caller {
    /// Looks at who knocks.
    ///
    /// # Errors
    /// `permission_denied` for another user; `inside_session` for a process of a session, and for one of which nobody
    /// can tell that it is none.
    fn of(stream: &UnixStream) -> Result<Self, ToolError> {
        let peer = Peer::of(stream).ok_or_else(unknown)?;
        if peer.uid != geteuid().as_raw() {
            let message = "a session takes values of its own user only";
            return Err(ToolError::new(ErrorCode::PermissionDenied, message)
                .with_hint("run `karyi var set` as the user of the session"));
        }
        let started = peer.started_outside().ok_or_else(unknown)?;
        Ok(Self { peer, started })
    }

    /// Looks again: whoever knocked is still there and still outside.
    fn check(&self) -> Result<(), ToolError> {
        match self.peer.started_outside() {
            Some(started) if started == self.started => Ok(()),
            _ => Err(unknown()),
        }
    }
}

fn unknown() -> ToolError {
    let message = "this runs inside a session of karyi, or nobody can tell that it does not: all its ancestors must \
                   be seen in /proc";
    ToolError::new(ErrorCode::InsideSession, message)
}
