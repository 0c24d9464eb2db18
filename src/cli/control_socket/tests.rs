//! The peer of a control socket, and the requests it sends.

use std::os::unix::net::UnixListener as Listener;
use std::process::{Child, Command, Stdio};

use super::*;

#[test]
fn names_are_read_back_and_nothing_else() {
    let name = SocketName { pid: 7, started: 9 };
    let path = name.in_dir(Path::new("/d"));
    assert_eq!(path, Path::new("/d/control-7-9"));
    assert_eq!(SocketName::parse(path.file_name().unwrap()), Some(name));
    for text in [
        "",
        "control-",
        "control-7",
        "control-7-",
        "control--7-9",
        "control-7-9x",
        "x-7-9",
    ] {
        assert_eq!(SocketName::parse(OsStr::new(text)), None, "{text}");
    }
}

/// Returns the name of the socket of a running process.
fn name_of(pid: u32) -> SocketName {
    let started = inherited::start_time(pid.cast_signed()).unwrap();
    SocketName { pid, started }
}

#[tokio::test]
async fn only_sockets_that_nobody_listens_on_are_removed() {
    let home = tempfile::tempdir().unwrap();
    let bind = |name: SocketName| Listener::bind(name.in_dir(home.path())).unwrap();
    let own = name_of(std::process::id());
    let earlier = SocketName {
        started: own.started - 1,
        ..own
    };
    // Like a process of another container, which is invisible here.
    let unseen = SocketName { pid: 0, started: 1 };
    let _listening = [own, unseen].map(bind);
    drop(bind(earlier));
    let plain = home.path().join("control-0-3");
    std::fs::write(&plain, "no socket").unwrap();
    assert_eq!(live_sockets(home.path()).await, [own]);
    let left = std::fs::read_dir(home.path()).unwrap();
    let mut left: Vec<PathBuf> = left.map(|entry| entry.unwrap().path()).collect();
    left.sort();
    let sockets = [unseen, own].map(|name| name.in_dir(home.path()));
    let mut expected = [&sockets[..], &[plain]].concat();
    expected.sort();
    assert_eq!(left, expected);
}

#[tokio::test]
async fn the_name_of_this_process_is_its_own() {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("karyi");
    runtime_dir_in(&directory);
    let own = name_of(std::process::id());
    let _other = Listener::bind(own.in_dir(&directory)).unwrap();
    let (path, listener) = listen(&directory).unwrap();
    assert_eq!(path, own.in_dir(&directory));
    let (_call, heard) = tokio::join!(UnixStream::connect(&path), listener.accept());
    assert!(heard.is_ok());
}

fn runtime_dir_in(directory: &Path) {
    use std::os::unix::fs::DirBuilderExt;
    let mut builder = std::fs::DirBuilder::new();
    builder.mode(0o700).create(directory).unwrap();
}

/// A program that connects to a socket and stays until it is killed.
fn caller(path: &Path) -> Child {
    let script = format!(
        "use IO::Socket::UNIX; my $s = IO::Socket::UNIX->new(\"{}\") or die; sysread STDIN, my $x, 1",
        path.display()
    );
    let mut command = Command::new("perl");
    command.args(["-e", &script]).stdin(Stdio::piped());
    command.spawn().unwrap()
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn who_has_ended_is_nobody() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    let mut child = caller(&path);
    let (stream, _) = listener.accept().await.unwrap();
    // A process of ours that connects is inside the session, even if its number says otherwise.
    let process = || process_outside_sessions(&stream, nix::unistd::getppid().as_raw());
    assert_eq!(peer(&stream).unwrap_err().code, ErrorCode::InsideSession);
    assert!(process().is_some());
    let pidfd = nix::sys::socket::getsockopt(&stream, nix::sys::socket::sockopt::PeerPidfd);
    let is_unsupported = pidfd.is_err_and(|error| error == nix::errno::Errno::ENOPROTOOPT);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(process().is_some(), is_unsupported);
}

/// Sends frames and receives a request from them.
async fn received(frames: &[&[u8]]) -> Result<String, ErrorCode> {
    let (mut near, mut far) = UnixStream::pair().unwrap();
    let (request, ()) = tokio::join!(receive(&mut near), async {
        for frame in frames {
            write(&mut far, frame).await.unwrap();
        }
        drop(far);
    });
    let shown = |(name, policy, value): (_, Policy, SecretValue)| {
        format!("{name} {} {}", policy.write, value.expose())
    };
    request.map(shown).map_err(|error| error.code)
}

#[tokio::test]
async fn only_a_whole_request_is_taken() {
    let policy = Policy {
        write: true,
        ..Policy::default()
    };
    let head = |name: &str| {
        let (name, policy) = (name.to_owned(), policy.clone());
        serde_json::to_vec(&Head { name, policy }).unwrap()
    };
    let (good, value) = (head("TOKEN"), "v\u{e4}lue\n\"of 12");
    let taken = received(&[&good, value.as_bytes()]).await;
    assert_eq!(taken, Ok(format!("TOKEN true {value}")));
    let long = vec![b'x'; limits::MAX_CONTROL_FRAME_BYTES + 1];
    for (frames, code) in [
        (&[][..], ErrorCode::Io),
        (&[&good[..]], ErrorCode::Io),
        (&[b"GET / HTTP/1.1"], ErrorCode::BadArguments),
        (&[&head("a b"), b"value"], ErrorCode::BadArguments),
        (&[&good, b"\xe4"], ErrorCode::BadArguments),
        (&[&good, &long], ErrorCode::BadArguments),
    ] {
        assert_eq!(received(frames).await, Err(code));
    }
}
