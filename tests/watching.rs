//! What a person at the terminal sees while a command runs, and what becomes of the keys that they type.

use std::num::NonZero;
use std::time::Instant;

use crate::harness::Karyi;
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
    terminal.screen().contents()
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
    let step = |state: u32| format!("printf '\\r%s%% [===' {state}; read x &lt;go\n");
    let mut run = Watched::new(&format!("{}{}echo", step(10), step(55)), &[]);
    run.go_on_after(" s  10% [===");
    run.terminal.expect(" s  55% [===");
    assert!(
        !run.terminal.screen().contains("10%"),
        "{}",
        run.terminal.screen()
    );
    run.go_on_after("55%");
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
