//! Nothing outlives a session.

use std::time::{Duration, Instant};

use karyi::outcome::Status;

use super::support::{Shell, run};

/// Ways to leave a session behind, each starting a `sleep` of its own length.
const ESCAPES: &[&str] = &[
    "sleep 54321 & disown",
    "nohup sleep 54322 >/dev/null 2>&1 &",
    "setsid sleep 54323 &",
    "(setsid sleep 54324 &) &",
    "python3 -c 'import os\nif os.fork() == 0:\n os.setsid()\n if os.fork() == 0:\n  os.execve(\"/bin/sleep\", [\"sleep\", \"54325\"], {})\n os._exit(0)'",
    "(trap '' HUP TERM INT; sleep 54326) &",
];

fn is_running(length: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines
        .into_iter()
        .any(|line| line == format!("sleep\0{length}\0").as_bytes())
}

fn survivors() -> Vec<&'static str> {
    let lengths = ["54321", "54322", "54323", "54324", "54325", "54326"];
    lengths
        .into_iter()
        .filter(|length| is_running(length))
        .collect()
}

/// Runs one test of this program alone in a process: other sessions would blur whose escapee it is.
fn alone(test: &str, body: impl FnOnce()) {
    if std::env::var_os("KARYI_TEST_ALONE").is_some() {
        return body();
    }
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test]).env("KARYI_TEST_ALONE", "1");
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
}

#[test]
fn escapees_are_gone_after_close() {
    alone(
        "session::ending::escapees_are_gone_after_close",
        check_escapees,
    );
}

fn check_escapees() {
    run(async {
        let shell = Shell::bash().await;
        for escape in ESCAPES {
            assert_eq!(shell.command(escape).await.status, Status::Ok, "{escape}");
        }
        let deadline = Instant::now() + Duration::from_secs(10);
        while survivors().len() < 6 && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(survivors().len(), 6, "{:?}", survivors());
        assert_eq!(shell.session.close().await, None);
        assert_eq!(survivors(), Vec::<&str>::new());
        assert_eq!(shell.session.close().await, None);
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
        check("(trap '' HUP; while :; do sleep 1; done)", "TERM").await;
        check("(trap '' HUP TERM; while :; do sleep 1; done)", "KILL").await;
    });
}

#[test]
fn dropping_the_last_handle_ends_the_shell() {
    run(async {
        let shell = Shell::bash().await;
        let pid: i32 = shell
            .command("echo $$; setsid sleep 54330 &")
            .await
            .output
            .lines()
            .next()
            .unwrap()
            .parse()
            .unwrap();
        let copy = shell.session.clone();
        drop(shell);
        assert!(std::path::Path::new(&format!("/proc/{pid}")).exists());
        drop(copy);
        let deadline = Instant::now() + Duration::from_secs(10);
        while std::path::Path::new(&format!("/proc/{pid}")).exists() || is_running("54330") {
            assert!(Instant::now() < deadline, "the shell still runs");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
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
