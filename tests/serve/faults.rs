//! What breaks below the server, and who goes away.

use std::io::Write;
use std::time::{Duration, Instant};

use karyi::store::sqlite::{LedgerFile, Verdict};
use serde_json::{Value, json};

use super::{Server, answer};

pub fn draft() -> Value {
    json!({"content_type": "story", "title": "a", "body": "b"})
}

pub fn lock(path: &std::path::Path) -> rusqlite::Connection {
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    connection
}

#[test]
fn without_a_ledger_nothing_is_written_and_everything_read() {
    let server = Server::start(&[]);
    let other = lock(&server.dir.path().join("ledger.db"));
    let refused = server.answer(
        "create_draft_content",
        &draft(),
        &[("Idempotency-Key", "k")],
    );
    assert_eq!(
        (refused.status, &refused.json()["error_code"]),
        (503, &json!("audit_unavailable"))
    );
    assert_eq!(refused.header("retry-after").as_deref(), Some("1"));
    assert_eq!(
        server.call("get_npc_profile", &json!({"npc_id": "ancestor_yan"}))["success"],
        true
    );
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(server.drafts(), 0);
    // The key was given back.
    assert_eq!(
        server
            .answer(
                "create_draft_content",
                &draft(),
                &[("Idempotency-Key", "k")]
            )
            .status,
        200
    );
    assert_eq!(server.drafts(), 1);
    assert!(
        server
            .get("/metrics")
            .body
            .contains("karyi_ledger_failures_total 3")
    );
}

#[test]
fn a_locked_site_is_told_and_works_again_later() {
    let server = Server::start(&[]);
    let other = lock(&server.dir.path().join("site.db"));
    let answer = server.call("create_draft_content", &draft());
    assert_eq!(
        (&answer["success"], &answer["error_code"]),
        (&json!(false), &json!("UNAVAILABLE"))
    );
    assert_eq!(server.last_record()["error_type"], "Unavailable");
    // Whoever has less time than that is told when it is up.
    let hasty = [("X-Request-Timeout-Ms", "300")];
    let answer = server.answer("create_draft_content", &draft(), &hasty);
    assert_eq!(answer.json()["error_type"], "Timeout");
    assert_eq!(server.last_record()["error_type"], "Timeout");
    assert_eq!(
        server.call("search_content", &json!({"query": "古井"}))["success"],
        true
    );
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(
        server.call("create_draft_content", &draft())["success"],
        true
    );
}

#[test]
fn a_killed_server_leaves_a_whole_ledger() {
    let mut server = Server::start(&[]);
    for _ in 0..5 {
        server.call("create_draft_content", &draft());
    }
    server.signal(nix::sys::signal::Signal::SIGKILL);
    server.wait();
    let dir = std::mem::replace(&mut server.dir, tempfile::tempdir().unwrap());
    drop(server);
    let again = Server::start_in(dir, &[]);
    again.call("get_site_map", &json!({}));
    let file = LedgerFile::open(&again.dir.path().join("ledger.db")).unwrap();
    assert!(matches!(
        file.verify(None).unwrap(),
        Verdict::Whole { rows: 6, .. }
    ));
}

#[test]
fn two_servers_do_not_share_a_database() {
    let server = Server::start(&[]);
    let output = super::command(server.dir.path())
        .args(["--port", "0"])
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        told.contains("another karyi serves this database"),
        "{told}"
    );
}

#[test]
fn a_request_under_way_is_answered_before_the_end() {
    let server = Server::start(&[]);
    let request = server.request(
        "/api/tools/call",
        &[],
        r#"{"tool_name": "get_site_map", "input": {}}"#,
    );
    let (first, last) = request.split_at(request.len() - 3);
    let mut stream = server.connect();
    stream.write_all(first).unwrap();
    // A whole answer of another connection: by then the first one has been taken on as well.
    assert_eq!(server.get("/readyz").status, 200);
    server.terminate();
    stream.write_all(last).unwrap();
    assert_eq!(answer(&mut stream).status, 200);
    server.stop();
}

#[test]
fn a_call_whose_caller_has_left_is_waited_for_at_the_end() {
    let server = Server::start(&[]);
    let other = lock(&server.dir.path().join("site.db"));
    let body = json!({"tool_name": "create_draft_content", "input": draft()}).to_string();
    let mut stream = server.connect();
    let time = [("X-Request-Timeout-Ms", "2000")];
    stream
        .write_all(&server.request("/api/tools/call", &time, &body))
        .unwrap();
    server.wait_for("tool_call_start");
    drop(stream);
    let dir = server.stop();
    drop(other);
    let records = super::records(dir.path());
    assert_eq!(records.len(), 1, "{records:?}");
    assert_eq!(records[0]["disconnected"], true);
    let intents = super::count(
        &dir.path().join("ledger.db"),
        "SELECT count(*) FROM intents",
    );
    assert_eq!(intents, 0);
}

#[test]
fn a_caller_who_leaves_has_a_record() {
    let server = Server::start(&[]);
    let other = lock(&server.dir.path().join("site.db"));
    let body = json!({"tool_name": "create_draft_content", "input": draft()}).to_string();
    let mut stream = server.connect();
    stream
        .write_all(&server.request("/api/tools/call", &[], &body))
        .unwrap();
    server.wait_for("tool_call_start");
    let intents = rusqlite::Connection::open(server.dir.path().join("ledger.db")).unwrap();
    let count = || -> u64 {
        intents
            .query_row("SELECT count(*) FROM intents", (), |row| row.get(0))
            .unwrap()
    };
    assert_eq!((count(), server.records().len()), (1, 0));
    drop(stream);
    server.wait_for("tool_call_error");
    drop(other);
    assert_eq!(server.last_record()["disconnected"], true);
    assert_eq!(count(), 0);
}

/// What has come whole is served, wherever the server was with it when its caller left.
#[test]
fn callers_who_leave_at_once_have_a_record_each() {
    let server = Server::start(&[]);
    let body = json!({"tool_name": "create_draft_content", "input": draft()}).to_string();
    let request = server.request("/api/tools/call", &[], &body);
    for _ in 0..100 {
        server.connect().write_all(&request).unwrap();
    }
    let deadline = Instant::now() + Duration::from_secs(60);
    while server.records().len() < 100 {
        assert!(Instant::now() < deadline, "{}", server.records().len());
        std::thread::yield_now();
    }
    let is_good = |record: &Value| record["status"] == "success";
    assert_eq!(
        server
            .records()
            .iter()
            .filter(|record| is_good(record))
            .count(),
        100
    );
    assert_eq!(server.drafts(), 100);
}

#[test]
fn a_caller_who_leaves_in_the_middle_of_a_body_has_a_record() {
    let server = Server::start(&[]);
    let body = json!({"tool_name": "get_site_map", "input": {}}).to_string();
    let request = server.request("/api/tools/call", &[], &body);
    let mut stream = server.connect();
    stream.write_all(&request[..request.len() - 3]).unwrap();
    drop(stream);
    server.wait_for("tool_call_error");
    let record = server.last_record();
    assert_eq!(
        (&record["http_status"], &record["error_type"]),
        (&json!(400), &json!("MalformedRequest"))
    );
}

#[test]
fn readiness_is_that_of_the_databases() {
    let server = Server::start(&[]);
    let other = lock(&server.dir.path().join("ledger.db"));
    let answer = server.get("/readyz");
    assert_eq!(
        (answer.status, &answer.json()["detail"]),
        (503, &json!("a database is locked by another program"))
    );
    assert_eq!(server.get("/healthz").status, 200);
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(server.get("/readyz").status, 200);
    let other = lock(&server.dir.path().join("site.db"));
    // A good answer is good for a second.
    while server.get("/readyz").status == 200 {}
    let answer = server.get("/readyz");
    assert_eq!(
        (answer.status, &answer.json()["detail"]),
        (503, &json!("a database is locked by another program"))
    );
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(server.get("/readyz").status, 200);
    assert_eq!(server.records().len(), 0);
}
