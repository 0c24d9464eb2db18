//! Protocol of a provider: how a request is written, and how its stream is read.

use serde_json::{Map, Value};

use crate::answer::{ModelEvent, Stop, Usage};
use crate::config::{Capability, ModelConfig, SystemRole};
use crate::error::ModelError;
use crate::exchange::Exchange;
use crate::frame::Frame;
use crate::ndjson::NdjsonReader;
use crate::request::{Effort, ModelRequest, OutputForm, Role};
use crate::sse::SseReader;
use crate::{ModelFuture, ServerFacts};
use karyi_net::ServerUrl;

/// Protocol of a provider.
pub(crate) trait Protocol: Send + Sync {
    /// Returns the path of a request, below the base URL.
    fn path(&self, config: &ModelConfig, server: &ServerUrl) -> String;

    /// Writes the body of a request.
    fn body(&self, config: &ModelConfig, request: &ModelRequest) -> Value;

    /// Completes the body with facts that only the server knows.
    fn prepare<'a>(&'a self, _: &'a Exchange, _: &'a mut Value) -> ModelFuture<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    /// Corrects a body that the server refused, if the error tells how.
    fn correct(&self, _: &ModelError, _: &mut Value) -> bool {
        false
    }

    /// Makes a reader of the bytes of an answer.
    fn reader(&self) -> Reader {
        Reader::Sse(SseReader::default())
    }

    /// Makes a decoder of the frames of an answer to a body.
    fn decoder(&self, body: &Value) -> Box<dyn Decoder>;

    /// Asks the server for facts about the model.
    fn facts<'a>(&'a self, exchange: &'a Exchange) -> ModelFuture<'a, ServerFacts>;
}

/// Decoder of the frames of one answer.
pub(crate) trait Decoder: Send {
    /// Reads a frame, and adds its events.
    ///
    /// # Errors
    /// The server reports a failure, or sends something else than its protocol has.
    fn read(
        &mut self,
        frame: &Frame,
        events: &mut Vec<ModelEvent>,
    ) -> Result<Progress, DecodeError>;

    /// Ends the answer: adds the events that were held back, and returns the reason, if one arrived.
    fn finish(&mut self, events: &mut Vec<ModelEvent>) -> Option<Stop>;
}

/// Failure inside of a stream.
#[derive(Debug)]
pub(crate) enum DecodeError {
    /// Something else than the protocol has.
    Malformed(ModelError),
    /// Failure that the server reports.
    Reported(Value),
    /// Failure with a kind that the decoder knows.
    Known(ModelError),
}

impl From<ModelError> for DecodeError {
    fn from(error: ModelError) -> Self {
        Self::Malformed(error)
    }
}

/// Progress of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Progress {
    /// The answer goes on.
    More,
    /// The reason of the end has arrived; counts may follow.
    Tail,
    /// Nothing follows.
    Done,
}

/// Reader of the bytes of an answer.
#[derive(Debug)]
pub(crate) enum Reader {
    /// Server-sent events.
    Sse(SseReader),
    /// JSON lines.
    Ndjson(NdjsonReader),
}

impl Reader {
    /// Reads a piece.
    pub(crate) fn feed(&mut self, bytes: &[u8], frames: &mut Vec<Frame>) -> Result<(), ModelError> {
        match self {
            Self::Sse(reader) => reader.feed(bytes, frames),
            Self::Ndjson(reader) => reader.feed(bytes, frames),
        }
    }

    /// Ends the stream.
    pub(crate) fn finish(&mut self, frames: &mut Vec<Frame>) {
        match self {
            Self::Sse(reader) => reader.finish(frames),
            Self::Ndjson(reader) => reader.finish(frames),
        }
    }

    /// Returns true when a body that starts with a byte is no stream of this kind.
    pub(crate) fn is_foreign(&self, first: u8) -> bool {
        match self {
            Self::Sse(_) => matches!(first, b'<' | b'{' | b'['),
            Self::Ndjson(_) => first == b'<',
        }
    }
}

/// Conversation as protocols write it: neighbours of one role are merged, empty messages left out.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Conversation {
    /// System text; empty for none, or where it is part of the first user message.
    pub(crate) system: String,
    /// Messages.
    pub(crate) turns: Vec<(Role, String)>,
}

/// Returns the conversation of a request.
pub(crate) fn conversation(config: &ModelConfig, request: &ModelRequest) -> Conversation {
    let mut turns: Vec<(Role, String)> = Vec::new();
    let mut system = request.system.as_str().to_owned();
    if config.system == SystemRole::User && !system.is_empty() {
        turns.push((Role::User, std::mem::take(&mut system)));
    }
    for message in request
        .messages
        .iter()
        .filter(|message| !message.text.is_empty())
    {
        match turns.last_mut() {
            Some((role, text)) if *role == message.role => {
                text.push_str("\n\n");
                text.push_str(message.text.as_str());
            }
            _ => turns.push((message.role, message.text.as_str().to_owned())),
        }
    }
    Conversation { system, turns }
}

/// Returns the stop texts that are sent. The end of a block is none: servers leave it out of the answer.
pub(crate) fn stop_texts(config: &ModelConfig, request: &ModelRequest) -> Option<Value> {
    let texts: Vec<&str> = request
        .stop
        .iter()
        .copied()
        .filter(|text| !text.contains("</tools"))
        .collect();
    (config.can(Capability::Stop) && !texts.is_empty()).then(|| texts.into())
}

/// Returns the temperature that is sent.
pub(crate) fn temperature(config: &ModelConfig, request: &ModelRequest) -> Option<Value> {
    let temperature = request.temperature?;
    config
        .can(Capability::Temperature)
        .then(|| temperature.into())
}

/// Returns the level of effort that is sent.
pub(crate) fn effort(request: &ModelRequest) -> Option<&'static str> {
    request.effort.map(Effort::as_str)
}

/// Returns true with the schema, if one is given, when the server is asked for JSON.
pub(crate) fn json_form(config: &ModelConfig, request: &ModelRequest) -> Option<Option<Value>> {
    match &request.output {
        OutputForm::Json { schema } if config.can(Capability::Json) => {
            let schema = schema.as_ref();
            Some(schema.and_then(|schema| serde_json::from_str(schema.as_str()).ok()))
        }
        OutputForm::Json { .. } | OutputForm::Text | OutputForm::Grammar(_) => None,
    }
}

/// Sets a field that has a value.
pub(crate) fn set(body: &mut Map<String, Value>, name: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        body.insert(name.to_owned(), value.into());
    }
}

/// Merges fields into a body; objects are merged, other values replaced.
pub(crate) fn merge(body: &mut Value, extra: &Map<String, Value>) {
    let Value::Object(fields) = body else {
        return;
    };
    for (name, value) in extra {
        match (fields.get_mut(name), value) {
            (Some(own @ Value::Object(_)), Value::Object(more)) => merge(own, more),
            _ => {
                fields.insert(name.clone(), value.clone());
            }
        }
    }
}

/// Adds a piece of text that is not empty.
pub(crate) fn push(
    events: &mut Vec<ModelEvent>,
    event: fn(String) -> ModelEvent,
    text: Option<&str>,
) {
    if let Some(text) = text.filter(|text| !text.is_empty()) {
        events.push(event(text.to_owned()));
    }
}

/// Adds counts that tell something new.
pub(crate) fn push_usage(events: &mut Vec<ModelEvent>, known: &mut Usage, update: Usage) {
    let updated = known.updated_by(update);
    if updated != *known {
        *known = updated;
        events.push(ModelEvent::Usage(updated));
    }
}
