//! How long `karyi ask` takes to ask, to show and to act, and how much memory a long answer and many steps need.
//!
//! The model is a server on loopback that writes piece by piece; each time is from a write of the server to the event
//! that follows it. `-- --full` takes a thousand steps.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench tells its figures and has nobody to pass an error to"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

mod gate;

const STARTS: usize = 20;
const PIECES: usize = 200;
const CALLS: usize = 200;
/// Bytes of prose of a long answer.
const PROSE_BYTES: usize = 100_000_000;
const STEPS: usize = 1000;
/// Steps after which memory and descriptors are taken as the start.
const WARM_STEPS: usize = 100;

fn main() {
    let mut gate = gate::Gate::default();
    let start = median((0..STARTS).map(|_| start_time()).collect());
    println!(
        "start to the first byte of the request {:>8.2} ms",
        ms(start)
    );
    gate.check("start to the request, ms", ms(start), ..=40.0);
    let (piece, call) = (median(piece_times()), median(call_times()));
    println!(
        "piece written to piece shown           {:>8.3} ms",
        ms(piece)
    );
    println!(
        "end tag written to call started        {:>8.3} ms",
        ms(call)
    );
    gate.check("a piece, ms", ms(piece), ..=1.0);
    gate.check("a call, ms", ms(call), ..=2.0);
    let (little, much) = (prose_peak(1_000_000), prose_peak(PROSE_BYTES));
    println!("peak after 1 and 100 MB of prose       {little:>8.1} {much:.1} MiB");
    gate.check("growth with the prose, MiB", much - little, ..4.0);
    let (early, late) = many_steps();
    println!("after {WARM_STEPS} and {STEPS} steps                {early:?} {late:?}");
    gate.check("growth with the steps, MiB", late.0 - early.0, ..8.0);
    gate.check("more descriptors", late.1 as f64 - early.1 as f64, ..=0.0);
    gate.close();
}

/// A running `karyi ask`, and the model that it asks.
struct Asking {
    child: Child,
    listener: TcpListener,
    events: Receiver<(Instant, Value)>,
    _home: tempfile::TempDir,
}

impl Asking {
    fn start() -> Self {
        let home = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let flags =
            "ask --no-rc --shell bash --vault env --jsonl --approve full --max-steps 5000 go";
        let mut command = Command::new(env!("CARGO_BIN_EXE_karyi"));
        command.args(flags.split(' ')).current_dir(home.path());
        command.env("KARYI_HOME", home.path().join("karyi"));
        command.env("KARYI_MODEL", "openai_chat:tiny");
        command.env("KARYI_MODEL_URL", url);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (sender, events) = channel();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let at = Instant::now();
                let _ = sender.send((at, serde_json::from_str(&line).unwrap()));
            }
        });
        Self {
            child,
            listener,
            events,
            _home: home,
        }
    }

    /// Waits for the next question; returns the stream for the answer and the time of its first byte.
    fn question(&self) -> (TcpStream, Instant) {
        loop {
            let (stream, _) = self.listener.accept().unwrap();
            stream.set_nodelay(true).unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            reader.fill_buf().unwrap();
            let at = Instant::now();
            let (mut head, mut length) = (String::new(), 0);
            while !head.ends_with("\r\n\r\n") {
                let start = head.len();
                reader.read_line(&mut head).unwrap();
                let line = head[start..].to_ascii_lowercase();
                if let Some(value) = line.strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
            }
            reader.read_exact(&mut vec![0; length]).unwrap();
            let mut stream = stream;
            if head.starts_with("POST ") {
                let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
                stream.write_all(head.as_bytes()).unwrap();
                return (stream, at);
            }
            let none = "HTTP/1.1 404 No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            stream.write_all(none.as_bytes()).unwrap();
        }
    }

    /// Returns the time of the next event of this kind.
    fn event(&self, kind: &str) -> Instant {
        loop {
            let (at, event) = self.events.recv().unwrap();
            if event["event"] == kind {
                return at;
            }
        }
    }

    /// Returns the most resident memory so far, in MiB.
    fn peak(&self) -> f64 {
        self.status("VmHWM:")
    }

    fn status(&self, field: &str) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix(field))
            .unwrap();
        let kib: f64 = line.trim().trim_end_matches(" kB").parse().unwrap();
        kib / 1024.0
    }

    fn descriptors(&self) -> usize {
        let directory = format!("/proc/{}/fd", self.child.id());
        std::fs::read_dir(directory).unwrap().count()
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Writes a piece of an answer.
fn write(stream: &mut TcpStream, text: &str) {
    let chunk = json!({"choices": [{"index": 0, "delta": {"content": text}}]});
    stream
        .write_all(format!("data: {chunk}\n\n").as_bytes())
        .unwrap();
}

/// Ends an answer.
fn end(mut stream: TcpStream) {
    let last = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    let text = format!("data: {last}\n\ndata: [DONE]\n\n");
    stream.write_all(text.as_bytes()).unwrap();
}

fn start_time() -> Duration {
    let start = Instant::now();
    let asking = Asking::start();
    let (stream, at) = asking.question();
    end(stream);
    at - start
}

fn piece_times() -> Vec<Duration> {
    let asking = Asking::start();
    let (mut stream, _) = asking.question();
    let piece = |_| {
        let start = Instant::now();
        write(&mut stream, "some words of prose.\n");
        asking.event("text") - start
    };
    let times = (0..PIECES).map(piece).collect();
    end(stream);
    times
}

/// The end of a call is certain when the next tag follows its end tag: a script may hold the text `</command>`.
fn call_times() -> Vec<Duration> {
    let asking = Asking::start();
    let (mut stream, _) = asking.question();
    write(&mut stream, "<tools>\n<command>true");
    let call = |number| {
        let start = Instant::now();
        write(&mut stream, &format!("</command>\n<command>true {number}"));
        let started = asking.event("started") - start;
        asking.event("finished");
        started
    };
    let times = (0..CALLS).map(call).collect();
    write(&mut stream, "</command>\n</tools>\n");
    end(stream);
    times
}

/// Returns the peak of an answer with so many bytes of prose.
fn prose_peak(bytes: usize) -> f64 {
    let mut asking = Asking::start();
    let (mut stream, _) = asking.question();
    let line = "a line of prose that a model writes without an end\n".repeat(80);
    for _ in 0..bytes / line.len() {
        write(&mut stream, &line);
        while asking.events.try_recv().is_ok() {}
    }
    write(&mut stream, "<end-of-prose>");
    let (_, events) = channel();
    let events = std::mem::replace(&mut asking.events, events);
    let is_last = |event: &Value| {
        event["text"]
            .as_str()
            .is_some_and(|text| text.contains("<end-of-prose>"))
    };
    while !is_last(&events.recv().unwrap().1) {}
    asking.peak()
}

/// Returns memory in MiB and the number of descriptors, after some steps and after all.
fn many_steps() -> ((f64, usize), (f64, usize)) {
    let asking = Asking::start();
    let mut found = Vec::new();
    for step in 1..=STEPS {
        let (mut stream, _) = asking.question();
        write(
            &mut stream,
            &format!("<tools><command>true {step}</command></tools>"),
        );
        end(stream);
        while asking.events.try_recv().is_ok() {}
        if step == WARM_STEPS || step == STEPS {
            found.push((asking.status("VmRSS:"), asking.descriptors()));
        }
    }
    (found[0], found[1])
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
