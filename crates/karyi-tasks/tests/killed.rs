//! SIGKILL at random instants: nothing is lost, nothing happens twice.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::path::Path;

use jiff::Timestamp;
use karyi_tasks::condition::Condition;
use karyi_tasks::event::EventContent;
use karyi_tasks::instance_lock::InstanceLock;
use karyi_tasks::lifecycle::{Finish, claim, delegate, finish};
use karyi_tasks::question::{self, QuestionRequest};
use karyi_tasks::settle::settle;
use karyi_tasks::staged_work::PlannerSession;
use karyi_tasks::state_directory::StateDirectory;
use karyi_tasks::task::{Aging, Task, TaskRequest, TaskRole};
use karyi_tasks::task_id::TaskId;
use karyi_tasks::task_result::{Ending, FailureReason};
use karyi_tasks::trigger::TriggerPlan;
use karyi_tasks::{evaluation, teller_input};
use serde_json::json;

use crate::harness::{Home, Random, count};
use crate::processes::{child, parameters};

/// Plans that the Teller hands over.
const PLANS: u64 = 20;
/// Tasks of each plan; a trigger for each, and a scheduled task for the plan.
const TASKS: usize = 5;

/// Notes an event outside of the state directory, as a line that is whole or not there.
fn note(home: &Path, line: &str) {
    let file = fs::File::options()
        .create(true)
        .append(true)
        .open(home.join("notes"));
    file.unwrap()
        .write_all(format!("{line}\n").as_bytes())
        .unwrap();
}

/// Stages the tasks of a plan: each with a task that waits for its end, and one at a time that has passed.
fn stage(session: &mut PlannerSession, plan: &str, now: Timestamp) {
    let request = |text: String| TaskRequest::new(&text, None, None).unwrap();
    for number in 0..TASKS {
        let id = session
            .stage(request(format!("{plan} task {number}")), None, now)
            .unwrap();
        let condition = json!({"type": "or", "conditions": [
            {"type": "task_done", "params": {"task_id": id}},
            {"type": "task_failed", "params": {"task_id": id}},
        ]});
        let once = TriggerPlan::Once(Condition::parse(&condition).unwrap());
        session
            .stage(request(format!("{plan} after {number}")), Some(once), now)
            .unwrap();
    }
    let past = TriggerPlan::scheduled("2020-01-01T00:00:00Z").unwrap();
    session
        .stage(request(format!("{plan} at")), Some(past), now)
        .unwrap();
}

fn run(home: &Path, state: &StateDirectory, role: TaskRole, now: Timestamp) -> bool {
    let Some(task) = claim(state, role, Aging::Off, now).unwrap() else {
        return false;
    };
    note(home, &format!("run {} {}", task.id, task.attempts));
    let mut session = PlannerSession::new(&task.session_name());
    if role == TaskRole::Planner {
        stage(&mut session, &task.prompt, now);
    }
    // Each fifth task fails, for good or once.
    let fails = task.prompt.ends_with('4');
    let ending = match (role, fails) {
        (TaskRole::Planner, _) => Ending::Planned(task.prompt.clone(), session.into_staged()),
        (TaskRole::Worker, true) => Ending::Failed(FailureReason::Error, "no".into()),
        (TaskRole::Worker, false) => Ending::Done(task.prompt.clone()),
    };
    if finish(state, role, &task, ending, now).unwrap() == Finish::Final {
        note(home, &format!("final {}", task.id));
    }
    true
}

fn teller(home: &Path, state: &StateDirectory, now: Timestamp) -> bool {
    let input = teller_input::waiting(state).unwrap();
    let Some(session) = input.session() else {
        return false;
    };
    teller_input::begin(state, &input).unwrap();
    for (call, item) in input.inbox.iter().enumerate() {
        let id = TaskId::derived(session.as_str(), call as u64);
        delegate(
            state,
            id,
            TaskRequest::new(&item.text, None, None).unwrap(),
            now,
        )
        .unwrap();
    }
    for event in &input.events {
        let answer = match &event.content {
            EventContent::Answer { answer, .. } => answer.as_str(),
            _ => "",
        };
        note(home, &format!("event {} {answer}", event.id));
    }
    note(home, "session");
    teller_input::end(state, &input).unwrap();
    true
}

/// A supervisor without a model: works until nothing is left, with a clock that passes an hour each round.
#[test]
fn child_that_supervises() {
    let Some((home, argument)) = parameters() else {
        return;
    };
    let state = StateDirectory::open(&home.join("state")).unwrap();
    let lock = InstanceLock::take(&state).unwrap();
    let mut now: Timestamp = argument.parse().unwrap();
    settle(&state, &lock, now).unwrap();
    let mut idle = 0;
    while idle < 3 {
        now += jiff::SignedDuration::from_hours(1);
        evaluation::evaluate(&state, &home, now).unwrap();
        question::expire(&state, now).unwrap();
        let mut worked = teller(&home, &state, now);
        worked |= run(&home, &state, TaskRole::Planner, now);
        for _ in 0..3 {
            worked |= run(&home, &state, TaskRole::Worker, now);
        }
        idle = if worked { 0 } else { idle + 1 };
    }
    note(&home, "end");
}

/// Lines of the notes whose first word is `kind`, with their second word.
fn notes(home: &Home, kind: &str) -> BTreeMap<String, Vec<String>> {
    let text = fs::read_to_string(home.temp.path().join("notes")).unwrap();
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in text.lines() {
        let mut words = line.splitn(3, ' ');
        if words.next() == Some(kind) {
            let id = words.next().unwrap_or_default().to_owned();
            found
                .entry(id)
                .or_default()
                .push(words.next().unwrap_or_default().to_owned());
        }
    }
    found
}

#[test]
fn a_supervisor_that_is_killed_loses_nothing_and_doubles_nothing() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let rounds = count(2, 20);
    let kills = count(100, 100);
    let mut killed = 0;
    for round in 0..rounds {
        let mut home = Home::new();
        for number in 0..PLANS {
            home.pass(1);
            karyi_tasks::inbox::add(&home.state, &format!("plan {number}"), home.now).unwrap();
        }
        let request = QuestionRequest::new("where?", &[], Some(24 * 3600), Some("here")).unwrap();
        question::ask(
            &home.state,
            TaskId::derived("question", round as u64),
            request,
            home.now,
        )
        .unwrap();
        let mut time = home.now;
        let mut is_done = false;
        for _ in 0..kills {
            let mut child = child("killed::child_that_supervises", &home, &time.to_string());
            // The time is the point: the instant of the kill.
            std::thread::sleep(random.micros(40_000));
            child.kill().unwrap();
            is_done = child.wait().unwrap().success();
            killed += usize::from(!is_done);
            time += jiff::SignedDuration::from_hours(100);
        }
        if !is_done {
            assert!(
                child("killed::child_that_supervises", &home, &time.to_string())
                    .wait()
                    .unwrap()
                    .success()
            );
        }
        check(&home);
    }
    assert!(killed >= rounds * kills / 4, "{killed} killed");
}

/// Checks that every plan, task, trigger and question had its one end.
fn check(home: &Home) {
    for folder in ["inbox", "events", "triggers", "corrupt"] {
        assert_eq!(home.whole(folder), [""; 0], "{folder}");
    }
    assert!(!home.file("pending_question.json").exists());
    let runs = notes(home, "run");
    let events = notes(home, "event");
    let expected = usize::try_from(PLANS).unwrap();
    let mut prompts: BTreeMap<String, usize> = BTreeMap::new();
    for role in TaskRole::ALL {
        let folder = format!("{}/results", role.as_str());
        for queue in ["queue", "running"] {
            assert_eq!(home.whole(&format!("{}/{queue}", role.as_str())), [""; 0]);
        }
        for name in home.whole(&folder) {
            let id = TaskId::parse(name.strip_suffix(".json").unwrap()).unwrap();
            let result = home.state.result(role, &id).unwrap().unwrap();
            let task: &Task = &result.task;
            *prompts
                .entry(format!("{} {}", role.as_str(), task.prompt))
                .or_default() += 1;
            let attempts = runs.get(id.as_str()).map_or(0, Vec::len);
            // A run that was cut before it was noted is counted all the same.
            assert!(
                (1..=2).contains(&task.attempts) && attempts <= 2,
                "{id} ran {attempts} times"
            );
            // The Teller is given a result again only when its session was cut.
            if role == TaskRole::Worker {
                assert!(events.contains_key(id.as_str()), "{id} was not reported");
            }
        }
    }
    let text = fs::read_to_string(home.temp.path().join("notes")).unwrap();
    let mut ended = BTreeSet::new();
    for line in text.lines() {
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["final", id] => assert!(ended.insert(id), "{id} ended twice"),
            ["run", id, _] => assert!(!ended.contains(id), "{id} ran behind its end"),
            _ => {}
        }
    }
    // A Planner that was cut twice has failed, and its plan is no plan.
    let plans = home.whole("planner/results").len();
    assert_eq!(plans, expected);
    let done = |name: &String| home.json(&format!("planner/results/{name}"))["status"] == "done";
    let done = home
        .whole("planner/results")
        .iter()
        .filter(|name| done(name))
        .count();
    let tasks = prompts
        .iter()
        .filter(|(prompt, _)| prompt.starts_with("worker"))
        .count();
    assert_eq!(tasks, done * (2 * TASKS + 1), "{prompts:#?}");
    assert!(prompts.values().all(|count| *count == 1), "{prompts:#?}");
    let answers = events
        .values()
        .flatten()
        .filter(|answer| !answer.is_empty());
    let mut answers: Vec<&String> = answers.collect();
    answers.dedup();
    assert_eq!(answers, ["here"]);
}
