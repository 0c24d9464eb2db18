//! What `karyi history` lists of the changes.

use serde_json::{Value, json};

use crate::harness::Karyi;

use super::{SCRIPT, again, parsed, place, read, run, text};

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
    let undone = json!("it is already undone");
    assert_eq!(
        kinds(&karyi),
        [
            (renamed.clone(), json!(true), Value::Null),
            (json!("edited"), Value::Null, json!(git)),
            (renamed.clone(), json!(true), undone),
            (renamed, Value::Null, Value::Null),
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
    assert_eq!(numbers(&["history", "--json", "--file", "d"]), [2, 1]);
    assert_eq!(numbers(&["history", "--json", "--last", "2"]), [3, 2]);
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
fn a_file_that_was_never_changed_is_told() {
    let karyi = Karyi::new().file("a", "one\ntwo\n").file("gone", "x\n");
    text(&run(&karyi, SCRIPT), 0);
    let list = again(&karyi, &["history", "--file", "nope"]);
    let said = String::from_utf8_lossy(&list.stderr).into_owned();
    assert!(said.contains("no change was made to \"nope\""), "{said}");
    let list = again(&karyi, &["history", "--file", "a"]);
    assert!(list.stderr.is_empty() && !list.stdout.is_empty());
}

#[test]
fn a_number_without_show_is_told_how_to_be_written() {
    let karyi = Karyi::new();
    for (word, hint) in [
        (
            "7",
            "karyi: expected no argument, found \"7\"\nhint: `karyi history show 7` shows that change\n",
        ),
        (
            "src",
            "karyi: expected no argument, found \"src\"\nhint: `karyi history --file src` lists the changes of a file, \
             `karyi history show N` shows one\n",
        ),
    ] {
        let refused = again(&karyi, &["history", word]);
        text(&refused, 2);
        assert_eq!(String::from_utf8_lossy(&refused.stderr), hint);
    }
}

#[test]
fn an_undo_that_is_tried_out_shows_what_would_change() {
    let karyi = Karyi::new().file("a", "one\ntwo\n").file("gone", "x\n");
    text(&run(&karyi, SCRIPT), 0);
    let [a, b, gone, new] = ["a", "b", "gone", "d/new"].map(|name| place(&karyi, name));
    let shown = text(&again(&karyi, &["undo", "--dry-run"]), 0);
    let expected = format!(
        "rename {b} to {a}\n     1 - 1\n     1 + one\n     2   two\nrecreate {gone}\n     1 + x\nremove {new}\n\
     \x20    1 - new\n         no line break at the end of the file\nwould undo change 1; nothing was changed\n"
    );
    assert_eq!(shown, expected);
    assert_eq!(read(&karyi, "b").as_deref(), Some("1\ntwo\n"));
}
