//! Calls of the tool server beside the stack it replaces and beside a server that does nothing, searches among
//! many texts, the writer of the ledger beside plain inserts, and the start of `karyi mcp`.
//!
//! The servers are processes of their own and so is what calls them; the contestants take turns.
//! What counts is a ratio to a peer of the same run; absolute aims are those of searches among many
//! texts, the writer and the start.
//! `-- --markdown` prints the tables of docs/performance-serve.md; `--only NAMES` measures those
//! parts only whose name has one of NAMES, divided by semicolons.

// A benchmark reports on the terminal and has nobody to pass an error to.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a benchmark's result is what it prints"
)]

mod bare;
mod calls;
#[path = "../gate/mod.rs"]
mod gate;
mod load;
#[allow(dead_code, reason = "the bench of the session asks for more")]
#[path = "../session/machine.rs"]
mod machine;
#[path = "../session/report.rs"]
mod report;
mod servers;
mod sizes;
mod start;
mod writer;

use report::Report;

/// Measures something and reports it.
type Part = fn(&mut Report);

fn main() {
    if let Some(port) = argument("--load") {
        return load::child(port.parse().unwrap());
    }
    if has("--bare") {
        return bare::serve();
    }
    let parts: [(&str, Part); 4] = [
        ("calls", calls::measure),
        ("sizes", sizes::measure),
        ("writer", writer::measure),
        ("start", start::measure),
    ];
    let only = argument("--only").unwrap_or_default();
    let mut report = Report::new(has("--markdown"));
    for (name, measure) in parts {
        if only.split(';').any(|part| name.contains(part)) {
            measure(&mut report);
        }
    }
    report.close();
}

/// Whether an argument was given.
fn has(name: &str) -> bool {
    std::env::args().any(|argument| argument == name)
}

/// Returns what follows an argument.
fn argument(name: &str) -> Option<String> {
    std::env::args()
        .skip_while(|argument| argument != name)
        .nth(1)
}

/// Returns the middle one of some numbers.
fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}
