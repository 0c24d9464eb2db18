//! What a command prints.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use karyi::outcome::Status;
use karyi::pty::CommandRequest;

use super::detection::rounds;
use super::support::{Shell, run};

/// Resident memory of this process in KiB.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    line.split_ascii_whitespace()
        .nth(1)
        .unwrap()
        .parse()
        .unwrap()
}

/// Runs in a process of its own, as other tests take memory too.
#[test]
fn endless_output_passes_through_flat_memory() {
    const ALONE: &str = "KARYI_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return check_endless_output();
    }
    let own = std::env::current_exe().unwrap();
    let test = "session::output::endless_output_passes_through_flat_memory";
    let mut child = std::process::Command::new(own);
    let child = child.args(["--exact", test]).env(ALONE, "1");
    let output = child.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("1 passed"), "{text}{errors}");
}

fn check_endless_output() {
    let many = rounds(40, 300) as u64;
    run(async {
        let shell = Shell::bash().await;
        let counted = Arc::new(AtomicU64::new(0));
        let mut sizes = Vec::new();
        for megabytes in [5, many] {
            let request = CommandRequest {
                script: format!("head -c {}000000 /dev/zero | tr '\\0' x", megabytes),
                ..CommandRequest::default()
            };
            let counter = counted.clone();
            let sink = Box::new(move |bytes: &[u8]| {
                counter.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            });
            let progress = shell.session.command(request, sink).await.unwrap();
            assert_eq!(progress.status, Status::Ok);
            sizes.push(resident_kib());
        }
        assert_eq!(counted.load(Ordering::Relaxed), (5 + many) * 1_000_000);
        assert!(sizes[1] < sizes[0] + 10_000, "{sizes:?}");
    });
}

#[test]
fn output_nobody_waits_for_comes_with_the_next_input() {
    run(async {
        let shell = Shell::bash().await;
        shell.check("mkfifo go done", 0, "").await;
        let script = "echo one; read x <go; echo two; echo x >done; read x; echo $x";
        let seen = shell
            .command_within(script, Duration::from_millis(100))
            .await;
        assert_eq!(seen.brief(), (Status::Running, None, "one\n"));
        std::fs::write(shell.home.path().join("go"), "x\n").unwrap();
        std::fs::read(shell.home.path().join("done")).unwrap();
        let seen = shell.input("three\n").await;
        assert_eq!(seen.brief(), (Status::Ok, Some(0), "two\nthree\nthree\n"));
    });
}

#[test]
fn traces_and_prompts_stay_out_of_the_output() {
    run(async {
        let shell = Shell::bash().await;
        shell
            .check(
                "PS1='> '; PS2='> '; PS4='+'; PROMPT_COMMAND='echo PC'; set -xv",
                0,
                "",
            )
            .await;
        shell.check("echo a", 0, "echo a\n++echo a\na\n").await;
        shell.check("set +xv", 0, "set +xv\n++set +xv\n").await;
        shell
            .check("trap 'echo ERR' ERR; trap 'echo DEBUG' DEBUG", 0, "")
            .await;
        shell.check("echo b", 0, "b\n").await;
        shell.check("false", 1, "ERR\n").await;
    });
}

#[test]
fn terminal_modes_do_not_outlive_their_command() {
    run(async {
        let shell = Shell::bash().await;
        let modes = shell.command("stty -a").await.output;
        assert!(
            modes.starts_with("speed 38400 baud; rows 40; columns 120;"),
            "{modes}"
        );
        shell.command("stty raw -echo -isig").await;
        assert_eq!(shell.command("stty -a").await.output, modes);
    });
}

#[test]
fn signals_of_the_shell_have_their_usual_meaning() {
    run(async {
        let shell = Shell::bash().await;
        shell.check("yes | head -n1", 0, "y\n").await;
        shell
            .check(
                // The C library's own signals are inherited from whoever runs the tests.
                "sh -c 'trap'; grep -c 'SigIgn:.*0000000$' /proc/self/status",
                0,
                "1\n",
            )
            .await;
        shell.check("ls /proc/self/fd | wc -l", 0, "4\n").await;
    });
}

/// Whoever takes what the background prints is busy with it when a command starts.
#[test]
fn a_command_does_not_take_the_background_its_listener() {
    run(async {
        let shell = Shell::bash().await;
        let script =
            "(for i in {1..6000}; do [ -e stop ] && break; echo tick; sleep 0.01; done) & disown";
        shell.command(script).await;
        let gate = Arc::new(Mutex::new(()));
        let (seen, sees) = std::sync::mpsc::channel();
        let held = gate.clone();
        let listener = Box::new(move |_: &[u8]| {
            let is_held = held.try_lock().is_err();
            let _ = seen.send(is_held);
            drop(held.lock().unwrap());
        });
        shell.session.set_idle_sink(Some(listener));
        let guard = gate.lock().unwrap();
        let patience = Duration::from_secs(30);
        while !sees.recv_timeout(patience).unwrap() {}
        let (ended, ()) = tokio::join!(shell.command("true"), async { drop(guard) });
        assert_eq!(ended.exit_code, Some(0));
        while sees.try_recv().is_ok() {}
        assert_eq!(sees.recv_timeout(patience), Ok(false));
        shell.session.set_idle_sink(None);
        while sees.try_recv().is_ok() {}
        shell.command("touch stop").await;
        assert!(sees.try_recv().is_err());
    });
}
