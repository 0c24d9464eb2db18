//! `karyi policy`, and the rules of files, through the program.

use crate::harness::Karyi;

#[test]
fn rules_are_listed_explained_and_removed() {
    let settings = "[approval]\nallow = [\"make *\"]\ndeny = [\"git push\"]\n";
    let karyi = |args: &[&str]| {
        Karyi::with_args(args)
            .file("home/config/config.toml", settings)
            .file(
                ".karyi/config.toml",
                "[approval]\nmode = \"full\"\nallow = [\"curl *\"]\nask = [\"make install\"]\n",
            )
    };
    let with_home = |args: &[&str]| {
        let karyi = karyi(args);
        let home = karyi.work().join("home");
        karyi.env("KARYI_HOME", home)
    };
    let list = with_home(&["policy", "list"]).run().exit(0);
    let lines: Vec<String> = list
        .stdout()
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(
        lines,
        [
            "mode ask",
            "deny git push config.toml",
            "allow make * config.toml",
            "ask make install .karyi/config.toml of the project",
        ]
    );
    let explain = |script: &str, expected: &str| {
        let found = with_home(&["policy", "explain", script])
            .run()
            .exit(0)
            .stdout();
        assert_eq!(found, expected, "{script}");
    };
    explain("make -j4 && git log", "it runs\n");
    explain(
        "make install",
        "it is asked about\n  make install: the rule `make install` asks\n",
    );
    explain(
        "curl x > y",
        "it is asked about\n  curl x: no rule allows it; the rule `curl x` allows it\n  \
         >y: it writes a file; the rule `edit:y` allows it\n",
    );
    explain(
        "git -C x push",
        "it does not run: the rule `git push` does not permit it\n",
    );
    let found = with_home(&["policy", "explain", "--json", "--mode", "read-only", "make"])
        .run()
        .exit(0);
    assert_eq!(
        found.stdout(),
        "{\"decision\":\"deny\",\"by\":\"the mode read-only\"}\n"
    );
    with_home(&["policy", "remove", "make *"]).run().exit(1);
}

#[test]
fn a_mistake_in_a_rule_is_an_error_with_its_place() {
    let karyi = Karyi::with_args(&["policy", "list"]).file(
        "home/config/config.toml",
        "[approval]\nallow = [\"a; b\"]\n",
    );
    let home = karyi.work().join("home");
    let ran = karyi.env("KARYI_HOME", home).run().exit(2);
    let error = ran.stderr_text();
    assert!(
        error.contains("config.toml:2:9: expected a list of commands"),
        "{error}"
    );
}

/// Runs `karyi policy` in one place; returns the exit status, standard output and standard error.
fn policy(karyi: &Karyi, args: &[&str]) -> (i32, String, String) {
    let output = karyi.command().args(args).output().unwrap();
    let text = |bytes: &[u8]| {
        let work = karyi.work().canonicalize().unwrap();
        String::from_utf8_lossy(bytes).replace(&*work.to_string_lossy(), "WORK")
    };
    let code = output.status.code().unwrap();
    (code, text(&output.stdout), text(&output.stderr))
}

#[test]
fn rules_are_added_and_removed_where_they_stand() {
    let karyi = Karyi::with_args(&["policy"]).file(
        ".karyi/config.toml",
        "[approval]\ndeny = [\"curl\"]\nask = [\"rm\"]\n",
    );
    let check = |args: &[&str], code: i32, output: &str, error: &str| {
        let found = policy(&karyi, args);
        assert_eq!(
            (found.0, found.1.as_str()),
            (code, output),
            "{args:?} {found:?}"
        );
        assert!(found.2.contains(error), "{args:?} {found:?}");
    };
    check(
        &["add", "cargo test *"],
        0,
        "allow  cargo test *  WORK\n",
        "",
    );
    check(
        &["add", "--deny", "edit:**/.env"],
        0,
        "deny  edit:**/.env  WORK\n",
        "",
    );
    let (code, added, _) = policy(&karyi, &["add", "--user", "--ask", "git push"]);
    assert!(code == 0 && added.starts_with("ask  git push  "), "{added}");
    assert!(added.ends_with("/config.toml\n"), "{added}");
    check(&["add", "edit:~/x"], 2, "", "write the path out");
    check(&["add", "a; b"], 2, "", "expected one command");
    check(&["remove", "cargo test *"], 0, "", "");
    check(&["remove", "edit:**/.env"], 0, "", "");
    check(&["remove", "cargo test *"], 1, "", "no such rule is stored");
    check(&["remove", "git push"], 1, "", "approval.ask of ");
    check(
        &["remove", "git push"],
        1,
        "",
        "`karyi config edit` opens it",
    );
    check(
        &["remove", "curl"],
        1,
        "",
        "approval.deny of WORK/.karyi/config.toml: edit it",
    );
}

#[test]
fn stored_rules_and_files_are_explained() {
    let karyi = Karyi::with_args(&["policy"]);
    for args in [
        &["add", "cargo test *"] as &[&str],
        &["add", "--deny", "edit:**/.env"],
        &["add", "fetch:example.com"],
    ] {
        assert_eq!(policy(&karyi, args).0, 0);
    }
    let fetched = "it is asked about\n  GET http://h:8080/x: it sends a request to h:8080; the rule `fetch:h:8080` \
                   allows it\n";
    let written = "it is asked about\n  src/a: it writes a file; the rule `edit:src/a` allows it\n";
    let denied = "it does not run: the rule `edit:**/.env` does not permit it\n";
    for (call, expected) in [
        ("cargo test -q", "it runs\n"),
        ("read:/etc/passwd", "it runs\n"),
        ("edit:src/a", written),
        ("edit:sub/.env", denied),
        ("fetch:https://EXAMPLE.com/x", "it runs\n"),
        ("fetch:http://h:8080/x", fetched),
    ] {
        let found = policy(&karyi, &["explain", call]);
        assert_eq!(
            (found.0, found.1.as_str()),
            (0, expected),
            "{call} {found:?}"
        );
    }
}

#[test]
fn settings_of_a_project_widen_only_when_it_is_trusted() {
    let karyi = Karyi::with_args(&["policy"])
        .file(
            ".karyi/config.toml",
            "[approval]\nmode = \"full\"\nallow = [\"curl *\"]\n",
        )
        .file("sub/x", "");
    let told = "wants the mode full and rules that allow calls, which does not count";
    let list = |expected: &[&str]| {
        let (code, text, error) = policy(&karyi, &["list"]);
        let lines = text.lines();
        let lines = lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
        assert_eq!(
            (code, lines.collect::<Vec<_>>()),
            (0, expected.iter().map(ToString::to_string).collect())
        );
        error
    };
    assert!(list(&["mode ask"]).contains(told));
    let trusted = (0, "trusted: WORK\n".to_owned(), String::new());
    assert_eq!(policy(&karyi, &["trust"]), trusted);
    let rule = "allow curl * .karyi/config.toml of the project";
    let lines = ["mode full", "trust yes stored for this project", rule];
    assert_eq!(list(&lines), "");
    let (code, text, _) = policy(&karyi, &["untrust", "sub"]);
    assert_eq!((code, text.as_str()), (0, "not trusted: WORK/sub\n"));
    assert_eq!(list(&lines), "");
    policy(&karyi, &["untrust"]);
    assert!(list(&["mode ask", "trust no stored for this project"]).contains(told));
    assert_eq!(policy(&karyi, &["trust", "sub/x"]).0, 2);
}
