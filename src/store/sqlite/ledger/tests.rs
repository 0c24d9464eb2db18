//! The chain of records, and what becomes of calls that never ended.

use super::*;
use crate::store::ledger::ToolCall;

fn record(call: &str) -> Record<'_> {
    Record {
        call_id: call.into(),
        trace_id: "trace-1".into(),
        tool_name: "search_content".into(),
        status: "success".into(),
        latency_ms: 45,
        tool_calls: vec![ToolCall {
            name: "search_content".into(),
            status: "success".into(),
            latency_ms: 45,
            payload_hash: None,
        }],
        ..Record::default()
    }
}

fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
        .block_on(work)
}

fn filled(path: &Path) {
    let ledger = SqliteLedger::open(path).unwrap();
    run(async {
        for call in ["a", "b", "c"] {
            ledger.keep(&record(call)).await.unwrap();
        }
    });
}

#[test]
fn many_calls_of_one_trace_make_one_chain() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ledger.db");
    filled(&path);
    filled(&path);
    let file = LedgerFile::open(&path).unwrap();
    let rows = file.about("trace-1").unwrap();
    let numbers: Vec<u64> = rows.iter().map(|row| row.seq).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
    let hash = rows[5].hash;
    assert_eq!(file.verify(None).unwrap(), Verdict::Whole { rows: 6, hash });
    assert_eq!(
        file.verify(Some(&rows[2].hash)).unwrap(),
        Verdict::Whole { rows: 6, hash }
    );
    assert_eq!(file.tail(2).unwrap(), rows[4..]);
    let connection = Connection::open(&path).unwrap();
    let asked: (String, u64, String) = connection
        .query_row(
            "SELECT tool_calls, latency_ms, status FROM trace_ledger WHERE seq = 1",
            (),
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )
        .unwrap();
    let call = r#"[{"name":"search_content","status":"success","latency_ms":45}]"#;
    assert_eq!(asked, (call.into(), 45, "success".into()));
}

#[test]
fn an_old_ledger_goes_on_as_a_new_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ledger.db");
    let old = open_to_write(&path, &STEPS[..1]).unwrap();
    let text = text(&record("old")).unwrap();
    let insert = "INSERT INTO trace_ledger (seq, hash, record) VALUES (?, ?, ?)";
    let first = ledger::hash(&GENESIS, 1, &text);
    old.execute(insert, (1, first, &text)).unwrap();
    let intent = "INSERT INTO intents VALUES ('lost', ?)";
    old.execute(intent, [text.replace("\"old\"", "\"lost\"")])
        .unwrap();
    drop(old);
    // Whoever only reads finds the old one as it is.
    let rows = LedgerFile::open(&path).unwrap().about("trace-1").unwrap();
    assert_eq!((rows.len(), rows[0].hash), (1, first));
    let verdict = LedgerFile::open(&path).unwrap().verify(None).unwrap();
    assert_eq!(
        verdict,
        Verdict::Whole {
            rows: 1,
            hash: first
        }
    );
    filled(&path);
    let ledger = SqliteLedger::open(&path).unwrap();
    assert_eq!(run(ledger.settle()), Ok(1));
    let file = LedgerFile::open(&path).unwrap();
    assert_eq!(file.about("trace-1").unwrap().len(), 5);
    assert_eq!(file.about("old").unwrap(), rows);
    let verdict = file.verify(Some(&first)).unwrap();
    assert!(
        matches!(verdict, Verdict::Whole { rows: 5, .. }),
        "{verdict:?}"
    );
    let connection = Connection::open(&path).unwrap();
    let sql = "SELECT group_concat(call_id), min(status), max(status) FROM trace_ledger WHERE trace_id = 'trace-1'";
    let asked: (String, String, String) =
        connection.query_row(sql, (), |row| row.try_into()).unwrap();
    assert_eq!(
        asked,
        ("old,a,b,c,lost".into(), "error".into(), "success".into())
    );
    let plan = format!("EXPLAIN QUERY PLAN {sql}");
    let plan: String = connection.query_row(&plan, (), |row| row.get(3)).unwrap();
    assert!(plan.contains("USING INDEX ledger_rows_trace"), "{plan}");
}

#[test]
fn whatever_is_done_to_a_record_shows() {
    let check = |sql: &str, expected: &dyn Fn(Hash) -> Verdict| {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ledger.db");
        filled(&path);
        let anchor = LedgerFile::open(&path).unwrap().tail(1).unwrap()[0].hash;
        Connection::open(&path).unwrap().execute_batch(sql).unwrap();
        let verdict = LedgerFile::open(&path)
            .unwrap()
            .verify(Some(&anchor))
            .unwrap();
        assert_eq!(verdict, expected(anchor), "{sql}");
    };
    check("", &|hash| Verdict::Whole { rows: 3, hash });
    check(
        "UPDATE ledger_rows SET record = replace(record, 'success', 'error') WHERE seq = 2",
        &|_| Verdict::Broken { seq: 2 },
    );
    check("DELETE FROM ledger_rows WHERE seq = 1", &|_| {
        Verdict::Broken { seq: 2 }
    });
    check("DELETE FROM ledger_rows WHERE seq = 2", &|_| {
        Verdict::Broken { seq: 3 }
    });
    check(
        "UPDATE ledger_rows SET hash = zeroblob(32) WHERE seq = 3",
        &|_| Verdict::Broken { seq: 3 },
    );
    check("DELETE FROM ledger_rows WHERE seq = 3", &|_| {
        Verdict::NoAnchor { rows: 2 }
    });
    check(
        "UPDATE ledger_rows SET trace_id = 'trace-2' WHERE seq = 2",
        &|_| Verdict::Broken { seq: 2 },
    );
    check(
        "UPDATE ledger_rows SET trace_id = NULL, record = '' WHERE seq = 3",
        &|_| Verdict::Broken { seq: 3 },
    );
    check("DELETE FROM ledger_rows", &|_| Verdict::NoAnchor {
        rows: 0,
    });
}

#[test]
fn a_call_that_never_ended_becomes_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ledger.db");
    let ledger = SqliteLedger::open(&path).unwrap();
    run(async {
        ledger.intend(&record("ended")).await.unwrap();
        ledger.intend(&record("lost")).await.unwrap();
        ledger.keep(&record("ended")).await.unwrap();
    });
    drop(ledger);
    let ledger = SqliteLedger::open(&path).unwrap();
    assert_eq!(run(ledger.settle()), Ok(1));
    assert_eq!(run(ledger.settle()), Ok(0));
    let file = LedgerFile::open(&path).unwrap();
    let rows = file.tail(10).unwrap();
    let last: Record<'_> = serde_json::from_str(&rows[1].record).unwrap();
    assert_eq!(
        (rows.len(), &*last.call_id, last.error_type.as_deref()),
        (2, "lost", Some("Interrupted"))
    );
    assert!(matches!(
        file.verify(None).unwrap(),
        Verdict::Whole { rows: 2, .. }
    ));
}

#[test]
fn a_locked_ledger_is_an_error_and_works_again_later() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ledger.db");
    let ledger = SqliteLedger::open(&path).unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert_eq!(run(ledger.keep(&record("a"))), Err(StoreError::Busy));
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(run(ledger.keep(&record("b"))), Ok(()));
    drop(ledger);
    assert_eq!(LedgerFile::open(&path).unwrap().tail(9).unwrap().len(), 1);
}
