//! What a session lacks is named, with what to do about it.

use std::path::Path;
use std::process::Command;

use super::support::{Shell, run};

/// Runs a command by the program, which `wrapper` starts, with its files in `place`; returns message
/// and hint of its refusal, or nothing when the wrapper cannot do its work here.
fn refused(mut wrapper: Command, place: &Path) -> Option<(String, String)> {
    let message = "<tools><command>echo on</command></tools>";
    wrapper.arg(env!("CARGO_BIN_EXE_karyi"));
    wrapper.args(["run", "--no-rc", "--json", "-c", message]);
    wrapper.env("TMPDIR", place).env_remove("XDG_RUNTIME_DIR");
    let home = tempfile::tempdir().unwrap();
    let output = wrapper.env("KARYI_HOME", home.path()).output().ok()?;
    let Ok(report) = serde_json::from_slice::<serde_json::Value>(&output.stdout) else {
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!said.contains("panicked"), "{said}");
        eprintln!("skipped: {said}");
        return None;
    };
    let refused = &report["results"][0];
    assert_eq!(refused["code"], "session_failed", "{report:#}");
    let word = |name: &str| refused[name].as_str().unwrap_or_default().to_owned();
    Some((word("message"), word("hint")))
}

/// Returns a command whose arguments are run after some lines of `sh`, where mounts are its own.
fn after(lines: &str) -> Command {
    let mut command = Command::new("unshare");
    let script = format!("{lines} && exec \"$@\"");
    command.args(["-m", "sh", "-c", &script, "sh"]);
    command
}

fn check(wrapper: Command, message: &str, hint: &str) {
    let place = tempfile::tempdir().unwrap();
    let Some(found) = refused(wrapper, place.path()) else {
        return;
    };
    assert!(found.0.contains(message), "{found:?}");
    assert!(found.1.contains(hint), "{found:?}");
}

#[test]
fn each_lack_is_told_by_its_cause() {
    let mut few = Command::new("prlimit");
    few.arg("--nofile=12");
    check(few, "open files", "ulimit -n");
    let empty = "mount -t tmpfs none /dev";
    check(after(empty), "/dev/urandom", "devices");
    let nodes = "mknod /dev/urandom c 1 9 && mknod /dev/null c 1 3";
    check(
        after(&format!("{empty} && {nodes}")),
        "opening a terminal",
        "devpts",
    );
    let full =
        "mount -t tmpfs -o size=16k none \"$TMPDIR\" && head -c 16384 /dev/zero >\"$TMPDIR/f\"";
    check(after(full), "No space left", "make room");
    let few = "mount -t tmpfs -o nr_inodes=2 none \"$TMPDIR\"";
    check(after(few), "no inodes are left", "make room");
}

#[test]
fn a_directory_one_may_not_write_to_is_named() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    if !nix::unistd::geteuid().is_root() {
        return eprintln!("skipped: not root, so there is no other user to be");
    }
    let place = tempfile::tempdir().unwrap();
    let readable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(place.path(), readable).unwrap();
    let mut other = Command::new("env");
    other.uid(65534).gid(65534);
    if let Some((message, hint)) = refused(other, place.path()) {
        let shown = place.path().to_str().unwrap();
        assert!(message.contains(shown), "{message}");
        assert!(message.contains("Permission denied"), "{message}");
        assert!(hint.contains("TMPDIR"), "{hint}");
    }
}

/// Nothing read the line of this command: the shell ended before it came to it.
#[test]
fn a_shell_that_ends_before_its_command_is_no_trap_that_reads() {
    run(async {
        let shell = Shell::bash().await;
        let trap = "trap 'case $BASH_COMMAND in *script*) kill -9 $$ ;; esac' DEBUG";
        shell.check(trap, 0, "").await;
        // Values are given once only, so no second shell runs it.
        let seen = shell
            .command_with("echo ${#__karyi_K}", &[("K", "hunter2")])
            .await;
        let error = seen.unwrap_err();
        assert_eq!(
            error.message,
            "the shell ended before it had begun the command, so the command was not run"
        );
        shell.check("echo next", 0, "next\n").await;
    });
}
