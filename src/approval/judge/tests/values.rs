//! Values that are not known before a script runs, where they are harmless all the same.

use super::*;

fn judged_in_bash(script: &str) -> String {
    let place = Place {
        cwd: "/project".into(),
        is_bash: true,
        project: "/project".into(),
        home: Some("/home/me".into()),
        real: Path::to_owned,
    };
    let judge = Judge {
        mode: Mode::Ask,
        rules: &rules(&["git status"], &[], &[]),
        place: &place,
    };
    shown(judge.script(script, Some(Path::new("/project"))))
}

#[test]
fn bash_calculates_no_numbers_of_a_test_or_a_format() {
    for script in [
        "[ \"$n\" -gt 0 ] && test 3 -le \"${n}\"",
        "n=$(ls | wc -l); if [ \"$n\" -gt 3 ]; then echo many; fi",
        "[ \"$(wc -l < a)\" -ne \"$n\" ]",
        "for i in $(seq 9); do printf '%02d %s\\n' \"$i\" \"a$i\"; done",
        "printf %d \"$i\"; printf '%5.1f%%\\n' \"$(cat x)\"",
    ] {
        assert_eq!(judged_in_bash(script), "runs", "{script}");
        assert_ne!(
            shown(judged(Mode::Ask, &rules(&[], &[], &[]), script)),
            "runs"
        );
    }
}

#[test]
fn what_may_hide_code_is_asked_about_in_bash_too() {
    let others = [
        ("[ $n -gt 0 ]", "`$n` of `[`"),
        ("[ -v \"$n\" ]", "`-v`"),
        ("[ -R \"$n\" ]", "`-R`"),
        ("[[ $n -gt 0 ]]", "it calculates"),
        ("printf %d $i", "`$i`"),
        ("printf '%*d' \"$i\" 1", "`$i`"),
        ("printf '%.*f' \"$i\" 1", "`$i`"),
        ("printf \"%$i\" 1", "`%$i`"),
        ("printf '%d%n' 1 \"$i\"", "`%d%n`"),
        ("printf -v \"$i\" %d 1", "`-v`"),
    ];
    for (script, why) in HIDDEN_CODE.iter().chain(&others) {
        let found = judged_in_bash(script);
        assert!(found != "runs" && found.contains(why), "{script}: {found}");
    }
}

#[test]
fn a_file_of_a_loop_is_no_connection() {
    runs(&[
        "for f in *.rs; do wc -l < \"$f\"; done",
        "for f in a 'b c' ./src/*.c /etc/hosts; do\n  wc -l < \"${f}\" | tr -d ' '\ndone",
        "for f in a; do if true; then cat < \"$f\" > /dev/null; fi; done; for g in b; do cat < \"$g\"; done",
    ]);
    let connection = |script: &'static str| (script, "a connection");
    asks(
        &[
            "wc -l < \"$f\"",
            "for f in /dev/tcp/h/1; do cat < \"$f\"; done",
            "for f in a /dev/udp/h/1; do cat < \"$f\"; done",
            "for f in /dev/tcp/h*/1; do cat < \"$f\"; done",
            "for f in {/dev/tcp,a}/h/1; do cat < \"$f\"; done",
            "for f in $x; do cat < \"$f\"; done",
            "for f in \"$@\"; do cat < \"$f\"; done",
            "for f in $(ls); do cat < \"$f\"; done",
            "for f in ~/x; do cat < \"$f\"; done",
            "for f; do cat < \"$f\"; done",
            "for f in; do cat < \"$f\"; done",
            "for f in a; do cat < $f; done",
            "for f in a; do cat < \"$g\"; done",
            "for f in a; do f=/dev/tcp/h/1; cat < \"$f\"; done",
            "for f in a; do read -r f; cat < \"$f\"; done",
            "for f in a; do for f in \"$x\"; do cat < \"$f\"; done; done",
            "for f in a; do :; done; cat < \"$f\"",
            "for f in *.none; do :; done < x; cat < \"$f\"",
            "for f in a; { ls; }; cat < \"$f\"",
            "cat < \"$f\"; for f in a; do ls; done",
            "for f in a; do ls; done < \"$f\"",
            "f=a cat < \"$f\"",
        ]
        .map(connection),
    );
}

#[test]
fn one_substitution_of_sed_only_prints() {
    runs(&[
        "sed 's/a/b/' x",
        "sed -n 's|^\\(a\\)/|\\1;e|gp' x",
        "sed -E 's,a\\,b,c,2I' x y; sed 's/a&b/{}/g' < x",
    ]);
    let unknown = |script: &'static str| (script, "is not known");
    asks(
        &[
            "sed 's/a/touch p/e' x",
            "sed 's/a/b/w p' x",
            "sed 's/a/b/ge' x",
            "sed 's/a/b/;w p' x",
            "sed 's/a/b/}' x",
            "sed 's/a/b/\nw p' x",
            "sed 's/a\nb/c/' x",
            "sed 's/a\\/b/e' x",
            "sed 's/[/]/b/e' x",
            "sed 'sea\\eebe' x",
            "sed 's a b e' x",
            "sed 's/a/b' x",
            "sed s/a/$x/ y",
            "sed \"s/a/$x/\" y",
            "sed -i 's/a/b/' x",
            "sed -e 's/a/b/' -e '1e touch p' x",
            "sed 'y/a/b/' x",
        ]
        .map(unknown),
    );
}
