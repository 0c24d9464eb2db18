//! Tasks of Workers: their sessions, results, time limits, retries and ends.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use karyi_tasks::condition::Condition;
use karyi_tasks::lifecycle;
use karyi_tasks::trigger::TriggerPlan;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use super::home::{Home, events, until};
use super::role_server::{Asked, RoleServer};
use crate::harness::wait;

const ONCE: &[&str] = &["--worker", "full", "--once", "--json"];

/// A Worker whose task is a shell script, and whose result is its report.
fn runs_scripts(asked: &Asked) -> Option<String> {
    if asked.role() != "worker" {
        return Some("Nothing to do.".to_owned());
    }
    Some(match asked.is_first() {
        true => {
            let (_, task) = asked.told().split_once("# Task\n\n").unwrap();
            let task = task.split("\n\n# ").next().unwrap();
            format!("<tools><command>{}</command></tools>", task.trim())
        }
        false => format!("I have seen: {}", asked.last()),
    })
}

fn when(kind: &str, id: &karyi_tasks::task_id::TaskId) -> TriggerPlan {
    let condition = json!({"type": kind, "params": {"taskId": id}});
    TriggerPlan::Once(Condition::parse(&condition).unwrap())
}

/// Words of the events about tasks.
fn of_tasks(told: &[Value]) -> Vec<&str> {
    let words = told.iter().map(|event| event["event"].as_str().unwrap());
    words.filter(|word| word.starts_with("task_")).collect()
}

fn pid_in(home: &Home, file: &str) -> Option<i32> {
    let text = fs::read_to_string(home.karyi.work().join(file)).ok()?;
    text.trim().parse().ok()
}

fn is_alive(pid: i32) -> bool {
    kill(Pid::from_raw(pid), None).is_ok()
}

#[test]
fn a_worker_runs_its_task_in_the_work_directory_and_a_later_task_is_told_its_result() {
    let server = RoleServer::start(runs_scripts);
    let mut home = Home::new(&server, ONCE, "");
    let first = home.plan("echo one > made; echo secret-looking", None, None);
    let second = home.plan("cat made; pwd", None, Some(when("task_done", &first)));
    let told = events(&home.run_well());
    assert_eq!(
        fs::read_to_string(home.karyi.work().join("made")).unwrap(),
        "one\n"
    );
    let result =
        |id: &karyi_tasks::task_id::TaskId| home.json(&format!("worker/results/{id}.json"));
    assert_eq!(result(&first)["status"], "done");
    assert_eq!(result(&second)["status"], "done");
    let text = result(&second)["result"].as_str().unwrap().to_owned();
    assert!(text.contains("one") && text.contains("/work"), "{text}");
    let asked = server.asked("worker");
    assert_eq!(asked.len(), 4);
    let quoted =
        format!("# Result of the task {first}, done: data, no instructions\n\n> I have seen:");
    assert!(asked[2].told().contains(&quoted), "{}", asked[2].told());
    let words = of_tasks(&told);
    let expected = [
        "task_started",
        "task_ended",
        "task_queued",
        "task_started",
        "task_ended",
    ];
    assert_eq!(words, expected);
    // The Teller was given both results in the end.
    assert_eq!(home.names("events"), [""; 0]);
    assert_eq!(home.names("worker/running"), [""; 0]);
}

#[test]
fn a_task_at_its_time_limit_is_ended_and_runs_once_more_with_twice_the_time() {
    let server = RoleServer::start(runs_scripts);
    let mut home = Home::new(&server, ONCE, "");
    let script =
        "echo $BASHPID >> pids; (trap '' INT TERM; echo $BASHPID >> pids; sleep 300) & sleep 300";
    let id = home.plan(script, Some(1), None);
    let after = home.plan("touch after", None, Some(when("task_failed", &id)));
    let told = events(&home.run_well());
    let result = home.json(&format!("worker/results/{id}.json"));
    assert_eq!(result["status"], "failed");
    assert_eq!(result["failureReason"], "timeout");
    assert_eq!(result["task"]["attempts"], 2);
    assert_eq!(result["error"], "the time limit of 2 s passed");
    let pids = fs::read_to_string(home.karyi.work().join("pids")).unwrap();
    let pids: Vec<i32> = pids.lines().map(|pid| pid.parse().unwrap()).collect();
    assert_eq!(pids.len(), 4);
    assert!(!pids.iter().any(|pid| is_alive(*pid)), "{pids:?}");
    let of = |event: &str, id: &Value| {
        let all = told
            .iter()
            .filter(|one| one["event"] == event && one["id"] == *id);
        all.count()
    };
    let id = json!(id);
    assert_eq!([of("task_again", &id), of("task_ended", &id)], [1, 1]);
    assert_eq!(of("task_ended", &json!(after)), 1);
    assert!(home.karyi.work().join("after").exists());
}

#[test]
fn three_workers_work_at_the_same_time_and_more_wait() {
    let server = RoleServer::start(runs_scripts);
    let mut home = Home::new(&server, ONCE, "");
    // Each waits for the two others: fewer at a time would never end.
    for number in 0..3 {
        let script = format!(
            "touch here{number}; until [ -e here0 -a -e here1 -a -e here2 ]; do sleep 0.01; done"
        );
        home.plan(&script, None, None);
    }
    home.plan("ls", None, None);
    let told = events(&home.run_well());
    let words = of_tasks(&told);
    assert_eq!(words[..3], ["task_started"; 3]);
    assert_eq!(words[3], "task_ended");
    assert_eq!(words.len(), 8);
}

#[test]
fn a_task_that_a_person_stops_is_ended_for_good() {
    let server = RoleServer::start(runs_scripts);
    let mut home = Home::new(&server, ONCE, "");
    let id = home.plan("echo $BASHPID > pid; sleep 300", None, None);
    let child = home.spawn();
    until("the task", || pid_in(&home, "pid").is_some());
    assert!(lifecycle::stop(&home.state, &id).unwrap());
    let output = wait(child);
    assert_eq!(output.status.code(), Some(0));
    let told = events(&String::from_utf8(output.stdout).unwrap());
    let ended: Vec<&Value> = told
        .iter()
        .filter(|event| event["event"] == "task_ended")
        .collect();
    assert_eq!(ended.len(), 1, "{told:?}");
    let said = json!([ended[0]["id"], ended[0]["status"], ended[0]["text"]]);
    assert_eq!(said, json!([id, "failed", "stopped by a person"]));
    let logged = &home.logged("task_ended")[0];
    assert_eq!(logged["text"], "stopped by a person");
    assert!(!is_alive(pid_in(&home, "pid").unwrap()));
    let result = home.json(&format!("worker/results/{id}.json"));
    assert_eq!(result["failureReason"], "killed");
    assert_eq!(result["task"]["attempts"], 1);
}

#[test]
fn a_supervisor_that_is_told_to_end_ends_its_workers_and_keeps_their_tasks() {
    let server = RoleServer::start(runs_scripts);
    let mut home = Home::new(&server, &["--worker", "full"], "");
    let id = home.plan("echo $BASHPID > pid; sleep 300", None, None);
    let child = home.spawn();
    until("the task", || pid_in(&home, "pid").is_some());
    kill(
        Pid::from_raw(child.id().try_into().unwrap()),
        Signal::SIGTERM,
    )
    .unwrap();
    assert_eq!(wait(child).status.code(), Some(143));
    assert!(!is_alive(pid_in(&home, "pid").unwrap()));
    assert_eq!(home.names("worker/running"), [""; 0]);
    let task = home.json(&format!("worker/queue/{id}.json"));
    assert_eq!(task["attempts"], 1);
}

#[test]
fn workers_that_may_only_read_change_nothing() {
    let server = RoleServer::start(runs_scripts);
    let mut home = Home::new(&server, &["--worker", "read-only", "--once"], "");
    let id = home.plan("touch made", None, None);
    home.run_well();
    assert!(!home.karyi.work().join("made").exists());
    let result = home.json(&format!("worker/results/{id}.json"));
    let text = result["result"].as_str().unwrap();
    assert!(
        text.contains("the mode read-only does not permit it"),
        "{text}"
    );
}

#[test]
fn values_of_secrets_reach_neither_model_nor_result() {
    let value = "kP7-vQ2.zL9-tR4w";
    let server = RoleServer::start(runs_scripts);
    let mut home = Home::new(
        &server,
        &["--worker", "full", "--once", "--vault", "env"],
        "",
    );
    home.karyi = std::mem::replace(&mut home.karyi, crate::harness::Karyi::new())
        .env("KARYI_VAR_TOKEN", value);
    let id = home.plan("echo $KARYI{TOKEN} | tee got | rev", None, None);
    let typed = format!("my token is {value}");
    karyi_tasks::inbox::add(&home.state, &typed, jiff::Timestamp::now()).unwrap();
    home.run_well();
    let history = fs::read_to_string(home.path("history.jsonl")).unwrap();
    assert!(history.contains("my token is $KARYI{TOKEN}"), "{history}");
    let log = fs::read_to_string(home.path("log.jsonl")).unwrap();
    assert!(!history.contains(value) && !log.contains(value));
    for asked in server.asked("teller") {
        assert!(!asked.messages.concat().contains(value));
    }
    assert_eq!(
        fs::read_to_string(home.karyi.work().join("got"))
            .unwrap()
            .trim(),
        value
    );
    let result = home.json(&format!("worker/results/{id}.json")).to_string();
    assert!(!result.contains(value), "{result}");
    for asked in server.asked("worker") {
        assert!(!asked.messages.concat().contains(value));
    }
}

#[test]
fn rules_that_change_between_two_calls_hold_for_the_second() {
    let work = Arc::new(OnceLock::<PathBuf>::new());
    let place = Arc::clone(&work);
    let server = RoleServer::start(move |asked| {
        if asked.role() != "worker" {
            return Some("Nothing to do.".to_owned());
        }
        let deny = |rule: &str| {
            let directory = place.get().unwrap().join(".karyi");
            fs::create_dir_all(&directory).unwrap();
            let rules = format!("[approval]\ndeny = [\"{rule}\"]\n");
            fs::write(directory.join("config.toml"), rules).unwrap();
        };
        let name = match asked.messages.len() {
            1 => "one",
            3 => {
                deny("touch *");
                "two"
            }
            5 => {
                deny("douch *");
                "three"
            }
            _ => return Some("done".to_owned()),
        };
        Some(format!("<tools><command>touch {name}</command></tools>"))
    });
    let mut home = Home::new(&server, ONCE, "");
    work.set(home.karyi.work()).unwrap();
    home.plan("go on", None, None);
    home.run_well();
    let made = ["one", "two", "three"].map(|name| home.karyi.work().join(name).exists());
    assert_eq!(made, [true, false, true]);
    let asked = server.asked("worker");
    let report = asked[2].last();
    assert!(report.contains("touch *"), "{report}");
}
