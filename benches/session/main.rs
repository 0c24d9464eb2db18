//! What a command costs in a running session, beside what it is made of and beside its peers.
//!
//! Everything is measured in one run, the contestants by turns, so that all of them see the same
//! machine; what counts is a ratio, never an absolute time. `-- --markdown` prints the tables of
//! docs/performance.md; `--only NAMES` measures those parts only whose name has one of NAMES,
//! divided by semicolons; `--full` prints ten gigabytes instead of two; `--all-processors` leaves
//! the round trip on all of them; `--alone` leaves the peers
//! of a round trip out, for a profiler.

// A benchmark reports on the terminal and has nobody to pass an error to.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a benchmark's result is what it prints"
)]

#[path = "../gate/mod.rs"]
mod gate;
mod machine;
mod memory;
mod peers;
mod report;
mod samples;
mod secrets;
mod stream;
mod terminal;
mod trip;
mod waits;

use report::Report;

/// Measures something and reports it.
type Part = fn(&mut Report);

fn main() {
    let parts: [(&str, Part); 5] = [
        ("trip", trip::measure),
        ("stream", stream::measure),
        ("waits", waits::measure),
        ("secrets", secrets::measure),
        ("memory", memory::measure),
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
