//! Commands that break shells driven by typing, all in one session.

use std::path::Path;
use std::time::Duration;

use karyi::error::ToolError;
use karyi::outcome::Status;
use karyi::pty::{CommandRequest, InputRequest};

use super::support::{Seen, Shell, run};

/// What is done when a command waits, or goes on.
enum Step {
    Input(&'static str),
    Key(&'static str),
}

use Step::{Input, Key};

/// How long a command of the list may take.
const LONG: Duration = Duration::from_secs(120);

/// A command that breaks shells which are driven otherwise.
struct Hazard {
    name: &'static str,
    script: &'static str,
    steps: &'static [Step],
    /// What the output contains: one of these, separated by `|`.
    contains: &'static str,
    exit_code: Option<i32>,
    /// Shells in which it ends otherwise, and why; they must survive it all the same.
    differs: &'static [(&'static str, &'static str)],
}

const fn hazard(
    name: &'static str,
    script: &'static str,
    steps: &'static [Step],
    contains: &'static str,
    exit_code: Option<i32>,
) -> Hazard {
    Hazard {
        name,
        script,
        steps,
        contains,
        exit_code,
        differs: &[],
    }
}

impl Hazard {
    const fn differs(mut self, shells: &'static [(&'static str, &'static str)]) -> Self {
        self.differs = shells;
        self
    }
}

const HAZARDS: &[Hazard] = &[
    hazard(
        "heredoc",
        "cat <<'EOF'\nline $x !bang\nEOF\necho after",
        &[],
        "after",
        Some(0),
    ),
    hazard(
        "unterminated heredoc",
        "cat <<EOF\nabc",
        &[],
        "abc",
        Some(0),
    )
    .differs(&[("mksh", "an error there")]),
    hazard(
        "unterminated quote",
        "echo \"abc",
        &[],
        "unexpected EOF|nmatched|nterminated|no closing quote",
        None,
    ),
    hazard(
        "syntax error",
        "if then fi\necho x",
        &[],
        "yntax error|parse error",
        None,
    )
    .differs(&[("zsh", "none there: lists may be empty")]),
    hazard(
        "history expansion",
        "echo \"hi!there\"; echo done!!",
        &[],
        "hi!there",
        Some(0),
    ),
    hazard("utf-8", "echo 你好 | wc -m", &[], "3", Some(0)),
    hazard("set -e; false", "set -e\nfalse\necho no", &[], "", None),
    hazard(
        "exit 3 keeps env and cwd after restart",
        "export KEEP=1; cd /usr; exit 3",
        &[],
        "",
        Some(3),
    ),
    hazard(
        "env and cwd were kept",
        "echo $KEEP $PWD",
        &[],
        "1 /usr",
        Some(0),
    ),
    hazard("exec >/dev/null", "exec >/dev/null", &[], "", Some(0)),
    hazard(
        "stdin eater: cat",
        "cat\necho AFTER",
        &[Input("typed\n"), Key("d")],
        "AFTER",
        Some(0),
    ),
    hazard(
        "stdin eater: read",
        "read -r x\necho got:$x",
        &[Input("val\n")],
        "got:val",
        Some(0),
    ),
    hazard("stty -echo", "stty -echo", &[], "", Some(0)),
    hazard("stty sane", "stty sane", &[], "", Some(0)),
    hazard(
        "fake mark",
        "printf '\\033]133;D;nonce;7\\a'; echo real",
        &[],
        "real",
        Some(0),
    ),
    hazard(
        "background output later",
        "(sleep 0.3; echo LATE) & echo now",
        &[],
        "now",
        Some(0),
    ),
    hazard(
        "prompt variables clobbered",
        "PROMPT_COMMAND='echo PC'; PS1='xx> '; PS2=yy",
        &[],
        "",
        Some(0),
    ),
    hazard(
        "trap ERR EXIT",
        "trap 'echo ERR' ERR; trap 'echo BYE' EXIT; true",
        &[],
        "",
        Some(0),
    ),
    hazard(
        "${x:?}",
        "unset x; : ${x:?boom}\necho no",
        &[],
        "boom",
        None,
    ),
    hazard(
        "Ctrl+C sleep",
        "sleep 20; echo no3",
        &[Key("c")],
        "",
        Some(130),
    )
    .differs(&[("ksh", "its status is 256 there with a trap for ERR")]),
    hazard("Ctrl+Z job", "sleep 20", &[Key("z")], "", Some(148)).differs(&[
        ("mksh", "its status is 0 there"),
        (
            "ksh",
            "goes on there: sleep is built in, and deaf to the key after such a Ctrl+C",
        ),
    ]),
    hazard(
        "kill the stopped job",
        "kill -9 %1; wait 2>/dev/null; true",
        &[],
        "",
        Some(0),
    )
    .differs(&[("zsh", "the job is a copy of the shell, which dies with it")]),
    hazard("kill -TERM $$", "kill -TERM $$; echo t", &[], "t", Some(0))
        .differs(&[("mksh", "ends the script there")]),
    hazard(
        "binary output",
        "head -c 300000 /dev/urandom",
        &[],
        "",
        Some(0),
    ),
    hazard(
        "alternate screen left on",
        "printf '\\033[?1049h\\033[?25l'",
        &[],
        "",
        Some(0),
    ),
    hazard("set -x", "set -x; echo q; set +x", &[], "q", Some(0)),
    hazard("IFS reset", "unset IFS; set +u", &[], "", Some(0)),
    hazard("PATH emptied", "OP=$PATH; PATH=", &[], "", Some(0)),
    hazard("PATH back", "PATH=$OP", &[], "", Some(0)),
    hazard(
        "functions named printf and echo",
        "printf(){ :; }; true",
        &[],
        "",
        Some(0),
    ),
    hazard("unset -f", "unset -f printf; true", &[], "", Some(0)),
    hazard(
        "deleted cwd",
        "d=$(mktemp -d); cd $d; rm -rf $d",
        &[],
        "",
        Some(0),
    ),
    hazard("cd back", "cd /", &[], "", Some(0)),
    hazard(
        "interactive sub-shell",
        "bash --norc -i\necho BACK",
        &[Input("echo in$((2+3))\n"), Input("exit\n")],
        "BACK",
        Some(0),
    ),
    hazard(
        "python REPL",
        "python3 -q\necho BACK",
        &[Input("print(6*7)\n"), Key("d")],
        "BACK",
        Some(0),
    ),
    hazard(
        "getpass",
        "python3 -c 'import getpass; print(len(getpass.getpass()))'",
        &[Input("secret\n")],
        "6",
        Some(0),
    ),
    hazard(
        "nested heredoc and quotes",
        "python3 - <<'PY'\nprint('a\"b', \"c'd\")\nPY",
        &[],
        "a\"b c'd",
        Some(0),
    ),
    hazard("noclobber", "set -C", &[], "", Some(0)),
    // Grown here.
    hazard("set -v", "set -v; echo q; set +v", &[], "q", Some(0)),
    hazard("set -x stays on", "set -x", &[], "", Some(0)),
    hazard("set -x off", "set +x", &[], "", Some(0)),
    hazard(
        "function named builtin",
        "builtin() { :; }",
        &[],
        "",
        Some(0),
    ),
    hazard(
        "functions named like special built-ins",
        "unset() { :; }; set() { :; }; eval() { :; }",
        &[],
        "",
        Some(0),
    )
    .differs(&[
        ("dash", "forbidden there"),
        ("busybox", "forbidden there"),
        ("ksh", "forbidden there"),
    ]),
    hazard(
        "those gone",
        "POSIXLY_CORRECT=1\n\\unset -f unset set eval; unset POSIXLY_CORRECT
         unfunction unset set eval 2>/dev/null; true",
        &[],
        "",
        Some(0),
    ),
    hazard(
        "alias for builtin",
        "alias builtin=false printf=false echo='echo '",
        &[],
        "",
        Some(0),
    ),
    hazard("unalias", "unalias -a", &[], "", Some(0)),
    hazard("return", "return 5", &[], "", Some(5))
        .differs(&[("mksh", "gives 0 there once TERM has ended a script")]),
    hazard("stdin closed", "exec 0<&- 1>&- 2>&-", &[], "", Some(0)),
    hazard(
        "a reader in the background",
        "cat & sleep 0.1; kill $!; true",
        &[],
        "",
        Some(0),
    ),
    hazard("nounset", "set -u; unset PWD; true", &[], "", Some(0)),
    hazard(
        "raw terminal left on",
        "cd /; stty raw -echo",
        &[],
        "",
        Some(0),
    ),
    hazard("set -o posix", "set -o posix; true", &[], "", Some(0))
        .differs(&[("dash", "no such option"), ("zsh", "no such option")]),
    hazard("set +o posix", "set +o posix +u; true", &[], "", Some(0))
        .differs(&[("dash", "no such option"), ("zsh", "no such option")]),
    hazard(
        "keyword arguments and no globs",
        "set -k -f; true",
        &[],
        "",
        Some(0),
    )
    .differs(&[("dash", "no such option"), ("busybox", "no such option")]),
    hazard("those off", "set +k +f; true", &[], "", Some(0))
        .differs(&[("dash", "no such option"), ("busybox", "no such option")]),
    hazard(
        "exec of another program",
        "exec sh -c 'echo other; exit 4'",
        &[],
        "other",
        Some(4),
    ),
    hazard(
        "a job killed by a signal",
        "sh -c 'kill -SEGV $$'",
        &[],
        "",
        Some(139),
    )
    .differs(&[(
        "ksh",
        "a sourced script ends with the signal's number there",
    )]),
    hazard(
        "one command and out",
        "set -t; echo once",
        &[],
        "once",
        None,
    )
    .differs(&[
        ("dash", "no such option"),
        ("busybox", "no such option"),
        ("mksh", "no such option"),
        ("zsh", "no such option"),
    ]),
    // What takes things away from the shell.
    hazard("descriptor 10", "exec 10>&-", &[], "", Some(0)).differs(&[("dash", "numbers of one digit only there"), ("ksh", "numbers of one digit only there"), ("mksh", "numbers of one digit only there"), ("zsh", "numbers of one digit only there")]),
    hazard(
        "every descriptor",
        "for i in {3..255}; do eval \"exec $i>&-\"; done",
        &[],
        "",
        None,
    ),
    hazard(
        "exec <file",
        "exec </etc/passwd; read x; echo \"${x%%:*}\"; exec </dev/null",
        &[],
        "root",
        Some(0),
    ),
    hazard(
        "exec after all",
        "exec 10</dev/null 11</dev/null 12</dev/null; (exit 7)",
        &[],
        "",
        Some(7),
    ).differs(&[("dash", "numbers of one digit only there"), ("ksh", "numbers of one digit only there"), ("mksh", "numbers of one digit only there"), ("zsh", "numbers of one digit only there")]),
    hazard(
        "enable -n printf",
        "enable -n printf 2>/dev/null; disable printf 2>/dev/null; (exit 7)",
        &[],
        "",
        Some(7),
    ),
    hazard(
        "enable -n builtin",
        "enable -n builtin . eval 2>/dev/null; disable builtin 2>/dev/null; (exit 7)",
        &[],
        "",
        Some(7),
    ),
    hazard(
        "functions of any name",
        "cd() { :; }; test() { false; }; echo() { printf 'ok-2\\n'; }; true",
        &[],
        "",
        Some(0),
    ),
    hazard("those unset", "unset -f cd test echo", &[], "", Some(0)),
    hazard("file size limit", "ulimit -f 0; (exit 7)", &[], "", Some(7)),
    hazard(
        "deaf to signals",
        "trap '' HUP INT TERM CHLD; (exit 7)",
        &[],
        "",
        Some(7),
    ),
    hazard("deaf no more", "trap - HUP INT TERM CHLD", &[], "", Some(0)),
    hazard(
        "trap DEBUG",
        "trap 'echo x' DEBUG 2>/dev/null; (exit 7)",
        &[],
        "",
        Some(7),
    ),
    hazard(
        "trap DEBUG gone",
        "trap - DEBUG 2>/dev/null; true",
        &[],
        "",
        Some(0),
    ),
    hazard(
        "traps everywhere",
        "set -o functrace 2>/dev/null; trap 'echo D' DEBUG 2>/dev/null; trap 'echo R' RETURN 2>/dev/null; true",
        &[],
        "",
        Some(0),
    ).differs(&[("dash", "an error there: no such option"), ("mksh", "an error there: no such option"), ("zsh", "an error there: no such option")]),
    hazard(
        "none of them",
        "trap - DEBUG RETURN 2>/dev/null; set +o functrace 2>/dev/null; true",
        &[],
        "",
        Some(0),
    ).differs(&[("dash", "an error there: no such option"), ("mksh", "an error there: no such option"), ("zsh", "an error there: no such option")]),
    hazard(
        "aliases of keywords",
        "for i in if then fi case esac for do done while set unset export alias umask typeset declare trap eval exec exit command builtin printf print test cd; do alias $i=false 2>/dev/null; done; true",
        &[],
        "",
        Some(0),
    ),
    hazard("aliases gone", "\\unalias -a", &[], "", Some(0)),
    hazard("umask 777", "umask 777", &[], "", Some(0)),
    hazard("umask 22", "umask 22", &[], "", Some(0)),
    hazard(
        "read-only names",
        "readonly PS1 PS2 PAGER IFS OLDPWD KARYI_TRAPS; true",
        &[],
        "",
        Some(0),
    ),
    hazard(
        "read-only KARYI_LAST",
        "readonly KARYI_LAST=x; (exit 7)",
        &[],
        "",
        None,
    ),
    hazard(
        "no runtime directory",
        "for f in /proc/$$/fd/*; do t=$(readlink \"$f\"); case $t in */session-*/in*) rm -rf \"${t%/in*}\";; esac; done; (exit 7)",
        &[],
        "",
        Some(7),
    ),
    hazard(
        "closed runtime directory",
        "for f in /proc/$$/fd/*; do t=$(readlink \"$f\"); case $t in */session-*/in*) chmod 000 \"${t%/in*}\";; esac; done 2>/dev/null; (exit 7)",
        &[],
        "",
        Some(7),
    ),
    hazard(
        "PATH=/nonexistent",
        "OP=$PATH; PATH=/nonexistent",
        &[],
        "",
        Some(0),
    ),
    hazard("PATH there again", "PATH=$OP", &[], "", Some(0)),
    hazard("unset HOME", "unset HOME OLDPWD; true", &[], "", Some(0)),
    hazard(
        "exec of an interactive shell",
        "exec sh -i",
        &[Input("echo in$((2+3))\n"), Input("exit 5\n")],
        "in5",
        Some(5),
    ),
    hazard("exec sleep", "exec sleep 0.2", &[], "", Some(0)),
    hazard(
        "exit in a trap",
        "trap 'exit 7' EXIT; exit 3",
        &[],
        "",
        Some(7),
    ),
    hazard(
        "exit in trap DEBUG",
        "trap 'exit 7' DEBUG 2>/dev/null; true",
        &[],
        "",
        None,
    ),
    hazard(
        "exit in trap RETURN",
        "trap 'exit 7' RETURN 2>/dev/null; true",
        &[],
        "",
        None,
    ),
    hazard(
        "stopped by itself",
        "kill -STOP $$; (exit 7)",
        &[],
        "",
        Some(7),
    ),
    hazard("HUP", "kill -HUP $$; echo h", &[], "", None),
    hazard("ALRM", "kill -ALRM $$; echo h", &[], "", None),
    hazard("INT", "kill -INT $$; echo h", &[], "", None),
    hazard("set -n", "set -n; echo h", &[], "", None),
    hazard(
        "strict",
        "set -e; set -u; set -o pipefail 2>/dev/null; (exit 7)",
        &[],
        "",
        Some(7),
    ).differs(&[("dash", "an error there: no pipefail")]),
    hazard(
        "stty",
        "stty raw -echo -isig -opost 0; stty cols 1 rows 1 intr a erase b",
        &[],
        "",
        Some(0),
    ),
    hazard(
        "line numbers",
        "LINENO=7; unset LINENO; export BASH_ENV=/nonexistent ENV=/nonexistent; true",
        &[],
        "",
        Some(0),
    ).differs(&[("zsh", "LINENO is read-only there")]),
    hazard(
        "long line without end",
        "head -c 1000000 /dev/zero | tr '\\0' x; (exit 7)",
        &[],
        "xxx",
        Some(7),
    ),
    hazard(
        "the true nonce",
        "for f in /proc/$$/fd/*; do t=$(readlink \"$f\"); case $t in */session-*/in*) n=$(grep -o '#end [0-9a-f]*' \"${t%/in*}/snapshot\");; esac; done; i=0; while [ $i -lt 2000 ]; do printf '\\033]133;D;%s;%s;0;;/;%s\\007' \"${n#\\#end }\" $i \"${n#\\#end }\"; i=$((i+1)); done; sleep 0.2; (exit 7)",
        &[],
        "",
        Some(7),
    ),
    hazard("recursion", "f() { f; }; f", &[], "", None),
    hazard(
        "many words",
        "set -- $(seq 100000); echo $#; set --",
        &[],
        "100000",
        Some(0),
    ),
    hazard("no job control", "set +m; (exit 7)", &[], "", Some(7)),
    hazard("job control", "set -m", &[], "", Some(0)),
    hazard("wait", "sleep 300 & wait $!", &[Key("c")], "", Some(130)),
    hazard(
        "disown",
        "sleep 300 & disown 2>/dev/null; true",
        &[],
        "",
        Some(0),
    ),
    hazard("carriage returns", "echo a\r\necho b\r", &[], "b", None),
    hazard(
        "break and continue",
        "break; continue; shift 5; echo h",
        &[],
        "",
        None,
    ),
    hazard("exit of a word", "exit abc", &[], "", None),
    hazard(
        "processor time",
        "ulimit -t 1; while :; do :; done",
        &[],
        "",
        None,
    ),
    hazard(
        "few descriptors",
        "ulimit -n 10; (exit 7)",
        &[],
        "",
        Some(7),
    ).differs(&[
            ("busybox", "the shell ends at once there"),
            ("ksh", "the shell crashes there"),
        ]),
    hazard("restricted", "set -r; (exit 7)", &[], "", Some(7)).differs(&[("dash", "no such option"), ("busybox", "no such option"), ("mksh", "no such option")]),
    hazard("idle for a second", "TMOUT=1", &[], "", Some(0)),
    hazard("which has passed", "TMOUT=1; sleep 1.2", &[], "", Some(0)),
    hazard("kill -9 $$", "kill -9 $$", &[], "", None),
];

async fn one_hazard(shell: &Shell, name: &str, hazard: &Hazard) -> Result<(), String> {
    let (seen, output) = steps(shell, hazard)
        .await
        .map_err(|error| format!("{}: {error}", hazard.name))?;
    let is_usual = hazard.differs.iter().all(|(shell, _)| *shell != name);
    let is_right = hazard.contains.split('|').any(|text| output.contains(text))
        && matches!(
            seen.status,
            Status::Ok | Status::Failed | Status::Stopped | Status::Killed
        )
        && (seen.status != Status::Killed || seen.progress.restarted.is_some())
        && hazard
            .exit_code
            .is_none_or(|code| seen.exit_code == Some(code));
    if !is_usual && seen.status == Status::Running {
        let _ = shell.try_key("c").await;
    }
    if is_usual && !is_right {
        let shown: String = output.chars().take(300).collect();
        return Err(format!("{}: {:?} {shown:?}", hazard.name, seen.progress));
    }
    let seen = command(shell, r#"echo "ok-$((1+1))""#, LONG).await;
    let is_right = seen
        .as_ref()
        .is_ok_and(|seen| seen.exit_code == Some(0) && seen.output.lines().any(|l| l == "ok-2"));
    if is_right {
        Ok(())
    } else {
        Err(format!("{}: probe answered {seen:?}", hazard.name))
    }
}

/// Runs a hazard; returns the last result and all output.
async fn steps(shell: &Shell, hazard: &Hazard) -> Result<(Seen, String), ToolError> {
    let timeout = match hazard.steps.first() {
        Some(Key(_)) => Duration::from_secs(1),
        _ => LONG,
    };
    let mut seen = command(shell, hazard.script, timeout).await?;
    let mut output = seen.output.clone();
    for step in hazard.steps {
        seen = match step {
            Input(text) => shell.try_input(text, InputRequest::default()).await?,
            Key(name) => shell.try_key(name).await?,
        };
        output.push_str(&seen.output);
    }
    Ok((seen, output))
}

async fn command(shell: &Shell, script: &str, timeout: Duration) -> Result<Seen, ToolError> {
    let request = CommandRequest {
        script: script.into(),
        timeout: Some(timeout),
        ..CommandRequest::default()
    };
    shell.request(request).await
}

async fn survives_every_hazard(path: &str) {
    let Some(name) = Path::new(path).file_name().and_then(|name| name.to_str()) else {
        return;
    };
    let shell = Shell::with(|options| options.shell = Some(path.into())).await;
    let line = format!("echo {} | wc -c", "a".repeat(6000));
    shell.check(&line, 0, "6001\n").await;
    let mut failures = Vec::new();
    for hazard in HAZARDS {
        if let Err(failure) = one_hazard(&shell, name, hazard).await {
            failures.push(failure);
            // The rest is tried all the same.
            let _ = shell.try_key("c").await;
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert_eq!(shell.session.close().await, None);
}

fn check(path: &str) {
    if Path::new(path).exists() {
        run(survives_every_hazard(path));
    } else {
        eprintln!("skipped: no {path}");
    }
}

#[test]
fn bash_survives_every_hazard_in_one_session() {
    check("/bin/bash");
}

#[test]
fn zsh_survives_every_hazard_in_one_session() {
    check("/usr/bin/zsh");
}

#[test]
fn dash_survives_every_hazard_in_one_session() {
    check("/bin/dash");
}

#[test]
fn ksh_survives_every_hazard_in_one_session() {
    check("/bin/ksh");
}

#[test]
fn mksh_survives_every_hazard_in_one_session() {
    check("/bin/mksh");
}

#[test]
fn busybox_survives_every_hazard_in_one_session() {
    check("/bin/busybox");
}
