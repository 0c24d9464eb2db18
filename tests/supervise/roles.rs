//! Teller, Planner and Workers together, played by the server.

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};

use jiff::Timestamp;
use karyi_tasks::condition::Condition;
use karyi_tasks::trigger::TriggerPlan;
use karyi_tasks::{inbox, question};
use serde_json::{Value, json};

use super::home::{Home, events, until};
use super::role_server::{Asked, RoleServer};
use crate::harness::wait;

const ONCE: &[&str] = &["--worker", "full", "--once", "--json"];

fn block(calls: &str) -> Option<String> {
    Some(format!("<tools>{calls}</tools>"))
}

fn say(text: &str) -> Option<String> {
    Some(text.to_owned())
}

/// A Teller that delegates each message and reports each event in its own words.
fn teller(asked: &Asked) -> Option<String> {
    if !asked.is_first() {
        return say("Done.");
    }
    let told = asked.told();
    let mut calls = String::new();
    if let Some((_, events)) = told.split_once("# Events\n\n") {
        let count = events.lines().filter(|line| line.starts_with("- ")).count();
        calls.push_str(&format!("<reply><text>{count} news</text></reply>"));
    }
    if let Some((_, messages)) = told.split_once("# Messages of the user\n\n") {
        let message = messages.lines().next().unwrap();
        let message = message.split_once(") ").unwrap().1;
        calls.push_str("<reply><text>I hand it over.</text></reply>");
        calls.push_str(&format!("<delegate><prompt>{message}</prompt></delegate>"));
    }
    block(&calls)
}

fn tell(home: &Home, text: &str) {
    inbox::add(&home.state, text, Timestamp::now()).unwrap();
}

fn of<'a>(told: &'a [Value], event: &str) -> Vec<&'a Value> {
    told.iter().filter(|one| one["event"] == event).collect()
}

/// Answers with the calls at first, and with the end later.
fn plan(asked: &Asked, calls: &str, end: &str) -> Option<String> {
    match asked.is_first() {
        true => block(calls),
        false => say(end),
    }
}

fn gate() -> (std::sync::mpsc::Sender<()>, Mutex<Receiver<()>>) {
    let (sender, receiver) = channel();
    (sender, Mutex::new(receiver))
}

#[test]
fn a_message_becomes_a_plan_whose_tasks_are_real_when_the_planner_ends_well() {
    let (open, closed) = gate();
    let server = RoleServer::start(move |asked| match asked.role() {
        "teller" => teller(asked),
        "planner" => {
            if !asked.is_first() {
                let _ = closed.lock().unwrap().recv();
            }
            let calls = "<delegate><prompt>one</prompt></delegate><delegate><prompt>two</prompt></delegate>";
            plan(asked, calls, "{\"status\":\"done\"}")
        }
        _ => say("built"),
    });
    let home = Home::new(&server, ONCE, "");
    tell(&home, "build it");
    let child = home.spawn();
    until("the plan", || server.asked("planner").len() == 2);
    // The Planner has delegated twice and runs on.
    let running = home.names("planner/running");
    assert_eq!(running.len(), 1);
    let task = home.json(&format!("planner/running/{}", running[0]));
    let expected = json!(["build it", 5, 1, null]);
    assert_eq!(
        json!([
            task["prompt"],
            task["priority"],
            task["attempts"],
            task["timeout"]
        ]),
        expected
    );
    for folder in [
        "planner/queue",
        "worker/queue",
        "worker/running",
        "worker/results",
    ] {
        assert_eq!(home.names(folder), [""; 0], "{folder}");
    }
    open.send(()).unwrap();
    let output = wait(child);
    assert_eq!(output.status.code(), Some(0));
    let told = events(&String::from_utf8(output.stdout).unwrap());
    assert_eq!(home.names("worker/results").len(), 2);
    let prompts = server.asked("worker");
    let is_told = |text: &str| {
        let told = prompts.iter().filter(|one| one.told().contains(text));
        told.count()
    };
    assert_eq!(
        [is_told("# Task\n\none\n"), is_told("# Task\n\ntwo\n")],
        [1, 1]
    );
    let replies = of(&told, "reply");
    assert_eq!(replies[0]["text"], "I hand it over.");
    assert!(replies.len() >= 2, "{told:?}");
    assert_eq!(home.names("events"), [""; 0]);
    assert_eq!(home.names("inbox"), [""; 0]);
}

#[test]
fn a_planner_that_asks_drops_its_plan_and_the_answer_reaches_the_teller() {
    let server = RoleServer::start(|asked| match asked.role() {
        "teller" if !asked.is_first() => say("Done."),
        "teller" if asked.told().contains("needs_input") => block(
            "<ask_user default=\"staging\"><question>Where to?</question>\
             <options><item>staging</item><item>production</item></options></ask_user>",
        ),
        "teller" if asked.told().contains("the answer of the user") => {
            block("<reply><text>I go on.</text></reply>")
        }
        "teller" => teller(asked),
        "planner" => plan(
            asked,
            "<delegate><prompt>one</prompt></delegate>",
            "I cannot know.\n{\"status\":\"needs_input\",\"question\":\"where?\"}",
        ),
        role => panic!("{role}"),
    });
    let home = Home::new(&server, ONCE, "");
    tell(&home, "deploy");
    let told = events(&home.run_well());
    assert_eq!(home.names("worker/queue"), [""; 0]);
    let asked = of(&told, "question");
    assert_eq!(asked.len(), 1, "{told:?}");
    assert_eq!(asked[0]["options"], json!(["staging", "production"]));
    // The session ended with the question: its results went nowhere.
    let requests = server.asked("teller");
    assert_eq!(requests.len(), 3);
    assert!(requests[2].is_first());
    let refused = question::answer(&home.state, None, "maybe", Timestamp::now()).unwrap_err();
    assert_eq!(refused.code.as_str(), "bad_arguments");
    question::answer(&home.state, None, "2", Timestamp::now()).unwrap();
    let told = events(&home.run_well());
    assert_eq!(of(&told, "reply")[0]["text"], "I go on.");
    let requests = server.asked("teller");
    assert!(
        requests[3].told().contains("> production\n"),
        "{}",
        requests[3].told()
    );
}

#[test]
fn a_last_message_that_cannot_be_read_is_asked_for_once_more() {
    let server = RoleServer::start(|asked| match (asked.role(), asked.messages.len()) {
        ("planner", 1) => say("{\"status\":\"perhaps\"}"),
        ("planner", _) => {
            assert!(asked.last().contains("cannot be read"));
            match asked.told().contains("mend") {
                true => say("{\"status\":\"done\"}"),
                false => say("{\"status\":\"never\"}"),
            }
        }
        _ => teller(asked),
    });
    let home = Home::new(&server, ONCE, "");
    tell(&home, "mend");
    home.run_well();
    let names = home.names("planner/results");
    assert_eq!(
        home.json(&format!("planner/results/{}", names[0]))["status"],
        "done"
    );
    assert_eq!(home.logged("planner_output_invalid").len(), 0);
    tell(&home, "break");
    home.run_well();
    let log = std::fs::read_to_string(home.path("log.jsonl")).unwrap();
    assert_eq!(home.logged("planner_output_invalid").len(), 2, "{log}");
    let failed = home.names("planner/results").into_iter().filter(|name| {
        let result = home.json(&format!("planner/results/{name}"));
        result["status"] == "failed" && result["task"]["attempts"] == 2
    });
    assert_eq!(failed.count(), 1);
}

#[test]
fn roles_have_their_own_tools_and_no_others() {
    let server = RoleServer::start(|asked| match (asked.role(), asked.is_first()) {
        ("teller", true) => block(
            "<search_memory query=\"x\"/><command>touch made</command><reply><text>hello</text></reply>",
        ),
        ("teller", false) => say("Done."),
        (role, _) => panic!("{role}"),
    });
    let home = Home::new(&server, ONCE, "");
    tell(&home, "hello");
    let told = events(&home.run_well());
    assert_eq!(of(&told, "reply")[0]["text"], "hello");
    let asked = server.asked("teller");
    let report = asked[1].last();
    for tool in ["search_memory", "command"] {
        let refused = format!("the role teller has no tool {tool}");
        assert!(report.contains(&refused), "{report}");
    }
    let logged = home.logged("tool_not_allowed");
    let logged: Vec<&Value> = logged.iter().map(|event| &event["tool"]).collect();
    assert_eq!(logged, [&json!("search_memory"), &json!("command")]);
    assert!(!home.karyi.work().join("made").exists());
    assert!(asked[0].system.contains("<reply>"));
    assert!(
        !asked[0].system.contains("<search_memory"),
        "{}",
        asked[0].system
    );
    assert!(
        !asked[0].system.contains("<command>"),
        "{}",
        asked[0].system
    );
}

#[test]
fn a_role_is_not_told_of_arguments_it_may_not_give() {
    let server = RoleServer::start(|asked| match asked.role() {
        "teller" => match asked.is_first() {
            true => block("<delegate><prompt>x</prompt></delegate>"),
            false => say("Done."),
        },
        _ => say("{\"status\":\"done\"}"),
    });
    let home = Home::new(&server, ONCE, "");
    tell(&home, "hello");
    home.run_well();
    let shows = |role: &str| {
        let asked = server.asked(role);
        let (_, page) = asked[0].system.split_once("<delegate>: ").unwrap();
        let (page, _) = page.split_once("<delegate>").unwrap();
        let given = [
            "prompt (",
            "type (",
            "<condition>",
            "priority (",
            "timeout (",
        ];
        given.map(|argument| page.contains(argument))
    };
    assert_eq!(shows("teller"), [true, false, false, false, true]);
    assert_eq!(shows("planner"), [true; 5]);
}

#[test]
fn messages_that_come_at_once_are_one_session_in_their_order() {
    let server = RoleServer::start(|_| say("Nothing to do."));
    let home = Home::new(&server, ONCE, "");
    let state = home.state.path();
    std::thread::scope(|scope| {
        for number in 0..50 {
            scope.spawn(move || {
                let state = karyi_tasks::state_directory::StateDirectory::open(state).unwrap();
                inbox::add(&state, &format!("message {number}."), Timestamp::now()).unwrap();
            });
        }
    });
    home.run_well();
    let asked = server.asked("teller");
    assert_eq!(asked.len(), 1);
    for number in 0..50 {
        let text = format!(") message {number}.\n");
        assert_eq!(asked[0].told().matches(&text).count(), 1, "{number}");
    }
    assert_eq!(home.names("inbox"), [""; 0]);
}

#[test]
fn all_questions_of_conditions_are_one_request_and_wake_nobody() {
    let server = RoleServer::start(|asked| match asked.role() {
        "judge" => say(
            "[{\"id\":1,\"result\":false},{\"id\":2,\"result\":true},{\"id\":3,\"result\":false}]",
        ),
        "worker" => say("done"),
        "teller" => say("Nothing to do."),
        role => panic!("{role}"),
    });
    let mut home = Home::new(&server, &["--worker", "full", "--json"], "");
    for number in 0..3 {
        let condition =
            json!({"type": "llm_eval", "params": {"prompt": format!("is it {number}?")}});
        let condition = Condition::parse(&condition).unwrap();
        home.plan("go", None, Some(TriggerPlan::Once(condition)));
    }
    let mut child = home.spawn();
    until("the task", || home.names("worker/results").len() == 1);
    let asked = server.asked("judge");
    assert_eq!(asked.len(), 1);
    assert!(asked[0].told().contains("3. is it"), "{}", asked[0].told());
    until("the report", || server.asked("teller").len() == 1);
    until("its end", || home.names("events").is_empty());
    assert_eq!(server.asked("judge").len(), 1);
    assert_eq!(server.asked("teller").len(), 1);
    assert_eq!(home.names("triggers").len(), 2);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn the_nightly_job_of_the_examples_prints_what_the_teller_says() {
    let server = RoleServer::start(|asked| match (asked.role(), asked.is_first()) {
        ("planner", _) => plan(
            asked,
            "<delegate><prompt>run the tests</prompt></delegate>",
            "{\"status\":\"done\"}",
        ),
        ("worker", true) => block("<command>echo failed: none > tested; cat tested</command>"),
        ("worker", false) => say("All tests pass."),
        _ => teller(asked),
    });
    let home = Home::new(&server, &[], "");
    let prepared = home.karyi.command();
    let own = std::path::Path::new(prepared.get_program());
    let mut command = std::process::Command::new("sh");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/nightly.sh");
    command.args([script, "Run the tests."]).env_clear();
    command.envs(
        prepared
            .get_envs()
            .filter_map(|(key, value)| Some((key, value?))),
    );
    let path = prepared.get_envs().find(|(key, _)| *key == "PATH");
    let path = path.unwrap().1.unwrap().to_str().unwrap();
    command.env(
        "PATH",
        format!("{}:{path}", own.parent().unwrap().display()),
    );
    let output = command.current_dir(home.karyi.work()).output().unwrap();
    let (told, error) = (
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    );
    assert_eq!((output.status.code(), &*error), (Some(0), ""));
    let mut lines = told.lines();
    assert!(
        lines
            .next()
            .unwrap()
            .ends_with("waits for the next `karyi supervise`"),
        "{told}"
    );
    assert_eq!(lines.next(), Some("I hand it over."));
    assert_eq!(lines.next(), Some("1 news"));
    let tested = std::fs::read_to_string(home.karyi.work().join("tested"));
    assert_eq!(tested.unwrap(), "failed: none\n");
}

#[test]
fn a_teller_that_says_nothing_has_failed_once_and_its_model_is_not_down() {
    let server = RoleServer::start(|_| say(""));
    let home = Home::new(&server, ONCE, "");
    tell(&home, "hello");
    let told = events(&home.run_well());
    let failed = of(&told, "teller_failed");
    assert_eq!(failed.len(), 1, "{told:?}");
    assert_eq!(failed[0]["message"], "the model gave an empty answer twice");
    assert_eq!(of(&told, "model_failed").len(), 0, "{told:?}");
    // It is asked for once more, as everywhere.
    assert_eq!(server.asked("teller").len(), 2);
    assert_eq!(home.names("inbox"), [""; 0]);
}

#[test]
fn a_planner_cancels_what_waits_and_not_what_runs_while_the_loop_runs() {
    let (open, closed) = gate();
    let server = RoleServer::start(move |asked| match (asked.role(), asked.is_first()) {
        ("worker", _) => {
            if asked.told().contains("\nfirst\n") {
                let _ = closed.lock().unwrap().recv();
            }
            say("worked")
        }
        ("planner", true) => {
            let (_, ids) = asked.told().split_once("cancel ").unwrap();
            let ids = ids.lines().next().unwrap().split(' ');
            let calls = ids.map(|id| format!("<cancel_task task_id=\"{id}\"/>"));
            block(&calls.collect::<String>())
        }
        ("planner", false) => say("{\"status\":\"done\"}"),
        _ => teller(asked),
    });
    let mut home = Home::new(&server, ONCE, "workers = 1\n");
    let first = home.plan("first", None, None);
    let child = home.spawn();
    until("the first task", || server.asked("worker").len() == 1);
    // The one Worker is busy.
    let second = home.plan("second", None, None);
    let third = home.plan("third", None, None);
    tell(&home, &format!("cancel {first} {second}"));
    until("the plan", || !home.logged("task_ended").is_empty());
    let cancelled = home.names("worker/cancelled");
    assert_eq!(cancelled, [format!("{second}.json")]);
    let running = home.names("worker/running");
    assert_eq!(running, [format!("{first}.json")]);
    open.send(()).unwrap();
    let output = wait(child);
    assert_eq!(output.status.code(), Some(0));
    let planner = server.asked("planner");
    let report = planner[1].last();
    let (running, cancelled) = (report.find("running"), report.find("cancelled"));
    assert!(running.is_some() && running < cancelled, "{report}");
    let mut expected = [format!("{first}.json"), format!("{third}.json")];
    expected.sort();
    assert_eq!(home.names("worker/results"), expected);
    for id in [first, third] {
        let result = home.json(&format!("worker/results/{id}.json"));
        assert_eq!(result["status"], "done");
    }
    let asked = server.asked("worker");
    assert!(!asked.iter().any(|one| one.told().contains("\nsecond\n")));
    let told = events(&String::from_utf8(output.stdout).unwrap());
    let started = of(&told, "task_started");
    assert!(!started.iter().any(|event| event["id"] == json!(second)));
}
