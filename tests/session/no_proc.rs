//! A system that shows no processes: what is known there, and what is only probable.

use std::process::Command;
use std::time::{Duration, Instant};

use karyi::outcome::Status;
use karyi::pty::InputRequest;

use super::support::{Shell, run};

const ALONE: &str = "KARYI_TEST_WITHOUT_PROC";

/// Runs a test of this program again where `/proc` is empty.
fn without_proc(test: &str, body: impl FnOnce()) {
    if std::env::var_os(ALONE).is_some() {
        assert!(!std::path::Path::new("/proc/self").exists());
        return body();
    }
    let hide = "mount -t tmpfs none /proc && exec \"$@\"";
    let mut start = Command::new("unshare");
    start.arg("-m");
    if !nix::unistd::geteuid().is_root() {
        start.args(["-U", "--map-root-user"]);
    }
    start.args(["sh", "-c", hide, "sh"]);
    let is_possible =
        |mut start: Command| start.arg("true").status().is_ok_and(|end| end.success());
    let mut probe = Command::new(start.get_program());
    probe.args(start.get_args());
    if !is_possible(probe) {
        eprintln!("skipped: no mount namespaces");
        return;
    }
    start.arg(std::env::current_exe().unwrap());
    let output = start
        .args(["--exact", test])
        .env(ALONE, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    let is_right = output.status.success() && text.contains("1 passed");
    assert!(is_right, "{text}{errors}");
}

#[test]
fn commands_run_without_proc() {
    without_proc(
        "session::no_proc::commands_run_without_proc",
        check_commands,
    );
}

fn check_commands() {
    run(async {
        let shell = Shell::bash().await;
        shell.check("export A=1; cd /usr; echo on", 0, "on\n").await;
        assert_eq!(shell.session.cwd(), std::path::Path::new("/usr"));
        shell.check("sleep 1.3; echo $A", 0, "1\n").await;
        let seen = shell.command("exit 3").await;
        assert_eq!(seen.brief(), (Status::Failed, Some(3), ""));
        shell.check("echo $A $PWD", 0, "1 /usr\n").await;
        assert_eq!(shell.command("kill -9 $$").await.exit_code, Some(137));
        shell.check("echo on", 0, "on\n").await;
        // The mark is lost, and asked for again.
        shell.check("builtin() { :; }", 0, "").await;
        shell.check("unset -f builtin; echo on", 0, "on\n").await;
        let seen = shell
            .command_within("sleep 100", Duration::from_millis(1500))
            .await;
        assert_eq!(seen.brief(), (Status::Running, None, ""));
        assert!(!seen.progress.is_probable);
        assert_eq!(shell.session.end_job().await.ok(), Some("INT"));
        let seen = shell
            .command_within("while :; do :; done", Duration::from_millis(1500))
            .await;
        assert_eq!(seen.brief(), (Status::Running, None, ""));
        assert_eq!(shell.session.end_job().await.ok(), Some("INT"));
    });
}

#[test]
fn questions_are_guessed_without_proc() {
    without_proc(
        "session::no_proc::questions_are_guessed_without_proc",
        check_questions,
    );
}

fn check_questions() {
    run(async {
        let shell = Shell::bash().await;
        for script in [
            "read -p 'name? ' x; echo hi $x",
            "dash -c 'printf \"name? \"; read x; echo hi $x'",
        ] {
            let seen = shell.command(script).await;
            assert_eq!(seen.brief(), (Status::AwaitingInput, None, "name? "));
            let found = (seen.progress.is_probable, seen.progress.echo);
            assert_eq!(found, (true, Some(true)), "{script}");
            let seen = shell.input("Ada\n").await;
            assert_eq!(seen.brief(), (Status::Ok, Some(0), "Ada\nhi Ada\n"));
        }
        let secret = InputRequest {
            is_secret: true,
            ..InputRequest::default()
        };
        let ask = "python3 -c 'import getpass; print(len(getpass.getpass()))'";
        let seen = shell.command(ask).await;
        let found = (seen.status, seen.progress.echo, seen.progress.is_probable);
        assert_eq!(found, (Status::AwaitingInput, Some(false), true));
        let seen = shell.try_input("hunter2\n", secret).await.unwrap();
        assert_eq!(seen.brief(), (Status::Ok, Some(0), "\n7\n"));
        let seen = shell.command("stty raw -echo; head -c1").await;
        let found = (seen.status, seen.progress.is_probable);
        assert_eq!(found, (Status::AcceptsInput, true));
        assert_eq!(shell.input("x").await.exit_code, Some(0));
        // Nothing shows that this reads; who sends input knows.
        let quick = Duration::from_millis(100);
        assert_eq!(
            shell.command_within("cat", quick).await.status,
            Status::Running
        );
        let seen = shell
            .try_input(
                "a\n",
                InputRequest {
                    timeout: Some(Duration::from_secs(3)),
                    ..InputRequest::default()
                },
            )
            .await
            .unwrap();
        assert_eq!(seen.brief(), (Status::Running, None, "a\na\n"));
        assert_eq!(shell.key("d").await.exit_code, Some(0));
    });
}

#[test]
fn jobs_are_those_of_their_commands_without_proc() {
    without_proc(
        "session::no_proc::jobs_are_those_of_their_commands_without_proc",
        check_jobs,
    );
}

fn check_jobs() {
    run(async {
        let shell = Shell::bash().await;
        shell
            .check("sleep 100 & sleep 101 | sleep 102 &", 0, "")
            .await;
        let first = shell.session.newest_job();
        shell.check("echo on", 0, "on\n").await;
        shell.check("sleep 103 & exit 4", 4, "").await;
        let last = shell.session.newest_job();
        let left = shell.session.take_background();
        let brief: Vec<_> = left.iter().map(|(job, left)| (*job, left.size())).collect();
        assert_eq!(brief, [(first, 1), (first, 2), (last, 1)]);
        let (_, pipeline) = &left[1];
        assert!(shell.session.end_background(pipeline).await.is_ok());
        // What nobody knows the command of is counted.
        let put = "echo 'sleep 104 &' >f";
        shell.check(put, 0, "").await;
        shell.check(". ./f", 0, "").await;
        shell.check("exit 5", 5, "").await;
        assert_eq!(shell.session.take_background(), []);
        assert!(shell.session.take_omitted_background() > 0);
    });
}

#[test]
fn doctor_takes_seconds_without_proc() {
    without_proc(
        "session::no_proc::doctor_takes_seconds_without_proc",
        check_doctor,
    );
}

fn check_doctor() {
    let home = tempfile::tempdir().unwrap();
    let mut karyi = Command::new(env!("CARGO_BIN_EXE_karyi"));
    karyi.env("KARYI_HOME", home.path());
    let start = Instant::now();
    let output = karyi.args(["doctor", "--shell", "bash"]).output().unwrap();
    let took = start.elapsed();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains("Sessions work, with the limits above."),
        "{text}"
    );
    assert!(took < Duration::from_secs(90), "{took:?}: {text}");
}

#[test]
fn nothing_survives_without_proc() {
    without_proc(
        "session::no_proc::nothing_survives_without_proc",
        check_ending,
    );
}

fn check_ending() {
    run(async {
        let shell = Shell::bash().await;
        let script = "sleep 100 & echo $!; nohup sleep 100 >/dev/null 2>&1 & echo $!
            disown -a; setsid sh -c 'echo $$; exec sleep 100' &
            (setsid sh -c 'echo $$; exec sleep 100' &); sleep 0.3";
        let seen = shell.command(script).await;
        let pids: Vec<i32> = seen
            .output
            .lines()
            .filter_map(|line| line.parse().ok())
            .collect();
        assert_eq!(pids.len(), 4, "{:?}", seen.output);
        let is_alive = |pid: &i32| {
            let pid = nix::unistd::Pid::from_raw(*pid);
            nix::sys::signal::kill(pid, None).is_ok()
        };
        assert!(pids.iter().all(is_alive));
        let start = Instant::now();
        shell.session.close().await;
        // Each look asks the kernel for every number a process can have.
        assert!(start.elapsed() < Duration::from_secs(90));
        let left: Vec<&i32> = pids.iter().filter(|pid| is_alive(pid)).collect();
        assert_eq!(left, Vec::<&i32>::new());
    });
}

#[test]
fn the_program_runs_without_proc() {
    without_proc(
        "session::no_proc::the_program_runs_without_proc",
        check_program,
    );
}

fn check_program() {
    let home = tempfile::tempdir().unwrap();
    let mut karyi = Command::new(env!("CARGO_BIN_EXE_karyi"));
    karyi.env("KARYI_HOME", home.path());
    let message = "<tools><command>echo on</command></tools>";
    let output = karyi.args(["run", "--no-rc", "-c", message]).output();
    let output = output.unwrap();
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(report.contains("<output>on\n</output>"), "{output:?}");
    assert_eq!(output.status.code(), Some(0));
}
