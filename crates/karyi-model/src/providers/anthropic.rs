//! `v1/messages` of Anthropic. The reason comes in `message_delta`, and `message_stop` ends the answer.

use serde_json::{Map, Value, json};

use crate::answer::{ModelEvent, Stop, StopReason, Usage};
use crate::config::ModelConfig;
use crate::error::ModelError;
use crate::exchange::Exchange;
use crate::frame::Frame;
use crate::protocol::{
    DecodeError, Decoder, Progress, Protocol, conversation, effort, push, push_usage, set,
    stop_texts, temperature,
};
use crate::providers::openai_chat::role_name;
use crate::request::{ModelRequest, Role};
use crate::{ModelFuture, ServerFacts};
use karyi_core::limits;
use karyi_core::secret::SecretValue;
use karyi_net::{HttpRequest, NetError, ServerUrl};

/// The protocol.
pub(crate) struct Anthropic;

/// Messages of the user that are marked for the cache, from the end: the last one is new, and the one before it ends
/// what the last request had.
const CACHED_MESSAGES: usize = 2;

impl Protocol for Anthropic {
    fn path(&self, _: &ModelConfig, server: &ServerUrl) -> String {
        below_version(server, "messages")
    }

    fn body(&self, config: &ModelConfig, request: &ModelRequest) -> Value {
        let talk = conversation(config, request);
        let users = talk
            .turns
            .iter()
            .enumerate()
            .filter(|(_, (role, _))| *role == Role::User);
        let users: Vec<usize> = users.map(|(place, _)| place).collect();
        let cached = users
            .get(users.len().saturating_sub(CACHED_MESSAGES)..)
            .unwrap_or_default();
        let turns = talk.turns.iter().enumerate().map(|(place, (role, text))| {
            json!({"role": role_name(*role), "content": [block(text, cached.contains(&place))]})
        });
        let turns: Vec<Value> = turns.collect();
        let most = request
            .max_output
            .or(config.max_output)
            .unwrap_or(limits::MODEL_MAX_OUTPUT);
        let mut body = Map::new();
        set(&mut body, "model", Some(config.model.as_str()));
        set(&mut body, "max_tokens", Some(most));
        set(&mut body, "stream", Some(true));
        let system = (!talk.system.is_empty()).then(|| json!([block(&talk.system, true)]));
        set(&mut body, "system", system);
        set(&mut body, "messages", Some(turns));
        set(&mut body, "temperature", temperature(config, request));
        set(&mut body, "stop_sequences", stop_texts(config, request));
        let effort = effort(request).map(|level| json!({"effort": level}));
        set(&mut body, "output_config", effort);
        Value::Object(body)
    }

    /// The server names the most tokens it allows: `max_tokens: 8192 > 4096, which is the maximum`.
    fn correct(&self, error: &ModelError, body: &mut Value) -> bool {
        let is_limit = error.status == Some(400) && error.message.contains("max_tokens");
        let number = error
            .message
            .split_once("> ")
            .filter(|_| is_limit)
            .and_then(|(_, rest)| {
                let digits = rest
                    .find(|sign: char| !sign.is_ascii_digit())
                    .unwrap_or(rest.len());
                rest.get(..digits)?.parse::<u64>().ok()
            });
        let own = body["max_tokens"].as_u64().unwrap_or_default();
        match (
            number.filter(|most| *most > 0 && *most < own),
            body.as_object_mut(),
        ) {
            (Some(most), Some(fields)) => {
                fields.insert("max_tokens".to_owned(), most.into());
                true
            }
            _ => false,
        }
    }

    fn decoder(&self, _: &Value) -> Box<dyn Decoder> {
        Box::new(AnthropicDecoder::default())
    }

    fn facts<'a>(&'a self, exchange: &'a Exchange) -> ModelFuture<'a, ServerFacts> {
        Box::pin(async move {
            let path = below_version(
                exchange.server(),
                &format!("models/{}", exchange.config.model),
            );
            let model = exchange
                .fact(HttpRequest::get(path))
                .await?
                .unwrap_or_default();
            Ok(ServerFacts {
                context: model["max_input_tokens"].as_u64(),
                max_output: model["max_tokens"].as_u64(),
                ..ServerFacts::default()
            })
        })
    }
}

/// Adds the key to a request.
pub(crate) fn authorize(
    request: HttpRequest,
    key: Option<&SecretValue>,
) -> Result<HttpRequest, NetError> {
    let request = request.header("anthropic-version", "2023-06-01")?;
    match key {
        Some(key) => request.secret_header("x-api-key", "", key),
        None => Ok(request),
    }
}

/// Returns a path below the version, which a base URL may have.
fn below_version(server: &ServerUrl, path: &str) -> String {
    match server.last_segment() {
        "v1" => path.to_owned(),
        _ => format!("v1/{path}"),
    }
}

fn block(text: &str, is_cached: bool) -> Value {
    match is_cached {
        true => json!({"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}),
        false => json!({"type": "text", "text": text}),
    }
}

#[derive(Default)]
struct AnthropicDecoder {
    usage: Usage,
    stop: Option<Stop>,
}

impl Decoder for AnthropicDecoder {
    fn read(
        &mut self,
        frame: &Frame,
        events: &mut Vec<ModelEvent>,
    ) -> Result<Progress, DecodeError> {
        let event = frame.json()?;
        let kind = event["type"].as_str().unwrap_or(&frame.name);
        match kind {
            "message_start" => {
                push_usage(events, &mut self.usage, usage(&event["message"]["usage"]));
            }
            "content_block_start" => content(&event["content_block"], events),
            "content_block_delta" => content(&event["delta"], events),
            "message_delta" => {
                push_usage(events, &mut self.usage, usage(&event["usage"]));
                if let Some(raw) = event["delta"]["stop_reason"].as_str() {
                    let raw = raw.to_owned();
                    let reason = reason(&raw);
                    self.stop = Some(Stop { reason, raw });
                    return Ok(Progress::Tail);
                }
            }
            "message_stop" => return Ok(Progress::Done),
            "error" => return Err(DecodeError::Reported(event)),
            _ if event.get("error").is_some_and(|error| !error.is_null()) => {
                return Err(DecodeError::Reported(event));
            }
            _ => {}
        }
        Ok(Progress::More)
    }

    fn finish(&mut self, _: &mut Vec<ModelEvent>) -> Option<Stop> {
        self.stop.take()
    }
}

fn content(part: &Value, events: &mut Vec<ModelEvent>) {
    push(events, ModelEvent::Text, part["text"].as_str());
    push(events, ModelEvent::Reasoning, part["thinking"].as_str());
}

/// Input tokens are told in three parts.
fn usage(usage: &Value) -> Usage {
    let count = |name: &str| usage[name].as_u64();
    let read = count("cache_read_input_tokens");
    let written = count("cache_creation_input_tokens");
    let sum = |fresh: u64| {
        let known = fresh.saturating_add(read.unwrap_or_default());
        known.saturating_add(written.unwrap_or_default())
    };
    Usage {
        input: count("input_tokens").map(sum),
        cached: read,
        output: count("output_tokens"),
        reasoning: None,
    }
}

fn reason(raw: &str) -> StopReason {
    match raw {
        "end_turn" | "stop_sequence" => StopReason::End,
        "max_tokens" => StopReason::Length,
        "model_context_window_exceeded" => StopReason::Context,
        "refusal" => StopReason::Content,
        _ => StopReason::Other,
    }
}
