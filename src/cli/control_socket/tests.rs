use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixListener;

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

fn left(directory: &Path) -> Vec<SocketName> {
    let mut left: Vec<SocketName> = sockets(directory).collect();
    left.sort();
    left
}

#[tokio::test]
async fn only_what_nobody_listens_on_is_removed() {
    let home = tempfile::tempdir().unwrap();
    let bind =
        |pid, started| UnixListener::bind(SocketName { pid, started }.in_dir(home.path())).unwrap();
    // One of a process of another container, which cannot be seen here.
    let _listening = bind(0, 1);
    drop(bind(0, 2));
    std::fs::write(home.path().join("control-0-3"), "").unwrap();
    sweep(home.path()).await;
    assert_eq!(left(home.path()), [SocketName { pid: 0, started: 1 }]);
    assert_eq!(live_sockets(home.path()), []);
    let mut files: Vec<_> = std::fs::read_dir(home.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    files.sort();
    assert_eq!(files, ["control-0-1", "control-0-3"]);
}

/// Returns the name of the socket of a process that runs.
fn name_of(pid: u32) -> SocketName {
    let started = inherited::started(pid.cast_signed()).unwrap();
    SocketName { pid, started }
}

#[tokio::test]
async fn live_sockets_are_found_among_many_sockets_of_others() {
    let home = tempfile::tempdir().unwrap();
    let bind = |name: SocketName| UnixListener::bind(name.in_dir(home.path())).unwrap();
    for started in 0..4000 {
        drop(bind(SocketName { pid: 0, started }));
    }
    let parent = nix::unistd::getppid().as_raw().cast_unsigned();
    let mut expected = [1, parent, std::process::id()].map(name_of).to_vec();
    expected.sort();
    expected.dedup();
    for name in &expected {
        drop(bind(*name));
    }
    assert_eq!(live_sockets(home.path()), expected);
    // Nor does a start take longer the more there are.
    sweep(home.path()).await;
    let remaining = 4000 - limits::MAX_CONTROL_SOCKETS + expected.len();
    assert_eq!(left(home.path()).len(), remaining);
    assert_eq!(live_sockets(home.path()), expected);
}

#[tokio::test]
async fn the_name_of_this_process_is_its_own() {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("karyi");
    let mut builder = std::fs::DirBuilder::new();
    builder.mode(0o700).create(&directory).unwrap();
    let own = name_of(std::process::id());
    let _other = UnixListener::bind(own.in_dir(&directory)).unwrap();
    let (path, listener) = server::listen(&directory).unwrap();
    assert_eq!(path, own.in_dir(&directory));
    let (_call, heard) = tokio::join!(tokio::net::UnixStream::connect(&path), listener.accept());
    assert!(heard.is_ok());
}
