//! Deleted files, renamed files, and files with several hard links.

use super::*;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

#[test]
fn files_are_deleted_and_renamed() {
    check(
        &[("a", b"1"), ("b", b"2")],
        &[deleted("a"), renamed("b", "d/c", &[("2", "3")])],
        &[("d/", b""), ("d/c", b"3")],
    );
    check(
        &[("a", b"\0bin")],
        &[renamed("a", "b", &[])],
        &[("b", b"\0bin")],
    );
    check(&[("a", b"\0bin")], &[deleted("a")], &[]);
    // In order, each on the result of the parts before.
    check(
        &[("a", b"1"), ("b", b"2")],
        &[
            renamed("a", "t", &[]),
            renamed("b", "a", &[]),
            renamed("t", "b", &[("1", "one")]),
        ],
        &[("a", b"2"), ("b", b"one")],
    );
    check(
        &[("a", b"old")],
        &[deleted("a"), edit("a", &[("", "new")])],
        &[("a", b"new")],
    );
    check(
        &[],
        &[edit("a", &[("", "x")]), renamed("a", "b", &[("x", "y")])],
        &[("b", b"y")],
    );
    check(
        &[("a", b"1")],
        &[edit("n", &[("", "x")]), deleted("n")],
        &[("a", b"1")],
    );
}

#[test]
fn a_rename_keeps_the_inode() {
    let place = Fixture::new(&[("a", b"1"), ("b", b"2")]);
    std::fs::set_permissions(place.path("a"), PermissionsExt::from_mode(0o741)).unwrap();
    std::fs::set_permissions(place.path("b"), PermissionsExt::from_mode(0o714)).unwrap();
    let inode = |name: &str| std::fs::metadata(place.path(name)).unwrap().ino();
    let mode = |name: &str| std::fs::metadata(place.path(name)).unwrap().mode() & 0o777;
    let before = inode("a");
    place
        .apply(&[renamed("a", "x", &[]), renamed("b", "y", &[("2", "3")])])
        .unwrap();
    assert_eq!((inode("x"), mode("x"), mode("y")), (before, 0o741, 0o714));
}

#[test]
fn impossible_deletes_and_renames_are_refused() {
    let both = [("a", &b"1"[..]), ("b", b"2")];
    check_error(
        &both,
        &[renamed("a", "b", &[])],
        ErrorCode::FileExists,
        "b: a file of this name already exists",
    );
    check_error(
        &both,
        &[renamed("a", "./a", &[])],
        ErrorCode::BadArguments,
        "./a: the file already has this name",
    );
    check_error(
        &both,
        &[edit("b", &[("2", "3")]), deleted("none")],
        ErrorCode::NotFound,
        "none: there is no such file",
    );
    let mut two_ways = deleted("a");
    two_ways.to = Some("c".into());
    check_error(
        &both,
        &[two_ways],
        ErrorCode::BadArguments,
        "a: delete cannot be combined with find, replace or to",
    );
    let place = Fixture::new(&both);
    symlink("a", place.path("link")).unwrap();
    for edit in [deleted("link"), renamed("link", "c", &[])] {
        assert_eq!(place.apply(&[edit]).unwrap_err().code, ErrorCode::NotAFile);
    }
}

#[test]
fn hard_links_are_broken_only_on_demand() {
    let place = Fixture::new(&[("a", b"1"), ("c", b"1")]);
    std::fs::hard_link(place.path("a"), place.path("b")).unwrap();
    let error = place
        .apply(&[edit("c", &[("1", "2")]), edit("a", &[("1", "2")])])
        .unwrap_err();
    assert_eq!(
        (error.code, error.message.as_str()),
        (ErrorCode::HardLinked, "a: the file has 2 hard links")
    );
    // An edit without effect breaks no links.
    place.apply(&[edit("a", &[("1", "1")])]).unwrap();
    let mut breaking = edit("a", &[("1", "2")]);
    breaking.breaks_links = true;
    place.apply(&[breaking]).unwrap();
    let read = |name: &str| std::fs::read(place.path(name)).unwrap();
    assert_eq!((read("a"), read("b")), (b"2".to_vec(), b"1".to_vec()));
}

#[test]
fn one_of_several_links_is_removed_only_on_demand() {
    let place = Fixture::new(&[("a", b"1")]);
    std::fs::hard_link(place.path("a"), place.path("b")).unwrap();
    let tree = place.tree();
    // Their undo would leave two files where there was one with two links.
    for edit in [deleted("a"), renamed("a", "c", &[("1", "2")])] {
        let error = place.apply(std::slice::from_ref(&edit)).unwrap_err();
        assert_eq!(error.code, ErrorCode::HardLinked, "{edit:?}");
    }
    assert_eq!(place.tree(), tree);
    place.apply(&[renamed("a", "c", &[])]).unwrap();
    let found = |name: &str| std::fs::metadata(place.path(name)).unwrap();
    assert_eq!(found("c").ino(), found("b").ino());
    let mut breaking = deleted("c");
    breaking.breaks_links = true;
    place.apply(&[breaking]).unwrap();
    assert_eq!((found("b").nlink(), place.path("c").exists()), (1, false));
}

#[test]
fn a_new_name_must_be_free_and_short_enough() {
    let place = Fixture::new(&[("a", b"1")]);
    symlink("nothing", place.path("link")).unwrap();
    let rename = |to: &str| FileEdit {
        path: "a".into(),
        to: Some(to.into()),
        ..FileEdit::default()
    };
    let error = place.apply(&[rename("link")]).unwrap_err();
    assert_eq!(
        (error.code, error.message.as_str()),
        (
            ErrorCode::FileExists,
            "link: a symlink of this name already exists"
        )
    );
    let long = "d/".repeat(3000) + "x";
    for edits in [[rename(&long)], [edit(&long, &[("", "x")])]] {
        let error = place.apply(&edits).unwrap_err();
        assert_eq!(error.code, ErrorCode::NameTooLong, "{}", error.message);
    }
    assert_eq!(place.tree(), [("a".to_owned(), b"1".to_vec())]);
}

#[test]
fn replacing_a_file_shows_the_diff() {
    let place = Fixture::new(&[("b", b"B\n"), ("c", b"C\n")]);
    let delete = FileEdit {
        path: "c".into(),
        delete: true,
        ..FileEdit::default()
    };
    let rename = FileEdit {
        path: "b".into(),
        to: Some("c".into()),
        ..FileEdit::default()
    };
    let done = place.apply(&[delete, rename]).unwrap();
    let diffs: Vec<&str> = done.iter().map(|file| file.diff.text.as_str()).collect();
    assert_eq!(diffs, ["", "@@ -1 +1 @@\n-C\n+B\n"]);
}

#[test]
fn hard_linked_files_swap_names_one_by_one() {
    let place = Fixture::new(&[("a", b"1"), ("b", b"2")]);
    for name in ["a", "b"] {
        std::fs::hard_link(place.path(name), place.path(&format!("{name}-too"))).unwrap();
    }
    let inode = |name: &str| std::fs::metadata(place.path(name)).unwrap().ino();
    let (a, b) = (inode("a"), inode("b"));
    let swap = [
        renamed("a", "t", &[]),
        renamed("b", "a", &[]),
        renamed("t", "b", &[]),
    ];
    let error = place.apply(&swap).unwrap_err();
    assert_eq!(error.code, ErrorCode::HardLinked);
    assert!(
        error.hint.contains("as an edit of its own"),
        "{}",
        error.hint
    );
    for rename in swap {
        place.apply(&[rename]).unwrap();
    }
    assert_eq!([inode("a"), inode("b")], [b, a]);
    assert_eq!([inode("a-too"), inode("b-too")], [a, b]);
    // With breaks_links the other links keep the old content.
    let mut breaking = [deleted("a-too"), renamed("a", "a-too", &[])];
    let code = |edits: &[FileEdit]| place.apply(edits).map_err(|error| error.code);
    assert_eq!(code(&breaking), Err(ErrorCode::HardLinked));
    breaking
        .iter_mut()
        .for_each(|edit| edit.breaks_links = true);
    assert!(code(&breaking).is_ok());
    assert_eq!(inode("b"), a);
    place.apply(&[renamed("a-too", "a", &[])]).unwrap();
    std::fs::hard_link(place.path("a"), place.path("a-too")).unwrap();
    // A change of the text breaks the other links.
    let over = [deleted("b-too"), renamed("a", "b-too", &[("2", "3")])];
    let error = place.apply(&over).unwrap_err();
    assert!(error.hint.contains("break_links"), "{}", error.hint);
}

#[test]
fn a_recreated_file_is_a_new_file() {
    let place = Fixture::new(&[("a", b"1"), ("e", b"2")]);
    place
        .apply(&[renamed("a", "b", &[]), edit("a", &[("", "1")])])
        .unwrap();
    let chain = [
        renamed("e", "f", &[]),
        renamed("f", "g", &[]),
        edit("e", &[("", "2")]),
    ];
    place.apply(&chain).unwrap();
    for (old, new) in [("a", "b"), ("e", "g")] {
        std::fs::write(place.path(old), "changed").unwrap();
        assert_ne!(std::fs::read(place.path(new)).unwrap(), b"changed");
    }
}

/// Mounted file systems, unmounted on drop.
struct Mounted(Vec<PathBuf>);

impl Mounted {
    /// Mounts a file system; returns false where that is not allowed.
    fn add(&mut self, kind: &str, options: &str, at: PathBuf) -> bool {
        std::fs::create_dir_all(&at).unwrap();
        let mut mount = std::process::Command::new("mount");
        mount.args(["-t", kind, "-o", options, kind]).arg(&at);
        let is_done = mount.output().is_ok_and(|output| output.status.success());
        self.0.extend(is_done.then_some(at));
        is_done
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        for path in self.0.iter().rev() {
            let _ = std::process::Command::new("umount").arg(path).status();
        }
    }
}

/// Mounts an overlayfs `m`; the files `a` and `c` of its lower layer have a second link each.
fn layered(place: &Fixture) -> Option<Mounted> {
    let mut mounted = Mounted(Vec::new());
    let path = |name: &str| place.path(name);
    let small = "size=1m";
    if !mounted.add("tmpfs", small, path("low")) || !mounted.add("tmpfs", small, path("up")) {
        return None;
    }
    for name in ["a", "b", "c"] {
        std::fs::write(path("low").join(name), "1").unwrap();
    }
    for name in ["a", "c"] {
        let (file, other) = (path("low").join(name), path("low").join(format!("{name}2")));
        std::fs::hard_link(file, other).unwrap();
    }
    for name in ["up/top", "up/work"] {
        std::fs::create_dir(path(name)).unwrap();
    }
    let [low, top, work] =
        ["low", "up/top", "up/work"].map(|name| path(name).display().to_string());
    let options = format!("lowerdir={low},upperdir={top},workdir={work}");
    mounted
        .add("overlay", &options, path("m"))
        .then_some(mounted)
}

/// On overlayfs, a file of a lower layer with several links becomes another file when it is opened for
/// writing or linked.
#[test]
fn overlayfs_copies_are_recognised_by_content() {
    let place = Fixture::new(&[]);
    let Some(_mounted) = layered(&place) else {
        println!("skipped: no file systems in layers can be mounted here");
        return;
    };
    let parted = FileEdit {
        breaks_links: true,
        ..edit("m/a", &[("1", "one")])
    };
    place
        .apply(&[
            parted,
            edit("m/b", &[("1", "two")]),
            renamed("m/c", "m/d", &[]),
        ])
        .unwrap();
    let contents = ["m/a", "m/a2", "m/b", "m/c2", "m/d", "low/a", "low/c"]
        .map(|name| std::fs::read_to_string(place.path(name)).unwrap());
    assert_eq!(contents, ["one", "1", "two", "1", "1", "1", "1"]);
    assert!(!place.path("m/c").exists());
    let names = std::fs::read_dir(place.path("m")).unwrap().count();
    assert_eq!(names, 5);
}

#[test]
fn overlayfs_copies_with_other_content_are_changes() {
    let place = Fixture::new(&[]);
    let Some(_mounted) = layered(&place) else {
        println!("skipped: no file systems in layers can be mounted here");
        return;
    };
    let path = place.path("m/a").canonicalize().unwrap();
    let read = || {
        let change = Change::read(&path, &path).unwrap();
        [change.with_content(b"one".to_vec())]
    };
    let changes = read();
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    let time = file.metadata().unwrap().modified().unwrap();
    std::io::Write::write_all(&mut &file, b"2").unwrap();
    file.set_modified(time).unwrap();
    let commit = |changes: &[Change]| {
        let transaction = Transaction::begin(&place.1, &[&path]).unwrap();
        transaction.commit(changes, &|_| false)
    };
    let error = commit(&changes).unwrap_err();
    assert_eq!(error.code, ErrorCode::FileChanged, "{}", error.message);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "2");
    commit(&read()).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "one");
}
