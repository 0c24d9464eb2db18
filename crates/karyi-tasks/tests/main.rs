//! Tests of the engine with real files, real processes and a clock of their own.

#![allow(
    clippy::unwrap_used,
    clippy::cloned_ref_to_slice_refs,
    reason = "tests"
)]

mod clocks;
mod conditions;
mod conversation;
mod harness;
mod hostile_files;
mod killed;
mod lifecycle;
mod memory_reach;
mod processes;
mod simulated_week;
mod supervising;
