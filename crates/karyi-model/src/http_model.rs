//! Model behind HTTP: sends a request, with retries before the first event, and reads the stream of its answer.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream;
use serde_json::Value;

use crate::answer::{Answer, ModelEvent, Retry};
use crate::answer_stream::AnswerStream;
use crate::config::{ModelConfig, Provider};
use crate::error::ModelError;
use crate::exchange::{Authorize, Exchange, ModelLimits};
use crate::protocol::{Protocol, merge};
use crate::providers::{anthropic, gemini, ollama, openai_chat, openai_responses};
use crate::request::ModelRequest;
use crate::{Model, ModelFuture, ServerFacts};
use karyi_core::secret::SecretValue;
use karyi_core::{ids, limits};
use karyi_net::HttpRequest;

/// Model behind HTTP.
pub struct HttpModel {
    shared: Arc<Shared>,
}

struct Shared {
    exchange: Exchange,
    protocol: Box<dyn Protocol>,
}

impl HttpModel {
    /// Makes a model from its settings and the value of its key. Nothing is sent.
    ///
    /// # Errors
    /// The address is not valid, or this machine trusts no certificate authority.
    pub fn new(config: ModelConfig, key: Option<SecretValue>) -> Result<Self, ModelError> {
        Self::make(config, key, None)
    }

    /// Makes a model with time limits of its own.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with_limits(
        config: ModelConfig,
        key: Option<SecretValue>,
        limits: ModelLimits,
    ) -> Result<Self, ModelError> {
        Self::make(config, key, Some(limits))
    }

    fn make(
        config: ModelConfig,
        key: Option<SecretValue>,
        limits: Option<ModelLimits>,
    ) -> Result<Self, ModelError> {
        let (protocol, authorize): (Box<dyn Protocol>, Authorize) = match config.provider {
            Provider::OpenAiChat => (Box::new(openai_chat::OpenAiChat), openai_chat::authorize),
            Provider::OpenAiResponses => (
                Box::new(openai_responses::OpenAiResponses),
                openai_chat::authorize,
            ),
            Provider::Anthropic => (Box::new(anthropic::Anthropic), anthropic::authorize),
            Provider::Gemini => (Box::new(gemini::Gemini), gemini::authorize),
            Provider::Ollama => (Box::new(ollama::Ollama), openai_chat::authorize),
        };
        let mut config = config;
        let url = config.base_url.trim_end_matches('/');
        // People copy the whole address of a request.
        if let Some(base) = url.strip_suffix(config.provider.request_path()) {
            config.base_url = base.to_owned();
        }
        let exchange = Exchange::new(config, key, authorize, limits)?;
        let shared = Arc::new(Shared { exchange, protocol });
        Ok(Self { shared })
    }
}

impl Model for HttpModel {
    fn config(&self) -> &ModelConfig {
        &self.shared.exchange.config
    }

    fn answer(&self, request: &ModelRequest) -> Answer {
        let config = self.config();
        let mut body = self.shared.protocol.body(config, request);
        merge(&mut body, &config.extra);
        let asking = Asking {
            shared: Arc::clone(&self.shared),
            body,
            failures: 0,
            is_corrected: false,
            state: State::Preparing,
            events: VecDeque::new(),
        };
        Answer::new(stream::unfold(asking, |mut asking| async move {
            let next = asking.next().await?;
            Some((next, asking))
        }))
    }

    fn facts(&self) -> ModelFuture<'_, ServerFacts> {
        self.shared.protocol.facts(&self.shared.exchange)
    }
}

/// Request on its way to an answer.
struct Asking {
    shared: Arc<Shared>,
    body: Value,
    failures: u32,
    is_corrected: bool,
    state: State,
    events: VecDeque<ModelEvent>,
}

enum State {
    /// The body is not complete.
    Preparing,
    /// The request is sent next.
    Ready,
    /// The step is repeated after a pause.
    Waiting(Duration, Box<State>),
    /// Nothing of the answer has arrived.
    Opened(Box<AnswerStream>),
    /// The answer arrives.
    Answering(Box<AnswerStream>),
    /// The events that are left end with this error.
    Failed(ModelError),
    /// Nothing follows but the events that are left.
    Ended,
}

impl Asking {
    async fn next(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(Ok(event));
            }
            match std::mem::replace(&mut self.state, State::Ended) {
                State::Ended => return None,
                State::Failed(error) => return Some(Err(error)),
                State::Waiting(pause, again) => {
                    tokio::time::sleep(pause).await;
                    self.state = *again;
                }
                State::Preparing => {
                    let Shared { exchange, protocol } = &*self.shared;
                    match protocol.prepare(exchange, &mut self.body).await {
                        Ok(()) => self.state = State::Ready,
                        Err(error) => self.failed(error, State::Preparing),
                    }
                }
                State::Ready => self.send().await,
                State::Opened(answer) => self.read(answer, true).await,
                State::Answering(answer) => self.read(answer, false).await,
            }
        }
    }

    async fn send(&mut self) {
        let Shared { exchange, protocol } = &*self.shared;
        let path = protocol.path(&exchange.config, exchange.server());
        let request = HttpRequest::post(path, self.body.to_string());
        match exchange.send(request).await {
            Ok(response) => {
                let decoder = protocol.decoder(&self.body);
                let answer =
                    AnswerStream::new(response, protocol.reader(), decoder, exchange.limits);
                self.state = State::Opened(Box::new(answer));
            }
            Err(error) if !self.is_corrected && protocol.correct(&error, &mut self.body) => {
                self.is_corrected = true;
                self.state = State::Ready;
            }
            Err(error) => self.failed(error, State::Ready),
        }
    }

    /// Reads one piece of the answer. Only an answer without any event is asked for again.
    async fn read(&mut self, mut answer: Box<AnswerStream>, is_first: bool) {
        let mut events = Vec::new();
        let read = answer.read(&self.shared.exchange, &mut events).await;
        let is_first = is_first && events.is_empty();
        self.events.extend(events);
        match read {
            Ok(true) if is_first => self.state = State::Opened(answer),
            Ok(true) => self.state = State::Answering(answer),
            Ok(false) => self.state = State::Ended,
            Err(error) if is_first => self.failed(error, State::Ready),
            Err(error) => self.state = State::Failed(error),
        }
    }

    /// Decides about a failed attempt: `again` follows it, or the error ends the answer.
    fn failed(&mut self, error: ModelError, again: State) {
        self.failures += 1;
        let pause = error.retry_after.map_or_else(|| self.pause(), Some);
        let most = self.shared.exchange.limits.max_wait;
        self.state = match pause {
            Some(pause) if error.is_transient() && self.failures < limits::MODEL_ATTEMPTS => {
                if pause > most {
                    let seconds = pause.as_secs();
                    let hint = format!(
                        "the server asks to wait {seconds} s: ask again then, or use another model"
                    );
                    State::Failed(error.with_hint(hint).into_final())
                } else {
                    let delay = pause;
                    self.events
                        .push_back(ModelEvent::Retry(Retry { error, delay }));
                    State::Waiting(pause, Box::new(again))
                }
            }
            _ => State::Failed(error.into_final()),
        };
    }

    /// Returns the pause before the next attempt: it doubles, and half of it is random.
    fn pause(&self) -> Option<Duration> {
        let base = self.shared.exchange.limits.retry_pause;
        let doubled = base.saturating_mul(1 << self.failures.saturating_sub(1).min(16));
        let most = doubled.min(limits::MAX_MODEL_RETRY_PAUSE);
        let share = u32::from(u16::from_be_bytes(ids::random::<2>().ok()?));
        Some(most / 2 + (most / 2).saturating_mul(share) / u32::from(u16::MAX))
    }
}
