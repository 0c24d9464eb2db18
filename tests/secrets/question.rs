//! The question for a value, on a real terminal through the program.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::harness::Karyi;
use crate::harness::process::{state, wait_until};
use crate::harness::terminal::Terminal;

const ASK: &str = "<tools><get_value key=\"PW\" reason=\"a test\"/></tools>\n";

/// Starts a script whose first block asks for `PW`.
fn asked(blocks: &str) -> Terminal {
    let script = format!("{ASK}{blocks}");
    let karyi = Karyi::with_args(&["run", "--format", "xml", "a.xml"]).file("a.xml", script);
    let mut terminal = karyi.on_terminal();
    terminal.expect("value (hidden");
    terminal
}

const USE: &str = "<tools><command>printf %s $KARYI{PW} | wc -c</command></tools>\n";

#[test]
fn a_value_for_once_serves_one_block() {
    let mut terminal = asked(&format!("{USE}{USE}"));
    terminal.keys("value-11\r").expect("keep it:").keys("u");
    let (screen, status) = terminal.end();
    assert!(screen.contains("<output>8"), "{screen}");
    assert_eq!(screen.matches("undefined_variable").count(), 1, "{screen}");
    assert_eq!(status, 2);
}

#[test]
fn a_value_can_be_taken_back_at_the_choice() {
    let mut terminal = asked("");
    terminal.keys("value-11\r").expect("keep it:").keys("d");
    let (screen, status) = terminal.end();
    assert!(screen.contains("status=\"declined\""), "{screen}");
    assert_eq!(status, 1);
}

#[test]
fn a_pasted_key_arrives_line_by_line() {
    let key = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQ\n-----END KEY-----\n";
    let mut terminal =
        asked("<tools><command>x=$KARYI{PW}; printf %s \"$x\" | cksum</command></tools>");
    terminal
        .keys(&format!("\x1b[200~{}\x1b[201~", key.replace('\n', "\r")))
        .expect("several lines")
        .keys("\x04")
        .expect("keep it:")
        .keys("s");
    let (screen, status) = terminal.end();
    assert!(screen.contains(&cksum(key)), "{screen}");
    assert!(!screen.contains("MIIEvQ"), "{screen}");
    assert_eq!(status, 0);
}

fn cksum(text: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("text");
    std::fs::write(&path, text).unwrap();
    let file = std::fs::File::open(&path).unwrap();
    let output = std::process::Command::new("cksum")
        .stdin(file)
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn lines_that_are_typed_at_once_are_no_choices() {
    let mut terminal = asked("<tools><command>x=$KARYI{PW}; echo \"${#x}\"</command></tools>");
    terminal
        .keys("line-one\rsvud\r")
        .expect("several lines")
        .keys("\x04")
        .expect("keep it:")
        .keys("\r");
    let (screen, status) = terminal.end();
    assert!(screen.contains("<output>14"), "{screen}");
    assert_eq!(status, 0);
}

#[test]
fn questions_come_one_after_another() {
    let script = "<tools><get_value key=\"ONE\" reason=\"r\"/><get_value key=\"TWO\" reason=\"r\"/></tools>\n\
        <tools><command>a=$KARYI{ONE} b=$KARYI{TWO}; echo \"${#a} ${#b}\"</command></tools>";
    let karyi = Karyi::with_args(&["run", "--format", "xml", "a.xml"]).file("a.xml", script);
    let mut terminal = karyi.on_terminal();
    let screen = terminal.expect("value (hidden").screen();
    let (first, second) = if screen.contains("asks for ONE") {
        ("value-11", "value-222")
    } else {
        ("value-222", "value-11")
    };
    assert_eq!(screen.matches("asks for").count(), 1, "{screen}");
    let other = if first == "value-11" {
        "asks for TWO"
    } else {
        "asks for ONE"
    };
    terminal.answer(first).expect(other).answer(second);
    let (screen, status) = terminal.end();
    assert!(screen.contains("<output>8 9"), "{screen}");
    assert_eq!(status, 0);
}

/// The script comes through a pipe and the question goes to the terminal all the same.
#[test]
fn a_script_on_standard_input_is_no_answer() {
    let karyi = Karyi::with_args(&["run", "--format", "xml"]).file("a.xml", format!("{ASK}{USE}"));
    let mut terminal = karyi.on_terminal_through("cat a.xml |");
    terminal.expect("value (hidden").answer("value-11");
    let (screen, status) = terminal.end();
    assert!(screen.contains("<output>8"), "{screen}");
    assert_eq!(status, 0);
}

#[test]
fn a_stopped_question_comes_again_hidden() {
    let mut terminal = asked(USE);
    terminal.keys("val");
    let pid = Pid::from_raw(terminal.pid());
    kill(pid, Signal::SIGSTOP).unwrap();
    wait_until(|| state(pid) == Some('T'));
    terminal.show_typing();
    kill(pid, Signal::SIGCONT).unwrap();
    terminal.forget().expect("value (hidden");
    assert!(!terminal.is_echoing());
    terminal.answer("ue-11");
    let (screen, status) = terminal.end();
    assert!(screen.contains("<output>8"), "{screen}");
    assert_eq!(status, 0);
}

#[test]
fn a_reason_is_shown_safely() {
    let reason = format!("pay&#13;now {}", "x".repeat(2048));
    let script = format!("<tools><get_value key=\"PW\" reason=\"{reason}\"/></tools>");
    let karyi = Karyi::with_args(&["run", "script"]).file("script", script);
    let mut terminal = karyi.on_terminal();
    let screen = terminal.expect("value (hidden").screen();
    assert!(screen.contains("reason: pay now xxx"), "{screen}");
    assert_eq!(
        screen.matches('x').count(),
        300 - "pay now ".len(),
        "{screen}"
    );
    terminal.keys("\x1b");
    terminal.end();
}

#[test]
fn nobody_is_asked_where_nobody_is() {
    let check = |karyi: Karyi, warning: &str| {
        let report = karyi.arg("--json").stdin(ASK).run().exit(3);
        assert!(
            report.stderr_text().contains(warning),
            "{}",
            report.stderr_text()
        );
        let report = report.json();
        assert_eq!(report["results"][0]["status"], "unavailable");
        assert_eq!(report["results"][0]["code"], "secret_prompt_unavailable");
        let took = report["results"][0]["duration_ms"].as_u64().unwrap();
        // 50 ms on a machine that does nothing else; somebody who is asked has minutes.
        assert!(took <= 20_000, "{took} ms");
    };
    check(Karyi::new(), "");
    check(Karyi::with_args(&["run"]).env("CI", "true"), "");
    let warning = "warning: PW is needed";
    check(Karyi::new().arg("--vars-mode").arg("warn"), warning);
    check(Karyi::new().env("KARYI_VARS_MODE", "warn"), warning);
}

#[test]
fn nobody_is_asked_in_ci_on_a_terminal() {
    for (key, value) in [("CI", "true"), ("KARYI_VARS_MODE", "warn")] {
        let karyi = Karyi::with_args(&["run", "--format", "xml", "a.xml"])
            .file("a.xml", ASK)
            .env(key, value);
        let (screen, status) = karyi.on_terminal().end();
        assert!(screen.contains("status=\"unavailable\""), "{screen}");
        assert!(!screen.contains("value (hidden"), "{screen}");
        assert_eq!(status, 3);
    }
}
