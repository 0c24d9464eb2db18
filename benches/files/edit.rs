//! Find and replace in a large file: karyi, which checks, records and syncs, beside `sed -i` and `sd`,
//! each followed by a sync of the file.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::Settings;
use super::gate::Gate;

/// Most time as a multiple of the slower of the peers that are there.
const MOST: f64 = 1.2;

/// One contestant: its name and its shell command, run in the directory of the file.
struct Contestant {
    name: &'static str,
    script: String,
}

/// Compares all of them on one replaced line, and on one word in every tenth line.
pub(crate) fn compare(settings: &Settings, gate: &mut Gate) {
    let place = tempfile::tempdir().unwrap();
    let karyi = env!("CARGO_BIN_EXE_karyi");
    let text = text(settings.megabytes << 20);
    println!("{} MB in {}", settings.megabytes, place.path().display());
    for (what, find, replace, all) in [
        ("one line", "the only line of its kind", "another line", ""),
        ("every tenth line", "tenth", "10th", " all=\"true\""),
    ] {
        let call = format!(
            "<tools><edit><file src=\"f\"><find{all}>{find}</find><replace>{replace}</replace></file></edit></tools>"
        );
        std::fs::write(place.path().join("call.xml"), call).unwrap();
        let contestants = [
            Contestant {
                name: "karyi",
                script: format!("'{karyi}' run --json call.xml > report"),
            },
            Contestant {
                name: "sed",
                script: format!("sed -i 's/{find}/{replace}/g' f && sync f"),
            },
            Contestant {
                name: "sd",
                script: format!("sd '{find}' '{replace}' f && sync f"),
            },
        ];
        let raced = race(place.path(), &text, what, &contestants, settings.rounds);
        if let Some((peer, ratio)) = raced {
            gate.check(&format!("{what}: time beside {peer}"), ratio, ..=MOST);
        }
    }
}

/// Lets all run in turn; returns the slowest peer and karyi's time as a multiple of its.
fn race(
    place: &Path,
    text: &str,
    what: &str,
    contestants: &[Contestant],
    rounds: usize,
) -> Option<(&'static str, f64)> {
    let mut best: Vec<Option<Duration>> = vec![None; contestants.len()];
    for _ in 0..rounds {
        for (contestant, best) in contestants.iter().zip(&mut best) {
            let time = run(place, text, contestant);
            *best = match (*best, time) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
        }
    }
    for (contestant, best) in contestants.iter().zip(&best) {
        match best {
            Some(time) => println!(
                "{what}: {:<6} {:>8.1} ms",
                contestant.name,
                time.as_secs_f64() * 1000.0
            ),
            None => println!("{what}: skipped: no {}", contestant.name),
        }
    }
    let peers = contestants.iter().zip(&best).skip(1);
    let slowest = peers.filter_map(|(peer, time)| Some((peer.name, (*time)?)));
    let (name, peer) = slowest.max_by_key(|(_, time)| *time)?;
    let own = best.first().copied().flatten()?;
    Some((name, own.as_secs_f64() / peer.as_secs_f64()))
}

/// Runs one contestant on a fresh file that is in the cache and on the disk; returns its time.
fn run(place: &Path, text: &str, contestant: &Contestant) -> Option<Duration> {
    let file = place.join("f");
    std::fs::write(&file, text).unwrap();
    std::fs::File::open(&file).unwrap().sync_all().unwrap();
    let mut command = Command::new("sh");
    command.arg("-c").arg(&contestant.script).current_dir(place);
    command.env("KARYI_HOME", place.join("home"));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let since = Instant::now();
    let status = command.status().unwrap();
    let time = since.elapsed();
    if contestant.name == "karyi" {
        assert!(
            status.success(),
            "{}",
            std::fs::read_to_string(place.join("report")).unwrap()
        );
    }
    let is_changed = std::fs::metadata(&file).unwrap().len() != text.len() as u64;
    let _ = std::fs::remove_dir_all(place.join("home"));
    (status.success() && is_changed).then_some(time)
}

fn text(bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 100);
    let mut number = 0_u64;
    while text.len() < bytes {
        number += 1;
        let word = if number.is_multiple_of(10) {
            "tenth"
        } else {
            "other"
        };
        text.push_str(&format!(
            "{number:>9} a line of the log, one of the {word} lines, with {:x}\n",
            number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
        ));
        if text.len() >= bytes / 2 && text.len() < bytes / 2 + 100 {
            text.push_str("the only line of its kind\n");
        }
    }
    text
}
