//! karyi as others see it: the official MCP clients of two languages, and the inspector.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::harness::{program, skip};
use crate::serve::Server;

/// Where `tests/run` puts clients and the suite.
pub(crate) fn modules() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("target/mcp")
}

/// A Node that is new enough for them: the one beside them, or that of the system.
pub(crate) fn node() -> Option<Command> {
    let own = modules().join("node_modules/.bin/node");
    if !modules().join("installed").exists() {
        skip("no MCP clients, which tests/run puts into target/mcp");
        return None;
    }
    Some(match own.exists() {
        true => Command::new(own),
        false => Command::new("node"),
    })
}

fn python() -> Option<Command> {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/python/bin");
    if !place.join("mcp").exists() {
        skip("no MCP client in Python, which tests/run puts into target/python");
        return None;
    }
    Some(Command::new(place.join("python")))
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/mcp_clients")
        .join(name)
}

fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{}\n{}{}",
        output.status,
        text(&output.stdout),
        text(&output.stderr)
    );
    text(&output.stdout)
}

/// A client and the words of the protocol it speaks.
#[derive(Debug, Clone, Copy)]
enum Client {
    TypeScript,
    /// The handshake, or what comes after it.
    Python(&'static str),
}

impl Client {
    /// Does the steps of a request; nothing without the client.
    fn run(self, request: &Value) -> Option<Value> {
        let mut request = request.clone();
        let mut command = match self {
            Self::TypeScript => {
                let mut node = node()?;
                node.arg(script("client.mjs"));
                request["modules"] = json!(modules());
                node
            }
            Self::Python(mode) => {
                let mut python = python()?;
                python.arg(script("client.py"));
                request["mode"] = json!(mode);
                python
            }
        };
        let output = command.arg(request.to_string()).output().unwrap();
        Some(serde_json::from_str(&said(&output)).unwrap())
    }
}

const CLIENTS: [Client; 3] = [
    Client::TypeScript,
    Client::Python("legacy"),
    Client::Python("2026-07-28"),
];

/// What a user types who is asked for a value.
const VALUE: &str = "s3cr3t-of-the-client-tests-7c04";

/// `karyi mcp` in a directory of its own.
fn stdio(dir: &Path) -> Value {
    json!({
        "command": [program(), "mcp", "--no-rc", "--vault", "env"],
        "value": VALUE,
        "cwd": dir,
        "env": {
            "PATH": std::env::var("PATH").unwrap(),
            "HOME": dir,
            "TMPDIR": dir,
            "XDG_RUNTIME_DIR": dir,
            "SHELL": "/bin/bash",
        },
    })
}

/// The data of a result that has a text, too.
fn structured(outcome: &Value) -> &Value {
    assert!(
        outcome["text"]
            .as_str()
            .is_some_and(|text| !text.is_empty()),
        "{outcome}"
    );
    assert_eq!(outcome["error"], false, "{outcome}");
    &outcome["structured"]
}

#[test]
fn clients_call_the_tools_over_stdio() {
    for client in CLIENTS {
        let dir = tempfile::tempdir().unwrap();
        let mut request = stdio(dir.path());
        request["steps"] = json!([
            {"list": true},
            {"call": "command", "arguments": {"text": "cd /; X=kept; echo hello"}},
            {"call": "command", "arguments": {"text": "echo $PWD $X; exit_with() { return $1; }; exit_with 3"}},
            {"call": "read", "arguments": {"files": [{"src": "nowhere"}]}},
            {"call": "read", "arguments": {"nothing": 1}},
            {"call": "no_such_tool", "arguments": {}},
        ]);
        let Some(found) = client.run(&request) else {
            continue;
        };
        let outcomes = found["outcomes"].as_array().unwrap();
        check_list(client, &outcomes[0]);
        assert_eq!(structured(&outcomes[1])["output"], "hello\n", "{client:?}");
        let second = structured(&outcomes[2]);
        assert_eq!(
            [&second["output"], &second["exit_code"]],
            [&json!("/ kept\n"), &json!(3)],
            "{client:?}"
        );
        for failed in &outcomes[3..5] {
            assert_eq!(failed["error"], true, "{client:?} {failed}");
            let code = failed["structured"]["code"].as_str().unwrap();
            let text = failed["text"].as_str().unwrap();
            assert!(text.contains(code), "{client:?} {failed}");
        }
        assert_eq!(outcomes[5]["code"], -32602, "{client:?}");
    }
}

fn check_list(client: Client, tools: &Value) {
    let tools = tools.as_array().unwrap();
    let names: Vec<&Value> = tools.iter().map(|tool| &tool["name"]).collect();
    let all = ["command", "edit", "read", "get_value", "input", "ctrl"];
    let missing: Vec<&str> = all
        .into_iter()
        .filter(|name| !names.contains(&&json!(name)))
        .collect();
    assert_eq!(missing, Vec::<&str>::new(), "{client:?}");
    for tool in tools {
        let parts = json!([
            "annotations",
            "description",
            "inputSchema",
            "name",
            "outputSchema",
            "title"
        ]);
        assert_eq!(tool["parts"], parts, "{client:?} {tool}");
        assert!(
            tool["hints"]["readOnlyHint"].is_boolean(),
            "{client:?} {tool}"
        );
    }
}

#[test]
fn clients_see_progress_and_cancel_over_stdio() {
    for client in CLIENTS {
        let dir = tempfile::tempdir().unwrap();
        let mut request = stdio(dir.path());
        let long = "echo begun; sleep 600; touch never";
        request["steps"] = json!([
            {"call": "command", "arguments": {"text": "for i in 1 2 3; do echo $i; sleep 0.5; done"}, "progress": true},
            {"call": "command", "arguments": {"text": long}, "cancel": true},
            {"call": "command", "arguments": {"text": "pgrep -f 'sleep [6]00' -s 0 | wc -l; echo free"}},
        ]);
        let Some(found) = client.run(&request) else {
            continue;
        };
        let outcomes = found["outcomes"].as_array().unwrap();
        assert_eq!(outcomes[0]["progress"], true, "{client:?} {found}");
        assert_eq!(structured(&outcomes[0])["output"], "1\n2\n3\n");
        assert_eq!(outcomes[1], json!({"cancelled": true}), "{client:?}");
        assert_eq!(
            structured(&outcomes[2])["output"],
            "0\nfree\n",
            "{client:?}"
        );
    }
}

#[test]
fn clients_ask_the_user_for_a_value_on_a_page() {
    for client in CLIENTS {
        let dir = tempfile::tempdir().unwrap();
        let mut request = stdio(dir.path());
        request["steps"] = json!([
            {"list": true},
            {"call": "get_value", "arguments": {"key": "TOKEN", "reason": "to test"}},
            {"call": "command", "arguments": {"text": "echo $KARYI{TOKEN} | tee value"}},
        ]);
        let Some(found) = client.run(&request) else {
            continue;
        };
        let outcomes = found["outcomes"].as_array().unwrap();
        let asked = json!({"mode": "url", "host": "127.0.0.1", "status": 200});
        assert_eq!(outcomes[1]["asked"], asked, "{client:?} {found}");
        assert_eq!(structured(&outcomes[1])["status"], "provided", "{client:?}");
        assert_eq!(structured(&outcomes[2])["status"], "ok", "{client:?}");
        assert!(!found.to_string().contains(VALUE), "{client:?} {found}");
        let written = std::fs::read_to_string(dir.path().join("value")).unwrap();
        assert_eq!(written, format!("{VALUE}\n"), "{client:?}");
    }
}

#[test]
fn results_fit_the_schemas_that_are_listed() {
    // Both clients hold results against the listed schemas and refuse what does not fit.
    for client in CLIENTS {
        let dir = tempfile::tempdir().unwrap();
        let mut request = stdio(dir.path());
        request["steps"] = json!([
            {"list": true},
            {"call": "edit", "arguments": {"files": [{"src": "a.txt", "edits": [{"find": "", "replace": "one\ntwo\n"}]}]}},
            {"call": "edit", "arguments": {"files": [{"src": "a.txt", "edits": [{"find": "two", "replace": "three"}]}]}},
            {"call": "read", "arguments": {"files": [{"src": "a.txt"}, {"src": "."}]}},
            {"call": "read", "arguments": {"searches": [{"pattern": "three"}]}},
            {"call": "command", "arguments": {"text": "read answer; echo got $answer", "timeout": 5}},
            {"call": "input", "arguments": {"text": "yes"}},
            {"call": "command", "arguments": {"text": "sleep 600", "timeout": 1}},
            {"call": "ctrl", "arguments": {"key": "c"}},
            {"call": "command", "arguments": {"text": "exit 7"}},
            {"call": "command", "arguments": {"text": "seq 200000"}},
        ]);
        let Some(found) = client.run(&request) else {
            continue;
        };
        let outcomes = found["outcomes"].as_array().unwrap();
        for outcome in &outcomes[1..] {
            structured(outcome);
        }
    }
}

const KEY: &str = "a-key-of-the-client-tests-0123456789";

/// `/mcp` of a server with the tools of the village and the shell.
fn over_http(server: &Server) -> Value {
    json!({
        "url": format!("http://127.0.0.1:{}/mcp", server.port),
        "headers": {
            "X-Internal-API-Key": KEY,
            "X-Tenant-ID": "yantian",
            "X-Site-ID": "yantian-main",
        },
    })
}

fn serve() -> Server {
    let dir = tempfile::tempdir().unwrap();
    let key = dir.path().join("key");
    std::fs::write(&key, KEY).unwrap();
    let key = key.to_str().unwrap().to_owned();
    Server::start_in(dir, &["--key-file", &key, "--tools", "command"])
}

#[test]
fn clients_call_the_tools_over_http() {
    let server = serve();
    for client in CLIENTS {
        let mut request = over_http(&server);
        request["steps"] = json!([
            {"list": true},
            {"call": "search_content", "arguments": {"query": "严氏家训", "limit": 1}},
            {"call": "get_npc_profile", "arguments": {"npc_id": "nobody"}},
            {"call": "search_content", "arguments": {"query": ""}},
            {"call": "no_such_tool", "arguments": {}},
            {"call": "get_site_map", "arguments": {"include_routes": true}},
            {"call": "get_prompt_active", "arguments": {"npc_id": "ancestor_yan"}},
            {"call": "get_npc_profile", "arguments": {"npc_id": "ancestor_yan"}},
            {"call": "log_user_event", "arguments": {"event_type": "visit"}},
            {"call": "create_draft_content", "arguments": {"content_type": "story", "title": "t", "body": "b"}},
        ]);
        let Some(found) = client.run(&request) else {
            continue;
        };
        let outcomes = found["outcomes"].as_array().unwrap();
        let listed = outcomes[0].as_array().unwrap();
        assert_eq!(listed.len(), 7, "{client:?} {listed:?}");
        let items = structured(&outcomes[1])["items"].as_array().unwrap();
        assert_eq!(items.len(), 1, "{client:?} {found}");
        for (outcome, code) in [(2, "NOT_FOUND"), (3, "INVALID_INPUT")] {
            let outcome = &outcomes[outcome];
            assert_eq!(outcome["error"], true, "{client:?} {outcome}");
            assert_eq!(outcome["structured"]["code"], code, "{client:?} {outcome}");
        }
        assert_eq!(outcomes[4]["code"], -32602, "{client:?}");
        for outcome in &outcomes[5..] {
            structured(outcome);
        }
    }
}

#[test]
fn clients_see_progress_and_cancel_over_http() {
    let server = serve();
    for client in CLIENTS {
        let mut request = over_http(&server);
        request["steps"] = json!([
            {"list": true},
            {"call": "command", "arguments": {"text": "for i in 1 2 3; do echo $i; sleep 0.5; done"}, "progress": true},
            {"call": "command", "arguments": {"text": "echo begun; sleep 600"}, "cancel": true},
            {"call": "command", "arguments": {"text": "echo free"}},
        ]);
        let Some(found) = client.run(&request) else {
            continue;
        };
        let outcomes = found["outcomes"].as_array().unwrap();
        assert_eq!(outcomes[1]["progress"], true, "{client:?} {found}");
        assert_eq!(
            structured(&outcomes[1])["output"],
            "1\n2\n3\n",
            "{client:?}"
        );
        assert_eq!(outcomes[2], json!({"cancelled": true}), "{client:?}");
        assert_eq!(structured(&outcomes[3])["output"], "free\n", "{client:?}");
    }
}

#[test]
fn the_inspector_finds_nothing_wrong_over_stdio() {
    for era in ["legacy", "modern"] {
        let dir = tempfile::tempdir().unwrap();
        let Some(mut inspector) = inspector(dir.path(), era) else {
            return;
        };
        inspector.arg(program()).arg("mcp");
        inspector.args(["--method", "tools/list", "--strict"]);
        let listed: Value = serde_json::from_str(&said(&inspector.output().unwrap())).unwrap();
        assert!(
            listed.to_string().contains("\"name\":\"command\""),
            "{era} {listed}"
        );
    }
}

#[test]
fn the_inspector_finds_nothing_wrong_over_http() {
    let server = serve();
    for era in ["legacy", "modern"] {
        let dir = tempfile::tempdir().unwrap();
        let Some(mut inspector) = inspector(dir.path(), era) else {
            return;
        };
        let request = over_http(&server);
        inspector.args(["--server-url", request["url"].as_str().unwrap()]);
        for (name, value) in request["headers"].as_object().unwrap() {
            let header = format!("{name}: {}", value.as_str().unwrap());
            inspector.args(["--header", &header]);
        }
        inspector.args(["--method", "tools/list", "--strict"]);
        let listed: Value = serde_json::from_str(&said(&inspector.output().unwrap())).unwrap();
        assert!(
            listed.to_string().contains("\"name\":\"search_content\""),
            "{era} {listed}"
        );
    }
}

/// The inspector without a window, with a home of its own.
fn inspector(home: &Path, era: &str) -> Option<Command> {
    let launcher = "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js";
    let mut inspector = node()?;
    inspector
        .arg(modules().join(launcher))
        .args(["--cli", "--protocol-era", era, "--format", "json"])
        .env("HOME", home)
        .current_dir(home);
    Some(inspector)
}
