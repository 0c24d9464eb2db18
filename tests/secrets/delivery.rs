//! A command runs with exactly its values, or not at all, whatever was done to the shell before.

use std::fs;

use super::support::{Bench, code};

const VALUE: &str = " it's é \"two\"\nlines\t ";

/// Returns what came of a command with a value after another one: how it ended, and whether a program got
/// the value; `None` when no program ran.
fn after(shell: &str, earlier: &str) -> (&'static str, Option<bool>) {
    let mut bench = Bench::with_shell(shell).given("X", VALUE);
    let out = bench.work().join("out");
    bench.command(earlier);
    let script = format!("command printf %s \"$KARYI{{X}}\" > '{}'", out.display());
    let ended = code(&bench.command(&script));
    (
        ended,
        fs::read(&out).ok().map(|got| got == VALUE.as_bytes()),
    )
}

const RIGHT: (&str, Option<bool>) = ("ok", Some(true));
const REFUSED: (&str, Option<bool>) = ("secret_not_delivered", None);

#[track_caller]
fn check(shell: &str, rows: &[(&str, (&'static str, Option<bool>))]) {
    let found: Vec<_> = rows
        .iter()
        .map(|(earlier, _)| (*earlier, after(shell, earlier)))
        .collect();
    assert_eq!(found, rows, "{shell}");
}

#[test]
fn bash_runs_a_command_with_its_values_or_not_at_all() {
    check(
        "/bin/bash",
        &[
            ("readonly IFS", REFUSED),
            ("enable -n read", RIGHT),
            ("read() { :; }", RIGHT),
            ("set -eu; trap 'exit 3' ERR", RIGHT),
            ("set -u; readonly IFS", REFUSED),
            ("enable -n unset", RIGHT),
            ("LC_ALL=C; LANG=C", RIGHT),
            (
                "shopt -s extdebug; trap '[[ $BASH_COMMAND != *read* ]]' DEBUG",
                REFUSED,
            ),
            ("BASH_XTRACEFD=2; set -x", RIGHT),
        ],
    );
}

#[test]
fn zsh_runs_a_command_with_its_values_or_not_at_all() {
    let found = ["/bin/zsh", "/usr/bin/zsh"]
        .into_iter()
        .find(|path| fs::metadata(path).is_ok());
    let Some(zsh) = found else {
        println!("skipped: no zsh");
        return;
    };
    check(
        zsh,
        &[
            ("readonly IFS", REFUSED),
            ("setopt nounset; readonly IFS", REFUSED),
            ("disable read", RIGHT),
            ("read() { :; }", RIGHT),
            ("setopt errexit; trap 'exit 3' ZERR", RIGHT),
            ("setopt ksharrays shwordsplit nomultibyte", RIGHT),
        ],
    );
}

/// What is not run says so, and the session goes on.
#[test]
fn a_refused_command_leaves_the_session_as_it_is() {
    let mut bench = Bench::new().given("X", VALUE);
    bench.command("a=kept; readonly IFS");
    let refused = bench.command("a=$KARYI{X}; touch ran");
    assert_eq!(code(&refused), "secret_not_delivered", "{refused:?}");
    assert!(!bench.work().join("ran").exists());
    let next = bench.command("printf %s \"$a\"");
    assert_eq!(code(&next), "ok");
    assert!(format!("{next:?}").contains("kept"), "{next:?}");
}
