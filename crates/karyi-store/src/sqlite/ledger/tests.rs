//! The chain of records, and calls that never ended.

use super::*;
use crate::ledger::ToolCall;

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
            ledger.append(&record(call)).await.unwrap();
        }
    });
}

#[test]
fn one_chain_has_all_records() {
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
    let columns: (String, u64, String) = connection
        .query_row(
            "SELECT tool_calls, latency_ms, status FROM trace_ledger WHERE seq = 1",
            (),
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )
        .unwrap();
    let call = r#"[{"name":"search_content","status":"success","latency_ms":45}]"#;
    assert_eq!(columns, (call.into(), 45, "success".into()));
}

#[test]
fn old_ledgers_are_migrated() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ledger.db");
    let old = open_to_write(&path, &STEPS[..1]).unwrap();
    let text = writer::text(&record("old")).unwrap();
    let insert = "INSERT INTO trace_ledger (seq, hash, record) VALUES (?, ?, ?)";
    let first = ledger::hash(&GENESIS, 1, &text);
    old.execute(insert, (1, first, &text)).unwrap();
    let intent = "INSERT INTO intents VALUES ('lost', ?)";
    old.execute(intent, [text.replace("\"old\"", "\"lost\"")])
        .unwrap();
    drop(old);
    // Reading does not migrate the old file.
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
    assert_eq!(run(ledger.settle_interrupted()), Ok(1));
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
    let columns: (String, String, String) =
        connection.query_row(sql, (), |row| row.try_into()).unwrap();
    assert_eq!(
        columns,
        ("old,a,b,c,lost".into(), "error".into(), "success".into())
    );
    let plan = format!("EXPLAIN QUERY PLAN {sql}");
    let plan: String = connection.query_row(&plan, (), |row| row.get(3)).unwrap();
    assert!(plan.contains("USING INDEX ledger_rows_trace"), "{plan}");
}

#[test]
fn every_manipulation_is_detected() {
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
        ledger.record_intent(&record("ended")).await.unwrap();
        ledger.record_intent(&record("lost")).await.unwrap();
        ledger.append(&record("ended")).await.unwrap();
    });
    drop(ledger);
    let ledger = SqliteLedger::open(&path).unwrap();
    assert_eq!(run(ledger.settle_interrupted()), Ok(1));
    assert_eq!(run(ledger.settle_interrupted()), Ok(0));
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

/// A ledger locked by another program, and that program.
fn locked(path: &Path) -> Connection {
    let other = Connection::open(path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    other
}

/// Returns the calls of a ledger in order, with their errors; verifies the chain.
fn calls(path: &Path) -> Vec<(String, Option<String>)> {
    let file = LedgerFile::open(path).unwrap();
    let verdict = file.verify(None).unwrap();
    assert!(matches!(verdict, Verdict::Whole { .. }), "{verdict:?}");
    let rows = file.tail(100).unwrap();
    let records = rows
        .iter()
        .map(|row| serde_json::from_str(&row.record).unwrap());
    records
        .map(|record: Record<'_>| {
            let error = record.error_type.map(std::borrow::Cow::into_owned);
            (record.call_id.into_owned(), error)
        })
        .collect()
}

fn good(calls: &[&str]) -> Vec<(String, Option<String>)> {
    calls
        .iter()
        .map(|call| ((*call).to_owned(), None))
        .collect()
}

fn intents(path: &Path) -> u64 {
    let connection = Connection::open(path).unwrap();
    let sql = "SELECT count(*) FROM intents";
    connection.query_row(sql, (), |row| row.get(0)).unwrap()
}

#[test]
fn records_of_a_locked_ledger_are_written_later_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ledger.db");
    let ledger = SqliteLedger::open(&path).unwrap();
    run(ledger.record_intent(&record("changes"))).unwrap();
    let other = locked(&path);
    let more = record("more");
    let results = run(async {
        tokio::join!(
            ledger.append(&record("reads")),
            ledger.append(&record("changes")),
            ledger.record_intent(&more),
        )
    });
    let busy = Err(StoreError::Busy);
    assert_eq!(
        results,
        (Err(StoreError::Late), Err(StoreError::Late), busy.clone())
    );
    assert_eq!((run(ledger.probe()), ledger.backlog()), (busy, 2));
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(run(ledger.append(&record("next"))), Ok(()));
    assert_eq!((ledger.backlog(), intents(&path)), (0, 0));
    assert_eq!(calls(&path), good(&["reads", "changes", "next"]));
    drop(ledger);
    let ledger = SqliteLedger::open(&path).unwrap();
    assert_eq!(run(ledger.settle_interrupted()), Ok(0));
}

#[test]
fn the_backlog_is_written_by_flush_and_at_the_end() {
    for way in ["probe", "catch up", "end"] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ledger.db");
        let ledger = SqliteLedger::open(&path).unwrap();
        run(ledger.record_intent(&record("a"))).unwrap();
        let other = locked(&path);
        assert_eq!(run(ledger.append(&record("a"))), Err(StoreError::Late));
        let since = std::time::Instant::now();
        assert_eq!(run(ledger.flush()), Err(StoreError::Busy));
        assert!(since.elapsed() < limits::DATABASE_BUSY_TIMEOUT);
        other.execute_batch("ROLLBACK").unwrap();
        let written = match way {
            "probe" => run(ledger.probe()),
            "catch up" => run(ledger.flush()),
            _ => Err(StoreError::Late),
        };
        assert_eq!(ledger.backlog(), usize::from(written.is_err()));
        if written.is_ok() {
            assert_eq!(calls(&path), good(&["a"]));
        }
        drop(ledger);
        assert_eq!((calls(&path), intents(&path)), (good(&["a"]), 0));
    }
}

/// A writer without a busy timeout, and its backlog.
fn writer(path: &Path) -> (Writer, Arc<AtomicUsize>) {
    let connection = open_to_write(path, STEPS).unwrap();
    connection.busy_timeout(std::time::Duration::ZERO).unwrap();
    let waiting = Arc::default();
    (Writer::new(connection, Arc::clone(&waiting)), waiting)
}

/// Runs commands; returns the replies to the callers.
fn commit(writer: &mut Writer, commands: Vec<Command>) -> Vec<Result<usize, StoreError>> {
    let (batch, answers): (Vec<QueuedCommand>, Vec<_>) = commands
        .into_iter()
        .map(|command| {
            let (reply, answer) = oneshot::channel();
            ((command, reply), answer)
        })
        .unzip();
    writer.commit(batch);
    let replies = answers.into_iter().map(|mut answer| answer.try_recv());
    replies.map(Result::unwrap).collect()
}

fn intend(call: &str) -> Command {
    Command::Intend {
        call_id: call.into(),
        record: writer::text(&record(call)).unwrap(),
    }
}

fn large(call: &str) -> Command {
    let mut large = record(call);
    large.error = Some("x".repeat(limits::MAX_LATE_RECORD_BYTES / 3).into());
    Command::Append(EncodedRecord::of(&large).unwrap())
}

#[test]
fn the_backlog_is_limited_except_for_calls_with_effects() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ledger.db");
    let (mut writer, waiting) = writer(&path);
    let begun = commit(&mut writer, vec![intend("changes"), intend("again")]);
    assert_eq!(begun, [Ok(1), Ok(1)]);
    let other = locked(&path);
    let commands = ["a", "b", "c", "changes", "d"].map(large).into();
    let (late, busy) = (Err(StoreError::Late), Err(StoreError::Busy));
    let replies = commit(&mut writer, commands);
    let expected = [late.clone(), late.clone(), busy.clone(), late.clone(), busy];
    assert_eq!(
        (replies, waiting.load(Ordering::Relaxed)),
        (expected.into(), 3)
    );
    other.execute_batch("ROLLBACK").unwrap();
    // There is room again, and the call that did not wait has no intent any more.
    assert_eq!(commit(&mut writer, vec![Command::Probe]), [Ok(1)]);
    let other = locked(&path);
    assert_eq!(commit(&mut writer, vec![large("again")]), [late]);
    other.execute_batch("ROLLBACK").unwrap();
    drop(writer);
    assert_eq!(calls(&path), good(&["a", "b", "changes", "again"]));
    assert_eq!(intents(&path), 0);
}

#[test]
fn abandoned_calls_leave_no_intent() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ledger.db");
    let (mut writer, waiting) = writer(&path);
    let given_up = |call| {
        let (reply, _) = oneshot::channel();
        (intend(call), reply)
    };
    writer.commit(vec![given_up("a")]);
    assert_eq!((intents(&path), waiting.load(Ordering::Relaxed)), (0, 1));
    // An intent that was written nevertheless is removed with the next commit.
    let connection = Connection::open(&path).unwrap();
    connection
        .execute("INSERT INTO intents VALUES ('a', '')", ())
        .unwrap();
    assert_eq!(commit(&mut writer, vec![Command::Probe]), [Ok(1)]);
    assert_eq!((intents(&path), waiting.load(Ordering::Relaxed)), (0, 0));
}

#[test]
fn a_moved_ledger_takes_no_intents() {
    let dir = tempfile::tempdir().unwrap();
    let [path, elsewhere] = ["ledger.db", "rotated.db"].map(|name| dir.path().join(name));
    let ledger = SqliteLedger::open(&path).unwrap();
    assert_eq!(run(ledger.record_intent(&record("a"))), Ok(()));
    std::fs::rename(&path, &elsewhere).unwrap();
    let moved = "the file of the ledger was moved or removed; start the server again";
    let moved = Err(StoreError::Broken(moved.into()));
    let more = record("b");
    let replies = run(async {
        tokio::join!(
            ledger.record_intent(&more),
            ledger.append(&record("a")),
            ledger.probe()
        )
    });
    // A completed call has its record.
    assert_eq!(replies, (moved.clone(), Ok(()), moved.clone()));
    std::fs::write(&path, "").unwrap();
    assert_eq!(run(ledger.probe()), moved);
    std::fs::rename(&elsewhere, &path).unwrap();
    assert_eq!(run(ledger.probe()), Ok(()));
    drop(ledger);
    assert_eq!((calls(&path), intents(&path)), (good(&["a"]), 0));
}
