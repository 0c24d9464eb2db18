//! `karyi doctor` tells what works on this machine.

use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::harness::{Karyi, Ran, is_root, skip};

fn doctor(arguments: &[&str]) -> Karyi {
    Karyi::with_args(&["doctor"]).args(arguments)
}

/// Returns name and status of every check.
fn statuses(report: &Value) -> Vec<(String, String)> {
    let word = |check: &Value, key: &str| check[key].as_str().unwrap().to_owned();
    let checks = report["checks"].as_array().unwrap().iter();
    checks
        .map(|check| (word(check, "name"), word(check, "status")))
        .collect()
}

fn find<'a>(report: &'a Value, name: &str) -> &'a Value {
    let mut checks = report["checks"].as_array().unwrap().iter();
    checks.find(|check| check["name"] == name).unwrap()
}

/// Replaces times, free space and the numbers of terminals, which differ from run to run.
fn without_numbers(text: &str) -> String {
    let number = regex::Regex::new(r"[0-9.]+( ms|  *MiB free| s since)|pts/[0-9]+").unwrap();
    number.replace_all(text, "N").into_owned()
}

#[test]
fn a_machine_with_bash_can_run_sessions() {
    let report = doctor(&["--json"]).run().exit(0).json();
    for name in [
        "pseudo-terminal",
        "runtime directory",
        "shell bash",
        "session",
    ] {
        assert_eq!(find(&report, name)["status"], "ok", "{report:#}");
    }
    for (name, place) in [("session", "default"), ("MCP session", "$SHELL")] {
        let found = find(&report, name)["found"].as_str().unwrap();
        let start = format!("bash ({place}), started in ");
        assert!(found.starts_with(&start), "{found}");
    }
}

#[test]
fn text_and_json_say_the_same() {
    let report = doctor(&["--json"]).run().exit(0).json();
    let text = without_numbers(&doctor(&[]).run().exit(0).stdout());
    let mut expected = String::new();
    let checks = report["checks"].as_array().unwrap();
    let width = checks
        .iter()
        .map(|c| c["name"].as_str().unwrap().len())
        .max()
        .unwrap();
    for check in checks {
        let word = |key: &str| check[key].as_str().unwrap().to_owned();
        expected += &format!(
            "{:7}  {:width$}  {}\n",
            word("status"),
            word("name"),
            word("found")
        );
        if check["status"] != "ok" {
            let indent = " ".repeat(width + 11);
            expected += &format!("{indent}means: {}\n", word("meaning"));
            expected += &format!("{indent}to do: {}\n", word("advice"));
        }
    }
    expected += "\nSessions work, with the limits above.\n";
    assert_eq!(text, without_numbers(&expected));
}

#[test]
fn nothing_on_the_path_is_needed() {
    let root = std::env::temp_dir();
    let report = doctor(&["--json"]).env("PATH", &root).run().exit(0).json();
    let found = find(&report, "shell bash")["found"].as_str().unwrap();
    assert!(found.starts_with('/'), "{found}");
    assert_eq!(find(&report, "session")["status"], "ok");
}

#[test]
fn an_unprivileged_user_can_run_sessions() {
    if !is_root() {
        return skip("not root, so there is no other user to be");
    }
    let report = doctor(&["--json"]).run_as(65534).run().exit(0).json();
    for name in ["stamp", "looking at programs", "subreaper", "session"] {
        assert_eq!(find(&report, name)["status"], "ok", "{report:#}");
    }
    assert!(
        find(&report, "runtime directory")["found"]
            .as_str()
            .unwrap()
            .contains("owner 65534")
    );
}

fn check_unusable_directory(ran: &Ran) {
    let missing: Vec<_> = statuses(&ran.json())
        .into_iter()
        .filter(|(_, status)| status == "missing")
        .collect();
    let pair = |name: &str| (name.to_owned(), "missing".to_owned());
    let expected = ["runtime directory", "session", "MCP session"];
    assert_eq!(missing, expected.map(pair));
}

#[test]
fn a_runtime_directory_that_cannot_be_used_is_missing() {
    let open_to_all = doctor(&["--json"]);
    let runtime = open_to_all.runtime();
    std::fs::create_dir(&runtime).unwrap();
    std::fs::set_permissions(&runtime, std::fs::Permissions::from_mode(0o777)).unwrap();
    check_unusable_directory(&open_to_all.run().exit(1));
    if !is_root() {
        return skip("not root, so nothing can be mounted or given away");
    }
    let read_only = doctor(&["--json"]).env("TMPDIR", "/proc/sys").run().exit(1);
    check_unusable_directory(&read_only);
}

#[test]
fn a_shell_that_hangs_is_told_so() {
    let start = Instant::now();
    let hanging = "#!/bin/sh\nexec sleep 500\n";
    let report = doctor(&["--json"])
        .program("zsh", hanging)
        .env("SHELL", "/usr/bin/zsh")
        .run()
        .exit(0)
        .json();
    let found = find(&report, "shell zsh");
    assert_eq!(found["status"], "limited");
    let text = found["found"].as_str().unwrap();
    assert!(
        text.contains("did not report its version in time"),
        "{text}"
    );
    // A shell that nobody uses is not tried.
    let shells = statuses(&report).into_iter().map(|(name, _)| name);
    let shells: Vec<String> = shells.filter(|name| name.starts_with("shell ")).collect();
    assert_eq!(shells, ["shell bash", "shell zsh"]);
    assert!(start.elapsed() < Duration::from_secs(60));
}

#[test]
fn a_shell_that_no_session_can_use_is_missing() {
    let report = doctor(&["--json", "--shell", "/bin/cat"])
        .run()
        .exit(1)
        .json();
    let session = find(&report, "session");
    assert_eq!(session["status"], "missing");
    assert!(
        session["found"]
            .as_str()
            .unwrap()
            .contains("/bin/cat is not supported")
    );
}

#[test]
fn colours_are_for_terminals() {
    let (screen, status) = doctor(&[]).on_terminal().end();
    assert_eq!(
        (status, screen.contains("\x1b[32mok     \x1b[0m")),
        (0, true),
        "{screen}"
    );
    let (screen, status) = doctor(&[]).env("NO_COLOR", "1").on_terminal().end();
    assert_eq!((status, screen.contains('\x1b')), (0, false), "{screen}");
}

#[test]
fn the_state_directory_is_checked() {
    let check = |prepare: &dyn Fn(&std::path::Path)| {
        let karyi = doctor(&["--json"]);
        let home = karyi.work().join("home");
        std::fs::create_dir(&home).unwrap();
        prepare(&home);
        let report = karyi.env("KARYI_HOME", home).run().exit(0).json();
        let found = find(&report, "state directory");
        let word = |key: &str| found[key].as_str().unwrap().to_owned();
        (word("status"), word("found"), word("advice"))
    };
    let mode = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let (status, found, _) = check(&|_| {});
    assert_eq!(status, "ok");
    assert!(
        found.ends_with("/home/state, which the first change of a file makes"),
        "{found}"
    );
    let (status, found, _) = check(&|home| {
        std::fs::create_dir_all(home.join("state/output/run-1-2")).unwrap();
    });
    assert_eq!(status, "ok");
    assert!(
        found.ends_with("; the next run removes the files of 1 killed runs"),
        "{found}"
    );
    let (status, found, advice) = check(&|home| {
        std::fs::create_dir(home.join("state")).unwrap();
        mode(&home.join("state"), 0o777);
    });
    assert_eq!(status, "limited");
    assert!(found.contains("mode 777, owner "), "{found}");
    assert!(
        advice.starts_with("chmod go-w ") && advice.ends_with("state'"),
        "{advice}"
    );
    let (status, found, advice) = check(&|home| {
        std::os::unix::fs::symlink("gone", home.join("state")).unwrap();
    });
    assert_eq!(status, "limited");
    assert!(
        found.contains("is a link to gone, which does not exist"),
        "{found}"
    );
    assert!(advice.contains("KARYI_HOME"), "{advice}");
    let (status, found, advice) = check(&|home| std::fs::write(home.join("state"), "").unwrap());
    assert_eq!(status, "limited");
    assert!(found.contains("nothing can be written to "), "{found}");
    assert!(advice.contains("KARYI_HOME"), "{advice}");
}

#[test]
fn a_mistake_in_the_settings_is_no_missing_shell() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("config.toml"), "shel = 'bash'\n").unwrap();
    let karyi = doctor(&["--json"]).env("KARYI_HOME", home.path());
    let report = karyi.run().json();
    let session = find(&report, "session");
    assert!(
        session["found"].to_string().contains("config.toml:1:1"),
        "{session:#}"
    );
    let text = session.to_string();
    assert!(
        text.contains("karyi config edit") && !text.contains("install bash"),
        "{text}"
    );
}

#[test]
fn a_question_of_a_supervisor_that_cannot_be_read_is_told() {
    let state = "home/.local/state/karyi/supervise/default";
    let ran = Karyi::with_args(&["tell", "hello"]).run().exit(0);
    let file = ran.root().join(state).join("pending_question.json");
    std::fs::write(&file, "null").unwrap();
    let ran = ran.again(&["doctor", "--json"]).run().exit(0);
    let report = ran.json();
    let check = find(&report, "supervisor");
    assert_eq!(check["status"], "limited");
    let found = check["found"].as_str().unwrap();
    let defect = "pending_question.json cannot be used: expected a record of this version: ";
    assert!(found.contains(defect), "{found}");
    // It is for `karyi tasks` to move it.
    assert!(file.exists());
}
