//! Programs, traps and hooks that read what is meant for the shell, and shells that lose it.

use std::path::Path;
use std::time::Duration;

use karyi::error::ErrorCode;
use karyi::outcome::Status;
use karyi::pty::CommandRequest;

use super::support::{Shell, has, run};

/// Starts each of these shells that is there.
async fn each(names: &[&str]) -> Vec<(String, Shell)> {
    let mut started = Vec::new();
    for name in names {
        let directories = ["/bin", "/usr/bin"];
        let paths = directories.map(|directory| format!("{directory}/{name}"));
        let Some(path) = paths.into_iter().find(|path| Path::new(path).exists()) else {
            println!("skipped: {name} is not installed");
            continue;
        };
        let shell = Shell::with(|options| options.shell = Some(path.into())).await;
        started.push(((*name).to_owned(), shell));
    }
    started
}

/// What these shells run on EXIT has no terminal to read: they have given it back by then. It neither
/// waits for ever nor sees a line of the session.
#[test]
fn a_trap_on_exit_that_reads_ends() {
    run(async {
        for (name, shell) in each(&["dash", "ksh", "busybox"]).await {
            let seen = shell.command("trap 'cat; echo over' EXIT; exit 5").await;
            assert_eq!(
                (seen.status, seen.exit_code),
                (Status::Failed, Some(5)),
                "{name}"
            );
            assert!(seen.output.ends_with("over\n"), "{name}: {}", seen.output);
            assert!(!seen.output.contains("133"), "{name}: {}", seen.output);
            let seen = shell
                .command("trap 'read x; echo got $x' EXIT; exit 6")
                .await;
            let found = (seen.status, seen.exit_code, seen.output.as_str());
            assert_eq!(found, (Status::Failed, Some(6), "got\n"), "{name}");
            shell.check("echo next", 0, "next\n").await;
        }
    });
}

/// A command is never told to have run when something else has read the lines that run it.
#[test]
fn what_a_trap_reads_while_the_shell_rests_is_given_again() {
    run(async {
        for (name, shell) in each(&["bash", "zsh", "ksh", "dash", "mksh", "busybox"]).await {
            for (trap, how) in [("read x", "a line"), ("cat", "all")] {
                let pid = shell
                    .command(&format!("trap '{trap}' USR1; echo $$"))
                    .await
                    .output;
                let status = std::process::Command::new("kill")
                    .args(["-USR1", pid.trim()])
                    .status();
                assert!(status.unwrap().success());
                // Until the shell has taken the signal it does nothing else.
                let seen = shell.command("trap - USR1; echo next; (exit 3)").await;
                let found = (seen.exit_code, seen.output.replace("Killed\n", ""));
                assert_eq!(found.0, Some(3), "{name} {how}: {found:?}");
                assert!(found.1.ends_with("next\n"), "{name} {how}: {found:?}");
                shell.check("echo more", 0, "more\n").await;
            }
        }
    });
}

#[test]
fn hooks_that_read_take_no_command() {
    run(async {
        for (name, hook) in [
            ("bash", "PROMPT_COMMAND=cat"),
            ("bash", "PS1='$(cat)'"),
            ("bash", "set -T; trap 'read -t .1 x; true' DEBUG"),
            ("bash", "trap cat ERR"),
            ("zsh", "precmd() { read x; }"),
            ("zsh", "trap 'read -t .1 x; true' DEBUG; true"),
            ("ksh", "trap cat ERR"),
        ] {
            for (_, shell) in each(&[name]).await {
                shell.command_within(hook, Duration::from_secs(20)).await;
                for round in 0..3 {
                    let script = format!("printf 'n{round}\\n' & wait");
                    let seen = shell.command_within(&script, Duration::from_secs(20)).await;
                    let wanted = format!("n{round}\n");
                    assert_eq!(seen.exit_code, Some(0), "{name} {hook}: {}", seen.output);
                    assert!(
                        seen.output.contains(&wanted),
                        "{name} {hook}: {:?}",
                        seen.output
                    );
                }
            }
        }
    });
}

/// Where even that is in vain the command has not run, and the result says so.
#[test]
fn a_command_that_cannot_be_given_is_refused() {
    run(async {
        for (_, shell) in each(&["zsh"]).await {
            shell
                .command("precmd() { read x; read x; read x; read x; read x; read x }")
                .await;
            let request = CommandRequest {
                script: "echo ran >ran".into(),
                timeout: Some(Duration::from_secs(20)),
                ..CommandRequest::default()
            };
            match shell.request(request).await {
                Err(error) => {
                    assert_eq!(error.code, ErrorCode::SessionFailed);
                    assert!(!shell.home.path().join("ran").exists());
                }
                Ok(seen) => {
                    assert_eq!(seen.exit_code, Some(0), "{seen:?}");
                    assert!(shell.home.path().join("ran").exists());
                }
            }
        }
    });
}

/// busybox names descriptors of two digits, so a script can close where its shell keeps its input.
#[test]
fn a_shell_that_reads_in_vain_is_replaced() {
    if !has("busybox") {
        return println!("skipped: busybox is not installed");
    }
    run(async {
        for (_, shell) in each(&["busybox"]).await {
            let close =
                "for n in 3 4 5 6 7 8 9 10 11 12 13 14 15; do eval \"exec $n>&-\"; done; echo w";
            let seen = shell.command_within(close, Duration::from_secs(20)).await;
            assert!(
                seen.output.starts_with("w\n"),
                "{:?}",
                seen.output.get(..100)
            );
            assert_ne!(seen.status, Status::Running);
            shell.check("echo next", 0, "next\n").await;
        }
    });
}

/// The trace that a script asks for holds nothing of the session when the script ends its shell (but
/// in zsh, ksh and mksh, whose trace nothing keeps away).
#[test]
fn a_trace_is_of_the_script_only() {
    run(async {
        for (name, shell) in each(&["bash", "dash"]).await {
            let seen = shell.command("set -x; exit 3").await;
            assert_eq!(seen.exit_code, Some(3), "{name}");
            let own = shell.home.path().join("run");
            let shown = seen.output.contains(own.to_str().unwrap());
            assert!(
                !shown && seen.output.contains("exit 3"),
                "{name}: {}",
                seen.output
            );
        }
    });
}
