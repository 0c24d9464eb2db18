//! `api/chat` of Ollama, one JSON value a line; the last one has `done: true`.
//!
//! The server silently drops the start of a conversation that is longer than its context window. So karyi sends
//! `num_ctx`, and compares the server's count of the prompt with its length.

use serde_json::{Map, Value, json};

use crate::answer::{ModelEvent, Stop, StopReason, Usage};
use crate::config::ModelConfig;
use crate::error::{ModelError, ModelErrorKind};
use crate::exchange::Exchange;
use crate::frame::Frame;
use crate::ndjson::NdjsonReader;
use crate::protocol::{
    DecodeError, Decoder, Progress, Protocol, Reader, conversation, effort, json_form, push,
    push_usage, set, stop_texts, temperature,
};
use crate::providers::openai_chat::role_name;
use crate::request::ModelRequest;
use crate::thoughts::ThoughtSplitter;
use crate::{ModelFuture, ServerFacts};
use karyi_core::limits;
use karyi_net::{HttpRequest, ServerUrl};

/// The protocol.
pub(crate) struct Ollama;

impl Protocol for Ollama {
    fn path(&self, _: &ModelConfig, server: &ServerUrl) -> String {
        below_api(server, "chat")
    }

    fn body(&self, config: &ModelConfig, request: &ModelRequest) -> Value {
        let talk = conversation(config, request);
        let system =
            (!talk.system.is_empty()).then(|| json!({"role": "system", "content": talk.system}));
        let turns = talk
            .turns
            .into_iter()
            .map(|(role, text)| json!({"role": role_name(role), "content": text}));
        let messages: Vec<Value> = system.into_iter().chain(turns).collect();
        let mut options = Map::new();
        set(&mut options, "num_ctx", config.context);
        set(
            &mut options,
            "num_predict",
            request.max_output.or(config.max_output),
        );
        set(&mut options, "temperature", temperature(config, request));
        set(&mut options, "stop", stop_texts(config, request));
        let mut body = Map::new();
        set(&mut body, "model", Some(config.model.as_str()));
        set(&mut body, "messages", Some(messages));
        set(&mut body, "stream", Some(true));
        if let Some(schema) = json_form(config, request) {
            set(
                &mut body,
                "format",
                Some(schema.unwrap_or_else(|| "json".into())),
            );
        }
        set(&mut body, "options", Some(options));
        set(&mut body, "think", effort(request));
        Value::Object(body)
    }

    fn prepare<'a>(&'a self, exchange: &'a Exchange, body: &'a mut Value) -> ModelFuture<'a, ()> {
        Box::pin(async move {
            if body["options"]["num_ctx"].is_null() {
                let context = self
                    .facts(exchange)
                    .await?
                    .context
                    .unwrap_or(limits::OLLAMA_CONTEXT);
                if let Some(options) = body["options"].as_object_mut() {
                    options.insert("num_ctx".to_owned(), context.into());
                }
            }
            Ok(())
        })
    }

    fn reader(&self) -> Reader {
        Reader::Ndjson(NdjsonReader::default())
    }

    fn decoder(&self, body: &Value) -> Box<dyn Decoder> {
        let messages = body["messages"].as_array().into_iter().flatten();
        let lengths = messages.filter_map(|message| message["content"].as_str().map(str::len));
        Box::new(OllamaDecoder {
            thoughts: ThoughtSplitter::default(),
            usage: Usage::default(),
            stop: None,
            prompt_bytes: lengths.sum::<usize>() as u64,
            context: body["options"]["num_ctx"].as_u64(),
        })
    }

    fn facts<'a>(&'a self, exchange: &'a Exchange) -> ModelFuture<'a, ServerFacts> {
        Box::pin(async move {
            let body = json!({"model": exchange.config.model}).to_string();
            let request = HttpRequest::post(below_api(exchange.server(), "show"), body);
            let shown = exchange.fact(request).await?.unwrap_or_default();
            let fields = shown["model_info"].as_object().into_iter().flatten();
            let mut most = None;
            let mut parameters = None;
            for (name, value) in fields {
                if name.ends_with(".context_length") {
                    most = value.as_u64();
                } else if name == "general.parameter_count" {
                    parameters = value.as_u64();
                }
            }
            let own = shown["parameters"].as_str().and_then(context_of_parameters);
            Ok(ServerFacts {
                context: own.or(most.map(|most| most.min(limits::OLLAMA_CONTEXT))),
                parameters,
                ..ServerFacts::default()
            })
        })
    }
}

/// Returns a path below `api`, which a base URL may have.
fn below_api(server: &ServerUrl, path: &str) -> String {
    match server.last_segment() {
        "api" => path.to_owned(),
        _ => format!("api/{path}"),
    }
}

/// Returns the number in a line `num_ctx 4096` of a model's parameters.
fn context_of_parameters(text: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        (words.next() == Some("num_ctx")).then(|| words.next()?.parse().ok())?
    })
}

struct OllamaDecoder {
    thoughts: ThoughtSplitter,
    usage: Usage,
    stop: Option<Stop>,
    prompt_bytes: u64,
    context: Option<u64>,
}

impl Decoder for OllamaDecoder {
    fn read(
        &mut self,
        frame: &Frame,
        events: &mut Vec<ModelEvent>,
    ) -> Result<Progress, DecodeError> {
        let line = frame.json()?;
        if line.get("error").is_some_and(|error| !error.is_null()) {
            return Err(DecodeError::Reported(line));
        }
        let message = &line["message"];
        push(events, ModelEvent::Reasoning, message["thinking"].as_str());
        if let Some(text) = message["content"].as_str().filter(|text| !text.is_empty()) {
            self.thoughts.feed(text, events);
        }
        if line["done"] != true {
            return Ok(Progress::More);
        }
        let usage = Usage {
            input: line["prompt_eval_count"].as_u64(),
            output: line["eval_count"].as_u64(),
            ..Usage::default()
        };
        push_usage(events, &mut self.usage, usage);
        self.check_prompt(usage.input)?;
        let raw = line["done_reason"].as_str().unwrap_or("done").to_owned();
        let reason = match raw.as_str() {
            // Old servers give no reason.
            "stop" | "done" => StopReason::End,
            "length" => StopReason::Length,
            _ => StopReason::Other,
        };
        self.stop = Some(Stop { reason, raw });
        Ok(Progress::Done)
    }

    fn finish(&mut self, events: &mut Vec<ModelEvent>) -> Option<Stop> {
        self.thoughts.finish(events);
        self.stop.take()
    }
}

/// Bytes of a token on average, by a rough count.
const TOKEN_BYTES: u64 = 4;
/// Ratio of the rough count and the server's that cannot be chance.
const LARGE_GAP: u64 = 2;

impl OllamaDecoder {
    /// Checks that the server has read the whole prompt. A token has at least one byte, so a prompt of fewer bytes
    /// than the context has tokens fits.
    fn check_prompt(&self, count: Option<u64>) -> Result<(), DecodeError> {
        let (Some(count), Some(context)) = (count, self.context) else {
            return Ok(());
        };
        let estimate = self.prompt_bytes / TOKEN_BYTES;
        if self.prompt_bytes <= context || count.saturating_mul(LARGE_GAP) >= estimate {
            return Ok(());
        }
        let message = format!(
            "the server has read {count} tokens of a conversation of about {estimate}: it dropped the start (its \
            context has {context})"
        );
        Err(DecodeError::Known(ModelError::new(
            ModelErrorKind::Context,
            message,
        )))
    }
}
