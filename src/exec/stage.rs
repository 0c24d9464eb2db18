//! What all calls of a run share, and the one door its events leave by.

use std::borrow::Cow;

use serde_json::Value;
use tokio::sync::mpsc;

use crate::capped::Cap;
use crate::error::{Diagnostic, ToolError};
use crate::exec::Event;
use crate::exec::cancel::Cancel;
use crate::exec::jobs::Jobs;
use crate::limits;
use crate::outcome::Outcome;
use crate::secret;
use crate::tool::Context;
use crate::tool::sessions::JOB_PREFIX;
use crate::vault::redact::Redactor;

/// What every call of a run shares.
#[derive(Clone)]
pub struct Stage {
    /// What the tools may use.
    pub context: Context,
    /// How much of a command's output a result keeps.
    pub cap: Cap,
    /// Whether output is shown while it comes.
    pub is_live: bool,
    /// Whether what is shown may have the colours of its program.
    pub has_colour: bool,
    /// Whether calls are only described.
    pub is_dry_run: bool,
    /// Where events go.
    pub events: mpsc::Sender<Event>,
    /// The wish to stop.
    pub cancel: Cancel,
    /// The commands that go on after their call.
    pub jobs: Jobs,
    /// Masks values in everything that leaves.
    pub redactor: Redactor,
}

impl Stage {
    /// Returns text the model wrote, without values of secrets.
    #[must_use]
    pub(crate) fn masked(&self, text: &str) -> String {
        let mut text = text.to_owned();
        if !self.redactor.is_idle() {
            mask(&self.redactor, &mut text);
        }
        text
    }

    /// Sends an event, without values of secrets. A watcher that is gone is no reason to stop, and
    /// one that does not look holds up nobody who wants to.
    pub async fn tell(&self, mut event: Event) {
        if !self.redactor.is_idle() {
            redact_event(&self.redactor, &mut event);
        }
        tokio::select! {
            biased;
            _ = self.events.send(event) => {}
            () = self.cancel.cancelled_for(limits::CANCEL_GRACE) => {}
        }
    }
}

/// Masks values in everything of an event that came from outside. Output and the fields of results
/// were masked as they came.
fn redact_event(redactor: &Redactor, event: &mut Event) {
    match event {
        Event::Started { id, title, .. } => {
            mask(redactor, id);
            mask(redactor, title);
        }
        Event::Output { id, .. } => mask(redactor, id),
        Event::Finished { outcome, .. } => redact_outcome(redactor, outcome),
        Event::Warning(diagnostic) | Event::Refused(diagnostic) => {
            redact_diagnostic(redactor, diagnostic)
        }
        Event::Jobs { news, .. } => news.iter_mut().for_each(|job| {
            mask(redactor, &mut job.id);
            mask(redactor, &mut job.command);
        }),
        Event::BlockOpened | Event::Unreadable | Event::Tick | Event::MessageEnded { .. } => {}
    }
}

/// Masks values in text the model wrote itself; its placeholders stay as they are.
fn mask(redactor: &Redactor, text: &mut String) {
    let masked = redactor.redact_str(text);
    if masked != secret::escape(text) {
        *text = masked.into_owned();
    }
}

fn redact_outcome(redactor: &Redactor, outcome: &mut Outcome) {
    mask(redactor, &mut outcome.id);
}

fn redact_diagnostic(redactor: &Redactor, diagnostic: &mut Diagnostic) {
    mask(redactor, &mut diagnostic.message);
    mask(redactor, &mut diagnostic.hint);
    if let Some(excerpt) = &mut diagnostic.excerpt
        && let Cow::Owned(line) = redactor.redact_str(&excerpt.line)
    {
        // The caret would point beside its place in a line of another length.
        excerpt.caret_start = 0;
        excerpt.caret_len = line.chars().count();
        excerpt.line = line;
    }
}

/// Masks values in one field. What stands in the file of a job was masked before.
fn redact_value(redactor: &Redactor, value: &mut Value) {
    let Value::Array(items) = value else {
        return redactor.redact_json(value);
    };
    for item in items {
        // A diff was masked before it was made, or lines would be compared that nobody sees.
        if let Some(Value::String(diff)) = item.get_mut("diff") {
            let masked = redactor.redact_again(diff);
            redact_beside(redactor, item, "diff", masked);
            continue;
        }
        let source = item.get("src").and_then(Value::as_str);
        let is_job = source.is_some_and(|source| source.starts_with(JOB_PREFIX));
        match item.get_mut("output").filter(|_| is_job) {
            Some(Value::String(text)) => {
                let masked = redactor.redact_again(text);
                redact_beside(redactor, item, "output", masked);
            }
            _ => redactor.redact_json(item),
        }
    }
}

/// Masks values in an item but for one of its fields, which is masked already.
fn redact_beside(redactor: &Redactor, item: &mut Value, key: &str, masked: String) {
    let mut taken = std::mem::take(item);
    if let Some(field) = taken.get_mut(key) {
        *field = Value::Null;
    }
    redactor.redact_json(&mut taken);
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
