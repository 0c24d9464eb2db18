//! A person at the terminal of a session.

use std::sync::{Arc, Mutex};

use karyi::outcome::Status;
use karyi::pty::CommandRequest;

use super::support::{Shell, run};
use crate::harness::process::wait_until;

/// Runs a script for a person who types keys once it has printed `ready`; returns status and output, as it is.
async fn typed(shell: &Shell, script: &str, keys: &[u8]) -> (Status, String) {
    let output = Arc::new(Mutex::new(Vec::new()));
    let (target, seen) = (output.clone(), output.clone());
    let session = shell.session.clone();
    let typist = std::thread::spawn({
        let keys = keys.to_owned();
        move || {
            wait_until(|| String::from_utf8_lossy(&seen.lock().unwrap()).contains("ready"));
            assert_eq!(session.type_as_is(&keys).unwrap(), Some(keys.len()));
        }
    });
    let request = CommandRequest {
        script: script.into(),
        ..CommandRequest::default()
    };
    let sink = Box::new(move |bytes: &[u8]| target.lock().unwrap().extend_from_slice(bytes));
    let progress = shell.session.command(request, sink).await.unwrap();
    typist.join().unwrap();
    let output = String::from_utf8(output.lock().unwrap().clone()).unwrap();
    (progress.status, output)
}

#[test]
fn a_person_sees_and_types_everything_as_it_is() {
    run(async {
        let shell = Shell::bash().await;
        shell.session.give_to_person(true);
        // The command does not come back while it waits, and what is typed is echoed by its terminal.
        let asked = typed(
            &shell,
            "read -p ready x; A=$x; printf 'got %s\\n' $x",
            b"it\n",
        )
        .await;
        assert_eq!(asked, (Status::Ok, "readyit\r\ngot it\r\n".into()));
        // A terminal with a person behind it answers queries.
        let script = "stty raw -echo; printf 'ready\\033[6n'; head -c 3; stty sane";
        let queried = typed(&shell, script, b"abc").await;
        assert_eq!(queried, (Status::Ok, "ready\x1b[6nabc".into()));
        // A program that turns translation off gets its line feeds as they are.
        let drawn = typed(
            &shell,
            "stty -onlcr -icanon; printf 'ready\\nx'; head -c 1",
            b"y",
        )
        .await;
        assert_eq!(drawn, (Status::Ok, "ready\nxyy".into()));
        // Between a builtin and the program after it bash may lose a signal.
        let sleeper = "sh -c 'echo ready; exec sleep 600'";
        let ended = typed(&shell, sleeper, b"\x03").await;
        assert_eq!(ended, (Status::Failed, "ready\r\n^C".into()));
        assert_eq!(shell.session.type_as_is(b"x").unwrap(), None);
        // What was not read is not there for the next command.
        let left = typed(&shell, "echo ready; read -n 1 -s", b"1234").await;
        assert_eq!(left.0, Status::Ok);
        shell.session.give_to_person(false);
        let seen = shell.command("echo $A; read -t 0 && echo more").await;
        assert_eq!(seen.output, "it\n");
    });
}

#[test]
fn a_job_goes_on_when_nobody_waits_for_it() {
    run(async {
        let shell = Shell::bash().await;
        shell.session.give_to_person(true);
        let request = CommandRequest {
            script: "read -p name: x; echo hello $x".into(),
            ..CommandRequest::default()
        };
        let (told, is_told) = tokio::sync::oneshot::channel();
        let mut told = Some(told);
        let sink = Box::new(move |_: &[u8]| {
            let _ = told.take().map(|told| told.send(()));
        });
        tokio::select! {
            _ = shell.session.command(request, sink) => panic!("it waits"),
            asked = is_told => asked.unwrap(),
        }
        shell.session.give_to_person(false);
        assert!(shell.session.has_job());
        let seen = shell.input("you\n").await;
        assert_eq!(seen.status, Status::Ok);
        assert!(seen.output.ends_with("hello you\n"), "{}", seen.output);
    });
}
