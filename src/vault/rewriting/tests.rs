//! Rewritten scripts as text, and what programs receive from real shells.

use std::io::Write;
use std::process::{Command, Stdio};

use super::*;

mod ways_out;

const NUMBER: &str = "424242424242";

/// Values that shells, patterns, formats and arithmetic would take for something else.
const HOSTILE: &[&str] = &[
    "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    "p@$$w0rd!'\"\\ #&;|<>*?`é€",
    "it's \"a\" $HOME `touch pwned` $(touch pwned);touch pwned #\\",
    "a[$(touch pwned)]",
    "two  spaces * ~ {a,b} !x",
    "-n %s %d \\n\\t \\",
    "line one\nline two\n\tEOF\nEOF",
    "&\\&/\\1",
    "=ls ~root (a)",
    NUMBER,
];

/// Scripts with `@` for the placeholder, and the words that `recv` gets, each ended by `|`.
const PLACES: &[(&str, &str)] = &[
    (
        "recv @ \"@\" '@' pre@post @@ x'@'@\"@\"",
        "@|@|@|pre@post|@@|x@@@|",
    ),
    (
        "recv $'x\\t@\\'' \"it's @\" 'a \"@\"' a\\\n@ {a,@} a#@",
        "x\t@'|it's @|a \"@\"|a@|a|@|a#@|",
    ),
    ("recv ok # @ it's\nrecv ok;# @\"\nrecv @", "ok|ok|@|"),
    (
        "v=@; v+='@'; recv \"$v\"; export V=\"@\"; recv \"$V\"",
        "@@|@|",
    ),
    ("a=(1 @ '@' # @)\n\"@\"); recv \"${a[@at]}\"", "1|@|@|@|"),
    (
        "typeset -A m; m[k]=@; recv \"${m[k]}\"; set -- @; recv \"$1\"",
        "@|@|",
    ),
    (
        "X=@ sh -c 'recv \"$X\"'; sh -c 'recv \"$1\"' _ @; env X=@ sh -c 'recv \"$X\"'",
        "@|@|@|",
    ),
    (
        "case @ in @) recv @;; *) recv no;; esac; case x in (y|'@') recv no;;\n*) recv \"@\";; esac",
        "@|@|",
    ),
    (
        "[[ @ == \"@\" && '@' = @ ]] && recv @; [ @ = '@' ] && recv y",
        "@|y|",
    ),
    (
        "if true; then recv @; fi; for x in @ b; do recv \"$x\"; done",
        "@|@|b|",
    ),
    (
        "{ recv @; }; (recv @); ! recv '@'; true && recv \"@\" || recv no",
        "@|@|@|@|",
    ),
    (
        "recv \"$(printf %s. \"@\" '@' @)\" \"`printf %s. @`\" \"$(printf %s. \"$(printf %s. '@')\")\"",
        "@.@.@.|@.|@..|",
    ),
    ("x=$(case a in a) printf %s. @;; esac); recv \"$x\"", "@.|"),
    (
        "cat <<EOF | recv -\na @ '@' \"@\" \\$x ${unset:-@} $(printf %s. '@')\nEOF",
        "a @ '@' \"@\" $x @ @.\n|",
    ),
    (
        "cat <<'EOF' | recv -\n@ $HOME `x` \\n \\\\ \"it's\" $$KARYI{A}\nKARYI_EOF\nEOF\nrecv '@'",
        "@ $HOME `x` \\n \\\\ \"it's\" $KARYI{A}\nKARYI_EOF\n|@|",
    ),
    (
        "recv - <<-'E F'\n\ta @\n\tE F\nrecv - <<A; recv - <<\"B\"\n1@\nA\n2@$x\nB",
        "a @\n|1@\n|2@$x\n|",
    ),
    (
        "recv - <<< @; recv - <<<\"a @\"'@'; recv - < <(printf %s @)",
        "@\n|a @@\n|@|",
    ),
    (
        "printf %s @ | cat | recv -; printf '%s;' \"@\" '@' | recv -",
        "@|@;@;|",
    ),
    (
        "recv \"${unset:-@}\" ${unset:-@} \"${unset:-\"@\"}\" \"${unset-a @}\"",
        "@|@|@|a @|",
    ),
    (
        "x=a@b; recv \"${x#a@}\" \"${x%@b}\" \"${x//@/y}\"; y=1-2; recv \"${y/-/@}\"",
        "b|a|ayb|1@2|",
    ),
    (
        "recv $((1+1))@ ${#HOME}@; f() { recv \"$1\" @ '@'; }; f @",
        "2@|5@|@|@|@|",
    ),
    (
        "trap 'recv \"@\" @ a@' EXIT; eval 'recv \"@\"'; eval 'for i in @; do recv \"$i\"; done'",
        "@|@|@|@|a@|",
    ),
    ("recv =@ ~@ x=@ a:~@", "=@|~@|x=@|a:~@|"),
    (
        "recv $$KARYI{A} \"$$KARYI<B>\" '$$KARYI{C}' \"`printf %s $$KARYI{D}`\"; eval 'recv $$KARYI{E}'",
        "$KARYI{A}|$KARYI<B>|$KARYI{C}|$KARYI{D}|$KARYI{E}|",
    ),
];

const RECEIVER: &str = "recv() { for a; do if [ \"$a\" = - ]; then cat; else printf %s \"$a\"; fi; printf '|'; done; }\n";
const PROGRAM: &str = "#!/bin/sh\nfor a; do printf '%s|' \"$a\"; done\n";

fn name() -> SecretName {
    SecretName::parse("K").unwrap()
}

fn rewritten(script: &str, value: &str) -> Result<String, ToolError> {
    let script = script
        .replace("@at", "\x01")
        .replace('@', "$KARYI{K}")
        .replace('\x01', "@");
    let value_of = |_: &SecretName| Some(SecretValue::new(value.to_owned()));
    rewrite(&script, &value_of).map(|rewritten| rewritten.text)
}

/// Runs a script in a shell whose variable holds the value; returns what it printed.
fn run(shell: &str, script: &str, value: &str, directory: &std::path::Path) -> String {
    let mut child = Command::new(shell)
        .args(if shell.ends_with("zsh") {
            &["-f", "-s"][..]
        } else {
            &["--norc", "-s"][..]
        })
        .current_dir(directory)
        .env("V", value)
        .env("HOME", "/home")
        .env(
            "PATH",
            format!("{}:/usr/local/bin:/usr/bin:/bin", directory.display()),
        )
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let options = if shell.ends_with("zsh") {
        "setopt ksharrays interactivecomments\n"
    } else {
        ""
    };
    let whole = format!("__karyi_K=$V; unset V; {options}{RECEIVER}{script}\n");
    child
        .stdin
        .take()
        .unwrap()
        .write_all(whole.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[track_caller]
fn check_in(shell: &str) {
    if !std::path::Path::new(shell).exists() {
        println!("skipped: no {shell}");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let receiver = directory.path().join("recv");
    std::fs::write(&receiver, PROGRAM).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&receiver, mode).unwrap();
    let mut problems = Vec::new();
    for (script, expected) in PLACES {
        for value in HOSTILE {
            let text = rewritten(script, value).unwrap();
            let found = run(shell, &text, value, directory.path());
            let expected = expected.replace('@', value);
            if found != expected || directory.path().join("pwned").exists() {
                problems.push(format!(
                    "{script:?} with {value:?}:\n{text}\n{found:?}\n{expected:?}"
                ));
            }
        }
    }
    let count = PLACES.len() * HOSTILE.len();
    let shown: Vec<&String> = problems.iter().take(8).collect();
    assert!(
        problems.is_empty(),
        "{} of {count}: {shown:#?}",
        problems.len()
    );
}

#[test]
fn every_value_arrives_in_bash() {
    check_in("/bin/bash");
}

#[test]
fn every_value_arrives_in_zsh() {
    check_in("/usr/bin/zsh");
}

#[test]
fn numbers_and_code_take_harmless_values_only() {
    let check = |script: &str, value: &str, expected: &str| {
        let found = rewritten(script, value);
        let found = found.err().map_or("", |error| error.code.as_str());
        assert_eq!(found, expected, "{script} with {value}");
    };
    let (token, awkward) = (HOSTILE[0], HOSTILE[1]);
    for script in [
        "echo $((@ + 1))",
        "a[@]=1",
        "let x=@",
        "declare -i x=@",
        "[[ @ -eq 1 ]]",
        "[ 1 -lt @ ]",
        "x=${y:@}",
        "unset @",
        "read @",
        "export @",
    ] {
        check(script, NUMBER, "");
        check(script, token, "unsafe_context");
        check(script, awkward, "unsafe_context");
    }
    for script in [
        "bash -c 'x @'",
        "python3 - <<'E'\nx = '@'\nE",
        "docker exec c sh -c \"@\"",
        "eval \"x @\"",
        "ssh h 'x @'",
    ] {
        check(script, token, "");
        check(script, awkward, "unsafe_nested_parse");
    }
    check("recv ${x/a/@}", token, "unsafe_context");
    check("recv '@", token, "unsafe_context");
}

#[test]
fn messages_lead_on() {
    let error = rewritten("x\nbash -c 'y @'", HOSTILE[1]).unwrap_err();
    assert_eq!(
        error.message,
        "line 2: K stands in code that `bash` reads, and its value has characters that could be code there"
    );
    assert_eq!(error.hint, "X=\"$KARYI{K}\" sh -c 'printf %s \"$X\"'");
    let error = rewritten("echo \\@", HOSTILE[0]).unwrap_err();
    assert_eq!(
        error.message,
        "line 1: a backslash stands before a placeholder"
    );
}

#[test]
fn references_are_quoted_for_their_place() {
    let check = |script: &str, expected: &str| {
        assert_eq!(rewritten(script, "v").unwrap(), expected, "{script}");
    };
    let value_of = |_: &SecretName| Some(SecretValue::new("v".into()));
    check(
        "r @ \"@\" '@' # @",
        "r \"${__karyi_K}\" \"${__karyi_K}\" ''\"${__karyi_K}\"'' # [KARYI:K]",
    );
    check(
        "cat <<'E'\n$x \\ @\nE",
        "cat <<KARYI_EOF\n\\$x \\\\ ${__karyi_K}\nKARYI_EOF",
    );
    let file = rewrite("r -i $KARYI{K|file}", &value_of).unwrap();
    assert_eq!(file.text, "r -i \"${__karyifile_K}\"");
    assert_eq!(file.secrets, BTreeSet::from([(name(), Holds::Path)]));
}
