//! The language model of a command, and `karyi model`.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde_json::{Value, json};

use crate::cli::ask::args::{ModelArgs, ModelTopic};
use crate::cli::config::{ChosenModel, KeySource, NoModel, Settings, chosen_model};
use crate::cli::{fail_any, fail_as_given, print, runtime, say, vault};
use crate::render::paint::safe_line;
use karyi_core::limits;
use karyi_core::secret::{SecretName, SecretValue};
use karyi_model::{
    HttpModel, Message, Model, ModelError, ModelErrorKind, ModelEvent, ModelRequest, Provider,
    ServerFacts, Stop, StopReason,
};
use karyi_net::{ClientOptions, HttpClient, HttpRequest, ServerUrl, Timeouts};
use karyi_vault::redact::Redactor;
use karyi_vault::session::{Need, Secrets};

/// Exit status when the model could not be used.
pub(super) const NO_MODEL: u8 = 4;

/// Parameters from which on a model needs no grammar and no example.
const SMALL_PARAMETERS: u64 = 9_000_000_000;

/// Servers of models that people run on their own machine: name, address, a path, a word of its answer, and the
/// provider.
const LOCAL_SERVERS: [(&str, &str, &str, &str, Provider); 2] = [
    (
        "Ollama",
        "http://127.0.0.1:11434",
        "/api/version",
        "version",
        Provider::Ollama,
    ),
    (
        "llama.cpp",
        "http://127.0.0.1:8080",
        "/props",
        "default_generation_settings",
        Provider::OpenAiChat,
    ),
];

/// Chooses the model of a command.
///
/// # Errors
/// None is chosen, or its settings are wrong.
pub(super) fn choose(flag: Option<&str>) -> anyhow::Result<ChosenModel> {
    chosen_model(&Settings::load()?, flag)
}

/// Reports that no model could be chosen, and returns the exit status.
pub(super) fn fail_choice(error: &anyhow::Error) -> ExitCode {
    if error.downcast_ref::<NoModel>().is_none() {
        return fail_any(error);
    }
    say("no language model is chosen. Do one of these:");
    say("  export ANTHROPIC_API_KEY=...; karyi config set model anthropic:NAME");
    say(
        "  karyi config set models.X.provider openai_chat (and models.X.model, models.X.base_url), then \
         `karyi config set model X`",
    );
    say("  export KARYI_MODEL=ollama:NAME for a model on this machine");
    match local_server() {
        Some(found) => say(&found),
        None => say("no Ollama or llama.cpp server answers on this machine"),
    }
    ExitCode::from(NO_MODEL)
}

/// Returns a line about a server of models that answers on this machine.
fn local_server() -> Option<String> {
    let runtime = runtime::runtime(false).ok()?;
    let found = LOCAL_SERVERS.iter().find(|(_, address, path, word, _)| {
        runtime.block_on(answers(address, path, word)) == Some(true)
    });
    let (name, address, _, _, provider) = found?;
    let usual = provider.base_url() == *address;
    let url = match usual {
        true => String::new(),
        false => format!("KARYI_MODEL_URL={address}/v1 "),
    };
    Some(format!(
        "{name} answers at {address}: {url}karyi ask --model {provider}:NAME ..."
    ))
}

async fn answers(address: &str, path: &str, word: &str) -> Option<bool> {
    let timeouts = Timeouts {
        head: Some(limits::LOCAL_SERVER_TIMEOUT),
        idle: Some(limits::LOCAL_SERVER_TIMEOUT),
    };
    let options = ClientOptions {
        timeouts,
        ..ClientOptions::default()
    };
    let client = HttpClient::new(ServerUrl::parse(address).ok()?, &options).ok()?;
    let response = client.send(HttpRequest::get(path)).await.ok()?;
    let body = response.bytes(limits::MAX_CHAT_ANSWER_BYTES).await.ok()?;
    Some(String::from_utf8_lossy(&body).contains(word))
}

/// Opens a model with its key. The value of the key is masked in all outputs of the session from then on.
///
/// # Errors
/// The key has no value, or the settings cannot be used.
pub(super) fn open(chosen: &ChosenModel, secrets: &Secrets) -> anyhow::Result<Arc<dyn Model>> {
    let key = match &chosen.key {
        KeySource::None => None,
        KeySource::Secret(name) => Some(stored_key(chosen, name, secrets)?),
        KeySource::Variable(name) => {
            let value = SecretValue::new(key_of_variable(name)?);
            if let Some(secret) = SecretName::parse(name) {
                // A value that is too short to be masked is no key that any provider takes.
                let _ = secrets.mask_only(&secret, value.duplicate());
            }
            Some(value)
        }
    };
    let model = HttpModel::new(chosen.config.clone(), key);
    let model =
        model.map_err(|error| anyhow::anyhow!("{}: {error}; {}", error.code(), error.hint))?;
    Ok(Arc::new(model))
}

/// Returns the key in a variable. The system's error has the value in it, and is left out.
fn key_of_variable(name: &str) -> anyhow::Result<String> {
    let value = std::env::var_os(name).with_context(|| format!("{name} has no value"))?;
    let value = value.into_string().ok();
    value.with_context(|| format!("{name} is not UTF-8"))
}

fn stored_key(
    chosen: &ChosenModel,
    name: &SecretName,
    secrets: &Secrets,
) -> anyhow::Result<SecretValue> {
    secrets.refresh(Need::Used);
    let missing = || {
        let model = &chosen.name;
        format!(
            "the key of the model {model} is the secret {name}, which has no value: `karyi var set {name}` stores one"
        )
    };
    secrets.get(name).with_context(missing)
}

/// Returns what is known of a model's server, which is asked only where it is on this machine.
pub(super) async fn facts(model: &dyn Model) -> ServerFacts {
    let config = model.config();
    let is_local = ServerUrl::parse(&config.base_url).is_ok_and(|url| url.is_loopback());
    if !is_local || !matches!(config.provider, Provider::OpenAiChat | Provider::Ollama) {
        return ServerFacts::default();
    }
    // The request itself tells what is wrong with the server.
    model.facts().await.unwrap_or_default()
}

/// Returns true for a model that needs an example and a grammar.
pub(super) fn is_small(model: &dyn Model, facts: &ServerFacts) -> bool {
    let parameters = facts.parameters;
    let is_known = parameters.is_some_and(|count| count < SMALL_PARAMETERS);
    model.config().small.unwrap_or(is_known)
}

/// Runs `karyi model`.
pub(super) fn model(args: &ModelArgs) -> ExitCode {
    match &args.topic {
        ModelTopic::List { json } => match list(*json) {
            Ok(code) => code,
            Err(error) => fail_any(&error),
        },
        ModelTopic::Test { name, json } => test(name.as_deref(), *json),
    }
}

fn list(is_json: bool) -> anyhow::Result<ExitCode> {
    let settings = Settings::load()?;
    let used = chosen_model(&settings, None).ok().map(|chosen| chosen.name);
    let mut rows: Vec<Value> = Vec::new();
    let mut lines = String::new();
    for name in settings.models() {
        let chosen = chosen_model(&settings, Some(name))?;
        let key = key_text(&chosen.key);
        let is_used = used.as_deref() == Some(name);
        let config = &chosen.config;
        let mark = if is_used { "*" } else { " " };
        lines.push_str(&format!(
            "{mark} {name}  {}:{}  {}  key: {key}\n",
            config.provider, config.model, config.base_url
        ));
        rows.push(json!({
            "name": name, "provider": config.provider.as_str(), "model": config.model,
            "base_url": config.base_url, "key": key, "is_used": is_used,
        }));
    }
    if lines.is_empty() {
        lines.push_str("no models; docs/models.md shows how to add one to config.toml\n");
    }
    Ok(match is_json {
        true => print(&format!("{}\n", Value::Array(rows))),
        false => print(&safe_lines(&lines)),
    })
}

fn safe_lines(text: &str) -> String {
    let lines = text.lines().map(|line| format!("{}\n", safe_line(line)));
    lines.collect()
}

fn key_text(key: &KeySource) -> String {
    match key {
        KeySource::Secret(name) => format!("$KARYI{{{name}}}"),
        KeySource::Variable(name) => (*name).to_owned(),
        KeySource::None => "none".to_owned(),
    }
}

/// Result of a test of a model.
struct TestResult {
    text: String,
    first: Option<Duration>,
    whole: Duration,
}

fn test(name: Option<&str>, is_json: bool) -> ExitCode {
    let chosen = match choose(name) {
        Ok(chosen) => chosen,
        Err(error) => return fail_choice(&error),
    };
    let secrets = Secrets::default();
    let (flags, given) = (vault::VaultFlags::default(), vault::GivenArgs::default());
    if let Err(error) = vault::prepare(&secrets, &flags, None, &given) {
        return fail_as_given(&error);
    }
    let model = match open(&chosen, &secrets) {
        Ok(model) => model,
        Err(error) => {
            say(&format!("{error:#}"));
            return ExitCode::from(NO_MODEL);
        }
    };
    let runtime = match runtime::runtime(false) {
        Ok(runtime) => runtime,
        Err(error) => return fail_any(&error),
    };
    let redactor = Redactor::new(&secrets);
    let (facts, result) = runtime.block_on(async {
        (
            facts(model.as_ref()).await,
            try_model(model.as_ref(), &redactor).await,
        )
    });
    match result {
        Ok(result) => print(&test_text(
            &chosen,
            model.as_ref(),
            &facts,
            &result,
            is_json,
        )),
        Err(error) => {
            let error = error.masked(&redactor);
            say(&format!("{}: {}", error.code(), safe_line(&error.message)));
            say(&format!("hint: {}", safe_line(&error.hint)));
            ExitCode::from(NO_MODEL)
        }
    }
}

async fn try_model(model: &dyn Model, redactor: &Redactor) -> Result<TestResult, ModelError> {
    let request = ModelRequest {
        messages: vec![Message::user(
            redactor.redact("Reply with the one word: ready"),
        )],
        ..ModelRequest::default()
    };
    let since = Instant::now();
    let mut answer = model.answer(&request);
    let (mut text, mut first, mut end) = (String::new(), None, None);
    while let Some(event) = answer.next().await {
        match event? {
            ModelEvent::Text(piece) => {
                first.get_or_insert_with(|| since.elapsed());
                text.push_str(&piece);
            }
            ModelEvent::Retry(retry) => {
                let error = retry.error.masked(redactor);
                say(&format!("{}; asking again", safe_line(&error.message)));
            }
            ModelEvent::Stop(stop) => end = Some(stop),
            ModelEvent::Reasoning(_) | ModelEvent::Usage(_) => {}
        }
    }
    let text = text.trim();
    match end.and_then(|stop| unusable(text, &stop)) {
        Some(error) => Err(error),
        None => Ok(TestResult {
            text: redactor.redact_again(text).into_owned(),
            first,
            whole: since.elapsed(),
        }),
    }
}

/// Returns the error of an answer that ended in a way no conversation can go on from.
fn unusable(text: &str, stop: &Stop) -> Option<ModelError> {
    let raw = safe_line(&stop.raw);
    match (stop.reason, text.is_empty()) {
        (StopReason::Content, _) => {
            let message = format!("the provider stopped the answer for safety ({raw})");
            let hint = "use another model, or ask the provider why it refuses a harmless request";
            Some(ModelError::new(ModelErrorKind::Content, message).with_hint(hint))
        }
        (StopReason::Length, true) => {
            let message = format!("the answer reached its limit before any text ({raw})");
            let hint = "raise `max_output` of the model: its reasoning may need more tokens";
            Some(ModelError::new(ModelErrorKind::Protocol, message).with_hint(hint))
        }
        (StopReason::Context, true) => {
            let message = format!("the context window is full before any text ({raw})");
            Some(ModelError::new(ModelErrorKind::Context, message))
        }
        (StopReason::End | StopReason::Other, true) => {
            let message = format!("the answer has no text (it ended with {raw})");
            Some(ModelError::new(ModelErrorKind::Protocol, message))
        }
        (StopReason::End | StopReason::Other | StopReason::Length | StopReason::Context, false) => {
            None
        }
    }
}

fn test_text(
    chosen: &ChosenModel,
    model: &dyn Model,
    facts: &ServerFacts,
    result: &TestResult,
    is_json: bool,
) -> String {
    let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let context = model.config().context.or(facts.context);
    let is_small = is_small(model, facts);
    let first = result.first.map(ms);
    if is_json {
        let fields = json!({
            "name": chosen.name, "answer": result.text, "first_ms": first, "whole_ms": ms(result.whole),
            "context": context, "is_small": is_small, "is_llama_cpp": facts.is_llama_cpp,
        });
        return format!("{fields}\n");
    }
    let context = context.map_or("unknown".to_owned(), |tokens| format!("{tokens} tokens"));
    let first = first.map_or("none".to_owned(), |ms| format!("{ms} ms"));
    let lines = format!(
        "{} answered: {}\nfirst text after {first}, all after {} ms; context: {context}{}\n",
        chosen.name,
        safe_line(&result.text),
        ms(result.whole),
        if is_small {
            "; small: example and grammar"
        } else {
            ""
        }
    );
    safe_lines(&lines)
}
