//! Edits of what cannot be edited, where nothing may be written or nothing fits.

use serde_json::Value;

use crate::harness::{Karyi, is_root, results, skip};

use super::fails;

#[test]
fn a_directory_is_not_edited() {
    let edit = "<edit><file src=\"d\"><find>a</find><replace>b</replace></file></edit>";
    fails(Karyi::new().file("d/x", ""), edit, "is_directory", 1);
}

#[test]
fn a_find_that_is_not_there_changes_nothing() {
    let karyi = Karyi::new()
        .file("a.txt", "one\n")
        .file("b.txt", "let  x = 1;\n");
    let script = "<tools><edit><file src=\"a.txt\"><find>one</find><replace>1</replace></file>\
        <file src=\"b.txt\"><find>let x = 1;</find><replace>let x = 2;</replace></file></edit></tools>";
    let report = karyi
        .arg("--json")
        .stdin(script)
        .run()
        .exit(1)
        .file("a.txt", "one\n")
        .file("b.txt", "let  x = 1;\n")
        .tree(&["a.txt", "b.txt"])
        .json();
    let result = &results(&report)[0];
    assert_eq!(result["code"], "find_not_found");
    let text = format!("{} {}", result["message"], result["hint"]);
    assert!(
        text.contains("b.txt") && text.contains("let  x = 1;"),
        "{text}"
    );
}

#[test]
fn a_find_that_is_there_twice_changes_nothing() {
    let edit = "<edit><file src=\"a.txt\"><find>x</find><replace>y</replace></file></edit>";
    let result = fails(
        Karyi::new().file("a.txt", "x\nab\nx\n"),
        edit,
        "find_ambiguous",
        1,
    );
    let text = format!("{} {}", result["message"], result["hint"]);
    assert!(text.contains('1') && text.contains('3'), "{text}");
}

/// A run of a user without rights, beside a file of that user and one of root with these permissions.
fn run_by_nobody(own: &str, theirs: &str, mode: u32) -> Karyi {
    const NOBODY: u32 = 65534;
    let karyi = Karyi::new().file(theirs, "x").file(own, "x").run_as(NOBODY);
    let work = karyi.work();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
    std::fs::set_permissions(work.join(theirs), mode).unwrap();
    std::os::unix::fs::chown(work.join(own), Some(NOBODY), Some(NOBODY)).unwrap();
    karyi
}

#[test]
fn no_permission_is_told_and_changes_nothing() {
    if !is_root() {
        return skip("running as another user needs root");
    }
    let karyi = run_by_nobody("open.txt", "locked.txt", 0o600);
    let script = "<tools><read><file src=\"locked.txt\"/></read><edit>\
        <file src=\"open.txt\"><find>x</find><replace>y</replace></file>\
        <file src=\"locked.txt\"><find>x</find><replace>y</replace></file></edit></tools>";
    let report = karyi
        .arg("--json")
        .stdin(script)
        .run()
        .exit(1)
        .file("locked.txt", "x")
        .file("open.txt", "x")
        .tree(&["locked.txt", "open.txt"])
        .json();
    assert_eq!(results(&report)[0]["code"], "permission_denied");
    assert_eq!(results(&report)[1]["code"], "permission_denied");
}

#[test]
fn a_file_of_somebody_else_is_left_alone() {
    if !is_root() {
        return skip("running as another user needs root");
    }
    // It may be written, but a new file in its place would belong to nobody.
    let karyi = run_by_nobody("own", "theirs", 0o666);
    let pair = "<find>x</find><replace>y</replace>";
    let edit =
        format!("<edit><file src=\"own\">{pair}</file><file src=\"theirs\">{pair}</file></edit>");
    let ran = karyi
        .arg("--json")
        .stdin(format!("<tools>{edit}</tools>"))
        .run()
        .exit(1)
        .file("own", "x")
        .file("theirs", "x")
        .tree(&["own", "theirs"]);
    let report = ran.json();
    let result = &results(&report)[0];
    assert_eq!(result["code"], "owner_not_kept", "{result}");
    let message = result["message"].as_str().unwrap();
    assert!(
        message.starts_with("theirs: it belongs to user 0"),
        "{message}"
    );
}

#[test]
fn what_only_its_owner_may_take_away_keeps_its_one_name() {
    if !is_root() {
        return skip("running as another user needs root");
    }
    let pair = "<find>x</find><replace>y</replace>";
    for (edit, code) in [
        ("<file src=\"all/f\" to=\"all/g\"/>", "permission_denied"),
        ("<file src=\"all/f\" delete=\"true\"/>", "permission_denied"),
        (
            &format!("<file src=\"all/f\">{pair}</file>"),
            "permission_denied",
        ),
        ("<file src=\"open/f\" to=\"all/g\"/>", "owner_not_kept"),
    ] {
        let karyi = Karyi::new()
            .file("all/f", "x")
            .file("open/f", "x")
            .run_as(65534);
        let work = karyi.work();
        for (name, mode) in [
            ("all/f", 0o666),
            ("open/f", 0o666),
            ("all", 0o1777),
            ("open", 0o777),
        ] {
            let path = work.join(name);
            std::os::unix::fs::chown(&path, Some(1234), Some(1234)).unwrap();
            let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
            std::fs::set_permissions(path, mode).unwrap();
        }
        let ran = karyi
            .arg("--json")
            .stdin(format!("<tools><edit>{edit}</edit></tools>"))
            .run()
            .exit(1)
            .tree(&["all/f", "open/f"]);
        let report = ran.json();
        let result = &results(&report)[0];
        assert_eq!(result["code"], code, "{result}");
        assert_eq!(
            result["message"]
                .as_str()
                .map(|told| told.contains(".karyi")),
            Some(false),
            "{result}"
        );
    }
}

#[test]
fn a_full_disk_changes_nothing() {
    if !is_root() {
        return skip("mounting a small file system needs root");
    }
    let karyi = Karyi::new().file("small/a.txt", "");
    let mount = karyi.work().join("small");
    let status = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"])
        .arg(&mount)
        .status();
    if !status.is_ok_and(|status| status.success()) {
        return skip("mounting a tmpfs is not allowed here");
    }
    let _unmount = Unmount(mount.clone());
    std::fs::write(mount.join("a.txt"), "old\n").unwrap();
    std::fs::write(mount.join("b.txt"), "old\n").unwrap();
    let big = "z".repeat(200_000);
    let script = format!(
        "<tools><edit><file src=\"small/a.txt\"><find>old</find><replace>new</replace></file>\
         <file src=\"small/b.txt\"><find>old</find><replace>{big}</replace></file></edit></tools>"
    );
    let report = karyi
        .arg("--json")
        .stdin(script)
        .run()
        .exit(1)
        .file("small/a.txt", "old\n")
        .file("small/b.txt", "old\n")
        .tree(&["small/a.txt", "small/b.txt"])
        .json();
    assert_eq!(results(&report)[0]["code"], "no_space");
}

/// Takes a mount away, however the test ends.
struct Unmount(std::path::PathBuf);

impl Drop for Unmount {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg(&self.0).status();
    }
}

/// What an edit must not do, with the code it is refused with.
#[test]
#[allow(clippy::too_many_lines, reason = "one case after another")]
fn edits_of_what_cannot_be_edited_change_nothing() {
    use std::os::unix::fs::symlink;
    let karyi = || {
        let karyi = Karyi::new()
            .file("a", "1\n")
            .file("two", "one two three\n")
            .file("broken", b"\xC3\xA9\xC3\xA9 \xFF")
            .file("latin", b"caf\xE9\n")
            .file("repo/.git/HEAD", "x")
            .file("outside", "1\n")
            .file("hard", "1\n");
        let work = karyi.work();
        std::fs::hard_link(work.join("hard"), work.join("hard2")).unwrap();
        symlink("../outside", work.join("repo/link")).unwrap();
        nix::unistd::mkfifo(&work.join("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let big = std::fs::File::create(work.join("big")).unwrap();
        big.set_len(1 << 40).unwrap();
        karyi
    };
    let file = |src: &str, find: &str, replace: &str| {
        format!("<file src=\"{src}\"><find>{find}</find><replace>{replace}</replace></file>")
    };
    let bad = [
        (file("fifo", "", "x"), "not_a_file"),
        (file("/dev/null", "", "x"), "not_a_file"),
        (file("/proc/self/status", "Name", "x"), "not_a_file"),
        (file(&"long".repeat(100), "", "x"), "name_too_long"),
        (file("big", "", "x"), "file_too_large"),
        (file("broken", "1", "x"), "binary_file"),
        (file("latin", "caf", "\u{4E2D}"), "not_encodable"),
        (file("two", "", "x"), "bad_arguments"),
        (file("repo/link", "1", "x"), "symlink_escape"),
        (file("hard", "1", "x"), "hard_linked"),
        (file("a/b", "", "x"), "not_a_directory"),
        (file("gone", "1", "x"), "not_found"),
        ("<file src=\"gone\" delete=\"true\"/>".into(), "not_found"),
        ("<file src=\"a\" to=\"two\"/>".into(), "file_exists"),
        ("<file src=\"a\" to=\"c\" delete=\"true\"/>".into(), "bad_arguments"),
        ("<file src=\"repo/link\" delete=\"true\"/>".into(), "not_a_file"),
        (
            "<file src=\"two\"><find>one two</find><replace>x</replace><find>two three</find><replace>y</replace></file>".into(),
            "find_not_found",
        ),
    ];
    // One message for all of them: each is to leave the good part of its call undone, too.
    let good = file("a", "1", "changed")
        + "<file src=\"outside\" delete=\"true\"/>"
        + &file("new", "", "x");
    let calls: String = bad
        .iter()
        .map(|(bad, _)| format!("<edit>{good}{bad}</edit>"))
        .collect();
    let ran = karyi()
        .arg("--json")
        .stdin(format!("<tools>{calls}</tools>"))
        .run()
        .exit(1)
        .file("a", "1\n")
        .file("outside", "1\n")
        .file("hard", "1\n")
        .file("latin", b"caf\xE9\n");
    let report = ran.json();
    for (result, (bad, code)) in results(&report).iter().zip(&bad) {
        // The good part deletes what the link leads to, so that its own refusal comes first or not.
        assert_eq!(result["code"], *code, "{bad}: {result}");
        assert!(
            result["hint"].as_str().is_some_and(|hint| !hint.is_empty()),
            "{result}"
        );
    }
    ran.tree(&[
        "a",
        "big",
        "broken",
        "fifo",
        "hard",
        "hard2",
        "latin",
        "outside",
        "repo/.git/HEAD",
        "repo/link",
        "two",
    ]);
}

#[test]
fn a_read_only_file_system_is_told_and_changes_nothing() {
    if !is_root() {
        return skip("mounting a file system needs root");
    }
    let karyi = Karyi::new().file("a", "1").file("ro/x", "");
    let mount = karyi.work().join("ro");
    let run = |options: &str| {
        let mut command = std::process::Command::new("mount");
        command
            .args(["-t", "tmpfs", "-o", options, "tmpfs"])
            .arg(&mount);
        command.status().is_ok_and(|status| status.success())
    };
    if !run("size=64k") {
        return skip("mounting a tmpfs is not allowed here");
    }
    let _unmount = Unmount(mount.clone());
    std::fs::write(mount.join("x"), "1").unwrap();
    if !run("remount,ro") {
        return skip("remounting a tmpfs is not allowed here");
    }
    let pair = "<find>1</find><replace>2</replace>";
    let script = format!(
        "<tools><edit><file src=\"a\">{pair}</file><file src=\"ro/x\">{pair}</file></edit>\
         <edit><file src=\"a\" to=\"ro/y\"/></edit><edit><file src=\"ro/x\" delete=\"true\"/></edit></tools>"
    );
    let report = karyi
        .arg("--json")
        .stdin(script)
        .run()
        .exit(1)
        .file("a", "1")
        .file("ro/x", "1")
        .json();
    for result in results(&report) {
        assert_eq!(result["code"], "read_only", "{result}");
    }
}

#[test]
fn a_root_confines_every_path_of_an_edit() {
    let karyi = Karyi::new().file("in/a", "1").file("out", "1");
    std::os::unix::fs::symlink("../out", karyi.work().join("in/link")).unwrap();
    let script = "<tools><edit><file src=\"a\" to=\"../b\"/></edit>\
        <edit><file src=\"link\"><find>1</find><replace>2</replace></file></edit></tools>";
    let report = karyi
        .args(&["--json", "--root", "in", "--cwd", "in"])
        .stdin(script)
        .run()
        .exit(1)
        .file("in/a", "1")
        .file("out", "1")
        .json();
    let codes: Vec<&Value> = results(&report)
        .iter()
        .map(|result| &result["code"])
        .collect();
    assert_eq!(codes, ["outside_root", "symlink_escape"]);
}

#[test]
fn many_files_need_few_descriptors_and_their_lack_is_told() {
    let edits = |count: usize| -> String {
        let one = |i| format!("<file src=\"d/f{i}\"><find></find><replace>x</replace></file>");
        (0..count).map(one).collect()
    };
    let run = |limit: u32, count: usize| {
        let karyi = Karyi::new().file("probe", "");
        let script = format!("<tools><edit>{}</edit></tools>", edits(count));
        std::fs::write(karyi.work().join("s.xml"), script).unwrap();
        let mut command = std::process::Command::new("bash");
        let program = karyi.command();
        let limited = format!("ulimit -n {limit}; exec \"$0\" run --no-rc --json s.xml");
        command.arg("-c").arg(limited).arg(program.get_program());
        command.current_dir(karyi.work()).env_clear();
        for (key, value) in program.get_envs() {
            command.env(key, value.unwrap_or_default());
        }
        command.output().unwrap()
    };
    let result = |limit: u32, count: usize| {
        let report: Value = serde_json::from_slice(&run(limit, count).stdout).unwrap();
        results(&report)[0].clone()
    };
    assert_eq!(result(1024, 1200)["status"], "ok");
    let refused = result(100, 1200);
    assert_eq!(refused["status"], "error");
    let told = |key: &str| refused[key].as_str().unwrap();
    assert!(told("message").contains("Too many open files"), "{refused}");
    assert!(told("hint").contains("ulimit -n"), "{refused}");
    // With room for next to nothing it is no bug either.
    for limit in 4..16 {
        let output = run(limit, 1);
        let told = String::from_utf8_lossy(&output.stderr);
        // A descriptor that another test had open at that moment may leave none for the loader.
        let is_loaded = !told.contains("error while loading shared libraries");
        assert!(
            matches!(output.status.code(), Some(0..=3)) || !is_loaded,
            "{limit}: {told}"
        );
    }
}

#[test]
fn a_name_that_a_killed_run_keeps_is_told_as_such() {
    let karyi = Karyi::new().arg("--json").file("f", "old");
    std::fs::hard_link(karyi.work().join("f"), karyi.work().join(".karyi-1-0.old")).unwrap();
    let script =
        "<tools><edit><file src=\"f\"><find>old</find><replace>new</replace></file></edit></tools>";
    let report = karyi.stdin(script).run().exit(1).file("f", "old").json();
    let result = &results(&report)[0];
    assert_eq!(result["code"], "hard_linked");
    assert_eq!(
        result["message"],
        "f: the file has 2 hard links; one of them is `.karyi-1-0.old`, which a killed karyi left beside it"
    );
    assert!(
        result["hint"].as_str().unwrap().contains("KARYI_HOME"),
        "{result}"
    );
}

#[test]
fn every_file_that_fails_is_told() {
    let karyi = Karyi::new()
        .file("a", "one\n")
        .file("b", "two\n")
        .file("c", "three\n")
        .file("d/x", "");
    let pair = |src: &str, find: &str| {
        format!("<file src=\"{src}\"><find>{find}</find><replace>x</replace></file>")
    };
    let files = [
        pair("a", "one"),
        pair("b", "twoo"),
        // Named again after it failed.
        pair("b", "nothing"),
        pair("none", "x"),
        pair("c/.", "three"),
        pair("d", "x"),
        // Told once.
        pair("c/.", "threee"),
    ];
    // A path that leads nowhere is known before anything is read.
    let result = fails(
        karyi,
        &format!("<edit>{}</edit>", files.concat()),
        "not_a_directory",
        1,
    );
    assert_eq!(result["message"], "c/.: expected a directory, found a file");
    let karyi = Karyi::new()
        .file("a", "one\n")
        .file("b", "two\n")
        .file("d/x", "");
    let files = [&files[..4], &files[5..6]].concat();
    let result = fails(
        karyi,
        &format!("<edit>{}</edit>", files.concat()),
        "find_not_found",
        1,
    );
    assert_eq!(
        result["message"],
        "3 files fail: 1. b: expected the text to find once, found it nowhere; 2. none: there is no such file \
         (not_found); 3. d: expected a file, found a directory (is_directory)"
    );
    assert_eq!(
        result["hint"],
        "1. closest is line 1, to copy as it stands:\ntwo\nline 1: the file has `two` where the text to find has `twoo`\n\
         2. check the path; to write a whole file, use <content>\n3. name a file inside the directory"
    );
}
