//! The official conformance suite of the protocol, in both of its eras, against karyi's own server:
//! the fixtures it asks for stand in front of the `/mcp` that `karyi serve` has.

#![allow(deprecated, reason = "the suite asks for what the protocol will lose")]

mod fixtures;
mod rounds;
mod tools;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use karyi::http::app_state::AppState;
use karyi::http::server::{self, HostSetup, ServerOptions};
use karyi::mcp::http::{Defaults, router_with};
use karyi::pty::{SessionOptions, ShellSecrets, StartupFiles};
use tokio::sync::oneshot;

use crate::harness::program;
use crate::mcp_clients::{modules, node};
use fixtures::{Fixtures, Listeners};

/// Verdict of the suite on one revision.
#[derive(Debug, PartialEq)]
struct Verdict<'a> {
    /// The required scenarios.
    required: usize,
    /// The checks they made; all of them passed.
    checks: usize,
    /// Scenarios that passed although they are not required. The others are about the extension for
    /// tasks, which karyi does not have.
    beyond: Vec<&'a str>,
}

/// A server with the fixtures, in this process.
struct Server {
    port: u16,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    _dir: tempfile::TempDir,
}

impl Server {
    fn start(port: u16) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let options = options(dir.path(), port);
        let (stop, stopped) = oneshot::channel::<()>();
        let (tell, told) = mpsc::channel();
        let further = move |state: &Arc<AppState>| {
            tell.send(state.port).unwrap();
            let listeners = Listeners::default();
            let place = Defaults {
                tenant: Some("yantian".into()),
                site: Some("yantian-main".into()),
                shell: String::new(),
            };
            router_with(state, place, move |front| {
                Fixtures::new(front, listeners.clone())
            })
        };
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            let mut stopped = Some(stopped);
            let stopped = async move || match stopped.take() {
                Some(stopped) => drop(stopped.await),
                None => std::future::pending().await,
            };
            runtime
                .block_on(server::serve(options, further, stopped))
                .unwrap();
        });
        Self {
            port: told.recv().unwrap(),
            stop: Some(stop),
            thread: Some(thread),
            _dir: dir,
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        let ended = self.thread.take().map(JoinHandle::join);
        if !std::thread::panicking() {
            ended.unwrap().unwrap();
        }
    }
}

fn options(dir: &Path, port: u16) -> ServerOptions {
    let session = SessionOptions {
        shell: None,
        preferred_shell: None,
        bootstrap: program().to_owned(),
        runtime_dir: dir.to_owned(),
        cwd: dir.to_owned(),
        env: std::env::vars_os().collect(),
        overrides: Vec::new(),
        rc: StartupFiles::None,
        fork_state: None,
        secrets: ShellSecrets::default(),
    };
    ServerOptions {
        addresses: vec![([127, 0, 0, 1], port).into()],
        ..ServerOptions::new(HostSetup {
            data: Some(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/site")),
            ..HostSetup::new(dir.join("site.db"), session)
        })
    }
}

/// Runs the suite and returns its output.
fn suite(mut node: Command, port: u16, revision: &str) -> String {
    let index: PathBuf =
        modules().join("node_modules/@modelcontextprotocol/conformance/dist/index.js");
    let output = node
        .arg(index)
        .args(["server", "--url", &format!("http://127.0.0.1:{port}/mcp")])
        .args(["--requirements", revision])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{revision}: {text}");
    text
}

/// A scenario with the checks it made that passed and failed, of every line of the summary.
fn scenarios(said: &str) -> Vec<(&str, usize, usize)> {
    let (_, summary) = said.split_once("=== SUMMARY ===").unwrap();
    let lines = summary.lines().filter_map(|line| {
        let (name, figures) = line
            .strip_prefix("✓ ")
            .or(line.strip_prefix("✗ "))?
            .split_once(": ")?;
        let (passed, failed) = figures.split_once(" passed, ")?;
        let failed = failed.strip_suffix(" failed")?;
        Some((name, passed.parse().unwrap(), failed.parse().unwrap()))
    });
    lines.collect()
}

/// Reads a summary. The suite names required scenarios first, then those that it does not score.
fn verdict(said: &str) -> Verdict<'_> {
    let (_, not_scored) = said.split_once("\nNot scored for ").unwrap();
    let is_scored = |name: &str| !not_scored.contains(&format!(" {name} ("));
    let (required, beyond): (Vec<_>, Vec<_>) = scenarios(said)
        .into_iter()
        .partition(|(name, ..)| is_scored(name));
    let bad: Vec<_> = required
        .iter()
        .filter(|(_, passed, failed)| *failed > 0 || *passed == 0)
        .collect();
    assert!(bad.is_empty(), "{bad:?} {said}");
    let passed = beyond
        .iter()
        .filter(|(_, passed, failed)| *failed == 0 && *passed > 0);
    Verdict {
        required: required.len(),
        checks: required.iter().map(|(_, passed, _)| passed).sum(),
        beyond: passed.map(|(name, ..)| *name).collect(),
    }
}

#[test]
fn both_revisions_are_conformed_to() {
    let revisions = [
        (
            "2025-11-25",
            Verdict {
                required: 30,
                checks: 70,
                beyond: vec![
                    "server-session-lifecycle",
                    "json-schema-2020-12",
                    "server-sse-polling",
                ],
            },
        ),
        (
            "2026-07-28",
            Verdict {
                required: 37,
                checks: 121,
                beyond: vec![
                    "json-schema-2020-12",
                    "http-header-validation",
                    "http-custom-header-server-validation",
                ],
            },
        ),
    ];
    let server = Server::start(0);
    for (revision, expected) in revisions {
        let Some(node) = node() else {
            return;
        };
        let said = suite(node, server.port, revision);
        assert_eq!(verdict(&said), expected, "{revision}: {said}");
        println!("conformance {revision}: {expected:?}");
    }
}

/// For a suite by hand: `KARYI_CONFORMANCE_PORT=8001 cargo test --test karyi serve_the_fixtures --
/// --ignored --nocapture`.
#[test]
#[ignore = "serves until it is killed"]
fn serve_the_fixtures() {
    let port = std::env::var("KARYI_CONFORMANCE_PORT").ok();
    let port = port.and_then(|port| port.parse().ok()).unwrap_or(0);
    let server = Server::start(port);
    println!("http://127.0.0.1:{}/mcp", server.port);
    loop {
        std::thread::park();
    }
}
