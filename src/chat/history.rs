//! The messages of a conversation, as the model gets them.
//!
//! The start of a request stays the same to the byte from step to step, so that providers can cache it.

use karyi_model::{Message, ModelRequest};
use karyi_vault::redact::Redactor;

/// Reports that stay whole when a conversation is shortened.
const REPORTS_KEPT: usize = 2;

/// Text in place of a report that was left out.
const LEFT_OUT: &str =
    "<results><!-- left out to save room; run a call again if its result matters --></results>";

/// Messages of a conversation.
#[derive(Debug, Clone, Default)]
pub struct History {
    request: ModelRequest,
    /// Indexes of messages that are reports.
    reports: Vec<usize>,
}

impl History {
    /// Starts a conversation with a system text and earlier messages.
    #[must_use]
    pub fn new(request: ModelRequest) -> Self {
        Self {
            request,
            reports: Vec::new(),
        }
    }

    /// Returns the request for the next answer.
    #[must_use]
    pub fn request(&self) -> &ModelRequest {
        &self.request
    }

    /// Adds a text of the user.
    pub fn push_user(&mut self, text: &str, redactor: &Redactor) {
        let message = Message::user(redactor.redact(text));
        self.request.messages.push(message);
    }

    /// Adds an answer, unless it is blank.
    pub fn push_answer(&mut self, text: &str, redactor: &Redactor) {
        if !text.trim().is_empty() {
            // Placeholders in it are the model's own.
            let message = Message::assistant(redactor.redact_whole_again(text));
            self.request.messages.push(message);
        }
    }

    /// Adds a report.
    pub fn push_report(&mut self, text: &str, redactor: &Redactor) {
        self.reports.push(self.request.messages.len());
        let message = Message::user(redactor.redact_whole_again(text));
        self.request.messages.push(message);
    }

    /// Leaves out all reports but the last ones. Returns false when there is nothing to leave out.
    pub fn shorten(&mut self, redactor: &Redactor) -> bool {
        let count = self.reports.len().saturating_sub(REPORTS_KEPT);
        let old: Vec<usize> = self.reports.drain(..count).collect();
        let text = redactor.redact(LEFT_OUT);
        for index in &old {
            if let Some(message) = self.request.messages.get_mut(*index) {
                message.text = text.clone();
            }
        }
        !old.is_empty()
    }
}
