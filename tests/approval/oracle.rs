//! Runs scripts that the judge allows in a real bash whose programs only record that they ran. What ran must be among
//! the names that the judge listed, and no file may appear.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use karyi::approval::{Judge, Mode, Place, Rule, Rules, Verdict};
use proptest::collection::vec;
use proptest::prelude::any;
use proptest::test_runner::TestCaseError;
use tempfile::TempDir;

use crate::toolsxml::choices::{Choices, check_all};

/// Programs on the path of the test. The builtin commands of bash need none.
const PROGRAMS: &[&str] = &[
    "git", "rm", "touch", "ls", "cat", "head", "wc", "grep", "find", "xargs", "env", "nice",
    "timeout", "sort", "rg", "sed", "sh", "bash", "awk", "x", "a", "p", "E", "evil",
];

/// Pieces of scripts, ordinary and hostile ones.
const PIECES: &[&str] = &[
    "git status",
    "git",
    "status",
    " ",
    " ",
    " ",
    "\n",
    ";",
    "&&",
    "||",
    "|",
    "&",
    "$(",
    ")",
    "`",
    "\"",
    "'",
    "\\",
    "\\`",
    "touch p",
    "rm x",
    "ls",
    "cat",
    "echo ",
    "evil",
    "<<E\n",
    "<<'E'\n",
    "<<-E\n",
    "\nE\n",
    "<<<",
    ">",
    ">>",
    "<",
    "p",
    "#",
    "{ ",
    "}",
    "; }",
    "(",
    "()",
    "[[ ",
    " ]]",
    "[ ",
    " ]",
    "if ",
    "; then ",
    "; fi",
    "for x in a; do ",
    "; done",
    "case x in x) ",
    ";; esac",
    "$x",
    "${x:-",
    "${x#",
    "${!x}",
    "$((",
    "))",
    "((",
    "x=",
    "x+=",
    "x[",
    "]",
    "PATH=",
    "eval ",
    "2>&1",
    ">/dev/null",
    "function f ",
    "f() ",
    "f",
    "!",
    "time ",
    "env ",
    "nice ",
    "xargs ",
    "command ",
    "builtin ",
    "exec ",
    "\t",
    "\\\n",
    "$'",
    "$\"",
    "<(",
    "r\\m",
    "--",
    "-x",
    "-v",
    "-eq",
    "*",
    "~",
    "a",
    "while ",
    "until ",
    "do ",
    "coproc ",
    "trap ",
    "alias ",
    "\u{e9}",
    "export ",
    "set -e",
    "cd .",
    "@P}",
    "read x",
    "for x in p; do ",
    "x='a[$(touch p)]'",
    "\"$x\"",
    " -gt ",
    "test ",
    "printf %d ",
    "< ",
    ". ",
    "=",
];

/// Ordinary scripts and hostile ones, whatever the judge says about them.
const SCRIPTS: &[&str] = &[
    "cd . && git status 2>&1 | head -3",
    "for f in a b; do cat \"$f\"; done; if [ -f x ]; then ls; fi",
    "find . -name '*.rs' | xargs wc -l",
    "x=$(git status | wc -l); echo \"$x ${x:-$(ls)}\"",
    "env LANG=C nice -n 5 timeout 5 git status -s",
    "case a in a) ls;; esac; [[ -f x ]] || cat <<E\n$(git status)\nE",
    "git status $(touch p)",
    "git status `touch p`",
    "git status <<E\n$(touch p)\nE",
    "git status <<E\n`touch p`\nE",
    "GIT_SSH_COMMAND='touch p' git status",
    "git status > p",
    "git -c core.pager='touch p' log",
    "nice git status; touch p",
    "r\\m -rf x",
    "git() { touch p; }; git status",
    "x='a[$(touch p)]'; [ \"$x\" -gt 0 ]; test 1 -le \"$x\" -o \"$x\" -ne 2; printf '%d %5.1f %x' \"$x\" \"$x\" \"$x\"",
    "x='a[$(touch p)]'; printf '%*d' \"$x\" 1; [ -v \"$x\" ]; [[ $x -gt 0 ]]",
    "for x in *.rs; do cat < \"$x\"; done; sed 's/a/b/g' x; sed 's/a/touch p/e' x",
    "echo `echo \\`touch p\\``",
    "echo `echo \\$(touch p)`",
    "x='a[$(touch p)]'; echo $((x))",
    "x='a[$(touch p)]'; [[ x -eq 1 ]]",
    "x='a[$(touch p)]'; [[ -v $x ]]",
    "x='$(touch p)'; echo ${x@P}",
    "x=PATH; echo ${!x}",
    "x=touch; $x p",
    "x=p; for x[$(touch p)] in a; do :; done",
    "printf -v 'a[$(touch p)]' x",
    "read 'a[$(touch p)]' <<< x",
    "test -v 'a[$(touch p)]'",
    "unset 'a[$(touch p)]'",
    "cat <(touch p)",
    "echo x > >(touch p)",
    "echo ${x:-$(touch p)} \"${x:-`touch p`}\"",
    "echo $'\\'' $(touch p) ''",
    "echo \"\\\"$(touch p)\"",
    "cat <<'E'\nx\nE\ntouch p",
    "cat <<\\E\n$(touch no)\nE",
    "cat <<E\\\n\n$(touch p)\nE",
    "echo \\\n$(touch p)",
    "ec\\\nho x; to\\\nuch p",
    "# x\ntouch p",
    "echo a#b; touch p",
    "echo x;# '\ntouch p #'",
    "case x in (x) touch p;; esac",
    "if ! touch p; then :; fi",
    "while touch p && false; do :; done",
    "{ touch p; }",
    "(touch p)",
    "touch p &",
    "coproc touch p; wait",
    "time -p touch p",
    "exec touch p",
    "command touch p",
    "builtin eval 'touch p'",
    "trap 'touch p' EXIT",
    "alias ls='touch p'\nls",
    "hash -p /bin/false git; git status",
    "PATH=.; git status",
    "declare -i x='a[$(touch p)]'",
    "let 'x=a[$(touch p)]'",
    "x=(1 $(touch p))",
    "x[$(touch p)]=1",
    "env touch p",
    "env -S 'touch p'",
    "xargs touch < x",
    "find . -exec touch p ';'",
    "select x in a; do touch p; done <<< 1",
    "function f { touch p; }; f",
    "echo \"$(echo \"$(touch p)\")\"",
    "echo $[x]",
    "echo {a,$(touch p)}",
    "\"touch\" p",
    "'to''uch' p",
    "$'touch' p",
    "t\"ou\"ch p",
    "echo x | sh",
    "ls; (cd ..; rm x)",
    "echo ~$(touch p)",
    "IFS=; git status",
    "git status\u{a0}x",
    "echo \"a\"\"$(touch p)\"",
    "[[ a < p ]]; [ a \\< p ]",
    "[ a > p ]",
    "echo 2>&1 >p",
    "echo &>p",
    "echo >|p",
    "echo <>p",
    "echo >&p",
    "{x}>p echo",
    "echo {x}>p",
    "cat <<E | touch p\nE",
    "cat <<A <<B\n$(touch p)\nA\nB",
];

struct Recorder {
    root: TempDir,
    place: Place,
    rules: Rules,
}

impl Recorder {
    fn new() -> Self {
        let root = TempDir::new().unwrap();
        let path = root.path().canonicalize().unwrap();
        let programs = path.join("programs");
        fs::create_dir_all(&programs).unwrap();
        fs::create_dir_all(path.join("work")).unwrap();
        let log = path.join("log");
        for name in PROGRAMS {
            let script = format!("#!/bin/sh\necho \"${{0##*/}}\" >> '{}'\n", log.display());
            let file = programs.join(name);
            fs::write(&file, script).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let place = Place {
            cwd: path.join("work"),
            project: path.join("work"),
            is_bash: true,
            home: None,
            real: Path::to_owned,
        };
        let rules = Rules {
            allow: vec![Rule::parse("git status").unwrap()],
            ..Rules::default()
        };
        Self { root, place, rules }
    }

    fn path(&self) -> std::path::PathBuf {
        self.root.path().canonicalize().unwrap()
    }

    /// Returns the names that the judge lists for a script that it allows.
    fn allowed(&self, script: &str) -> Option<BTreeSet<String>> {
        let judge = Judge {
            mode: Mode::Ask,
            rules: &self.rules,
            place: &self.place,
        };
        match judge.script(script, Some(&self.place.cwd)) {
            Verdict::Allow(names) => Some(names.into_iter().collect()),
            Verdict::Ask(_) | Verdict::Deny(_) => None,
        }
    }

    /// Runs a script, and returns the names of the programs that ran.
    fn ran(&self, script: &str) -> BTreeSet<String> {
        let log = self.path().join("log");
        let _ = fs::remove_file(&log);
        let ended = Command::new("/usr/bin/timeout")
            .args([
                "-s",
                "KILL",
                "10",
                "/bin/bash",
                "--norc",
                "--noprofile",
                "-c",
                script,
            ])
            .current_dir(self.path().join("work"))
            .env_clear()
            .env("PATH", self.path().join("programs"))
            .stdin(Stdio::null())
            // Its end is that of the last program that the script has left in the background.
            .output()
            .unwrap();
        assert_ne!(
            ended.status.code(),
            Some(137),
            "it does not end: {script:?}"
        );
        let log = fs::read_to_string(&log).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }

    /// Checks a script; returns true when it was allowed, and so was run.
    fn check(&self, script: &str) -> Result<bool, String> {
        let Some(listed) = self.allowed(script) else {
            return Ok(false);
        };
        let ran = self.ran(script);
        let work = self.path().join("work");
        let made: Vec<_> = fs::read_dir(&work).unwrap().collect();
        fs::remove_dir_all(&work).unwrap();
        fs::create_dir(&work).unwrap();
        match ran.is_subset(&listed) && made.is_empty() {
            true => Ok(true),
            false => Err(format!(
                "{script:?} ran {ran:?}, listed were {listed:?}; files: {made:?}"
            )),
        }
    }
}

#[test]
fn what_runs_was_listed() {
    let recorder = Recorder::new();
    let mut allowed = Vec::new();
    for script in SCRIPTS {
        if recorder.check(script).unwrap() {
            allowed.push(*script);
        }
    }
    let ordinary = SCRIPTS.get(..6).unwrap();
    assert!(
        ordinary.iter().all(|script| allowed.contains(script)),
        "{allowed:#?}"
    );
    // The recorder sees what runs.
    assert_eq!(
        recorder.ran("git status; rm x"),
        ["git", "rm"].map(str::to_owned).into()
    );
}

#[test]
fn what_runs_of_random_scripts_was_listed() {
    let recorder = Recorder::new();
    let allowed = Cell::new(0);
    let script = |bytes: &[u8]| {
        let mut choices = Choices::new(bytes);
        let count = 1 + choices.below(12);
        (0..count).map(|_| choices.pick(PIECES)).collect::<String>()
    };
    check_all(
        (4_000, 200_000),
        &vec(any::<u8>(), 2..14),
        |bytes: &Vec<u8>| {
            let script = script(bytes);
            let ran = recorder.check(&script).map_err(TestCaseError::fail)?;
            allowed.set(allowed.get() + u32::from(ran));
            Ok(())
        },
    );
    assert!(
        allowed.get() > 40,
        "only {} scripts were allowed",
        allowed.get()
    );
}
