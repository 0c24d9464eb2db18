use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::json;

use super::{karyi, run, run_in};
use crate::harness::Karyi;

const CACHE: &str = "home/.cache/karyi-assistant";

fn write(path: &str, content: &str) -> String {
    format!("<write_file path=\"{path}\"><content>{content}</content></write_file>")
}

#[test]
fn what_is_written_in_a_block_is_read_in_it() {
    let calls = write("file_cache_dir/d/a", "new") + "<read_file path=\"/FILE_CACHE_DIR/d/a\"/>";
    let found = run(&calls);
    assert_eq!(found[0]["mode"], "overwrite");
    assert!(
        found[0]["path"]
            .as_str()
            .unwrap()
            .ends_with("karyi-assistant/d/a"),
        "{found:?}"
    );
    assert_eq!(
        (&found[0]["bytes"], &found[0]["total_bytes"]),
        (&json!(3), &json!(3))
    );
    assert_eq!(found[1]["text"], "new");
    assert_eq!(found[1]["untrusted"], true);
    assert_eq!(
        (&found[1]["bytes"], &found[1]["total_bytes"]),
        (&json!(3), &json!(3))
    );
}

#[test]
fn a_file_is_replaced_or_grows_and_the_change_is_undone() {
    let calls = write("n/x.txt", "hello")
        + "<write_file path=\"n/x.txt\" mode=\"APPEND\"><content>!</content></write_file>"
        + "<write_file path=\"n/x.txt\" mode=\"zap\"><content>!</content></write_file>"
        + "<write_file path=\"n/empty\"><content/></write_file>";
    let ran = karyi().stdin(format!("<tools>{calls}</tools>")).run();
    let report = ran.json();
    let found = crate::harness::results(&report);
    assert_eq!(
        (&found[1]["bytes"], &found[1]["total_bytes"]),
        (&json!(1), &json!(6))
    );
    assert_eq!(
        found[2]["message"],
        "invalid mode: zap (expected overwrite|append)"
    );
    assert_eq!(found[3]["total_bytes"], 0);
    let file = format!("../{CACHE}/n/x.txt");
    let ran = ran.file(&file, "hello!");
    let mode = |path: &str| {
        ran.root()
            .join(path)
            .metadata()
            .unwrap()
            .permissions()
            .mode()
            & 0o777
    };
    assert_eq!(mode(CACHE), 0o700);
    let undone = ran.again(&["undo", "2"]).run();
    undone.exit(0).file(&file, "hello");
}

#[test]
fn nothing_is_written_outside_of_the_two_directories() {
    for path in [
        "/etc/x",
        "../x",
        "file_state_dir/../../x",
        "file_cache_dir/a/../..",
        "~/x",
        ".",
    ] {
        let ran = karyi()
            .stdin(format!("<tools>{}</tools>", write(path, "x")))
            .run();
        let found = crate::harness::results(&ran.json())[0].clone();
        let message = found["message"].as_str().unwrap();
        assert_eq!(found["code"], "outside_root", "{path}");
        let start = "refusing to write outside allowed base dirs (file_cache_dir=";
        assert!(message.starts_with(start), "{message}");
        assert!(message.ends_with(&format!("path={path})")), "{message}");
        assert!(!ran.root().join("home/.cache").exists(), "{path}");
    }
    for path in ["file_cache_dir", "FILE_STATE_DIR/"] {
        let found = run(&write(path, "x"))[0].clone();
        let message = found["message"].as_str().unwrap();
        assert!(
            message.contains("alias requires a relative file path"),
            "{message}"
        );
    }
}

#[test]
fn content_has_a_limit() {
    let found = run_in(
        karyi().file(
            "../home/.config/karyi/config.toml",
            "[tools.write_file]\nmax_bytes = 10\n",
        ),
        &(write("a", "12345678901") + &write("a", "1234567890")),
    );
    assert_eq!(found[0]["message"], "content too large (11 bytes > 10 max)");
    assert_eq!(found[1]["status"], "ok");
}

#[test]
fn a_link_that_leads_out_is_neither_read_nor_written_through() {
    let karyi = karyi().file("secret", "outside");
    let cache = karyi.work().join("..").join(CACHE);
    std::fs::create_dir_all(&cache).unwrap();
    symlink(karyi.work(), cache.join("link")).unwrap();
    let calls =
        "<read_file path=\"file_cache_dir/link/secret\"/>".to_owned() + &write("link/e", "x");
    let ran = karyi.stdin(format!("<tools>{calls}</tools>")).run();
    let report = ran.json();
    let found = crate::harness::results(&report);
    assert_eq!(
        found[0]["message"],
        "refusing to read outside allowed base dir file_cache_dir"
    );
    assert_eq!(found[1]["code"], "outside_root");
    assert!(!ran.root().join("work/e").exists());
}

#[test]
fn settings_deny_names_and_ends_of_paths() {
    let settings = "[tools.read_file]\ndeny_paths = [\"config.yaml\", \"sub/private.txt\"]\n";
    let karyi = karyi()
        .file("../home/.config/karyi/config.toml", settings)
        .file("x/config.yaml", "a")
        .file("x/config.yaml.bak", "b")
        .file("private.txt", "c")
        .file("plain", "d");
    symlink("x/config.yaml", karyi.work().join("link")).unwrap();
    let paths = [
        "./x/config.yaml",
        "x/config.yaml.bak",
        "private.txt",
        "link",
        "plain",
    ];
    let calls: String = paths
        .iter()
        .map(|path| format!("<read_file path=\"{path}\"/>"))
        .collect();
    let found = run_in(karyi, &calls);
    for (at, entry) in [
        (0, "config.yaml"),
        (2, "sub/private.txt"),
        (3, "config.yaml"),
    ] {
        let message = found[at]["message"].as_str().unwrap();
        assert!(
            message.starts_with("read_file denied for path"),
            "{message}"
        );
        assert!(
            message.ends_with(&format!("(matched \"{entry}\")")),
            "{message}"
        );
    }
    assert_eq!(
        (&found[1]["text"], &found[4]["text"]),
        (&json!("b"), &json!("d"))
    );
}

#[test]
fn a_long_text_is_cut_at_a_character() {
    let karyi = karyi()
        .file(
            "../home/.config/karyi/config.toml",
            "[tools.read_file]\nmax_bytes = 8\n",
        )
        .file("long", "你好世界abc")
        .file("latin", b"caf\xe9 au lait, caf\xe9 cr\xe8me\n")
        .file(
            "picture.png",
            b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0",
        );
    let found = run_in(
        karyi,
        "<read_file path=\"long\"/><read_file path=\"latin\"/><read_file path=\"picture.png\"/>\
         <read_file path=\".\"/><read_file path=\"none\"/><read_file path=\" \"/>",
    );
    assert_eq!(found[0]["text"], "你好");
    let counts = (
        &found[0]["bytes"],
        &found[0]["total_bytes"],
        &found[0]["omitted_bytes"],
    );
    assert_eq!(counts, (&json!(6), &json!(15), &json!(9)));
    assert!(
        found[1]["text"].as_str().unwrap().starts_with("café"),
        "{}",
        found[1]
    );
    assert!(found[1]["encoding"].is_string());
    assert!(
        found[2]["kind"].as_str().unwrap().contains("png"),
        "{}",
        found[2]
    );
    assert_eq!(found[2].get("text"), None);
    assert_eq!(found[3]["code"], "is_directory");
    assert_eq!(found[4]["code"], "not_found");
    assert_eq!(found[5]["message"], "missing required param: path");
}

#[test]
fn pipes_devices_and_strange_paths_are_refused() {
    let karyi = karyi();
    let fifo = karyi.work().join("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let long = "x".repeat(5000);
    let calls = format!(
        "<read_file path=\"fifo\"/><read_file path=\"/dev/zero\"/><read_file path=\"{long}\"/>\
         <write_file path=\"{long}\"><content>x</content></write_file>"
    );
    let found = run_in(karyi, &calls);
    let codes: Vec<&str> = found
        .iter()
        .map(|one| one["code"].as_str().unwrap())
        .collect();
    assert_eq!(
        codes,
        ["not_a_file", "not_a_file", "name_too_long", "name_too_long"]
    );
}

#[test]
fn a_tool_that_is_switched_off_is_in_no_list_and_says_so() {
    let off = |args: &[&str]| {
        Karyi::with_args(args).file(
            "../home/.config/karyi/config.toml",
            "[tools.bash]\nenabled = false\n[tools.write_file]\nenabled = false\n",
        )
    };
    let list = off(&["tools", "--tools", "assistant"])
        .run()
        .exit(0)
        .stdout();
    assert!(
        list.contains("read_file") && !list.contains("bash"),
        "{list}"
    );
    let prompt = off(&["tools", "prompt", "--tools", "assistant"])
        .run()
        .stdout();
    assert!(!prompt.contains("<write_file>:"), "{prompt}");
    let karyi = off(&[
        "run",
        "--no-interactive",
        "--json",
        "--tools",
        "core,assistant",
    ]);
    let found = run_in(
        karyi,
        "<bash><cmd>echo hi</cmd></bash><command>echo on</command>",
    );
    assert_eq!(found[0]["code"], "tool_disabled");
    let message = "bash tool is disabled (enable via config: tools.bash.enabled=true)";
    assert_eq!(found[0]["message"], message);
    assert_eq!(found[1]["output"], "on\n");
}

#[test]
fn a_link_that_appears_at_any_instant_leads_nowhere() {
    // A block takes at most so many calls, and each is a chance to leave the directory: 10,000 in a whole run.
    let (runs, calls_of_run) = match std::env::var_os("KARYI_FULL") {
        Some(_) => (50, 200),
        None => (5, 200),
    };
    let karyi = karyi().file("outside/secret", "outside");
    let cache = karyi.work().join("..").join(CACHE);
    let (inside, link, place) = (
        cache.join("inside"),
        cache.join("link"),
        cache.join("place"),
    );
    std::fs::create_dir_all(&inside).unwrap();
    std::fs::write(inside.join("secret"), "inside").unwrap();
    symlink(karyi.work().join("outside"), &link).unwrap();
    std::fs::rename(&inside, &place).unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    let swap = |a: &std::path::Path, b: &std::path::Path| {
        let flags = nix::fcntl::RenameFlags::RENAME_EXCHANGE;
        nix::fcntl::renameat2(nix::fcntl::AT_FDCWD, a, nix::fcntl::AT_FDCWD, b, flags).unwrap();
    };
    let calls = "<write_file path=\"place/made\"><content>x</content></write_file>\
                 <read_file path=\"file_cache_dir/place/secret\"/>";
    let calls = calls.repeat(calls_of_run / 2);
    let work = karyi.work();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                swap(&link, &place);
            }
        });
        for _ in 0..runs {
            let mut command = karyi.command();
            command.arg("-c").arg(format!("<tools>{calls}</tools>"));
            let output = command.output().unwrap();
            let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            for result in crate::harness::results(&report) {
                assert_ne!(result["text"], "outside", "{result}");
            }
            assert!(!work.join("outside/made").exists());
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[test]
fn the_two_directories_lie_apart_from_the_files_of_karyi() {
    for place in [
        "~",
        "~/.config/karyi",
        "~/.local/state/karyi/journal",
        "/",
        "relative",
    ] {
        let karyi = karyi().file(
            "../home/.config/karyi/config.toml",
            format!("file_cache_dir = \"{place}\"\n"),
        );
        let found = run_in(karyi, &write("config.toml", "x"));
        let message = found[0]["message"].as_str().unwrap();
        assert!(
            message.contains("base dir file_cache_dir"),
            "{place}: {message}"
        );
    }
}

#[test]
fn what_was_written_is_read_by_the_path_of_the_result() {
    let karyi = karyi();
    let home = karyi.work().join("../own");
    let karyi = karyi.env("KARYI_HOME", &home);
    let path = home.join("assistant/cache/a");
    let calls = write("a", "text") + &format!("<read_file path=\"{}\"/>", path.display());
    let found = run_in(karyi, &calls);
    assert_eq!(found[1]["text"], "text", "{found:?}");
}

#[test]
fn a_file_grows_in_its_own_encoding() {
    let karyi = karyi();
    let cache = karyi.work().join("..").join(CACHE);
    std::fs::create_dir_all(&cache).unwrap();
    let utf16 = |text: &str| -> Vec<u8> {
        let units = text.encode_utf16().flat_map(u16::to_le_bytes);
        [0xff, 0xfe].into_iter().chain(units).collect()
    };
    std::fs::write(cache.join("a"), utf16("hi\n")).unwrap();
    let calls = "<write_file path=\"a\" mode=\"append\"><content>é\n</content></write_file>";
    let ran = karyi.stdin(format!("<tools>{calls}</tools>")).run();
    assert_eq!(crate::harness::results(&ran.json())[0]["total_bytes"], 12);
    let found = std::fs::read(ran.root().join(CACHE).join("a")).unwrap();
    assert_eq!(found, utf16("hi\né\n"));
}
