//! Questions on the terminal: what is typed is hidden, never read from standard input, and the terminal is left as it
//! was however the question ends.

mod consent;
mod keys;
mod line;
mod tty;

use crate::cli::signal_state::SignalState;
use crate::cli::terminal_lock::TerminalLock;
use crate::cli::{say, secret_lints};
use crate::exec::cancel::Cancel;
use crate::limits;
use crate::secret::{SecretName, SecretValue};
use crate::tool::context::{Boxed, Consent, Lifetime, Prompter, Question, Reply, Request};
use crate::vault::visible_bytes;
use keys::Key;
use line::{Line, Step};
use tty::{Tty, Unanswered};

/// Where a value is typed.
const VALUE_LABEL: &str =
    "  value (hidden; Enter ends it, Ctrl+D when it has several lines, Esc declines): ";

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

/// Signals and cancellation that end a question before its answer.
#[derive(Debug, Clone, Default)]
pub(super) struct Outside {
    /// The wish to stop.
    pub(super) cancel: Cancel,
    /// Is told of Ctrl+C where that ends the run: the key is no signal while a question stands.
    pub(super) received: SignalState,
}

/// The user's terminal.
pub(super) struct Terminal {
    asking: Asking,
    outside: Outside,
    /// The report waits while a question stands on the terminal.
    terminal_lock: TerminalLock,
    /// Where the scripts come from that ask.
    origin: String,
    /// One question at a time.
    turn: tokio::sync::Mutex<()>,
}

impl Terminal {
    /// Makes the way to the user.
    pub(super) fn new(
        asking: Asking,
        outside: Outside,
        terminal_lock: TerminalLock,
        origin: String,
    ) -> Self {
        Self {
            asking,
            outside,
            terminal_lock,
            origin,
            turn: tokio::sync::Mutex::new(()),
        }
    }

    /// Asks when it is its turn.
    async fn on_terminal<T: Send + 'static>(
        &self,
        dialogue: impl FnOnce(&mut Tty) -> Result<T, Unanswered> + Send + 'static,
    ) -> Result<T, Unanswered> {
        // Whoever has no terminal is told so at once, also while another question stands there.
        tty::open()?;
        let _turn = self.turn.lock().await;
        let (terminal_lock, outside) = (self.terminal_lock.clone(), self.outside.clone());
        let answer = tokio::task::spawn_blocking(move || {
            let _floor = terminal_lock
                .take(&outside.cancel)
                .ok_or(Unanswered::Declined)?;
            dialogue(&mut Tty::open(&outside, false)?)
        });
        answer.await.unwrap_or(Err(Unanswered::Unavailable))
    }
}

impl Prompter for Terminal {
    fn is_there(&self) -> bool {
        self.asking == Asking::OnTerminal && has_terminal()
    }

    fn ask<'a>(&'a self, question: &'a Question) -> Boxed<'a, Reply> {
        Box::pin(async move {
            match self.asking {
                Asking::OnTerminal => {
                    let asked = ValueQuestion {
                        text: text(question, &self.origin),
                        name: question.name.clone(),
                        store: question.store,
                        least_bytes: question.least_bytes,
                    };
                    let answer = self.on_terminal(move |tty| asked.ask(tty)).await;
                    reply(answer)
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

    fn absence(&self) -> Option<&str> {
        Some(match self.asking {
            Asking::OnTerminal => "there is no terminal",
            Asking::Warn => "--vars-mode warn never asks",
            Asking::Never => "--no-interactive, or CI, never asks",
        })
    }

    fn agree<'a>(&'a self, request: &'a Request) -> Boxed<'a, Consent> {
        Box::pin(async move {
            if self.asking != Asking::OnTerminal {
                return Consent::Unavailable;
            }
            let request = request.clone();
            let ask = move |tty: &mut Tty| consent::ask_consent(tty, &request);
            match self.on_terminal(ask).await {
                Ok(true) => Consent::Yes,
                Ok(false) | Err(Unanswered::Declined) => Consent::No,
                Err(Unanswered::Timeout | Unanswered::Unavailable) => Consent::Unavailable,
            }
        })
    }
}

/// Whether there is a terminal to ask on.
pub(super) fn has_terminal() -> bool {
    tty::open().is_ok()
}

/// Asks for something hidden that karyi itself needs. It blocks.
pub(super) fn hidden(label: &str, outside: &Outside) -> Reply {
    let ask = || {
        let mut tty = Tty::open(outside, true)?;
        let value = read_value(&mut tty, label)?;
        tty.settle()?;
        Ok((value, Lifetime::Session))
    };
    reply(ask())
}

/// Asks whether karyi may do something; Enter says yes. It blocks.
pub(super) fn confirm(question: &str, outside: &Outside) -> bool {
    let ask = || consent::ask_yes(&mut Tty::open(outside, true)?, question);
    ask().unwrap_or(false)
}

fn reply(answer: Result<(SecretValue, Lifetime), Unanswered>) -> Reply {
    match answer {
        Ok((value, lifetime)) => Reply::Value(value, lifetime),
        Err(Unanswered::Declined) => Reply::Declined,
        Err(Unanswered::Timeout) => Reply::Timeout,
        Err(Unanswered::Unavailable) => Reply::Unavailable,
    }
}

/// Reads one value, of one line or of several.
fn read_value(tty: &mut Tty, label: &str) -> Result<SecretValue, Unanswered> {
    tty.ask(label)?;
    let mut line = Line::new();
    loop {
        let key = tty.key()?;
        let has_more = tty.has_more()?;
        match line.take(key, has_more) {
            Step::More => {}
            Step::SeveralLines => tty.show("\n  several lines; Ctrl+D ends the value: ")?,
            Step::Complete => return Ok(line.into_value()),
            Step::Declined => return Err(Unanswered::Declined),
        }
    }
}

/// The question of a script for a value.
struct ValueQuestion {
    text: String,
    name: SecretName,
    /// The store that could keep the value.
    store: Option<&'static str>,
    /// Least bytes of a value, white space not counted.
    least_bytes: usize,
}

impl ValueQuestion {
    fn ask(&self, tty: &mut Tty) -> Result<(SecretValue, Lifetime), Unanswered> {
        tty.show(&self.text)?;
        let mut label = VALUE_LABEL.to_owned();
        let value = loop {
            let value = read_value(tty, &label)?;
            match self.refusal(value.expose()) {
                Some(why) => label = format!("\n  not taken: {why}; another one: "),
                None => break value,
            }
        };
        let doubts = secret_lints::of_value(&self.name, &value);
        let notes: String = doubts
            .iter()
            .map(|doubt| format!("\n  note: {doubt}"))
            .collect();
        tty.ask(&(notes + &self.choice()))?;
        let lifetime = loop {
            if let Some(chosen) = chosen(&tty.key()?, self.store.is_some()) {
                break chosen.ok_or(Unanswered::Declined)?;
            }
        };
        tty.settle()?;
        Ok((value, lifetime))
    }

    /// Reason why a value cannot be used.
    fn refusal(&self, value: &str) -> Option<String> {
        let (least, most) = (self.least_bytes, limits::MAX_SECRET_BYTES);
        if value.len() > most {
            return Some(format!("a value has at most {most} bytes"));
        }
        let short = match least > limits::MIN_SECRET_BYTES {
            true => format!(" ({} with --allow-short)", limits::MIN_SECRET_BYTES),
            false => String::new(),
        };
        (visible_bytes(value) < least)
            .then(|| format!("a value has at least {least} bytes{short} that are not white space"))
    }

    fn choice(&self) -> String {
        let save = self
            .store
            .map_or_else(String::new, |store| format!(", sa[v]e in {store}"));
        format!("\n  keep it: [u]se once, [s]ession (Enter){save}, [d]eny: ")
    }
}

/// Meaning of a key at the choice: none yet, a refusal, or for how long.
fn chosen(key: &Key, can_save: bool) -> Option<Option<Lifetime>> {
    match key {
        Key::Escape | Key::Control('d') | Key::Char('d' | 'D') => Some(None),
        Key::Char('u' | 'U') => Some(Some(Lifetime::Once)),
        Key::Enter | Key::Char('s' | 'S') => Some(Some(Lifetime::Session)),
        Key::Char('v' | 'V') if can_save => Some(Some(Lifetime::Saved)),
        _ => None,
    }
}

/// Returns the text of the question. What the model wrote is made safe to show.
fn text(question: &Question, origin: &str) -> String {
    let one_line = |text: &str| {
        let words: Vec<&str> = text.split_whitespace().collect();
        consent::cut(&words.join(" "))
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
    if let Some(why) = &question.cannot_save {
        out.push_str(&format!("  it cannot be saved: {}\n", one_line(why)));
    }
    out
}

#[cfg(test)]
mod tests;
