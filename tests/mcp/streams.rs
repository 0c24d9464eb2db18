//! `/mcp` as a stream: progress, cancelling, answers asked for again, and the end of the server.

use std::io::Write;

use serde_json::json;

use super::Pipe;
use super::http::{KEY, SITE, closed, hello, last, post, request};
use crate::serve::{Answer, Server};

#[test]
fn a_call_over_http_tells_progress_and_can_be_cancelled() {
    let mut arguments = SITE.to_vec();
    arguments.extend(["--tools", "command"]);
    let server = closed(&arguments);
    let key = ("X-Internal-API-Key", KEY);
    let session = hello(&server, &[key]);
    let pipe = Pipe::at(server.dir.path().join("pipe"));
    let text = format!(
        "echo first; echo so far; {{ echo $$; sleep 500; }} > {}",
        pipe.path.display()
    );
    let params =
        json!({"name": "command", "arguments": {"text": text}, "_meta": {"progressToken": 7}});
    let mut stream = server.connect();
    let accept = ("Accept", "application/json, text/event-stream");
    let headers = [key, accept, ("Mcp-Session-Id", session.as_str())];
    let call = request(7, "tools/call", params).to_string();
    stream
        .write_all(&server.request("/mcp", &headers, &call))
        .unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(stream));
    // With the last line, as soon as the shell has printed it.
    let progress = lines.find(|line| {
        line.as_ref().is_ok_and(|line| {
            line.contains("notifications/progress") && line.contains(" s: so far\"")
        })
    });
    assert!(progress.unwrap().unwrap().contains("\"progressToken\":7"));
    pipe.pid();
    let cancel =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}});
    assert_eq!(
        post(&server, &cancel, &[key, ("Mcp-Session-Id", &session)]).status,
        202
    );
    pipe.ended();
    let dir = server.stop();
    let record = crate::serve::records(dir.path()).pop().unwrap();
    assert_eq!(
        (&record["error_type"], &record["disconnected"]),
        (&json!("Cancelled"), &json!(true))
    );
}

/// Asks for what came after the last event that a client has seen.
fn again(server: &Server, session: &str, event: &str) -> Answer {
    let text = format!(
        "GET /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-Internal-API-Key: {KEY}\r\n\
        Accept: text/event-stream\r\nMcp-Session-Id: {session}\r\nLast-Event-ID: {event}\r\n\r\n"
    );
    server.raw(text.as_bytes())
}

#[test]
fn an_answer_that_did_not_arrive_can_be_asked_for_again() {
    let mut arguments = SITE.to_vec();
    arguments.extend(["--tools", "command"]);
    let server = closed(&arguments);
    let key = ("X-Internal-API-Key", KEY);
    let session = hello(&server, &[key]);
    let pipe = server.dir.path().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let begin = |id: i64| {
        let params =
            json!({"name": "command", "arguments": {"text": format!("cat {}", pipe.display())}});
        let mut stream = server.connect();
        let accept = ("Accept", "application/json, text/event-stream");
        let headers = [key, accept, ("Mcp-Session-Id", session.as_str())];
        let call = request(id, "tools/call", params).to_string();
        stream
            .write_all(&server.request("/mcp", &headers, &call))
            .unwrap();
        let mut lines = std::io::BufRead::lines(std::io::BufReader::new(stream));
        let first = lines.find_map(|line| line.unwrap().strip_prefix("id: ").map(str::to_owned));
        server.wait_for("tool_call_start");
        // The connection goes on until the end of this test, or is closed here.
        (first.unwrap(), lines)
    };
    let (event, lines) = begin(7);
    drop(lines);
    std::fs::write(&pipe, "said\n").unwrap();
    server.wait_for("tool_call_success");
    // As often as one likes, also when the call had ended long before.
    for _ in 0..2 {
        let answer = last(&again(&server, &session, &event));
        assert_eq!(
            (&answer["id"], &answer["result"]["isError"]),
            (&json!(7), &json!(false))
        );
        assert_eq!(answer["result"]["structuredContent"]["output"], "said\n");
    }
    // While it runs, beside who waits for it already.
    let (event, _lines) = begin(8);
    let answer = std::thread::scope(|scope| {
        let reading = scope.spawn(|| again(&server, &session, &event));
        std::fs::write(&pipe, "more\n").unwrap();
        last(&reading.join().unwrap())
    });
    assert_eq!(answer["result"]["structuredContent"]["output"], "more\n");
    // It belongs to its session, and goes with it.
    let other = hello(&server, &[key]);
    assert!(!again(&server, &other, &event).body.contains("data: {"));
    let text = format!(
        "DELETE /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-Internal-API-Key: {KEY}\r\nMcp-Session-Id: {session}\r\n\r\n"
    );
    assert_eq!(server.raw(text.as_bytes()).status, 204);
    assert_eq!(again(&server, &session, &event).status, 404);
}

#[test]
fn open_streams_do_not_hold_up_the_end() {
    let server = Server::start(&SITE);
    let session = hello(&server, &[]);
    let mut stream = server.connect();
    let text = format!(
        "GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nMcp-Session-Id: {session}\r\n\r\n"
    );
    stream.write_all(text.as_bytes()).unwrap();
    let mut head = [0; 12];
    std::io::Read::read_exact(&mut stream, &mut head).unwrap();
    assert_eq!(&head, b"HTTP/1.1 200");
    let start = std::time::Instant::now();
    server.stop();
    assert!(start.elapsed() < std::time::Duration::from_secs(20));
}
