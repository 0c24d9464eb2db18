//! What `karyi var` says to who mistook a flag, a store or a place for another one.

use std::fs;

use super::home::Home;
use super::var::VALUE;
use crate::harness::Karyi;
use crate::harness::terminal::Terminal;

fn on_terminal(home: &Home, args: &[&str], pipe: &str) -> Terminal {
    Karyi::with_args(args)
        .env("KARYI_HOME", home.path().join("karyi"))
        .on_terminal_through(pipe)
}

#[track_caller]
fn says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} not in {text}");
    }
}

/// A terminal shows what is typed there.
#[test]
fn standard_input_is_a_pipe_or_is_not_read() {
    let home = Home::new();
    home.set("TOKEN", VALUE, &[]);
    for args in [
        ["var", "set", "TOKEN", "--stdin"],
        ["var", "rotate", "TOKEN", "--stdin"],
    ] {
        let (screen, status) = on_terminal(&home, &args, "").end();
        says(&screen, &["usage: --stdin reads", "leave out --stdin"]);
        assert_eq!(status, 2);
    }
    let mut terminal = on_terminal(&home, &["var", "set", "TOKEN"], "echo piped-value |");
    terminal.expect("standard input is not read without --stdin");
    terminal.expect("value of TOKEN (hidden").keys("\x1b");
    assert_eq!(terminal.end().1, 1);
    let mut terminal = on_terminal(&home, &["var", "set", "TOKEN"], "</dev/null");
    terminal.expect("value of TOKEN (hidden").keys("\x1b");
    let (screen, _) = terminal.end();
    assert!(!screen.contains("standard input"), "{screen}");
}

#[test]
fn one_descriptor_gives_one_thing() {
    let home = Home::new();
    let args = ["var", "set", "TOKEN", "--stdin", "--vault", "age"];
    let both = [&args[..], &["--age-passphrase-fd", "0"]].concat();
    let ran = home.karyi(&both, VALUE).exit(2).error("usage");
    says(&ran.stderr, &["both want standard input"]);
    let identity = home.identity();
    let key = ["--age-identity", identity.to_str().unwrap()];
    let empty = home.karyi(&[&args[..], &key].concat(), "").exit(2);
    let empty = empty.error("bad_value").stderr;
    assert!(
        empty.contains("is empty") && !empty.contains("needs no vault"),
        "{empty}"
    );
}

#[test]
fn a_value_that_is_replaced_is_told() {
    let home = Home::new();
    let set = |value: &str| {
        let identity = home.identity();
        let key = ["--vault", "age", "--age-identity"];
        let args = [
            &["var", "set", "TOKEN", "--stdin"],
            &key[..],
            &[identity.to_str().unwrap()],
        ];
        home.karyi(&args.concat(), value).exit(0).stderr
    };
    assert_eq!(set(VALUE), "karyi: TOKEN is stored in the store age\n");
    let today = jiff::Timestamp::now().strftime("%Y-%m-").to_string();
    let old = format!("in place of the one of {today}");
    says(&set("another-value"), &[&old]);
    let mut terminal = on_terminal(&home, &["var", "set", "TOKEN"], "");
    terminal.expect("the new value of TOKEN replaces the one of");
    terminal.expect("value of TOKEN (hidden");
    terminal.keys("a-third-value\r");
    let (screen, status) = terminal.end();
    says(&screen, &["in place of the one of"]);
    assert_eq!(status, 0);
    let noted = ["var", "set", "TOKEN", "--keep-value", "--note", "n"];
    let noted = home.karyi(&noted, "").exit(0).stderr;
    assert!(!noted.contains("place"), "{noted}");
}

#[test]
fn a_store_that_runs_do_not_use_is_told() {
    let home = Home::new();
    let data = home.index().parent().unwrap().to_owned();
    fs::create_dir_all(&data).unwrap();
    let index = r#"{"version":1,"generation":2,"store":{"kind":"os"},"names":{}}"#;
    fs::write(home.index(), index).unwrap();
    let identity = home.identity();
    let key = ["--age-identity", identity.to_str().unwrap()];
    let args = ["var", "set", "TOKEN", "--stdin", "--vault", "age"];
    let ran = home.karyi(&[&args[..], &key].concat(), VALUE).exit(0);
    let expected = "runs use the store os, and will neither use nor mask TOKEN";
    says(&ran.stderr, &[expected, "migrate --vault age --to os"]);
}

#[test]
fn where_nothing_is_kept_no_name_is_there() {
    let home = Home::new();
    let ran = home.karyi(&["var", "rm", "NOPE"], "").exit(1);
    says(
        &ran.error("not_found").stderr,
        &["there is no secret called NOPE"],
    );
    let env = home.karyi(&["var", "list", "--vault", "env"], "").exit(0);
    assert!(!env.stderr.contains("no secrets yet"), "{}", env.stderr);
    says(&env.stderr, &["from KARYI_VAR_NAME"]);
}

#[test]
fn a_policy_is_shown_in_the_words_of_its_flags() {
    let home = Home::new();
    home.set("TOKEN", "pw1!z", &["--allow-short"]);
    for args in [&["var", "list"][..], &["var", "show", "TOKEN"]] {
        let shown = home.karyi(args, "").exit(0).stdout;
        assert!(
            shown.contains("allow-short") && !shown.contains("allow_short"),
            "{shown}"
        );
    }
    let json = home.karyi(&["var", "show", "TOKEN", "--json"], "").json();
    assert_eq!(json["policy"]["allow_short"], true);
}

#[test]
fn a_place_that_is_none_is_told_to_a_person() {
    let home = Home::new().env("KARYI_HOME", "/proc");
    let identity = home.identity();
    let key = ["--age-identity", identity.to_str().unwrap()];
    let args = ["var", "set", "TOKEN", "--stdin", "--vault", "age"];
    let ran = home.karyi(&[&args[..], &key].concat(), VALUE);
    assert!(!ran.stderr.contains("<read>"), "{}", ran.stderr);
    says(&ran.stderr, &["set KARYI_HOME, or HOME"]);
    let home = Home::new().env("KARYI_HOME", "").env("HOME", "");
    let ran = home.karyi(&["var", "list"], "").exit(1).error("not_found");
    says(&ran.stderr, &["set KARYI_HOME, or HOME"]);
}

#[test]
fn a_key_that_cannot_be_used_is_no_key_of_before() {
    let home = Home::new();
    fs::write(home.identity(), "AGE-SECRET-KEY-\n").unwrap();
    let identity = home.identity();
    let key = ["--age-identity", identity.to_str().unwrap()];
    let args = ["var", "set", "TOKEN", "--stdin", "--vault", "age"];
    let ran = home.karyi(&[&args[..], &key].concat(), VALUE).exit(3);
    let told = ran.error("wrong_key").stderr;
    assert!(!told.contains("was made with"), "{told}");
    says(&told, &["ed25519 or rsa", "--age-passphrase-fd N"]);
}

#[test]
fn what_is_meant_is_said_and_not_what_was_typed() {
    let home = Home::new();
    for (args, expected) in [
        (&["var", "ls"][..], "probably list"),
        (&["var", "remove", VALUE], "probably rm"),
        (&["var", "lst"], "probably list"),
        (&["var", "lst"], "`karyi var --help` those of the vault"),
        (
            &["var", "list", "--vault", VALUE],
            "auto or os or age or memory or env at --vault",
        ),
        (&["var", "exec", "A", "sh", "-c", VALUE], "exec NAME -- CMD"),
    ] {
        let ran = home.karyi(args, "").exit(2).error("usage").hides(VALUE);
        says(&ran.stderr, &[expected]);
    }
}

#[test]
fn set_warns_of_what_is_probably_a_mistake() {
    let home = Home::new();
    home.set("FINE", VALUE, &[]);
    let odd = [
        ("A", "Bearer abcdefgh", &[][..]),
        ("B", "token-123 ", &[]),
        ("C", "token-124\n", &["--raw"]),
        ("D", "\"token-125\"", &[]),
        ("E", "<your-token>", &[]),
        ("F", "pw1!z", &["--allow-short"]),
        ("token_126", "token_126", &[]),
        ("G", "https://u:pw1z@example.com/a", &[]),
        ("H", "token-127", &["--dirs", "/nonexistent"]),
    ];
    let mut warned = Vec::new();
    for (name, value, more) in odd {
        let args = [&["var", "set", name, "--stdin"], more].concat();
        let told = home.karyi(&args, value).exit(0).stderr;
        let told = told
            .lines()
            .filter_map(|line| line.strip_prefix("karyi: warning: "));
        warned.extend(told.map(str::to_owned));
    }
    assert!(warned.len() >= odd.len(), "{warned:?}");
    // Nothing needs to be done about it: what looks like a mistake may be meant.
    home.karyi(&["var", "doctor"], "").exit(0);
}

#[test]
fn a_secret_that_has_expired_is_told() {
    let home = Home::new();
    let listed = |name: &str| {
        let json = home.karyi(&["var", "show", name, "--json"], "").json();
        (json["expired"].clone(), json["state"].clone())
    };
    home.set("FINE", "another-value", &["--expires", "2999-01-01"]);
    home.set("TOKEN", VALUE, &["--expires", "2020-01-01"]);
    assert_eq!(listed("FINE"), (false.into(), "unknown".into()));
    assert_eq!(listed("TOKEN"), (true.into(), "unknown".into()));
    let table = home.karyi(&["var", "list"], "").exit(0).stdout;
    let expired = table.lines().filter(|line| line.contains("  expired  "));
    let names: Vec<&str> = expired.filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(names, ["TOKEN"], "{table}");
    let shown = home.karyi(&["var", "show", "TOKEN"], "").exit(0).stdout;
    says(&shown, &["expired      true\n"]);
    let doctor = home.karyi(&["var", "doctor"], "").exit(1).hides(VALUE);
    let expected = [
        "limited  policies   TOKEN expired on 2020-01-01",
        "to do: give it a new value with `karyi var rotate TOKEN --expires WHEN`, or a later end with `karyi var set \
         TOKEN --keep-value --expires WHEN`",
    ];
    says(&doctor.stdout, &expected);
    // The kept policy is that of the new value.
    let set = home.karyi(&["var", "set", "TOKEN", "--stdin"], "token-321");
    says(
        &set.exit(0).stderr,
        &["until --expires sets a later expiry"],
    );
    let set = ["var", "set", "TOKEN", "--keep-value", "--expires", "never"];
    let set = home.karyi(&set, "").exit(0).stderr;
    assert!(!set.contains("warning"), "{set}");
    home.karyi(&["var", "doctor"], "").exit(0);
}

#[test]
fn a_name_that_no_secret_has_leads_to_those_there_are() {
    let home = Home::new();
    home.set("TOKEN", VALUE, &[]);
    for (name, hint) in [
        ("NOPE", "see `karyi var list`; `karyi var set NOPE`"),
        ("token", "hint: the secret is called TOKEN"),
    ] {
        for args in [
            &["var", "rename", name, "NEW"][..],
            &["var", "rotate", name, "--stdin"],
            &["var", "exec", name, "--", "true"],
            &["var", "set", name, "--keep-value"],
        ] {
            let ran = home.karyi(args, VALUE).exit(2);
            says(&ran.error("undefined_variable").stderr, &[hint]);
        }
        let (screen, status) = on_terminal(&home, &["var", "get", name], "").end();
        says(&screen, &[hint]);
        assert_eq!(status, 2);
    }
}

#[test]
fn what_was_removed_or_renamed_is_told() {
    let home = Home::new();
    for name in ["ONE", "TWO", "THREE"] {
        home.set(name, VALUE, &[]);
    }
    let told = |args: &[&str]| {
        let ran = home.karyi(&[&["var"], args].concat(), "").exit(0);
        assert_eq!(ran.stdout, "");
        ran.stderr
    };
    let removed = told(&["rm", "TWO", "ONE"]);
    let expected =
        "karyi: ONE is removed from the store age\nkaryi: TWO is removed from the store age\n";
    assert_eq!(removed, expected);
    let renamed = told(&["rename", "THREE", "FOUR"]);
    assert_eq!(renamed, "karyi: THREE is now called FOUR\n");
}

#[test]
fn what_opens_no_store_leads_to_one_that_does() {
    let home = Home::new();
    let set = ["var", "set", "TOKEN", "--stdin"];
    let ran = home.karyi(&set, VALUE).exit(3);
    let told = ran.error("keyring_unavailable").stderr;
    says(
        &told,
        &["--vault age", "karyi var set TOKEN --stdin --vault age"],
    );
    home.set("TOKEN", VALUE, &[]);
    fs::remove_file(home.identity()).unwrap();
    let ran = home.karyi(&set, VALUE).exit(3);
    says(&ran.error("wrong_key").stderr, &["restore it, or name"]);
}

/// The command of a hint does what the hint says.
#[test]
fn the_hint_of_a_policy_is_the_whole_command() {
    let home = Home::new();
    let value = "file-1234";
    fs::write(home.work().join(value), "text\n").unwrap();
    let here = home.work().canonicalize().unwrap();
    let read = "<tools><read><file src=\"$KARYI{TOKEN}\"/></read></tools>";
    let write = "<tools><edit><file src=\"f\"><find></find><replace>$KARYI{TOKEN}</replace></file></edit></tools>";
    let echo = "<tools><command>: $KARYI{TOKEN}</command></tools>";
    let sealed = "--output sealed --hosts a.example.com";
    let dirs = format!("--dirs /nowhere,{}", here.display());
    for (policy, script, flags) in [
        ("--tools input", echo, "--tools input,command"),
        (
            "--use session",
            read,
            "--tools command,input,url_fetch,read",
        ),
        ("--use session", write, "--write"),
        ("--dirs /nowhere", echo, &dirs),
        (sealed, echo, "--output redact --tools url_fetch,command"),
        ("--expires 2020-01-01", echo, "--expires WHEN"),
    ] {
        let policy: Vec<&str> = policy.split(' ').collect();
        home.set("TOKEN", value, &policy);
        let refused = home.script(script).stdout;
        let command = format!("karyi var set TOKEN --keep-value {flags}");
        says(&refused, &["ask the user to", &format!("`{command}`")]);
        if script == echo {
            let exec = ["var", "exec", "TOKEN", "--", "true"];
            let refused = home.karyi(&exec, "").stderr;
            assert!(!refused.contains("the user"), "{refused}");
            says(&refused, &[&command]);
        }
        let words = command.replace("WHEN", "30d");
        let words: Vec<&str> = words.split(' ').skip(1).collect();
        home.karyi(&words, "").exit(0);
        home.script(script).exit(0);
        home.karyi(&["var", "rm", "TOKEN"], "").exit(0);
    }
}

#[test]
fn what_no_policy_allows_is_told_before_the_policy() {
    let home = Home::new();
    home.set("TOKEN", VALUE, &[]);
    for (call, code) in [
        ("<search pattern=\"$KARYI{TOKEN}\"/>", "unsafe_context"),
        ("<file src=\"$KARYI{TOKEN|file}\"/>", "bad_placeholder"),
        ("<file src=\"$KARYI{TOKEN}\"/>", "policy_denied"),
    ] {
        let ran = home.script(&format!("<tools><read>{call}</read></tools>"));
        says(&ran.stdout, &[&format!("code=\"{code}\"")]);
    }
}

#[test]
fn a_name_in_the_wrong_case_is_corrected() {
    let home = Home::new();
    home.set("A_TOKEN", VALUE, &[]);
    for more in [&[][..], &["--stream"]] {
        let script = "<tools><command>echo $KARYI{a_token}</command></tools>";
        let args = [&["run", "--no-interactive", "-c", script], more].concat();
        let ran = home.karyi(&args, "").exit(2).error("undefined_variable");
        says(&ran.stdout, &["write $KARYI{A_TOKEN}"]);
        assert!(!ran.stdout.contains("get_value"), "{}", ran.stdout);
    }
}

#[test]
fn a_placeholder_in_the_environment_is_told() {
    let home = Home::new();
    home.set("TOKEN", VALUE, &[]);
    let script = "<tools><command>echo $ZED</command></tools>";
    let run = ["run", "--no-interactive", "-c", script, "--env"];
    let ran = home.karyi(&[&run[..], &["ZED=$KARYI{TOKEN}"]].concat(), "");
    says(&ran.exit(0).stderr, &["placeholder in --env"]);
    let plain = home.karyi(&[&run[..], &["ZED=plain"]].concat(), "").exit(0);
    assert!(!plain.stderr.contains("--env"), "{}", plain.stderr);
}

#[test]
fn why_nobody_is_asked_is_told() {
    let home = Home::new();
    let script = "<tools><get_value key=\"PW\" reason=\"r\"/></tools>";
    for (flags, cause) in [
        (&["--no-interactive"][..], ": --no-interactive, or CI,"),
        (&["--vars-mode", "warn"], ": --vars-mode warn never asks"),
    ] {
        let args = [&["run", "-c", script], flags].concat();
        let ran = home.karyi(&args, "").exit(3);
        says(&ran.stdout, &[cause, "`karyi var set PW`", "--vars-fd"]);
    }
}
