//! Unusual places to run in: directories nobody may write to, processes nobody else sees, a terminal
//! multiplexer, a busy machine on which runs are killed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use karyi::error::ErrorCode;
use karyi::limits;
use karyi::pty::Session;
use serde_json::{Value, json};

use super::support::{Shell, as_nobody, has, options, run};
use crate::harness::escape::Mark;
use crate::harness::{Karyi, is_root, program, results, skip, wait};

/// A directory with a file system of its own, until it is dropped.
struct Mount(PathBuf);

impl Mount {
    /// Mounts an empty file system that takes no files, if that is allowed.
    fn read_only(place: &Path) -> Option<Self> {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "ro", "karyi-test"]);
        let is_mounted = mount.arg(place).output().ok()?.status.success();
        is_mounted.then(|| Self(place.to_owned()))
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// A run whose commands cannot have a session: they say so, and everything else is done.
fn check_without_sessions(karyi: Karyi, expected: &str) {
    let script = "<tools><command>echo on</command><read><file src=\"a\"/></read></tools>";
    let ran = karyi.file("a", "text\n").stdin(script).run().exit(1);
    let report = ran.json();
    let [command, read] = results(&report).as_slice() else {
        panic!("{report:#}");
    };
    assert_eq!(command["code"], "session_failed", "{report:#}");
    let message = command["message"].as_str().unwrap();
    assert!(message.contains(expected), "{message}");
    let hint = command["hint"].as_str().unwrap();
    assert!(hint.contains("XDG_RUNTIME_DIR"), "{hint}");
    assert_eq!(read["status"], "ok", "{report:#}");
}

#[test]
fn without_a_runtime_directory_commands_fail_with_a_code() {
    let karyi = || Karyi::new().arg("--json");
    let blocked = karyi();
    std::fs::write(blocked.runtime(), "").unwrap();
    check_without_sessions(blocked, "karyi-");
    let open = karyi();
    std::fs::create_dir(open.runtime()).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(open.runtime(), mode).unwrap();
    check_without_sessions(open, "mode 755");
    let nowhere = karyi().env("TMPDIR", "/proc/none").env("HOME", "");
    check_without_sessions(nowhere, "/proc/none");
}

#[test]
fn a_directory_that_takes_no_files_is_an_error() {
    let place = tempfile::tempdir().unwrap();
    let Some(_mounted) = Mount::read_only(place.path()) else {
        return skip("no right to mount a file system");
    };
    run(async {
        let home = tempfile::tempdir().unwrap();
        let mut options = options(home.path());
        options.runtime_dir = place.path().join("run");
        let error = Session::start(options).await.err().unwrap();
        assert_eq!(error.code, ErrorCode::SessionFailed);
        assert!(error.message.contains("Read-only"), "{}", error.message);
    });
    let karyi = Karyi::new().arg("--json").env("TMPDIR", place.path());
    check_without_sessions(karyi, "Read-only");
}

/// With `hidepid=2` a user sees no process of another one, so a program with more rights is known by
/// the terminal alone.
#[test]
fn processes_of_others_may_be_hidden() {
    if !is_root() || !has("setpriv") || !has("unshare") {
        return skip("not root, so nothing can be mounted");
    }
    let hide = "mount -t proc -o hidepid=2 proc /proc && exec \"$@\"";
    let before = ["unshare", "-m", "sh", "-c", hide, "sh"];
    as_nobody(
        &before,
        &[
            "session::waiting::programs_that_read_the_terminal_are_seen_waiting",
            "session::waiting::busy_jobs_are_never_seen_waiting",
            "session::detection::a_program_of_another_user_asks_for_a_password",
            "session::ending::escapees_are_gone_after_close",
        ],
    );
}

/// Ends the server that a test started.
struct Multiplexer(PathBuf);

impl Multiplexer {
    fn run(&self, arguments: &[&str]) -> bool {
        let mut tmux = Command::new("tmux");
        tmux.args(["-f", "/dev/null", "-S"]).arg(&self.0);
        tmux.env_remove("TMUX").args(arguments);
        tmux.stdout(Stdio::null()).stderr(Stdio::null());
        tmux.status().is_ok_and(|status| status.success())
    }
}

impl Drop for Multiplexer {
    fn drop(&mut self) {
        self.run(&["kill-server"]);
    }
}

#[test]
fn a_run_inside_a_multiplexer_is_like_any_other() {
    if !has("tmux") {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let tmux = Multiplexer(home.path().join("socket"));
    let script = "<tools><command>tty; read -s x; echo got $x</command><input>it\n</input></tools>";
    std::fs::write(home.path().join("a.xml"), script).unwrap();
    let line = format!(
        "cd '{0}' && stty -g >before && TMPDIR='{0}' HOME='{0}' '{1}' run --no-rc --shell bash --json a.xml >out 2>err; echo $? >code; stty -g >after; mv code done",
        home.path().display(),
        program().display()
    );
    if !tmux.run(&[
        "new-session",
        "-d",
        "-x",
        "90",
        "-y",
        "20",
        "sh",
        "-c",
        &line,
    ]) {
        return skip("tmux does not start");
    }
    let text = |name: &str| std::fs::read_to_string(home.path().join(name)).unwrap_or_default();
    let until = Instant::now() + Duration::from_secs(60);
    while !home.path().join("done").exists() {
        assert!(Instant::now() < until, "{} {}", text("out"), text("err"));
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!((text("done").trim(), text("err").as_str()), ("0", ""));
    assert_eq!(text("before"), text("after"));
    let report: Value = serde_json::from_str(&text("out")).unwrap();
    let found: Vec<_> = results(&report).iter().map(|r| &r["status"]).collect();
    assert_eq!(json!(found), json!(["awaiting_input", "ok"]), "{report:#}");
    assert_eq!(results(&report)[0]["echo"], "off", "{report:#}");
    assert_eq!(results(&report)[1]["output"], "got it\n", "{report:#}");
}

/// Directories of sessions with an owner. One that was killed while it made its directory had written
/// none: a start takes that away once it is a minute old, and nothing runs in it.
fn owned(karyi: &Karyi) -> usize {
    let left = std::fs::read_dir(karyi.runtime()).unwrap().flatten();
    left.filter(|entry| entry.path().join("owner").exists())
        .count()
}

/// Starts the program, which must end all that is left. Only a start that took the time it has for
/// this, on a busy machine, may leave it to the next.
fn end_what_is_left(karyi: &Karyi) {
    for _ in 0..5 {
        let start = Instant::now();
        let mut again = karyi.command();
        let script = "<tools><command>echo on</command></tools>";
        again.arg("-c").arg(script).stdout(Stdio::null());
        assert_eq!(wait(again.spawn().unwrap()).status.code(), Some(0));
        if owned(karyi) == 0 || start.elapsed() < limits::SWEEP_TIMEOUT {
            return;
        }
    }
}

/// Runs that are killed while they flood their terminals and start processes leave nothing that the
/// next run does not end.
#[test]
fn what_runs_killed_under_load_leave_is_ended() {
    let (karyi, mark) = (Karyi::new(), Mark::new());
    let command =
        |script: &str| format!("<command timeout=\"0.05\"><![CDATA[{script}]]></command>");
    let script = mark.script(&format!(
        "<tools>{}{}{}</tools>",
        command("trap '' HUP TERM; (while [ $SECONDS -lt 60 ]; do echo flood; done)"),
        command("(setsid nohup sleep 520.MARK >/dev/null 2>&1 &); while :; do sleep 0.001; done"),
        command("while :; do (setsid sleep 521.MARK &); sleep 0.01; done")
    ));
    std::fs::write(karyi.work().join("script.xml"), script).unwrap();
    let start = || {
        let mut command = karyi.command();
        command.arg("script.xml").stdout(Stdio::null());
        command.spawn().unwrap()
    };
    let rounds = super::detection::rounds(1, 20);
    for round in 0..rounds {
        let mut children: Vec<_> = (0..4).map(|_| start()).collect();
        // Each is somewhere else in its run.
        mark.expect(4);
        for child in &mut children {
            child.kill().unwrap();
        }
        children.into_iter().for_each(|child| drop(wait(child)));
        end_what_is_left(&karyi);
        assert_eq!(mark.found(), Vec::<String>::new(), "round {round}");
        assert_eq!(owned(&karyi), 0, "round {round}");
    }
}

/// A terminal that nobody uses and that was hung up does not keep the session awake, and another
/// shell is there for the next command.
#[test]
fn a_resting_terminal_that_was_hung_up_is_replaced() {
    if !is_root() {
        return skip("only root hangs up terminals");
    }
    run(async {
        let shell = Shell::bash().await;
        let pid = shell.command("trap '' HUP; echo $$").await.output;
        let hang_up = "python3 -c 'import ctypes, time
time.sleep(0.3); ctypes.CDLL(None).vhangup()' &";
        let hung = shell.command(hang_up).await;
        let gone = format!("/proc/{}", pid.trim());
        let until = Instant::now() + Duration::from_secs(30);
        while Path::new(&gone).exists() {
            assert!(Instant::now() < until, "the shell stays");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let seen = shell.command("echo on").await;
        assert_eq!((seen.exit_code, seen.output.as_str()), (Some(0), "on\n"));
        // On a busy machine the terminal may be gone before the command that hangs it up has ended.
        let reports = [hung, seen];
        let restarts = reports
            .iter()
            .filter(|one| one.progress.restarted.is_some());
        assert_eq!(restarts.count(), 1);
    });
}
