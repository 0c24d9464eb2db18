//! When triggers make their tasks, and how often.

use std::fs;
use std::time::{Duration, UNIX_EPOCH};

use karyi_tasks::evaluation::{ConditionQuestion, record_verdicts};
use karyi_tasks::event::EventContent;
use karyi_tasks::task_id::TaskId;
use karyi_tasks::task_result::{Ending, FailureReason};
use karyi_tasks::teller_input;
use karyi_tasks::trigger::TriggerPlan;
use serde_json::{Value, json};

use crate::harness::Home;

fn done(id: &TaskId) -> Value {
    json!({"type": "task_done", "params": {"task_id": id}})
}

fn failed(id: &TaskId) -> Value {
    json!({"type": "task_failed", "params": {"task_id": id}})
}

fn file(kind: &str, path: &str) -> Value {
    json!({"type": kind, "params": {"path": path}})
}

fn both(kind: &str, one: Value, other: Value) -> Value {
    json!({"type": kind, "conditions": [one, other]})
}

#[test]
fn two_tasks_fire_once_in_each_order() {
    for kind in ["and", "or"] {
        for is_once in [true, false] {
            // Number of tasks that ended before the trigger was made.
            for before in 0..=2 {
                let mut home = Home::new();
                let (a, b) = (home.plan("a", None), home.plan("b", None));
                for _ in 0..before {
                    home.run_one();
                }
                let condition = both(kind, done(&a), done(&b));
                match is_once {
                    true => home.when(condition),
                    false => home.whenever(condition, 0),
                };
                let mut fired = home.fired() + home.fired();
                assert_eq!(
                    fired,
                    usize::from(before == 2 || (before == 1 && kind == "or"))
                );
                // The tasks that the trigger made are not of interest.
                let mut ended = before;
                while ended < 2 {
                    let id = home.run_one();
                    ended += usize::from(id == a || id == b);
                    home.pass(1);
                    fired += home.fired() + home.fired();
                }
                assert_eq!(fired, 1, "{kind} {before} {is_once}");
                home.pass(1000);
                assert_eq!(home.fired(), 0);
            }
        }
    }
}

#[test]
fn a_chain_waits_for_the_task_that_a_condition_makes() {
    let mut home = Home::new();
    let a = home.plan("a", None);
    let b = home.when(done(&a));
    let c = home.when(done(&b));
    assert_eq!(home.fired(), 0);
    assert_eq!(home.run_one(), a);
    assert_eq!(home.look().queued, [b.clone()]);
    assert_eq!(home.fired(), 0);
    let task = home.claim().unwrap();
    assert_eq!(task.id, b);
    assert_eq!(task.origin.as_ref().unwrap().upstream, [a]);
    home.finish(&task, Ending::Done("b".into()));
    assert_eq!(home.look().queued, [c]);
    assert_eq!(home.fired(), 0);
    assert_eq!(home.names("triggers"), [""; 0]);
}

#[test]
fn a_task_that_failed_is_not_done() {
    let mut home = Home::new();
    let a = home.plan("a", None);
    home.when(done(&a));
    let on_failure = home.when(failed(&a));
    for _ in 0..2 {
        let task = home.claim().unwrap();
        assert_eq!(home.fired(), 0);
        home.finish(&task, Ending::Failed(FailureReason::Error, "no".into()));
        home.pass(60);
    }
    assert_eq!(home.look().queued, [on_failure]);
}

#[test]
fn a_file_that_appears_fires_and_again_after_it_was_gone() {
    let mut home = Home::new();
    home.whenever(file("file_exists", "x"), 0);
    let path = home.work().join("x");
    assert_eq!(home.fired(), 0);
    for _ in 0..2 {
        fs::write(&path, "").unwrap();
        let fired: Vec<usize> = (0..5).map(|_| home.fired()).collect();
        assert_eq!(fired, [1, 0, 0, 0, 0]);
        fs::remove_file(&path).unwrap();
        assert_eq!(home.fired(), 0);
    }
}

#[test]
fn a_file_is_a_regular_file_and_links_stay_in_the_work_directory() {
    let mut home = Home::new();
    let (work, outside) = (home.work(), home.temp.path().join("outside"));
    for directory in [&work.join("inside"), &work.join("d/only"), &outside] {
        fs::create_dir_all(directory).unwrap();
    }
    fs::write(work.join("inside/f"), "").unwrap();
    fs::write(outside.join("f"), "").unwrap();
    let link = |target: &std::path::Path, name: &str| {
        std::os::unix::fs::symlink(target, work.join(name)).unwrap();
    };
    link(&work.join("inside/f"), "good");
    link(&outside.join("f"), "bad");
    link(&work.join("inside"), "way");
    link(&outside, "out");
    link(&work.join("none"), "dangling");
    nix::unistd::mkfifo(&work.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let absolute = outside.join("f");
    let cases = [
        ("inside/f", 1),
        ("good", 1),
        ("way/f", 1),
        ("../outside/f", 1),
        (absolute.to_str().unwrap(), 1),
        ("inside/?", 1),
        ("bad", 0),
        ("out/f", 0),
        ("out/*", 0),
        ("goo?", 0),
        ("inside", 0),
        ("inside/", 0),
        ("d/*", 0),
        ("pipe", 0),
        ("dangling", 0),
        ("none", 0),
    ];
    for (path, expected) in cases {
        home.when(file("file_exists", path));
        assert_eq!(home.fired(), expected, "{path}");
    }
    // A change outside is none.
    home.whenever(file("file_changed", "bad"), 0);
    home.whenever(file("file_changed", "good"), 0);
    assert_eq!(home.fired(), 0);
    fs::write(outside.join("f"), "other").unwrap();
    assert_eq!(home.fired(), 0);
    fs::write(work.join("inside/f"), "other").unwrap();
    assert_eq!(home.fired(), 1);
}

#[test]
fn each_change_of_a_watched_file_fires_once() {
    let mut home = Home::new();
    let (a, b) = (home.work().join("a"), home.work().join("b"));
    fs::write(&a, "1").unwrap();
    fs::write(&b, "1").unwrap();
    home.whenever(
        both("or", file("file_changed", "a"), file("file_changed", "b")),
        0,
    );
    assert_eq!(home.fired(), 0);
    let age = |path, seconds| {
        let file = fs::File::options().write(true).open(path).unwrap();
        file.set_modified(UNIX_EPOCH + Duration::from_secs(seconds))
            .unwrap();
    };
    let changes: [&dyn Fn(); 5] = [
        &|| fs::write(&a, "22").unwrap(),
        &|| age(&b, 1000),
        &|| age(&a, 10),
        &|| fs::remove_file(&b).unwrap(),
        &|| fs::write(&b, "1").unwrap(),
    ];
    for change in changes {
        change();
        assert_eq!([home.fired(), home.fired(), home.fired()], [1, 0, 0]);
    }
}

#[test]
fn a_change_during_the_cooldown_waits_for_its_end() {
    let mut home = Home::new();
    let path = home.work().join("f");
    fs::write(&path, "").unwrap();
    home.whenever(file("file_changed", "f"), 60);
    assert_eq!(home.fired(), 0);
    fs::write(&path, "1").unwrap();
    assert_eq!(home.fired(), 1);
    for text in ["22", "333"] {
        home.pass(10);
        fs::write(&path, text).unwrap();
        assert_eq!(home.fired(), 0);
    }
    home.pass(39);
    assert_eq!(home.fired(), 0);
    home.pass(1);
    assert_eq!([home.fired(), home.fired()], [1, 0]);
    // An edge counts also when the file is gone at the end.
    let mut home = Home::new();
    let path = home.work().join("f");
    home.whenever(file("file_exists", "f"), 60);
    for expected in [1, 0] {
        fs::write(&path, "").unwrap();
        assert_eq!(home.fired(), expected);
        fs::remove_file(&path).unwrap();
        assert_eq!(home.fired(), 0);
    }
    home.pass(60);
    assert_eq!([home.fired(), home.fired()], [1, 0]);
}

#[test]
fn a_recurring_trigger_catches_nothing_up() {
    let mut home = Home::new();
    let id = home.plan("again", Some(TriggerPlan::recurring(60).unwrap()));
    assert_eq!(home.fired(), 0);
    home.pass(605);
    assert_eq!([home.fired(), home.fired()], [1, 0]);
    let trigger = home.json(&format!("triggers/{id}.json"));
    assert_eq!(trigger["schedule"]["nextRunAt"], "2026-01-31T10:11:00Z");
    // The last run still waits, so the next one would be the same work.
    home.pass(60);
    assert_eq!(home.fired(), 0);
    home.run_one();
    home.pass(60);
    assert_eq!(home.fired(), 1);
    // A clock that jumps back a day.
    home.run_one();
    home.pass(-24 * 3600);
    assert_eq!(home.fired(), 0);
    home.pass(60);
    assert_eq!(home.fired(), 1);
}

#[test]
fn a_scheduled_task_runs_once_even_if_late() {
    let mut home = Home::new();
    home.plan(
        "at",
        Some(TriggerPlan::scheduled("2026-01-31T18:00:10+08:00").unwrap()),
    );
    home.plan(
        "late",
        Some(TriggerPlan::scheduled("2025-01-01T00:00:00Z").unwrap()),
    );
    assert_eq!([home.fired(), home.fired()], [1, 0]);
    home.pass(10);
    assert_eq!([home.fired(), home.fired()], [1, 0]);
    assert_eq!(home.names("triggers"), [""; 0]);
}

#[test]
fn waiting_for_a_schedule_is_waiting_for_its_next_finished_run() {
    let mut home = Home::new();
    let schedule = home.plan("each minute", Some(TriggerPlan::recurring(60).unwrap()));
    let run = |home: &mut Home| {
        home.pass(60);
        assert_eq!(home.fired(), 1);
        home.pass(1);
        home.run_one()
    };
    run(&mut home);
    home.pass(1);
    let once = home.when(done(&schedule));
    let each = home.whenever(done(&schedule), 0);
    assert_eq!(home.fired(), 0, "a run before the condition does not count");
    run(&mut home);
    let queued = home.look().queued;
    assert_eq!(queued.len(), 2);
    assert!(
        queued.contains(&once)
            && queued
                .iter()
                .any(|id| id.as_str().starts_with(each.as_str()))
    );
    assert_eq!(home.fired(), 0);
    home.run_one();
    home.run_one();
    run(&mut home);
    assert_eq!([home.fired(), home.fired()], [1, 0]);
}

#[test]
fn three_questions_are_asked_at_once_and_five_minutes_apart() {
    let mut home = Home::new();
    let question = |text: &str| json!({"type": "llm_eval", "params": {"prompt": text}});
    let ids = ["a", "b", "c"].map(|text| home.whenever(question(text), 0));
    // Not asked: the other part decides.
    home.whenever(both("and", file("file_exists", "none"), question("d")), 0);
    home.whenever(
        both(
            "or",
            file("file_changed", "none"),
            file("file_exists", "none"),
        ),
        0,
    );
    let asked = home.look().questions;
    let mut prompts: Vec<&str> = asked.iter().map(|question| &*question.prompt).collect();
    prompts.sort_unstable();
    assert_eq!(prompts, ["a", "b", "c"]);
    assert_eq!(home.look().questions, []);
    let answer = |home: &Home, asked: &[ConditionQuestion], no: &str| {
        let verdicts: Vec<_> = asked.iter().map(|q| (q.clone(), q.prompt != no)).collect();
        record_verdicts(&home.state, &home.work(), home.now, &verdicts)
            .unwrap()
            .len()
    };
    assert_eq!(answer(&home, &asked, "b"), 2);
    assert_eq!(
        teller_input::waiting(&home.state).unwrap(),
        teller_input::TellerInput::default()
    );
    home.pass(299);
    assert_eq!(home.look(), Default::default());
    home.pass(1);
    let asked = home.look().questions;
    assert_eq!(asked.len(), 3);
    // Only the one that becomes true has an edge.
    assert_eq!(answer(&home, &asked, ""), 1);
    assert!(home.claim().unwrap().origin.unwrap().is_from_question);
    assert_eq!(ids.len(), 3);
    // A new process knows the time of the last question, too.
    let other = karyi_tasks::state_directory::StateDirectory::open(home.state.path()).unwrap();
    let look = karyi_tasks::evaluation::evaluate(&other, &home.work(), home.now).unwrap();
    assert_eq!(look.questions, []);
}

#[test]
fn a_result_is_reported_once() {
    let mut home = Home::new();
    home.plan("a", None);
    home.run_one();
    let input = teller_input::waiting(&home.state).unwrap();
    assert!(matches!(
        input.events[0].content,
        EventContent::TaskResult { .. }
    ));
    teller_input::end(&home.state, &input).unwrap();
    home.fired();
    assert_eq!(teller_input::waiting(&home.state).unwrap().events, []);
}
