//! Killed at any instant, the server leaves every set of edits whole or not there at all.
//!
//! A caller changes the same files over HTTP again and again while the server is killed after a
//! random time. The next server ends what was left when it changes something, and then all files
//! are of one state: the last one that was answered, or the one after it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};

use super::{ANSWER_LIMIT, command};
use crate::crash;

const KEY: &str = "a-key-of-the-crash-tests-0123456789";
/// Longest time callers change files before the server is killed, in microseconds: at first, at
/// least and at most.
const LONGEST_WAITS_US: (u64, u64, u64) = (60_000, 4_000, 2_000_000);

/// A connection that calls `edit`.
struct Caller {
    stream: BufReader<TcpStream>,
}

impl Caller {
    fn connect(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(ANSWER_LIMIT)).unwrap();
        Self {
            stream: BufReader::new(stream),
        }
    }

    /// Makes a set of edits; whether that was answered. An answer must be good.
    fn edit(&mut self, files: &Value) -> bool {
        let body = json!({"tool_name": "edit", "input": {"files": files}}).to_string();
        let text = format!(
            "POST /tools/call HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             X-Tenant-ID: t\r\nX-Site-ID: s\r\nX-Trace-ID: x\r\nX-Internal-API-Key: {KEY}\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        if self.stream.get_mut().write_all(text.as_bytes()).is_err() {
            return false;
        }
        let Some(answer) = self.answer() else {
            return false;
        };
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        assert_eq!(answer["success"], true, "{answer}");
        true
    }

    /// Reads one answer; nothing when it does not come whole.
    fn answer(&mut self) -> Option<Vec<u8>> {
        let mut length = None;
        loop {
            let mut line = String::new();
            let read = self.stream.read_line(&mut line).ok()?;
            let line = line.trim().to_ascii_lowercase();
            if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.parse().ok();
            }
            match (read, line.is_empty()) {
                (0, _) => return None,
                (_, true) => break,
                (_, false) => {}
            }
        }
        let mut body = vec![0; length?];
        self.stream.read_exact(&mut body).ok()?;
        Some(body)
    }
}

/// The step from one state to the next, as `crash` has it.
fn step(state: u64) -> Value {
    let edits =
        json!([{"find": format!("state {state};"), "replace": format!("state {};", state + 1)}]);
    json!([
        {"src": "a", "edits": edits},
        {"src": "sub/b", "edits": edits},
        {"src": format!("flag-{state}"), "delete": true},
        {"src": format!("flag-{}", state + 1), "edits": [{"find": "", "replace": "x"}]},
        {"src": "sub/deep/c", "edits": edits},
    ])
}

/// What came of one server.
struct KilledServer {
    /// The state that its first look found.
    found: u64,
    /// The last state that was answered.
    told: u64,
}

/// Starts a server, lets it change files for a random time and kills it.
fn kill_one(place: &Path, wait: Duration) -> KilledServer {
    let mut server = command(place)
        .args(["--port", "0", "--bind", "127.0.0.1", "--tools", "edit"])
        .args(["--tool-rate", "off", "--tenant-rate", "off"])
        .arg("--key-file")
        .arg(place.join("key"))
        .arg("--root")
        .arg(place.join("work"))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut log = BufReader::new(server.stderr.take().unwrap());
    let port = loop {
        let mut line = String::new();
        assert!(log.read_line(&mut line).unwrap() > 0, "it did not start");
        let line: Value = serde_json::from_str(&line).unwrap();
        if line["event"] == "listening" {
            let address = line["message"].as_str().unwrap();
            break address.rsplit_once(':').unwrap().1.parse().unwrap();
        }
    };
    // A log that nobody reads would hold the server up one day.
    let reading = std::thread::spawn(move || log.read_to_string(&mut String::new()));
    let mut caller = Caller::connect(port);
    let probe = std::fs::read_to_string(place.join("work/probe")).unwrap();
    let other = if probe == "0" { "1" } else { "0" };
    // Whatever is changed next ends what was left.
    let edits = json!([{"find": probe, "replace": other}]);
    assert!(caller.edit(&json!([{"src": "probe", "edits": edits}])));
    let found = crash::state(place);
    let changing = std::thread::spawn(move || {
        let mut now = found;
        while caller.edit(&step(now)) {
            now += 1;
        }
        now
    });
    // The random instant itself: there is nothing to wait for.
    std::thread::sleep(wait);
    server.kill().unwrap();
    server.wait().unwrap();
    let told = changing.join().unwrap();
    let _ = reading.join().unwrap();
    KilledServer { found, told }
}

/// Kills so many servers; returns how many changes were answered, and how many kills met one under way.
fn kill_many(kills: usize, seed: u64) -> (u64, usize) {
    let mut random = seed;
    let place = crash::place();
    std::fs::write(place.path().join("key"), KEY).unwrap();
    let (mut longest, least, most) = LONGEST_WAITS_US;
    let (mut last, mut met) = (0, 0);
    for kill in 0..kills {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let killed = kill_one(place.path(), Duration::from_micros(random % longest));
        let is_next = killed.found == last || killed.found == last + 1;
        assert!(
            is_next,
            "kill {kill}: {} was answered, {} found",
            last, killed.found
        );
        let told = killed.told - killed.found;
        last = killed.told;
        longest = match told {
            0 => longest + longest / 4,
            1 | 2 => longest,
            _ => longest - longest / 8,
        };
        longest = longest.clamp(least, most);
        let records = std::fs::read_dir(place.path().join("home/state/journal/transactions"));
        let records = records.into_iter().flatten().flatten();
        let is_whole = |path: &Path| path.extension() == Some("json".as_ref());
        met += usize::from(
            records
                .map(|record| record.path())
                .any(|path| is_whole(&path)),
        );
    }
    (last, met)
}

#[test]
fn a_killed_server_leaves_every_set_of_edits_whole() {
    // Several places at a time, as a server waits for the disk now and then.
    let (places, kills) = match std::env::var_os("KARYI_FULL") {
        Some(_) => (4, 500),
        None => (4, 12),
    };
    let seed = std::env::var("KARYI_SEED").ok();
    let seed: u64 = seed.and_then(|seed| seed.parse().ok()).unwrap_or(0x5eed);
    let found: Vec<(u64, usize)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..places)
            .map(|place| scope.spawn(move || kill_many(kills, seed + place)))
            .collect();
        let ended = threads.into_iter().map(|thread| thread.join().unwrap());
        ended.collect()
    });
    let changes: u64 = found.iter().map(|(changes, _)| changes).sum();
    let met: usize = found.iter().map(|(_, met)| met).sum();
    let all = kills * places as usize;
    println!("seed {seed}: {all} kills, {met} of them inside a change; {changes} changes answered");
    assert!(met * 10 > all, "too few kills met a change: {met} of {all}");
}

#[test]
fn a_log_that_nobody_reads_does_not_hold_up_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = command(dir.path())
        .args(["--port", "0", "--bind", "127.0.0.1"])
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // Read to the line that names the port, and no further.
    let mut log = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut log, &mut line).unwrap();
    let told: Value = serde_json::from_str(&line).unwrap();
    let address = told["message"].as_str().unwrap();
    let address = address.strip_prefix("http://").unwrap();
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let request = "GET /nope HTTP/1.1\r\nHost: localhost\r\n";
    // Each has a line in the log, together more than a pipe takes.
    let many = format!("{request}\r\n").repeat(1000);
    let last = format!("{request}Connection: close\r\n\r\n");
    let mut other = stream.try_clone().unwrap();
    let writing = std::thread::spawn(move || other.write_all((many + &last).as_bytes()));
    assert_eq!(super::answer(&mut stream).status, 404);
    writing.join().unwrap().unwrap();
    let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    let (ended, end) = std::sync::mpsc::channel();
    std::thread::spawn(move || ended.send(child.wait().unwrap().success()));
    let end = end.recv_timeout(ANSWER_LIMIT);
    if end.is_err() {
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
    }
    assert_eq!(end, Ok(true));
    drop(log);
}
