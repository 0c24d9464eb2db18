//! Real shells receive exactly the values.

mod cheap;
mod closed;
mod coarse;
mod continuations;
mod daily;
mod nested;
mod numbers;
mod refused;
mod second;
mod told;
mod variables;
mod ways;
mod zsh;

use super::*;
use std::process::{Command, Output};

const HOSTILE: &[&str] = &[
    "plain-value",
    "$(touch pwned)",
    "`touch pwned`",
    "'; touch pwned; '",
    "\"; touch pwned; \"",
    "\"$(touch pwned)\"",
    "ab c  d ",
    "*** ?",
    "-n -e x",
    "--help",
    "-eq 1",
    "back\\slash\\",
    "\\\\\\\\",
    "new\nline",
    "lead\n\n",
    "\n\nlines",
    "$HOME ${PATH}",
    "{a,b}{1..3}",
    "~root",
    "!history!",
    "#comment",
    "tab\there\t",
    "é密码🔑",
    "a[$(touch pwned)]",
    "$KARYI{V0}",
    "EOF\ntouch pwned\n",
    "%s%n%d",
    "&& touch pwned",
    "\\&\\&",
    "]] || touch pwned",
    ";; esac",
    ">pwned",
    "| touch pwned",
    "\\'\\'",
    "'\"'\"'",
    "\r\nCRLF\r\n",
    "$'\\x41'",
    ">(touch pwned)",
    "((x))",
    "[a-z]",
];

fn secrets(values: &[&str]) -> Secrets {
    let secrets = Secrets::default();
    for (index, value) in values.iter().enumerate() {
        let name = SecretName::parse(&format!("V{index}")).unwrap();
        secrets
            .insert(name, SecretValue::new((*value).into()))
            .unwrap();
    }
    secrets
}

fn run(directory: &std::path::Path, resolved: &mut Resolved, shell: &str) -> Output {
    let path = directory.join("script");
    std::fs::write(&path, resolved.text.as_bytes()).unwrap();
    let mut command = Command::new(shell);
    command
        .arg(&path)
        .current_dir(directory)
        .env_remove("BASH_ENV");
    for binding in &resolved.bindings {
        command.env(&binding.variable, binding.value.expose());
    }
    command.output().unwrap()
}

const RECEIVER: &str = "recv() { printf '[%s]' \"$@\"; }\n";

/// The script with line continuations in place of its blanks.
fn continued(script: &str) -> String {
    script.replace(' ', "\\\n  ")
}

/// Runs a script in bash and zsh with every hostile value in place of `VALUE` and compares what
/// it prints.
fn check(script: &str, expected: &str) {
    if !script.contains(['\'', '"', '`', '#', '<', '\\', '\n']) && script.contains(' ') {
        check_in("bash", HOSTILE, &continued(script), expected);
    }
    check_in("bash", HOSTILE, script, expected);
    if has_zsh() {
        check_in("zsh", HOSTILE, script, expected);
    }
}

/// The same for what only bash knows.
fn check_bash(script: &str, expected: &str) {
    check_in("bash", HOSTILE, script, expected);
}

fn check_values(values: &[&str], script: &str, expected: &str) {
    check_in("bash", values, script, expected);
}

fn has_zsh() -> bool {
    static HAS_ZSH: std::sync::LazyLock<bool> = std::sync::LazyLock::new(|| {
        let found = Command::new("zsh").arg("--version").output().is_ok();
        if !found {
            println!("skipped: zsh is not installed");
        }
        found
    });
    *HAS_ZSH
}

fn check_in(shell: &str, values: &[&str], script: &str, expected: &str) {
    let temp = tempfile::tempdir().unwrap();
    let mut whole = String::from(RECEIVER);
    let mut wanted = String::new();
    for (index, value) in values.iter().enumerate() {
        whole.push_str(&script.replace("VALUE", &format!("$KARYI{{V{index}}}")));
        whole.push_str("\nprintf '\\1\\n'\n");
        wanted.push_str(&expected.replace("VALUE", value));
        wanted.push_str("\x01\n");
    }
    let mut resolved = substitute_script(&whole, &secrets(values))
        .unwrap_or_else(|error| panic!("{script}: {error}"));
    let output = run(temp.path(), &mut resolved, shell);
    let seen = String::from_utf8_lossy(&output.stdout);
    let pairs = seen.split('\x01').zip(wanted.split('\x01'));
    let first = pairs.clone().find(|(seen, wanted)| seen != wanted);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(first, None, "{shell}: {script}\n{errors}");
    assert_eq!(seen, wanted, "{shell}: {script}\n{errors}");
    assert!(!temp.path().join("pwned").exists(), "{shell}: {script}");
}

#[test]
fn words_and_quotes() {
    check("recv VALUE", "[VALUE]");
    check("recv pre_VALUE/post", "[pre_VALUE/post]");
    check("recv VALUEVALUE x VALUE", "[VALUEVALUE][x][VALUE]");
    check("recv \"VALUE\" \"a VALUE b\"", "[VALUE][a VALUE b]");
    check("recv 'a VALUE b' 'x'VALUE'y'", "[a VALUE b][xVALUEy]");
    check("recv $'x\\t\\'VALUE\\''", "[x\t'VALUE']");
    check(
        "recv \"it's VALUE\" 'say \"VALUE\"' \"\\\"VALUE\\\"\"",
        "[it's VALUE][say \"VALUE\"][\"VALUE\"]",
    );
    check("x='it'\\''s VALUE'; recv \"$x\"", "[it's VALUE]");
    check("recv a\\\n VALUE", "[a][VALUE]");
    check(
        "recv =VALUE ~VALUE a=VALUE a~VALUE \\=VALUE; x=~VALUE; y==VALUE; recv \"$x\" \"$y\"",
        "[=VALUE][~VALUE][a=VALUE][a~VALUE][=VALUE][~VALUE][=VALUE]",
    );
    check(
        "a=(=VALUE ~VALUE); recv \"${a[@]}\"; for i in =VALUE; do recv \"$i\"; done; cat <<< =VALUE",
        "[=VALUE][~VALUE][=VALUE]=VALUE\n",
    );
    check("recv {a,VALUE} a#VALUE", "[a][VALUE][a#VALUE]");
    check("recv $((1+1))VALUE \"$((2))VALUE\"", "[2VALUE][2VALUE]");
    check_bash("recv \"$#VALUE\"", "[0VALUE]");
    check_bash("recv $\"VALUE\"", "[VALUE]");
    check("recv ok # VALUE it's", "[ok]");
    check("recv ok;# VALUE\nrecv VALUE", "[ok][VALUE]");
}

#[test]
fn assignments_and_arrays() {
    check("x=VALUE; recv \"$x\"", "[VALUE]");
    check("x=a'VALUE'\"VALUE\" y=2; recv \"$x\"", "[aVALUEVALUE]");
    check(
        "a=(1 VALUE \"VALUE\"); recv \"${a[@]}\"",
        "[1][VALUE][VALUE]",
    );
    check(
        "a=([1]=VALUE); a[2]=VALUE; a+=(VALUE); recv \"${a[@]}\"",
        "[VALUE][VALUE][VALUE]",
    );
    check("declare -A m; m[k]=VALUE; recv \"${m[k]}\"", "[VALUE]");
    check(
        "export X=VALUE; export \"Y=VALUE\"; export Z='VALUE'; recv \"$X\" \"$Y\" \"$Z\"",
        "[VALUE][VALUE][VALUE]",
    );
    check("X=VALUE bash -c 'printf %s. \"$X\"'", "VALUE.");
    check("bash -c 'printf %s. \"$1\"' _ VALUE", "VALUE.");
}

#[test]
fn tests_and_compound_commands() {
    check("case VALUE in VALUE) recv yes;; *) recv no;; esac", "[yes]");
    check("case x in (x) recv VALUE;; esac", "[VALUE]");
    check(
        "case VALUE\nin\n'VALUE' | b)\nrecv yes VALUE\n;;\nesac",
        "[yes][VALUE]",
    );
    check(
        "[[ VALUE == VALUE && \"VALUE\" = 'VALUE' ]] && recv yes",
        "[yes]",
    );
    check(
        "[[ -n VALUE && ( a == a || VALUE =~ x ) ]] && recv VALUE",
        "[VALUE]",
    );
    check("[ VALUE = VALUE ] && recv yes", "[yes]");
    check("if true; then recv VALUE; else recv no; fi", "[VALUE]");
    check_bash("[[ x =~ (;|#) ]] || recv VALUE", "[VALUE]");
    check("for x in VALUE b; do recv \"$x\"; done", "[VALUE][b]");
    check("for ((i=0; i<1; i++)); do recv VALUE; done", "[VALUE]");
    check(
        "(recv VALUE); { recv VALUE; }; ! recv VALUE",
        "[VALUE][VALUE][VALUE]",
    );
    check("true && recv VALUE || recv no", "[VALUE]");
    check(
        "{ { recv VALUE; }; }\n{ recv VALUE; } | cat",
        "[VALUE][VALUE]",
    );
    check("cat <<A\nVALUE\nA\nf() { :; }; f VALUE", "VALUE\n");
    check(
        "case VALUE in *) f() { recv \"$1\"; }; f VALUE;; esac",
        "[VALUE]",
    );
    check("[[ VALUE-eq == VALUE-eq ]] && recv yes", "[yes]");
    check("f() { recv \"$1\"; }; f VALUE", "[VALUE]");
    check(
        "function f {\n recv \"$1\"\n}\nf VALUE; ((1)) && recv VALUE",
        "[VALUE][VALUE]",
    );
    check(
        "while read -r l; do :; done < <(echo VALUE); recv VALUE",
        "[VALUE]",
    );
}

#[test]
fn substitutions_nest() {
    check(
        "recv \"$(printf %s. \"VALUE\")\" \"$(printf %s. 'VALUE')\" \"$(printf %s. VALUE)\"",
        "[VALUE.][VALUE.][VALUE.]",
    );
    check(
        "x=$(case a in a) printf %s. VALUE;; esac); recv \"$x\"",
        "[VALUE.]",
    );
    check("x=$(cat <<EOF\nVALUE.\nEOF\n); recv \"$x\"", "[VALUE.]");
    check(
        "recv \"`printf %s. VALUE`\"; x=`printf %s. \"VALUE\"`; recv \"$x\"",
        "[VALUE.][VALUE.]",
    );
    check("x=`printf %s. 'VALUE'`; recv \"$x\"", "[VALUE.]");
    check("printf '%s,%s;' \"VALUE\" VALUE", "VALUE,VALUE;");
    check(
        "printf -v x '%s,%s;' VALUE \"VALUE\"; recv \"$x\"",
        "[VALUE,VALUE;]",
    );
    check("cat <(printf %s VALUE)", "VALUE");
    check("recv \"$(recv \"$(recv \"VALUE\")\")\"", "[[[VALUE]]]");
    check("recv \"$( (recv VALUE) )\"", "[[VALUE]]");
    check("printf %s \"VALUE\" | cat | cat", "VALUE");
}

#[test]
fn here_documents() {
    check("cat <<EOF\na VALUE b\nEOF", "a VALUE b\n");
    check(
        "cat <<-EOF\n\ta 'VALUE' \"VALUE\"\n\tEOF",
        "a 'VALUE' \"VALUE\"\n",
    );
    check(
        "{ cat <<EOF; } | cat\nkey='VALUE'\nEOF\n(cat <<EOF); recv VALUE\n\"VALUE\"\nEOF",
        "key='VALUE'\n\"VALUE\"\n[VALUE]",
    );
    check("cat <<A; cat <<B\n1VALUE\nA\n2VALUE\nB", "1VALUE\n2VALUE\n");
    check(
        "cat <<EOF | cat\n$(printf %s 'VALUE.') `printf %s VALUE.`\nEOF",
        "VALUE. VALUE.\n",
    );
    check(
        "cat <<EOF\n\\$x \\\\ VALUE ${unset:-VALUE}\nEOF",
        "$x \\ VALUE VALUE\n",
    );
    check("cat << 'X' >/dev/null\nit's \"\nX\nrecv VALUE", "[VALUE]");
    check("cat <<\"X Y\"\nq\nX Y\nrecv VALUE", "q\n[VALUE]");
    check("cat <<EOF\na\\\nEOF\nVALUE\nEOF", "aEOF\nVALUE\n");
    check("cat <<< VALUE; cat <<<\"a VALUE\"", "VALUE\na VALUE\n");
}

#[test]
fn expansions() {
    check(
        "recv \"${unset:-VALUE}\" ${unset:-VALUE} \"${unset-a VALUE}\"",
        "[VALUE][VALUE][a VALUE]",
    );
    check(
        "x=aVALUEb; recv \"${x#aVALUE}\" \"${x%VALUEb}\" \"${x#a\"VALUE\"}\"",
        "[b][a][b]",
    );
    check(
        "x=1-2; recv \"${x/-/VALUE}\" \"${#x}VALUE\" ${x:0:1}VALUE",
        "[1VALUE2][3VALUE][1VALUE]",
    );
    check(
        "recv \"a${unset:+x}VALUE\" \"${unset:-$(printf %s. VALUE)}\"",
        "[aVALUE][VALUE.]",
    );
}

#[test]
fn second_parses_take_only_plain_values() {
    let plain = &["plain-value", "a/b:c@d%e+f,g.h_I"];
    check_values(plain, "bash -c 'printf %s. VALUE'", "VALUE.");
    check_values(plain, "eval \"recv VALUE\"", "[VALUE]");
    check_values(plain, "bash <<EOF\nprintf %s. VALUE\nEOF", "VALUE.");
    check_values(plain, "printf 'printf %%s. %s' VALUE | bash", "VALUE.");
    check_values(&["word_1"], "echo x | sed 's/x/VALUE/'", "VALUE\n");
    check_values(
        &["424242424242"],
        "recv $(( VALUE + 1 )) $((VALUE))",
        "[424242424243][424242424242]",
    );
}

/// Returns what comes of a script, by its code.
fn outcome(value: &str, script: &str) -> &'static str {
    let script = script.replace("VALUE", "$KARYI{V0}");
    match substitute_script(&script, &secrets(&[value])) {
        Ok(resolved) => match resolved.bindings.first().and_then(|first| first.not_in_zsh) {
            Some(_) => "not in zsh",
            None if resolved.bindings.iter().any(|binding| binding.needs_zsh) => "in zsh",
            None => "accepted",
        },
        Err(error) => error.code.as_str(),
    }
}

fn check_refused(value: &str, script: &str, expected: &str) {
    assert_eq!(outcome(value, script), expected, "{script}");
}

/// Compares what comes of many scripts.
#[track_caller]
fn check_outcomes(value: &str, scripts: &[&str], expected: &str) {
    let outcomes = scripts
        .iter()
        .map(|script| (outcome(value, script), *script));
    let others: Vec<_> = outcomes.filter(|(found, _)| *found != expected).collect();
    assert_eq!(others, [], "not {expected}");
}

#[test]
fn no_value_becomes_the_elements_of_an_array() {
    let scripts = [
        "declare -a x=VALUE",
        "declare x=VALUE",
        "readonly -a x=VALUE",
        "export -a x=VALUE",
        "typeset -A x=\"VALUE\"",
        "local x='VALUE'",
        "declare -a 'x=(VALUE)'",
    ];
    for script in scripts {
        check_refused("($(touch pwned) a)", script, "unsafe_context");
    }
    check_refused(
        "$(touch pwned)",
        "declare -a 'x=(VALUE)'",
        "unsafe_nested_parse",
    );
    check_values(&["a(b)", "$(x)"], "declare x=VALUE; recv \"$x\"", "[VALUE]");
}

const FREE_PLACES: &[&str] = &[
    "$d/tool VALUE",
    "env A=$x curl 'VALUE'",
    "timeout $t curl 'VALUE'",
    "curl -H \"Authorization: Bearer VALUE\" https://x.example",
    "PGPASSWORD=VALUE psql -c 'select 1'",
    "sshpass -p VALUE ssh host true",
    "python3 script.py --token VALUE",
    "bash script.sh VALUE",
    "echo eval VALUE",
    "echo VALUE > VALUE",
    "git commit -m VALUE",
    "docker run -e X=VALUE image",
    "jq --arg k VALUE '.k = $k'",
    "read x <<< VALUE",
    "read x < <(echo VALUE)",
    "[[ $x == VALUE ]]",
    "echo VALUE | sudo -S true",
    "psql \"postgres://u:VALUE@h\"",
    "bash -s -- VALUE < x",
    "docker login -u u --password-stdin <<< VALUE",
    "export A=1 B=VALUE",
    "printf %s VALUE | jq .",
    "perl script.pl VALUE",
    "for x in a; do curl VALUE; done",
    "while :; do curl VALUE; break; done",
    "cat > f <<EOF\neval VALUE\nEOF",
    "x=$(curl VALUE | bash -c 'cat')",
    "\"$HOME/bin/tool\" VALUE",
    "~/bin/tool VALUE",
    "\"${DIR}/tool\" VALUE | cat",
    "sudo -u \"$USER\" curl VALUE",
    "echo VALUE | sudo tee \"$file\"",
    "echo VALUE | docker login -u \"$USER\" --password-stdin",
    "docker run --rm -e X=VALUE \"$image\" sh",
    "docker exec -it \"$container\" tool VALUE",
    "echo VALUE | kubectl exec -i -n \"$ns\" \"$pod\" -- tee f",
    "kubectl create secret generic s --from-literal=\"a=VALUE\"",
    "find \"$dir\" -name \"$name\" -exec curl VALUE \\;",
    "timeout \"$limit\" curl VALUE",
    "env A=\"$a\" curl VALUE \"$url\"",
    "nice -n \"$level\" curl VALUE",
    "xargs -n 1 curl -H VALUE",
    "grep bash VALUE",
    "python3 -m pip install --index-url https://u:VALUE@h/ x",
    "python3 -W ignore script.py -m VALUE",
    "echo VALUE | python3 -m json.tool",
    "jq --args -n '$ARGS' VALUE",
    "{ cat; } always { echo VALUE; }",
    "f() { echo \"$1\"; }; f VALUE \"$x\"",
    "docker run -d --rm --name mysql -e MYSQL_ROOT_PASSWORD=VALUE mysql",
    "docker exec -i node tee f <<< VALUE",
    "bash -c 'cat >f' <<< VALUE",
    "bash -c 'read -r x; curl -d \"$x\" h' <<< VALUE",
    "python3 -u script.py <<< VALUE",
    "mysql --defaults-extra-file=<(echo VALUE) db",
    "awk '{print}' <<< VALUE",
    "a=(one two VALUE); m=(*.e VALUE)",
    "declare -a x=(VALUE)",
    "[[ a == (#i)VALUE ]]",
    "export X=VALUE",
    "printf \"${red}%s\" VALUE",
    "printf 'a=%s;\\n' VALUE \"$x\" VALUE %d VALUE",
    "echo $a [VALUE] \"$b: [VALUE]\"",
    "find . -name VALUE",
    "find . -type f -exec grep -l VALUE {} +",
    "docker build . --build-arg T=VALUE",
    "f() { echo x; }; echo VALUE | f",
    "curl -sS \\\n  -H 'Authorization: Bearer VALUE' \\\n  https://x.example",
    "docker run -e TOKEN=VALUE image",
    "docker run --rm \\\n  --name node \\\n  -e TOKEN=VALUE image",
    "git push https://x:VALUE@host/r",
    "mysql -pVALUE db",
    "printf '%s' VALUE | docker login -u x --password-stdin",
    "kubectl create secret generic s --from-literal=a=VALUE",
    "env A=VALUE node app.js",
    "env A=1 curl -sS -H VALUE",
    "export A=VALUE; ./run.sh \"$A\"",
    "redis-cli -a VALUE ping",
    "echo VALUE | sudo -u root tee -a f",
    "echo VALUE | sudo chroot /mnt tee f",
    "echo VALUE | perl -MJSON -lne 'print'",
    "echo VALUE | python3 -u -c 'import sys'",
    "echo VALUE | node -e 'x'",
    "echo VALUE | sudo grep -i x",
    "sudo -iu app tool VALUE",
];

#[test]
fn other_commands_get_any_value() {
    check_outcomes("a[$(touch pwned)] '\"", FREE_PLACES, "accepted");
}

#[test]
fn escaped_placeholders_arrive_literally() {
    let check = |script: &str, expected: &str| {
        let temp = tempfile::tempdir().unwrap();
        let whole = format!("{RECEIVER}{script}");
        let mut resolved = substitute_script(&whole, &Secrets::default()).unwrap();
        let output = run(temp.path(), &mut resolved, "bash");
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            expected,
            "{script}: {}",
            *resolved.text
        );
    };
    check(
        "recv $$KARYI{X} $$KARYI<X> a$$KARYI{a,b} $$KARYI{",
        "[$KARYI{X}][$KARYI<X>][a$KARYI{a,b}][$KARYI{]",
    );
    check(
        "recv \"$$KARYI{X}\" '$$KARYI{X}' $'$$KARYI{X}' \"$$KARYI<X>\"",
        "[$KARYI{X}][$KARYI{X}][$KARYI{X}][$KARYI<X>]",
    );
    check(
        "cat <<EOF\n$$KARYI{X}\nEOF\ncat <<'EOF'\n$$KARYI{X}\nEOF",
        "$KARYI{X}\n$KARYI{X}\n",
    );
    check(
        "recv `printf %s $$KARYI{X}` \"`printf %s \"$$KARYI{X}\"`\" `printf %s '$$KARYI{X}'`",
        "[$KARYI{X}][$KARYI{X}][$KARYI{X}]",
    );
    check("recv ok # $$KARYI{X}", "[ok]");
    check(
        "recv $$$KARYI{X} \"$$$KARYI{X}\"",
        "[$$KARYI{X}][$$KARYI{X}]",
    );
}

#[test]
fn a_value_never_joins_the_script() {
    let secrets = secrets(&["very-secret", "other-secret"]);
    let mut resolved = substitute_script(
        "a $KARYI{V0} '$KARYI<V1>' \"$KARYI{V0}\" # $KARYI{V1}",
        &secrets,
    )
    .unwrap();
    let variables: Vec<String> = resolved
        .bindings
        .iter()
        .map(|binding| binding.variable.clone())
        .collect();
    let expected = format!(
        "a \"${{{0}}}\" ''\"${{{1}}}\"'' \"${{{0}}}\" # [KARYI:V1]",
        variables[0], variables[1]
    );
    assert_eq!(*resolved.text, expected);
    assert!(
        variables
            .iter()
            .all(|name| name.len() == 40 && name.starts_with("__karyi_"))
    );
    let values: Vec<String> = resolved
        .bindings
        .drain(..)
        .map(|binding| binding.value.expose().to_owned())
        .collect();
    assert_eq!(values, ["very-secret", "other-secret"]);
    let text = "no placeholder 'unbalanced $((";
    assert_eq!(*substitute_script(text, &secrets).unwrap().text, text);
}

#[test]
fn missing_names_come_before_contexts() {
    let error = substitute_script(
        "echo '$KARYI{NO} $KARYI{V0} # $KARYI{NEITHER}",
        &secrets(&["value"]),
    )
    .err()
    .unwrap();
    assert_eq!(
        (error.code, error.message.as_str()),
        (
            ErrorCode::UndefinedVariable,
            "there is no value for NO, NEITHER"
        )
    );
    let error = substitute_script("echo $KARYI{a b}", &Secrets::default())
        .err()
        .unwrap();
    assert_eq!(error.code, ErrorCode::BadPlaceholder);
}
