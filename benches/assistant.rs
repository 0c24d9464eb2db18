//! The assistant on a terminal: how soon its prompt is there, what memory it takes, how soon Esc ends a call, and what
//! drawing costs while output scrolls by.
//!
//! No model is asked: the commands are the user's. What drawing costs is the processor time beside that of `karyi run`,
//! which prints the same output as it comes, for the same command.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench tells its figures and has nobody to pass an error to"
)]

use std::fs;
use std::io::{Read as _, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

mod gate;

const STARTS: usize = 20;
const ENDS: usize = 10;
/// Ticks of the kernel's clock in a second, as it tells processor time.
const TICKS: f64 = 100.0;
/// Prints about 10 MB/s for five seconds.
const SCROLLING: &str = "for i in $(seq 50); do head -c 1000000 /dev/zero | tr '\\0' x | fold -w 80; sleep 0.08; done; echo; echo END";
/// Longest wait for a text.
const LIMIT: Duration = Duration::from_secs(60);

fn main() {
    let mut gate = gate::Gate::default();
    let starts = (0..STARTS).map(|_| Assistant::start());
    let (mut times, mut memory) = (Vec::new(), 0.0_f64);
    for (assistant, time) in starts {
        times.push(time);
        memory = memory.max(assistant.memory());
    }
    let start = median(times);
    println!(
        "start to the prompt                    {:>8.2} ms",
        ms(start)
    );
    gate.check("start to the prompt, ms", ms(start), ..=30.0);
    gate.check("resident at the prompt, MB", memory, ..=25.0);
    let (mut assistant, _) = Assistant::start();
    let ends = (0..ENDS).map(|_| assistant.end_time()).collect();
    let end = median(ends);
    println!("Esc to the end of the call             {:>8.2} ms", ms(end));
    gate.check("Esc to the end of a call, ms", ms(end), ..=300.0);
    let (drawn, seconds) = assistant.scroll();
    let plain = scroll_of_run();
    println!(
        "processor while output scrolls, s      {drawn:>8.2} ({plain:.2} without drawing, in {seconds:.1} s)"
    );
    let part = (drawn - plain).max(0.0) / seconds * 100.0;
    gate.check("drawing, percent of a core", part, ..=5.0);
    gate.close();
}

/// A running assistant.
struct Assistant {
    child: Box<dyn Child + Send + Sync>,
    keys: Box<dyn Write + Send>,
    output: Receiver<Vec<u8>>,
    seen: String,
    _master: Box<dyn MasterPty + Send>,
    _home: tempfile::TempDir,
}

impl Assistant {
    /// Starts it; returns it with the time until its prompt.
    fn start() -> (Self, Duration) {
        let home = tempfile::tempdir().unwrap();
        let size = PtySize {
            rows: 40,
            cols: 100,
            ..PtySize::default()
        };
        let pair = native_pty_system().openpty(size).unwrap();
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_karyi"));
        command.args(["chat", "--no-rc", "--shell", "bash", "--vault", "env"]);
        command.cwd(home.path());
        command.env("TERM", "xterm-256color");
        command.env("KARYI_HOME", home.path().join("karyi"));
        command.env("KARYI_MODEL", "openai_chat:none");
        command.env("KARYI_MODEL_URL", "http://127.0.0.1:9/v1");
        command.env("OPENAI_API_KEY", "none-of-your-business");
        let mut reader = pair.master.try_clone_reader().unwrap();
        let (sender, output) = channel();
        let begun = Instant::now();
        let child = pair.slave.spawn_command(command).unwrap();
        std::thread::spawn(move || {
            let mut buffer = [0; 65536];
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                if sender.send(buffer[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        let mut assistant = Self {
            child,
            keys: pair.master.take_writer().unwrap(),
            output,
            seen: String::new(),
            _master: pair.master,
            _home: home,
        };
        assistant.expect("/help");
        let time = begun.elapsed();
        (assistant, time)
    }

    fn expect(&mut self, text: &str) {
        let until = Instant::now() + LIMIT;
        while !self.seen.contains(text) {
            let left = until.saturating_duration_since(Instant::now());
            let bytes = self.output.recv_timeout(left).unwrap();
            self.seen.push_str(&String::from_utf8_lossy(&bytes));
        }
        self.seen.clear();
    }

    fn keys(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Returns the resident memory, in MB.
    fn memory(&self) -> f64 {
        let path = format!("/proc/{}/statm", self.child.process_id().unwrap());
        let pages = fs::read_to_string(path).unwrap();
        let pages: f64 = pages.split(' ').nth(1).unwrap().parse().unwrap();
        pages * 4096.0 / 1e6
    }

    /// Returns the time from Esc to the end of a call that runs.
    fn end_time(&mut self) -> Duration {
        self.keys("!echo began; sleep 600\r");
        self.expect("│ began");
        let begun = Instant::now();
        self.keys("\x1b");
        self.expect("✗ ");
        let time = begun.elapsed();
        self.keys("!echo li''ves\r");
        self.expect("│ lives");
        time
    }

    /// Returns the processor time and the time in which output scrolls by.
    fn scroll(&mut self) -> (f64, f64) {
        let pid = self.child.process_id().unwrap();
        let (before, begun) = (processor_time(pid).unwrap(), Instant::now());
        self.keys(&format!("!{SCROLLING}\r"));
        self.expect("│ END");
        let time = begun.elapsed();
        (processor_time(pid).unwrap() - before, time.as_secs_f64())
    }
}

impl Drop for Assistant {
    fn drop(&mut self) {
        self.keys("\x04");
        let _ = self.child.wait();
    }
}

/// Returns the processor time of `karyi run` for the same command.
fn scroll_of_run() -> f64 {
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_karyi"));
    let script = format!("<tools><command>{SCROLLING}</command></tools>");
    command.args([
        "run", "--no-rc", "--vault", "env", "--format", "text", "-c", &script,
    ]);
    command
        .current_dir(home.path())
        .env("KARYI_HOME", home.path());
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut last = 0.0;
    while child.try_wait().unwrap().is_none() {
        last = processor_time(child.id()).unwrap_or(last);
        std::thread::sleep(Duration::from_millis(50));
    }
    last
}

/// Returns the processor time of a process so far, in seconds.
fn processor_time(pid: u32) -> Option<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(") ")?;
    let ticks = fields.split(' ').skip(11).take(2);
    let ticks: f64 = ticks.filter_map(|ticks| ticks.parse::<f64>().ok()).sum();
    Some(ticks / TICKS)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
