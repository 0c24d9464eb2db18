//! Who may call, how often, and from where.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use serde_json::{Value, json};

use super::{Server, command, village};
use crate::harness::program;
use crate::harness::scripted_server::{ScriptedServer, answer as scripted};
use crate::vault::home::Home;

pub(super) const KEY: &str = "0123456789abcdef0123456789abcdef";
const SECRET: &[u8] = b"a secret of thirty-two bytes or more";

pub(super) fn file(dir: &tempfile::TempDir, name: &str, text: &str) -> String {
    let path = dir.path().join(name);
    // A server that looks at the file meanwhile finds the old text or the new one.
    let new = path.with_extension("new");
    std::fs::write(&new, text).unwrap();
    std::fs::rename(&new, &path).unwrap();
    path.to_string_lossy().into_owned()
}

fn now() -> u64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_secs()
}

fn token(secret: &[u8], header: &Value, change: &dyn Fn(&mut Value)) -> String {
    let mut claims = json!({
        "iss": "issuer", "aud": "karyi", "sub": "orchestrator", "iat": now(), "exp": now() + 600,
        "tenants": ["yantian"], "sites": ["yantian-main"], "scope": "tools:list tools:call:npc tools:call:content"
    });
    change(&mut claims);
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let signed = format!("{}.{}", part(header), part(&claims));
    let signature = hmac::sign(
        &hmac::Key::new(hmac::HMAC_SHA256, secret),
        signed.as_bytes(),
    );
    format!(
        "Bearer {signed}.{}",
        URL_SAFE_NO_PAD.encode(signature.as_ref())
    )
}

fn jwks(kid: &str, secret: &[u8]) -> String {
    json!({"keys": [{"kty": "oct", "kid": kid, "k": URL_SAFE_NO_PAD.encode(secret)}]}).to_string()
}

fn with_tokens() -> (tempfile::TempDir, Server) {
    let dir = tempfile::tempdir().unwrap();
    let path = file(&dir, "jwks.json", &jwks("one", SECRET));
    let server = Server::start(&[
        "--jwks",
        &path,
        "--jwt-issuer",
        "issuer",
        "--jwt-audience",
        "karyi",
    ]);
    (dir, server)
}

const HEAD: &str = r#"{"alg":"HS256","kid":"one"}"#;

fn head() -> Value {
    serde_json::from_str(HEAD).unwrap()
}

/// Calls with a credential; compares the status and what the ledger says.
#[track_caller]
fn check_token(server: &Server, authorization: &str, status: u16, error_type: &Value) {
    let npc = json!({"npc_id": "ancestor_yan"});
    let answer = server.answer("get_npc_profile", &npc, &[("Authorization", authorization)]);
    assert_eq!(answer.status, status, "{answer:?}");
    if status == 401 {
        let challenge = answer.header("www-authenticate");
        assert_eq!(challenge.as_deref(), Some("Bearer error=\"invalid_token\""));
        assert_eq!(answer.json()["error_code"], "invalid_token");
    }
    let record = server.last_record();
    let facts = (&record["http_status"], &record["error_type"]);
    assert_eq!(facts, (&json!(status), error_type));
}

#[test]
fn tokens_that_are_not_good_are_refused_and_recorded() {
    let (_dir, server) = with_tokens();
    let check = |token: &str| check_token(&server, token, 401, &json!("Unauthorized"));
    check("-");
    check("Basic abc");
    let other = b"another secret of at least 32 bytes";
    check(&token(other, &head(), &|_| {}));
    for algorithm in ["none", "RS256"] {
        check(&token(
            SECRET,
            &json!({"alg": algorithm, "kid": "one"}),
            &|_| {},
        ));
    }
    let with = |name: &'static str, value: Value| {
        token(SECRET, &head(), &move |claims| claims[name] = value.clone())
    };
    check(&with("exp", json!(now() - 90)));
    check(&with("exp", Value::Null));
    check(&with("nbf", json!(now() + 300)));
    check(&with("aud", json!("other")));
    check(&with("iss", json!("other")));
}

#[test]
fn tokens_say_who_calls_and_for_whom() {
    let (_dir, server) = with_tokens();
    let bearer = token(SECRET, &head(), &|_| {});
    check_token(&server, &bearer, 200, &Value::Null);
    assert_eq!(server.last_record()["principal"], "jwt:orchestrator");
    let denied = json!("PermissionDenied");
    for (name, value) in [
        ("tenants", json!(["other"])),
        ("sites", json!([])),
        ("scope", json!("tools:list")),
    ] {
        let narrow = token(SECRET, &head(), &|claims| claims[name] = value.clone());
        check_token(&server, &narrow, 403, &denied);
    }
    let draft = json!({"content_type": "story", "title": "a", "body": "b"});
    let answer = server.answer(
        "create_draft_content",
        &draft,
        &[("Authorization", &bearer)],
    );
    let needed = json!("the scope content:draft:write is required");
    assert_eq!((answer.status, &answer.json()["detail"]), (403, &needed));
    let text: String = server.records().iter().map(Value::to_string).collect();
    assert!(!text.contains(bearer.trim_start_matches("Bearer ")));
}

#[test]
fn drafts_are_seen_with_their_scope() {
    let (_dir, server) = with_tokens();
    let query = json!({"query": "古井修缮", "status": "draft"});
    let bearer = token(SECRET, &head(), &|c| {
        c["scope"] = json!("tools:call:content content:draft:read")
    });
    let answer = server
        .answer("search_content", &query, &[("Authorization", &bearer)])
        .json();
    assert_eq!(answer["output"]["items"][0]["id"], "well-restoration");
}

#[test]
fn new_keys_take_the_place_of_old_ones() {
    let (dir, server) = with_tokens();
    let other = b"the next secret of 32 bytes or more";
    let head = json!({"alg": "HS256", "kid": "two"});
    let status = || {
        server
            .answer(
                "get_npc_profile",
                &json!({"npc_id": "ancestor_yan"}),
                &[("Authorization", &token(other, &head, &|_| {}))],
            )
            .status
    };
    assert_eq!(status(), 401);
    // A key of another kind beside it does not keep the old ones in force.
    let mut set: Value = serde_json::from_str(&jwks("two", other)).unwrap();
    let strange = json!({"kty": "EC", "kid": "p384", "crv": "P-384", "x": "AA", "y": "AA"});
    set["keys"].as_array_mut().unwrap().push(strange);
    file(&dir, "jwks.json", &set.to_string());
    server.wait_for("keys_renewed");
    assert_eq!(
        server.wait_for("key_left_out")["message"],
        "key p384: expected Ed25519, P-256, RSA or a secret"
    );
    assert_eq!(status(), 200);
}

#[test]
fn an_internal_key_is_needed_once_there_is_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(&dir, "key", KEY);
    let server = Server::start(&["--key-file", &path]);
    let status =
        |headers: &[(&str, &str)]| server.answer("get_site_map", &json!({}), headers).status;
    assert_eq!(status(&[("X-Internal-API-Key", KEY)]), 200);
    assert_eq!(status(&[]), 401);
    assert_eq!(status(&[("X-Internal-API-Key", &KEY[1..])]), 401);
    assert_eq!(
        status(&[("X-Internal-API-Key", "your-internal-api-key")]),
        401
    );
    assert_eq!(
        status(&[("X-Internal-API-Key", KEY), ("X-Internal-API-Key", KEY)]),
        400
    );
    let detail = server
        .answer("get_site_map", &json!({}), &[("X-Internal-API-Key", "x")])
        .json()["detail"]
        .clone();
    assert_eq!(detail, "Invalid internal API key");
    let open = Server::start(&[]);
    let answer = open.answer(
        "get_site_map",
        &json!({}),
        &[("X-Internal-API-Key", "anything")],
    );
    assert_eq!(
        (answer.status, &open.last_record()["principal"]),
        (200, &json!("local"))
    );
}

#[test]
fn tools_of_this_machine_need_a_name_and_a_key() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(&dir, "key", KEY);
    let server = Server::start(&["--key-file", &path, "--tools", "command,read"]);
    let key = [("X-Internal-API-Key", KEY)];
    let run = |script: &str| {
        server
            .answer("command", &json!({"text": script}), &key)
            .json()
    };
    let answer = run("echo one; cd /; X=1");
    assert_eq!(
        (
            &answer["success"],
            &answer["output"]["output"],
            &answer["output"]["exit_code"]
        ),
        (&json!(true), &json!("one\n"), &json!(0)),
        "{answer}"
    );
    assert_eq!(run("echo [$X]")["output"]["output"], "[]\n");
    let list = server.post("/api/tools/list", &key, "{}").json();
    assert_eq!(list["total"], 8);
    let open = Server::start(&["--tools", "command"]);
    let answer = open.answer("command", &json!({"text": "echo"}), &[]);
    assert_eq!(
        (answer.status, &answer.json()["detail"]),
        (403, &json!("this tool needs an authenticated caller"))
    );
    assert_eq!(open.post("/api/tools/list", &[], "{}").json()["total"], 6);
}

#[test]
fn tools_of_an_assistant_are_served_by_name_and_with_a_key() {
    let home = Home::new();
    let dir = tempfile::tempdir().unwrap();
    let path = file(&dir, "key", KEY);
    let start = |arguments: &[&str]| {
        let dir = tempfile::tempdir().unwrap();
        let database = dir.path().join("site.db").display().to_string();
        let started = home.command(program(), &["serve", "--db", &database]);
        Server::run(started, dir, arguments)
    };
    let tools = "bash,write_file,read_file";
    let server = start(&["--key-file", &path, "--tools", tools]);
    let key = [("X-Internal-API-Key", KEY)];
    let call = |tool: &str, input: Value| server.answer(tool, &input, &key).json();
    let written = call(
        "write_file",
        json!({"path": "file_state_dir/n", "content": "a\n"}),
    );
    assert_eq!(written["output"]["total_bytes"], 2, "{written}");
    let read = call("read_file", json!({"path": "file_state_dir/n"}));
    assert_eq!(read["output"]["text"], "a\n", "{read}");
    let ran = call("bash", json!({"cmd": "cat file_state_dir/n; exit 3"}));
    let output = &ran["output"];
    assert_eq!(
        (&output["output"], &output["exit_code"]),
        (&json!("a\n"), &json!(3)),
        "{ran}"
    );
    assert_eq!(server.last_record()["tool_name"], "bash");
    let late = call("bash", json!({"cmd": "sleep 60", "timeout_seconds": 0.3}));
    assert_eq!(late["output"]["code"], "timeout", "{late}");
    let open = start(&["--tools", tools]);
    let answer = open.answer("bash", &json!({"cmd": "true"}), &[]);
    assert_eq!(answer.status, 403);
    assert_eq!(open.post("/api/tools/list", &[], "{}").json()["total"], 6);
}

#[test]
fn a_duty_that_is_sent_twice_with_a_key_is_kept_once() {
    let home = Home::new();
    let config = home.path().join("karyi/config");
    std::fs::create_dir_all(&config).unwrap();
    let settings = "[tools.todo_update]\nwithout_model = true\n";
    std::fs::write(config.join("config.toml"), settings).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = file(&dir, "key", KEY);
    let database = dir.path().join("site.db").display().to_string();
    let started = home.command(program(), &["serve", "--db", &database]);
    let arguments = ["--key-file", &path, "--tools", "todo_update"];
    let server = Server::run(started, dir, &arguments);
    let keys = [("X-Internal-API-Key", KEY), ("Idempotency-Key", "duty-1")];
    let duty = json!({"action": "add", "content": "Pay the rent", "people": []});
    let first = server.answer("todo_update", &duty, &keys).json();
    let counts = &first["output"]["updated_counts"];
    assert_eq!(counts["open_count"], 1, "{first}");
    let again = server.answer("todo_update", &duty, &keys);
    assert_eq!(again.header("idempotency-replayed"), Some("true".into()));
    let key = [("X-Internal-API-Key", KEY)];
    let done = json!({"action": "complete", "content": "rent"});
    let done = server.answer("todo_update", &done, &key).json();
    let counts = json!({"open_count": 0, "done_count": 1});
    assert_eq!(done["output"]["updated_counts"], counts, "{done}");
    assert_eq!(server.last_record()["tool_name"], "todo_update");
    let wrong = json!({"action": "add", "content": "a", "people": [1]});
    let wrong = server.answer("todo_update", &wrong, &key);
    let told = wrong.json().to_string();
    assert!(
        told.contains("people must be an array of strings"),
        "{told}"
    );
}

#[test]
fn pages_are_fetched_for_callers_with_a_key() {
    let page = ScriptedServer::once(vec![scripted(
        "200 OK",
        "content-type: text/plain\r\n",
        "page",
    )]);
    let home = Home::new();
    let config = home.path().join("karyi/config");
    std::fs::create_dir_all(&config).unwrap();
    let guard = format!("[guard]\nallow = [\"{}\"]\n", page.url(""));
    std::fs::write(config.join("config.toml"), guard).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = file(&dir, "key", KEY);
    let start = |arguments: &[&str]| {
        let dir = tempfile::tempdir().unwrap();
        let database = dir.path().join("site.db").display().to_string();
        let started = home.command(program(), &["serve", "--db", &database]);
        Server::run(started, dir, arguments)
    };
    let server = start(&["--key-file", &path, "--tools", "url_fetch"]);
    let key = [("X-Internal-API-Key", KEY)];
    let call = |input: Value| server.answer("url_fetch", &input, &key).json();
    let found = call(json!({"url": page.url("/a"), "headers": {"Accept": "text/*"}}));
    assert_eq!(found["output"]["body"], "page", "{found}");
    assert_eq!(page.requests()[0].header("accept"), Some("text/*"));
    assert_eq!(server.last_record()["tool_name"], "url_fetch");
    // A body of null is one.
    let found = call(json!({"url": page.url("/a"), "method": "DELETE", "body": null}));
    let message = found["error"].as_str().unwrap_or_default();
    assert!(
        message.starts_with("request body is only supported"),
        "{found}"
    );
    let found = call(json!({"url": "http://127.1/"}));
    assert_eq!(found["error_code"], "URL_NOT_ALLOWED", "{found}");
    let open = start(&["--tools", "url_fetch"]);
    assert_eq!(
        open.answer("url_fetch", &json!({"url": "https://h/"}), &[])
            .status,
        403
    );
    assert_eq!(page.requests().len(), 1);
}

#[test]
fn tools_that_nobody_can_call_are_told_of() {
    let server = Server::start(&["--tools", "command,read"]);
    let told = server.wait_for("tools_without_keys");
    let expected =
        "no caller can use command, read: without --key-file or --jwks no caller is authenticated";
    assert_eq!(told["message"], expected);
    assert_eq!(
        server
            .answer("command", &json!({"text": "true"}), &[])
            .status,
        403
    );
}

#[test]
fn changes_by_callers_are_recorded() {
    let home = Home::new();
    let dir = tempfile::tempdir().unwrap();
    let path = file(&dir, "key", KEY);
    let database = dir.path().join("site.db").display().to_string();
    let started = home.command(program(), &["serve", "--db", &database]);
    let server = Server::run(started, dir, &["--key-file", &path, "--tools", "edit"]);
    let made = |name: &str| {
        let src = home.work().join(name);
        json!({"src": src, "edits": [{"find": "", "replace": "new\n"}]})
    };
    let input = json!({"files": [made("one"), made("two")]});
    let answer = server
        .answer("edit", &input, &[("X-Internal-API-Key", KEY)])
        .json();
    assert_eq!(answer["success"], true, "{answer}");
    assert!(answer["output"].get("undo").is_none(), "{answer}");
    drop(server);
    home.karyi(&["undo"], "").exit(0);
    assert!(!home.work().join("one").exists() && !home.work().join("two").exists());
}

#[test]
fn whole_outputs_of_a_call_go_with_its_shell() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(&dir, "key", KEY);
    let server = Server::start(&["--key-file", &path, "--tools", "command"]);
    for _ in 0..2 {
        let input = json!({"text": "seq 100000"});
        let answer = server
            .answer("command", &input, &[("X-Internal-API-Key", KEY)])
            .json();
        let output = answer["output"].as_object().unwrap();
        assert!(output["omitted_bytes"].as_u64() > Some(0), "{answer}");
        assert!(
            !output.keys().any(|key| key.starts_with("output_file")),
            "{answer}"
        );
    }
    let left = std::fs::read_dir(server.dir.path().join("output"));
    assert_eq!(left.map_or(0, Iterator::count), 0);
}

#[test]
fn a_command_that_runs_at_the_deadline_of_its_call_is_no_success() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(&dir, "key", KEY);
    let server = Server::start(&["--key-file", &path, "--tools", "command"]);
    let headers = [
        ("X-Internal-API-Key", KEY),
        ("X-Request-Timeout-Ms", "1000"),
    ];
    for input in [
        json!({"text": "echo begun; sleep 100"}),
        // Nobody waits for longer than the call does.
        json!({"text": "echo begun; sleep 100", "timeout": 50}),
    ] {
        let answer = server.answer("command", &input, &headers).json();
        let told = ["success", "error_type", "error_code"].map(|name| answer[name].clone());
        assert_eq!(
            told,
            [json!(false), json!("Timeout"), json!("TIMEOUT")],
            "{answer}"
        );
        assert_eq!(answer["output"]["output"], "begun\n", "{answer}");
        assert_eq!(server.last_record()["error_type"], "Timeout");
    }
}

#[test]
fn the_key_of_a_command_whose_time_was_up_tells_what_happened() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(&dir, "key", KEY);
    let server = Server::start(&["--key-file", &path, "--tools", "command"]);
    let headers = [
        ("X-Internal-API-Key", KEY),
        ("X-Request-Timeout-Ms", "1000"),
        ("Idempotency-Key", "k"),
    ];
    let input = json!({"text": "echo begun; sleep 100"});
    let first = server.answer("command", &input, &headers).json();
    assert_eq!(first["error_type"], "Timeout", "{first}");
    let again = server.answer("command", &input, &headers);
    let (problem, call) = (again.json(), first["audit"]["call_id"].as_str().unwrap());
    assert_eq!(
        (again.status, &problem["error_code"]),
        (409, &json!("idempotency_effect_unknown"))
    );
    let detail = problem["detail"].as_str().unwrap();
    let error = first["error"].as_str().unwrap();
    assert!(detail.contains(call) && detail.contains(error), "{detail}");
    assert_eq!(again.header("retry-after"), None);
}

#[test]
fn other_hosts_and_origins_are_refused() {
    let server = Server::start(&["--host", "tools.example", "--origin", "https://app.example"]);
    let own = format!("http://localhost:{}", server.port);
    let check = |headers: &[(&str, &str)], status: u16| {
        let answer = server.answer("get_site_map", &json!({}), headers);
        assert_eq!(answer.status, status, "{headers:?} {answer:?}");
        assert!(!answer.head.to_lowercase().contains("access-control"));
    };
    check(&[("Host", "127.0.0.1:9")], 200);
    check(&[("Host", "[::1]")], 200);
    check(&[("Host", "TOOLS.example:443")], 200);
    check(&[("Host", "evil.example")], 403);
    check(&[("Host", "localhost.evil.example")], 403);
    check(&[("Host", "-")], 400);
    check(&[("Origin", &own)], 200);
    check(&[("Origin", &own.replace("http:", "https:"))], 403);
    check(&[("Origin", "https://app.example")], 200);
    check(&[("Origin", "http://evil.example")], 403);
    check(&[("Origin", "http://localhost:1")], 403);
    check(&[("Origin", "null")], 403);
    let page =
        server.raw(b"GET /metrics HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n");
    assert_eq!(page.status, 403);
    let twice = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n\r\n";
    assert_eq!(server.raw(twice).status, 400);
}

#[test]
fn an_address_that_others_reach_needs_encryption_and_a_key() {
    let dir = tempfile::tempdir().unwrap();
    let key = file(&dir, "key", KEY);
    let default = file(&dir, "default", "your-internal-api-key");
    let check = |arguments: &[&str], expected: &str| {
        let output = command(dir.path())
            .args(["--port", "0", "--data"])
            .arg(village())
            .args(arguments)
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.contains(expected), "{told}");
    };
    check(
        &["--bind", "0.0.0.0"],
        "needs --tls-cert and --tls-key, or --behind-proxy",
    );
    check(
        &["--bind", "0.0.0.0", "--behind-proxy"],
        "needs --key-file or --jwks",
    );
    check(&["--behind-proxy"], "needs --key-file or --jwks");
    check(
        &["--bind", "0.0.0.0", "--key-file", &key],
        "needs --tls-cert and --tls-key",
    );
    check(
        &["--behind-proxy", "--key-file", &default],
        "expected at least 16 random characters",
    );
    check(
        &["--tools", "get_value"],
        "these tools cannot be offered over HTTP: get_value",
    );
    check(&["--tool-rate", "x"], "expected RATE, RATE:BURST or off");
}

#[test]
fn behind_a_proxy_the_pages_need_the_key_too() {
    let dir = tempfile::tempdir().unwrap();
    let key = file(&dir, "key", KEY);
    let server = Server::start(&["--behind-proxy", "--key-file", &key]);
    assert_eq!(server.get("/metrics").status, 401);
    assert_eq!(server.get("/openapi.json").status, 401);
    assert_eq!(server.get("/healthz").status, 200);
    let request = format!(
        "GET /metrics HTTP/1.1\r\nHost: localhost\r\nX-Internal-API-Key: {KEY}\r\nConnection: close\r\n\r\n"
    );
    assert_eq!(server.raw(request.as_bytes()).status, 200);
}

#[test]
fn too_many_calls_wait_and_others_do_not() {
    let two = tempfile::tempdir().unwrap();
    for tenant in ["a", "b"] {
        std::fs::create_dir(two.path().join(tenant)).unwrap();
        let site = format!("tenant_id: {tenant}\nsite_id: s\nname: S\n");
        std::fs::write(two.path().join(tenant).join("site.yaml"), site).unwrap();
    }
    // One in a minute and more would take its time; a rate of one in a second is refilled in one.
    let server = Server::start(&["--tool-rate", "1:5"]);
    let call = |headers: &[(&str, &str)]| server.answer("get_site_map", &json!({}), headers);
    let refused = (0..50)
        .map(|_| call(&[]))
        .find(|answer| answer.status == 429)
        .expect("never refused");
    assert_eq!(
        refused.header("content-type").as_deref(),
        Some("application/problem+json")
    );
    let seconds: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert_eq!((seconds, &refused.json()["retry_after"]), (1, &json!(1)));
    let record = server
        .records()
        .into_iter()
        .find(|record| record["http_status"] == 429)
        .unwrap();
    assert_eq!(record["error_type"], "RateLimited");
    assert_eq!(call(&[("X-Tenant-ID", "other")]).status, 200);
    // Tools that there are not have a bucket, too.
    let unknown = |n: u32| server.answer(&format!("nope-{n}"), &json!({}), &[]).status;
    assert!((0..50).any(|n| unknown(n) == 429));
    std::thread::sleep(std::time::Duration::from_secs(seconds));
    assert_eq!(call(&[]).status, 200);
}
