//! Input reaches who reads it, whole and once, or is refused; secrets are never shown.

use std::time::{Duration, Instant};

use karyi::error::ErrorCode;
use karyi::outcome::Status;
use karyi::pty::InputRequest;

use super::detection::rounds;
use super::support::{Shell, has, run};

const SECRET: InputRequest = InputRequest {
    timeout: None,
    is_secret: true,
    allow_echo: false,
    values: karyi::secret::ByteSet::EMPTY,
};
const GETPASS: &str = "python3 -c 'import getpass; print(len(getpass.getpass()))'";
/// Shows its prompt first and hides the answer a moment later.
const LATE: &str = "python3 -c 'import getpass, time
print(\"Password: \", end=\"\", flush=True); time.sleep(0.03); print(len(getpass.getpass(\"\")))'";
/// Asks twice, and throws away what was typed ahead.
const TWICE: &str = "python3 -c 'import getpass
a = getpass.getpass(); b = getpass.getpass(); print(len(a), a == b)'";
const KEYGEN: &str = "rm -f key*; ssh-keygen -q -t ed25519 -f key; wc -l <key.pub";

/// What needs a secret: the program, the script, the input, the end of the output.
const PROMPTS: &[(&str, &str, &str, &str)] = &[
    ("python3", GETPASS, "hunter2\n", "\n7\n"),
    ("python3", LATE, "hunter2\n", "\n7\n"),
    ("python3", TWICE, "hunter2\nhunter2\n", "\n7 True\n"),
    ("bash", "read -s x; echo ${#x}", "hunter2\n", "7\n"),
    (
        "bash",
        "read -sp 'a: ' x; read -sp 'b: ' y; echo ${#x} ${#y}",
        "hunter2\nhunter2\n",
        "7 7\n",
    ),
    ("ssh-keygen", KEYGEN, "hunter2\nhunter2\n", "1\n"),
    (
        "script",
        "SHELL=/bin/sh script -qc 'bash -c \"read -s x; echo \\${#x}\"' /dev/null",
        "hunter2\n",
        "7\n",
    ),
];

#[test]
fn a_gated_secret_is_taken_and_never_shown() {
    run(async {
        let shell = Shell::bash().await;
        for (program, script, secret, end) in PROMPTS {
            if !has(program) {
                continue;
            }
            let start = Instant::now();
            for round in 0..rounds(3, 200) {
                let seen = shell.command_within(script, Duration::ZERO).await;
                assert_eq!(seen.exit_code, None, "{script} {round}: {:?}", seen.output);
                let answer = shell.try_input(secret, SECRET).await;
                let answer = answer.unwrap_or_else(|error| panic!("{script} {round}: {error:?}"));
                let output = seen.output + &answer.output;
                assert!(!output.contains("hunter2"), "{script} {round}: {output:?}");
                let is_right = answer.exit_code == Some(0) && output.ends_with(end);
                assert!(
                    is_right,
                    "{script} {round}: {output:?} {:?}",
                    answer.progress
                );
            }
            println!("{script:?}: {:?}", start.elapsed());
        }
    });
}

#[test]
fn a_secret_waits_for_a_terminal_that_hides_it() {
    run(async {
        let shell = Shell::bash().await;
        let script = "read -sp 'secret? ' x; read -p 'open? ' y; echo ${#x} $y";
        assert_eq!(shell.command(script).await.status, Status::AwaitingInput);
        // The second line would be seen, so it stays here.
        let seen = shell.try_input("hunter2\nhunter3\n", SECRET).await.unwrap();
        assert_eq!(seen.brief(), (Status::AwaitingInput, None, "open? "));
        let found = (seen.progress.echo, seen.progress.unsent_bytes);
        assert_eq!(found, (Some(true), 8));
        let error = shell.try_input("hunter3\n", SECRET).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::EchoOn);
        let seen = shell.input("yes\n").await;
        assert_eq!(seen.brief(), (Status::Ok, Some(0), "yes\n7 yes\n"));
    });
}

#[test]
fn two_prompts_in_a_row_take_two_inputs() {
    run(async {
        let shell = Shell::bash().await;
        for _ in 0..rounds(2, 50) {
            shell.command_within(TWICE, Duration::ZERO).await;
            let seen = shell.try_input("hunter2\n", SECRET).await.unwrap();
            assert_eq!(seen.status, Status::AwaitingInput);
            let seen = shell.try_input("hunter2\n", SECRET).await.unwrap();
            assert_eq!(seen.brief(), (Status::Ok, Some(0), "\n7 True\n"));
        }
    });
}

#[test]
fn what_a_job_leaves_unread_is_gone() {
    run(async {
        let shell = Shell::bash().await;
        shell.command("read x").await;
        let seen = shell.input("one\ntwo\n").await;
        assert_eq!(seen.exit_code, Some(0));
        let seen = shell.command("read -t 0.05 x; echo \"[$x]\"").await;
        assert_eq!(seen.brief(), (Status::Ok, Some(0), "[]\n"));
        shell
            .command_within("sleep 0.3; (exit 5)", Duration::ZERO)
            .await;
        let error = shell
            .try_input("x\n", InputRequest::default())
            .await
            .unwrap_err();
        let expected = "the command has ended with exit status 5; nothing was sent";
        assert_eq!(
            (error.code, error.message.as_str()),
            (ErrorCode::NoJob, expected)
        );
    });
}

#[test]
fn an_interrupt_may_be_typed() {
    run(async {
        let shell = Shell::bash().await;
        shell.command("cat").await;
        let seen = shell.input("abc\x03").await;
        assert_eq!((seen.status, seen.exit_code), (Status::Failed, Some(130)));
    });
}

#[test]
fn a_line_the_terminal_cannot_hold_is_refused() {
    run(async {
        let shell = Shell::bash().await;
        let line = "x".repeat(4096);
        assert_eq!(shell.command("wc -c").await.status, Status::AwaitingInput);
        let error = shell
            .try_input(&format!("a\n{line}\n"), InputRequest::default())
            .await
            .unwrap_err();
        assert_eq!(error.code, ErrorCode::LineTooLong);
        // What was typed of the line before counts, too.
        assert_eq!(
            shell.input(&line[..4000]).await.status,
            Status::AwaitingInput
        );
        let error = shell
            .try_input(&line[..96], InputRequest::default())
            .await
            .unwrap_err();
        assert_eq!(error.code, ErrorCode::LineTooLong);
        assert_eq!(shell.input(&line[..95]).await.status, Status::AwaitingInput);
        assert_eq!(shell.input("\n").await.status, Status::AwaitingInput);
        let seen = shell.key("d").await;
        assert!(seen.output.ends_with("4096\n"), "{:?}", seen.output);
        // A program that reads bytes has no lines.
        let raw = "stty raw -echo; head -c 9000 | wc -c";
        assert_eq!(shell.command(raw).await.status, Status::AwaitingInput);
        let seen = shell.input(&"x".repeat(9000)).await;
        assert_eq!(seen.brief(), (Status::Ok, Some(0), "9000\n"));
    });
}

#[test]
fn a_megabyte_of_lines_arrives() {
    run(async {
        let shell = Shell::bash().await;
        let text = format!("{}\n", "y".repeat(99)).repeat(10_000);
        shell.command("stty -echo; cat | md5sum | cut -c1-32").await;
        let seen = shell.input(&text).await;
        assert_eq!(
            (seen.status, seen.progress.unsent_bytes),
            (Status::AwaitingInput, 0)
        );
        let arrived = shell.key("d").await.output;
        std::fs::write(shell.home.path().join("text"), &text).unwrap();
        shell.check("md5sum <text | cut -c1-32", 0, &arrived).await;
    });
}

#[test]
fn what_is_not_read_is_counted() {
    run(async {
        let shell = Shell::bash().await;
        shell
            .command("stty -echo; sh -c 'read x; exec sleep 100'")
            .await;
        let request = InputRequest {
            timeout: Some(Duration::from_millis(500)),
            ..InputRequest::default()
        };
        let text = "y\n".repeat(500_000);
        let seen = shell.try_input(&text, request).await.unwrap();
        assert_eq!(seen.status, Status::Running);
        let unsent = seen.progress.unsent_bytes;
        assert!(unsent > 500_000 && unsent < text.len(), "{unsent}");
        assert_eq!(shell.session.end_job().await.ok(), Some("INT"));
        // Nobody reads at all.
        shell.command_within("sleep 100", Duration::ZERO).await;
        let error = shell.try_input("x\n", request).await.unwrap_err();
        let expected = "the job did not read the terminal in time; nothing was sent";
        assert_eq!(
            (error.code, error.message.as_str()),
            (ErrorCode::NoReader, expected)
        );
    });
}
