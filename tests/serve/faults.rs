//! What breaks below the server, and who goes away.

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use karyi::service::desk::KeepInput;
use karyi::service::guard::Credential;
use karyi::service::{Caller, Desk, Parts, Reply, Request, offer};
use karyi::store::site::{
    Bundle, Claim, Content, Draft, Event, Found, Profile, Prompt, Query, RepeatKey, Scope, Site,
    SiteStore, Written,
};
use karyi::store::sqlite::{LedgerFile, SqliteLedger, Verdict};
use karyi::store::{Pending, StoreError};
use serde_json::{Value, json};

use super::{Server, answer};

fn draft() -> Value {
    json!({"content_type": "story", "title": "a", "body": "b"})
}

fn lock(path: &std::path::Path) -> rusqlite::Connection {
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    connection
}

#[test]
fn without_a_ledger_nothing_is_written_and_everything_read() {
    let server = Server::start(&[]);
    let other = lock(&server.dir.path().join("ledger.db"));
    let refused = server.answer(
        "create_draft_content",
        &draft(),
        &[("Idempotency-Key", "k")],
    );
    assert_eq!(
        (refused.status, &refused.json()["error_code"]),
        (503, &json!("audit_unavailable"))
    );
    assert_eq!(refused.header("retry-after").as_deref(), Some("1"));
    assert_eq!(
        server.call("get_npc_profile", &json!({"npc_id": "ancestor_yan"}))["success"],
        true
    );
    other.execute_batch("ROLLBACK").unwrap();
    let connection = rusqlite::Connection::open(server.dir.path().join("site.db")).unwrap();
    let count = || -> u64 {
        connection
            .query_row(
                "SELECT count(*) FROM contents WHERE NOT imported",
                (),
                |row| row.get(0),
            )
            .unwrap()
    };
    assert_eq!(count(), 0);
    // The key was given back.
    assert_eq!(
        server
            .answer(
                "create_draft_content",
                &draft(),
                &[("Idempotency-Key", "k")]
            )
            .status,
        200
    );
    assert_eq!(count(), 1);
    assert!(
        server
            .get("/metrics")
            .body
            .contains("karyi_ledger_failures_total 3")
    );
}

#[test]
fn a_locked_site_is_told_and_works_again_later() {
    let server = Server::start(&[]);
    let other = lock(&server.dir.path().join("site.db"));
    let answer = server.call("create_draft_content", &draft());
    assert_eq!(
        (&answer["success"], &answer["error_code"]),
        (&json!(false), &json!("UNAVAILABLE"))
    );
    assert_eq!(server.last_record()["error_type"], "Unavailable");
    assert_eq!(
        server.call("search_content", &json!({"query": "古井"}))["success"],
        true
    );
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(
        server.call("create_draft_content", &draft())["success"],
        true
    );
}

#[test]
fn a_killed_server_leaves_a_whole_ledger() {
    let mut server = Server::start(&[]);
    for _ in 0..5 {
        server.call("create_draft_content", &draft());
    }
    server.signal(nix::sys::signal::Signal::SIGKILL);
    server.wait();
    let dir = std::mem::replace(&mut server.dir, tempfile::tempdir().unwrap());
    drop(server);
    let again = Server::start_in(dir, &[]);
    again.call("get_site_map", &json!({}));
    let file = LedgerFile::open(&again.dir.path().join("ledger.db")).unwrap();
    assert!(matches!(
        file.verify(None).unwrap(),
        Verdict::Whole { rows: 6, .. }
    ));
}

#[test]
fn two_servers_do_not_share_a_database() {
    let server = Server::start(&[]);
    let output = super::command(server.dir.path())
        .args(["--port", "0"])
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        told.contains("another karyi serves this database"),
        "{told}"
    );
}

#[test]
fn a_request_under_way_is_answered_before_the_end() {
    let server = Server::start(&[]);
    let request = server.request(
        "/api/tools/call",
        &[],
        r#"{"tool_name": "get_site_map", "input": {}}"#,
    );
    let (first, last) = request.split_at(request.len() - 3);
    let mut stream = server.connect();
    stream.write_all(first).unwrap();
    // A whole answer of another connection: by then the first one has been taken on as well.
    assert_eq!(server.get("/readyz").status, 200);
    server.terminate();
    stream.write_all(last).unwrap();
    assert_eq!(answer(&mut stream).status, 200);
    server.stop();
}

#[test]
fn a_caller_who_leaves_has_a_record() {
    let server = Server::start(&[]);
    let other = lock(&server.dir.path().join("site.db"));
    let body = json!({"tool_name": "create_draft_content", "input": draft()}).to_string();
    let mut stream = server.connect();
    stream
        .write_all(&server.request("/api/tools/call", &[], &body))
        .unwrap();
    let since = Instant::now();
    let intents = rusqlite::Connection::open(server.dir.path().join("ledger.db")).unwrap();
    let count = || -> u64 {
        intents
            .query_row("SELECT count(*) FROM intents", (), |row| row.get(0))
            .unwrap()
    };
    while count() == 0 {
        assert!(since.elapsed() < super::ANSWER_LIMIT && server.records().is_empty());
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(stream);
    while server.records().is_empty() {
        assert!(since.elapsed() < super::ANSWER_LIMIT);
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(other);
    assert_eq!(server.last_record()["disconnected"], true);
    assert_eq!(count(), 0);
}

/// A site whose tools do what their arguments say: sleep, break, or answer.
struct Odd;

async fn sleeps<T>() -> Result<T, StoreError> {
    tokio::time::sleep(Duration::from_secs(600)).await;
    Err(StoreError::Closed)
}

impl SiteStore for Odd {
    fn import(&self, _: Bundle, _: Instant) -> Pending<'_, bool> {
        Box::pin(sleeps())
    }
    fn site(&self, _: &Scope) -> Pending<'_, Option<Site>> {
        Box::pin(async {
            Err(StoreError::Broken(
                "SELECT secret FROM /path/to/file".into(),
            ))
        })
    }
    fn profile(&self, _: &Scope, _: &str, _: Option<u32>) -> Pending<'_, Option<Profile>> {
        Box::pin(sleeps())
    }
    fn prompt(&self, _: &Scope, _: &str, _: &str) -> Pending<'_, Option<Prompt>> {
        Box::pin(sleeps())
    }
    fn search(&self, _: &Scope, _: Query) -> Pending<'_, Found> {
        Box::pin(sleeps())
    }
    fn of_type(&self, _: &Scope, _: &str) -> Pending<'_, Vec<Content>> {
        Box::pin(sleeps())
    }
    fn add_draft(&self, _: &Scope, _: Draft) -> Pending<'_, Written> {
        Box::pin(async { Err(StoreError::Full) })
    }
    fn log_event(&self, _: &Scope, _: Event) -> Pending<'_, Written> {
        Box::pin(async { panic!("a bug with $KARYI{{X}}") })
    }
    fn claim(&self, _: &Scope, _: RepeatKey) -> Pending<'_, Claim> {
        Box::pin(async { Ok(Claim::New) })
    }
    fn answer(&self, _: &Scope, _: RepeatKey, _: Vec<u8>) -> Pending<'_, ()> {
        Box::pin(async { Ok(()) })
    }
    fn release(&self, _: &Scope, _: RepeatKey) -> Pending<'_, ()> {
        Box::pin(async { Ok(()) })
    }
}

/// Makes one call of a desk over the odd site; returns the reply, its time and the record.
fn odd(tool: &str, input: Value) -> (Reply, Duration, Value) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ledger.db");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let desk = Desk::new(Parts {
        tools: offer::offer(&[]).unwrap(),
        sites: Arc::new(Odd),
        ledger: Arc::new(SqliteLedger::open(&path).unwrap()),
        guard: Arc::default(),
        tool_rate: None,
        tenant_rate: None,
        context: crate::execution::context(dir.path()),
        local: None,
        keep: KeepInput::Never,
        log: karyi::service::log::Log::default(),
    });
    let (reply, time) = runtime.block_on(async {
        let mut caller = Caller::new("http", "trace-1".into(), "t".into(), "s".into()).unwrap();
        caller.patience = (tool == "search_content").then_some(Duration::from_secs(1));
        let principal = desk.admit(&caller, &Credential::default()).await.unwrap();
        let since = Instant::now();
        let request = Request {
            tool_name: tool.into(),
            input,
            context: Default::default(),
        };
        (
            desk.call(caller, &principal, request).await,
            since.elapsed(),
        )
    });
    drop(desk);
    let record = super::records(dir.path()).pop().unwrap();
    (reply, time, record)
}

#[test]
fn a_tool_that_sleeps_is_ended_at_its_deadline() {
    let (reply, time, record) = odd("search_content", json!({"query": "a"}));
    let Reply::Fresh(envelope) = reply else {
        panic!("{reply:?}")
    };
    assert_eq!(
        (envelope.success, envelope.error_type.as_deref()),
        (false, Some("Timeout"))
    );
    assert!(
        time >= Duration::from_secs(1) && time < Duration::from_secs(30),
        "{time:?}"
    );
    assert!(record["latency_ms"].as_u64().unwrap() >= 1000);
    assert_eq!(record["error_type"], "Timeout");
}

#[test]
fn a_tool_that_breaks_breaks_nothing_else_and_tells_nothing() {
    for (tool, input) in [
        ("log_user_event", json!({"event_type": "e"})),
        ("get_site_map", json!({})),
    ] {
        let (reply, _, record) = odd(tool, input);
        let Reply::Refused(rejection) = reply else {
            panic!("{reply:?}")
        };
        assert_eq!((rejection.status, rejection.code), (500, "internal"));
        let told = format!("{rejection:?}{record}");
        assert!(
            !told.contains("KARYI") && !told.contains("SELECT") && !told.contains("/path"),
            "{told}"
        );
        assert_eq!(
            (&record["http_status"], &record["error_type"]),
            (&json!(500), &json!("Internal"))
        );
    }
}

#[test]
fn a_full_disk_is_told() {
    let (reply, _, record) = odd("create_draft_content", draft());
    let Reply::Fresh(envelope) = reply else {
        panic!("{reply:?}")
    };
    assert_eq!(envelope.error_code.as_deref(), Some("UNAVAILABLE"));
    assert_eq!(record["error_type"], "Unavailable");
}
