//! How long a command takes in a running session, beside what it is made of.
//!
//! Prints ratios measured in one run: absolute times mean nothing on a shared machine.

// A benchmark reports on the terminal and has nobody to pass an error to.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use karyi::pty::text::TerminalText;
use karyi::pty::{CommandRequest, Rc, Session, SessionOptions};

mod gate;

/// Most times as long as one byte through a terminal and back a command may take. The aim is 2.5; the
/// byte's own time doubles with the mood of the scheduler, so the gate leaves room for that.
const MOST_OF_BYTE: f64 = 4.5;
/// Least times as long as a command a new shell must take. The aim is 10.
const LEAST_OF_SPAWN: f64 = 7.0;
const ROUNDS: usize = 40;
const COMMANDS_PER_ROUND: usize = 50;
const SPAWNS_PER_ROUND: usize = 3;
const STREAM_BYTES: usize = 100_000_000;

fn main() {
    let home = tempfile::tempdir().unwrap();
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build().unwrap();
    let session = runtime
        .block_on(Session::start(options(home.path())))
        .unwrap();
    let mut terminal = Echo::start();
    let mut samples = Samples::default();
    // Interleaved, so that all see the same machine.
    for _ in 0..ROUNDS {
        time(&mut samples.ping, COMMANDS_PER_ROUND, || terminal.ping());
        let command = || runtime.block_on(run_true(&session));
        time(&mut samples.session, COMMANDS_PER_ROUND, command);
        time(&mut samples.spawn, SPAWNS_PER_ROUND, spawn_bash);
    }
    samples.print();
    let mut through_session = Vec::new();
    let mut through_terminal = Vec::new();
    for _ in 0..5 {
        let command = || runtime.block_on(stream_through_session(&session));
        time(&mut through_session, 1, command);
        time(&mut through_terminal, 1, stream_through_terminal);
    }
    let ratio =
        median(&mut through_terminal).as_secs_f64() / median(&mut through_session).as_secs_f64();
    println!("throughput with text view / raw loop {ratio:.2} (reach: at least 0.8)");
    runtime.block_on(session.close());
}

#[derive(Default)]
struct Samples {
    ping: Vec<Duration>,
    session: Vec<Duration>,
    spawn: Vec<Duration>,
}

impl Samples {
    fn print(mut self) {
        let ping = median(&mut self.ping);
        let session = median(&mut self.session);
        let spawn = median(&mut self.spawn);
        let ratio = |one: Duration, other: Duration| one.as_secs_f64() / other.as_secs_f64();
        println!("one byte through a terminal and back  {ping:>10.1?}");
        println!("`true` in a session                   {session:>10.1?}");
        println!("bash -c true                          {spawn:>10.1?}");
        let mut gate = gate::Gate::default();
        gate.check("session / byte", ratio(session, ping), ..=MOST_OF_BYTE);
        gate.check(
            "bash -c true / session",
            ratio(spawn, session),
            LEAST_OF_SPAWN..,
        );
        gate.close();
    }
}

fn time(samples: &mut Vec<Duration>, count: usize, mut act: impl FnMut()) {
    for _ in 0..count {
        let start = Instant::now();
        act();
        samples.push(start.elapsed());
    }
}

fn median(samples: &mut [Duration]) -> Duration {
    samples.sort();
    samples[samples.len() / 2]
}

async fn run_true(session: &Session) {
    let request = CommandRequest {
        script: "true".into(),
        ..CommandRequest::default()
    };
    let progress = session.command(request, Box::new(|_| {})).await.unwrap();
    assert_eq!(progress.exit_code, Some(0));
}

/// Lines as a build prints them.
fn stream_script() -> String {
    format!("yes 'warning: unused variable: `x` in src/lib.rs:12:9' | head -c {STREAM_BYTES}")
}

async fn stream_through_session(session: &Session) {
    let request = CommandRequest {
        script: stream_script(),
        ..CommandRequest::default()
    };
    let mut terminal = TerminalText::new();
    let mut text = String::new();
    let sink = move |bytes: &[u8]| {
        terminal.push(bytes, &mut text);
        text.clear();
    };
    let progress = session.command(request, Box::new(sink)).await.unwrap();
    assert_eq!(progress.exit_code, Some(0));
}

fn stream_through_terminal() {
    let pair = portable_pty::native_pty_system()
        .openpty(Default::default())
        .unwrap();
    let mut builder = portable_pty::CommandBuilder::new("sh");
    builder.args(["-c", &format!("stty -opost; {}", stream_script())]);
    let mut child = pair.slave.spawn_command(builder).unwrap();
    drop(pair.slave);
    let mut reader = pair.master.try_clone_reader().unwrap();
    let mut buffer = vec![0; 64 << 10];
    let mut total = 0;
    while total < STREAM_BYTES {
        total += reader.read(&mut buffer).unwrap();
    }
    child.wait().unwrap();
}

fn spawn_bash() {
    let mut command = Command::new("bash");
    command.args(["-c", "true"]).stdin(Stdio::null());
    assert!(command.status().unwrap().success());
}

fn options(home: &Path) -> SessionOptions {
    let variable = |name: &str, value: &str| (OsString::from(name), OsString::from(value));
    SessionOptions {
        shell: Some(PathBuf::from("/bin/bash")),
        preferred_shell: None,
        bootstrap: PathBuf::from(env!("CARGO_BIN_EXE_karyi")),
        runtime_dir: home.join("run"),
        cwd: home.to_owned(),
        env: vec![
            variable("HOME", home.to_str().unwrap()),
            variable("PATH", &std::env::var("PATH").unwrap()),
            variable("LANG", "C.UTF-8"),
        ],
        rc: Rc::None,
        seed: None,
    }
}

/// A terminal with a program behind it that sends back every byte.
struct Echo {
    reader: Box<dyn Read + Send>,
    writer: Box<dyn Write + Send>,
    child: Box<dyn portable_pty::Child + Send + Sync>,
}

impl Echo {
    fn start() -> Self {
        let pair = portable_pty::native_pty_system()
            .openpty(portable_pty::PtySize::default())
            .unwrap();
        let mut builder = portable_pty::CommandBuilder::new("dd");
        builder.args(["bs=1", "status=none"]);
        let descriptor = pair.master.as_raw_fd().unwrap();
        let status = Command::new("stty")
            .args(["raw", "-echo"])
            .stdin(std::fs::File::open(pair.master.tty_name().unwrap()).unwrap())
            .status();
        assert!(descriptor >= 0 && status.unwrap().success());
        let child = pair.slave.spawn_command(builder).unwrap();
        let mut echo = Self {
            reader: pair.master.try_clone_reader().unwrap(),
            writer: pair.master.take_writer().unwrap(),
            child,
        };
        echo.ping();
        echo
    }

    fn ping(&mut self) {
        let mut byte = [0];
        self.writer.write_all(b"x").unwrap();
        self.reader.read_exact(&mut byte).unwrap();
        assert_eq!(byte, *b"x");
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
