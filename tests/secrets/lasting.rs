//! Secrets that functions, traps, aliases and jobs of a session use after the command that named them.

use std::fs;

use karyi::outcome::Outcome;

use super::support::{Bench, code, name};
use karyi::secret::SecretValue;

const VALUE: &str = "it's \"a\" $HOME `id` $(touch pwned);touch pwned #\\";

/// Runs a script that must end well, and returns what was written to `out`.
#[track_caller]
fn written(bench: &mut Bench, script: &str) -> String {
    let out = bench.work().join("out");
    let _ = fs::remove_file(&out);
    let outcome = bench.command(script);
    assert_eq!(code(&outcome), "ok", "{script}: {outcome:?}");
    fs::read_to_string(&out).unwrap_or_default()
}

fn shells() -> Vec<&'static str> {
    let all = ["/bin/bash", "/usr/bin/zsh"];
    let there = all.into_iter().filter(|path| fs::metadata(path).is_ok());
    there.collect()
}

#[test]
fn what_a_script_defines_finds_its_value_later() {
    for shell in shells() {
        let mut bench = Bench::with_shell(shell).given("K", VALUE);
        let rows = [
            ("f() { printf %s $KARYI{K} > out; }", "f"),
            (
                "trap 'printf %s \"$KARYI{K}\" > out' USR1",
                "kill -USR1 $$; :",
            ),
            (
                "setopt aliases 2>/dev/null; shopt -s expand_aliases 2>/dev/null; alias show='printf %s $KARYI{K}'",
                "eval 'show > out'",
            ),
            ("v=$KARYI{K}", "printf %s \"$v\" > out"),
            (
                "mkfifo gate; { read -r x < gate; printf %s $KARYI{K} > out; } &",
                "echo go > gate; wait",
            ),
        ];
        for (defines, uses) in rows {
            assert_eq!(written(&mut bench, defines), "", "{shell}: {defines}");
            assert_eq!(written(&mut bench, uses), VALUE, "{shell}: {defines}");
        }
        assert!(!bench.work().join("pwned").exists(), "{shell}");
    }
}

fn shown(outcome: &Outcome) -> &str {
    outcome.output.as_ref().map_or("", |view| &view.text)
}

#[test]
fn a_variable_ends_with_its_secret() {
    for shell in shells() {
        let mut bench = Bench::with_shell(shell).given("K", VALUE);
        bench.command("f() { printf '<%s>' \"${__karyi_K-}\"; }; : $KARYI{K}");
        assert_eq!(shown(&bench.command("f")), "<$KARYI{K}>", "{shell}");
        bench.secrets.remove(&name("K"));
        assert_eq!(shown(&bench.command("f")), "<>", "{shell}");
        let once = SecretValue::new("only-for-one-block".into());
        bench.secrets.insert_once(name("K"), once).unwrap();
        let used = bench.command("printf '<%s>' $KARYI{K}");
        assert_eq!(shown(&used), "<$KARYI{K}>", "{shell}");
        assert_eq!(shown(&bench.command("f")), "<>", "{shell}");
    }
}

/// One that runs beside a command that holds the terminal has the values, too.
#[test]
fn a_shell_beside_the_first_has_the_variables() {
    for shell in shells() {
        let mut bench = Bench::with_shell(shell).given("K", VALUE);
        bench.command("f() { printf %s $KARYI{K} > out; }");
        let held = bench
            .run("<tools><command timeout=\"0.2\">mkfifo gate; read -r x < gate</command></tools>");
        assert_eq!(code(&held[0]), "running", "{shell}: {held:?}");
        assert_eq!(written(&mut bench, "f"), VALUE, "{shell}");
        written(&mut bench, "echo go > gate");
    }
}

#[test]
fn a_value_is_not_what_a_script_makes_of_its_variable() {
    for shell in shells() {
        let mut bench = Bench::with_shell(shell).given("K", VALUE);
        for attribute in ["-i", "-u", "-l"] {
            bench.command(&format!("typeset {attribute} __karyi_K"));
            let found = written(&mut bench, "printf %s $KARYI{K} > out");
            assert_eq!(found, VALUE, "{shell}: {attribute}");
        }
        assert!(!bench.work().join("pwned").exists(), "{shell}");
    }
}
