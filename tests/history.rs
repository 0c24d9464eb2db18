//! `karyi history` and `karyi undo` after runs that changed files.

use std::process::Output;

use serde_json::{Value, json};

use crate::harness::{Karyi, wait};

/// Runs the program again beside an earlier run, with the same home.
fn again(karyi: &Karyi, args: &[&str]) -> Output {
    let mut command = std::process::Command::new(crate::harness::program());
    let prepared = karyi.command();
    command.args(args).env_clear().current_dir(karyi.work());
    let envs = prepared
        .get_envs()
        .filter_map(|(key, value)| Some((key, value?)));
    command.envs(envs);
    command.stdin(std::process::Stdio::null());
    command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    wait(command.spawn().unwrap())
}

fn run(karyi: &Karyi, script: &str) -> Output {
    again(karyi, &["run", "--json", "-c", script])
}

#[track_caller]
fn text(output: &Output, exit: i32) -> String {
    let err = String::from_utf8_lossy(&output.stderr);
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(exit), "{out}{err}");
    out
}

#[track_caller]
fn parsed(output: &Output, exit: i32) -> Value {
    serde_json::from_str(&text(output, exit)).unwrap()
}

fn read(karyi: &Karyi, name: &str) -> Option<String> {
    std::fs::read_to_string(karyi.work().join(name)).ok()
}

fn place(karyi: &Karyi, name: &str) -> String {
    let work = karyi.work().canonicalize().unwrap();
    work.join(name).to_string_lossy().into_owned()
}

const SCRIPT: &str = "<tools><edit id=\"first\"><file src=\"a\" to=\"b\"><find>one</find><replace>1</replace></file>\
    <file src=\"gone\" delete=\"true\"/><file src=\"d/new\"><find></find><replace>new</replace></file></edit></tools>";

#[test]
#[allow(clippy::too_many_lines, reason = "one case after another")]
fn a_change_is_listed_shown_and_taken_back() {
    let karyi = Karyi::new().file("a", "one\ntwo\n").file("gone", "x\n");
    text(&run(&karyi, SCRIPT), 0);
    let list = parsed(&again(&karyi, &["history", "--json"]), 0);
    let entry = &list[0];
    assert_eq!(
        (
            &entry["number"],
            &entry["call"],
            &entry["tool"],
            &entry["undone"],
            &entry["can_be_undone"]
        ),
        (
            &json!(1),
            &json!("first"),
            &json!("edit"),
            &json!(false),
            &json!(true)
        )
    );
    let (a, b) = (place(&karyi, "a"), place(&karyi, "b"));
    assert_eq!(
        entry["files"],
        json!([
            {"path": a, "change": "renamed", "old_bytes": 8, "to": b},
            {"path": b, "change": "created", "new_bytes": 6},
            {"path": place(&karyi, "gone"), "change": "deleted", "old_bytes": 2},
            {"path": place(&karyi, "d/new"), "change": "created", "new_bytes": 3},
        ])
    );
    let shown = text(&again(&karyi, &["history", "show", "1"]), 0);
    assert!(
        shown.contains("     1 + 1\n     2 + two\n") && shown.contains("     1 - x\n"),
        "{shown}"
    );
    assert!(!shown.contains('\u{1b}'), "{shown}");

    let dry = parsed(&again(&karyi, &["undo", "--dry-run", "--json"]), 0);
    assert_eq!(
        (&dry["dry_run"], &dry["undone"]),
        (&json!(true), &json!([1]))
    );
    assert_eq!(read(&karyi, "a"), None);
    let told = text(&again(&karyi, &["undo"]), 0);
    assert!(
        told.contains("undid change 1; `karyi undo 2` takes that back"),
        "{told}"
    );
    let files = ["a", "b", "gone", "d/new"].map(|name| read(&karyi, name));
    assert_eq!(
        files,
        [Some("one\ntwo\n".into()), None, Some("x\n".into()), None]
    );
    assert!(!karyi.work().join("d").exists());

    // The undo is taken back.
    text(&again(&karyi, &["undo", "2"]), 0);
    let files = ["a", "b", "gone", "d/new"].map(|name| read(&karyi, name));
    assert_eq!(
        files,
        [None, Some("1\ntwo\n".into()), None, Some("new".into())]
    );
    let list = parsed(&again(&karyi, &["history", "--json"]), 0);
    let undone: Vec<&Value> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| &entry["undone"])
        .collect();
    assert_eq!(undone, [&json!(false), &json!(true), &json!(false)]);
}

#[test]
fn a_file_changed_since_is_shown_three_ways_and_left_alone() {
    let karyi = Karyi::new().file("a", "one\n").file("b", "one\n");
    let pair = "<find>one</find><replace>two</replace>";
    let script = format!(
        "<tools><edit><file src=\"a\">{pair}</file><file src=\"b\">{pair}</file></edit></tools>"
    );
    text(&run(&karyi, &script), 0);
    std::fs::write(karyi.work().join("b"), "three\n").unwrap();
    let output = again(&karyi, &["undo"]);
    let path = place(&karyi, "b");
    let expected = format!(
        "{path}\nwhat changed since karyi wrote it:\n     1 - two\n     1 + three\n\
         what undo would make of what is there now:\n     1 - three\n     1 + one\n"
    );
    assert_eq!(text(&output, 1), expected);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.starts_with("karyi: undo_conflict: "), "{told}");
    let value = parsed(&again(&karyi, &["undo", "--json"]), 1);
    assert_eq!(
        (&value["code"], &value["files"]),
        (
            &json!("undo_conflict"),
            &json!([{
                "path": path,
                "wrote": {"bytes": 4},
                "now": {"bytes": 6},
                "restored": {"bytes": 4},
                "changed_since": "@@ -1 +1 @@\n-two\n+three\n",
                "would_restore": "@@ -1 +1 @@\n-three\n+one\n",
            }])
        )
    );
    let files = ["a", "b"].map(|name| read(&karyi, name).unwrap());
    assert_eq!(files, ["two\n", "three\n"]);
}

#[test]
fn history_is_narrowed_by_session_and_file() {
    let karyi = Karyi::new();
    let make = |name: &str| {
        format!(
            "<tools><edit><file src=\"{name}\"><find></find><replace>x</replace></file></edit></tools>"
        )
    };
    for name in ["d/a", "d/b", "c"] {
        text(&run(&karyi, &make(name)), 0);
    }
    let numbers = |args: &[&str]| -> Vec<u64> {
        let list = parsed(&again(&karyi, args), 0);
        let list = list.as_array().unwrap().iter();
        list.map(|entry| entry["number"].as_u64().unwrap())
            .collect()
    };
    assert_eq!(numbers(&["history", "--json", "--file", "d"]), [1, 2]);
    assert_eq!(numbers(&["history", "--json", "--file", "c"]), [3]);
    let list = parsed(&again(&karyi, &["history", "--json"]), 0);
    let session = list[1]["session"].as_str().unwrap().to_owned();
    assert_eq!(numbers(&["history", "--json", "--session", &session]), [2]);
    text(&again(&karyi, &["undo", "--session", &session]), 0);
    assert_eq!(
        ["d/a", "d/b", "c"].map(|name| read(&karyi, name).is_some()),
        [true, false, true]
    );
    text(&again(&karyi, &["undo", "--last", "2"]), 0);
    assert_eq!(
        ["d/a", "d/b", "c"].map(|name| read(&karyi, name).is_some()),
        [false; 3]
    );
    text(&again(&karyi, &["undo"]), 2);
    text(&again(&karyi, &["undo", "77"]), 2);
    text(&again(&karyi, &["history", "show", "77"]), 2);
    text(&again(&karyi, &["undo", "1", "--last", "2"]), 2);
}

#[test]
fn a_place_that_cannot_be_written_means_no_undo() {
    let karyi = Karyi::new()
        .arg("--json")
        .env("KARYI_HOME", "/proc/nowhere");
    let script =
        "<tools><edit><file src=\"a\"><find></find><replace>x</replace></file></edit></tools>";
    let ran = karyi.stdin(script).run().exit(0).file("a", "x");
    assert_eq!(ran.json()["results"][0]["undo"], "unavailable");
}

#[test]
fn a_value_is_neither_shown_nor_kept() {
    let script = "<tools><get_value key=\"API_TOKEN\" reason=\"x\"/></tools>\n\
        <tools><edit><file src=\"t\"><find></find><replace>token=$KARYI{API_TOKEN}\n</replace></file></edit></tools>\n\
        <tools><edit><file src=\"t\"><find>token=</find><replace>key=</replace></file></edit></tools>\n";
    let karyi = Karyi::with_args(&["run", "s.xml"]).file("s.xml", script);
    let (work, home) = (karyi.work(), karyi.work().join("../home"));
    let mut terminal = karyi.on_terminal();
    terminal
        .expect("value (hidden")
        .keys("s3cret-token-value\r");
    terminal
        .expect("- token=$KARYI{API_TOKEN}")
        .expect("+ key=$KARYI{API_TOKEN}");
    terminal.expect("undo unavailable");
    // What the directory holds must be looked at before it goes with the terminal.
    let held = std::fs::read_to_string(work.join("t")).unwrap();
    let entries = std::fs::read_to_string(home.join(".local/state/karyi/journal/entries")).unwrap();
    let contents = home.join(".local/state/karyi/journal/contents");
    let kept = std::fs::read_dir(contents).unwrap().count();
    let (screen, status) = terminal.end();
    assert_eq!(
        (held.as_str(), status),
        ("key=s3cret-token-value\n", 0),
        "{screen}"
    );
    assert!(
        !screen.contains("s3cret") && !entries.contains("s3cret"),
        "{screen}"
    );
    assert_eq!(kept, 0, "{entries}");
}
