//! Messages and hints when a text is not where it should be.

use super::*;

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
    let place = Fixture::new(&[("a", b"fn main() {\n\tcall(1);\n}\n")]);
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
fn changes_already_in_place_are_reported() {
    let place = Fixture::new(&[("a", b"mode = new\n"), ("b", b"mode = old\n")]);
    let done = place
        .apply(&[edit("a", &[("mode = old", "mode = new")])])
        .unwrap();
    let expected = FileOutcome {
        path: "a".into(),
        kind: EditKind::AlreadyApplied,
        first_line: Some(1),
        ..FileOutcome::default()
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
fn a_missing_final_line_break_is_explained() {
    let place = Fixture::new(&[("a", b"one\ntwo")]);
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
fn overlapping_pairs_are_explained() {
    let place = Fixture::new(&[("a", b"one two three\n")]);
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
fn text_replaced_by_an_earlier_edit_of_the_file_is_explained() {
    let hint = |edits: &[FileEdit]| {
        let place = Fixture::new(&[("a", b"one two three\r\n"), ("b", b"x")]);
        let tree = place.tree();
        let error = place.apply(edits).unwrap_err();
        assert_eq!(error.code, ErrorCode::FindNotFound);
        assert_eq!(place.tree(), tree);
        error.hint
    };
    let (first, second) = (
        edit("a", &[("one two", "1")]),
        edit("./a", &[("two three", "2")]),
    );
    let between = edit("b", &[("x", "y")]);
    let moved = |edit: &FileEdit, from: &str, to: &str| FileEdit {
        path: from.into(),
        to: (!to.is_empty()).then(|| to.into()),
        ..edit.clone()
    };
    for edits in [
        vec![first.clone(), second.clone()],
        vec![first.clone(), between, second.clone()],
        vec![moved(&first, "a", "c"), moved(&second, "c", "")],
        vec![
            moved(&first, "a", "c"),
            moved(&edit("c", &[]), "c", "d"),
            moved(&second, "d", ""),
        ],
    ] {
        let hint = hint(&edits);
        assert!(
            hint.contains("earlier find of this call"),
            "{edits:?}: {hint}"
        );
    }
    // A file that is created anew has another text.
    let delete = FileEdit {
        delete: true,
        ..edit("a", &[])
    };
    let hint = hint(&[delete, edit("a", &[("", "new")]), second]);
    assert!(!hint.contains("earlier find of this call"), "{hint}");
}

#[test]
fn a_truncated_search_is_reported() {
    let most = limits::CLOSEST_TEXT_LINES;
    let place = Fixture::new(&[("a", "a\n".repeat(most + 1).as_bytes())]);
    let expected = format!("only the first {most} lines of the file were compared");
    for (find, hint) in [
        (
            "nothing like it",
            format!("{}; {expected}", ErrorCode::FindNotFound.hint()),
        ),
        (
            "a\na\nb",
            format!(
                "closest is lines 1-3, to copy as it stands:\na\na\na\nline 3: the file has `a` where the text to find has `b`; {expected}"
            ),
        ),
    ] {
        let error = place.apply(&[edit("a", &[(find, "x")])]).unwrap_err();
        assert_eq!(error.hint, hint, "{find:?}");
    }
}

#[test]
fn unsupported_edits_suggest_a_command() {
    let place = Fixture::new(&[("dir/main.rs", b"1"), ("a", b"1")]);
    std::os::unix::fs::symlink("nowhere", place.path("link")).unwrap();
    let to = |path: &str, to: &str| FileEdit {
        to: Some(to.into()),
        ..edit(path, &[])
    };
    let delete = FileEdit {
        delete: true,
        ..edit("dir", &[])
    };
    for (edit, hint) in [
        (to("dir", "other"), "the command `mv -- dir other`"),
        (delete, "the command `rm -r -- dir`"),
        (to("a", "link"), "`rm` first"),
        (to("a", "a"), "leave to=\"...\" out"),
        (to("a", "new/"), "leave out the slash"),
        (edit("new/", &[("", "x")]), "leave out the slash"),
        (edit("", &[("", "x")]), "such as README.md"),
        (edit("~/new", &[("", "x")]), "echo ~"),
        (
            edit("dir/mian.rs", &[("1", "x")]),
            "did you mean dir/main.rs?; to write a whole file, use <content>",
        ),
        (
            edit("dri/main.rs", &[("1", "x")]),
            "there is no directory dri; did you mean dir/main.rs?",
        ),
        (
            edit("nothing-near", &[("1", "x")]),
            "check the path; to write a whole file",
        ),
    ] {
        let error = place.apply(std::slice::from_ref(&edit)).unwrap_err();
        assert!(error.hint.contains(hint), "{edit:?}: {}", error.hint);
    }
    assert_eq!(place.tree().len(), 3);
    // Unless a file has that name.
    std::fs::create_dir(place.path("~")).unwrap();
    place.apply(&[edit("~/new", &[("", "x")])]).unwrap();
}

#[test]
fn a_command_in_a_hint_takes_the_path_as_it_is() {
    for (name, remove, rename) in [
        (
            "my src",
            "the command `rm -r -- 'my src'`",
            "the command `mv -- 'my src' 'my src.old'`",
        ),
        (
            "-x",
            "the command `rm -r -- -x`",
            "the command `mv -- -x -x.old`",
        ),
        (
            "a;b",
            "the command `rm -r -- 'a;b'`",
            "the command `mv -- 'a;b' 'a;b.old'`",
        ),
        (
            "it's",
            r"the command `rm -r -- 'it'\''s'`",
            r"the command `mv -- 'it'\''s' 'it'\''s.old'`",
        ),
        (
            "a<b",
            "the command `rm -r -- 'a<b'`",
            "the command `mv -- 'a<b' 'a<b.old'`",
        ),
        (
            "a&b",
            "the command `rm -r -- 'a&b'`",
            "the command `mv -- 'a&b' 'a&b.old'`",
        ),
    ] {
        let place = Fixture::new(&[(&format!("{name}/x"), b"1")]);
        let delete = FileEdit {
            delete: true,
            ..edit(name, &[])
        };
        let to = FileEdit {
            to: Some(format!("{name}.old").into()),
            ..edit(name, &[])
        };
        for (edit, how) in [(delete, remove), (to, rename)] {
            let error = place.apply(&[edit]).unwrap_err();
            let hint =
                format!("an edit renames and deletes files only; {how} does it, without undo");
            assert_eq!(error.hint, hint, "{name:?}");
        }
    }
}

#[test]
fn other_spellings_are_shown_to_copy() {
    let hint_for = |text: &str, find: &str| {
        let place = Fixture::new(&[("a", text.as_bytes())]);
        let tree = place.tree();
        let error = place.apply(&[edit("a", &[(find, "x")])]).unwrap_err();
        assert_eq!(error.code, ErrorCode::FindNotFound, "{find:?}");
        assert_eq!(place.tree(), tree);
        error.hint
    };
    for (text, find, hint) in SPELLED_OTHERWISE {
        assert_eq!(hint_for(text, find), *hint, "{text:?} {find:?}");
    }
}

/// Text of the file, text to find, and the hint.
const SPELLED_OTHERWISE: &[(&str, &str, &str)] = &[
    (
        "un caf\u{E9} noir\n",
        "cafe\u{301}",
        "closest is line 1, to copy as it stands:\ncaf\u{E9}\nline 1: the file has \u{E9} (U+00E9) where the text to find \
         has e\u{301} (U+0065 U+0301), which only look alike",
    ),
    (
        "un cafe\u{301} noir\n",
        "caf\u{E9}",
        "closest is line 1, to copy as it stands:\ncafe\u{301}\nline 1: the file has e\u{301} (U+0065 U+0301) where the \
         text to find has \u{E9} (U+00E9), which only look alike; `e&#x301;` spells what the file has",
    ),
    (
        "\u{E9}\n",
        "e\u{301}",
        "closest is line 1, to copy as it stands:\n\u{E9}\nline 1: the file has \u{E9} (U+00E9) where the text to find has \
         e\u{301} (U+0065 U+0301), which only look alike",
    ),
    (
        "\u{D55C}\u{AE00}\n",
        "\u{1112}\u{1161}\u{11AB}",
        "closest is line 1, to copy as it stands:\n\u{D55C}\nline 1: the file has \u{D55C} (U+D55C) where the text to find \
         has \u{1112}\u{1161}\u{11AB} (U+1112 U+1161 U+11AB), which only look alike",
    ),
    (
        "\u{1112}\u{1161}\u{11AB}\n",
        "\u{D55C}",
        "closest is line 1, to copy as it stands:\n\u{1112}\u{1161}\u{11AB}\nline 1: the file has \
         \u{1112}\u{1161}\u{11AB} (U+1112 U+1161 U+11AB) where the text to find has \u{D55C} (U+D55C), which only look \
         alike; `&#x1112;&#x1161;&#x11AB;` spells what the file has",
    ),
    (
        "\u{FF4F}\u{FF4B}\n",
        "ok",
        "closest is line 1, to copy as it stands:\n\u{FF4F}\u{FF4B}\nline 1: the file has \u{FF4F} (U+FF4F) where the text \
         to find has o (U+006F), \u{FF4B} (U+FF4B) where it has k (U+006B), which only look alike",
    ),
    (
        "ok\n",
        "\u{FF4F}\u{FF4B}",
        "closest is line 1, to copy as it stands:\nok\nline 1: the file has o (U+006F) where the text to find has \
         \u{FF4F} (U+FF4F), k (U+006B) where it has \u{FF4B} (U+FF4B), which only look alike",
    ),
    (
        "a \u{FB01}n\n",
        "fin",
        "closest is line 1, to copy as it stands:\n\u{FB01}n\nline 1: the file has \u{FB01} (U+FB01) where the text to find \
         has fi (U+0066 U+0069), which only look alike",
    ),
    (
        "wait\u{2026}\n",
        "wait...",
        "closest is line 1, to copy as it stands:\nwait\u{2026}\nline 1: the file has \u{2026} (U+2026) where the text to \
         find has ... (U+002E U+002E U+002E), which only look alike",
    ),
    (
        "<b>\n",
        "&lt;",
        "closest is line 1, to copy as it stands:\n<\nline 1: the file has < (U+003C) where the text to find has `&lt;`, \
         which stand for the same",
    ),
    (
        "a &lt;b> c\n",
        "a <b>",
        "closest is line 1, to copy as it stands:\na &lt;b>\nline 1: the file has `&lt;` where the text to find has < \
         (U+003C), which stand for the same",
    ),
    (
        "x = \"caf\\u00e9\"\n",
        "x = \"caf\u{E9}\"",
        "closest is line 1, to copy as it stands:\nx = \"caf\\u00e9\"\nline 1: the file has `\\u00e9` where the text to \
         find has \u{E9} (U+00E9), which stand for the same",
    ),
    (
        "x = \"caf\u{E9}\"\n",
        "caf\\u00e9",
        "closest is line 1, to copy as it stands:\ncaf\u{E9}\nline 1: the file has \u{E9} (U+00E9) where the text to find \
         has `\\u00e9`, which stand for the same",
    ),
    (
        "say(\"hi\")\n",
        "say(\\\"hi\\\")",
        "closest is line 1, to copy as it stands:\nsay(\"hi\")\nline 1: the file has \" (U+0022) where the text to find \
         has `\\\"`, which stand for the same",
    ),
    (
        "one\ntwo\n",
        "one\\ntwo",
        "closest is lines 1-2, to copy as it stands:\none\ntwo\nit breaks its lines elsewhere: the file has 2 lines, \
         the text to find 1 line; the text to find has `\\n` where the file breaks the line",
    ),
    (
        "ab\n",
        "AB",
        "closest is line 1, to copy as it stands:\nab\nline 1: upper and lower case differ",
    ),
    (
        "car = 1\n",
        "cat",
        "closest is line 1, to copy as it stands:\ncar = 1\nline 1: the file has `car = 1` where the text to find has `cat`",
    ),
    (
        "words\n",
        "zq",
        "the text is too short for a closest passage: read the file, and copy a whole line as it stands",
    ),
    ("", "zq", "the file is empty: leave find empty to fill it"),
    (
        " \n\n",
        "zq",
        "the file contains only white space; read it, and copy that as it stands",
    ),
];
