//! Request to a model: redacted messages, limits, and the form of the answer.
//!
//! Providers merge neighbours of one role, and write the system text as the settings of the model say.

use karyi_vault::redact::Redacted;

/// Request to a model.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ModelRequest {
    /// System text; empty for none.
    pub system: Redacted,
    /// Messages, oldest first.
    pub messages: Vec<Message>,
    /// Tokens of the longest answer; the settings of the model apply without it.
    pub max_output: Option<u64>,
    /// Temperature; the server's own without it.
    pub temperature: Option<f64>,
    /// Effort of the model's reasoning; the server's own without it.
    pub effort: Option<Effort>,
    /// Texts that end the answer. They are not part of it.
    pub stop: Vec<&'static str>,
    /// Form of the answer.
    pub output: OutputForm,
}

/// Message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Author.
    pub role: Role,
    /// Text.
    pub text: Redacted,
}

impl Message {
    /// Makes a message of the user. Results of calls are such messages, too.
    #[must_use]
    pub fn user(text: Redacted) -> Self {
        let role = Role::User;
        Self { role, text }
    }

    /// Makes a message of the model, without its reasoning.
    #[must_use]
    pub fn assistant(text: Redacted) -> Self {
        let role = Role::Assistant;
        Self { role, text }
    }
}

/// Author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The user, or a tool.
    User,
    /// The model.
    Assistant,
}

/// Effort that a model puts into its reasoning. A model that cannot reason, or has no levels, may refuse it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// Little.
    Low,
    /// Some.
    Medium,
    /// Much.
    High,
}

impl Effort {
    /// All levels.
    pub const ALL: [Self; 3] = [Self::Low, Self::Medium, Self::High];

    /// Returns the name, which all protocols share.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }

    /// Returns the level of a name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.as_str() == name)
    }
}

/// Form of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum OutputForm {
    /// Text.
    #[default]
    Text,
    /// JSON. [`crate::json_answer`] reads it, since models add fences and prose.
    Json {
        /// JSON Schema of it, as JSON.
        schema: Option<Redacted>,
    },
    /// Text of a GBNF grammar. Only servers with [`crate::ServerFacts::is_llama_cpp`] follow it; others ignore it.
    Grammar(Redacted),
}
