//! Bodies and headers of requests.

use karyi_model::{
    Capability, Effort, Message, Model, ModelConfig, ModelRequest, OutputForm, Provider, SystemRole,
};
use serde_json::{Value, json};

use crate::same_answer::stream;
use crate::scripted_server::{Received, ScriptedServer, chunked};
use crate::{KEY, config, model, question, redacted, told};

/// Returns the request that a provider sends.
async fn sent(
    provider: Provider,
    change: impl Fn(&mut ModelConfig),
    request: &ModelRequest,
) -> (Received, Value) {
    let bytes = stream(provider);
    let server = ScriptedServer::once(vec![chunked("text/event-stream", &[bytes.as_bytes()])]);
    let mut config = config(provider, &server);
    change(&mut config);
    let told = told(&model(config), request).await;
    assert_eq!(told.error, None);
    let received = server.requests().remove(0);
    let body = serde_json::from_str(&received.body).unwrap();
    (received, body)
}

/// A conversation with neighbours of one role and an empty message.
fn long() -> ModelRequest {
    let user = |text: &str| Message::user(redacted(text));
    let assistant = |text: &str| Message::assistant(redacted(text));
    ModelRequest {
        messages: vec![
            user("a"),
            user("b"),
            assistant("c"),
            assistant(""),
            user("d"),
            assistant("e"),
            user("f"),
        ],
        max_output: Some(99),
        temperature: Some(0.5),
        stop: vec!["\n<results", "</tools>"],
        ..question()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn openai_chat_request() {
    let (received, body) = sent(Provider::OpenAiChat, |_| {}, &long()).await;
    assert_eq!(received.line(), "POST /base/chat/completions");
    assert_eq!(
        received.header("authorization"),
        Some(&*format!("Bearer {KEY}"))
    );
    let expected = json!({
        "model": "small-1",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "a\n\nb"},
            {"role": "assistant", "content": "c"},
            {"role": "user", "content": "d"},
            {"role": "assistant", "content": "e"},
            {"role": "user", "content": "f"},
        ],
        "stream": true,
        "stream_options": {"include_usage": true},
        "max_tokens": 99,
        "temperature": 0.5,
        "stop": ["\n<results"],
    });
    assert_eq!(body, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn openai_responses_request() {
    let (received, body) = sent(Provider::OpenAiResponses, |_| {}, &long()).await;
    assert_eq!(received.line(), "POST /base/responses");
    let expected = json!({
        "model": "small-1",
        "instructions": "Be brief.",
        "input": [
            {"role": "user", "content": "a\n\nb"},
            {"role": "assistant", "content": "c"},
            {"role": "user", "content": "d"},
            {"role": "assistant", "content": "e"},
            {"role": "user", "content": "f"},
        ],
        "stream": true,
        "store": false,
        "max_output_tokens": 99,
        "temperature": 0.5,
    });
    assert_eq!(body, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn anthropic_request_marks_what_is_cached() {
    let (received, body) = sent(Provider::Anthropic, |_| {}, &long()).await;
    assert_eq!(received.line(), "POST /base/v1/messages");
    assert_eq!(received.header("x-api-key"), Some(KEY));
    assert_eq!(received.header("anthropic-version"), Some("2023-06-01"));
    let mark = json!({"type": "ephemeral"});
    let cached = |text: &str| json!([{"type": "text", "text": text, "cache_control": mark}]);
    let plain = |text: &str| json!([{"type": "text", "text": text}]);
    let expected = json!({
        "model": "small-1",
        "max_tokens": 99,
        "stream": true,
        "system": cached("Be brief."),
        "messages": [
            {"role": "user", "content": plain("a\n\nb")},
            {"role": "assistant", "content": plain("c")},
            {"role": "user", "content": cached("d")},
            {"role": "assistant", "content": plain("e")},
            {"role": "user", "content": cached("f")},
        ],
        "temperature": 0.5,
        "stop_sequences": ["\n<results"],
    });
    assert_eq!(body, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn anthropic_needs_a_limit_of_the_answer() {
    let most = async |max_output: Option<u64>| {
        let (_, body) = sent(
            Provider::Anthropic,
            |config| config.max_output = max_output,
            &question(),
        )
        .await;
        body["max_tokens"].clone()
    };
    assert_eq!(most(None).await, 8192);
    assert_eq!(most(Some(16384)).await, 16384);
    let base = |config: &mut ModelConfig| config.base_url.push_str("//v1/");
    let (received, _) = sent(Provider::Anthropic, base, &question()).await;
    assert_eq!(received.line(), "POST /base/v1/messages");
}

#[tokio::test(flavor = "multi_thread")]
async fn gemini_request() {
    let (received, body) = sent(Provider::Gemini, |_| {}, &long()).await;
    assert_eq!(
        received.line(),
        "POST /base/models/small-1:streamGenerateContent?alt=sse"
    );
    assert_eq!(received.header("x-goog-api-key"), Some(KEY));
    let expected = json!({
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [
            {"role": "user", "parts": [{"text": "a\n\nb"}]},
            {"role": "model", "parts": [{"text": "c"}]},
            {"role": "user", "parts": [{"text": "d"}]},
            {"role": "model", "parts": [{"text": "e"}]},
            {"role": "user", "parts": [{"text": "f"}]},
        ],
        "generationConfig": {"maxOutputTokens": 99, "temperature": 0.5, "stopSequences": ["\n<results"]},
    });
    assert_eq!(body, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn ollama_request_names_the_context() {
    let (received, body) = sent(Provider::Ollama, |_| {}, &long()).await;
    assert_eq!(received.line(), "POST /base/api/chat");
    assert_eq!(
        body["options"],
        json!({"num_ctx": 4096, "num_predict": 99, "temperature": 0.5, "stop": ["\n<results"]})
    );
    assert_eq!(
        body["messages"][0],
        json!({"role": "system", "content": "Be brief."})
    );
    let base = |config: &mut ModelConfig| config.base_url.push_str("/api");
    let (received, _) = sent(Provider::Ollama, base, &question()).await;
    assert_eq!(received.line(), "POST /base/api/chat");
}

#[tokio::test(flavor = "multi_thread")]
async fn extra_fields_are_merged_as_they_are() {
    let extra = |config: &mut ModelConfig| {
        let fields =
            json!({"options": {"num_gpu": 1, "stop": null}, "keep_alive": -1, "model": "other"});
        config.extra = fields.as_object().unwrap().clone();
    };
    let (_, body) = sent(Provider::Ollama, extra, &long()).await;
    assert_eq!(
        (&body["keep_alive"], &body["model"]),
        (&json!(-1), &json!("other"))
    );
    let options =
        json!({"num_ctx": 4096, "num_predict": 99, "temperature": 0.5, "stop": null, "num_gpu": 1});
    assert_eq!(body["options"], options);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_template_without_a_system_role_gets_one_user_message() {
    let user = |config: &mut ModelConfig| config.system = SystemRole::User;
    let (_, body) = sent(Provider::OpenAiChat, user, &question()).await;
    assert_eq!(
        body["messages"],
        json!([{"role": "user", "content": "Be brief.\n\nHello?"}])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_abilities_leave_their_fields_out() {
    let none = |config: &mut ModelConfig| config.capabilities = Some(vec![]);
    for provider in Provider::ALL.iter().copied() {
        let request = ModelRequest {
            output: OutputForm::Json { schema: None },
            ..long()
        };
        let (received, _) = sent(provider, none, &request).await;
        for name in [
            "temperature",
            "stop\"",
            "stopSequences",
            "stop_sequences",
            "format",
            "json",
        ] {
            assert!(
                !received.body.contains(name),
                "{provider} {name}: {}",
                received.body
            );
        }
    }
    assert!(
        !Provider::Anthropic
            .capabilities()
            .contains(&Capability::Json)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn json_is_asked_for_as_each_protocol_does() {
    let form = async |provider: Provider, schema: Option<&str>, pointer: &str| {
        let schema = schema.map(redacted);
        let output = OutputForm::Json { schema };
        let (_, body) = sent(
            provider,
            |_| {},
            &ModelRequest {
                output,
                ..question()
            },
        )
        .await;
        body.pointer(pointer).cloned().unwrap_or_default()
    };
    let schema = Some(r#"{"type":"object"}"#);
    let object = json!({"type": "object"});
    let chat = form(Provider::OpenAiChat, None, "/response_format").await;
    assert_eq!(chat, json!({"type": "json_object"}));
    let chat = form(Provider::OpenAiChat, schema, "/response_format").await;
    assert_eq!(
        chat,
        json!({"type": "json_schema", "json_schema": {"name": "answer", "schema": object}})
    );
    let responses = form(Provider::OpenAiResponses, schema, "/text/format").await;
    assert_eq!(
        responses,
        json!({"type": "json_schema", "name": "answer", "schema": object})
    );
    let gemini = form(Provider::Gemini, schema, "/generationConfig").await;
    assert_eq!(
        gemini,
        json!({"responseMimeType": "application/json", "responseJsonSchema": object})
    );
    assert_eq!(form(Provider::Ollama, None, "/format").await, "json");
    assert_eq!(form(Provider::Ollama, schema, "/format").await, object);
}

#[tokio::test(flavor = "multi_thread")]
async fn effort_is_asked_for_as_each_protocol_does() {
    for (provider, pointer) in [
        (Provider::OpenAiChat, "/reasoning_effort"),
        (Provider::OpenAiResponses, "/reasoning/effort"),
        (Provider::Anthropic, "/output_config/effort"),
        (
            Provider::Gemini,
            "/generationConfig/thinkingConfig/thinkingLevel",
        ),
        (Provider::Ollama, "/think"),
    ] {
        let request = ModelRequest {
            effort: Effort::parse("high"),
            ..question()
        };
        let (_, body) = sent(provider, |_| {}, &request).await;
        assert_eq!(body.pointer(pointer), Some(&json!("high")), "{provider}");
        let (_, body) = sent(provider, |_| {}, &question()).await;
        assert_eq!(body.pointer(pointer), None, "{provider}");
    }
    assert_eq!(Effort::parse("most"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grammar_goes_to_chat_servers() {
    let output = OutputForm::Grammar(redacted("root ::= \"a\""));
    let (_, body) = sent(
        Provider::OpenAiChat,
        |_| {},
        &ModelRequest {
            output,
            ..question()
        },
    )
    .await;
    assert_eq!(body["grammar"], "root ::= \"a\"");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_conversation_is_the_same_bytes() {
    for provider in Provider::ALL.iter().copied() {
        let (first, _) = sent(provider, |_| {}, &long()).await;
        let (second, _) = sent(provider, |_| {}, &long()).await;
        assert_eq!(first.body, second.body);
        let mut longer = long();
        longer.messages.push(Message::assistant(redacted("g")));
        let (third, _) = sent(provider, |_| {}, &longer).await;
        let shared = first
            .body
            .bytes()
            .zip(third.body.bytes())
            .take_while(|(a, b)| a == b)
            .count();
        // Marks of the cache move; texts before them do not.
        let prefix = first.body.find("\"a\\n\\nb\"").unwrap();
        assert!(shared > prefix, "{provider}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_sent_before_the_answer_is_polled() {
    let server = ScriptedServer::once(vec![]);
    let model = model(config(Provider::OpenAiChat, &server));
    drop(model.answer(&question()));
    assert_eq!(server.requests(), []);
}
