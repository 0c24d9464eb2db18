//! `karyi history` and `karyi undo` after runs that changed files.

use std::process::Output;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use karyi::files::edit::{self, EditOptions, EditPair, FileEdit, Show};
use karyi::files::journal::{Caps, Journal};
use karyi::files::root::Root;
use karyi::files::transaction::Recorder;
use karyi::files::undo::{self, UndoError, Which};
use serde_json::{Value, json};

use crate::harness::{Karyi, program, skip, wait};
use crate::vault::home::{Home, Ran};

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

/// Every part of a conflict says something, also where no lines differ that could stand below it.
#[test]
fn a_conflict_has_no_heading_without_lines() {
    let pair = "<find>one</find><replace>two</replace>";
    let edit = format!("<file src=\"a\">{pair}</file>");
    let make =
        |text: &str| format!("<file src=\"new\"><find></find><replace>{text}</replace></file>");
    let delete = "<file src=\"a\" delete=\"true\"/>";
    let gone = "karyi wrote it, and it is not there any more";
    type Meddle<'a> = &'a dyn Fn(&std::path::Path);
    let remove: Meddle<'_> = &|path| std::fs::remove_file(path).unwrap();
    let directory: Meddle<'_> = &|path| {
        std::fs::remove_file(path).unwrap();
        std::fs::create_dir(path).unwrap();
    };
    let write =
        |text: &'static str| move |path: &std::path::Path| std::fs::write(path, text).unwrap();
    let utf16 = |path: &std::path::Path| {
        let text = "\u{feff}two\n".encode_utf16().flat_map(u16::to_le_bytes);
        std::fs::write(path, text.collect::<Vec<u8>>()).unwrap();
    };
    let cases: [(&str, &str, Meddle<'_>, String); 7] = [
        ("new", &make("<![CDATA[x\n]]>"), remove, format!("{gone}:\n     1 - x\nundo would remove it, which is done already\n")),
        ("new", &make(""), remove, format!("{gone}\nundo would remove it, which is done already\n")),
        ("new", &make("<![CDATA[x\n]]>"), directory, "karyi wrote it, and there is a directory now:\n     1 - x\nundo would remove it\n".into()),
        ("new", &make("<![CDATA[x\n]]>"), &write(""), "what changed since karyi wrote it:\n     1 - x\nundo would remove it\n".into()),
        ("a", &edit, &write("one\n"), "what changed since karyi wrote it:\n     1 - two\n     1 + one\nit is what undo would make of it already\n".into()),
        ("a", delete, &write(""), "karyi removed it, and it is there again\nwhat undo would make of what is there now:\n     1 + one\n".into()),
        ("a", &edit, &utf16, "what changed since karyi wrote it: nothing that can be shown, only the encoding or the value of a secret\n\
            what undo would make of what is there now:\n     1 - two\n     1 + one\n".into()),
    ];
    for (name, edit, meddle, expected) in cases {
        let karyi = Karyi::new().file("a", "one\n");
        text(
            &run(&karyi, &format!("<tools><edit>{edit}</edit></tools>")),
            0,
        );
        meddle(&karyi.work().join(name));
        let told = text(&again(&karyi, &["undo"]), 1);
        assert_eq!(told, format!("{}\n{expected}", place(&karyi, name)));
    }
}

/// The changes as `karyi history --json` has them: the kind of each file, and why it cannot be undone.
fn kinds(karyi: &Karyi) -> Vec<(Value, Value, Value)> {
    let list = parsed(&again(karyi, &["history", "--json"]), 0);
    let entries = list.as_array().unwrap().iter();
    let kind = |entry: &Value| {
        let file = &entry["files"][0];
        let words = (file["change"].clone(), file["edited"].clone());
        (words.0, words.1, entry["obstacle"].clone())
    };
    entries.map(kind).collect()
}

#[test]
fn a_rename_with_an_edit_tells_both_and_what_cannot_be_undone_says_why() {
    let karyi = Karyi::new().file("a", "one\n").file(".git/config", "x\n");
    for edit in [
        "<file src=\"a\" to=\"b\"/>",
        "<file src=\"b\" to=\"c\"><find>one</find><replace>two</replace></file>",
        "<file src=\".git/config\"><find>x</find><replace>y</replace></file>",
    ] {
        text(
            &run(&karyi, &format!("<tools><edit>{edit}</edit></tools>")),
            0,
        );
    }
    text(&again(&karyi, &["undo", "2"]), 0);
    let (renamed, git) = (json!("renamed"), "belongs to git, which undo never touches");
    let undone = json!("it is taken back already");
    assert_eq!(
        kinds(&karyi),
        [
            (renamed.clone(), Value::Null, Value::Null),
            (renamed.clone(), json!(true), undone),
            (json!("edited"), Value::Null, json!(git)),
            (renamed, json!(true), Value::Null),
        ]
    );
    let [a, b, c] = ["a", "b", "c"].map(|name| place(&karyi, name));
    let listed = text(&again(&karyi, &["history"]), 0);
    for line in [
        format!("\n       renamed  {a} to {b}\n"),
        format!("\n       renamed and edited {b} to {c}\n"),
        format!("\n       renamed and edited {c} to {b}\n"),
        format!("  (cannot be undone: {git})\n"),
    ] {
        assert!(listed.contains(&line), "{line:?}: {listed}");
    }
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
    let nobody = again(&karyi, &["history", "--session", "nope"]);
    assert_eq!(text(&nobody, 0), "");
    let told = String::from_utf8_lossy(&nobody.stderr);
    assert!(
        told.contains("no change was made by a session \"nope\""),
        "{told}"
    );
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
fn several_files_do_not_change_without_a_record() {
    let script = "<tools><edit><file src=\"a\"><find></find><replace>x</replace></file>\
        <file src=\"b\" to=\"c\"/></edit></tools>";
    let karyi = Karyi::new()
        .arg("--json")
        .env("KARYI_HOME", "/proc/nowhere")
        .file("b", "y");
    let ran = karyi
        .stdin(script)
        .run()
        .exit(1)
        .file("b", "y")
        .tree(&["b"]);
    let result = &ran.json()["results"][0];
    assert_eq!(result["code"], "no_journal");
    let hint = result["hint"].as_str().unwrap();
    assert!(hint.contains("KARYI_HOME"), "{hint}");
}

#[test]
fn a_value_is_neither_shown_nor_kept() {
    let script = "<tools><get_value key=\"API_TOKEN\" reason=\"x\"/></tools>\n\
        <tools><command>printf 'token=%s\\n' \"$KARYI{API_TOKEN}\" > t</command></tools>\n\
        <tools><edit><file src=\"t\"><find>token=</find><replace>key=</replace></file></edit></tools>\n";
    let karyi = Karyi::with_args(&["run", "s.xml"]).file("s.xml", script);
    let (work, home) = (karyi.work(), karyi.work().join("../home"));
    let mut terminal = karyi.on_terminal();
    terminal
        .expect("value (hidden")
        .keys("s3cret-token-value\r")
        .expect("keep it:")
        .keys("\r");
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

const VALUE: &str = "S3cr3t-T0ken/Val+ue_AbCdEf0123456789xyz";
const OLD_TEXT: &str = "token=none\nend\n";
const TO_TOKEN: &str = "<find>none</find><replace>$KARYI{TOKEN}</replace>";

/// A home whose vault has a value that edits may write, and a file without it.
fn home_with_value() -> Home {
    let home = Home::new();
    home.set("TOKEN", VALUE, &["--write"]);
    std::fs::write(home.work().join("t"), OLD_TEXT).unwrap();
    home
}

fn edit(home: &Home, pairs: &str) -> Value {
    let script = format!("<tools><edit><file src=\"t\">{pairs}</file></edit></tools>");
    let args = ["run", "--no-interactive", "--json", "-c", &script];
    home.karyi(&args, "").exit(0).hides(VALUE).json()
}

fn held(home: &Home) -> String {
    std::fs::read_to_string(home.work().join("t")).unwrap()
}

fn journal(home: &Home) -> std::path::PathBuf {
    home.path().join("karyi/state/journal")
}

/// Returns what the journal keeps, as it is on the disk.
fn contents(home: &Home) -> Vec<Vec<u8>> {
    let list = |path: &std::path::Path| {
        let entries = std::fs::read_dir(path).unwrap();
        entries.map(|entry| entry.unwrap().path())
    };
    let starts = list(&journal(home).join("contents"));
    let files = starts.flat_map(|start| list(&start));
    files.map(|file| std::fs::read(file).unwrap()).collect()
}

fn holds_value(bytes: &[u8]) -> bool {
    bytes
        .windows(VALUE.len())
        .any(|part| part == VALUE.as_bytes())
}

fn state(karyi: &Karyi) -> std::path::PathBuf {
    let home = karyi.work().parent().unwrap().join("home");
    home.join(".local/state/karyi/journal")
}

/// What a file holds after it was damaged.
type Damage<'a> = &'a dyn Fn(&[u8]) -> Vec<u8>;

/// Replaces what every file of the journal holds.
fn damage(path: &std::path::Path, with: Damage<'_>) {
    for entry in std::fs::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => damage(&path, with),
            false => {
                let held = std::fs::read(&path).unwrap();
                std::fs::write(&path, with(&held)).unwrap();
            }
        }
    }
}

#[test]
fn a_damaged_journal_is_told_and_new_changes_are_recorded() {
    let edit = |from: &str, to: &str| {
        let pair = format!("<find>{from}</find><replace>{to}</replace>");
        format!("<tools><edit><file src=\"a\">{pair}</file></edit></tools>")
    };
    let empty = |_: &[u8]| Vec::new();
    let half = |held: &[u8]| held[..held.len() / 2].to_vec();
    let garbled = |held: &[u8]| held.iter().map(|byte| byte ^ 0x5a).collect();
    let emptied = "it is empty, and changes were recorded in it before";
    let ways: [(Damage<'_>, &str); 3] = [
        (&empty, emptied),
        (&half, "1 of its lines cannot be read"),
        (&garbled, "of its lines cannot be read"),
    ];
    for (way, told) in ways {
        let karyi = Karyi::new().file("a", "one\n");
        let report = parsed(&run(&karyi, &edit("one", "two")), 0);
        assert_eq!(report["results"][0]["warning"], Value::Null, "{report}");
        damage(&state(&karyi), way);
        let list = again(&karyi, &["history", "--json"]);
        let said = String::from_utf8_lossy(&list.stderr).into_owned();
        assert!(said.contains("is damaged") && said.contains(told), "{said}");
        assert!(said.contains("hint: "), "{said}");
        assert_eq!(parsed(&list, 0), json!([]));
        let nothing = again(&karyi, &["undo"]);
        assert!(!nothing.status.success());
        assert!(String::from_utf8_lossy(&nothing.stderr).contains("is damaged"));
        // The next edit says so, once, and can be undone.
        let report = parsed(&run(&karyi, &edit("two", "three")), 0);
        let warning = report["results"][0]["warning"].as_str().unwrap_or_default();
        assert!(warning.contains(told), "{report}");
        let report = parsed(&run(&karyi, &edit("three", "four")), 0);
        assert_eq!(report["results"][0]["warning"], Value::Null, "{report}");
        text(&again(&karyi, &["undo", "--last", "2"]), 0);
        assert_eq!(read(&karyi, "a").as_deref(), Some("two\n"));
    }
}

/// The list is read from its end, as far as it is needed.
#[test]
fn a_dry_run_of_the_last_change_reads_no_line_before_it() {
    let karyi = Karyi::new().file("a", "one\n");
    for (find, replace) in [("one", "two"), ("two", "three")] {
        let pair = format!("<find>{find}</find><replace>{replace}</replace>");
        let script = format!("<tools><edit><file src=\"a\">{pair}</file></edit></tools>");
        text(&run(&karyi, &script), 0);
    }
    let list = state(&karyi).join("entries");
    let whole = std::fs::read_to_string(&list).unwrap();
    std::fs::write(&list, whole.replacen('{', "[", 1)).unwrap();
    let said = |args: &[&str]| {
        let output = again(&karyi, args);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert_eq!(said(&["undo", "--dry-run"]), "");
    // Recording the undo looks through a list that somebody changed.
    let told = said(&["undo"]);
    assert!(told.contains("1 of its lines cannot be read"), "{told}");
    assert_eq!(read(&karyi, "a").as_deref(), Some("two\n"));
}

#[test]
fn a_damaged_content_is_told() {
    let karyi = Karyi::new().file("a", "one\n");
    text(
        &run(
            &karyi,
            "<tools><edit><file src=\"a\"><find>one</find><replace>two</replace></file></edit></tools>",
        ),
        0,
    );
    damage(&state(&karyi).join("contents"), &|held| held[..1].to_vec());
    let listed = text(&again(&karyi, &["history"]), 0);
    assert!(listed.contains("damaged or gone"), "{listed}");
    let shown = text(&again(&karyi, &["history", "show", "1"]), 0);
    assert!(shown.contains("damaged or gone"), "{shown}");
    let shown = parsed(&again(&karyi, &["history", "show", "1", "--json"]), 0);
    assert_eq!(
        (&shown["can_be_undone"], &shown["files"][0]["damaged"]),
        (&json!(false), &json!(true))
    );
    text(&again(&karyi, &["undo"]), 1);
    assert_eq!(read(&karyi, "a").as_deref(), Some("two\n"));
}

/// Asserts that a command is refused with a code and changes neither file nor journal.
#[track_caller]
fn refused(home: &Home, args: &[&str], exit: i32, code: &str) -> Ran {
    let entries = || std::fs::read_to_string(journal(home).join("entries")).unwrap();
    let before = (held(home), entries());
    let ran = home.karyi(args, "").exit(exit).error(code).hides(VALUE);
    assert_eq!((held(home), entries()), before);
    ran
}

#[test]
fn what_holds_a_value_is_kept_encrypted_and_taken_back() {
    let home = home_with_value();
    let written = format!("token={VALUE}\nend\n");
    let report = edit(&home, TO_TOKEN);
    assert_eq!(report["results"][0]["undo"], Value::Null, "{report}");
    assert_eq!(held(&home), written);
    let kept = contents(&home);
    assert_eq!(kept.len(), 2);
    for bytes in &kept {
        assert!(!holds_value(bytes) && bytes[0] == 2);
        let opened = zstd::decode_all(&bytes[1..]).unwrap_or_default();
        assert!(!holds_value(&opened));
    }

    let shown = home.karyi(&["history", "show", "1"], "").exit(0);
    let shown = shown.hides(VALUE);
    let diff = "1 - token=none\n     1 + token=$KARYI{TOKEN}\n";
    assert!(shown.stdout.contains(diff), "{}", shown.stdout);
    let shown = home.karyi(&["history", "show", "1", "--json"], "").exit(0);
    assert_eq!(
        shown.hides(VALUE).json()["files"][0]["diff"],
        "@@ -1,2 +1,2 @@\n-token=none\n+token=$KARYI{TOKEN}\n end\n"
    );
    let dry = home.karyi(&["undo", "--dry-run"], "").exit(0).hides(VALUE);
    assert!(dry.stdout.contains("- token=$KARYI{TOKEN}\n"));
    assert_eq!(held(&home), written);

    home.karyi(&["undo"], "").exit(0).hides(VALUE);
    assert_eq!(held(&home), OLD_TEXT);
    let again = home.karyi(&["undo", "2", "--json"], "").exit(0);
    assert_eq!(again.hides(VALUE).json()["status"], "ok");
    assert_eq!(held(&home), written);
    assert!(!contents(&home).iter().any(|bytes| holds_value(bytes)));
}

#[test]
fn a_file_changed_since_is_shown_without_its_values() {
    let home = home_with_value();
    edit(&home, TO_TOKEN);
    std::fs::write(home.work().join("t"), format!("key={VALUE}\n")).unwrap();
    let ran = refused(&home, &["undo"], 1, "undo_conflict");
    let parts = ["- token=$KARYI{TOKEN}\n", "+ key=$KARYI{TOKEN}\n"];
    for part in parts {
        assert!(ran.stdout.contains(part), "{}", ran.stdout);
    }
    let value = refused(&home, &["undo", "--json"], 1, "undo_conflict").json();
    let since = "@@ -1,2 +1 @@\n-token=$KARYI{TOKEN}\n-end\n+key=$KARYI{TOKEN}\n";
    assert_eq!(value["files"][0]["changed_since"], since);
}

#[test]
fn without_the_key_nothing_is_shown_or_taken_back() {
    let home = home_with_value();
    edit(&home, TO_TOKEN);
    let karyi = program().display();
    let inside = home.script(&format!(
        "<tools><command>{karyi} undo; echo $?; {karyi} history show 1; echo $?</command></tools>"
    ));
    let refusals = inside.stdout.matches("inside_session: ").count();
    assert_eq!(refusals, 2, "{}", inside.stdout);
    assert_eq!(
        inside.stdout.matches("\n2\n").count(),
        2,
        "{}",
        inside.stdout
    );

    let away = home.path().join("away");
    std::fs::rename(home.identity(), &away).unwrap();
    let commands = [
        &["undo"][..],
        &["undo", "--dry-run"],
        &["history", "show", "1"],
    ];
    for args in commands {
        refused(&home, args, 3, "wrong_key");
    }
    let value = refused(&home, &["undo", "--json"], 3, "wrong_key").json();
    assert_eq!(value["status"], "error");
    // The list needs no key.
    let list = home.karyi(&["history", "--json"], "").exit(0).json();
    assert_eq!(list[0]["can_be_undone"], true);

    // Nor does a store help that never had the key, and none is put there.
    for args in commands {
        let args = [args, &["--vault", "memory"]].concat();
        refused(&home, &args, 1, "undo_unavailable");
    }
    std::fs::rename(away, home.identity()).unwrap();
    std::fs::remove_dir_all(home.path().join("karyi/data")).unwrap();
    home.set("TOKEN", VALUE, &[]);
    refused(&home, &["undo"], 1, "undo_unavailable");
    home.script("<tools><command>true</command></tools>")
        .exit(0);
    let ran = refused(&home, &["undo"], 1, "undo_unavailable");
    assert!(ran.stderr.contains("of another vault"), "{}", ran.stderr);
}

#[test]
fn changes_from_before_there_was_a_key_go_back_with_the_later_ones() {
    let home = Home::new();
    std::fs::write(home.work().join("t"), OLD_TEXT).unwrap();
    edit(&home, "<find>end</find><replace>the end</replace>");
    home.set("TOKEN", VALUE, &["--write"]);
    edit(&home, TO_TOKEN);
    assert_eq!(held(&home), format!("token={VALUE}\nthe end\n"));
    home.karyi(&["undo", "--last", "2"], "")
        .exit(0)
        .hides(VALUE);
    assert_eq!(held(&home), OLD_TEXT);

    // A plain change needs no key; that its values are not known is told.
    std::fs::remove_file(home.identity()).unwrap();
    let shown = home.karyi(&["history", "show", "1"], "").exit(0);
    assert!(shown.stdout.contains("+ the end"), "{}", shown.stdout);
    assert!(
        shown.stderr.contains("redaction_incomplete"),
        "{}",
        shown.stderr
    );
}

#[test]
fn the_first_runs_at_the_same_time_make_one_key() {
    let home = Home::new();
    home.set("TOKEN", VALUE, &["--write"]);
    let names = ["a", "b", "c", "d"];
    std::thread::scope(|scope| {
        for name in names {
            let pair = "<find></find><replace>$KARYI{TOKEN}</replace>";
            let script = format!("<tools><edit><file src=\"{name}\">{pair}</file></edit></tools>");
            let home = &home;
            scope.spawn(move || home.script(&script).exit(0).hides(VALUE));
        }
    });
    let held = || names.map(|name| std::fs::read_to_string(home.work().join(name)).ok());
    assert_eq!(held(), [(); 4].map(|()| Some(VALUE.to_owned())));
    home.karyi(&["undo", "--last", "4"], "").exit(0);
    assert_eq!(held(), [const { None }; 4]);
}

/// Returns the contents that the journal keeps.
fn blobs(karyi: &Karyi) -> Vec<std::path::PathBuf> {
    let contents = karyi
        .work()
        .join("../home/.local/state/karyi/journal/contents");
    let list = |path: &std::path::Path| {
        let entries = std::fs::read_dir(path).unwrap();
        entries.map(|entry| entry.unwrap().path())
    };
    list(&contents).flat_map(|start| list(&start)).collect()
}

#[test]
fn a_content_that_a_loss_of_power_broke_is_refused() {
    let karyi = Karyi::new().file("a", "one\n").file("b", "uno\n");
    let script = "<tools><edit><file src=\"a\"><find>one</find><replace>two</replace></file>\
        <file src=\"b\"><find>uno</find><replace>dos</replace></file></edit></tools>";
    text(&run(&karyi, script), 0);
    let files = || ["a", "b"].map(|name| read(&karyi, name).unwrap());
    let refused = || {
        for args in [&["undo", "--json"][..], &["undo", "--dry-run", "--json"]] {
            let told = parsed(&again(&karyi, args), 1);
            assert_eq!(told["code"], "undo_unavailable", "{told}");
        }
        assert_eq!(files(), ["two\n", "dos\n"]);
    };
    let whole: Vec<_> = blobs(&karyi);
    let bytes: Vec<_> = whole
        .iter()
        .map(|path| std::fs::read(path).unwrap())
        .collect();
    assert_eq!(whole.len(), 4);
    for length in [0, 1, 7] {
        for (path, bytes) in whole.iter().zip(&bytes) {
            std::fs::write(path, &bytes[..length]).unwrap();
        }
        refused();
    }
    whole
        .iter()
        .for_each(|path| std::fs::remove_file(path).unwrap());
    refused();
    for (path, bytes) in whole.iter().zip(&bytes) {
        std::fs::write(path, bytes).unwrap();
    }
    text(&again(&karyi, &["undo"]), 0);
    assert_eq!(files(), ["one\n", "uno\n"]);
}

#[test]
fn an_entry_that_a_loss_of_power_took_means_a_conflict() {
    let karyi = Karyi::new().file("a", "one\n");
    for (find, replace) in [("one", "two"), ("two", "three")] {
        let script = format!(
            "<tools><edit><file src=\"a\"><find>{find}</find><replace>{replace}</replace></file></edit></tools>"
        );
        text(&run(&karyi, &script), 0);
    }
    let entries = karyi
        .work()
        .join("../home/.local/state/karyi/journal/entries");
    let whole = std::fs::read_to_string(&entries).unwrap();
    let first = whole.find('\n').unwrap() + 1;
    // Gone, cut, or a part of the file that was never written.
    for rest in ["", &whole[first..first + 40], &"\0".repeat(40)] {
        std::fs::write(&entries, format!("{}{rest}", &whole[..first])).unwrap();
        let told = parsed(&again(&karyi, &["undo", "--json"]), 1);
        assert_eq!(told["code"], "undo_conflict", "{told}");
        assert_eq!(read(&karyi, "a").unwrap(), "three\n");
    }
    // What comes after it has a line of its own.
    let script = "<tools><edit><file src=\"a\"><find>three</find><replace>four</replace></file></edit></tools>";
    text(&run(&karyi, script), 0);
    text(&again(&karyi, &["undo"]), 0);
    assert_eq!(read(&karyi, "a").unwrap(), "three\n");
}

/// The patch of a change, as `karyi history show --json` has it, with the headers of a file.
fn patch(karyi: &Karyi) -> String {
    let shown = parsed(&again(karyi, &["history", "show", "1", "--json"]), 0);
    let work = karyi.work().canonicalize().unwrap();
    let files = shown["files"].as_array().unwrap().iter().map(|file| {
        let name = |key: &str| {
            let path = std::path::Path::new(file[key].as_str()?);
            Some(path.strip_prefix(&work).unwrap().display().to_string())
        };
        let name_old = name("path").unwrap();
        let name_new = name("to").unwrap_or(name_old.clone());
        let (old, new) = (file.get("old_bytes"), file.get("new_bytes"));
        let side = |size: Option<&Value>, side: &str, name: &str| match size {
            Some(_) => format!("{side}/{name}"),
            None => "/dev/null".into(),
        };
        let mode = match (old, new) {
            (None, _) => "new file mode 100644\n".to_owned(),
            (_, None) => "deleted file mode 100644\n".to_owned(),
            _ if name_old != name_new => format!("rename from {name_old}\nrename to {name_new}\n"),
            _ => String::new(),
        };
        assert_eq!(file.get("diff_omitted_lines"), None);
        let (old, new) = (side(old, "a", &name_old), side(new, "b", &name_new));
        let diff = file["diff"].as_str().unwrap();
        format!("diff --git a/{name_old} b/{name_new}\n{mode}--- {old}\n+++ {new}\n{diff}")
    });
    files.collect()
}

/// Edits the file `f` as the pairs say and compares what two programs make of the diff with it.
#[track_caller]
fn check_patch(before: Option<&str>, file: &str) {
    let files = [("f", before), ("g", Some("other\n"))];
    let files = files
        .iter()
        .filter_map(|(name, text)| Some((*name, (*text)?)));
    let place = |karyi: Karyi| {
        files
            .clone()
            .fold(karyi, |karyi, (name, text)| karyi.file(name, text))
    };
    let karyi = place(Karyi::new());
    text(
        &run(&karyi, &format!("<tools><edit>{file}</edit></tools>")),
        0,
    );
    let patch = patch(&karyi);
    let names = ["f", "g", "h"];
    let expected = names.map(|name| read(&karyi, name));
    assert_ne!(expected[0].as_deref(), before);
    for (program, args) in [
        ("patch", &["-F0", "-p1", "--binary", "-i", "p"][..]),
        ("git", &["apply", "--whitespace=nowarn", "p"]),
    ] {
        let other = place(Karyi::new()).file("p", &patch);
        let mut command = std::process::Command::new(program);
        let Ok(output) = command.args(args).current_dir(other.work()).output() else {
            skip(&format!("no {program}"));
            continue;
        };
        assert!(output.status.success(), "{program}: {output:?}\n{patch}");
        assert_eq!(
            names.map(|name| read(&other, name)),
            expected,
            "{program}\n{patch}"
        );
    }
}

#[test]
fn the_diff_of_a_change_is_a_patch_to_other_programs() {
    let pair = |find: &str, replace: &str| {
        format!("<file src=\"f\"><find>{find}</find><replace>{replace}</replace></file>")
    };
    check_patch(Some("a\nb"), &pair("b", "c"));
    check_patch(Some("a\nb"), &pair("b", "<![CDATA[b\n]]>"));
    check_patch(Some("a\nb\n"), &pair("<![CDATA[b\n]]>", "b"));
    check_patch(Some("a\r\nb\r\nc\n"), &pair("b", "x"));
    check_patch(Some("a\n"), &pair("<![CDATA[a\n]]>", ""));
    check_patch(Some(""), &pair("", "<![CDATA[a\n]]>"));
    check_patch(Some("-- a\n++ b\n\\ c\n@@ d\n"), &pair("b", "x"));
    check_patch(Some("a\u{2028}b\u{85}\u{c}c\n\td\n"), &pair("d", "x"));
    check_patch(None, &pair("", "new"));
    check_patch(None, &pair("", "<![CDATA[new\n]]>"));
    check_patch(Some("old\nend"), "<file src=\"f\" delete=\"true\"/>");
    check_patch(
        Some("old\nend\n"),
        "<file src=\"f\" to=\"h\"><find>old</find><replace>new</replace></file>",
    );
    // Much more than a result shows, in hunks far apart.
    let lines = |word: &str| -> String {
        let line = |n: usize| format!("{} {n}\n", if n.is_multiple_of(9) { word } else { "same" });
        (0..6000).map(line).collect()
    };
    let all = pair("old", "new").replace("<find>", "<find all=\"true\">")
        + "<file src=\"g\" delete=\"true\"/>";
    check_patch(Some(&lines("old")), &all);
}

/// Leaves a record of a change of `a` and `b` behind, of which `a` has taken its place.
fn leave_half_done(karyi: &Karyi) {
    let hash = |text: &str| blake3::hash(text.as_bytes()).to_hex().to_string();
    let (mut steps, mut decided, mut files) = (Vec::new(), Vec::new(), Vec::new());
    for (name, temporary) in [("a", ".karyi-t-0.tmp"), ("b", ".karyi-t-1.tmp")] {
        let path = place(karyi, name);
        let version =
            |text: &str| json!({"content": hash(text), "size": 3, "mode": 0o644, "is_kept": false});
        steps.push(json!({"path": path, "temporary": temporary, "backup": null}));
        decided.push(json!({"old": hash("old"), "new": hash("new")}));
        files.push(json!({"path": path, "old": version("old"), "new": version("new")}));
    }
    std::fs::write(karyi.work().join("a"), "new").unwrap();
    std::fs::write(karyi.work().join("b"), "old").unwrap();
    std::fs::write(karyi.work().join(".karyi-t-1.tmp"), "new").unwrap();
    let entry = json!({"id": "t", "time_ms": 1, "session": "s", "call": "c", "tool": "edit", "files": files});
    let plan = json!({"steps": steps, "made": []});
    let decision = json!({"steps": decided, "entry": entry});
    let record = state(karyi).join("transactions/t.json");
    std::fs::write(record, format!("{plan}\n{decision}\n")).unwrap();
}

#[test]
fn undo_tells_what_a_killed_run_left_also_when_it_is_refused() {
    let karyi = Karyi::new().file("keep", "1");
    let script =
        "<tools><edit><file src=\"keep\"><find>1</find><replace>2</replace></file></edit></tools>";
    text(&run(&karyi, script), 0);
    let recovered = |change: &str| json!([{"path": place(&karyi, "a"), "change": change}, {"path": place(&karyi, "b"), "change": change}]);

    leave_half_done(&karyi);
    // It is foreseen that the half-done change is the last one then, of which nothing was kept.
    let dry = parsed(&again(&karyi, &["undo", "--dry-run", "--json"]), 1);
    assert_eq!(dry["recovered"][1]["change"], "waiting");
    assert_eq!(dry["code"], "undo_unavailable");
    let told = dry["message"].as_str().unwrap();
    assert!(told.starts_with("change 2 cannot be undone"), "{told}");
    assert_eq!(read(&karyi, "b").as_deref(), Some("old"));

    let refused = parsed(&again(&karyi, &["undo", "99", "--json"]), 2);
    assert_eq!(refused["code"], "not_found");
    assert_eq!(refused["recovered"], recovered("completed"));
    assert_eq!(read(&karyi, "b").as_deref(), Some("new"));

    leave_half_done(&karyi);
    let away = karyi.work().with_file_name("away");
    let (work, path) = (karyi.work(), place(&karyi, "b"));
    std::fs::create_dir(&away).unwrap();
    std::fs::rename(work.join(".karyi-t-1.tmp"), away.join("t")).unwrap();
    std::fs::write(work.join(".karyi-t-1.tmp"), "evil").unwrap();
    let told = again(&karyi, &["undo", "99"]);
    text(&told, 2);
    let told = String::from_utf8_lossy(&told.stderr).into_owned();
    let expected = format!("karyi: {path}: half changed by a killed karyi: taken_back\n");
    assert!(told.contains(&expected), "{told}");
    let theirs = place(&karyi, ".karyi-t-1.tmp");
    let expected =
        format!("karyi: warning: {theirs}: half changed by a killed karyi: left_alone: ");
    assert!(told.contains(&expected), "{told}");
}

#[test]
fn a_file_that_was_never_changed_is_told() {
    let karyi = Karyi::new().file("a", "one\ntwo\n").file("gone", "x\n");
    text(&run(&karyi, SCRIPT), 0);
    let list = again(&karyi, &["history", "--file", "nope"]);
    let said = String::from_utf8_lossy(&list.stderr).into_owned();
    assert!(said.contains("no change was made to \"nope\""), "{said}");
    let list = again(&karyi, &["history", "--file", "a"]);
    assert!(list.stderr.is_empty() && !list.stdout.is_empty());
}

/// Edits the file `f` of a directory, whose text is `N` and noise, so that it says `N + 1`.
fn count_up(directory: &std::path::Path, recorder: &Recorder, from: usize) -> edit::Done {
    let pair = EditPair {
        find: format!("number {from};"),
        replace: format!("number {};", from + 1),
        all: false,
        written: None,
        has_secret: false,
    };
    let file = FileEdit {
        path: "f".into(),
        pairs: vec![pair],
        ..FileEdit::default()
    };
    let options = EditOptions {
        cwd: directory,
        root: &Root::unconfined(),
        recorder,
        is_private: &|_| false,
        show: Show::Part(&|text| text.to_owned()),
    };
    edit::apply(&[file], options).unwrap()
}

/// Returns a text that hardly shrinks.
fn noise() -> String {
    let mut noise = 1_u64;
    let words = std::iter::repeat_with(|| {
        noise = noise
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        format!("{:08x}", noise >> 32)
    });
    words.take(5000).collect()
}

#[test]
fn a_full_journal_drops_the_oldest_changes_and_says_so() {
    let (work, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let caps = Caps {
        bytes: 200_000,
        ..Caps::default()
    };
    let journal = Arc::new(Journal::with_caps(state.path(), None, caps).unwrap());
    let recorder = Recorder {
        journal: Some(Arc::clone(&journal)),
        ..Recorder::default()
    };
    let noise = noise();
    let path = work.path().join("f");
    std::fs::write(&path, format!("number 0;\n{noise}")).unwrap();
    let contents = || {
        let shards = std::fs::read_dir(state.path().join("contents")).unwrap();
        let files = shards.flat_map(|shard| std::fs::read_dir(shard.unwrap().path()).unwrap());
        files.map(|file| file.unwrap().path()).collect::<Vec<_>>()
    };
    let mut told = Vec::new();
    for from in 0..20 {
        // As if every change were an hour after the one before.
        for content in contents() {
            let file = std::fs::File::open(content).unwrap();
            let hour = Duration::from_secs(60 * 60);
            file.set_modified(SystemTime::now() - hour).unwrap();
        }
        let done = count_up(work.path(), &recorder, from);
        assert!(done.can_be_undone, "{from}");
        told.extend(done.pruned);
    }
    let entries = journal.entries().unwrap();
    let gone: usize = told.iter().map(|pruned| pruned.changes).sum();
    assert_eq!((gone + entries.len(), told.is_empty()), (20, false));
    assert_eq!(told.last().unwrap().last, entries[0].number - 1);
    let words = told[0].to_string();
    assert!(
        words.starts_with("the journal is full (it holds 1 GiB, 30 days and 100000 changes)"),
        "{words}"
    );
    let sizes = contents()
        .into_iter()
        .map(|path| path.metadata().unwrap().len());
    let size: u64 = sizes.sum();
    assert!(size < 250_000, "{size}");
    // What is left can be taken back, the newest first, and what is gone says so.
    for left in (0..entries.len()).rev() {
        undo::undo(&recorder, &journal, &Which::Last(1)).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let number = 20 - entries.len() + left;
        assert!(text.starts_with(&format!("number {number};")), "{left}");
    }
    let Err(UndoError::Other(error)) = undo::undo(&recorder, &journal, &Which::Number(1)) else {
        panic!("change 1 was taken back");
    };
    assert!(
        error
            .message
            .starts_with("change 1 is not in the journal any more"),
        "{}",
        error.message
    );
}

/// What is in the way of an undo is told by its numbers, and taking that back first works.
#[test]
fn an_undo_below_later_changes_names_them() {
    let karyi = Karyi::new().file("a", "one\n");
    for (find, replace) in [("one", "two"), ("two", "three"), ("three", "four")] {
        let pair = format!("<find>{find}</find><replace>{replace}</replace>");
        let script = format!("<tools><edit><file src=\"a\">{pair}</file></edit></tools>");
        assert!(run(&karyi, &script).status.success());
    }
    let refused = again(&karyi, &["undo", "1", "--json"]);
    let hint = "later changes are in the way: first `karyi undo 3`, then `karyi undo 2`; or restore the \
                wanted lines by hand";
    assert_eq!(parsed(&refused, 1)["hint"], hint);
    for number in ["3", "2"] {
        parsed(&again(&karyi, &["undo", number, "--json"]), 0);
    }
    let short = again(&karyi, &["undo", "--last", "3"]);
    let said = String::from_utf8_lossy(&short.stderr).into_owned();
    let expected = "2 changes fewer than asked for: there are no more to take back";
    assert!(short.status.success() && said.contains(expected), "{said}");
    assert_eq!(read(&karyi, "a").as_deref(), Some("one\n"));
}
