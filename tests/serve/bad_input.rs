//! Requests that are broken in every way: the stated status, a record, and the next one is served.

use std::io::Write;

use serde_json::{Value, json};

use super::{Answer, Server, answer};

const BODY: &str = r#"{"tool_name": "get_site_map", "input": {}}"#;

#[track_caller]
fn is_problem(answer: &Answer, status: u16, code: &str) {
    assert_eq!(answer.status, status, "{answer:?}");
    assert_eq!(
        answer.header("content-type").as_deref(),
        Some("application/problem+json")
    );
    let problem = answer.json();
    assert_eq!(
        (&problem["status"], &problem["error_code"], &problem["type"]),
        (&json!(status), &json!(code), &json!("about:blank"))
    );
    let call = answer
        .header("x-call-id")
        .map(|id| format!("urn:uuid:{id}"));
    assert_eq!(problem["instance"], json!(call));
}

#[track_caller]
fn is_served(server: &Server) {
    assert_eq!(server.post("/api/tools/call", &[], BODY).status, 200);
}

#[test]
fn headers_that_are_missing_are_all_named() {
    let server = Server::start(&[]);
    let refused = |headers: &[(&str, &str)]| {
        let answer = server.post("/api/tools/call", headers, BODY);
        let names: Vec<Value> = answer.json()["errors"]
            .as_array()
            .unwrap()
            .iter()
            .map(|e| e["loc"].clone())
            .collect();
        (answer.status, json!(names))
    };
    let all = [
        ("X-Tenant-ID", "-"),
        ("X-Site-ID", "-"),
        ("X-Trace-ID", "-"),
    ];
    let named = json!([
        ["header", "X-Trace-ID"],
        ["header", "X-Tenant-ID"],
        ["header", "X-Site-ID"]
    ]);
    assert_eq!(refused(&all), (422, named));
    assert_eq!(
        refused(&[("X-Trace-ID", "")]),
        (422, json!([["header", "X-Trace-ID"]]))
    );
    assert_eq!(
        refused(&[("X-Trace-ID", &"x".repeat(101))]),
        (422, json!([["header", "X-Trace-ID"]]))
    );
    assert_eq!(
        refused(&[("X-Tenant-ID", "a/../b")]),
        (422, json!([["header", "X-Tenant-ID"]]))
    );
    assert_eq!(
        refused(&[("X-Site-ID", "a"), ("X-Site-ID", "b")]),
        (400, json!([["header", "X-Site-ID"]]))
    );
    assert_eq!(server.records().len(), 0);
    assert!(
        server
            .get("/metrics")
            .body
            .contains("karyi_unrecorded_requests_total 5")
    );
    is_served(&server);
}

#[test]
fn a_request_that_says_where_it_belongs_has_a_record_whatever_else_is_wrong() {
    let server = Server::start(&[]);
    let check = |headers: &[(&str, &str)], status: u16, code: &str| {
        let before = server.records().len();
        let answer = server.post("/api/tools/call", headers, BODY);
        is_problem(&answer, status, code);
        assert_eq!(answer.json()["trace_id"], "trace-test", "{headers:?}");
        assert_eq!(answer.header("x-trace-id").as_deref(), Some("trace-test"));
        assert_eq!(server.records().len(), before + 1, "{headers:?}");
        let record = server.last_record();
        assert_eq!(
            (
                &record["http_status"],
                &record["tenant_id"],
                &record["user_id"]
            ),
            (&json!(status), &json!("yantian"), &Value::Null)
        );
    };
    for (name, value) in [
        ("X-User-ID", "a b"),
        ("X-Attempt", "0"),
        ("X-Request-Timeout-Ms", "x"),
        ("Idempotency-Key", "a b"),
    ] {
        check(&[(name, value)], 422, "invalid_request");
    }
    for (name, value) in [
        ("X-User-ID", "a"),
        ("Idempotency-Key", "a"),
        ("Authorization", "Bearer x"),
        ("Content-Type", "application/json"),
    ] {
        check(&[(name, value), (name, value)], 400, "malformed_request");
    }
    is_served(&server);
}

/// Bodies, and the status and the code of their refusal.
const BROKEN: &[(&str, u16, &str)] = &[
    ("", 400, "malformed_request"),
    ("{", 400, "malformed_request"),
    (
        r#"{"tool_name": "a", "tool_name": "b"}"#,
        400,
        "malformed_request",
    ),
    (
        r#"{"tool_name": "a", "input": {"x": 1, "x": 2}}"#,
        400,
        "malformed_request",
    ),
    ("[]", 422, "invalid_request"),
    ("{}", 422, "invalid_request"),
    (
        r#"{"tool_name": "get_site_map", "input": [1]}"#,
        422,
        "invalid_request",
    ),
    (r#"{"tool_name": 7, "input": {}}"#, 422, "invalid_request"),
    (r#"{"tool_name": "", "input": {}}"#, 422, "invalid_request"),
    (
        r#"{"tool_name": "a", "input": {}, "more": 1}"#,
        422,
        "invalid_request",
    ),
    (
        r#"{"tool_name": "a", "input": {}, "context": 1}"#,
        422,
        "invalid_request",
    ),
    (
        r#"{"tool_name": "a", "context": {"tenant_id": 1}}"#,
        422,
        "invalid_request",
    ),
    (
        r#"{"tool_name": "get_site_map", "context": {"tenant_id": "other"}}"#,
        403,
        "context_mismatch",
    ),
    (
        r#"{"tool_name": "get_site_map", "context": {"site_id": "other"}}"#,
        403,
        "context_mismatch",
    ),
    (
        r#"{"tool_name": "nope", "context": {"tenant_id": "other"}}"#,
        403,
        "context_mismatch",
    ),
];

#[test]
fn bodies_that_do_not_fit_are_refused_and_recorded() {
    let server = Server::start(&[]);
    let wide = "[".repeat(100_000);
    let deep = format!(
        "{{\"tool_name\":\"a\",\"input\":{}1{}}}",
        "{\"a\":".repeat(200),
        "}".repeat(200)
    );
    let nested = [wide.as_str(), deep.as_str()].map(|body| (body, 400, "malformed_request"));
    for (body, status, code) in BROKEN.iter().copied().chain(nested) {
        let before = server.records().len();
        let answer = server.post("/api/tools/call", &[], body);
        is_problem(&answer, status, code);
        assert_eq!(answer.json()["trace_id"], "trace-test");
        assert_eq!(server.records().len(), before + 1, "{body}");
        assert_eq!(server.last_record()["http_status"], status);
    }
    is_served(&server);
}

#[test]
fn large_bodies_end_early() {
    let server = Server::start(&[]);
    let body = format!("{{\"tool_name\": \"{}\"}}", "x".repeat(2 << 20));
    is_problem(
        &server.post("/api/tools/call", &[], &body),
        413,
        "body_too_large",
    );
    assert_eq!(server.last_record()["http_status"], 413);
    let long = json!({"content_type": "story", "title": "a", "body": "长".repeat(100_001)});
    assert_eq!(
        server.call("create_draft_content", &long)["error_type"],
        "ValidationError"
    );
    is_served(&server);
}

#[test]
fn other_kinds_methods_and_paths_are_refused() {
    let server = Server::start(&[]);
    for kind in [
        "text/plain",
        "application/jsonp",
        "-",
        "application/x-www-form-urlencoded",
    ] {
        let answer = server.post("/api/tools/call", &[("Content-Type", kind)], BODY);
        is_problem(&answer, 415, "unsupported_media_type");
    }
    assert_eq!(
        server
            .post(
                "/api/tools/call",
                &[("Content-Type", "Application/JSON; charset=utf-8")],
                BODY
            )
            .status,
        200
    );
    is_problem(&server.post("/api/tools/nope", &[], BODY), 404, "not_found");
    is_problem(
        &server.post("/api/tools/call/", &[], BODY),
        404,
        "not_found",
    );
    assert_eq!(server.last_record()["http_status"], 404);
    let wrong = server.get("/api/tools/call");
    is_problem(&wrong, 405, "method_not_allowed");
    assert_eq!(wrong.header("allow").as_deref(), Some("POST"));
    let wrong = server.post("/metrics", &[], "");
    assert_eq!(
        (wrong.status, wrong.header("allow").as_deref()),
        (405, Some("GET, HEAD"))
    );
    for method in ["OPTIONS", "TRACE", "PUT", "BREW"] {
        let request = format!(
            "{method} /tools/list HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        );
        assert_eq!(server.raw(request.as_bytes()).status, 405, "{method}");
    }
    is_served(&server);
}

#[test]
fn bytes_that_are_no_request_are_refused() {
    let server = Server::start(&[]);
    for bytes in [
        &b"\x16\x03\x01\x00\xa5\x01"[..],
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /tools/call HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n",
    ] {
        assert!([0, 400].contains(&server.raw(bytes).status));
    }
    let many: String = (0..200)
        .map(|n| format!("X-{n}: {}\r\n", "v".repeat(1000)))
        .collect();
    let answer =
        server.raw(format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\n{many}\r\n").as_bytes());
    assert_eq!(answer.status, 431);
    let refused = server.wait_for("request_refused");
    let expected = (
        json!(400),
        json!("the head of the request could not be read"),
    );
    assert_eq!(
        (refused["http_status"].clone(), refused["message"].clone()),
        expected
    );
    while server.wait_for("request_refused")["http_status"] != 431 {}
    let numbers = server.get("/metrics").body;
    let counted = "karyi_http_responses_total{status=\"431\"} 1";
    assert!(numbers.contains(counted), "{numbers}");
    is_served(&server);
}

#[test]
fn a_large_head_is_refused_also_when_it_comes_at_once() {
    let server = Server::start(&[]);
    let padded = |bytes: usize| {
        let field = ("X-Padding", "v".repeat(bytes));
        server.answer("get_site_map", &json!({}), &[(field.0, &field.1)])
    };
    assert_eq!(padded(60 << 10).status, 200);
    is_problem(&padded(64 << 10), 431, "head_too_large");
    let record = server.last_record();
    assert_eq!(
        (&record["http_status"], &record["error_type"]),
        (&json!(431), &json!("TooLarge"))
    );
    is_served(&server);
}

#[test]
fn who_speaks_http_2_is_told_of_in_the_log() {
    let server = Server::start(&[]);
    let answer = server.raw(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    assert_eq!((answer.status, answer.head.as_str()), (0, ""));
    let line = server.wait_for("request_refused");
    let expected = "the client spoke HTTP/2; the connection was closed without an answer";
    assert_eq!(
        (&line["message"], &line["http_status"]),
        (&json!(expected), &Value::Null)
    );
    is_served(&server);
}

#[test]
fn a_refusal_before_the_body_keeps_the_connection_or_says_that_it_ends() {
    let dir = tempfile::tempdir().unwrap();
    let key = dir.path().join("key");
    std::fs::write(&key, "0123456789abcdef0123456789abcdef").unwrap();
    let key = key.to_string_lossy().into_owned();
    let server = Server::start_in(dir, &["--key-file", &key]);
    let request = String::from_utf8(server.request("/api/tools/call", &[], BODY)).unwrap();
    let kept = request.replace("Connection: close\r\n", "");
    let (head, body) = kept.split_at(kept.len() - BODY.len());
    let mut stream = server.connect();
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let both = answer(&mut stream);
    assert_eq!(both.status, 401);
    let is_announced = both.header("connection").as_deref() == Some("close");
    let count = 1 + both.body.matches("HTTP/1.1 401").count();
    assert_eq!(count, if is_announced { 1 } else { 2 }, "{both:?}");
    // A body that does not come.
    let mut stream = server.connect();
    stream.write_all(head.as_bytes()).unwrap();
    let alone = answer(&mut stream);
    assert_eq!(
        (alone.status, alone.header("connection").as_deref()),
        (401, Some("close"))
    );
}

#[test]
fn a_body_that_never_comes_is_not_waited_for() {
    let server = Server::start(&[]);
    let mut request = server.request("/api/tools/call", &[], BODY);
    request.truncate(request.len() - 5);
    let mut stream = server.connect();
    stream.write_all(&request).unwrap();
    // Others are served meanwhile.
    is_served(&server);
    is_problem(&answer(&mut stream), 408, "request_timeout");
    assert_eq!(server.last_record()["http_status"], 408);
}

#[test]
fn a_body_that_is_announced_as_too_large_is_refused_before_it_comes() {
    let server = Server::start(&[]);
    let request = server.request("/api/tools/call", &[], "");
    let head = String::from_utf8(request).unwrap();
    let announced = head.replace("Content-Length: 0", "Content-Length: 10000000000");
    assert_ne!(head, announced);
    let mut stream = server.connect();
    stream.write_all(announced.as_bytes()).unwrap();
    assert_eq!(answer(&mut stream).status, 413);
}

#[test]
fn a_flood_of_refusals_is_counted_and_not_written_one_by_one() {
    let server = Server::start(&["--tenant-rate", "off", "--tool-rate", "1:1"]);
    let mut stream = server.connect();
    let body = "{";
    let usual = String::from_utf8(server.request("/api/tools/call", &[], body)).unwrap();
    let kept = usual.replace("Connection: close\r\n", "");
    let sent = 1000;
    for _ in 1..sent {
        stream.write_all(kept.as_bytes()).unwrap();
    }
    stream.write_all(usual.as_bytes()).unwrap();
    answer(&mut stream);
    let dir = server.stop();
    let records = super::records(dir.path());
    for record in &records {
        let whose = [
            &record["tenant_id"],
            &record["trace_id"],
            &record["principal"],
        ];
        assert_eq!(
            whose,
            [&json!("yantian"), &json!("trace-test"), &json!("local")]
        );
        assert_eq!(record["error_type"], "MalformedRequest");
    }
    let counts: u64 = records
        .iter()
        .map(|record| record["count"].as_u64().unwrap_or(1))
        .sum();
    assert_eq!(counts, sent);
    if records.len() as u64 == sent {
        // Slower than a hundred a second: nothing to collect.
        crate::harness::skip("the machine is too slow for a flood");
    }
}
