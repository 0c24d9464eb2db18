//! Nothing outlives a session.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use karyi::outcome::Status;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::support::{Shell, run};
use crate::harness::escape::{ESCAPES, Mark};

/// Processes that are never two looks at the same place: a new one takes over all the time. They
/// end of themselves, for a test that is killed leaves them behind.
const FLEEING: &[&str] = &[
    "python3 -c 'import os, signal, time\nfor n in (1, 2, 15): signal.signal(n, signal.SIG_IGN)\nend = time.time() + 60\nwhile time.time() < end:\n if os.fork(): os._exit(0)\n time.sleep(0.002)' MARK &",
    "python3 -c 'import os, signal, time\nfor n in (1, 2, 15): signal.signal(n, signal.SIG_IGN)\nend = time.time() + 60\nwhile time.time() < end:\n if os.fork(): os._exit(0)\n os.setsid()\n time.sleep(0.001)' MARK &",
];

#[test]
fn escapees_are_gone_after_close() {
    run(async {
        let (shell, mark) = (Shell::bash().await, Mark::new());
        for escape in ESCAPES {
            let seen = shell.command(&mark.script(escape)).await;
            assert_eq!(seen.status, Status::Ok, "{escape}");
        }
        mark.expect(ESCAPES.len());
        assert_eq!(shell.session.close().await, None);
        assert_eq!(mark.found(), Vec::<String>::new());
        assert_eq!(shell.session.close().await, None);
    });
}

#[test]
fn what_flees_is_caught() {
    for script in FLEEING {
        run(async {
            let (shell, mark) = (Shell::bash().await, Mark::new());
            shell.command(&mark.script(script)).await;
            mark.expect(1);
            shell.session.close().await;
            tokio::time::sleep(Duration::from_millis(20)).await;
            assert_eq!(mark.found(), Vec::<String>::new(), "{script}");
        });
    }
}

/// A run looks at its own processes, not at those of the machine.
#[test]
fn a_run_beside_many_processes_reads_no_more_than_alone() {
    const BESIDE: u64 = 300;
    let fewest = || (0..3).filter_map(|_| reads_of_a_run()).min();
    let Some(alone) = fewest() else {
        return;
    };
    let sleep = || Command::new("sleep").arg("1000").spawn().unwrap();
    let mut others: Vec<_> = (0..BESIDE).map(|_| sleep()).collect();
    let beside = fewest().unwrap();
    for other in &mut others {
        other.kill().unwrap();
        other.wait().unwrap();
    }
    assert!(beside < alone + BESIDE, "{alone} reads, then {beside}");
}

/// Returns the number of reads of a run and of all its processes; `None` where the kernel does not count them.
fn reads_of_a_run() -> Option<u64> {
    let script = r#""$1" run --no-rc -c "$2" >/dev/null || exit; cat /proc/$$/io"#;
    let block = "<tools><command>true</command></tools>";
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh", env!("CARGO_BIN_EXE_karyi"), block]);
    command.env("HOME", home.path()).env("TMPDIR", home.path());
    let text = String::from_utf8(command.output().unwrap().stdout).unwrap();
    text.lines()
        .find_map(|line| line.strip_prefix("syscr: "))
        .map(|count| count.parse().unwrap())
}

#[test]
fn a_thousand_are_ended_together() {
    run(async {
        let (shell, mark) = (Shell::bash().await, Mark::new());
        let script = "trap '' HUP; for i in {1..500}; do setsid sleep 510.MARK & sleep 511.MARK & done 2>/dev/null";
        let seen = shell
            .command_within(&mark.script(script), Duration::from_secs(25))
            .await;
        assert_eq!(seen.status, Status::Ok);
        mark.expect(1000);
        shell.session.close().await;
        assert_eq!(mark.found(), Vec::<String>::new());
    });
}

#[test]
fn only_the_processes_of_the_closed_session_end() {
    run(async {
        let escape = "setsid env -i setsid -f sleep 510.MARK; sleep 511.MARK & sleep 0";
        let (one, mark) = (Shell::bash().await, Mark::new());
        let (two, other) = (Shell::bash().await, Mark::new());
        one.command(&mark.script(escape)).await;
        two.command(&other.script(escape)).await;
        mark.expect(2);
        other.expect(2);
        one.session.close().await;
        assert_eq!((mark.found().len(), other.found().len()), (0, 2));
        two.check("echo here", 0, "here\n").await;
        two.session.close().await;
        assert_eq!(other.found().len(), 0);
    });
}

#[test]
fn children_that_are_not_of_the_session_go_on() {
    run(async {
        let mark = Mark::new();
        let sleep = mark.script("510.MARK");
        let mut command = std::process::Command::new("setsid");
        let mut child = command.arg("sleep").arg(sleep).spawn().unwrap();
        let shell = Shell::bash().await;
        shell.command(&mark.script("sleep 511.MARK &")).await;
        mark.expect(2);
        shell.session.close().await;
        assert_eq!(mark.found(), [mark.script("sleep 510.MARK ")]);
        child.kill().unwrap();
        child.wait().unwrap();
    });
}

#[test]
fn a_session_inside_a_session_ends_with_it() {
    run(async {
        let (shell, mark) = (Shell::bash().await, Mark::new());
        let inner = mark.script(
            "<tools><command>setsid -f env -i sleep 510.MARK; sleep 511.MARK</command></tools>",
        );
        let script = format!(
            "TMPDIR=$HOME {} run -c '{inner}' >/dev/null &",
            env!("CARGO_BIN_EXE_karyi")
        );
        shell.command(&script).await;
        mark.expect(3);
        shell.session.close().await;
        assert_eq!(mark.found(), Vec::<String>::new());
    });
}

#[test]
fn the_exit_trap_of_an_idle_shell_is_finished() {
    for shell in ["bash", "zsh", "dash", "ksh", "mksh"] {
        let path = Path::new("/bin").join(shell);
        if !path.exists() {
            continue;
        }
        run(async {
            let shell = Shell::with(|options| options.shell = Some(path.clone())).await;
            let script = "touch kept; sleep 500 & trap 'sleep 0.2; rm -f kept' EXIT";
            assert_eq!(shell.command(script).await.status, Status::Ok);
            assert_eq!(shell.session.close().await, None);
            assert!(!shell.home.path().join("kept").exists(), "{path:?}");
        });
    }
}

/// The shell does not go on with the command after the one that was ended.
#[test]
fn traps_of_a_shell_and_its_script_are_finished_and_nothing_else_is_begun() {
    const TRAP: &str = "touch kept; trap 'sleep 0.3; rm -f kept' EXIT; sleep 500";
    let in_script = format!("echo \"{TRAP}; touch late\" >script; bash script");
    for script in [TRAP, &in_script, &format!("{in_script} & sleep 500")] {
        run(async {
            let shell = Shell::bash().await;
            let script = format!("{script}; touch late");
            let seen = shell.command_within(&script, Duration::from_secs(1)).await;
            assert_eq!(seen.status, Status::Running);
            assert!(shell.home.path().join("kept").exists(), "{script}");
            assert_eq!(shell.session.close().await, Some("HUP"), "{script}");
            for name in ["kept", "late"] {
                assert!(!shell.home.path().join(name).exists(), "{name}: {script}");
            }
        });
    }
}

#[test]
fn a_trap_without_an_end_is_ended_after_its_grace() {
    run(async {
        let (shell, mark) = (Shell::bash().await, Mark::new());
        let script = mark.script("(trap 'sleep 510.MARK; sleep 511.MARK' EXIT; sleep 500)");
        shell.command_within(&script, Duration::from_secs(1)).await;
        let start = std::time::Instant::now();
        shell.session.close().await;
        assert!(start.elapsed() >= Duration::from_secs(2));
        assert_eq!(mark.found(), Vec::<String>::new());
    });
}

#[test]
fn a_running_job_is_ended_in_steps() {
    run(async {
        let short = Duration::from_secs(1);
        let check = async |script: &str, expected| {
            let shell = Shell::bash().await;
            assert_eq!(
                shell.command_within(script, short).await.status,
                Status::Running
            );
            assert_eq!(shell.session.close().await, Some(expected), "{script}");
        };
        check("sleep 100", "HUP").await;
        check("(trap '' HUP; for i in {1..60}; do sleep 1; done)", "TERM").await;
        check(
            "(trap '' HUP TERM; for i in {1..60}; do sleep 1; done)",
            "KILL",
        )
        .await;
    });
}

#[test]
fn dropping_the_last_handle_ends_everything_at_once() {
    let rounds = if std::env::var_os("KARYI_FULL").is_some() {
        200
    } else {
        5
    };
    for round in 0..rounds {
        run(async {
            let (shell, mark) = (Shell::bash().await, Mark::new());
            let script =
                "setsid sleep 510.MARK & sleep 511.MARK & (setsid env -i sleep 512.MARK &)";
            shell.command(&mark.script(script)).await;
            let copy = shell.session.clone();
            drop(shell);
            assert!(!copy.has_job());
            let _ = copy.interrupt();
            drop(copy);
            // Some may not even have begun to be what they are to become.
            for _ in 0..20 {
                assert_eq!(mark.found(), Vec::<String>::new(), "round {round}");
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
    }
}

#[test]
fn a_shell_that_is_stopped_or_gone_can_be_closed() {
    for signal in [Signal::SIGSTOP, Signal::SIGKILL] {
        run(async {
            let (shell, mark) = (Shell::bash().await, Mark::new());
            let seen = shell
                .command(&mark.script("sleep 510.MARK & echo $$"))
                .await;
            let pid = seen.output.trim().parse().unwrap();
            mark.expect(1);
            kill(Pid::from_raw(pid), signal).unwrap();
            shell.session.close().await;
            assert_eq!(mark.found(), Vec::<String>::new(), "{signal}");
            assert!(!Path::new(&format!("/proc/{pid}")).exists(), "{signal}");
        });
    }
}

#[test]
fn a_shell_killed_while_it_is_closed_stays_closed() {
    run(async {
        let (shell, mark) = (Shell::bash().await, Mark::new());
        let seen = shell
            .command(&mark.script("(trap '' HUP; exec sleep 510.MARK) & echo $$"))
            .await;
        let pid = Pid::from_raw(seen.output.trim().parse().unwrap());
        mark.expect(1);
        let kill_soon = async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            let _ = kill(pid, Signal::SIGKILL);
        };
        let (first, second, ()) =
            tokio::join!(shell.session.close(), shell.session.close(), kill_soon);
        assert_eq!((first, second), (None, None));
        assert_eq!(mark.found(), Vec::<String>::new());
    });
}

#[test]
fn a_call_that_waits_is_told_that_the_session_was_closed() {
    run(async {
        let (shell, mark) = (Shell::bash().await, Mark::new());
        let script = mark.script("sleep 510.MARK");
        let call = shell.command(&script);
        let close = async {
            mark.expect(1);
            shell.session.close().await
        };
        let (seen, ended_by) = tokio::join!(call, close);
        assert_eq!(
            (seen.brief(), ended_by),
            ((Status::Killed, None, ""), Some("HUP"))
        );
        assert_eq!(mark.found(), Vec::<String>::new());
    });
}

#[test]
fn a_session_is_closed_while_input_is_typed() {
    run(async {
        let shell = Shell::bash().await;
        let seen = shell.command("stty -icanon; read -n 1 x; sleep 500").await;
        assert_eq!(seen.status, Status::AwaitingInput);
        let text = "x".repeat(200 << 10);
        let (_, ended_by) = tokio::join!(
            shell.try_input(&text, karyi::pty::InputRequest::default()),
            shell.session.close()
        );
        assert_eq!(ended_by, Some("HUP"));
    });
}

#[test]
fn a_call_dropped_early_leaves_its_job_alone() {
    run(async {
        let shell = Shell::bash().await;
        let call = shell.command("sleep 0.3; echo early; read x; echo $x");
        assert!(
            tokio::time::timeout(Duration::from_millis(50), call)
                .await
                .is_err()
        );
        let seen = shell.input("late\n").await;
        assert_eq!(seen.brief(), (Status::Ok, Some(0), "early\nlate\nlate\n"));
    });
}

/// Whoever uses the library has children, too; their exit status is theirs, also when they are in a
/// session of their own.
#[test]
fn children_of_the_program_are_left_to_it() {
    run(async {
        let mut command = std::process::Command::new("setsid");
        let mut child = command.args(["sh", "-c", "exit 7"]).spawn().unwrap();
        let stat = format!("/proc/{}/stat", child.id());
        let is_ended = || std::fs::read_to_string(&stat).is_ok_and(|text| text.contains(") Z "));
        let shell = Shell::bash().await;
        while !is_ended() {
            shell.check("(sleep 0 &)", 0, "").await;
        }
        // Orphans of the session are collected meanwhile.
        let start = std::time::Instant::now();
        while start.elapsed() < Duration::from_millis(1200) {
            shell.check("(sleep 0 &)", 0, "").await;
        }
        shell.session.close().await;
        assert_eq!(child.wait().unwrap().code(), Some(7));
    });
}

#[test]
fn shells_that_are_gone_are_forgotten() {
    run(async {
        let shell = Shell::bash().await;
        let record = || {
            let sessions = std::fs::read_dir(shell.home.path().join("run")).unwrap();
            let directory = sessions.flatten().next().unwrap().path();
            std::fs::read_to_string(directory.join("owner")).unwrap()
        };
        let shells = || {
            record()
                .lines()
                .filter(|line| line.starts_with("shell "))
                .count()
        };
        for number in 2..=70 {
            assert_eq!(shell.command("exit 3").await.exit_code, Some(3));
            assert!(shells() <= number.min(63), "{number}: {}", shells());
        }
        shell.session.close().await;
    });
}
