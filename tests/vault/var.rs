//! `karyi var` as its users type it.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::home::Home;
use crate::harness::Karyi;

pub const VALUE: &str = "S3cr3t-T0ken/Val+ue_AbCdEf0123456789xyz";

fn mode(path: &std::path::Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_value_is_kept_listed_and_removed() {
    let home = Home::new();
    home.set(
        "TOKEN",
        &format!("{VALUE}\n"),
        &["--note", "for deploys", "--use", "ask"],
    );
    home.assert_nowhere(VALUE);
    assert_eq!(
        (mode(&home.index()), mode(home.index().parent().unwrap())),
        (0o600, 0o700)
    );
    assert_eq!(mode(&home.path().join("karyi/data/vault.age")), 0o600);

    let listed = home.karyi(&["var", "list"], "").exit(0).hides(VALUE);
    let today = jiff::Timestamp::now().strftime("%Y-%m-").to_string();
    for part in ["TOKEN", "age", &today, "use=ask", "for deploys"] {
        assert!(listed.stdout.contains(part), "{part}: {}", listed.stdout);
    }
    assert!(!listed.stdout.contains("39"), "{}", listed.stdout);
    let json = home
        .karyi(&["var", "list", "--json"], "")
        .exit(0)
        .hides(VALUE)
        .json();
    let first = &json["secrets"][0];
    assert_eq!(
        (
            &json["store"],
            &first["name"],
            &first["note"],
            &first["state"],
            &first["policy"]["use"]
        ),
        (
            &"age".into(),
            &"TOKEN".into(),
            &"for deploys".into(),
            &"unknown".into(),
            &"ask".into()
        )
    );

    home.karyi(&["var", "rm", "TOKEN"], "").exit(0);
    let empty = home.karyi(&["var", "list"], "").exit(0);
    let told = "karyi: no secrets yet; `karyi var set NAME` stores one\n";
    assert_eq!((empty.stdout.as_str(), empty.stderr.as_str()), ("", told));
    let empty = home.karyi(&["var", "list", "--json"], "").exit(0).json();
    assert_eq!(empty["secrets"], serde_json::json!([]));
    home.karyi(&["var", "show", "TOKEN"], "")
        .exit(1)
        .error("not_found");
}

#[test]
fn a_value_as_an_argument_is_refused() {
    let home = Home::new();
    for args in [
        ["var", "set", "TOKEN", VALUE].as_slice(),
        &["var", "set", "TOKEN", VALUE, "more"],
        &["var", "set", "--vault", "age", "TOKEN", VALUE],
        &["var", "set", &format!("TOKEN={VALUE}")],
    ] {
        let ran = home.karyi(args, "").exit(2).error("usage").hides(VALUE);
        assert!(
            ran.stderr.contains("never taken as an argument")
                && ran.stderr.contains("remove that line from the history"),
            "{}",
            ran.stderr
        );
    }
    assert!(!home.index().exists());
}

#[test]
fn short_and_broken_values_are_refused() {
    let home = Home::new();
    let identity = home.identity();
    let set = |value: &str, more: &[&str]| {
        let mut args = vec!["var", "set", "TOKEN", "--stdin", "--vault", "age"];
        args.extend(["--age-identity", identity.to_str().unwrap()]);
        args.extend(more);
        home.karyi(&args, value)
    };
    for value in [
        "",
        "\n",
        "abc",
        "a\0bcdefghi",
        "pw1!z",
        &"x".repeat(70 << 10),
    ] {
        set(value, &[]).exit(2).error("bad_value");
    }
    for value in ["abc", "       ", "a  b  c  \t", "\n\n\n\n\n\n\n\n"] {
        set(value, &["--allow-short", "--raw"])
            .exit(2)
            .error("bad_value");
    }
    // What is refused is not warned of first.
    let refused = set("pw1!z", &[]).exit(2).stderr;
    assert!(
        !refused.contains("warning") && refused.contains("TOKEN"),
        "{refused}"
    );
    let spaced = set("p w 1 ! z", &[]).exit(2).stderr;
    assert!(
        !spaced.contains("warning") && spaced.contains("--allow-short"),
        "{spaced}"
    );
    assert!(!home.index().exists());
    let benign = home.script("<tools><command>echo abc abcabc</command></tools>");
    assert!(benign.exit(0).stdout.contains(">abc abcabc\n"));
    let warned = set("pw1!z", &["--allow-short"]).exit(0).stderr;
    assert!(warned.contains("warning: "), "{warned}");
    let shown = home.script("<tools><command>echo pw1!z; echo apw1!zb</command></tools>");
    let shown = shown.exit(0).stdout;
    assert!(shown.contains(">$KARYI{TOKEN}\napw1!zb\n"), "{shown}");
    set("long-enough", &["--tools", "nothing"])
        .exit(2)
        .error("bad_policy");
    // Quoted, so that no shell has read it.
    set("long-enough", &["--dirs", "~/work"])
        .exit(2)
        .error("bad_policy");
    set("long-enough", &["--note", "two\nlines"])
        .exit(2)
        .error("bad_arguments");
}

#[test]
fn names_are_refused_or_kept_as_documented() {
    let home = Home::new();
    for name in ["lower", "_x", "N9", "MiXed_9", &"L".repeat(64)] {
        home.set(name, VALUE, &[]);
    }
    let before = home.karyi(&["var", "list"], "").stdout;
    assert_eq!(before.lines().count(), 6, "{before}");
    for name in [
        "名",
        &"L".repeat(65),
        "../x",
        "A@B",
        "9N",
        "",
        "A B",
        ".journal",
        "LOWER",
        "n9",
    ] {
        let ran = home.karyi(&["var", "set", "--stdin", "--", name], VALUE);
        ran.exit(2).error("bad_arguments");
    }
    for args in [
        ["var", "rename", "lower", "_x"],
        ["var", "rename", "lower", "mixed_9"],
    ] {
        home.karyi(&args, "").exit(2).error("bad_arguments");
    }
    for args in [
        ["var", "get", "A-B"],
        ["var", "rm", "A-B"],
        ["var", "show", "A-B"],
    ] {
        home.karyi(&args, "").exit(2).error("bad_arguments");
    }
    assert_eq!(home.karyi(&["var", "list"], "").stdout, before);
    let mut entries: Vec<_> = fs::read_dir(home.path().join("karyi/data"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    entries.sort();
    assert_eq!(
        entries,
        ["vars.json", "vars.lock", "vault.age", "vault.lock"]
    );
}

#[test]
fn values_are_shown_on_a_terminal_only() {
    let home = Home::new();
    home.set("TOKEN", VALUE, &[]);
    for args in [["var", "get", "TOKEN"].as_slice(), &["var", "export"]] {
        home.karyi(args, "")
            .exit(1)
            .error("permission_denied")
            .hides(VALUE);
    }
    for (args, expected) in [
        (["var", "get", "TOKEN"].as_slice(), VALUE.to_owned()),
        (&["var", "export"], format!("TOKEN={VALUE}")),
    ] {
        let karyi = Karyi::with_args(args).env("KARYI_HOME", home.path().join("karyi"));
        let (screen, status) = karyi.on_terminal().end();
        assert_eq!((screen.trim(), status), (expected.as_str(), 0));
    }
}

#[test]
fn a_typed_value_is_hidden_and_the_terminal_given_back() {
    let home = Home::new();
    let identity = home.identity();
    let args = [
        "var",
        "set",
        "TOKEN",
        "--vault",
        "age",
        "--age-identity",
        identity.to_str().unwrap(),
    ];
    let start = || {
        let karyi = Karyi::with_args(&args).env("KARYI_HOME", home.path().join("karyi"));
        let mut terminal = karyi.on_terminal();
        terminal.expect("value of TOKEN (hidden");
        terminal
    };
    let mut terminal = start();
    assert!(!terminal.is_echoing());
    terminal.keys(VALUE).keys("\r").expect("TOKEN is stored");
    let (screen, status) = terminal.end();
    assert!(!screen.contains("S3cr3t"), "{screen}");
    assert_eq!(status, 0);
    let used = "<tools><command>printf %s \"$KARYI{TOKEN}\" | wc -c</command></tools>";
    assert!(home.script(used).exit(0).stdout.contains(">39\n"));

    for (signal, code) in [
        (Signal::SIGTERM, 143),
        (Signal::SIGHUP, 129),
        (Signal::SIGINT, 130),
    ] {
        let terminal = start();
        kill(Pid::from_raw(terminal.pid()), signal).unwrap();
        assert_eq!(terminal.echo_at_end(), (true, code));
    }
    let mut terminal = start();
    terminal.keys("\x03");
    assert_eq!(terminal.echo_at_end(), (true, 130));
}

#[test]
fn the_passphrase_is_asked_for() {
    let home = Home::locked(VALUE);
    let on_terminal = |args: &[&str]| {
        Karyi::with_args(args)
            .env("KARYI_HOME", home.path().join("karyi"))
            .on_terminal()
    };
    let script = "<tools><command>printf %s \"$KARYI{TOKEN}\" | wc -c</command></tools>";
    let mut terminal = on_terminal(&["run", "--format", "xml", "-c", script]);
    terminal.expect("passphrase of the vault").keys("pass-1\r");
    let (screen, status) = terminal.end();
    assert!(screen.contains(">39"), "{screen}");
    assert_eq!(status, 0);

    // Who presses Ctrl+C there wants nothing to go on, and least of all without masks.
    let script = "<tools><command>echo went on</command></tools>";
    let mut terminal = on_terminal(&["run", "--format", "xml", "-c", script]);
    terminal.expect("passphrase of the vault").keys("\x03");
    let (screen, status) = terminal.end();
    assert!(!screen.contains("went on"), "{screen}");
    assert_eq!(status, 130);
}

#[test]
fn settings_are_not_imported_as_secrets() {
    let home = Home::new();
    home.set("KEPT_TOKEN", VALUE, &[]);
    let file = home.work().join(".env");
    let text = "# settings\nNODE_ENV=production\nAPI_TOKEN='imp0rted value'\nexport DB_URL=postgres://u:p4ssword@h/db\n\
         PORT=8080\nKEPT_TOKEN=another-value\nno assignment\nBAD-NAME_TOKEN=imp0rted-2\n";
    fs::write(&file, text).unwrap();
    let import = |more: &[&str]| {
        let mut args = vec!["var", "import", ".env"];
        args.extend(more);
        home.karyi(&args, "").hides("imp0rted").hides("p4ssword")
    };
    let proposed = import(&[]).exit(0);
    assert_eq!(proposed.stdout, "API_TOKEN\nDB_URL\nKEPT_TOKEN\n");
    assert!(
        proposed.stderr.contains("line 7 is no KEY=value"),
        "{}",
        proposed.stderr
    );
    let left = [
        "line 2, NODE_ENV: neither its name nor its value",
        "line 5, PORT: its value is shorter than 8 bytes",
        "line 8: it has no name that can be kept",
        "`karyi var import .env --yes` keeps these",
    ];
    for told in left {
        assert!(proposed.stderr.contains(told), "{}", proposed.stderr);
    }
    let names = || {
        let json = home.karyi(&["var", "list", "--json"], "").json();
        let secrets = json["secrets"].as_array().unwrap().clone();
        secrets
            .iter()
            .map(|secret| secret["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(), ["KEPT_TOKEN"]);
    let kept = import(&["--yes"]).exit(0);
    assert_eq!(names(), ["API_TOKEN", "DB_URL", "KEPT_TOKEN"]);
    // The password has 8 bytes and is fine.
    assert!(!kept.stderr.contains("warning: the"), "{}", kept.stderr);
    let short = import(&["--select", "NODE_ENV,PORT"]).exit(1).stderr;
    assert!(short.contains("--allow-short"), "{short}");
    assert_eq!(names(), ["API_TOKEN", "DB_URL", "KEPT_TOKEN", "NODE_ENV"]);
    let none = import(&["--select", "NOTHING"]).exit(1);
    let none = none.error("not_found").stderr;
    assert!(none.contains("no entry for name number 1 after"), "{none}");
    // What stands there may be a value.
    let mistaken = import(&["--select", "PORT,imp0rted-2"]).exit(1);
    assert!(
        mistaken.error("not_found").stderr.contains("number 2"),
        "{names:?}",
        names = names()
    );
    let used = "<tools><command>printf %s \"$KARYI{KEPT_TOKEN}\" | wc -c; printf %s \"$KARYI{API_TOKEN}\" | wc -c</command></tools>";
    assert!(home.script(used).exit(0).stdout.contains(">39\n14\n"));
    import(&["--yes", "--replace"]).exit(0);
    assert!(home.script(used).exit(0).stdout.contains(">13\n14\n"));
}

#[test]
fn a_key_is_kept_as_one_secret() {
    let home = Home::new();
    let key =
        "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQ==\n-----END PRIVATE KEY-----\n";
    for (name, text) in [
        ("key.pem", key),
        ("account.json", "{\n\"private_key\": \"MIIEvQ=\"}"),
    ] {
        fs::write(home.work().join(name), text).unwrap();
        let ran = home
            .karyi(&["var", "import", name], "")
            .exit(2)
            .error("bad_arguments");
        assert!(ran.stderr.contains("|file}"), "{}", ran.stderr);
        assert_eq!(ran.stdout, "");
    }
    fs::write(home.work().join(".env"), format!("TLS=\"{key}\"\n")).unwrap();
    let ran = home
        .karyi(&["var", "import", ".env"], "")
        .exit(0)
        .hides("MIIE");
    assert_eq!(ran.stdout, "TLS\n");
    assert!(ran.stderr.contains("$KARYI{TLS|file}"), "{}", ran.stderr);
}

#[test]
fn a_secret_is_rotated_renamed_and_given_to_a_program() {
    let home = Home::new();
    home.set(
        "TOKEN",
        VALUE,
        &["--note", "n", "--write", "--expires", "30d"],
    );
    home.karyi(&["var", "rotate", "TOKEN", "--stdin"], "the-second-value")
        .exit(0);
    home.karyi(&["var", "rotate", "NOTHING", "--stdin"], "the-second-value")
        .exit(2)
        .error("undefined_variable");
    home.karyi(&["var", "set", "TOKEN", "--keep-value", "--use", "ask"], "")
        .exit(0);
    home.karyi(&["var", "rename", "TOKEN", "T2"], "").exit(0);
    let shown = home
        .karyi(&["var", "show", "T2", "--json"], "")
        .exit(0)
        .json();
    assert_eq!(
        (
            &shown["note"],
            &shown["policy"]["write"],
            &shown["policy"]["use"]
        ),
        (&"n".into(), &true.into(), &"ask".into())
    );
    let exec = [
        "var",
        "exec",
        "T2",
        "--",
        "sh",
        "-c",
        "printf %s \"$T2\"; exit 7",
    ];
    assert_eq!(home.karyi(&exec, "").exit(7).stdout, "the-second-value");
    home.karyi(&["var", "exec", "T2"], "").exit(2);
    home.karyi(
        &[
            "var",
            "set",
            "T2",
            "--keep-value",
            "--expires",
            "2020-01-01",
        ],
        "",
    )
    .exit(0);
    home.karyi(&exec, "").exit(1).error("secret_expired");
    home.karyi(&["var", "rotate", "T2", "--stdin"], "the-third-value")
        .exit(1)
        .error("secret_expired");
    home.karyi(
        &["var", "rotate", "T2", "--stdin", "--expires", "30d"],
        "the-third-value",
    )
    .exit(0);
    assert_eq!(home.karyi(&exec, "").exit(7).stdout, "the-third-value");
}

#[test]
fn a_program_of_the_user_is_held_to_the_policy() {
    let home = Home::new();
    let exec = |more: &[&str]| {
        home.set("TOKEN", VALUE, more);
        home.karyi(&["var", "exec", "TOKEN", "--", "sh", "-c", "echo ran"], "")
    };
    let ran = exec(&["--commands", "sh", "--use", "ask"]).exit(0);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("ran\n", ""));
    let ran = exec(&["--commands", "curl"]).exit(0);
    assert!(
        ran.stderr
            .contains("TOKEN is meant for other programs than sh"),
        "{}",
        ran.stderr
    );
    exec(&["--dirs", "/nowhere"]).exit(1).error("policy_denied");
    exec(&["--dirs", home.work().to_str().unwrap(), "--tools", "edit"])
        .exit(1)
        .error("policy_denied");
    home.karyi(&["var", "rm", "TOKEN"], "").exit(0);
    exec(&["--hosts", "api.example.com", "--output", "sealed"])
        .exit(2)
        .error("sealed_in_shell");
}

#[test]
fn no_error_repeats_a_value_that_is_an_argument() {
    let home = Home::new();
    home.set("TOKEN", "a-value-of-its-own", &[]);
    let pair = format!("TOKEN={VALUE}");
    let stdin = format!("--stdin={VALUE}");
    let flag = format!("--{VALUE}");
    let joined = format!("--vars-fd={VALUE}");
    for args in [
        ["var", "set", &pair, "--stdin"].as_slice(),
        &["var", "set", "TOKEN", &stdin],
        &["var", "set", "TOKEN", &flag],
        &["var", "set", "TOKEN", "--age-passphrase-fd", VALUE],
        &["var", "set", "TOKEN", "--use", VALUE],
        &["var", "set", "TOKEN", "--expires", VALUE],
        &["var", "set", "TOKEN", "--tools", VALUE],
        &["var", "set", "TOKEN", "--hosts", VALUE],
        &["var", "get", "TOKEN", VALUE],
        &["var", "get", &pair],
        &["var", "show", &pair],
        &["var", "rm", &pair],
        &["var", "rotate", "TOKEN", VALUE],
        &["var", VALUE],
        &["run", "--vars-fd", &pair],
        &["run", &joined],
        &["run", "--age-passphrase-fd", VALUE],
        &["history", "--age-passphrase-fd", VALUE],
        &["var", "exec", "TOKEN", "--", VALUE],
    ] {
        let ran = home.karyi(args, "the-value-of-q1");
        let expected = if args.contains(&"--") { 127 } else { 2 };
        assert_eq!(ran.code, expected, "{args:?}: {}", ran.stderr);
        assert!(!ran.stderr.contains("S3cr3t"), "{args:?}: {}", ran.stderr);
    }
}

#[test]
fn what_a_policy_permits_is_taken_back() {
    let home = Home::new();
    let keep = |more: &[&str]| {
        home.karyi(
            &[&["var", "set", "TOKEN", "--keep-value"], more].concat(),
            "",
        )
    };
    let policy = || {
        home.karyi(&["var", "show", "TOKEN", "--json"], "")
            .exit(0)
            .json()["policy"]
            .clone()
    };
    home.set("TOKEN", VALUE, &[]);
    let usual = policy();
    let dir = home.work();
    let all = [
        "--write",
        "--allow-short",
        "--hosts",
        "a.example.com",
        "--commands",
        "curl",
        "--dirs",
    ];
    keep(&[&all[..], &[dir.to_str().unwrap()]].concat()).exit(0);
    assert_ne!(policy(), usual);
    for (flag, key) in [
        ("--no-write", "write"),
        ("--no-allow-short", "allow_short"),
        ("--no-hosts", "hosts"),
        ("--no-commands", "commands"),
        ("--no-dirs", "dirs"),
    ] {
        let before = policy();
        keep(&[flag]).exit(0);
        assert_ne!(before[key], usual[key], "{flag}");
        assert_eq!(policy()[key], usual[key], "{flag}");
    }
    assert_eq!(policy(), usual);
    // The policy of the value is meant, and not the copy that is shown.
    let edit = "<tools><edit><file src=\"f\"><find></find><replace>$KARYI{TOKEN}</replace></file></edit></tools>";
    home.script(edit).exit(1).error("policy_denied");
    keep(&["--write", "--no-write"]).exit(2);
    // A short value needs its permission.
    home.karyi(
        &["var", "set", "SHORT", "--stdin", "--allow-short"],
        "pw1!z",
    )
    .exit(0);
    let short = ["var", "set", "SHORT", "--keep-value", "--no-allow-short"];
    home.karyi(&short, "").exit(2).error("bad_value");
    // A file of policies can only narrow.
    let file = home.path().join("policy.toml");
    for key in ["any-command", "any_command", "any-dir", "no-dirs"] {
        fs::write(&file, format!("[secret.TOKEN]\n{key} = true\n")).unwrap();
        let args = ["run", "--policy", file.to_str().unwrap(), "-c", "<tools/>"];
        let ran = home.karyi(&args, "");
        assert_eq!(ran.code, 2, "{}", ran.stderr);
        assert!(ran.stderr.contains("unknown field"), "{}", ran.stderr);
    }
}
