//! What a supervisor needs beside its tasks: pauses, the tokens of a day, and a wake when files change.

use std::fs;
use std::time::Duration;

use karyi_tasks::lifecycle::{Finish, put_back};
use karyi_tasks::pauses::Pauses;
use karyi_tasks::spending::{spend, spent};
use karyi_tasks::state_directory::StateDirectory;
use karyi_tasks::task::TaskRole;
use karyi_tasks::task_result::{Ending, FailureReason};

use crate::harness::Home;

#[test]
fn the_pause_of_a_failed_task_is_a_setting() {
    let mut home = Home::new();
    let pauses = Pauses {
        retry: Duration::from_millis(200),
        ..Pauses::default()
    };
    home.state = StateDirectory::open(&home.temp.path().join("state"))
        .unwrap()
        .with_pauses(pauses);
    home.plan("try", None);
    let task = home.claim().unwrap();
    let failed = Ending::Failed(FailureReason::Error, "no".into());
    let again = home.now + Duration::from_millis(200);
    assert_eq!(home.finish(&task, failed), Finish::Again(again));
    assert_eq!(home.claim(), None);
    home.now = again;
    assert_eq!(home.claim().unwrap().attempts, 2);
}

#[test]
fn a_task_that_is_put_back_has_not_run() {
    let mut home = Home::new();
    let id = home.plan("try", None);
    let task = home.claim().unwrap();
    put_back(&home.state, TaskRole::Worker, &task).unwrap();
    assert_eq!(home.json(&format!("worker/queue/{id}.json"))["attempts"], 0);
    let gone = put_back(&home.state, TaskRole::Worker, &task).unwrap_err();
    assert_eq!(gone.code.as_str(), "not_found");
    assert_eq!(home.claim(), Some(task));
}

#[test]
fn tokens_count_for_their_day() {
    let mut home = Home::new();
    assert_eq!(spent(&home.state, home.now).unwrap(), 0);
    assert_eq!(spend(&home.state, 70, home.now).unwrap(), 70);
    home.pass(3600);
    let again = StateDirectory::open(home.state.path()).unwrap();
    assert_eq!(spend(&again, 5, home.now).unwrap(), 75);
    home.pass(24 * 3600);
    assert_eq!(spent(&home.state, home.now).unwrap(), 0);
    fs::write(home.file("tokens.json"), "no").unwrap();
    assert_eq!(spend(&home.state, 1, home.now).unwrap(), 1);
    assert_eq!(home.whole("corrupt"), ["tokens.json"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_change_in_a_directory_of_the_state_or_of_a_condition_wakes() {
    use karyi_tasks::evaluation::watched_directories;
    use karyi_tasks::file_watch::FileWatch;
    use serde_json::json;

    let mut home = Home::new();
    fs::create_dir(home.work().join("src")).unwrap();
    home.when(json!({"type": "file_changed", "params": {"path": "src/*.rs"}}));
    home.when(json!({"type": "file_exists", "params": {"path": "not/yet/there"}}));
    let directories = watched_directories(&home.state, &home.work()).unwrap();
    let expected = [home.work(), home.work().join("src")];
    assert_eq!(
        directories.iter().collect::<Vec<_>>(),
        expected.iter().collect::<Vec<_>>()
    );
    let mut watch = FileWatch::new().unwrap();
    let all = || {
        home.state
            .watched_paths()
            .into_iter()
            .chain(directories.clone())
    };
    watch.watch(all()).unwrap();
    drain(&watch);
    assert!(!is_awake(&watch));
    karyi_tasks::inbox::add(&home.state, "hello", home.now).unwrap();
    assert!(is_awake(&watch));
    drain(&watch);
    assert!(!is_awake(&watch));
    fs::write(home.work().join("src/a.rs"), "").unwrap();
    assert!(is_awake(&watch));
    drain(&watch);
    watch.watch(home.state.watched_paths()).unwrap();
    drain(&watch);
    fs::write(home.work().join("src/a.rs"), "b").unwrap();
    assert!(!is_awake(&watch));
}

#[cfg(target_os = "linux")]
fn is_awake(watch: &karyi_tasks::file_watch::FileWatch) -> bool {
    use nix::poll::{PollFd, PollFlags, poll};

    let mut polled = [PollFd::new(
        std::os::fd::AsFd::as_fd(watch),
        PollFlags::POLLIN,
    )];
    poll(&mut polled, 0u8).unwrap() > 0
}

#[cfg(target_os = "linux")]
fn drain(watch: &karyi_tasks::file_watch::FileWatch) {
    let mut buffer = [0; 4096];
    while nix::unistd::read(std::os::fd::AsFd::as_fd(watch), &mut buffer)
        .is_ok_and(|count| count > 0)
    {}
}
