//! How the calls of a block depend on each other: time limits, keys, a `cd` that failed, input and job notices.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{Karyi, results, skip};

/// Runs calls in a shell without start-up files; returns the report.
fn report_in(shell: &str, calls: &str) -> Value {
    let karyi = Karyi::new().args(&["--json", "--no-rc", "--shell", shell]);
    karyi.stdin(format!("<tools>{calls}</tools>")).run().json()
}

fn report(calls: &str) -> Value {
    report_in("bash", calls)
}

fn field<'a>(report: &'a Value, name: &str) -> Vec<&'a Value> {
    results(report).iter().map(|result| &result[name]).collect()
}

#[test]
fn a_command_is_handed_over_to_the_key_that_follows() {
    let start = Instant::now();
    let found =
        report("<command>sleep 100; echo no</command><ctrl>c</ctrl><command>echo on</command>");
    assert_eq!(field(&found, "status"), ["running", "ok", "ok"], "{found}");
    assert_eq!(results(&found)[1]["exit_code"], 130);
    let took = start.elapsed();
    assert!(
        took >= Duration::from_secs(10) && took < Duration::from_secs(60),
        "{took:?}"
    );
}

#[test]
fn a_key_that_ended_its_job_did_what_it_was_for() {
    let calls = "<command timeout=\"0.2\">sleep 100</command><ctrl>c</ctrl>\
                 <command timeout=\"0.2\">trap '' INT; while :; do sleep 1; done</command><ctrl end=\"true\">c</ctrl>\
                 <command id=\"b\">sleep 100 &amp;</command><ctrl end=\"true\" job=\"b\">c</ctrl>";
    let found = report(calls);
    assert_eq!(
        field(&found, "status"),
        ["running", "ok", "running", "ok", "ok", "ok"],
        "{found}"
    );
}

#[test]
fn a_time_limit_over_an_hour_is_taken_with_a_warning() {
    let found = report(
        "<command timeout=\"60000\">echo hi</command><command timeout=\"3600\">echo hi</command>",
    );
    let warning = json!(["timeout is in seconds: 60000 are 16.7 hours"]);
    assert_eq!(
        field(&found, "warnings"),
        [&warning, &Value::Null],
        "{found}"
    );
    assert_eq!(field(&found, "status"), ["ok", "ok"]);
}

#[test]
fn relative_paths_after_a_cd_that_failed_are_not_touched() {
    let rest = "<edit><file src=\"a.txt\"><find>one</find><replace>two</replace></file></edit>\
                <read><file src=\"a.txt\"/></read><command cwd=\"d\">pwd</command><command>echo on</command>\
                <read><file src=\"/etc/hostname\"/></read>";
    for shell in ["bash", "zsh", "dash", "ksh", "mksh", "busybox"] {
        if !std::path::Path::new("/usr/bin").join(shell).exists() {
            skip(&format!("no {shell}"));
            continue;
        }
        for change in ["cd nosuch", "cd nosuch; echo on", "cd nosuch && make"] {
            let karyi = Karyi::new().args(&["--json", "--no-rc", "--shell", shell]);
            let calls = format!(
                "<tools><command><![CDATA[{change}]]></command>{rest}<command>cd d</command>\
                 <command cwd=\"..\">pwd</command></tools>"
            );
            let ran = karyi
                .file("a.txt", "one\n")
                .file("d/x", "")
                .stdin(calls)
                .run();
            let found = ran.json();
            let codes = [
                &Value::Null,
                &json!("cd_failed"),
                &json!("cd_failed"),
                &json!("cd_failed"),
                &Value::Null,
                &Value::Null,
                &Value::Null,
                &Value::Null,
            ];
            assert_eq!(field(&found, "code"), codes, "{shell}: {change}: {found}");
            assert_eq!(field(&found, "status")[1], "skipped");
            ran.file("a.txt", "one\n");
        }
    }
}

#[test]
fn a_cd_that_was_caught_skips_nothing() {
    for change in [
        "cd nosuch || cd d",
        "(cd nosuch)",
        "cd nosuch 2>/dev/null || true",
        "cd d",
    ] {
        let karyi = Karyi::new().args(&["--json", "--no-rc"]);
        let calls = format!(
            "<tools><command><![CDATA[{change}]]></command><read><file src=\".\"/></read></tools>"
        );
        let found = karyi.file("d/x", "").stdin(calls).run().json();
        assert_eq!(field(&found, "status")[1], "ok", "{change}: {found}");
    }
}

#[test]
fn a_file_in_a_deleted_directory_is_not_found() {
    let calls = "<command>mkdir gone; cd gone; rmdir ../gone</command>\
                 <edit><file src=\"new.txt\"><find></find><replace>x</replace></file></edit>\
                 <edit><file src=\"sub/new.txt\"><find></find><replace>x</replace></file></edit>\
                 <edit><file src=\"/no/such/new.txt\" delete=\"true\"/></edit>";
    let karyi = Karyi::new().args(&["--json", "--no-rc"]);
    let ran = karyi.stdin(format!("<tools>{calls}</tools>")).run();
    let found = ran.json();
    assert_eq!(
        field(&found, "code")[1..3],
        ["not_found", "not_found"],
        "{found}"
    );
    ran.tree(&[]);
}

#[test]
fn a_line_without_enter_has_a_hint() {
    let ask = "<command>read -p 'sure? ' x; echo \"got $x\"</command>";
    let found = report(&format!(
        "{ask}<input timeout=\"5\">y</input><input>\\n</input>"
    ));
    assert_eq!(
        field(&found, "status"),
        ["awaiting_input", "awaiting_input", "ok"],
        "{found}"
    );
    let hint = results(&found)[1]["hint"].as_str().unwrap_or_default();
    assert!(hint.contains("`\\n`"), "{found}");
    assert_eq!(results(&found)[2]["hint"], Value::Null);
    // A program that reads single keys has what it needs.
    let keys =
        "<command>read -n1 a; read -n1 b; echo $a$b</command><input>y</input><input>z</input>";
    let found = report(keys);
    assert_eq!(field(&found, "hint"), [&Value::Null; 3], "{found}");
    assert_eq!(field(&found, "status")[2], "ok");
}

#[test]
fn enter_is_the_key_where_the_terminal_reads_keys() {
    let read = "dd bs=1 count=2 2>/dev/null | od -An -tx1; stty sane";
    let typed = |modes: &str| {
        let found = report(&format!(
            "<command>stty {modes} -echo; {read}</command><input>y\\n</input>"
        ));
        results(&found)[1]["output"]
            .as_str()
            .unwrap_or_default()
            .trim()
            .to_owned()
    };
    assert_eq!(typed("-icanon -icrnl"), "79 0d");
    assert_eq!(typed("raw"), "79 0d");
    assert_eq!(typed("-icanon"), "79 0a");
    assert_eq!(typed("icanon"), "79 0a");
}

#[test]
fn job_notices_do_not_appear_in_later_outputs() {
    for shell in ["bash", "zsh", "dash", "mksh", "busybox"] {
        if !std::path::Path::new("/usr/bin").join(shell).exists() {
            skip(&format!("no {shell}"));
            continue;
        }
        let calls = "<command>sleep 0.1 &amp;</command><command>sleep 0.4; echo a</command><command>echo b</command>\
                     <command>sleep 60 &amp;</command><command>kill %1 || kill %2; sleep 0.2; echo c</command>";
        let found = report_in(shell, calls);
        let outputs = field(&found, "output");
        assert_eq!(outputs[1..3], ["a\n", "b\n"], "{shell}: {found}");
        assert!(
            outputs[4].as_str().unwrap().ends_with("c\n"),
            "{shell}: {found}"
        );
        assert!(
            !outputs[4].as_str().unwrap().contains("sleep 60"),
            "{shell}: {found}"
        );
    }
    let calls = "<command>sleep 60 &amp;</command><command>jobs; kill %1</command>";
    let found = report(calls);
    let output = results(&found)[1]["output"].as_str().unwrap();
    assert!(output.starts_with("[1]+  Running "), "{found}");
    let found = report(
        "<command>sleep 9 &amp; echo '[1] done building   all'; echo '[1]+  done'; kill $!</command>",
    );
    assert_eq!(
        results(&found)[0]["output"],
        "[1] done building   all\n[1]+  done\n",
        "{found}"
    );
}

#[test]
fn a_program_in_its_own_session_has_the_id_of_its_call() {
    let calls = "<command id=\"first\">setsid sh -c 'touch apart; exec sleep 31' &amp; disown; \
                 until [ -e apart ]; do sleep 0.02; done; echo started</command>\
                 <command id=\"second\">sleep 32 &amp; sleep 0.3; echo two</command><command id=\"third\">true</command>";
    let found = report(calls);
    let jobs: Vec<(&Value, &Value)> = found["jobs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|job| (&job["id"], &job["state"]))
        .collect();
    let killed = json!("killed");
    assert_eq!(
        jobs,
        [(&json!("first"), &killed), (&json!("second"), &killed)],
        "{found}"
    );
}
