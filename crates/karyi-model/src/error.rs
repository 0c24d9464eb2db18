//! Failures of a model: a kind that tells what to do, one message, and the next step.
//!
//! A message names the host and the name of the key's secret, never its value.

use std::time::Duration;

use karyi_vault::redact::Redactor;

/// Kind of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelErrorKind {
    /// The settings are wrong; nothing was sent.
    Config,
    /// The key is missing, wrong, or not permitted.
    Auth,
    /// The server does not have the model.
    UnknownModel,
    /// Too many requests, or the quota is used up.
    Rate,
    /// The server cannot work now.
    Overloaded,
    /// The conversation is longer than the context window.
    Context,
    /// The provider refuses the content.
    Content,
    /// The server refuses the request for another reason.
    Request,
    /// The connection failed or was cut.
    Network,
    /// The server answers with something else than its protocol has.
    Protocol,
    /// Nothing arrived in time.
    Timeout,
    /// The model answers, and says nothing.
    NoAnswer,
}

impl ModelErrorKind {
    /// Returns the code in reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Config => "model_config",
            Self::Auth => "model_auth",
            Self::UnknownModel => "unknown_model",
            Self::Rate => "model_rate",
            Self::Overloaded => "model_overloaded",
            Self::Context => "model_context",
            Self::Content => "model_content",
            Self::Request => "model_request",
            Self::Network => "model_network",
            Self::Protocol => "model_protocol",
            Self::Timeout => "model_timeout",
            Self::NoAnswer => "model_no_answer",
        }
    }

    /// Returns the usual next step.
    #[must_use]
    pub fn hint(self) -> &'static str {
        match self {
            Self::Config => "correct the settings of the model",
            Self::Auth => "set the key of the model again",
            Self::UnknownModel => "check the name of the model at its provider",
            Self::Rate => "wait, then ask again, or raise the limits at the provider",
            Self::Overloaded => "ask again in a moment",
            Self::Context => {
                "shorten the conversation, or use a model with a larger context window"
            }
            Self::Content => "put the request in other words",
            Self::Request => "correct the settings that the message names",
            Self::Network => "check the network and the address of the server",
            Self::Protocol => "check that `base_url` and `provider` fit the server",
            Self::Timeout => "check that the server still works, then ask again",
            Self::NoAnswer => "put the request in other words, or use another model",
        }
    }
}

/// Failure of a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    /// Kind.
    pub kind: ModelErrorKind,
    /// HTTP status.
    pub status: Option<u16>,
    /// Time after which the server may be asked again.
    pub retry_after: Option<Duration>,
    /// Account of the failure.
    pub message: String,
    /// Next step for a person.
    pub hint: String,
    /// True when the server forbids to send the request again, or it would be of no use.
    pub is_final: bool,
}

impl ModelError {
    /// Makes an error with the usual next step of its kind.
    #[must_use]
    pub fn new(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            status: None,
            retry_after: None,
            message: message.into(),
            hint: kind.hint().to_owned(),
            is_final: false,
        }
    }

    /// Replaces the next step.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }

    /// Returns the error with its texts masked: a server may repeat what it got, also in another form.
    #[must_use]
    pub fn masked(self, redactor: &Redactor) -> Self {
        Self {
            message: redactor.redact_again(&self.message).into_owned(),
            hint: redactor.redact_again(&self.hint).into_owned(),
            ..self
        }
    }

    /// Returns the error as one after which the request is of no use.
    #[must_use]
    pub(crate) fn into_final(self) -> Self {
        Self {
            is_final: true,
            ..self
        }
    }

    /// Returns the code in reports.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.kind.as_str()
    }

    /// Returns true when the same request may succeed later, if no call of the answer has started.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        let by_kind = match self.kind {
            ModelErrorKind::Rate
            | ModelErrorKind::Overloaded
            | ModelErrorKind::Network
            | ModelErrorKind::Timeout => true,
            // A stream that ends without a reason; a page that is no answer stays one.
            ModelErrorKind::Protocol => self.status.is_none(),
            ModelErrorKind::Config
            | ModelErrorKind::Auth
            | ModelErrorKind::UnknownModel
            | ModelErrorKind::Context
            | ModelErrorKind::Content
            | ModelErrorKind::Request
            | ModelErrorKind::NoAnswer => false,
        };
        by_kind && !self.is_final
    }
}
