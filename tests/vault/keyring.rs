//! The keyring as it is on real machines: missing, hanging, locked, unlocked, shared with others.

use std::path::Path;
use std::time::{Duration, Instant};

use super::bus::{Bus, Provider, is_there};
use super::home::Home;
use crate::harness::{Karyi, program, skip};

const VALUE: &str = "S3cr3t-T0ken/Val+ue_AbCdEf0123456789xyz";

/// The time a busy machine gets for what takes a moment, on top of the deadline.
const SLACK: Duration = Duration::from_secs(20);

fn on(bus: &Bus) -> Home {
    Home::new().env("DBUS_SESSION_BUS_ADDRESS", &bus.address)
}

/// Asserts that keeping a value fails with this code, in time, and leaves nothing behind.
#[track_caller]
fn check_failure(home: &Home, code: &str, at_least: Duration) {
    let start = Instant::now();
    let ran = home.karyi(&["var", "set", "TOKEN", "--stdin", "--vault", "os"], VALUE);
    let took = start.elapsed();
    println!("{code} after {} ms", took.as_millis());
    ran.exit(3).error(code).hides(VALUE);
    assert!(took >= at_least && took < at_least + SLACK, "{took:?}");
    assert!(!home.index().exists());
    home.assert_nowhere(VALUE);
}

#[test]
fn without_a_bus_there_is_no_keyring() {
    let home = Home::new();
    check_failure(&home, "keyring_unavailable", Duration::ZERO);
    // Nothing was chosen, so nothing else is used instead.
    let ran = home.karyi(&["var", "set", "TOKEN", "--stdin"], VALUE);
    ran.exit(3).error("keyring_unavailable");
    assert!(!home.index().exists());
}

#[test]
fn a_bus_may_have_no_keyring() {
    let bus_home = Home::new();
    let Some(bus) = Bus::start(bus_home.path(), Provider::None) else {
        return;
    };
    check_failure(&on(&bus), "keyring_unavailable", Duration::ZERO);
}

#[test]
fn a_keyring_that_hangs_is_left_alone() {
    let bus_home = Home::new();
    let Some(bus) = Bus::start(bus_home.path(), Provider::Hangs) else {
        return;
    };
    check_failure(&on(&bus), "keyring_timeout", Duration::from_secs(3));
}

#[test]
fn a_locked_keyring_is_told_at_once() {
    let bus_home = Home::new();
    let Some(bus) = Bus::start(bus_home.path(), Provider::Unlocked) else {
        return;
    };
    let set = ["var", "set", "TOKEN", "--stdin", "--vault", "os"];
    on(&bus).karyi(&set, VALUE).exit(0);
    drop(bus);
    let Some(bus) = Bus::start(bus_home.path(), Provider::Locked) else {
        return;
    };
    let home = on(&bus);
    check_failure(&home, "keyring_locked", Duration::ZERO);
    let told = home.karyi(&set, VALUE).stderr;
    assert!(told.contains("gnome-keyring-daemon --unlock"), "{told}");
}

/// As the documentation has it: the first thing on a bus of one's own makes the keyring, and unlocks it later.
#[test]
fn a_keyring_without_a_desktop_is_unlocked_by_who_speaks_to_it_first() {
    for program in ["dbus-run-session", "gnome-keyring-daemon"] {
        if !is_there(program) {
            return skip(&format!("no {program}"));
        }
    }
    let home = Home::new();
    std::fs::write(home.path().join("password"), "pass-1\n").unwrap();
    let run = |command: &str| {
        let unlock =
            "printf %s \"$(cat ../password)\" | gnome-keyring-daemon --unlock --components=secrets";
        let script = format!("{unlock} > /dev/null 2>&1; {command}");
        let args = [
            "--",
            "/bin/bash",
            "-c",
            &script,
            program().to_str().unwrap(),
        ];
        home.spawn(Path::new("dbus-run-session"), &args, VALUE)
            .exit(0)
    };
    run("\"$0\" var set TOKEN --stdin");
    let used = run("\"$0\" var exec TOKEN -- sh -c 'printf %s \"$TOKEN\"'");
    assert_eq!(used.stdout, VALUE);
}

/// A bus whose keyring holds a TOKEN and is locked.
fn locked(bus_home: &Home, provider: Provider) -> Option<Bus> {
    let bus = Bus::start(bus_home.path(), Provider::Unlocked)?;
    let set = ["var", "set", "TOKEN", "--stdin", "--vault", "os"];
    on(&bus).karyi(&set, VALUE).exit(0);
    drop(bus);
    Bus::start(bus_home.path(), provider)
}

/// With a person at the terminal the keyring is asked to unlock; where no dialogue can be shown, or none
/// comes, that is an error in time.
#[test]
fn a_dialogue_that_does_not_come_is_an_error_in_time() {
    for provider in [Provider::Locked, Provider::Prompts] {
        let bus_home = Home::new();
        let Some(bus) = locked(&bus_home, provider) else {
            return;
        };
        let start = Instant::now();
        let mut terminal = Karyi::with_args(&["var", "set", "OTHER", "--vault", "os"])
            .env("DBUS_SESSION_BUS_ADDRESS", bus.address.as_str())
            .on_terminal();
        terminal.expect("keyring_");
        let (screen, status) = terminal.end();
        let took = start.elapsed();
        println!("{} ms: {screen}", took.as_millis());
        assert_eq!(status, 3, "{screen}");
        let is_told = screen.contains("keyring_locked") || screen.contains("keyring_timeout");
        assert!(is_told, "{screen}");
        assert!(took < Duration::from_secs(60) + SLACK, "{took:?}");
    }
}

#[test]
fn what_another_program_kept_under_a_name_is_masked() {
    if !is_there("secret-tool") {
        return skip("no secret-tool");
    }
    let bus_home = Home::new();
    let Some(bus) = Bus::start(bus_home.path(), Provider::Unlocked) else {
        return;
    };
    let home = on(&bus);
    home.karyi(&["var", "set", "TOKEN", "--stdin", "--vault", "os"], VALUE)
        .exit(0);
    home.karyi(&["var", "set", "OTHER", "--stdin"], "other-value-99")
        .exit(0);
    let service = service(&home);
    let tool = Path::new("secret-tool");
    let store = ["store", "--label=x", "service", &service, "username"];
    let store = |more: &[&str], text: &str| {
        let all = [&store[..], more].concat();
        home.spawn(tool, &all, text).exit(0);
    };
    // A second value under a name, and one whose policy this karyi does not know.
    store(&["TOKEN", "extra", "1"], "second-value-77");
    store(&["LATER"], "karyi-secret 2 {}\nlater-value-55");
    let shown =
        "<tools><command>secret-tool search --all --unlock service SERVICE</command></tools>";
    let ran = home.script(&shown.replace("SERVICE", &service)).exit(0);
    let ran = ran.hides(VALUE).hides("second-value-77");
    let ran = ran.hides("later-value-55").hides("other-value-99");
    assert!(
        ran.stdout.contains("unusable_secret") && !ran.stdout.contains("not masked"),
        "{}",
        ran.stdout
    );
    let ran = home.karyi(&["var", "doctor"], "").exit(1);
    assert!(
        ran.stdout.contains("policies") && ran.stdout.contains("LATER"),
        "{}",
        ran.stdout
    );
    let used = "<tools><command>echo $KARYI{LATER}</command></tools>";
    home.script(used).exit(3).hides("later-value-55");
}

/// Returns the service name under which the keyring holds TOKEN.
fn service(home: &Home) -> String {
    let tool = Path::new("secret-tool");
    let found = home.spawn(tool, &["search", "--all", "username", "TOKEN"], "");
    let all = format!("{}{}", found.stdout, found.stderr);
    let line = all
        .lines()
        .find_map(|line| line.strip_prefix("attribute.service = "));
    line.unwrap_or_else(|| panic!("{all}")).to_owned()
}

#[test]
fn the_keyring_is_shared_with_other_programs() {
    if !is_there("secret-tool") {
        return skip("no secret-tool");
    }
    let bus_home = Home::new();
    let Some(bus) = Bus::start(bus_home.path(), Provider::Unlocked) else {
        return;
    };
    let home = on(&bus);
    home.karyi(
        &["var", "set", "TOKEN", "--stdin", "--note", "a note"],
        VALUE,
    )
    .exit(0);
    home.assert_nowhere(VALUE);

    // The name in the keyring depends on KARYI_HOME.
    let listed = home
        .karyi(&["var", "list", "--json"], "")
        .exit(0)
        .hides(VALUE)
        .json();
    assert_eq!(listed["store"], "os");
    let tool = Path::new("secret-tool");
    let found = home.spawn(tool, &["search", "--all", "username", "TOKEN"], "");
    let service = service(&home);
    assert!(
        service.starts_with("karyi:") && service.len() == 14,
        "{service}"
    );
    assert!(found.stdout.contains(VALUE));

    let store = [
        "store",
        "--label=x",
        "service",
        &service,
        "username",
        "OTHER",
    ];
    home.spawn(tool, &store, "another-value-1").exit(0);
    let listed = home.karyi(&["var", "list"], "").exit(0);
    assert!(
        listed
            .stdout
            .lines()
            .any(|line| line.starts_with("OTHER") && !line.contains("untracked")),
        "{}",
        listed.stdout
    );
    let ran = home.script(
        "<tools><command>printf %s \"$KARYI{TOKEN}\" | wc -c; echo another-value-1</command></tools>",
    );
    let ran = ran.exit(0).hides(VALUE).hides("another-value-1");
    assert!(ran.stdout.contains("39\n$KARYI{OTHER}"), "{}", ran.stdout);
    // What another program removed is no secret any more.
    let clear = ["clear", "service", &service, "username", "TOKEN"];
    home.spawn(tool, &clear, "").exit(0);
    let listed = home.karyi(&["var", "list"], "").exit(0);
    assert!(!listed.stdout.contains("TOKEN") && listed.stdout.contains("OTHER"));
    home.karyi(&["var", "doctor"], "").exit(0);
}

#[test]
fn many_entries_are_listed_without_their_values() {
    let bus_home = Home::new();
    let Some(bus) = Bus::start(bus_home.path(), Provider::Unlocked) else {
        return;
    };
    let home = on(&bus);
    let line = |at: usize| format!("NAME{at}_TOKEN=some-value-{at}-of-many\n");
    let file = home.work().join("many.env");
    std::fs::write(&file, (0..100).map(line).collect::<String>()).unwrap();
    let import = [
        "var",
        "import",
        file.to_str().unwrap(),
        "--all",
        "--vault",
        "os",
    ];
    let begun = Instant::now();
    home.karyi(&import, "").exit(0);
    println!("import of 100: {} ms", begun.elapsed().as_millis());

    let list = || {
        let listed = home.karyi(&["var", "list"], "").exit(0);
        assert_eq!(listed.stdout.matches("_TOKEN ").count(), 100);
        assert!(!listed.stdout.contains("missing"), "{}", listed.stdout);
    };
    let Some(calls) = bus.calls(bus_home.path(), list) else {
        return;
    };
    assert_eq!(calls.count("GetSecret") + calls.count("GetSecrets"), 0);
    let begun = Instant::now();
    let ran = home.script("<tools><command>echo some-value-42-of-many</command></tools>");
    println!("a run with 100: {} ms", begun.elapsed().as_millis());
    let shown = ran.exit(0).stdout;
    assert!(shown.contains("$KARYI{NAME42_TOKEN}"), "{shown}");
}

/// A home whose TOKEN is in a keyring that is locked, beside the one in use, and the name that karyi has there.
fn beside_a_locked_one(bus_home: &Home) -> Option<(Bus, Home, String)> {
    let bus = Bus::start(bus_home.path(), Provider::Unlocked)?;
    let home = on(&bus);
    let set = ["var", "set", "TOKEN", "--stdin", "--vault", "os"];
    home.karyi(&set, VALUE).exit(0);
    let service = service(&home);
    drop(bus);
    let keyrings = bus_home.path().join("home/.local/share/keyrings");
    std::fs::rename(
        keyrings.join("login.keyring"),
        keyrings.join("other.keyring"),
    )
    .unwrap();
    let bus = Bus::start(bus_home.path(), Provider::Unlocked)?;
    let home = home.env("DBUS_SESSION_BUS_ADDRESS", &bus.address);
    Some((bus, home, service))
}

fn store(home: &Home, service: &str, user: &str, text: &str) {
    let args = ["store", "--label=x", "service", service, "username", user];
    home.spawn(Path::new("secret-tool"), &args, text).exit(0);
}

#[test]
fn where_nobody_is_asked_a_name_that_is_locked_elsewhere_opens_no_dialogue() {
    if !is_there("secret-tool") {
        return skip("no secret-tool");
    }
    let bus_home = Home::new();
    let Some((bus, home, service)) = beside_a_locked_one(&bus_home) else {
        return;
    };
    store(&home, &service, "TOKEN", "token-value-99");
    let exec = ["var", "exec", "TOKEN", "--", "true"];
    let set = ["var", "set", "TOKEN", "--stdin"];
    let calls = bus.calls(bus_home.path(), || {
        home.karyi(&exec, "").exit(3).error("keyring_locked");
        home.karyi(&set, VALUE).exit(3).error("keyring_locked");
    });
    if let Some(calls) = calls {
        assert!(calls.count("SearchItems") > 1);
        assert_eq!((calls.count("Unlock"), calls.count("Prompt")), (0, 0));
    }
}

#[test]
fn values_move_between_file_and_keyring() {
    let bus_home = Home::new();
    let Some(bus) = Bus::start(bus_home.path(), Provider::Unlocked) else {
        return;
    };
    let home = on(&bus);
    home.set("TOKEN", VALUE, &["--write", "--note", "a note"]);
    home.karyi(&["var", "migrate", "--to", "os"], "").exit(0);
    let shown = home
        .karyi(&["var", "show", "TOKEN", "--json"], "")
        .exit(0)
        .json();
    assert_eq!(
        (&shown["store"], &shown["state"]),
        (&"os".into(), &"kept".into())
    );
    assert_eq!(
        (&shown["note"], &shown["policy"]["write"]),
        (&"a note".into(), &true.into())
    );
    let used = "<tools><command>printf %s \"$KARYI{TOKEN}\" | wc -c</command></tools>";
    assert!(home.script(used).exit(0).stdout.contains("39"));
    home.karyi(&["var", "migrate", "--to", "os"], "")
        .exit(2)
        .error("bad_arguments");
    let identity = home.identity();
    let back = [
        "var",
        "migrate",
        "--to",
        "age",
        "--age-identity",
        identity.to_str().unwrap(),
    ];
    home.karyi(&back, "").exit(0);
    let shown = home
        .karyi(&["var", "show", "TOKEN", "--json"], "")
        .exit(0)
        .json();
    assert_eq!(
        (&shown["store"], &shown["state"]),
        (&"age".into(), &"unknown".into())
    );
    assert!(home.script(used).exit(0).stdout.contains("39"));
}

/// A home whose secrets are in a keyring that is gone.
fn without_its_keyring() -> Option<Home> {
    let bus_home = Home::new();
    let bus = Bus::start(bus_home.path(), Provider::Unlocked)?;
    let home = on(&bus);
    home.karyi(&["var", "set", "TOKEN", "--stdin", "--vault", "os"], VALUE)
        .exit(0);
    Some(home)
}

#[test]
fn a_run_goes_on_without_a_keyring_it_does_not_need() {
    let Some(home) = without_its_keyring() else {
        return;
    };
    let ran = home
        .script("<tools><command>echo fine</command></tools>")
        .exit(0);
    assert!(ran.stdout.contains("fine"), "{}", ran.stdout);
    assert_eq!(
        ran.stdout.matches("redaction_incomplete").count(),
        1,
        "{}",
        ran.stdout
    );

    let used = "<tools><command>touch ran</command><command>echo $KARYI{TOKEN}</command></tools>";
    let ran = home.script(used).exit(3);
    assert!(ran.stdout.contains("keyring_unavailable"), "{}", ran.stdout);
    assert!(!home.work().join("ran").exists());

    let required = ["run", "--no-interactive", "--require-vault", "-"];
    let ran = home.karyi(&required, "<tools><command>touch ran</command></tools>");
    ran.exit(3).error("keyring_unavailable");
    assert!(!home.work().join("ran").exists());

    // The list needs no keyring.
    let listed = home.karyi(&["var", "list"], "").exit(0);
    assert!(listed.stdout.contains("TOKEN"), "{}", listed.stdout);
    // Another store is used when the user says so, and never by itself.
    let ran = home
        .karyi(&["run", "--no-interactive", "--vault", "memory", "-"], used)
        .exit(2);
    assert!(ran.stdout.contains("undefined_variable"), "{}", ran.stdout);
}
