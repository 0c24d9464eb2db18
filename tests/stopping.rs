//! A run ends when it is asked to, whatever is in the way, and leaves nothing behind.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::harness::{Karyi, wait};

fn send(child: &Child, signal: Signal) {
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), signal).unwrap();
}

#[test]
fn a_signal_at_a_question_gives_the_terminal_back() {
    for (signal, code) in [
        (Signal::SIGTERM, 143),
        (Signal::SIGHUP, 129),
        (Signal::SIGINT, 130),
    ] {
        let script = "<tools><get_value key=\"PW\" reason=\"a test\"/></tools>";
        let karyi = Karyi::with_args(&["run", "a.xml"]).file("a.xml", script);
        let mut terminal = karyi.on_terminal();
        assert!(terminal.is_echoing());
        terminal.expect("value (hidden");
        assert!(!terminal.is_echoing());
        kill(Pid::from_raw(terminal.pid()), signal).unwrap();
        terminal.expect("\x1b[?2004l");
        let echo = terminal.echo_at_end();
        assert_eq!(echo, (true, code), "{signal}");
    }
}

#[test]
fn a_reader_who_does_not_read_holds_up_no_signal() {
    let karyi = Karyi::new()
        .arg("--format")
        .arg("jsonl")
        .arg("-c")
        .arg("<tools><command>yes</command></tools>");
    let mut child = karyi.command().stdout(Stdio::piped()).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut [0; 1000]).unwrap();
    send(&child, Signal::SIGTERM);
    assert_eq!(wait(child).status.code(), Some(143));
}

#[test]
fn a_search_ends_when_the_run_is_cancelled() {
    let karyi = Karyi::new().arg("--format").arg("jsonl").arg("-c").arg(
        "<tools><read><search pattern=\"no such text\" path=\"/usr\"/><search pattern=\"no such text\" path=\"/usr\"/></read></tools>",
    );
    let mut child = karyi.command().stdout(Stdio::piped()).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut [0; 10]).unwrap();
    send(&child, Signal::SIGTERM);
    assert_eq!(wait(child).status.code(), Some(143));
}

#[cfg(target_os = "linux")]
#[test]
fn a_script_that_cannot_be_read_to_its_end_does_not_run() {
    let ran = Karyi::new()
        .arg("--json")
        .arg("/proc/self/mem")
        .run()
        .exit(2);
    assert_eq!(ran.json()["status"], "refused");
    assert!(
        ran.stderr_text().contains("reading /proc/self/mem"),
        "{}",
        ran.stderr_text()
    );
}

#[test]
fn no_runtime_file_stays() {
    let karyi = Karyi::new()
        .arg("-c")
        .arg("<tools><command>sleep 100</command></tools>");
    let runtime = karyi.runtime();
    let mut child = karyi
        .command()
        .arg("--format")
        .arg("jsonl")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut [0; 10]).unwrap();
    send(&child, Signal::SIGTERM);
    assert_eq!(wait(child).status.code(), Some(143));
    let left: Vec<_> = std::fs::read_dir(runtime)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(left, Vec::<std::path::PathBuf>::new());
}

#[test]
fn a_job_keeps_its_id_across_scripts() {
    let report = Karyi::new()
        .file(
            "a.xml",
            "<tools><command id=\"build\" timeout=\"0.2\">sleep 50</command></tools>",
        )
        .file("b.xml", "<tools><read><file src=\"a.xml\"/></read></tools>")
        .args(&["--json", "a.xml", "b.xml"])
        .run()
        .exit(1)
        .stdout();
    let last: serde_json::Value = serde_json::from_str(report.lines().last().unwrap()).unwrap();
    assert_eq!(last["jobs"][0]["id"], "build");
}

#[test]
fn a_cancelled_command_is_killed_and_keeps_its_output() {
    let script =
        "<tools><command>echo started; sleep 100</command><command>echo never</command></tools>";
    let karyi = Karyi::new()
        .arg("--format")
        .arg("jsonl")
        .arg("-c")
        .arg(script);
    let mut child = karyi.command().stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = |event: &str| -> serde_json::Value {
        loop {
            let value: serde_json::Value =
                serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
            if value["event"] == event {
                return value;
            }
        }
    };
    assert_eq!(next("output")["text"], "started\n");
    send(&child, Signal::SIGTERM);
    let (first, second) = (next("finished"), next("finished"));
    let told = [&first, &second].map(|r| (&r["status"], &r["code"], &r["output"]));
    let expected = serde_json::json!([
        ["killed", "cancelled", "started\n"],
        ["skipped", "cancelled", null]
    ]);
    assert_eq!(serde_json::json!(told), expected);
    assert_eq!(next("report")["jobs"][0]["id"], "1");
    assert_eq!(wait(child).status.code(), Some(143));
}
