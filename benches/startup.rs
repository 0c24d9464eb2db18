//! How long the program takes to start and how much memory it needs, beside the smallest program
//! there is and beside a shell.
//!
//! Each line is the median of many runs, told as a ratio to its peer in the same run.

#![allow(clippy::print_stdout, reason = "a bench tells its figures")]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

mod gate;

const RUNS: usize = 50;
/// Most times as long as `bash -c true` a run of one command may take.
const MOST_OF_BASH: f64 = 12.0;
/// Most times as long as the smallest program `karyi --version` may take.
const MOST_OF_SPAWN: f64 = 6.0;

fn main() {
    let karyi = Path::new(env!("CARGO_BIN_EXE_karyi"));
    let one = [
        "run",
        "--no-rc",
        "-c",
        "<tools><command>true</command></tools>",
    ];
    let smallest = median(|| Command::new("true"));
    let version = median(|| with(karyi, &["--version"]));
    let shell = median(|| with(Path::new("bash"), &["-c", "true"]));
    let command = median(|| with(karyi, &one));
    println!("spawning `true`         {:>8.2} ms", ms(smallest));
    println!("karyi --version         {:>8.2} ms", ms(version));
    println!("bash -c true            {:>8.2} ms", ms(shell));
    println!("karyi run, one command  {:>8.2} ms", ms(command));
    // A short run may end before its memory is looked at, so the most of several counts.
    let memory = |args: &[&str]| {
        let peaks = (0..RUNS).map(|_| peak_kib(&mut with(karyi, args)));
        peaks.max().unwrap_or(0) as f64 / 1024.0
    };
    println!(
        "karyi --version         {:>8.1} MiB",
        memory(&["--version"])
    );
    println!("karyi run, one command  {:>8.1} MiB", memory(&one));
    let mut gate = gate::Gate::default();
    gate.check(
        "karyi --version / spawning `true`",
        ratio(version, smallest),
        ..=MOST_OF_SPAWN,
    );
    gate.check(
        "karyi run / bash -c true",
        ratio(command, shell),
        ..=MOST_OF_BASH,
    );
    gate.close();
}

fn with(program: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(args);
    command
}

fn median(command: impl Fn() -> Command) -> Duration {
    let mut times: Vec<Duration> = (0..RUNS)
        .map(|_| {
            let mut command = command();
            command
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            let start = Instant::now();
            let status = command.status();
            let took = start.elapsed();
            assert!(
                status.is_ok_and(|status| status.success()),
                "{command:?} failed"
            );
            took
        })
        .collect();
    times.sort();
    times[RUNS / 2]
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

fn ratio(time: Duration, limit: Duration) -> f64 {
    time.as_secs_f64() / limit.as_secs_f64()
}

/// Returns the most resident memory of a run, as its own shell reports it to `time`.
fn peak_kib(command: &mut Command) -> u64 {
    let mut child = match command.stdin(Stdio::null()).stdout(Stdio::null()).spawn() {
        Ok(child) => child,
        Err(error) => {
            println!("{command:?}: {error}");
            return 0;
        }
    };
    let path = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    while !matches!(child.try_wait(), Ok(Some(_)) | Err(_)) {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
        peak = peak.max(kib.unwrap_or(0));
    }
    peak
}
