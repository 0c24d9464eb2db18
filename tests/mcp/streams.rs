//! `/mcp` as a stream: progress, cancelling, answers asked for again, and the end of the server.

use std::io::Write;
use std::net::TcpStream;
use std::path::Path;

use serde_json::{Value, json};

use super::http::{KEY, SITE, closed, hello, last, post, request};
use super::{Pipe, modern};
use crate::serve::{Answer, Server, answer};

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

const ACCEPT: (&str, &str) = ("Accept", "application/json, text/event-stream");

/// Starts a server that offers `command`.
fn with_command() -> Server {
    closed(&[&SITE[..], &["--tools", "command"]].concat())
}

/// Sends a call of `command`, and does not wait for its answer.
fn send(server: &Server, id: i64, params: Value, headers: &[(&str, &str)]) -> TcpStream {
    let headers = [&[ACCEPT, ("X-Internal-API-Key", KEY)], headers].concat();
    let message = request(id, "tools/call", params).to_string();
    let mut stream = server.connect();
    let sent = server.request("/mcp", &headers, &message);
    stream.write_all(&sent).unwrap();
    stream
}

/// Arguments of a command that prints what is written into a pipe.
fn cat(pipe: &Path) -> Value {
    nix::unistd::mkfifo(pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    json!({"text": format!("cat {}", pipe.display())})
}

#[test]
fn an_id_in_use_is_refused_and_its_call_is_answered() {
    let server = with_command();
    let session = hello(&server, &[("X-Internal-API-Key", KEY)]);
    let own = [("Mcp-Session-Id", session.as_str())];
    let pipe = server.dir.path().join("pipe");
    let params = json!({"name": "command", "arguments": cat(&pipe)});
    let mut first = send(&server, 7, params, &own);
    server.wait_for("tool_call_start");
    let ping = request(7, "ping", json!({}));
    let headers = [own[0], ("X-Internal-API-Key", KEY)];
    let refused = post(&server, &ping, &headers);
    assert_eq!(refused.status, 400, "{refused:?}");
    let error = refused.json();
    assert_eq!(
        (&error["id"], &error["error"]["code"]),
        (&Value::Null, &json!(-32600))
    );
    assert_eq!(error["error"]["data"]["id"], 7);
    // It is in use in this session only.
    let other = hello(&server, &[("X-Internal-API-Key", KEY)]);
    let elsewhere = [("Mcp-Session-Id", other.as_str()), headers[1]];
    assert_eq!(last(&post(&server, &ping, &elsewhere))["result"], json!({}));
    std::fs::write(&pipe, "said\n").unwrap();
    let result = last(&answer(&mut first))["result"].clone();
    assert_eq!(result["structuredContent"]["output"], "said\n", "{result}");
    assert_eq!(last(&post(&server, &ping, &headers))["result"], json!({}));
}

#[test]
fn calls_in_progress_are_answered_before_the_end() {
    let server = with_command();
    let session = hello(&server, &[("X-Internal-API-Key", KEY)]);
    let pipes = ["one", "two"].map(|name| server.dir.path().join(name));
    let params = json!({"name": "command", "arguments": cat(&pipes[0])});
    let own = [("Mcp-Session-Id", session.as_str())];
    let mut first = send(&server, 7, params, &own);
    let params =
        json!({"name": "command", "arguments": cat(&pipes[1]), "_meta": modern(json!({}))});
    let era = [
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "command"),
    ];
    let mut second = send(&server, 8, params, &era);
    for _ in &pipes {
        server.wait_for("tool_call_start");
    }
    server.terminate();
    server.wait_for("stopping");
    for (pipe, stream) in pipes.iter().zip([&mut first, &mut second]) {
        std::fs::write(pipe, "said\n").unwrap();
        let result = last(&answer(stream))["result"].clone();
        assert_eq!(result["structuredContent"]["output"], "said\n", "{result}");
    }
    let start = std::time::Instant::now();
    server.stop();
    assert!(start.elapsed() < std::time::Duration::from_secs(20));
}

#[test]
fn a_second_signal_waits_for_no_call() {
    let mut server = with_command();
    let session = hello(&server, &[("X-Internal-API-Key", KEY)]);
    let own = [("Mcp-Session-Id", session.as_str())];
    let pipe = Pipe::at(server.dir.path().join("pipe"));
    let text = format!("{{ echo $$; sleep 500; }} > {}", pipe.path.display());
    let params = json!({"name": "command", "arguments": {"text": text}});
    let _stream = send(&server, 7, params, &own);
    pipe.pid();
    let start = std::time::Instant::now();
    server.terminate();
    server.wait_for("stopping");
    server.terminate();
    server.wait();
    pipe.ended();
    assert!(start.elapsed() < std::time::Duration::from_secs(20));
    let record = crate::serve::records(server.dir.path()).pop().unwrap();
    assert_eq!(record["error_type"], "Cancelled", "{record}");
}
