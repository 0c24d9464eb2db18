//! `karyi mcp` from its start to its first answer, beside the smallest program there is.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use crate::median;
use crate::report::Report;

/// Starts of each.
const RUNS: usize = 41;

/// What a client says first.
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;

/// Measures and reports.
pub(crate) fn measure(report: &mut Report) {
    let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (mut times, mut sizes, mut spawns) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let (time, size) = start(home.path());
        times.push(time);
        sizes.push(size);
        spawns.push(spawn());
    }
    let (time, size, spawn) = (median(times), median(sizes), median(spawns));
    let row = |name: &str, time: f64, size: String| vec![name.into(), format!("{time:.1}"), size];
    let head = ["", "ms", "MB resident"].map(str::to_owned).to_vec();
    let rows = [
        head,
        row("karyi mcp, start to reply", time, format!("{size:.1}")),
        row("`true`, start to end", spawn, String::new()),
    ];
    report.table("Start of `karyi mcp` to the reply to `initialize`", &rows);
    report.check("start to the reply of initialize, ms", time, ..=15.0);
    report.check("most resident memory by then, MB", size, ..=20.0);
}

/// Starts the server and waits for its first answer; returns the milliseconds and the megabytes.
fn start(home: &Path) -> (f64, f64) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_karyi"));
    command.arg("mcp").current_dir(home).env("HOME", home);
    command
        .env_remove("XDG_STATE_HOME")
        .env_remove("XDG_CONFIG_HOME");
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let since = Instant::now();
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    writeln!(input, "{INITIALIZE}").unwrap();
    let mut answer = String::new();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    output.read_line(&mut answer).unwrap();
    let time = since.elapsed().as_secs_f64() * 1000.0;
    assert!(answer.contains("\"serverInfo\""), "{answer}");
    let size = resident(&child);
    drop((input, output));
    child.wait().unwrap();
    (time, size)
}

/// Returns the most memory a program has had, in megabytes.
fn resident(child: &Child) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: f64 = peak
        .unwrap()
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap();
    kib * 1024.0 / 1e6
}

/// Starts the smallest program and waits for its end; returns the milliseconds.
fn spawn() -> f64 {
    let since = Instant::now();
    assert!(Command::new("true").status().unwrap().success());
    since.elapsed().as_secs_f64() * 1000.0
}
