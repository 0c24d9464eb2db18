//! A clock that is set forward or back by a day: nothing is lost, and nothing happens twice.

use std::fs;

use karyi_tasks::evaluation::record_verdicts;
use karyi_tasks::history::{self, Speaker};
use karyi_tasks::question::{self, QuestionRequest};
use karyi_tasks::spending::{spend, spent};
use karyi_tasks::task_id::TaskId;
use karyi_tasks::trigger::TriggerPlan;
use serde_json::{Value, json};

use crate::harness::Home;

/// Seconds by which the clock is set.
const DAY: i64 = 24 * 3600;

fn question(text: &str) -> Value {
    json!({"type": "llm_eval", "params": {"prompt": text}})
}

/// Answers "no" to the questions of a look and returns them.
fn asked(home: &Home) -> Vec<String> {
    let asked = home.look().questions;
    let verdicts: Vec<_> = asked.iter().map(|one| (one.clone(), false)).collect();
    record_verdicts(&home.state, &home.work(), home.now, &verdicts).unwrap();
    asked.into_iter().map(|one| one.prompt).collect()
}

#[test]
fn tokens_of_a_day_are_found_again() {
    let mut home = Home::new();
    spend(&home.state, 70, home.now).unwrap();
    home.pass(DAY);
    assert_eq!(spend(&home.state, 5, home.now).unwrap(), 5);
    home.pass(-DAY);
    assert_eq!(spend(&home.state, 1, home.now).unwrap(), 71);
    home.pass(DAY);
    assert_eq!(spent(&home.state, home.now).unwrap(), 5);
}

#[test]
fn a_question_waits_its_time_and_ends_once() {
    for jump in [DAY, -DAY] {
        let mut home = Home::new();
        let request = QuestionRequest::new("where?", &[], Some(1800), Some("here")).unwrap();
        let id = TaskId::derived("question", 1);
        question::ask(&home.state, id, request, home.now).unwrap();
        home.pass(jump);
        let ended = question::expire(&home.state, home.now).unwrap();
        // Nobody can tell a clock that was set forward from one that is right.
        assert_eq!(ended.is_some(), jump > 0);
        home.pass(1799);
        assert_eq!(question::expire(&home.state, home.now).unwrap(), None);
        let open = question::pending(&home.state).unwrap();
        assert_eq!(open.is_some(), jump < 0);
        home.pass(1);
        let ended = question::expire(&home.state, home.now).unwrap();
        assert_eq!(ended.is_some(), jump < 0);
        home.pass(-jump);
        assert_eq!(question::expire(&home.state, home.now).unwrap(), None);
        assert_eq!(home.names("events").len(), 1);
        assert_eq!(history::recent(&home.state, 10, 0).unwrap().len(), 1);
    }
}

#[test]
fn a_model_is_asked_once_in_five_minutes() {
    let mut home = Home::new();
    let file = json!({"type": "file_exists", "params": {"path": "x"}});
    home.whenever(
        json!({"type": "or", "conditions": [file, question("a")]}),
        0,
    );
    home.whenever(question("b"), 0);
    assert_eq!(asked(&home).len(), 2);
    // From here on nobody asks the first question, and its time stays.
    fs::write(home.work().join("x"), "").unwrap();
    assert_eq!(asked(&home), [""; 0]);
    for jump in [-DAY, DAY] {
        home.pass(jump);
        assert_eq!(asked(&home), ["b"]);
        assert_eq!(asked(&home), [""; 0]);
        home.pass(299);
        assert_eq!(asked(&home), [""; 0]);
        home.pass(1);
        assert_eq!(asked(&home), ["b"]);
    }
}

#[test]
fn a_condition_waits_for_the_next_run_of_a_trigger() {
    // The condition is made while the clock is a day ahead, or after it was.
    for (jump, back) in [(DAY, -DAY), (-DAY, 0)] {
        let mut home = Home::new();
        let schedule = home.plan("each minute", Some(TriggerPlan::recurring(60).unwrap()));
        let run = |home: &mut Home| {
            home.pass(60);
            assert_eq!(home.fired(), 1);
            home.run_one();
        };
        run(&mut home);
        home.pass(jump);
        let condition = json!({"type": "task_done", "params": {"task_id": schedule}});
        let once = home.when(condition);
        home.pass(back);
        assert_eq!(home.look().queued, [], "a run before the condition");
        run(&mut home);
        assert_eq!(home.look().queued, [once]);
        assert_eq!(home.fired(), 0);
    }
}

#[test]
fn planned_times_stay_and_none_of_them_counts_twice() {
    let next = |home: &Home, id: &TaskId| {
        let trigger = home.json(&format!("triggers/{id}.json"));
        trigger["schedule"]["nextRunAt"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let mut home = Home::new();
    let daily = home.plan("daily", Some(TriggerPlan::recurring(DAY).unwrap()));
    let each = home.plan("each", Some(TriggerPlan::recurring(60).unwrap()));
    home.pass(DAY);
    assert_eq!(home.fired(), 2);
    assert_eq!(next(&home, &daily), "2026-02-02T10:00:00Z");
    for _ in 0..2 {
        home.run_one();
    }
    home.pass(-DAY + 30);
    // The daily one has had its time, and waits for the next; the other one goes on at its times.
    assert_eq!(home.fired(), 0);
    assert_eq!(next(&home, &daily), "2026-02-02T10:00:00Z");
    assert_eq!(next(&home, &each), "2026-01-31T10:01:00Z");
    home.pass(30);
    assert_eq!([home.fired(), home.fired()], [1, 0]);
    assert_eq!(home.run_one(), TaskId::parse(&format!("{each}-2")).unwrap());
    home.pass(2 * DAY);
    assert_eq!([home.fired(), home.fired()], [2, 0]);
    assert_eq!(next(&home, &daily), "2026-02-03T10:00:00Z");
}

#[test]
fn each_change_of_a_file_counts_once_also_in_a_cooldown() {
    for jump in [DAY, -DAY] {
        let mut home = Home::new();
        let path = home.work().join("f");
        home.whenever(json!({"type": "file_changed", "params": {"path": "f"}}), 60);
        assert_eq!(home.fired(), 0);
        fs::write(&path, "1").unwrap();
        assert_eq!([home.fired(), home.fired()], [1, 0]);
        home.pass(jump);
        fs::write(&path, "22").unwrap();
        assert_eq!([home.fired(), home.fired()], [1, 0]);
        home.pass(-jump);
        assert_eq!(home.fired(), 0);
    }
}

#[test]
fn what_is_said_is_known_by_its_place() {
    let mut home = Home::new();
    let say = |home: &Home, text: &str| {
        history::add(&home.state, Speaker::Assistant, text, home.now).unwrap();
    };
    let mut place = 0;
    for (number, jump) in [0, DAY, -DAY, -DAY, DAY].into_iter().enumerate() {
        home.pass(jump);
        let text = format!("message {number}");
        say(&home, &text);
        let (said, end) = history::since(&home.state, place).unwrap();
        let said: Vec<&str> = said.iter().map(|(_, message)| &*message.text).collect();
        assert_eq!(said, [text]);
        assert_eq!(history::since(&home.state, end).unwrap(), (vec![], end));
        place = end;
    }
    // The file goes on under another name, and half a line of a killed process is none.
    fs::rename(home.file("history.jsonl"), home.file("history-1.jsonl")).unwrap();
    fs::write(home.file("history.jsonl"), "{\"id\":\"x\",\"ro").unwrap();
    assert_eq!(history::since(&home.state, place).unwrap(), (vec![], place));
    say(&home, "after all");
    let (said, end) = history::since(&home.state, place).unwrap();
    assert_eq!(said[0].1.text, "after all");
    // A history that was removed begins again.
    fs::remove_file(home.file("history-1.jsonl")).unwrap();
    let (said, begun) = history::since(&home.state, end).unwrap();
    assert_eq!((said.len(), begun < end), (0, true));
}
