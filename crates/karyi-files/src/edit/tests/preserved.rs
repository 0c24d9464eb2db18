//! Properties that an edit preserves: encoding, attributes, permissions, owner, links.

use super::*;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

#[test]
fn encodings_are_preserved() {
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
        "a: the file is in latin-1, which does not have '\u{4E2D}' (U+4E2D)",
    );
    let place = Fixture::new(&[("a", b"caf\xE9")]);
    let done = place.apply(&[edit("a", &[("caf", "th")])]).unwrap();
    assert_eq!(done[0].encoding, Some("latin-1"));
}

#[test]
fn guessed_encodings_take_no_new_characters() {
    check(
        &[("a", b"port = 80\n\xb6\xcb\xbf\xda \xb6\xcb\xbf\xda \xce\xc4\xbc\xfe \xc4\xbf\xc2\xbc end\n")],
        &[edit("a", &[("80", "\u{6587}\u{4EF6}")])],
        &[("a", b"port = \xce\xc4\xbc\xfe\n\xb6\xcb\xbf\xda \xb6\xcb\xbf\xda \xce\xc4\xbc\xfe \xc4\xbf\xc2\xbc end\n")],
    );
    // Two characters could be Korean as well.
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
    let place = Fixture::new(&[("a", b"\xe9 x\n\xc3 \xa9\n")]);
    let pairs = [("\u{e9} x\n", ""), ("\u{c3} ", "\u{c3}")];
    let done = place.apply(&[edit("a", &pairs)]).unwrap();
    assert_eq!(
        done[0].diff.text,
        "@@ -1,2 +1 @@\n-\u{e9} x\n-\u{c3} \u{a9}\n+\u{c3}\u{a9}\n"
    );
}

#[test]
fn attributes_are_preserved() {
    let place = Fixture::new(&[("a", b"1")]);
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
    let place = Fixture::new(&[("d/real", b"1")]);
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
fn modes_are_preserved_and_unchanged_files_are_not_written() {
    let place = Fixture::new(&[("a", b"1"), ("same", b"1")]);
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
fn the_owner_is_preserved() {
    if !nix::unistd::Uid::effective().is_root() {
        println!("skipped: only root can make files of two owners");
        return;
    }
    let place =
        Fixture::new(&[("theirs", b"1"), ("sticky/a", b"1"), ("sticky/b", b"1")]).unrecorded();
    let owner =
        |name: &str, id| std::os::unix::fs::chown(place.path(name), Some(id), Some(id)).unwrap();
    owner("theirs", 1234);
    place.apply(&[edit("theirs", &[("1", "2")])]).unwrap();
    open_to_all(place.0.path(), 0o777);
    open_to_all(&place.path("theirs"), 0o666);
    let tree = place.tree();
    as_nobody(|| {
        // Overwriting could be observed half-written; replacing would lose the owner.
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
fn a_diff_of_a_file_with_a_byte_order_mark_can_be_applied() {
    let old = "\u{FEFF}one\r\ntwo\r\nthree\r\n";
    let place = Fixture::new(&[("a", old.as_bytes())]);
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
    // A first line copied from the file must not carry its mark into the text.
    let copied = [("\u{FEFF}one\r\n2", "\u{FEFF}1\r\n2")];
    place.apply(&[edit("a", &copied)]).unwrap();
    let text = std::fs::read_to_string(place.path("a")).unwrap();
    assert_eq!(text, "\u{FEFF}1\r\n2\r\nthree\r\n");
}
