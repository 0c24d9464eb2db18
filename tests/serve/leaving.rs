//! Clients who close their side, send half a request, or do not read.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::time::{Duration, Instant};

use serde_json::json;

use super::{Server, answer};
use crate::mcp::Pipe;

const KEY: &str = "a-key-of-the-leaving-tests-0123456789";

/// Less than the server would wait for what these clients never do.
const SOON: Duration = Duration::from_secs(20);

fn with_command() -> Server {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("key");
    std::fs::write(&path, KEY).unwrap();
    let path = path.to_str().unwrap().to_owned();
    Server::start_in(dir, &["--key-file", &path, "--tools", "command"])
}

#[test]
fn who_closes_only_the_writing_side_gets_the_answer() {
    let server = Server::start(&[]);
    let body = json!({"tool_name": "get_site_map", "input": {}}).to_string();
    let request = server.request("/api/tools/call", &[], &body);
    for _ in 0..20 {
        let mut stream = server.connect();
        stream.write_all(&request).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let answer = answer(&mut stream);
        assert_eq!(
            (answer.status, &answer.json()["success"]),
            (200, &json!(true))
        );
    }
    let mut stream = server.connect();
    let list = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n";
    stream.write_all(list).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(answer(&mut stream).status, 200);
    let is_good = |record: &serde_json::Value| record["status"] == "success";
    assert_eq!((server.records().iter().filter(|r| is_good(r))).count(), 20);
}

#[test]
fn a_command_ends_with_the_connection_of_its_caller() {
    command_ends(&[]);
}

/// The server does not read that request before the command has ended.
#[test]
fn a_command_ends_with_its_connection_even_before_a_further_request() {
    command_ends(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
}

/// Starts a command, sends further bytes, and closes the connection.
fn command_ends(further: &[u8]) {
    let server = with_command();
    let pipe = Pipe::at(server.dir.path().join("pipe"));
    let text = format!("{{ echo $$; sleep 500; }} > {}", pipe.path.display());
    let body = json!({"tool_name": "command", "input": {"text": text}}).to_string();
    let key = [("X-Internal-API-Key", KEY)];
    let mut stream = server.connect();
    stream
        .write_all(&server.request("/api/tools/call", &key, &body))
        .unwrap();
    pipe.pid();
    stream.write_all(further).unwrap();
    let start = Instant::now();
    drop(stream);
    pipe.ended();
    server.wait_for("tool_call_error");
    assert!(start.elapsed() < SOON);
    let record = server.last_record();
    assert_eq!(
        (&record["error_type"], &record["disconnected"]),
        (&json!("Cancelled"), &json!(true))
    );
}

/// All of them have come whole.
#[test]
fn requests_that_were_sent_ahead_are_made_when_their_caller_has_left() {
    const CALLS: usize = 20;
    let server = Server::start(&[]);
    let input = json!({"content_type": "story", "title": "a", "body": "b"});
    let body = json!({"tool_name": "create_draft_content", "input": input}).to_string();
    let request = server.request("/api/tools/call", &[], &body);
    let request = String::from_utf8(request)
        .unwrap()
        .replace("Connection: close\r\n", "");
    server
        .connect()
        .write_all(request.repeat(CALLS).as_bytes())
        .unwrap();
    let start = Instant::now();
    while server.records().len() < CALLS {
        assert!(start.elapsed() < SOON, "{}", server.records().len());
        std::thread::yield_now();
    }
    let records = server.records();
    let good = records
        .iter()
        .filter(|record| record["status"] == "success");
    assert_eq!((good.count(), server.drafts()), (CALLS, CALLS as u64));
    assert_eq!(records[CALLS - 1]["disconnected"], true);
}

#[test]
fn half_a_head_does_not_hold_up_the_end() {
    let server = Server::start(&[]);
    let mut stream = server.connect();
    stream
        .write_all(b"POST /api/tools/call HTTP/1.1\r\nHo")
        .unwrap();
    // An answer of another connection: by then the first one has been taken on as well.
    assert_eq!(server.get("/healthz").status, 200);
    let start = Instant::now();
    server.stop();
    assert!(start.elapsed() < SOON);
    assert_eq!(stream.read(&mut [0; 1]).unwrap_or(0), 0);
}

#[test]
fn who_never_reads_does_not_hold_up_the_end() {
    let server = Server::start(&[]);
    let mut stream = server.connect();
    stream
        .set_write_timeout(Some(Duration::from_millis(500)))
        .unwrap();
    let request = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n";
    // Until nobody reads the requests either.
    while stream.write_all(request).is_ok() {}
    let start = Instant::now();
    server.stop();
    assert!(start.elapsed() < SOON);
}
