//! What a session is for.

use std::time::{Duration, Instant};

use karyi::error::ErrorCode;
use karyi::outcome::Status;
use karyi::pty::{CommandRequest, InputRequest};

use super::support::{Shell, run};

#[test]
fn state_persists_between_commands() {
    run(async {
        let shell = Shell::bash().await;
        shell.check("export A=1; cd /usr", 0, "").await;
        shell.check("echo $A $PWD", 0, "1 /usr\n").await;
        assert_eq!(shell.session.cwd(), std::path::Path::new("/usr"));
        assert_eq!(shell.session.shell_name(), "bash");
        shell.check("(exit 7)", 7, "").await;
        shell.check("echo $?", 0, "7\n").await;
        shell.check("", 0, "").await;
        shell
            .check("f() { echo in f; }; alias g=f; set -u", 0, "")
            .await;
        shell.check("g; echo $-", 0, "in f\nhimuBs\n").await;
    });
}

#[test]
fn a_prompt_is_answered() {
    run(async {
        let shell = Shell::bash().await;
        let seen = shell.command(r#"read -p "name? " x; echo hi $x"#).await;
        assert_eq!(seen.brief(), (Status::AwaitingInput, None, "name? "));
        assert_eq!(seen.progress.echo, Some(true));
        let error = shell.request(CommandRequest::default()).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::SessionBusy);
        let seen = shell.input("Ada\n").await;
        assert_eq!(seen.brief(), (Status::Ok, Some(0), "Ada\nhi Ada\n"));
    });
}

#[test]
fn a_job_goes_on_after_its_timeout() {
    run(async {
        let shell = Shell::bash().await;
        let start = Instant::now();
        let seen = shell
            .command_within("sleep 100", Duration::from_secs(1))
            .await;
        assert_eq!(seen.brief(), (Status::Running, None, ""));
        let taken = start.elapsed();
        assert!(
            taken >= Duration::from_secs(1) && taken < Duration::from_secs(10),
            "{taken:?}"
        );
        let seen = shell.key("c").await;
        assert_eq!(seen.brief(), (Status::Failed, Some(130), "^C"));
        shell.check("echo on", 0, "on\n").await;
    });
}

#[test]
fn input_needs_a_job_that_reads() {
    run(async {
        let shell = Shell::bash().await;
        let error = shell
            .try_input("x\n", InputRequest::default())
            .await
            .unwrap_err();
        assert_eq!(error.code, ErrorCode::NoJob);
        assert_eq!(shell.try_key("c").await.unwrap_err().code, ErrorCode::NoJob);
        assert!(!shell.session.interrupt());
        shell
            .command_within("sleep 100", Duration::from_millis(50))
            .await;
        let request = InputRequest {
            timeout: Some(Duration::from_millis(100)),
            ..InputRequest::default()
        };
        let error = shell.try_input("x\n", request).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::NoReader);
        assert!(shell.session.interrupt());
        let error = shell
            .try_input("x\n", InputRequest::default())
            .await
            .unwrap_err();
        assert_eq!(error.code, ErrorCode::NoJob);
        shell.check("read -t 0; echo $?", 0, "1\n").await;
    });
}

#[test]
fn a_password_prompt_hides_its_answer() {
    run(async {
        let shell = Shell::bash().await;
        let ask = "python3 -c 'import getpass; print(len(getpass.getpass()))'";
        let secret = InputRequest {
            is_secret: true,
            ..InputRequest::default()
        };
        let seen = shell.command(ask).await;
        assert_eq!(
            (seen.status, seen.progress.echo),
            (Status::AwaitingInput, Some(false))
        );
        let seen = shell.try_input("secret\n", secret).await.unwrap();
        assert_eq!(seen.brief(), (Status::Ok, Some(0), "\n6\n"));

        shell.command("read x; echo $x").await;
        let error = shell.try_input("secret\n", secret).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::EchoOn);
        let allowed = InputRequest {
            allow_echo: true,
            ..secret
        };
        let seen = shell.try_input("shown\n", allowed).await.unwrap();
        assert_eq!(seen.brief(), (Status::Ok, Some(0), "shown\nshown\n"));
    });
}
