//! Waiting for what a process comes to.

use std::fs;
use std::time::{Duration, Instant};

use nix::unistd::Pid;

/// Returns the letter of the state of a process; nothing when it is gone.
pub fn state(pid: Pid) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(") ").next()?.chars().next()
}

/// Waits until something is so.
#[track_caller]
pub fn wait_until(is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < deadline, "it never came to it");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns what tells a process from a later one with its number; nothing when there is none, or it has ended and
/// waits for the parent that it got.
pub fn start_time(pid: &str) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).ok()?;
    let (_, after_name) = stat.rsplit_once(')')?;
    if after_name.trim_start().starts_with('Z') {
        return None;
    }
    after_name.split_whitespace().nth(19).map(str::to_owned)
}

/// Waits until a process is gone.
#[track_caller]
pub fn wait_for_end(pid: &str, start_time: Option<String>) {
    assert!(start_time.is_some(), "{pid} was never there");
    wait_until(|| self::start_time(pid) != start_time);
}
