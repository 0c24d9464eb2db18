//! How fast secrets are found in text, beside the aho-corasick crate with a dozen encodings of each.
//!
//! 32 MB of text that looks like source code, of text full of escape sequences and of texts full of
//! the escapes of JSON, URLs and HTML go through in pieces of 64 KiB, with 1, 10 and 100 secrets; ten count.
//! Times are processor times. Run with `cargo bench --bench redact`; `-- --markdown` prints a table.

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
use std::time::Duration;

use aho_corasick::AhoCorasick;
use karyi::secret::{SecretName, SecretValue};
use karyi::vault::redact::{Redacted, Redactor};
use karyi::vault::session::Secrets;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

use gate::Gate;
use texts::Text;

const TEXT_BYTES: usize = 32 << 20;
const PIECE_BYTES: usize = 64 << 10;
/// Turns of both with each text that count.
const TURNS: usize = 7;
/// Secrets with which the speed counts.
const COUNTED: usize = 10;
/// Fewest megabytes per second of any text.
const LEAST: f64 = 100.0;

fn main() {
    let is_markdown = std::env::args().any(|argument| argument == "--markdown");
    let mut gate = Gate::default();
    let mut rows = Vec::new();
    for count in [1, COUNTED, 100] {
        let values = needles::values(count);
        let redactor = Redactor::new(&secrets(&values));
        for text in &texts::ALL {
            let rates = Rates::measure(&values, &redactor, &(text.make)(TEXT_BYTES));
            if count == COUNTED {
                rates.check(text, &mut gate);
            }
            rows.push(format!("| {count} | {} | {rates} |", text.name));
        }
    }
    if is_markdown {
        println!("\n| secrets | text | karyi, MB/s | aho-corasick, MB/s | ratio |");
        println!("|---:|---|---:|---:|---:|");
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
}

impl Rates {
    fn measure(values: &[String], redactor: &Redactor, text: &str) -> Self {
        let automaton = AhoCorasick::new(needles::patterns(values)).unwrap();
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
        }
    }

    fn check(&self, text: &Text, gate: &mut Gate) {
        let name = text.name;
        if text.is_plain {
            gate.check(&format!("{name} / aho-corasick"), self.ratio, 1.0..);
        } else {
            gate.check(&format!("{name}, MB/s"), self.own, LEAST..);
        }
    }
}

impl fmt::Display for Rates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (own, corasick, ratio) = (self.own, self.corasick, self.ratio);
        write!(f, "{own:.0} | {corasick:.0} | {ratio:.2}")
    }
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
    let start = processor_time();
    let result = work();
    let time = processor_time() - start;
    drop(result);
    time.as_secs_f64()
}

/// Returns the middle one of some numbers.
fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

/// Processor time used so far: other programs on the machine take none of it.
fn processor_time() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_SELF).unwrap();
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
