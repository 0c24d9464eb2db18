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
