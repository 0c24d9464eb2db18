//! A hundred lines out of ten gigabytes: time beside reading the file through, and memory.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::gate::Gate;

const BYTES: u64 = 10_000_000_000;
/// Most resident memory in MiB.
const MOST_MIB: f64 = 20.0;

/// Measures and reports.
pub(crate) fn measure(gate: &mut Gate) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("huge");
    plant(&path);
    let start = Instant::now();
    let mut buffer = vec![0; 64 << 10];
    let mut file = File::open(&path).unwrap();
    while file.read(&mut buffer).unwrap() > 0 {}
    let bare = start.elapsed();
    println!(
        "100 lines of {} GB; a bare read loop takes {bare:.1?}",
        BYTES / 1_000_000_000
    );
    for lines in ["1-100", "2002-2101", "-100"] {
        let block = format!("<tools><read><file src=\"huge\" lines=\"{lines}\"/></read></tools>");
        let start = Instant::now();
        let child = Command::new(env!("CARGO_BIN_EXE_karyi"))
            .args(["run", "--no-rc", "--json", "-c", &block])
            .current_dir(directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let pid = child.id();
        let running = std::thread::spawn(move || child.wait_with_output().unwrap());
        let mut peak = f64::NAN;
        // A process that has ended tells nothing any more: the last answer counts.
        while !running.is_finished() {
            peak = peak.max(peak_mib(pid));
            std::thread::sleep(Duration::from_millis(5));
        }
        let output = running.join().unwrap();
        let took = start.elapsed();
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let shown = &report["results"][0]["files"][0];
        let text = shown["output"].as_str().unwrap();
        assert_eq!(
            (text.lines().count(), &shown["total_lines"]),
            (100, &serde_json::json!(6002))
        );
        println!("  lines {lines}: {took:.1?}");
        gate.check(
            &format!("MiB of memory for lines {lines}"),
            peak,
            ..=MOST_MIB,
        );
    }
}

/// Writes a file that is mostly a hole, with 2000 lines at the start, in the middle and at the end.
fn plant(path: &std::path::Path) {
    let mut file = File::create(path).unwrap();
    let lines = |word: &str| -> String { (0..2000).map(|n| format!("{word} {n}\n")).collect() };
    file.write_all(lines("start").as_bytes()).unwrap();
    file.write_all_at(format!("\n{}", lines("middle")).as_bytes(), BYTES / 2)
        .unwrap();
    let end = format!("\n{}", lines("end"));
    file.write_all_at(end.as_bytes(), BYTES - end.len() as u64)
        .unwrap();
}

fn peak_mib(pid: u32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok());
    kib.map_or(f64::NAN, |kib| kib / 1024.0)
}
