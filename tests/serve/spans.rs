//! Spans, as a collector on the loopback gets them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;

use serde_json::{Value, json};

use super::{ANSWER_LIMIT, Server};

/// Takes one request to `/v1/traces`, answers it, and returns its spans.
fn taken(collector: &TcpListener) -> Vec<Value> {
    let (stream, _) = collector.accept().unwrap();
    stream.set_read_timeout(Some(ANSWER_LIMIT)).unwrap();
    let mut reader = BufReader::new(stream);
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if line.trim().is_empty() {
            break;
        }
        head.push(line.trim().to_ascii_lowercase());
    }
    assert_eq!(head[0], "post /v1/traces http/1.1");
    assert!(head.contains(&"content-type: application/json".to_owned()));
    let length = head
        .iter()
        .find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.unwrap().parse().unwrap()];
    reader.read_exact(&mut body).unwrap();
    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
    reader.get_mut().write_all(answer).unwrap();
    let sent: Value = serde_json::from_slice(&body).unwrap();
    let spans = &sent["resourceSpans"][0]["scopeSpans"][0]["spans"];
    spans.as_array().unwrap().clone()
}

fn attributes(span: &Value) -> Value {
    let list = span["attributes"].as_array().unwrap();
    let pairs = list.iter().map(|attribute| {
        let key = attribute["key"].as_str().unwrap().to_owned();
        (key, attribute["value"]["stringValue"].clone())
    });
    Value::Object(pairs.collect())
}

#[test]
fn every_call_is_a_span() {
    let collector = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", collector.local_addr().unwrap());
    let server = Server::start(&["--otlp-endpoint", &url]);
    let trace = "0af7651916cd43dd8448eb211c80319c";
    let parent = format!("00-{trace}-b7ad6b7169203331-01");
    let headers = [("traceparent", parent.as_str())];
    server.answer("search_content", &json!({"query": "严氏"}), &headers);
    server.answer("get_npc_profile", &json!({"npc_id": "nobody"}), &headers);
    let mut spans = taken(&collector);
    while spans.len() < 2 {
        spans.extend(taken(&collector));
    }
    let records = server.records();
    for (span, record) in spans.iter().zip(&records) {
        let tool = record["tool_name"].as_str().unwrap();
        let mut expected = json!({
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": tool,
            "gen_ai.tool.call.id": record["call_id"],
            "karyi.trace_id": "trace-test",
        });
        if tool == "get_npc_profile" {
            expected["error.type"] = json!("ValueError");
        }
        assert_eq!(attributes(span), expected);
        assert_eq!(span["name"], format!("execute_tool {tool}"));
        assert_eq!(
            (&span["traceId"], &span["parentSpanId"], &span["spanId"]),
            (
                &json!(trace),
                &json!("b7ad6b7169203331"),
                &record["span_id"]
            )
        );
    }
    let text = format!("{spans:?}");
    assert!(!text.contains("严氏") && !text.contains("nobody"), "{text}");
}

#[test]
fn a_collector_that_is_not_there_costs_nothing_but_spans() {
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let server = Server::start(&["--otlp-endpoint", &format!("http://127.0.0.1:{port}")]);
    for _ in 0..3 {
        assert_eq!(server.call("get_site_map", &json!({}))["success"], true);
    }
    let told = server.wait_for("spans_not_sent");
    assert!(
        told["message"].as_str().unwrap().contains("connecting"),
        "{told}"
    );
    server.stop();
}

#[test]
fn the_last_spans_are_sent_at_the_end() {
    let collector = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", collector.local_addr().unwrap());
    let server = Server::start(&["--otlp-endpoint", &url]);
    server.call("get_site_map", &json!({}));
    server.terminate();
    assert_eq!(taken(&collector)[0]["name"], "execute_tool get_site_map");
    server.stop();
}

#[test]
fn a_name_or_password_in_an_address_is_refused_unseen() {
    let dir = tempfile::tempdir().unwrap();
    let serve = |endpoint: &str| {
        let mut command = super::command(dir.path());
        command.args(["--port", "0", "--otlp-endpoint", endpoint]);
        command.output().unwrap()
    };
    let call = |url: &str| {
        let mut command = std::process::Command::new(crate::harness::program());
        command.args([
            "call",
            url,
            "get_site_map",
            "{}",
            "--tenant",
            "t",
            "--site",
            "s",
        ]);
        command.output().unwrap()
    };
    let with_password = "http://ana:pass-5f2c9d@127.0.0.1:1";
    for output in [serve(with_password), call(with_password)] {
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success(), "{told}");
        assert!(
            told.contains("name or password") && !told.contains("5f2c9d"),
            "{told}"
        );
    }
    for endpoint in ["localhost:4318", "ftp://localhost", "http://"] {
        let output = serve(endpoint);
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(
            !output.status.success() && told.contains("expected http://HOST:PORT"),
            "{told}"
        );
    }
}
