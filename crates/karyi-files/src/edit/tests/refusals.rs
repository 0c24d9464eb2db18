//! Files that are never touched.

use super::*;
use std::os::unix::fs::symlink;

#[test]
fn special_files_are_never_opened() {
    let place = Fixture::new(&[]);
    nix::unistd::mkfifo(&place.path("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(place.path("socket")).unwrap();
    symlink("loop", place.path("loop")).unwrap();
    for (name, code) in [
        ("fifo", ErrorCode::NotAFile),
        ("socket", ErrorCode::NotAFile),
        ("/dev/null", ErrorCode::NotAFile),
        ("loop", ErrorCode::SymlinkLoop),
        ("loop/new", ErrorCode::SymlinkLoop),
        ("bad\0name", ErrorCode::BadArguments),
        (&"n".repeat(300), ErrorCode::NameTooLong),
        (&"directory/".repeat(500), ErrorCode::NameTooLong),
    ] {
        let error = place.apply(&[edit(name, &[("", "x")])]).unwrap_err();
        assert_eq!(error.code, code, "{name}: {}", error.message);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn pseudo_files_cannot_be_replaced() {
    let place = Fixture::new(&[]);
    for name in [
        "/proc/self/status",
        "/proc/version",
        "/proc/none",
        "/proc/none/deep/file",
    ] {
        let error = place.apply(&[edit(name, &[("e", "x")])]).unwrap_err();
        assert_eq!(error.code, ErrorCode::NotAFile, "{name}: {}", error.message);
        assert!(error.hint.contains("a command"), "{}", error.hint);
    }
}

#[test]
fn a_large_sparse_file_is_refused_at_once() {
    let place = Fixture::new(&[]);
    std::fs::File::create(place.path("big"))
        .unwrap()
        .set_len(1 << 40)
        .unwrap();
    let error = place.apply(&[edit("big", &[("", "x")])]).unwrap_err();
    assert_eq!(error.code, ErrorCode::FileTooLarge);
}

#[test]
fn missing_permissions_are_not_worked_around() {
    let place = Fixture::new(&[
        ("ro/file", b"1"),
        ("rw/ro_file", b"1"),
        ("rw/file", b"1"),
        ("rw/secret", b"1"),
    ])
    .unrecorded();
    let tree = place.tree();
    open_to_all(place.0.path(), 0o755);
    open_to_all(&place.path("ro"), 0o555);
    open_to_all(&place.path("ro/file"), 0o666);
    open_to_all(&place.path("rw"), 0o777);
    open_to_all(&place.path("rw/ro_file"), 0o444);
    open_to_all(&place.path("rw/file"), 0o666);
    if nix::unistd::Uid::effective().is_root() {
        std::os::unix::fs::chown(place.path("rw/file"), Some(65534), Some(65534)).unwrap();
    }
    open_to_all(&place.path("rw/secret"), 0o000);
    as_nobody(|| {
        let denied = |edits: &[FileEdit]| {
            assert_eq!(
                place.apply(edits).unwrap_err().code,
                ErrorCode::PermissionDenied,
                "{edits:?}"
            )
        };
        denied(&[edit("ro/file", &[("1", "2")])]);
        denied(&[edit("ro/new", &[("", "2")])]);
        denied(&[
            edit("rw/file", &[("1", "2")]),
            edit("rw/new/x", &[("", "2")]),
            edit("rw/ro_file", &[("1", "2")]),
        ]);
        denied(&[edit("rw/secret", &[("1", "2")])]);
    });
    open_to_all(&place.path("ro"), 0o755);
    open_to_all(&place.path("rw/secret"), 0o600);
    assert_eq!(place.tree(), tree);
}

#[test]
fn a_root_confines_edits() {
    let place = Fixture::new(&[("in/a", b"1"), ("out", b"1")]);
    symlink("../out", place.path("in/link")).unwrap();
    let root = Root::confined(&place.path("in")).unwrap();
    for (path, code) in [
        ("out", ErrorCode::OutsideRoot),
        ("in/link", ErrorCode::SymlinkEscape),
        ("/etc/passwd", ErrorCode::OutsideRoot),
    ] {
        let edits = [edit("in/a", &[("1", "2")]), edit(path, &[("1", "2")])];
        assert_eq!(place.done(&edits, &root).unwrap_err().code, code, "{path}");
        let edits = [renamed("in/a", path, &[])];
        assert_eq!(place.done(&edits, &root).unwrap_err().code, code, "{path}");
    }
    assert_eq!(std::fs::read(place.path("in/a")).unwrap(), b"1");
}
