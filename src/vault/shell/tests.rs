//! Real shells receive exactly the values.

mod nested;
mod numbers;
mod second;
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

const UNSAFE_CONTEXTS: &[&str] = &[
    "cat <<'EOF'\nVALUE\nEOF",
    "cat <<\\EOF\nVALUE\nEOF",
    "f() { recv VALUE; }",
    "function f { recv VALUE; }",
    "f() (recv VALUE)",
    "f() if true; then recv VALUE; fi",
    "trap 'recv VALUE' EXIT",
    "trap \"recv $(echo VALUE)\" EXIT",
    "alias x='recv VALUE'",
    "echo $((VALUE))",
    "echo \"$(( 1 + VALUE ))\"",
    "((VALUE))",
    "let x=VALUE",
    "[[ VALUE -eq 1 ]]",
    "[[ 1 -lt $(echo VALUE) ]]",
    "a[VALUE]=1",
    "echo ${a[VALUE]}",
    "echo ${x:VALUE}",
    "echo $[VALUE]",
    "declare -i n=VALUE",
    "declare -i n; n=VALUE",
    "RANDOM=VALUE",
    "PS1=VALUE",
    "export PS4=$(echo VALUE)",
    "COLUMNS=VALUE",
    "a=([VALUE]=1)",
    "unset VALUE",
    "read VALUE",
    "printf -v VALUE x",
    "BASH_ALIASES[q]=VALUE",
    "printf -v PS4 %s VALUE",
    "read -r PS4 <<< VALUE",
    "echo VALUE | read -r PS4",
    "for PS4 in VALUE; do :; done",
    ": ${PS4:=VALUE}",
    "declare -n r; for r in VALUE; do :; done",
    "declare -n r; read r <<< VALUE",
    "declare -n r; printf -vr %s VALUE",
    "declare -n r; : ${r:=VALUE}",
    "export VALUE",
    "declare \"VALUE=1\"",
    "[[ -v VALUE ]]",
    "test -v VALUE",
    "VALUE=1",
    "VALUE() { :; }",
    "for VALUE in a; do :; done",
    "echo ${VALUE}",
    "echo ${!VALUE}",
    "for ((i=VALUE;;)); do :; done",
    "[ VALUE -gt 1 ]",
    "echo \\VALUE",
    "echo \"\\VALUE\"",
    "echo $'\\VALUE'",
    "cat <<EOF\n\\VALUE\nEOF",
    "cat <<VALUE\nx\nVALUE",
    "echo 'VALUE",
    "echo \"VALUE",
    "echo $(VALUE",
    "echo `VALUE",
    "echo `echo \\`echo VALUE\\``",
    "echo \"`echo \\\"VALUE\\\"`\"",
    "echo ${x:-VALUE",
    "echo ${x:-'VALUE'}",
    "echo \"${x#'VALUE'}\"",
    "echo \"`echo '$(' VALUE`\"",
    "local -n r=VALUE",
    "g() { cat <<EOF; }\nVALUE\nEOF",
    "x=$(cat <<EOF)\nVALUE\nEOF",
    "select VALUE in a; do :; done",
    "echo ${x:$(echo VALUE)}",
    "[[ a == b # VALUE\n]]",
    "ls (#i)VALUE\n)",
    "echo $a[VALUE]",
    "echo \"$a[VALUE]\" x",
    "echo $#a[1][VALUE]",
    "echo \"$@[VALUE]\"",
    "[[ -t VALUE ]]",
    "[ -t VALUE ]",
    "test -R VALUE",
    "echo *([VALUE])",
    "sysseek VALUE",
    "print -z VALUE",
];

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

/// The script with line continuations in place of its blanks.
fn continued(script: &str) -> String {
    script.replace(' ', "\\\n  ")
}

#[test]
fn line_continuations_are_nothing() {
    let accepted = |script: &String| {
        let script = script.replace("VALUE", "$KARYI{V0}");
        substitute_script(&script, &secrets(&["a[$(touch pwned)]"])).is_ok()
    };
    let rows = SECOND_PARSES.iter().chain(UNSAFE_CONTEXTS);
    let found: Vec<String> = rows
        // There it ends a comment.
        .filter(|script| !script.contains("# "))
        .map(|script| continued(script))
        .filter(accepted)
        .collect();
    assert_eq!(found, [""; 0]);
    let refused: Vec<String> = FREE_PLACES
        .iter()
        .map(|script| continued(script))
        .filter(|script| !accepted(script))
        .collect();
    assert_eq!(refused, [""; 0]);
}

#[test]
fn line_continuations_hide_nothing_inside_of_words() {
    let secrets = secrets(&["a[$(touch pwned)]"]);
    let mut found = Vec::new();
    let step = match std::env::var_os("KARYI_FULL") {
        Some(_) => 1,
        // The small count takes every row, at other offsets for each.
        None => 4,
    };
    for (row, script) in SECOND_PARSES.iter().chain(UNSAFE_CONTEXTS).enumerate() {
        for at in (row % step..script.len()).step_by(step) {
            let (before, after) = script.split_at(at);
            let is_literal = before.matches('\'').count() % 2 == 1
                || before.ends_with('\\')
                || [" #", "(#"].iter().any(|comment| before.contains(comment))
                || ["VALU", "VAL", "VA", "V"]
                    .iter()
                    .any(|part| before.ends_with(part));
            if is_literal {
                continue;
            }
            let whole = format!("{before}\\\n{after}");
            let text = whole.replace("VALUE", "$KARYI{V0}");
            if substitute_script(&text, &secrets).is_ok() {
                found.push(whole);
            }
        }
    }
    assert_eq!(found, [""; 0]);
}

#[test]
fn line_continuations_end_no_here_document() {
    for script in [
        "cat <<EOF\na\nEO\\\nF\nbash -c 'VALUE'\nEOF",
        "cat <<E\\\nOF\na\nEOF\nbash -c 'VALUE'\nEOF",
        "cat <<\\\n-EOF\na\n\tEOF\nbash -c 'VALUE'\nEOF",
        "f(\\\n) { echo VALUE; }",
        "f ( \\\n ) { echo VALUE; }",
        "a\\\n[VALUE]=1",
        "[\\\n[ VALUE -eq 1 ]]",
        "{ sh; } 0\\\n<<< VALUE",
        "{ sh; } al\\\nways { :; } <<< VALUE",
        "exec 3>\\\n&1 4> >(sh); echo VALUE >&4",
    ] {
        let text = script.replace("VALUE", "$KARYI{V0}");
        let result = substitute_script(&text, &secrets(&["a[$(touch pwned)]"]));
        assert!(result.is_err(), "{script}");
    }
    check("cat <<E\\\nOF\na VALUE\nEOF", "a VALUE\n");
    check("cat <<- \\\n EOF \\\n | cat\n\ta VALUE\n\tEOF", "a VALUE\n");
    check(
        "recv \"a\\\n\"VALUE \\\n \\\n 'b'; x=\\\nVALUE; recv \"$x\"",
        "[aVALUE][b][VALUE]",
    );
    check("cat \\\n  <<< \\\n  VALUE", "VALUE\n");
}

#[test]
fn unsafe_contexts_are_refused() {
    check_outcomes("a[$(touch pwned)]", UNSAFE_CONTEXTS, "unsafe_context");
}

const SECOND_PARSES: &[&str] = &[
    "bash -c 'recv \"VALUE\"'",
    "sh -c \"recv VALUE\"",
    "zsh -lc VALUE",
    "/bin/bash -euo pipefail -c \"VALUE\"",
    "eval \"recv VALUE\"",
    "eval recv VALUE",
    "eval \"$(echo VALUE)\"",
    "ssh host \"recv VALUE\"",
    "su - u -c \"VALUE\"",
    "sudo -u u bash -c \"VALUE\"",
    "find . -exec sh -c 'VALUE' \\;",
    "xargs sh -c 'VALUE'",
    "python3 -c \"print('VALUE')\"",
    "perl -e 'print \"VALUE\"'",
    "node -e VALUE",
    "awk '{print \"VALUE\"}'",
    "sed s/a/VALUE/",
    "jq '.a = \"VALUE\"'",
    "psql -c \"select 'VALUE'\"",
    "docker exec c sh -c 'VALUE'",
    "env A=1 bash -c VALUE",
    "\"$SHELL\" -c VALUE",
    "bash <<EOF\nVALUE\nEOF",
    "cat <<EOF | bash\nVALUE\nEOF",
    "bash <<< \"VALUE\"",
    "<<<VALUE bash",
    "echo VALUE | sh",
    "{ echo VALUE; } | sudo sh",
    "for i in 1; do echo VALUE; done | bash",
    "echo VALUE |\nbash",
    "bash <(echo VALUE)",
    "source <(echo VALUE)",
    ". <(echo VALUE)",
    "python3 - <<EOF\nprint('VALUE')\nEOF",
    "echo VALUE | python3",
    "timeout 5 bash -c VALUE",
    "command eval VALUE",
    "\\eval VALUE",
    "'bash' -c VALUE",
    "ba\"sh\" -c VALUE",
    "if eval VALUE; then :; fi",
    "x=1 eval VALUE",
    "! eval VALUE",
    "true && eval VALUE",
    "(eval VALUE)",
    "$(eval VALUE)",
    "echo VALUE | psql",
    "2>/dev/null eval VALUE",
    "watch VALUE",
    "ssh host <<EOF\nVALUE\nEOF",
    "case x in x) eval VALUE;; esac",
    "echo | eval VALUE",
    "time eval VALUE",
    "[[ x =~ VALUE ]]",
    "$run VALUE",
    "echo VALUE | { cat; sh; }",
    "echo VALUE | for x in 1; do sh; done",
    "case x in x) sh;; esac <<< VALUE",
    "exec 3> >(sh); echo VALUE >&3",
    "rsync -e VALUE a b",
    "git -c core.pager=VALUE log",
    // Programs whose names are not all written out.
    "/bin/ba$x -c 'echo VALUE'",
    "/bin/\"b$x\" -c 'echo VALUE'",
    "$d/sh -c 'echo VALUE'",
    "\"$@/tool\" VALUE",
    "\"${a[@]}/tool\" VALUE",
    "\"`echo bash`\" -c 'echo VALUE'",
    "\"ba`echo sh`\" -c 'echo VALUE'",
    "env b?sh -c 'echo VALUE'",
    "sudo b?sh -c 'echo VALUE'",
    "sudo -u u -n \"$p\" -c 'echo VALUE'",
    "nice -n 5 \"$p\" -c 'echo VALUE'",
    "env A=1 \"$p\" -c 'echo VALUE'",
    "timeout 5 ba$x -c 'echo VALUE'",
    "find . -exec \"$p\" -c 'echo VALUE' \\;",
    "docker run image \"$p\" -c 'echo VALUE'",
    "docker exec -it \"$c\" \"$p\" -c 'echo VALUE'",
    "docker run --entrypoint=/bin/sh image -c 'echo VALUE'",
    "echo VALUE | xargs \"$p\" -c",
    "echo VALUE | env \"$p\"",
    "echo VALUE | sudo b?sh",
    "nice env bash -c 'echo VALUE'",
    "sudo env python3 -c 'VALUE'",
    "sudo entr bash -c 'echo VALUE'",
    "echo VALUE | nice env bash",
    "retry() { \"$@\"; }; retry bash -c 'echo VALUE'",
    "retry() { \"$@\"; }; retry 3 ssh host 'echo VALUE'",
    "function retry { \"$@\"; }; echo VALUE | retry sh",
    "unknown-wrapper --option bash -lc 'echo VALUE'",
    "unknown-wrapper python3 -c 'VALUE'",
    "/////////////////////////////////////////////////////////////////////////////////////////////////////////////////////////////////bin/bash -c 'echo VALUE'",
    "perl5.36 -e 'VALUE'",
    "php8.2 -r 'VALUE'",
    "lua5.4 -e 'VALUE'",
    "BASH -c 'echo VALUE'",
    "bash -$o 'echo VALUE'",
    "python3 $o 'VALUE'",
    "python3 -$o 'VALUE'",
    "su $u 'echo VALUE'",
    "git $o 'VALUE'",
    // zsh
    "/bin/python<2-3> -c 'VALUE'",
    "echo VALUE | { cat; } always { sh; }",
    "{ sh; } always { sh; } <<< VALUE",
    "{ cat; } always { eval 'echo VALUE'; }",
    // Modules of python and options of others that take code.
    "python3 -m timeit 'VALUE'",
    "python3 -Im code 'VALUE'",
    "python3 -mcProfile -c 'VALUE'",
    "python3 -W ignore -m \"$m\" 'VALUE'",
    "echo 'VALUE' | python3 -m asyncio",
    "perl -F'VALUE' -ane x",
    "php -d 'VALUE' x.php",
    "node --import 'data:text/javascript,VALUE' x",
    "jq --args 'VALUE'",
    "jq -n --args 'VALUE'",
    "gawk --args 'VALUE'",
    "git submodule foreach 'echo VALUE'",
    "git bisect run sh -c 'echo VALUE'",
    "socat - 'SYSTEM:echo VALUE'",
    // Operands of wrappers that are called like a program.
    "env NODE_BIN=/usr/bin/node bash -c 'echo VALUE'",
    "timeout 5 env HOME=/home/node bash -c 'echo VALUE'",
    "find /usr/bin/node -maxdepth 0 -exec bash -c 'echo VALUE' \\;",
    "find . -exec grep -q x {} \\; -exec bash -c 'echo VALUE' \\;",
    "docker run --rm node sh -c 'echo VALUE'",
    "docker exec node bash -c 'echo VALUE'",
    "docker run --rm -v \"$PWD:/node\" -w /node img sh -c 'echo VALUE'",
    "docker run --unknown node sh -c 'echo VALUE'",
    "docker run node -e 'VALUE'",
    "kubectl exec mysql -- bash -c 'echo VALUE'",
    "gosu node bash -c 'echo VALUE'",
    "gosu nice bash -c 'echo VALUE'",
    "sudo -u node bash -c 'echo VALUE'",
    "docker exec -i node bash <<EOF\nVALUE\nEOF",
    "env $SHELL -c 'echo VALUE'",
    "timeout 5 \"$SHELL\" -c 'echo VALUE'",
    "xargs -a <(echo VALUE) -I{} sh -c '{}'",
    // What reads standard input.
    "bash -c 'bash' <<EOF\nVALUE\nEOF",
    "bash -c 'cat | bash' <<< VALUE",
    "bash -c \"cat; $x\" <<< VALUE",
    "echo VALUE | { cat | sh; }",
    "echo VALUE | tee >(cat | sh)",
    "{ echo x; cat <<EOF; } | bash\nVALUE\nEOF",
    "(cat <<EOF) | bash\nVALUE\nEOF",
    "cat <<EOF > >(bash)\nVALUE\nEOF",
    "f() { bash; }; echo VALUE | f",
    "f() { cat | sh; }; f <<< VALUE",
    "su -s /bin/bash root -c 'echo VALUE'",
    "su --shell=/bin/bash root -c 'echo VALUE'",
    "su -s /bin/bash root <<< VALUE",
    "timeout 5 env SHELL=/bin/bash sh -c 'echo VALUE'",
    "strace -o /tmp/node -f bash -c 'echo VALUE'",
    "flock -w 5 /tmp/node -c 'echo VALUE'",
    "env -u node bash -c 'echo VALUE'",
    "(cat | sh) <<< VALUE",
    "echo VALUE | while read -r l; do echo \"$l\" | sh; done",
    "docker exec -i db sh -c 'psql -U x' <<< VALUE",
    "su postgres -c psql <<< VALUE",
    "su postgres -cpsql <<< VALUE",
    "su postgres --command=psql <<< VALUE",
    "$'\\x65val' VALUE",
    "python3 - arg <<EOF\nVALUE\nEOF",
    "python3 -X utf8 <<< VALUE",
    "node - arg <<< VALUE",
    "perl -I lib <<< VALUE",
    "echo VALUE | timeout 5 python3 - \"$x\"",
    "ex -s f.txt <<< VALUE",
    "vim -es f.txt <<< VALUE",
    "mongosh db <<< VALUE",
    "awk -f - f.txt <<< VALUE",
    "sed -f /dev/stdin f.txt <<< VALUE",
    "sed -f- f.txt <<< VALUE",
    "psql -U u db -f <(echo VALUE)",
    "alias -s qq=eval\nfoo.qq VALUE",
    // Letters that are glued together.
    "sudo -uroot bash -c 'echo VALUE'",
    "sudo -ugit bash -c 'echo VALUE'",
    "kubectl -nproduction exec pod -- bash -c 'echo VALUE'",
    "echo x | xargs -d'\\n' bash -c 'echo VALUE'",
    "echo x | xargs -I{} -d'\\n' sh -c 'echo VALUE'",
    "echo x | xargs -IFILE sh -c 'echo VALUE FILE'",
    "docker exec -eMODE=live c bash -c 'echo VALUE'",
    "strace -eexecve bash -c 'echo VALUE'",
    "sshpass -f/home/u/.pwd ssh host 'echo VALUE'",
    "psql -hlocalhost -Upostgres <<EOF\nVALUE\nEOF",
    "mysql -uuser -ppw db <<EOF\nVALUE\nEOF",
    "psql -vschema=x db <<EOF\nVALUE\nEOF",
    "perl -MData::Dumper <<EOF\nVALUE\nEOF",
    "perl -Ilib/core <<EOF\nVALUE\nEOF",
    "python3 -Xtracemalloc <<EOF\nVALUE\nEOF",
    "python3 -Wonce <<EOF\nVALUE\nEOF",
    "python3 -i x.py <<EOF\nVALUE\nEOF",
    "perl -I -e <<EOF\nVALUE\nEOF",
    "echo VALUE | redis-cli -h host",
    "/usr/bin/time -f %e bash <<EOF\nVALUE\nEOF",
    // Options of shells.
    "zsh --emulate sh -c 'echo VALUE'",
    "zsh --emulate sh <<EOF\nVALUE\nEOF",
    "bash -s -c 'echo VALUE'",
    "bash -es -c 'echo VALUE'",
    "fish -C 'set x' -c 'echo VALUE'",
    "fish -d 3 -c 'echo VALUE'",
    "nu --config f -c 'echo VALUE'",
    // Options of others.
    "tar cIf 'cat; echo VALUE' o.tar w",
    "tar -cIf 'cat; echo VALUE' o.tar w",
    "tar --to-com 'echo VALUE' -xf x",
    "rsync -avze 'ssh VALUE' a h:b",
    "npx --call 'echo VALUE'",
    "npm exec --call 'echo VALUE'",
    "git clone --config core.sshCommand='ssh VALUE' ssh://x/y",
    // Shells that others start.
    "sudo -i <<EOF\nVALUE\nEOF",
    "sudo -s <<EOF\nVALUE\nEOF",
    "sudo -iu postgres <<EOF\nVALUE\nEOF",
    "sudo -u root -s <<< VALUE",
    "sudo --login <<< VALUE",
    "sudo -uroot --shell <<< VALUE",
    "doas -s <<< VALUE",
    "sudo su - <<< VALUE",
    "chroot /mnt <<< VALUE",
    "sudo chroot /mnt <<< VALUE",
    "unshare -r <<< VALUE",
    "nsenter -t 1 -m <<< VALUE",
    "newgrp docker <<< VALUE",
    "machinectl shell box <<< VALUE",
    // Programs of functions, and descriptors.
    "docker run --rm --entrypoint sh alpine -c 'echo VALUE'",
    "docker run -i --rm --entrypoint /bin/sh img -c 'echo VALUE'",
    "docker run -i --rm --entrypoint bash img <<EOF\nVALUE\nEOF",
    "setarch x86_64 <<< VALUE",
    "retry() { \"$@\"; }; retry \"$SHELL\" -c 'echo VALUE'",
    "f() { command \"$@\"; }; f $SHELL -c 'echo VALUE'",
    "f() { \"$@\"; }; f \"$SHELL\" <<< VALUE",
    "{ bash <&3; } 3<<EOF\nVALUE\nEOF",
    "{ bash </dev/fd/3; } 3<<EOF\nVALUE\nEOF",
    "coproc bash; echo VALUE >/dev/fd/${COPROC[1]}",
    "hash -p /bin/bash q; q -c 'echo VALUE'",
];

#[test]
fn unsafe_second_parses_are_refused() {
    check_outcomes("a[$(touch pwned)]", SECOND_PARSES, "unsafe_nested_parse");
    let quoted: Vec<String> = SECOND_PARSES
        .iter()
        .map(|script| script.replace("-c VALUE", "-c 'VALUE'"))
        .collect();
    let quoted: Vec<&str> = quoted.iter().map(String::as_str).collect();
    check_outcomes("-leading", &quoted, "unsafe_nested_parse");
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

#[test]
fn hostile_scripts_are_cheap() {
    let secrets = secrets(&["value"]);
    for part in [
        "$(",
        "\"$(",
        "${x:-",
        "((",
        "`",
        "<<E\n",
        "'",
        "case x in ",
        "{ ",
        "a[",
        "$KARYI{V0} ",
        "|",
        "[[ -eq ",
        "f() ",
        "$a[",
        "sudo ",
        "sudo node $KARYI{V0} ",
        "x | bash -c 'cat | sh' ",
        "{ cat <<E; } ",
        "f $a $b | ",
        "$a | bash | psql | ",
        "$(curl $a | cat) ",
        "x=$a$x; ",
        "cat f > f\n",
        "$a:s/",
    ] {
        let script = format!("{}$KARYI{{V0}}", part.repeat(20_000));
        let _ = substitute_script(&script, &secrets);
    }
}
