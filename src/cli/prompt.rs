//! Asks for a value on the terminal: hidden, never on standard input, and the terminal is left as
//! it was however the question ends.

mod agreement;
mod answer;
mod suspend;

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use crossterm::event;
use crossterm::terminal;

use crate::cli::say;
use crate::cli::screen::Floor;
use crate::exec::cancel::Cancel;
use crate::limits;
use crate::render::paint::safe;
use crate::tool::context::{Boxed, Consent, Prompter, Question, Reply, Request};
use answer::Answer;

pub(super) use suspend::Suspension;

/// Whether and how the user is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asking {
    /// On the terminal.
    OnTerminal,
    /// Never; a line on standard error tells what is missing.
    Warn,
    /// Never, silently: nobody is there.
    Never,
}

/// The user's terminal.
pub(super) struct Terminal {
    asking: Asking,
    cancel: Cancel,
    /// The report waits while a question stands on the terminal.
    floor: Floor,
    suspension: Suspension,
    /// Where the scripts come from that ask.
    origin: String,
    /// One question at a time.
    turn: tokio::sync::Mutex<()>,
}

impl Terminal {
    /// Makes the way to the user.
    pub(super) fn new(
        asking: Asking,
        cancel: Cancel,
        floor: Floor,
        suspension: Suspension,
        origin: String,
    ) -> Self {
        Self {
            asking,
            cancel,
            floor,
            suspension,
            origin,
            turn: tokio::sync::Mutex::new(()),
        }
    }

    /// Has a dialogue when it is its turn; nothing when there is no terminal.
    async fn on_terminal<D: Dialogue + Send + 'static>(&self, dialogue: D) -> Option<D::Answer> {
        // Whoever has no terminal is told so at once, also while another question stands there.
        open().ok()?;
        let _turn = self.turn.lock().await;
        let cancel = self.cancel.clone();
        let (floor, suspension) = (Arc::clone(&self.floor), self.suspension.clone());
        let answer = tokio::task::spawn_blocking(move || {
            let _floor = floor.lock().unwrap_or_else(PoisonError::into_inner);
            converse(dialogue, &cancel, &suspension)
        });
        answer.await.ok()?.ok()
    }
}

impl Prompter for Terminal {
    fn ask<'a>(&'a self, question: &'a Question) -> Boxed<'a, Reply> {
        Box::pin(async move {
            match self.asking {
                Asking::OnTerminal => {
                    let dialogue = ForValue {
                        text: text(question, &self.origin),
                        answer: Answer::new(question.store, question.least_bytes),
                    };
                    let reply = self.on_terminal(dialogue).await;
                    reply.unwrap_or(Reply::Unavailable)
                }
                Asking::Warn => {
                    let name = &question.name;
                    say(&format!(
                        "warning: {name} is asked for and --vars-mode warn never asks; give it with `karyi var set {name}`"
                    ));
                    Reply::Unavailable
                }
                Asking::Never => Reply::Unavailable,
            }
        })
    }

    fn agree<'a>(&'a self, request: &'a Request) -> Boxed<'a, Consent> {
        Box::pin(async move {
            if self.asking != Asking::OnTerminal {
                return Consent::Unavailable;
            }
            let dialogue = ForConsent(agreement::text(request));
            let consent = self.on_terminal(dialogue).await;
            consent.unwrap_or(Consent::Unavailable)
        })
    }
}

/// What comes after an event.
enum Next<T> {
    /// More keys.
    Keys,
    /// A text for the terminal, then more keys.
    Show(String),
    /// The end.
    Done(T),
}

/// A question with everything that is needed to have it answered.
trait Dialogue {
    /// What comes of it.
    type Answer: Send + 'static;

    /// Returns what is shown, from the question to the place where it is.
    fn shown(&self) -> String;

    /// Takes one event; `has_more` says that the next one is there already.
    fn take(&mut self, event: event::Event, has_more: bool) -> Next<Self::Answer>;

    /// Returns the answer of a user who wants the run to end.
    fn declined() -> Self::Answer;

    /// Returns the answer when there was none in time.
    fn timeout() -> Self::Answer;
}

/// The question for a value.
struct ForValue {
    text: String,
    answer: Answer,
}

impl Dialogue for ForValue {
    type Answer = Reply;

    fn shown(&self) -> String {
        format!("{}{}", self.text, self.answer.prompt())
    }

    fn take(&mut self, event: event::Event, has_more: bool) -> Next<Reply> {
        self.answer.take(event, has_more)
    }

    fn declined() -> Reply {
        Reply::Declined
    }

    fn timeout() -> Reply {
        Reply::Timeout
    }
}

/// The question whether a secret may be used.
struct ForConsent(String);

impl Dialogue for ForConsent {
    type Answer = Consent;

    fn shown(&self) -> String {
        self.0.clone()
    }

    fn take(&mut self, event: event::Event, _: bool) -> Next<Consent> {
        agreement::take(&event)
    }

    fn declined() -> Consent {
        Consent::No
    }

    fn timeout() -> Consent {
        Consent::Unavailable
    }
}

/// Whether there is a terminal to ask on.
pub(super) fn has_terminal() -> bool {
    open().is_ok()
}

/// Asks for something hidden that karyi itself needs; the label is its own text. It blocks.
pub(super) fn hidden(label: &str, cancel: &Cancel) -> io::Result<Reply> {
    let dialogue = ForValue {
        text: label.to_owned(),
        answer: Answer::plain(),
    };
    converse(dialogue, cancel, &Suspension::default())
}

fn open() -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open("/dev/tty")
}

/// Keeps the terminal in raw mode as long as it lives.
struct RawMode {
    terminal: File,
}

impl RawMode {
    fn enter() -> io::Result<Self> {
        let terminal = open()?;
        terminal::enable_raw_mode()?;
        let mut guard = Self { terminal };
        crossterm::execute!(guard.terminal, event::EnableBracketedPaste)?;
        Ok(guard)
    }

    fn show(&mut self, text: &str) -> io::Result<()> {
        let text = text.replace('\n', "\r\n");
        self.terminal.write_all(text.as_bytes())?;
        self.terminal.flush()
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        let _ = crossterm::execute!(self.terminal, event::DisableBracketedPaste);
        let _ = self.terminal.write_all(b"\r\n");
        let _ = terminal::disable_raw_mode();
    }
}

fn converse<D: Dialogue>(
    mut dialogue: D,
    cancel: &Cancel,
    suspension: &Suspension,
) -> io::Result<D::Answer> {
    let asking = suspension.ask();
    // Raw mode comes first: whatever is typed from the moment the question stands there is hidden.
    let mut raw = RawMode::enter()?;
    raw.show(&format!("\r\x1b[2K{}", dialogue.shown()))?;
    let deadline = Instant::now() + limits::PROMPT_TIMEOUT;
    while Instant::now() < deadline {
        if cancel.is_cancelled() {
            return Ok(D::declined());
        }
        if asking.is_wanted() {
            drop(raw);
            asking.stop();
            raw = RawMode::enter()?;
            raw.show(&dialogue.shown())?;
        }
        if !event::poll(limits::KEY_WAIT)? {
            continue;
        }
        let event = event::read()?;
        // Who types cannot be so fast: a line break with more behind it is a pasted one.
        let has_more = event::poll(limits::NO_GRACE)?;
        match dialogue.take(event, has_more) {
            Next::Keys => {}
            Next::Show(text) => raw.show(&text)?,
            Next::Done(answer) => return Ok(answer),
        }
    }
    Ok(D::timeout())
}

/// Returns the text of the question. What the model wrote is made safe to show.
fn text(question: &Question, origin: &str) -> String {
    let one_line = |text: &str| -> String {
        let words: Vec<&str> = text.split_whitespace().collect();
        safe(&words.join(" "))
            .chars()
            .take(limits::MAX_REASON_CHARS)
            .collect()
    };
    let mut out = format!(
        "karyi: the model asks for {}, in {}\n  reason: {}\n",
        question.name,
        one_line(origin),
        one_line(&question.reason)
    );
    if question.is_known {
        out.push_str("  there is a value already; the new one takes its place\n");
    }
    if let Some(note) = &question.note {
        out.push_str(&format!("  note: {}\n", one_line(note)));
    }
    out.push_str(
        "  value (hidden; Enter ends it, Ctrl+D when it has several lines, Esc declines): ",
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::SecretName;

    #[test]
    fn a_reason_cannot_fake_lines_or_colours() {
        let question = Question {
            name: SecretName::parse("TOKEN").unwrap(),
            reason: format!("a\n  value: b\x1b[31m\u{202E}\r{}", "x".repeat(2000)),
            note: None,
            store: None,
            is_known: false,
            least_bytes: limits::GOOD_SECRET_BYTES,
        };
        assert_eq!(
            text(&question, "a\x1b.xml"),
            format!(
                "karyi: the model asks for TOKEN, in a␛.xml\n  reason: a value: b␛[31m\u{FFFD} {}\n  \
                 value (hidden; Enter ends it, Ctrl+D when it has several lines, Esc declines): ",
                "x".repeat(limits::MAX_REASON_CHARS - 17)
            )
        );
    }

    /// Tells this program, started again on a terminal, to ask there and break.
    const BREAKS: &str = "KARYI_TEST_BREAKS";

    struct Breaking;

    impl Dialogue for Breaking {
        type Answer = ();

        fn shown(&self) -> String {
            "a question: ".to_owned()
        }

        fn take(&mut self, _: event::Event, _: bool) -> Next<()> {
            panic!("on purpose")
        }

        fn declined() {}

        fn timeout() {}
    }

    fn is_echoing(terminal: &dyn portable_pty::MasterPty) -> bool {
        let modes = terminal.get_termios().unwrap().local_flags;
        modes.bits() & nix::sys::termios::LocalFlags::ECHO.bits() != 0
    }

    #[test]
    fn a_question_that_breaks_gives_the_terminal_back() {
        use std::io::Read;
        if std::env::var_os(BREAKS).is_some() {
            let ask = || converse(Breaking, &Cancel::default(), &Suspension::default());
            assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(ask)).is_err());
            return;
        }
        let size = portable_pty::PtySize::default();
        let pair = portable_pty::native_pty_system().openpty(size).unwrap();
        let mut command = portable_pty::CommandBuilder::new(std::env::current_exe().unwrap());
        command.args(["--exact", "--nocapture"]);
        command.arg("cli::prompt::tests::a_question_that_breaks_gives_the_terminal_back");
        command.env(BREAKS, "1");
        let mut child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let mut reader = pair.master.try_clone_reader().unwrap();
        let mut writer = pair.master.take_writer().unwrap();
        let (mut seen, mut buffer) = (Vec::new(), [0; 4096]);
        while !seen.windows(10).any(|part| part == b"a question") {
            let length = reader.read(&mut buffer).unwrap();
            assert!(length > 0, "{}", String::from_utf8_lossy(&seen));
            seen.extend_from_slice(&buffer[..length]);
        }
        assert!(!is_echoing(pair.master.as_ref()));
        writer.write_all(b"x").unwrap();
        // What it says must be read, or it waits for room.
        let rest = std::thread::spawn(move || while let Ok(1..) = reader.read(&mut buffer) {});
        assert!(child.wait().unwrap().success());
        assert!(is_echoing(pair.master.as_ref()));
        drop((writer, pair.master));
        rest.join().unwrap();
    }
}
