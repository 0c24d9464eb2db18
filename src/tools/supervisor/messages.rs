//! Messages of the history in results.

use schemars::JsonSchema;
use serde::Serialize;

use karyi_tasks::history::{Message, Speaker};

/// Result of the two tools that read the history.
#[derive(Debug, Serialize, JsonSchema)]
pub struct MessagesOutput {
    /// Messages, the oldest first.
    pub messages: Vec<HistoryMessage>,
    /// Number of older messages that are too many for one result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub older: Option<usize>,
}

/// Message of the history.
#[derive(Debug, Serialize, JsonSchema)]
pub struct HistoryMessage {
    /// `user` or `assistant`.
    pub role: String,
    /// Text.
    pub text: String,
    /// Time, UTC.
    pub created_at: String,
}

impl MessagesOutput {
    /// Makes the result of these messages.
    #[must_use]
    pub fn new(messages: Vec<Message>, omitted: usize) -> Self {
        let message = |message: Message| HistoryMessage {
            role: match message.role {
                Speaker::User => "user".to_owned(),
                Speaker::Assistant => "assistant".to_owned(),
            },
            text: message.text,
            created_at: message.created_at.to_string(),
        };
        Self {
            messages: messages.into_iter().map(message).collect(),
            older: Some(omitted).filter(|count| *count > 0),
        }
    }
}
