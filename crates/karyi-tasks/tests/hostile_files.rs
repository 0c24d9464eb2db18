//! Files that are none of karyi's, directories that fail, clocks that jump.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use karyi_tasks::instance_lock::InstanceLock;
use karyi_tasks::lifecycle::{claim, delegate};
use karyi_tasks::settle::settle;
use karyi_tasks::task::{Aging, TaskRequest, TaskRole};
use karyi_tasks::task_id::TaskId;

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
        4
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
