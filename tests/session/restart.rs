//! A shell that ends, is replaced, or never comes up.

use std::time::{Duration, Instant};

use karyi::error::ErrorCode;
use karyi::outcome::Status;
use karyi::pty::{CommandRequest, Rc, Session};

use super::support::{Shell, options, run};

fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(|word| (*word).to_owned()).collect()
}

#[test]
fn exit_keeps_what_the_shell_can_print() {
    run(async {
        let shell = Shell::bash().await;
        let script = "export A='x \"y\"' B=$'1\\n2'; f() { echo in $1; }; alias g='f al'\nset -C; shopt -s extglob; umask 027; cd /usr; C=3; exit 3";
        let seen = shell.command(script).await;
        assert_eq!(seen.brief(), (Status::Failed, Some(3), ""));
        let restart = seen.progress.restarted.unwrap();
        assert_eq!(
            restart.restored,
            words(&["cwd", "environment", "functions", "aliases", "options"])
        );
        assert_eq!(restart.lost, words(&["variables", "traps", "jobs"]));
        assert!(restart.snapshot_age_ms.unwrap() < 1000);
        assert_eq!(shell.session.cwd(), std::path::Path::new("/usr"));
        shell
            .check(
                "echo \"$A|$B|$C|$PWD\"; g; umask",
                0,
                "x \"y\"|1\n2||/usr\nin al\n0027\n",
            )
            .await;
        shell
            .check("shopt extglob; [[ $- == *C* ]]", 0, "extglob        \ton\n")
            .await;
        assert_eq!(shell.command("true").await.progress.restarted, None);
    });
}

#[test]
fn errexit_ends_with_its_command() {
    run(async {
        let shell = Shell::bash().await;
        shell.check("set -eu; true", 0, "").await;
        shell.check("false; echo $-", 0, "himuBs\n").await;
        let seen = shell.command("set -e\nfalse\necho no").await;
        assert_eq!(seen.brief(), (Status::Failed, Some(1), ""));
        assert!(seen.progress.restarted.is_some());
        shell.check("false; echo on $-", 0, "on himuBs\n").await;
    });
}

#[test]
fn a_killed_shell_comes_back_as_it_was_when_idle() {
    run(async {
        let shell = Shell::bash().await;
        shell.check("export A=1; cd /usr", 0, "").await;
        let since = Instant::now();
        while shell.session.saved_at().is_none_or(|at| at < since) {
            assert!(since.elapsed() < Duration::from_secs(10), "no snapshot");
            tokio::task::yield_now().await;
        }
        let seen = shell.command("cd /; export A=2; kill -9 $$").await;
        assert_eq!(seen.brief(), (Status::Failed, Some(137), ""));
        shell.check("echo $A $PWD", 0, "1 /usr\n").await;
    });
}

#[test]
fn exec_replaces_the_shell_for_one_command() {
    run(async {
        let shell = Shell::bash().await;
        let seen = shell
            .command("cd /usr; exec bash --norc -c 'read x; echo got $x; exit 4'")
            .await;
        assert_eq!(seen.status, Status::AwaitingInput);
        let seen = shell.input("it\n").await;
        assert_eq!(seen.brief(), (Status::Failed, Some(4), "it\ngot it\n"));
        assert!(seen.progress.restarted.is_some());
        shell.check("echo on", 0, "on\n").await;
    });
}

#[test]
fn a_directory_for_one_command() {
    run(async {
        let shell = Shell::bash().await;
        let request = |script: &str, cwd: &str| CommandRequest {
            script: script.into(),
            cwd: Some(cwd.into()),
            ..CommandRequest::default()
        };
        let seen = shell.request(request("pwd; cd /", "/usr")).await.unwrap();
        assert_eq!(seen.brief(), (Status::Ok, Some(0), "/usr\n"));
        assert_eq!(seen.progress.cwd.as_deref(), Some(shell.home.path()));
        shell
            .check("pwd", 0, &format!("{}\n", shell.home.path().display()))
            .await;
        let seen = shell.request(request("exit 2", "/usr")).await.unwrap();
        assert_eq!(seen.progress.cwd.as_deref(), Some(shell.home.path()));
        let error = shell
            .request(request("true", "/no/such"))
            .await
            .unwrap_err();
        assert_eq!(error.code, ErrorCode::NotFound);
    });
}

async fn with_rc(rc: &str) -> Shell {
    Shell::with(|options| {
        std::fs::write(options.cwd.join(".bashrc"), rc).unwrap();
        options.rc = Rc::User;
    })
    .await
}

#[test]
fn the_rc_file_is_read_once() {
    run(async {
        let shell = with_rc(
            "echo noise; export FROM_RC=1 PAGER=less; PS1='$ '; cd /; f() { echo f; }; set -u",
        )
        .await;
        shell
            .check(
                "echo $FROM_RC $PAGER $EDITOR $TERM; f",
                0,
                "1 cat false xterm-256color\nf\n",
            )
            .await;
        assert_eq!(shell.session.cwd(), shell.home.path());
    });
}

#[test]
fn a_bad_rc_file_is_left_out() {
    run(async {
        for rc in [
            "exit 1",
            "sleep 100",
            "read x",
            "exec cat",
            "trap '' HUP TERM; while :; do :; done",
        ] {
            let shell = with_rc(rc).await;
            shell.check("echo on", 0, "on\n").await;
        }
        for rc in [
            "if then",
            "echo 'abc",
            ": ${x:?}",
            "set -e; false",
            "exec 0</dev/null 1>/dev/null",
        ] {
            let shell = with_rc(rc).await;
            shell.check("echo on", 0, "on\n").await;
        }
    });
}

#[test]
fn no_shell_is_an_error() {
    run(async {
        let home = tempfile::tempdir().unwrap();
        let mut options = options(home.path());
        options.shell = Some("/no/shell".into());
        assert_eq!(
            Session::start(options.clone()).await.err().unwrap().code,
            ErrorCode::NoShell
        );
        options.shell = None;
        options.bootstrap = "/no/karyi".into();
        assert_eq!(
            Session::start(options).await.err().unwrap().code,
            ErrorCode::SessionFailed
        );
    });
}
