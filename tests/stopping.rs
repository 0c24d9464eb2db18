//! A run ends when it is asked to, whatever is in the way, and leaves nothing behind.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::harness::escape::{ESCAPES, Mark, expect_ended};
use crate::harness::{Karyi, is_root, skip, wait};

fn send(child: &Child, signal: Signal) {
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), signal).unwrap();
}

#[test]
fn a_signal_at_a_question_gives_the_terminal_back() {
    for (signal, code) in [
        (Signal::SIGTERM, 143),
        (Signal::SIGHUP, 129),
        (Signal::SIGINT, 130),
        (Signal::SIGQUIT, 131),
    ] {
        let script = "<tools><get_value key=\"PW\" reason=\"a test\"/></tools>";
        let karyi = Karyi::with_args(&["run", "a.xml"]).file("a.xml", script);
        let mut terminal = karyi.on_terminal();
        terminal.expect("value (hidden");
        assert!(!terminal.is_echoing());
        kill(Pid::from_raw(terminal.pid()), signal).unwrap();
        terminal.expect("\x1b[?2004l");
        let echo = terminal.echo_at_end();
        assert_eq!(echo, (true, code), "{signal}");
    }
}

#[test]
fn an_answered_question_gives_the_terminal_back() {
    for (keys, choice, code) in [
        ("a-value-1\r", "s", 0),
        ("a-value-1\r", "\x03", 1),
        ("\x1b", "", 1),
        ("\x03", "", 1),
        ("\x03\x03", "", 130),
        ("a-value-1\r", "\x03\x03", 130),
    ] {
        let script = "<tools><get_value key=\"PW\" reason=\"a test\"/></tools>";
        let karyi = Karyi::with_args(&["run", "a.xml"]).file("a.xml", script);
        let mut terminal = karyi.on_terminal();
        terminal.expect("value (hidden").keys(keys);
        if !choice.is_empty() {
            terminal.expect("keep it:").keys(choice);
        }
        terminal.expect("\x1b[?2004l");
        assert_eq!(terminal.echo_at_end(), (true, code), "{keys:?} {choice:?}");
    }
}

/// One Ctrl+C is an answer, as it is for the job that runs; a second one ends the run.
#[test]
fn a_question_is_declined_first_and_the_run_ended_second() {
    let script = "<tools><get_value key=\"PW\" reason=\"a test\"/></tools>\n\
        <tools><command>echo went $((1 + 1)) on</command></tools>";
    for (keys, goes_on, told, code) in [
        ("\x1b", true, "code=\"declined\"", 1),
        ("\x03", true, "code=\"declined\"", 1),
        ("\x03\x03", false, "code=\"cancelled\"", 130),
    ] {
        let args = ["run", "--format", "xml", "a.xml"];
        let mut terminal = Karyi::with_args(&args).file("a.xml", script).on_terminal();
        terminal.expect("value (hidden").keys(keys);
        let (screen, status) = terminal.end();
        assert!(screen.contains("code=\"declined\""), "{keys:?}: {screen}");
        assert!(screen.contains(told), "{keys:?}: {screen}");
        assert_eq!(screen.contains("went 2 on"), goes_on, "{keys:?}: {screen}");
        assert_eq!(status, code, "{keys:?}: {screen}");
    }
}

#[test]
fn a_reader_who_does_not_read_holds_up_no_signal() {
    let karyi = Karyi::new()
        .arg("--format")
        .arg("jsonl")
        .arg("-c")
        .arg("<tools><command>yes</command></tools>");
    let mut child = karyi.command().stdout(Stdio::piped()).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut [0; 1000]).unwrap();
    send(&child, Signal::SIGTERM);
    assert_eq!(wait(child).status.code(), Some(143));
}

#[test]
fn a_search_ends_when_the_run_is_cancelled() {
    let karyi = Karyi::new().arg("--format").arg("jsonl").arg("-c").arg(
        "<tools><read><search pattern=\"no such text\" path=\"/usr\"/><search pattern=\"no such text\" path=\"/usr\"/></read></tools>",
    );
    let mut child = karyi.command().stdout(Stdio::piped()).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut [0; 10]).unwrap();
    send(&child, Signal::SIGTERM);
    assert_eq!(wait(child).status.code(), Some(143));
}

#[cfg(target_os = "linux")]
#[test]
fn a_script_that_cannot_be_read_to_its_end_does_not_run() {
    let ran = Karyi::new()
        .arg("--json")
        .arg("/proc/self/mem")
        .run()
        .exit(2);
    assert_eq!(ran.json()["status"], "refused");
    assert!(
        ran.stderr_text().contains("reading /proc/self/mem"),
        "{}",
        ran.stderr_text()
    );
}

#[test]
fn no_runtime_file_stays() {
    let karyi = Karyi::new()
        .arg("-c")
        .arg("<tools><command>sleep 100</command></tools>");
    let runtime = karyi.runtime();
    let mut child = karyi
        .command()
        .arg("--format")
        .arg("jsonl")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut [0; 10]).unwrap();
    send(&child, Signal::SIGTERM);
    assert_eq!(wait(child).status.code(), Some(143));
    let left: Vec<_> = std::fs::read_dir(runtime)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(left, Vec::<std::path::PathBuf>::new());
}

#[test]
fn a_job_keeps_its_id_across_scripts() {
    let report = Karyi::new()
        .file(
            "a.xml",
            "<tools><command id=\"build\" timeout=\"0.2\">sleep 50</command></tools>",
        )
        .file("b.xml", "<tools><read><file src=\"a.xml\"/></read></tools>")
        .args(&["--json", "a.xml", "b.xml"])
        .run()
        .exit(1)
        .stdout();
    let last: serde_json::Value = serde_json::from_str(report.lines().last().unwrap()).unwrap();
    assert_eq!(last["jobs"][0]["id"], "build");
}

#[test]
fn a_cancelled_command_is_killed_and_keeps_its_output() {
    let script =
        "<tools><command>echo started; sleep 100</command><command>echo never</command></tools>";
    let karyi = Karyi::new()
        .arg("--format")
        .arg("jsonl")
        .arg("-c")
        .arg(script);
    let mut child = karyi.command().stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = |event: &str| -> serde_json::Value {
        loop {
            let value: serde_json::Value =
                serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
            if value["event"] == event {
                return value;
            }
        }
    };
    assert_eq!(next("output")["text"], "started\n");
    send(&child, Signal::SIGTERM);
    let (first, second) = (next("finished"), next("finished"));
    let told = [&first, &second].map(|r| (&r["status"], &r["code"], &r["output"]));
    let expected = serde_json::json!([
        ["killed", "cancelled", "started\n"],
        ["skipped", "cancelled", null]
    ]);
    assert_eq!(serde_json::json!(told), expected);
    assert_eq!(next("report")["jobs"][0]["id"], "1");
    assert_eq!(wait(child).status.code(), Some(143));
}

/// Ctrl+C goes to the job, and the calls after it do not run: not of the block, and not of the message.
#[test]
fn an_interrupt_ends_the_job_and_keeps_later_calls_from_starting() {
    let script = "<tools><command>sh -c 'echo started; exec sleep 100'</command><command>touch never</command></tools>\n\
        <tools><command>touch never</command></tools>";
    let args = ["run", "--no-rc", "--format", "jsonl", "-c", script];
    let karyi = Karyi::with_args(&args);
    let mut child = karyi.command().stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut told = Vec::new();
    for line in lines {
        let event: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
        if event["event"] == "output" {
            send(&child, Signal::SIGINT);
        } else if event["event"] == "finished" {
            told.push([event["status"].clone(), event["exit_code"].clone()]);
        }
    }
    let expected = serde_json::json!([["failed", 130], ["skipped", null], ["skipped", null]]);
    assert_eq!(serde_json::json!(told), expected);
    assert_eq!(wait(child).status.code(), Some(130));
    assert!(!karyi.work().join("never").exists());
}

/// A script that starts everything that tries to stay, with a shell that ignores HUP.
fn escapes(mark: &Mark) -> String {
    let command = |script: &str| format!("<command><![CDATA[{}]]></command>", mark.script(script));
    let starts: String = ESCAPES.iter().map(|escape| command(escape)).collect();
    let ignoring = command("trap '' HUP; sleep 500.MARK");
    format!("<tools>{starts}{ignoring}</tools>")
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Starts a run that leaves everything behind when it is killed; returns it when all that is there.
fn leave_behind(karyi: &Karyi, mark: &Mark) -> Child {
    let child = start(karyi, &escapes(mark));
    mark.expect(ESCAPES.len() + 1);
    child
}

/// Starts a run of a script that stands in a file: a command line would have the mark in it.
fn start(karyi: &Karyi, script: &str) -> Child {
    std::fs::write(karyi.work().join("script.xml"), script).unwrap();
    let mut command = karyi.command();
    command
        .arg("script.xml")
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

fn kill_and_start_again(karyi: Karyi, runtime: &Path) {
    let mark = Mark::new();
    let child = leave_behind(&karyi, &mark);
    send(&child, Signal::SIGKILL);
    wait(child);
    // The session's directory, and the socket that `karyi var set --session` calls.
    assert_eq!(names(runtime).len(), 2);
    // A start of a busy machine may leave the rest to the one after it.
    for _ in 0..4 {
        let script = "<tools><command>echo on</command></tools>";
        let mut again = karyi.command();
        again.arg("-c").arg(script).stdout(Stdio::piped());
        let output = wait(again.spawn().unwrap());
        assert_eq!(output.status.code(), Some(0));
        if names(runtime).is_empty() {
            break;
        }
    }
    assert_eq!(mark.found(), Vec::<String>::new());
    assert_eq!(names(runtime), Vec::<String>::new());
}

#[test]
fn what_a_killed_run_leaves_is_ended_by_the_next() {
    let karyi = Karyi::new();
    let runtime = karyi.runtime();
    kill_and_start_again(karyi, &runtime);
}

#[test]
fn a_user_without_privileges_leaves_nothing_either() {
    if !is_root() {
        return skip("not root, so there is no other user to be");
    }
    let karyi = Karyi::new().run_as(65534);
    let runtime = karyi.runtime().with_file_name("karyi-65534");
    kill_and_start_again(karyi, &runtime);
}

#[test]
fn a_killed_run_takes_its_shell_and_its_job_with_it() {
    let (karyi, mark) = (Karyi::new(), Mark::new());
    let script = "<tools><command>echo $$ >pid; trap : HUP; sleep 502.MARK</command></tools>";
    let child = start(&karyi, &mark.script(script));
    mark.expect(1);
    let pid = std::fs::read_to_string(karyi.work().join("pid")).unwrap();
    send(&child, Signal::SIGKILL);
    wait(child);
    mark.expect_none();
    expect_ended(pid.trim());
}

#[test]
fn a_start_leaves_the_sessions_of_others_alone() {
    let (karyi, mark) = (Karyi::new(), Mark::new());
    let child = leave_behind(&karyi, &mark);
    let before = (mark.found().len(), names(&karyi.runtime()));
    let mut other = karyi.command();
    other
        .arg("-c")
        .arg("<tools><command>echo on</command></tools>");
    let output = wait(other.stdout(Stdio::piped()).spawn().unwrap());
    assert_eq!(output.status.code(), Some(0));
    let after = (mark.found().len(), names(&karyi.runtime()));
    send(&child, Signal::SIGTERM);
    assert_eq!(wait(child).status.code(), Some(143));
    assert_eq!(after, before);
    assert_eq!(mark.found(), Vec::<String>::new());
    assert_eq!(names(&karyi.runtime()), Vec::<String>::new());
}

#[test]
fn only_what_a_session_left_is_removed() {
    let karyi = Karyi::new();
    let runtime = karyi.runtime();
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::create_dir(&runtime).unwrap();
    std::fs::set_permissions(&runtime, private).unwrap();
    for name in ["session-old", "session-new", "session-odd", "other"] {
        std::fs::create_dir(runtime.join(name)).unwrap();
    }
    std::fs::write(runtime.join("session-odd/owner"), "\0owner x\n").unwrap();
    std::fs::write(runtime.join("session-file"), "").unwrap();
    std::os::unix::fs::symlink("other", runtime.join("session-link")).unwrap();
    for name in ["session-old", "session-odd", "other"] {
        let directory = std::fs::File::open(runtime.join(name)).unwrap();
        directory.set_modified(old).unwrap();
    }
    let mut command = karyi.command();
    command
        .arg("-c")
        .arg("<tools><command>echo on</command></tools>");
    let output = wait(command.stdout(Stdio::piped()).spawn().unwrap());
    assert_eq!(output.status.code(), Some(0));
    let kept = ["other", "session-file", "session-link", "session-new"];
    assert_eq!(names(&runtime), kept);
}

#[test]
fn what_needs_no_session_looks_at_none() {
    for arguments in [&["--version"][..], &["tools"], &["parse", "a.xml"]] {
        let karyi = Karyi::with_args(arguments).file("a.xml", "<tools></tools>");
        let runtime = karyi.runtime();
        assert!(karyi.command().output().unwrap().status.success());
        assert!(!runtime.exists(), "{arguments:?}");
    }
}

/// A program that changes the limit a session is known by is found by what it is not: one of ours.
#[test]
fn what_lowered_its_limit_of_file_locks_ends_with_the_run() {
    let mark = Mark::new();
    let script = mark.script(
        "<tools><command>(ulimit -x 77; setsid env -i sleep 519.MARK &amp;); until pgrep -f '519.MARK' &gt;/dev/null; do sleep 0.02; done</command></tools>",
    );
    let args = ["run", "a.xml", "--no-rc", "--shell", "bash"];
    let ran = Karyi::with_args(&args).file("a.xml", script).run();
    ran.exit(0);
    mark.expect_none();
}

/// Forks, leaves and ends as fast as it can, for a minute at most; each writes a byte.
const HOPPER: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>
int main(void) {
    time_t end = time(0) + 60;
    int file = open("hops", O_WRONLY | O_CREAT | O_APPEND, 0600);
    signal(SIGHUP, SIG_IGN); signal(SIGINT, SIG_IGN); signal(SIGTERM, SIG_IGN);
    while (time(0) < end) {
        pid_t child = fork();
        if (child > 0) _exit(0);
        if (child == 0) { setsid(); if (write(file, "x", 1) < 1) return 1; }
    }
    return 0;
}
"#;

#[test]
fn what_forks_without_pause_is_ended_by_the_next_start() {
    let karyi = Karyi::new().file("hopper.c", HOPPER);
    let runtime = karyi.runtime();
    let mut cc = std::process::Command::new("cc");
    let made = cc.args(["-O", "-o", "hopper", "hopper.c"]);
    if !made
        .current_dir(karyi.work())
        .status()
        .is_ok_and(|status| status.success())
    {
        return skip("no C compiler");
    }
    let hops = karyi.work().join("hops");
    let count = || std::fs::metadata(&hops).map_or(0, |file| file.len());
    let child = start(
        &karyi,
        "<tools><command>./hopper &amp; sleep 60</command></tools>",
    );
    while count() < 100 {
        std::thread::yield_now();
    }
    send(&child, Signal::SIGKILL);
    wait(child);
    // One that survived a start is met again by the next one.
    for _ in 0..2 {
        let mut again = karyi.command();
        let script = "<tools><command>echo on</command></tools>";
        again.arg("-c").arg(script).stdout(Stdio::piped());
        assert_eq!(wait(again.spawn().unwrap()).status.code(), Some(0));
    }
    let before = count();
    let script = "<tools><command>sleep 0.2</command></tools>";
    let mut again = karyi.command();
    again.arg("-c").arg(script).stdout(Stdio::piped());
    wait(again.spawn().unwrap());
    assert_eq!(
        (count() - before, names(&runtime)),
        (0, Vec::<String>::new())
    );
}
