//! `models/NAME:streamGenerateContent` of Google. The reason comes in `finishReason`, and the server then ends.

use serde_json::{Map, Value, json};

use crate::answer::{ModelEvent, Stop, StopReason, Usage};
use crate::config::ModelConfig;
use crate::exchange::Exchange;
use crate::frame::Frame;
use crate::protocol::{
    DecodeError, Decoder, Progress, Protocol, conversation, effort, json_form, push, push_usage,
    set, stop_texts, temperature,
};
use crate::request::{ModelRequest, Role};
use crate::{ModelFuture, ServerFacts};
use karyi_core::secret::SecretValue;
use karyi_net::{HttpRequest, NetError, ServerUrl};

/// The protocol.
pub(crate) struct Gemini;

impl Protocol for Gemini {
    fn path(&self, config: &ModelConfig, _: &ServerUrl) -> String {
        format!("{}:streamGenerateContent?alt=sse", model_path(config))
    }

    fn body(&self, config: &ModelConfig, request: &ModelRequest) -> Value {
        let talk = conversation(config, request);
        let turns = talk.turns.into_iter().map(|(role, text)| {
            let role = match role {
                Role::User => "user",
                Role::Assistant => "model",
            };
            json!({"role": role, "parts": [{"text": text}]})
        });
        let turns: Vec<Value> = turns.collect();
        let mut settings = Map::new();
        set(
            &mut settings,
            "maxOutputTokens",
            request.max_output.or(config.max_output),
        );
        set(&mut settings, "temperature", temperature(config, request));
        set(&mut settings, "stopSequences", stop_texts(config, request));
        let thinking = effort(request).map(|level| json!({"thinkingLevel": level}));
        set(&mut settings, "thinkingConfig", thinking);
        if let Some(schema) = json_form(config, request) {
            set(&mut settings, "responseMimeType", Some("application/json"));
            set(&mut settings, "responseJsonSchema", schema);
        }
        let mut body = Map::new();
        let system = (!talk.system.is_empty()).then(|| json!({"parts": [{"text": talk.system}]}));
        set(&mut body, "systemInstruction", system);
        set(&mut body, "contents", Some(turns));
        set(
            &mut body,
            "generationConfig",
            (!settings.is_empty()).then_some(settings),
        );
        Value::Object(body)
    }

    fn decoder(&self, _: &Value) -> Box<dyn Decoder> {
        Box::new(GeminiDecoder::default())
    }

    fn facts<'a>(&'a self, exchange: &'a Exchange) -> ModelFuture<'a, ServerFacts> {
        Box::pin(async move {
            let request = HttpRequest::get(model_path(&exchange.config));
            let model = exchange.fact(request).await?.unwrap_or_default();
            Ok(ServerFacts {
                context: model["inputTokenLimit"].as_u64(),
                max_output: model["outputTokenLimit"].as_u64(),
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
    match key {
        // In the URL it would stand in logs.
        Some(key) => request.secret_header("x-goog-api-key", "", key),
        None => Ok(request),
    }
}

fn model_path(config: &ModelConfig) -> String {
    let name = config
        .model
        .strip_prefix("models/")
        .unwrap_or(&config.model);
    format!("models/{name}")
}

#[derive(Default)]
struct GeminiDecoder {
    usage: Usage,
    stop: Option<Stop>,
}

impl Decoder for GeminiDecoder {
    fn read(
        &mut self,
        frame: &Frame,
        events: &mut Vec<ModelEvent>,
    ) -> Result<Progress, DecodeError> {
        let chunk = frame.json()?;
        if chunk.get("error").is_some_and(|error| !error.is_null()) {
            return Err(DecodeError::Reported(chunk));
        }
        let candidate = &chunk["candidates"][0];
        for part in candidate["content"]["parts"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let event = match part["thought"] == true {
                true => ModelEvent::Reasoning,
                false => ModelEvent::Text,
            };
            push(events, event, part["text"].as_str());
        }
        push_usage(events, &mut self.usage, usage(&chunk["usageMetadata"]));
        if let Some(raw) = candidate["finishReason"].as_str() {
            let raw = raw.to_owned();
            let reason = reason(&raw);
            self.stop = Some(Stop { reason, raw });
        }
        // The prompt was refused, so there is no answer.
        if let Some(raw) = chunk["promptFeedback"]["blockReason"].as_str() {
            let (reason, raw) = (StopReason::Content, raw.to_owned());
            self.stop = Some(Stop { reason, raw });
        }
        Ok(match self.stop {
            Some(_) => Progress::Tail,
            None => Progress::More,
        })
    }

    fn finish(&mut self, _: &mut Vec<ModelEvent>) -> Option<Stop> {
        self.stop.take()
    }
}

/// Thoughts are counted apart from the answer.
fn usage(usage: &Value) -> Usage {
    let thoughts = usage["thoughtsTokenCount"].as_u64();
    let answer = usage["candidatesTokenCount"].as_u64();
    Usage {
        input: usage["promptTokenCount"].as_u64(),
        cached: usage["cachedContentTokenCount"].as_u64(),
        output: answer.map(|count| count.saturating_add(thoughts.unwrap_or_default())),
        reasoning: thoughts,
    }
}

fn reason(raw: &str) -> StopReason {
    match raw {
        "STOP" => StopReason::End,
        "MAX_TOKENS" => StopReason::Length,
        "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" | "IMAGE_SAFETY" => {
            StopReason::Content
        }
        _ => StopReason::Other,
    }
}
