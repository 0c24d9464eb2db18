//! Questions on the terminal. Input is hidden and never read from standard input; the terminal is restored
//! however the question ends.

mod keys;
pub(super) mod tty;

use crate::cli::signal_state::SignalState;
use crate::cli::terminal_lock::TerminalLock;
use crate::cli::{say, secret_lints};
use crate::exec::cancel::Cancel;
use crate::render::paint::safe_question;
use crate::tool::context::{ApprovalRequest, Boxed, Consent, Lifetime, Prompter, Question, Reply};
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;
use karyi_core::secret::SecretValue;
use karyi_vault::visible_bytes;
use keys::{Key, Step, ValueInput};
use tty::{NoAnswer, Tty};

/// Prompt for a value.
const VALUE_LABEL: &str =
    "  value (hidden; Enter ends it, Ctrl+D when it has several lines, Esc declines): ";

/// How the user is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asking {
    /// On the terminal.
    OnTerminal,
    /// Never; a line on standard error names the missing value.
    Warn,
    /// Never, silently: no user is available.
    Never,
}

/// Signals and cancellation that end a question.
#[derive(Debug, Clone, Default)]
pub(super) struct StopSource {
    /// Cancellation of the run.
    pub(super) cancel: Cancel,
    /// Records Ctrl+C when it ends the run: the key sends no signal during a question.
    pub(super) received: SignalState,
}

/// The user at the terminal.
#[derive(Clone, Default)]
pub(super) struct Asker {
    pub(super) stop_source: StopSource,
    /// Blocks the report while a question is on the terminal.
    pub(super) terminal_lock: TerminalLock,
}

impl Asker {
    /// Returns the user to ask, if questions are allowed and there is a terminal.
    pub(super) fn found(self, is_allowed: bool) -> Option<Self> {
        (is_allowed && tty::open().is_ok()).then_some(self)
    }

    /// Asks questions when it is their turn. Blocks. With `breaks_run` Ctrl+C ends the run.
    fn talk<T>(
        &self,
        breaks_run: bool,
        dialogue: impl FnOnce(&mut Tty) -> Result<T, NoAnswer>,
    ) -> Result<T, NoAnswer> {
        let cancel = &self.stop_source.cancel;
        let _floor = self.terminal_lock.lock_for_question(cancel);
        if cancel.is_cancelled() {
            return Err(NoAnswer::Declined);
        }
        let mut tty = Tty::open(&self.stop_source, breaks_run)?;
        let answer = dialogue(&mut tty)?;
        tty.settle()?;
        Ok(answer)
    }

    /// Asks for permission; Enter means yes. Blocks.
    pub(super) fn confirms(&self, question: &str) -> bool {
        let question = format!("{question} [Y/n] ");
        let answer = self.talk(true, |tty| ask_yes(tty, &question, Some(true)));
        answer.unwrap_or(false)
    }

    /// Shows a text and asks a question, which Enter does not answer; `None` when nobody answers. Blocks.
    pub(super) fn agrees(&self, text: &str, question: &str) -> Option<bool> {
        let question = format!("{question} [y]es, [n]o: ");
        let ask = |tty: &mut Tty| {
            tty.show(text)?;
            ask_yes(tty, &question, None)
        };
        self.talk(true, ask).ok()
    }
}

/// Asks for a hidden value that karyi itself needs; `otherwise` names the alternative without a terminal. Blocks.
///
/// # Errors
/// `declined`, `cancelled`, `prompt_timeout`, or `secret_prompt_unavailable` without a user.
pub(super) fn hidden(
    asker: Option<&Asker>,
    label: &str,
    otherwise: &str,
) -> Result<SecretValue, ToolError> {
    let nobody = Err(NoAnswer::Unavailable);
    let answer = asker.map_or(nobody, |asker| {
        asker.talk(true, |tty| read_value(tty, label))
    });
    answer.map_err(|why| {
        let is_cancelled = asker.is_some_and(|asker| asker.stop_source.cancel.is_cancelled());
        let (code, message, hint) = match why {
            NoAnswer::Unavailable => (
                ErrorCode::SecretPromptUnavailable,
                "input is needed, and no user is available",
                otherwise,
            ),
            _ if is_cancelled => (ErrorCode::Cancelled, "interrupted", "try again"),
            NoAnswer::Declined => (
                ErrorCode::Declined,
                "the question was declined",
                "try again",
            ),
            NoAnswer::Timeout => (ErrorCode::PromptTimeout, "no input in time", "try again"),
        };
        ToolError::new(code, message).with_hint(hint)
    })
}

/// Asks the questions of scripts on the user's terminal.
pub(super) struct Terminal {
    pub(super) asking: Asking,
    pub(super) asker: Asker,
    /// Name of the scripts that ask.
    pub(super) origin: String,
}

impl Terminal {
    async fn talk<T: Send + 'static>(
        &self,
        dialogue: impl FnOnce(&mut Tty) -> Result<T, NoAnswer> + Send + 'static,
    ) -> Result<T, NoAnswer> {
        let asker = self.asker.clone();
        let answer = tokio::task::spawn_blocking(move || asker.talk(false, dialogue));
        answer.await.unwrap_or(Err(NoAnswer::Unavailable))
    }
}

impl Prompter for Terminal {
    fn is_available(&self) -> bool {
        self.asking == Asking::OnTerminal && tty::open().is_ok()
    }

    fn ask<'a>(&'a self, question: &'a Question) -> Boxed<'a, Reply> {
        Box::pin(async move {
            if self.asking == Asking::Warn {
                let name = &question.name;
                say(&format!(
                    "warning: {name} is needed and --vars-mode warn never asks; store it with `karyi var set {name}`"
                ));
            }
            // Without a terminal the answer is immediate.
            if !self.is_available() {
                return Reply::Unavailable;
            }
            let (question, text) = (question.clone(), text(question, &self.origin));
            match self.talk(move |tty| ask_value(tty, &question, &text)).await {
                Ok((value, lifetime)) => Reply::Value(value, lifetime),
                Err(NoAnswer::Declined) => Reply::Declined,
                Err(NoAnswer::Timeout) => Reply::Timeout,
                Err(NoAnswer::Unavailable) => Reply::Unavailable,
            }
        })
    }

    fn unavailable_reason(&self) -> Option<&str> {
        Some(match self.asking {
            Asking::OnTerminal => "there is no terminal",
            Asking::Warn => "--vars-mode warn never asks",
            Asking::Never => "--no-interactive, or CI, never asks",
        })
    }

    fn approve<'a>(&'a self, request: &'a ApprovalRequest) -> Boxed<'a, Consent> {
        Box::pin(async move {
            if !self.is_available() {
                return Consent::Unavailable;
            }
            let text = request_text(request);
            let ask = move |tty: &mut Tty| {
                tty.show(&text)?;
                // Enter alone is no consent.
                ask_yes(tty, "  agree, for this session? [y]es, [n]o: ", None)
            };
            match self.talk(ask).await {
                Ok(true) => Consent::Yes,
                Ok(false) | Err(NoAnswer::Declined) => Consent::No,
                Err(NoAnswer::Timeout | NoAnswer::Unavailable) => Consent::Unavailable,
            }
        })
    }
}

fn ask_yes(tty: &mut Tty, question: &str, by_enter: Option<bool>) -> Result<bool, NoAnswer> {
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

/// Reads one value of one or several lines.
fn read_value(tty: &mut Tty, label: &str) -> Result<SecretValue, NoAnswer> {
    tty.ask(label)?;
    let mut line = ValueInput::new();
    loop {
        let key = tty.key()?;
        let has_more = tty.has_more()?;
        match line.take(key, has_more) {
            Step::More => {}
            Step::SeveralLines => tty.show("\n  several lines; Ctrl+D ends the value: ")?,
            Step::Complete => return Ok(line.into_value()),
            Step::Declined => return Err(NoAnswer::Declined),
        }
    }
}

/// Asks a script's question for a value.
fn ask_value(
    tty: &mut Tty,
    question: &Question,
    text: &str,
) -> Result<(SecretValue, Lifetime), NoAnswer> {
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
                return Err(NoAnswer::Declined);
            }
            Key::Char('u' | 'U') => break Lifetime::Once,
            Key::Enter | Key::Char('s' | 'S') => break Lifetime::Session,
            Key::Char('v' | 'V') if question.store.is_some() => break Lifetime::Saved,
            _ => {}
        }
    };
    Ok((value, lifetime))
}

/// Returns the reason why a value cannot be used.
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

/// Returns the text of the question for a value. The model's words are made safe to show.
fn text(question: &Question, origin: &str) -> String {
    let one_line = |text: &str| cut(&text.split_whitespace().collect::<Vec<_>>().join(" "));
    let mut out = format!(
        "karyi: the model asks for {}, in {}\n  reason: {}\n",
        question.name,
        one_line(origin),
        one_line(&question.reason)
    );
    if question.is_known {
        out.push_str("  a value exists; the new one replaces it\n");
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

/// Returns the text of the request for consent.
fn request_text(request: &ApprovalRequest) -> String {
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

/// Makes a line safe to show. A long line is cut with a note, so that the user knows there is more.
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
