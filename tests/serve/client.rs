//! `karyi call`, against the server and against one that fails.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Server;
use crate::harness::program;
use crate::harness::scripted_server::{ScriptedServer, answer};

fn call(port: u16, arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(program())
        .arg("call")
        .arg(format!("http://127.0.0.1:{port}"))
        .args(arguments)
        .args(["--tenant", "yantian", "--site", "yantian-main"])
        .output()
        .unwrap();
    (
        output.status.code(),
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap(),
    )
}

/// A server that gives these answers one after another; returns its port and, at the end, when
/// each request came and which attempt it was.
fn failing(
    answers: &'static [&'static str],
) -> (u16, std::thread::JoinHandle<Vec<(Instant, String)>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let thread = std::thread::spawn(move || {
        let mut seen = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let since = Instant::now();
            let mut bytes = Vec::new();
            let mut buffer = [0; 4096];
            while !String::from_utf8_lossy(&bytes).contains("\"tool_name\"") {
                let length = stream.read(&mut buffer).unwrap();
                bytes.extend_from_slice(&buffer[..length]);
            }
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let attempt = text
                .lines()
                .find_map(|line| line.strip_prefix("x-attempt: "))
                .unwrap()
                .to_owned();
            seen.push((since, attempt));
            stream.write_all(answer.as_bytes()).unwrap();
        }
        seen
    });
    (port, thread)
}

const GOOD: &str = "HTTP/1.1 200 OK\r\ncontent-length: 16\r\n\r\n{\"success\":true}";
const BUSY: &str = "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 2\r\n\r\n{}";
const LATER: &str =
    "HTTP/1.1 429 Too Many Requests\r\nretry-after: 2\r\ncontent-length: 2\r\n\r\n{}";
const SLOW: &str =
    "HTTP/1.1 200 OK\r\ncontent-length: 40\r\n\r\n{\"success\":false,\"error_type\":\"Timeout\"} ";
const WRONG: &str = "HTTP/1.1 200 OK\r\ncontent-length: 43\r\n\r\n{\"success\":false,\"error_type\":\"ValueError\"} ";
const REFUSED: &str = "HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\n\r\n{}";

#[track_caller]
fn check(answers: &'static [&'static str], arguments: &[&str], code: i32) -> Vec<Instant> {
    let (port, server) = failing(answers);
    let (found, told) = call(port, arguments);
    assert_eq!(found, Some(code), "{told}");
    let seen = server.join().unwrap();
    let attempts: Vec<String> = seen.iter().map(|(_, attempt)| attempt.clone()).collect();
    let expected: Vec<String> = (1..=answers.len()).map(|n| n.to_string()).collect();
    assert_eq!(attempts, expected);
    seen.into_iter().map(|(since, _)| since).collect()
}

#[test]
fn only_what_is_safe_is_sent_again() {
    let read = ["get_site_map"];
    let write = ["create_draft_content", "{}"];
    let keyed = ["create_draft_content", "{}", "--idempotency-key", "k"];
    check(&[BUSY, BUSY, GOOD], &read, 0);
    check(&[BUSY, BUSY, BUSY], &read, 1);
    check(&[SLOW, GOOD], &read, 0);
    check(&[BUSY], &write, 1);
    check(&[BUSY, GOOD], &keyed, 0);
    check(&[WRONG], &read, 1);
    check(&[REFUSED], &read, 1);
}

#[test]
fn the_server_says_how_long_to_wait() {
    let times = check(&[LATER, GOOD], &["get_site_map"], 0);
    assert!(times[1].duration_since(times[0]) >= Duration::from_secs(2));
    // Longer than all attempts may take together: it is not sent again.
    check(&[LATER], &["get_site_map", "--timeout", "1"], 1);
}

#[test]
fn a_server_that_says_nothing_is_asked_again() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        let (silent, _) = listener.accept().unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        // Whoever is asked first never answers.
        let mut buffer = [0; 4096];
        assert!(stream.read(&mut buffer).unwrap() > 0);
        stream.write_all(GOOD.as_bytes()).unwrap();
        drop(silent);
    });
    let (code, told) = call(port, &["get_site_map", "--timeout", "6"]);
    assert_eq!(code, Some(0), "{told}");
    server.join().unwrap();
}

#[test]
fn a_call_reaches_the_tool() {
    let server = Server::start(&[]);
    let (code, told) = call(
        server.port,
        &[
            "search_content",
            r#"{"query": "严氏家训"}"#,
            "--trace",
            "t1",
        ],
    );
    let answer: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(
        (code, &answer["output"]["items"][0]["title"]),
        (Some(0), &json!("严氏家训十则"))
    );
    let record = server.last_record();
    assert_eq!(
        (&record["trace_id"], &record["attempt"]),
        (&json!("t1"), &json!(1))
    );
    let (code, told) = call(server.port, &["get_npc_profile", r#"{"npc_id": "x"}"#]);
    assert_eq!(code, Some(1), "{told}");
}

#[test]
fn without_a_server_the_call_fails() {
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let (code, told) = call(port, &["get_site_map"]);
    assert_eq!(code, Some(2));
    assert!(told.contains("after 3 attempts"), "{told}");
}

#[test]
fn a_proxy_is_used_for_other_machines_only() {
    let good = || vec![answer("200 OK", "", "{\"success\":true}")];
    let (proxy, local) = (ScriptedServer::once(good()), ScriptedServer::once(good()));
    let call = |url: &str| {
        let mut command = Command::new(program());
        command.args(["call", url, "get_site_map", "--tenant", "t", "--site", "s"]);
        command
            .env("HTTP_PROXY", proxy.url(""))
            .env("http_proxy", proxy.url(""));
        command.env_remove("NO_PROXY").env_remove("no_proxy");
        let output = command.output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), told.as_str()), (Some(0), ""));
    };
    call("http://tools.example/base");
    call(&local.url(""));
    let line = |server: &ScriptedServer| server.requests()[0].line().to_owned();
    assert_eq!(
        line(&proxy),
        "POST http://tools.example/base/api/tools/call"
    );
    assert_eq!(line(&local), "POST /api/tools/call");
}

#[test]
fn a_key_does_not_travel_unencrypted() {
    let dir = tempfile::tempdir().unwrap();
    let key = dir.path().join("key");
    std::fs::write(&key, "0123456789abcdef").unwrap();
    let output = Command::new(program())
        .args([
            "call",
            "http://tools.example",
            "get_site_map",
            "--tenant",
            "t",
            "--site",
            "s",
            "--key-file",
        ])
        .arg(&key)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        told.contains("would travel unencrypted to tools.example"),
        "{told}"
    );
}

#[test]
fn a_key_is_one_of_the_users_secrets() {
    const KEY: &str = "0123456789abcdef0123456789abcdef";
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("key");
    std::fs::write(&path, KEY).unwrap();
    let server = Server::start(&["--key-file", path.to_str().unwrap()]);
    let with = |key: &str| {
        let output = Command::new(program())
            .arg("call")
            .arg(format!("http://127.0.0.1:{}", server.port))
            .args([
                "get_site_map",
                "--tenant",
                "yantian",
                "--site",
                "yantian-main",
            ])
            .args(["--vault", "env", "--key", key])
            .env("KARYI_VAR_TOOLS", KEY)
            .env("KARYI_VAR_OTHER", "fedcba9876543210fedcba9876543210")
            .env("XDG_DATA_HOME", dir.path())
            .env_remove("KARYI_SESSION")
            .output()
            .unwrap();
        let told = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(told).unwrap())
    };
    let (code, told) = with("$KARYI{TOOLS}");
    assert_eq!(code, Some(0), "{told}");
    assert_eq!(server.last_record()["principal"], "key:internal");
    let (code, told) = with("$KARYI{OTHER}");
    assert!(code == Some(1) && told.contains("invalid_token"), "{told}");
    let (code, told) = with("$KARYI{NOTHING}");
    assert!(code == Some(2) && told.contains("NOTHING"), "{told}");
    let (code, told) = with(KEY);
    assert!(
        code == Some(2) && told.contains("--key-file") && !told.contains(KEY),
        "{told}"
    );
}
