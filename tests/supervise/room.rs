//! A state directory that moves away, that nothing can be written to, or that the system cannot watch.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use karyi_tasks::inbox;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::home::{Home, events, until};
use super::role_server::RoleServer;
use crate::harness::{Karyi, skip, wait};

const ONCE: &[&str] = &["--worker", "full", "--once", "--json"];
const ALWAYS: &[&str] = &["--worker", "full", "--json"];

fn quiet() -> RoleServer {
    RoleServer::start(|_| Some("Nothing to do.".to_owned()))
}

/// Events that the program has told so far.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<Value>>>);

impl Told {
    fn problems(&self) -> Vec<Value> {
        let mut told = self.0.lock().unwrap().clone();
        told.retain(|event| event["event"] == "problem");
        told
    }
}

/// Starts the program inside of other programs, in a shell that runs `first` before.
fn start(home: &Home, outer: &[&str], first: &str) -> (Child, Told) {
    let prepared = home.karyi.command();
    let mut command = Command::new(outer[0]);
    command.args(&outer[1..]).args(["sh", "-c"]);
    command.arg(format!("{first}; exec \"$0\" \"$@\""));
    command
        .arg(prepared.get_program())
        .args(prepared.get_args());
    command.env_clear().current_dir(home.karyi.work());
    let variables = prepared.get_envs();
    command.envs(variables.filter_map(|(key, value)| Some((key, value?))));
    command.stdin(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let (told, output) = (Told::default(), child.stdout.take().unwrap());
    let kept = told.clone();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            let event = serde_json::from_str(&line).unwrap();
            kept.0.lock().unwrap().push(event);
        }
    });
    (child, told)
}

/// Ends the program and returns its exit status.
fn end(child: Child) -> Option<i32> {
    let pid = Pid::from_raw(child.id().try_into().unwrap());
    kill(pid, Signal::SIGTERM).unwrap();
    wait(child).status.code()
}

fn until_locked(home: &Home) {
    until("the lock", || {
        fs::read_to_string(home.path("supervisor.lock")).is_ok_and(|text| text.ends_with('\n'))
    });
}

#[test]
fn a_directory_that_another_has_replaced_ends_the_supervisor_and_stays_as_it_is() {
    for part in ["", "planner/queue"] {
        let server = quiet();
        let home = Home::new(&server, ALWAYS, "");
        let child = home.spawn();
        until_locked(&home);
        let place = match part {
            "" => home.state.path().to_owned(),
            part => home.path(part),
        };
        let elsewhere = home.karyi.work().join("../elsewhere");
        fs::rename(&place, &elsewhere).unwrap();
        fs::create_dir(&place).unwrap();
        let output = wait(child);
        assert_eq!(output.status.code(), Some(1));
        let told = events(&String::from_utf8(output.stdout).unwrap());
        let message = format!(
            "expected {}, found that it was moved away or removed",
            place.display()
        );
        let problem = told.last().unwrap();
        assert_eq!(problem["message"], message);
        assert_eq!(home.names(part), [""; 0]);
    }
}

#[test]
fn a_reply_that_could_not_be_written_is_said_by_the_next_start() {
    let server = RoleServer::start(|asked| {
        let reply = "<tools><reply><text>hello you</text></reply></tools>";
        Some(if asked.is_first() { reply } else { "Done." }.to_owned())
    });
    for args in [&["--worker", "full", "--once"][..], ONCE] {
        let home = Home::new(&server, args, "");
        inbox::add(&home.state, "hello", Timestamp::now()).unwrap();
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let mut command = home.karyi.command();
        command
            .stdin(Stdio::null())
            .stdout(full)
            .stderr(Stdio::piped());
        let output = wait(command.spawn().unwrap());
        let error = String::from_utf8(output.stderr).unwrap();
        let reason = "standard output cannot be written: No space left on device";
        assert_eq!(error.matches(reason).count(), 1, "{error}");
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(home.run_well().contains("hello you"), "{args:?}");
    }
}

#[test]
fn problems_are_on_standard_error_without_a_terminal() {
    let server = quiet();
    let mut home = Home::new(&server, &["--worker", "full", "--once"], "");
    let id = home.plan("x", None, None);
    let file = format!("worker/queue/{id}.json");
    fs::write(home.path(&file), "{").unwrap();
    let output = home.run();
    let error = String::from_utf8(output.stderr).unwrap();
    let told = format!("karyi: {file} is in `corrupt` now: ");
    assert!(error.starts_with(&told), "{error}");
    assert_eq!(output.status.code(), Some(0), "{error}");
}

#[test]
fn without_its_lock_a_supervisor_ends() {
    let server = quiet();
    let home = Home::new(&server, ALWAYS, "");
    let first = home.spawn();
    until_locked(&home);
    fs::remove_file(home.path("supervisor.lock")).unwrap();
    let output = wait(first);
    assert_eq!(output.status.code(), Some(1));
    let told = events(&String::from_utf8(output.stdout).unwrap());
    let message = told.last().unwrap()["message"].as_str().unwrap();
    assert!(
        message.contains("the lock of this supervisor in "),
        "{message}"
    );
}

#[test]
fn a_full_disk_is_told_once_and_the_work_goes_on_when_there_is_room() {
    let limit = |pid: u32, size: &str| {
        let mut command = Command::new("prlimit");
        command.args([format!("--pid={pid}"), format!("--fsize={size}:")]);
        command.stderr(Stdio::null()).status()
    };
    if !limit(std::process::id(), "unlimited").is_ok_and(|status| status.success()) {
        return skip("no prlimit");
    }
    let server = quiet();
    let mut home = Home::new(&server, ALWAYS, "");
    // A disk without room sends no signal.
    let (child, told) = start(&home, &["env"], "trap '' XFSZ");
    until_locked(&home);
    limit(child.id(), "0").unwrap();
    let id = home.plan("go on", None, None);
    until("the problem", || !told.problems().is_empty());
    inbox::add(&home.state, "hello", Timestamp::now()).unwrap();
    // Each look takes the task out of the queue and puts it back.
    let mut times = BTreeSet::new();
    until("some looks more", || {
        let queue = fs::metadata(home.path("worker/queue")).unwrap();
        times.insert(queue.modified().unwrap());
        times.len() > 3
    });
    let queued = [format!("{id}.json")];
    until("the task in its queue", || {
        home.names("worker/queue") == queued
    });
    assert_eq!(home.names("inbox").len(), 1);
    assert_eq!(
        server.asked("worker").len() + server.asked("teller").len(),
        0
    );
    limit(child.id(), "unlimited").unwrap();
    let result = home.path(&format!("worker/results/{id}.json"));
    until("the result", || result.exists());
    until("the answer", || home.names("inbox").is_empty());
    let result = home.json(&format!("worker/results/{id}.json"));
    assert_eq!(
        (&result["status"], &result["task"]["attempts"]),
        (&"done".into(), &1.into())
    );
    let problems = told.problems();
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert_eq!(end(child), Some(143));
}

#[test]
fn a_system_that_watches_no_more_directories_is_asked_each_tick() {
    for limit in ["max_inotify_watches", "max_inotify_instances"] {
        let inside = ["unshare", "--user", "--map-root-user"];
        let first = format!("echo 0 > /proc/sys/user/{limit}");
        let mut probe = Command::new(inside[0]);
        probe.args(&inside[1..]).args(["sh", "-c", &first]);
        if !probe.output().is_ok_and(|ran| ran.status.success()) {
            return skip("no user namespaces");
        }
        let server = quiet();
        let mut home = Home::new(&server, ALWAYS, "");
        let (child, told) = start(&home, &inside, &first);
        until_locked(&home);
        let id = home.plan("go on", None, None);
        let result = home.path(&format!("worker/results/{id}.json"));
        until("the result", || result.exists());
        inbox::add(&home.state, "hello", Timestamp::now()).unwrap();
        until("the message", || home.names("inbox").is_empty());
        let problems = told.problems();
        assert_eq!(problems.len(), 1, "{problems:?}");
        let message = problems[0]["message"].as_str().unwrap();
        assert!(message.starts_with("watching directories: "), "{message}");
        assert_eq!(end(child), Some(143));
    }
}

#[test]
fn in_a_directory_that_is_read_only_nothing_starts_and_nothing_changes() {
    let server = quiet();
    let mut home = Home::new(&server, &["--worker", "full", "--once"], "");
    let id = home.plan("go on", None, None);
    let state = home.state.path().display().to_string();
    let outer = ["unshare", "--user", "--map-root-user", "--mount"];
    let first = format!("mount --bind {state} {state} && mount -o remount,bind,ro {state}");
    let mut probe = Command::new(outer[0]);
    probe.args(&outer[1..]).args(["sh", "-c", &first]);
    if !probe.output().is_ok_and(|ran| ran.status.success()) {
        return skip("no user namespaces, or none that may mount");
    }
    let (child, _) = start(&home, &outer, &format!("{first} || exit 99"));
    let ran = wait(child);
    let error = String::from_utf8(ran.stderr).unwrap();
    let line = format!("{state}/supervisor.lock: Read-only file system (os error 30)\n");
    assert_eq!(ran.status.code(), Some(1), "{error}");
    assert!(
        error.lines().next().unwrap().ends_with(line.trim_end()),
        "{error}"
    );
    assert_eq!(home.names("worker/queue"), [format!("{id}.json")]);
    home.run_well();
    assert_eq!(home.names("worker/results"), [format!("{id}.json")]);
}

#[test]
fn a_directory_that_cannot_be_used_is_one_line_and_exit_status_1() {
    let server = quiet();
    let elsewhere = tempfile::tempdir().unwrap();
    let link = |place: &Path| std::os::unix::fs::symlink(elsewhere.path(), place).unwrap();
    let file = |place: &Path| fs::write(place, "").unwrap();
    let kinds: [&dyn Fn(&Path); 2] = [&link, &file];
    for (part, kind) in ["worker", "worker/queue", "inbox"]
        .iter()
        .flat_map(|part| kinds.iter().map(move |kind| (part, kind)))
    {
        let home = Home::new(&server, &["--worker", "full", "--once"], "");
        let place = home.path(part);
        fs::remove_dir_all(&place).unwrap();
        kind(&place);
        let ran = home.run();
        let error = String::from_utf8(ran.stderr).unwrap();
        let place = place.display();
        let line = format!("karyi: not_a_directory: {place}: Not a directory (os error 20)\n");
        assert!(error.starts_with(&line), "{error}");
        assert_eq!(ran.status.code(), Some(1), "{error}");
        let state = home.state.path().to_str().unwrap();
        let tasks = Karyi::with_args(&["tasks", "--state-dir", state]);
        assert_eq!(tasks.run().exit(1).stderr_text(), error);
    }
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}
