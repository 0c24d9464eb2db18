//! Memory stays small however long the input and however much is printed.

use std::io::{Read, Write};
use std::process::Stdio;

use crate::harness::Karyi;

/// What a run may need at most.
const LIMIT_KIB: u64 = 64 * 1024;

/// Runs a script; returns the length of stdout and the most memory the program had, in KiB.
fn measure(karyi: &Karyi, script: impl FnOnce(&mut dyn Write) + Send) -> (u64, u64) {
    let mut child = karyi
        .command()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut length = 0;
    let mut peak = 0;
    std::thread::scope(|scope| {
        scope.spawn(move || script(&mut stdin));
        let mut buffer = vec![0; 1 << 20];
        loop {
            let read = stdout.read(&mut buffer).unwrap();
            peak = peak.max(peak_kib(&status));
            if read == 0 {
                break;
            }
            length += read as u64;
        }
    });
    assert!(child.wait().unwrap().success());
    (length, peak)
}

fn peak_kib(status: &str) -> u64 {
    let text = std::fs::read_to_string(status).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok())
        .unwrap_or(0)
}

fn is_full() -> bool {
    std::env::var_os("KARYI_FULL").is_some()
}

#[cfg(target_os = "linux")]
#[test]
fn many_blocks_in_a_stream() {
    let blocks = if is_full() { 100_000 } else { 800 };
    let karyi = Karyi::new().arg("--stream").arg("--format").arg("jsonl");
    let (_, peak) = measure(&karyi, |stdin| {
        for i in 0..blocks {
            writeln!(stdin, "<tools><command>echo {i}</command></tools>").unwrap();
        }
    });
    println!("{blocks} blocks: {peak} KiB");
    assert!((1..LIMIT_KIB).contains(&peak), "{peak} KiB");
}

#[cfg(target_os = "linux")]
#[test]
fn much_output() {
    let bytes: u64 = if is_full() { 1_000_000_000 } else { 50_000_000 };
    let karyi = Karyi::new();
    let (length, peak) = measure(&karyi, |stdin| {
        write!(
            stdin,
            "<tools><command>yes 'all work and no play' | head -c {bytes}</command></tools>"
        )
        .unwrap();
    });
    println!("{bytes} bytes printed, report of {length}: {peak} KiB");
    assert!(length < 200_000, "{length}");
    assert!((1..LIMIT_KIB).contains(&peak), "{peak} KiB");
}

#[cfg(target_os = "linux")]
#[test]
fn much_text_to_parse() {
    let lines = if is_full() { 2_000_000 } else { 60_000 };
    let karyi = Karyi::with_args(&["parse"]);
    let (length, peak) = measure(&karyi, |stdin| {
        let mut stdin = std::io::BufWriter::new(stdin);
        for _ in 0..lines {
            writeln!(
                stdin,
                "words and words and `code` and {{}} and <tags> & more"
            )
            .unwrap();
        }
        writeln!(stdin, "<tools>").unwrap();
        for i in 0..lines / 4 {
            writeln!(stdin, "<command>echo {i} && echo a longer text</command>").unwrap();
        }
        writeln!(stdin, "</tools>").unwrap();
    });
    println!("{lines} lines of prose, list of {length} bytes: {peak} KiB");
    assert!((1..LIMIT_KIB).contains(&peak), "{peak} KiB");
}
