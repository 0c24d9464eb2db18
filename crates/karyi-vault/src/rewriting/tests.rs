//! Rewritten scripts as text, and what programs receive from real shells.

use super::*;

mod linear;
mod places;
mod safe_commands;

/// A number, a token, and a password with every special sign of shells.
const NUMBER: &str = "424242424242";
const TOKEN: &str = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";
const AWKWARD: &str = "p@$$w0rd!'\"\\ #&;|<>*?`é€";

fn name() -> SecretName {
    SecretName::parse("K").unwrap()
}

fn rewritten(script: &str, value: &str) -> Result<String, ToolError> {
    let script = script.replace('@', "$KARYI{K}");
    let value_of = |_: &SecretName| Some(SecretValue::new(value.to_owned()));
    rewrite(&script, &value_of).map(|rewritten| rewritten.text)
}

/// Checks the reason for which a script with a value is refused.
#[track_caller]
fn check(script: &str, value: &str, expected: &str) {
    let found = rewritten(script, value);
    let found = found.err().map_or("", |error| error.code.as_str());
    assert_eq!(found, expected, "{script} with {value}");
}

#[test]
fn numbers_are_decimal() {
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
        check(script, TOKEN, "unsafe_context");
        check(script, AWKWARD, "unsafe_context");
    }
    for script in ["(( f[@] ))", "(( x = a[@] + 1 ))"] {
        check(script, NUMBER, "");
        check(script, AWKWARD, "unsafe_context");
    }
}

#[test]
fn code_takes_harmless_values_only() {
    for script in [
        "bash -c 'x @'",
        "python3 - <<'E'\nx = '@'\nE",
        "docker exec c sh -c \"@\"",
        "eval \"x @\"",
        "ssh h 'x @'",
        "bash -eo pipefail -c 'x @'",
        "bash -ceuo pipefail 'x @'",
        "sh -c -- 'x @'",
        "bash -c +e 'x @'",
        "zsh -f -c -- 'x @'",
        "bash --rcfile f -c 'x @'",
        "bash -s -c 'x @'",
        "bash -s a <<< @",
        "bash /dev/fd/3 3<<E\nx @\nE",
        "su -c'x @' root",
        "su root --command='x @'",
        "runuser - root --session-command='x @'",
        "awk -f - <<E\nx @\nE",
        "sed -f /dev/stdin f <<'E'\nx @\nE",
    ] {
        check(script, TOKEN, "");
        check(script, AWKWARD, "unsafe_nested_parse");
    }
    for (script, value, code) in [
        ("bash -c @", "a/b%c", ""),
        ("python -c @", "a/b", "unsafe_nested_parse"),
        ("python -c @", "a.b", ""),
        ("bash -c @", "é", "unsafe_nested_parse"),
        ("let x=@", "0123", "unsafe_context"),
        ("let x=@", "0", ""),
    ] {
        check(script, value, code);
    }
    for script in [
        "sh -c 'r \"$1\"' _ @",
        "bash -eo pipefail f @",
        "bash f -c @",
        "awk -f f @ <<< @",
        "bash -c x <<< @",
    ] {
        check(script, AWKWARD, "");
    }
    check("recv ${x/a/@}", TOKEN, "unsafe_context");
    check("recv '@", TOKEN, "unsafe_context");
}

#[test]
fn messages_lead_on() {
    let error = rewritten("x\nbash -c 'y @'", AWKWARD).unwrap_err();
    assert_eq!(
        error.message,
        "line 2: K stands in code that `bash` reads, and its value has characters that could be code there"
    );
    assert_eq!(error.hint, "X=\"$KARYI{K}\" sh -c 'printf %s \"$X\"'");
    let error = rewritten("echo \\@", TOKEN).unwrap_err();
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
    check(
        "cat <<''\n@\n\nr",
        "cat <<KARYI_EOF\n${__karyi_K}\nKARYI_EOF\nr",
    );
    let file = rewrite("r -i $KARYI{K|file}", &value_of).unwrap();
    assert_eq!(file.text, "r -i \"${__karyifile_K}\"");
    assert_eq!(
        file.secrets,
        BTreeSet::from([(name(), VariableContent::Path)])
    );
}
