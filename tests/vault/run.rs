//! Runs use what is kept and what is given, and show none of it.

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::home::Home;
use crate::harness::{program, wait};

const VALUE: &str = "S3cr3t-T0ken/Val+ue_AbCdEf0123456789xyz";
const OTHER: &str = "0th3r-V4lue-that-no-script-uses";

#[test]
fn every_kept_value_is_masked_whether_used_or_not() {
    let home = Home::new();
    home.set("TOKEN", VALUE, &[]);
    home.set("OTHER", OTHER, &[]);
    let script = format!(
        "<tools><command>printf %s \"$KARYI{{TOKEN}}\" | wc -c; echo {OTHER}</command></tools>"
    );
    for pace in ["--strict", "--stream"] {
        let ran = home.karyi(&["run", "--no-interactive", pace, "-"], &script);
        let ran = ran.exit(0).hides(VALUE).hides(OTHER);
        assert!(ran.stdout.contains("39\n$KARYI{OTHER}\n"), "{}", ran.stdout);
    }
    home.assert_nowhere(VALUE);
}

#[test]
fn a_removed_name_is_undefined() {
    let home = Home::new();
    home.set("TOKEN", VALUE, &[]);
    home.karyi(&["var", "rm", "TOKEN"], "").exit(0);
    home.karyi(&["var", "rm", "TOKEN"], "")
        .exit(1)
        .error("not_found");
    let ran = home
        .script("<tools><command>echo $KARYI{TOKEN}</command></tools>")
        .exit(2);
    assert!(ran.stdout.contains("undefined_variable"), "{}", ran.stdout);
}

#[test]
fn a_running_session_sees_what_is_kept_elsewhere() {
    let home = Home::new();
    home.set("TOKEN", "the-first-value", &[]);
    let script = "<tools><command>touch ready; while [ ! -e go ]; do sleep 0.05; done</command></tools>\n\
         <tools><command>printf %s \"$KARYI{TOKEN}\" | cut -c1-5; printf %s \"$KARYI{LATER}\" | wc -c; \
         echo the-first-value</command></tools>";
    let mut command = home.command(program(), &["run", "--no-interactive", "-c", script]);
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = child.spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while !home.work().join("ready").exists() {
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(20));
    }
    home.set("TOKEN", "2nd--value-of-it", &[]);
    home.set("LATER", "kept-while-it-ran", &[]);
    fs::write(home.work().join("go"), "").unwrap();
    let output = wait(child);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("2nd--\n17\n"), "{text}");
    assert!(!text.contains("the-first-value\n<"), "{text}");
}

#[test]
fn the_vault_stays_closed_inside_a_session() {
    let home = Home::new();
    home.set("TOKEN", VALUE, &[]);
    let karyi = program().display();
    let attempts = [
        "var get TOKEN",
        "var export",
        "var exec TOKEN -- sh -c 'echo $TOKEN'",
        "var rm TOKEN",
        "var rename TOKEN T2",
        "var set TOKEN --stdin",
        "var migrate --to os",
        "run --require-vault -c x",
    ];
    let mut script = String::from("<tools><command><![CDATA[");
    for attempt in attempts {
        for escape in [
            "",
            "env -i HOME=$HOME KARYI_HOME=$KARYI_HOME ",
            "setsid -w env -i KARYI_HOME=$KARYI_HOME ",
        ] {
            script +=
                &format!("echo long-enough-value | {escape}{karyi} {attempt} 2>&1 | cut -c1-23\n");
        }
    }
    let inner = "<tools><command>echo $$KARYI{TOKEN}</command></tools>";
    script += &format!("{karyi} run --no-interactive -c '{inner}' | grep -o undefined_variable\n");
    script += &format!("{karyi} var list | grep -c TOKEN");
    script += "]]></command></tools>";
    let ran = home.script(&script).exit(0).hides(VALUE);
    let refused = ran.stdout.matches("karyi: inside_session: ").count();
    assert_eq!(refused, attempts.len() * 3, "{}", ran.stdout);
    assert!(
        ran.stdout.contains("undefined_variable\n1\n"),
        "{}",
        ran.stdout
    );
}

#[test]
fn names_that_differ_only_in_case_are_masked_and_told() {
    use karyi::vault::store::age::{AgeKey, AgeStore};
    use karyi::vault::store::{Key, Store};
    let home = Home::new();
    home.set("TOKEN", VALUE, &[]);
    // Another program, or a karyi of old, put a second one there.
    let identity = home.identity();
    let key = std::sync::Arc::new(move |_| AgeKey::identity(&identity, None));
    let store = AgeStore::new(home.path().join("karyi/data/vault.age"), key);
    let name = karyi::secret::SecretName::parse("token").unwrap();
    let value = karyi::secret::SecretValue::new(OTHER.into());
    store.set(&Key::of(&name), &value).unwrap();

    let script = format!(
        "<tools><command>printf %s $KARYI{{TOKEN}} | wc -c; echo {OTHER}; echo {VALUE}</command></tools>"
    );
    let ran = home.script(&script).exit(0).hides(OTHER).hides(VALUE);
    assert!(
        ran.stdout.contains("39\n$KARYI{token}\n$KARYI{TOKEN}\n"),
        "{}",
        ran.stdout
    );
    assert!(
        ran.stdout
            .contains("the names TOKEN and token differ only in case"),
        "{}",
        ran.stdout
    );
    let used = home.script("<tools><command>echo $KARYI{token}</command></tools>");
    used.exit(1).error("differ only in case");
    let asked = home.script("<tools><get_value key=\"toKEN\" reason=\"r\"/></tools>");
    asked.exit(1).error("bad_arguments");
    home.karyi(
        &["run", "--no-interactive", "--require-vault", "-"],
        &script,
    )
    .exit(2)
    .error("bad_arguments");
}

#[test]
fn a_list_of_a_hundred_names_opens_no_store() {
    let home = Home::new();
    home.set("NAME_0", VALUE, &[]);
    let index = fs::read_to_string(home.index()).unwrap();
    let mut index: serde_json::Value = serde_json::from_str(&index).unwrap();
    for number in 1..100 {
        index["names"][format!("NAME_{number}")] = index["names"]["NAME_0"].clone();
    }
    // With a passphrase nobody is there to type, the index alone can answer.
    index["store"].as_object_mut().unwrap().remove("identity");
    fs::write(home.index(), index.to_string()).unwrap();
    let start = Instant::now();
    let listed = home.karyi(&["var", "list"], "").exit(0);
    println!("var list of 100 names: {:?}", start.elapsed());
    assert_eq!(
        (listed.stdout.lines().count(), listed.stderr.as_str()),
        (101, "")
    );
}

#[test]
fn a_name_that_is_agreed_to_and_unknown_is_told() {
    let home = Home::new();
    home.set("TOKEN", VALUE, &[]);
    let calls = "<tools><command>:</command></tools>";
    let ran = home
        .karyi(
            &["run", "--allow", "NOPE", "--allow", "TOKEN", "-c", calls],
            "",
        )
        .exit(0);
    let told = "--allow names NOPE, and no secret is called that";
    assert_eq!(ran.stderr.matches(told).count(), 1, "{}", ran.stderr);
    assert!(
        ran.stdout.contains("unknown_secret") && !ran.stderr.contains("TOKEN"),
        "{}",
        ran.stdout
    );
    home.karyi(&["run", "--allow", "token", "-c", calls], "")
        .exit(2)
        .error("bad_policy");
}

#[test]
fn a_value_in_place_of_a_name_is_shown_nowhere() {
    let home = Home::new();
    let value = "Zk9PqW3mRt5YbN7xLc2VdGfH";
    home.set("TOKEN", value, &[]);
    let calls = "<tools><command>:</command></tools>";
    let ran = home.karyi(&["run", "--allow", value, "-c", calls], "");
    let ran = ran.exit(0).hides(value);
    let told = "warning: --allow names $KARYI{TOKEN}, and no secret is called that";
    assert!(ran.stderr.contains(told), "{}", ran.stderr);
}

#[test]
fn a_chosen_shell_that_takes_no_secrets_refuses_them() {
    let home = Home::new();
    home.set("TOKEN", VALUE, &[]);
    let uses = "<tools><command>printf %s $KARYI{TOKEN} | wc -c</command></tools>";
    let args = ["run", "--json", "--shell", "/bin/dash", "-c", uses];
    home.karyi(&args, "").exit(2).error("unsupported_shell");
}

#[test]
fn what_stands_beside_a_refused_call_is_skipped() {
    let home = Home::new();
    let calls = "<tools><command>touch a</command><edit><file src=\"b\"><find></find><replace>x</replace>\
        </file></edit><command>$KARYI{NOPE}</command><command>$KARYI{NEITHER}</command></tools>";
    let report = home
        .karyi(&["run", "--json", "-c", calls], "")
        .exit(2)
        .json();
    let told = |key: &str| {
        let results = report["results"].as_array().unwrap().iter();
        results
            .map(|result| result[key].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(told("status"), ["skipped", "skipped", "refused", "refused"]);
    let undefined = "undefined_variable";
    assert_eq!(
        told("code"),
        ["block_refused", "block_refused", undefined, undefined]
    );
    let messages = told("message");
    assert_eq!(
        messages[0],
        "call 3 was refused, so nothing of its block was run"
    );
    assert!(
        messages[2].contains("NOPE") && messages[2].contains("NEITHER"),
        "{messages:?}"
    );
    assert!(!home.work().join("a").exists() && !home.work().join("b").exists());
}

#[test]
fn a_name_that_a_damaged_vault_may_have_needs_the_user() {
    let home = Home::new();
    home.set("TOKEN", "a-value-of-its-own", &[]);
    let script = "<tools><command>echo $KARYI{TOKEN}</command></tools>";
    std::fs::write(home.path().join("karyi/data/vault.age"), "damaged").unwrap();
    let ran = home.script(script).exit(3);
    assert!(ran.stdout.contains("vault_unavailable"), "{}", ran.stdout);
    assert!(ran.stdout.contains("bad_vault"), "{}", ran.stdout);
}

#[test]
fn a_file_made_with_a_value_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new();
    home.set(
        "TOKEN",
        "a-value-of-its-own",
        &["--write", "--tools", "edit"],
    );
    std::fs::write(home.work().join("old"), "old\n").unwrap();
    let mode = |name: &str| {
        let file = std::fs::metadata(home.work().join(name)).unwrap();
        file.permissions().mode() & 0o777
    };
    let before = mode("old");
    home.script(
        "<tools><edit><file src=\"made\"><find></find><replace>x=$KARYI{TOKEN}</replace></file>\
         <file src=\"plain\"><find></find><replace>x</replace></file>\
         <file src=\"old\"><find>old</find><replace>x=$KARYI{TOKEN}</replace></file></edit></tools>",
    )
    .exit(0);
    assert_eq!(
        (mode("made"), mode("plain"), mode("old")),
        (0o600, before, before)
    );
    let made = std::fs::read_to_string(home.work().join("made")).unwrap();
    assert_eq!(made.trim_end(), "x=a-value-of-its-own");
}

#[test]
fn a_shell_that_comes_after_another_has_no_form_of_a_value() {
    let home = Home::new();
    home.set("TOKEN", VALUE, &[]);
    let script = "<tools><command>t=$KARYI{TOKEN}; export PLAIN=1 RAW=\"$t\" HEADER=\"Basic $(printf 'user:%s' \"$t\" | base64 -w0)\" \
         HEX=$(printf %s \"$t\" | od -An -tx1 | tr -d ' \\n')</command></tools>\n\
         <tools><command>exit 3</command></tools>\n\
         <tools><command>echo \"[$PLAIN|$RAW|$HEADER|$HEX]\"</command></tools>";
    let ran = home.script(script).hides(VALUE);
    assert!(ran.stdout.contains("[1|||]"), "{}", ran.stdout);
    assert!(ran.stdout.contains("export HEADER"), "{}", ran.stdout);
}

#[test]
fn what_is_listed_holds_no_value() {
    let home = Home::new();
    home.set("TOKEN", VALUE, &[]);
    let encoded = "MHRoM3ItVjRsdWUtdGhhdC1uby1zY3JpcHQtdXNlcw==";
    for (flag, text) in [
        ("--note", VALUE),
        ("--note", encoded),
        ("--commands", OTHER),
        ("--dirs", "/0th3r-V4lue-that-no-script-uses"),
    ] {
        let set = ["var", "set", "OTHER", "--stdin", flag, text];
        let ran = home.karyi(&set, OTHER).exit(2).error("bad_arguments");
        ran.hides(VALUE).hides(OTHER);
    }
    let listed = home.karyi(&["var", "list"], "").exit(0).stdout;
    assert!(!listed.contains("OTHER"), "{listed}");
}

/// Only a person who waits at a terminal sees what is held back; a program that reads along has no use for it.
#[test]
fn a_pause_shows_no_start_of_a_value_to_a_program() {
    let home = Home::new();
    let script = "<tools><command>v=$KARYI{E}; printf 'is %s' \"${v%k}\"; sleep 0.4; printf 'k\\nPassword: '; \
         sleep 0.4; echo</command></tools>";
    for format in ["text", "jsonl"] {
        let run = ["run", "--format", format, "--vars-fd", "3", "-c", script];
        let ran = home.karyi_with_fd(&run, b"E\0ab1defgh1jk\0").exit(0);
        assert!(!ran.stdout.contains("ab1d"), "{}", ran.stdout);
        assert!(ran.stdout.contains("$KARYI{E}"), "{}", ran.stdout);
        assert!(ran.stdout.contains("Password: "), "{}", ran.stdout);
    }
}

/// A prompt without the end of its line reaches who reads along while the program still waits.
#[test]
fn a_prompt_is_shown_while_the_program_waits() {
    use std::io::Read as _;

    for format in ["text", "jsonl"] {
        let home = Home::new().env("KARYI_VAR_E", VALUE);
        let fifo = home.path().join("fifo");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap();
        let script = format!(
            "<tools><command>printf 'Password: '; read -r x &lt;'{}'; echo \"got $x\"</command></tools>",
            fifo.display()
        );
        let run = ["run", "--vault", "env", "--format", format, "-c", &script];
        let mut child = home
            .command(program(), &run)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut output = child.stdout.take().unwrap();
        let (mut shown, mut piece) = (String::new(), [0; 4096]);
        while !shown.contains("Password: ") {
            let count = output.read(&mut piece).unwrap();
            assert!(count > 0, "{format}: {shown}");
            shown.push_str(&String::from_utf8_lossy(&piece[..count]));
        }
        fs::write(&fifo, "it\n").unwrap();
        output.read_to_string(&mut shown).unwrap();
        assert!(shown.contains("got it"), "{format}: {shown}");
        assert!(wait(child).status.success());
    }
}

/// `fold` and a terminal know nothing of characters that take several bytes.
#[test]
fn a_value_that_is_folded_within_its_characters_is_masked() {
    let home = Home::new();
    let values = [
        "НашСекретныйПарольДляБазы",
        "秘密のパスワードです東京都港区一二三",
    ];
    for (name, value) in ["ONE", "TWO"].iter().zip(values) {
        home.set(name, value, &[]);
        for width in [1, 5, 7, 10, 11, 20, 31] {
            let script = format!(
                "<tools><command>printf %s $KARYI{{{name}}} | fold -b -w {width}; echo; echo end</command></tools>"
            );
            let shown = home.script(&script).exit(0).stdout;
            assert!(shown.contains("end"), "{shown}");
            assert!(
                shown.contains(&format!("[KARYI:{name}:part]")),
                "{width}: {shown}"
            );
            let is_shown = |character: char| shown.contains(character);
            assert!(!value.chars().any(is_shown), "{width}: {shown}");
        }
    }
}
