//! State shared by all calls of a run, and the masking of every event that leaves it.

use std::borrow::Cow;

use serde_json::Value;
use tokio::sync::mpsc;

use crate::exec::Event;
use crate::exec::cancel::Cancel;
use crate::exec::jobs::Jobs;
use crate::exec::policy_gate::PolicyGate;
use crate::tool::Context;
use crate::tool::sessions::JOB_PREFIX;
use karyi_core::error::{Diagnostic, ToolError};
use karyi_core::head_tail::Cap;
use karyi_core::limits;
use karyi_core::outcome::{JobNews, Outcome};
use karyi_vault::redact::{Redactable, Redacted, Redactor};

/// State shared by all calls of a run.
#[derive(Clone)]
pub struct RunContext {
    /// Resources the tools may use.
    pub context: Context,
    /// Limit of the output a result shows.
    pub cap: Cap,
    /// True when output is shown while the command runs.
    pub is_live: bool,
    /// True when a person watches, who may see the start of a possible value while the output pauses.
    pub is_watched: bool,
    /// True when live output may keep the program's colours.
    pub has_colour: bool,
    /// True when that person types the answers of commands that wait.
    pub has_keyboard: bool,
    /// True when calls are only described.
    pub is_dry_run: bool,
    /// Receiver of the events.
    pub events: mpsc::Sender<Redacted<Event>>,
    /// Cancellation of the run.
    pub cancel: Cancel,
    /// Commands that outlive their call.
    pub jobs: Jobs,
    /// Checks the use of secrets.
    pub policy_gate: PolicyGate,
    /// Masks values in all output.
    pub redactor: Redactor,
}

impl RunContext {
    /// Returns text written by the model with the values of secrets masked.
    #[must_use]
    pub(crate) fn masked(&self, text: &str) -> String {
        self.redactor.redact_again(text).into_owned()
    }

    /// Masks and sends an event. A receiver that is gone, or does not read after cancellation, does not
    /// block the run.
    pub async fn emit(&self, event: Event) {
        self.emit_sealed(self.redactor.seal(event)).await;
    }

    /// Sends a masked event.
    pub async fn emit_sealed(&self, event: Redacted<Event>) {
        tokio::select! {
            biased;
            _ = self.events.send(event) => {}
            () = self.cancel.cancelled_for(limits::CANCEL_GRACE) => {}
        }
    }
}

/// Masks every text of an event once more, whatever masked it before. A new field must be named here.
impl Redactable for Event {
    fn mask(&mut self, redactor: &Redactor) {
        match self {
            Self::Started {
                index: _,
                id,
                tool: _,
                heading: _,
                title,
                line_count: _,
                label,
            } => {
                if let Some(label) = label {
                    redactor.redact_in_again(label);
                }
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
            Self::Prose(text) => redactor.redact_in_again(text),
            Self::Unfinished { index: _, line: _ } | Self::Unreadable | Self::Tick => {}
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
        title,
    } = outcome;
    redactor.redact_in_again(id);
    if let Some(title) = title {
        redactor.redact_in_again(title);
    }
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
        // The caret would point to the wrong place in a line of another length.
        excerpt.caret_start = 0;
        excerpt.caret_len = line.chars().count();
        excerpt.line = line;
    }
}

/// Fields that repeat the model's words: placeholders in them are the model's own.
const ECHOED_FIELDS: [&str; 3] = ["src", "to", "pattern"];

/// Masks values in one field. The file of a job was masked when it was written.
fn redact_value(redactor: &Redactor, value: &mut Value) {
    let Value::Array(items) = value else {
        return redactor.redact_values(value);
    };
    for item in items {
        // Diffs are masked before they are computed, so that no hidden lines are compared.
        if let Some(Value::String(diff)) = item.get_mut("diff") {
            let masked = redactor.redact_again(diff).into_owned();
            redact_other_fields(redactor, item, "diff", masked);
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
                redact_other_fields(redactor, item, "output", masked);
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
    let echoed = ECHOED_FIELDS.map(|key| fields.get_mut(key).map(Value::take));
    redactor.redact_values(item);
    for (key, echo) in ECHOED_FIELDS.into_iter().zip(echoed) {
        if let Some((mut echo, field)) = echo.zip(item.get_mut(key)) {
            redactor.redact_values_again(&mut echo);
            *field = echo;
        }
    }
}

/// Masks values in the other fields of an item; the field `key` is already masked.
fn redact_other_fields(redactor: &Redactor, item: &mut Value, key: &str, masked: String) {
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

/// Masks values in the result of a tool.
pub(crate) fn redact_result(redactor: &Redactor, outcome: &mut Outcome) {
    for value in outcome.fields.values_mut() {
        redact_value(redactor, value);
    }
    if let Some(ToolError { message, hint, .. }) = &mut outcome.error {
        *message = redactor.redact_str(message).into_owned();
        *hint = redactor.redact_str(hint).into_owned();
    }
}
