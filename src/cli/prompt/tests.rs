//! Questions on a terminal: their text, and the terminal's state after them.

use std::io::{Read, Write};
use std::os::fd::AsFd;

use nix::poll::{PollFd, PollFlags, poll};

use super::*;
use karyi_core::secret::SecretName;

#[cfg(target_os = "linux")]
mod memory;

#[test]
fn nothing_of_a_reason_is_hidden() {
    let reason = "pay\u{3164}\u{2800}\u{115F} now\u{FE0F}\u{34F}\u{FFA0}".to_owned();
    let question = Question {
        name: SecretName::parse("TOKEN").unwrap(),
        reason,
        note: None,
        store: None,
        cannot_save: None,
        is_known: false,
        least_bytes: limits::GOOD_SECRET_BYTES,
    };
    let marks = "\u{FFFD}".repeat(3);
    let told = format!("  reason: pay{marks} now{marks}\n");
    assert!(text(&question, "a.xml").ends_with(&told));
}

#[test]
fn a_reason_cannot_fake_lines_or_colours() {
    let question = Question {
        name: SecretName::parse("TOKEN").unwrap(),
        reason: format!("a\n  value: b\x1b[31m\u{202E}\r{}", "x".repeat(2000)),
        note: None,
        store: None,
        cannot_save: None,
        is_known: false,
        least_bytes: limits::GOOD_SECRET_BYTES,
    };
    assert_eq!(
        text(&question, "a\x1b.xml"),
        format!(
            "karyi: the model asks for TOKEN, in a␛.xml\n  \
             reason: a value: b␛[31m\u{FFFD} {} ... and 1717 more characters\n",
            "x".repeat(limits::MAX_REASON_CHARS - 17)
        )
    );
}

#[test]
fn what_cannot_be_used_is_refused() {
    let told = |value: &str| refusal(limits::GOOD_SECRET_BYTES, value).unwrap_or_default();
    assert!(told("abc").contains("at least 8 bytes (4 with --allow-short)"));
    assert!(told("             ").contains("not white space"));
    let long = "x".repeat(limits::MAX_SECRET_BYTES + 1);
    assert_eq!(told(&long), "a value has at most 61440 bytes");
    assert_eq!(told("value-12"), "");
}

#[test]
fn the_script_is_shown_safely_and_not_without_end() {
    let request = |text: String| ApprovalRequest {
        name: SecretName::parse("K").unwrap(),
        tool: "command",
        text,
        hosts: vec!["evil.org".into()],
        warnings: vec!["K is an argument of curl".into()],
    };
    assert_eq!(
        request_text(&request("curl\x1b[2J $KARYI{K}\n\nx".into())),
        "karyi: <command> wants to use K\n  | curl␛[2J $KARYI{K}\n  | x\n  hosts in it: evil.org\n  \
         K is an argument of curl\n"
    );
    let long = request_text(&request("x\n".repeat(1000)));
    assert!(long.contains("... and 970 more lines"), "{long}");
    let wide = "x".repeat(limits::MAX_REASON_CHARS);
    let told = request_text(&request(format!("{wide}; curl evil.org")));
    let line = format!("  | {wide} ... and 15 more characters\n");
    assert!(told.contains(&line), "{told}");
}

/// Set in the child process that asks on a terminal.
const ASKS: &str = "KARYI_TEST_ASKS";

/// Asks for one key; `x` panics. A late question waits until the first key was typed.
fn ask(is_late: bool) -> Result<char, NoAnswer> {
    let mut tty = Tty::open(&StopSource::default(), false)?;
    if is_late {
        println!("type now");
        let terminal = tty::open().unwrap();
        let key = PollFd::new(terminal.as_fd(), PollFlags::POLLIN);
        assert_eq!(poll(&mut [key], 60_000_u16), Ok(1));
    }
    tty.ask("a question: ")?;
    let answer = match tty.key()? {
        Key::Char('x') => panic!("on purpose"),
        Key::Char(c) => c,
        _ => '-',
    };
    tty.settle()?;
    Ok(answer)
}

/// Runs a test of this program on a terminal and types each key once its text appears with echo off. Returns
/// true when echo is on at the end.
fn answer(test: &str, keys: &[(&str, &str)]) -> bool {
    let size = portable_pty::PtySize::default();
    let pair = portable_pty::native_pty_system().openpty(size).unwrap();
    let mut command = portable_pty::CommandBuilder::new(std::env::current_exe().unwrap());
    command.args(["--exact", "--nocapture"]);
    command.arg(format!("cli::prompt::tests::{test}"));
    command.env(ASKS, "1");
    let mut child = pair.slave.spawn_command(command).unwrap();
    drop(pair.slave);
    let mut reader = pair.master.try_clone_reader().unwrap();
    let mut writer = pair.master.take_writer().unwrap();
    let (mut seen, mut buffer) = (String::new(), [0; 4096]);
    for (text, key) in keys {
        while !seen.contains(text) {
            let length = reader.read(&mut buffer).unwrap();
            assert!(length > 0, "{seen}");
            seen.push_str(&String::from_utf8_lossy(&buffer[..length]));
        }
        assert!(!is_echoing(pair.master.as_ref()));
        writer.write_all(key.as_bytes()).unwrap();
    }
    // Its output must be read, or it blocks.
    let rest = std::thread::spawn(move || while let Ok(1..) = reader.read(&mut buffer) {});
    assert!(child.wait().unwrap().success());
    let is_echoing = is_echoing(pair.master.as_ref());
    drop((writer, pair.master));
    rest.join().unwrap();
    is_echoing
}

fn is_echoing(terminal: &dyn portable_pty::MasterPty) -> bool {
    let modes = terminal.get_termios().unwrap().local_flags;
    modes.bits() & nix::sys::termios::LocalFlags::ECHO.bits() != 0
}

#[test]
fn a_question_that_breaks_gives_the_terminal_back() {
    if std::env::var_os(ASKS).is_some() {
        assert!(std::panic::catch_unwind(|| ask(false)).is_err());
        return;
    }
    let name = "a_question_that_breaks_gives_the_terminal_back";
    assert!(answer(name, &[("a question", "x")]));
}

#[test]
fn a_key_before_the_question_is_no_answer() {
    if std::env::var_os(ASKS).is_some() {
        assert_eq!(ask(true), Ok('n'));
        return;
    }
    let name = "a_key_before_the_question_is_no_answer";
    let keys = [("type now", "y"), ("a question", "n")];
    assert!(answer(name, &keys));
}

#[test]
fn an_interrupt_before_the_question_declines() {
    if std::env::var_os(ASKS).is_some() {
        assert_eq!(ask(true), Err(NoAnswer::Declined));
        return;
    }
    let name = "an_interrupt_before_the_question_declines";
    assert!(answer(name, &[("type now", "\x03")]));
}

#[test]
fn an_interrupt_right_after_an_answer_takes_it_back() {
    if std::env::var_os(ASKS).is_some() {
        assert_eq!(ask(false), Err(NoAnswer::Declined));
        return;
    }
    let name = "an_interrupt_right_after_an_answer_takes_it_back";
    assert!(answer(name, &[("a question", "y\x03")]));
}
