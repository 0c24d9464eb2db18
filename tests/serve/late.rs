//! A ledger that another program holds for a while.

use std::time::{Duration, Instant};

use nix::sys::stat::Mode;
use serde_json::{Value, json};

use super::faults::{draft, lock};
use super::{Server, count};

const KEY: &str = "a-key-of-the-late-tests-0123456789";

/// How long the server takes at most to write by itself what had to wait.
const SOON: Duration = Duration::from_secs(60);

/// Waits until the ledger has so many records.
fn wait_for_records(server: &Server, count: usize) -> Vec<Value> {
    let deadline = Instant::now() + SOON;
    loop {
        let records = server.records();
        if records.len() >= count {
            return records;
        }
        assert!(Instant::now() < deadline, "{records:?}");
        std::thread::yield_now();
    }
}

#[test]
fn what_changed_something_has_its_record_as_soon_as_the_ledger_is_free() {
    let dir = tempfile::tempdir().unwrap();
    let (key, pipe) = (dir.path().join("key"), dir.path().join("pipe"));
    std::fs::write(&key, KEY).unwrap();
    nix::unistd::mkfifo(&pipe, Mode::S_IRWXU).unwrap();
    let arguments = ["--tools", "command", "--key-file", key.to_str().unwrap()];
    let server = Server::start_in(dir, &arguments);
    let ledger = server.dir.path().join("ledger.db");
    let text = format!("cat {}", pipe.display());
    let (key, input) = ([("X-Internal-API-Key", KEY)], json!({"text": text}));
    let answer = std::thread::scope(|scope| {
        let answer = scope.spawn(|| server.answer("command", &input, &key));
        server.wait_for("tool_call_start");
        let other = lock(&ledger);
        std::fs::write(&pipe, "said\n").unwrap();
        let answer = answer.join().unwrap();
        drop(other);
        answer.json()
    });
    assert_eq!(answer["success"], true, "{answer}");
    // Nobody calls meanwhile.
    let records = wait_for_records(&server, 1);
    assert_eq!(
        (records.len(), &records[0]["status"], &records[0]["call_id"]),
        (1, &json!("success"), &answer["audit"]["call_id"])
    );
    assert_eq!(count(&ledger, "SELECT count(*) FROM intents"), 0);
    let again = Server::start_in(server.stop(), &[]);
    assert_eq!(again.records(), records);
}

#[test]
fn what_could_not_be_written_before_the_end_is_told() {
    let mut server = Server::start(&[]);
    let other = lock(&server.dir.path().join("ledger.db"));
    server.call("get_site_map", &json!({}));
    server.terminate();
    let told = server.wait_for("records_lost");
    assert_eq!(
        told["message"],
        "1 records could not be written before the end"
    );
    server.wait();
    drop(other);
    assert_eq!(server.records().len(), 0);
}

#[test]
fn who_has_no_time_does_not_wait_for_the_ledger() {
    let server = Server::start(&[]);
    let other = lock(&server.dir.path().join("ledger.db"));
    let hasty = [("X-Request-Timeout-Ms", "100")];
    for (tool, input, status) in [
        ("create_draft_content", draft(), 503),
        ("search_content", json!({"query": "古井"}), 200),
    ] {
        let since = Instant::now();
        let answer = server.answer(tool, &input, &hasty);
        assert_eq!(answer.status, status, "{answer:?}");
        // The ledger itself is waited for longer than that.
        assert!(since.elapsed() < Duration::from_secs(1), "{tool}");
    }
    // A change that is refused for that is not waited for a second time.
    let hasty = [("X-Request-Timeout-Ms", "1")];
    let times = [(); 5].map(|()| {
        let since = Instant::now();
        let answer = server.answer("create_draft_content", &draft(), &hasty);
        assert_eq!(answer.status, 503, "{answer:?}");
        since.elapsed()
    });
    assert!(
        times.iter().min() < Some(&Duration::from_millis(400)),
        "{times:?}"
    );
    other.execute_batch("ROLLBACK").unwrap();
    let records = wait_for_records(&server, 7);
    let told: Vec<_> = records.iter().map(|row| &row["http_status"]).collect();
    let (refused, read) = (json!(503), json!(200));
    assert_eq!(
        told,
        [
            &refused, &read, &refused, &refused, &refused, &refused, &refused
        ]
    );
    assert_eq!(server.drafts(), 0);
    let intents = "SELECT count(*) FROM intents";
    assert_eq!(count(&server.dir.path().join("ledger.db"), intents), 0);
}

#[test]
fn answer_record_and_log_tell_the_same_time() {
    let server = Server::start(&[]);
    let other = lock(&server.dir.path().join("ledger.db"));
    let answer = server.call("get_site_map", &json!({}));
    drop(other);
    let told = &server.wait_for("tool_call_success")["latency_ms"];
    let record = &wait_for_records(&server, 1)[0]["latency_ms"];
    assert_eq!((told, record), (record, &answer["audit"]["latency_ms"]));
}
