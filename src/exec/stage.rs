//! What all calls of a run share, and the one door its events leave by.

use std::borrow::Cow;

use serde_json::Value;
use tokio::sync::mpsc;

use crate::exec::Event;
use crate::exec::cancel::Cancel;
use crate::exec::jobs::Jobs;
use crate::exec::permit::Permits;
use crate::tool::Context;
use crate::tool::sessions::JOB_PREFIX;
use karyi_core::error::{Diagnostic, ToolError};
use karyi_core::head_tail::Cap;
use karyi_core::limits;
use karyi_core::outcome::{JobNews, Outcome};
use karyi_vault::redact::{Redactable, Redacted, Redactor};

/// What every call of a run shares.
#[derive(Clone)]
pub struct Stage {
    /// What the tools may use.
    pub context: Context,
    /// How much of a command's output a result keeps.
    pub cap: Cap,
    /// Whether output is shown while it comes.
    pub is_live: bool,
    /// Whether a person sees it, who is shown what may be the start of a value when nothing comes after it.
    pub is_watched: bool,
    /// Whether what is shown may have the colours of its program.
    pub has_colour: bool,
    /// Whether calls are only described.
    pub is_dry_run: bool,
    /// Where events go.
    pub events: mpsc::Sender<Redacted<Event>>,
    /// The wish to stop.
    pub cancel: Cancel,
    /// The commands that go on after their call.
    pub jobs: Jobs,
    /// What may use secrets.
    pub permits: Permits,
    /// Masks values in everything that leaves.
    pub redactor: Redactor,
}

impl Stage {
    /// Returns text the model wrote, without values of secrets.
    #[must_use]
    pub(crate) fn masked(&self, text: &str) -> String {
        self.redactor.redact_again(text).into_owned()
    }

    /// Sends an event, without values of secrets. A watcher that is gone is no reason to stop, and
    /// one that does not look holds up nobody who wants to.
    pub async fn tell(&self, event: Event) {
        self.pass_on(self.redactor.seal(event)).await;
    }

    /// Sends an event that was redacted.
    pub async fn pass_on(&self, event: Redacted<Event>) {
        tokio::select! {
            biased;
            _ = self.events.send(event) => {}
            () = self.cancel.cancelled_for(limits::CANCEL_GRACE) => {}
        }
    }
}

/// Every text of an event is masked once more, whatever it went through before; a field that is
/// added must be named here.
impl Redactable for Event {
    fn mask(&mut self, redactor: &Redactor) {
        match self {
            Self::Started {
                index: _,
                id,
                tool: _,
                heading: _,
                title,
            } => {
                redactor.redact_in_again(id);
                redactor.redact_in_again(title);
            }
            Self::Output {
                index: _,
                id,
                text: _,
            } => redactor.redact_in_again(id),
            Self::Finished { index: _, outcome } => mask_outcome(redactor, outcome),
            Self::Warning(diagnostic) | Self::Refused(diagnostic) => {
                mask_diagnostic(redactor, diagnostic);
            }
            Self::Jobs { news, omitted: _ } => {
                news.iter_mut().for_each(|job| mask_job(redactor, job));
            }
            Self::MessageEnded {
                is_interrupted: _,
                shell,
                note,
            } => [shell, note]
                .into_iter()
                .flatten()
                .for_each(|text| redactor.redact_in_again(text)),
            Self::BlockOpened | Self::Unreadable | Self::Tick => {}
        }
    }
}

fn mask_outcome(redactor: &Redactor, outcome: &mut Outcome) {
    let Outcome {
        id,
        tool,
        status: _,
        error,
        fields,
        output,
        duration_ms: _,
        repairs: _,
        job_waits: _,
    } = outcome;
    redactor.redact_in_again(id);
    redactor.redact_in_again(tool);
    if let Some(ToolError {
        code: _,
        message,
        hint,
        names: _,
    }) = error
    {
        redactor.redact_in_again(message);
        redactor.redact_in_again(hint);
    }
    for value in fields.values_mut() {
        redactor.redact_values_again(value);
    }
    if let Some(view) = output {
        redactor.redact_in_again(&mut view.text);
    }
}

fn mask_job(redactor: &Redactor, job: &mut JobNews) {
    let JobNews {
        id,
        command,
        state: _,
        is_background: _,
        exit_code: _,
        signal: _,
        age_ms: _,
        last_line,
    } = job;
    redactor.redact_in_again(id);
    redactor.redact_in_again(command);
    if let Some(line) = last_line {
        redactor.redact_in_again(line);
    }
}

fn mask_diagnostic(redactor: &Redactor, diagnostic: &mut Diagnostic) {
    let Diagnostic {
        code: _,
        position: _,
        is_in_json: _,
        message,
        hint,
        excerpt,
    } = diagnostic;
    redactor.redact_in_again(message);
    redactor.redact_in_again(hint);
    if let Some(excerpt) = excerpt
        && let Cow::Owned(line) = redactor.redact_again(&excerpt.line)
    {
        // The caret would point beside its place in a line of another length.
        excerpt.caret_start = 0;
        excerpt.caret_len = line.chars().count();
        excerpt.line = line;
    }
}

/// Fields that say again what the model wrote: placeholders in them are its own.
const ECHOES: [&str; 3] = ["src", "to", "pattern"];

/// Masks values in one field. What stands in the file of a job was masked before.
fn redact_value(redactor: &Redactor, value: &mut Value) {
    let Value::Array(items) = value else {
        return redactor.redact_values(value);
    };
    for item in items {
        // A diff was masked before it was made, or lines would be compared that nobody sees.
        if let Some(Value::String(diff)) = item.get_mut("diff") {
            let masked = redactor.redact_again(diff).into_owned();
            redact_beside(redactor, item, "diff", masked);
            continue;
        }
        let source = item.get("src").or_else(|| item.get("path"));
        let source = source.and_then(Value::as_str);
        let is_job = source.is_some_and(|source| source.starts_with(JOB_PREFIX));
        let is_cut = item.get("omitted_bytes").is_some();
        match item.get_mut("output").filter(|_| is_job || is_cut) {
            Some(Value::String(text)) => {
                let masked = match is_job {
                    true => redactor.redact_again(text).into_owned(),
                    false => redactor.redact_cut(text),
                };
                redact_beside(redactor, item, "output", masked);
            }
            _ => redact_fields(redactor, item),
        }
    }
}

/// Masks values in an item.
fn redact_fields(redactor: &Redactor, item: &mut Value) {
    let Value::Object(fields) = item else {
        return redactor.redact_values(item);
    };
    let echoes = ECHOES.map(|key| fields.get_mut(key).map(Value::take));
    redactor.redact_values(item);
    for (key, echo) in ECHOES.into_iter().zip(echoes) {
        if let Some((mut echo, field)) = echo.zip(item.get_mut(key)) {
            redactor.redact_values_again(&mut echo);
            *field = echo;
        }
    }
}

/// Masks values in an item but for one of its fields, which is masked already.
fn redact_beside(redactor: &Redactor, item: &mut Value, key: &str, masked: String) {
    let mut taken = std::mem::take(item);
    if let Some(field) = taken.get_mut(key) {
        *field = Value::Null;
    }
    redact_fields(redactor, &mut taken);
    if let Some(field) = taken.get_mut(key) {
        *field = Value::String(masked);
    }
    *item = taken;
}

/// Masks values in what a tool gave back.
pub(crate) fn redact_result(redactor: &Redactor, outcome: &mut Outcome) {
    for value in outcome.fields.values_mut() {
        redact_value(redactor, value);
    }
    if let Some(ToolError { message, hint, .. }) = &mut outcome.error {
        *message = redactor.redact_str(message).into_owned();
        *hint = redactor.redact_str(hint).into_owned();
    }
}
