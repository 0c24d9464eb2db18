//! Texts in all encodings, whole and in part, and binary files.

use super::*;

fn write(bytes: &[u8]) -> (tempfile::TempDir, std::path::PathBuf) {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("file");
    std::fs::write(&path, bytes).unwrap();
    (temp, path)
}

fn view_path(path: &Path, options: &ViewOptions) -> Result<PathView, ToolError> {
    view(
        &Root::unconfined(),
        path,
        path,
        options,
        &AtomicBool::new(false),
    )
}

fn read(bytes: &[u8], lines: &str, max_bytes: u64) -> TextView {
    let (_temp, path) = write(bytes);
    let options = ViewOptions {
        lines: LineRange::parse(lines).unwrap(),
        max_bytes,
        ..ViewOptions::default()
    };
    match view_path(&path, &options).unwrap() {
        PathView::Text(text) => text,
        other => panic!("{other:?}"),
    }
}

/// Checks text, first line and total lines, and that nothing is omitted.
fn check(bytes: &str, lines: &str, expected: (&str, u64, u64)) {
    let expected = TextView {
        text: expected.0.into(),
        first_line: expected.1,
        total_lines: expected.2,
        total_bytes: bytes.len() as u64,
        ..TextView::default()
    };
    assert_eq!(
        read(bytes.as_bytes(), lines, 1000),
        expected,
        "{bytes:?} {lines}"
    );
}

#[test]
fn requested_lines_are_shown() {
    check("a\nb\nc\n", "1-", ("a\nb\nc\n", 1, 3));
    check("a\nb\nc", "2-3", ("b\nc", 2, 3));
    check("a\nb\nc\n", "2", ("b\n", 2, 3));
    check("a\nb\nc\n", "-2", ("b\nc\n", 2, 3));
    check("a\nb\nc", "-1", ("c", 3, 3));
    check("a\nb", "-9", ("a\nb", 1, 2));
    check("a\n", "5-9", ("", 5, 1));
    check("", "1-", ("", 1, 0));
    check("", "-3", ("", 1, 0));
    check("\n\n", "2-", ("\n", 2, 2));
}

#[test]
fn omitted_text_is_counted() {
    let check = |bytes: &str, lines: &str, max, expected: (&str, u64, u64)| {
        let seen = read(bytes.as_bytes(), lines, max);
        assert_eq!(
            (seen.text.as_str(), seen.omitted_bytes, seen.omitted_lines),
            expected,
            "{bytes:?} {lines} {max}"
        );
    };
    check("aa\nbb\ncc\n", "1-", 9, ("aa\nbb\ncc\n", 0, 0));
    check("aa\nbb\ncc\n", "1-", 8, ("aa\nbb\n", 3, 1));
    check("aa\nbb\ncc\n", "1-", 6, ("aa\nbb\n", 3, 1));
    check("aa\nbb\ncc\n", "1-2", 4, ("aa\n", 3, 1));
    check("aa\nbb\ncc\n", "2-3", 1, ("b", 5, 1));
    check("ééé\n", "1-", 3, ("é", 5, 0));
    check("aa\nbb\n", "1-", 0, ("", 6, 2));
    // A byte order mark is not text.
    check("\u{FEFF}aa\nbb\n", "1-", 1, ("a", 5, 1));
    check("\u{FEFF}aa\nbb\n", "1-", 0, ("", 6, 2));
    check("\u{FEFF}aa\nbb\n", "-2", 3, ("aa\n", 3, 1));
}

#[test]
fn a_range_has_the_encoding_of_the_file() {
    let text = "\u{914D}\u{7F6E}\n".to_owned()
        + &"\u{8FD9}\u{662F}\u{4E00}\u{4E2A}\u{7B80}\u{5355}\u{7684}\u{6D4B}\u{8BD5}\n".repeat(9);
    let (bytes, ..) = encoding_rs::GB18030.encode(&text);
    let (_, whole) = Encoding::read(&bytes).unwrap();
    assert_eq!(whole, text);
    for lines in ["1", "2", "-1", "1-"] {
        let seen = read(&bytes, lines, 1000);
        assert_eq!(seen.encoding, Some("gb18030"), "{lines}");
        let at = seen.first_line as usize - 1;
        let shown: Vec<&str> = seen.text.lines().collect();
        let expected: Vec<&str> = text.lines().skip(at).take(shown.len()).collect();
        assert_eq!(shown, expected, "{lines}");
    }
    // Latin letters alone could be anything; the rest of the file proves that it is not text.
    let broken = [&b"caf\xE9\n"[..], &b"\xC3\xA9\xC3\xA9\xC3\xA9 \xFF\n"[..]].concat();
    assert!(Encoding::read(&broken).is_err());
    let seen = read(&broken, "1", 1000);
    assert_eq!((seen.is_lossy, seen.encoding), (true, None));
}

#[test]
fn encodings() {
    let check = |bytes: &[u8], lines: &str, text: &str, total: u64, name: Option<&str>| {
        let seen = read(bytes, lines, 100);
        let found = (seen.text.as_str(), seen.total_lines, seen.encoding);
        assert_eq!(found, (text, total, name), "{bytes:?} {lines}");
        assert_eq!(seen.total_bytes, bytes.len() as u64);
    };
    check(b"\xEF\xBB\xBFa\n", "1-", "a\n", 1, None);
    check(b"\xEF\xBB\xBF", "1-", "", 0, None);
    check(b"\xEF\xBB\xBF", "-1", "", 0, None);
    check(b"\xEF\xBB\xBFa\nb", "-1", "b", 2, None);
    check(b"\xEF\xBB\xBF\xEF\xBB\xBFa", "-1", "\u{FEFF}a", 1, None);
    check(b"a\r\nb\r\n", "2", "b\r\n", 2, None);
    check(
        b"tr\xE8s bien, caf\xE9\n",
        "1-",
        "tr\u{e8}s bien, caf\u{e9}\n",
        1,
        Some("latin-1"),
    );
    let wide = b"\xFF\xFEa\0\n\0\x2D\x4E\n\0c\0";
    check(wide, "1-", "a\n\u{4E2D}\nc", 3, Some("utf-16le"));
    check(wide, "2", "\u{4E2D}\n", 3, Some("utf-16le"));
    check(wide, "-2", "\u{4E2D}\nc", 3, Some("utf-16le"));
    let big: Vec<u8> = wide.chunks(2).flat_map(|unit| [unit[1], unit[0]]).collect();
    check(&big, "-1", "c", 3, Some("utf-16be"));
    let (chinese, ..) = encoding_rs::GB18030.encode("这是一个简单的测试文件。\n第二行\n");
    check(
        &chinese,
        "1",
        "这是一个简单的测试文件。\n",
        2,
        Some("gb18030"),
    );
    let broken = read(b"\xC3\xA9\xC3\xA9\xC3\xA9 \xFF\n", "1-", 100);
    let expected = ("\u{e9}\u{e9}\u{e9} \u{FFFD}\n", true, None);
    assert_eq!(
        (broken.text.as_str(), broken.is_lossy, broken.encoding),
        expected
    );
}

#[cfg(target_os = "linux")]
#[test]
fn files_without_a_size_are_read_forward() {
    for path in ["/proc/cpuinfo", "/proc/self/status", "/proc/version"] {
        let whole = std::fs::read_to_string(path).unwrap().lines().count() as u64;
        let options = ViewOptions {
            lines: LineRange::Last(1),
            ..ViewOptions::default()
        };
        let PathView::Text(text) = view_path(Path::new(path), &options).unwrap() else {
            panic!("{path} is a text");
        };
        assert_eq!(
            (text.first_line, text.total_lines),
            (whole, whole),
            "{path}"
        );
        assert_eq!(text.text.lines().count(), 1, "{path}");
        assert!(text.total_bytes >= text.text.len() as u64, "{path}");
    }
    let found = view_path(Path::new("/proc/self/cmdline"), &ViewOptions::default()).unwrap();
    let expected = std::fs::read("/proc/self/cmdline").unwrap().len() as u64;
    let is_right = matches!(found, PathView::Binary { bytes, .. } if bytes == expected);
    assert!(is_right, "{found:?}");
}

#[test]
fn other_files_are_described() {
    let (temp, path) = write(b"\x7FELF\x02\0");
    let options = ViewOptions::default();
    let binary = |kind, bytes, size| PathView::Binary { kind, bytes, size };
    assert_eq!(view_path(&path, &options).unwrap(), binary("elf", 6, None));
    let picture = temp.path().join("picture");
    std::fs::write(
        &picture,
        b"\x89PNG\r\n\x1A\n\0\0\0\rIHDR\0\0\0\x10\0\0\0\x20",
    )
    .unwrap();
    let expected = binary("png", 24, Some((16, 32)));
    assert_eq!(view_path(&picture, &options).unwrap(), expected);
    let directory = view_path(temp.path(), &options).unwrap();
    assert!(matches!(directory, PathView::Directory(_)), "{directory:?}");
}

#[test]
fn unreadable_paths_are_errors() {
    let (temp, _) = write(b"x");
    let top = temp.path();
    nix::unistd::mkfifo(&top.join("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(top.join("socket")).unwrap();
    std::os::unix::fs::symlink("loop", top.join("loop")).unwrap();
    let check = |path: &str, code: ErrorCode, hint: &str| {
        let error = view_path(&top.join(path), &ViewOptions::default()).unwrap_err();
        assert_eq!(error.code, code, "{path}");
        assert!(error.hint.contains(hint), "{path}: {}", error.hint);
    };
    check("fifo", ErrorCode::NotAFile, "with a command");
    check("socket", ErrorCode::NotAFile, "with a command");
    check("/dev/zero", ErrorCode::NotAFile, "with a command");
    check("loop", ErrorCode::SymlinkLoop, "ls -l");
    let near = format!("did you mean {}?", top.join("file").display());
    check("flie", ErrorCode::NotFound, &near);
    check("file/x", ErrorCode::NotADirectory, "");
    check(&"x".repeat(300), ErrorCode::NameTooLong, "");
}

#[test]
fn a_cancelled_read_ends() {
    let (_temp, path) = write(b"a\nb\n");
    for lines in ["1-", "-1"] {
        let options = ViewOptions {
            lines: LineRange::parse(lines).unwrap(),
            ..ViewOptions::default()
        };
        let error = view(
            &Root::unconfined(),
            &path,
            &path,
            &options,
            &AtomicBool::new(true),
        )
        .unwrap_err();
        assert_eq!(error.code, ErrorCode::Cancelled, "{lines}");
    }
}

#[test]
fn the_last_lines_of_a_long_text_are_found() {
    let line = |number: usize| format!("{number} {}\n", "x".repeat(number % 300));
    let text: String = (1..=2000).map(line).collect();
    for count in [1, 2, 3, 500, 1500, 1999, 2000, 2001] {
        let seen = read(text.as_bytes(), &format!("-{count}"), 1 << 30);
        let first = 2001 - count.min(2000);
        let expected: String = (first..=2000).map(line).collect();
        let found = (seen.first_line, seen.total_lines, seen.total_bytes);
        assert_eq!(found, (first as u64, 2000, text.len() as u64), "{count}");
        assert_eq!((seen.text, seen.omitted_bytes), (expected, 0), "{count}");
    }
}

#[test]
fn appended_lines_are_excluded_from_the_last_lines() {
    let (_temp, path) = write(b"one\ntwo\n");
    let mut file = File::open(&path).unwrap();
    let cancelled = AtomicBool::new(false);
    let wanted = line_reader::last_lines(&mut file, 1, &cancelled).unwrap();
    std::fs::write(&path, "one\ntwo\nthree\nfour").unwrap();
    let seen = view_last(&mut file, &wanted, 1000, &cancelled).unwrap();
    let expected = TextView {
        text: "two\n".into(),
        first_line: 2,
        total_lines: 2,
        total_bytes: 8,
        ..TextView::default()
    };
    assert_eq!(seen, expected);
    // When lines are counted first, the last counted one is the end.
    for (total, count, lines) in [
        (5, 2, (4, 5)),
        (2, 2, (1, 2)),
        (1, 9, (1, 1)),
        (0, 1, (1, 0)),
    ] {
        assert_eq!(last_of(total, count), lines, "{count} of {total}");
    }
}

#[test]
fn bad_ranges_are_refused() {
    for text in ["", "-", "0", "a", "5-3", "1-2-3", "-0", "1..3"] {
        assert_eq!(
            LineRange::parse(text).unwrap_err().code,
            ErrorCode::BadArguments,
            "{text}"
        );
    }
    assert_eq!(
        LineRange::parse(" 10 - 40 ").unwrap(),
        LineRange::From {
            first: 10,
            last: Some(40)
        }
    );
}

/// A text in every supported encoding, and one in none.
fn in_all_encodings() -> Vec<(&'static str, Vec<u8>, String)> {
    let chinese = "第一行是一个简单的测试文件。\nabc\n第三行，结束了吗？再见！\n\n尾";
    let french = "tr\u{E8}s bien, caf\u{E9}\nabc\nna\u{EF}ve gar\u{E7}on \u{E0} c\u{F4}t\u{E9}\n\n\u{E9}t\u{E9}";
    let japanese = "これは簡単なテストのファイルです。\nabc\n三行目はここで終わります。\n\n終";
    let russian = "Это простой текст для проверки.\nabc\nТретья строка, и всё на этом.\n\nконец";
    let mixed = "one \u{E9}\u{1F600}\nabc\n\u{4E2D}\u{6587} text\n\nend\u{E9}";
    let plain = "first line\nabc\nthird line \u{E9}\n\nend";
    let wide = |text: &str, mark: &[u8], spell: fn(u16) -> [u8; 2]| {
        let units = text.encode_utf16().flat_map(spell);
        mark.iter().copied().chain(units).collect::<Vec<u8>>()
    };
    let legacy = |encoding: &'static encoding_rs::Encoding, text: &str| {
        let (bytes, ..) = encoding.encode(text);
        (bytes.into_owned(), text.to_owned())
    };
    let marked = [b"\xEF\xBB\xBF", mixed.as_bytes()].concat();
    let le = wide(mixed, b"\xFF\xFE", u16::to_le_bytes);
    let be = wide(mixed, b"\xFE\xFF", u16::to_be_bytes);
    let bare = wide(plain, b"", u16::to_le_bytes);
    let broken = b"\xC3\xA9t\xC3\xA9 \xC3\xA9 \xFFx\nabc\n\xF0\x9F\x98 y\xFE\n\n\xC3".to_vec();
    let (gb, gb_text) = legacy(encoding_rs::GB18030, chinese);
    let (latin, latin_text) = legacy(encoding_rs::WINDOWS_1252, french);
    let (sjis, sjis_text) = legacy(encoding_rs::SHIFT_JIS, japanese);
    let (cyrillic, cyrillic_text) = legacy(encoding_rs::WINDOWS_1251, russian);
    let lossy = String::from_utf8_lossy(&broken).into_owned();
    vec![
        ("", mixed.as_bytes().to_vec(), mixed.to_owned()),
        ("", marked, mixed.to_owned()),
        ("utf-16le", le, mixed.to_owned()),
        ("utf-16be", be, mixed.to_owned()),
        ("utf-16le", bare, plain.to_owned()),
        ("gb18030", gb, gb_text),
        ("latin-1", latin, latin_text),
        ("Shift_JIS", sjis, sjis_text),
        ("windows-1251", cyrillic, cyrillic_text),
        ("lossy", broken, lossy),
    ]
}

/// Checks one view against the whole text of the requested lines.
fn check_cut(seen: &TextView, wanted: &[&str], most: usize, what: &str) {
    let whole = wanted.concat();
    let shown = seen.text.as_str();
    assert!(whole.starts_with(shown), "{what}: {shown:?}");
    assert!(shown.len() <= most, "{what}: {shown:?}");
    let counted = shown.len() as u64 + seen.omitted_bytes;
    assert_eq!(counted, whole.len() as u64, "{what}: {shown:?}");
    let lines_shown = shown.split_inclusive('\n').count();
    let omitted = wanted.len() - lines_shown;
    assert_eq!(seen.omitted_lines, omitted as u64, "{what}: {shown:?}");
    // It is as much as fits: whole lines, or whole characters of the first one.
    let next = whole.get(shown.len()..).unwrap();
    let left = most - shown.len();
    match shown.is_empty() || shown.ends_with('\n') {
        _ if next.is_empty() => {}
        true if !shown.is_empty() => {
            let line = next.split_inclusive('\n').next().unwrap();
            assert!(line.len() > left, "{what}: {shown:?}");
        }
        _ => assert!(
            next.chars().next().unwrap().len_utf8() > left,
            "{what}: {shown:?}"
        ),
    }
}

#[test]
fn sizes_are_counted_alike_in_every_encoding() {
    let most_values = (0..=45).chain([60, 79, 80, 81, 99, 100, 150, 1000]);
    for (name, bytes, text) in in_all_encodings() {
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        for (range, wanted) in [
            ("1-", &lines[..]),
            ("1", &lines[..1]),
            ("2-3", &lines[1..3]),
            ("3-", &lines[2..]),
            ("-1", &lines[4..]),
            ("-3", &lines[2..]),
        ] {
            for most in most_values.clone() {
                let seen = read(&bytes, range, most);
                let what = format!("{name:?} {range} {most}");
                check_cut(&seen, wanted, usize::try_from(most).unwrap(), &what);
                assert_eq!(seen.total_lines, 5, "{what}");
                assert_eq!(seen.total_bytes, bytes.len() as u64, "{what}");
                let is_plain = wanted.concat().is_ascii();
                let expected = match name {
                    "" | "lossy" => None,
                    _ if is_plain && !name.starts_with("utf") => None,
                    name => Some(name),
                };
                assert_eq!(seen.encoding, expected, "{what}");
                let is_lossy = seen.text.contains(char::REPLACEMENT_CHARACTER);
                assert_eq!(seen.is_lossy, is_lossy, "{what}");
            }
        }
    }
}

#[test]
fn a_large_text_is_counted_by_the_same_rule() {
    let filler = format!("{}\n", "a long line ".repeat(400));
    let times = 4_200_000 / filler.len() + 100;
    for (name, bytes, text) in in_all_encodings() {
        if name.starts_with("utf-16") || bytes.starts_with(b"\xEF\xBB\xBF") {
            // They are recognised by their start, whatever their size.
            continue;
        }
        let large = [filler.repeat(times).as_bytes(), &bytes].concat();
        assert!(large.len() as u64 > limits::SEARCH_WHOLE_BYTES);
        let at = times + 1;
        for range in [
            format!("{at}-"),
            "-3".to_owned(),
            format!("{}-{at}", times - 1),
        ] {
            // The requested lines decide, and a few words may suggest another encoding.
            let whole = read(&large, &range, 1 << 20);
            let wanted: Vec<&str> = whole.text.split_inclusive('\n').collect();
            assert_eq!((whole.omitted_bytes, whole.omitted_lines), (0, 0), "{name}");
            for most in [0, 20, 33, 5000] {
                let seen = read(&large, &range, most);
                let what = format!("{name:?} {range} {most}");
                check_cut(&seen, &wanted, usize::try_from(most).unwrap(), &what);
                assert_eq!(seen.total_lines, times as u64 + 5, "{what}");
            }
        }
        let whole = read(&large, &format!("{at}-"), 1 << 20);
        assert_eq!(whole.text, text, "{name}");
    }
}
