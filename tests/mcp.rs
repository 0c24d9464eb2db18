//! MCP over standard input and output, and over HTTP: whole messages of real processes.

mod approval;
mod browser;
mod hostile;
mod http;
mod protocol;
mod secrets;
mod session;
mod streams;

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use serde_json::{Value, json};

use crate::harness::Karyi;

/// How long an answer may take on a busy machine.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);

/// What a client says of itself since 2026-07-28, with every request.
pub fn modern(capabilities: Value) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    })
}

/// A running `karyi mcp`.
pub struct Client {
    pub karyi: Karyi,
    pid: nix::unistd::Pid,
    ended: mpsc::Receiver<ExitStatus>,
    /// What reads what it writes.
    reading: Option<JoinHandle<()>>,
    input: Option<ChildStdin>,
    lines: mpsc::Receiver<Value>,
    next_id: i64,
    /// What came while something else was waited for.
    aside: Vec<Value>,
}

impl Client {
    /// Starts the program; nothing is said yet.
    pub fn start(karyi: Karyi) -> Self {
        let mut command = karyi.command();
        Self::spawn(karyi, &mut command)
    }

    pub fn spawn(karyi: Karyi, command: &mut std::process::Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        let reading = std::thread::spawn(move || {
            for line in output.lines() {
                let Ok(line) = line else { return };
                let message = serde_json::from_str(&line)
                    .unwrap_or_else(|error| panic!("no JSON on stdout: {error}: {line}"));
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let input = child.stdin.take();
        let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap());
        let (tell, ended) = mpsc::channel();
        std::thread::spawn(move || {
            let _ = tell.send(child.wait().unwrap());
        });
        Self {
            karyi,
            pid,
            ended,
            reading: Some(reading),
            input,
            lines,
            next_id: 1,
            aside: Vec::new(),
        }
    }

    /// Starts the program and says hello.
    pub fn connected() -> Self {
        Self::hello(Karyi::with_args(&["mcp", "--no-rc"]), &json!({}))
    }

    pub fn hello(karyi: Karyi, capabilities: &Value) -> Self {
        Self::start(karyi).greeted(capabilities)
    }

    /// Says hello.
    pub fn greeted(mut self, capabilities: &Value) -> Self {
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": capabilities,
            "clientInfo": {"name": "test", "version": "1"},
        });
        let answer = self.request("initialize", params);
        assert_eq!(
            answer["result"]["protocolVersion"], "2025-11-25",
            "{answer}"
        );
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        self
    }

    pub fn raw(&mut self, text: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(text).unwrap();
        input.flush().unwrap();
    }

    pub fn send(&mut self, message: &Value) {
        self.raw(format!("{message}\n").as_bytes());
    }

    /// Sends a request and returns its id.
    pub fn begin(&mut self, method: &str, params: Value) -> i64 {
        let id = self.next_id;
        self.next_id += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// The next message.
    pub fn next(&mut self) -> Value {
        match self.lines.recv_timeout(ANSWER_LIMIT) {
            Ok(message) => message,
            Err(error) => panic!("no message: {error}; {:?}", self.ended.try_recv()),
        }
    }

    /// The first message that fits; others are kept aside.
    pub fn wait_for(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.aside.iter().position(&fits) {
            return self.aside.remove(at);
        }
        loop {
            let message = self.next();
            if fits(&message) {
                return message;
            }
            self.aside.push(message);
        }
    }

    pub fn answer(&mut self, id: i64) -> Value {
        self.wait_for(|message| message["id"] == id && message.get("method").is_none())
    }

    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        self.answer(id)
    }

    pub fn begin_call(&mut self, tool: &str, arguments: Value) -> i64 {
        self.begin("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// Calls a tool and returns the result.
    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let id = self.begin_call(tool, arguments);
        let mut answer = self.answer(id);
        match answer.get_mut("result") {
            Some(result) => calm(result.take()),
            None => panic!("{answer}"),
        }
    }

    /// What a call gave back; it must be good.
    pub fn good(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], false, "{result}");
        result["structuredContent"].clone()
    }

    /// What is wrong with a call; it must be an error, without structured content.
    pub fn bad(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments);
        error_of(&result)
    }

    pub fn pid(&self) -> nix::unistd::Pid {
        self.pid
    }

    /// Closes standard input and waits for the end.
    pub fn end(mut self) -> (ExitStatus, Karyi) {
        drop(self.input.take());
        let status = self.wait();
        let empty = Karyi::with_args(&[]);
        (status, std::mem::replace(&mut self.karyi, empty))
    }

    pub fn wait(&mut self) -> ExitStatus {
        let ended = self.ended.recv_timeout(ANSWER_LIMIT);
        ended.expect("the program does not end")
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        drop(self.input.take());
        let ended = self.ended.recv_timeout(Duration::from_secs(10));
        if let Err(mpsc::RecvTimeoutError::Timeout) = ended {
            let _ = nix::sys::signal::kill(self.pid, nix::sys::signal::Signal::SIGKILL);
        }
    }
}

/// A pipe with a name: what is written into it is told line by line, and its end is that of everything
/// that held it open.
pub struct Pipe {
    pub path: PathBuf,
    lines: mpsc::Receiver<String>,
}

impl Pipe {
    pub fn at(path: PathBuf) -> Self {
        mkfifo(&path, Mode::S_IRWXU).unwrap();
        let (sender, lines) = mpsc::channel();
        let own = path.clone();
        std::thread::spawn(move || {
            let file = BufReader::new(File::open(own).unwrap());
            for line in file.lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        Self { path, lines }
    }

    /// The process id that is written next.
    pub fn pid(&self) -> i32 {
        let line = self.lines.recv_timeout(ANSWER_LIMIT).unwrap();
        line.trim().parse().unwrap()
    }

    /// Waits until nothing holds it open any more.
    pub fn ended(&self) {
        while self.lines.recv_timeout(ANSWER_LIMIT) != Err(mpsc::RecvTimeoutError::Disconnected) {}
    }
}

/// What a command waits for with `read < go`.
pub struct Gate(PathBuf);

impl Gate {
    pub fn in_dir(dir: &Path) -> Self {
        let path = dir.join("go");
        mkfifo(&path, Mode::S_IRWXU).unwrap();
        Self(path)
    }

    pub fn open(&self) {
        std::fs::write(&self.0, "\n").unwrap();
    }
}

/// The data of an error. Its text says the same in words.
pub fn error_of(result: &Value) -> Value {
    assert_eq!(result["isError"], true, "{result}");
    let text = result["content"][0]["text"].as_str();
    let mut error = result["structuredContent"].clone();
    for name in ["code", "message", "hint"] {
        let words = error[name].as_str().unwrap_or_default();
        assert!(text.is_none_or(|text| text.contains(words)), "{result}");
    }
    if error.get("duration_ms").is_some() {
        error["duration_ms"] = json!(0);
    }
    error
}

/// A result whose durations are 0. Its text must show what was printed.
pub fn calm(mut result: Value) -> Value {
    let text = result["content"][0]["text"].as_str();
    if let (Some(text), Some(content)) = (text, result.get("structuredContent")) {
        assert!(
            text.contains(content["output"].as_str().unwrap_or_default()),
            "{result}"
        );
        result["content"] = json!("the same");
    }
    if let Some(duration) = result.pointer_mut("/structuredContent/duration_ms") {
        *duration = json!(0);
    }
    result
}
