//! Whatever comes is answered, and the next request is served.

use serde_json::{Value, json};

use super::Client;
use crate::harness::Karyi;

/// Sends a line and returns the answer without an id.
fn refused(client: &mut Client, line: &[u8]) -> Value {
    client.raw(line);
    client.raw(b"\n");
    client.wait_for(|message| message["id"].is_null() && message.get("error").is_some())
}

#[test]
fn what_is_no_message_is_answered() {
    let mut client = Client::connected();
    let deep = "[".repeat(100_000);
    let cases: [(&[u8], i64); 11] = [
        (b"{bad", -32700),
        (b"", 0),
        (b"\xff\xfe", -32700),
        (deep.as_bytes(), -32700),
        (br#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600),
        (b"[]", -32600),
        (b"42", -32600),
        (b"null", -32600),
        (br#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, -32600),
        (br#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, -32600),
        (br#"{"jsonrpc":"2.0"}"#, -32600),
    ];
    for (line, code) in cases {
        if line.is_empty() {
            client.raw(b"\n  \r\n");
            continue;
        }
        let answer = refused(&mut client, line);
        assert_eq!(answer["error"]["code"], code, "{answer}");
        let keys: Vec<&String> = answer.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["jsonrpc", "id", "error"]);
    }
    let with_id: [(&str, i64); 8] = [
        (
            r#"{"jsonrpc":"2.0","id":"a","method":"ping"} trailing"#,
            -32700,
        ),
        (
            r#"{"jsonrpc":"2.0","id":"a","method":"ping","params":{"x":"\q"}}"#,
            -32700,
        ),
        (r#"{"id":"a","method":"ping","params":{"x":"#, -32700),
        (r#"{"jsonrpc":"1.0","id":"a","method":"ping"}"#, -32600),
        (r#"{"id":"a","method":"ping"}"#, -32600),
        (
            r#"{"jsonrpc":"2.0","id":"a","method":"ping","params":{"x":1,"x":2}}"#,
            -32600,
        ),
        (r#"{"jsonrpc":"2.0","id":"a","method":7}"#, -32600),
        (
            r#"{"jsonrpc":"2.0","id":"a","method":"ping","params":[1]}"#,
            -32602,
        ),
    ];
    for (line, code) in with_id {
        client.raw(format!("{line}\n").as_bytes());
        let answer = client.wait_for(|message| message["id"] == "a");
        assert_eq!(answer["error"]["code"], code, "{line}: {answer}");
    }
    assert_eq!(client.request("ping", json!({}))["result"], json!({}));
}

#[test]
fn a_line_without_end_does_not_fill_the_memory() {
    let mut client = Client::connected();
    let most = karyi::limits::MAX_MCP_LINE_BYTES;
    let piece = vec![b'x'; 1 << 20];
    for _ in 0..=((2 * most) >> 20) {
        client.raw(&piece);
    }
    let answer = refused(&mut client, b"");
    assert_eq!(answer["error"]["code"], -32600, "{answer}");
    // The longest line that is taken.
    let head = r#"{"jsonrpc":"2.0","id":"big","method":"ping","params":{"x":""#;
    let tail = "\"}}\n";
    let fill = "x".repeat(most - head.len() - tail.len());
    client.raw(format!("{head}{fill}{tail}").as_bytes());
    assert_eq!(
        client.wait_for(|message| message["id"] == "big")["result"],
        json!({})
    );
    let status = std::fs::read_to_string(format!("/proc/{}/status", client.pid()));
    if let Ok(status) = status {
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let peak: u64 = peak
            .unwrap()
            .trim()
            .trim_end_matches(" kB")
            .parse()
            .unwrap();
        assert!(peak < 250_000, "{peak} kB");
    }
}

#[test]
fn a_connection_begins_whatever_came_before() {
    let mut client = Client::start(Karyi::with_args(&["mcp", "--no-rc"]));
    for line in [
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#,
        r#"{"jsonrpc":"2.0","method":"$/setTrace","params":{"value":"off"}}"#,
        r#"{"jsonrpc":"2.0","id":9,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":9,"error":{"code":1,"message":"x"}}"#,
        "nonsense",
    ] {
        client.raw(format!("{line}\n").as_bytes());
    }
    assert_eq!(client.request("ping", json!({}))["result"], json!({}));
    let early = client.request("tools/list", json!({}));
    assert_eq!(early["error"]["code"], -32602, "{early}");
    let broken = client.request("initialize", json!({"protocolVersion": 7}));
    assert_eq!(broken["error"]["code"], -32602, "{broken}");
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let answer = client.request("initialize", params);
    assert_eq!(
        answer["result"]["protocolVersion"], "2025-06-18",
        "{answer}"
    );
    assert_eq!(
        client.good("command", json!({"text": "echo hi"}))["output"],
        "hi\n"
    );
}

#[test]
fn an_id_in_use_is_refused_and_its_call_goes_on() {
    let mut client = Client::connected();
    let id = client.begin_call("command", json!({"text": "read x; echo \"got $x\""}));
    // It ends only when it waits for input, which is after this came.
    let again = json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
    client.send(&again);
    let mut answers = [client.next(), client.next()];
    answers.sort_by_key(|answer| answer["id"].is_null());
    let [first, second] = answers;
    match second["id"].is_null() {
        true => {
            assert_eq!(second["error"]["code"], -32600, "{second}");
            assert_eq!(second["error"]["data"]["id"], id);
            let status = &first["result"]["structuredContent"]["status"];
            assert_eq!(status, "awaiting_input", "{first}");
        }
        // The call was over first, and the id free again.
        false => assert_eq!(second["result"], json!({}), "{second}"),
    }
    assert_eq!(
        client.good("input", json!({"text": "it\n"}))["output"],
        "it\ngot it\n"
    );
}

#[test]
fn a_cancellation_of_nothing_changes_nothing() {
    let mut client = Client::connected();
    for id in [json!(4711), json!("x"), json!(null), json!({}), json!([1])] {
        let params = json!({"requestId": id, "reason": "no"});
        client.send(
            &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}),
        );
    }
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled"}));
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}}));
    client.send(&json!({"jsonrpc": "2.0", "id": 99, "result": {"nobody": "asked"}}));
    assert_eq!(
        client.good("command", json!({"text": "echo hi"}))["output"],
        "hi\n"
    );
}

#[test]
fn many_calls_at_once_are_served_or_told_to_wait() {
    let mut client = Client::connected();
    let ids: Vec<i64> = (0..200)
        .map(|number| client.begin_call("command", json!({"text": format!("echo {number}")})))
        .collect();
    let mut served = 0;
    for (number, id) in ids.into_iter().enumerate() {
        let result = client.answer(id)["result"].clone();
        match result["isError"] == false {
            true => {
                served += 1;
                let output = &result["structuredContent"]["output"];
                assert_eq!(output, &json!(format!("{number}\n")));
            }
            false => assert_eq!(super::error_of(&result)["code"], "session_busy", "{result}"),
        }
    }
    assert!(served >= karyi::limits::MAX_MCP_CALLS, "{served}");
}

#[test]
fn what_is_no_message_is_answered_and_recorded() {
    let server = crate::serve::Server::start(&[]);
    let accept = ("Accept", "application/json, text/event-stream");
    let deep = "[".repeat(100_000);
    let twice = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"get_site_map",
        "arguments":{"include_pois":true,"include_pois":false}}}"#;
    let cases: [(&str, i64, Value); 6] = [
        ("{", -32700, Value::Null),
        (&deep, -32700, Value::Null),
        ("[]", -32600, Value::Null),
        ("null", -32600, Value::Null),
        (r#"{"jsonrpc":"2.0","id":"a"}"#, -32600, json!("a")),
        (twice, -32600, json!(7)),
    ];
    for (body, code, id) in cases {
        let before = server.records().len();
        let answer = server.post("/mcp", &[accept], body);
        assert_eq!(answer.status, 400, "{answer:?}");
        let message = answer.json();
        assert_eq!(
            (&message["error"]["code"], &message["id"]),
            (&json!(code), &id)
        );
        assert_eq!(server.records().len(), before + 1, "{body}");
        assert_eq!(server.last_record()["http_status"], 400);
    }
}
