//! Keys, signals and the size of the terminal.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use karyi::error::ErrorCode;
use karyi::outcome::Status;
use karyi::pty::background::BackgroundStatus;
use karyi::pty::key::{Key, names};
use karyi::pty::{CommandRequest, InputRequest, Sink};

use super::support::{Shell, has, run};

/// Prints the next bytes it receives in hexadecimal digits; the terminal makes no signals.
const RAW: &str = "stty raw -echo; printf READY >&2; head -c %N | od -An -tx1 | tr -d ' \\n'";

/// Presses a key while a program reads raw bytes; returns what it received.
async fn pressed(shell: &Shell, name: &str, before: &str) -> String {
    let length = Key::parse(name).unwrap().bytes().len();
    let script = format!("{before}{}", RAW.replace("%N", &length.to_string()));
    let seen = shell.command(&script).await;
    assert_eq!(
        seen.brief(),
        (Status::AwaitingInput, None, "READY"),
        "{name}"
    );
    let seen = shell.key(name).await;
    assert_eq!(seen.exit_code, Some(0), "{name}");
    seen.output
}

#[test]
fn every_key_sends_what_a_terminal_sends() {
    run(async {
        let shell = Shell::bash().await;
        // Ctrl+C is a signal even where the terminal makes none.
        for name in names().iter().filter(|name| *name != "c") {
            let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            let expected: String = hex(&Key::parse(name).unwrap().bytes());
            assert_eq!(pressed(&shell, name, "").await, expected, "{name}");
        }
        let script = RAW.replace("%N", "1");
        assert_eq!(shell.command(&script).await.status, Status::AwaitingInput);
        let seen = shell.key("c").await;
        assert_eq!(seen.brief(), (Status::Failed, Some(130), ""));
    });
}

#[test]
fn cursor_keys_follow_the_mode_the_program_asked_for() {
    run(async {
        let shell = Shell::bash().await;
        let on = "printf '\\033[?1h' >&2; ";
        assert_eq!(pressed(&shell, "up", on).await, "1b4f41");
        assert_eq!(pressed(&shell, "end", on).await, "1b4f46");
        assert_eq!(pressed(&shell, "delete", on).await, "1b5b337e");
        let off = "printf '\\033[?1h\\033[?1l' >&2; ";
        assert_eq!(pressed(&shell, "up", off).await, "1b5b41");
        // The mode ends with the command that asked for it.
        assert_eq!(pressed(&shell, "down", "").await, "1b5b42");
    });
}

/// Starts a program that goes on until a signal ends it, and waits until it has begun: before that
/// the shell still takes its signals.
async fn start(shell: &Shell, before: &str, program: &str) {
    let script = format!("{before}sh -c 'echo ready; {program}'");
    let short = Duration::from_millis(50);
    let again = InputRequest {
        timeout: Some(short),
        ..InputRequest::default()
    };
    let mut output = shell.command_within(&script, short).await.output;
    while !output.contains("ready") {
        output = shell.try_input("", again).await.unwrap().output;
    }
}

#[test]
fn keys_make_signals() {
    run(async {
        let shell = Shell::bash().await;
        start(&shell, "", "exec sleep 100").await;
        let seen = shell.key("\\").await;
        let found = (seen.status, seen.exit_code);
        assert_eq!(found, (Status::Failed, Some(131)), "{:?}", seen.output);
        assert!(seen.output.contains("Quit"), "{:?}", seen.output);

        assert_eq!(shell.command("cat").await.status, Status::AwaitingInput);
        let seen = shell.key("d").await;
        assert_eq!(seen.brief(), (Status::Ok, Some(0), ""));

        // A terminal with other characters for its signals, and with none.
        for before in ["stty intr ^X susp ^Y; ", "stty intr undef; "] {
            start(&shell, before, "exec sleep 100").await;
            assert_eq!(shell.key("c").await.exit_code, Some(130), "{before}");
        }
    });
}

#[test]
fn a_stopped_job_goes_on_when_asked() {
    run(async {
        let shell = Shell::bash().await;
        for go_on in [
            "fg >/dev/null",
            "bg >/dev/null; wait",
            "kill -CONT %1; wait",
        ] {
            // It starts nothing: a child stopped before its exec holds up its parent, which then cannot stop.
            let program = "while [ ! -e go ]; do :; done; rm go; echo on";
            start(&shell, "", program).await;
            let seen = shell.key("z").await;
            let found = (seen.status, seen.exit_code);
            assert_eq!(found, (Status::Stopped, Some(148)), "{:?}", seen.output);
            let seen = shell.command(&format!("touch go; {go_on}")).await;
            assert_eq!(seen.exit_code, Some(0), "{go_on}");
            assert!(seen.output.contains("on\n"), "{go_on}: {:?}", seen.output);
        }
        // The status alone is no stop.
        shell.check("(exit 148)", 148, "").await;
        // Without job control the shell waits for the stopped program.
        let seen = shell.command("set +m; read x; echo got $x").await;
        assert_eq!(seen.status, Status::AwaitingInput);
        shell.input("y\n").await;
        let seen = shell
            .command("set +m; sh -c 'kill -STOP $$; echo on'")
            .await;
        assert_eq!(seen.brief(), (Status::Stopped, None, ""));
        let request = InputRequest {
            timeout: Some(Duration::from_millis(300)),
            ..InputRequest::default()
        };
        let error = shell.try_input("x\n", request).await.unwrap_err();
        let found = (error.code, error.message.as_str());
        let expected = "the job is stopped; nothing was sent";
        assert_eq!(found, (ErrorCode::NoReader, expected));
        assert!(shell.session.end_job().await.is_ok());
        shell.check("echo on", 0, "on\n").await;
    });
}

/// Its programs stop one after the other, and each still shows the call it was blocked in.
#[test]
fn a_pipeline_that_reads_is_stopped_as_a_whole() {
    // A signal that meets a program before it is one is rare.
    let is_full = std::env::var_os("KARYI_FULL").is_some();
    let rounds = if is_full { 200 } else { 3 };
    for name in ["bash", "zsh", "dash", "ksh", "mksh", "busybox"] {
        if !has(name) {
            continue;
        }
        run(async {
            let shell = Shell::with(|options| options.shell = Some(name.into())).await;
            for script in ["cat | cat", "cat | cat | cat | cat"] {
                for round in 0..rounds {
                    let seen = shell.command(script).await;
                    assert_eq!(seen.status, Status::AwaitingInput, "{name} {script}");
                    let mut seen = shell.key("z").await;
                    // ksh has a job go on that stops before it was put into the foreground.
                    if name == "ksh" && seen.status != Status::Stopped {
                        seen = shell.key("z").await;
                    }
                    let what = format!("{name} {script} {round}: {seen:?}");
                    assert_eq!(seen.status, Status::Stopped, "{what}");
                    for (_, job) in shell.session.take_background() {
                        assert!(shell.session.end_background(&job).await.is_ok(), "{what}");
                    }
                }
            }
        });
    }
}

/// A part of a job that reads says nothing while another part is stopped.
#[test]
fn a_job_that_is_stopped_in_part_waits_for_no_input() {
    run(async {
        let shell = Shell::bash().await;
        let script = "cat | sh -c 'kill -STOP $$; exec cat'";
        let quick = Duration::from_millis(500);
        let seen = shell.command_within(script, quick).await;
        assert_eq!(seen.status, Status::Running, "{seen:?}");
        assert!(shell.session.end_job().await.is_ok());
    });
}

#[test]
fn ctrl_c_reaches_a_program_with_the_terminal_in_another_session() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("skipped: only root takes terminals");
        return;
    }
    run(async {
        let shell = Shell::bash().await;
        let script = "setsid -c -w sh -c 'stty raw; cat; echo ON'";
        let seen = shell.command(script).await;
        assert_eq!(seen.status, Status::AwaitingInput, "{seen:?}");
        let seen = shell.key("c").await;
        assert_eq!(seen.status, Status::Failed, "{seen:?}");
        assert!(!seen.output.contains("ON"), "{seen:?}");
        shell.check("echo on", 0, "on\n").await;
    });
}

#[test]
fn without_a_job_nothing_is_ended() {
    run(async {
        let shell = Shell::bash().await;
        let error = shell.session.end_job().await.unwrap_err();
        assert_eq!(error.code, ErrorCode::NoJob);
    });
}

#[test]
fn a_job_is_ended_by_the_first_signal_it_obeys() {
    let scripts = [
        ("sleep 100", "INT"),
        ("sh -c 'trap \"\" INT; sleep 100; true'", "TERM"),
        ("trap '' INT; while :; do :; done", "KILL"),
        ("sleep 100 | cat", "INT"),
        (
            "sh -c 'trap \"\" INT TERM; while :; do sleep 1; done'",
            "KILL",
        ),
        ("cat", "INT"),
        ("sleep 100; sleep 100", "INT"),
        ("trap '' INT TERM; while :; do sleep 0.1; done", "KILL"),
        (
            "set +m; trap '' INT TERM; while :; do sleep 0.1; done",
            "KILL",
        ),
        ("stty raw; cat", "INT"),
        ("trap '' INT; read x", "KILL"),
        ("while :; do :; done", "INT"),
    ];
    // Each ending waits out its signals, so two are side by side.
    std::thread::scope(|scope| {
        for some in scripts.chunks(6) {
            scope.spawn(move || {
                for (script, expected) in some {
                    run(check_ending(script, expected));
                }
            });
        }
    });
}

async fn check_ending(script: &str, expected: &str) {
    let shell = Shell::bash().await;
    let quick = Duration::from_millis(200);
    let seen = shell.command_within(script, quick).await;
    assert_eq!(seen.exit_code, None, "{script}");
    let start = Instant::now();
    let ended = shell.session.end_job().await;
    assert_eq!(
        ended.as_ref().ok().copied(),
        Some(expected),
        "{script}: {ended:?}"
    );
    assert!(start.elapsed() < Duration::from_secs(8), "{script}");
    let seen = shell.command("trap - INT TERM; set -m; echo on").await;
    assert_eq!(seen.exit_code, Some(0), "{script}: {:?}", seen.output);
}

#[test]
fn a_stopped_job_is_ended() {
    // Each ending waits out its signals, so the shells take theirs side by side.
    std::thread::scope(|scope| {
        for name in ["bash", "zsh", "dash", "ksh", "mksh", "busybox"] {
            if has(name) {
                scope.spawn(move || run(end_stopped_jobs(name)));
            }
        }
    });
}

async fn end_stopped_jobs(name: &str) {
    let shell = Shell::with(|options| options.shell = Some(name.into())).await;
    for (ignored, expected) in [("INT", "TERM"), ("INT TERM", "KILL"), ("USR1", "INT")] {
        // A notice of the last job may be printed before it.
        shell.command("V=1").await;
        start(&shell, "", &format!("trap \"\" {ignored}; exec sleep 100")).await;
        let mut seen = shell.key("z").await;
        if seen.status == Status::Running {
            // The shell was not ready for it; a person presses the key again.
            seen = shell.key("z").await;
        }
        assert_eq!(seen.status, Status::Stopped, "{name}: {seen:?}");
        let left = shell.session.take_background();
        let [(_, job)] = &left[..] else {
            panic!("{name}: {left:?}");
        };
        assert_eq!(job.status(), BackgroundStatus::Stopped, "{name}");
        let ended = shell.session.end_background(job).await;
        assert_eq!(ended.ok(), Some(expected), "{name}");
        assert_eq!(job.status(), BackgroundStatus::Ended, "{name}");
        let error = shell.session.end_background(job).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::NoJob);
        let seen = shell.command("echo V=$V").await;
        // busybox now and then exits by itself when such a job ends while it waits for another
        // child; no process sends it a signal.
        let has_left = name == "busybox" && seen.progress.restarted.is_some();
        let is_kept = seen.output.contains("V=1\n");
        assert!(is_kept || has_left, "{name}: {seen:?}");
    }
}

/// Without job control a job in the background is in the group of the shell, which must live on.
#[test]
fn a_job_in_the_group_of_the_shell_is_ended_without_the_shell() {
    run(async {
        let shell = Shell::bash().await;
        // Until it runs its program, a new child still ends on INT.
        let both_run =
            "for pid in $! $first; do until grep -q sleep /proc/$pid/comm; do :; done; done";
        let script = format!("V=1; set +m; sleep 100 & first=$!; sleep 101 & {both_run}");
        shell.check(&script, 0, "").await;
        let left = shell.session.take_background();
        let [(_, job)] = &left[..] else {
            panic!("{left:?}");
        };
        // What is started in the background without job control takes no notice of INT.
        let ended = shell.session.end_background(job).await;
        assert_eq!(
            (ended.ok(), job.status()),
            (Some("TERM"), BackgroundStatus::Ended)
        );
        shell.check("set -m; echo V=$V", 0, "V=1\n").await;
    });
}

/// A program that takes the terminal into a session of its own is ended all the same.
#[test]
fn a_job_with_the_terminal_in_another_session_is_ended() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("skipped: only root takes terminals");
        return;
    }
    run(async {
        let shell = Shell::bash().await;
        let quick = Duration::from_millis(500);
        for ignored in ["USR1", "INT TERM"] {
            let script =
                format!("setsid -w -c sh -c 'trap \"\" {ignored}; echo $$; exec sleep 100'");
            let seen = shell.command_within(&script, quick).await;
            assert_eq!(seen.status, Status::Running, "{seen:?}");
            let pid = seen.output.trim().to_owned();
            assert!(shell.session.end_job().await.is_ok(), "{ignored}");
            let gone = format!("while kill -0 {pid} 2>/dev/null; do :; done; echo gone");
            let seen = shell.command(&gone).await;
            assert!(seen.output.ends_with("gone\n"), "{ignored}: {seen:?}");
        }
    });
}

#[test]
fn a_call_that_waits_is_told_that_its_job_was_ended() {
    run(async {
        let shell = Shell::bash().await;
        let ending = async {
            while !shell.session.has_job() {
                tokio::task::yield_now().await;
            }
            shell.session.end_job().await
        };
        let (seen, ended) = tokio::join!(shell.command("sleep 100"), ending);
        assert_eq!((seen.exit_code, ended.ok()), (Some(130), Some("INT")));
    });
}

#[test]
fn a_job_that_is_ended_leaves_nobody_in_another_session() {
    run(async {
        let shell = Shell::bash().await;
        let script = "setsid -w sh -c 'echo $$; trap \"\" INT TERM; sleep 100; sleep 100'";
        let quick = Duration::from_millis(500);
        let seen = shell.command_within(script, quick).await;
        let pid = seen.output.trim();
        assert_eq!(seen.status, Status::Running);
        assert!(shell.session.end_job().await.is_ok());
        let gone = format!("while kill -0 {pid} 2>/dev/null; do :; done; echo gone");
        shell.check(&gone, 0, "gone\n").await;
    });
}

#[test]
fn what_a_command_left_when_it_ended_the_shell_is_known() {
    run(async {
        let shell = Shell::bash().await;
        shell.check("sleep 500 & exit 3", 3, "").await;
        let left = shell.session.take_background();
        let lines: Vec<_> = left.iter().map(|(_, left)| left.command_line()).collect();
        assert_eq!(lines, [Some("sleep 500".to_owned())]);
        // What ends with the shell is nothing it left.
        shell
            .check("trap '' INT; sleep 500 | kill -9 $$", 137, "")
            .await;
        let left = shell.session.take_background();
        assert_eq!(left, []);
    });
}

#[test]
fn the_last_output_of_a_job_that_is_ended_is_told() {
    run(async {
        let shell = Shell::bash().await;
        let quick = Duration::from_millis(500);
        for (script, expected) in [
            ("cat", 130),
            (
                "sh -c 'trap \"\" INT; trap \"echo bye; exit 7\" TERM; read x; while :; do sleep 1; done'",
                7,
            ),
            ("sleep 100; echo on", 130),
        ] {
            shell.command_within(script, quick).await;
            let taken = Arc::new(Mutex::new(Vec::new()));
            let kept = taken.clone();
            let sink: Sink = Box::new(move |bytes| kept.lock().unwrap().extend_from_slice(bytes));
            let progress = shell.session.end_job_with_output(sink).await.unwrap();
            assert_eq!(progress.exit_code, Some(expected), "{script}");
            let output = String::from_utf8(taken.lock().unwrap().clone()).unwrap();
            assert_eq!(output.contains("bye"), expected == 7, "{output:?}");
        }
        let error = shell.session.end_job_with_output(Box::new(|_| {})).await;
        assert_eq!(error.unwrap_err().code, ErrorCode::NoJob);
    });
}

#[test]
fn the_terminal_takes_another_size() {
    run(async {
        let shell = Shell::bash().await;
        shell.check("stty size", 0, "40 120\n").await;
        let script = "bash -c \"trap 'stty size' WINCH; echo ready; while :; do sleep 0.01; done\"";
        let mut seen = shell
            .command_within(script, Duration::from_millis(50))
            .await;
        while seen.output.is_empty() {
            let again = InputRequest {
                timeout: Some(Duration::from_millis(50)),
                ..InputRequest::default()
            };
            seen = shell.try_input("", again).await.unwrap();
        }
        assert_eq!(seen.brief(), (Status::Running, None, "ready\n"));
        shell.session.resize(50, 200).unwrap();
        let wait = InputRequest {
            timeout: Some(Duration::from_millis(500)),
            ..InputRequest::default()
        };
        let seen = shell.try_input("", wait).await.unwrap();
        assert_eq!(seen.brief(), (Status::Running, None, "50 200\n"));
        assert!(shell.session.end_job().await.is_ok());
        let size = "python3 -c 'import shutil; print(*shutil.get_terminal_size())'";
        shell.check(size, 0, "200 50\n").await;
        assert_eq!(shell.command("exit 3").await.exit_code, Some(3));
        shell.check("stty size", 0, "50 200\n").await;
        shell.session.resize(1, 1000).unwrap();
        shell.check("stty size", 0, "1 1000\n").await;
        for (rows, columns) in [(0, 80), (24, 0), (1001, 80), (24, u16::MAX)] {
            let error = shell.session.resize(rows, columns).unwrap_err();
            assert_eq!(error.code, ErrorCode::BadValue, "{rows} {columns}");
        }
        assert_eq!(shell.session.size(), (1, 1000));
    });
}

/// A terminal that was hung up takes its shell with it; another one takes their place.
#[test]
fn a_terminal_that_was_hung_up_is_replaced() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("skipped: only root hangs up terminals");
        return;
    }
    run(async {
        let shell = Shell::bash().await;
        let hang_up = "python3 -c 'import ctypes; ctypes.CDLL(None).vhangup()'";
        for before in ["", "trap '' HUP; "] {
            let request = CommandRequest {
                script: format!("{before}{hang_up}; sleep 100"),
                timeout: Some(Duration::from_secs(5)),
                ..CommandRequest::default()
            };
            let seen = shell.request(request).await.unwrap();
            assert_eq!(seen.status, Status::Failed, "{before}: {:?}", seen.progress);
            assert!(seen.progress.restarted.is_some(), "{before}");
            shell.check("trap - HUP; echo on", 0, "on\n").await;
            assert_eq!(
                shell.command("read x; echo $x").await.status,
                Status::AwaitingInput
            );
            assert_eq!(shell.input("it\n").await.exit_code, Some(0));
        }
    });
}
