//! Questions of a run that has a vault, on a real terminal: the choice to save, and agreement.

use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::bus::{Bus, Provider};
use super::home::Home;
use crate::harness::Karyi;
use crate::harness::terminal::Terminal;

const VALUE: &str = "S3cr3t-T0ken/Val+ue_AbCdEf0123456789xyz";

fn start(home: &Home, blocks: &str) -> Terminal {
    let identity = home.identity();
    let vault = [
        "--vault",
        "age",
        "--age-identity",
        identity.to_str().unwrap(),
    ];
    Karyi::with_args(&["run", "--format", "xml", "a.xml"])
        .args(&vault)
        .file("a.xml", blocks)
        .env("KARYI_HOME", home.path().join("karyi"))
        .on_terminal()
}

const ASK: &str = "<tools><get_value key=\"PW\" reason=\"a test\" note=\"for deploys\"/></tools>\n";
const USE: &str = "<tools><command>printf %s $KARYI{PW} | wc -c</command></tools>\n";

#[test]
fn a_value_can_be_saved() {
    let home = Home::new();
    let mut terminal = start(&home, &format!("{ASK}{USE}{ASK}"));
    terminal.expect("the model asks for PW, in a.xml");
    terminal.expect("value (hidden").keys(VALUE).keys("\r");
    terminal.expect("sa[v]e in the encrypted file").keys("v");
    let (screen, status) = terminal.end();
    for part in ["status=\"saved\"", "<output>39", "status=\"exists\""] {
        assert!(screen.contains(part), "{part}: {screen}");
    }
    assert!(!screen.contains("S3cr3t"), "{screen}");
    assert_eq!(status, 0);
    home.assert_nowhere(VALUE);
    let listed = home.karyi(&["var", "list"], "").exit(0).stdout;
    assert!(
        listed.contains("PW") && listed.contains("for deploys"),
        "{listed}"
    );
    assert!(home.script(USE).exit(0).stdout.contains(">39"));
}

/// Asks for a value where nobody has chosen a store, with the keyring of a bus.
fn unchosen(home: &Home, bus: Option<&Bus>, blocks: &str) -> Terminal {
    let address = bus.map_or("unix:path=/none", |bus| &bus.address);
    let mut terminal = Karyi::with_args(&["run", "--format", "xml", "a.xml"])
        .file("a.xml", blocks)
        .env("KARYI_HOME", home.path().join("karyi"))
        .env("DBUS_SESSION_BUS_ADDRESS", address)
        .on_terminal();
    terminal.expect("value (hidden").keys(VALUE).keys("\r");
    terminal.expect("keep it: [u]se once");
    terminal
}

#[test]
fn the_first_value_ever_can_be_saved_in_the_keyring() {
    let home = Home::new();
    let Some(bus) = Bus::start(home.path(), Provider::Unlocked) else {
        return;
    };
    let mut terminal = unchosen(&home, Some(&bus), &format!("{ASK}{USE}{ASK}"));
    terminal.expect("sa[v]e in the keyring").keys("v");
    let (screen, status) = terminal.end();
    for part in ["status=\"saved\"", "<output>39", "status=\"exists\""] {
        assert!(screen.contains(part), "{part}: {screen}");
    }
    assert!(
        !screen.contains("S3cr3t") && !screen.contains("cannot be saved"),
        "{screen}"
    );
    assert_eq!(status, 0);
    let home = home.env("DBUS_SESSION_BUS_ADDRESS", &bus.address);
    assert!(home.script(USE).exit(0).stdout.contains(">39"));
}

#[test]
fn a_question_says_what_to_do_where_nothing_can_be_saved() {
    let home = Home::new();
    let mut terminal = unchosen(&home, None, &format!("{ASK}{USE}"));
    terminal.keys("v").keys("s");
    let (screen, status) = terminal.end();
    for part in [
        "it cannot be saved: the keyring cannot be used (keyring_unavailable)",
        "`karyi var set NAME --vault age` chooses a file",
        "[s]ession (Enter), [d]eny",
        "status=\"provided\"",
        "<output>39",
    ] {
        assert!(screen.contains(part), "{part}: {screen}");
    }
    assert_eq!(status, 0);
    assert!(!home.index().exists());
}

/// A home with a secret whose use must be agreed to.
fn guarded() -> Home {
    let home = Home::new();
    home.set("PW", VALUE, &["--use", "ask"]);
    home
}

#[test]
fn agreement_is_asked_for_once_and_shows_the_script() {
    let home = guarded();
    let mut terminal = start(&home, &format!("{USE}{USE}"));
    let screen = terminal.expect("agree, for this session?").screen();
    assert!(
        screen.contains("| printf %s $KARYI{PW} | wc -c"),
        "{screen}"
    );
    assert!(!terminal.is_echoing());
    terminal.keys("xy");
    let (screen, status) = terminal.end();
    assert_eq!(
        screen.matches("agree, for this session?").count(),
        1,
        "{screen}"
    );
    assert_eq!(
        (screen.matches("<output>39").count(), status),
        (2, 0),
        "{screen}"
    );
    assert_eq!(home.script(USE).exit(3).error("approval_required").code, 3);
    let allowed = ["run", "--no-interactive", "--allow", "PW", "-"];
    home.karyi(&allowed, USE).exit(0);
}

#[test]
fn nothing_runs_without_agreement_and_the_terminal_is_given_back() {
    let home = guarded();
    let script = USE.replace("printf", "touch ran; printf");
    for (keys, code) in [("n", 1), ("\x1b", 1), ("\x03", 1)] {
        let mut terminal = start(&home, &script);
        terminal.expect("agree, for this session?").keys(keys);
        assert_eq!(terminal.echo_at_end(), (true, code), "{keys:?}");
    }
    for (signal, code) in [
        (Signal::SIGINT, 130),
        (Signal::SIGTERM, 143),
        (Signal::SIGHUP, 129),
    ] {
        let mut terminal = start(&home, &script);
        terminal.expect("agree, for this session?");
        assert!(!terminal.is_echoing());
        kill(Pid::from_raw(terminal.pid()), signal).unwrap();
        assert_eq!(terminal.echo_at_end(), (true, code));
    }
}

#[test]
fn the_terminal_is_given_back_when_a_question_for_a_value_is_interrupted() {
    let home = Home::new();
    for (signal, code) in [
        (Signal::SIGINT, 130),
        (Signal::SIGTERM, 143),
        (Signal::SIGHUP, 129),
    ] {
        let mut terminal = start(&home, ASK);
        terminal.expect("value (hidden").keys("half");
        assert!(!terminal.is_echoing());
        kill(Pid::from_raw(terminal.pid()), signal).unwrap();
        assert_eq!(terminal.echo_at_end(), (true, code));
    }
    assert!(fs::metadata(home.index()).is_err());
}

#[test]
fn a_policy_that_is_narrowed_beside_a_question_stays_narrow() {
    let home = Home::new();
    home.set("PW", VALUE, &["--write"]);
    let mut terminal = Karyi::with_args(&["var", "rotate", "PW"])
        .env("KARYI_HOME", home.path().join("karyi"))
        .on_terminal();
    terminal.expect("value of PW (hidden");
    let narrow = [
        "var",
        "set",
        "PW",
        "--keep-value",
        "--no-write",
        "--use",
        "ask",
    ];
    home.karyi(&narrow, "").exit(0);
    terminal.keys("another-value-4711").keys("\r");
    let (screen, status) = terminal.end();
    assert_eq!(status, 0, "{screen}");
    let shown = home.karyi(&["var", "show", "PW", "--json"], "").exit(0);
    let policy = &shown.json()["policy"];
    assert_eq!(
        (&policy["write"], &policy["use"]),
        (&false.into(), &"ask".into())
    );
    let used = ["run", "--no-interactive", "--allow", "PW", "-"];
    let ran = home.karyi(&used, USE).exit(0);
    assert!(ran.stdout.contains(">18"), "{}", ran.stdout);
}
