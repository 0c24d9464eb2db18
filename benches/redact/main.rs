//! How fast secrets are found in text, beside sed and the aho-corasick crate with the same patterns.
//!
//! 64 MB of text that looks like source code, of text full of escape sequences and of texts full of
//! the escapes of JSON, URLs and HTML go through in pieces of 64 KiB, with 1, 10 and 100 secrets.
//! Times are processor times. Run with `cargo bench --bench redact`; `-- --markdown` prints tables.

// A bench says what happened on its standard output, and stops when something breaks.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    missing_docs
)]

#[path = "../gate/mod.rs"]
mod gate;
mod needles;
mod texts;

use std::fmt;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use aho_corasick::AhoCorasick;
use karyi::secret::{SecretName, SecretValue};
use karyi::vault::redact::{Redacted, Redactor};
use karyi::vault::session::Secrets;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

use gate::Gate;
use texts::Text;

const TEXT_BYTES: usize = 64 << 20;
const PIECE_BYTES: usize = 64 << 10;
/// Turns of both with each text, and builds of each table, that count.
const TURNS: usize = 7;
const BUILDS: usize = 9;
/// Bytes a peer gets that is slower than this many bytes per second.
const SLOW: f64 = 20e6;

fn main() {
    let is_markdown = std::env::args().any(|argument| argument == "--markdown");
    let mut gate = Gate::default();
    let mut rows = Vec::new();
    for count in [1, 10, 100] {
        let values = needles::values(count);
        let secrets = secrets(&values);
        let redactor = Redactor::new(&secrets);
        let patterns = needles::patterns(&values);
        let built = (0..BUILDS).map(|_| {
            let own = seconds(|| Redactor::new(&secrets));
            (own, own / seconds(|| AhoCorasick::new(&patterns)))
        });
        let (built, ratios): (Vec<f64>, Vec<f64>) = built.unzip();
        let (milliseconds, slower) = (median(built) * 1e3, median(ratios));
        let kib = redactor.table_bytes() >> 10;
        for text in &texts::ALL {
            let rates = Rates::measure(&values, &redactor, &(text.make)(TEXT_BYTES));
            rates.check(count, text, &mut gate);
            rows.push(format!(
                "| {count} | {} | {rates} | {milliseconds:.1} ms ({slower:.1}) | {kib} KiB |",
                text.name
            ));
        }
        gate.check(
            &format!("{count} secrets, tables built, times as long as aho-corasick's"),
            slower,
            ..=4.0,
        );
        gate.check(
            &format!("{count} secrets, tables, MB"),
            kib as f64 / 1024.0,
            ..=4.0,
        );
    }
    if is_markdown {
        println!(
            "\n| secrets | text | karyi, MB/s | aho-corasick, MB/s | ratio | sed, MB/s | build (÷ aho-corasick) | tables |"
        );
        println!("|---:|---|---:|---:|---:|---:|---:|---:|");
        rows.iter().for_each(|row| println!("{row}"));
    }
    gate.close();
}

/// Megabytes per second of one text, each the middle one of several turns.
struct Rates {
    own: f64,
    corasick: f64,
    /// The middle one of the ratios of two turns that follow each other: a slow phase of the machine takes both.
    ratio: f64,
    sed: Option<f64>,
}

impl Rates {
    fn measure(values: &[String], redactor: &Redactor, text: &str) -> Self {
        let patterns = needles::patterns(values);
        let automaton = AhoCorasick::new(&patterns).unwrap();
        let turn = || {
            let own = seconds(|| through_redactor(redactor, text));
            let corasick = seconds(|| through_automaton(&automaton, text));
            [own, corasick].map(|seconds| rate(text.len(), seconds))
        };
        // The first one warms up.
        turn();
        let turns: Vec<[f64; 2]> = (0..TURNS).map(|_| turn()).collect();
        let middle = |of: fn(&[f64; 2]) -> f64| median(turns.iter().map(of).collect());
        Self {
            own: middle(|[own, _]| *own),
            corasick: middle(|[_, corasick]| *corasick),
            ratio: middle(|[own, corasick]| own / corasick),
            sed: through_sed(&patterns, text),
        }
    }

    fn check(&self, count: usize, text: &Text, gate: &mut Gate) {
        let what = format!("{count} secrets, {}", text.name);
        gate.check(&format!("{what}, MB/s"), self.own, least(count)..);
        // With more of them the tables of both wait for memory, more or less as others use it.
        if count == 10 || count > 10 && text.has_peer {
            gate.check(&format!("{what} / aho-corasick"), self.ratio, 1.0..);
        }
        if let Some(sed) = self.sed.filter(|_| count >= 10) {
            gate.check(&format!("{what} / sed"), self.own / sed, 1.0..);
        }
    }
}

impl fmt::Display for Rates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sed = self.sed.map_or("-".into(), |sed| format!("{sed:.1}"));
        let (own, corasick, ratio) = (self.own, self.corasick, self.ratio);
        write!(f, "{own:.0} | {corasick:.0} | {ratio:.2} | {sed}")
    }
}

/// Megabytes per second that must be reached.
fn least(secrets: usize) -> f64 {
    if secrets > 10 { 80.0 } else { 100.0 }
}

fn secrets(values: &[String]) -> Secrets {
    let secrets = Secrets::default();
    for (number, value) in values.iter().enumerate() {
        let name = SecretName::parse(&format!("KEY_{number}")).unwrap();
        let value = SecretValue::new(value.clone());
        secrets.insert(name, value).unwrap();
    }
    secrets
}

/// Returns the processor time that something takes.
fn seconds<T>(work: impl FnOnce() -> T) -> f64 {
    let start = processor_time(UsageWho::RUSAGE_SELF);
    let result = work();
    let time = processor_time(UsageWho::RUSAGE_SELF) - start;
    drop(result);
    time.as_secs_f64()
}

/// Returns the middle one of some numbers.
fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

/// Processor time used so far: other programs on the machine take none of it.
fn processor_time(of: UsageWho) -> Duration {
    let usage = getrusage(of).unwrap();
    let times = [usage.user_time(), usage.system_time()];
    let micros: i64 = times.iter().map(TimeValLike::num_microseconds).sum();
    Duration::from_micros(u64::try_from(micros).unwrap())
}

fn rate(bytes: usize, seconds: f64) -> f64 {
    bytes as f64 / seconds / 1e6
}

fn through_redactor(redactor: &Redactor, text: &str) -> usize {
    let (mut stream, mut out) = (redactor.stream(), Redacted::default());
    let (mut rest, mut given) = (text, 0);
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.ceil_char_boundary(PIECE_BYTES.min(rest.len())));
        stream.push(piece, &mut out);
        given += out.as_str().len();
        out.clear();
        rest = after;
    }
    stream.finish(&mut out);
    given += out.as_str().len();
    assert_eq!(given, text.len(), "a text without secrets was changed");
    given
}

fn through_automaton(automaton: &AhoCorasick, text: &str) -> usize {
    let pieces = text.as_bytes().chunks(PIECE_BYTES);
    pieces.map(|piece| automaton.find_iter(piece).count()).sum()
}

/// Megabytes per second of sed; it gets a part of the text when it is slow.
fn through_sed(patterns: &[Vec<u8>], text: &str) -> Option<f64> {
    let script: String = patterns
        .iter()
        .filter_map(|pattern| std::str::from_utf8(pattern).ok())
        .map(|pattern| format!("s\u{1}{}\u{1}[masked]\u{1}g\n", literal(pattern)))
        .collect();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), script).unwrap();
    let first = sed(file.path(), text.get(..1 << 20)?)?;
    if first < SLOW {
        return Some(first);
    }
    sed(file.path(), text)
}

/// Returns a pattern as sed takes it literally.
fn literal(pattern: &str) -> String {
    let mut out = String::new();
    for character in pattern.chars() {
        match character {
            '\\' | '[' | ']' | '.' | '*' | '^' | '$' => {
                out.push('\\');
                out.push(character);
            }
            '\n' => out.push_str("\\n"),
            other => out.push(other),
        }
    }
    out
}

fn sed(script: &std::path::Path, text: &str) -> Option<f64> {
    let input = tempfile::NamedTempFile::new().unwrap();
    input.as_file().write_all(text.as_bytes()).unwrap();
    let mut command = Command::new("sed");
    command
        .env("LC_ALL", "C")
        .arg("-f")
        .arg(script)
        .arg(input.path());
    command.stdout(Stdio::null());
    let start = processor_time(UsageWho::RUSAGE_CHILDREN);
    let status = command.status().ok()?;
    let time = processor_time(UsageWho::RUSAGE_CHILDREN) - start;
    let seconds = time.as_secs_f64();
    status.success().then(|| rate(text.len(), seconds))
}
