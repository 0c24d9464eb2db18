//! Facts that servers tell about their models.

use karyi_model::{Model, ModelConfig, Provider, ServerFacts};

use crate::same_answer::stream;
use crate::scripted_server::{Act, ScriptedServer, answer, chunked};
use crate::{config, model, question, told};

fn json(body: &str) -> Vec<Act> {
    vec![answer("200 OK", "content-type: application/json\r\n", body)]
}

fn missing() -> Vec<Act> {
    vec![answer("404 Not Found", "", "{\"detail\":\"Not Found\"}")]
}

async fn facts(provider: Provider, scripts: Vec<Vec<Act>>) -> (ServerFacts, Vec<String>) {
    let server = ScriptedServer::start(scripts);
    let found = model(config(provider, &server)).facts().await.unwrap();
    let requests = server.requests();
    let lines = requests.iter().map(|request| request.line().to_owned());
    (found, lines.collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn llama_cpp_tells_its_context_and_size() {
    let props = json("{\"default_generation_settings\":{\"n_ctx\":2048},\"total_slots\":1}");
    let models = json(
        "{\"data\":[{\"id\":\"/models/file.gguf\",\"meta\":{\"n_ctx_train\":32768,\"n_params\":494032768}}]}",
    );
    let (found, lines) = facts(Provider::OpenAiChat, vec![props, models]).await;
    let expected = ServerFacts {
        context: Some(2048),
        parameters: Some(494_032_768),
        is_llama_cpp: true,
        max_output: None,
    };
    assert_eq!(found, expected);
    assert_eq!(lines, ["GET /props", "GET /base/models"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn other_chat_servers_tell_it_in_their_list() {
    for (name, context) in [
        ("max_model_len", 4096),
        ("context_length", 8192),
        ("context_window", 131_072),
    ] {
        let models = format!(
            "{{\"data\":[{{\"id\":\"other\",\"{name}\":1}},{{\"id\":\"small-1\",\"{name}\":{context}}}]}}"
        );
        let (found, _) = facts(Provider::OpenAiChat, vec![missing(), json(&models)]).await;
        assert_eq!(
            (found.context, found.is_llama_cpp),
            (Some(context), false),
            "{name}"
        );
    }
    let (found, _) = facts(Provider::OpenAiChat, vec![missing(), missing()]).await;
    assert_eq!(found, ServerFacts::default());
}

#[tokio::test(flavor = "multi_thread")]
async fn anthropic_and_gemini_tell_of_one_model() {
    let (found, lines) = facts(
        Provider::Anthropic,
        vec![json("{\"max_input_tokens\":200000,\"max_tokens\":64000}")],
    )
    .await;
    assert_eq!(
        (found.context, found.max_output),
        (Some(200_000), Some(64_000))
    );
    assert_eq!(lines, ["GET /base/v1/models/small-1"]);
    let (found, lines) = facts(
        Provider::Gemini,
        vec![json("{\"inputTokenLimit\":1000,\"outputTokenLimit\":99}")],
    )
    .await;
    assert_eq!((found.context, found.max_output), (Some(1000), Some(99)));
    assert_eq!(lines, ["GET /base/models/small-1"]);
    let (found, lines) = facts(
        Provider::OpenAiResponses,
        vec![json("{\"id\":\"small-1\"}")],
    )
    .await;
    assert_eq!(
        (found, lines),
        (
            ServerFacts::default(),
            vec!["GET /base/models/small-1".to_owned()]
        )
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_key_or_name_is_an_error() {
    let check = async |provider: Provider, status: &str, body: &str, code: &str| {
        let scripts = || vec![answer(status, "", body)];
        let server = ScriptedServer::start(vec![scripts(), scripts()]);
        let error = model(config(provider, &server)).facts().await.unwrap_err();
        assert_eq!(error.code(), code, "{provider}: {error}");
    };
    for provider in Provider::ALL.iter().copied() {
        check(provider, "401 Unauthorized", "", "model_auth").await;
    }
    check(
        Provider::Anthropic,
        "404 Not Found",
        "{\"error\":{\"type\":\"not_found_error\",\"message\":\"model: x\"}}",
        "unknown_model",
    )
    .await;
    check(
        Provider::Ollama,
        "404 Not Found",
        "{\"error\":\"model 'small-1' not found\"}",
        "unknown_model",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ollama_is_asked_for_the_context_it_is_told() {
    let show = |parameters: &str| {
        format!(
            "{{\"parameters\":\"{parameters}\",\"model_info\":{{\"general.parameter_count\":7615616512,\"qwen2.context_length\":131072}}}}"
        )
    };
    let (found, lines) = facts(Provider::Ollama, vec![json(&show(""))]).await;
    assert_eq!(
        (found.context, found.parameters),
        (Some(32_768), Some(7_615_616_512))
    );
    assert_eq!(lines, ["POST /base/api/show"]);
    let cases = [
        (
            json(&show("stop x\\nnum_ctx                        8192")),
            8192,
        ),
        (json(&show("")), 32_768),
        (json("{}"), 32_768),
    ];
    for (shown, expected) in cases {
        let chat = vec![chunked(
            "application/x-ndjson",
            &[stream(Provider::Ollama).as_bytes()],
        )];
        let server = ScriptedServer::start(vec![shown, chat]);
        let config = ModelConfig {
            context: None,
            ..config(Provider::Ollama, &server)
        };
        assert_eq!(told(&model(config), &question()).await.error, None);
        let request = server.requests().remove(1);
        assert_eq!(request.line(), "POST /base/api/chat");
        assert!(
            request.body.contains(&format!("\"num_ctx\":{expected}}}")),
            "{}",
            request.body
        );
    }
}
