//! Programs, traps and hooks that read the input of the shell, and shells that lose it.

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
                let once = "trap - USR1; echo once >>runs; echo next; (exit 3)";
                let seen = shell.command(once).await;
                let runs = shell.home.path().join("runs");
                let text = std::fs::read_to_string(&runs).unwrap_or_default();
                assert_eq!(text, "once\n", "{name} {how}");
                std::fs::remove_file(runs).unwrap();
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
                    let script = format!("echo {round} >>runs; printf 'n{round}\\n' & wait");
                    let seen = shell.command_within(&script, Duration::from_secs(20)).await;
                    let wanted = format!("n{round}\n");
                    assert_eq!(seen.exit_code, Some(0), "{name} {hook}: {}", seen.output);
                    assert!(
                        seen.output.contains(&wanted),
                        "{name} {hook}: {:?}",
                        seen.output
                    );
                }
                // Each ran once.
                let runs = std::fs::read_to_string(shell.home.path().join("runs"));
                assert_eq!(runs.unwrap(), "0\n1\n2\n", "{name} {hook}");
            }
        }
    });
}

/// Where even that is in vain the next shell runs it; a command with values is not run at all, since they
/// are given once only.
#[test]
fn a_command_that_a_shell_does_not_get_is_run_by_the_next_or_refused() {
    run(async {
        for (name, shell) in each(&["zsh", "bash"]).await {
            let hook = "reader() { while read x; do :; done; }; case $ZSH_VERSION in '') \
                 PROMPT_COMMAND=reader;; *) precmd() { reader; };; esac";
            shell.command_within(hook, Duration::from_secs(20)).await;
            let seen = shell.command("echo ran >>ran; (exit 3)").await;
            assert_eq!(seen.exit_code, Some(3), "{name}: {}", seen.output);
            let ran = shell.home.path().join("ran");
            assert_eq!(std::fs::read_to_string(&ran).unwrap(), "ran\n", "{name}");
            let pid = shell.command("trap 'cat >/dev/null' USR1; echo $$").await;
            let status = std::process::Command::new("kill")
                .args(["-USR1", pid.output.trim()])
                .status();
            assert!(status.unwrap().success());
            let secrets = [("v1", "S3cr3t-T0ken")];
            let error = shell
                .command_with("echo $__karyi_v1 >>ran", &secrets)
                .await
                .unwrap_err();
            let codes = [ErrorCode::SessionFailed, ErrorCode::SecretNotDelivered];
            assert!(codes.contains(&error.code), "{name}: {error:?}");
            assert_eq!(std::fs::read_to_string(&ran).unwrap(), "ran\n", "{name}");
        }
    });
}

/// The directory and the script are one line: none is run where it should not be.
#[test]
fn a_command_elsewhere_is_run_there_or_not_at_all() {
    run(async {
        for (name, shell) in each(&["bash", "zsh", "dash", "ksh"]).await {
            std::fs::create_dir(shell.home.path().join("there")).unwrap();
            let pid = shell.command("trap 'read x' USR1; (exit 4); echo $$").await;
            let status = std::process::Command::new("kill")
                .args(["-USR1", pid.output.trim()])
                .status();
            assert!(status.unwrap().success());
            let request = |cwd: &str| CommandRequest {
                script: "trap - USR1; pwd >>place; false".into(),
                cwd: Some(shell.home.path().join(cwd)),
                timeout: Some(Duration::from_secs(20)),
                ..CommandRequest::default()
            };
            let seen = shell.request(request("there")).await.unwrap();
            assert_eq!(seen.exit_code, Some(1), "{name}: {}", seen.output);
            let place = shell.home.path().join("there/place");
            let places = std::fs::read_to_string(place).unwrap();
            assert_eq!(places.lines().count(), 1, "{name}: {places}");
            assert!(places.ends_with("/there\n"), "{name}: {places}");
            shell
                .check("test -e place || pwd | grep -c there", 1, "0\n")
                .await;
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

fn elsewhere(script: &str, cwd: std::path::PathBuf) -> CommandRequest {
    CommandRequest {
        script: script.into(),
        cwd: Some(cwd),
        timeout: Some(Duration::from_secs(20)),
        ..CommandRequest::default()
    }
}

/// A `cd` that fails is no reason to end a shell: what it has stays.
#[test]
fn a_directory_the_shell_does_not_go_to_is_told_and_costs_nothing() {
    run(async {
        for (name, shell) in each(&["bash", "zsh", "dash", "busybox"]).await {
            let there = shell.home.path().join("there");
            std::fs::create_dir(&there).unwrap();
            shell.check("v=kept; readonly OLDPWD", 0, "").await;
            let script = "echo ran >>../ran";
            let found = shell.request(elsewhere(script, there)).await;
            let ran = shell.home.path().join("ran");
            match found {
                // Some go there all the same.
                Ok(seen) => {
                    assert_eq!(seen.exit_code, Some(0), "{name}");
                    assert_eq!(std::fs::read_to_string(&ran).unwrap(), "ran\n", "{name}");
                }
                Err(error) => {
                    assert_eq!(error.code, ErrorCode::SessionFailed, "{name}");
                    assert!(error.message.contains("/there,"), "{name}: {error:?}");
                    assert!(!ran.exists(), "{name}");
                }
            }
            let seen = shell.command("echo $v").await;
            assert_eq!(seen.output, "kept\n", "{name}: {seen:?}");
        }
    });
}

/// The shell is back before the next command, whatever reads between the two.
#[test]
fn a_hook_does_not_keep_the_shell_elsewhere() {
    run(async {
        for (name, hook) in [
            ("bash", "PROMPT_COMMAND='read x'"),
            ("bash", "set -T; trap 'read -t .05 x; true' DEBUG"),
            ("zsh", "precmd() { read x; }"),
            ("zsh", "precmd() { read x; read y; }"),
        ] {
            for (_, shell) in each(&[name]).await {
                let there = shell.home.path().join("there");
                std::fs::create_dir(&there).unwrap();
                let seen = shell.command_within(hook, Duration::from_secs(20)).await;
                assert_eq!(seen.exit_code, Some(0), "{name} {hook}: {seen:?}");
                let seen = shell.request(elsewhere("pwd -P", there)).await;
                let seen = seen.unwrap_or_else(|error| panic!("{name} {hook}: {error:?}"));
                assert!(seen.output.ends_with("/there\n"), "{name} {hook}: {seen:?}");
                for _ in 0..3 {
                    let limit = Duration::from_secs(20);
                    let seen = shell.command_within("pwd -P; (exit 3)", limit).await;
                    assert_eq!(seen.exit_code, Some(3), "{name} {hook}: {seen:?}");
                    let home = shell.home.path().to_str().unwrap();
                    let place = seen.output.trim_end();
                    assert!(place.ends_with(home), "{name} {hook}: {place}");
                }
            }
        }
    });
}

/// Its own directory may go while a command runs elsewhere: then the next one runs where the shell is.
#[test]
fn a_directory_that_is_gone_keeps_no_command_from_running() {
    run(async {
        for (name, shell) in each(&["bash", "dash"]).await {
            shell.command("mkdir own; cd own").await;
            let request = elsewhere("rmdir own", shell.home.path().to_owned());
            let seen = shell.request(request).await.unwrap();
            assert_eq!(seen.exit_code, Some(0), "{name}: {}", seen.output);
            assert_eq!(
                seen.progress.cwd.as_deref(),
                Some(shell.home.path()),
                "{name}"
            );
            shell.check("echo next; cd /; pwd", 0, "next\n/\n").await;
        }
    });
}

/// Options of zsh change how a line is read, and a trap may wait for any failure.
#[test]
fn options_and_traps_keep_no_command_from_its_directory() {
    run(async {
        for (name, first) in [
            ("zsh", "v=1; emulate sh"),
            ("zsh", "v=1; setopt ignorebraces"),
            ("bash", "v=1; trap 'exit 7' ERR; readonly OLDPWD"),
            ("dash", "v=1; readonly OLDPWD"),
        ] {
            for (_, shell) in each(&[name]).await {
                shell.check(first, 0, "").await;
                for _ in 0..2 {
                    let seen = shell
                        .request(elsewhere("pwd; echo $v", "/usr".into()))
                        .await;
                    let seen = seen.unwrap_or_else(|error| panic!("{name} {first}: {error:?}"));
                    assert!(seen.output.ends_with("1\n"), "{name} {first}: {seen:?}");
                }
                shell.check("echo $v", 0, "1\n").await;
            }
        }
    });
}

/// A shell of the same words that a command becomes is a program like any other.
#[test]
fn a_shell_that_replaces_the_shell_is_not_taken_for_it() {
    run(async {
        for (name, shell) in each(&["dash", "bash"]).await {
            let words = "exec $(tr '\\0' ' ' </proc/$$/cmdline)";
            let seen = shell.command_within(words, Duration::from_secs(20)).await;
            assert_eq!(seen.status, Status::AwaitingInput, "{name}: {seen:?}");
            let count = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo counted $i\n";
            let seen = shell.input(count).await;
            assert_eq!(seen.status, Status::AwaitingInput, "{name}: {seen:?}");
            assert!(seen.output.contains("counted 300000"), "{name}: {seen:?}");
            let seen = shell.input("exit 4\n").await;
            assert_eq!(seen.exit_code, Some(4), "{name}: {seen:?}");
        }
    });
}
