//! Runs the safe command of each interpreter: a value of any characters arrives exactly.
//!
//! A program that may be missing, or would change the machine, is replaced by a short script that reads its arguments
//! and input like the real one.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

use super::*;
use crate::interpreters::INTERPRETERS;

/// A refused script, the script around its safe command `WAY`, and the output of that, with `@` for the value.
const RUNS: &[(&str, &str, &str)] = &[
    ("sh -c 'x @'", "WAY", "@"),
    ("bash -lc 'x @'", "WAY", "@"),
    ("zsh -c 'x @'", "WAY", "@"),
    ("bash <<E\nx @\nE", "WAY", "@"),
    ("su - u -c 'x @'", "WAY", "@"),
    ("runuser u -c 'x @'", "WAY", "@"),
    ("eval \"x @\"", "WAY", "@"),
    ("trap \"x @\" EXIT", "WAY", "@"),
    (
        "alias x=\"x @\"",
        "shopt -s expand_aliases 2>/dev/null\nWAY\nx",
        "@",
    ),
    ("ssh h 'x @'", "WAY", "@"),
    ("ssh -p 22 h <<E\nx @\nE", "WAY", "@"),
    ("ssh h bash -s <<E\nx @\nE", "WAY", "@"),
    ("ssh h 'python3 -' <<E\nx = '@'\nE", "WAY", "@"),
    ("sshpass -p x ssh h \"x @\"", "WAY", "@"),
    (
        "(crontab -l; echo '* * * * * x @') | crontab - <<< @",
        "WAY",
        "@",
    ),
    ("make X=@", "WAY", "@"),
    ("python3 -c 'x = \"@\"'", "WAY", "@\n"),
    ("perl -e 'x @'", "WAY", "@"),
    ("ruby -e 'x @'", "WAY", "@"),
    ("node --eval 'x @'", "WAY", "@"),
    ("php -r 'x @'", "WAY", "@"),
    ("psql -c \"SELECT '@'\"", "WAY", "@"),
    ("mysql -e \"SELECT '@'\"", "WAY", "@"),
    ("sqlite3 f \"SELECT '@'\"", "WAY", "@\n"),
    ("mongosh --eval 'x @'", "WAY", "@\n"),
    ("awk -v x=@ 1", "WAY", "@"),
    ("sed s/x/@/ f", "echo a__X__b > FILE; WAY", "a@b\n"),
    ("jq '.x = \"@\"'", "echo '{}' > FILE; WAY | jq -j .x", "@"),
    ("printf 'x @'", "WAY", "@"),
    ("docker exec c sh -c 'x @'", "WAY", "@"),
    ("docker exec -i c python3 - <<E\nx = '@'\nE", "WAY", "@\n"),
    ("podman exec c awk '@'", "WAY", "@"),
    ("docker exec -i c psql <<E\nSELECT '@'\nE", "WAY", "@"),
    ("docker exec c make X=@", "WAY", "@"),
    ("docker exec c mysql -e '@'", "WAY", "@"),
    ("docker exec c sqlite3 f '@'", "WAY", "@\n"),
    ("kubectl exec p -- bash -c 'x @'", "WAY", "@"),
    ("sudo -u u sh -c 'x @'", "WAY", "@"),
    ("sudo perl -e '@'", "WAY", "@"),
    ("doas sed 's/x/@/' f", "echo a__X__b > FILE; WAY", "a@b\n"),
];

/// Substitutes of real programs: some always, the others where the real one is missing.
const ALWAYS: &[(&str, &str)] = &[
    (
        "docker podman nerdctl",
        "[ \"$1\" = exec ]; shift\nif [ \"$1\" = -i ]; then shift; else exec </dev/null; fi\nshift\nexec env -i PATH=\"$PATH\" LANG=C.UTF-8 \"$@\"",
    ),
    (
        "kubectl",
        "[ \"$1 $4\" = 'exec --' ]; shift\nif [ \"$1\" = -i ]; then shift; else exec </dev/null; fi\nshift 2\nexec env -i PATH=\"$PATH\" LANG=C.UTF-8 \"$@\"",
    ),
    (
        "ssh",
        "shift\nexec env -i PATH=\"$PATH\" LANG=C.UTF-8 sh -c \"$*\"",
    ),
    (
        "sudo doas",
        "exec env -i PATH=\"$PATH\" LANG=C.UTF-8 \"$@\"",
    ),
    (
        "su",
        "[ \"$2\" = -c ]; exec env -i PATH=\"$PATH\" LANG=C.UTF-8 sh -c \"$3\"",
    ),
    (
        "crontab",
        "[ \"$1\" = - ] || exit 0\nread -r m h d o w line\nexec env -i PATH=\"$PATH\" sh -c \"$(printf %s \"$line\" | sed 's/\\\\%/%/g')\"",
    ),
    (
        "psql",
        "[ \"$1\" = -v ]; read -r sql\n[ \"$sql\" = \"SELECT :'x'\" ] && printf %s \"${2#x=}\"",
    ),
    (
        "mysql",
        "hex=${2#*UNHEX(\"'\"}; exec perl -e 'print pack(\"H*\", $ARGV[0])' \"${hex%\"')\"*}\"",
    ),
];
const MISSING: &[(&str, &str)] = &[
    (
        "ruby",
        "[ \"$2\" = 'print ENV[\"X\"]' ] && printf %s \"$X\"",
    ),
    (
        "node",
        "[ \"$2\" = 'process.stdout.write(process.env.X)' ] && printf %s \"$X\"",
    ),
    (
        "php",
        "[ \"$2\" = 'echo getenv(\"X\");' ] && printf %s \"$X\"",
    ),
    (
        "mongosh",
        "[ \"$2\" = 'print(process.env.X)' ] && printf '%s\\n' \"$X\"",
    ),
    (
        "jq",
        "[ \"$1\" = -j ] && exec cat; [ \"$1\" = --arg ] && printf %s \"$3\"",
    ),
    (
        "sqlite3",
        "hex=${2#*x\"'\"}; perl -e 'print pack(\"H*\", $ARGV[0])' \"${hex%%\"'\"*}\"; echo",
    ),
];

fn is_installed(program: &str) -> bool {
    ["/usr/local/bin", "/usr/bin", "/bin"]
        .iter()
        .any(|directory| Path::new(directory).join(program).exists())
}

fn make_programs(directory: &Path) {
    let missing = MISSING.iter().filter(|(names, _)| !is_installed(names));
    for (names, script) in ALWAYS.iter().chain(missing) {
        for name in names.split(' ') {
            let path = directory.join(name);
            std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(&path, mode).unwrap();
        }
    }
}

/// Runs a script with variables for the value and the path of a file with it; returns its output.
fn run_way(shell: &str, script: &str, directory: &Path) -> String {
    let options: &[&str] = if shell.ends_with("zsh") {
        &["-f"]
    } else {
        &["--norc"]
    };
    let whole = format!("__karyi_K=$V; __karyifile_K=$PWD/value; unset V\n{script}\n");
    std::fs::write(directory.join("script"), whole).unwrap();
    std::fs::write(directory.join("value"), AWKWARD).unwrap();
    let output = Command::new(shell)
        .args(options)
        .arg("script")
        .current_dir(directory)
        .env_clear()
        .env("V", AWKWARD)
        .env("LANG", "C.UTF-8")
        .env(
            "PATH",
            format!("{}:/usr/local/bin:/usr/bin:/bin", directory.display()),
        )
        .stdin(Stdio::null())
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[track_caller]
fn check_in(shell: &str) {
    let value_of = |_: &SecretName| Some(SecretValue::new(AWKWARD.to_owned()));
    if !Path::new(shell).exists() {
        println!("skipped: no {shell}");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    make_programs(directory.path());
    let mut problems = Vec::new();
    for (refused, surroundings, expected) in RUNS {
        let error = rewritten(refused, AWKWARD).unwrap_err();
        assert_eq!(error.code.as_str(), "unsafe_nested_parse", "{refused}");
        let script = surroundings.replace("WAY", &error.hint);
        let text = rewrite(&script, &value_of).unwrap().text;
        let found = run_way(shell, &text, directory.path());
        if found != expected.replace('@', AWKWARD) {
            problems.push(format!("{refused}: {text}\n{found:?}"));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn every_way_out_hands_over_any_value_in_bash() {
    check_in("/bin/bash");
}

#[test]
fn every_way_out_hands_over_any_value_in_zsh() {
    check_in("/usr/bin/zsh");
}

#[test]
fn every_program_has_a_run_of_its_way_out() {
    let run: BTreeSet<String> = RUNS
        .iter()
        .map(|(refused, ..)| {
            let message = rewritten(refused, AWKWARD).unwrap_err().message;
            message.split('`').nth(1).unwrap_or_default().to_owned()
        })
        .collect();
    for row in INTERPRETERS {
        assert!(
            row.names
                .split(' ')
                .any(|name| run.iter().any(|run| run.starts_with(name))),
            "{:?}",
            row.names
        );
    }
}
