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
