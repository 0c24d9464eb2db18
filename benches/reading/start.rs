//! From the last byte a call needs to the news that its tool has started, beside a program that
//! gives a line back as soon as it has come.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use crate::gate::Gate;
use crate::median;

const ROUNDS: usize = 2_000;
/// Most times the way of a line through `cat` and back: where `cat` wakes one thread, the reader, the
/// executor and the writer of the report are woken one after another.
const MOST: f64 = 10.0;

/// A program that is written to and answers in lines.
struct Peer {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Peer {
    fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self {
            child,
            stdin,
            stdout,
        }
    }

    /// Reads lines up to one that holds a text.
    fn wait_for(&mut self, text: &str) {
        let mut line = String::new();
        while !line.contains(text) {
            line.clear();
            assert!(
                self.stdout.read_line(&mut line).unwrap() > 0,
                "it has ended"
            );
        }
    }

    /// Writes something; returns how long the answer takes.
    fn ask(&mut self, bytes: &[u8], answer: &str) -> Duration {
        let start = Instant::now();
        self.stdin.write_all(bytes).unwrap();
        self.wait_for(answer);
        start.elapsed()
    }

    fn end(mut self) {
        drop(self.stdin);
        self.child.wait().unwrap();
    }
}

/// Keeps this program, and what it starts from now on, on one processor: what waking another one takes
/// depends on what else runs there, and `cat` seldom needs it.
fn stay_on_one_processor() {
    let own = std::process::id().to_string();
    let mut taskset = Command::new("taskset");
    taskset.args(["-p", "-c", "0", &own]).stdout(Stdio::null());
    if !taskset.status().is_ok_and(|status| status.success()) {
        println!("no taskset: on all processors, so the ratio depends on what else they do");
    }
}

/// Measures and reports.
pub(crate) fn measure(gate: &mut Gate) {
    stay_on_one_processor();
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("f"), "text\n").unwrap();
    let karyi = |mode: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_karyi"));
        command.args(["run", "--no-rc", "--stream", "--format", "jsonl"]);
        command.args(mode).arg("-").current_dir(directory.path());
        Peer::start(&mut command)
    };
    let mut peers = [
        karyi(&["--strict"]),
        karyi(&[]),
        Peer::start(&mut Command::new("cat")),
    ];
    let [strict, repair, _] = &mut peers;
    for peer in [strict, repair] {
        peer.stdin.write_all(b"<tools>").unwrap();
    }
    let mut times: [Vec<Duration>; 3] = Default::default();
    for _ in 0..ROUNDS {
        let [strict, repair, cat] = &mut peers;
        for (peer, times) in [strict, repair].into_iter().zip(&mut times) {
            peer.stdin
                .write_all(b"<read><file src=\"f\"/></rea")
                .unwrap();
            times.push(peer.ask(b"d>", "\"started\""));
            peer.wait_for("\"finished\"");
        }
        times[2].push(cat.ask(b"line\n", "line"));
    }
    peers.into_iter().for_each(Peer::end);
    let [strict, repair, cat] = times.map(median);
    println!(
        "last needed byte to started, {ROUNDS} times: strict {strict:.1?}, repair {repair:.1?}"
    );
    println!("  a line through cat and back: {cat:.1?}");
    let ratio = |time: Duration| time.as_secs_f64() / cat.as_secs_f64();
    gate.check("a call starts, strict ÷ cat", ratio(strict), ..=MOST);
    gate.check("a call starts, repair ÷ cat", ratio(repair), ..=MOST);
}
