//! What commands demand of values.

use super::*;

/// Words as in a script, `?` for one that is only an expansion.
fn words(text: &str) -> Vec<Word> {
    let word = |text: &str| Word {
        text: if text == "?" {
            String::new()
        } else {
            text.into()
        },
        is_dynamic: text == "?",
        ..Word::default()
    };
    text.split_whitespace().map(word).collect()
}

fn check(command: &str, current: &str, expected: Demands) {
    let current = Word {
        text: current.into(),
        ..Word::default()
    };
    assert_eq!(
        argument_demands(&words(command), &current),
        expected,
        "{command} {current:?}"
    );
}

const NAME: Demands = Demands::VARIABLE_NAME;

#[test]
fn plain_programs_demand_nothing() {
    check("", "", Demands::NONE);
    check("curl -H", "", Demands::NONE);
    check("echo bash -c", "", Demands::ECHO);
    check("echo -E bash -c", "", Demands::NONE);
    check("print -r bash -c", "", Demands::NONE);
    check("python3 script.py -c", "", Demands::PROGRAM);
    check("python3 script.py --token", "", Demands::NONE);
}

#[test]
fn shells_read_one_script() {
    check("bash -c", "", Demands::SHELL);
    check("/bin/bash -euo pipefail -c", "", Demands::SHELL);
    check("bash -o pipefail", "-c", Demands::SHELL);
    check("bash -c x", "", Demands::NONE);
    check("bash script.sh", "", Demands::NONE);
    check("bash -s --", "", Demands::NONE);
    check("bash ? x", "", Demands::SHELL);
    check("? -c", "", Demands::UNQUOTED);
    check("sudo -u x sh -c", "", Demands::SHELL);
    check("docker exec -it box sh -lc", "", Demands::SHELL);
    check("find . -exec sh -c", "", Demands::SHELL);
    check("su - user -c", "", Demands::SHELL);
    check("su - user", "", Demands::OPERAND);
    check("ssh host", "", Demands::SHELL);
    check("sshpass -p", "", Demands::NONE);
    check("env X=1 eval", "", Demands::SHELL);
}

#[test]
fn interpreters_read_code_after_an_option() {
    check("python3.11 -c", "", Demands::PROGRAM);
    check("python3 -c x", "", Demands::NONE);
    check("perl -pe", "", Demands::PROGRAM);
    check("node", "--eval=x", Demands::PROGRAM);
    check("psql -U u -tAc", "", Demands::PROGRAM);
    check("psql", "", Demands::OPERAND);
    check("sed -i", "", Demands::PROGRAM);
    check("vim -c", "", Demands::PROGRAM);
    check("vim", "+", Demands::PROGRAM);
    check("vim file", "", Demands::OPERAND);
    check("jq --arg k", "", Demands::NONE);
    check("jq", "", Demands::PROGRAM);
    check("sudo awk", "", Demands::PROGRAM);
}

#[test]
fn builtins_read_names_and_expressions() {
    check("unset", "", NAME);
    check("printf -v", "", NAME);
    check("printf %d", "", Demands::ZSH);
    check("printf %s%d", "", Demands::NONE);
    check("printf %s%d x", "", Demands::ZSH);
    check("printf %b", "", Demands::FORMAT);
    check("umask", "", Demands::ANY_CODE);
    check("zpty", "", Demands::ZSH);
    check("printf", "", Demands::FORMAT);
    check("printf --", "a", Demands::FORMAT);
    check("printf -v x", "", Demands::FORMAT);
    check("echo -ne", "", Demands::FORMAT);
    check("echo -n", "", Demands::ECHO);
    check("printf %s%%d", "", Demands::NONE);
    check("printf %s", "", Demands::NONE);
    check("export", "TOKEN=", Demands::NONE);
    check("export", "", NAME);
    check("declare -i", "n=", Demands::NUMBER);
    check("declare -n", "n=", NAME);
    check("let", "x=", Demands::NUMBER);
    check("for", "", NAME);
    check("for x in", "", Demands::NONE);
    check("trap", "", Demands::forbidden("in code that runs later"));
}

#[test]
fn input_is_code_to_some() {
    let check = |command: &str, expected: Demands| {
        assert_eq!(input_demands(&words(command)), expected, "{command}")
    };
    check("cat", Demands::NONE);
    check("bash", Demands::SHELL);
    check("sudo bash -s --", Demands::SHELL);
    check("bash script.sh", Demands::NONE);
    check("ssh host", Demands::SHELL);
    check("python3 -", Demands::PROGRAM);
    check("python3", Demands::PROGRAM);
    check("python3 script.py", Demands::NONE);
    check("python3 -c x", Demands::NONE);
    check("psql base", Demands::PROGRAM);
    check("jq .", Demands::NONE);
    check("sqlite3 f", Demands::PROGRAM);
}
