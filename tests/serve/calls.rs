//! What a call answers, and what the ledger keeps of it: the cases of the specification.

use serde_json::{Value, json};

use super::Server;
use crate::harness::skip;

const SEED_CURLS: &str = include_str!("curls.sh");

#[test]
fn every_curl_of_the_guide_works_as_written() {
    if std::process::Command::new("curl")
        .arg("--version")
        .output()
        .is_err()
    {
        return skip("no curl");
    }
    let server = Server::start(&[]);
    let script = SEED_CURLS.replace("localhost:8000", &format!("localhost:{}", server.port));
    let mut answers = Vec::new();
    for curl in script.split("\n\n").filter(|part| part.starts_with("curl")) {
        let quiet = curl.replacen("curl ", "curl -s --max-time 60 ", 1);
        let output = std::process::Command::new("bash")
            .args(["-c", &quiet])
            .output()
            .unwrap();
        answers.push(serde_json::from_slice::<Value>(&output.stdout).unwrap());
    }
    assert_eq!(answers.len(), 5);
    assert_eq!(answers[0]["total"], 6);
    assert!(
        answers[1..].iter().all(|answer| answer["success"] == true),
        "{answers:#?}"
    );
    assert_eq!(answers[1]["output"]["items"][0]["title"], "严氏家训十则");
    assert_eq!(
        answers[1]["audit"]["request_payload_hash"]
            .as_str()
            .unwrap()
            .len(),
        16
    );
    assert_eq!(answers[3]["output"]["status"], "draft");
    let records = server.records();
    let contexts: Vec<&Value> = records
        .iter()
        .map(|record| &record["context_trace_id"])
        .collect();
    assert_eq!(
        contexts,
        [
            &Value::Null,
            &json!("trace-001"),
            &json!("trace-002"),
            &json!("trace-003"),
            &json!("trace-004")
        ]
    );
}

#[test]
fn the_list_has_the_tools_of_a_site_and_nothing_else() {
    let server = Server::start(&[]);
    let list = |body: &str| server.post("/tools/list", &[], body).json();
    let all = list("{}");
    let names: Vec<&str> = all["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|t| t["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "get_npc_profile",
            "search_content",
            "get_site_map",
            "create_draft_content",
            "log_user_event",
            "get_prompt_active"
        ]
    );
    for tool in all["tools"].as_array().unwrap() {
        assert_eq!(tool["input_schema"]["type"], "object");
        assert!(
            tool["input_schema"]["required"].is_array()
                && tool["output_schema"]["type"] == "object"
        );
        assert_eq!(
            (
                &tool["requires_auth"],
                &tool["ai_callable"],
                &tool["version"]
            ),
            (&json!(true), &json!(true), &json!("1.0.0"))
        );
    }
    assert_eq!(
        list(r#"{"category": "npc"}"#)["tools"][0]["name"],
        "get_npc_profile"
    );
    assert_eq!(
        list(r#"{"category": "zzz"}"#),
        json!({"total": 0, "tools": []})
    );
    assert_eq!(
        list(r#"{"category": null, "ai_callable_only": false}"#)["total"],
        6
    );
    assert_eq!(server.last_record()["request_type"], "tool_list");
}

#[test]
fn a_profile_is_the_one_in_use_or_the_one_asked_for() {
    let server = Server::start(&[]);
    let output =
        server.call("get_npc_profile", &json!({"npc_id": "ancestor_yan"}))["output"].clone();
    let facts = (
        &output["version"],
        &output["active"],
        &output["max_response_length"],
        &output["must_cite_sources"],
    );
    assert_eq!(facts, (&json!(1), &json!(true), &json!(500), &json!(true)));
    assert!(output["persona"].is_object());
    let second = server.call(
        "get_npc_profile",
        &json!({"npc_id": "ancestor_yan", "version": 2}),
    );
    assert_eq!(
        (&second["output"]["version"], &second["output"]["active"]),
        (&json!(2), &json!(false))
    );
}

#[test]
fn what_is_not_found_is_an_answer_and_a_record() {
    let server = Server::start(&[]);
    let mut answer = server.call("get_npc_profile", &json!({"npc_id": "unknown_npc"}));
    let record = server.last_record();
    assert_eq!(record["call_id"], answer["audit"]["call_id"]);
    for name in ["latency_ms", "call_id"] {
        answer["audit"].as_object_mut().unwrap().shift_remove(name);
    }
    let error = "NPC profile not found: unknown_npc";
    let expected = json!({
        "success": false, "error": error, "error_type": "ValueError", "error_code": "NOT_FOUND",
        "audit": {
            "trace_id": "trace-test", "tool_name": "get_npc_profile", "status": "error",
            "error_type": "ValueError", "error_message": error, "request_payload_hash": "e04702d5960b6104"
        }
    });
    assert_eq!(answer, expected);
    let facts = (
        &record["status"],
        &record["error_type"],
        &record["error"],
        &record["request_payload_hash"],
    );
    assert_eq!(
        facts,
        (
            &json!("error"),
            &json!("ValueError"),
            &json!(error),
            &json!("e04702d5960b6104")
        )
    );
}

#[test]
fn inputs_that_do_not_fit_are_told_whole() {
    let server = Server::start(&[]);
    let check = |tool: &str, input: Value, expected: &[&str]| {
        let answer = server.call(tool, &input);
        let told: Vec<String> = answer["errors"]
            .as_array()
            .unwrap()
            .iter()
            .map(|e| e["loc"][0].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(
            (&answer["error_type"], told),
            (
                &json!("ValidationError"),
                expected.iter().map(|s| (*s).to_owned()).collect()
            )
        );
        assert_eq!(server.last_record()["error_type"], "ValidationError");
    };
    check(
        "create_draft_content",
        json!({}),
        &["content_type", "title", "body"],
    );
    let long = json!({"content_type": "story", "title": "长".repeat(501), "body": "b"});
    check("create_draft_content", long, &["title"]);
    check("search_content", json!({"query": ""}), &["query"]);
    check(
        "search_content",
        json!({"query": "a", "limit": "5"}),
        &["limit"],
    );
    check(
        "get_prompt_active",
        json!({"npc_id": "ancestor_yan", "prompt_type": "zzz"}),
        &["prompt_type"],
    );
    check(
        "get_npc_profile",
        json!({"npc_id": "a", "extra": 1}),
        &["extra"],
    );
    assert_eq!(server.drafts(), 0);
}

#[test]
fn an_unknown_tool_and_one_of_this_machine_are_the_same() {
    let server = Server::start(&[]);
    for tool in ["nope", "command", "read", "get_value"] {
        let answer = server.call(tool, &json!({}));
        assert_eq!(answer["error"], format!("Unknown tool: {tool}"));
        assert_eq!(
            (&answer["error_type"], &answer["error_code"]),
            (&json!("ValueError"), &json!("UNKNOWN_TOOL"))
        );
        assert_eq!(server.last_record()["tool_name"], *tool);
    }
}

#[test]
fn drafts_are_kept_and_not_found() {
    let server = Server::start(&[]);
    let draft = json!({"content_type": "knowledge", "title": "独一无二的标题", "body": "正文", "tags": ["传说"]});
    let answer = server
        .answer("create_draft_content", &draft, &[("X-User-ID", "user-xxx")])
        .json();
    assert_eq!(answer["output"]["status"], "draft");
    assert!(
        answer["output"]["created_at"]
            .as_str()
            .unwrap()
            .ends_with('Z')
    );
    assert_eq!(
        server.call("search_content", &json!({"query": "独一无二"}))["output"]["items"],
        json!([])
    );
    assert_eq!(
        server.call(
            "search_content",
            &json!({"query": "独一无二", "status": null})
        )["output"]["total"],
        0
    );
    let denied = server.call(
        "search_content",
        &json!({"query": "古井", "status": "draft"}),
    );
    assert_eq!(
        (&denied["error_type"], &denied["error_code"]),
        (&json!("PermissionDenied"), &json!("PERMISSION_DENIED"))
    );
    let connection = rusqlite::Connection::open(server.dir.path().join("site.db")).unwrap();
    let sql = "SELECT status, created_by FROM contents WHERE title = '独一无二的标题'";
    let row: (String, String) = connection
        .query_row(sql, (), |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap();
    assert_eq!(row, ("draft".into(), "user-xxx".into()));
    let user = server
        .records()
        .into_iter()
        .find(|record| record["tool_name"] == "create_draft_content");
    assert_eq!(user.unwrap()["user_id"], "user-xxx");
}

#[test]
fn events_keep_the_ids_of_the_request_or_their_own() {
    let server = Server::start(&[]);
    let headers = [("X-User-ID", "u1"), ("X-Session-ID", "s1")];
    let answer = server
        .answer(
            "log_user_event",
            &json!({"event_type": "page_view"}),
            &headers,
        )
        .json();
    assert!(
        answer["output"]["logged_at"]
            .as_str()
            .unwrap()
            .ends_with('Z')
    );
    let own = json!({"event_type": "chat.started", "user_id": "u2", "event_data": {"a": 1}});
    server.answer("log_user_event", &own, &headers);
    let connection = rusqlite::Connection::open(server.dir.path().join("site.db")).unwrap();
    let mut statement = connection
        .prepare("SELECT event_type, user_id, session_id, event_data FROM analytics_events ORDER BY created_at")
        .unwrap();
    let rows = statement
        .query_map((), |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
        })
        .unwrap();
    let rows: Vec<(String, String, String, String)> = rows.map(Result::unwrap).collect();
    let row = |a: &str, b: &str, c: &str, d: &str| (a.into(), b.into(), c.into(), d.into());
    assert_eq!(
        rows,
        [
            row("page_view", "u1", "s1", "{}"),
            row("chat.started", "u2", "s1", r#"{"a":1}"#)
        ]
    );
}

#[test]
fn prompts_come_from_the_registry_or_the_profile() {
    let server = Server::start(&[]);
    let prompt = |input: Value| server.call("get_prompt_active", &input)["output"].clone();
    let system = prompt(json!({"npc_id": "ancestor_yan"}));
    assert!(
        system["prompt_text"]
            .as_str()
            .unwrap()
            .starts_with("你是严氏先祖")
    );
    assert_eq!(
        (&system["prompt_type"], &system["version"]),
        (&json!("system"), &json!(1))
    );
    let metadata = json!({"name": "严氏先祖", "knowledge_domains": ["严氏家族历史", "祖训家规"], "source": "npc_profile"});
    assert_eq!(system["metadata"], metadata);
    let greeting = prompt(json!({"npc_id": "ancestor_yan", "prompt_type": "greeting"}));
    assert_eq!(
        greeting["prompt_text"],
        "后生来了？坐，听老夫讲讲严田的来历。"
    );
    let written = prompt(json!({"npc_id": "farmer_wang"}));
    assert_eq!(
        (&written["version"], &written["metadata"]["source"]),
        (&json!(3), &json!("prompt_registry"))
    );
    let fallback = prompt(json!({"npc_id": "farmer_wang", "prompt_type": "fallback"}));
    assert_eq!(fallback["metadata"]["source"], "npc_profile");
}

#[test]
fn the_map_has_points_and_on_request_routes() {
    let server = Server::start(&[]);
    let map = server.call("get_site_map", &json!({}))["output"].clone();
    assert_eq!(
        (&map["site_id"], &map["site_name"], &map["routes"]),
        (&json!("yantian-main"), &json!("严田古村"), &json!([]))
    );
    let hall = json!({
        "id": "poi-ancestral-hall", "name": "严氏祠堂", "type": "heritage",
        "location": {"lat": 29.3012, "lng": 117.7421}, "description": "明代始建的严氏宗祠，三进两天井。"
    });
    assert_eq!(
        (map["pois"].as_array().unwrap().len(), &map["pois"][0]),
        (5, &hall)
    );
    let routes = server.call(
        "get_site_map",
        &json!({"include_pois": false, "include_routes": true}),
    )["output"]
        .clone();
    assert_eq!(
        (&routes["pois"], &routes["routes"][1]["stops"]),
        (&json!([]), &json!(["poi-bridge", "poi-camphor"]))
    );
}

#[test]
fn fifty_calls_of_one_trace_have_fifty_records() {
    let server = Server::start(&[]);
    let successes: usize = std::thread::scope(|scope| {
        let calls: Vec<_> = (0..50)
            .map(|_| {
                scope.spawn(|| {
                    server.call("search_content", &json!({"query": "古井"}))["success"] == true
                })
            })
            .collect();
        calls
            .into_iter()
            .filter(|_| true)
            .map(|call| usize::from(call.join().unwrap()))
            .sum()
    });
    assert_eq!(successes, 50);
    let records = server.records();
    let ids: std::collections::HashSet<&str> = records
        .iter()
        .map(|r| r["call_id"].as_str().unwrap())
        .collect();
    assert_eq!((records.len(), ids.len()), (50, 50));
}

#[test]
fn the_answer_names_trace_and_span() {
    let server = Server::start(&[]);
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let answer = server.answer(
        "get_site_map",
        &json!({}),
        &[("X-Span-ID", "span-7"), ("traceparent", parent)],
    );
    assert_eq!(answer.header("x-trace-id").as_deref(), Some("trace-test"));
    assert_eq!(answer.header("x-span-id").as_deref(), Some("span-7"));
    let record = server.last_record();
    assert_eq!(
        (&record["w3c_trace_id"], &record["parent_span_id"]),
        (
            &json!("0af7651916cd43dd8448eb211c80319c"),
            &json!("b7ad6b7169203331")
        )
    );
    let made = server.answer("get_site_map", &json!({}), &[("traceparent", "00-bad")]);
    assert_eq!(
        (made.status, made.header("x-span-id").unwrap().len()),
        (200, 16)
    );
}

#[test]
fn a_key_repeats_an_answer_and_not_the_work() {
    let server = Server::start(&[]);
    let draft = |title: &str| json!({"content_type": "story", "title": title, "body": "b"});
    let key = [("Idempotency-Key", "key-1")];
    let first = server.answer("create_draft_content", &draft("a"), &key);
    let again = server.answer("create_draft_content", &draft("a"), &key);
    let (a, b) = (first.json(), again.json());
    assert_eq!(a["output"], b["output"]);
    assert_eq!(
        (
            first.header("idempotency-replayed"),
            again.header("idempotency-replayed")
        ),
        (None, Some("true".into()))
    );
    let third = server.answer("create_draft_content", &draft("a"), &key);
    assert_eq!(again.body, third.body);
    let other = server.answer("create_draft_content", &draft("b"), &key);
    assert_eq!(
        (other.status, &other.json()["error_code"]),
        (422, &json!("idempotency_key_reused"))
    );
    let records = server.records();
    let replayed: Vec<bool> = records.iter().map(|r| r["replayed"] == true).collect();
    assert_eq!(replayed, [false, true, true, false]);
    assert_eq!(server.drafts(), 1);
}

#[test]
fn one_key_sent_many_times_at_once_is_done_once() {
    let server = Server::start(&[]);
    let draft = json!({"content_type": "story", "title": "once", "body": "b"});
    let key = [("Idempotency-Key", "key-2")];
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let calls: Vec<_> = (0..10)
            .map(|_| scope.spawn(|| server.answer("create_draft_content", &draft, &key).status))
            .collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    assert!(
        statuses.iter().all(|status| [200, 409].contains(status)),
        "{statuses:?}"
    );
    assert_eq!(server.drafts(), 1);
}

#[test]
fn inputs_are_kept_only_when_asked_for() {
    let input = json!({"query": "古井"});
    let server = Server::start(&["--ledger-input"]);
    server.call("search_content", &input);
    assert_eq!(server.last_record()["input"], input);
    let server = Server::start(&[]);
    server.call("search_content", &input);
    assert_eq!(server.last_record()["input"], Value::Null);
}

#[test]
fn the_pages_beside_the_tools_are_there() {
    let server = Server::start(&[]);
    server.call("get_site_map", &json!({}));
    assert_eq!(server.get("/healthz").json(), json!({"status": "ok"}));
    assert_eq!(server.get("/readyz").json(), json!({"status": "ready"}));
    let metrics = server.get("/metrics");
    assert!(
        metrics
            .body
            .contains("karyi_tool_calls_total{tool=\"get_site_map\",status=\"success\"} 1")
    );
    assert!(!metrics.body.contains("yantian"));
    let description = server.get("/openapi.json").json();
    assert_eq!(description["openapi"], "3.1.0");
    let list = server.post("/api/tools/list", &[], "{}").json();
    for tool in list["tools"].as_array().unwrap() {
        let name = format!("{}_input", tool["name"].as_str().unwrap());
        assert_eq!(
            description["components"]["schemas"][name],
            tool["input_schema"]
        );
    }
    assert!(!description.to_string().contains("yantian"));
}
