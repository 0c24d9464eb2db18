//! The writer of the ledger alone, beside plain inserts of the same texts.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use karyi::store::Ledger;
use karyi::store::ledger::{Record, ToolCall};
use karyi::store::sqlite::{LedgerFile, SqliteLedger, Verdict};

use crate::median;
use crate::report::Report;

/// Records of a turn.
const ROWS: usize = 200_000;
/// Records that wait at once: half of them are committed together while the others are made.
const AT_ONCE: usize = 4096;
const TURNS: usize = 3;

/// Measures and reports.
pub(crate) fn measure(report: &mut Report) {
    let (mut ledger, mut plain) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        ledger.push(keep(&dir.path().join("ledger.db")));
        plain.push(insert(&dir.path().join("plain.db")));
    }
    let (ledger, plain) = (median(ledger), median(plain));
    let row = |name: &str, rate: f64| {
        vec![
            name.to_owned(),
            format!("{rate:.0}"),
            format!("{:.2}", ledger / rate),
        ]
    };
    let head = ["", "rows/s", "ledger ÷"].map(str::to_owned).to_vec();
    let rows = [
        head,
        row("ledger: chain, index, every caller told", ledger),
        row("prepared insert of the same text", plain),
    ];
    report.table("Durable rows of the ledger, 4096 callers", &rows);
    report.check(
        "rows of the ledger in a second, thousands",
        ledger / 1000.0,
        100.0..,
    );
}

/// Keeps records from many tasks at once; returns the rows per second.
fn keep(path: &Path) -> f64 {
    let ledger = Arc::new(SqliteLedger::open(path).unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let since = Instant::now();
    runtime.block_on(async {
        let tasks: Vec<_> = (0..AT_ONCE)
            .map(|task| tokio::task::spawn(some(Arc::clone(&ledger), task)))
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
    let seconds = since.elapsed().as_secs_f64();
    drop(ledger);
    let verdict = LedgerFile::open(path).unwrap().verify(None).unwrap();
    assert!(
        matches!(verdict, Verdict::Whole { rows, .. } if rows == ROWS as u64),
        "{verdict:?}"
    );
    rate(seconds)
}

/// Keeps the share of one task.
async fn some(ledger: Arc<SqliteLedger>, task: usize) {
    for number in (task..ROWS).step_by(AT_ONCE) {
        ledger.append(&record(number)).await.unwrap();
    }
}

/// The limit: one loop over a prepared statement, as durable, with as many rows to a commit.
fn insert(path: &Path) -> f64 {
    let mut connection = rusqlite::Connection::open(path).unwrap();
    let settings = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; \
        CREATE TABLE rows (seq INTEGER PRIMARY KEY, hash BLOB, record TEXT)";
    connection.execute_batch(settings).unwrap();
    let texts: Vec<String> = (0..ROWS)
        .map(|number| serde_json::to_string(&record(number)).unwrap())
        .collect();
    let since = Instant::now();
    for batch in texts.chunks(AT_ONCE) {
        let transaction = connection.transaction().unwrap();
        {
            let sql = "INSERT INTO rows (hash, record) VALUES (?, ?)";
            let mut statement = transaction.prepare(sql).unwrap();
            for text in batch {
                statement.execute(([0_u8; 32], text)).unwrap();
            }
        }
        transaction.commit().unwrap();
    }
    rate(since.elapsed().as_secs_f64())
}

#[allow(clippy::cast_precision_loss)]
fn rate(seconds: f64) -> f64 {
    ROWS as f64 / seconds
}

/// The record of a successful call, as the server makes it.
fn record(number: usize) -> Record<'static> {
    let call = ToolCall {
        name: "search_content".into(),
        status: "success".into(),
        latency_ms: 2,
        payload_hash: Some("8777a5ee3f68c3a3".into()),
    };
    Record {
        call_id: format!("00000000-0000-4000-8000-{number:012}").into(),
        front_end: "http".into(),
        ts_start: "2026-11-22T10:00:00.000000Z".into(),
        ts_end: "2026-11-22T10:00:00.002000Z".into(),
        latency_ms: 2,
        trace_id: format!("trace-{}", number / 4).into(),
        span_id: Some("00f067aa0ba902b7".into()),
        tenant_id: "yantian".into(),
        site_id: "yantian-main".into(),
        principal: Some("local".into()),
        request_type: "tool_call".into(),
        tool_name: "search_content".into(),
        tool_version: Some("1.0.0".into()),
        request_payload_hash: Some("8777a5ee3f68c3a3".into()),
        status: "success".into(),
        http_status: Some(200),
        tool_calls: vec![call],
        ..Record::default()
    }
}
