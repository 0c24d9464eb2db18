//! Shells other than bash.

use std::path::Path;
use std::time::Duration;

use karyi::limits;
use karyi::outcome::Status;
use karyi::pty::StartupFiles;

use super::support::{Shell, has, run};

async fn check_shell(path: &str) {
    if !Path::new(path).exists() {
        eprintln!("skipped: no {path}");
        return;
    }
    let shell = Shell::with(|options| {
        options.shell = Some(path.into());
        options.rc = StartupFiles::User(limits::RC_TIMEOUT);
    })
    .await;
    assert_eq!(
        shell.session.shell_name(),
        Path::new(path).file_name().unwrap().to_str().unwrap()
    );
    shell.check("export A=1; cd /usr", 0, "").await;
    shell.check("echo $A $PWD", 0, "1 /usr\n").await;
    shell.check("(exit 7)", 7, "").await;
    let seen = shell.command("echo \"abc").await;
    assert_eq!(seen.status, Status::Failed, "{seen:?}");
    let seen = shell.command("unset x; : ${x:?boom}; echo no").await;
    assert!(seen.output.contains("boom"), "{seen:?}");
    shell
        .check("echo 'a\nb'; cat <<EOF\nc\nEOF", 0, "a\nb\nc\n")
        .await;
    let seen = shell.command("read x; echo hi $x").await;
    assert_eq!(seen.brief(), (Status::AwaitingInput, None, ""));
    assert_eq!(
        shell.input("Ada\n").await.brief(),
        (Status::Ok, Some(0), "Ada\nhi Ada\n")
    );
    let seen = shell
        .command_within("sleep 100; echo no", Duration::from_millis(200))
        .await;
    assert_eq!(seen.status, Status::Running);
    let seen = shell.key("c").await;
    assert_eq!((seen.status, seen.exit_code), (Status::Failed, Some(130)));
    check_endings(&shell, path).await;
}

/// Runs what ends or changes the shell.
async fn check_endings(shell: &Shell, path: &str) {
    shell.check("exec >/dev/null", 0, "").await;
    shell
        .check(
            "set -x; echo q; set +x 2>/dev/null",
            0,
            &shell
                .command("set -x; echo q; set +x 2>/dev/null")
                .await
                .output,
        )
        .await;
    let seen = shell.command("export KEEP=2; cd /usr/bin; exit 3").await;
    // After a Ctrl+C mksh forgets what it was to exit with.
    if !path.ends_with("mksh") {
        assert_eq!(seen.brief(), (Status::Failed, Some(3), ""), "{seen:?}");
    }
    shell.check("echo $A $KEEP $PWD", 0, "1 2 /usr/bin\n").await;
    // A job in the background keeps no shell but mksh.
    if !path.ends_with("mksh") {
        let seen = shell.command("sleep 100 & exit 4").await;
        assert_eq!(
            (seen.status, seen.exit_code),
            (Status::Failed, Some(4)),
            "{seen:?}"
        );
    }
    let seen = shell.command("set -e\nfalse\necho no").await;
    assert_eq!(seen.brief(), (Status::Failed, Some(1), ""), "{seen:?}");
    shell
        .check("false; echo \"ok-$((1+1))\"", 0, "ok-2\n")
        .await;
    assert_eq!(shell.command("kill -9 $$").await.exit_code, Some(137));
    shell.check("echo \"ok-$((1+1))\"", 0, "ok-2\n").await;
    assert_eq!(shell.session.close().await, None);
}

#[test]
fn dash_runs_a_session() {
    run(check_shell("/bin/dash"));
}

#[test]
fn sh_runs_a_session() {
    run(check_shell("/bin/sh"));
}

#[test]
fn zsh_runs_a_session() {
    run(check_shell("/usr/bin/zsh"));
}

#[test]
fn ksh_runs_a_session() {
    run(check_shell("/bin/ksh"));
}

#[test]
fn mksh_runs_a_session() {
    run(check_shell("/bin/mksh"));
}

#[test]
fn busybox_runs_a_session() {
    run(check_shell("/bin/busybox"));
}

#[test]
fn bash_passes_the_same() {
    run(check_shell("/bin/bash"));
}

#[test]
fn what_a_trap_prints_at_the_end_is_output_in_every_shell() {
    let shells = ["bash", "zsh", "dash", "ksh", "mksh", "busybox"];
    for name in shells.into_iter().filter(|name| has(name)) {
        run(async {
            let shell = Shell::with(|options| options.shell = Some(name.into())).await;
            let script = "trap 'echo BYE; echo ERR >&2' EXIT; exit 3";
            let seen = shell.command(script).await;
            let expected = (Status::Failed, Some(3), "BYE\nERR\n");
            assert_eq!(seen.brief(), expected, "{name}");
            shell.check("echo on", 0, "on\n").await;
        });
    }
}

/// ksh and mksh give a stopped command the exit status 0.
#[test]
fn a_stopped_command_is_told_in_every_shell() {
    run(async {
        for (name, exit_code) in [("bash", 147), ("zsh", 147), ("ksh", 0), ("mksh", 0)] {
            let path = Path::new("/bin").join(name);
            if !path.exists() {
                eprintln!("skipped: no {name}");
                continue;
            }
            let shell = Shell::with(|options| options.shell = Some(path)).await;
            // ksh has a job go on that stops before it was put into the foreground.
            let script = "sh -c 'sleep 0.3; kill -STOP $$; echo on'";
            let seen = shell.command(script).await;
            let found = (seen.status, seen.exit_code);
            assert_eq!(
                found,
                (Status::Stopped, Some(exit_code)),
                "{name}: {seen:?}"
            );
            let seen = shell.command("fg >/dev/null").await;
            assert!(seen.output.contains("on\n"), "{name}: {seen:?}");
            // What runs in the background is none.
            let seen = shell.command("sleep 100 & kill -STOP $!; sleep 0.1").await;
            assert_eq!(seen.status, Status::Ok, "{name}: {seen:?}");
            let seen = shell.command("true && true 2>&1").await;
            assert_eq!(seen.status, Status::Ok, "{name}: {seen:?}");
            shell.session.close().await;
        }
    });
}

/// Start-up files of systems have zsh load functions when they are called.
#[test]
fn functions_that_zsh_loads_when_called_come_back() {
    if !Path::new("/bin/zsh").exists() {
        eprintln!("skipped: no zsh");
        return;
    }
    run(async {
        let shell = Shell::with(|options| {
            let rc = "autoload -Uz colors add-zsh-hook compinit\nmine() { echo mine }\n";
            std::fs::write(options.cwd.join(".zshrc"), rc).unwrap();
            options.shell = Some("/bin/zsh".into());
            options.rc = StartupFiles::User(limits::RC_TIMEOUT);
        })
        .await;
        let seen = shell.command("f() { echo f }; exit 3").await;
        let restart = seen.progress.restarted.unwrap();
        let has = |name: &str| restart.restored.iter().any(|word| word == name);
        assert!(has("functions"), "{restart:?}");
        shell.check("f; mine", 0, "f\nmine\n").await;
        let loaded = "add-zsh-hook precmd f && print ${#precmd_functions}";
        shell.check(loaded, 0, "1\n").await;
    });
}

/// ksh has a status of its own for Ctrl+C when an ERR trap ran.
#[test]
fn ctrl_c_has_the_same_status_with_an_err_trap() {
    if !has("ksh") {
        return;
    }
    run(async {
        let shell = Shell::with(|options| options.shell = Some("ksh".into())).await;
        shell.check("trap 'echo ERR' ERR; true", 0, "").await;
        let quick = Duration::from_millis(300);
        let seen = shell.command_within("/bin/sleep 100", quick).await;
        assert_eq!(seen.status, Status::Running);
        let seen = shell.key("c").await;
        assert_eq!(seen.exit_code, Some(130), "{seen:?}");
        let seen = shell.command("(exit 255)").await;
        assert_eq!(seen.exit_code, Some(255), "{seen:?}");
    });
}
