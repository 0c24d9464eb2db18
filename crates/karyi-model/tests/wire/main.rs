//! Providers against a server that plays a script of raw bytes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::too_many_lines,
    reason = "a test that meets the unexpected stops there and says so; tables are long"
)]

#[path = "../../../../tests/harness/scripted_server.rs"]
#[allow(dead_code, unreachable_pub, reason = "each package uses a part of it")]
mod scripted_server;

mod ends;
mod facts;
mod failures;
mod requests;
mod retries;
mod same_answer;

use std::time::Duration;

use karyi_core::secret::{SecretName, SecretValue};
use karyi_model::{
    HttpModel, Message, Model, ModelConfig, ModelError, ModelEvent, ModelLimits, ModelRequest,
    Provider, Retry, Stop, Usage,
};
use karyi_vault::redact::{Redacted, Redactor};
use karyi_vault::session::Secrets;
use scripted_server::ScriptedServer;

/// Value of the key in these tests.
const KEY: &str = "sk-0123456789abcdef";

fn redacted(text: &str) -> Redacted {
    Redactor::new(&Secrets::default()).redact(text)
}

fn question() -> ModelRequest {
    ModelRequest {
        system: redacted("Be brief."),
        messages: vec![Message::user(redacted("Hello?"))],
        ..ModelRequest::default()
    }
}

fn config(provider: Provider, server: &ScriptedServer) -> ModelConfig {
    ModelConfig {
        base_url: server.url("/base"),
        context: Some(4096),
        key: SecretName::parse("MY_KEY"),
        ..ModelConfig::new(provider, "small-1")
    }
}

/// Limits without pauses between attempts.
fn limits() -> ModelLimits {
    ModelLimits {
        head: None,
        idle: None,
        progress: None,
        tail: Duration::from_secs(30),
        retry_pause: Duration::ZERO,
        max_wait: Duration::from_secs(60),
    }
}

fn model(config: ModelConfig) -> HttpModel {
    HttpModel::with_limits(config, Some(SecretValue::new(KEY.to_owned())), limits()).unwrap()
}

/// Everything that an answer gave.
#[derive(Debug, Default, PartialEq)]
struct Told {
    text: String,
    reasoning: String,
    usage: Usage,
    stop: Option<Stop>,
    retries: Vec<Retry>,
    error: Option<ModelError>,
}

async fn told(model: &dyn Model, request: &ModelRequest) -> Told {
    let mut told = Told::default();
    let mut answer = model.answer(request);
    while let Some(event) = answer.next().await {
        assert_eq!(
            (&told.stop, &told.error),
            (&None, &None),
            "{event:?} behind the end"
        );
        match event {
            Ok(ModelEvent::Text(text)) => told.text.push_str(&text),
            Ok(ModelEvent::Reasoning(text)) => told.reasoning.push_str(&text),
            Ok(ModelEvent::Usage(usage)) => told.usage = usage,
            Ok(ModelEvent::Stop(stop)) => told.stop = Some(stop),
            Ok(ModelEvent::Retry(retry)) => told.retries.push(retry),
            Err(error) => told.error = Some(error),
        }
    }
    let shown = format!("{told:?}");
    assert!(!shown.contains(KEY), "{shown}");
    told
}

/// Asks a question of a server, with the usual settings of a provider.
async fn ask(provider: Provider, server: &ScriptedServer) -> Told {
    told(&model(config(provider, server)), &question()).await
}
