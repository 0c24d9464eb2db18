//! The tools of the family `assistant` that need no model.

mod bash;
mod duties;
mod files;
mod sending;
mod web;

use serde_json::Value;

use crate::harness::{Karyi, results};

/// A run with these tools whose home is the directory `home` of the test.
fn karyi() -> Karyi {
    Karyi::new().args(&["--json", "--tools", "core,assistant"])
}

/// Runs calls and returns their results.
fn run(calls: &str) -> Vec<Value> {
    run_in(karyi(), calls)
}

fn run_in(karyi: Karyi, calls: &str) -> Vec<Value> {
    let ran = karyi.stdin(format!("<tools>{calls}</tools>")).run();
    assert_ne!(ran.raw_stdout(), b"", "{}", ran.stderr_text());
    results(&ran.json()).clone()
}
