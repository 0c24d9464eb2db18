//! The tools of a supervisor's roles without a model, and the commands for people.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use karyi_tasks::question::{self, QuestionRequest};
use karyi_tasks::state_directory::StateDirectory;
use karyi_tasks::task_id::TaskId;
use serde_json::{Value, json};

use crate::harness::{Karyi, Ran, results};

mod session_tools;
mod state_dir;

/// A state directory, and what is done in it.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn state(&self) -> &str {
        self.0.path().to_str().unwrap()
    }

    fn names(&self, path: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(path)).unwrap();
        let mut names: Vec<String> = entries
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn json(&self, path: &str) -> Value {
        serde_json::from_slice(&fs::read(self.path(path)).unwrap()).unwrap()
    }

    /// Runs calls as a role.
    fn play(&self, role: &str, calls: &str) -> Ran {
        let script = format!("<tools>{calls}</tools>");
        let run = Karyi::new().args(&["--json", "--role", role, "--state-dir", self.state()]);
        run.stdin(script).run()
    }

    /// Result of one call.
    fn call(&self, role: &str, call: &str) -> Value {
        let report = self.play(role, call).json();
        results(&report)[0].clone()
    }

    /// Runs `karyi WORDS --state-dir DIR`.
    fn command(&self, words: &[&str]) -> Ran {
        Karyi::with_args(words)
            .args(&["--state-dir", self.state()])
            .run()
    }
}

fn code(result: &Value) -> &str {
    result["code"].as_str().unwrap_or_default()
}

#[test]
fn a_teller_hands_a_task_to_the_planner() {
    let home = Home::new();
    let result = home.call("teller", "<delegate><prompt>做事</prompt></delegate>");
    let id = result["task_id"].as_str().unwrap();
    assert_eq!(home.names("planner/queue"), [format!("{id}.json")]);
    let task = home.json(&format!("planner/queue/{id}.json"));
    let shown = [
        &task["prompt"],
        &task["priority"],
        &task["attempts"],
        &task["timeout"],
    ];
    assert_eq!(shown, [&json!("做事"), &json!(5), &json!(0), &json!(null)]);
    assert_eq!(home.names("worker/queue"), [""; 0]);
    for argument in [
        "priority=\"9\"",
        "type=\"conditional\"",
        "condition='{\"type\": \"file_exists\"}'",
    ] {
        let refused = home.call(
            "teller",
            &format!("<delegate {argument}><prompt>x</prompt></delegate>"),
        );
        assert_eq!(code(&refused), "argument_not_allowed", "{refused}");
    }
    assert_eq!(home.names("planner/queue").len(), 1);
}

#[test]
fn what_a_planner_stages_is_real_after_a_run_that_ended_well() {
    let home = Home::new();
    let two = "<delegate priority=\"9\"><prompt>one</prompt></delegate><schedule type=\"recurring\" interval=\"60\">\
               <prompt>two</prompt></schedule>";
    home.play(
        "planner",
        &format!("{two}<delegate><prompt> </prompt></delegate>"),
    )
    .exit(1);
    assert_eq!(
        (
            home.names("worker/queue").len(),
            home.names("triggers").len()
        ),
        (0, 0)
    );
    let report = home.play("planner", two).exit(0).json();
    let ids: Vec<&str> = results(&report)
        .iter()
        .map(|r| r["task_id"].as_str().unwrap())
        .collect();
    assert_eq!(home.names("worker/queue"), [format!("{}.json", ids[0])]);
    assert_eq!(home.names("triggers"), [format!("{}.json", ids[1])]);
    assert_eq!(
        home.json(&format!("worker/queue/{}.json", ids[0]))["priority"],
        9
    );
}

#[test]
fn a_plan_names_what_it_staged_in_the_same_session() {
    let home = Home::new();
    let first = home.call("planner", "<delegate><prompt>build</prompt></delegate>");
    let id = first["task_id"].as_str().unwrap();
    // Attribute and element, snake case and camel case.
    for condition in [
        format!(
            "<condition>{{\"type\": \"task_done\", \"params\": {{\"task_id\": \"{id}\"}}}}</condition>"
        ),
        format!(
            "<condition>{{\"type\":\"and\",\"params\":{{\"conditions\":[{{\"type\":\"task_failed\",\"params\":\
                 {{\"taskId\":\"{id}\"}}}}]}}}}</condition>"
        ),
        format!(
            "<condition><type>task_done</type><params><task_id>{id}</task_id></params></condition>"
        ),
    ] {
        let call =
            format!("<delegate type=\"conditional\"><prompt>deploy</prompt>{condition}</delegate>");
        let result = home.call("planner", &call);
        assert_eq!(result["status"], "ok", "{result}");
    }
    assert_eq!(home.names("triggers").len(), 3);
    let unknown = "<delegate type=\"conditional\" condition='{\"type\":\"task_done\",\"params\":{\"task_id\":\"x\"}}'>\
                   <prompt>x</prompt></delegate>";
    let refused = home.call("planner", unknown);
    assert_eq!(code(&refused), "bad_arguments");
    assert!(
        refused["message"].as_str().unwrap().contains("`condition`"),
        "{refused}"
    );
}

/// Calls of a Planner that are refused, with the argument that the message names.
const BAD_PLANS: &[(&str, &str)] = &[
    (
        "<delegate priority=\"11\"><prompt>x</prompt></delegate>",
        "priority",
    ),
    (
        "<delegate priority=\"-1\"><prompt>x</prompt></delegate>",
        "priority",
    ),
    (
        "<delegate timeout=\"0\"><prompt>x</prompt></delegate>",
        "timeout",
    ),
    (
        "<delegate timeout=\"31536000\"><prompt>x</prompt></delegate>",
        "timeout",
    ),
    (
        "<delegate type=\"conditional\"><prompt>x</prompt></delegate>",
        "condition",
    ),
    (
        "<schedule type=\"recurring\"><prompt>x</prompt></schedule>",
        "interval",
    ),
    (
        "<schedule type=\"recurring\" interval=\"0\"><prompt>x</prompt></schedule>",
        "interval",
    ),
    (
        "<schedule type=\"recurring\" interval=\"-5\"><prompt>x</prompt></schedule>",
        "interval",
    ),
    (
        "<schedule type=\"scheduled\" run_at=\"tomorrow\"><prompt>x</prompt></schedule>",
        "run_at",
    ),
    (
        "<schedule type=\"scheduled\" interval=\"5\"><prompt>x</prompt></schedule>",
        "interval",
    ),
    (
        "<schedule type=\"conditional\"><prompt>x</prompt></schedule>",
        "condition",
    ),
    ("<get_recent_history count=\"0\"/>", "count"),
    ("<get_recent_history count=\"1\" offset=\"-1\"/>", "offset"),
    (
        "<get_history_by_time after=\"2027-01-01T00:00:00Z\" before=\"2026-01-01T00:00:00Z\"/>",
        "after",
    ),
    (
        "<search_memory limit=\"0\"><query>x</query></search_memory>",
        "limit",
    ),
];

/// Calls of a Teller that are refused.
const BAD_WORDS: &[(&str, &str)] = &[
    (
        "<ask_user timeout=\"0\"><question>x</question></ask_user>",
        "timeout",
    ),
    (
        "<ask_user><question>x</question><options><item>a</item><item>a</item></options></ask_user>",
        "options",
    ),
    (
        "<remember><content>one\n[2026-01-01T00:00:00Z] two</content></remember>",
        "content",
    ),
    ("<reply><text> </text></reply>", "text"),
];

#[test]
fn bad_arguments_are_named_and_nothing_is_written() {
    let home = Home::new();
    let check = |role: &str, call: &str, field: &str| {
        let ran = home.play(role, call);
        let report = ran.raw_stdout();
        let text = String::from_utf8_lossy(report).into_owned();
        assert!(text.contains(field), "{call}: {text}");
        assert_ne!(
            ran.exit(if text.contains("\"refused\"") { 2 } else { 1 })
                .stdout(),
            ""
        );
    };
    for (call, field) in BAD_PLANS {
        check("planner", call, field);
    }
    for (call, field) in BAD_WORDS {
        check("teller", call, field);
    }
    for folder in ["planner/queue", "worker/queue", "triggers", "memory"] {
        assert_eq!(home.names(folder), [""; 0], "{folder}");
    }
    assert!(!home.path("pending_question.json").exists() && !home.path("history.jsonl").exists());
}

/// A call of each tool.
const CALLS: &[(&str, &str)] = &[
    ("delegate", "<delegate><prompt>x</prompt></delegate>"),
    ("reply", "<reply><text>x</text></reply>"),
    ("remember", "<remember><content>x</content></remember>"),
    ("get_recent_history", "<get_recent_history count=\"3\"/>"),
    (
        "get_history_by_time",
        "<get_history_by_time after=\"2026-01-01T00:00:00Z\"/>",
    ),
    (
        "search_memory",
        "<search_memory><query>x</query></search_memory>",
    ),
    ("ask_user", "<ask_user><question>x</question></ask_user>"),
    (
        "schedule",
        "<schedule type=\"recurring\" interval=\"60\"><prompt>x</prompt></schedule>",
    ),
    ("list_tasks", "<list_tasks/>"),
    ("cancel_task", "<cancel_task task_id=\"none\"/>"),
];

#[test]
fn a_role_has_its_tools_and_no_others() {
    let home = Home::new();
    let teller = [
        "delegate",
        "reply",
        "remember",
        "ask_user",
        "list_tasks",
        "cancel_task",
    ];
    let planner = [
        "delegate",
        "get_recent_history",
        "get_history_by_time",
        "search_memory",
        "schedule",
        "list_tasks",
        "cancel_task",
    ];
    for (role, own) in [("teller", &teller[..]), ("planner", &planner[..])] {
        let all: String = CALLS.iter().map(|(_, call)| *call).collect();
        let report = home.play(role, &all).exit(1).json();
        for ((tool, _), result) in CALLS.iter().zip(results(&report)) {
            let expected = if own.contains(tool) {
                ""
            } else {
                "tool_not_allowed"
            };
            assert_eq!(code(result), expected, "{role} {tool}: {result}");
        }
    }
    let log = fs::read_to_string(home.path("log.jsonl")).unwrap();
    assert_eq!(
        log.lines()
            .filter(|line| line.contains("tool_not_allowed"))
            .count(),
        4 + 3
    );
}

#[test]
fn a_role_is_of_the_session() {
    let home = Home::new();
    // A tool that karyi does not know refuses the whole message.
    home.play("teller", "<reply><text>x</text></reply><frobnicate/>")
        .exit(2);
    assert!(!home.path("history.jsonl").exists());
    // A role is of the session, never of the text.
    Karyi::with_args(&["run", "--tools", "supervisor", "-"])
        .stdin("")
        .run()
        .exit(2);
}

#[test]
fn a_planner_reads_what_the_teller_said_and_remembered() {
    let home = Home::new();
    home.play(
        "teller",
        "<reply><text>It is done.</text></reply><remember longTerm=\"true\"><content>用户偏好使用 pnpm</content></remember>\
         <remember><content>Hello, World! — deploy</content></remember>",
    )
    .exit(0);
    let history = home.call("planner", "<get_recent_history count=\"5\"/>");
    let message = history["messages"][0].as_object().unwrap();
    assert_eq!(
        message.keys().collect::<Vec<_>>(),
        ["role", "text", "created_at"]
    );
    assert_eq!(
        (&message["role"], &message["text"]),
        (&json!("assistant"), &json!("It is done."))
    );
    let hits = home.call(
        "planner",
        "<search_memory><query>pnpm 偏好</query></search_memory>",
    );
    assert_eq!(hits["hits"][0]["source"], "memory.md");
    assert_eq!(hits["hits"][0]["content"], "用户偏好使用 pnpm");
    let notes = home.names("memory");
    assert!(notes[0].ends_with("-hello-world-deploy.md"), "{notes:?}");
}

#[test]
fn a_question_is_answered_by_a_person() {
    let home = Home::new();
    let ask = "<ask_user><question>Where to?</question><options><item>staging</item><item>production</item></options>\
               </ask_user>";
    let asked = home.call("teller", ask);
    let id = asked["question_id"].as_str().unwrap();
    assert_eq!(code(&home.call("teller", ask)), "question_pending");
    let shown = home.command(&["tasks"]).exit(0).stdout();
    assert!(
        shown.contains("Where to?\n  1. staging\n  2. production"),
        "{shown}"
    );
    let refused = home.command(&["answer", "maybe"]).exit(2).stderr_text();
    assert!(refused.contains("staging, production"), "{refused}");
    home.command(&["answer", "other", "1"]).exit(1);
    home.command(&["answer", id, "2", "--json"])
        .exit(0)
        .stdout_text("{\"answer\":\"production\"}\n");
    home.command(&["answer", "2"]).exit(1);
    let event = home.json(&format!("events/{id}.json"));
    assert_eq!(
        (&event["answer"], &event["source"]),
        (&json!("production"), &json!("user"))
    );
}

#[test]
fn a_question_that_has_expired_is_shown_with_what_its_answer_will_be() {
    for (default, last) in [
        (Some("staging"), "the answer will be its default: staging"),
        (None, "it will end without an answer"),
    ] {
        let home = Home::new();
        let state = StateDirectory::open(&home.path("")).unwrap();
        let request = QuestionRequest::new("Where to?", &[], Some(60), default).unwrap();
        let asked = "2026-01-31T10:00:00Z".parse().unwrap();
        let id = TaskId::parse("q1").unwrap();
        question::ask(&state, id, request, asked).unwrap();
        let default_line = default.map_or(String::new(), |text| format!("  Default: {text}\n"));
        let expected = format!(
            "there are no tasks\nquestion q1, expired at 2026-01-31T10:01:00Z:\n  Where to?\n{default_line}{last}\n\
             no supervisor runs: `karyi supervise` starts one\n"
        );
        home.command(&["tasks"]).exit(0).stdout_text(&expected);
        let listed = home.command(&["tasks", "--json"]).exit(0).json();
        let expected = json!({
            "question_id": "q1", "question": "Where to?", "options": [], "default": default,
            "expires_at": "2026-01-31T10:01:00Z", "expired": true,
        });
        assert_eq!(listed["question"], expected);
        home.command(&["answer", "x"]).exit(1);
    }
}

#[test]
fn a_question_that_cannot_be_read_is_one_line() {
    let home = Home::new();
    home.command(&["tell", "hello"]).exit(0);
    fs::write(home.path("pending_question.json"), "{}").unwrap();
    let moved = "karyi: moved pending_question.json to corrupt: expected a record of this version: missing field \
                 `questionId` at line 1 column 2\n";
    let listed = home.command(&["tasks"]).exit(0).stderr(moved);
    let expected = "there are no tasks\n1 message waits for the Teller\n\
                    no supervisor runs: `karyi supervise` starts one\n";
    listed.stdout_text(expected);
    home.command(&["tasks"]).exit(0).stderr("");
    fs::write(home.path("pending_question.json"), "{}").unwrap();
    let told = home.command(&["answer", "x"]).exit(1).stderr_text();
    assert!(told.starts_with(moved), "{told}");
    assert_eq!(home.names("corrupt").len(), 2);
}

#[test]
fn people_list_show_cancel_and_stop() {
    let home = Home::new();
    home.play("planner", "<list_tasks/>").exit(0);
    home.command(&["tasks"])
        .exit(0)
        .stdout_text("there are no tasks\n");
    let made = home.call(
        "planner",
        "<delegate><prompt>line one\nline two</prompt></delegate>",
    );
    let id = made["task_id"].as_str().unwrap().to_owned();
    let waits = format!(
        "<delegate type=\"conditional\"><prompt>after</prompt><condition>{{\"type\": \"task_done\", \
                         \"params\": {{\"task_id\": \"{id}\"}}}}</condition></delegate>"
    );
    let trigger = home.call("planner", &waits)["task_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let listed = home.command(&["tasks", "list", "--json"]).exit(0).json();
    let ids: Vec<&Value> = listed["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|task| &task["id"])
        .collect();
    assert_eq!(ids, [&json!(id), &json!(trigger)]);
    assert_eq!(listed["question"], json!(null));
    let shown = home.command(&["tasks", "show", &id]).exit(0).stdout();
    assert!(
        shown.starts_with("in worker/queue\n") && !shown.contains('\u{1b}'),
        "{shown}"
    );
    home.command(&["tasks", "stop", &id]).exit(1);
    let cancelled = home
        .command(&["tasks", "cancel", &id, "--json"])
        .exit(0)
        .json();
    assert_eq!(
        cancelled,
        json!({"success": true, "reason": "cancelled", "dependents": [trigger]})
    );
    let listed = home.command(&["tasks", "--json"]).exit(0).json();
    assert_eq!(listed["tasks"][0]["blocked"], true);
}

#[test]
fn an_id_names_no_file_elsewhere() {
    let home = Home::new();
    home.play("planner", "<list_tasks/>").exit(0);
    home.command(&["tasks", "cancel", "none"]).exit(1);
    fs::write(home.path("victim.json"), "{}").unwrap();
    for words in [
        &["tasks", "cancel", "../../victim"][..],
        &["tasks", "show", "../victim"],
        &["tasks", "stop", "../victim"],
    ] {
        home.command(words).exit(2);
    }
    for call in [
        "<cancel_task task_id=\"../../victim\"/>",
        "<cancel_task taskId=\"../victim\"/>",
    ] {
        assert_eq!(code(&home.call("teller", call)), "bad_arguments");
    }
    assert!(home.path("victim.json").exists());
    fs::write(home.path("worker/queue/x.json"), "{").unwrap();
    let told = home.command(&["tasks"]).exit(0).stderr_text();
    assert!(
        told.contains("moved worker/queue/x.json to corrupt"),
        "{told}"
    );
}

#[test]
fn a_message_waits_in_the_inbox() {
    let home = Home::new();
    let told = home.command(&["tell", "hello", "--json"]).exit(0).json();
    let id = told["id"].as_str().unwrap();
    let item = home.json(&format!("inbox/{id}.json"));
    assert_eq!(item["text"], "hello");
    home.command(&["tell", " "]).exit(2);
    assert_eq!(home.names("inbox").len(), 1);
    assert!(Path::new(home.state()).join("inbox").is_dir());
}

#[test]
fn a_planner_takes_back_what_it_staged() {
    let home = Home::new();
    let made = home.call("planner", "<delegate><prompt>one</prompt></delegate>");
    let id = made["task_id"].as_str().unwrap();
    let result = home.call("planner", &format!("<cancel_task task_id=\"{id}\"/>"));
    assert_eq!(
        (&result["success"], &result["reason"]),
        (&json!(true), &json!("cancelled"))
    );
    assert_eq!(home.names("worker/queue"), [""; 0]);
    let listed = home.call("planner", "<list_tasks scope=\"queue\" role=\"worker\"/>");
    assert_eq!(listed["tasks"], json!([]));
}

#[test]
fn the_log_is_followed() {
    let home = Home::new();
    let refused = || {
        home.play("teller", "<get_recent_history count=\"1\"/>")
            .exit(1)
    };
    refused();
    let words = ["tasks", "tail", "--state-dir", home.state()];
    let karyi = Karyi::with_args(&words);
    let mut tail = karyi.command();
    let mut tail = tail.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(tail.stdout.take().unwrap()).lines();
    let mut next = || lines.next().unwrap().unwrap();
    let expected = "  tool_not_allowed  role=teller  tool=get_recent_history";
    assert!(next().ends_with(expected));
    refused();
    assert!(next().ends_with(expected));
    tail.kill().unwrap();
    tail.wait().unwrap();
}

#[test]
fn values_in_conditions_are_masked_before_they_are_kept() {
    let home = Home::new();
    let condition = r#"{"type":"llm_eval","params":{"prompt":"is hunter2-hunter2 gone?"}}"#;
    let call = format!(
        "<schedule type=\"conditional\"><prompt>look</prompt><condition>{condition}</condition></schedule>"
    );
    let run = Karyi::new().args(&[
        "--json",
        "--vault",
        "env",
        "--role",
        "planner",
        "--state-dir",
        home.state(),
    ]);
    let run = run.env("KARYI_VAR_TOKEN", "hunter2-hunter2");
    let ran = run.stdin(format!("<tools>{call}</tools>")).run().exit(0);
    let name = home.names("triggers").remove(0);
    let kept = fs::read_to_string(home.path("triggers").join(name)).unwrap();
    assert!(
        kept.contains("is $KARYI{TOKEN} gone?"),
        "{kept} {}",
        ran.stdout()
    );
}
