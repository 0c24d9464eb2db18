//! `karyi ledger` beside a running server and after it.

use serde_json::{Value, json};

use super::Server;
use crate::harness::program;

pub fn run(server: &Server, arguments: &[&str]) -> (Option<i32>, String) {
    let output = std::process::Command::new(program())
        .arg("ledger")
        .args(arguments)
        .arg("--db")
        .arg(server.dir.path().join("site.db"))
        .output()
        .unwrap();
    let told = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(told).unwrap())
}

#[test]
fn the_ledger_is_shown_checked_and_exported() {
    let server = Server::start(&[]);
    server.call("search_content", &json!({"query": "古井"}));
    server.answer(
        "get_npc_profile",
        &json!({"npc_id": "x"}),
        &[("X-Trace-ID", "other")],
    );
    let (code, tail) = run(&server, &["tail", "-n", "1"]);
    assert_eq!((code, tail.lines().count()), (Some(0), 1));
    assert!(
        tail.starts_with("2 ") && tail.contains("error get_npc_profile yantian/yantian-main other"),
        "{tail}"
    );
    let (code, shown) = run(&server, &["show", "other"]);
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(
        (code, &shown["record"]["error_type"]),
        (Some(0), &json!("ValueError"))
    );
    assert_eq!(run(&server, &["show", "nothing"]).0, Some(2));
    let (code, verdict) = run(&server, &["verify"]);
    assert_eq!(code, Some(0));
    let anchor = verdict.trim().rsplit(' ').next().unwrap().to_owned();
    assert_eq!(verdict, format!("ok: 2 records, anchor {anchor}\n"));
    let json = |args: &[&str]| {
        let (code, text) = run(&server, &[args, &["--json"]].concat());
        assert_eq!(code, Some(0), "{text}");
        serde_json::from_str::<Value>(&text).unwrap()
    };
    let ok = json!({"status": "ok", "records": 2, "anchor": anchor});
    assert_eq!(json(&["verify"]), ok);
    let (tail, about) = (json(&["tail", "-n", "1"]), json(&["show", "other"]));
    assert_eq!((&tail, &tail[0]), (&about, &shown));
    let (_, export) = run(&server, &["export"]);
    let rows: Vec<Value> = export
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!((rows.len(), &rows[1]["hash"]), (2, &json!(anchor)));
    assert_eq!(rows[0]["record"], server.records()[0]);
    assert_eq!(run(&server, &["verify", "--anchor", &anchor]).0, Some(0));
    assert_eq!(run(&server, &["verify", "--anchor", "xyz"]).0, Some(2));
    let connection = rusqlite::Connection::open(server.dir.path().join("ledger.db")).unwrap();
    connection
        .execute("DELETE FROM ledger_rows WHERE seq = 2", ())
        .unwrap();
    assert_eq!(run(&server, &["verify"]).0, Some(0));
    let cut = (
        Some(1),
        "broken: none of the 1 records has the hash of the anchor\n".to_owned(),
    );
    assert_eq!(run(&server, &["verify", "--anchor", &anchor]), cut);
    connection
        .execute("UPDATE ledger_rows SET record = '{}' WHERE seq = 1", ())
        .unwrap();
    assert_eq!(run(&server, &["verify"]).0, Some(1));
}

#[test]
fn what_callers_made_up_is_shown_and_not_obeyed() {
    let server = Server::start(&[]);
    let forged = "x\u{1b}[31mRED\u{7}\n9 2026 success \u{202e}";
    server.call(forged, &json!({}));
    let record = server.last_record();
    let (code, tail) = run(&server, &["tail"]);
    let shown = r#""x\u{1b}[31mRED\u{7}\n9 2026 success \u{202e}""#;
    let expected = format!(
        "1 {} error {shown} yantian/yantian-main trace-test {} ms ValueError\n",
        record["ts_end"].as_str().unwrap(),
        record["latency_ms"]
    );
    assert_eq!((code, tail), (Some(0), expected));
    let (_, shown) = run(&server, &["show", "trace-test"]);
    assert!(!shown.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{shown}");
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["record"], record);
}

#[test]
fn an_export_that_is_not_written_whole_fails() {
    let server = Server::start(&[]);
    server.call("get_site_map", &json!({}));
    let full = std::fs::File::options().write(true).open("/dev/full");
    let output = std::process::Command::new(program())
        .args(["ledger", "export", "--db"])
        .arg(server.dir.path().join("site.db"))
        .stdout(full.unwrap())
        .output()
        .unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("writing to stdout: No space left"), "{told}");
}

#[test]
fn a_ledger_that_is_not_there_is_not_made() {
    let dir = tempfile::tempdir().unwrap();
    let output = std::process::Command::new(program())
        .args(["ledger", "tail", "--db"])
        .arg(dir.path().join("site.db"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}
