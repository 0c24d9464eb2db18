//! Questions on the terminal: what is typed is hidden, never read from standard input, and the terminal is left as it
//! was however the question ends.

mod keys;
mod tty;

use crate::cli::signal_state::SignalState;
use crate::cli::terminal_lock::TerminalLock;
use crate::cli::{say, secret_lints};
use crate::exec::cancel::Cancel;
use crate::render::paint::safe_question;
use crate::tool::context::{Boxed, Consent, Lifetime, Prompter, Question, Reply, Request};
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;
use karyi_core::secret::SecretValue;
use karyi_vault::visible_bytes;
use keys::{Key, Line, Step};
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

/// The user at the terminal.
#[derive(Clone, Default)]
pub(super) struct Asker {
    pub(super) outside: Outside,
    /// The report waits while a question stands on the terminal.
    pub(super) terminal_lock: TerminalLock,
}

impl Asker {
    /// Returns whom karyi can ask: the user, when there is a terminal and somebody at it.
    pub(super) fn found(self, is_allowed: bool) -> Option<Self> {
        (is_allowed && tty::open().is_ok()).then_some(self)
    }

    /// Talks with the user when it is their turn. It blocks. With `breaks_run` Ctrl+C ends the run.
    fn talk<T>(
        &self,
        breaks_run: bool,
        dialogue: impl FnOnce(&mut Tty) -> Result<T, Unanswered>,
    ) -> Result<T, Unanswered> {
        let cancel = &self.outside.cancel;
        let _floor = self.terminal_lock.take(cancel);
        if cancel.is_cancelled() {
            return Err(Unanswered::Declined);
        }
        let mut tty = Tty::open(&self.outside, breaks_run)?;
        let answer = dialogue(&mut tty)?;
        tty.settle()?;
        Ok(answer)
    }

    /// Asks whether karyi may do something; Enter says yes. It blocks.
    pub(super) fn confirms(&self, question: &str) -> bool {
        let question = format!("{question} [Y/n] ");
        let answer = self.talk(true, |tty| ask_yes(tty, &question, Some(true)));
        answer.unwrap_or(false)
    }
}

/// Asks for something hidden that karyi itself needs; `otherwise` says how it comes where nobody can be asked. It blocks.
///
/// # Errors
/// `declined`, `cancelled`, `prompt_timeout`, or `secret_prompt_unavailable` when nobody can be asked.
pub(super) fn hidden(
    asker: Option<&Asker>,
    label: &str,
    otherwise: &str,
) -> Result<SecretValue, ToolError> {
    let nobody = Err(Unanswered::Unavailable);
    let answer = asker.map_or(nobody, |asker| {
        asker.talk(true, |tty| read_value(tty, label))
    });
    answer.map_err(|why| {
        let is_cancelled = asker.is_some_and(|asker| asker.outside.cancel.is_cancelled());
        let (code, message, hint) = match why {
            Unanswered::Unavailable => (
                ErrorCode::SecretPromptUnavailable,
                "something must be typed, and nobody can be asked",
                otherwise,
            ),
            _ if is_cancelled => (ErrorCode::Cancelled, "interrupted", "try again"),
            Unanswered::Declined => (ErrorCode::Declined, "nothing was given", "try again"),
            Unanswered::Timeout => (
                ErrorCode::PromptTimeout,
                "nothing was given in time",
                "try again",
            ),
        };
        ToolError::new(code, message).with_hint(hint)
    })
}

/// The questions of scripts on the user's terminal.
pub(super) struct Terminal {
    pub(super) asking: Asking,
    pub(super) asker: Asker,
    /// Where the scripts come from that ask.
    pub(super) origin: String,
}

impl Terminal {
    async fn talk<T: Send + 'static>(
        &self,
        dialogue: impl FnOnce(&mut Tty) -> Result<T, Unanswered> + Send + 'static,
    ) -> Result<T, Unanswered> {
        let asker = self.asker.clone();
        let answer = tokio::task::spawn_blocking(move || asker.talk(false, dialogue));
        answer.await.unwrap_or(Err(Unanswered::Unavailable))
    }
}

impl Prompter for Terminal {
    fn is_there(&self) -> bool {
        self.asking == Asking::OnTerminal && tty::open().is_ok()
    }

    fn ask<'a>(&'a self, question: &'a Question) -> Boxed<'a, Reply> {
        Box::pin(async move {
            if self.asking == Asking::Warn {
                let name = &question.name;
                say(&format!(
                    "warning: {name} is asked for and --vars-mode warn never asks; give it with `karyi var set {name}`"
                ));
            }
            // Whoever has no terminal is told so at once.
            if !self.is_there() {
                return Reply::Unavailable;
            }
            let (question, text) = (question.clone(), text(question, &self.origin));
            match self.talk(move |tty| ask_value(tty, &question, &text)).await {
                Ok((value, lifetime)) => Reply::Value(value, lifetime),
                Err(Unanswered::Declined) => Reply::Declined,
                Err(Unanswered::Timeout) => Reply::Timeout,
                Err(Unanswered::Unavailable) => Reply::Unavailable,
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
            if !self.is_there() {
                return Consent::Unavailable;
            }
            let text = request_text(request);
            let ask = move |tty: &mut Tty| {
                tty.show(&text)?;
                // Enter alone agrees to nothing.
                ask_yes(tty, "  agree, for this session? [y]es, [n]o: ", None)
            };
            match self.talk(ask).await {
                Ok(true) => Consent::Yes,
                Ok(false) | Err(Unanswered::Declined) => Consent::No,
                Err(Unanswered::Timeout | Unanswered::Unavailable) => Consent::Unavailable,
            }
        })
    }
}

fn ask_yes(tty: &mut Tty, question: &str, by_enter: Option<bool>) -> Result<bool, Unanswered> {
    tty.ask(question)?;
    loop {
        match (tty.key()?, by_enter) {
            (Key::Char('y' | 'Y'), _) => return Ok(true),
            (Key::Char('n' | 'N') | Key::Control('d') | Key::Escape, _) => return Ok(false),
            (Key::Enter, Some(answer)) => return Ok(answer),
            _ => {}
        }
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

/// Asks the question of a script for a value.
fn ask_value(
    tty: &mut Tty,
    question: &Question,
    text: &str,
) -> Result<(SecretValue, Lifetime), Unanswered> {
    tty.show(text)?;
    let mut label = VALUE_LABEL.to_owned();
    let value = loop {
        let value = read_value(tty, &label)?;
        match refusal(question.least_bytes, value.expose()) {
            Some(why) => label = format!("\n  not taken: {why}; another one: "),
            None => break value,
        }
    };
    let doubts = secret_lints::of_value(&question.name, &value).into_iter();
    let notes: String = doubts.map(|doubt| format!("\n  note: {doubt}")).collect();
    let save = question.store.map(|store| format!(", sa[v]e in {store}"));
    let save = save.unwrap_or_default();
    tty.ask(&format!(
        "{notes}\n  keep it: [u]se once, [s]ession (Enter){save}, [d]eny: "
    ))?;
    let lifetime = loop {
        match tty.key()? {
            Key::Escape | Key::Control('d') | Key::Char('d' | 'D') => {
                return Err(Unanswered::Declined);
            }
            Key::Char('u' | 'U') => break Lifetime::Once,
            Key::Enter | Key::Char('s' | 'S') => break Lifetime::Session,
            Key::Char('v' | 'V') if question.store.is_some() => break Lifetime::Saved,
            _ => {}
        }
    };
    Ok((value, lifetime))
}

/// Reason why a value cannot be used.
fn refusal(least: usize, value: &str) -> Option<String> {
    let most = limits::MAX_SECRET_BYTES;
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

/// Returns the text of the question for a value. What the model wrote is made safe to show.
fn text(question: &Question, origin: &str) -> String {
    let one_line = |text: &str| cut(&text.split_whitespace().collect::<Vec<_>>().join(" "));
    let mut out = format!(
        "karyi: the model asks for {}, in {}\n  reason: {}\n",
        question.name,
        one_line(origin),
        one_line(&question.reason)
    );
    if question.is_known {
        out.push_str("  there is a value already; the new one takes its place\n");
    }
    let more = [
        ("note", &question.note),
        ("it cannot be saved", &question.cannot_save),
    ];
    for (what, told) in more {
        let told = told.as_deref().map(one_line);
        out.extend(told.map(|told| format!("  {what}: {told}\n")));
    }
    out
}

/// Returns the text of the question whether a secret may be used.
fn request_text(request: &Request) -> String {
    let lines = request.text.lines().filter(|line| !line.trim().is_empty());
    let mut out = format!("karyi: <{}> wants to use {}\n", request.tool, request.name);
    let most = limits::MAX_SHOWN_LINES;
    let shown = lines.clone().take(most);
    out.extend(shown.map(|line| format!("  | {}\n", cut(line))));
    let rest = lines.count().saturating_sub(most);
    if rest > 0 {
        out.push_str(&format!("  | ... and {rest} more lines\n"));
    }
    let facts = request.facts();
    out.extend(facts.iter().map(|fact| format!("  {}\n", cut(fact))));
    out
}

/// Makes a line safe to show. Cuts a long one, and says so: who agrees must know that there is more.
fn cut(text: &str) -> String {
    let text = safe_question(text);
    let mut chars = text.chars();
    let shown: String = chars.by_ref().take(limits::MAX_REASON_CHARS).collect();
    match chars.count() {
        0 => shown,
        rest => format!("{shown} ... and {rest} more characters"),
    }
}

#[cfg(test)]
mod tests;
