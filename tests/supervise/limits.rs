//! Starts that are refused, tokens of a day, models that fail.

use std::fs;
use std::process::Stdio;

use jiff::Timestamp;
use karyi_tasks::question::{self, QuestionRequest};
use karyi_tasks::task_id::TaskId;
use karyi_tasks::{inbox, spending};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::home::{Home, events, until};
use super::role_server::RoleServer;
use crate::harness::{Karyi, wait};

const ONCE: &[&str] = &["--worker", "full", "--once", "--json"];

fn quiet() -> RoleServer {
    RoleServer::start(|_| Some("Nothing to do.".to_owned()))
}

#[test]
fn a_start_that_does_not_say_what_workers_may_do_is_refused() {
    let server = quiet();
    let mut home = Home::new(&server, &["--once"], "");
    home.plan("touch made", None, None);
    let output = home.run();
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("--worker full"), "{error}");
    assert_eq!(home.names("worker/queue").len(), 1);
    // The setting says it, too.
    let config = home.karyi.work().join("../home/.config/karyi/config.toml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text + "worker = \"read-only\"\n").unwrap();
    home.run_well();
    assert_eq!(home.names("worker/queue"), [""; 0]);
}

#[test]
fn a_model_that_is_not_configured_is_named_by_its_setting() {
    let home = Home::new(
        &quiet(),
        &["--worker", "full", "--once"],
        "planner_model = 'nope'\n",
    );
    let output = home.run();
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{error}");
    let place = "config.toml:7:1: expected the name of a model";
    assert!(error.contains(place), "{error}");
}

#[test]
fn a_second_supervisor_names_the_first_one_and_changes_nothing() {
    let server = quiet();
    let home = Home::new(&server, &["--worker", "full"], "");
    let first = home.spawn();
    until("the lock", || {
        fs::read_to_string(home.path("supervisor.lock")).is_ok_and(|text| text.ends_with('\n'))
    });
    let output = home.run();
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{error}");
    let expected = format!("a supervisor works here, process {}", first.id());
    assert!(error.contains(&expected), "{error}");
    // `tell` and `tasks` say whether a supervisor runs.
    let state = home.path("");
    let tell = ["tell", "hello", "--state-dir", state.to_str().unwrap()];
    let tasks = ["tasks", "--json", "--state-dir", state.to_str().unwrap()];
    let is_running = || Karyi::with_args(&tasks).run().exit(0).json()["supervisor_running"].clone();
    let told = Karyi::with_args(&tell).run().exit(0).stdout();
    assert!(told.ends_with(" waits for the Teller\n"), "{told}");
    assert_eq!(is_running(), true);
    kill(
        Pid::from_raw(first.id().try_into().unwrap()),
        Signal::SIGTERM,
    )
    .unwrap();
    assert_eq!(wait(first).status.code(), Some(143));
    let told = Karyi::with_args(&tell).run().exit(0).stdout();
    assert!(
        told.ends_with(" waits for the next `karyi supervise`\n"),
        "{told}"
    );
    assert_eq!(is_running(), false);
}

#[test]
fn when_the_tokens_of_the_day_are_used_up_nothing_is_asked_and_everything_is_kept() {
    let server = RoleServer::start(|asked| {
        Some(match asked.role() {
            "worker" => "<tools><command>true</command></tools>".to_owned(),
            _ => "Nothing to do.".to_owned(),
        })
    });
    // An answer takes 120 tokens.
    let mut home = Home::new(&server, ONCE, "max_tokens_per_day = 300\n");
    home.plan("go on", None, None);
    inbox::add(&home.state, "hello", Timestamp::now()).unwrap();
    let output = home.run();
    assert_eq!(output.status.code(), Some(1));
    let told = events(&String::from_utf8(output.stdout).unwrap());
    let said = told.iter().filter(|one| one["event"] == "tokens_used_up");
    assert_eq!(said.count(), 1, "{told:?}");
    let asked = server.asked("worker").len() + server.asked("teller").len();
    assert!((3..=4).contains(&asked), "{asked}");
    let waiting = home.names("worker/queue");
    assert_eq!(waiting.len(), 1);
    let task = home.json(&format!("worker/queue/{}", waiting[0]));
    assert_eq!(task["attempts"], 0);
    // A new start does not begin to count again.
    assert!(spending::spent(&home.state, Timestamp::now()).unwrap() >= 300);
    assert_eq!(home.run().status.code(), Some(1));
    let again = server.asked("worker").len() + server.asked("teller").len();
    assert_eq!(again, asked);
}

#[test]
fn a_model_that_fails_costs_a_task_one_of_its_two_runs_and_the_teller_nothing() {
    let server = RoleServer::start(|_| None);
    let mut home = Home::new(&server, ONCE, "");
    let id = home.plan("go on", None, None);
    inbox::add(&home.state, "hello", Timestamp::now()).unwrap();
    let output = home.run();
    assert_eq!(output.status.code(), Some(4));
    let result = home.json(&format!("worker/results/{id}.json"));
    assert_eq!(result["status"], "failed");
    assert_eq!(result["task"]["attempts"], 2);
    assert!(
        result["error"]
            .as_str()
            .unwrap()
            .contains("refused by the test")
    );
    assert_eq!(home.names("inbox").len(), 1);
    assert_eq!(home.names("events").len(), 1);
    assert!(home.logged("model_failed").len() >= 3);
    let tasks = Karyi::with_args(&["tasks", "--state-dir", home.state.path().to_str().unwrap()]);
    let listed = tasks.run().exit(0).stdout();
    assert!(
        listed.contains("the model failed: ") && listed.contains("refused by the test"),
        "{listed}"
    );
}

#[test]
fn a_state_directory_that_is_removed_ends_the_supervisor() {
    let server = quiet();
    let mut home = Home::new(&server, &["--worker", "full", "--json"], "");
    home.plan("go on", None, None);
    let child = home.spawn();
    until("the work", || home.names("worker/results").len() == 1);
    // The supervisor may add a file meanwhile.
    until("the removal", || {
        fs::remove_dir_all(home.state.path()).is_ok()
    });
    let output = wait(child);
    assert_eq!(output.status.code(), Some(1));
    let told = events(&String::from_utf8(output.stdout).unwrap());
    // A session may still end while the supervisor stops.
    let problem = told.iter().rfind(|event| event["event"] != "teller_ended");
    let problem = problem.unwrap();
    assert_eq!(
        (&problem["event"], &problem["code"]),
        (&"problem".into(), &"not_found".into())
    );
}

#[test]
fn fifty_messages_of_as_many_processes_are_all_told_in_order() {
    let server = quiet();
    let home = Home::new(&server, ONCE, "");
    let state = home.state.path().to_str().unwrap();
    let tell = |number: usize| {
        let text = format!("message {number}.");
        let karyi = Karyi::with_args(&["tell", &text, "--state-dir", state]);
        (
            karyi.command().stdout(Stdio::null()).spawn().unwrap(),
            karyi,
        )
    };
    let children: Vec<_> = (0..50).map(tell).collect();
    for (mut child, _) in children {
        assert!(child.wait().unwrap().success());
    }
    home.run_well();
    let asked = server.asked("teller");
    assert_eq!(asked.len(), 1);
    let told = asked[0].told();
    for number in 0..50 {
        assert_eq!(told.matches(&format!(") message {number}.\n")).count(), 1);
    }
    let messages = told.split_once("# Messages of the user\n\n").unwrap().1;
    let times: Vec<&str> = messages.lines().map(|line| &line[..22]).collect();
    assert!(times.is_sorted(), "{told}");
}

#[test]
fn a_question_that_ended_while_nothing_ran_is_answered_first() {
    let server = quiet();
    let home = Home::new(&server, ONCE, "");
    let asked = "2026-01-31T10:00:00Z".parse().unwrap();
    let request = QuestionRequest::new("where?", &[], Some(1800), Some("staging")).unwrap();
    question::ask(&home.state, TaskId::derived("question", 1), request, asked).unwrap();
    inbox::add(&home.state, "and now?", Timestamp::now()).unwrap();
    let told = events(&home.run_well());
    assert_eq!(told[0]["event"], "question_ended");
    assert_eq!(told[0]["answer"], "staging");
    let asked = server.asked("teller");
    assert_eq!(asked.len(), 1);
    let (answer, message) = (
        asked[0]
            .told()
            .find("no answer in time, so the default\n> staging"),
        asked[0].told().find("and now?"),
    );
    assert!(answer.is_some() && answer < message, "{}", asked[0].told());
    assert!(!home.path("pending_question.json").exists());
}
