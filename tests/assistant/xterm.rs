//! The program in xterm.js, the terminal of VS Code, which wraps its lines anew in a way of its own.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use super::assistant;
use crate::ask::server::{ModelServer, Reply};
use crate::harness::skip;

/// A terminal of xterm.js.
struct Xterm {
    node: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Xterm {
    /// Starts the terminal; nothing where it is not installed.
    fn start() -> Option<Self> {
        if !Path::new("target/xterm/node_modules/@xterm/headless").exists() {
            return None;
        }
        let mut node = Command::new("node");
        node.arg("tests/assistant/xterm.cjs");
        node.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut node = node.spawn().ok()?;
        Some(Self {
            commands: node.stdin.take().unwrap(),
            answers: BufReader::new(node.stdout.take().unwrap()),
            node,
        })
    }

    fn run(&mut self, command: &Value) -> Value {
        writeln!(self.commands, "{command}").unwrap();
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        serde_json::from_str(&answer).unwrap()
    }
}

impl Drop for Xterm {
    fn drop(&mut self) {
        let _ = self.node.kill();
        let _ = self.node.wait();
    }
}

#[test]
fn every_line_stands_once_after_resizes_during_a_stream() {
    if std::env::var_os("KARYI_FULL").is_none() {
        return skip("xterm.js takes part in ./tests/run --full");
    }
    let Some(mut xterm) = Xterm::start() else {
        return skip("xterm.js is not installed");
    };
    let line = |number: usize| format!("line-{number:03} {}\n\n", "word ".repeat(10));
    let (reply, gate) = Reply::gated((0..60).map(line).collect());
    let server = ModelServer::start(vec![reply]);
    let karyi = assistant(&server, &[]).env("TERM_PROGRAM", "vscode");
    let mut terminal = karyi.on_terminal();
    terminal
        .expect("/help")
        .keys("stream\r")
        .expect("waiting for the model");
    terminal.keys("typed meanwhile, a line that is longer than the narrow screen");
    terminal.expect("narrow screen");
    for round in 0..5 {
        for (columns, rows) in [(80, 24), (50, 20), (100, 30)] {
            for _ in 0..4 {
                gate.send(()).unwrap();
            }
            // As a window does: the terminal first, and then its program.
            xterm.run(&json!({"write": terminal.screen()}));
            terminal.forget();
            xterm.run(&json!({"resize": [columns, rows]}));
            terminal.resize(columns, rows);
        }
        terminal.expect(&format!("line-{:03}", round * 12 + 10));
    }
    terminal.expect("line-059").expect("120 tokens");
    terminal.keys("!").expect("narrow screen!");
    xterm.run(&json!({"write": terminal.screen()}));
    let all = xterm.run(&json!({}));
    let lines: Vec<&str> = all
        .as_array()
        .unwrap()
        .iter()
        .map(|line| line.as_str().unwrap())
        .collect();
    let all = lines.join("\n");
    for number in 0..60 {
        let start = format!("line-{number:03} ");
        assert_eq!(all.matches(&start).count(), 1, "{start}\n{all}");
    }
    assert_eq!(all.matches("typed meanwhile").count(), 1, "{all}");
    assert_eq!(all.matches("· ask").count(), 1, "{all}");
    assert!(!all.contains("●"), "{all}");
    terminal.keys("\x03\x04");
    assert_eq!(terminal.echo_at_end(), (true, 0));
}
