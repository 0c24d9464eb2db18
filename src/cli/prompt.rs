//! Asks for a value on the terminal: hidden, never on standard input, and the terminal is left as
//! it was however the question ends.

use std::fs::{File, OpenOptions};
use std::future::Future;
use std::io::{self, Write};
use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use crossterm::terminal;
use zeroize::Zeroizing;

use crate::cli::screen::Floor;
use crate::exec::cancel::Cancel;
use crate::limits;
use crate::render::paint::safe;
use crate::secret::SecretValue;
use crate::tool::context::{Prompter, Question, Reply};

/// The user's terminal.
pub(super) struct Terminal {
    may_ask: bool,
    cancel: Cancel,
    /// The report waits while a question stands on the terminal.
    floor: Floor,
    /// One question at a time.
    turn: tokio::sync::Mutex<()>,
}

impl Terminal {
    /// Makes the way to the user; without `may_ask` nobody is asked.
    pub(super) fn new(may_ask: bool, cancel: Cancel, floor: Floor) -> Self {
        Self {
            may_ask,
            cancel,
            floor,
            turn: tokio::sync::Mutex::new(()),
        }
    }
}

impl Prompter for Terminal {
    fn ask<'a>(
        &'a self,
        question: &'a Question,
    ) -> Pin<Box<dyn Future<Output = Reply> + Send + 'a>> {
        Box::pin(async move {
            if !self.may_ask {
                return Reply::Unavailable;
            }
            let _turn = self.turn.lock().await;
            let (question, cancel) = (question.clone(), self.cancel.clone());
            let floor = Arc::clone(&self.floor);
            let answer = tokio::task::spawn_blocking(move || {
                let _floor = floor.lock().unwrap_or_else(PoisonError::into_inner);
                ask_on_terminal(&question, &cancel)
            })
            .await;
            match answer {
                Ok(Ok(reply)) => reply,
                Ok(Err(_)) | Err(_) => Reply::Unavailable,
            }
        })
    }
}

/// Keeps the terminal in raw mode as long as it lives.
struct RawMode {
    terminal: File,
}

impl RawMode {
    fn enter(terminal: File) -> io::Result<Self> {
        terminal::enable_raw_mode()?;
        let mut guard = Self { terminal };
        crossterm::execute!(guard.terminal, event::EnableBracketedPaste)?;
        Ok(guard)
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        let _ = crossterm::execute!(self.terminal, event::DisableBracketedPaste);
        let _ = self.terminal.write_all(b"\r\n");
        let _ = terminal::disable_raw_mode();
    }
}

/// Whether there is a terminal to ask on.
pub(super) fn has_terminal() -> bool {
    open().is_ok()
}

/// Asks for something hidden on the terminal; the label is karyi's own text.
pub(super) fn hidden(label: &str) -> io::Result<Reply> {
    ask_hidden(label, &Cancel::default())
}

fn open() -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open("/dev/tty")
}

fn ask_on_terminal(question: &Question, cancel: &Cancel) -> io::Result<Reply> {
    ask_hidden(&text(question), cancel)
}

fn ask_hidden(text: &str, cancel: &Cancel) -> io::Result<Reply> {
    let terminal = open()?;
    // Raw mode comes first: whatever is typed from the moment the question stands there is hidden.
    let mut raw = RawMode::enter(terminal)?;
    let shown = text.replace('\n', "\r\n");
    write!(raw.terminal, "\r\x1b[2K{shown}")?;
    raw.terminal.flush()?;
    let deadline = Instant::now() + limits::PROMPT_TIMEOUT;
    let mut typed = Zeroizing::new(String::with_capacity(limits::MAX_SECRET_BYTES));
    while Instant::now() < deadline {
        if cancel.is_cancelled() {
            return Ok(Reply::Declined);
        }
        if !event::poll(limits::KEY_WAIT)? {
            continue;
        }
        match step(event::read()?, &mut typed) {
            Step::More => {}
            Step::Done if typed.is_empty() => return Ok(Reply::Declined),
            Step::Done => return Ok(Reply::Value(SecretValue::new(std::mem::take(&mut *typed)))),
            Step::Declined => return Ok(Reply::Declined),
        }
    }
    Ok(Reply::Timeout)
}

enum Step {
    More,
    Done,
    Declined,
}

/// Takes one event. A pasted text may have several lines; Enter ends the value.
fn step(event: Event, typed: &mut String) -> Step {
    match event {
        Event::Paste(text) => {
            let text = Zeroizing::new(text);
            add(typed, text.trim_end_matches(['\r', '\n']));
            Step::More
        }
        Event::Key(key) if key.kind != KeyEventKind::Release => key_step(key, typed),
        _ => Step::More,
    }
}

fn key_step(key: KeyEvent, typed: &mut String) -> Step {
    let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Enter => Step::Done,
        KeyCode::Esc => Step::Declined,
        KeyCode::Char('c' | 'd') if is_control => Step::Declined,
        KeyCode::Char('j' | 'm') if is_control => Step::Done,
        KeyCode::Char('u') if is_control => {
            typed.clear();
            Step::More
        }
        KeyCode::Char(c) if !is_control => {
            add(typed, c.encode_utf8(&mut [0; 4]));
            Step::More
        }
        KeyCode::Backspace => {
            typed.pop();
            Step::More
        }
        _ => Step::More,
    }
}

/// Adds text as far as there is room: a reallocation would leave a copy behind.
fn add(typed: &mut String, text: &str) {
    if typed.len() + text.len() <= typed.capacity() {
        typed.push_str(text);
    }
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
    out.push_str("  value (hidden; Enter to give it for this session, Esc to decline): ");
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
            reason: "a\n  value: b\x1b[31m\u{202E}".into(),
            note: None,
        };
        assert_eq!(
            text(&question),
            "karyi: the model asks for TOKEN\n  reason: a value: b␛[31m\u{FFFD}\n  \
             value (hidden; Enter to give it for this session, Esc to decline): "
        );
    }

    #[test]
    fn keys_make_the_value() {
        let mut typed = String::with_capacity(100);
        let key = |code, modifiers| Event::Key(KeyEvent::new(code, modifiers));
        for c in "abx".chars() {
            step(key(KeyCode::Char(c), KeyModifiers::NONE), &mut typed);
        }
        step(key(KeyCode::Backspace, KeyModifiers::NONE), &mut typed);
        step(Event::Paste("1\n2\n".into()), &mut typed);
        assert_eq!(typed, "ab1\n2");
        assert!(matches!(
            step(key(KeyCode::Enter, KeyModifiers::NONE), &mut typed),
            Step::Done
        ));
        assert!(matches!(
            step(key(KeyCode::Char('c'), KeyModifiers::CONTROL), &mut typed),
            Step::Declined
        ));
        assert!(matches!(
            step(key(KeyCode::Esc, KeyModifiers::NONE), &mut typed),
            Step::Declined
        ));
    }
}
