//! Tools and stores that break: deadlines, panics, keys of writes, and their records.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http_body_util::BodyExt;
use karyi::http::app_state::{AppState, Reach};
use karyi::http::routes;
use karyi::service::audit::AuditTrail;
use karyi::service::authenticator::Credential;
use karyi::service::catalog::OfferedTool;
use karyi::service::dispatcher::InputRecording;
use karyi::service::envelope::Envelope;
use karyi::service::log::JsonLog;
use karyi::service::secret_refresher::SecretRefresher;
use karyi::service::{CallReply, CallRequest, Caller, Dispatcher, catalog};
use karyi::store::ledger::Record;
use karyi::store::site::{
    Bundle, Claim, Content, Draft, Event, Profile, Prompt, Query, RepeatKey, Scope, SearchResult,
    Site, SiteStore, WriteReceipt,
};
use karyi::store::sqlite::SqliteLedger;
use karyi::store::{Ledger, Pending, StoreError};
use karyi::tool::service::Audience;
use karyi::vault::redact::Redactor;
use karyi::vault::session::Secrets;
use serde_json::{Value, json};
use tower::ServiceExt;

use super::faults::draft;

/// A site whose tools do what their arguments say: sleep, break, or answer.
struct Odd;

/// The answer that was kept under a key.
static KEPT: std::sync::Mutex<Vec<u8>> = std::sync::Mutex::new(Vec::new());

/// The keys that were released.
static RELEASED: std::sync::Mutex<Vec<String>> = std::sync::Mutex::new(Vec::new());

async fn sleeps<T>() -> Result<T, StoreError> {
    tokio::time::sleep(Duration::from_secs(600)).await;
    Err(StoreError::Closed)
}

impl SiteStore for Odd {
    fn probe(&self, _: Instant) -> Pending<'_, ()> {
        Box::pin(async { Ok(()) })
    }
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
    fn search(&self, _: &Scope, _: Query) -> Pending<'_, SearchResult> {
        Box::pin(sleeps())
    }
    fn of_type(&self, _: &Scope, _: &str) -> Pending<'_, Vec<Content>> {
        Box::pin(sleeps())
    }
    fn add_draft(&self, _: &Scope, draft: Draft) -> Pending<'_, WriteReceipt> {
        Box::pin(async move {
            let written = WriteReceipt {
                id: "draft-1".into(),
                at: "2026-11-23T00:00:00Z".into(),
            };
            match draft.content.title.as_str() {
                "kept" => Ok(written),
                "late" => Err(StoreError::Expired),
                "hangs" => sleeps().await,
                _ => Err(StoreError::Full),
            }
        })
    }
    fn log_event(&self, _: &Scope, _: Event) -> Pending<'_, WriteReceipt> {
        Box::pin(async { panic!("a bug with $KARYI{{X}}") })
    }
    fn claim(&self, _: &Scope, key: RepeatKey) -> Pending<'_, Claim> {
        Box::pin(async move {
            assert_ne!(key.key, "breaks", "a bug with $KARYI{{X}}");
            Ok(Claim::New)
        })
    }
    fn answer(&self, _: &Scope, key: RepeatKey, answer: Vec<u8>) -> Pending<'_, ()> {
        Box::pin(async move {
            if key.key == "unkept" {
                return Err(StoreError::Full);
            }
            if key.key == "k" {
                *KEPT.lock().unwrap() = answer;
            }
            // Long enough for another time to be told.
            tokio::time::sleep(Duration::from_millis(30)).await;
            Ok(())
        })
    }
    fn release(&self, _: &Scope, key: RepeatKey) -> Pending<'_, ()> {
        Box::pin(async move {
            if key.key == "unreleased" {
                return Err(StoreError::Busy);
            }
            RELEASED.lock().unwrap().push(key.key);
            Ok(())
        })
    }
}

/// A ledger that is locked: it refuses intents, and never writes a record.
struct Locked;

impl Ledger for Locked {
    fn record_intent<'a>(&'a self, _: &'a Record<'_>) -> Pending<'a, ()> {
        Box::pin(async { Err(StoreError::Busy) })
    }
    fn append<'a>(&'a self, _: &Record<'_>) -> Pending<'a, ()> {
        Box::pin(std::future::pending())
    }
    fn settle_interrupted(&self) -> Pending<'_, usize> {
        Box::pin(async { Ok(0) })
    }
    fn probe(&self) -> Pending<'_, ()> {
        Box::pin(async { Err(StoreError::Busy) })
    }
    fn flush(&self) -> Pending<'_, ()> {
        Box::pin(async { Err(StoreError::Busy) })
    }
    fn backlog(&self) -> usize {
        0
    }
}

/// Makes a dispatcher over the odd site, with a ledger in `dir`.
fn dispatcher(dir: &std::path::Path, tools: Vec<OfferedTool>) -> Arc<Dispatcher> {
    let ledger = Arc::new(SqliteLedger::open(&dir.join("ledger.db")).unwrap());
    dispatcher_with(dir, tools, ledger)
}

fn dispatcher_with(
    dir: &std::path::Path,
    tools: Vec<OfferedTool>,
    ledger: Arc<dyn Ledger>,
) -> Arc<Dispatcher> {
    let secrets = Secrets::default();
    Arc::new(Dispatcher {
        tools,
        sites: Arc::new(Odd),
        authenticator: Arc::default(),
        context: crate::execution::context(dir),
        local: None,
        input_recording: InputRecording::Never,
        audit: AuditTrail::new(ledger, None, Redactor::new(&secrets)),
        tool_limit: None,
        tenant_limit: None,
        secrets: SecretRefresher::new(&secrets),
        places: tokio::sync::Semaphore::new(8),
    })
}

/// Makes a call as the local user.
async fn called(
    dispatcher: &Arc<Dispatcher>,
    mut caller: Caller,
    tool: &str,
    input: Value,
) -> CallReply {
    let local = dispatcher.authenticator.identify(&Credential::default());
    caller.principal = local.unwrap();
    dispatcher.check_access(&caller).unwrap();
    let request = CallRequest {
        tool_name: tool.into(),
        input,
        context: Default::default(),
    };
    dispatcher.call(caller, request).await
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap()
}

/// Makes one call of a dispatcher over the odd site; returns the reply, its time and the record.
fn odd(tool: &str, input: Value) -> (CallReply, Duration, Value) {
    let dir = tempfile::tempdir().unwrap();
    let dispatcher = dispatcher(dir.path(), catalog::offered_tools(&[]).unwrap());
    let (reply, time) = runtime().block_on(async {
        let mut caller = Caller::new("http", "trace-1".into(), "t".into(), "s".into()).unwrap();
        caller.timeout = (tool == "search_content").then_some(Duration::from_secs(1));
        let since = Instant::now();
        let reply = called(&dispatcher, caller, tool, input).await;
        (reply, since.elapsed())
    });
    drop(dispatcher);
    let record = super::records(dir.path()).pop().unwrap();
    (reply, time, record)
}

/// Writes a draft under a key.
fn drafted(
    dispatcher: &Arc<Dispatcher>,
    title: &str,
    key: &str,
    patience: Option<Duration>,
) -> Box<Envelope> {
    // On the thread of the test, whose log it may be.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let reply = runtime.block_on(async {
        let mut caller = Caller::new("http", "trace-1".into(), "t".into(), "s".into()).unwrap();
        caller.call_id = format!("call-{key}");
        caller.idempotency_key = Some(key.into());
        caller.timeout = patience;
        let input = json!({"content_type": "story", "title": title, "body": "b"});
        called(dispatcher, caller, "create_draft_content", input).await
    });
    match reply {
        CallReply::Fresh(envelope) => envelope,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_key_stays_taken_while_its_write_may_still_be_done() {
    let dir = tempfile::tempdir().unwrap();
    let dispatcher = dispatcher(dir.path(), catalog::offered_tools(&[]).unwrap());
    for (title, key) in [("late", "undone"), ("hangs", "open")] {
        let envelope = drafted(&dispatcher, title, key, Some(Duration::from_millis(1)));
        assert_eq!(envelope.error_code.as_deref(), Some("TIMEOUT"));
    }
    let released = RELEASED.lock().unwrap().clone();
    let is_released = |key: &str| released.iter().any(|other| other == key);
    assert_eq!((is_released("undone"), is_released("open")), (true, false));
}

#[test]
fn a_key_stays_taken_when_its_tool_breaks() {
    let dir = tempfile::tempdir().unwrap();
    let dispatcher = dispatcher(dir.path(), catalog::offered_tools(&[]).unwrap());
    let reply = runtime().block_on(async {
        let mut caller = Caller::new("http", "trace-1".into(), "t".into(), "s".into()).unwrap();
        caller.idempotency_key = Some("broken".into());
        let input = json!({"event_type": "a"});
        called(&dispatcher, caller, "log_user_event", input).await
    });
    let status = match reply {
        CallReply::Refused(rejection) => rejection.status,
        other => panic!("{other:?}"),
    };
    let released = RELEASED.lock().unwrap().clone();
    assert_eq!(
        (status, released.contains(&"broken".to_owned())),
        (500, false)
    );
    let intents = super::count(
        &dir.path().join("ledger.db"),
        "SELECT count(*) FROM intents",
    );
    assert_eq!(intents, 0);
}

#[test]
fn a_key_that_cannot_be_kept_as_it_should_be_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let (log, mut lines) = JsonLog::new();
    let logging = tracing::subscriber::set_default(log);
    let dispatcher = dispatcher(dir.path(), catalog::offered_tools(&[]).unwrap());
    assert!(drafted(&dispatcher, "kept", "unkept", None).success);
    assert!(!drafted(&dispatcher, "full", "unreleased", None).success);
    drop(logging);
    let text = String::from_utf8(lines.take()).unwrap();
    let told: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|line| {
            line["event"].as_str().unwrap().contains("key_not")
                || line["event"] == "answer_not_kept"
        })
        .map(|line| json!([line["event"], line["call_id"], line["message"]]))
        .collect();
    assert_eq!(
        told,
        [
            json!(["answer_not_kept", "call-unkept", "the disk is full"]),
            json!([
                "key_not_released",
                "call-unreleased",
                "the database is locked by another program"
            ]),
        ]
    );
}

#[test]
fn a_refused_write_waits_for_a_locked_ledger_once() {
    let dir = tempfile::tempdir().unwrap();
    let tools = catalog::offered_tools(&[]).unwrap();
    let dispatcher = dispatcher_with(dir.path(), tools, Arc::new(Locked));
    let reply = runtime().block_on(async {
        let caller = Caller::new("http", "trace-1".into(), "t".into(), "s".into()).unwrap();
        let call = called(&dispatcher, caller, "create_draft_content", draft());
        tokio::time::timeout(Duration::from_secs(60), call).await
    });
    let CallReply::Refused(rejection) = reply.expect("it waits for the record of the refusal")
    else {
        panic!("the call was not refused")
    };
    assert_eq!(rejection.code, "audit_unavailable");
}

#[test]
fn what_a_key_repeats_is_what_was_answered() {
    let dir = tempfile::tempdir().unwrap();
    let dispatcher = dispatcher(dir.path(), catalog::offered_tools(&[]).unwrap());
    let envelope = drafted(&dispatcher, "kept", "k", None);
    let kept = String::from_utf8(KEPT.lock().unwrap().clone()).unwrap();
    assert_eq!(
        String::from_utf8(envelope.to_json().unwrap()).unwrap(),
        kept
    );
}

/// Sends one request to the routes of a dispatcher; returns status and body of the answer.
fn routed(dispatcher: Arc<Dispatcher>, path: &str, body: Value) -> (u16, Value) {
    let state = AppState::new(dispatcher, Reach::Loopback, 8000, vec![], vec![]);
    let request = axum::http::Request::post(path)
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("x-tenant-id", "t")
        .header("x-site-id", "s")
        .header("x-trace-id", "trace-1")
        .body(axum::body::Body::from(body.to_string()))
        .unwrap();
    runtime().block_on(async {
        let router = routes::router(Arc::new(state), Default::default());
        let answer = router.oneshot(request).await.unwrap();
        let status = answer.status().as_u16();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice(&body).unwrap())
    })
}

/// Returns tools that break before they run.
fn broken_tools() -> Vec<OfferedTool> {
    let mut tools = catalog::offered_tools(&[]).unwrap();
    for tool in &mut tools {
        tool.entry.from_json = |_| panic!("a bug that names $KARYI{{X}}");
    }
    tools
}

/// Calls a tool of a dispatcher over `/mcp`; returns the body of the answer.
fn called_over_mcp(
    dispatcher: Arc<Dispatcher>,
    name: &str,
    arguments: &Value,
    key: &str,
) -> String {
    let state = AppState::new(dispatcher, Reach::Loopback, 8000, vec![], vec![]);
    let state = Arc::new(state);
    let params =
        json!({"name": name, "arguments": arguments, "_meta": crate::mcp::modern(json!({}))});
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let request = axum::http::Request::post("/mcp")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", name)
        .header("idempotency-key", key)
        .body(axum::body::Body::from(message.to_string()))
        .unwrap();
    let place = karyi::mcp::http::Defaults {
        tenant: Some("t".into()),
        site: Some("s".into()),
        shell: String::new(),
    };
    runtime().block_on(async {
        let further = karyi::mcp::http::router(&state, place);
        let router = routes::router(Arc::clone(&state), further);
        let answer = router.oneshot(request).await.unwrap();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        String::from_utf8(body.to_vec()).unwrap()
    })
}

#[test]
fn over_mcp_too_a_bug_outside_of_a_tool_has_a_record() {
    let dir = tempfile::tempdir().unwrap();
    let dispatcher = dispatcher(dir.path(), broken_tools());
    let told = called_over_mcp(dispatcher, "get_site_map", &json!({}), "plain");
    assert!(told.contains("the call stopped unexpectedly"), "{told}");
    let records = super::records(dir.path());
    assert_eq!(records.len(), 1, "{records:?}");
    let facts = (&records[0]["front_end"], &records[0]["http_status"]);
    assert_eq!(facts, (&json!("mcp"), &json!(500)));
    assert!(!format!("{told}{records:?}").contains("KARYI"));
}

#[test]
fn a_bug_outside_of_a_tool_is_a_500_with_a_record() {
    let dir = tempfile::tempdir().unwrap();
    let tools = broken_tools();
    let body = json!({"tool_name": "get_site_map", "input": {}});
    let (status, problem) = routed(dispatcher(dir.path(), tools), "/api/tools/call", body);
    assert_eq!((status, &problem["error_code"]), (500, &json!("internal")));
    let records = super::records(dir.path());
    assert_eq!(records.len(), 1, "{records:?}");
    let facts = (&records[0]["http_status"], &records[0]["principal"]);
    assert_eq!(facts, (&json!(500), &json!("local")));
    assert!(!format!("{problem}{records:?}").contains("KARYI"));
}

#[test]
fn a_bug_outside_of_a_tool_has_a_record_over_mcp_too() {
    let dir = tempfile::tempdir().unwrap();
    let dispatcher = dispatcher(dir.path(), catalog::offered_tools(&[]).unwrap());
    let body = called_over_mcp(dispatcher, "create_draft_content", &draft(), "breaks");
    assert!(body.contains("\"code\":\"internal\""), "{body}");
    let records = super::records(dir.path());
    assert_eq!(records.len(), 1, "{records:?}");
    let facts = json!([
        records[0]["http_status"],
        records[0]["tool_name"],
        records[0]["front_end"]
    ]);
    assert_eq!(facts, json!([500, "create_draft_content", "mcp"]));
    assert!(!format!("{body}{records:?}").contains("KARYI"));
}

#[test]
fn a_tool_that_is_not_for_models_is_hidden_and_refused() {
    let dir = tempfile::tempdir().unwrap();
    let dispatcher_with = || {
        let mut tools = catalog::offered_tools(&[]).unwrap();
        for tool in &mut tools {
            if tool.name() == "get_site_map" {
                tool.entry.service.audience = Audience::Internal;
            }
        }
        dispatcher(dir.path(), tools)
    };
    let listed = |only: bool| {
        let body = json!({"ai_callable_only": only});
        let (status, list) = routed(dispatcher_with(), "/api/tools/list", body);
        assert_eq!(status, 200);
        let is_it = |tool: &&Value| tool["name"] == "get_site_map";
        let tools = list["tools"].as_array().unwrap();
        (
            tools.len(),
            tools
                .iter()
                .find(is_it)
                .map(|tool| tool["ai_callable"].clone()),
        )
    };
    assert_eq!(listed(true), (5, None));
    assert_eq!(listed(false), (6, Some(json!(false))));
    let body = json!({"tool_name": "get_site_map", "input": {}});
    let (status, answer) = routed(dispatcher_with(), "/api/tools/call", body);
    let facts = (status, &answer["success"], &answer["error_code"]);
    assert_eq!(facts, (200, &json!(false), &json!("PERMISSION_DENIED")));
    let record = super::records(dir.path()).pop().unwrap();
    assert_eq!(record["error_type"], "PermissionDenied");
}

#[test]
fn a_tool_that_sleeps_is_ended_at_its_deadline() {
    let (reply, time, record) = odd("search_content", json!({"query": "a"}));
    let CallReply::Fresh(envelope) = reply else {
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
        let CallReply::Refused(rejection) = reply else {
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
    let CallReply::Fresh(envelope) = reply else {
        panic!("{reply:?}")
    };
    assert_eq!(envelope.error_code.as_deref(), Some("UNAVAILABLE"));
    assert_eq!(record["error_type"], "Unavailable");
}
