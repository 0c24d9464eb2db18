//! What calls a server: this program again, as a process of its own, over connections that stay.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::servers::Server;

/// What stands in a request where every call is to say something else, and what is put there: signs
/// that are no words.
const PLACE: &[u8] = b"????????";
const SIGNS: &[u8; 8] = b"?!.,;:~-";

/// So many calls over so many connections.
#[derive(Clone, Copy)]
pub(crate) struct Load {
    pub(crate) calls: u64,
    pub(crate) connections: u64,
}

/// What came of a load.
#[derive(Clone, Copy)]
pub(crate) struct SentCounts {
    /// Answers per second.
    pub(crate) rate: f64,
    /// Processor time of the server for one call, in microseconds.
    pub(crate) server: f64,
    /// The same of what calls.
    pub(crate) caller: f64,
}

/// Sends the request in a file to a server so often.
///
/// Every answer must be what was expected; one that is not ends the bench.
pub(crate) fn send(server: &Server, request: &Path, load: Load) -> SentCounts {
    let process = server.process().to_string();
    let before = processor_time(&process);
    let told = run(server.port, request, load);
    let after = processor_time(&process);
    let told: Vec<f64> = told
        .split_whitespace()
        .map(|number| number.parse().unwrap())
        .collect();
    #[allow(clippy::cast_precision_loss)]
    let a_call = |nanoseconds: f64| nanoseconds / 1000.0 / load.calls as f64;
    SentCounts {
        rate: told[0],
        server: a_call(after - before),
        caller: a_call(told[1]),
    }
}

/// Returns the processor time of all threads of a process, in nanoseconds.
fn processor_time(process: &str) -> f64 {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let time = |thread: std::io::Result<std::fs::DirEntry>| -> f64 {
        // A thread may just have ended.
        let told = std::fs::read_to_string(thread.unwrap().path().join("schedstat"));
        let told = told.unwrap_or_default();
        told.split(' ')
            .next()
            .map_or(0.0, |first| first.parse().unwrap_or(0.0))
    };
    threads.map(time).sum()
}

/// Has a process of its own send; returns what it told.
fn run(port: u16, request: &Path, load: Load) -> String {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--load", &port.to_string(), "--request"])
        .arg(request)
        .args(["--calls", &load.calls.to_string()])
        .args(["--connections", &load.connections.to_string()])
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let wrong = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(
        told.split_whitespace().count(),
        2,
        "the load broke: {told}{wrong}"
    );
    told
}

/// Has wrk call for a while, by a script in Lua when one is given; returns the answers per second, or
/// nothing when wrk is not installed.
pub(crate) fn wrk(port: u16, script: Option<&Path>, connections: u64) -> Option<f64> {
    let mut command = Command::new("wrk");
    command.args(["-t1", "-d3s", "-c", &connections.to_string()]);
    if let Some(script) = script {
        command.arg("-s").arg(script);
    }
    let path = if script.is_some() {
        "api/tools/call"
    } else {
        ""
    };
    let output = command
        .arg(format!("http://127.0.0.1:{port}/{path}"))
        .output()
        .ok()?;
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(!told.contains("Non-2xx"), "{told}");
    let line = told
        .lines()
        .find_map(|line| line.strip_prefix("Requests/sec:"));
    line.and_then(|rate| rate.trim().parse().ok())
}

/// The process that sends; prints the answers per second and its processor time in nanoseconds.
pub(crate) fn child(port: u16) {
    let number = |name: &str| -> u64 { crate::argument(name).unwrap().parse().unwrap() };
    let (calls, connections) = (number("--calls"), number("--connections"));
    let request = std::fs::read(crate::argument("--request").unwrap()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let seconds = runtime.block_on(all(port, request.into(), calls, connections));
    #[allow(clippy::cast_precision_loss)]
    let rate = calls as f64 / seconds;
    println!("{rate} {}", processor_time("self"));
}

async fn all(port: u16, request: Arc<[u8]>, calls: u64, connections: u64) -> f64 {
    let mut streams = Vec::new();
    for _ in 0..connections {
        let stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        stream.set_nodelay(true).unwrap();
        streams.push(stream);
    }
    let sent = Arc::new(AtomicU64::new(0));
    let since = Instant::now();
    let tasks: Vec<_> = streams
        .into_iter()
        .map(|stream| {
            tokio::spawn(connection(
                stream,
                Arc::clone(&request),
                Arc::clone(&sent),
                calls,
            ))
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    since.elapsed().as_secs_f64()
}

/// Sends over one connection until all calls together are made.
async fn connection(mut stream: TcpStream, request: Arc<[u8]>, sent: Arc<AtomicU64>, calls: u64) {
    let mut buffer = vec![0; 64 << 10];
    let (mut request, place) = (request.to_vec(), memchr::memmem::find(&request, PLACE));
    loop {
        let number = sent.fetch_add(1, Ordering::Relaxed);
        if number >= calls {
            return;
        }
        if let Some(place) = place {
            for (digit, sign) in request[place..][..PLACE.len()].iter_mut().enumerate() {
                *sign = SIGNS[(number >> (3 * digit)) as usize & 7];
            }
        }
        stream.write_all(&request).await.unwrap();
        let mut filled = 0;
        loop {
            let read = stream.read(&mut buffer[filled..]).await.unwrap();
            assert!(read > 0, "the server closed the connection");
            filled += read;
            if is_whole(&buffer[..filled]) {
                break;
            }
        }
    }
}

/// Whether an answer is complete; it must be a good one.
pub(crate) fn is_whole(answer: &[u8]) -> bool {
    let Some(end) = memchr::memmem::find(answer, b"\r\n\r\n") else {
        return false;
    };
    let head = std::str::from_utf8(&answer[..end]).unwrap();
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("content-length")
            .then(|| value.parse::<usize>().unwrap())
    });
    if answer.len() < end + 4 + length.unwrap() {
        return false;
    }
    let body = &answer[end + 4..];
    let is_good = memchr::memmem::find(body, b"\"success\":true").is_some() || body == b"hello";
    assert!(
        head.starts_with("HTTP/1.1 200 ") && is_good,
        "{}",
        String::from_utf8_lossy(answer)
    );
    true
}
