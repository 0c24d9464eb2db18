//! What goes wrong around a session: its directory, its shell, its reader.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use karyi::error::ErrorCode;
use karyi::outcome::Status;
use karyi::pty::{CommandRequest, Session};

use super::detection::rounds;
use super::support::{Shell, options, run};

async fn probe(shell: &Shell) {
    shell.check("echo \"ok-$((1+1))\"", 0, "ok-2\n").await;
}

fn signal(name: &str, pid: &str) {
    let status = Command::new("kill").args([name, pid.trim()]).status();
    assert!(status.unwrap().success());
}

#[test]
fn a_directory_that_cannot_be_made_is_an_error() {
    run(async {
        let home = tempfile::tempdir().unwrap();
        let mut options = options(home.path());
        for place in ["/proc/karyi", "/dev/null/karyi"] {
            options.runtime_dir = place.into();
            let error = Session::start(options.clone()).await.err().unwrap();
            assert_eq!(error.code, ErrorCode::SessionFailed, "{}", error.message);
        }
    });
}

/// Where no more files can be opened the refusal comes at once, and the session goes on.
#[test]
fn too_few_descriptors_are_told_at_once() {
    let home = tempfile::tempdir().unwrap();
    let message =
        "<tools><command timeout=\"0.3\">sleep 9</command><command>echo b</command></tools>";
    let output = Command::new("prlimit")
        .arg("--nofile=30")
        .arg(env!("CARGO_BIN_EXE_karyi"))
        .args(["run", "--no-rc", "--json", "-c", message])
        .env("KARYI_HOME", home.path())
        .output();
    let Ok(output) = output else {
        eprintln!("skipped: no prlimit");
        return;
    };
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let refused = &report["results"][1];
    assert_eq!(refused["code"], "session_failed", "{report:#}");
    // To ask for every number a process can have takes several seconds.
    assert!(
        refused["duration_ms"].as_u64().unwrap() < 2000,
        "{report:#}"
    );
}

#[test]
fn a_full_directory_is_an_error_until_there_is_room() {
    let place = tempfile::tempdir().unwrap();
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", "size=128k", "karyi-test"]);
    let mounted = mount.arg(place.path()).output();
    if !mounted.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: no right to mount a small file system");
        return;
    }
    let unmount = Unmount(place.path().to_owned());
    run(async {
        let shell = Shell::with(|options| options.runtime_dir = place.path().join("run")).await;
        let request = CommandRequest {
            script: format!("echo {}", "x".repeat(1 << 20)),
            ..CommandRequest::default()
        };
        let error = shell.request(request).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::SessionFailed);
        assert!(error.message.contains("space"), "{}", error.message);
        probe(&shell).await;
    });
    drop(unmount);
}

struct Unmount(std::path::PathBuf);

impl Drop for Unmount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_removed_directory_is_made_again() {
    run(async {
        let shell = Shell::bash().await;
        let place = shell.home.path().join("run");
        std::fs::remove_dir_all(&place).unwrap();
        probe(&shell).await;
        std::fs::remove_dir_all(&place).unwrap();
        let seen = shell.command("export A=1; exit 3").await;
        assert_eq!(seen.exit_code, Some(3));
        assert!(seen.progress.restarted.is_some());
        probe(&shell).await;
        let script = format!("rm -rf '{}'; exit 4", place.display());
        assert_eq!(shell.command(&script).await.exit_code, Some(4));
        probe(&shell).await;
        let seen = shell
            .command_with("echo ${#__karyi_K}", &[("K", "hunter2")])
            .await;
        assert_eq!(seen.unwrap().output, "7\n");
        std::fs::remove_dir_all(&place).unwrap();
        std::fs::write(&place, "").unwrap();
        let request = CommandRequest::default();
        let error = shell.request(request).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::SessionFailed, "{}", error.message);
        std::fs::remove_file(&place).unwrap();
        probe(&shell).await;
    });
}

#[test]
fn signals_from_outside_end_no_session() {
    run(async {
        let shell = Shell::bash().await;
        let pid = shell.command("echo $$").await.output;
        let ms = Duration::from_millis(100);
        // Stopped while it rests, and in the middle of a command, whose built-in loop stops too.
        signal("-STOP", &pid);
        probe(&shell).await;
        let seen = shell.command_within("read x; echo got $x", ms).await;
        signal("-STOP", &pid);
        assert!(matches!(
            seen.status,
            Status::AwaitingInput | Status::Running
        ));
        assert_eq!(shell.input("it\n").await.output, "it\ngot it\n");
        let killing = async {
            tokio::time::sleep(ms).await;
            signal("-KILL", &pid);
        };
        let (seen, ()) = tokio::join!(shell.command("while :; do :; done"), killing);
        assert_eq!((seen.status, seen.exit_code), (Status::Failed, Some(137)));
        assert!(seen.progress.restarted.is_some());
        probe(&shell).await;
    });
}

/// The terminal of a shell that was just killed has no group in the foreground; the signals of the
/// ladder must not reach this very program instead.
#[test]
fn the_ladder_ends_nobody_else_when_the_shell_is_gone() {
    run(async {
        let shell = Shell::bash().await;
        for _ in 0..rounds(2, 100) {
            let pid = shell.command("echo $$").await.output;
            let script = "trap '' INT TERM; while :; do :; done";
            let seen = shell
                .command_within(script, Duration::from_millis(50))
                .await;
            assert_eq!(seen.status, Status::Running);
            let killing = async { signal("-KILL", &pid) };
            // Too late for the job, or in time; both are right.
            let (_, ()) = tokio::join!(shell.session.end_job(), killing);
            probe(&shell).await;
        }
    });
}

#[test]
fn a_command_of_ten_megabytes_runs() {
    run(async {
        let shell = Shell::bash().await;
        let script = format!("x='{}'; echo ${{#x}}; unset x", "x".repeat(10 << 20));
        shell.check(&script, 0, "10485760\n").await;
        probe(&shell).await;
    });
}

#[test]
fn many_background_jobs_leave_the_session_alive() {
    run(async {
        let shell = Shell::bash().await;
        // All in one list would take bash alone hours: its time grows with the square.
        for _ in 0..rounds(1, 50) {
            let script = "for i in $(seq 2000); do : & done 2>/dev/null; wait; echo done";
            let seen = shell.command_within(script, Duration::from_secs(600)).await;
            assert_eq!((seen.status, seen.exit_code), (Status::Ok, Some(0)));
        }
        probe(&shell).await;
        let seen = shell
            .command_within(
                "for i in $(seq 1500); do sleep 300 & done 2>/dev/null; echo up; wait",
                Duration::from_secs(10),
            )
            .await;
        assert_eq!(seen.status, Status::Running);
        assert_eq!(shell.key("c").await.exit_code, Some(130));
        probe(&shell).await;
        shell.session.close().await;
    });
}

#[test]
fn a_slow_reader_gets_everything() {
    run(async {
        let shell = Shell::bash().await;
        let total = Arc::new(AtomicUsize::new(0));
        let sum = total.clone();
        let request = CommandRequest {
            script: "head -c 4000000 /dev/zero | tr '\\0' x".into(),
            ..CommandRequest::default()
        };
        let sink = Box::new(move |bytes: &[u8]| {
            std::thread::sleep(Duration::from_micros(500));
            sum.fetch_add(bytes.len(), Ordering::Relaxed);
        });
        let call = shell.session.command(request, sink);
        let progress = tokio::time::timeout(Duration::from_secs(60), call).await;
        assert_eq!(progress.unwrap().unwrap().status, Status::Ok);
        assert_eq!(total.load(Ordering::Relaxed), 4_000_000);
        probe(&shell).await;
    });
}

#[test]
fn fish_gives_way_to_bash_unless_it_is_asked_for() {
    run(async {
        let make = |options: &mut karyi::pty::SessionOptions| {
            use std::os::unix::fs::PermissionsExt;
            let fish = options.cwd.join("fish");
            std::fs::write(&fish, "#!/bin/sh\nexit 1\n").unwrap();
            std::fs::set_permissions(&fish, PermissionsExt::from_mode(0o700)).unwrap();
            options.shell = None;
            options.preferred_shell = Some(fish);
        };
        let shell = Shell::with(make).await;
        probe(&shell).await;
        assert_eq!(shell.session.shell_name(), "bash");
        let reason = shell.session.fallback().unwrap();
        assert!(reason.ends_with("; bash runs instead"), "{reason}");
        let home = tempfile::tempdir().unwrap();
        let mut options = options(home.path());
        make(&mut options);
        options.shell = options.preferred_shell.clone();
        let error = Session::start(options).await.err().unwrap();
        assert_eq!(error.code, ErrorCode::NoShell);
        assert!(error.message.contains("use bash"), "{}", error.message);
    });
}

#[test]
fn a_shell_is_started_by_its_name() {
    run(async {
        for name in ["bash", "sh", "zsh", "dash", "ksh", "mksh", "busybox"] {
            let is_there = ["/usr/local/bin", "/usr/bin", "/bin"]
                .iter()
                .any(|place| Path::new(place).join(name).exists());
            if !is_there {
                eprintln!("skipped: no {name}");
                continue;
            }
            let shell = Shell::with(|options| options.shell = Some(name.into())).await;
            probe(&shell).await;
            assert_eq!(shell.session.shell_name(), name);
            assert_eq!(shell.session.fallback(), None);
        }
    });
}
