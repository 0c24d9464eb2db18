//! What a job in the foreground is seen to wait for.

use std::time::{Duration, Instant};

use karyi::outcome::Status;

use super::detection::rounds;
use super::support::{Shell, run};

#[test]
fn programs_that_read_the_terminal_are_seen_waiting() {
    run(async {
        let shell = Shell::bash().await;
        for script in [
            "cat",
            "read x",
            "dash -c 'read x'",
            "cat | sort",
            "(read x)",
            "python3 -c 'input()'",
            "python3 -c 'import select, sys; select.select([sys.stdin], [], [])'",
            "python3 -c 'import select, sys\np = select.poll(); p.register(sys.stdin, select.POLLIN); p.poll()'",
            "python3 -c 'import selectors, sys\ns = selectors.DefaultSelector(); s.register(sys.stdin, 1); s.select()'",
            "head -n1 </dev/tty",
        ] {
            let seen = shell.command(script).await;
            assert_eq!(seen.brief(), (Status::AwaitingInput, None, ""), "{script}");
            assert_eq!(shell.key("c").await.status, Status::Failed, "{script}");
        }
    });
}

#[test]
fn busy_jobs_are_never_seen_waiting() {
    run(async {
        let shell = Shell::bash().await;
        for script in [
            "sleep 0.3",
            "sleep 0.3 | cat",
            "python3 -c 'import time; t = time.time()\nwhile time.time() < t + 0.3: pass'",
            "cat <(sleep 0.3)",
            "for i in 1 2 3 4 5 6 7 8; do sleep 0.02; done </dev/null",
            "python3 -c 'import socket, threading, time\na, b = socket.socketpair()\nthreading.Timer(0.3, lambda: b.send(b\"x\")).start(); a.recv(1)'",
        ] {
            let seen = shell.command(script).await;
            assert_eq!(seen.brief(), (Status::Ok, Some(0), ""), "{script}");
        }
    });
}

#[test]
fn a_program_that_looks_now_and_then_accepts_input() {
    run(async {
        let shell = Shell::bash().await;
        let script = "python3 -c 'import select, sys\nprint(\"up\", flush=True)\nwhile not select.select([sys.stdin], [], [], 0.2)[0]: pass\nprint(\"got\", input())'";
        let seen = shell.command(script).await;
        assert_eq!(seen.brief(), (Status::AcceptsInput, None, "up\n"));
        assert_eq!(
            shell.input("it\n").await.brief(),
            (Status::Ok, Some(0), "it\ngot it\n")
        );
    });
}

#[test]
fn a_stopped_job_is_seen() {
    run(async {
        let shell = Shell::bash().await;
        let seen = shell.command("sh -c 'kill -STOP $$; echo on'").await;
        assert_eq!((seen.status, seen.exit_code), (Status::Stopped, Some(147)));
        shell.check("fg >/dev/null", 0, "on\n").await;
        let seen = shell
            .command("set +m; sh -c 'kill -STOP $$; echo on'")
            .await;
        assert_eq!(seen.brief(), (Status::Stopped, None, ""));
        assert_eq!(shell.session.close().await, Some("HUP"));
    });
}

#[test]
fn a_prompt_is_known_soon() {
    run(async {
        let shell = Shell::bash().await;
        let mut taken: Vec<Duration> = Vec::new();
        for _ in 0..20 {
            let start = Instant::now();
            assert_eq!(
                shell.command("read -p 'name? ' x").await.status,
                Status::AwaitingInput
            );
            taken.push(start.elapsed());
            assert_eq!(shell.input("Ada\n").await.exit_code, Some(0));
        }
        taken.sort();
        // Measured at 3 ms on an idle machine; this only guards against a wrong back-off, which would delay every one.
        assert!(taken[2] < Duration::from_millis(60), "{taken:?}");
    });
}

#[test]
fn typed_secrets_never_echo() {
    run(async {
        let shell = Shell::bash().await;
        for _ in 0..rounds(3, 20) {
            let seen = shell
                .command_within(
                    "python3 -c 'import getpass; print(len(getpass.getpass()))'",
                    Duration::ZERO,
                )
                .await;
            assert_eq!(seen.status, Status::Running);
            let request = karyi::pty::InputRequest {
                is_secret: true,
                ..Default::default()
            };
            let seen = shell.try_input("hunter2\n", request).await.unwrap();
            assert_eq!(seen.brief(), (Status::Ok, Some(0), "Password: \n7\n"));
        }
    });
}

#[test]
fn long_input_reaches_its_reader_whole() {
    run(async {
        let shell = Shell::bash().await;
        assert_eq!(
            shell.command("stty -echo; wc -c").await.status,
            Status::AwaitingInput
        );
        let text = format!("{}\n", "y".repeat(99)).repeat(2000);
        assert_eq!(shell.input(&text).await.status, Status::AwaitingInput);
        let seen = shell.key("d").await;
        assert_eq!(seen.brief(), (Status::Ok, Some(0), "200000\n"));
    });
}
