//! How fast a large message is parsed, beside other parsers in the same run.
//!
//! Every contestant reads the same block of calls and makes calls or elements of it. Speeds are
//! printed in MB/s; what counts is the ratio. `--megabytes N` changes the size (100), `--rounds N`
//! how often each runs, the fastest of which counts; `--only NAMES` runs those whose name has one
//! of NAMES, divided by semicolons.

#![allow(
    clippy::print_stdout,
    clippy::panic,
    reason = "a benchmark's result is what it prints, and a refused message means nothing"
)]

use std::hint::black_box;
use std::process::Command;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use karyi::syntax::grammar::Grammar;
use karyi::syntax::{Event, Mode, Parser};

#[path = "../gate/mod.rs"]
mod gate;
mod message;
mod peers;

/// What one `read` of the program asks for.
const PAGE: usize = 4 << 10;
const MEGABYTE: usize = 1 << 20;
const CHUNKS: [usize; 4] = [1, 16, PAGE, MEGABYTE];

/// Least speeds beside quick-xml's events turned into the same calls.
const LEAST_REPAIR: f64 = 0.9;
const LEAST_STRICT: f64 = 0.8;
const LEAST_BYTEWISE: f64 = 0.12;
/// Least speed beside quick-xml's events turned into bare elements, without places and sources.
const LEAST_OF_ELEMENTS: f64 = 0.6;
/// Most time that twice the input may take.
const MOST_GROWTH: f64 = 2.2;

static GRAMMAR: LazyLock<Arc<Grammar>> =
    LazyLock::new(|| Arc::new(karyi::tools::registry().grammar()));

/// One parser with one way to be fed, and its best time so far.
struct Contestant<'m> {
    name: String,
    bytes: usize,
    run: Box<dyn Fn() -> usize + 'm>,
    best: Duration,
}

impl Contestant<'_> {
    fn megabytes_per_second(&self) -> f64 {
        self.bytes as f64 / self.best.as_secs_f64() / 1e6
    }
}

fn main() {
    let megabytes: usize = argument("--megabytes").unwrap_or(100);
    let rounds = argument("--rounds").unwrap_or(5);
    let only: Option<String> = argument("--only");
    let message = message::message(megabytes * 1_000_000);
    if let Some(only) = only {
        return print_speeds(&race(&message, rounds, &only));
    }
    let mut gate = gate::Gate::default();
    let mut speeds = race(&message, rounds, "");
    let small = message::message(message.len() / 20);
    speeds.extend(python(&small));
    print_speeds(&speeds);
    check_reach(&speeds, &mut gate);
    check_growth(&message, rounds, &mut gate);
    gate.close();
}

fn argument<T: std::str::FromStr>(name: &str) -> Option<T> {
    let mut arguments = std::env::args().skip_while(|a| a != name);
    arguments.nth(1)?.parse().ok()
}

/// Lets everybody run in turn, so that a slow moment of the machine meets all alike.
fn race(message: &str, rounds: usize, only: &str) -> Vec<(String, f64)> {
    let mut contestants = contestants(message);
    contestants.retain(|c| only.split(';').any(|part| c.name.contains(part)));
    for _ in 0..rounds {
        for contestant in &mut contestants {
            let start = Instant::now();
            black_box((contestant.run)());
            contestant.best = contestant.best.min(start.elapsed());
        }
    }
    let speed = |c: &Contestant<'_>| (c.name.clone(), c.megabytes_per_second());
    contestants.iter().map(speed).collect()
}

fn contestants<'m>(message: &'m str) -> Vec<Contestant<'m>> {
    let bytes = message.as_bytes();
    let start = message.find("<tools>").unwrap_or(0);
    let end = message.rfind("</tools>").unwrap_or(0) + "</tools>".len();
    let block = message.get(start..end).unwrap_or_default();
    let mut list: Vec<Contestant<'m>> = Vec::new();
    let mut add = |name: String, run: Box<dyn Fn() -> usize + 'm>| {
        list.push(Contestant {
            name,
            bytes: bytes.len(),
            run,
            best: Duration::MAX,
        });
    };
    add("memchr".into(), Box::new(|| peers::memchr_scan(bytes)));
    add("quick-xml events".into(), Box::new(|| peers::events(bytes)));
    add(
        ELEMENTS.into(),
        Box::new(|| peers::events_to_elements(bytes)),
    );
    add(CALLS.into(), Box::new(|| peers::events_to_calls(bytes)));
    add(
        "quick-xml + serde".into(),
        Box::new(move || peers::serde(block)),
    );
    for chunk in [16, PAGE] {
        let name = format!("quick-xml + serde, {chunk} B");
        add(name, Box::new(move || peers::serde_chunked(block, chunk)));
    }
    add(
        "roxmltree".into(),
        Box::new(move || peers::roxmltree(block)),
    );
    for mode in [Mode::Repair, Mode::Strict] {
        for chunk in CHUNKS {
            add(
                karyi(mode, chunk),
                Box::new(move || parse(mode, bytes, chunk)),
            );
        }
    }
    list
}

/// Names, attributes and text: the least that a tree must have.
const ELEMENTS: &str = "quick-xml events to elements";
/// The same calls as karyi's parser gives.
const CALLS: &str = "quick-xml events to calls";

fn karyi(mode: Mode, chunk: usize) -> String {
    let mode = match mode {
        Mode::Repair => "repair",
        Mode::Strict => "strict",
    };
    format!("karyi {mode}, {chunk} B")
}

/// Parses in chunks and counts the calls.
fn parse(mode: Mode, message: &[u8], chunk: usize) -> usize {
    let mut parser = Parser::new(Arc::clone(&GRAMMAR), mode);
    let (mut events, mut count) = (Vec::new(), 0);
    for piece in message.chunks(chunk) {
        parser.feed(piece, &mut events);
        if !events.is_empty() {
            count += events.drain(..).map(calls).sum::<usize>();
        }
    }
    parser.finish(&mut events);
    count + events.into_iter().map(calls).sum::<usize>()
}

fn calls(event: Event) -> usize {
    match event {
        Event::Error(diagnostic) => panic!("{diagnostic:?}"),
        Event::Call(call) => {
            black_box(call);
            1
        }
        Event::BlockOpened { .. } | Event::BlockClosed | Event::DraftsEnded | Event::Warning(_) => {
            0
        }
    }
}

/// Runs the pull parsers of Python, as far as they are here.
fn python(message: &str) -> Vec<(String, f64)> {
    let start = message.find("<tools>").unwrap_or(0);
    let end = message.rfind("</tools>").unwrap_or(0) + "</tools>".len();
    let block = message.get(start..end).unwrap_or_default();
    let path = std::env::temp_dir().join(format!("karyi-bench-{}.xml", std::process::id()));
    if let Err(error) = std::fs::write(&path, block) {
        println!("skipped: Python's parsers, {error}");
        return Vec::new();
    }
    let mut speeds = Vec::new();
    for parser in ["expat", "lxml"] {
        for chunk in CHUNKS {
            match pull(&path, chunk, parser) {
                Ok(speed) => speeds.push((format!("{parser}, {chunk} B"), speed)),
                Err(error) => println!("skipped: {parser}, {chunk} B: {error}"),
            }
        }
    }
    let _ = std::fs::remove_file(&path);
    speeds
}

fn pull(path: &std::path::Path, chunk: usize, parser: &str) -> Result<f64, String> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/parse/pull.py");
    let venv = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("target/python/bin/python3");
    let python = if venv.exists() {
        venv
    } else {
        "python3".into()
    };
    let run = Command::new(python)
        .arg(script)
        .arg(path)
        .args([&chunk.to_string(), parser])
        .output()
        .map_err(|error| error.to_string())?;
    let printed = String::from_utf8_lossy(&run.stdout);
    let speed = printed
        .split_whitespace()
        .next()
        .and_then(|word| word.parse().ok());
    speed.ok_or_else(|| String::from_utf8_lossy(&run.stderr).trim().to_owned())
}

fn speed_of(speeds: &[(String, f64)], name: &str) -> Option<f64> {
    speeds
        .iter()
        .find(|(n, _)| n == name)
        .map(|(_, speed)| *speed)
}

fn print_speeds(speeds: &[(String, f64)]) {
    let calls = speed_of(speeds, CALLS).unwrap_or(f64::NAN);
    println!("{:<36} {:>9} {:>9}", "", "MB/s", "ratio");
    for (name, speed) in speeds {
        println!("{name:<36} {speed:>9.1} {:>9.3}", speed / calls);
    }
    println!();
}

/// Compares with what must be reached.
fn check_reach(speeds: &[(String, f64)], gate: &mut gate::Gate) {
    let mut check = |mode: Mode, chunk: usize, peer: &str, least: f64| {
        let (own, other) = (karyi(mode, chunk), speed_of(speeds, peer));
        if let (Some(own_speed), Some(other)) = (speed_of(speeds, &own), other) {
            gate.check(&format!("{own} / {peer}"), own_speed / other, least..);
        }
    };
    check(Mode::Repair, PAGE, CALLS, LEAST_REPAIR);
    check(Mode::Strict, PAGE, CALLS, LEAST_STRICT);
    check(Mode::Repair, 1, CALLS, LEAST_BYTEWISE);
    check(Mode::Repair, 1, ELEMENTS, LEAST_BYTEWISE);
    check(Mode::Repair, PAGE, ELEMENTS, LEAST_OF_ELEMENTS);
    check(Mode::Strict, PAGE, ELEMENTS, LEAST_OF_ELEMENTS);
    for mode in [Mode::Repair, Mode::Strict] {
        check(mode, PAGE, "roxmltree", 1.0);
        check(mode, PAGE, "quick-xml + serde", 1.0);
        check(mode, PAGE, &format!("quick-xml + serde, {PAGE} B"), 1.0);
        check(mode, 16, "quick-xml + serde, 16 B", 1.0);
        for chunk in CHUNKS {
            for parser in ["expat", "lxml"] {
                check(mode, chunk, &format!("{parser}, {chunk} B"), 1.0);
            }
        }
    }
}

/// Twice the input may not take much more than twice the time.
fn check_growth(message: &str, rounds: usize, gate: &mut gate::Gate) {
    let whole = message.as_bytes();
    let half = message::message(whole.len() / 2);
    for mode in [Mode::Repair, Mode::Strict] {
        // Not the whole at once: its calls would pile up, and the allocator's history be measured.
        for chunk in [1, PAGE, MEGABYTE] {
            let time = |bytes: &[u8]| {
                let start = Instant::now();
                black_box(parse(mode, bytes, chunk));
                start.elapsed()
            };
            let (mut long, mut short, mut growth) = (Duration::MAX, Duration::MAX, f64::MAX);
            for round in 0..4 * rounds {
                long = long.min(time(whole));
                short = short.min(time(half.as_bytes()));
                growth = long.as_secs_f64() / short.as_secs_f64();
                if round + 1 >= rounds && growth <= MOST_GROWTH {
                    break;
                }
            }
            gate.check(
                &format!("{}: twice the input", karyi(mode, chunk)),
                growth,
                ..=MOST_GROWTH,
            );
        }
    }
}
