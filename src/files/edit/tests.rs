//! Edits of real files.

use super::*;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::super::journal::{Entry, Journal};
use super::super::transaction::Recorder;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

/// A directory, what records its changes, and the directory of the journal, which lives as long.
struct Place(
    tempfile::TempDir,
    Recorder,
    #[allow(dead_code)] tempfile::TempDir,
);

impl Place {
    fn new(files: &[(&str, &[u8])]) -> Self {
        let state = tempfile::tempdir().unwrap();
        let recorder = Recorder {
            journal: Some(Arc::new(Journal::open(state.path(), None).unwrap())),
            ..Recorder::default()
        };
        let place = Self(tempfile::tempdir().unwrap(), recorder, state);
        for (name, bytes) in files {
            let path = place.path(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        }
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn apply(&self, edits: &[FileEdit]) -> Result<Vec<FileEdited>, ToolError> {
        Ok(self.done(edits, &Root::unconfined())?.files)
    }

    fn done(&self, edits: &[FileEdit], root: &Root) -> Result<Done, ToolError> {
        let options = EditOptions {
            cwd: self.0.path(),
            root,
            recorder: &self.1,
            is_private: &|_| false,
            show: Show::Part(&|text| text.to_owned()),
        };
        let done = apply(edits, options);
        // No record of a change outlives it.
        if let Some(journal) = &self.1.journal {
            let left = std::fs::read_dir(journal.transactions()).map_or(0, Iterator::count);
            assert_eq!(left, 0);
        }
        done
    }

    /// For a user who may not write the journal either.
    fn unrecorded(mut self) -> Self {
        self.1 = Recorder::default();
        self
    }

    /// Every file with its content; directories end in a slash.
    fn tree(&self) -> Vec<(String, Vec<u8>)> {
        let mut found = Vec::new();
        let mut left = vec![self.0.path().to_owned()];
        while let Some(directory) = left.pop() {
            for entry in std::fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                let name = path
                    .strip_prefix(self.0.path())
                    .unwrap()
                    .to_string_lossy()
                    .into_owned();
                if path.is_dir() {
                    found.push((format!("{name}/"), Vec::new()));
                    left.push(path);
                } else if path.is_file() {
                    found.push((name, std::fs::read(path).unwrap()));
                }
            }
        }
        found.sort();
        found
    }
}

fn edit(path: &str, pairs: &[(&str, &str)]) -> FileEdit {
    let pair = |(find, replace): &(&str, &str)| EditPair {
        find: (*find).into(),
        replace: (*replace).into(),
        all: false,
        written: None,
        has_secret: false,
    };
    FileEdit {
        path: path.into(),
        pairs: pairs.iter().map(pair).collect(),
        ..FileEdit::default()
    }
}

/// Files before, edits, and files after: all of them, so that no temporary one is left.
fn check(before: &[(&str, &[u8])], edits: &[FileEdit], after: &[(&str, &[u8])]) {
    let place = Place::new(before);
    place.apply(edits).unwrap();
    let after: Vec<_> = after
        .iter()
        .map(|(name, bytes)| ((*name).to_owned(), bytes.to_vec()))
        .collect();
    assert_eq!(place.tree(), after);
}

/// An error with the start of its message, and files as they were.
fn check_error(before: &[(&str, &[u8])], edits: &[FileEdit], code: ErrorCode, message: &str) {
    let place = Place::new(before);
    let (tree, error) = (place.tree(), place.apply(edits).unwrap_err());
    assert_eq!(
        (error.code, error.message.as_str()),
        (code, message),
        "{}",
        error.hint
    );
    assert_eq!(place.tree(), tree);
}

#[test]
fn texts_keep_their_form() {
    check(
        &[("a", b"one\ntwo\n")],
        &[edit("a", &[("two", "2")])],
        &[("a", b"one\n2\n")],
    );
    check(
        &[("a", b"one")],
        &[edit("a", &[("one", "1\n2")])],
        &[("a", b"1\n2")],
    );
    check(
        &[("a", b"\xEF\xBB\xBFone\r\ntwo\r\n")],
        &[edit("a", &[("one\n", "1\n")])],
        &[("a", b"\xEF\xBB\xBF1\r\ntwo\r\n")],
    );
    check(
        &[("a", b"\xEF\xBB\xBF")],
        &[edit("a", &[("", "x")])],
        &[("a", b"\xEF\xBB\xBFx")],
    );
}

#[test]
fn files_are_created_with_their_directories() {
    check(
        &[],
        &[edit("x/y/new", &[("", "text\n"), ("text", "more")])],
        &[("x/", b""), ("x/y/", b""), ("x/y/new", b"more\n")],
    );
    check(
        &[("empty", b"")],
        &[edit("empty", &[("", "x")])],
        &[("empty", b"x")],
    );
    check(&[], &[edit("new", &[("", "")])], &[("new", b"")]);
    check(
        &[],
        &[edit("x/a", &[("", "1")]), edit("x/../x/a", &[("1", "2")])],
        &[("x/", b""), ("x/a", b"2")],
    );
}

#[test]
fn several_files_change_together() {
    check(
        &[("a", b"1"), ("d/b", b"2")],
        &[
            edit("a", &[("1", "x")]),
            edit("d/b", &[("2", "y")]),
            edit("c", &[("", "z")]),
        ],
        &[("a", b"x"), ("c", b"z"), ("d/", b""), ("d/b", b"y")],
    );
    check_error(
        &[("a", b"1"), ("b", b"2")],
        &[edit("a", &[("1", "x")]), edit("b", &[("3", "y")])],
        ErrorCode::FindNotFound,
        "b: expected the text to find once, found it nowhere",
    );
    check_error(
        &[("a", b"1")],
        &[
            edit("x/new", &[("", "x")]),
            edit("a", &[("1", "2"), ("1", "x")]),
        ],
        ErrorCode::FindNotFound,
        "a, find 2 of 2: expected the text to find once, found it nowhere",
    );
}

#[test]
fn errors_say_what_was_found() {
    check_error(
        &[("a", b"1\n1\n")],
        &[edit("a", &[("1", "x")])],
        ErrorCode::FindAmbiguous,
        "a: expected the text to find once, found it 2 times, on lines 1, 2",
    );
    check_error(
        &[("a", b"1")],
        &[edit("a", &[("", "x")])],
        ErrorCode::BadArguments,
        "a: an empty text to find creates a file, and this one has text already",
    );
    check_error(
        &[],
        &[edit("a", &[("1", "x")])],
        ErrorCode::NotFound,
        "a: there is no such file",
    );
    check_error(
        &[],
        &[edit("a", &[])],
        ErrorCode::NotFound,
        "a: there is no such file",
    );
    check_error(
        &[("d/a", b"1")],
        &[edit("d", &[("1", "x")])],
        ErrorCode::IsDirectory,
        "d: expected a file, found a directory",
    );
    check_error(
        &[("a", b"1")],
        &[edit("a/b", &[("", "x")])],
        ErrorCode::NotADirectory,
        "a/b: Not a directory (os error 20)",
    );
    check_error(
        &[
            ("a", "\u{e9}\u{e9}".as_bytes()),
            ("b", b"\xC3\xA9\xC3\xA9\xFF"),
        ],
        &[
            edit("a", &[("\u{e9}\u{e9}", "x")]),
            edit("b", &[("1", "x")]),
        ],
        ErrorCode::BinaryFile,
        "b: expected UTF-8 text, found a broken character at offset 4",
    );
    check_error(
        &[("a", b"1\0")],
        &[edit("a", &[("1", "x")])],
        ErrorCode::BinaryFile,
        "a: expected text, found a NUL byte or control character at offset 1",
    );
}

#[test]
fn the_closest_passage_is_a_hint_unless_a_secret_is_involved() {
    let place = Place::new(&[("a", b"fn main() {\n\tcall(1);\n}\n")]);
    let mut edits = [edit("a", &[("    call(1);", "x")])];
    let hint = place.apply(&edits).unwrap_err().hint;
    assert_eq!(
        hint,
        "closest is line 2, to copy as it stands:\n\tcall(1);\nline 2: the file indents with 1 tab, the text to find with 4 spaces"
    );
    edits[0].pairs[0].has_secret = true;
    assert_eq!(
        place.apply(&edits).unwrap_err().hint,
        ErrorCode::FindNotFound.hint()
    );
}

#[test]
fn changes_that_are_there_already() {
    let place = Place::new(&[("a", b"mode = new\n"), ("b", b"mode = old\n")]);
    let done = place
        .apply(&[edit("a", &[("mode = old", "mode = new")])])
        .unwrap();
    let expected = FileEdited {
        path: "a".into(),
        kind: Kind::AlreadyApplied,
        first_line: Some(1),
        ..FileEdited::default()
    };
    assert_eq!(done, [expected]);
    let error = place
        .apply(&[
            edit("b", &[("mode = old", "mode = new")]),
            edit("a", &[("mode = old", "mode = new")]),
        ])
        .unwrap_err();
    assert_eq!(
        (error.code, error.message.as_str()),
        (
            ErrorCode::AlreadyApplied,
            "a: the text to find is gone, and its replacement is on line 1 already"
        )
    );
    assert_eq!(std::fs::read(place.path("b")).unwrap(), b"mode = old\n");
}

#[test]
fn results_count_what_was_done() {
    let place = Place::new(&[("a", b"x\ny\nx\n")]);
    let mut all = edit("a", &[("x", "z"), ("y", "y")]);
    all.pairs[0].all = true;
    let done = place.apply(&[all, edit("n", &[("", "1")])]).unwrap();
    let shown = |text: &str, added, removed| Diff {
        text: text.into(),
        added,
        removed,
        omitted: 0,
    };
    let a = FileEdited {
        path: "a".into(),
        kind: Kind::Edited,
        replacements: 3,
        first_line: Some(1),
        diff: shown("@@ -1,3 +1,3 @@\n-x\n+z\n y\n-x\n+z\n", 2, 2),
        ..FileEdited::default()
    };
    let n = FileEdited {
        path: "n".into(),
        kind: Kind::Created,
        replacements: 1,
        first_line: Some(1),
        diff: shown(
            "@@ -0,0 +1 @@\n+1\n\\ no line break at the end of the file\n",
            1,
            0,
        ),
        ..FileEdited::default()
    };
    assert_eq!(done, [a, n]);
}

fn deleted(path: &str) -> FileEdit {
    let mut edit = edit(path, &[]);
    edit.delete = true;
    edit
}

fn renamed(path: &str, to: &str, pairs: &[(&str, &str)]) -> FileEdit {
    let mut edit = edit(path, pairs);
    edit.to = Some(to.into());
    edit
}

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
    // In order, on what the parts before left.
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
fn a_renamed_file_stays_the_file_it_was() {
    let place = Place::new(&[("a", b"1"), ("b", b"2")]);
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
fn deletes_and_renames_that_cannot_be() {
    let both = [("a", &b"1"[..]), ("b", b"2")];
    check_error(
        &both,
        &[renamed("a", "b", &[])],
        ErrorCode::FileExists,
        "b: there is such a file already",
    );
    check_error(
        &both,
        &[renamed("a", "./a", &[])],
        ErrorCode::BadArguments,
        "./a: is the name the file has",
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
        "a: delete goes without find, replace and to",
    );
    let place = Place::new(&both);
    symlink("a", place.path("link")).unwrap();
    for edit in [deleted("link"), renamed("link", "c", &[])] {
        assert_eq!(place.apply(&[edit]).unwrap_err().code, ErrorCode::NotAFile);
    }
}

#[test]
fn encodings_are_kept() {
    check(
        &[("a", b"tr\xE8s bien\r\ncaf\xE9\r\n")],
        &[edit("a", &[("bien\ncaf\u{e9}", "bon\nth\u{e9}")])],
        &[("a", b"tr\xE8s bon\r\nth\xE9\r\n")],
    );
    check(
        &[("a", b"\xFF\xFEa\0\n\0")],
        &[edit("a", &[("a", "\u{4E2D}")])],
        &[("a", b"\xFF\xFE\x2D\x4E\n\0")],
    );
    check_error(
        &[("a", b"caf\xE9"), ("b", b"1")],
        &[edit("b", &[("1", "2")]), edit("a", &[("caf", "\u{4E2D}")])],
        ErrorCode::NotEncodable,
        "a: the file is in latin-1, which has no '\u{4E2D}' (U+4E2D)",
    );
    let place = Place::new(&[("a", b"caf\xE9")]);
    let done = place.apply(&[edit("a", &[("caf", "th")])]).unwrap();
    assert_eq!(done[0].encoding, Some("latin-1"));
}

#[test]
fn a_doubtful_encoding_takes_no_new_characters() {
    check(
        &[("a", b"port = 80\n\xb6\xcb\xbf\xda \xb6\xcb\xbf\xda \xce\xc4\xbc\xfe \xc4\xbf\xc2\xbc end\n")],
        &[edit("a", &[("80", "\u{6587}\u{4EF6}")])],
        &[("a", b"port = \xce\xc4\xbc\xfe\n\xb6\xcb\xbf\xda \xb6\xcb\xbf\xda \xce\xc4\xbc\xfe \xc4\xbf\xc2\xbc end\n")],
    );
    // A word of two characters may be Korean as well.
    check_error(
        &[("a", b"port = 80\n\xb6\xcb\xbf\xda end\n")],
        &[edit("a", &[("80", "\u{6587}\u{4EF6}")])],
        ErrorCode::NotEncodable,
        "a: gb18030 is only a guess of the file's encoding, so '\u{6587}' (U+6587) might be written wrong",
    );
    let text = "\u{65E5}\u{672C}\u{8A9E}\u{306E}\u{6587}\u{7AE0}\u{3067}\u{3059}\n".repeat(12);
    let bytes = encoding_rs::SHIFT_JIS.encode(&text).0;
    let old = [b"a\n", &*bytes].concat();
    check_error(
        &[("a", &old)],
        &[edit("a", &[("a\n", "\u{65E5}\u{6728}\n")])],
        ErrorCode::NotEncodable,
        "a: Shift_JIS is only a guess of the file's encoding, so '\u{6728}' (U+6728) might be written wrong",
    );
    check(
        &[("a", &old)],
        &[edit("a", &[("a\n", "b\u{65E5}\n")])],
        &[("a", &[b"b\x93\xfa\n", &*bytes].concat())],
    );
    check_error(
        &[("a", b"caf\xc3\xa9\n\xff\n")],
        &[edit("a", &[("caf", "th")])],
        ErrorCode::BinaryFile,
        "a: expected UTF-8 text, found a broken character at offset 6",
    );
}

#[test]
fn a_diff_reads_both_texts_in_one_encoding() {
    let place = Place::new(&[("a", b"\xe9 x\n\xc3 \xa9\n")]);
    let pairs = [("\u{e9} x\n", ""), ("\u{c3} ", "\u{c3}")];
    let done = place.apply(&[edit("a", &pairs)]).unwrap();
    assert_eq!(
        done[0].diff.text,
        "@@ -1,2 +1 @@\n-\u{e9} x\n-\u{c3} \u{a9}\n+\u{c3}\u{a9}\n"
    );
}

#[test]
fn a_line_break_that_the_file_has_not_is_told() {
    let place = Place::new(&[("a", b"one\ntwo")]);
    let error = place.apply(&[edit("a", &[("two\n", "2\n")])]).unwrap_err();
    assert_eq!(error.code, ErrorCode::FindNotFound);
    let hint = error.hint.as_str();
    assert!(hint.contains("last line has no line break"), "{hint}");
    let error = place
        .apply(&[edit("a", &[("one\n\n", "2\n")])])
        .unwrap_err();
    let hint = error.hint.as_str();
    assert!(!hint.contains("last line has no"), "{hint}");
}

#[test]
fn hard_links_are_broken_only_on_demand() {
    let place = Place::new(&[("a", b"1"), ("c", b"1")]);
    std::fs::hard_link(place.path("a"), place.path("b")).unwrap();
    let error = place
        .apply(&[edit("c", &[("1", "2")]), edit("a", &[("1", "2")])])
        .unwrap_err();
    assert_eq!(
        (error.code, error.message.as_str()),
        (ErrorCode::HardLinked, "a: the file has 2 names")
    );
    // One that does not change has nothing to break.
    place.apply(&[edit("a", &[("1", "1")])]).unwrap();
    let mut breaking = edit("a", &[("1", "2")]);
    breaking.breaks_links = true;
    place.apply(&[breaking]).unwrap();
    let read = |name: &str| std::fs::read(place.path(name)).unwrap();
    assert_eq!((read("a"), read("b")), (b"2".to_vec(), b"1".to_vec()));
}

#[test]
fn a_name_of_several_goes_only_on_demand() {
    let place = Place::new(&[("a", b"1")]);
    std::fs::hard_link(place.path("a"), place.path("b")).unwrap();
    let tree = place.tree();
    // Undone, each would leave two files where there was one with two names.
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
fn overlapping_pairs_are_named_as_such() {
    let place = Place::new(&[("a", b"one two three\n")]);
    let error = place
        .apply(&[edit("a", &[("one two", "1"), ("two three", "2")])])
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::FindNotFound);
    assert!(
        error.hint.contains("earlier find of this call"),
        "{}",
        error.hint
    );
    assert_eq!(std::fs::read(place.path("a")).unwrap(), b"one two three\n");
}

#[test]
fn attributes_are_kept() {
    let place = Place::new(&[("a", b"1")]);
    let open = || std::fs::File::open(place.path("a")).unwrap();
    let flags = rustix::fs::XattrFlags::empty();
    if rustix::fs::fsetxattr(open(), "user.karyi", b"kept", flags).is_err() {
        println!("skipped: no extended attributes here");
        return;
    }
    place.apply(&[edit("a", &[("1", "2")])]).unwrap();
    let mut value = [0_u8; 8];
    let length = rustix::fs::fgetxattr(open(), "user.karyi", &mut value[..]).unwrap();
    assert_eq!(&value[..length], b"kept");
}

#[test]
fn links_stay_links() {
    let place = Place::new(&[("d/real", b"1")]);
    symlink("d/real", place.path("link")).unwrap();
    symlink("d/missing", place.path("dangling")).unwrap();
    place
        .apply(&[
            edit("link", &[("1", "2")]),
            edit("d/../d/real", &[("2", "3")]),
            edit("dangling", &[("", "x")]),
        ])
        .unwrap();
    assert_eq!(
        std::fs::read_link(place.path("link")).unwrap(),
        Path::new("d/real")
    );
    assert_eq!(
        std::fs::read_link(place.path("dangling")).unwrap(),
        Path::new("d/missing")
    );
    for (name, text) in [("d/real", "3"), ("d/missing", "x")] {
        assert_eq!(
            std::fs::read_to_string(place.path(name)).unwrap(),
            text,
            "{name}"
        );
    }
}

#[test]
fn modes_are_kept_and_unchanged_files_are_not_written() {
    let place = Place::new(&[("a", b"1"), ("same", b"1")]);
    std::fs::set_permissions(place.path("a"), PermissionsExt::from_mode(0o754)).unwrap();
    let before = std::fs::metadata(place.path("same")).unwrap();
    place
        .apply(&[
            edit("a", &[("1", "2")]),
            edit("same", &[("1", "1")]),
            edit("new", &[("", "x")]),
        ])
        .unwrap();
    assert_eq!(
        std::fs::metadata(place.path("a")).unwrap().mode() & 0o7777,
        0o754
    );
    assert_eq!(
        std::fs::metadata(place.path("same")).unwrap().ino(),
        before.ino()
    );
    std::fs::write(place.path("plain"), "x").unwrap();
    let mode = |name: &str| std::fs::metadata(place.path(name)).unwrap().mode();
    assert_eq!(mode("new"), mode("plain"));
}

#[test]
fn special_files_are_never_opened() {
    let place = Place::new(&[]);
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
fn what_the_system_makes_up_cannot_be_replaced() {
    let place = Place::new(&[]);
    for name in [
        "/proc/self/status",
        "/proc/version",
        "/proc/none",
        "/proc/none/deep/file",
    ] {
        let error = place.apply(&[edit(name, &[("e", "x")])]).unwrap_err();
        assert_eq!(error.code, ErrorCode::NotAFile, "{name}: {}", error.message);
        assert!(error.hint.contains("<command>"), "{}", error.hint);
    }
}

#[test]
fn a_large_sparse_file_is_refused_at_once() {
    let place = Place::new(&[]);
    std::fs::File::create(place.path("big"))
        .unwrap()
        .set_len(1 << 40)
        .unwrap();
    let error = place.apply(&[edit("big", &[("", "x")])]).unwrap_err();
    assert_eq!(error.code, ErrorCode::FileTooLarge);
}

/// Runs as a user without rights, in a thread of its own: the user id of file access is the
/// thread's.
fn as_nobody(act: impl FnOnce() + Send) {
    if !nix::unistd::Uid::effective().is_root() {
        return act();
    }
    std::thread::scope(|scope| {
        scope.spawn(|| {
            nix::unistd::setfsgid(nix::unistd::Gid::from_raw(65534));
            nix::unistd::setfsuid(nix::unistd::Uid::from_raw(65534));
            act();
        });
    });
}

fn open_to_all(path: &Path, mode: u32) {
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

#[test]
fn missing_permissions_are_not_worked_around() {
    let place = Place::new(&[
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
fn the_owner_is_kept() {
    if !nix::unistd::Uid::effective().is_root() {
        println!("skipped: only root can make files of two owners");
        return;
    }
    let place =
        Place::new(&[("theirs", b"1"), ("sticky/a", b"1"), ("sticky/b", b"1")]).unrecorded();
    let owner =
        |name: &str, id| std::os::unix::fs::chown(place.path(name), Some(id), Some(id)).unwrap();
    owner("theirs", 1234);
    place.apply(&[edit("theirs", &[("1", "2")])]).unwrap();
    open_to_all(place.0.path(), 0o777);
    open_to_all(&place.path("theirs"), 0o666);
    let tree = place.tree();
    as_nobody(|| {
        // Written over, it could be found half-written; replaced, it would be nobody's.
        let edits = [edit("new", &[("", "x")]), edit("theirs", &[("2", "three")])];
        let error = place.apply(&edits).unwrap_err();
        assert_eq!(error.code, ErrorCode::OwnerNotKept, "{}", error.message);
    });
    assert_eq!(place.tree(), tree);
    let found = std::fs::metadata(place.path("theirs")).unwrap();
    assert_eq!(
        (found.uid(), found.gid(), found.mode() & 0o777),
        (1234, 1234, 0o666)
    );
}

#[test]
fn a_root_confines_edits() {
    let place = Place::new(&[("in/a", b"1"), ("out", b"1")]);
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

#[test]
fn an_edit_that_fails_tells_what_was_ended_before_it() {
    let place = Place::new(&[("a", b"1"), ("b", b"1"), ("c", b"1")]);
    let journal = place.1.journal.clone().unwrap();
    let path = |name: &str| place.path(name).canonicalize().unwrap();
    let change = |name: &str| {
        let change = Change::read(&path(name), &path(name)).unwrap();
        change.into_content(b"2".to_vec())
    };
    let changes = [change("a"), change("b")];
    let planned = super::super::commit::plan(&changes, "t");
    let transactions = journal.transactions();
    let record = super::super::intent::Record::new(&transactions, "t", &planned);
    let mut record = record.unwrap();
    let mut staged = super::super::commit::stage(&changes, &planned).unwrap();
    staged.check().unwrap();
    let entry = Entry {
        number: 0,
        id: "t".into(),
        time_ms: 1,
        session: String::new(),
        call: String::new(),
        tool: "edit".into(),
        key: None,
        undoes: Vec::new(),
        files: Vec::new(),
        made: Vec::new(),
    };
    let steps = staged.decided(&entry);
    let decision = super::super::intent::Decision { steps, entry };
    record.decide(&decision).unwrap();
    std::mem::forget(staged);
    drop(record);
    std::fs::write(place.path("b"), "theirs").unwrap();
    let error = place
        .apply(&[edit("c", &[("no such text", "x")])])
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::FindNotFound);
    let (a, b) = (path("a"), path("b"));
    let expected = format!(
        "; before that, files which a killed karyi had left half changed were looked at: {} left_alone \
         (another program changed it since), {} completed",
        b.display(),
        a.display()
    );
    assert!(error.message.ends_with(&expected), "{}", error.message);
}

#[test]
fn a_diff_of_a_file_with_a_byte_order_mark_can_be_applied() {
    let old = "\u{FEFF}one\r\ntwo\r\nthree\r\n";
    let place = Place::new(&[("a", old.as_bytes())]);
    let done = place.apply(&[edit("a", &[("two", "2")])]).unwrap();
    assert!(
        done[0].diff.text.contains("\n \u{FEFF}one"),
        "{:?}",
        done[0].diff.text
    );
    std::fs::write(place.path("copy"), old).unwrap();
    std::fs::write(place.path("diff"), &done[0].diff.text).unwrap();
    let mut patch = std::process::Command::new("patch");
    patch
        .args(["--binary", "-s", "copy", "diff"])
        .current_dir(place.0.path());
    match patch.status() {
        Err(_) => println!("skipped: no patch"),
        Ok(status) => {
            assert!(status.success());
            let both = ["copy", "a"].map(|name| std::fs::read(place.path(name)).unwrap());
            assert_eq!(both[0], both[1]);
        }
    }
    // Who copies the first line out of it gets no mark into the text.
    let copied = [("\u{FEFF}one\r\n2", "\u{FEFF}1\r\n2")];
    place.apply(&[edit("a", &copied)]).unwrap();
    let text = std::fs::read_to_string(place.path("a")).unwrap();
    assert_eq!(text, "\u{FEFF}1\r\n2\r\nthree\r\n");
}

#[test]
fn a_new_name_is_free_and_can_be_opened() {
    let place = Place::new(&[("a", b"1")]);
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
            "link: there is a symlink of that name already"
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
fn a_file_that_takes_the_place_of_another_shows_the_diff() {
    let place = Place::new(&[("b", b"B\n"), ("c", b"C\n")]);
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
