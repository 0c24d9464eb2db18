//! A journal of which something was damaged or lost.

use serde_json::{Value, json};

use crate::harness::Karyi;

use super::{again, parsed, read, run, state, text};

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
    let emptied = "it is empty although changes were recorded in it";
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
    assert!(listed.contains("damaged or missing"), "{listed}");
    let shown = text(&again(&karyi, &["history", "show", "1"]), 0);
    assert!(shown.contains("damaged or missing"), "{shown}");
    let shown = parsed(&again(&karyi, &["history", "show", "1", "--json"]), 0);
    assert_eq!(
        (&shown["can_be_undone"], &shown["files"][0]["damaged"]),
        (&json!(false), &json!(true))
    );
    text(&again(&karyi, &["undo"]), 1);
    assert_eq!(read(&karyi, "a").as_deref(), Some("two\n"));
}

/// Garbles the content that the first change kept of its first file, from before it or from after it.
fn garble(karyi: &Karyi, which: &str) {
    let list = std::fs::read_to_string(state(karyi).join("entries")).unwrap();
    let entry: Value = serde_json::from_str(list.lines().next().unwrap()).unwrap();
    let name = entry["files"][0][which]["content"].as_str().unwrap();
    let (start, rest) = name.split_at(2);
    let path = state(karyi).join("contents").join(start).join(rest);
    let held = std::fs::read(&path).unwrap();
    let garbled: Vec<u8> = held.iter().map(|byte| byte ^ 0x5a).collect();
    std::fs::write(&path, garbled).unwrap();
}

#[test]
fn only_a_damaged_content_that_comes_back_is_in_the_way() {
    let edit = "<file src=\"a\"><find>one</find><replace>two</replace></file>";
    let rename = "<file src=\"a\" to=\"b\"/>";
    for (change, which, can_be_undone) in [
        (edit, "new", true),
        (edit, "old", false),
        (rename, "old", false),
    ] {
        let karyi = Karyi::new().file("a", "one\n");
        text(
            &run(&karyi, &format!("<tools><edit>{change}</edit></tools>")),
            0,
        );
        garble(&karyi, which);
        let shown = parsed(&again(&karyi, &["history", "show", "1", "--json"]), 0);
        assert_eq!(
            (&shown["can_be_undone"], &shown["files"][0]["damaged"]),
            (&json!(can_be_undone), &json!(true)),
            "{change} {which}"
        );
        let told = text(&again(&karyi, &["history", "show", "1"]), 0);
        assert_eq!(told.contains("cannot be undone"), !can_be_undone, "{told}");
        let exit = i32::from(!can_be_undone);
        text(&again(&karyi, &["undo"]), exit);
        let is_back = read(&karyi, "a").as_deref() == Some("one\n");
        assert_eq!(is_back, can_be_undone, "{change} {which}");
    }
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

/// Puts something that is no file in the place of a file of the journal.
fn in_the_way(path: &std::path::Path, kind: &str) {
    let _ = std::fs::remove_file(path);
    match kind {
        "directory" => std::fs::create_dir(path).unwrap(),
        "pipe" => nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRWXU).unwrap(),
        _ => std::os::unix::fs::symlink("/dev/zero", path).unwrap(),
    }
}

#[test]
fn what_is_no_file_in_the_journal_is_told_and_never_waited_for() {
    let edit = |from: &str, to: &str| {
        let pair = format!("<find>{from}</find><replace>{to}</replace>");
        format!("<tools><edit><file src=\"a\">{pair}</file></edit></tools>")
    };
    for (kind, code) in [
        ("directory", "is_directory"),
        ("pipe", "not_a_file"),
        ("link", "symlink_loop"),
    ] {
        let karyi = Karyi::new().file("a", "one\n");
        parsed(&run(&karyi, &edit("one", "two")), 0);
        let journal = state(&karyi);
        let list = journal.join("entries");
        in_the_way(&list, kind);
        in_the_way(&journal.join("transactions/x.json"), kind);
        in_the_way(&journal.join("damage-told"), kind);
        let hint = "hint: karyi keeps a file of its own there: move away what is in its place, and karyi creates it again";
        for args in [
            &["history"][..],
            &["history", "show", "1"],
            &["undo"],
            &["undo", "--dry-run"],
        ] {
            let refused = again(&karyi, args);
            let said = String::from_utf8_lossy(&refused.stderr).into_owned();
            let named = format!("karyi: {code}: {}", list.display());
            assert!(
                said.contains(&named) && said.contains(hint),
                "{kind} {args:?}: {said}"
            );
            assert_eq!(refused.status.code(), Some(2), "{kind} {args:?}: {said}");
        }
        let report = parsed(&run(&karyi, &edit("two", "three")), 0);
        let result = &report["results"][0];
        assert_eq!(result["undo"], "unavailable", "{kind}: {result}");
        assert!(result["warning"].is_string(), "{kind}: {result}");
        assert_eq!(read(&karyi, "a").as_deref(), Some("three\n"), "{kind}");
        // The lock of the list, and those of paths.
        in_the_way(&journal.join("locks/entries"), kind);
        let report = parsed(&run(&karyi, &edit("three", "four")), 0);
        assert_eq!(report["results"][0]["undo"], "unavailable", "{kind}");
    }
}
