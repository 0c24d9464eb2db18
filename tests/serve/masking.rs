//! Secrets of the server: what callers may name, what is masked, and guesses.

use serde_json::{Value, json};

use super::auth::{KEY, file};
use super::{Server, command};
use crate::harness::program;
use crate::vault::home::Home;

#[test]
fn placeholders_stay_text_but_those_that_are_offered() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(&dir, "key", KEY);
    let place = tempfile::tempdir().unwrap();
    let mut started = command(place.path());
    started
        .env("KARYI_VAR_TOKEN", "tok-5f2c9d81aa")
        .env("KARYI_VAR_OTHER", "oth-77e1c0b2dd");
    let arguments = ["--key-file", &path, "--tools", "command"];
    let offering = [&arguments[..], &["--vault", "env", "--vars", "TOKEN"]].concat();
    let key = [("X-Internal-API-Key", KEY)];
    let run = |server: &Server, script: &str| {
        let answer = server.answer("command", &json!({"text": script}), &key);
        answer.json()["output"]["output"].clone()
    };
    let server = Server::run(started, place, &offering);
    // The shell makes nothing of `$KARYI`, which is no variable of it.
    assert_eq!(
        run(
            &server,
            "echo ${#KARYI}; echo '$KARYI{OTHER}' \"$KARYI{TOKEN}\""
        ),
        "0\n$$KARYI{OTHER} $KARYI{TOKEN}\n"
    );
    assert_eq!(run(&server, "printf %s \"$KARYI{TOKEN}\" | wc -c"), "14\n");
    assert_eq!(run(&server, "echo oth-77e1c0b2dd"), "$KARYI{OTHER}\n");
    let server = Server::start(&arguments);
    assert_eq!(
        run(&server, "echo '$KARYI{TOKEN} $$KARYI{X} $KARYI{'"),
        "$$KARYI{TOKEN} $$KARYI{X} $$KARYI{\n"
    );
}

/// Sends a value in every place whose name or text an answer may repeat.
fn answers_to(server: &Server, value: &str) -> Vec<super::Answer> {
    let key = [("X-Internal-API-Key", KEY)];
    let post = |path: &str, body: Value| server.post(path, &key, &body.to_string());
    let long = format!("{}{value}", "x".repeat(90));
    let mut answers = vec![
        post("/tools/call", json!({"tool_name": value, "input": {}})),
        post(
            "/tools/call",
            json!({"tool_name": long.clone(), "input": {}}),
        ),
        post(
            "/tools/call",
            json!({"tool_name": "search_content", "input": {value: 1}}),
        ),
        post(
            "/tools/call",
            json!({"tool_name": "search_content", "input": {"query": "x", long.clone(): 1}}),
        ),
        post(
            "/tools/call",
            json!({"tool_name": "search_content", "input": {"query": value}}),
        ),
        post(
            "/tools/call",
            json!({"tool_name": "get_npc_profile", "input": {"npc_id": value}}),
        ),
        post(
            "/tools/call",
            json!({"tool_name": "command", "input": {"text": "true", value: 1}}),
        ),
        post(
            "/tools/call",
            json!({"tool_name": "command", "input": {}, value: 1}),
        ),
        post("/tools/list", json!({value: 1})),
    ];
    for name in [value, "search_content"] {
        let params =
            json!({"name": name, "arguments": {value: 1}, "_meta": crate::mcp::modern(json!({}))});
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let headers = [
            key[0],
            ("Accept", "application/json, text/event-stream"),
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", "tools/call"),
            ("Mcp-Name", name),
        ];
        answers.push(server.post("/mcp", &headers, &message.to_string()));
    }
    answers
}

#[test]
fn what_callers_write_is_masked_wherever_it_is_told() {
    let value = "tok-5f2c9d81aa";
    let dir = tempfile::tempdir().unwrap();
    let path = file(&dir, "key", KEY);
    let place = tempfile::tempdir().unwrap();
    let mut started = command(place.path());
    started.env("KARYI_VAR_TOKEN", value);
    let arguments = [
        "--key-file",
        &path,
        "--tools",
        "command",
        "--vault",
        "env",
        "--vars",
        "TOKEN",
        "--ledger-input",
        "--tenant",
        "yantian",
        "--site",
        "yantian-main",
    ];
    let server = Server::run(started, place, &arguments);
    let answers = answers_to(&server, value);
    for answer in &answers {
        assert!(!answer.body.contains(&value[..10]), "{answer:?}");
        assert!(
            answer.body.contains("KARYI") || answer.status == 422,
            "{answer:?}"
        );
    }
    server.terminate();
    let log = server.log();
    assert!(
        log.contains("Unknown tool") && !log.contains(&value[..10]),
        "{log}"
    );
    let records = format!("{:?}", server.records());
    assert!(
        records.contains("KARYI") && !records.contains(&value[..10]),
        "{records}"
    );
}

#[test]
fn a_value_that_is_a_number_is_masked_in_a_recorded_input() {
    let place = tempfile::tempdir().unwrap();
    let mut started = command(place.path());
    started.env("KARYI_VAR_PIN", "8392017455");
    let given = ["--tools", "command", "--vault", "env", "--vars", "PIN"];
    let arguments = [&given[..], &["--ledger-input"]].concat();
    let server = Server::run(started, place, &arguments);
    let input = json!({"query": "a", "limit": 8392017455u64});
    let answer = server.call("search_content", &input);
    let masked = json!({"query": "a", "limit": "$KARYI{PIN}"});
    assert_eq!(server.last_record()["input"], masked, "{answer}");
}

#[test]
fn identifiers_with_a_value_are_refused_and_kept_nowhere() {
    let value = "tok-5f2c9d81aa";
    let dir = tempfile::tempdir().unwrap();
    let path = file(&dir, "key", KEY);
    let place = tempfile::tempdir().unwrap();
    let mut started = command(place.path());
    started.env("KARYI_VAR_TOKEN", value);
    let vault = ["--vault", "env", "--vars", "TOKEN", "--tools", "command"];
    let arguments = [&["--key-file", path.as_str()][..], &vault[..]].concat();
    let server = Server::run(started, place, &arguments);
    let id = format!("u-{value}");
    let event = json!({"event_type": "visit", "event_data": {}});
    for header in [
        "X-Trace-ID",
        "X-Tenant-ID",
        "X-Site-ID",
        "X-Span-ID",
        "X-User-ID",
        "X-Session-ID",
        "X-NPC-ID",
        "Idempotency-Key",
    ] {
        let headers = [("X-Internal-API-Key", KEY), (header, id.as_str())];
        let answer = server.answer("log_user_event", &event, &headers);
        assert_eq!(answer.status, 422, "{header}: {answer:?}");
        assert!(
            !format!("{answer:?}").contains(value),
            "{header}: {answer:?}"
        );
        // Whoever is not known learns nothing.
        let answer = server.answer("log_user_event", &event, &[(header, &id)]);
        assert_eq!(answer.status, 401, "{header}: {answer:?}");
    }
    for key in ["user_id", "session_id", "npc_id", "trace_id"] {
        let body = json!({"tool_name": "log_user_event", "input": event, "context": {key: id}});
        let key = [("X-Internal-API-Key", KEY)];
        let answer = server.post("/api/tools/call", &key, &body.to_string());
        assert_eq!(answer.status, 422, "{answer:?}");
    }
    server.terminate();
    assert!(!server.log().contains(value), "{}", server.log());
    let records = format!("{:?}", server.records());
    assert!(
        records.contains("KARYI") && !records.contains(value),
        "{records}"
    );
    for entry in std::fs::read_dir(server.dir.path()).unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap_or_default();
        let found = memchr::memmem::find(&bytes, value.as_bytes());
        assert!(found.is_none(), "{}", path.display());
    }
}

/// Starts a server that knows a secret.
fn with_secret(value: &str, further: &[&str]) -> (tempfile::TempDir, Server) {
    let dir = tempfile::tempdir().unwrap();
    let path = file(&dir, "key", KEY);
    let place = tempfile::tempdir().unwrap();
    let mut started = command(place.path());
    started.env("KARYI_VAR_TOKEN", value);
    let vault = ["--vault", "env", "--vars", "TOKEN", "--tools", "command"];
    let arguments = [&["--key-file", path.as_str()][..], &vault[..], further].concat();
    (dir, Server::run(started, place, &arguments))
}

#[test]
fn the_start_of_a_value_is_masked_where_a_text_is_cut() {
    let value = "tok-5f2c9d81aa";
    let (_dir, server) = with_secret(value, &[]);
    let key = [("X-Internal-API-Key", KEY)];
    let body = format!("wombat {}{value} end", "y".repeat(483));
    let draft = json!({"content_type": "story", "title": "wombat", "body": body});
    let made = server.answer("create_draft_content", &draft, &key);
    assert_eq!(made.json()["success"], true, "{made:?}");
    let query = json!({"query": "wombat", "status": "draft"});
    let found = server.answer("search_content", &query, &key).json();
    let shown = found["output"]["items"][0]["body"].as_str().unwrap();
    let expected = format!("wombat {}[KARYI:TOKEN:part]", "y".repeat(483));
    assert_eq!(shown, expected);
}

#[test]
fn an_answer_that_is_repeated_masks_what_has_become_secret_since() {
    let home = Home::new();
    let (keys, value) = (tempfile::tempdir().unwrap(), "lat-0a9b8c7d6e");
    let server = without_vars(&home, &keys);
    let headers = [("X-Internal-API-Key", KEY), ("Idempotency-Key", "once")];
    let input = json!({"text": format!("echo {value}; echo ran >> runs; wc -l < runs")});
    let first = server.answer("command", &input, &headers);
    assert_eq!(
        first.json()["output"]["output"],
        format!("{value}\n1\n"),
        "{first:?}"
    );
    let again = server.answer("command", &input, &headers);
    assert_eq!(again.body, first.body);
    home.set("LATER", value, &[]);
    let masked = server.answer("command", &input, &headers);
    assert_eq!(masked.body, first.body.replace(value, "$KARYI{LATER}"));
}

#[test]
fn guesses_at_a_value_are_limited() {
    let value = "tok-5f2c9d81aa";
    let (_dir, server) = with_secret(value, &["--tenant-rate", "1:5"]);
    let headers = [("X-Internal-API-Key", KEY), ("X-User-ID", value)];
    let guess = || server.answer("get_site_map", &json!({}), &headers).status;
    let statuses: Vec<u16> = (0..50).map(|_| guess()).collect();
    assert_eq!(statuses[0], 422);
    assert!(statuses.contains(&429), "{statuses:?}");
}

#[test]
fn guesses_at_tenants_are_limited() {
    let dir = tempfile::tempdir().unwrap();
    let keys = json!({"keys": [{"id": "a", "key": KEY, "tenants": ["yantian"], "sites": ["*"], "scopes": ["tools:call:site"]}]});
    let path = file(&dir, "keys", &keys.to_string());
    let server = Server::start(&["--key-file", &path, "--tenant-rate", "1:3"]);
    let status = |tenant: &str| {
        let headers = [("X-Internal-API-Key", KEY), ("X-Tenant-ID", tenant)];
        server.answer("get_site_map", &json!({}), &headers).status
    };
    let found: Vec<u16> = (0..20)
        .map(|number| status(&format!("t{number}")))
        .collect();
    assert_eq!(found[..3], [403; 3]);
    assert!(found.contains(&429), "{found:?}");
    // It takes nothing from the tenant that is theirs.
    assert_eq!(status("yantian"), 200);
}

#[test]
fn what_has_no_record_is_masked_in_answer_and_log() {
    let value = "tok-5f2c9d81aa";
    let (_dir, server) = with_secret(value, &[]);
    let body = format!("{{\"{value}\": 1, \"{value}\": 2}}");
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-Internal-API-Key: {KEY}\r\n\
         Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    let answer = server.raw(request.as_bytes());
    assert_eq!(answer.status, 400, "{answer:?}");
    let is_masked = |text: &str| text.contains("KARYI{TOKEN}") && !text.contains(value);
    assert!(is_masked(&answer.body), "{answer:?}");
    let line = server.wait_for("request_refused").to_string();
    assert!(is_masked(&line), "{line}");
}

#[test]
fn what_a_secret_is_bound_to_holds_for_callers_too() {
    let home = Home::new();
    home.set("TOKEN", "tok-5f2c9d81aa", &["--tools", "edit"]);
    home.set("FREE", "fre-77e1c0b2dd", &[]);
    let dir = tempfile::tempdir().unwrap();
    let path = file(&dir, "key", KEY);
    let identity = home.identity().display().to_string();
    let database = dir.path().join("site.db").display().to_string();
    let started = home.command(program(), &["serve", "--db", &database]);
    let arguments = [
        "--key-file",
        &path,
        "--tools",
        "command,read",
        "--vault",
        "age",
        "--age-identity",
        &identity,
        "--vars",
        "TOKEN,FREE",
    ];
    let server = Server::run(started, dir, &arguments);
    let key = [("X-Internal-API-Key", KEY)];
    let run = |tool: &str, input: Value| {
        let answer = server.answer(tool, &input, &key).json();
        (
            answer["output"]["output"].clone(),
            answer["error_code"].clone(),
        )
    };
    let script = |text: &str| run("command", json!({ "text": text }));
    assert_eq!(
        script("echo \"$KARYI{FREE}\""),
        (json!("$KARYI{FREE}\n"), Value::Null)
    );
    assert_eq!(
        script("echo \"$KARYI{TOKEN}\""),
        (Value::Null, json!("POLICY_DENIED"))
    );
    // What a server is kept safe by is nothing for its callers.
    for kept in [&path, &identity, &database] {
        let answer = run("read", json!({"files": [{"src": kept}]}));
        assert_eq!(answer, (Value::Null, json!("POLICY_DENIED")), "{kept}");
    }
    // A value that is changed meanwhile is seen.
    home.set("LATER", "lat-0a9b8c7d6e", &[]);
    assert_eq!(script("echo lat-0a9b8c7d6e").0, "$KARYI{LATER}\n");
}

/// Starts a server of commands that offers no secret of a home.
fn without_vars(home: &Home, keys: &tempfile::TempDir) -> Server {
    let (path, dir) = (file(keys, "key", KEY), tempfile::tempdir().unwrap());
    let database = dir.path().join("site.db").display().to_string();
    let started = home.command(program(), &["serve", "--db", &database]);
    Server::run(started, dir, &["--key-file", &path, "--tools", "command"])
}

fn output(server: &Server, script: &str) -> Value {
    let key = [("X-Internal-API-Key", KEY)];
    let answer = server.answer("command", &json!({ "text": script }), &key);
    answer.json()["output"]["output"].clone()
}

#[test]
fn what_is_stored_is_masked_though_nothing_is_offered() {
    let keys = tempfile::tempdir().unwrap();
    let set = |home: &Home| home.set("TOKEN", "tok-5f2c9d81aa", &[]);
    for is_first in [true, false] {
        let home = Home::new();
        if is_first {
            set(&home);
        }
        let server = without_vars(&home, &keys);
        if !is_first {
            assert_eq!(output(&server, "echo one"), "one\n");
            set(&home);
        }
        let script = "echo tok-5f2c9d81aa '$KARYI{TOKEN}' | tee seen";
        assert_eq!(
            output(&server, script),
            "$KARYI{TOKEN} $$KARYI{TOKEN}\n",
            "{is_first}"
        );
        // Nothing was made of the placeholder.
        let seen = std::fs::read_to_string(home.work().join("seen")).unwrap();
        assert_eq!(seen, "tok-5f2c9d81aa $KARYI{TOKEN}\n");
    }
}

#[test]
fn a_store_that_cannot_be_read_is_told_at_the_start_and_stops_nothing() {
    let (home, keys) = (Home::new(), tempfile::tempdir().unwrap());
    home.set("TOKEN", "tok-5f2c9d81aa", &[]);
    std::fs::rename(home.identity(), home.path().join("away")).unwrap();
    let server = without_vars(&home, &keys);
    let told = server.wait_for("redaction_incomplete");
    let message = told["message"].as_str().unwrap();
    assert!(message.contains("wrong_key"), "{message}");
    assert_eq!(output(&server, "echo one"), "one\n");
}
