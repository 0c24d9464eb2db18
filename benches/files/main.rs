//! How fast files are edited, beside the programs people use for it, in the same run.
//!
//! `--megabytes N` changes the size of the file (100), `--rounds N` how often each runs, the fastest
//! of which counts.

#![allow(
    clippy::print_stdout,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a benchmark's result is what it prints, and one that cannot run means nothing"
)]

#[path = "../gate/mod.rs"]
mod gate;

mod edit;

/// What the command line changes.
pub(crate) struct Settings {
    /// Size of the file, in megabytes.
    pub(crate) megabytes: usize,
    /// How often each contestant runs.
    pub(crate) rounds: usize,
}

fn main() {
    let mut settings = Settings {
        megabytes: 100,
        rounds: 5,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || arguments.next().and_then(|text| text.parse().ok());
        match argument.as_str() {
            "--megabytes" => settings.megabytes = number().unwrap_or(settings.megabytes),
            "--rounds" => settings.rounds = number().unwrap_or(settings.rounds),
            _ => {}
        }
    }
    let mut gate = gate::Gate::default();
    edit::compare(&settings, &mut gate);
    gate.close();
}
