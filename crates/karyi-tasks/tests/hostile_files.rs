//! Files that are none of karyi's, directories that fail, clocks that jump.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use karyi_tasks::BrokenFile;
use karyi_tasks::instance_lock::InstanceLock;
use karyi_tasks::lifecycle::{claim, delegate};
use karyi_tasks::question::{self, QuestionRequest};
use karyi_tasks::settle::settle;
use karyi_tasks::task::{Aging, TaskRequest, TaskRole};
use karyi_tasks::task_id::TaskId;
use karyi_tasks::trigger::TriggerPlan;
use serde_json::{Value, json};

use crate::harness::Home;

#[test]
fn files_that_are_no_tasks_are_set_aside_and_the_rest_goes_on() {
    let mut home = Home::new();
    let good = home.plan("good", None);
    let at = |name: &str| home.file("worker/queue").join(name);
    let template = fs::read_to_string(at(&format!("{good}.json"))).unwrap();
    let outside = home.temp.path().join("victim.json");
    fs::write(&outside, template.replace(good.as_str(), "link")).unwrap();
    fs::write(at("nojson.json"), "{").unwrap();
    fs::write(at("empty.json"), "").unwrap();
    fs::create_dir(at("directory.json")).unwrap();
    nix::unistd::mkfifo(&at("fifo.json"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    symlink(&outside, at("link.json")).unwrap();
    fs::write(at("other.json"), &template).unwrap();
    fs::write(
        at("bad name.json"),
        template.replace(good.as_str(), "bad name"),
    )
    .unwrap();
    let newer = template
        .replace(good.as_str(), "newer")
        .replace("\"attempts\"", "\"newField\": 1, \"attempts\"");
    fs::write(at("newer.json"), newer).unwrap();
    fs::write(
        at("high.json"),
        template
            .replace(good.as_str(), "high")
            .replace(": 5", ": 11"),
    )
    .unwrap();
    let mut expected = 9;
    // Only root can give a file away.
    if nix::unistd::geteuid().is_root() {
        fs::write(
            at("foreign.json"),
            template.replace(good.as_str(), "foreign"),
        )
        .unwrap();
        nix::unistd::chown(&at("foreign.json"), Some(65534.into()), None).unwrap();
        expected += 1;
    }
    fs::write(at("notes.txt"), "mine").unwrap();
    let lock = InstanceLock::take(&home.state).unwrap();
    let settled = settle(&home.state, &lock, home.now).unwrap();
    assert_eq!(settled.broken.len(), expected, "{:#?}", settled.broken);
    assert_eq!(home.names("corrupt").len(), expected);
    assert_eq!(
        home.names("worker/queue"),
        [format!("{good}.json"), "notes.txt".into()]
    );
    assert!(outside.exists());
    assert_eq!(home.claim().unwrap().id, good);
    assert_eq!(home.claim(), None);
    assert_eq!(settle(&home.state, &lock, home.now).unwrap().broken, []);
}

/// Writes a copy of a file with other values, and returns its identifier.
fn write_copy(home: &Home, template: &str, folder: &str, (field, value): (&str, Value)) -> String {
    let id = format!("{}{}", field.replace('/', ""), home.names(folder).len());
    let mut copy = home.json(template);
    copy["id"] = id.clone().into();
    match field.split_once('/') {
        Some((outer, inner)) => copy[outer][inner] = value,
        None => copy[field] = value,
    }
    fs::write(home.file(&format!("{folder}/{id}.json")), copy.to_string()).unwrap();
    id
}

#[test]
fn values_that_no_tool_takes_make_a_file_broken() {
    let mut home = Home::new();
    let task = format!("worker/queue/{}.json", home.plan("good", None));
    let each = home.plan("each", Some(TriggerPlan::recurring(60).unwrap()));
    let each = format!("triggers/{each}.json");
    let condition = json!({"type": "file_exists", "params": {"path": "x"}});
    let on = format!("triggers/{}.json", home.whenever(condition, 60));
    let long = 2 * 24 * 3600 + 1;
    let cases = [
        (&task, "worker/queue", "attempts", json!(2)),
        (&task, "worker/running", "attempts", json!(3)),
        (&task, "worker/queue", "attempts", json!(-1)),
        (&task, "worker/queue", "timeout", json!(0)),
        (&task, "worker/queue", "timeout", json!(-5)),
        // Only a timeout makes a limit longer than a day.
        (&task, "planner/queue", "timeout", json!(24 * 3600 + 1)),
        (&task, "worker/queue", "priority", json!(11)),
        (&task, "worker/queue", "priority", json!(-1)),
        (&task, "worker/queue", "prompt", json!(" ")),
        (&each, "triggers", "schedule/interval", json!(0)),
        (
            &each,
            "triggers",
            "schedule/interval",
            json!(400 * 24 * 3600),
        ),
        (&each, "triggers", "timeout", json!(long)),
        (&each, "triggers", "priority", json!(11)),
        (&on, "triggers", "cooldown", json!(400 * 24 * 3600)),
        (&on, "triggers", "condition/type", json!("never")),
    ];
    let expected = cases.len();
    let broken = cases.map(|(template, folder, field, value)| {
        let id = write_copy(&home, template, folder, (field, value));
        format!("{folder}/{id}.json")
    });
    let repeated = home.json(&task);
    let twice = json!({"attempts": 1, "timeout": 2 * 24 * 3600});
    let mut repeated = repeated.as_object().unwrap().clone();
    repeated.extend(twice.as_object().unwrap().clone());
    fs::write(home.file(&task), Value::from(repeated).to_string()).unwrap();
    home.pass(60);
    // Nothing of them runs, also while nobody has set them aside.
    assert_eq!(home.fired(), 1);
    let lock = InstanceLock::take(&home.state).unwrap();
    let settled = settle(&home.state, &lock, home.now).unwrap();
    let mut found: Vec<&str> = settled.broken.iter().map(|one| &*one.path).collect();
    found.sort_unstable();
    let mut broken = broken.to_vec();
    broken.sort();
    assert_eq!(found, broken);
    assert_eq!(home.names("corrupt").len(), expected);
    assert_eq!(settle(&home.state, &lock, home.now).unwrap().broken, []);
    let claimed = [home.claim().unwrap().prompt, home.claim().unwrap().prompt];
    assert_eq!(claimed, ["good", "each"]);
    assert_eq!(home.claim(), None);
}

#[test]
fn a_question_that_no_tool_asks_is_set_aside_and_told_once() {
    let home = Home::new();
    let request = QuestionRequest::new("where?", &[], Some(60), None).unwrap();
    question::ask(&home.state, TaskId::derived("q", 1), request, home.now).unwrap();
    let good = home.json("pending_question.json");
    let cases = [
        ("timeout", json!(0)),
        ("expiresAt", json!("2027-01-01T00:00:00Z")),
        ("options", json!(vec!["x"; 21])),
        ("default", json!(" ")),
    ];
    for (number, (field, value)) in cases.into_iter().enumerate() {
        let mut question = good.clone();
        question[field] = value;
        fs::write(home.file("pending_question.json"), question.to_string()).unwrap();
        let defect = question::defect(&home.state).unwrap();
        assert_eq!(question::pending(&home.state).unwrap(), None, "{field}");
        assert_eq!(question::defect(&home.state), None);
        let path = "pending_question.json".to_owned();
        let broken = BrokenFile {
            path,
            reason: defect,
        };
        assert_eq!(home.state.set_broken_aside().unwrap(), [broken], "{field}");
        assert_eq!(home.state.set_broken_aside().unwrap(), []);
        assert_eq!(home.names("corrupt").len(), number + 1);
    }
}

#[test]
fn a_mark_of_a_task_that_is_gone_is_swept() {
    let mut home = Home::new();
    let id = home.plan("again", None);
    for mark in ["gone", id.as_str()] {
        fs::write(home.file(&format!("worker/running/{mark}.stop")), "").unwrap();
    }
    let lock = InstanceLock::take(&home.state).unwrap();
    settle(&home.state, &lock, home.now).unwrap();
    assert_eq!(home.names("worker/running"), [format!("{id}.stop")]);
}

#[test]
fn a_directory_or_lock_that_another_has_replaced_is_noticed() {
    for path in ["", "worker/queue", "corrupt", "memory"] {
        let home = Home::new();
        assert_eq!(home.state.lost(), None);
        let place = home.file(path);
        fs::rename(&place, home.temp.path().join("elsewhere")).unwrap();
        assert_eq!(home.state.lost().unwrap(), home.file(path), "{path}");
        fs::create_dir(&place).unwrap();
        assert_eq!(home.state.lost().unwrap(), home.file(path), "{path}");
    }
    let home = Home::new();
    let lock = InstanceLock::take(&home.state).unwrap();
    assert!(lock.is_there(&home.state));
    fs::remove_file(home.file("supervisor.lock")).unwrap();
    assert!(!lock.is_there(&home.state));
    let _other = InstanceLock::take(&home.state).unwrap();
    assert!(!lock.is_there(&home.state));
}

#[test]
fn broken_triggers_events_questions_and_messages_are_set_aside() {
    let home = Home::new();
    for path in [
        "triggers/t.json",
        "events/e.json",
        "inbox/i.json",
        "planner/running/r.json",
    ] {
        fs::write(home.file(path), "[]").unwrap();
    }
    fs::write(home.file("pending_question.json"), "null").unwrap();
    let lock = InstanceLock::take(&home.state).unwrap();
    assert_eq!(
        settle(&home.state, &lock, home.now).unwrap().broken.len(),
        5
    );
    assert_eq!(home.names("corrupt").len(), 5);
    assert_eq!(home.fired(), 0);
}

#[test]
fn a_result_that_cannot_be_read_is_none() {
    let mut home = Home::new();
    let id = home.plan("one", None);
    let task = home.claim().unwrap();
    let path = home.file(&format!("worker/results/{id}.json"));
    let newer = serde_json::json!({
        "id": id, "status": "done", "completedAt": home.now, "task": task, "newField": 1,
    });
    fs::write(&path, newer.to_string()).unwrap();
    // Neither the look at the triggers nor the end of the task stumbles over it.
    assert_eq!(home.fired(), 0);
    home.finish(&task, karyi_tasks::task_result::Ending::Done("good".into()));
    let result = home.state.result(TaskRole::Worker, &id).unwrap().unwrap();
    assert_eq!(result.result.as_deref(), Some("good"));
}

#[test]
fn a_state_directory_is_private() {
    let home = Home::new();
    for path in ["", "inbox", "worker/queue"] {
        let mode = fs::metadata(home.file(path)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{path}");
    }
}

#[test]
fn temporary_files_of_killed_processes_are_swept() {
    let home = Home::new();
    let old = home.file("worker/queue/.tmp012345");
    let young = home.file("inbox/.tmp012345");
    fs::write(&old, "half").unwrap();
    fs::write(&young, "half").unwrap();
    let two_hours = std::time::SystemTime::now() - std::time::Duration::from_secs(7200);
    fs::File::options()
        .write(true)
        .open(&old)
        .unwrap()
        .set_modified(two_hours)
        .unwrap();
    let lock = InstanceLock::take(&home.state).unwrap();
    settle(&home.state, &lock, home.now).unwrap();
    assert!(!old.exists() && young.exists());
}

#[test]
fn a_directory_that_vanishes_or_refuses_is_an_error() {
    let mut home = Home::new();
    home.plan("one", None);
    fs::remove_dir_all(home.file("")).unwrap();
    let request = TaskRequest::new("two", None, None).unwrap();
    let lost = delegate(&home.state, TaskId::random().unwrap(), request, home.now);
    assert!(lost.is_err());
    assert_eq!(
        claim(&home.state, TaskRole::Worker, Aging::Off, home.now).unwrap(),
        None
    );
    if nix::unistd::geteuid().is_root() {
        // Root may write everywhere.
        return;
    }
    let mut home = Home::new();
    let id = home.plan("one", None);
    let running = home.file("worker/running");
    fs::set_permissions(&running, fs::Permissions::from_mode(0o500)).unwrap();
    assert!(claim(&home.state, TaskRole::Worker, Aging::Off, home.now).is_err());
    fs::set_permissions(&running, fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(home.claim().unwrap().id, id);
}

#[test]
fn a_clock_that_jumps_back_delays_no_retry() {
    let mut home = Home::new();
    home.plan("one", None);
    let task = home.claim().unwrap();
    home.finish(&task, karyi_tasks::task_result::Ending::TimedOut(5));
    home.pass(-24 * 3600);
    assert_eq!(home.claim().unwrap().attempts, 2);
}
