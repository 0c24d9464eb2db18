//! Processes that try to outlive their session, and how a test tells its own from others.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How long a test waits for processes to come or to go.
const LIMIT: Duration = Duration::from_secs(60);

/// A number that only the processes of one test have in their arguments.
pub struct Mark(String);

impl Mark {
    /// Makes a number nobody else has.
    pub fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::SeqCst);
        Self(format!("7{:07}{number:03}", std::process::id()))
    }

    /// Puts the number into a script.
    pub fn script(&self, script: &str) -> String {
        script.replace("MARK", &self.0)
    }

    /// Returns the command lines of the processes that have it, as far as they have not ended.
    pub fn found(&self) -> Vec<String> {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let lines = processes.filter_map(|entry| {
            let line = std::fs::read(entry.path().join("cmdline")).ok()?;
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            let is_start = STARTERS.iter().any(|name| line.starts_with(name));
            (line.contains(&self.0) && !is_start).then_some(line)
        });
        lines.collect()
    }

    /// Waits until none is left.
    #[track_caller]
    pub fn expect_none(&self) {
        let deadline = Instant::now() + LIMIT;
        while !self.found().is_empty() {
            assert!(Instant::now() < deadline, "{:?}", self.found());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until so many run.
    #[track_caller]
    pub fn expect(&self, count: usize) {
        let deadline = Instant::now() + LIMIT;
        while self.found().len() < count {
            assert!(Instant::now() < deadline, "{:?}", self.found());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Programs that only start another one and are gone in a moment.
const STARTERS: [&str; 5] = [
    "setsid ",
    "nohup ",
    "env ",
    "bash ",
    "python3 -c import os\n",
];

/// Ways to leave a session behind; each is one process that stays.
pub const ESCAPES: &[&str] = &[
    "sleep 510.MARK & disown",
    "nohup sleep 511.MARK >/dev/null 2>&1 &",
    "setsid sleep 512.MARK &",
    "(setsid sleep 513.MARK &) &",
    "python3 -c 'import os\nif os.fork() == 0:\n os.setsid()\n if os.fork() == 0:\n  os.execve(\"/bin/sleep\", [\"sleep\", \"99014.MARK\"], {})\n os._exit(0)'",
    "(trap '' HUP TERM INT QUIT; exec sleep 515.MARK) &",
    "sh -c 'kill -STOP $$; :' 16.MARK &",
    "setsid env -i sh -c 'kill -STOP $$; :' 17.MARK &",
    "bash -c 'set -m; sleep 518.MARK & disown -a'",
];

/// Waits until a process has ended, collected or not.
#[track_caller]
pub fn expect_ended(pid: &str) {
    let deadline = Instant::now() + LIMIT;
    let line = format!("/proc/{pid}/cmdline");
    while std::fs::read(&line).is_ok_and(|line| !line.is_empty()) {
        assert!(Instant::now() < deadline, "{pid} still runs");
        std::thread::sleep(Duration::from_millis(10));
    }
}
