//! Wherever a command can start, the value in it is seen there.

use crate::secret::{SecretName, SecretValue};
use crate::vault::session::Secrets;
use crate::vault::shell::substitute_script;

const VALUE: &str = "a[$(touch pwned)]";

/// Returns the scripts for which something else than the error comes.
fn others(scripts: impl IntoIterator<Item = String>, expected: &str) -> Vec<String> {
    let secrets = Secrets::default();
    let name = SecretName::parse("V0").unwrap();
    secrets
        .insert(name, SecretValue::new(VALUE.into()))
        .unwrap();
    let found =
        |script: &String| match substitute_script(&script.replace("VALUE", "$KARYI{V0}"), &secrets)
        {
            Ok(_) => "accepted",
            Err(error) => error.code.as_str(),
        };
    let scripts = scripts.into_iter();
    let found = scripts.map(|script| (found(&script), script));
    let others = found.filter(|(found, _)| *found != expected);
    others
        .map(|(found, script)| format!("{found}: {script}"))
        .collect()
}

#[track_caller]
fn check_all(scripts: impl IntoIterator<Item = String>, expected: &str) {
    let others = others(scripts, expected);
    assert!(others.is_empty(), "not {expected}:\n{}", others.join("\n"));
}

/// Scripts with `BODY` where a command starts: after keywords that follow a compound command on
/// its line, after modifiers and in short forms.
const OPENINGS: &[&str] = &[
    "for ((i=0;i<1;i++)) do BODY; done",
    "for ((i=0;i<1;i++)) { BODY; }",
    "for x do BODY; done",
    "for x { BODY; }",
    "for x in 1; { BODY; }",
    "select x do BODY; done",
    "if [[ a == a ]] then BODY; fi",
    "if [[ a == b ]] then :; elif [[ a ]] then BODY; fi",
    "if ((1)) then BODY; fi",
    "if (true) then BODY; fi",
    "if { true; } then BODY; fi",
    "if { { true; } } then BODY; fi",
    "if for x in 1; do :; done then BODY; fi",
    "if if true; then true; fi then BODY; fi",
    "if case x in x) ;; esac then BODY; fi",
    "if case x in x) :; esac then BODY; fi",
    "if (true) >/dev/null 2>&1 then BODY; fi",
    "if ((0)) then :; else BODY; fi",
    "while ((i++<1)) do BODY; done",
    "while [[ -z $y ]] do BODY; break; done",
    "until ((i++)) do BODY; done",
    "while (true) do for ((;;)) do BODY; done done; BODY",
    "{ (true) }; BODY",
    "time -p BODY",
    "time -- BODY",
    "time -p -- BODY",
    "! time -p BODY",
    "time ! BODY",
    "time -p { BODY; }",
    "if time -p ! BODY; then :; fi",
    "coproc { BODY; }",
    "coproc N { BODY; }",
    "coproc N if ((1)) then BODY; fi",
    "coproc N ( BODY )",
    // zsh
    "for x (1) BODY",
    "for x (1) { BODY; }",
    "foreach x (1) BODY; end",
    "repeat 1 BODY",
    "repeat 1 { BODY; }",
    "while (( i++ < 1 )) { BODY; }",
    "if [[ a ]] { :; } else { BODY; }",
    "if [[ a ]] { :; } elif [[ b ]] { BODY; }",
    "if (( 1 )) BODY",
    "{ :; } always { BODY; }",
    "- BODY",
];

const CODE: &[&str] = &[
    "bash -c \"VALUE\"",
    "eval \"VALUE\"",
    "command eval \"VALUE\"",
    "$run VALUE",
];

const CONTEXTS: &[&str] = &[
    "let x=VALUE",
    "trap \"VALUE\" EXIT",
    "declare -i x=VALUE",
    "builtin let x=VALUE",
    "f() { echo \"[VALUE]\"; }",
];

/// What is no command that a modifier can stand before, but may follow a keyword.
const COMPOUNDS: &[&str] = &["(( x = VALUE ))", "[[ VALUE -eq 1 ]]", "x[VALUE]=1"];

#[test]
fn every_command_after_an_opening_is_seen() {
    let scripts = |bodies: &'static [&'static str]| {
        let filled = |body| {
            OPENINGS
                .iter()
                .map(move |opening| opening.replace("BODY", body))
        };
        bodies.iter().flat_map(move |body| filled(body))
    };
    check_all(scripts(CODE), "unsafe_nested_parse");
    check_all(scripts(CONTEXTS), "unsafe_context");
    check_all(scripts(COMPOUNDS), "unsafe_context");
}

const REFUSED_CONTEXTS: &[&str] = &[
    "f() (( VALUE > 1 ))",
    "f() [[ VALUE == 1 ]]",
    "g() { :; } > /tmp/zzVALUE",
    "g() (:) 2>/dev/null > /tmp/zzVALUE",
    "g() { :; } <<EOF\nVALUE\nEOF",
    "g() { :; } <<< VALUE",
    "function g { :; } > VALUE",
    "() { recv VALUE; }",
    "f g () { recv VALUE; }",
    "coproc N (( VALUE ))",
    "coproc N [[ VALUE -eq 1 ]]",
    "coproc [[ VALUE -eq 1 ]]",
    "command let x=VALUE",
    "builtin declare -i r=VALUE",
    "command -p builtin declare -i r=VALUE",
    "noglob let x=VALUE",
    "o=-i; declare $o r=VALUE",
    "o=-i; export \"$o\" r=VALUE",
    "o=-i; declare $o r; r=VALUE",
    "declare -i r; : ${r:=VALUE}",
    "declare -i r; : ${r=VALUE}",
    "declare -i r; read r <<< VALUE",
    "declare -i r; while read r; do :; done <<< VALUE",
    "declare -i r; echo VALUE | read r",
    "declare -i r; read r <<EOF\nVALUE\nEOF",
    "declare -i r; for r in VALUE; do :; done",
    "declare -i r; mapfile r <<< VALUE",
    "declare -i r; printf -v r %s VALUE",
    "declare -i r; printf -vr %s VALUE",
    "fc -s a=VALUE",
    "fc -e VALUE",
    "FCEDIT=VALUE fc",
    "history -s VALUE",
    "sched 1 VALUE",
    "echo *(e:VALUE:)",
    "echo *(.e:\"VALUE\":)",
    "echo x(#qe:VALUE:)",
    "echo *(e'VALUE')",
    "ENV=<(echo VALUE) sh -i",
    "BASH_ENV=<(echo VALUE) bash -c :",
    "env BASH_ENV=<(echo VALUE) bash -c :",
];

#[test]
fn further_contexts_are_refused() {
    check_all(
        REFUSED_CONTEXTS.iter().map(|script| script.to_string()),
        "unsafe_context",
    );
}

const REFUSED_CODE: &[&str] = &[
    "{bash,-c,VALUE}",
    "{eval,VALUE}",
    "{bash,-c} VALUE",
    "b?sh -c VALUE",
    "/bin/bas* -c VALUE",
    "b[a]sh -c VALUE",
    "b@(a)sh -c VALUE",
    "command b?sh -c VALUE",
    "${e}val VALUE",
    "=bash -c VALUE",
    "time -f %E bash -c VALUE",
    "bash --rcfile <(echo VALUE) -i",
    "bash --init-file <(echo VALUE) -i",
    "bash --rcfile VALUE -i",
    "bash /dev/fd/3 3<<< VALUE",
    "bash /proc/self/fd/3 3<<< VALUE",
    "python3 /dev/stdin <<< VALUE",
    "python3 /dev/fd/3 3<<EOF\nVALUE\nEOF",
    "python3 <(echo VALUE)",
    "python3 -W ignore <(echo VALUE)",
    "sudo python3 <(echo VALUE)",
    "perl <(echo VALUE)",
    "python3 =(echo VALUE)",
    "bash =(echo VALUE)",
    "expect <(echo VALUE)",
    "perl -MVALUE -e 1",
    "perl -M VALUE -e 1",
    "perl -MJSON <<< VALUE",
    "python3 -m timeit VALUE",
    "python3 -mtimeit -s VALUE",
];

#[test]
fn further_second_readings_are_refused() {
    check_all(
        REFUSED_CODE.iter().map(|script| script.to_string()),
        "unsafe_nested_parse",
    );
}

/// What the same rules must leave alone.
const ACCEPTED: &[&str] = &[
    "for ((i=0;i<1;i++)) do recv VALUE; done",
    "if [[ a == a ]] then recv VALUE; fi",
    "{ { recv VALUE; } }",
    "(recv VALUE) >/dev/null 2>&1",
    "while read x; do recv \"$x\"; done <<< VALUE",
    "while read x; do recv \"$x\"; done 2>/dev/null 3<<< VALUE",
    "for x do recv VALUE; done",
    "for x in a do VALUE; do recv \"$x\"; done",
    "time -p recv VALUE",
    "coproc N { recv VALUE; }",
    "f() { :; }; recv VALUE > VALUE",
    "f() { :; } > x\nrecv VALUE",
    "declare -i r; read s <<< VALUE",
    "recv *.txt {a,b} VALUE",
    "recv @(VALUE|x) *(VALUE)",
    "python3 script.py <(echo VALUE)",
    "python3 -u script.py < <(echo VALUE)",
    "\"$dir/recv\" VALUE",
    "{ recv VALUE; } 2>&1 | cat",
    "a=(VALUE); b=() c=VALUE",
    "command -v recv >/dev/null && recv VALUE",
];

#[test]
fn what_is_data_stays_accepted() {
    let scripts = ACCEPTED.iter().map(|script| script.to_string());
    check_all(scripts, "accepted");
}
