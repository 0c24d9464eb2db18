//! How much memory the program needs while a command prints gigabytes.

use std::process::{Command, Stdio};
use std::time::Duration;

use crate::report::Report;

const LESS_BYTES: u64 = 200_000_000;
const MORE_BYTES: u64 = 2_000_000_000;
const MOST_BYTES: u64 = 10_000_000_000;
/// Most growth in MiB from the smallest to the largest output. The aim is 1.
const MOST_GROWTH: f64 = 1.0;
/// Time between two looks at a program that runs; what is looked at never shrinks.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Measures and reports.
pub(crate) fn measure(report: &mut Report) {
    let is_full = crate::has("--full") || std::env::var_os("KARYI_FULL").is_some();
    let mut sizes = vec![LESS_BYTES, MORE_BYTES];
    if is_full {
        sizes.push(MOST_BYTES);
    }
    let peaks: Vec<f64> = sizes.iter().map(|bytes| peak_mib(*bytes)).collect();
    let mut rows = vec![
        ["output", "most resident memory"]
            .map(str::to_owned)
            .to_vec(),
    ];
    rows.extend(sizes.iter().zip(&peaks).map(|(bytes, peak)| {
        let shown = format!("{:.1} GB", *bytes as f64 / 1e9);
        vec![shown, format!("{peak:.1} MiB")]
    }));
    report.table("Memory of `karyi run` while a command prints", &rows);
    let growth = peaks.last().zip(peaks.first());
    let growth = growth.map_or(f64::NAN, |(last, first)| last - first);
    report.check("MiB of growth with the output", growth, ..=MOST_GROWTH);
}

/// Returns the most memory of a run whose command prints so many bytes, in MiB.
fn peak_mib(bytes: u64) -> f64 {
    let line = "warning: unused variable: `x` in src/lib.rs:12:9";
    let block = format!("<tools><command>yes '{line}' | head -c {bytes}</command></tools>");
    let mut command = Command::new(env!("CARGO_BIN_EXE_karyi"));
    command.args(["run", "--no-rc", "-c", &block]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn();
    let child = child.as_mut().unwrap();
    let path = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    let status = loop {
        peak = peak.max(peak_kib(&path));
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        std::thread::sleep(LOOK_EVERY);
    };
    assert!(status.success());
    f64::from(peak) / 1024.0
}

fn peak_kib(path: &str) -> u32 {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok())
        .unwrap_or(0)
}
