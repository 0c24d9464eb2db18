//! Decisions about scripts and other calls.

use super::*;

mod values;

/// Shows a verdict: `runs`, `denied BY`, or each asked part with its reason.
fn shown(verdict: Verdict) -> String {
    match verdict {
        Verdict::Allow(_) => "runs".to_owned(),
        Verdict::Deny(rule) => format!("denied by {rule}"),
        Verdict::Ask(parts) => {
            let parts = parts
                .iter()
                .map(|part| format!("{}: {}", part.what, part.reason));
            parts.collect::<Vec<_>>().join(" | ")
        }
    }
}

fn rules(allow: &[&str], ask: &[&str], deny: &[&str]) -> Rules {
    let parse = |texts: &[&str]| {
        texts
            .iter()
            .map(|text| Rule::parse(text).unwrap())
            .collect()
    };
    Rules {
        allow: parse(allow),
        ask: parse(ask),
        deny: parse(deny),
    }
}

fn place(cwd: &str) -> Place {
    Place {
        cwd: cwd.into(),
        project: "/project".into(),
        is_bash: false,
        home: Some("/home/me".into()),
        real: Path::to_owned,
    }
}

fn judged(mode: Mode, rules: &Rules, script: &str) -> Verdict {
    let place = place("/project");
    let judge = Judge {
        mode,
        rules,
        place: &place,
    };
    judge.script(script, Some(Path::new("/project")))
}

#[track_caller]
fn check(script: &str, expected: &str) {
    let found = judged(Mode::Ask, &rules(&["git status"], &[], &[]), script);
    assert_eq!(shown(found), expected, "{script}");
}

#[track_caller]
fn runs(scripts: &[&str]) {
    for script in scripts {
        check(script, "runs");
    }
}

/// Checks that scripts are asked about because of a text in the question.
#[track_caller]
fn asks(scripts: &[(&str, &str)]) {
    for (script, why) in scripts {
        let found = shown(judged(Mode::Ask, &rules(&["git status"], &[], &[]), script));
        assert!(found != "runs" && found.contains(why), "{script}: {found}");
    }
}

#[test]
fn a_rule_allows_its_command_and_nothing_beside_it() {
    check("cd . && git status 2>&1 | head -3", "runs");
    check("git status && rm -rf x", "rm -rf x: no rule allows it");
    check(
        "git status $(touch p)",
        "git status $(touch p): `$(touch p)` is not known to be harmless | touch p: no rule allows it",
    );
    check(
        "git status `touch p`",
        "git status `touch p`: ``touch p`` is not known to be harmless | touch p: no rule allows it",
    );
    check(
        "git status <<E\n$(touch p)\nE",
        "touch p: no rule allows it",
    );
    check(
        "GIT_SSH_COMMAND='touch p' git status",
        "GIT_SSH_COMMAND='touch p' git status: it sets the variable GIT_SSH_COMMAND",
    );
    check(
        "git status > ~/.bashrc",
        ">~/.bashrc: it writes a file that is not known before it runs",
    );
    check(
        "git -c core.pager='touch p' log",
        "git -c core.pager='touch p' log: `-c` is not known to be harmless",
    );
    check("nice git status; touch p", "touch p: no rule allows it");
    check("r\\m -rf x", "r\\m -rf x: no rule allows it");
    check("/tmp/git status", "/tmp/git status: no rule allows it");
    check(
        "git() { touch p; }; git status",
        "git(): it defines a function | touch p: no rule allows it",
    );
    check(
        "alias git=x",
        "alias git=x: it changes what later commands mean",
    );
}

#[test]
fn ordinary_reading_is_not_asked_about() {
    runs(&[
        "",
        "# nothing",
        "ls -la src | wc -l",
        "cat <<'E'\n$(touch p)\nE",
        "for f in a b; do cat \"$f\"; done",
        "if [ -f x ]; then head -5 x; else echo no; fi",
        "while read -r l; do echo \"$l\"; done < x",
        "read -rp 'Your name: ' x",
        "find . -print0 | while read -r -d '' f; do head -1 \"$f\"; done",
        "case $x in a|b) ls;; *) pwd;; esac",
        "[[ -f x && $y == z ]] && cat x",
        "x=$(git log -5 --oneline | head -1); echo \"$x\"",
        "LANG=C LC_ALL=C NO_COLOR=1 sort -rn x",
        "env LANG=C nice -n 5 timeout 5 git status -s",
        "git --no-pager -C sub log -p --stat=80 -- a.rs 'b c'",
        "git diff HEAD~1 --name-only; git show HEAD:src/x; git branch -a",
        "rg -n 'foo|bar' src -g '*.rs' --type=rust | head -20",
        "grep -rn \"$pattern\" . 2>/dev/null",
        "find . -name '*.rs' -mtime -7 -not -path './target/*' -print",
        "find src -type f | xargs wc -l",
        "sed -n '10,20p' src/lib.rs",
        "diff <(sort a) <(sort b)",
        "time git status",
        "/usr/bin/git status; command git status; command -v git",
        "set -euo pipefail; git status",
        "echo \"$((1 + 2))\" '$(touch p)' \\$x ~/x",
        "printf '%s\\n' \"${x:-none}\" \"${#x}\" \"${x%.rs}\" \"${x/a/b}\"",
        "test -n \"$x\" -a $? -eq 0",
        "date +%F -u",
        "git status >/dev/null 2>&1 </dev/null &",
        "(cd sub; ls) && { pwd; }",
        "printf '%s %5.1f%%\\n' a 1.5 b 2; printf '\\033[1m%s\\033[0m' \"$x\"; printf \"a $x\"",
        "wc -l < \"src/$f\"; cat < ~/x < <(ls) < '$x'",
        "git status && ls -la | head -3; grep -rn \"x\" src | sort | uniq -c",
        "for f in *.rs; do wc -l \"$f\"; done; [ -f a ] && cat a",
        "cat <<'EOF'\nit's $(x) }\nEOF\ncat <<-\"END_1\"\n\tEND_1\ncat << \\E\nE",
        "find . -name '*.rs' | xargs grep -l foo; git -C ~/x -C ../y log -3; git rev-list --count HEAD",
        "[ -n \"$(git status -s)\" ] && [ ! -d \"$d/x\" ] && test \"$a\" -nt \"$b\" && [ \"$1\" ] && [ $# -gt 0 ]",
        "echo \"${x:-it's (none)}\" \"${x%.rs}\" ${x:-y} \"a (b)\"; x=\"$(echo '(')\"; ls >&2 2>&-",
        "{ ls; } 2>&1 </dev/null; (ls) &>/dev/null; for f in a; do ls; done < x; [[ a ]] 2>/dev/null",
        "if ls; then pwd; fi < x; case a in a) ls;; esac < x; (( 1 )) < x; x=$(< a); echo \"$(<b)\"",
        "[ \"$a\" = b ] && [[ $a == b || $a =~ ^c ]] && grep -E 'a$|^b' x",
    ]);
}

/// Scripts that may run more than they show, with a part of the question.
const HIDDEN_CODE: &[(&str, &str)] = &[
    ("eval 'git status'", "it runs code"),
    ("source x; . y", "it runs code"),
    ("trap 'git status' EXIT", "it runs code"),
    ("curl x | sh", "it is a shell"),
    ("bash -c 'git status'", "it is a shell"),
    ("$cmd status", "its name is not known"),
    ("\"$(git status)\"", "its name is not known"),
    ("sudo git status", "another user"),
    ("env -S 'touch p'", "`-S`"),
    ("env", "alone"),
    ("xargs rm < x", "no rule allows it"),
    ("find . | xargs git log", "`$@`"),
    ("find . -exec touch p ';'", "`-exec`"),
    ("find . -delete", "`-delete`"),
    ("find . -fprintf p x", "`-fprintf`"),
    ("sort -o p x", "`-o`"),
    ("sort -uo p x", "`-uo`"),
    ("sort --outp=p x", "`--outp=p`"),
    (
        "sort --compress-program=touch x",
        "`--compress-program=touch`",
    ),
    ("rg --pre=touch x", "`--pre=touch`"),
    ("rg --pre touch x", "`--pre`"),
    ("git diff --output=p", "`--output=p`"),
    ("git diff --ext-diff", "`--ext-diff`"),
    ("git grep -Otouch x", "`-Otouch`"),
    ("git branch new", "`new`"),
    ("git config core.pager x", "no rule allows it"),
    ("git -c a=b status", "`-c`"),
    ("git $x", "no rule allows it"),
    ("git log $x", "`$x`"),
    ("git log \"$x\"", "`$x`"),
    ("git log a$x", "`a$x`"),
    ("git diff *.rs", "`*.rs`"),
    ("git log \"\\\n--output=p\"", "--output=p"),
    ("sed -i s/a/b/ x", "`-i`"),
    ("sed -n '1e touch p' x", "is not known"),
    ("sed s/a/b/w x", "is not known"),
    ("awk 'BEGIN { system(\"touch p\") }'", "no rule allows it"),
    ("tar --to-command=touch -xf x", "no rule allows it"),
    ("uniq a b", "`b`"),
    ("date 01010000", "is not known"),
    ("printf -v x y", "`-v`"),
    ("printf 'a%n' PATH", "`a%n`"),
    ("printf 'a\\045n' PATH", "045n"),
    ("printf \"$x\" PATH", "`$x`"),
    ("printf \"a$x\" PATH", "`a$x`"),
    ("printf '%d' 'a[$(touch p)]'", "`a[$(touch p)]`"),
    ("printf '%s %*d' a \"$x\" 1", "`$x`"),
    ("printf '%d' PATH=1", "`PATH=1`"),
    ("read -t 'a[$(touch p)]' x", "`-t`"),
    ("read -p PATH x", "`PATH`"),
    ("read -p 'PATH?x' x", "`PATH?x`"),
    ("read -p 'a[$(touch p)]' x", "is not known"),
    ("read -p \"a $x\" y", "is not known"),
    ("read PATH", "`PATH`"),
    ("PATH=/tmp; git status", "PATH may change"),
    (
        "for PATH in /tmp; do git status; done",
        "its variable may change",
    ),
    ("export A=1", "later commands"),
    ("hash -p /tmp/git git", "later commands"),
    ("echo $((x))", "its expansion"),
    ("echo ${x@P} ${!x} ${PATH:=y}", "its expansion"),
    ("echo ${PATH::=1}", "its expansion"),
    ("echo \"${PATH::=1}\"", "its expansion"),
    ("ls $~x", "its expansion"),
    ("git log $=x", "its expansion"),
    ("echo \"a $^x\"", "its expansion"),
    ("=touch p", "its name is not known"),
    ("git log > =git", "not known before it runs"),
    ("git log > ='git'", "not known before it runs"),
    ("git log >>& git", ">>&git: it writes a file"),
    ("git log >&! git", "not known before it runs"),
    ("git log >>&| git", ">>&|git: it writes a file"),
    ("git log >&| git; ls", ">&|git: it writes a file"),
    (">! touch git log", "not known before it runs"),
    ("git log >; ls", "not known before it runs"),
    ("cat < $x", "a connection"),
    ("cat < \"$x/tcp/h/1\"", "a connection"),
    ("cat < /d\"ev\"/$x", "a connection"),
    ("cat < $'\\x2fdev/tcp/h/1'", "a connection"),
    ("a[x]=1", "its expansion"),
    ("[[ x -eq 1 ]]", "it calculates"),
    ("[[ -v a[x] ]]", "it calculates"),
    ("test -v 'a[$(touch p)]'", "`-v`"),
    ("echo `echo \\`touch p\\``", "its expansion"),
    ("echo `echo \\$(touch p)`", "its expansion"),
    ("ls *(e:'touch p':)", "a pattern of it"),
    ("cat =(touch p)", "a pattern of it"),
    ("echo ${(e)x}", "its expansion"),
    ("echo $x[y]", "its expansion"),
    ("repeat 3 touch p", "not understood"),
    ("for x (a b) touch p", "a pattern of it"),
    ("cat < /dev/tcp/h/1", "a connection"),
    ("exec {PATH}>&1", "not known"),
    ("echo 'x", "cannot read it"),
    ("git status\r", "control characters"),
    ("coproc touch p", "no rule allows it"),
    ("nohup touch p", "no rule allows it"),
    ("nice -x git status", "`-x`"),
    ("git status; p=$(touch p)", "touch p"),
    ("echo ${x:-$(touch p)}", "touch p"),
    ("echo \"`touch p`\"", "touch p"),
    ("cat <(touch p)", "touch p"),
    ("! touch p", "touch p"),
    ("if touch p; then :; fi", "touch p"),
    ("echo x | tee p", "no rule allows it"),
    ("timeout .{5,/../../../bin/touch,/p} ls", "several words"),
    ("timeout 5* ls", "several words"),
    ("timeout $x ls", "`$x`"),
    (
        "env -u .{,/../../../bin/touch,/p} ls",
        "its name is not known",
    ),
    ("env LC_{A=1,/../bin/touch} ls", "several words"),
    (
        "echo x | xargs -d .{,/../../../bin/touch,/p} cat",
        "its name is not known",
    ),
    ("git -C c{,lone,/../..,c2} log", "`-C`"),
    ("uniq -f 0{,a} victim", "`-f`"),
    ("echo ${x:-<(touch p)}", "its expansion"),
    ("echo ${x:+ <(touch p)}", "its expansion"),
    ("echo ${x#<(touch p)} ${x/a/>(touch p)}", "its expansion"),
    ("echo ${x^<(touch p)}", "its expansion"),
    ("echo ${x-${y-<(touch p)}}", "its expansion"),
    ("y=${x:-<(touch p)}", "its expansion"),
    ("x=(${x:-<(touch p)})", "its expansion"),
    ("cat <<< ${x:-<(touch p)}", "its expansion"),
    ("for f in ${x:-<(touch p)}; do ls; done", "its expansion"),
    ("case ${x:-<(touch p)} in a) ls;; esac", "its expansion"),
    ("[[ a == ${x:-<(touch p)} ]]", "its expansion"),
    ("[[ a == @(<(touch p)) ]]", "its expansion"),
    ("echo ${x:-*(e:'touch p':)}", "its expansion"),
    ("test \"$a\" \"$b\"", "`$a` of `test`"),
    ("test \"$a\" 'a[$(touch p)]'", "`$a` of `test`"),
    ("[ a \"$b\" c ]", "`$b` of `[`"),
    ("[ ! \"$a\" 'a[$(touch p)]' ]", "`$a` of `[`"),
    ("[ $x ]", "`$x` of `[`"),
    ("[ -f $x ]", "`$x` of `[`"),
    ("test {-v,'a[$(zap)]'}", "of `test`"),
    ("cat <<$'\\x45'\nE\ntouch p\nx45", "its expansion"),
    ("cat <<-\"\tE\"\n\tE\ntouch p\nE", "its expansion"),
    ("cat <<'\tE'\n\tE", "its expansion"),
    ("cat <<\\\tE\n\tE", "its expansion"),
    ("cat <<E$'\\t'\nE\t", "its expansion"),
    ("cat <<''\nls\n", "its expansion"),
    ("env -u GIT_PAGER -u PAGER git log -p", "`-u` of `env`"),
    ("env -i TERM=xterm git log", "`-i` of `env`"),
    ("git rev-list --output=p HEAD", "`--output=p`"),
    ("echo HEAD | xargs git rev-list --output=p", "`--output=p`"),
    ("echo x >&1-2", ">&1-2: it writes a file"),
    ("echo x >&--", ">&--: it writes a file"),
    ("{ ls } always { touch p }", "}: its expansion"),
    ("if { true } zap", "}: its expansion"),
    ("if { ls > /dev/null } { zap }", "}: its expansion"),
    ("echo \"${x/a/'$(touch p)'}\"", "its expansion"),
    ("echo \"${x/a/'`touch p`'}\"", "its expansion"),
    ("cat <<E\n${x/a/$'$(touch p)'}\nE", "its expansion"),
    ("x=(/b*(e:'touch p':))", "its expansion"),
    ("cat < /dev/nul*(e:'touch p':)", "its expansion"),
    ("x==(touch p)", "its expansion"),
    ("x=(=(touch p))", "its expansion"),
    ("cat <<< =(touch p)", "its expansion"),
    ("git status *(e:'touch p':)", "a pattern of it"),
    ("mapfile=(PATH a)", "mapfile may change"),
    ("< README.md", "redirection alone"),
    ("ls; < README.md", "redirection alone"),
    ("{ ls; } | < README.md", "redirection alone"),
    ("case a in a) < README.md;; esac", "redirection alone"),
    ("(< README.md)", "redirection alone"),
    ("{ < README.md; }", "redirection alone"),
    ("echo $(< a > /dev/tty)", "redirection alone"),
];

#[test]
fn what_may_hide_code_is_asked_about() {
    asks(HIDDEN_CODE);
}

#[test]
fn a_rule_that_may_hold_for_an_unknown_word_asks() {
    let check = |script: &str, expected: &str| {
        let rules = rules(
            &["git *", "xargs git *"],
            &["git push --force"],
            &["git tag"],
        );
        let found = shown(judged(Mode::Ask, &rules, script));
        assert_eq!(found, expected, "{script}");
    };
    for command in [
        "git $x a",
        "git $'\\x74ag' a",
        "git ta{g,}",
        "git ta[g] a",
        "git \"v$x\"",
        "xargs git",
        "git -C \"$x\" a",
    ] {
        let why = "the rule `git tag` may hold for it";
        check(command, &format!("{command}: {why}"));
    }
    let why = "the rule `git push --force` may hold for it";
    check("git push \"$x\"", &format!("git push \"$x\": {why}"));
    check(
        "git add *.rs; git commit -m \"$x (y)\"; xargs git add",
        "runs",
    );
    check("git commit -m \"$(cat <<'E'\nfix (it)\nE\n)\"", "runs");
}

#[test]
fn the_shell_is_asked_about_names_as_they_are_written() {
    let check = |script: &str, expected: &[&str]| {
        let found = judged(Mode::Ask, &rules(&["/opt/x/ls"], &[], &[]), script);
        let expected = expected.iter().map(|&name| name.to_owned()).collect();
        assert_eq!(found, Verdict::Allow(expected), "{script}");
    };
    check("/bin/ls x", &["/bin/ls", "ls"]);
    check(
        "command '/usr/bin/cat' a",
        &["/usr/bin/cat", "cat", "command"],
    );
}

#[test]
fn hidden_files_and_bare_repositories_are_asked_about_in_the_mode_edits() {
    for (file, runs) in [
        ("src/a.rs", true),
        ("a.github", true),
        ("fix.git/config", false),
        ("tests/Fix.GIT/hooks/x", false),
        (".husky/pre-commit", false),
        (".config/karyi/config.toml", false),
        ("a/.vimrc", false),
        ("a/head", false),
    ] {
        let found = judged(Mode::Edits, &Rules::default(), &format!("echo x > {file}"));
        assert_eq!(shown(found) == "runs", runs, "{file}");
    }
}

#[test]
fn files_of_processes_are_not_known() {
    for file in [
        "/proc/self/cwd/a",
        "/proc/thread-self/cwd/a",
        "/dev/fd/9",
        "/dev/./fd/9",
    ] {
        let found = judged(
            Mode::Edits,
            &rules(&["edit:/**"], &[], &[]),
            &format!("cd ..; echo x > {file}"),
        );
        assert!(shown(found).contains("not known before it runs"), "{file}");
    }
}

#[test]
fn deny_is_stronger_than_ask_and_ask_than_allow() {
    let check = |mode: Mode, script: &str, expected: &str| {
        let rules = rules(
            &["make", "git push *", "FOO=1 make", "rm *.o"],
            &["git push --force"],
            &["rm", "dd", "edit:.env"],
        );
        assert_eq!(
            shown(judged(mode, &rules, script)),
            expected,
            "{mode:?} {script}"
        );
    };
    let denied = "denied by the rule `rm`";
    check(Mode::Ask, "make", "runs");
    check(Mode::Ask, "make install", "make install: no rule allows it");
    check(Mode::Ask, "FOO=1 make", "runs");
    check(
        Mode::Ask,
        "BAR=1 make",
        "BAR=1 make: it sets the variable BAR",
    );
    check(Mode::Ask, "git push origin main", "runs");
    check(
        Mode::Ask,
        "git push --force",
        "git push --force: the rule `git push --force` asks",
    );
    for mode in [Mode::Ask, Mode::Full] {
        check(mode, "make; (r\\m -rf x)", denied);
    }
    for script in [
        "rm *.o",
        "/bin/rm x",
        "sudo rm x",
        "nohup env A=1 rm x",
        "ls | xargs rm",
        "x=$(rm y)",
    ] {
        check(Mode::Full, script, denied);
    }
    check(
        Mode::Full,
        "echo x > .env",
        "denied by the rule `edit:.env`",
    );
    check(Mode::Full, "anything \"$@\"; f() { x; }", "runs");
    check(
        Mode::Full,
        "git push --force",
        "git push --force: the rule `git push --force` asks",
    );
    check(Mode::ReadOnly, "git log", "runs");
    check(Mode::ReadOnly, "make", "denied by the mode read-only");
}

#[test]
fn deny_and_ask_hold_in_every_mode() {
    let check = |mode: Mode, script: &str, expected: &str| {
        let rules = rules(
            &[],
            &["git push --force", "git log"],
            &["edit:.env", "edit:/home/me/.bashrc"],
        );
        assert_eq!(
            shown(judged(mode, &rules, script)),
            expected,
            "{mode:?} {script}"
        );
    };
    check(
        Mode::Full,
        "git push origin main --force",
        "git push origin main --force: the rule `git push --force` asks",
    );
    check(Mode::ReadOnly, "git log", "denied by the mode read-only");
    check(
        Mode::Full,
        "cd sub && echo x > .env",
        "denied by the rule `edit:.env`",
    );
    for script in ["echo x >> ~/.bashrc", "echo x > \"$HOME/.bashrc\""] {
        check(
            Mode::Full,
            script,
            "denied by the rule `edit:/home/me/.bashrc`",
        );
    }
    check(
        Mode::Full,
        "echo x > \"$d/../.env\"",
        "denied by the rule `edit:.env`",
    );
}

#[test]
fn a_directory_of_the_system_is_no_part_of_a_name() {
    let rules = rules(&["/bin/ls *", "make"], &[], &["/usr/bin/rm"]);
    for (script, expected) in [
        ("ls x | tee", "tee: no rule allows it"),
        ("/usr/bin/make; env /bin/make", "runs"),
        ("rm x", "denied by the rule `/usr/bin/rm`"),
        ("env /bin/rm x", "denied by the rule `/usr/bin/rm`"),
        ("/tmp/make", "/tmp/make: no rule allows it"),
    ] {
        assert_eq!(
            shown(judged(Mode::Ask, &rules, script)),
            expected,
            "{script}"
        );
    }
}

#[test]
fn guarded_files_are_allowed_by_name_only() {
    let rules = rules(
        &["edit:**", "edit:/**", "edit:.git/info/*", "edit:**/.envrc"],
        &[],
        &[],
    );
    for (file, runs) in [
        ("src/a", true),
        ("/tmp/a", true),
        (".git/hooks/pre-commit", false),
        ("sub/.GIT/config", false),
        (".git", false),
        (".git/info/exclude", true),
        (".git/info/.envrc", true),
        ("sub/.envrc", true),
        (".karyi/config.toml", false),
        (".bashrc", false),
        ("/home/me/.zshenv", false),
        ("/home/me/.git/config", false),
    ] {
        let found = shown(judged(Mode::Edits, &rules, &format!("echo x > {file}")));
        assert_eq!(found == "runs", runs, "{file}: {found}");
    }
}

#[test]
fn links_are_judged_as_written_and_as_they_lead() {
    let place = Place {
        cwd: "/project".into(),
        project: "/project".into(),
        is_bash: false,
        home: Some("/home/me".into()),
        real: |path| match path.file_name().and_then(|name| name.to_str()) {
            Some("link") => "/outside/x".into(),
            Some("hook") => "/project/repo/hook".into(),
            _ => path.to_owned(),
        },
    };
    let check = |rules: &Rules, expected: &str| {
        let judge = Judge {
            mode: Mode::Edits,
            rules,
            place: &place,
        };
        let verdict = judge.script("echo x > link", Some(Path::new("/project")));
        assert_eq!(shown(verdict), expected);
    };
    let all = rules(&["edit:**"], &[], &[]);
    let judge = Judge {
        mode: Mode::Edits,
        rules: &all,
        place: &place,
    };
    let found = judge.script("echo x > .git/hook", Some(Path::new("/project")));
    assert!(shown(found).contains("take settings from"));
    check(
        &Rules::default(),
        ">link: it writes a file outside of the project",
    );
    check(
        &rules(&["edit:link"], &[], &[]),
        ">link: it writes a file outside of the project",
    );
    check(
        &rules(&["edit:/outside/x"], &["edit:link"], &[]),
        ">link: the rule `edit:link` asks",
    );
    check(
        &rules(&[], &[], &["edit:/outside/**"]),
        "denied by the rule `edit:/outside/**`",
    );
}

#[test]
fn files_are_judged_by_their_place() {
    let check = |mode: Mode, script: &str, expected: &str| {
        let rules = rules(&["edit:out/**"], &["edit:*.lock"], &["edit:/etc/**"]);
        assert_eq!(
            shown(judged(mode, &rules, script)),
            expected,
            "{mode:?} {script}"
        );
    };
    check(Mode::Ask, "echo x > a", ">a: it writes a file");
    check(Mode::Ask, "echo x > out/a", "runs");
    check(Mode::Edits, "echo x >> a/b", "runs");
    check(Mode::Edits, "echo x &> a", "runs");
    check(
        Mode::Edits,
        "cd sub && echo x > a",
        ">a: the directory of the file is not known before it runs",
    );
    check(Mode::Edits, "echo x > /project/a", "runs");
    check(
        Mode::Edits,
        "echo x > ../a",
        ">../a: it writes a file outside of the project",
    );
    check(
        Mode::Edits,
        "echo x > Cargo.lock",
        ">Cargo.lock: the rule `edit:*.lock` asks",
    );
    check(
        Mode::Edits,
        "echo x >/etc/passwd",
        "denied by the rule `edit:/etc/**`",
    );
    check(
        Mode::Edits,
        "echo x > .git/config",
        ">.git/config: it writes a file that other programs take settings from",
    );
    check(
        Mode::Edits,
        "echo x > $y",
        ">$y: it writes a file that is not known before it runs",
    );
    check(Mode::ReadOnly, "echo x > a", "denied by the mode read-only");
    check(Mode::Full, "echo x > ../a", "runs");
}

fn call(name: &str, arguments: serde_json::Value) -> Call {
    let registry = crate::tools::for_scripts();
    (registry.get(name).unwrap().from_json)(arguments).unwrap()
}

#[test]
fn a_change_outside_that_names_no_file_is_asked_about() {
    let reply = call("reply", serde_json::json!({ "text": "done" }));
    let history = call("get_recent_history", serde_json::json!({ "count": 3 }));
    for (mode, call, expected) in [
        (Mode::Ask, &reply, "done: what it changes is not known"),
        (Mode::ReadOnly, &reply, "denied by the mode read-only"),
        (Mode::Full, &reply, "runs"),
        (Mode::ReadOnly, &history, "runs"),
    ] {
        let (place, rules) = (place("/project"), Rules::default());
        let judge = Judge {
            mode,
            rules: &rules,
            place: &place,
        };
        assert_eq!(shown(judge.call(call, false)), expected, "{mode:?}");
    }
}

#[test]
fn calls_of_other_tools_are_judged_by_their_effect() {
    let place = place("/project/src");
    let check = |mode: Mode, call: &Call, types_code: bool, expected: &str| {
        let rules = Rules::default();
        let judge = Judge {
            mode,
            rules: &rules,
            place: &place,
        };
        assert_eq!(
            shown(judge.call(call, types_code)),
            expected,
            "{mode:?} {call:?}"
        );
    };
    let edit = call(
        "edit",
        serde_json::json!({ "files": [{ "src": "a", "content": "x" }] }),
    );
    let outside = call(
        "edit",
        serde_json::json!({ "files": [{ "src": "../../a", "delete": true }] }),
    );
    let read = call(
        "read",
        serde_json::json!({ "files": [{ "src": "/etc/passwd" }] }),
    );
    let input = call("input", serde_json::json!({ "text": "y\\n" }));
    let key = call("ctrl", serde_json::json!({ "key": "c" }));
    let aside = call(
        "command",
        serde_json::json!({ "text": "echo x > a", "cwd": "/tmp" }),
    );
    check(Mode::Ask, &edit, false, "a: it writes a file");
    check(Mode::Edits, &edit, false, "runs");
    let why = "it writes a file outside of the project";
    check(Mode::Edits, &outside, false, &format!("../../a: {why}"));
    check(Mode::Edits, &aside, false, &format!(">a: {why}"));
    check(Mode::ReadOnly, &read, false, "runs");
    check(Mode::ReadOnly, &edit, false, "denied by the mode read-only");
    check(Mode::Ask, &input, false, "runs");
    check(
        Mode::Ask,
        &input,
        true,
        "y\\n: the program that gets it may take it for a command",
    );
    check(Mode::Ask, &key, true, "runs");
    check(
        Mode::Nothing,
        &read,
        false,
        "/etc/passwd: no call is permitted",
    );
}

#[test]
fn rules_are_offered_for_exactly_what_is_asked() {
    let check = |script: &str, rule: Option<&str>, wider: Option<&str>| {
        let Verdict::Ask(parts) = judged(Mode::Ask, &Rules::default(), script) else {
            panic!("{script} runs");
        };
        let found = (parts[0].rule.as_deref(), parts[0].wider_rule.as_deref());
        assert_eq!(found, (rule, wider), "{script}");
        if let Some(rule) = rule {
            let again = judged(Mode::Ask, &rules(&[rule], &[], &[]), script);
            assert_eq!(shown(again), "runs", "{script}");
        }
        if let Some(rule) = wider {
            let again = judged(Mode::Ask, &rules(&[rule], &[], &[]), script);
            assert_eq!(shown(again), "runs", "{script}");
        }
    };
    check(
        "cargo test --workspace",
        Some("cargo test --workspace"),
        Some("cargo test *"),
    );
    check("make", Some("make"), None);
    check("rm -rf x", Some("rm -rf x"), None);
    check("rm *.o", Some("rm *.o"), None);
    check("rm $x", None, None);
    check("A=1 make", Some("A=1 make"), None);
    check("A=1 cargo test", Some("A=1 cargo test"), None);
    check("A=1 sudo make", None, None);
    check("LANG=C sudo make", None, None);
    check("nice -x sudo make", None, None);
    check("nohup sudo make", None, None);
    check("eval x", None, None);
    check("echo x > '~x'", None, Some("edit:**"));
    check("echo x > src/a", Some("edit:src/a"), Some("edit:**"));
    check("echo x > .git/config", Some("edit:.git/config"), None);
    check("echo x > $x", None, None);
    check(
        "git commit -m 'a b'",
        Some("git commit -m 'a b'"),
        Some("git commit *"),
    );
}

/// Judges a call of the family `assistant`, as JSON arguments.
fn of_assistant(mode: Mode, rules: &Rules, tool: &str, arguments: serde_json::Value) -> String {
    let registry = crate::tools::for_scripts();
    let call = (registry.get(tool).unwrap().from_json)(arguments).unwrap();
    let place = Place {
        cwd: "/project".into(),
        project: "/project".into(),
        is_bash: false,
        home: None,
        real: Path::to_owned,
    };
    let judge = Judge {
        mode,
        rules,
        place: &place,
    };
    shown(judge.call(&call, true))
}

#[test]
fn tools_of_an_assistant_are_judged_by_what_they_do() {
    use serde_json::json;
    let none = Rules::default();
    let bash = |mode, script: &str| of_assistant(mode, &none, "bash", json!({"cmd": script}));
    assert_eq!(bash(Mode::Ask, "ls | wc -l"), "runs");
    assert_ne!(bash(Mode::Ask, "rm x"), "runs");
    assert_eq!(bash(Mode::ReadOnly, "rm x"), "denied by the mode read-only");
    assert_eq!(bash(Mode::Full, "rm x"), "runs");
    let write = |mode, rules: &Rules, path: &str| {
        of_assistant(
            mode,
            rules,
            "write_file",
            json!({"path": path, "content": "x"}),
        )
    };
    let asked = "file_state_dir/a: it writes a file of the assistant";
    assert_eq!(write(Mode::Ask, &none, "FILE_STATE_DIR/a"), asked);
    assert_eq!(write(Mode::Edits, &none, "file_state_dir/a"), "runs");
    assert_eq!(
        write(Mode::ReadOnly, &none, "a"),
        "denied by the mode read-only"
    );
    let allowed = rules(&["edit:file_state_dir/**"], &[], &[]);
    assert_eq!(write(Mode::Ask, &allowed, "file_state_dir/d/a"), "runs");
    assert_ne!(write(Mode::Ask, &allowed, "a"), "runs");
    let denied = rules(&[], &[], &["edit:file_cache_dir/**"]);
    let by_rule = "denied by the rule `edit:file_cache_dir/**`";
    assert_eq!(write(Mode::Full, &denied, "a"), by_rule);
    let read = of_assistant(Mode::ReadOnly, &none, "read_file", json!({"path": "/x"}));
    assert_eq!(read, "runs");
}

#[test]
fn programs_that_take_commands_are_known() {
    for (script, expected) in [
        ("bash", true),
        ("python3.11 -i", true),
        ("sudo -k x", true),
        ("env A=1 psql db", true),
        ("$x", true),
        ("echo 'x", true),
        ("f() { x; }", true),
        ("git add -p; read x", false),
        ("make test", false),
    ] {
        assert_eq!(takes_commands(script), expected, "{script}");
    }
}

/// Judges a call of a tool.
fn judged_call(mode: Mode, rules: &Rules, tool: &str, arguments: serde_json::Value) -> Verdict {
    let place = Place {
        cwd: "/project".into(),
        project: "/project".into(),
        is_bash: false,
        home: None,
        real: Path::to_owned,
    };
    let all = crate::tools::all();
    let mut call = (all.get(tool).unwrap().from_json)(arguments).unwrap();
    if let Call::WebSearch(args) = &mut call {
        args.set_page(&Default::default());
    }
    let place = &place;
    Judge { mode, rules, place }.call(&call, false)
}

#[test]
fn a_request_is_asked_about_with_a_rule_for_its_host() {
    let url = serde_json::json!({"url": "https://API.example.com:8443/x?q"});
    let none = Rules::default();
    let Verdict::Ask(parts) = judged_call(Mode::Edits, &none, "url_fetch", url.clone()) else {
        unreachable!("it is asked about")
    };
    let [part] = parts.as_slice() else {
        unreachable!("one part")
    };
    assert_eq!(part.what, "GET https://API.example.com:8443/x?q");
    assert_eq!(part.reason, "it sends a request to api.example.com:8443");
    assert_eq!(part.rule.as_deref(), Some("fetch:api.example.com:8443"));
    let by = |mode, rules: &Rules| shown(judged_call(mode, rules, "url_fetch", url.clone()));
    assert_eq!(by(Mode::Full, &none), "runs");
    assert_eq!(by(Mode::ReadOnly, &none), "denied by the mode read-only");
    let host = "fetch:API.example.com:8443";
    assert_eq!(by(Mode::Ask, &rules(&[host], &[], &[])), "runs");
    assert_eq!(
        by(Mode::ReadOnly, &rules(&[host], &[], &[])),
        "denied by the mode read-only"
    );
    assert_eq!(
        by(Mode::Full, &rules(&[], &[], &[host])),
        "denied by the rule `fetch:API.example.com:8443`"
    );
    assert_ne!(
        by(
            Mode::Ask,
            &rules(
                &["fetch:api.example.com", "fetch:example.com:8443"],
                &[],
                &[]
            )
        ),
        "runs"
    );
}

#[test]
fn a_search_asks_for_its_engine_and_a_download_for_its_file() {
    let none = Rules::default();
    let search = serde_json::json!({"q": "cats"});
    let found = judged_call(Mode::Ask, &none, "web_search", search.clone());
    assert_eq!(
        shown(found),
        "search for cats: it sends a request to html.duckduckgo.com"
    );
    let allowed = rules(&["fetch:html.duckduckgo.com"], &[], &[]);
    assert_eq!(
        shown(judged_call(Mode::Ask, &allowed, "web_search", search)),
        "runs"
    );
    let saved = serde_json::json!({"url": "https://h/", "download_path": "f"});
    let found = judged_call(Mode::Ask, &none, "url_fetch", saved);
    assert_eq!(
        shown(found),
        "GET https://h/: it sends a request to h | file_cache_dir/f: it writes a file of the assistant"
    );
}

#[test]
fn rules_about_hosts_name_one() {
    for text in [
        "fetch:",
        "fetch:a b",
        "fetch:https://h",
        "fetch:h/x",
        "fetch:*.h",
        "fetch::80",
    ] {
        let why = Rule::parse(text).unwrap_err();
        assert!(why.starts_with("expected a host"), "{text}: {why}");
    }
    for text in [
        "fetch:h",
        "fetch:127.0.0.1:80",
        "fetch:[::1]:80",
        "fetch:Example.COM",
    ] {
        assert_eq!(Rule::parse(text).unwrap().as_str(), text);
    }
}
