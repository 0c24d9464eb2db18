//! Questions of `karyi var` and for a passphrase while their process or their terminal goes away.

use nix::sys::signal::{Signal, kill};
use nix::sys::termios::{LocalFlags, SpecialCharacterIndices};
use nix::unistd::Pid;
use portable_pty::{PtySize, native_pty_system};

use super::home::Home;
use crate::harness::Karyi;
use crate::harness::process::{state, wait_until};
use crate::harness::terminal::Terminal;

const VALUE: &str = "S3cr3t-T0ken/Val+ue_AbCdEf0123456789xyz";
const PASSPHRASE: &str = "passphrase of the vault (hidden): ";
const USE: &str = "<tools><command>printf %s \"$KARYI{TOKEN}\" | wc -c</command></tools>\n";

/// A home with a value in the encrypted file.
fn kept(name: &str, args: &[&str]) -> Home {
    let home = Home::new();
    home.set(name, VALUE, args);
    home
}

fn start(home: &Home, args: &[&str]) -> Terminal {
    Karyi::with_args(args)
        .env("KARYI_HOME", home.path().join("karyi"))
        .on_terminal()
}

fn run(home: &Home, script: &str) -> Terminal {
    start(home, &["run", "--format", "xml", "-c", script])
}

/// Stops the question, has the terminal as a shell has it, and lets it go on; the question comes again,
/// hidden.
fn stop(terminal: &mut Terminal, question: &str) {
    terminal.expect(question);
    let pid = Pid::from_raw(terminal.pid());
    kill(pid, Signal::SIGSTOP).unwrap();
    wait_until(|| state(pid) == Some('T'));
    terminal.show_typing();
    terminal.forget();
    kill(pid, Signal::SIGCONT).unwrap();
    terminal.expect(question);
    assert!(!terminal.is_echoing(), "shown after it went on");
}

#[test]
fn a_stopped_question_for_a_value_to_keep_comes_again_hidden() {
    let home = kept("A", &[]);
    for args in [["var", "set", "B"], ["var", "rotate", "A"]] {
        let mut terminal = start(&home, &args);
        stop(&mut terminal, "Esc gives up): ");
        terminal.keys("typed-after-1234\r").expect("is stored in");
        let screen = terminal.screen();
        assert!(!screen.contains("typed-after"), "{screen}");
        assert_eq!(terminal.echo_at_end(), (true, 0), "{args:?}");
    }
}

#[test]
fn a_stopped_question_for_the_passphrase_comes_again_hidden() {
    let home = Home::locked(VALUE);
    let mut terminal = run(&home, USE);
    stop(&mut terminal, PASSPHRASE);
    // The one in the middle of the run.
    terminal.forget().keys("\x1b");
    stop(&mut terminal, PASSPHRASE);
    terminal.keys("pass-1\r").expect("<output>39");
    assert!(!terminal.screen().contains("pass-1"));
    assert_eq!(terminal.echo_at_end(), (true, 0));
}

#[test]
fn a_question_of_the_model_is_hidden_after_a_stop_that_nobody_can_catch() {
    let home = Home::new();
    let ask = "<tools><get_value key=\"PW\" reason=\"a test\"/></tools>";
    let mut terminal = run(&home, ask);
    stop(&mut terminal, "Esc declines): ");
    terminal.answer("typed-after-1234");
    let (screen, status) = terminal.end();
    assert!(!screen.contains("typed-after"), "{screen}");
    assert_eq!(status, 0, "{screen}");
}

#[test]
fn two_questions_on_a_terminal_come_one_after_the_other() {
    for streams in ["", "</dev/null"] {
        let home = kept("A", &[]);
        let pipe = format!("for name in B C; do \"$0\" var set $name {streams} & done; wait; exec");
        let mut terminal = Karyi::with_args(&["var", "list"])
            .env("KARYI_HOME", home.path().join("karyi"))
            .on_terminal_through(&pipe);
        for value in ["first-value-1", "second-value-2"] {
            terminal.expect("Esc gives up): ").forget().keys(value);
            assert!(!terminal.is_echoing());
            terminal.keys("\r").expect("is stored in");
        }
        let (screen, status) = terminal.end();
        assert!(!screen.contains("-value-"), "{screen}");
        assert_eq!(status, 0, "{screen}");
        for name in ["B", "C"] {
            home.karyi(&["var", "show", name], "").exit(0);
        }
    }
}

/// Returns the only child of a process.
fn child(parent: i32) -> Pid {
    find_child(parent).unwrap()
}

fn find_child(parent: i32) -> Option<Pid> {
    let path = format!("/proc/{parent}/task/{parent}/children");
    let children = std::fs::read_to_string(path).unwrap();
    children.trim().parse().ok().map(Pid::from_raw)
}

#[test]
fn ctrl_z_stops_a_question_where_a_shell_lets_it_go_on() {
    let home = kept("A", &[]);
    let script = "set -m; \"$0\" var set B; echo now stopped; read line; fg; exec";
    let mut terminal = Karyi::with_args(&["var", "list"])
        .env("KARYI_HOME", home.path().join("karyi"))
        .on_terminal_through(script);
    terminal.expect("Esc gives up): ").keys("first-\x1a");
    terminal.expect("now stopped");
    assert!(terminal.is_echoing(), "not given back");
    terminal.forget().keys("\n").expect("Esc gives up): ");
    terminal.keys("value-1\r").expect("is stored in");
    let (screen, status) = terminal.end();
    assert!(!screen.contains("value-1"), "{screen}");
    assert_eq!(status, 0, "{screen}");

    // Nobody would let this one go on.
    let mut alone = start(&home, &["var", "set", "C"]);
    alone.expect("Esc gives up): ").keys("\x1avalue-1234\r");
    alone.expect("is stored in");
}

#[test]
fn a_signal_ends_a_question_that_waits_in_the_background() {
    let home = kept("A", &[]);
    let script = "set -m; \"$0\" var set B & read line; wait $!; echo ended with $?; exec";
    let mut terminal = Karyi::with_args(&["var", "list"])
        .env("KARYI_HOME", home.path().join("karyi"))
        .on_terminal_through(script);
    let shell = terminal.pid();
    wait_until(|| find_child(shell).is_some_and(|first| state(first) == Some('T')));
    let first = child(shell);
    // As a shell does that is told to end a job that is stopped.
    kill(first, Signal::SIGTERM).unwrap();
    kill(first, Signal::SIGCONT).unwrap();
    wait_until(|| matches!(state(first), None | Some('Z')));
    terminal.keys("\n").expect("ended with 143");
    let (screen, status) = terminal.end();
    assert!(!screen.contains("value of B"), "{screen}");
    assert_eq!(status, 0, "{screen}");
}

#[test]
fn a_question_is_hidden_on_its_own_terminal_whatever_is_read() {
    let home = kept("A", &[]);
    let other = native_pty_system().openpty(PtySize::default()).unwrap();
    let before = other.master.get_termios().unwrap();
    let read = format!("exec < {};", other.master.tty_name().unwrap().display());
    let mut terminal = Karyi::with_args(&["var", "set", "B"])
        .env("KARYI_HOME", home.path().join("karyi"))
        .on_terminal_through(&read);
    terminal.expect("Esc gives up): ");
    assert!(!terminal.is_echoing());
    assert_eq!(other.master.get_termios().unwrap(), before);
    terminal.keys("typed-here-1234\r");
    let (screen, status) = terminal.end();
    assert!(!screen.contains("typed-here"), "{screen}");
    assert_eq!(status, 0, "{screen}");
}

#[test]
fn what_is_set_while_a_question_is_stopped_stays_set() {
    let home = kept("A", &[]);
    let mut terminal = start(&home, &["var", "set", "B"]);
    terminal.expect("Esc gives up): ");
    let pid = Pid::from_raw(terminal.pid());
    kill(pid, Signal::SIGSTOP).unwrap();
    wait_until(|| state(pid) == Some('T'));
    terminal.set_modes(|modes| {
        modes.local_flags |= LocalFlags::ECHO | LocalFlags::ICANON;
        modes.control_chars[SpecialCharacterIndices::VERASE as usize] = b'#';
    });
    terminal.forget();
    kill(pid, Signal::SIGCONT).unwrap();
    terminal.expect("Esc gives up): ");
    assert!(!terminal.is_echoing());
    terminal.keys("typed-after-1234\r").expect("is stored in");
    terminal.wait();
    let modes = terminal.modes();
    assert!(modes.local_flags.contains(LocalFlags::ECHO));
    let erase = modes.control_chars[SpecialCharacterIndices::VERASE as usize];
    assert_eq!(erase, b'#', "not as it was set");
}

#[test]
fn a_terminal_that_only_prints_gets_text_alone() {
    let home = kept("A", &[]);
    let mut terminal = Karyi::with_args(&["var", "set", "B"])
        .env("KARYI_HOME", home.path().join("karyi"))
        .env("TERM", "dumb")
        .on_terminal();
    terminal.expect("Esc gives up): ");
    assert!(!terminal.is_echoing());
    terminal.keys("first-value-1\r").expect("is stored in");
    let (screen, status) = terminal.end();
    assert!(!screen.contains('\x1b'), "{screen:?}");
    assert_eq!(status, 0, "{screen}");
}

#[test]
fn a_question_ends_when_its_terminal_goes_away() {
    let agreed = kept("TOKEN", &["--use", "ask"]);
    let mut terminal = run(&agreed, USE);
    terminal.expect("agree, for this session?");
    assert_eq!(terminal.hang_up(), 129);

    let locked = Home::locked(VALUE);
    let mut terminal = run(&locked, USE);
    terminal.expect(PASSPHRASE).forget().keys("\x1b");
    terminal.expect(PASSPHRASE);
    assert_eq!(terminal.hang_up(), 129);

    let mut terminal = start(&agreed, &["var", "set", "B"]);
    terminal.expect("Esc gives up): ");
    assert_eq!(terminal.hang_up(), 129);
}

#[test]
fn a_value_that_is_too_long_is_not_kept() {
    let home = kept("A", &[]);
    let long = "x".repeat(63_000);
    let pasted = format!("\x1b[200~{long}\x1b[201~");
    for keys in [&long, &pasted] {
        let mut terminal = start(&home, &["var", "set", "B"]);
        terminal.expect("Esc gives up): ").keys(keys).keys("\r");
        let (screen, status) = terminal.end();
        let told = "bad_value: the value of B is longer than 61440 bytes";
        assert!(screen.contains(told), "{screen}");
        assert_eq!(status, 2, "{screen}");
        home.karyi(&["var", "show", "B"], "").error("not_found");
    }
}

#[test]
fn ctrl_c_interrupts_and_esc_declines() {
    let home = kept("A", &[]);
    for args in [["var", "set", "B"], ["var", "rotate", "A"]] {
        for (key, code) in [("\x03", 130), ("\x1b", 1)] {
            let mut terminal = start(&home, &args);
            terminal.expect("Esc gives up): ").keys(key);
            assert_eq!(terminal.echo_at_end(), (true, code), "{args:?} {key:?}");
        }
    }
}

#[test]
fn whatever_ends_a_program_gives_the_terminal_back() {
    let home = kept("A", &[]);
    let ask = "<tools><get_value key=\"PW\" reason=\"a test\"/></tools>";
    for (signal, code) in [
        (Signal::SIGABRT, 134),
        (Signal::SIGUSR1, 138),
        (Signal::SIGUSR2, 140),
        (Signal::SIGALRM, 142),
        (Signal::SIGXCPU, 152),
        (Signal::SIGVTALRM, 154),
        (Signal::SIGPROF, 155),
    ] {
        for (args, question) in [
            (&["var", "set", "B"][..], "Esc gives up): "),
            (&["run", "-c", ask][..], "Esc declines): "),
        ] {
            let mut terminal = start(&home, args);
            terminal.expect(question);
            kill(Pid::from_raw(terminal.pid()), signal).unwrap();
            assert_eq!(terminal.echo_at_end(), (true, code), "{signal}");
        }
    }
}
