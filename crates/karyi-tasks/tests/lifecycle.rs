//! Queues, claims, retries, staged work, cancellation, lists.

use std::sync::Barrier;

use karyi_core::error::ErrorCode;
use karyi_tasks::cancellation::{CancelReason, cancel, dependents};
use karyi_tasks::condition::Condition;
use karyi_tasks::event::EventContent;
use karyi_tasks::instance_lock::InstanceLock;
use karyi_tasks::lifecycle::{self, Finish, claim, delegate, finish};
use karyi_tasks::listing::{ListOptions, ListScope, TaskSummary, list};
use karyi_tasks::settle::{prune, settle};
use karyi_tasks::staged_work::{PlannerSession, StagedWork};
use karyi_tasks::state_directory::StateDirectory;
use karyi_tasks::task::{Aging, TaskRequest, TaskRole};
use karyi_tasks::task_id::TaskId;
use karyi_tasks::task_result::{Ending, FailureReason, PlannerQuestion, TaskStatus};
use karyi_tasks::teller_input;
use karyi_tasks::trigger::TriggerPlan;
use serde_json::json;

use crate::harness::{Home, count};

fn request(prompt: &str, priority: i64) -> TaskRequest {
    TaskRequest::new(prompt, Some(priority), None).unwrap()
}

#[test]
fn a_delegated_task_is_one_file() {
    let home = Home::new();
    let id = TaskId::derived("teller", 1);
    let task = TaskRequest::new("做事", None, None).unwrap();
    for _ in 0..2 {
        let again = delegate(&home.state, id.clone(), task.clone(), home.now).unwrap();
        assert_eq!(again, id);
    }
    let expected = json!({
        "id": id, "type": "oneshot", "prompt": "做事", "priority": 5,
        "createdAt": "2026-01-31T10:00:00Z", "attempts": 0, "timeout": null,
    });
    assert_eq!(home.names("planner/queue"), [format!("{id}.json")]);
    assert_eq!(home.json(&format!("planner/queue/{id}.json")), expected);
    assert_eq!(home.names("worker/queue"), [""; 0]);
}

#[test]
fn what_a_planner_stages_is_real_when_it_ends_well() {
    let ask = PlannerQuestion {
        question: "where?".into(),
        options: vec![],
        default: None,
    };
    let failed = Ending::Failed(FailureReason::Error, "no".into());
    for (ending, expected) in [
        (Ending::Done(String::new()), 2),
        (Ending::NeedsInput(ask), 0),
        (failed, 0),
    ] {
        let home = Home::new();
        delegate(
            &home.state,
            TaskId::derived("t", 1),
            request("plan", 5),
            home.now,
        )
        .unwrap();
        let task = claim(&home.state, TaskRole::Planner, Aging::Off, home.now)
            .unwrap()
            .unwrap();
        let mut session = PlannerSession::new(&task.session_name());
        let mut ids: Vec<String> = (0..2)
            .map(|n| {
                session
                    .stage(request(&format!("step {n}"), 5), None, home.now)
                    .unwrap()
            })
            .map(|id| format!("{id}.json"))
            .collect();
        ids.sort();
        let dropped = session
            .stage(request("dropped", 5), None, home.now)
            .unwrap();
        assert!(session.cancel(&dropped) && !session.cancel(&dropped));
        let ending = match ending {
            Ending::Done(text) => Ending::Planned(text, session.into_staged()),
            ending => ending,
        };
        assert_eq!(home.names("worker/queue"), [""; 0]);
        finish(&home.state, TaskRole::Planner, &task, ending, home.now).unwrap();
        assert_eq!(home.names("worker/queue"), &ids[..expected]);
    }
}

#[test]
fn a_plan_has_at_most_200_tasks() {
    let home = Home::new();
    let mut session = PlannerSession::new("s");
    let made = (0..10_000)
        .filter(|_| session.stage(request("x", 5), None, home.now).is_ok())
        .count();
    assert_eq!(made, 200);
}

#[test]
fn a_task_that_times_out_runs_once_more_with_twice_the_time() {
    let mut home = Home::new();
    let id = home.request(TaskRequest::new("sleep", None, Some(1)).unwrap(), None);
    let waits = home.whenever(json!({"type": "task_failed", "params": {"task_id": id}}), 0);
    let first = home.claim().unwrap();
    assert_eq!((first.attempts, first.timeout), (1, Some(1)));
    let again = home.finish(&first, Ending::TimedOut(1));
    assert_eq!(
        again,
        Finish::Again("2026-01-31T10:01:00Z".parse().unwrap())
    );
    assert_eq!((home.fired(), home.claim()), (0, None));
    assert_eq!(home.names("events"), [""; 0]);
    home.pass(59);
    assert_eq!(home.claim(), None);
    home.pass(1);
    let second = home.claim().unwrap();
    assert_eq!((second.attempts, second.timeout), (2, Some(2)));
    home.pass(2);
    assert_eq!(home.finish(&second, Ending::TimedOut(2)), Finish::Final);
    let result = home.state.result(TaskRole::Worker, &id).unwrap().unwrap();
    assert_eq!(result.status, TaskStatus::Failed);
    assert_eq!(result.failure_reason, Some(FailureReason::Timeout));
    assert_eq!(home.names("events"), [format!("{id}.json")]);
    assert_eq!([home.fired(), home.fired(), home.fired()], [1, 0, 0]);
    assert_eq!(home.claim().unwrap().origin.unwrap().trigger_id, waits);
    assert_eq!(home.claim(), None);
}

#[test]
fn the_order_is_priority_then_question_then_age() {
    let mut home = Home::new();
    let mut expected = Vec::new();
    let add = |home: &mut Home, name: &str, priority| {
        home.pass(1);
        home.request(request(name, priority), None);
    };
    for (name, priority) in [("3", 3), ("9", 9), ("5 old", 5), ("5 new", 5)] {
        add(&mut home, name, priority);
    }
    let question = json!({"type": "llm_eval", "params": {"prompt": "now?"}});
    home.when(question);
    let asked = home.look().questions;
    let verdicts: Vec<_> = asked.into_iter().map(|question| (question, true)).collect();
    let work = home.work();
    karyi_tasks::evaluation::record_verdicts(&home.state, &work, home.now, &verdicts).unwrap();
    let listed = list(
        &home.state,
        ListOptions {
            scope: ListScope::Queue,
            ..ListOptions::default()
        },
        home.now,
    );
    let listed: Vec<String> = listed
        .unwrap()
        .into_iter()
        .map(|task| task.prompt)
        .collect();
    while let Some(task) = home.claim() {
        expected.push(task.prompt);
    }
    assert_eq!(expected, ["9", "when", "5 old", "5 new", "3"]);
    assert_eq!(listed, expected);
}

#[test]
fn waiting_raises_the_priority_where_aging_is_on() {
    let mut home = Home::new();
    home.request(request("old", 5), None);
    home.pass(600);
    home.request(request("new", 9), None);
    let first = claim(&home.state, TaskRole::Worker, Aging::On, home.now)
        .unwrap()
        .unwrap();
    assert_eq!(first.prompt, "old");
}

#[test]
fn either_a_cancellation_or_a_claim_succeeds() {
    let mut home = Home::new();
    let other = StateDirectory::open(home.state.path()).unwrap();
    for number in 0..count(300, 1000) {
        let id = home.plan(&format!("task {number}"), None);
        let barrier = Barrier::new(2);
        let (reason, claimed) = std::thread::scope(|scope| {
            let cancelled = scope.spawn(|| {
                barrier.wait();
                cancel(&other, &id).unwrap()
            });
            barrier.wait();
            let claimed = home.claim();
            if let Some(task) = &claimed {
                home.finish(task, Ending::Done("done".into()));
            }
            (cancelled.join().unwrap(), claimed)
        });
        let has_result = home.file(&format!("worker/results/{id}.json")).exists();
        assert_eq!(reason == CancelReason::Cancelled, !has_result, "{reason:?}");
        assert_eq!(claimed.is_some(), has_result);
    }
}

#[test]
fn only_what_does_not_run_is_cancelled() {
    let mut home = Home::new();
    let id = home.plan("one", None);
    let waits = home.when(json!({"type": "task_done", "params": {"task_id": id}}));
    assert_eq!(dependents(&home.state, &id).unwrap(), [waits.clone()]);
    let task = home.claim().unwrap();
    assert_eq!(cancel(&home.state, &id).unwrap(), CancelReason::Running);
    home.finish(&task, Ending::Done("x".into()));
    assert_eq!(cancel(&home.state, &id).unwrap(), CancelReason::Finished);
    assert_eq!(
        cancel(&home.state, &waits).unwrap(),
        CancelReason::Cancelled
    );
    assert_eq!(home.fired(), 0);
    assert_eq!(
        cancel(&home.state, &TaskId::parse("none").unwrap()).unwrap(),
        CancelReason::NotFound
    );
    let second = home.plan("two", None);
    assert_eq!(
        cancel(&home.state, &second).unwrap(),
        CancelReason::Cancelled
    );
    assert_eq!(home.claim(), None);
    assert!(
        home.state
            .result(TaskRole::Worker, &second)
            .unwrap()
            .is_none()
    );
}

#[test]
fn a_condition_waits_for_tasks_that_are_there() {
    let mut home = Home::new();
    let check = |home: &Home, id: &TaskId, staged: &StagedWork| {
        let condition = json!({"type": "task_done", "params": {"task_id": id}});
        let condition = Condition::parse(&condition).unwrap();
        home.state
            .check_waits(&condition, staged)
            .map_err(|error| error.code)
    };
    let empty = StagedWork::default();
    let id = home.plan("one", None);
    assert_eq!(check(&home, &id, &empty), Ok(()));
    cancel(&home.state, &id).unwrap();
    assert_eq!(check(&home, &id, &empty), Err(ErrorCode::BadArguments));
    let mut session = PlannerSession::new("x");
    let staged = session.stage(request("staged", 5), None, home.now).unwrap();
    assert_eq!(check(&home, &staged, session.staged()), Ok(()));
    assert_eq!(check(&home, &staged, &empty), Err(ErrorCode::BadArguments));
}

#[test]
fn a_list_has_short_prompts_and_says_what_is_blocked() {
    let mut home = Home::new();
    let cancelled = home.plan("cancelled", None);
    let long = home.plan(&"长".repeat(500), None);
    home.plan("runs", None);
    let blocked = home.when(json!({"type": "and", "conditions": [
        {"type": "task_done", "params": {"task_id": cancelled}},
        {"type": "file_exists", "params": {"path": "x"}},
    ]}));
    let open = home.when(json!({"type": "or", "conditions": [
        {"type": "task_done", "params": {"task_id": cancelled}},
        {"type": "task_done", "params": {"task_id": long}},
    ]}));
    let late = home.plan(
        "late",
        Some(TriggerPlan::scheduled("2026-02-02T00:00:00Z").unwrap()),
    );
    let soon = home.plan("soon", Some(TriggerPlan::recurring(60).unwrap()));
    cancel(&home.state, &cancelled).unwrap();
    std::fs::write(home.file("worker/queue/x.json"), "{").unwrap();
    let running = home.claim().unwrap();
    let shown = |scope, role| {
        let options = ListOptions {
            scope,
            role,
            aging: Aging::Off,
        };
        list(&home.state, options, home.now).unwrap()
    };
    let all = shown(ListScope::All, None);
    let lines: Vec<_> = all
        .iter()
        .map(|task| (&task.id, task.status, task.blocked))
        .collect();
    let queued = &all.iter().find(|task| task.status == "queued").unwrap().id;
    let mut conditional = [(&blocked, "trigger", true), (&open, "trigger", false)];
    conditional.sort_by_key(|(id, _, _)| *id);
    assert_eq!(
        lines,
        [
            (&running.id, "running", false),
            (queued, "queued", false),
            (&soon, "trigger", false),
            (&late, "trigger", false),
            conditional[0],
            conditional[1],
        ]
    );
    let is_short = |task: &TaskSummary| task.prompt.chars().count() <= 100;
    assert!(all.iter().all(is_short) && all.iter().any(|task| task.prompt.ends_with('…')));
    assert_eq!(shown(ListScope::Queue, Some(TaskRole::Planner)), []);
    assert_eq!(shown(ListScope::Triggers, Some(TaskRole::Worker)).len(), 4);
    let broken = home.state.set_broken_aside().unwrap();
    assert_eq!((broken.len(), &*broken[0].path), (1, "worker/queue/x.json"));
    assert_eq!(home.names("corrupt"), ["worker-queue-x.json"]);
}

#[test]
fn an_interruption_counts_as_a_failure() {
    let mut home = Home::new();
    let id = home.plan("cut", None);
    let lock = InstanceLock::take(&home.state).unwrap();
    for attempt in 1..=2 {
        assert_eq!(home.claim().unwrap().attempts, attempt);
        let settled = settle(&home.state, &lock, home.now).unwrap();
        assert_eq!(settled.interrupted, [id.clone()]);
        home.pass(60);
    }
    assert_eq!(home.claim(), None);
    let result = home.state.result(TaskRole::Worker, &id).unwrap().unwrap();
    assert_eq!(result.failure_reason, Some(FailureReason::Interrupted));
    assert_eq!(home.names("events").len(), 1);
}

#[test]
fn a_result_that_is_there_wins_over_an_interruption() {
    let mut home = Home::new();
    let id = home.plan("good", None);
    let lock = InstanceLock::take(&home.state).unwrap();
    let task = home.claim().unwrap();
    let path = home.file(&format!("worker/running/{id}.json"));
    let running = std::fs::read(&path).unwrap();
    home.finish(&task, Ending::Done("good".into()));
    // As if the process had been killed behind the result.
    std::fs::write(&path, running).unwrap();
    std::fs::remove_file(home.file(&format!("events/{id}.json"))).unwrap();
    let settled = settle(&home.state, &lock, home.now).unwrap();
    assert_eq!(
        (settled.applied, settled.interrupted),
        (vec![id.clone()], vec![])
    );
    let result = home.state.result(TaskRole::Worker, &id).unwrap().unwrap();
    assert_eq!(result.result.as_deref(), Some("good"));
    assert_eq!(home.names("events"), [format!("{id}.json")]);
}

#[test]
fn a_stopped_task_fails_at_once_and_for_good() {
    let mut home = Home::new();
    let id = home.plan("endless", None);
    assert!(!lifecycle::stop(&home.state, &id).unwrap());
    let task = home.claim().unwrap();
    assert!(lifecycle::stop(&home.state, &id).unwrap());
    assert!(lifecycle::is_stopped(&home.state, TaskRole::Worker, &id).unwrap());
    let killed = Ending::Failed(FailureReason::Error, "signal".into());
    assert_eq!(home.finish(&task, killed), Finish::Final);
    let result = home.state.result(TaskRole::Worker, &id).unwrap().unwrap();
    assert_eq!(result.failure_reason, Some(FailureReason::Killed));
    assert_eq!(home.names("worker/running"), [""; 0]);
}

#[test]
fn one_supervisor_has_a_directory() {
    let home = Home::new();
    let lock = InstanceLock::take(&home.state).unwrap();
    let error = InstanceLock::take(&home.state).unwrap_err();
    assert_eq!(error.code, ErrorCode::SupervisorRunning);
    assert!(
        error.message.contains(&std::process::id().to_string()),
        "{error}"
    );
    drop(lock);
    InstanceLock::take(&home.state).unwrap();
}

#[test]
fn old_results_go_unless_a_trigger_names_them() {
    let mut home = Home::new();
    let named = home.plan("named", None);
    let other = home.plan("other", None);
    home.run_one();
    home.run_one();
    home.whenever(
        json!({"type": "and", "conditions": [
            {"type": "task_done", "params": {"task_id": named}},
            {"type": "file_exists", "params": {"path": "never"}},
        ]}),
        0,
    );
    let prunes = |home: &Home| prune(&home.state, home.now).unwrap();
    home.pass(30 * 24 * 3600);
    assert_eq!(prunes(&home), 0);
    home.pass(1);
    // The other result, and that of the session that planned each of the three.
    assert_eq!(prunes(&home), 1 + 3);
    assert!(
        home.state
            .result(TaskRole::Worker, &named)
            .unwrap()
            .is_some()
    );
    assert!(
        home.state
            .result(TaskRole::Worker, &other)
            .unwrap()
            .is_none()
    );
}

#[test]
fn arguments_are_checked_before_anything_is_written() {
    let check = |prompt: &str, priority, timeout, field: &str| {
        let error = TaskRequest::new(prompt, priority, timeout).unwrap_err();
        assert_eq!(error.code, ErrorCode::BadArguments);
        assert!(error.message.starts_with(&format!("`{field}`")), "{error}");
    };
    check("", None, None, "prompt");
    check(" \n\t", None, None, "prompt");
    check(&"x".repeat(1 << 20), None, None, "prompt");
    for priority in [11, -1, i64::MIN] {
        check("x", Some(priority), None, "priority");
    }
    for timeout in [0, -1, 365 * 24 * 3600] {
        check("x", None, Some(timeout), "timeout");
    }
    for cooldown in [-1, i64::MAX] {
        let condition = Condition::FileExists("x".into());
        assert!(TriggerPlan::conditional(condition, cooldown).is_err());
    }
}

#[test]
fn an_event_waits_until_its_task_has_left() {
    let mut home = Home::new();
    let id = home.plan("one", None);
    let task = home.claim().unwrap();
    let path = home.file(&format!("worker/running/{id}.json"));
    let running = std::fs::read(&path).unwrap();
    home.finish(&task, Ending::Done("result".into()));
    std::fs::write(&path, running).unwrap();
    assert_eq!(teller_input::waiting(&home.state).unwrap().events, []);
    lifecycle::apply_results(&home.state).unwrap();
    let events = teller_input::waiting(&home.state).unwrap().events;
    let expected = EventContent::TaskResult {
        prompt: "one".into(),
        status: TaskStatus::Done,
        text: "result".into(),
    };
    assert_eq!(
        events
            .into_iter()
            .map(|event| event.content)
            .collect::<Vec<_>>(),
        [expected]
    );
}
