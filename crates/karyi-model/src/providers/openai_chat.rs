//! `chat/completions` of OpenAI, also of vLLM, llama.cpp, OpenRouter, LM Studio and many others.
//!
//! The reason comes in `finish_reason`. Counts may follow it, then `[DONE]`; some servers leave either out.

use serde_json::{Map, Value, json};

use crate::answer::{ModelEvent, Stop, StopReason, Usage};
use crate::config::ModelConfig;
use crate::exchange::Exchange;
use crate::frame::Frame;
use crate::protocol::{
    DecodeError, Decoder, Progress, Protocol, conversation, effort, json_form, push, push_usage,
    set, stop_texts, temperature,
};
use crate::request::{ModelRequest, OutputForm, Role};
use crate::thoughts::ThoughtSplitter;
use crate::{ModelFuture, ServerFacts};
use karyi_core::secret::SecretValue;
use karyi_net::{HttpRequest, NetError, ServerUrl};

/// The protocol.
pub(crate) struct OpenAiChat;

impl Protocol for OpenAiChat {
    fn path(&self, _: &ModelConfig, _: &ServerUrl) -> String {
        "chat/completions".to_owned()
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
        let mut body = Map::new();
        set(&mut body, "model", Some(config.model.as_str()));
        set(&mut body, "messages", Some(messages));
        set(&mut body, "stream", Some(true));
        set(
            &mut body,
            "stream_options",
            Some(json!({"include_usage": true})),
        );
        // Newer models of OpenAI refuse the old name, and most other servers do not know the new one.
        let most = if is_openai(config) {
            "max_completion_tokens"
        } else {
            "max_tokens"
        };
        set(&mut body, most, request.max_output.or(config.max_output));
        set(&mut body, "temperature", temperature(config, request));
        set(&mut body, "stop", stop_texts(config, request));
        set(&mut body, "reasoning_effort", effort(request));
        if let Some(schema) = json_form(config, request) {
            let format = match schema {
                Some(schema) => json!({
                    "type": "json_schema",
                    "json_schema": {"name": "answer", "schema": schema},
                }),
                None => json!({"type": "json_object"}),
            };
            set(&mut body, "response_format", Some(format));
        }
        if let OutputForm::Grammar(grammar) = &request.output {
            set(&mut body, "grammar", Some(grammar.as_str()));
        }
        Value::Object(body)
    }

    fn decoder(&self, _: &Value) -> Box<dyn Decoder> {
        Box::new(ChatDecoder::default())
    }

    fn facts<'a>(&'a self, exchange: &'a Exchange) -> ModelFuture<'a, ServerFacts> {
        Box::pin(async move {
            let mut facts = ServerFacts::default();
            if !is_openai(&exchange.config) {
                // The address of llama.cpp itself, not of its version of the protocol.
                if let Some(props) = optional(exchange.fact(HttpRequest::get("/props")).await) {
                    facts.context = props["default_generation_settings"]["n_ctx"].as_u64();
                    facts.is_llama_cpp = props["default_generation_settings"].is_object();
                }
            }
            let list = exchange.fact(HttpRequest::get("models")).await?;
            let models = list.as_ref().and_then(|list| list["data"].as_array());
            let models = models.map(Vec::as_slice).unwrap_or_default();
            let own = models
                .iter()
                .find(|model| model["id"] == exchange.config.model.as_str());
            // llama.cpp serves one model, and gives it the name of its file.
            let own = own.or_else(|| models.first().filter(|_| facts.is_llama_cpp));
            if let Some(model) = own {
                let told = ["max_model_len", "context_length", "context_window"];
                let told = told.iter().find_map(|name| model[*name].as_u64());
                facts.context = facts
                    .context
                    .or(told)
                    .or(model["meta"]["n_ctx_train"].as_u64());
                facts.max_output = model["top_provider"]["max_completion_tokens"].as_u64();
                facts.parameters = model["meta"]["n_params"].as_u64();
            }
            Ok(facts)
        })
    }
}

/// Leaves out a fact that a server does not tell; another request shows why.
fn optional<E>(found: Result<Option<Value>, E>) -> Option<Value> {
    found.ok().flatten()
}

/// Adds the key as a bearer token.
pub(crate) fn authorize(
    request: HttpRequest,
    key: Option<&SecretValue>,
) -> Result<HttpRequest, NetError> {
    match key {
        Some(key) => request.secret_header("authorization", "Bearer ", key),
        None => Ok(request),
    }
}

/// Returns the name of a role.
pub(crate) fn role_name(role: Role) -> &'static str {
    match role {
        Role::User => "user",
        Role::Assistant => "assistant",
    }
}

/// Returns true for OpenAI's own server.
fn is_openai(config: &ModelConfig) -> bool {
    config.base_url.starts_with("https://api.openai.com")
}

#[derive(Default)]
struct ChatDecoder {
    thoughts: ThoughtSplitter,
    usage: Usage,
    stop: Option<Stop>,
    is_refused: bool,
}

impl Decoder for ChatDecoder {
    fn read(
        &mut self,
        frame: &Frame,
        events: &mut Vec<ModelEvent>,
    ) -> Result<Progress, DecodeError> {
        if frame.data.trim() == "[DONE]" {
            return Ok(Progress::Done);
        }
        let chunk = frame.json()?;
        if chunk.get("error").is_some_and(|error| !error.is_null()) {
            return Err(DecodeError::Reported(chunk));
        }
        let choice = &chunk["choices"][0];
        let delta = &choice["delta"];
        for name in ["reasoning_content", "reasoning"] {
            push(events, ModelEvent::Reasoning, delta[name].as_str());
        }
        self.content(&delta["content"], events);
        if let Some(refusal) = delta["refusal"].as_str().filter(|text| !text.is_empty()) {
            self.is_refused = true;
            self.thoughts.feed(refusal, events);
        }
        push_usage(events, &mut self.usage, usage(&chunk["usage"]));
        if let Some(raw) = choice["finish_reason"]
            .as_str()
            .filter(|raw| !raw.is_empty())
        {
            let raw = raw.to_owned();
            let reason = reason(&raw);
            self.stop = Some(Stop { reason, raw });
        }
        Ok(match self.stop {
            Some(_) => Progress::Tail,
            None => Progress::More,
        })
    }

    fn finish(&mut self, events: &mut Vec<ModelEvent>) -> Option<Stop> {
        self.thoughts.finish(events);
        let stop = self.stop.take();
        match self.is_refused {
            true => stop.map(|_| Stop {
                reason: StopReason::Content,
                raw: "refusal".to_owned(),
            }),
            false => stop,
        }
    }
}

impl ChatDecoder {
    /// Reads content: a text, or the parts of one.
    fn content(&mut self, content: &Value, events: &mut Vec<ModelEvent>) {
        if let Some(text) = content.as_str().filter(|text| !text.is_empty()) {
            self.thoughts.feed(text, events);
        }
        for part in content.as_array().into_iter().flatten() {
            match part["type"].as_str() {
                Some("text") => self.content(&part["text"], events),
                Some("thinking") => {
                    for thought in part["thinking"].as_array().into_iter().flatten() {
                        push(events, ModelEvent::Reasoning, thought["text"].as_str());
                    }
                }
                _ => {}
            }
        }
    }
}

fn usage(usage: &Value) -> Usage {
    let cached = usage["prompt_tokens_details"]["cached_tokens"].as_u64();
    Usage {
        input: usage["prompt_tokens"].as_u64(),
        cached: cached.or(usage["prompt_cache_hit_tokens"].as_u64()),
        output: usage["completion_tokens"].as_u64(),
        reasoning: usage["completion_tokens_details"]["reasoning_tokens"].as_u64(),
    }
}

fn reason(raw: &str) -> StopReason {
    match raw {
        "stop" | "eos" | "end_turn" | "stop_sequence" => StopReason::End,
        "length" | "max_tokens" => StopReason::Length,
        "model_length" | "context_length_exceeded" => StopReason::Context,
        "content_filter" | "refusal" | "SAFETY" => StopReason::Content,
        _ => StopReason::Other,
    }
}
