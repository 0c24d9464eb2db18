//! A shell that ends, is replaced, or never comes up.

use std::time::{Duration, Instant};

use karyi::error::ErrorCode;
use karyi::limits;
use karyi::outcome::Status;
use karyi::pty::{CommandRequest, Session, ShellSecrets, StartupFiles};

use super::support::{Shell, has, options, run};

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
fn what_holds_a_secret_does_not_come_back() {
    run(async {
        let is_it = |bytes: &[u8]| bytes.windows(8).any(|part| part == b"S3\"cr3t$");
        let shell = Shell::with(|options| options.secrets = ShellSecrets::new(is_it)).await;
        let script = "export A='S3\"cr3t$' B=2 C='x\nS3\"cr3t$'; f() { echo 'S3\"cr3t$'; }\n\
                      alias g='echo S3\"cr3t$' h='echo h'\nexit 3";
        let restart = shell.command(script).await.progress.restarted.unwrap();
        assert_eq!(restart.restored, words(&["cwd", "options"]));
        let mut lost = words(&["environment", "functions", "aliases"]);
        lost.extend(words(&["variables", "traps", "jobs"]));
        lost.extend(words(&["export A", "export C", "alias g"]));
        assert_eq!(restart.lost, lost);
        let script = "echo \"$A|$B|$C\"; type -t f g h; true";
        shell.check(script, 0, "|2|\nalias\n").await;
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
fn a_directory_nobody_told_is_not_said_to_be_there() {
    run(async {
        let shell = Shell::bash().await;
        for (script, is_told) in [
            ("exit 3", true),
            ("cd /usr; exit 3", true),
            ("cd /; exec true", false),
            ("trap : EXIT; cd /; exit 3", false),
            ("kill -9 $$", true),
        ] {
            let seen = shell.command(script).await;
            let restart = seen.progress.restarted.unwrap();
            let is_in = |names: &[String]| names.iter().any(|name| name == "cwd");
            let found = (is_in(&restart.restored), is_in(&restart.lost));
            assert_eq!(found, (is_told, !is_told), "{script}");
        }
        shell.check("pwd", 0, "/usr\n").await;
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
        options.rc = StartupFiles::User(limits::RC_TIMEOUT);
    })
    .await
}

#[test]
fn the_rc_file_is_read_once() {
    run(async {
        let shell = with_rc(
            "echo noise; export FROM_RC=1 PAGER=less EDITOR=vi; PS1='$ '; cd /; f() { echo f; }; set -u",
        )
        .await;
        shell
            .check(
                "echo $FROM_RC $PAGER $EDITOR $TERM; f",
                0,
                "1 cat vi xterm-256color\nf\n",
            )
            .await;
        assert_eq!(shell.session.cwd(), shell.home.path());
    });
}

#[test]
fn a_bad_rc_file_is_left_out() {
    // Most of them are waited for in vain, so they are tried side by side.
    std::thread::scope(|scope| {
        for rc in [
            "exit 1",
            "exec cat",
            "trap '' HUP TERM INT; while :; do :; done",
            "exec sh",
            "kill -9 $$",
            "kill -STOP $$",
            "ulimit -S -s 1024; f() { f; }; f",
            "ulimit -n 5",
        ] {
            scope.spawn(move || run(check_bad_rc("bash", ".bashrc", rc)));
        }
        for (name, file) in [("zsh", ".zshrc"), ("ksh", ".kshrc"), ("mksh", ".mkshrc")] {
            if has(name) {
                scope.spawn(move || run(check_bad_rc(name, file, "exit 1")));
            }
        }
    });
}

/// Checks that a shell starts without an rc file with which it cannot, and says so.
async fn check_bad_rc(name: &str, file: &str, rc: &str) {
    let shell = Shell::with(|options| {
        std::fs::write(options.cwd.join(file), rc).unwrap();
        options.rc = StartupFiles::User(QUICK);
        options.shell = Some(name.into());
    })
    .await;
    shell.check("echo on", 0, "on\n").await;
    let note = shell.session.take_startup_note().unwrap_or_default();
    assert_eq!(shell.session.take_startup_note(), None);
    let begin = format!(
        "{name} runs without its start-up files, with which the shell could not be started: "
    );
    assert!(note.starts_with(&begin), "{name}, {rc}: {note}");
}

/// Time for start-up files that do not end.
const QUICK: Duration = Duration::from_secs(1);

#[test]
fn what_slow_start_up_files_had_set_stays() {
    let files = [
        ("bash", ".bashrc"),
        ("zsh", ".zshrc"),
        ("ksh", ".kshrc"),
        ("mksh", ".mkshrc"),
        ("dash", "env"),
        ("busybox", "env"),
    ];
    // One kind after another: shells that all compute have no time to answer.
    for slow in ["sleep 100", "read x </dev/tty", "while :; do :; done"] {
        std::thread::scope(|scope| {
            for (name, file) in files.into_iter().filter(|(name, _)| has(name)) {
                scope.spawn(move || run(check_slow_rc(name, file, slow)));
            }
        });
    }
    run(check_slow_rc("bash", ".bashrc", "trap '' INT; sleep 100"));
}

/// Checks that a session has what its start-up files exported before their time was up, and says so once.
async fn check_slow_rc(name: &str, file: &str, slow: &str) {
    let shell = Shell::with(|options| {
        let rc = format!("export PATH=$HOME/bin:$PATH FOO=1 PAGER=less\n{slow}\nexport FOO=2\n");
        let place = options.cwd.join(file);
        std::fs::write(&place, rc).unwrap();
        options.env.push(("ENV".into(), place.into()));
        options.rc = StartupFiles::User(QUICK);
        options.shell = Some(name.into());
    })
    .await;
    let script = "echo $FOO $PAGER; case $PATH in $HOME/bin:*) echo path;; esac";
    let seen = shell.command(script).await;
    let note = shell.session.take_startup_note().unwrap_or_default();
    let expected = (Status::Ok, Some(0), "1 cat\npath\n");
    assert_eq!(seen.brief(), expected, "{name}, {slow}: {note}");
    assert!(
        note.starts_with(&format!("{name} ")),
        "{name}, {slow}: {note}"
    );
    assert_eq!(shell.session.take_startup_note(), None);
}

#[test]
fn a_bad_rc_file_that_can_be_borne_stays() {
    run(async {
        for rc in [
            "if then",
            "echo 'abc",
            ": ${x:?}",
            "set -e; false",
            "exec 0</dev/null 1>/dev/null",
            "for i in {0..255}; do eval \"exec $i>&-\"; done",
            "head -c 3000000 /dev/zero | tr '\\0' x",
            "alias if=false case=false; set -Cfu; umask 777; TMOUT=1; PATH=",
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

/// Values, functions and aliases that are hard to print and to read back; what follows shows them.
struct Exotic {
    shell: &'static str,
    script: &'static str,
    restored: &'static [&'static str],
    lost: &'static [&'static str],
    shown: &'static str,
}

const EVERYTHING: &[&str] = &["cwd", "environment", "functions", "aliases", "options"];
const VALUES: &str = "export A='1\n#+x\n2' B=\"it's \\\"q\\\" \\\\ \\$x\" C=$(printf 'a\\377b'); readonly D='r o'; export D; unset LANG; ";
const FUNCTION: &str = "f() { cat <<EOF\n$1 'x\nEOF\n}\n";
const SHOW: &str =
    "printf '%s|' \"$A\" \"$B\" \"$D\" \"${LANG-unset}\" \"$PWD\"; printf %s \"$C\" | od -An -tx1";
const SHOWN: &str = "1\n#+x\n2|it's \"q\" \\ $x|r o|unset|/usr| 61 ff 62\n";

const EXOTIC: &[Exotic] = &[
    Exotic {
        shell: "/bin/bash",
        script: "alias() { :; }; unset -f alias; alias if2='if :; then echo \"it'\\''s\"; fi' set='echo no'; declare() { :; }; unset -f declare; set -f -C; shopt -s extglob\ng() { case $1 in @(a|b)) echo glob;; esac; }; export -f g\n",
        restored: EVERYTHING,
        lost: &["variables", "traps", "jobs"],
        shown: "if2; g a; bash -O extglob -c 'g b'; case $- in *f*C*) echo options; esac; \\set +f",
    },
    Exotic {
        shell: "/usr/bin/zsh",
        script: "alias if2='if :; then echo \"it'\\''s\"; fi'; alias -g G='glob'; g() { echo glob; }; set -C\n",
        restored: EVERYTHING,
        lost: &["variables", "traps", "jobs"],
        shown: "if2; g; echo G; case $- in *C*) echo options; esac",
    },
    Exotic {
        shell: "/bin/ksh",
        script: "alias if2='if :; then echo \"it'\\''s\"; fi'; set -C\n",
        restored: &["cwd", "environment", "aliases", "options"],
        lost: &["functions", "variables", "traps", "jobs"],
        shown: "if2; echo glob; echo glob; case $- in *C*) echo options; esac",
    },
    Exotic {
        shell: "/bin/mksh",
        script: "alias if2='if :; then echo \"it'\\''s\"; fi'; g() { echo glob; }; set -C\n",
        restored: EVERYTHING,
        lost: &["variables", "traps", "jobs"],
        shown: "if2; g; g; case $- in *C*) echo options; esac",
    },
    Exotic {
        shell: "/bin/dash",
        script: "alias if2='if :; then echo \"it'\\''s\"; fi' two='echo a\necho b'; set -C\n",
        restored: &["cwd", "environment", "aliases", "options"],
        lost: &["functions", "variables", "traps", "jobs"],
        shown: "if2; echo glob; echo glob; case $- in *C*) echo options; esac",
    },
    Exotic {
        shell: "/bin/busybox",
        script: "alias if2='if :; then echo \"it'\\''s\"; fi' two='echo a\necho b'; set -C\n",
        restored: &["cwd", "environment", "aliases", "options"],
        lost: &["functions", "variables", "traps", "jobs"],
        shown: "if2; echo glob; echo glob; case $- in *C*) echo options; esac",
    },
];

#[test]
fn what_is_hard_to_print_comes_back() {
    run(async {
        let mut failures = Vec::new();
        for exotic in EXOTIC {
            if !std::path::Path::new(exotic.shell).exists() {
                eprintln!("skipped: no {}", exotic.shell);
                continue;
            }
            let shell = Shell::with(|options| options.shell = Some(exotic.shell.into())).await;
            let script = format!("{VALUES}{FUNCTION}{}cd /usr; exit 3", exotic.script);
            let seen = shell.command(&script).await;
            let found = seen.progress.restarted.clone().unwrap();
            let expected = (words(exotic.restored), words(exotic.lost));
            if seen.exit_code != Some(3) || (found.restored, found.lost) != expected {
                failures.push(format!("{}: {seen:?}", exotic.shell));
            }
            let seen = shell.command(&format!("{SHOW}\n{}", exotic.shown)).await;
            if seen.output != format!("{SHOWN}it's\nglob\nglob\noptions\n") {
                failures.push(format!("{}: {seen:?}", exotic.shell));
            }
            let has_functions = exotic.restored.contains(&"functions");
            let seen = shell.command("f a").await;
            if seen.output.contains("a 'x") != has_functions {
                failures.push(format!("{}: {seen:?}", exotic.shell));
            }
        }
        assert!(failures.is_empty(), "{}", failures.join("\n"));
    });
}

#[test]
fn what_does_not_come_back_is_said_to_be_lost() {
    run(async {
        let shell = with_rc("").await;
        let script = "echo 'readonly Z=rc' >~/.bashrc; export Z=mine; f() { echo f; }; exit 3";
        let restart = shell.command(script).await.progress.restarted.unwrap();
        assert_eq!(
            (restart.restored, restart.lost),
            (
                words(&["cwd", "functions", "aliases", "options"]),
                words(&["environment", "variables", "traps", "jobs"])
            )
        );
        shell.check("echo $Z; f", 0, "rc\nf\n").await;
        let script = "d=$(mktemp -d); cd $d; rm -r $d; trap - EXIT; kill -9 $$";
        let restart = shell.command(script).await.progress.restarted.unwrap();
        assert_eq!(restart.lost.first().map(String::as_str), Some("cwd"));
    });
}

/// A start-up file may define a function that hides what karyi calls.
#[test]
fn start_up_files_that_hide_built_in_commands_are_read() {
    for (name, file) in [("bash", ".bashrc"), ("zsh", ".zshenv"), ("mksh", ".mkshrc")] {
        if !has(name) {
            continue;
        }
        run(async {
            let shell = Shell::with(|options| {
                let rc = "RC=1; builtin() { echo hidden; }\n";
                std::fs::write(options.cwd.join(file), rc).unwrap();
                options.rc = StartupFiles::User(limits::RC_TIMEOUT);
                options.shell = Some(name.into());
            })
            .await;
            shell.check("echo $RC", 0, "1\n").await;
        });
    }
}

/// What a start-up file exports and the user had unset does not come back.
#[test]
fn what_was_unset_stays_unset() {
    for (name, file) in [
        ("bash", ".bashrc"),
        ("zsh", ".zshrc"),
        ("ksh", ".kshrc"),
        ("mksh", ".mkshrc"),
        ("dash", "env"),
        ("busybox", "env"),
    ] {
        if !has(name) {
            continue;
        }
        run(async {
            let shell = Shell::with(|options| {
                let rc = "export RC=1 KEPT=1; rcf() { :; }; alias rca=x; umask 077\n";
                let place = options.cwd.join(file);
                std::fs::write(&place, rc).unwrap();
                options.env.push(("ENV".into(), place.into()));
                options.rc = StartupFiles::User(limits::RC_TIMEOUT);
                options.shell = Some(name.into());
            })
            .await;
            let script = "unset RC; unset -f rcf; unalias rca; umask 022; export KEPT=2; exit 3";
            let seen = shell.command(script).await;
            let restart = seen.progress.restarted.unwrap();
            let mut all = EVERYTHING.to_vec();
            if !shell.session.prints_functions() {
                all.retain(|word| *word != "functions");
            }
            assert_eq!(restart.restored, words(&all), "{name}");
            let functions = match shell.session.prints_functions() {
                true => "gone",
                false => "lost",
            };
            let script = format!(
                "echo ${{RC-unset}} $KEPT $(umask); rcf 2>/dev/null && [ {functions} = gone ] && echo rcf; \
                 alias rca >/dev/null 2>&1 && echo rca; true"
            );
            let seen = shell.command(&script).await;
            let mask = seen.output.trim_end().trim_start_matches("unset 2 0");
            assert!(matches!(mask, "022" | "22"), "{name}: {seen:?}");
        });
    }
}

#[test]
fn a_megabyte_of_functions_comes_back() {
    run(async {
        let shell = Shell::bash().await;
        let script = "b=$(printf '%01000d' 0); for i in {1..1100}; do eval \"f$i() { : $b; echo $i; }\"; done; exit 3";
        let restart = shell.command(script).await.progress.restarted.unwrap();
        assert_eq!(restart.restored, words(EVERYTHING));
        shell
            .check("f1100; declare -F | wc -l", 0, "1100\n1100\n")
            .await;
    });
}

#[test]
fn a_shell_that_hides_its_means_from_the_next_one_is_replaced_all_the_same() {
    run(async {
        let shell = Shell::bash().await;
        let script = "builtin() { command builtin \"$@\"; }; printf() { :; }; exit 3";
        let seen = shell.command(script).await;
        assert_eq!(seen.exit_code, Some(3));
        shell.check("echo on", 0, "on\n").await;
    });
}

#[test]
fn a_command_no_shell_has_read_is_run_by_the_next_one() {
    run(async {
        let shell = Shell::bash().await;
        for _ in 0..5 {
            let pid = shell.command("echo $$").await.output;
            let mut kill = std::process::Command::new("kill");
            assert!(kill.args(["-9", pid.trim()]).status().unwrap().success());
            // What a dying shell takes in on its way is gone with it.
            let stat = format!("/proc/{}/stat", pid.trim());
            let is_alive =
                || std::fs::read_to_string(&stat).is_ok_and(|text| !text.contains(") Z"));
            while is_alive() {
                std::thread::yield_now();
            }
            let seen = shell.command("echo on").await;
            assert_eq!(seen.brief(), (Status::Ok, Some(0), "on\n"));
            assert!(seen.progress.restarted.is_some());
        }
    });
}
