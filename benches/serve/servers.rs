//! The servers that take part, each a process that ends with its value.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A server that runs.
pub(crate) struct Server {
    pub(crate) port: u16,
    child: Child,
}

impl Server {
    /// Returns the number of its process.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Where the village is.
pub(crate) fn village() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/site")
}

/// Starts `karyi serve` over the site in `data` as a user does, log and rate limits included; its files are in
/// `dir`.
pub(crate) fn karyi(data: &Path, dir: &Path) -> Server {
    let mut child = Command::new(env!("CARGO_BIN_EXE_karyi"))
        .args(["serve", "--port", "0", "--bind", "127.0.0.1"])
        .args(["--tool-rate", "1000000", "--tenant-rate", "1000000"])
        .arg("--data")
        .arg(data)
        .arg("--db")
        .arg(dir.join("site.db"))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut log = BufReader::with_capacity(1 << 16, child.stderr.take().unwrap());
    let listening = log
        .by_ref()
        .lines()
        .find_map(|line| {
            let line: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
            (line["event"] == "listening").then(|| line["message"].as_str().unwrap().to_owned())
        })
        .unwrap();
    // Somebody must read the log, as in earnest.
    std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
    let port = listening.rsplit_once(':').unwrap().1.parse().unwrap();
    Server { port, child }
}

/// Starts the stack of the guide over the same texts; nothing when it is not installed.
pub(crate) fn fastapi(dir: &Path) -> Option<Server> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = root.join("target/python/bin/python");
    let command = Command::new(python)
        .arg(root.join("benches/serve/peer.py"))
        .arg(dir.join("site.db"))
        .arg(dir.join("peer.db"))
        .stdout(Stdio::piped())
        .spawn();
    telling(command.ok()?)
}

/// Starts the server that does nothing.
pub(crate) fn bare() -> Server {
    let child = Command::new(std::env::current_exe().unwrap())
        .arg("--bare")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    telling(child).unwrap()
}

/// Waits for the port that a server prints.
fn telling(mut child: Child) -> Option<Server> {
    let mut line = String::new();
    let mut told = BufReader::new(child.stdout.take()?);
    let _ = told.read_line(&mut line);
    match line.trim().parse() {
        Ok(port) => Some(Server { port, child }),
        Err(_) => {
            let _ = child.wait();
            None
        }
    }
}
