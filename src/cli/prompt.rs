//! Asks for a value on the terminal: hidden, never on standard input, and the terminal is left as
//! it was however the question ends.

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
use crate::tool::context::{Boxed, Prompter, Question, Reply};
use answer::{Answer, Next};

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
    ) -> Self {
        Self {
            asking,
            cancel,
            floor,
            suspension,
            turn: tokio::sync::Mutex::new(()),
        }
    }

    async fn on_terminal(&self, question: &Question) -> Reply {
        // Whoever has no terminal is told so at once, also while another question stands there.
        if open().is_err() {
            return Reply::Unavailable;
        }
        let _turn = self.turn.lock().await;
        let (question, cancel) = (question.clone(), self.cancel.clone());
        let (floor, suspension) = (Arc::clone(&self.floor), self.suspension.clone());
        let answer = tokio::task::spawn_blocking(move || {
            let _floor = floor.lock().unwrap_or_else(PoisonError::into_inner);
            ask(&question, &cancel, &suspension)
        })
        .await;
        match answer {
            Ok(Ok(reply)) => reply,
            Ok(Err(_)) | Err(_) => Reply::Unavailable,
        }
    }
}

impl Prompter for Terminal {
    fn ask<'a>(&'a self, question: &'a Question) -> Boxed<'a, Reply> {
        Box::pin(async move {
            match self.asking {
                Asking::OnTerminal => self.on_terminal(question).await,
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

fn ask(question: &Question, cancel: &Cancel, suspension: &Suspension) -> io::Result<Reply> {
    let asking = suspension.ask();
    // Raw mode comes first: whatever is typed from the moment the question stands there is hidden.
    let mut raw = RawMode::enter()?;
    raw.show(&format!("\r\x1b[2K{}", text(question)))?;
    let deadline = Instant::now() + limits::PROMPT_TIMEOUT;
    let mut answer = Answer::new(question.store);
    while Instant::now() < deadline {
        if cancel.is_cancelled() {
            return Ok(Reply::Declined);
        }
        if asking.is_wanted() {
            drop(raw);
            asking.stop();
            raw = RawMode::enter()?;
            raw.show(&format!("{}{}", text(question), answer.prompt()))?;
        }
        if !event::poll(limits::KEY_WAIT)? {
            continue;
        }
        let event = event::read()?;
        // Who types cannot be so fast: a line break with more behind it is a pasted one.
        let has_more = event::poll(limits::NO_GRACE)?;
        match answer.take(event, has_more) {
            Next::Keys => {}
            Next::Show(text) => raw.show(&text)?,
            Next::Reply(reply) => return Ok(reply),
        }
    }
    Ok(Reply::Timeout)
}

/// Returns the text of the question. What the model wrote is made safe to show.
fn text(question: &Question) -> String {
    let one_line = |text: &str| -> String {
        let words: Vec<&str> = text.split_whitespace().collect();
        safe(&words.join(" "))
            .chars()
            .take(limits::MAX_REASON_CHARS)
            .collect()
    };
    let mut out = format!(
        "karyi: the model asks for {}\n  reason: {}\n",
        question.name,
        one_line(&question.reason)
    );
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
        };
        assert_eq!(
            text(&question),
            format!(
                "karyi: the model asks for TOKEN\n  reason: a value: b␛[31m\u{FFFD} {}\n  \
                 value (hidden; Enter ends it, Ctrl+D when it has several lines, Esc declines): ",
                "x".repeat(limits::MAX_REASON_CHARS - 17)
            )
        );
    }
}
