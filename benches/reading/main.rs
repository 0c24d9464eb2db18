//! Searching beside ripgrep, a few lines of a huge file, and how soon a streamed call starts.
//!
//! Everything is the whole program, started as a user does, beside its peer in the same run. What
//! counts is a ratio or a size, never an absolute time. `-- --only NAMES` measures those parts only
//! whose name has one of NAMES, divided by semicolons.

// A benchmark reports on the terminal and has nobody to pass an error to.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a benchmark's result is what it prints"
)]

#[path = "../gate/mod.rs"]
mod gate;
mod huge;
mod search;
mod start;

use std::time::Duration;

use gate::Gate;

/// Measures something and reports it.
type Part = fn(&mut Gate);

fn main() {
    let parts: [(&str, Part); 4] = [
        ("search", search::measure),
        ("lines", search::measure_lines),
        ("huge", huge::measure),
        ("start", start::measure),
    ];
    let mut only = std::env::args().skip_while(|argument| argument != "--only");
    let only = only.nth(1).unwrap_or_default();
    let mut gate = Gate::default();
    for (name, measure) in parts {
        if only.split(';').any(|part| name.contains(part)) {
            measure(&mut gate);
        }
    }
    gate.close();
}

/// Returns the middle one of some durations.
fn median(mut durations: Vec<Duration>) -> Duration {
    durations.sort_unstable();
    durations[durations.len() / 2]
}
