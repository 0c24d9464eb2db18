//! `responses` of OpenAI. The last event is `response.completed`, `response.incomplete` or `response.failed`.

use serde_json::{Map, Value, json};

use crate::answer::{ModelEvent, Stop, StopReason, Usage};
use crate::config::ModelConfig;
use crate::exchange::Exchange;
use crate::frame::Frame;
use crate::protocol::{
    DecodeError, Decoder, Progress, Protocol, conversation, effort, json_form, push, push_usage,
    set, temperature,
};
use crate::providers::openai_chat::role_name;
use crate::request::ModelRequest;
use crate::{ModelFuture, ServerFacts};
use karyi_net::{HttpRequest, ServerUrl};

/// The protocol.
pub(crate) struct OpenAiResponses;

impl Protocol for OpenAiResponses {
    fn path(&self, _: &ModelConfig, _: &ServerUrl) -> String {
        "responses".to_owned()
    }

    fn body(&self, config: &ModelConfig, request: &ModelRequest) -> Value {
        let talk = conversation(config, request);
        let turns = talk
            .turns
            .into_iter()
            .map(|(role, text)| json!({"role": role_name(role), "content": text}));
        let turns: Vec<Value> = turns.collect();
        let mut body = Map::new();
        set(&mut body, "model", Some(config.model.as_str()));
        set(
            &mut body,
            "instructions",
            (!talk.system.is_empty()).then_some(talk.system),
        );
        set(&mut body, "input", Some(turns));
        set(&mut body, "stream", Some(true));
        // The conversation is karyi's own; the provider need not keep it.
        set(&mut body, "store", Some(false));
        set(
            &mut body,
            "max_output_tokens",
            request.max_output.or(config.max_output),
        );
        set(&mut body, "temperature", temperature(config, request));
        let effort = effort(request).map(|level| json!({"effort": level}));
        set(&mut body, "reasoning", effort);
        if let Some(schema) = json_form(config, request) {
            let format = match schema {
                Some(schema) => json!({"type": "json_schema", "name": "answer", "schema": schema}),
                None => json!({"type": "json_object"}),
            };
            set(&mut body, "text", Some(json!({"format": format})));
        }
        Value::Object(body)
    }

    fn decoder(&self, _: &Value) -> Box<dyn Decoder> {
        Box::new(ResponsesDecoder::default())
    }

    fn facts<'a>(&'a self, exchange: &'a Exchange) -> ModelFuture<'a, ServerFacts> {
        Box::pin(async move {
            // The server tells no limits, but it tells if the key and the name are right.
            let path = format!("models/{}", exchange.config.model);
            exchange.fact(HttpRequest::get(path)).await?;
            Ok(ServerFacts::default())
        })
    }
}

#[derive(Default)]
struct ResponsesDecoder {
    usage: Usage,
    stop: Option<Stop>,
    is_refused: bool,
}

impl Decoder for ResponsesDecoder {
    fn read(
        &mut self,
        frame: &Frame,
        events: &mut Vec<ModelEvent>,
    ) -> Result<Progress, DecodeError> {
        if frame.data.trim() == "[DONE]" {
            return Ok(Progress::Done);
        }
        let event = frame.json()?;
        let kind = event["type"].as_str().unwrap_or(&frame.name);
        let delta = event["delta"].as_str();
        match kind {
            "response.output_text.delta" => push(events, ModelEvent::Text, delta),
            "response.refusal.delta" => {
                self.is_refused = true;
                push(events, ModelEvent::Text, delta);
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                push(events, ModelEvent::Reasoning, delta);
            }
            "response.completed" | "response.incomplete" => {
                self.end(&event["response"], kind, events);
                return Ok(Progress::Done);
            }
            "response.failed" => return Err(DecodeError::Reported(event["response"].clone())),
            // Code and message stand at the top, or in `error`.
            "error" => {
                let error = event.get("error").unwrap_or(&event);
                return Err(DecodeError::Reported(json!({"error": error})));
            }
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

impl ResponsesDecoder {
    fn end(&mut self, response: &Value, kind: &str, events: &mut Vec<ModelEvent>) {
        push_usage(events, &mut self.usage, usage(&response["usage"]));
        let cause = response["incomplete_details"]["reason"].as_str();
        let (reason, raw) = match (kind, cause) {
            _ if self.is_refused => (StopReason::Content, "refusal"),
            ("response.completed", _) => (StopReason::End, "completed"),
            (_, Some("max_output_tokens")) => (StopReason::Length, "max_output_tokens"),
            (_, Some("content_filter")) => (StopReason::Content, "content_filter"),
            (_, cause) => (StopReason::Other, cause.unwrap_or("incomplete")),
        };
        let raw = raw.to_owned();
        self.stop = Some(Stop { reason, raw });
    }
}

fn usage(usage: &Value) -> Usage {
    Usage {
        input: usage["input_tokens"].as_u64(),
        cached: usage["input_tokens_details"]["cached_tokens"].as_u64(),
        output: usage["output_tokens"].as_u64(),
        reasoning: usage["output_tokens_details"]["reasoning_tokens"].as_u64(),
    }
}
