//! The diffs of the history, given to other programs.

use serde_json::Value;

use crate::harness::{Karyi, skip};

use super::{again, parsed, read, run, text};

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
