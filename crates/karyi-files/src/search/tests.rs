//! Searches of small trees.

use super::*;

/// Matching line with its context.
#[derive(Debug, Default, PartialEq)]
struct Match {
    path: PathBuf,
    line: u64,
    text: String,
    before: Vec<String>,
    after: Vec<String>,
}

fn matches(found: &SearchOutcome) -> Vec<Match> {
    let mut all: Vec<Match> = Vec::new();
    let mut before = Vec::new();
    for file in &found.files {
        for line in file.lines() {
            let text = line.text.to_owned();
            match line.role {
                LineRole::Before => before.push(text),
                LineRole::After => all.last_mut().unwrap().after.push(text),
                LineRole::Match => all.push(Match {
                    path: file.path.clone(),
                    line: line.number,
                    text,
                    before: std::mem::take(&mut before),
                    after: Vec::new(),
                }),
            }
        }
    }
    assert!(before.is_empty(), "{before:?} stands before no match");
    all
}

fn tree(files: &[(&str, &[u8])]) -> tempfile::TempDir {
    let temp = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        let path = temp.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    temp
}

fn project() -> tempfile::TempDir {
    tree(&[
        ("src/a.rs", b"fn a() {}\n// b.c\nfn b() {}\n"),
        ("src/b.txt", b"fn in text\r\nxbxc\r\n"),
        ("target/out.rs", b"fn built() {}\n"),
        (".gitignore", b"target/\n"),
        (".git/config", b"fn git\n"),
        ("z.bin", b"fn \0binary\n"),
        ("a-b", b"fn first?\n"),
    ])
}

fn options(pattern: &str) -> SearchOptions<'_> {
    SearchOptions {
        caps: SearchCaps::default(),
        pattern,
        syntax: Syntax::Literal,
        case: Case::Exact,
        glob: None,
        context: 0,
        max: 100,
        scope: Scope::NotIgnored,
        cancelled: None,
    }
}

fn run(temp: &tempfile::TempDir, options: &SearchOptions<'_>) -> SearchOutcome {
    search(&Root::unconfined(), Path::new("."), temp.path(), options).unwrap()
}

fn check(options: &SearchOptions<'_>, expected: &[&str]) {
    let found = run(&project(), options);
    let shown: Vec<String> = matches(&found)
        .iter()
        .map(|m| format!("{}:{}:{}", m.path.display(), m.line, m.text))
        .collect();
    assert_eq!(shown, expected, "{options:?}");
}

#[test]
fn matches_come_in_path_order() {
    check(
        &options("fn "),
        &[
            "a-b:1:fn first?",
            "src/a.rs:1:fn a() {}",
            "src/a.rs:3:fn b() {}",
            "src/b.txt:1:fn in text",
        ],
    );
    let found = run(&project(), &options("fn "));
    assert_eq!(
        (
            found.files_searched,
            found.files_binary,
            found.files_matched
        ),
        (3, 1, 3)
    );
}

#[test]
fn hidden_files_are_searched_in_scope_all() {
    let temp = tree(&[
        (".hidden/a", b"x\n"),
        (".b", b"x\n"),
        ("c", b"x\n"),
        ("d", b"X\n"),
        (".ignore", b"d\n"),
    ]);
    let count = |options: &SearchOptions<'_>| run(&temp, options).total_matches;
    let all = SearchOptions {
        scope: Scope::All,
        ..options("x")
    };
    assert_eq!((count(&options("x")), count(&all)), (1, 3));
    let folded = SearchOptions {
        case: Case::Ignored,
        ..all
    };
    assert_eq!(count(&folded), 4);
}

#[test]
fn a_broken_pattern_is_shown_with_a_caret() {
    let temp = project();
    let broken = SearchOptions {
        syntax: Syntax::Regex,
        ..options("a(b")
    };
    let error = search(&Root::unconfined(), Path::new("."), temp.path(), &broken).unwrap_err();
    assert!(
        error.message.contains("    a(b\n     ^\n"),
        "{}",
        error.message
    );
    assert!(error.hint.contains("regex"), "{}", error.hint);
}

#[test]
fn the_same_search_gives_the_same_result() {
    let text = b"x\ny\nx\n".repeat(5);
    let names: Vec<String> = (0..300).map(|i| format!("d{}/f{i}", i * 7 % 11)).collect();
    let files: Vec<(&str, &[u8])> = names.iter().map(|name| (&**name, &*text)).collect();
    let temp = tree(&files);
    let options = SearchOptions {
        max: 55,
        context: 1,
        ..options("x")
    };
    let first = run(&temp, &options);
    let shown = matches(&first);
    assert_eq!((shown.len(), first.total_matches), (55, 3000));
    let is_sorted = shown.is_sorted_by_key(|found| (found.path.clone(), found.line));
    assert!(is_sorted, "{shown:?}");
    for _ in 0..20 {
        assert_eq!(run(&temp, &options), first);
    }
}

#[test]
fn patterns_are_literal_or_regular() {
    check(&options("b.c"), &["src/a.rs:2:// b.c"]);
    check(
        &SearchOptions {
            syntax: Syntax::Regex,
            ..options("b.c$")
        },
        &["src/a.rs:2:// b.c", "src/b.txt:2:xbxc"],
    );
    check(&options("none"), &[]);
    check(
        &options("("),
        &["src/a.rs:1:fn a() {}", "src/a.rs:3:fn b() {}"],
    );
}

#[test]
fn globs_select_files() {
    check(
        &SearchOptions {
            glob: Some("*.txt"),
            ..options("fn")
        },
        &["src/b.txt:1:fn in text"],
    );
    check(
        &SearchOptions {
            glob: Some("src/*.{rs,go}"),
            ..options("fn b")
        },
        &["src/a.rs:3:fn b() {}"],
    );
    check(
        &SearchOptions {
            glob: Some("**/a.rs"),
            ..options("fn b")
        },
        &["src/a.rs:3:fn b() {}"],
    );
    check(
        &SearchOptions {
            glob: Some("*.rs"),
            scope: Scope::All,
            ..options("built")
        },
        &["target/out.rs:1:fn built() {}"],
    );
    // A directory glob covers everything below, and a leading slash anchors it.
    for (glob, expected) in [
        ("src/", true),
        ("/src/*.rs", true),
        ("/a.rs", false),
        ("rc/", false),
        ("!src", false),
        ("!src/", false),
        ("!/src/", false),
        ("!a.rs/", true),
        ("!rc/", true),
    ] {
        let expected: &[&str] = match expected {
            true => &["src/a.rs:3:fn b() {}"],
            false => &[],
        };
        let options = SearchOptions {
            glob: Some(glob),
            ..options("fn b")
        };
        check(&options, expected);
    }
    for glob in ["!*.txt", "!src/*.txt"] {
        check(
            &SearchOptions {
                glob: Some(glob),
                ..options("fn b")
            },
            &["src/a.rs:3:fn b() {}"],
        );
        check(
            &SearchOptions {
                glob: Some(glob),
                ..options("fn in")
            },
            &[],
        );
    }
}

#[test]
fn matches_have_context() {
    let temp = tree(&[("f", b"1\n2\nx\n4\nx\n6\n7\n")]);
    let found = run(
        &temp,
        &SearchOptions {
            context: 1,
            ..options("x")
        },
    );
    let seen: Vec<_> = matches(&found)
        .into_iter()
        .map(|m| (m.before, m.after))
        .collect();
    let lines = |lines: &[&str]| {
        lines
            .iter()
            .map(|line| (*line).to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        seen,
        [(lines(&["2"]), lines(&["4"])), (lines(&[]), lines(&["6"]))]
    );
}

#[test]
fn omitted_matches_are_counted() {
    let temp = tree(&[("a", b"x\nx\nx\n"), ("b", b"x\n")]);
    let found = run(
        &temp,
        &SearchOptions {
            max: 2,
            context: 1,
            ..options("x")
        },
    );
    assert_eq!(
        (
            matches(&found).len(),
            found.total_matches,
            found.omitted_matches()
        ),
        (2, 4, 2)
    );
    let long = "é".repeat(5000);
    let temp = tree(&[("a", long.as_bytes())]);
    let text = &matches(&run(&temp, &options("é")))[0].text;
    assert!(
        text.len() < 2100 && text.ends_with("[... 8000 bytes omitted ...]"),
        "{}",
        &text[1990..]
    );
}

#[test]
fn texts_of_every_encoding_are_searched() {
    let chinese = "\u{8FD9}\u{662F}\u{4E00}\u{4E2A}\u{6D4B}\u{8BD5}\u{6587}\u{4EF6}\u{3002}\n";
    let gb = encoding_rs::GB18030.encode(chinese).0;
    let utf16 = |mark: &[u8], text: &str, spell: fn(u16) -> [u8; 2]| {
        [
            mark,
            &text.encode_utf16().flat_map(spell).collect::<Vec<_>>(),
        ]
        .concat()
    };
    let large = [
        &b"caf\xE9\n"[..],
        &b"x\n".repeat(limits::SEARCH_WHOLE_BYTES as usize),
    ]
    .concat();
    let temp = tree(&[
        ("a", "th\u{E9}\ncaf\u{E9} \u{6D4B}\n".as_bytes()),
        ("b", b"th\xE9\ncaf\xE9 au lait\n"),
        ("c", &gb),
        ("d", &utf16(b"\xFF\xFE", "x\ncaf\u{E9}\n", u16::to_le_bytes)),
        ("e", &utf16(b"", "no mark\ncaf\u{E9}\n", u16::to_be_bytes)),
        ("f", b"\xEF\xBB\xBFcaf\xC3\xA9\n"),
        ("g", b"caf\xC3\xA9 \xFF\n"),
        ("h", b"caf\xC3\xA9\n\0"),
        ("i", &large),
    ]);
    let check = |options: &SearchOptions<'_>, expected: &[(&str, u64, &str)]| {
        let found = run(&temp, options);
        let name = |m: &Match| m.path.display().to_string();
        let lines: Vec<_> = matches(&found)
            .iter()
            .map(|m| (name(m), m.line, m.text.clone()))
            .collect();
        let expected = expected
            .iter()
            .map(|(name, line, text)| ((*name).into(), *line, (*text).into()));
        assert_eq!(lines, expected.collect::<Vec<_>>(), "{options:?}");
        assert_eq!((found.files_binary, found.files_unreadable), (1, 0));
    };
    let expected = [
        ("a", 2, "caf\u{E9} \u{6D4B}"),
        ("b", 2, "caf\u{E9} au lait"),
        ("d", 2, "caf\u{E9}"),
        ("e", 2, "caf\u{E9}"),
        ("f", 1, "caf\u{E9}"),
        ("g", 1, "caf\u{E9} \u{FFFD}"),
    ];
    check(&options("caf\u{E9}"), &expected);
    let regex = SearchOptions {
        syntax: Syntax::Regex,
        ..options("^caf\\w")
    };
    check(&regex, &expected);
    let test = ("c", 1, chinese.trim_end());
    check(&options("\u{6D4B}\u{8BD5}"), &[test]);
}

#[test]
fn one_file_can_be_searched() {
    let temp = project();
    let found = search(
        &Root::unconfined(),
        Path::new("src/a.rs"),
        &temp.path().join("src/a.rs"),
        &options("fn b"),
    )
    .unwrap();
    assert_eq!(matches(&found)[0].path, Path::new("src/a.rs"));
    let found = search(
        &Root::unconfined(),
        Path::new("target"),
        &temp.path().join("target"),
        &options("fn"),
    )
    .unwrap();
    assert_eq!(found.total_matches, 1);
}

#[test]
fn errors_have_codes() {
    let temp = project();
    let check = |options: &SearchOptions<'_>, code| {
        assert_eq!(
            search(&Root::unconfined(), Path::new("."), temp.path(), options)
                .unwrap_err()
                .code,
            code,
            "{options:?}"
        );
    };
    for pattern in ["(", "a{1000}{1000}{1000}"] {
        let regex = SearchOptions {
            syntax: Syntax::Regex,
            ..options(pattern)
        };
        check(&regex, ErrorCode::BadPattern);
    }
    for glob in ["a[", "", "!", "./", "/", "!//"] {
        let limited = SearchOptions {
            glob: Some(glob),
            ..options("x")
        };
        check(&limited, ErrorCode::BadPattern);
    }
    check(&options(""), ErrorCode::BadPattern);
    check(&options("a\nb"), ErrorCode::BadPattern);
    check(
        &SearchOptions {
            cancelled: Some(&AtomicBool::new(true)),
            ..options("x")
        },
        ErrorCode::Cancelled,
    );
    let missing = search(
        &Root::unconfined(),
        Path::new("no"),
        &temp.path().join("no"),
        &options("x"),
    )
    .unwrap_err();
    assert_eq!(missing.code, ErrorCode::NotFound);
    let device = search(
        &Root::unconfined(),
        Path::new("/dev/zero"),
        Path::new("/dev/zero"),
        &options("x"),
    )
    .unwrap_err();
    assert_eq!(device.code, ErrorCode::NotAFile);
}

#[test]
fn lines_end_with_lf_or_cr_lf() {
    let temp = tree(&[("crlf", b"a\r\n\r\nb \r\n"), ("lf", b"a\n\nb \n")]);
    let found = |pattern: &str| -> Vec<(String, u64)> {
        let options = SearchOptions {
            syntax: Syntax::Regex,
            ..options(pattern)
        };
        let found = matches(&run(&temp, &options)).into_iter();
        found
            .map(|found| (found.path.display().to_string(), found.line))
            .collect()
    };
    for (pattern, line) in [("^$", 2), ("a$", 1), ("^a$", 1), (r"\s$", 3), (r" $", 3)] {
        let both = ["crlf", "lf"].map(|name| (name.to_owned(), line));
        assert_eq!(found(pattern), both, "{pattern}");
    }
}

#[test]
fn nested_repositories_have_their_own_ignore_rules() {
    let temp = tree(&[
        (".gitignore", b"*.log\nbuilt/\n"),
        ("a.log", b"needle"),
        ("sub/a.log", b"needle"),
        ("sub/b.txt", b"needle"),
        ("sub/c.tmp", b"needle"),
        ("sub/.gitignore", b"*.tmp\n"),
        ("sub/inner/c.tmp", b"needle"),
        ("sub/plain/c.tmp", b"needle"),
        ("plain/a.log", b"needle"),
        ("built/a.txt", b"needle"),
    ]);
    let check = |expected: &[&str]| {
        let found = matches(&run(&temp, &options("needle"))).into_iter();
        let paths = found.map(|found| found.path.display().to_string());
        assert_eq!(paths.collect::<Vec<_>>(), expected);
    };
    // Outside a repository the file counts, too.
    check(&["sub/b.txt"]);
    // Also when the search starts above all repositories.
    let init = |path: &str| std::fs::create_dir(temp.path().join(path)).unwrap();
    init("sub/.git");
    check(&["sub/a.log", "sub/b.txt"]);
    init("sub/inner/.git");
    check(&["sub/a.log", "sub/b.txt", "sub/inner/c.tmp"]);
    // An ignored repository stays ignored.
    init("built/.git");
    check(&["sub/a.log", "sub/b.txt", "sub/inner/c.tmp"]);
    init(".git");
    check(&["sub/a.log", "sub/b.txt", "sub/inner/c.tmp"]);
}

#[test]
fn too_long_lines_are_an_error() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("one");
    let mut text = vec![b'a'; 2 * limits::SEARCH_LINE_BUFFER_BYTES + 1];
    text.extend(b"\nNEEDLE\n");
    std::fs::write(&path, text).unwrap();
    let root = Root::unconfined();
    let search = |real: &Path| search(&root, real, real, &options("NEEDLE"));
    let error = search(&path).unwrap_err();
    assert_eq!(error.code, ErrorCode::FileTooLarge);
    assert_eq!(
        error.message,
        format!(
            "{}: a line is longer than the 64 MiB that a search holds of one",
            path.display()
        )
    );
    // Below another path it is only counted.
    assert_eq!(search(temp.path()).unwrap().files_unreadable, 1);
}
