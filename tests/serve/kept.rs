//! Secrets that are kept or changed while the server runs: the very next request is masked by them.

use std::process::Command;

use serde_json::{Value, json};

use super::auth::{KEY, file};
use super::{Answer, Server};
use crate::harness::program;
use crate::vault::home::Home;

/// A home with a secret, and a server that offers it to those who call commands.
struct Place {
    home: Home,
    server: Server,
    _keys: tempfile::TempDir,
}

impl Place {
    fn start() -> Self {
        let home = Home::new();
        home.set("TOKEN", "tok-5f2c9d81aa", &[]);
        let (keys, dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let key = file(&keys, "key", KEY);
        let database = dir.path().join("site.db").display().to_string();
        let started: Command = home.command(program(), &["serve", "--db", &database]);
        let arguments = [
            "--key-file",
            &key,
            "--tools",
            "command",
            "--vars",
            "TOKEN",
            "--ledger-input",
            "--tenant",
            "yantian",
            "--site",
            "yantian-main",
        ];
        let server = Server::run(started, dir, &arguments);
        Self {
            home,
            server,
            _keys: keys,
        }
    }

    fn post(&self, path: &str, headers: &[(&str, &str)], body: &Value) -> Answer {
        let headers = [&[("X-Internal-API-Key", KEY)], headers].concat();
        self.server.post(path, &headers, &body.to_string())
    }

    fn call(&self, tool: &str, input: Value, headers: &[(&str, &str)]) -> Answer {
        let body = json!({"tool_name": tool, "input": input});
        self.post("/api/tools/call", headers, &body)
    }

    fn by_mcp(&self, tool: &str) -> Answer {
        let params = json!({"name": tool, "arguments": {}, "_meta": crate::mcp::modern(json!({}))});
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let headers = [
            ("Accept", "application/json, text/event-stream"),
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", "tools/call"),
            ("Mcp-Name", tool),
        ];
        self.post("/mcp", &headers, &message)
    }

    /// Ends the server, and asserts that nothing that it wrote holds a part of one of these values.
    fn assert_nowhere(&self, values: &[String]) {
        self.server.terminate();
        let log = self.server.log();
        let records = format!("{:?}", self.server.records());
        for value in values {
            let part = &value[..12];
            assert!(!log.contains(part), "{part}: {log}");
            assert!(!records.contains(part), "{part}: {records}");
            for entry in std::fs::read_dir(self.server.dir.path()).unwrap() {
                let path = entry.unwrap().path();
                let bytes = std::fs::read(&path).unwrap_or_default();
                let found = memchr::memmem::find(&bytes, part.as_bytes());
                assert!(found.is_none(), "{part}: {}", path.display());
            }
        }
    }
}

/// One request with a value in it.
type Ask = fn(&Place, &str) -> Answer;

/// Requests that show what callers write, and their status.
const REQUESTS: [(Ask, u16); 9] = [
    (|place, value| place.call(value, json!({}), &[]), 200),
    (|place, value| place.by_mcp(value), 200),
    (
        |place, value| place.call("search_content", json!({"query": value}), &[]),
        200,
    ),
    (
        |place, value| place.call("search_content", json!({value: 1}), &[]),
        200,
    ),
    (
        |place, value| place.post("/tools/list", &[], &json!({value: 1})),
        422,
    ),
    (
        |place, value| place.post("/nowhere", &[("X-Session-ID", value)], &json!({})),
        404,
    ),
    (
        |place, value| place.call("get_site_map", json!({}), &[("Idempotency-Key", value)]),
        422,
    ),
    (
        |place, value| {
            place.call(
                "command",
                json!({"text": "echo hi"}),
                &[("X-User-ID", value)],
            )
        },
        422,
    ),
    (
        |place, value| {
            place.call(
                "command",
                json!({"text": format!("echo \"$KARYI{{TOKEN}}\" {value}")}),
                &[],
            )
        },
        200,
    ),
];

#[test]
fn what_is_kept_meanwhile_is_masked_in_the_next_request() {
    let place = Place::start();
    let mut values = Vec::new();
    for (number, (ask, status)) in REQUESTS.into_iter().enumerate() {
        let value = format!("wal{number}-OPALINE-777-uniq");
        // The last one changes the value that callers may use.
        let name = match number {
            8 => "TOKEN".to_owned(),
            _ => format!("LATER{number}"),
        };
        place.home.set(&name, &value, &[]);
        let answer = ask(&place, &value);
        assert_eq!(answer.status, status, "{number}: {answer:?}");
        assert!(
            !format!("{answer:?}").contains(&value[..12]),
            "{number}: {answer:?}"
        );
        values.push(value);
    }
    let record = place.server.last_record();
    let masked = "echo \"$KARYI{TOKEN}\" $KARYI{TOKEN}";
    assert_eq!(record["input"]["text"], masked, "{record}");
    place.assert_nowhere(&values);
}

#[test]
fn what_is_kept_meanwhile_is_masked_for_all_who_ask_at_once() {
    let place = Place::start();
    let value = "wal-OPALINE-778-uniq".to_owned();
    place.home.set("LATER", &value, &[]);
    let answers: Vec<Answer> = std::thread::scope(|scope| {
        let asking: Vec<_> = (0..16)
            .map(|_| scope.spawn(|| place.call(&value, json!({}), &[])))
            .collect();
        asking.into_iter().map(|ask| ask.join().unwrap()).collect()
    });
    for answer in answers {
        assert_eq!(
            answer.json()["error"],
            "Unknown tool: $KARYI{LATER}",
            "{answer:?}"
        );
    }
    place.assert_nowhere(&[value]);
}

#[test]
fn what_becomes_known_during_a_call_is_masked_in_its_record() {
    let place = Place::start();
    let value = "wal-OPALINE-779-uniq".to_owned();
    let (come, go) = (place.home.path().join("come"), place.home.path().join("go"));
    for pipe in [&come, &go] {
        nix::unistd::mkfifo(pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    }
    let text = format!(
        "echo >'{}'; cat '{}'; echo {value}",
        come.display(),
        go.display()
    );
    std::thread::scope(|scope| {
        let call = scope.spawn(|| place.call("command", json!({"text": text}), &[]));
        // Once it runs a value is kept, and another request has the server look at it.
        std::fs::read(&come).unwrap();
        place.home.set("LATER", &value, &[]);
        let other = place.call("get_site_map", json!({}), &[]);
        assert_eq!(other.status, 200, "{other:?}");
        std::fs::write(&go, "").unwrap();
        let answer = call.join().unwrap();
        assert_eq!(
            answer.json()["output"]["output"],
            "$KARYI{LATER}\n",
            "{answer:?}"
        );
    });
    let record = place.server.last_record();
    let kept = record["input"]["text"].as_str().unwrap();
    assert!(kept.ends_with("echo $KARYI{LATER}"), "{record}");
}

#[test]
fn a_store_that_cannot_be_read_is_told_and_stops_nothing() {
    let place = Place::start();
    let file = place.home.index().with_file_name("vault.age");
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&file, "{").unwrap();
    // Whoever sees that the index has changed looks at the store.
    let index = std::fs::read(place.home.index()).unwrap();
    let mut index: Value = serde_json::from_slice(&index).unwrap();
    index["generation"] = json!(index["generation"].as_u64().unwrap() + 2);
    std::fs::write(place.home.index(), index.to_string()).unwrap();
    for _ in 0..3 {
        let answer = place.call("get_site_map", json!({}), &[]);
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    let told = place.server.wait_for("redaction_incomplete");
    let message = told["message"].as_str().unwrap();
    let expected = "values in the store are not known and not masked: bad_vault: ";
    assert!(message.starts_with(expected), "{message}");
    // What was known still is.
    let value = "tok-5f2c9d81aa";
    let answer = place.call(value, json!({}), &[]).json();
    assert_eq!(answer["error"], "Unknown tool: $KARYI{TOKEN}");

    std::fs::write(&file, whole).unwrap();
    let value = "wal-OPALINE-780-uniq";
    place.home.set("LATER", value, &[]);
    let answer = place.call(value, json!({}), &[]).json();
    assert_eq!(answer["error"], "Unknown tool: $KARYI{LATER}");
    place.server.terminate();
    let rest = place.server.log();
    assert!(!rest.contains("redaction_incomplete"), "{rest}");
}
