use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

use super::*;

#[test]
fn names_are_read_back_and_nothing_else() {
    let name = Name { pid: 7, started: 9 };
    let path = name.in_dir(Path::new("/d"));
    assert_eq!(path, Path::new("/d/door-7-9"));
    assert_eq!(Name::parse(path.file_name().unwrap()), Some(name));
    for text in [
        "",
        "door-",
        "door-7",
        "door-7-",
        "door--7-9",
        "door-7-9x",
        "x-7-9",
    ] {
        assert_eq!(Name::parse(OsStr::new(text)), None, "{text}");
    }
}

fn left(directory: &Path) -> Vec<Name> {
    let mut left: Vec<Name> = names(directory).collect();
    left.sort();
    left
}

#[tokio::test]
async fn only_what_nobody_listens_on_is_removed() {
    let home = tempfile::tempdir().unwrap();
    let bind =
        |pid, started| UnixListener::bind(Name { pid, started }.in_dir(home.path())).unwrap();
    // One of a process of another container, which cannot be seen here.
    let _listening = bind(0, 1);
    drop(bind(0, 2));
    std::fs::write(home.path().join("door-0-3"), "").unwrap();
    sweep(home.path()).await;
    assert_eq!(left(home.path()), [Name { pid: 0, started: 1 }]);
    assert_eq!(doors(home.path()), []);
    let mut files: Vec<_> = std::fs::read_dir(home.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    files.sort();
    assert_eq!(files, ["door-0-1", "door-0-3"]);
}

#[tokio::test]
async fn a_socket_is_reached_however_long_its_path_is() {
    let home = tempfile::tempdir().unwrap();
    let deep = home.path().join("d".repeat(200));
    std::fs::create_dir(&deep).unwrap();
    let name = Name { pid: 0, started: 1 };
    let path = name.in_dir(&deep);
    let listener = UnixListener::bind(Reach::new(&path).unwrap().path).unwrap();
    sweep(&deep).await;
    assert_eq!(left(&deep), [name]);
    drop(listener);
    // A child that another test has forked holds it until it is another program.
    let deadline = Instant::now() + Duration::from_secs(60);
    while !left(&deep).is_empty() {
        assert!(Instant::now() < deadline, "it is left");
        sweep(&deep).await;
    }
}

/// Returns the name of the socket of a process that runs.
fn name_of(pid: u32) -> Name {
    let started = inherited::started(pid.cast_signed()).unwrap();
    Name { pid, started }
}

#[tokio::test]
async fn doors_are_found_among_many_sockets_of_others() {
    let home = tempfile::tempdir().unwrap();
    let bind = |name: Name| UnixListener::bind(name.in_dir(home.path())).unwrap();
    for started in 0..4000 {
        drop(bind(Name { pid: 0, started }));
    }
    let parent = nix::unistd::getppid().as_raw().cast_unsigned();
    let mut expected = [1, parent, std::process::id()].map(name_of).to_vec();
    expected.sort();
    expected.dedup();
    for name in &expected {
        drop(bind(*name));
    }
    assert_eq!(doors(home.path()), expected);
    // Nor does a start take longer the more there are.
    sweep(home.path()).await;
    let remaining = 4000 - limits::MAX_DOORS + expected.len();
    assert_eq!(left(home.path()).len(), remaining);
    assert_eq!(doors(home.path()), expected);
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
    let (_call, heard) = tokio::join!(connect(&path), listener.accept());
    assert!(heard.is_ok());
}
