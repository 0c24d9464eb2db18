#![cfg(target_os = "linux")]

use std::process::{Child, Command, Stdio};

use tokio::net::UnixListener;

use super::*;

/// A program that connects to a socket and stays until it is ended.
fn caller(path: &std::path::Path) -> Child {
    let script = format!(
        "use IO::Socket::UNIX; my $s = IO::Socket::UNIX->new(\"{}\") or die; sysread STDIN, my $x, 1",
        path.display()
    );
    let mut command = Command::new("perl");
    command.args(["-e", &script]).stdin(Stdio::piped());
    command.spawn().unwrap()
}

#[tokio::test]
async fn who_has_ended_is_nobody() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    let mut child = caller(&path);
    let (stream, _) = listener.accept().await.unwrap();
    let peer = Peer::of(&stream).unwrap();
    assert_eq!(u32::try_from(peer.pid).unwrap(), child.id());
    assert_eq!(peer.uid, nix::unistd::geteuid().as_raw());
    let Some(process) = &peer.process else {
        // This system hands out none.
        child.kill().unwrap();
        return drop(child.wait());
    };
    assert!(runs(process));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!runs(process));
    // As if its number were that of a process outside by now.
    let outside = nix::unistd::getppid().as_raw();
    let reused = |process: Option<&OwnedFd>| Peer {
        uid: peer.uid,
        pid: outside,
        process: process.map(|process| process.try_clone().unwrap()),
    };
    assert!(reused(None).started_outside().is_some());
    assert_eq!(reused(Some(process)).started_outside(), None);
    // Newer systems hand out one that has ended as well.
    let again = Peer::of(&stream);
    assert_eq!(again.and_then(|peer| peer.started_outside()), None);
}
