use std::time::{Duration, Instant};

use serde_json::json;

use super::{karyi, run, run_in};

fn bash(script: &str) -> String {
    format!("<bash><cmd>{script}</cmd></bash>")
}

#[test]
fn each_call_has_a_bash_of_its_own() {
    let found = run(&[
        "<command>cd /usr; x=1; f() { echo f; }</command>".to_owned(),
        bash("pwd; echo \"[$x]\"; y=2; cd /; printf err &gt;&amp;2; exit 3"),
        bash("pwd; echo \"[$y]\""),
        "<bash cwd=\"file_state_dir\"><cmd>pwd; ls FILE_STATE_DIR/</cmd></bash>".to_owned(),
        "<bash cwd=\"none\"><cmd>pwd</cmd></bash>".to_owned(),
    ]
    .concat());
    assert_eq!(found[1]["output"], "/usr\n[]\nerr");
    assert_eq!(
        (&found[1]["status"], &found[1]["exit_code"]),
        (&json!("failed"), &json!(3))
    );
    assert_eq!(found[2]["output"], "/usr\n[]\n");
    let place = found[3]["output"].as_str().unwrap();
    assert!(
        place.ends_with("/.local/share/karyi-assistant\n"),
        "{place}"
    );
    assert_eq!(found[4]["message"], "chdir none: no such directory");
}

#[test]
fn at_its_limit_everything_of_a_call_ends() {
    let since = Instant::now();
    let found = run(
        "<bash timeout_seconds=\"1\"><cmd>echo begun; sleep 77.5; echo done</cmd></bash>\
         <command>pgrep -f 'sleep 77[.]5' || echo none</command>",
    );
    assert_eq!(found[0]["message"], "bash timed out after 1s");
    assert_eq!(
        (&found[0]["status"], &found[0]["code"]),
        (&json!("killed"), &json!("timeout"))
    );
    assert_eq!(
        (&found[0]["timed_out"], &found[0]["output"]),
        (&json!(true), &json!("begun\n"))
    );
    assert!(
        found[0]["duration_ms"].as_u64().unwrap() < 1500,
        "{}",
        found[0]
    );
    assert_eq!(found[1]["output"], "none\n");
    let found = run("<bash timeout_seconds=\"0\"><cmd>true</cmd></bash>");
    assert_eq!(found[0]["code"], "bad_arguments");
    assert!(since.elapsed() < Duration::from_secs(60));
}

#[test]
fn a_background_program_neither_delays_the_result_nor_outlives_it() {
    let found = run(&(bash("sleep 78.5 &amp; echo started")
        + "<command>pgrep -f 'sleep 78[.]5' || echo none</command>"));
    assert_eq!(found[0]["output"], "started\n");
    assert!(
        found[0]["duration_ms"].as_u64().unwrap() < 1500,
        "{}",
        found[0]
    );
    assert_eq!(found[1]["output"], "none\n");
}

#[test]
fn a_program_that_waits_for_input_is_ended() {
    let found = run(&(bash("echo name?; read name; echo \"hi $name\"") + &bash("cat; echo no")));
    for result in &found {
        assert_eq!(
            (&result["status"], &result["code"]),
            (&json!("killed"), &json!("waits_for_input"))
        );
        assert!(
            result["hint"].as_str().unwrap().contains("<command>"),
            "{result}"
        );
    }
    assert_eq!(found[0]["output"], "name?\n");
}

#[test]
fn settings_deny_paths_and_words() {
    let settings =
        "[tools.bash]\ndeny_paths = [\"config.yaml\", \"a/b.key\"]\ndeny_tokens = [\"curl\"]\n";
    let denied = [
        (
            "cat ./config.yaml",
            "path \"config.yaml\" (configure via tools.bash.deny_paths)",
        ),
        (
            "FOO=config.yaml",
            "path \"config.yaml\" (configure via tools.bash.deny_paths)",
        ),
        (
            "cat x/b.key",
            "path \"b.key\" (configure via tools.bash.deny_paths)",
        ),
        (
            "/usr/bin/CURL x",
            "token \"curl\" (configure via tools.bash.deny_tokens)",
        ),
    ];
    let allowed = [
        "echo config.yamlx myconfig.yaml",
        "echo libcurl curl-config",
    ];
    let calls: String = denied.iter().map(|(script, _)| bash(script)).collect();
    let calls = calls + &allowed.map(bash).concat();
    let karyi = karyi().file("../home/.config/karyi/config.toml", settings);
    let found = run_in(karyi, &calls);
    for ((script, expected), result) in denied.iter().zip(&found) {
        let message = format!("bash command references denied {expected}");
        assert_eq!(result["message"], json!(message), "{script}");
    }
    assert_eq!(found[4]["output"], "config.yamlx myconfig.yaml\n");
    assert_eq!(found[5]["output"], "libcurl curl-config\n");
}

#[test]
fn a_secret_is_used_and_masked_as_in_a_command() {
    let karyi = karyi()
        .args(&["--vault", "env"])
        .env("KARYI_VAR_TOKEN", "hunter2-hunter2");
    let found = run_in(
        karyi,
        &(bash("test \"$(echo -n $KARYI{TOKEN} | wc -c)\" = 15 &amp;&amp; echo $KARYI{TOKEN}")
            + "<write_file path=\"t\"><content>$KARYI{TOKEN}</content></write_file>"
            + "<read_file path=\"file_cache_dir/t\"/>"),
    );
    assert_eq!(found[0]["output"], "$KARYI{TOKEN}\n");
    assert_eq!(found[1]["bytes"], 15);
    assert_eq!(found[2]["text"], "$KARYI{TOKEN}");
}

#[test]
fn output_is_limited_from_both_ends() {
    let karyi = karyi().file(
        "../home/.config/karyi/config.toml",
        "[tools.bash]\nmax_output_bytes = 20\n",
    );
    let found = run_in(karyi, &bash("seq 1000"));
    let output = found[0]["output"].as_str().unwrap();
    assert!(
        output.starts_with("1\n2\n") && output.ends_with("\n1000\n"),
        "{output}"
    );
    assert!(
        found[0]["omitted_bytes"].as_u64().unwrap() > 3000,
        "{}",
        found[0]
    );
}

#[test]
fn an_interrupted_script_ends_and_its_outcome_is_unknown() {
    let karyi = karyi().arg("-c").arg(
        "<tools><bash><cmd>echo go &gt; fifo; sleep 79.5</cmd></bash><bash><cmd>true</cmd></bash></tools>",
    );
    let fifo = karyi.work().join("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let mut command = karyi.command();
    let child = command
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    assert_eq!(std::fs::read_to_string(&fifo).unwrap(), "go\n");
    let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
    let output = crate::harness::wait(child);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let found = crate::harness::results(&report);
    assert_eq!(
        (&found[0]["code"], &found[0]["outcome"]),
        (&json!("cancelled"), &json!("unknown"))
    );
    assert_eq!(found[1]["outcome"], json!(null), "{report}");
    let left = std::process::Command::new("pgrep")
        .args(["-f", "sleep 79[.]5"])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&left.stdout), "");
}

#[test]
fn errors_and_traps_end_a_script_as_they_end_any() {
    let scripts = [
        (
            ": \"${DIR:?not set}\"\necho danger",
            "bash: DIR: not set\n",
            1,
        ),
        (
            "set -u\nf() { echo \"$NO\"; echo on; }\nf\necho danger",
            "bash: NO: unbound variable\n",
            1,
        ),
        (
            "trap \"echo bye; exit 7\" EXIT; echo work",
            "work\nbye\n",
            7,
        ),
        ("set -e; false; echo danger", "", 1),
        ("exec echo a; echo danger", "a\n", 0),
        ("exit 5", "", 5),
    ];
    let calls: String = scripts.iter().map(|(script, ..)| bash(script)).collect();
    for ((script, output, code), result) in scripts.iter().zip(run(&calls)) {
        assert_eq!(
            (&result["output"], &result["exit_code"]),
            (&json!(output), &json!(code)),
            "{script}"
        );
    }
    let slow = "<bash timeout_seconds=\"0.5\"><cmd>trap \"sleep 60\" EXIT; echo a</cmd></bash>";
    let found = run(slow)[0].clone();
    assert_eq!(
        (&found["code"], &found["output"]),
        (&json!("timeout"), &json!("a\n")),
        "{found}"
    );
}
