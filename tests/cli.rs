//! The program from the outside: what must hold for anyone who pipes a script in.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use crate::harness::{Karyi, results};

#[test]
fn state_is_kept_between_commands() {
    Karyi::new()
        .stdin(
            "<tools><command>export A=1; cd /usr</command><command>echo $A $PWD</command></tools>",
        )
        .stdout_xml(
            r#"<results>
              <result id="1" tool="command" status="ok" cwd="/usr"><output></output></result>
              <result id="2" tool="command" status="ok"><output>1 /usr
</output></result>
            </results>"#,
        )
        .exit(0);
}

#[test]
fn a_prompt_is_answered_in_the_same_block() {
    Karyi::new()
        .stdin(r#"<tools><command>read -p "name? " x; echo hi $x</command><input>Ada\n</input></tools>"#)
        .stdout_xml(
            r#"<results>
              <result id="1" tool="command" status="awaiting_input" echo="on"><output>name? </output></result>
              <result id="2" tool="input" status="ok"><output>Ada
hi Ada
</output></result>
            </results>"#,
        )
        .exit(0);
}

#[test]
fn a_command_outlives_its_timeout_and_ends_by_ctrl_c() {
    Karyi::new()
        .stdin("<tools><command timeout=\"1\">sleep 100</command></tools>\n<tools><ctrl>c</ctrl></tools>")
        .stdout_xml(
            r#"<results>
              <result id="1" tool="command" status="running"><output></output></result>
              <result id="2" tool="ctrl" status="ok" exit_code="130"><output>^C</output></result>
            </results>"#,
        )
        .exit(0);
}

#[test]
fn the_time_limit_is_kept() {
    let ran = Karyi::new()
        .arg("--json")
        .stdin("<tools><command timeout=\"1\">sleep 100</command></tools>")
        .run();
    let text = String::from_utf8_lossy(ran.raw_stdout()).into_owned();
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    let took = results(&report)[0]["duration_ms"].as_u64().unwrap();
    assert!((1000..3000).contains(&took), "{took} ms");
    let job = &report["jobs"][0];
    let age = job["age_ms"].as_u64().unwrap();
    assert!((1000..3000).contains(&age), "{age} ms");
    assert_eq!(
        report["jobs"],
        serde_json::json!([{
            "id": "1", "state": "killed", "signal": "HUP", "age_ms": age, "command": "sleep 100"
        }])
    );
}

#[test]
fn each_call_of_a_stream_starts_when_it_is_read() {
    let karyi = Karyi::new().arg("--stream").arg("--format").arg("jsonl");
    let mut command = karyi.command();
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut until = |event: &str| -> serde_json::Value {
        loop {
            let line = lines.next().unwrap().unwrap();
            let value: serde_json::Value = serde_json::from_str(&line).unwrap();
            if value["event"] == event {
                return value;
            }
        }
    };
    // The end of the first call is decided by the start of the second.
    stdin
        .write_all(b"<tools><command>echo one</command><command>echo")
        .unwrap();
    assert_eq!(until("finished")["output"], "one\n");
    stdin.write_all(b" two</command></tools>\n").unwrap();
    assert_eq!(until("finished")["output"], "two\n");
    drop(stdin);
    assert_eq!(until("report")["status"], "ok");
    assert!(child.wait().unwrap().success());
}

#[test]
fn several_scripts_share_one_session() {
    Karyi::new()
        .file("a.xml", "<tools><command>X=7</command></tools>")
        .file("b.xml", "<tools><command>echo $X</command></tools>")
        .arg("a.xml")
        .arg("b.xml")
        .stdout_xml(
            r#"<results>
              <result id="1" tool="command" status="ok"><output></output></result>
            </results>
            <results>
              <result id="1" tool="command" status="ok"><output>7
</output></result>
            </results>"#,
        )
        .exit(0);
}

#[test]
fn piped_input_needs_no_command_word() {
    Karyi::with_args(&[])
        .stdin("Sure!\n<tools><command>echo piped</command></tools>\nDone.")
        .stdout_xml(
            r#"<results>
              <result id="1" tool="command" status="ok"><output>piped
</output></result>
            </results>"#,
        )
        .exit(0);
}

#[test]
fn a_message_without_a_block_is_fine() {
    let expected = r#"<results>
  <diagnostics><diagnostic severity="warning" code="no-block" offset="0" line="1" column="1"><message>nothing ran: the message has no &lt;tools&gt; block</message><hint><![CDATA[to run something, write <tools> on a line of its own, then the calls, then </tools>]]></hint></diagnostic></diagnostics>
  <summary status="ok"/>
</results>"#;
    let ran = Karyi::new().stdin("I have nothing to run.");
    ran.stdout_xml(expected).exit(0);
}

#[test]
fn a_block_that_was_ignored_is_not() {
    let report = Karyi::new()
        .arg("--json")
        .stdin("Sure: <tools><command>ls</command></tools>")
        .run()
        .exit(2)
        .json();
    assert_eq!(report["status"], "refused");
    assert_eq!(report["diagnostics"][0]["code"], "ignored-block");
    assert_eq!(report["diagnostics"][0]["column"], 7);
}

#[test]
fn a_dry_run_lists_and_does_nothing() {
    let report = Karyi::new()
        .arg("--dry-run")
        .arg("--json")
        .stdin("<tools><command>touch made</command><read><file src=\"x\"/></read></tools>")
        .run()
        .exit(0)
        .tree(&[])
        .json();
    let listed: Vec<_> = results(&report)
        .iter()
        .map(|r| (&r["tool"], &r["title"], &r["code"]))
        .collect();
    let expected = serde_json::json!([
        ["command", "touch made", "dry_run"],
        ["read", "x", "dry_run"]
    ]);
    assert_eq!(serde_json::json!(listed), expected);
}

#[test]
fn options_reach_the_session() {
    Karyi::new()
        .arg("--env")
        .arg("COLOUR=blue green")
        .arg("--cwd")
        .arg("/usr")
        .arg("--timeout")
        .arg("50")
        .arg("-c")
        .arg("<tools><command>echo $COLOUR; pwd</command></tools>")
        .stdout_xml(
            r#"<results>
              <result id="1" tool="command" status="ok"><output>blue green
/usr
</output></result>
            </results>"#,
        )
        .exit(0);
}

#[test]
fn a_root_confines_files() {
    let report = Karyi::new()
        .file("inside.txt", "in")
        .arg("--root")
        .arg(".")
        .arg("--json")
        .stdin("<tools><read><file src=\"inside.txt\"/></read><read><file src=\"/etc/passwd\"/></read></tools>")
        .run()
        .exit(1)
        .json();
    assert_eq!(results(&report)[0]["status"], "ok");
    assert_eq!(results(&report)[1]["code"], "outside_root");
}

#[test]
fn an_unanswered_question_is_status_3() {
    Karyi::new()
        .stdin("<tools><command>read -s -p 'password: ' x</command></tools>")
        .stdout_xml(
            r#"<results>
              <result id="1" tool="command" status="awaiting_input" echo="off"><output>password: </output></result>
              <jobs><job id="1" state="killed" signal="HUP" age_ms="0"><command>read -s -p 'password: ' x</command><last_line>password:</last_line></job></jobs>
              <summary status="needs_input"/>
            </results>"#,
        )
        .exit(3);
}

#[test]
fn a_person_is_told_how_to_answer() {
    let text = |script: &str| {
        let karyi = Karyi::new().args(&["--format", "text"]).stdin(script);
        karyi.run().stdout()
    };
    let asked = "<tools><command>read -p 'name? ' x</command></tools>";
    let advice = "put <input>ANSWER</input> after it";
    assert!(text(asked).contains(advice), "{}", text(asked));
    let answered = asked.replace("</tools>", "<input>Ada\n</input></tools>");
    assert!(!text(&answered).contains(advice), "{}", text(&answered));
}

#[test]
fn stop_on_error_skips_the_rest() {
    let report = Karyi::new()
        .arg("--json")
        .stdin("<tools on_error=\"stop\"><command>true</command><command>false</command><command>touch x</command></tools>")
        .run()
        .exit(1)
        .tree(&[])
        .json();
    let statuses: Vec<_> = results(&report)
        .iter()
        .map(|r| r["status"].as_str().unwrap())
        .collect();
    assert_eq!(statuses, ["ok", "failed", "skipped"]);
    assert_eq!(results(&report)[2]["code"], "earlier_failure");
}

#[test]
fn help_is_wrapped() {
    for page in ["run", "var", "serve", "mcp"] {
        let help = Karyi::with_args(&[page, "--help"]).run().exit(0);
        let text = help.stdout();
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(100), "{page}: {widest:?}");
    }
}

#[test]
fn help_lists_what_is_built() {
    let ran = Karyi::with_args(&["--help"]).run().exit(0);
    for word in [
        "run",
        "tools",
        "var",
        "history",
        "undo",
        "serve",
        "ledger",
        "mcp",
        "completions",
        "130",
    ] {
        assert!(ran.stdout().contains(word), "{word}");
    }
    assert!(!ran.stdout().contains("__bootstrap"));
}

#[test]
fn the_version_is_told() {
    let expected = format!("karyi {}\n", env!("CARGO_PKG_VERSION"));
    Karyi::with_args(&["--version"])
        .run()
        .stdout_text(&expected)
        .exit(0);
}

#[test]
fn completions_name_the_options() {
    for shell in ["bash", "zsh", "fish"] {
        let ran = Karyi::with_args(&["completions", shell]).run().exit(0);
        assert!(ran.stdout().contains("dry-run"), "{shell}");
    }
}

#[test]
fn a_manual_page_has_every_section_of_the_help() {
    let page = Karyi::with_args(&["man"]).run().exit(0).stdout();
    for word in [
        ".TH karyi",
        "KARYI_SHELL",
        "Exit status",
        "karyi run answer.txt",
    ] {
        assert!(page.contains(word), "{word}: {page}");
    }
    let page = Karyi::with_args(&["man", "undo"]).run().exit(0).stdout();
    assert!(
        page.contains(".TH karyi-undo") && page.contains("last"),
        "{page}"
    );
    Karyi::with_args(&["man", "nope"]).run().exit(2);
}

#[test]
fn a_file_in_place_of_a_command_is_meant_to_run() {
    Karyi::with_args(&["my answer.txt"])
        .file("my answer.txt", "")
        .run()
        .stderr("karyi: usage: expected a command, found a file\nhint: did you mean `karyi run 'my answer.txt'`?\n")
        .exit(2);
    let near = Karyi::with_args(&["histroy"]).run().exit(2);
    assert!(near.stderr_text().contains("'history'"));
}

/// Runs the program by a line of `sh`, in which `"$@"` stands for it and its arguments.
fn by_shell(line: &str, karyi: &Karyi) -> std::process::Output {
    let own = karyi.command();
    let mut command = std::process::Command::new("/bin/sh");
    command.args(["-c", line, "sh"]).arg(own.get_program());
    command.args(own.get_args()).stdin(Stdio::null());
    for (name, value) in own.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    let directory = own.get_current_dir().unwrap();
    command.env_remove("KARYI_HOME").current_dir(directory);
    command.output().unwrap()
}

#[test]
fn a_closed_standard_output_is_an_error_before_anything_runs() {
    let karyi = Karyi::new().args(&["-c", "<tools><command>touch made</command></tools>"]);
    let output = by_shell("exec \"$@\" >&-", &karyi);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("standard output is closed"), "{said}");
    assert!(!karyi.work().join("made").exists());
    let output = by_shell("exec \"$@\" >&-", &Karyi::with_args(&["tools"]));
    assert_eq!(output.status.code(), Some(2));
    // It is there, and nobody wants what it gets.
    let output = by_shell("exec \"$@\" >/dev/null", &karyi);
    assert_eq!(output.status.code(), Some(0));
    assert!(karyi.work().join("made").exists());
}

#[test]
fn a_directory_that_is_gone_has_a_report() {
    let karyi = Karyi::new().args(&["-c", "<tools><command>echo a</command></tools>"]);
    let gone = "mkdir gone && cd gone && rmdir ../gone && exec \"$@\"";
    let output = by_shell(gone, &karyi);
    let report = String::from_utf8(output.stdout).unwrap();
    assert_eq!(
        report,
        "<results>\n  <summary status=\"refused\"/>\n</results>\n"
    );
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("the current directory"), "{said}");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn the_log_has_messages_and_results_and_is_private() {
    let karyi = Karyi::with_args(&["run", "--log", "karyi.log", "--json"]);
    let log = karyi.work().join("karyi.log");
    let mut command = karyi.command();
    let script =
        "<tools><command>echo out; exit 3</command><read><file src=\"gone\"/></read></tools>";
    command.args(["-c", script]);
    for _ in 0..2 {
        command
            .stdout(std::process::Stdio::null())
            .status()
            .unwrap();
    }
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&log).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    let text = std::fs::read_to_string(&log).unwrap();
    let start = regex::Regex::new(r"^20\d\d-\d\d-\d\dT[0-9:.]+Z \d+ ").unwrap();
    let took = regex::Regex::new(r"\d+ ms").unwrap();
    let lines: Vec<String> = text
        .lines()
        .map(|line| took.replace(&start.replace(line, ""), "N ms").into_owned())
        .collect();
    let started = format!("karyi {} started", env!("CARGO_PKG_VERSION"));
    let once = [
        &*started,
        "call 1: command failed in N ms",
        "call 2: read error not_found in N ms",
    ];
    assert_eq!(lines, [once, once].concat());
    // A message goes to standard error too.
    let ran = Karyi::with_args(&["--log", "l", "history"]).run().exit(0);
    let said = "karyi has not changed any file yet";
    assert_eq!(ran.stderr_text(), format!("karyi: {said}\n"));
    let ran = Karyi::with_args(&["--log", "no/l", "history"])
        .run()
        .exit(2);
    assert!(
        ran.stderr_text()
            .starts_with("karyi: opening the log no/l: "),
        "{}",
        ran.stderr_text()
    );
}

/// Paragraphs fill the lines of the terminal, whatever its width.
#[test]
fn help_breaks_no_sentence_before_the_end_of_a_line() {
    for words in [
        "run", "undo", "history", "call", "var", "var exec", "mcp", "doctor", "parse",
    ] {
        let mut arguments: Vec<&str> = words.split(' ').collect();
        arguments.push("--help");
        let help = Karyi::with_args(&arguments).run().exit(0).stdout();
        let lines: Vec<&str> = help.lines().collect();
        for pair in lines.windows(2) {
            let [line, next] = pair else { continue };
            let is_text = |line: &str| line.starts_with(|c: char| c.is_alphabetic());
            let first = next.split(' ').next().unwrap_or_default();
            let is_short = line.len() + first.len() < 99;
            let is_broken = is_text(line) && is_text(next) && is_short;
            assert!(!is_broken, "{words}: {line:?} and {next:?}");
        }
    }
}
