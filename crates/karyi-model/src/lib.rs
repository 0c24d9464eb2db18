//! Language models behind one trait.
//!
//! ```text
//! ModelRequest ─ Model::answer ─ Answer: Retry* (Reasoning | Text | Usage)* Stop, or an error
//! ```
//!
//! [`ModelRequest`] holds redacted text only. An [`Answer`] is complete only with [`ModelEvent::Stop`]; dropping it
//! closes the connection. Nothing is repeated after the first piece of an answer: the caller alone knows if a call of
//! it has started, and [`ModelError::is_transient`] tells if the same request may succeed.

pub mod answer;
mod answer_stream;
pub mod config;
pub mod error;
mod exchange;
pub mod frame;
mod http_model;
pub mod json_answer;
pub mod ndjson;
mod protocol;
mod providers;
pub mod request;
pub mod scripted;
mod server_error;
mod server_json;
pub mod sse;
mod thoughts;

use std::pin::Pin;

pub use answer::{Answer, ModelEvent, Retry, Stop, StopReason, Usage};
pub use config::{Capability, ModelConfig, Price, Provider, SystemRole};
pub use error::{ModelError, ModelErrorKind};
pub use exchange::ModelLimits;
pub use http_model::HttpModel;
pub use request::{Effort, Message, ModelRequest, OutputForm, Role};

/// Future of a method of [`Model`].
pub type ModelFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, ModelError>> + Send + 'a>>;

/// Language model that can be asked.
pub trait Model: Send + Sync {
    /// Returns the settings of the model.
    fn config(&self) -> &ModelConfig;

    /// Asks the model. The request is written at once, and sent when the answer is first polled.
    fn answer(&self, request: &ModelRequest) -> Answer;

    /// Asks the server what it tells about the model.
    ///
    /// # Errors
    /// The server cannot be reached, refuses the key, or does not have the model. A server that tells nothing is no
    /// error.
    fn facts(&self) -> ModelFuture<'_, ServerFacts>;
}

/// Facts that a server tells about a model; each is absent where it does not.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerFacts {
    /// Tokens of a prompt and its answer together.
    pub context: Option<u64>,
    /// Tokens of the longest answer.
    pub max_output: Option<u64>,
    /// Number of parameters.
    pub parameters: Option<u64>,
    /// True when the server is llama.cpp, which takes a grammar.
    pub is_llama_cpp: bool,
}
