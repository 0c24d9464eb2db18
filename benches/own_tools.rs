//! How long the tools of an assistant take, beside the core tool that does the same in the same run, or beside a limit.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a bench tells its figures, and stops when it cannot measure"
)]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

mod gate;

const RUNS: usize = 30;
/// Files of one block.
const FILES: usize = 100;
/// Calls of one block that the guard refuses.
const REFUSED: usize = 100;
/// Entries of the TODO file.
const ENTRIES: usize = 10_000;

fn main() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    for name in ["home/config", "work"] {
        std::fs::create_dir_all(home.join(name)).unwrap();
    }
    let settings = "[tools.todo_update]\nwithout_model = true\n";
    std::fs::write(home.join("home/config/config.toml"), settings).unwrap();
    let mut gate = gate::Gate::default();
    let (bash, command) = medians(
        home,
        "<bash><cmd>true</cmd></bash>",
        "<command>true</command>",
    );
    println!("karyi run, one <bash>     {:>8.2} ms", ms(bash));
    println!("karyi run, one <command>  {:>8.2} ms", ms(command));
    gate.check("bash / command, whole runs", ratio(bash, command), ..=1.5);
    let writes = calls(FILES, |at| {
        format!("<write_file path=\"bench/{at}\"><content>\nsome text\n</content></write_file>")
    });
    let edits = calls(FILES, |at| {
        format!("<edit><file src=\"edited/{at}\"><content>\nsome text\n</content></file></edit>")
    });
    let (written, edited) = medians(home, &writes, &edits);
    println!("{FILES} x <write_file>        {:>8.2} ms", ms(written));
    println!("{FILES} x <edit>              {:>8.2} ms", ms(edited));
    gate.check("write_file / edit", ratio(written, edited), ..=1.2);
    let refusals = calls(REFUSED, |at| {
        format!("<url_fetch url=\"http://127.0.0.1:9/{at}\"/>")
    });
    let (refused, nothing) = medians(home, &refusals, "<read_file path=\"none\"/>");
    let each = refused.saturating_sub(nothing).as_secs_f64() * 1000.0 / REFUSED as f64;
    gate.check("a refused url_fetch, ms", each, ..=1.0);
    gate.check("todo_update among 10,000, ms", duty(home), ..=10.0);
    gate.close();
}

/// Returns the milliseconds of an entry that is added to a long TODO file.
fn duty(home: &Path) -> f64 {
    let state = home.join("home/assistant/state");
    std::fs::create_dir_all(&state).unwrap();
    let entry = |at: usize| format!("- [ ] [Created](2026-01-01 00:00) | Duty number {at}\n");
    let entries: String = (0..ENTRIES).map(entry).collect();
    std::fs::write(
        state.join("TODO.md"),
        format!("# TODO Work In Progress (WIP)\n\n{entries}"),
    )
    .unwrap();
    let call =
        "<todo_update action=\"add\" people=\"[]\"><content>One more</content></todo_update>";
    let mut times: Vec<f64> = (0..RUNS)
        .map(|_| {
            let output = karyi(home, call).output().unwrap();
            let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            let result = &report["results"][0];
            assert_eq!(result["status"], "ok", "{result}");
            result["duration_ms"].as_f64().unwrap()
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[RUNS / 2]
}

fn calls(count: usize, call: impl Fn(usize) -> String) -> String {
    (0..count).map(call).collect()
}

fn karyi(home: &Path, calls: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_karyi"));
    command
        .args([
            "run",
            "--no-rc",
            "--json",
            "--tools",
            "core,assistant",
            "-c",
        ])
        .arg(format!("<tools>{calls}</tools>"))
        .current_dir(home.join("work"))
        .env("KARYI_HOME", home.join("home"))
        .stdin(Stdio::null());
    command
}

/// Returns the median times of two runs, which take turns: the speed of a machine changes.
fn medians(home: &Path, one: &str, other: &str) -> (Duration, Duration) {
    let turns = (0..RUNS).map(|_| (time(home, one), time(home, other)));
    let (mut ones, mut others): (Vec<Duration>, Vec<Duration>) = turns.unzip();
    ones.sort();
    others.sort();
    (ones[RUNS / 2], others[RUNS / 2])
}

/// Returns the time of a run. What an earlier one wrote is removed before.
fn time(home: &Path, calls: &str) -> Duration {
    let _ = std::fs::remove_dir_all(home.join("home/assistant"));
    let _ = std::fs::remove_dir_all(home.join("work/edited"));
    let mut command = karyi(home, calls);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let start = Instant::now();
    command.status().unwrap();
    start.elapsed()
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

fn ratio(time: Duration, limit: Duration) -> f64 {
    time.as_secs_f64() / limit.as_secs_f64()
}
