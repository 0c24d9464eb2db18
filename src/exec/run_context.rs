//! State shared by all calls of a run, and the masking of every event that leaves it.

use tokio::sync::mpsc;

use crate::exec::Event;
use crate::exec::cancel::Cancel;
use crate::exec::jobs::Jobs;
use crate::exec::policy_gate::PolicyGate;
use crate::tool::Context;
use karyi_core::head_tail::Cap;
use karyi_core::limits;
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
}

impl RunContext {
    /// Returns text written by the model with the values of secrets masked.
    #[must_use]
    pub(crate) fn masked(&self, text: &str) -> Redacted {
        self.context.redactor.redact_whole_again(text)
    }

    /// Replaces the cancellation of the calls that follow.
    pub(crate) fn replace_cancel(&mut self, cancel: Cancel) {
        self.context.cancelled = cancel.flag();
        self.cancel = cancel;
    }

    /// Masks and sends an event. A receiver that is gone, or does not read after cancellation, does not
    /// block the run.
    pub async fn emit(&self, event: Event) {
        self.emit_sealed(self.context.redactor.seal(event)).await;
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

/// Masks the texts of an event that nothing masked before: ids, titles and messages, and the last lines of jobs, which
/// may be older than a secret.
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
            Self::Warning(diagnostic) | Self::Refused(diagnostic) => diagnostic.mask(redactor),
            Self::Jobs { news, omitted: _ } => news.iter_mut().for_each(|job| job.mask(redactor)),
            Self::MessageEnded {
                is_interrupted: _,
                shell,
                note,
            } => [shell, note]
                .into_iter()
                .flatten()
                .for_each(|text| redactor.redact_in_again(text)),
            Self::Prose(text) => redactor.redact_in_again(text),
            Self::Changes { index: _, files } => files.iter_mut().for_each(|file| {
                redactor.redact_in_again(&mut file.heading);
                redactor.redact_in_again(&mut file.diff);
            }),
            Self::Output { .. }
            | Self::Finished { .. }
            | Self::Unfinished { .. }
            | Self::Unreadable
            | Self::Tick => {}
        }
    }
}
