//! How long the program takes to start and how much memory it needs, beside the smallest program
//! there is and beside a shell.
//!
//! Each line is the median of many runs, told as a ratio to its peer in the same run.

#![allow(clippy::print_stdout, reason = "a bench tells its figures")]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const RUNS: usize = 50;

fn main() {
    let karyi = Path::new(env!("CARGO_BIN_EXE_karyi"));
    let script = "<tools><command>true</command></tools>";
    let spawn = median(|| Command::new("true"));
    let version = median(|| with(karyi, &["--version"]));
    let shell = median(|| with(Path::new("bash"), &["-c", "true"]));
    let one = median(|| with(karyi, &["run", "--no-rc", "-c", script]));
    println!(
        "spawning `true`                   {:>8.2} ms   (the limit)",
        ms(spawn)
    );
    println!(
        "karyi --version                   {:>8.2} ms   {:.1} x the limit",
        ms(version),
        ratio(version, spawn)
    );
    println!(
        "bash -c true                      {:>8.2} ms   {:.1} x the limit",
        ms(shell),
        ratio(shell, spawn)
    );
    println!(
        "karyi run, one command            {:>8.2} ms   {:.1} x bash -c true",
        ms(one),
        ratio(one, shell)
    );
    let peak = |command: &mut Command| peak_kib(command) as f64 / 1024.0;
    println!(
        "memory of karyi --version         {:>8.1} MiB",
        peak(&mut with(karyi, &["--version"]))
    );
    println!(
        "memory of karyi run, one command  {:>8.1} MiB",
        peak(&mut with(karyi, &["run", "--no-rc", "-c", script]))
    );
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
