//! The four shapes of a report, compared as a whole.

use serde_json::{Value, json};

use crate::harness::Karyi;

const SCRIPT: &str = "<tools>\n<command>printf 'a<b\\n'; exit_code() { return 3; }; exit_code</command>\n\
    <read><file src=\"f.txt\" lines=\"2-3\"/></read>\n<read><file src=\"missing\"/></read>\n</tools>";

fn karyi(format: &str) -> Karyi {
    Karyi::new()
        .file("f.txt", "one\ntwo\nthree\nfour\n")
        .arg("--format")
        .arg(format)
        .stdin(SCRIPT)
}

#[test]
fn xml() {
    karyi("xml")
        .stdout_xml(
            r#"<results>
              <result id="1" tool="command" status="failed" exit_code="3"><output>a&lt;b
</output></result>
              <result id="2" tool="read" status="ok"><files><file src="f.txt" kind="text" bytes="19" first_line="2" total_lines="4"><output>two
three
</output></file></files></result>
              <result id="3" tool="read" status="error" code="not_found"><message>missing: No such file or directory (os error 2)</message><hint>check the path; list its directory with `read`</hint></result>
              <summary status="failed"/>
            </results>"#,
        )
        .exit(1);
}

fn expected_results() -> Value {
    json!([
        {"id": "1", "tool": "command", "status": "failed", "exit_code": 3, "cwd": "ROOT/work", "duration_ms": 0,
         "output": "a<b\n"},
        {"id": "2", "tool": "read", "status": "ok",
         "files": [{"src": "f.txt", "kind": "text", "bytes": 19, "first_line": 2, "total_lines": 4, "output": "two\nthree\n"}],
         "duration_ms": 0},
        {"id": "3", "tool": "read", "status": "error", "code": "not_found",
         "message": "missing: No such file or directory (os error 2)",
         "hint": "check the path; list its directory with `read`", "duration_ms": 0},
    ])
}

#[test]
fn json_is_one_line() {
    let ran = karyi("json").run().exit(1);
    assert_eq!(ran.stdout().matches('\n').count(), 1);
    assert_eq!(
        ran.json(),
        json!({"results": expected_results(), "diagnostics": [], "status": "failed", "shell": "bash"})
    );
}

#[test]
fn json_lines_are_events() {
    let ran = karyi("jsonl").run().exit(1);
    let events: Vec<Value> = ran
        .stdout()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let first: Vec<_> = events
        .iter()
        .filter(|e| e["id"] == "1")
        .map(|e| e["event"].as_str().unwrap())
        .collect();
    assert_eq!(first, ["started", "output", "finished"]);
    let mut finished: Vec<Value> = events
        .iter()
        .filter(|e| e["event"] == "finished")
        .cloned()
        .collect();
    finished.sort_by_key(|e| e["id"].as_str().map(str::to_owned));
    for event in &mut finished {
        event.as_object_mut().unwrap().remove("event");
    }
    assert_eq!(Value::Array(finished), expected_results());
    let report = json!({"event": "report", "calls": 3, "diagnostics": [], "status": "failed", "shell": "bash"});
    assert_eq!(events.last(), Some(&report));
}

#[test]
fn text_is_plain_without_a_terminal() {
    karyi("text")
        .run()
        .stdout_text(
            "$ printf 'a<b\\n'; exit_code() { return 3; }; exit_code\n\
             a<b\n\
             exit status 3\n\
             > read f.txt (lines 2-3 of 4)\n\
             > read missing\n\
             error[not_found]: missing: No such file or directory (os error 2)\n  \
             hint: check the path; list its directory with `read`\n\
             2 of 3 calls failed\n",
        )
        .exit(1);
}

#[test]
fn colours_respect_no_color() {
    let script = "<tools><command>echo hi</command></tools>";
    let run = |karyi: Karyi| {
        karyi
            .file("a.xml", script)
            .arg("a.xml")
            .on_terminal()
            .end()
            .0
    };
    assert!(run(Karyi::with_args(&["run"])).contains("\x1b[1;36m$ echo hi\x1b[0m"));
    let plain = run(Karyi::with_args(&["run"]).env("NO_COLOR", "1"));
    assert!(
        plain.contains("$ echo hi") && !plain.contains("\x1b[1"),
        "{plain:?}"
    );
}

#[test]
fn a_long_call_shows_the_time() {
    let script = "<tools><command>read -r x &lt; gate; echo through</command></tools>";
    let karyi = Karyi::with_args(&["run", "a.xml"]).file("a.xml", script);
    let gate = karyi.work().join("gate");
    nix::unistd::mkfifo(&gate, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let mut terminal = karyi.on_terminal();
    terminal.expect("0 s  read -r x");
    std::fs::write(&gate, "go\n").unwrap();
    let (screen, status) = terminal.end();
    assert!(screen.contains("through"), "{screen:?}");
    assert_eq!(status, 0);
}

#[test]
fn a_diagnostic_has_its_caret() {
    Karyi::new()
        .arg("--format")
        .arg("text")
        .stdin("<tools>\n  <read><file/></read>\n</tools>")
        .run()
        .stdout_text(
            "error[missing-attribute]: <file> needs the attribute `src`\n  \
             --> 2:9\n   \
             |\n \
             2 |   <read><file/></read>\n   \
             |         ^^^^^^^\n  \
             hint: write <file src=\"...\">\n\
             refused: see above\n",
        )
        .exit(2);
}

#[test]
fn long_output_keeps_both_ends() {
    let report = Karyi::new()
        .arg("--json")
        .arg("--max-output")
        .arg("20")
        .stdin("<tools><command>seq 1 1000</command></tools>")
        .run()
        .exit(0)
        .json();
    let result = &report["results"][0];
    assert_eq!(result["omitted_bytes"], 3893 - 20);
    assert_eq!(
        result["output"],
        "1\n2\n3\n4\n5\n[... 3873 bytes, 992 lines omitted ...]\n\n999\n1000\n"
    );
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    use std::io::Read;
    let karyi = Karyi::new()
        .arg("--format")
        .arg("text")
        .arg("-c")
        .arg("<tools><command>yes</command></tools>");
    let mut command = karyi.command();
    let mut child = command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut start = [0; 4];
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut start).unwrap();
    drop(stdout);
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn a_name_never_looks_like_a_line_of_the_report() {
    let name = "a\nok: all is well";
    let script = "<tools><read><file src=\"a&#10;ok: all is well\"/></read>\
        <edit><file src=\"a&#10;ok: all is well\"><find>x</find><replace>y</replace></file></edit>\
        <edit><file src=\"gone&#10;ok: all is well\" delete=\"true\"/></edit></tools>";
    let ran = karyi("text").file(name, "x").stdin(script).run();
    let text = ran.stdout();
    assert!(!text.contains("\nok:"), "{text}");
    assert!(text.contains("a␊ok: all is well"), "{text}");
}

fn text(script: &str, args: &[&str]) -> String {
    let karyi = Karyi::new()
        .file("f.txt", "one\ntwo\n")
        .args(&["--format", "text"]);
    karyi.args(args).stdin(script).run().stdout()
}

#[test]
fn a_person_sees_the_ends_of_an_output() {
    let script =
        "<tools><command>seq 1 1000; printf end</command><command>seq 1 20</command></tools>";
    let lines = |from, to| (from..=to).map(|n| format!("{n}\n")).collect::<String>();
    let heading = "$ seq 1 1000; printf end\n";
    let twenty = format!("$ seq 1 20\n{}", lines(1, 20));
    let (first, last) = (lines(1, 10), lines(992, 1000));
    let expected = format!("{heading}{first}... 981 lines ...\n{last}end\n{twenty}");
    assert_eq!(text(script, &[]), expected);
    let all = format!("{heading}{}end\n{twenty}", lines(1, 1000));
    assert_eq!(text(script, &["--verbose"]), all);
    assert_eq!(text(script, &["--quiet"]), "");
}

#[test]
fn a_person_sees_what_runs_and_its_label() {
    let many = (1..=22).map(|n| format!("true {n}\n")).collect::<String>();
    let script = format!(
        "<tools><command name=\"build\">\necho a\necho b\n</command><command>{many}</command></tools>"
    );
    let shown = text(&script, &[]);
    assert!(
        shown.starts_with("$ echo a  # build\n  echo b\na\nb\n$ true 1\n  true 2\n"),
        "{shown}"
    );
    assert!(
        shown.ends_with("  true 20\n  [... 2 more lines]\n"),
        "{shown}"
    );
    let ran = karyi("jsonl").stdin(script.clone()).run();
    let started = ran.stdout().lines().next().map(str::to_owned).unwrap();
    let started: Value = serde_json::from_str(&started).unwrap();
    let expected = json!({"event": "started", "id": "1", "tool": "command", "title": "echo a\necho b", "label": "build"});
    assert_eq!(started, expected);
    let planned = text(&script, &["--dry-run"]);
    assert!(
        planned.starts_with("$ echo a  # build\n  echo b\n$ true 1\n"),
        "{planned}"
    );
    assert!(
        planned.ends_with("\ndry run: nothing was run or changed\n"),
        "{planned}"
    );
}

#[test]
fn a_dry_run_tries_the_edits() {
    let edit = |find: &str| {
        format!("<edit><file src=\"f.txt\"><find>{find}</find><replace>2</replace></file></edit>")
    };
    let script = format!("<tools>{}</tools>", edit("two"));
    let shown = "> edit f.txt (line 2)\n     1   one\n     2 - two\n     2 + 2\ndry run: nothing was run or changed\n";
    assert_eq!(text(&script, &["--dry-run"]), shown);
    let ran = karyi("json")
        .arg("--dry-run")
        .file("f.txt", "one\ntwo\n")
        .stdin(&script)
        .run();
    let result = &ran.json()["results"][0].clone();
    assert_eq!(result["code"], "dry_run");
    assert_eq!(
        result["files"][0]["diff"],
        "@@ -1,2 +1,2 @@\n one\n-two\n+2\n"
    );
    ran.file("f.txt", "one\ntwo\n").exit(0);
    let dry = |script: String| karyi("json").arg("--dry-run").stdin(script).run();
    let broken = dry(format!("<tools>{}</tools>", edit("none")))
        .exit(1)
        .json();
    assert_eq!(broken["results"][0]["code"], "find_not_found");
    // What an earlier call would do is not known.
    let later = format!("<tools><command>touch f</command>{}</tools>", edit("none"));
    let later = dry(later).exit(0).json();
    assert_eq!(later["results"][1]["code"], "dry_run");
    let note = later["results"][1]["note"].as_str().unwrap();
    assert!(
        note.starts_with("now it would fail: f.txt: expected the text"),
        "{note}"
    );
}

#[test]
fn a_call_that_was_not_started_is_shown_and_counted_apart() {
    let script = "<tools on_error=\"stop\"><command>false</command>\
        <command>echo one\necho two</command><read><file src=\"a\"/></read></tools>";
    let ran = Karyi::new().args(&["--format", "text"]).stdin(script).run();
    let skipped = "skipped[earlier_failure]: call 1 failed and the block says on_error=\"stop\"\n  \
        hint: fix the call that failed, then send this one again\n";
    let expected = format!(
        "$ false\nexit status 1\n$ echo one\n  echo two\n{skipped}> read a\n{skipped}\
         1 of 3 calls failed, 2 did not run\n"
    );
    assert_eq!(ran.exit(1).stdout(), expected);
}

#[test]
fn a_quiet_report_tells_what_went_wrong() {
    let script = "<tools><command>echo fine</command><command>echo bad; false</command></tools>";
    let expected = "$ echo bad; false\nbad\nexit status 1\n1 of 2 calls failed\n";
    assert_eq!(text(script, &["--quiet"]), expected);
}

#[test]
fn what_was_read_is_one_line_unless_all_is_wanted() {
    let script = "<tools><read><file src=\"f.txt\"/><search pattern=\"two\"/></read></tools>";
    let line = "> read f.txt (2 lines), \"two\" (1 match in 1 file)\n";
    assert_eq!(text(script, &[]), line);
    let all = format!(
        "{line}f.txt (2 lines):\n     1  one\n     2  two\n\"two\" (1 match in 1 file):\nf.txt:2:two\n"
    );
    assert_eq!(text(script, &["-v"]), all);
}

#[test]
fn colours_can_be_chosen() {
    let script = "<tools><command>echo hi</command></tools>";
    let shown = text(script, &["--color", "always"]);
    assert!(shown.contains("\x1b[1;36m$ echo hi\x1b[0m"), "{shown:?}");
    let on_terminal = Karyi::with_args(&["run", "--color", "never", "a.xml"]).file("a.xml", script);
    let screen = on_terminal.on_terminal().end().0;
    assert!(
        screen.contains("$ echo hi") && !screen.contains("\x1b[1"),
        "{screen:?}"
    );
}

#[test]
fn a_dry_run_shows_what_would_be_written_with_placeholders() {
    let pair =
        |find: &str, replace: &str| format!("<find>{find}</find><replace>{replace}</replace>");
    let script = format!(
        "<tools><edit><file src=\"f.txt\">{}{}</file></edit></tools>",
        pair("key = $KARYI{OLD}", "key = $KARYI{NEW}"),
        pair("port = 80", "port = $KARYI{NEW}"),
    );
    let values = [("OLD", "value-of-the-old"), ("NEW", "value-of-the-new")];
    let mut dry = karyi("text").file("f.txt", "key = value-of-the-old\nport = 80\n");
    for (name, value) in values {
        dry = dry.env(&format!("KARYI_VAR_{name}"), value);
    }
    let ran = dry
        .args(&["--vault", "env", "--dry-run"])
        .stdin(&script)
        .run()
        .exit(0);
    let shown = ran.stdout();
    let diff = "     1 - key = $KARYI{OLD}\n     2 - port = 80\n     1 + key = $KARYI{NEW}\n     2 + port = $KARYI{NEW}\n";
    assert!(shown.contains(diff), "{shown}");
    assert!(!shown.contains("value-of"), "{shown}");
    ran.file("f.txt", "key = value-of-the-old\nport = 80\n");
}
