//! Settings of one model.
//!
//! They are plain values: reading them from a file and resolving the key are the caller's concern.

use std::fmt;

use karyi_core::secret::SecretName;
use serde_json::{Map, Value};

/// Settings of one model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelConfig {
    /// Protocol of the server.
    pub provider: Provider,
    /// URL that the paths of the protocol are appended to.
    pub base_url: String,
    /// Name of the model at the server.
    pub model: String,
    /// Tokens of a prompt and its answer together; the server is asked where it is absent.
    pub context: Option<u64>,
    /// Name of the secret or environment variable with the key.
    pub key: Option<SecretName>,
    /// Tokens of the longest answer.
    pub max_output: Option<u64>,
    /// Price of tokens.
    pub price: Option<Price>,
    /// Fields that are merged into the body of each request as they are.
    pub extra: Map<String, Value>,
    /// True for a small model, which needs an example, temperature 0 and a grammar; the server is asked where it is
    /// absent.
    pub small: Option<bool>,
    /// Permits the key on unencrypted connections to other hosts than this one.
    pub allow_plain: bool,
    /// Role that the system text is sent with.
    pub system: SystemRole,
    /// Abilities of the model; those of [`Provider::capabilities`] without it.
    pub capabilities: Option<Vec<Capability>>,
}

impl ModelConfig {
    /// Makes settings with the provider's usual URL, and no others.
    #[must_use]
    pub fn new(provider: Provider, model: impl Into<String>) -> Self {
        Self {
            provider,
            base_url: provider.base_url().to_owned(),
            model: model.into(),
            context: None,
            key: None,
            max_output: None,
            price: None,
            extra: Map::new(),
            small: None,
            allow_plain: false,
            system: SystemRole::System,
            capabilities: None,
        }
    }

    /// Returns true when the model can do something.
    #[must_use]
    pub fn can(&self, capability: Capability) -> bool {
        let usual = self.provider.capabilities();
        self.capabilities
            .as_deref()
            .unwrap_or(usual)
            .contains(&capability)
    }
}

/// Protocol of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provider {
    /// `chat/completions` of OpenAI, also of vLLM, llama.cpp, OpenRouter and LM Studio.
    OpenAiChat,
    /// `responses` of OpenAI.
    OpenAiResponses,
    /// `v1/messages` of Anthropic.
    Anthropic,
    /// `models/NAME:streamGenerateContent` of Google.
    Gemini,
    /// `api/chat` of Ollama.
    Ollama,
}

impl Provider {
    /// Every provider, in the order of the documentation.
    pub const ALL: &'static [Self] = &[
        Self::OpenAiChat,
        Self::OpenAiResponses,
        Self::Anthropic,
        Self::Gemini,
        Self::Ollama,
    ];

    /// Returns the name in settings.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenAiChat => "openai_chat",
            Self::OpenAiResponses => "openai_responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
        }
    }

    /// Returns the provider of a name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let all = Self::ALL.iter().copied();
        all.into_iter().find(|provider| provider.as_str() == name)
    }

    /// Returns the end of the address of a request for an answer; no address has it in front of that.
    pub(crate) fn request_path(self) -> &'static str {
        match self {
            Self::OpenAiChat => "/chat/completions",
            Self::OpenAiResponses => "/responses",
            Self::Anthropic => "/messages",
            Self::Gemini => "/models",
            Self::Ollama => "/chat",
        }
    }

    /// Returns the URL of the provider's own service.
    #[must_use]
    pub fn base_url(self) -> &'static str {
        match self {
            Self::OpenAiChat | Self::OpenAiResponses => "https://api.openai.com/v1",
            Self::Anthropic => "https://api.anthropic.com",
            Self::Gemini => "https://generativelanguage.googleapis.com/v1beta",
            Self::Ollama => "http://127.0.0.1:11434",
        }
    }

    /// Returns the usual environment variables of the key, the first one preferred.
    #[must_use]
    pub fn key_variables(self) -> &'static [&'static str] {
        match self {
            Self::OpenAiChat | Self::OpenAiResponses => &["OPENAI_API_KEY"],
            Self::Anthropic => &["ANTHROPIC_API_KEY"],
            Self::Gemini => &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
            Self::Ollama => &["OLLAMA_API_KEY"],
        }
    }

    /// Returns the abilities that models of the provider usually have.
    #[must_use]
    pub fn capabilities(self) -> &'static [Capability] {
        match self {
            Self::Anthropic => &[Capability::Temperature, Capability::Stop],
            Self::OpenAiChat | Self::Gemini | Self::Ollama => {
                &[Capability::Json, Capability::Temperature, Capability::Stop]
            }
            // The protocol has no stop texts.
            Self::OpenAiResponses => &[Capability::Json, Capability::Temperature],
        }
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Ability of a model. A field of the request that needs a missing one is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capability {
    /// Takes `response_format` or its like. Without it the prompt alone asks for JSON.
    Json,
    /// Takes a temperature. Models that reason often refuse it.
    Temperature,
    /// Takes stop texts.
    Stop,
}

impl Capability {
    /// Every capability.
    pub const ALL: &'static [Self] = &[Self::Json, Self::Temperature, Self::Stop];

    /// Returns the name in settings.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Temperature => "temperature",
            Self::Stop => "stop",
        }
    }

    /// Returns the capability of a name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let all = Self::ALL.iter().copied();
        all.into_iter()
            .find(|capability| capability.as_str() == name)
    }
}

/// Role that the system text is sent with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SystemRole {
    /// The provider's own.
    #[default]
    System,
    /// At the start of the first user message, for templates without a system role.
    User,
}

/// Price of a million tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Price {
    /// Of the prompt.
    pub input: f64,
    /// Of the answer.
    pub output: f64,
    /// Of the part of the prompt that came from the cache; that of the prompt without it.
    pub cached: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for provider in Provider::ALL {
            assert_eq!(Provider::parse(provider.as_str()), Some(*provider));
        }
        for capability in Capability::ALL {
            assert_eq!(Capability::parse(capability.as_str()), Some(*capability));
        }
        assert_eq!(Provider::parse("openai"), None);
    }
}
