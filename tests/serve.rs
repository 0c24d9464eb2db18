//! The server of tools over real sockets: one process per test, on a port of its own.

mod auth;
mod bad_input;
mod broken;
mod calls;
mod client;
mod disk;
mod faults;
mod kept;
mod killed;
mod late;
mod leaving;
pub mod ledger;
mod masking;
mod openapi;
mod search;
mod site;
mod spans;
mod tls;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::program;

/// How long an answer may take on a busy machine.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);

/// A server that ends with its test.
pub struct Server {
    pub dir: tempfile::TempDir,
    pub port: u16,
    /// Lines of the log that nobody has asked for yet.
    log: Mutex<Receiver<String>>,
    child: Child,
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<String> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found
                .eq_ignore_ascii_case(name)
                .then(|| value.trim().to_owned())
        })
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl Server {
    /// Starts a server of the village.
    pub fn start(arguments: &[&str]) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), arguments)
    }

    /// Starts a server whose database is in `dir`.
    pub fn start_in(dir: tempfile::TempDir, arguments: &[&str]) -> Self {
        Self::run(command(dir.path()), dir, arguments)
    }

    /// Starts a server by a command that begins with `karyi serve --db FILE`.
    pub fn run(mut command: Command, dir: tempfile::TempDir, arguments: &[&str]) -> Self {
        let mut child = command
            .args(["--port", "0", "--bind", "127.0.0.1", "--data"])
            .arg(village())
            .args(arguments)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut told = String::new();
        let port = loop {
            let Some(Ok(line)) = lines.next() else {
                panic!("the server did not start: {told}");
            };
            let found: Value = serde_json::from_str(&line).unwrap_or_default();
            if found["event"] == "listening" {
                let address = found["message"].as_str().unwrap();
                break address.rsplit_once(':').unwrap().1.parse().unwrap();
            }
            told.push_str(&line);
        };
        let (sender, log) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                // The log is read to its end, whether or not a test looks at it.
                let _ = sender.send(line);
            }
        });
        Self {
            dir,
            port,
            log: Mutex::new(log),
            child,
        }
    }

    /// Waits until the log tells of an event, and returns its line.
    pub fn wait_for(&self, event: &str) -> Value {
        let log = self.log.lock().unwrap();
        loop {
            let line = log.recv_timeout(ANSWER_LIMIT);
            let line = line.unwrap_or_else(|_| panic!("the log never told of {event}"));
            let line: Value = serde_json::from_str(&line).unwrap();
            if line["event"] == event {
                return line;
            }
        }
    }

    /// What else the log tells, to its end; the server must be ending.
    pub fn log(&self) -> String {
        let log = self.log.lock().unwrap();
        let mut all = String::new();
        while let Ok(line) = log.recv_timeout(ANSWER_LIMIT) {
            all.push_str(&line);
            all.push('\n');
        }
        all
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends bytes and reads one answer.
    pub fn raw(&self, request: &[u8]) -> Answer {
        let mut stream = self.connect();
        // A server that refuses early may close while it is still written to.
        let _ = stream.write_all(request);
        answer(&mut stream)
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(ANSWER_LIMIT)).unwrap();
        stream
    }

    /// Sends a request with the three headers, unless `headers` name them themselves.
    pub fn post(&self, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        self.raw(&self.request(path, headers, body))
    }

    pub fn request(&self, path: &str, headers: &[(&str, &str)], body: &str) -> Vec<u8> {
        let usual = [
            ("Host", "localhost"),
            ("Content-Type", "application/json"),
            ("X-Tenant-ID", "yantian"),
            ("X-Site-ID", "yantian-main"),
            ("X-Trace-ID", "trace-test"),
        ];
        let is_given = |name: &str| {
            headers
                .iter()
                .any(|(other, _)| other.eq_ignore_ascii_case(name))
        };
        let mut text = format!(
            "POST {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n",
            body.len()
        );
        let others = usual.iter().filter(|(name, _)| !is_given(name));
        for (name, value) in others.chain(headers).filter(|(_, value)| *value != "-") {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str("\r\n");
        text.push_str(body);
        text.into_bytes()
    }

    /// Calls a tool and returns the whole answer.
    pub fn answer(&self, tool: &str, input: &Value, headers: &[(&str, &str)]) -> Answer {
        let body = json!({"tool_name": tool, "input": input}).to_string();
        self.post("/api/tools/call", headers, &body)
    }

    /// Calls a tool and returns the body; the status must be 200.
    pub fn call(&self, tool: &str, input: &Value) -> Value {
        let answer = self.answer(tool, input, &[]);
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    pub fn get(&self, path: &str) -> Answer {
        self.raw(
            format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                .as_bytes(),
        )
    }

    /// The records of the ledger, oldest first.
    pub fn records(&self) -> Vec<Value> {
        records(self.dir.path())
    }

    /// How many contents callers have made.
    pub fn drafts(&self) -> u64 {
        drafts(self.dir.path())
    }

    pub fn last_record(&self) -> Value {
        self.records().pop().unwrap()
    }

    /// Ends the server as a service manager does, and returns its directory.
    pub fn stop(mut self) -> tempfile::TempDir {
        self.terminate();
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}");
        std::mem::replace(&mut self.dir, tempfile::tempdir().unwrap())
    }

    pub fn terminate(&self) {
        self.signal(nix::sys::signal::Signal::SIGTERM);
    }

    pub fn signal(&self, signal: nix::sys::signal::Signal) {
        let pid = nix::unistd::Pid::from_raw(i32::try_from(self.child.id()).unwrap());
        nix::sys::signal::kill(pid, signal).unwrap();
    }

    pub fn wait(&mut self) {
        self.child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn village() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/site")
}

/// `karyi serve` with a database in `dir`.
pub fn command(dir: &Path) -> Command {
    let mut command = Command::new(program());
    command
        .arg("serve")
        .arg("--db")
        .arg(dir.join("site.db"))
        .env("KARYI_HOME", dir.join("home"))
        .env("XDG_RUNTIME_DIR", dir);
    command
}

pub fn answer(stream: &mut TcpStream) -> Answer {
    let mut bytes = Vec::new();
    // A connection that is reset after the answer has given it all the same.
    let _ = stream.read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|code| code.parse().ok())
        .unwrap_or(0);
    Answer {
        status,
        head: head.to_owned(),
        body: body.to_owned(),
    }
}

/// Counts the contents of a directory that were not imported.
pub fn drafts(dir: &Path) -> u64 {
    let sql = "SELECT count(*) FROM contents WHERE NOT imported";
    count(&dir.join("site.db"), sql)
}

pub fn count(database: &Path, sql: &str) -> u64 {
    let connection = rusqlite::Connection::open(database).unwrap();
    connection.query_row(sql, (), |row| row.get(0)).unwrap()
}

pub fn records(dir: &Path) -> Vec<Value> {
    let connection = rusqlite::Connection::open(dir.join("ledger.db")).unwrap();
    let mut statement = connection
        .prepare("SELECT record FROM trace_ledger ORDER BY seq")
        .unwrap();
    let texts = statement
        .query_map((), |row| row.get::<_, String>(0))
        .unwrap();
    texts
        .map(|text| serde_json::from_str(&text.unwrap()).unwrap())
        .collect()
}
