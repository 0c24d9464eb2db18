//! Asks for a value on the terminal: hidden, never on standard input, and the terminal is left as
//! it was however the question ends.

mod agreement;
mod answer;
mod keys;
mod patience;
mod raw;
mod suspend;
mod turn;

use std::io;
use std::time::{Duration, Instant};

use crate::cli::floor::Floor;
use crate::cli::received::Received;
use crate::cli::say;
use crate::exec::cancel::Cancel;
use crate::limits;
use crate::tool::context::{Boxed, Consent, Prompter, Question, Reply, Request};
use answer::Answer;
use keys::Key;
use patience::Patience;
use raw::RawMode;
use turn::Turn;

pub(super) use suspend::Suspension;

/// Where a value is typed.
const VALUE_LABEL: &str =
    "  value (hidden; Enter ends it, Ctrl+D when it has several lines, Esc declines): ";

/// The signal of a terminal that is gone.
const HANGUP: u8 = 1;

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

/// What ends a question, or halts it, besides its answer.
#[derive(Debug, Clone, Default)]
pub(super) struct Outside {
    /// The wish to stop.
    pub(super) cancel: Cancel,
    /// Is told of Ctrl+C where that ends the run: the key is no signal while a question stands.
    pub(super) received: Received,
    pub(super) suspension: Suspension,
}

impl Outside {
    /// Ends the run, as the signal does.
    fn interrupt(&self) {
        self.received.note_interrupt();
        self.cancel.cancel();
    }
}

/// The user's terminal.
pub(super) struct Terminal {
    asking: Asking,
    outside: Outside,
    /// The report waits while a question stands on the terminal.
    floor: Floor,
    /// Where the scripts come from that ask.
    origin: String,
    /// One question at a time.
    turn: tokio::sync::Mutex<()>,
}

impl Terminal {
    /// Makes the way to the user.
    pub(super) fn new(asking: Asking, outside: Outside, floor: Floor, origin: String) -> Self {
        Self {
            asking,
            outside,
            floor,
            origin,
            turn: tokio::sync::Mutex::new(()),
        }
    }

    /// Has a dialogue when it is its turn; nothing when there is no terminal.
    async fn on_terminal<D: Dialogue + Send + 'static>(&self, dialogue: D) -> Option<D::Answer> {
        // Whoever has no terminal is told so at once, also while another question stands there.
        turn::open().ok()?;
        let _turn = self.turn.lock().await;
        let (floor, outside) = (self.floor.clone(), self.outside.clone());
        let answer = tokio::task::spawn_blocking(move || match floor.take(&outside.cancel) {
            Some(_floor) => converse(dialogue, &outside),
            None => Ok(D::declined()),
        });
        answer.await.ok()?.ok()
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
                    let dialogue = ForValue {
                        text: text(question, &self.origin),
                        label: VALUE_LABEL.to_owned(),
                        answer: Answer::new(question.store, question.least_bytes),
                        is_own: false,
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
            let dialogue = ForConsent(agreement::text(request));
            let consent = self.on_terminal(dialogue).await;
            consent.unwrap_or(Consent::Unavailable)
        })
    }
}

/// What comes after a key.
enum Next<T> {
    /// More keys.
    Keys,
    /// A text for the terminal, then more keys.
    Show(String),
    /// Another question; what was typed before it stands there is no answer to it.
    Ask(String),
    /// The end.
    Done(T),
}

/// A question with everything that is needed to have it answered.
trait Dialogue {
    /// What comes of it.
    type Answer: Send + 'static;

    /// Returns what the user reads first, in whole lines.
    fn told(&self) -> String;

    /// Returns what is shown when keys begin to count.
    fn prompt(&self) -> String;

    /// Whether the first Ctrl+C ends the run instead of declining: karyi itself needs the answer, and
    /// nothing should go on without it.
    fn is_own(&self) -> bool {
        false
    }

    /// Takes one key; `has_more` says that the next one is there already.
    fn take(&mut self, key: Key, has_more: bool) -> Next<Self::Answer>;

    /// Returns the answer of a user who wants the run to end.
    fn declined() -> Self::Answer;

    /// Returns the answer when there was none in time.
    fn timeout() -> Self::Answer;
}

/// The question for a value.
struct ForValue {
    /// What is told before, in whole lines.
    text: String,
    label: String,
    answer: Answer,
    is_own: bool,
}

impl Dialogue for ForValue {
    type Answer = Reply;

    fn told(&self) -> String {
        self.text.clone()
    }

    fn prompt(&self) -> String {
        format!("{}{}", self.label, self.answer.prompt())
    }

    fn is_own(&self) -> bool {
        self.is_own
    }

    fn take(&mut self, key: Key, has_more: bool) -> Next<Reply> {
        self.answer.take(key, has_more)
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

    fn told(&self) -> String {
        self.0.clone()
    }

    fn prompt(&self) -> String {
        agreement::PROMPT.to_owned()
    }

    fn take(&mut self, key: Key, _: bool) -> Next<Consent> {
        agreement::take(&key)
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
    turn::open().is_ok()
}

/// Asks for something hidden that karyi itself needs; the label is its own text. It blocks.
pub(super) fn hidden(label: &str, outside: &Outside) -> io::Result<Reply> {
    let dialogue = ForValue {
        text: String::new(),
        label: label.to_owned(),
        answer: Answer::plain(),
        is_own: true,
    };
    converse(dialogue, outside)
}

/// A question that stands on the terminal.
struct Conversation<'a> {
    raw: RawMode,
    outside: &'a Outside,
    patience: &'a Patience,
    /// Whether the next Ctrl+C ends the run.
    breaks_run: bool,
}

impl Conversation<'_> {
    /// Puts a question: what was typed before it stands there is no answer to it. Returns whether the
    /// user wants the run to end instead.
    fn put(&mut self, told: &str, prompt: &str) -> io::Result<bool> {
        self.raw.show(told)?;
        let is_over = self.pause(self.patience)?;
        if !is_over {
            self.raw.show(prompt)?;
        }
        Ok(is_over)
    }

    /// Puts a question again after the program was stopped.
    fn put_again(
        &mut self,
        asking: &suspend::Question<'_>,
        dialogue: &impl Dialogue,
    ) -> io::Result<bool> {
        // That it goes on is heard a moment after it has the terminal, and is no second reason.
        let is_over = self.pause(self.patience)?;
        asking.has_gone_on();
        if is_over {
            return Ok(true);
        }
        self.raw.clear_line()?;
        self.put(&dialogue.told(), &dialogue.prompt())
    }

    /// Throws away what is typed until its writer pauses, or until something else ends the question.
    /// Returns whether the user wants that.
    fn pause(&mut self, patience: &Patience) -> io::Result<bool> {
        let mut last = Instant::now();
        while let Some(left) = limits::TYPING_PAUSE.checked_sub(last.elapsed()) {
            if self.outside.cancel.is_cancelled() || patience.is_over() {
                break;
            }
            if let Some(key) = self.key(left.min(limits::KEY_WAIT))? {
                last = Instant::now();
                if key.is_break() {
                    self.note_break();
                    return Ok(true);
                }
            }
        }
        self.raw.forget();
        Ok(false)
    }

    /// Returns the next key, if one comes in time. A terminal that is gone ends the run, as its signal
    /// does, which may come later.
    fn key(&mut self, patience: Duration) -> io::Result<Option<Key>> {
        let key = self.raw.key(patience);
        key.inspect_err(|_| {
            self.outside.received.note_end(HANGUP);
            self.outside.cancel.cancel();
        })
    }

    /// Takes a Ctrl+C: it declines, or ends the run, as a second one always does.
    fn note_break(&mut self) {
        if std::mem::replace(&mut self.breaks_run, true) {
            self.outside.interrupt();
        }
    }

    /// Ends the question once nothing more is typed: the rest of a paste, or of a `yes`, is for nobody.
    fn end<D: Dialogue>(&mut self, answer: D::Answer) -> io::Result<D::Answer> {
        let is_over = self.pause(&Patience::new(limits::TYPING_LIMIT))?;
        Ok(match is_over || self.outside.cancel.is_cancelled() {
            true => D::declined(),
            false => answer,
        })
    }
}

fn converse<D: Dialogue>(mut dialogue: D, outside: &Outside) -> io::Result<D::Answer> {
    let patience = Patience::new(limits::PROMPT_TIMEOUT);
    let unanswered = || match outside.cancel.is_cancelled() {
        true => D::declined(),
        false => D::timeout(),
    };
    let Some(turn) = Turn::wait(outside, &patience)? else {
        return Ok(unanswered());
    };
    let asking = outside.suspension.ask();
    // Raw mode comes first: whatever is typed from the moment the question stands there is hidden.
    let mut talk = Conversation {
        raw: RawMode::enter(turn)?,
        outside,
        patience: &patience,
        breaks_run: dialogue.is_own(),
    };
    talk.raw.clear_line()?;
    let mut is_over = talk.put(&dialogue.told(), &dialogue.prompt())?;
    while !is_over && !patience.is_over() {
        if outside.cancel.is_cancelled() {
            is_over = true;
        } else if let Some(key) = talk.key(limits::KEY_WAIT)? {
            if key.is_break() {
                talk.note_break();
            } else if key.is_stop() {
                suspend::stop_job();
            }
            // Who types cannot be so fast: a line break with more behind it is a pasted one.
            let has_more = talk.raw.has_more()?;
            match dialogue.take(key, has_more) {
                Next::Keys => {}
                Next::Show(text) => talk.raw.show(&text)?,
                Next::Ask(text) => is_over = talk.put("", &text)?,
                Next::Done(answer) => return talk.end::<D>(answer),
            }
        } else if asking.is_wanted() {
            // Nothing waits to be read: what was typed before the wish to stop is in the answer.
            drop(talk.raw);
            asking.stop();
            let Some(turn) = Turn::wait(outside, &patience)? else {
                return Ok(unanswered());
            };
            talk.raw = RawMode::enter(turn)?;
            is_over = talk.put_again(&asking, &dialogue)?;
        } else if asking.has_gone_on() || !talk.raw.is_kept()? {
            // Stopped by what cannot be caught: somebody had the terminal meanwhile, or has it still.
            if !talk.raw.again(outside, &patience)? {
                return Ok(unanswered());
            }
            is_over = talk.put_again(&asking, &dialogue)?;
        }
    }
    Ok(if is_over { D::declined() } else { D::timeout() })
}

/// Returns the text of the question. What the model wrote is made safe to show.
fn text(question: &Question, origin: &str) -> String {
    let one_line = |text: &str| {
        let words: Vec<&str> = text.split_whitespace().collect();
        agreement::cut(&words.join(" "))
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
