//! Commands that break shells driven by typing, all in one session.

use karyi::outcome::Status;

use super::support::{Seen, Shell, run};

/// What is done when a command waits, or goes on.
enum Step {
    Input(&'static str),
    Key(&'static str),
}

use Step::{Input, Key};

/// One hazard: name, script, keys, what the output contains, exit status.
type Hazard = (
    &'static str,
    &'static str,
    &'static [Step],
    &'static str,
    Option<i32>,
);

const HAZARDS: &[Hazard] = &[
    (
        "heredoc",
        "cat <<'EOF'\nline $x !bang\nEOF\necho after",
        &[],
        "after",
        Some(0),
    ),
    (
        "unterminated heredoc",
        "cat <<EOF\nabc",
        &[],
        "abc",
        Some(0),
    ),
    (
        "unterminated quote",
        "echo \"abc",
        &[],
        "unexpected EOF",
        None,
    ),
    (
        "syntax error",
        "if then fi\necho x",
        &[],
        "syntax error",
        None,
    ),
    (
        "history expansion",
        "echo \"hi!there\"; echo done!!",
        &[],
        "hi!there",
        Some(0),
    ),
    ("utf-8", "echo 你好 | wc -m", &[], "3", Some(0)),
    ("set -e; false", "set -e\nfalse\necho no", &[], "", None),
    (
        "exit 3 keeps env and cwd after restart",
        "export KEEP=1; cd /usr; exit 3",
        &[],
        "",
        Some(3),
    ),
    (
        "env and cwd were kept",
        "echo $KEEP $PWD",
        &[],
        "1 /usr",
        Some(0),
    ),
    ("exec >/dev/null", "exec >/dev/null", &[], "", Some(0)),
    (
        "stdin eater: cat",
        "cat\necho AFTER",
        &[Input("typed\n"), Key("d")],
        "AFTER",
        Some(0),
    ),
    (
        "stdin eater: read",
        "read -r x\necho got:$x",
        &[Input("val\n")],
        "got:val",
        Some(0),
    ),
    ("stty -echo", "stty -echo", &[], "", Some(0)),
    ("stty sane", "stty sane", &[], "", Some(0)),
    (
        "fake mark",
        "printf '\\033]133;D;nonce;7\\a'; echo real",
        &[],
        "real",
        Some(0),
    ),
    (
        "background output later",
        "(sleep 0.3; echo LATE) & echo now",
        &[],
        "now",
        Some(0),
    ),
    (
        "prompt variables clobbered",
        "PROMPT_COMMAND='echo PC'; PS1='xx> '; PS2=yy",
        &[],
        "",
        Some(0),
    ),
    (
        "trap ERR EXIT",
        "trap 'echo ERR' ERR; trap 'echo BYE' EXIT; true",
        &[],
        "",
        Some(0),
    ),
    (
        "${x:?}",
        "unset x; : ${x:?boom}\necho no",
        &[],
        "boom",
        None,
    ),
    (
        "Ctrl+C sleep",
        "sleep 20; echo no3",
        &[Key("c")],
        "",
        Some(130),
    ),
    ("Ctrl+Z job", "sleep 20", &[Key("z")], "", Some(148)),
    (
        "kill the stopped job",
        "kill -9 %1; wait 2>/dev/null; true",
        &[],
        "",
        Some(0),
    ),
    ("kill -TERM $$", "kill -TERM $$; echo t", &[], "t", Some(0)),
    (
        "binary output",
        "head -c 300000 /dev/urandom",
        &[],
        "",
        Some(0),
    ),
    (
        "alternate screen left on",
        "printf '\\033[?1049h\\033[?25l'",
        &[],
        "",
        Some(0),
    ),
    ("set -x", "set -x; echo q; set +x", &[], "q", Some(0)),
    ("IFS reset", "unset IFS; set +u", &[], "", Some(0)),
    ("PATH emptied", "OP=$PATH; PATH=", &[], "", Some(0)),
    ("PATH back", "PATH=$OP", &[], "", Some(0)),
    (
        "functions named printf and echo",
        "printf(){ :; }; true",
        &[],
        "",
        Some(0),
    ),
    ("unset -f", "unset -f printf; true", &[], "", Some(0)),
    (
        "deleted cwd",
        "d=$(mktemp -d); cd $d; rm -rf $d",
        &[],
        "",
        Some(0),
    ),
    ("cd back", "cd /", &[], "", Some(0)),
    (
        "interactive sub-shell",
        "bash --norc -i\necho BACK",
        &[Input("echo in$((2+3))\n"), Input("exit\n")],
        "BACK",
        Some(0),
    ),
    (
        "python REPL",
        "python3 -q\necho BACK",
        &[Input("print(6*7)\n"), Key("d")],
        "BACK",
        Some(0),
    ),
    (
        "getpass",
        "python3 -c 'import getpass; print(len(getpass.getpass()))'",
        &[Input("secret\n")],
        "6",
        Some(0),
    ),
    (
        "nested heredoc and quotes",
        "python3 - <<'PY'\nprint('a\"b', \"c'd\")\nPY",
        &[],
        "a\"b c'd",
        Some(0),
    ),
    ("noclobber", "set -C", &[], "", Some(0)),
    // Grown here.
    ("set -v", "set -v; echo q; set +v", &[], "q", Some(0)),
    ("set -x stays on", "set -x", &[], "", Some(0)),
    ("set -x off", "set +x", &[], "", Some(0)),
    (
        "function named builtin",
        "builtin() { :; }",
        &[],
        "",
        Some(0),
    ),
    (
        "functions named like special built-ins",
        "unset() { :; }; set() { :; }; eval() { :; }",
        &[],
        "",
        Some(0),
    ),
    (
        "those gone",
        "POSIXLY_CORRECT=1\n\\unset -f unset set eval; unset POSIXLY_CORRECT",
        &[],
        "",
        Some(0),
    ),
    (
        "alias for builtin",
        "alias builtin=false printf=false echo='echo '",
        &[],
        "",
        Some(0),
    ),
    ("unalias", "unalias -a", &[], "", Some(0)),
    ("return", "return 5", &[], "", Some(5)),
    ("stdin closed", "exec 0<&- 1>&- 2>&-", &[], "", Some(0)),
    (
        "a reader in the background",
        "cat & sleep 0.1; kill $!; true",
        &[],
        "",
        Some(0),
    ),
    ("nounset", "set -u; unset PWD; true", &[], "", Some(0)),
    (
        "raw terminal left on",
        "cd /; stty raw -echo",
        &[],
        "",
        Some(0),
    ),
    ("set -o posix", "set -o posix; true", &[], "", Some(0)),
    ("set +o posix", "set +o posix +u; true", &[], "", Some(0)),
    (
        "keyword arguments and no globs",
        "set -k -f; true",
        &[],
        "",
        Some(0),
    ),
    ("those off", "set +k +f; true", &[], "", Some(0)),
    (
        "exec of another program",
        "exec sh -c 'echo other; exit 4'",
        &[],
        "other",
        Some(4),
    ),
    (
        "a job killed by a signal",
        "sh -c 'kill -SEGV $$'",
        &[],
        "",
        Some(139),
    ),
    (
        "one command and out",
        "set -t; echo once",
        &[],
        "once",
        None,
    ),
    ("kill -9 $$", "kill -9 $$", &[], "", None),
];

async fn one_hazard(shell: &Shell, hazard: &Hazard) -> Result<(), String> {
    let (name, script, steps, contains, exit_code) = *hazard;
    let mut seen = match steps.first() {
        Some(Key(_)) => {
            shell
                .command_within(script, std::time::Duration::from_secs(1))
                .await
        }
        _ => shell.command(script).await,
    };
    let mut output = seen.output.clone();
    for step in steps {
        seen = match step {
            Input(text) => shell.input(text).await,
            Key(name) => shell.key(name).await,
        };
        output.push_str(&seen.output);
    }
    let is_right = output.contains(contains)
        && matches!(seen.status, Status::Ok | Status::Failed | Status::Stopped)
        && exit_code.is_none_or(|code| seen.exit_code == Some(code));
    if !is_right {
        return Err(format!(
            "{name}: {:?} {:?}",
            seen.progress,
            output.get(..300).unwrap_or(&output)
        ));
    }
    probe(shell)
        .await
        .map_err(|seen| format!("{name}: probe answered {seen:?}"))
}

async fn probe(shell: &Shell) -> Result<(), Box<Seen>> {
    let seen = shell.command(r#"echo "ok-$((1+1))""#).await;
    let is_right = seen.exit_code == Some(0) && seen.output.lines().any(|line| line == "ok-2");
    if is_right {
        Ok(())
    } else {
        Err(Box::new(seen))
    }
}

#[test]
fn bash_survives_every_hazard_in_one_session() {
    run(async {
        let shell = Shell::bash().await;
        let line = format!("echo {} | wc -c", "a".repeat(6000));
        shell.check(&line, 0, "6001\n").await;
        let mut failures = Vec::new();
        for hazard in HAZARDS {
            if let Err(failure) = one_hazard(&shell, hazard).await {
                failures.push(failure);
            }
        }
        assert!(failures.is_empty(), "{}", failures.join("\n"));
        assert_eq!(shell.session.close().await, None);
    });
}
