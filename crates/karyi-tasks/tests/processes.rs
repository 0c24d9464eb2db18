//! Several processes at once: the test binary runs itself.

use std::collections::BTreeSet;
use std::process::{Child, Command, Stdio};

use karyi_tasks::state_directory::StateDirectory;
use karyi_tasks::{inbox, teller_input};

use crate::harness::Home;

/// Variable with the state directory of a child.
const STATE: &str = "KARYI_TASKS_TEST_STATE";

/// Starts the test `name` in a process of its own.
pub(crate) fn child(name: &str, home: &Home, argument: &str) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([name, "--exact", "--nocapture", "--test-threads=1"]);
    command
        .env(STATE, home.temp.path())
        .env("KARYI_TASKS_TEST_ARGUMENT", argument);
    command.stdout(Stdio::null()).stderr(Stdio::inherit());
    command.spawn().unwrap()
}

/// Returns directory and argument in a process that [`child`] started.
pub(crate) fn parameters() -> Option<(std::path::PathBuf, String)> {
    let path = std::env::var_os(STATE)?;
    Some((
        path.into(),
        std::env::var("KARYI_TASKS_TEST_ARGUMENT").unwrap(),
    ))
}

#[test]
fn child_that_adds_a_message() {
    let Some((path, argument)) = parameters() else {
        return;
    };
    let state = StateDirectory::open(&path.join("state")).unwrap();
    inbox::add(&state, &argument, jiff::Timestamp::now()).unwrap();
}

#[test]
fn fifty_processes_add_messages_at_once() {
    let home = Home::new();
    let name = "processes::child_that_adds_a_message";
    let children: Vec<Child> = (0..50)
        .map(|number| child(name, &home, &format!("message {number}")))
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let input = teller_input::waiting(&home.state).unwrap();
    assert_eq!(input.inbox.len(), 50);
    assert!(input.inbox.is_sorted_by_key(|item| item.created_at));
    let texts: BTreeSet<&str> = input.inbox.iter().map(|item| &*item.text).collect();
    assert_eq!(texts.len(), 50);
    teller_input::begin(&home.state, &input).unwrap();
    teller_input::end(&home.state, &input).unwrap();
    assert_eq!(home.names("inbox"), [""; 0]);
}
