//! Reading and searching through the program: what is there, what is left out, what cannot be read.

mod hints;

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::harness::{Karyi, is_root, results, skip};

/// Runs one `<read>`; returns its result.
fn read(karyi: Karyi, items: &str, exit: i32) -> Value {
    let script = format!("<tools><read>{items}</read></tools>");
    let ran = karyi.arg("--json").stdin(script).run().exit(exit);
    results(&ran.json())[0].clone()
}

#[test]
fn what_cannot_be_read_has_a_code_and_a_hint() {
    let karyi = Karyi::new().file("dir/file.txt", "x");
    let work = karyi.work();
    nix::unistd::mkfifo(&work.join("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let _socket = UnixListener::bind(work.join("socket")).unwrap();
    symlink("loop", work.join("loop")).unwrap();
    symlink("nowhere", work.join("dangling")).unwrap();
    let names = [
        "fifo",
        "socket",
        "/dev/zero",
        "loop",
        "dangling",
        "dir/fiel.txt",
        "dri/file.txt",
        "dir/file.txt/x",
        "dir/file.txt/",
        "",
        "dir/file.txt",
    ];
    let files: String = names
        .iter()
        .map(|name| format!("<file src=\"{name}\"/>"))
        .collect();
    let result = read(karyi, &files, 1);
    let codes: Vec<&Value> = result["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| &file["code"])
        .collect();
    let expected = [
        "not_a_file",
        "not_a_file",
        "not_a_file",
        "symlink_loop",
        "not_found",
        "not_found",
        "not_found",
        "not_a_directory",
        "not_a_directory",
        "bad_arguments",
    ];
    let expected: Vec<Value> = expected
        .iter()
        .map(|code| json!(code))
        .chain([Value::Null])
        .collect();
    assert_eq!(codes, expected.iter().collect::<Vec<_>>());
    let hint = |at: usize| result["files"][at]["hint"].as_str().unwrap_or_default();
    assert_eq!(hint(5), "did you mean dir/file.txt?");
    let expected = "there is no directory dri; did you mean dir/file.txt?";
    assert_eq!(hint(6), expected);
    assert!(
        names
            .iter()
            .take(10)
            .enumerate()
            .all(|(at, _)| !hint(at).is_empty()),
        "{result}"
    );
}

#[test]
fn a_search_that_fails_says_why() {
    let karyi = Karyi::new().file("a", "x");
    nix::unistd::mkfifo(&karyi.work().join("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let searches = "<search pattern=\"x\"/><search pattern=\"a(b\" regex=\"true\"/><search pattern=\"x\" path=\"fifo\"/>\
        <search pattern=\"x\" path=\"nowhere\"/><search pattern=\"x\" glob=\"[\"/><search pattern=\"\"/>";
    let result = read(karyi, searches, 1);
    let found = &result["searches"].as_array().unwrap()[1..];
    let codes: Vec<_> = found
        .iter()
        .map(|search| search["code"].as_str().unwrap())
        .collect();
    let expected = [
        "bad_pattern",
        "not_a_file",
        "not_found",
        "bad_pattern",
        "bad_pattern",
    ];
    assert_eq!(codes, expected);
    assert!(
        found[0]["message"]
            .as_str()
            .unwrap()
            .contains("    a(b\n     ^\n"),
        "{result}"
    );
    assert!(
        found
            .iter()
            .all(|search| !search["hint"].as_str().unwrap().is_empty()),
        "{result}"
    );
}

#[test]
fn files_without_permission_are_told() {
    if !is_root() {
        return skip("not root: cannot make files of another user");
    }
    let karyi = Karyi::new()
        .file("secret", "x")
        .file("open", "x")
        .run_as(65534);
    let mode = std::fs::Permissions::from_mode(0o000);
    std::fs::set_permissions(karyi.work().join("secret"), mode).unwrap();
    let result = read(karyi, "<file src=\"secret\"/><search pattern=\"x\"/>", 1);
    assert_eq!(result["files"][0]["code"], "permission_denied", "{result}");
    let search = &result["searches"][0];
    let counts = (&search["files_searched"], &search["files_unreadable"]);
    assert_eq!(counts, (&json!(1), &json!(1)), "{result}");
}

#[test]
fn a_search_says_what_it_did_and_left_out() {
    let long = format!("{}needle{}\n", "x".repeat(5000), "y".repeat(5000));
    let karyi = Karyi::new()
        .file("a.txt", "1\nNeedle\n3\n4\n5\nneedle\n7\n")
        .file("b/c.txt", &long)
        .file("b/z.bin", "needle\0")
        .file(".hidden", "needle\n")
        .file("ignored", "needle\n")
        .file(".gitignore", "ignored\n");
    let searches = "<search pattern=\"needle\" ignore_case=\"true\" context=\"1\" glob=\"a.*\"/>\
        <search pattern=\"n.*e$\" regex=\"true\" max=\"1\" path=\".\"/><search pattern=\"needle\" path=\"b\"/>\
        <search pattern=\"needle\" all=\"true\" max=\"0\"/>";
    let result = read(karyi, searches, 0);
    let output = "a.txt-1-1\na.txt:2:Needle\na.txt-3-3\n--\na.txt-5-5\na.txt:6:needle\na.txt-7-7\n";
    let long = format!(
        "b/c.txt:1:[... 4003 bytes omitted ...]{}needle{}[... 4003 bytes omitted ...]\n",
        "x".repeat(997),
        "y".repeat(997)
    );
    let expected = json!([
        {"pattern": "needle", "total_matches": 2, "files_matched": 1, "files_searched": 1, "output": output},
        {"pattern": "n.*e$", "total_matches": 1, "files_matched": 1, "files_searched": 2,
         "files_binary": 1, "output": "a.txt:6:needle\n"},
        {"pattern": "needle", "total_matches": 1, "files_matched": 1, "files_searched": 1,
         "files_binary": 1, "output": long},
        {"pattern": "needle", "total_matches": 4, "omitted_matches": 4, "files_matched": 4,
         "files_searched": 5, "files_binary": 1, "output": ""},
    ]);
    assert_eq!(result["searches"], expected);
}

#[test]
fn a_glob_that_matches_nothing_is_told() {
    let karyi = Karyi::new().file("a/x.txt", "x\nx x\n");
    let search = |glob: &str| format!("<search pattern=\"x\" glob=\"{glob}\"/>");
    let items: String = ["b/", "*.txt", "a/"].map(search).concat();
    let result = read(karyi, &items, 0);
    let hint = result["searches"][0]["hint"].as_str().unwrap_or_default();
    assert!(hint.contains("matches no file"), "{result}");
    for found in [1, 2].map(|index| &result["searches"][index]) {
        assert_eq!(found.get("hint"), None, "{result}");
        assert_eq!(found["total_matches"], 2, "{result}");
    }
}

#[test]
fn a_directory_is_a_tree() {
    let karyi = Karyi::new()
        .file("a.txt", "12")
        .file("d/e/f/deep", "")
        .file("d/x.log", "1")
        .file(".gitignore", "*.log\n");
    let result = read(
        karyi,
        "<file src=\".\"/><file src=\"d\" all=\"true\" depth=\"9\"/><file src=\".\" depth=\"1\"/>",
        0,
    );
    let expected = json!([
        {"src": ".", "kind": "directory", "omitted_entries": 1, "ignored_entries": 1,
         "output": ".gitignore  6 bytes\na.txt  2 bytes\nd/\n  e/  1 entry not shown\n"},
        {"src": "d", "kind": "directory", "output": "e/\n  f/\n    deep  0 bytes\nx.log  1 bytes\n"},
        {"src": ".", "kind": "directory", "omitted_entries": 1, "ignored_entries": 1,
         "output": ".gitignore  6 bytes\na.txt  2 bytes\nd/  1 entry not shown\n"},
    ]);
    assert_eq!(result["files"], expected);
    let result = read(Karyi::new(), "<file src=\".\" depth=\"0\"/>", 1);
    assert_eq!(result["code"], "bad_arguments", "{result}");
}

#[test]
fn lines_behind_the_end_are_told() {
    let karyi = || Karyi::new().file("two", "a\nb\n").file("empty", "");
    let check = |name: &str, lines: &str, expected: Value| {
        let xml = format!("<file src=\"{name}\" lines=\"{lines}\"/>");
        let result = read(karyi(), &xml, 0);
        assert_eq!(
            result["files"][0]["hint"], expected,
            "{name} {lines}: {result}"
        );
    };
    check(
        "two",
        "99",
        json!("the file has 2 lines, and line 99 was asked for"),
    );
    check(
        "two",
        "3-",
        json!("the file has 2 lines, and line 3 was asked for"),
    );
    check("empty", "2-5", json!("the file is empty"));
    check("empty", "1-", json!("the file is empty"));
    check("empty", "-3", json!("the file is empty"));
    check("two", "2-9", Value::Null);
    check("two", "-9", Value::Null);
}

#[test]
fn other_encodings_and_pictures_are_named() {
    let karyi = Karyi::new()
        .file("wide", b"\xFF\xFEh\0i\0\n\0")
        .file("short", b"h\0i\0")
        .file("one", b"h\0")
        .file("gif", b"GIF89a\x0A\0\x14\0\x80\0\xFF");
    let names = ["wide", "short", "one", "gif"];
    let files = names.map(|name| format!("<file src=\"{name}\"/>"));
    let result = read(karyi, &files.concat(), 0);
    let expected = json!([
        {"src": "wide", "kind": "text", "bytes": 8, "encoding": "utf-16le", "first_line": 1,
         "total_lines": 1, "output": "hi\n"},
        {"src": "short", "kind": "text", "bytes": 4, "encoding": "utf-16le", "first_line": 1,
         "total_lines": 1, "output": "hi"},
        {"src": "one", "kind": "binary", "bytes": 2},
        {"src": "gif", "kind": "gif", "bytes": 13, "width": 10, "height": 20},
    ]);
    assert_eq!(result["files"], expected);
}

#[test]
fn line_numbers_are_shown_to_people_only() {
    let script = "<tools><read><file src=\"f\" lines=\"2\"/></read></tools>";
    let run = |format: &str| {
        let karyi = Karyi::new()
            .file("f", "one\ntwo\n")
            .args(&["--format", format, "--verbose"]);
        karyi.stdin(script).run().exit(0).stdout()
    };
    assert!(run("text").contains("     2  two\n"), "{}", run("text"));
    assert!(
        run("xml").contains("<output>two\n</output>"),
        "{}",
        run("xml")
    );
    assert!(
        run("json").contains("\"output\":\"two\\n\""),
        "{}",
        run("json")
    );
}

#[test]
fn the_whole_output_of_a_job_can_be_read() {
    let script = "<tools><command id=\"big\">seq 1 100000</command>\
        <read><file src=\"job:big\" lines=\"50000-50002\"/><file src=\"job:big\" lines=\"-1\"/></read></tools>";
    let ran = Karyi::new().arg("--json").stdin(script).run().exit(0);
    let report = ran.json();
    let (command, shown) = (&results(&report)[0], &results(&report)[1]["files"]);
    assert!(command["omitted_bytes"].as_u64().unwrap() > 0, "{report}");
    let texts = (
        &shown[0]["output"],
        &shown[1]["output"],
        &shown[1]["total_lines"],
    );
    let expected = (
        &json!("50000\n50001\n50002\n"),
        &json!("100000\n"),
        &json!(100_000),
    );
    assert_eq!(texts, expected);
}

#[test]
fn the_output_of_a_job_can_be_searched() {
    let script = "<tools><command id=\"big\">seq 1 100000</command>\
        <read><search path=\"job:big\" pattern=\"^7777.$\" regex=\"true\" max=\"2\"/></read>\
        <read><search path=\"job:none\" pattern=\"7\"/></read></tools>";
    let ran = Karyi::new()
        .file("job:big", "7777")
        .args(&["--json", "--root", "."])
        .stdin(script)
        .run()
        .exit(1);
    let report = ran.json();
    let shown = &results(&report)[1]["searches"][0];
    let expected = json!({
        "pattern": "^7777.$", "path": "job:big", "total_matches": 10, "omitted_matches": 8,
        "files_matched": 1, "files_searched": 1,
        "hint": "max=\"10\" shows more; path and glob narrow the search",
        "output": "job:big:77770:77770\njob:big:77771:77771\n",
    });
    assert_eq!(*shown, expected);
    let refused = &results(&report)[2];
    assert_eq!(refused["code"], "not_found", "{refused}");
    let message = "no job \"none\" with output of its own; there are big";
    assert_eq!(refused["message"], message);
}

/// Makes a file of so many bytes, most of them a hole, with 2000 lines at the start, in the middle
/// and at the end.
fn huge(karyi: &Karyi, bytes: u64) {
    let file = File::create(karyi.work().join("huge")).unwrap();
    let lines = |word: &str| -> String { (0..2000).map(|n| format!("{word} {n}\n")).collect() };
    file.write_all_at(lines("start").as_bytes(), 0).unwrap();
    file.write_all_at(format!("\n{}", lines("middle")).as_bytes(), bytes / 2)
        .unwrap();
    let end = format!("\n{}", lines("end"));
    file.write_all_at(end.as_bytes(), bytes - end.len() as u64)
        .unwrap();
}

/// Reads lines of a file as [`huge`] makes it; returns its part of the report and the most memory
/// that took, in KiB.
#[cfg(target_os = "linux")]
fn read_lines_of(bytes: u64, lines: &str) -> (Value, Option<u64>) {
    let karyi = Karyi::new().arg("--json");
    huge(&karyi, bytes);
    let mut command = karyi.command();
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = piped.spawn().unwrap();
    let script = format!("<tools><read><file src=\"huge\" lines=\"{lines}\"/></read></tools>");
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(script.as_bytes()).unwrap();
    drop(stdin);
    let mut stdout = child.stdout.take().unwrap();
    let mut report = vec![0];
    // The report is complete but for its last bytes, so the file was read.
    stdout.read_exact(&mut report).unwrap();
    let peak = peak_kib(child.id());
    stdout.read_to_end(&mut report).unwrap();
    assert!(child.wait().unwrap().success());
    let report: Value = serde_json::from_slice(&report).unwrap();
    (results(&report)[0]["files"][0].clone(), peak)
}

#[cfg(target_os = "linux")]
#[test]
fn a_hundred_lines_of_a_huge_file_need_little_memory() {
    let is_full = std::env::var_os("KARYI_FULL").is_some();
    let bytes: u64 = if is_full { 10_000_000_000 } else { 300_000_000 };
    for (lines, first) in [
        ("1-100", "start 0\n"),
        ("2002-2101", "middle 0\n"),
        ("-100", "end 1900\n"),
    ] {
        // What the program itself takes: a debug build is large.
        let (_, base) = read_lines_of(1_000_000, lines);
        let (file, peak) = read_lines_of(bytes, lines);
        println!("lines {lines} of {bytes} bytes: {peak:?} KiB, {base:?} of a small file");
        assert!(
            file["output"].as_str().unwrap().starts_with(first),
            "{file}"
        );
        assert_eq!(
            (&file["bytes"], &file["total_lines"]),
            (&json!(bytes), &json!(6002)),
            "{lines}"
        );
        let most = base.map_or(u64::MAX, |base| base + 4 * 1024);
        assert!(
            peak.is_none_or(|peak| peak < most),
            "{lines}: {peak:?} KiB, {base:?} of a small file"
        );
    }
}

/// The most memory a program had; nothing when it has just ended.
#[cfg(target_os = "linux")]
fn peak_kib(pid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

#[test]
fn each_item_tells_its_own_error_when_all_fail() {
    let items = "<file src=\"no1\"/><file src=\"no2\"/><search pattern=\"(\" regex=\"true\"/>";
    let result = read(Karyi::new(), items, 1);
    assert_eq!(result["status"], "error", "{result}");
    let items = [
        &result["files"][0],
        &result["files"][1],
        &result["searches"][0],
    ];
    let codes = items.map(|item| item["code"].clone());
    assert_eq!(codes, ["not_found", "not_found", "bad_pattern"]);
    for item in items {
        assert!(
            item["message"].is_string() && item["hint"].is_string(),
            "{result}"
        );
    }
}

#[test]
fn numbers_out_of_range_are_told() {
    let items = "<file src=\".\" depth=\"33\"/><file src=\".\" max_bytes=\"67108865\"/>\
        <search pattern=\"x\" max=\"10001\"/><search pattern=\"x\" context=\"51\"/>";
    let result = read(Karyi::new(), items, 1);
    let (files, searches) = (&result["files"], &result["searches"]);
    for item in [&files[0], &files[1], &searches[0], &searches[1]] {
        assert_eq!(item["code"], "bad_arguments", "{result}");
    }
    let result = read(Karyi::new(), "<file src=\".\" lines=\"1-2\"/>", 0);
    let hint = result["files"][0]["hint"].as_str().unwrap_or_default();
    assert!(
        hint.contains("lines means nothing for a directory"),
        "{result}"
    );
}

#[test]
fn a_binary_file_that_is_named_to_a_search_is_told() {
    let karyi = Karyi::new().file("bin.dat", "needle\0\u{1}\u{2}");
    let result = read(karyi, "<search pattern=\"needle\" path=\"bin.dat\"/>", 0);
    let expected = json!({
        "pattern": "needle",
        "total_matches": 0,
        "files_matched": 0,
        "files_searched": 0,
        "files_binary": 1,
        "hint": "nothing was searched: the files are binary; `read` of the file names its kind, and a \
                 command such as grep -a searches it",
        "output": "",
    });
    assert_eq!(result["searches"][0], expected);
}

#[test]
fn a_search_of_what_cannot_be_read_is_an_error() {
    if is_root() {
        return skip("root reads everything");
    }
    let karyi = Karyi::new()
        .file("closed", "needle")
        .file("shut/f", "needle");
    for (name, mode) in [("closed", 0o000), ("shut", 0o100)] {
        let mode = PermissionsExt::from_mode(mode);
        std::fs::set_permissions(karyi.work().join(name), mode).unwrap();
    }
    let items =
        "<search pattern=\"needle\" path=\"closed\"/><search pattern=\"needle\" path=\"shut\"/>";
    let result = read(karyi, items, 1);
    for search in result["searches"].as_array().unwrap() {
        assert_eq!(search["code"], "permission_denied", "{search}");
    }
}
