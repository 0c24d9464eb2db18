//! `karyi history` and `karyi undo` after runs that changed files.

mod conflicts;
mod damage;
mod half_done;
mod listing;
#[cfg(target_os = "linux")]
mod memory;
mod patches;
mod room;
mod values;

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
            {"path": a, "change": "renamed", "old_bytes": 8, "new_bytes": 6, "to": b, "edited": true},
            {"path": place(&karyi, "gone"), "change": "deleted", "old_bytes": 2},
            {"path": place(&karyi, "d/new"), "change": "created", "new_bytes": 3},
        ])
    );
    let shown = text(&again(&karyi, &["history", "show", "1"]), 0);
    assert!(
        shown.contains(&format!(
            "renamed and edited {a} to {b}\n     1 - one\n     1 + 1\n"
        )) && shown.contains("     1 - x\n"),
        "{shown}"
    );
    assert!(!shown.contains('\u{1b}'), "{shown}");

    let dry = parsed(&again(&karyi, &["undo", "--dry-run", "--json"]), 0);
    assert_eq!(
        (&dry["dry_run"], &dry["undone"]),
        (&json!(true), &json!([1]))
    );
    let renamed = json!({"path": b, "to": a, "change": "rename", "diff": "@@ -1,2 +1,2 @@\n-1\n+one\n two\n"});
    assert_eq!(dry["files"][0], renamed);
    assert_eq!(dry["files"].as_array().unwrap().len(), 3);
    assert_eq!(read(&karyi, "a"), None);
    let told = text(&again(&karyi, &["undo"]), 0);
    assert!(
        told.contains("undid change 1; `karyi undo 2` reverts that"),
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

fn state(karyi: &Karyi) -> std::path::PathBuf {
    let home = karyi.work().parent().unwrap().join("home");
    home.join(".local/state/karyi/journal")
}
