//! Changes of files that hold values of secrets.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::harness::{Karyi, program};
use crate::vault::home::{Home, Ran};

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

/// Without a key a file with a value in any form is not kept: a Secret of Kubernetes holds base64.
#[test]
fn a_file_with_an_encoded_value_is_not_kept_in_clear() {
    let makers = [
        "printf %s $KARYI{K} | base64 -w0",
        "printf 'user:%s' $KARYI{K} | base64 -w0",
        "printf %s $KARYI{K} | xxd -p | tr -d '\\n'",
        "printf %s $KARYI{K} | cut -c1-14",
    ];
    let mut script = String::from("<tools>");
    for (at, maker) in makers.iter().enumerate() {
        script.push_str(&format!(
            "<command>printf 'a: %s\\nx: 1\\n' \"$({maker})\" > f{at}</command>\
             <edit><file src=\"f{at}\"><find>x: 1</find><replace>x: 2</replace></file></edit>"
        ));
    }
    script.push_str("</tools>");
    let args = [
        "run",
        "--no-interactive",
        "--no-rc",
        "--json",
        "--vault",
        "env",
        "-",
    ];
    let karyi = Karyi::with_args(&args)
        .env("KARYI_VAR_K", VALUE)
        .stdin(&script);
    let contents = karyi
        .work()
        .join("../home/.local/state/karyi/journal/contents");
    let ran = karyi.run();
    let report = ran.json();
    let results = report["results"].as_array().unwrap();
    let undo: Vec<&Value> = results
        .iter()
        .skip(1)
        .step_by(2)
        .map(|r| &r["undo"])
        .collect();
    assert_eq!(undo, vec!["unavailable"; makers.len()], "{report}");
    let kept = std::fs::read_dir(contents).map_or(0, Iterator::count);
    assert_eq!(kept, 0, "{report}");
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

const PASSPHRASE: &str = "passphrase of the vault (hidden): ";

/// A home with a passphrase and a change that needs it to be shown.
fn locked_with_change() -> Home {
    let home = Home::locked(VALUE);
    std::fs::write(home.work().join("t"), OLD_TEXT).unwrap();
    let script = "<tools><edit><file src=\"t\"><find>none</find><replace>one</replace></file></edit></tools>";
    let run = ["run", "--no-interactive", "--age-passphrase-fd", "3", "-c"];
    home.karyi_with_fd(&[&run[..], &[script]].concat(), b"pass-1")
        .exit(0);
    home
}

const SHOWING: [&[&str]; 3] = [&["undo"], &["undo", "--dry-run"], &["history", "show", "1"]];

#[test]
fn a_question_for_the_passphrase_ends_as_everywhere() {
    let home = locked_with_change();
    let start = |args: &[&str]| {
        let karyi = Karyi::with_args(args).env("KARYI_HOME", home.path().join("karyi"));
        let mut terminal = karyi.on_terminal();
        terminal.expect(PASSPHRASE);
        terminal
    };
    for args in SHOWING {
        for (key, code) in [("\x03", 130), ("\x1b", 1)] {
            let mut terminal = start(args);
            terminal.keys(key);
            assert_eq!(terminal.echo_at_end(), (true, code), "{args:?} {key:?}");
        }
        let terminal = start(args);
        kill(Pid::from_raw(terminal.pid()), Signal::SIGTERM).unwrap();
        assert_eq!(terminal.echo_at_end(), (true, 143), "{args:?}");
    }
    assert_eq!(held(&home), "token=one\nend\n");
}

#[test]
fn an_empty_passphrase_is_wrong_usage_whatever_is_there_to_show() {
    let home = Home::new();
    for args in SHOWING {
        let args = [args, &["--age-passphrase-fd", "3"]].concat();
        home.karyi_with_fd(&args, b"").exit(2).error("bad_value");
    }
}
