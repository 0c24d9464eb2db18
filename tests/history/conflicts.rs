//! Files that are not what karyi wrote, and changes in the way of an undo.

use serde_json::json;

use crate::harness::Karyi;

use super::{again, parsed, place, read, run, text};

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
         the result of undo on the current content:\n     1 - three\n     1 + one\n"
    );
    assert_eq!(text(&output, 1), expected);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let first =
        format!("karyi: undo_conflict: {path} changed since in line 1; nothing was undone\n");
    assert!(told.starts_with(&first), "{told}");
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
                "conflict_lines": "1",
                "changed_since": "@@ -1 +1 @@\n-two\n+three\n",
                "would_restore": "@@ -1 +1 @@\n-three\n+one\n",
            }])
        )
    );
    let files = ["a", "b"].map(|name| read(&karyi, name).unwrap());
    assert_eq!(files, ["two\n", "three\n"]);
}

/// What else changed is kept, with its line breaks and without a last one.
#[test]
fn changes_since_are_kept() {
    let karyi = Karyi::new().file("a", "one\r\ntwo\r\nthree\r\nfour");
    let pair = "<find>two</find><replace>2</replace>";
    let script = format!("<tools><edit><file src=\"a\">{pair}</file></edit></tools>");
    text(&run(&karyi, &script), 0);
    let now = "zero\r\none\r\n2\r\nthree\r\n4";
    std::fs::write(karyi.work().join("a"), now).unwrap();
    let told = text(&again(&karyi, &["undo", "--dry-run"]), 0);
    assert!(
        told.contains("- 2")
            && told.contains("what changed there since is kept\nwould undo change 1"),
        "{told}"
    );
    assert_eq!(read(&karyi, "a").as_deref(), Some(now));
    let value = parsed(&again(&karyi, &["undo", "--json"]), 0);
    assert_eq!(
        value["files"][0]["note"],
        "what changed there since is kept"
    );
    let diff = value["files"][0]["diff"].as_str().unwrap();
    let changed = diff.lines().filter(|line| line.starts_with(['-', '+']));
    assert_eq!(changed.collect::<Vec<_>>(), ["-2", "+two"], "{diff}");
    let merged = "zero\r\none\r\ntwo\r\nthree\r\n4";
    assert_eq!(read(&karyi, "a").as_deref(), Some(merged));
}

/// Every part of a conflict says something, also where no lines differ that could stand below it.
#[test]
fn a_conflict_has_no_heading_without_lines() {
    let pair = "<find>one</find><replace>two</replace>";
    let edit = format!("<file src=\"a\">{pair}</file>");
    let make =
        |text: &str| format!("<file src=\"new\"><find></find><replace>{text}</replace></file>");
    let delete = "<file src=\"a\" delete=\"true\"/>";
    let gone = "karyi wrote it, and it no longer exists";
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
        ("new", &make("<![CDATA[x\n]]>"), remove, format!("{gone}:\n     1 - x\nundo would remove it, which has already happened\n")),
        ("new", &make(""), remove, format!("{gone}\nundo would remove it, which has already happened\n")),
        ("new", &make("<![CDATA[x\n]]>"), directory, "karyi wrote it, and there is a directory now:\n     1 - x\nundo would remove it\n".into()),
        ("new", &make("<![CDATA[x\n]]>"), &write(""), "what changed since karyi wrote it:\n     1 - x\nundo would remove it\n".into()),
        ("a", &edit, &write("one\n"), "what changed since karyi wrote it:\n     1 - two\n     1 + one\nit already has the content that undo would restore\n".into()),
        ("a", delete, &write(""), "karyi removed it, and it exists again\nthe result of undo on the current content:\n     1 + one\n".into()),
        ("a", &edit, &utf16, "what changed since karyi wrote it: no visible difference, only the encoding or the value of a secret\n\
            the result of undo on the current content:\n     1 - two\n     1 + one\n".into()),
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
    let expected = "2 changes fewer than requested: there are no more to undo";
    assert!(short.status.success() && said.contains(expected), "{said}");
    assert_eq!(read(&karyi, "a").as_deref(), Some("one\n"));
}

#[test]
fn files_that_are_as_undo_would_make_them_leave_nothing_to_do() {
    let karyi = Karyi::new().file("a", "one\n");
    let script =
        "<tools><edit><file src=\"a\"><find>one</find><replace>two</replace></file></edit></tools>";
    text(&run(&karyi, script), 0);
    std::fs::write(karyi.work().join("a"), "one\n").unwrap();
    let told = again(&karyi, &["undo"]).stderr;
    let told = String::from_utf8_lossy(&told).into_owned();
    let hint = "hint: the files are already as undo would make them, so nothing is left to undo\n";
    assert!(told.ends_with(hint), "{told}");
}
