//! Commands that break what the session needs of its shell.

use std::path::Path;

use karyi::limits;
use karyi::outcome::Status;
use karyi::pty::StartupFiles;

use super::support::{Shell, has, run};

/// Runs a command and compares; the shell must be the same one afterwards, and usable.
async fn check_survives(shell: &Shell, script: &str, exit_code: i32) {
    let before = shell.command("echo $$").await.output;
    let seen = shell.command(script).await;
    assert_eq!(seen.exit_code, Some(exit_code), "{script:?}: {seen:?}");
    assert_eq!(seen.progress.restarted, None, "{script:?}");
    let after = shell.command("echo $$").await;
    assert_eq!(after.brief(), (Status::Ok, Some(0), &*before), "{script:?}");
    shell.check("true", 0, "").await;
    let seen = shell.command("read x; echo got $x").await;
    assert_eq!(seen.status, Status::AwaitingInput, "{script:?}");
    let seen = shell.input("it\n").await;
    assert_eq!(seen.output, "it\ngot it\n", "{script:?}");
    let seen = shell.command("cat").await;
    assert_eq!(seen.status, Status::AwaitingInput, "{script:?}");
    let seen = shell.key("d").await;
    assert_eq!(seen.brief(), (Status::Ok, Some(0), ""), "{script:?}");
}

/// Runs a command that costs the shell; the next one must work, in the same directory.
async fn check_restarts(shell: &Shell, script: &str, expected: (Status, Option<i32>)) {
    shell.check("cd /usr", 0, "").await;
    let seen = shell.command(script).await;
    assert_eq!(
        (seen.status, seen.exit_code),
        expected,
        "{script:?}: {seen:?}"
    );
    let restart = seen.progress.restarted.unwrap();
    assert!(restart.lost.contains(&"variables".to_owned()), "{script:?}");
    shell.check("echo on $PWD", 0, "on /usr\n").await;
}

#[test]
fn closed_descriptors_are_put_back() {
    run(async {
        let shell = Shell::bash().await;
        for (script, exit_code) in [
            ("exec 10>&-", 0),
            ("exec 10<&-; (exit 7)", 7),
            ("exec 10>&- 11>&- 12>&-; false", 1),
            ("for i in {3..255}; do eval \"exec $i>&-\"; done", 0),
            ("for i in {0..255}; do eval \"exec $i>&-\"; done", 0),
            ("exec 10>&-; exec 10</dev/null", 0),
            ("exec 10</dev/null 11</dev/null 12</dev/null", 0),
            ("unset x; exec 10>&-; : ${x:?}", 1),
            ("exec 10>&-\nif then", 2),
            ("exec 0</dev/null", 0),
            ("exec 20<&0 0</dev/null >/dev/null 2>&1", 0),
            ("exec 255>&-", 0),
            ("exec 10>&- 77< <(sleep 100) 0<&77; kill $!; (exit 3)", 3),
        ] {
            check_survives(&shell, script, exit_code).await;
        }
        shell
            .check("exec 10>&- 11>&-; read x <<<a; echo $x", 0, "a\n")
            .await;
        shell.check("set -x; set +x", 0, "++ set +x\n").await;
    });
}

#[test]
fn a_shell_that_lost_its_input_unseen_is_replaced() {
    run(async {
        let shell = Shell::bash().await;
        let file = shell.home.path().join("closes");
        std::fs::write(&file, "exec 10>&- 256>&-\n").unwrap();
        let script = format!(". '{}'; (exit 7)", file.display());
        check_restarts(&shell, &script, (Status::Failed, Some(7))).await;
        let script = format!(". '{}'", file.display());
        check_restarts(&shell, &script, (Status::Ok, Some(0))).await;
    });
}

#[test]
fn a_mark_comes_without_the_terminal_the_shell_keeps() {
    run(async {
        for (script, exit_code) in [
            ("e=ex; ${e}ec 255>&-; (exit 7)", 7),
            ("e=ex; ${e}ec 255>&-", 0),
            ("e=ex; ${e}ec 255</dev/null; (exit 7)", 7),
            ("e=ex; ${e}ec 255>/dev/null; (exit 7)", 7),
            ("e=ex; ${e}ec 255>&-; unset x; : ${x:?}", 1),
            ("e=ex; ${e}ec 11>&- 255>&-; (exit 7)", 7),
            ("e=ex; ${e}ec 257</dev/null; (exit 7)", 7),
            ("e=ex; ${e}ec 257>/dev/full; (exit 7)", 7),
            ("e=ex; ${e}ec 257>it; (exit 7)", 7),
            ("ulimit -Sn 100; (exit 7)", 7),
            ("ulimit -Sn 257; (exit 7)", 7),
            ("ulimit -Sn 258; (exit 7)", 7),
            ("ulimit -Sn 259; (exit 7)", 7),
        ] {
            let shell = Shell::bash().await;
            let seen = shell.command(script).await;
            let found = (seen.exit_code, &seen.progress.restarted);
            assert_eq!(found, (Some(exit_code), &None), "{script:?}: {seen:?}");
            assert!(!seen.output.contains("133"), "{script:?}: {seen:?}");
            shell.check("echo it", 0, "it\n").await;
            shell.check("(exit 3)", 3, "").await;
        }
    });
}

#[test]
fn a_shell_that_reads_the_terminal_for_its_lines_is_replaced() {
    run(async {
        let shell = Shell::bash().await;
        // Beside a program in the background a script runs on the terminal by its name.
        for (script, exit_code) in [
            ("e=ex; ${e}ec 11>&-; (exit 7)", 7),
            ("e=ex; ${e}ec 12>&-; (exit 7)", 7),
            ("e=ex; ${e}ec 11>&- 255>&-", 0),
        ] {
            shell.check("sleep 100 &", 0, "").await;
            let status = match exit_code {
                0 => Status::Ok,
                _ => Status::Failed,
            };
            check_restarts(&shell, script, (status, Some(exit_code))).await;
        }
    });
}

#[test]
fn what_the_shell_prints_between_commands_ends_nothing() {
    run(async {
        let shell = Shell::bash().await;
        // Its number depends on how the script came to the terminal.
        let find = "for f in /proc/$$/fd/*; do f=$(readlink $f); [[ $f == */marks ]] && m=$f; done; n=$(grep -o '#end [0-9a-f]*' \"${m%/*}/snapshot\"); n=${n#?end }";
        shell.check(find, 0, "").await;
        // More than a FIFO holds, and a mark with the true nonce of an earlier command.
        let noise = "PROMPT_COMMAND='\\builtin printf \"%099999d\" 0; \
                     \\builtin printf \"\\e]133;D;$n;1;9;;/;$n\\a\"'";
        shell.check(noise, 0, "").await;
        for _ in 0..20 {
            shell.check("echo it; (exit 3)", 3, "it\n").await;
        }
        shell.check("PROMPT_COMMAND=", 0, "").await;
        let forged = "for i in {1..99}; do printf '\\e]133;D;%s;%s;9;;/;%s\\a' $n $i $n; done >$m; sleep 0.2; (exit 4)";
        shell.check(forged, 4, "").await;
        shell.check("rm $m; (exit 5)", 5, "").await;
        shell.check("echo it", 0, "it\n").await;
    });
}

#[test]
fn all_output_comes_before_the_end() {
    run(async {
        let shell = Shell::bash().await;
        for length in (1..=9000).step_by(257) {
            let script = format!("printf %{length}s x");
            let seen = shell.command(&script).await;
            assert_eq!((seen.exit_code, seen.output.len()), (Some(0), length));
        }
        // What may be the beginning of a mark is none.
        shell.check("printf 'a\\033]13'; (exit 3)", 3, "a").await;
        shell.check("printf 'b'", 0, "b").await;
    });
}

#[test]
fn a_terminal_that_does_not_open_any_more_is_noticed() {
    run(async {
        let shell = Shell::bash().await;
        let seen = shell.command("A=1; chmod 0 $(tty); (exit 4)").await;
        assert_eq!(seen.exit_code, Some(4), "{seen:?}");
        shell.check("echo on", 0, "on\n").await;
    });
}

#[test]
fn a_background_program_that_does_not_wait_spoils_no_other_output() {
    run(async {
        let shell = Shell::bash().await;
        let program = "import os,time; [os.set_blocking(i, False) for i in (0, 1, 2)]; \
                       open(\"it\", \"w\").close(); time.sleep(60)";
        let script = format!("mkfifo it; python3 -c '{program}' & read x <it; true");
        shell.check(&script, 0, "").await;
        let many = "head -c 300000 /dev/zero | tr '\\0' x; (exit 5)";
        let seen = shell.command(many).await;
        assert_eq!((seen.exit_code, seen.output.len()), (Some(5), 300_000));
        shell.check("kill %1", 0, "").await;
    });
}

#[test]
fn an_rc_file_may_close_descriptors() {
    run(async {
        let shell = Shell::with(|options| {
            std::fs::write(options.cwd.join(".bashrc"), "RC=1; exec 10>&-\n").unwrap();
            options.rc = StartupFiles::User(limits::RC_TIMEOUT);
        })
        .await;
        shell.check("echo $RC", 0, "1\n").await;
    });
}

#[test]
fn a_terminal_that_was_taken_from_the_shell_comes_back() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("skipped: not root");
        return;
    }
    run(async {
        let shell = Shell::bash().await;
        let seen = shell.command("setsid -w -c true").await;
        let expected = match seen.status {
            // The shell was seen without it while the command still ran.
            Status::Failed => (Status::Failed, Some(137), ""),
            _ => (Status::Ok, Some(0), ""),
        };
        assert_eq!(seen.brief(), expected);
        assert!(seen.progress.restarted.is_some());
        let seen = shell.command("cat").await;
        assert_eq!(seen.status, Status::AwaitingInput);
        assert_eq!(shell.key("c").await.exit_code, Some(130));
    });
}

#[test]
fn bash_gets_built_in_commands_back() {
    run(async {
        let shell = Shell::bash().await;
        for script in [
            "enable -n printf; (exit 7)",
            "enable -n builtin; (exit 7)",
            "enable -n . source eval read unset set exec exit printf builtin; sh -c 'exit 7'",
            "builtin() { :; }; (exit 7)",
            "builtin() { :; }; printf() { :; }; unset() { :; }; (exit 7)",
            "builtin() { return 3; }; enable() { :; }; (exit 7)",
        ] {
            check_survives(&shell, script, 7).await;
        }
    });
}

#[test]
fn a_function_hides_neither_the_mark_nor_the_next_command() {
    let shells = ["bash", "zsh", "dash", "ksh", "mksh", "busybox"];
    for name in shells.into_iter().filter(|name| has(name)) {
        run(async {
            let shell = Shell::with(|options| options.shell = Some(name.into())).await;
            for hidden in ["builtin", "command"] {
                let script = format!("{hidden}() {{ echo HIDDEN; return 3; }}");
                shell.check(&script, 0, "").await;
                shell.check("echo on; (exit 4)", 4, "on\n").await;
                let script = format!("eval '{script}'; (exit 5)");
                shell.check(&script, 5, "").await;
                shell.check("echo on", 0, "on\n").await;
            }
        });
    }
}

#[test]
fn zsh_gets_built_in_commands_back() {
    if !Path::new("/usr/bin/zsh").exists() {
        eprintln!("skipped: no zsh");
        return;
    }
    run(async {
        let shell = Shell::with(|options| options.shell = Some("/usr/bin/zsh".into())).await;
        for script in [
            "disable printf; (exit 7)",
            "disable builtin; (exit 7)",
            "builtin() { :; }; (exit 7)",
            "for i in {3..30}; do exec {i}>&-; done 2>/dev/null; (exit 7)",
            "exec 0</dev/null 3>&- 9>&-; (exit 7)",
        ] {
            check_survives(&shell, script, 7).await;
        }
        check_restarts(
            &shell,
            "setopt restricted; (exit 7)",
            (Status::Failed, Some(7)),
        )
        .await;
    });
}

#[test]
fn dash_keeps_its_descriptors() {
    if !Path::new("/bin/dash").exists() {
        eprintln!("skipped: no dash");
        return;
    }
    run(async {
        let shell = Shell::with(|options| options.shell = Some("/bin/dash".into())).await;
        for script in [
            "for i in 0 1 2 3 4 5 6 7 8 9; do eval \"exec $i>&-\"; done; (exit 7)",
            "exec 0</dev/null >/dev/null; (exit 7)",
            "command() { :; }; (exit 7)",
            "command() { :; }; printf() { :; }; (exit 7)",
        ] {
            check_survives(&shell, script, 7).await;
        }
    });
}

#[test]
fn a_shell_that_cannot_go_on_ends_with_the_status_of_its_command() {
    run(async {
        let shell = Shell::bash().await;
        check_restarts(&shell, "set -r; (exit 7)", (Status::Failed, Some(7))).await;
        check_restarts(&shell, "set -r; true", (Status::Ok, Some(0))).await;
        let script = "set -r; builtin() { :; }; (exit 7)";
        check_restarts(&shell, script, (Status::Failed, Some(7))).await;
        let script = "sleep 100 & kill -STOP $!; set -r; (exit 7)";
        check_restarts(&shell, script, (Status::Failed, Some(7))).await;
    });
}

#[test]
fn an_end_nobody_can_know_is_reported_as_killed() {
    run(async {
        let shell = Shell::bash().await;
        let killed = (Status::Killed, None);
        let script = "shopt -s extdebug; trap false DEBUG";
        check_restarts(&shell, script, killed).await;
        check_restarts(&shell, "enable -n exit enable; set -r", killed).await;
    });
}

/// Prints 0 when descriptor 0 waits for input.
const WAITS: &str = "python3 -c 'import os; print(int(not os.get_blocking(0)))'";

#[test]
fn a_terminal_that_was_left_not_waiting_waits_for_the_next_command() {
    run(async {
        let shell = Shell::bash().await;
        let script = "python3 -c 'import os; os.set_blocking(1, False)'; (exit 6)";
        for _ in 0..3 {
            shell.check(script, 6, "").await;
            shell.check(WAITS, 0, "0\n").await;
        }
        // Even the mark may find no room.
        let floods = "import os; os.set_blocking(1, False)\n\
                      try: os.write(1, b\"x\" * 10**6)\nexcept BlockingIOError: pass";
        for _ in 0..20 {
            let seen = shell
                .command(&format!("python3 -c '{floods}'; (exit 8)"))
                .await;
            assert_eq!(seen.exit_code, Some(8), "{seen:?}");
            assert_eq!(seen.output.trim_start_matches('x'), "", "{seen:?}");
            shell.check("echo it", 0, "it\n").await;
        }
    });
}

#[test]
fn a_background_program_that_a_function_started_spoils_no_later_command() {
    run(async {
        let shell = Shell::bash().await;
        let program = "import os; open(\"go\").read(); \
                       [os.set_blocking(i, False) for i in (0, 1, 2)]; \
                       open(\"done\", \"w\").close(); open(\"go\").read()";
        let define = format!("mkfifo go done; serve() {{ python3 -c '{program}' & }}");
        shell.check(&define, 0, "").await;
        shell.check("serve", 0, "").await;
        shell.check(": >go; : <done", 0, "").await;
        shell.check(WAITS, 0, "0\n").await;
        let many = "head -c 300000 /dev/zero | tr '\\0' x; (exit 5)";
        let seen = shell.command(many).await;
        assert_eq!((seen.exit_code, seen.output.len()), (Some(5), 300_000));
        shell.check("{ : >go; wait; } 2>/dev/null", 0, "").await;
        shell.check(WAITS, 0, "0\n").await;
    });
}

#[test]
fn a_script_that_breaks_off_its_line_has_one_mark() {
    run(async {
        let shell = Shell::bash().await;
        for setting in [
            ":",
            "trap 'true d b g' DEBUG",
            "PROMPT_COMMAND='true p c'",
            "PS1='$(true p s)\\w'",
            "alias case=echo esac=echo",
            "set -u",
            "set -o posix",
        ] {
            shell.check(setting, 0, "").await;
            for (script, exit_code) in [
                ("true 1 2", 0),
                ("(exit 9)", 9),
                (": ${nothing:?} 2>/dev/null", 1),
                ("{ : ${nothing:?}; } 2>/dev/null", 1),
                ("if then", 2),
                ("return 4", 4),
                ("f() { : ${nothing:?}; }; f", 1),
            ] {
                let seen = shell.command(script).await;
                let found = (seen.exit_code, &seen.progress.restarted);
                let context = format!("{setting:?} {script:?}: {seen:?}");
                assert_eq!(found, (Some(exit_code), &None), "{context}");
                assert!(!seen.output.contains("133"), "{context}");
                shell.check("echo it", 0, "it\n").await;
            }
        }
    });
}

#[test]
fn a_program_gets_the_terminal_and_nothing_else() {
    run(async {
        let shell = Shell::bash().await;
        shell.check("ls -x /proc/self/fd", 0, "0  1  2  3\n").await;
        let seen = shell.command("tty; readlink /proc/self/fd/2").await;
        let names: Vec<&str> = seen.output.lines().collect();
        assert!(
            names[0].starts_with("/dev/pts/") && names[0] == names[1],
            "{seen:?}"
        );
    });
}
