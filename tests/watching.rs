//! What a person at the terminal sees while a command runs, and what becomes of the keys that they type.

use std::num::NonZero;
use std::time::Instant;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::harness::Karyi;
use crate::harness::process::wait_until;
use crate::harness::terminal::Terminal;

/// A run on a terminal of a command in bash.
struct Watched {
    terminal: Terminal,
    /// The FIFO that commands read to go on.
    go: std::path::PathBuf,
}

impl Watched {
    fn new(command: &str, args: &[&str]) -> Self {
        Self::of(
            &format!("<tools><command>mkfifo go\n{command}\n</command></tools>"),
            args,
        )
    }

    fn of(script: &str, args: &[&str]) -> Self {
        Self::start(
            Karyi::with_args(&["run", "a.xml"])
                .args(args)
                .file("a.xml", script),
        )
    }

    fn start(karyi: Karyi) -> Self {
        let go = karyi.work().join("go");
        Self {
            terminal: karyi.on_terminal(),
            go,
        }
    }

    /// Waits for a text and lets the command go on.
    #[track_caller]
    fn go_on_after(&mut self, text: &str) {
        self.terminal.expect(text).forget();
        std::fs::write(&self.go, "\n").unwrap();
    }

    /// Returns what is on the screen in the end, and the exit status.
    fn end(self) -> (String, u32) {
        let (seen, status) = self.terminal.end();
        (screen(&seen), status)
    }
}

/// Returns the lines on a terminal that got this text.
fn screen(text: &str) -> String {
    let side = |length| NonZero::new(length).unwrap();
    let mut terminal = vt100::Parser::new(side(40), side(100), 0);
    terminal.process(text.as_bytes());
    let contents = terminal.screen().contents();
    let lines: Vec<&str> = contents.lines().map(str::trim_end).collect();
    lines.join("\n")
}

#[test]
fn an_unfinished_line_is_shown_until_it_ends() {
    let mut run = Watched::new("printf 'work%s... ' ing; read x &lt;go; echo done", &[]);
    run.go_on_after(" s  working... ");
    let (screen, status) = run.end();
    assert_eq!(
        (&*screen.replace('\n', "|"), status),
        ("working... done", 0)
    );
}

#[test]
fn a_bar_is_shown_in_its_newest_state() {
    let step = |state: u32, go: &str| format!("printf '\\r%s%% [===' {state}; read x &lt;{go}\n");
    let command = format!("mkfifo last\n{}{}echo", step(10, "go"), step(55, "last"));
    let mut run = Watched::new(&command, &[]);
    run.go_on_after(" s  10% [===");
    run.terminal.expect(" s  55% [===");
    let seen = screen(&run.terminal.screen());
    assert!(!seen.contains("10%"), "{seen}");
    run.go.set_file_name("last");
    run.go_on_after("");
    run.end();
}

#[test]
fn an_unfinished_line_is_harmless_masked_and_no_wider_than_the_terminal() {
    let command = "printf '\\033]52;c;eA==\\007\\033[5A\\001%s' \"$KARYI{TOKEN}\"
        printf '%0200d' 0; read x &lt;go; echo";
    let mut run = Watched::start(
        Karyi::with_args(&["run", "a.xml"])
            .args(&["--vault", "env"])
            .env("KARYI_VAR_TOKEN", "huntEr22-and-more")
            .file(
                "a.xml",
                format!("<tools><command>mkfifo go\n{command}\n</command></tools>"),
            ),
    );
    run.terminal.expect(" s  ").expect("…");
    let seen = run.terminal.screen();
    assert!(
        !seen.contains("\x1b]52") && !seen.contains("hunt"),
        "{seen:?}"
    );
    let below = screen(&seen);
    let below = below.lines().last().unwrap();
    assert!(
        below.contains("$KARYI{TOKEN}000") && below.ends_with('…'),
        "{below}"
    );
    assert!(below.chars().count() < 100, "{below}");
    run.go_on_after("");
    run.end();
}

#[test]
fn a_fast_bar_is_drawn_ten_times_a_second() {
    let command =
        "end=$((SECONDS + 2)); while ((SECONDS &lt; end)); do printf '\\r%s' $((++i)); done; echo";
    let since = Instant::now();
    let (seen, _) = Watched::new(command, &[]).terminal.end();
    let most = since.elapsed().as_millis() / 75 + 5;
    let drawn = seen.matches("\x1b[2K").count() as u128;
    assert!((3..=most).contains(&drawn), "{drawn} of {most}");
}

#[test]
fn only_a_person_at_a_terminal_sees_an_unfinished_line() {
    let command = "printf 'work%s' ing; sleep 0.5; echo";
    for (args, term) in [
        (&["--quiet"][..], "xterm"),
        (&["--json"], "xterm"),
        (&["--format", "xml"], "xterm"),
        (&[], "dumb"),
    ] {
        let script = format!("<tools><command>{command}</command></tools>");
        let karyi = Karyi::with_args(&["run", "a.xml"])
            .args(args)
            .env("TERM", term);
        let (seen, _) = karyi.file("a.xml", script).on_terminal().end();
        assert!(
            !seen.contains("\x1b[2K") && !seen.contains(" s  "),
            "{args:?}: {seen:?}"
        );
    }
}

#[test]
fn the_spinner_says_what_runs() {
    let lines = |count: usize| "\n: more".repeat(count);
    for (more, expected) in [
        (0, " s  read x <go  # a name"),
        (1, " s  read x <go (+1 line)  # a name"),
        (30, " s  read x <go (+30 lines)  # a name"),
    ] {
        let script = format!(
            "<tools><command>mkfifo go</command><command name=\"a name\">read x &lt;go{}</command></tools>",
            lines(more)
        );
        let mut run = Watched::of(&script, &[]);
        run.go_on_after(expected);
        run.end();
    }
}

/// A command that asks for a name, and greets.
const ASK: &str = "read -p \"na$((0))me? \" x; echo \"hi $x\"";

#[test]
fn a_person_answers_a_command_that_waits() {
    let check = |command: &str, answers: &[(&str, &str)], expected: &str| {
        let mut run = Watched::new(&format!(": begin\n{command}\n: end"), &[]);
        for (question, keys) in answers {
            run.terminal.expect(question).keys(keys);
        }
        let (screen, status) = run.end();
        let (_, below) = screen.split_once(": end\n").unwrap();
        assert_eq!(
            (&*below.replace('\n', "|"), status),
            (expected, 0),
            "{command}"
        );
    };
    check(ASK, &[(" s  na0me? ", "Ada\r")], "na0me? Ada|hi Ada");
    check(ASK, &[("na0me? ", "Adam\x7f\r")], "na0me? Ada|hi Ada");
    check(
        "while read -p \"mo$((++n))re \" x; do echo \"($x)\"; done; echo over",
        &[("mo1re ", "a\r"), ("mo2re ", "b\r"), ("mo3re ", "\x04")],
        "mo1re a|(a)|mo2re b|(b)|mo3re over",
    );
    check(
        "read -t 60 -n 1 -p \"ke$((0))y \" x; echo \" $x\"",
        &[("ke0y ", "y")],
        "ke0y y y",
    );
}

#[test]
fn what_a_job_does_not_echo_is_not_shown() {
    let counts = "echo; echo \"got ${#x}\"";
    let python =
        "python3 -c 'import getpass; print(\"got\", len(getpass.getpass(\"pa\" + \"ss: \")))'";
    for (command, question) in [
        (
            format!("read -s -p \"pa$((0))ss: \" x; {counts}"),
            "pa0ss: ",
        ),
        (
            format!("stty -echo; printf 'pa%s: ' ss; read x; stty echo; {counts}"),
            "pass: ",
        ),
        (python.to_owned(), "pass: "),
    ] {
        let mut run = Watched::new(&command, &[]);
        run.terminal.expect(question).keys("Tr0ub4dor\r");
        let (screen, status) = run.end();
        assert!(
            screen.contains("got 9") && !screen.contains("Tr0ub"),
            "{screen}"
        );
        assert_eq!(status, 0, "{screen}");
    }
}

#[test]
fn keys_that_no_command_waits_for_are_dropped() {
    let script = format!(
        "<tools><command>mkfifo go; printf 'work%s ' ing; read x &lt;go; sleep 1; {ASK}; read x &lt;go</command></tools>"
    );
    let rest = "\"$0\" \"$@\"; stty -icanon min 0 time 0; echo \"rest [$(cat)]\"; exit;";
    let karyi = Karyi::with_args(&["run", "a.xml"]).file("a.xml", script);
    let go = karyi.work().join("go");
    let mut terminal = karyi.on_terminal_through(rest);
    terminal.expect("working ");
    assert!(!terminal.is_echoing());
    terminal.keys("rm -r\x7f\r\x1b[A\x04");
    std::fs::write(&go, "\n").unwrap();
    terminal
        .expect("na0me? ")
        .keys("Ada\r")
        .expect("hi Ada")
        .keys("late\r");
    std::fs::write(go, "\n").unwrap();
    let (seen, _) = terminal.end();
    assert!(!seen.contains("rm -") && !seen.contains("late"), "{seen:?}");
    assert!(seen.contains("rest []"), "{seen:?}");
}

#[test]
fn the_terminal_is_given_back_however_a_run_ends() {
    let modes = |terminal: &Terminal| {
        let modes = terminal.modes();
        (modes.local_flags, modes.control_chars)
    };
    for (act, code) in [
        ("y\r", 1),
        ("\x03", 130),
        ("\x1c", 131),
        ("TERM", 143),
        ("HUP", 129),
    ] {
        let script = "<tools><command>read -p \"su$((0))re? \" x; exit 3</command></tools>";
        let karyi = Karyi::with_args(&["run", "a.xml"]).file("a.xml", script);
        let mut terminal = karyi.on_terminal_through("echo before; read x; exec");
        terminal.expect("before");
        let before = modes(&terminal);
        terminal.keys("\r").expect("su0re? ");
        assert!(!terminal.is_echoing());
        match act {
            "TERM" => kill(Pid::from_raw(terminal.pid()), Signal::SIGTERM).unwrap(),
            "HUP" => kill(Pid::from_raw(terminal.pid()), Signal::SIGHUP).unwrap(),
            keys => drop(terminal.keys(keys)),
        }
        terminal.wait();
        assert_eq!(modes(&terminal), before, "{act:?}");
        assert_eq!(terminal.echo_at_end(), (true, code), "{act:?}");
    }
}

#[test]
fn ctrl_z_gives_the_terminal_to_the_shell_until_it_goes_on() {
    let script = format!("<tools><command>{ASK}</command></tools>");
    let shell = "set -m; \"$0\" \"$@\"; echo now stopped; read line; fg; exit;";
    let karyi = Karyi::with_args(&["run", "a.xml"]).file("a.xml", script);
    let mut terminal = karyi.on_terminal_through(shell);
    terminal
        .expect("na0me? ")
        .keys("\x1a")
        .expect("now stopped");
    assert!(terminal.is_echoing());
    terminal.forget().keys("\n").expect("na0me? ");
    wait_until(|| !terminal.is_echoing());
    terminal.keys("Ada\r").expect("hi Ada");
    assert_eq!(terminal.echo_at_end(), (true, 0));
}

#[test]
fn a_run_in_the_background_leaves_the_keyboard_alone() {
    let script = format!("<tools><command>{ASK}</command></tools>");
    let shell = "set -m; \"$0\" \"$@\" & wait $!; echo status $?; exit;";
    let karyi = Karyi::with_args(&["run", "a.xml"]).file("a.xml", script);
    let (seen, _) = karyi.on_terminal_through(shell).end();
    assert!(
        seen.contains("waits for input") && seen.contains("status 3"),
        "{seen}"
    );
}

#[test]
fn a_script_from_a_pipe_is_answered_at_the_terminal() {
    let script = format!("<tools><command>{ASK}</command></tools>");
    let karyi = Karyi::with_args(&["run"]).file("a.xml", script);
    let mut terminal = karyi.on_terminal_through("cat a.xml |");
    terminal.expect("na0me? ").keys("Ada\r").expect("hi Ada");
    assert_eq!(terminal.end().1, 0);
}

#[test]
fn a_command_ends_by_waiting_where_a_call_answers_or_nobody_does() {
    let ask = format!("<command>{ASK}</command>");
    let answer = format!("<tools>{ask}<input>Ada\\n</input></tools>");
    let (seen, status) = Watched::of(&answer, &[]).end();
    assert!(seen.contains("hi Ada") && status == 0, "{seen}");
    let (seen, status) = Watched::of(&format!("<tools>{ask}</tools>"), &["--no-interactive"]).end();
    assert!(seen.contains("waits for input") && status == 3, "{seen}");
    let limited = ask.replace("<command", "<command timeout=\"0.5\"");
    let (seen, status) = Watched::of(&format!("<tools>{limited}</tools>"), &[]).end();
    assert!(seen.contains("waits for input") && status == 3, "{seen}");
}

#[test]
fn commands_and_questions_take_turns_at_the_keyboard() {
    let ask = format!("<command>{ASK}</command>");
    let value = "<get_value key=\"PW\" reason=\"a test\"/>";
    let mut run = Watched::of(
        &[&*ask, value, &ask]
            .map(|call| format!("<tools>{call}</tools>\n"))
            .concat(),
        &[],
    );
    run.terminal
        .expect("na0me? ")
        .keys("Ada\r")
        .expect("hi Ada");
    run.terminal.answer("a-value-1");
    run.terminal
        .forget()
        .expect("na0me? ")
        .keys("Eve\r")
        .expect("hi Eve");
    assert_eq!(run.terminal.echo_at_end(), (true, 0));
}
