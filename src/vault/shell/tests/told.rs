//! A refusal names what reads the value as code, where that is known, and a way out that fits it.

use super::*;

/// Scripts, and parts of what is told of them.
const TOLD: &[(&str, &[&str])] = &[
    (
        "echo \"A=VALUE\" > .env; set -a; . ./.env; python3 deploy.py",
        &["`.` reads", "X=$KARYI{NAME} PROGRAM"],
    ),
    (
        "T=VALUE; source venv/bin/activate",
        &["`source` reads", "<command> of its own"],
    ),
    (
        "T=VALUE; eval \"$(ssh-agent)\"",
        &["`eval` reads", "<command> of its own"],
    ),
    ("sed -i \"s/@TOKEN@/VALUE/\" f", &["`sed` reads", "<edit>"]),
    (
        "timeout 5 python3.11 -c 'f(VALUE)'",
        &["`python` reads", "read it there: os.environ['X'];"],
    ),
    (
        "sudo -u p psql -c 'select VALUE'",
        &["`psql` reads", "have psql read it there if it can"],
    ),
    (
        "echo VALUE | bash",
        &["`bash` reads", "X=$KARYI{NAME} bash -c"],
    ),
    (
        "gawk \"{ print \\\"VALUE\\\" }\" f",
        &["`gawk` reads", "ENVIRON"],
    ),
    ("echo VALUE | xargs ruby", &["`ruby` reads", "ENV['X']"]),
    ("ruby <(echo VALUE)", &["`ruby` reads"]),
    ("bash -c 'eval \"$1\"' _ VALUE", &["`eval` reads"]),
    (
        "x=\"puts VALUE\"; perl -e \"$x\" && bash -c \"$x\"",
        &["`perl` reads", "$ENV{X}"],
    ),
    ("echo VALUE > Makefile; make", &["`make` reads"]),
    ("hash VALUE", &["`hash` reads"]),
    (
        "n=$(stat -c %s f); T=VALUE; ((n > 3))",
        &["the shell's arithmetic reads", "[ \"$n\" -gt 3 ]"],
    ),
    (
        "$run VALUE",
        &["another program reads", "put double quotes around it"],
    ),
    (
        "[[ VALUE -eq 1 ]]",
        &["may be taken for a number by the shell (as it stands,"],
    ),
    (
        "api() { curl -H VALUE; }; api",
        &[
            "in the body of a function",
            "T=$KARYI{NAME}; f() { ... \"$T\" ...; }",
            "f $KARYI{NAME}",
        ],
    ),
    (
        "echo \\VALUE",
        &[
            "a backslash stands before",
            "leave out the backslash",
            "$$KARYI{NAME}",
        ],
    ),
    (
        "echo \"\\VALUE\"",
        &["a backslash stands before", "leave out the backslash"],
    ),
    (
        "cat > f <<'E'\nVALUE\nE",
        &["a quoted delimiter", "write $TOKEN there", "<<EOF"],
    ),
    (
        "python3 <<'E'\nVALUE\nE",
        &["a quoted delimiter", "os.environ['X']"],
    ),
];

#[test]
fn what_reads_code_is_named() {
    let secrets = secrets(&["a[$(touch pwned)] ;"]);
    for (script, parts) in TOLD {
        let script = script.replace("VALUE", "$KARYI{V0}");
        let error = substitute_script(&script, &secrets).err().unwrap();
        let told = format!("{}; {}", error.message, error.hint);
        for part in *parts {
            assert!(told.contains(part), "{script}: no {part} in {told}");
        }
    }
}

/// Where the text is code, leaving out the quotes of a delimiter is no way out.
#[test]
fn no_quotes_are_left_out_of_code() {
    let secrets = secrets(&["value"]);
    for script in [
        "python3 <<'E'\n$KARYI{V0}\nE",
        "cat > f <<'E'\n$KARYI{V0}\nE\n. ./f",
    ] {
        let error = substitute_script(script, &secrets).err().unwrap();
        assert!(!error.hint.contains("<<EOF"), "{script}: {}", error.hint);
    }
}
