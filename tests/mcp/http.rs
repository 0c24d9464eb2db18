//! `/mcp`: streamable HTTP in both eras, with the checks and the dispatcher of the server.

use std::io::Write;

use serde_json::{Value, json};

use super::{error_of, modern};
use crate::serve::{Answer, Server};

pub(super) const KEY: &str = "a-key-of-the-mcp-tests-0123456789";

/// Starts a server that asks for a key.
pub(super) fn closed(arguments: &[&str]) -> Server {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("key");
    std::fs::File::create(&path)
        .unwrap()
        .write_all(KEY.as_bytes())
        .unwrap();
    let path = path.to_str().unwrap().to_owned();
    let mut all = vec!["--key-file", &path];
    all.extend(arguments);
    Server::start_in(dir, &all)
}

pub(super) const SITE: [&str; 4] = ["--tenant", "yantian", "--site", "yantian-main"];

/// Headers that take the three of the harness away.
const NOWHERE: [(&str, &str); 3] = [
    ("X-Tenant-ID", "-"),
    ("X-Site-ID", "-"),
    ("X-Trace-ID", "-"),
];

pub(super) fn post(server: &Server, message: &Value, headers: &[(&str, &str)]) -> Answer {
    let mut all = vec![("Accept", "application/json, text/event-stream")];
    all.extend(
        NOWHERE
            .iter()
            .filter(|(name, _)| !headers.iter().any(|(own, _)| own == name)),
    );
    all.extend(headers);
    server.post("/mcp", &all, &message.to_string())
}

/// The messages of an answer, JSON or a stream of events.
fn messages(answer: &Answer) -> Vec<Value> {
    let lines = answer.body.lines();
    let found: Vec<Value> = lines
        .map(|line| line.strip_prefix("data: ").unwrap_or(line))
        .filter(|line| line.starts_with('{'))
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    assert!(!found.is_empty(), "{answer:?}");
    found
}

pub(super) fn last(answer: &Answer) -> Value {
    assert_eq!(answer.status, 200, "{answer:?}");
    messages(answer).pop().unwrap()
}

pub(super) fn request(id: i64, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// Says hello and returns the session.
pub(super) fn hello(server: &Server, headers: &[(&str, &str)]) -> String {
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let answer = post(server, &request(1, "initialize", params), headers);
    assert_eq!(last(&answer)["result"]["serverInfo"]["name"], "karyi");
    let session = answer.header("mcp-session-id").unwrap();
    let mut all = vec![("Mcp-Session-Id", session.as_str())];
    all.extend(headers);
    let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(post(server, &note, &all).status, 202);
    session
}

/// Calls a tool without initialize.
fn call(
    server: &Server,
    tool: &str,
    arguments: &Value,
    more: Value,
    headers: &[(&str, &str)],
) -> Value {
    let mut meta = modern(json!({}));
    meta.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
    let mut all = vec![
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", tool),
    ];
    all.extend(headers);
    let answer = post(server, &request(1, "tools/call", params), &all);
    messages(&answer).pop().unwrap()
}

#[test]
fn a_session_lists_and_calls_the_tools_of_a_site() {
    let server = Server::start(&SITE);
    let session = hello(&server, &[]);
    let headers = [("Mcp-Session-Id", session.as_str())];
    let answer = last(&post(
        &server,
        &request(2, "tools/list", json!({})),
        &headers,
    ));
    let tools = answer["result"]["tools"].as_array().unwrap();
    let names: Vec<&Value> = tools.iter().map(|tool| &tool["name"]).collect();
    let site = [
        "get_npc_profile",
        "search_content",
        "get_site_map",
        "create_draft_content",
        "log_user_event",
        "get_prompt_active",
    ];
    assert_eq!(json!(names), json!(site));
    let params = json!({"name": "search_content", "arguments": {"query": "严氏家训"}});
    let answer = last(&post(&server, &request(3, "tools/call", params), &headers));
    let result = super::calm(answer["result"].clone());
    assert_eq!(
        (&result["isError"], &result["content"]),
        (&json!(false), &json!("the same"))
    );
    let record = server.last_record();
    assert_eq!(record["tool_name"], "search_content", "{record}");
    assert_eq!(
        (&record["front_end"], &record["status"]),
        (&json!("mcp"), &json!("success")),
        "{record}"
    );
    assert_eq!(
        record["trace_id"], result["_meta"]["karyi/trace_id"],
        "{record}"
    );
    assert_eq!(
        record["call_id"], result["_meta"]["karyi/call_id"],
        "{record}"
    );
    // What is not served is not there, and the attempt is in the ledger.
    for tool in ["command", "get_value", "nope"] {
        let params = json!({"name": tool, "arguments": {}});
        let answer = last(&post(&server, &request(4, "tools/call", params), &headers));
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        assert_eq!(server.last_record()["tool_name"], tool);
    }
    let params = json!({"name": "search_content", "arguments": {"query": [7]}});
    let answer = last(&post(&server, &request(5, "tools/call", params), &headers));
    assert_eq!(error_of(&answer["result"])["code"], "INVALID_INPUT");
    server.stop();
}

#[test]
fn a_refused_call_names_its_record() {
    let server = Server::start(&[&SITE[..], &["--tool-rate", "1:1"]].concat());
    let query = json!({"query": "家训"});
    let [_, refused] = [(), ()].map(|()| call(&server, "search_content", &query, json!({}), &[]));
    let (meta, record) = (&refused["result"]["_meta"], server.last_record());
    assert_eq!(record["http_status"], 429, "{refused}");
    for id in ["trace_id", "call_id"] {
        assert_eq!(record[id], meta[format!("karyi/{id}")], "{refused}");
    }
}

#[test]
fn inputs_have_one_schema_on_every_route() {
    let server = Server::start(&SITE);
    let session = hello(&server, &[]);
    let list = request(2, "tools/list", json!({}));
    let listed = last(&post(&server, &list, &[("Mcp-Session-Id", &session)]));
    let by_name = |tools: &Value, schema: &str| -> Vec<(String, Value)> {
        let tools = tools.as_array().unwrap().iter();
        let one = |tool: &Value| (tool["name"].to_string(), tool[schema].clone());
        tools.map(one).collect()
    };
    let own = server.post("/api/tools/list", &[], "{}").json();
    let own = by_name(&own["tools"], "input_schema");
    assert_eq!(by_name(&listed["result"]["tools"], "inputSchema"), own);
    assert!(own.iter().all(|(_, schema)| schema["required"].is_array()));
}

#[test]
fn without_initialize_every_request_stands_alone() {
    let server = Server::start(&SITE);
    let answer = call(
        &server,
        "get_npc_profile",
        &json!({"npc_id": "ancestor_yan"}),
        json!({"karyi/trace_id": "trace-9"}),
        &[],
    );
    assert_eq!(
        answer["result"]["structuredContent"]["npc_id"], "ancestor_yan",
        "{answer}"
    );
    assert_eq!(server.last_record()["trace_id"], "trace-9");
    let answer = call(&server, "nope", &json!({}), json!({}), &[]);
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    let answer = call(
        &server,
        "search_content",
        &json!({"query": "a"}),
        json!({"karyi/tenant_id": "not an id"}),
        &[],
    );
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
}

#[test]
fn arguments_that_are_json_text_are_taken_as_on_standard_input() {
    let server = Server::start(&SITE);
    let text = json!("{\"query\": \"家训\", \"limit\": \"1\"}");
    let answer = call(&server, "search_content", &text, json!({}), &[]);
    let result = &answer["result"]["structuredContent"];
    assert_eq!(result["query"], "家训", "{answer}");
}

#[test]
fn a_call_whose_parameters_do_not_fit_is_recorded_as_refused() {
    let server = Server::start(&SITE);
    let session = hello(&server, &[]);
    let headers = [("Mcp-Session-Id", session.as_str())];
    for (params, tool, problem) in [
        (
            json!({"name": "get_site_map", "arguments": [7]}),
            "get_site_map",
            "the arguments of get_site_map must be an object",
        ),
        (
            json!({"arguments": {}}),
            "",
            "invalid parameters for tools/call",
        ),
        (
            json!({"name": "nope", "arguments": [7]}),
            "nope",
            "Unknown tool: nope",
        ),
    ] {
        let before = server.records().len();
        let answer = last(&post(
            &server,
            &request(2, "tools/call", params.clone()),
            &headers,
        ));
        let (error, record) = (&answer["error"], server.last_record());
        assert_eq!(error["code"], -32602, "{answer}");
        let message = error["message"].as_str().unwrap();
        assert!(message.starts_with(problem), "{message}");
        assert_eq!(server.records().len(), before + 1, "{params}");
        let told = ["request_type", "tool_name", "status", "error"].map(|name| &record[name]);
        assert_eq!(
            told,
            [
                &json!("tool_call"),
                &json!(tool),
                &json!("error"),
                &json!(problem)
            ],
            "{params}"
        );
    }
}

#[test]
fn tenant_and_site_come_from_headers_or_meta() {
    let server = Server::start(&[]);
    let list = |headers: &[(&str, &str)]| {
        let params = json!({"_meta": modern(json!({}))});
        let mut all = vec![
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", "tools/list"),
        ];
        all.extend(headers);
        let answer = last(&post(&server, &request(1, "tools/list", params), &all));
        answer["result"]["tools"].as_array().unwrap().len()
    };
    let place = [("X-Tenant-ID", "yantian"), ("X-Site-ID", "yantian-main")];
    assert_eq!((list(&[]), list(&place)), (0, 6));
    let query = json!({"query": "家训"});
    let answer = call(&server, "search_content", &query, json!({}), &[]);
    assert_eq!(error_of(&answer["result"])["code"], "no_site");
    // It has no place in the ledger, and is told of in the log.
    let told = server.wait_for("request_refused");
    assert_eq!(told["message"], "the call names no tenant and site");
    let meta = json!({"karyi/tenant_id": "yantian", "karyi/site_id": "yantian-main"});
    let answer = call(&server, "search_content", &query, meta.clone(), &[]);
    assert!(
        answer["result"]["structuredContent"]["total"].as_u64() > Some(0),
        "{answer}"
    );
    // A header wins.
    let answer = call(
        &server,
        "search_content",
        &query,
        meta,
        &[("X-Tenant-ID", "other")],
    );
    assert_eq!(
        answer["result"]["structuredContent"]["total"], 0,
        "{answer}"
    );
}

#[test]
fn what_is_gone_since_2026_is_no_method() {
    let server = Server::start(&SITE);
    for method in [
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
    ] {
        let params = json!({"_meta": modern(json!({}))});
        let headers = [
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", method),
        ];
        let answer = post(&server, &request(1, method, params), &headers);
        let code = &messages(&answer)[0]["error"]["code"];
        assert_eq!((answer.status, code), (404, &json!(-32601)), "{method}");
    }
}

#[test]
fn the_door_is_that_of_every_route() {
    let server = closed(&SITE);
    let hello = request(
        1,
        "initialize",
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}),
    );
    let key = ("X-Internal-API-Key", KEY);
    let status = |headers: &[(&str, &str)]| post(&server, &hello, headers).status;
    assert_eq!(status(&[key]), 200);
    assert_eq!(status(&[]), 401);
    assert_eq!(
        status(&[("X-Internal-API-Key", "wrong-key-0123456789012345")]),
        401
    );
    assert_eq!(status(&[("Authorization", "Bearer x.y.z")]), 401);
    assert_eq!(status(&[key, ("Host", "evil.example")]), 403);
    assert_eq!(status(&[key, ("Origin", "http://evil.example")]), 403);
    assert_eq!(status(&[key, ("Content-Type", "text/plain")]), 415);
    let wrong = post(&server, &hello, &[]);
    assert!(wrong.header("www-authenticate").is_some(), "{wrong:?}");
    let big =
        json!({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"x": "x".repeat(2 << 20)}});
    assert_eq!(post(&server, &big, &[key]).status, 413);
    let lost = [
        key,
        ("Mcp-Session-Id", "00000000-0000-0000-0000-000000000000"),
    ];
    assert_eq!(
        post(&server, &request(2, "tools/list", json!({})), &lost).status,
        404
    );
    for path in ["/mcp", "/mcp/"] {
        let text = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        assert!([401, 404].contains(&server.raw(text.as_bytes()).status));
    }
    assert_eq!(status(&[key]), 200);
}

#[test]
fn wrong_headers_are_refused_as_on_every_route() {
    let server = closed(&[]);
    let key = ("X-Internal-API-Key", KEY);
    let other = ("X-Internal-API-Key", "another-key-0123456789012345");
    let list = request(1, "tools/list", json!({})).to_string();
    let accept = ("Accept", "application/json, text/event-stream");
    let answer = server.post("/mcp", &[accept, key, other], &list);
    assert_eq!(answer.status, 400, "{answer:?}");
    assert_eq!(server.last_record()["error_type"], "MalformedRequest");
    let site = ("X-Tenant-ID", "yantian");
    let place = [
        key,
        site,
        ("X-Site-ID", "yantian-main"),
        ("X-Trace-ID", "t1"),
    ];
    let session = hello(&server, &place);
    let before = server.records().len();
    let mut named = place.to_vec();
    named.extend([("Mcp-Session-Id", &*session), ("X-User-ID", "a b")]);
    let answer = post(&server, &request(2, "tools/list", json!({})), &named);
    assert_eq!(last(&answer)["error"]["code"], -32602);
    let record = server.last_record();
    assert_eq!(server.records().len(), before + 1);
    assert_eq!(
        (&record["trace_id"], &record["http_status"]),
        (&json!("t1"), &json!(422))
    );
    assert_eq!(
        (&record["front_end"], &record["principal"]),
        (&json!("mcp"), &json!("key:internal"))
    );
    // What the protocol refuses by itself is recorded, too.
    let text = ("Accept", "text/html");
    let unknown = ("Mcp-Session-Id", "nobody's");
    for (headers, status) in [
        ([&place[..], &[accept, unknown]].concat(), 404),
        ([&place[..], &[text]].concat(), 406),
    ] {
        let before = server.records().len();
        let answer = server.post("/mcp", &headers, &list);
        assert_eq!(answer.status, status, "{answer:?}");
        let record = server.last_record();
        assert_eq!(server.records().len(), before + 1, "{status}");
        assert_eq!(
            (
                &record["http_status"],
                &record["front_end"],
                &record["principal"]
            ),
            (&json!(status), &json!("mcp"), &json!("key:internal"))
        );
    }
    // The same for what is no message.
    let answer = server.post("/mcp", &[accept, key], "{");
    assert_eq!(answer.status, 400, "{answer:?}");
    let record = server.last_record();
    assert_eq!(
        (&record["front_end"], &record["principal"]),
        (&json!("mcp"), &json!("key:internal"))
    );
}

/// Two holders of keys, both for the village.
fn two_callers(arguments: &[&str]) -> Server {
    let key = |id: &str| json!({"id": id, "key": key_of(id), "tenants": ["*"], "sites": ["*"], "scopes": ["tools:list", "tools:call:content"]});
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("keys");
    let keys = json!({"keys": [key("ana"), key("ben")]});
    std::fs::write(&path, keys.to_string()).unwrap();
    let path = path.to_str().unwrap().to_owned();
    let mut all = vec!["--key-file", &path];
    all.extend(arguments);
    Server::start_in(dir, &all)
}

fn key_of(id: &str) -> String {
    format!("{id}-has-this-key-0123456789-0123456789")
}

#[test]
fn a_session_is_there_for_who_began_it_only() {
    let server = two_callers(&SITE);
    let (ana, ben) = (key_of("ana"), key_of("ben"));
    let (ana, ben) = (("X-Internal-API-Key", &*ana), ("X-Internal-API-Key", &*ben));
    let session = hello(&server, &[ana]);
    let named = ("Mcp-Session-Id", session.as_str());
    let list = request(2, "tools/list", json!({}));
    let own = post(&server, &list, &[ana, named]);
    assert_eq!(last(&own)["result"]["tools"].as_array().unwrap().len(), 6);
    let lost = ("Mcp-Session-Id", "00000000-0000-0000-0000-000000000000");
    let note =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 9}});
    for message in [&list, &note] {
        let foreign = post(&server, message, &[ben, named]);
        let unknown = post(&server, message, &[ben, lost]);
        assert_eq!(foreign.status, 404, "{foreign:?}");
        assert_eq!(
            (foreign.status, foreign.body),
            (unknown.status, unknown.body)
        );
    }
    let bare = |method: &str, key: (&str, &str), session: &str| {
        let text = format!(
            "{method} /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\
             {}: {}\r\nMcp-Session-Id: {session}\r\nConnection: close\r\n\r\n",
            key.0, key.1
        );
        server.raw(text.as_bytes()).status
    };
    assert_eq!(bare("GET", ben, &session), 404);
    assert_eq!(bare("DELETE", ben, &session), 404);
    assert_eq!(bare("DELETE", ben, lost.1), 404);
    // It still stands for its owner, until its owner ends it.
    assert_eq!(post(&server, &list, &[ana, named]).status, 200);
    // 202 is an error to some clients.
    assert_eq!(bare("DELETE", ana, &session), 204);
    assert_eq!(post(&server, &list, &[ana, named]).status, 404);
}

#[test]
fn one_caller_leaves_room_for_others() {
    let server = two_callers(&SITE);
    let (ana, ben) = (key_of("ana"), key_of("ben"));
    let (ana, ben) = (("X-Internal-API-Key", &*ana), ("X-Internal-API-Key", &*ben));
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let begin = |key| post(&server, &request(1, "initialize", params.clone()), &[key]);
    let mut sessions = Vec::new();
    for _ in 0..karyi::limits::MAX_MCP_SESSIONS_EACH {
        sessions.push(begin(ana).header("mcp-session-id").unwrap());
    }
    let refused = begin(ana);
    assert_eq!(
        (refused.status, &refused.json()["error_code"]),
        (429, &json!("rate_limited"))
    );
    assert!(refused.header("retry-after").is_some(), "{refused:?}");
    assert_eq!(begin(ben).status, 200);
    // Requests that need no session are served all the same, and an ended session gives room.
    let answer = call(
        &server,
        "search_content",
        &json!({"query": "家训"}),
        json!({}),
        &[ana],
    );
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    let text = format!(
        "DELETE /mcp HTTP/1.1\r\nHost: localhost\r\n{}: {}\r\nMcp-Session-Id: {}\r\nConnection: close\r\n\r\n",
        ana.0, ana.1, sessions[0]
    );
    assert!(server.raw(text.as_bytes()).status < 300);
    assert_eq!(begin(ana).status, 200);
}

#[test]
fn what_a_model_is_told_of_the_server_is_true_of_it() {
    let told = |arguments: &[&str]| {
        let server = Server::start(arguments);
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        let answer = last(&post(&server, &request(1, "initialize", params), &[]));
        answer["result"]["instructions"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let (site, machine) = (told(&SITE), told(&["--tools", "command"]));
    assert!(
        site.contains("independent of each other") && !site.contains("command"),
        "{site}"
    );
    assert!(
        machine.contains("fresh shell")
            && machine.contains("stays literal text")
            && machine.contains(" Commands run in bash 5."),
        "{machine}"
    );
}

#[test]
fn what_looks_like_a_placeholder_survives_a_round_trip() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.txt");
    let bytes = "one $KARYI{X} $$KARYI{X} $KARYI<Y>\ntwo\n";
    std::fs::write(&path, bytes).unwrap();
    let root = dir.path().to_str().unwrap();
    let mut arguments = SITE.to_vec();
    arguments.extend(["--tools", "read,edit", "--root", root]);
    let server = closed(&arguments);
    let key = ("X-Internal-API-Key", KEY);
    let good = |tool: &str, arguments: &Value| {
        let answer = call(&server, tool, arguments, json!({}), &[key]);
        assert_eq!(answer["result"]["isError"], false, "{answer}");
        answer["result"]["structuredContent"].clone()
    };
    let shown = good("read", &json!({"files": ["a.txt"]}));
    let text = shown["files"][0]["output"].as_str().unwrap();
    assert_eq!(text, "one $$KARYI{X} $$$KARYI{X} $$KARYI<Y>\ntwo\n");
    let edit = json!([{"find": text, "replace": text.replace("two", "three")}]);
    good("edit", &json!({"files": [{"src": "a.txt", "edits": edit}]}));
    let written = std::fs::read_to_string(&path).unwrap();
    assert_eq!(written, bytes.replace("two", "three"));
    // Written without having been read, it is its bytes too.
    let edit = json!([{"find": "three", "replace": "$KARYI{Z}"}]);
    good("edit", &json!({"files": [{"src": "a.txt", "edits": edit}]}));
    let written = std::fs::read_to_string(&path).unwrap();
    assert_eq!(written, bytes.replace("two", "$KARYI{Z}"));
}

#[test]
fn what_could_be_read_is_shown_beside_what_could_not() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.txt"), "one\n").unwrap();
    let root = dir.path().to_str().unwrap();
    let mut arguments = SITE.to_vec();
    arguments.extend(["--tools", "read", "--root", root]);
    let server = closed(&arguments);
    let key = ("X-Internal-API-Key", KEY);
    let files = json!({"files": ["a.txt", {"src": "nowhere"}]});
    let answer = call(&server, "read", &files, json!({}), &[key]);
    let error = error_of(&answer["result"]);
    assert_eq!(
        (&error["code"], &error["files"][0]["output"]),
        (&json!("NOT_FOUND"), &json!("one\n"))
    );
    assert_eq!(error["files"][1]["code"], "not_found");
    let answer = server.answer("read", &files, &[key]).json();
    assert_eq!(
        (&answer["success"], &answer["error_code"]),
        (&json!(false), &json!("NOT_FOUND"))
    );
    assert_eq!(answer["output"]["files"][0]["output"], "one\n", "{answer}");
    // What came to nothing has no output.
    let answer = server
        .answer("read", &json!({"files": ["nowhere"]}), &[key])
        .json();
    assert!(answer.get("output").is_none(), "{answer}");
}

#[test]
fn tools_of_this_machine_are_for_who_is_known_and_named() {
    let mut arguments = SITE.to_vec();
    arguments.extend(["--tools", "command,read"]);
    let server = closed(&arguments);
    let key = ("X-Internal-API-Key", KEY);
    let run = |text: &str, meta: Value| {
        let answer = call(&server, "command", &json!({"text": text}), meta, &[key]);
        answer["result"]["structuredContent"].clone()
    };
    // Each call has a shell of its own, unless it names one.
    assert_eq!(run("cd /usr; pwd", json!({}))["output"], "/usr\n");
    assert_ne!(run("pwd", json!({}))["output"], "/usr\n");
    let mine = json!({"karyi/session": "mine"});
    run("cd /usr; v=7", mine.clone());
    assert_eq!(run("echo $v; pwd", mine.clone())["output"], "7\n/usr\n");
    assert_eq!(
        run("echo $v", json!({"karyi/session": "other"}))["output"],
        "\n"
    );
    let result = run("echo begun; sleep 500 & echo $!", mine.clone());
    let pid = result["output"]
        .as_str()
        .unwrap()
        .lines()
        .last()
        .unwrap()
        .to_owned();
    assert_eq!(server.last_record()["tool_name"], "command");
    server.stop();
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
    // Without a key nobody is known.
    let mut arguments = SITE.to_vec();
    arguments.extend(["--tools", "command"]);
    let server = Server::start(&arguments);
    let answer = call(&server, "command", &json!({"text": "pwd"}), json!({}), &[]);
    assert_eq!(
        error_of(&answer["result"])["code"],
        "permission_denied",
        "{answer}"
    );
}
