//! What is typed before a question stands on the terminal, or behind its answer.

use std::fs;
use std::time::{Duration, Instant};

use super::home::Home;
use crate::harness::Karyi;
use crate::harness::terminal::Terminal;

const VALUE: &str = "S3cr3t-T0ken/Val+ue_AbCdEf0123456789xyz";
const USE: &str = "<tools><command>printf %s $KARYI{PW} | wc -c</command></tools>\n";
const GET: &str = "<tools><get_value key=\"PW\" reason=\"a test\"/></tools>\n";
/// A call that lasts until the test lets it end.
const WAITS: &str =
    "<tools><command>touch here; until [ -e go ]; do sleep 0.02; done</command></tools>\n";

fn program(home: &Home, args: &[&str]) -> Karyi {
    let identity = home.identity();
    let vault = ["--vault", "age", "--age-identity"];
    Karyi::with_args(args)
        .args(&vault)
        .arg(identity.to_str().unwrap())
        .env("KARYI_HOME", home.path().join("karyi"))
}

/// Starts a script that waits first, and types while it does.
fn typed_ahead(home: &Home, blocks: &str, keys: &str) -> Terminal {
    let script = format!("{WAITS}{blocks}");
    let karyi = program(home, &["run", "--format", "xml", "a.xml"]).file("a.xml", script);
    let work = karyi.work().to_owned();
    let mut terminal = karyi.on_terminal();
    let deadline = Instant::now() + Duration::from_secs(60);
    while !work.join("here").exists() {
        assert!(Instant::now() < deadline, "it does not wait");
        std::thread::sleep(Duration::from_millis(5));
    }
    // Its echo says that it lies in the terminal.
    terminal.keys(keys).expect(keys.trim_end());
    fs::write(work.join("go"), "").unwrap();
    terminal
}

#[test]
fn agreement_is_not_given_by_what_was_typed_before() {
    let home = Home::new();
    home.set("PW", VALUE, &["--use", "ask"]);
    for (key, output, status) in [("n", "declined", 1), ("y", "<output>39", 0)] {
        let mut terminal = typed_ahead(&home, USE, "yyyyyyyy");
        terminal.expect("agree, for this session?").keys(key);
        let (screen, code) = terminal.end();
        assert!(screen.contains(output), "{screen}");
        assert_eq!(code, status, "{screen}");
    }
}

#[test]
fn a_line_typed_before_is_no_value() {
    let home = Home::new();
    let mut terminal = typed_ahead(&home, &format!("{GET}{USE}"), "git status\r");
    terminal.expect("value (hidden").answer(VALUE);
    let (screen, status) = terminal.end();
    assert!(
        screen.contains("<output>39") && !screen.contains("S3cr3t"),
        "{screen}"
    );
    assert_eq!(status, 0);
}

#[test]
fn a_key_behind_the_value_is_no_choice() {
    let home = Home::new();
    let karyi = program(&home, &["run", "--format", "xml", "a.xml"]).file("a.xml", GET);
    let mut terminal = karyi.on_terminal();
    terminal.expect("value (hidden");
    terminal.keys(&format!("{VALUE}\x04vvv"));
    terminal.expect("keep it:").keys("u");
    let (screen, status) = terminal.end();
    assert!(screen.contains("status=\"provided\""), "{screen}");
    assert_eq!(status, 0);
    assert!(!home.index().exists());
}

#[test]
fn a_line_typed_before_is_not_kept() {
    let home = Home::new();
    let karyi = program(&home, &["var", "set", "PW"]);
    let work = karyi.work().to_owned();
    let mut terminal =
        karyi.on_terminal_through("echo waiting; until [ -e go ]; do sleep 0.02; done;");
    terminal.expect("waiting");
    terminal.keys("typed before\r").expect("typed before");
    fs::write(work.join("go"), "").unwrap();
    terminal
        .expect("value of PW (hidden")
        .keys(VALUE)
        .keys("\r");
    terminal.expect("PW is stored");
    terminal.end();
    assert!(home.script(USE).exit(0).stdout.contains(">39"));
}

#[test]
fn what_is_typed_behind_an_answer_is_for_nobody() {
    let home = Home::new();
    home.set("PW", VALUE, &["--use", "ask"]);
    let karyi = program(&home, &["run", "--format", "xml", "a.xml"]).file("a.xml", USE);
    let mut terminal = karyi
        .on_terminal_through("f() { \"$@\"; echo gone now; read -r line; echo \"[$line]\"; }; f");
    // More than the program reads at once.
    let keys = format!("y{}\r", "unseen ".repeat(400));
    terminal.expect("agree, for this session?").keys(&keys);
    terminal.expect("gone now");
    terminal.keys("mine\r");
    let (screen, _) = terminal.end();
    assert!(
        screen.contains("[mine]") && !screen.contains("unseen"),
        "{screen}"
    );
    assert!(screen.contains("<output>39"), "{screen}");
}
