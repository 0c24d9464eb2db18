//! What `/openapi.json` says is held against the server by schemathesis: calls that fit, calls that
//! do not, other methods, missing headers and missing proof. `KARYI_FULL=1` makes 200 examples of
//! every operation.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::Server;
use crate::harness::skip;
use crate::toolsxml::choices::{is_full, seed};

const KEY: &str = "0123456789abcdef0123456789abcdef";

/// Every path of the document.
const OPERATIONS: usize = 6;

/// Runs schemathesis over a document; no check may fail.
fn check(server: &Server, document: &Value, arguments: &[&str]) {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/python/bin/schemathesis");
    if !program.exists() {
        skip("no schemathesis, which tests/run puts into target/python");
        return;
    }
    let examples = if is_full() { 200 } else { 5 };
    let file = server.dir.path().join("openapi.json");
    std::fs::write(&file, document.to_string()).unwrap();
    let output = Command::new(program)
        .current_dir(server.dir.path())
        .arg("run")
        .arg(&file)
        .args(["--url", &format!("http://127.0.0.1:{}", server.port)])
        .args(["--checks", "all", "--continue-on-failure"])
        .args(["--max-examples", &examples.to_string()])
        .args(["--seed", &seed().to_string()])
        .args(["--generation-database", "none", "--no-color"])
        .args(arguments)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{wrong}");
    let tested = format!("Tested: {OPERATIONS}");
    assert!(said.contains(&tested), "expected {tested}: {said}");
    let figures = said.lines().find(|line| line.contains(" generated, "));
    println!(
        "schemathesis, {examples} examples: {}",
        figures.unwrap().trim()
    );
}

fn call_schema(document: &mut Value) -> &mut Value {
    &mut document["components"]["schemas"]["CallRequest"]
}

#[test]
fn the_description_is_true() {
    let server = Server::start(&[]);
    let document = server.get("/openapi.json").json();
    assert_eq!(document["paths"].as_object().unwrap().len(), OPERATIONS);
    check(&server, &document, &[]);
}

#[test]
fn the_description_of_valid_calls_is_true() {
    let keys = tempfile::tempdir().unwrap();
    let file = keys.path().join("key");
    std::fs::write(&file, KEY).unwrap();
    let server = Server::start(&["--key-file", file.to_str().unwrap()]);
    let mut document = server.get("/openapi.json").json();
    let call = &document["paths"]["/api/tools/call"]["post"];
    assert_eq!(call["security"], json!([{"token": []}, {"key": []}]));
    // Only calls of tools there are, so that their outputs are held against their schemas.
    let branches = call_schema(&mut document)["anyOf"].as_array_mut().unwrap();
    let other = branches.pop().unwrap();
    assert_eq!(
        other["properties"],
        json!({"tool_name": {"type": "string"}})
    );
    // A short key comes again and again with another input, and that is refused.
    let call = &mut document["paths"]["/api/tools/call"]["post"];
    let parameters = call["parameters"].as_array_mut().unwrap();
    parameters.retain(|parameter| parameter["name"] != "Idempotency-Key");
    let key = format!("X-Internal-API-Key: {KEY}");
    let arguments = [
        ["--mode", "positive"],
        ["--generation-with-security-parameters", "false"],
        ["--header", &key],
        ["--header", "X-Tenant-ID: yantian"],
        ["--header", "X-Site-ID: yantian-main"],
    ];
    check(&server, &document, arguments.as_flattened());
    let records = server.records();
    let good = records
        .iter()
        .filter(|record| record["status"] == "success");
    assert!(records.is_empty() || good.count() > 0, "no call succeeded");
}
