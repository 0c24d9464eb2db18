//! Bad servers and bad settings: each has a code, one message, and a next step.

use std::time::Duration;

use karyi_core::secret::SecretValue;
use karyi_model::{
    HttpModel, Model, ModelConfig, ModelError, ModelErrorKind, ModelLimits, Provider,
};

use crate::scripted_server::{Act, ScriptedServer, answer, send, signal, stream_head};
use crate::{KEY, Told, ask, config, limits, question, told};

/// Makes the acts of one connection.
type Script = Box<dyn Fn() -> Vec<Act>>;

/// Plays the same script to four attempts.
async fn failed(provider: Provider, script: impl Fn() -> Vec<Act>) -> Told {
    let server = ScriptedServer::start((0..4).map(|_| script()).collect());
    let told = ask(provider, &server).await;
    let error = told.error.as_ref().unwrap();
    assert!(
        !error.message.is_empty() && !error.hint.is_empty(),
        "{error:?}"
    );
    assert!(!error.message.contains('\n'), "{error:?}");
    assert_eq!(told.stop, None);
    told
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_answers_have_codes() {
    let page = "<!DOCTYPE html><html><body>Log in</body></html>";
    let error = "{\"error\":{\"message\":\"model 'small-1' not found\",\"code\":404}}";
    let cases: Vec<(&str, Script, &str, usize)> = vec![
        (
            "a page",
            Box::new(move || vec![answer("200 OK", "content-type: text/html\r\n", page)]),
            "model_protocol",
            0,
        ),
        (
            "a page of no type",
            Box::new(move || vec![answer("200 OK", "", page)]),
            "model_protocol",
            0,
        ),
        (
            "an endless page",
            Box::new(move || vec![stream_head("text/html"), Act::Flood(page.into())]),
            "model_protocol",
            0,
        ),
        (
            "an error with success",
            Box::new(move || vec![answer("200 OK", "", error)]),
            "unknown_model",
            0,
        ),
        (
            "nothing",
            Box::new(|| vec![answer("200 OK", "", "")]),
            "model_protocol",
            3,
        ),
        (
            "no content",
            Box::new(|| vec![send("HTTP/1.1 204 No Content\r\n\r\n")]),
            "model_protocol",
            3,
        ),
        (
            "no HTTP",
            Box::new(|| vec![send("+OK POP3 ready\r\n\r\n")]),
            "model_protocol",
            0,
        ),
        ("a cut", Box::new(|| vec![Act::Reset]), "model_network", 3),
        (
            "an endless head",
            Box::new(|| {
                vec![
                    send("HTTP/1.1 200 OK\r\n"),
                    Act::Flood(b"x: y\r\n".to_vec()),
                ]
            }),
            "model_protocol",
            0,
        ),
        (
            "an endless event",
            Box::new(|| {
                vec![
                    stream_head("x"),
                    send("data: "),
                    Act::Flood(vec![b'x'; 1 << 16]),
                ]
            }),
            "model_protocol",
            0,
        ),
        (
            "a redirect",
            Box::new(|| {
                vec![answer(
                    "307 Temporary Redirect",
                    "location: http://127.0.0.1:1/\r\n",
                    "",
                )]
            }),
            "model_protocol",
            0,
        ),
    ];
    for (name, script, code, retries) in cases {
        for provider in [Provider::OpenAiChat, Provider::Ollama] {
            let told = failed(provider, &script).await;
            let error = told.error.unwrap();
            assert_eq!(
                (error.code(), told.retries.len()),
                (code, retries),
                "{name}, {provider}: {error:?}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_instead_of_a_stream_is_no_answer() {
    let body = "{\"choices\":[{\"message\":{\"content\":\"hello\"},\"finish_reason\":\"stop\"}]}";
    let told = failed(Provider::OpenAiChat, || {
        vec![answer("200 OK", "content-type: application/json\r\n", body)]
    })
    .await;
    let error = told.error.unwrap();
    assert!(
        error
            .message
            .contains("one JSON value instead of a stream (status 200)"),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_inside_of_a_stream_ends_it() {
    let cases = [
        (
            Provider::OpenAiChat,
            "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n",
            "data: {\"error\":{\"message\":\"slow\",\"code\":429}}\n\n",
            "model_rate",
        ),
        (
            Provider::OpenAiResponses,
            "data: {\"type\":\"response.output_text.delta\",\"delta\":\"a\"}\n\n",
            "data: {\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"server_error\",\"message\":\"slow\"}}}\n\n",
            "model_overloaded",
        ),
        (
            Provider::OpenAiResponses,
            "data: {\"type\":\"response.output_text.delta\",\"delta\":\"a\"}\n\n",
            "data: {\"type\":\"error\",\"code\":\"rate_limit_exceeded\",\"message\":\"slow\"}\n\n",
            "model_rate",
        ),
        (
            Provider::Anthropic,
            "data: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"a\"}}\n\n",
            "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"slow\"}}\n\n",
            "model_overloaded",
        ),
        (
            Provider::Gemini,
            "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\"}]}}]}\n\n",
            "data: {\"error\":{\"code\":503,\"message\":\"slow\",\"status\":\"UNAVAILABLE\"}}\n\n",
            "model_overloaded",
        ),
        (
            Provider::Ollama,
            "{\"message\":{\"content\":\"a\"}}\n",
            "{\"error\":\"slow\"}\n",
            "model_overloaded",
        ),
        (
            Provider::Ollama,
            "{\"message\":{\"content\":\"a\"}}\n",
            "no json\n",
            "model_protocol",
        ),
        (
            Provider::OpenAiChat,
            "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n",
            "data: {no json}\n\n",
            "model_protocol",
        ),
        // The end of the list without a reason is a cut.
        (
            Provider::OpenAiChat,
            "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n",
            "data: [DONE]\n\n",
            "model_protocol",
        ),
    ];
    for (provider, start, end, code) in cases {
        // Nothing is asked for again after a piece of the answer.
        let told = failed(provider, || vec![stream_head("x"), send(start), send(end)]).await;
        let error = told.error.unwrap();
        assert_eq!(
            (error.code(), &*told.text, told.retries.len()),
            (code, "a", 0),
            "{end}: {error}"
        );
        // Before it, what may pass is, and then no more.
        let retries = if error.is_transient() { 3 } else { 0 };
        let told = failed(provider, || vec![stream_head("x"), send(end)]).await;
        let error = told.error.unwrap();
        assert_eq!(
            (error.code(), told.retries.len(), error.is_transient()),
            (code, retries, false),
            "{end}: {error}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_utf8_is_replaced() {
    let bytes = b"data: {\"choices\":[{\"delta\":{\"content\":\"a\xff\xc3b\"},\"finish_reason\":\"stop\"}]}\n\n";
    let server = ScriptedServer::once(vec![stream_head("x"), send(bytes)]);
    let told = ask(Provider::OpenAiChat, &server).await;
    assert_eq!((&*told.text, told.error), ("a\u{fffd}\u{fffd}b", None));
}

async fn silent(acts: Vec<Act>, limits: ModelLimits) -> ModelError {
    let server = ScriptedServer::once(acts);
    let mut config = config(Provider::OpenAiChat, &server);
    config.key = None;
    let model = HttpModel::with_limits(config, None, limits).unwrap();
    let mut answer = model.answer(&question());
    let first = answer.next().await.unwrap();
    let karyi_model::ModelEvent::Retry(retry) = first.unwrap() else {
        unreachable!("a failure comes first")
    };
    retry.error
}

#[tokio::test(flavor = "multi_thread")]
async fn silence_ends_at_its_limit() {
    let short = Some(Duration::from_millis(60));
    let waits = ModelLimits {
        retry_pause: Duration::from_secs(60),
        ..limits()
    };
    let (keep, wait) = signal();
    let error = silent(
        vec![Act::Wait(wait)],
        ModelLimits {
            head: short,
            ..waits
        },
    )
    .await;
    assert_eq!(error.code(), "model_timeout", "{error}");
    drop(keep);
    let (keep, wait) = signal();
    let acts = vec![stream_head("text/event-stream"), Act::Wait(wait)];
    let error = silent(
        acts,
        ModelLimits {
            idle: short,
            ..waits
        },
    )
    .await;
    assert_eq!(error.code(), "model_timeout", "{error}");
    assert!(error.message.contains("sent nothing for 0.06 s"), "{error}");
    drop(keep);
    // Signs of life are no progress.
    let acts = vec![
        stream_head("text/event-stream"),
        Act::Flood(b": ping\n\n".to_vec()),
    ];
    let error = silent(
        acts,
        ModelLimits {
            idle: short,
            progress: short,
            ..waits
        },
    )
    .await;
    assert_eq!(error.code(), "model_timeout", "{error}");
    assert!(
        error
            .message
            .contains("sent nothing of an answer for 0.06 s"),
        "{error}"
    );
}

#[test]
fn this_machine_may_be_silent_and_others_have_limits() {
    let of = |url: &str| ModelLimits::of(&karyi_net::ServerUrl::parse(url).unwrap());
    let seconds = |limits: ModelLimits| {
        [limits.head, limits.idle, limits.progress].map(|time| time.map(|time| time.as_secs()))
    };
    assert_eq!(seconds(of("http://127.0.0.1:8080/v1")), [None, None, None]);
    assert_eq!(
        seconds(of("https://api.example.com")),
        [Some(60), Some(300), Some(900)]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_key_is_named_and_never_shown() {
    for body in [
        format!("{{\"error\":{{\"message\":\"Incorrect API key provided: {KEY}\"}}}}"),
        format!(
            "{{\"error\":{{\"message\":\"Incorrect API key provided: {}...\"}}}}",
            &KEY[..12]
        ),
        "{\"error\":{\"message\":\"no\"}}".to_owned(),
    ] {
        for provider in Provider::ALL.iter().copied() {
            let told = failed(provider, || vec![answer("401 Unauthorized", "", &body)]).await;
            let error = told.error.unwrap();
            assert_eq!(
                (error.code(), error.status, told.retries.len()),
                ("model_auth", Some(401), 0)
            );
            assert!(error.message.contains("MY_KEY"), "{error}");
            assert!(!format!("{error:?}").contains(&KEY[..10]), "{error:?}");
        }
    }
}

/// The forms of the key are written out, so that the test does not depend on the code that finds them.
#[tokio::test(flavor = "multi_thread")]
async fn an_encoded_key_is_never_shown() {
    let forms = [
        ("base64", "c2stMDEyMzQ1Njc4OWFiY2RlZg=="),
        (
            "base64 of Bearer and the key",
            "QmVhcmVyIHNrLTAxMjM0NTY3ODlhYmNkZWY=",
        ),
        ("hexadecimal", "736b2d30313233343536373839616263646566"),
        (
            "percent",
            "%73%6b%2d%30%31%32%33%34%35%36%37%38%39%61%62%63%64%65%66",
        ),
        ("escapes", "sk\\u002d0123456789abcdef"),
    ];
    for (name, form) in forms {
        // A failure that is not repeated.
        let body = format!(
            "{{\"error\":{{\"message\":\"Invalid header: {form}\",\"code\":\"content_filter\"}}}}"
        );
        let event = format!("data: {body}\n\n");
        for script in [
            vec![answer("401 Unauthorized", "", &body)],
            vec![stream_head("text/event-stream"), send(&event)],
        ] {
            let server = ScriptedServer::start(vec![script]);
            let told = ask(Provider::OpenAiChat, &server).await;
            let shown = told.error.unwrap().to_string();
            assert!(shown.contains("MY_KEY"), "{name}: {shown}");
            let is_shown = |part: &[u8]| shown.as_bytes().windows(12).any(|found| found == part);
            assert!(
                !form.as_bytes().windows(12).any(is_shown),
                "{name}: {shown}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_key_is_asked_for() {
    let server = ScriptedServer::once(vec![answer(
        "401 Unauthorized",
        "",
        "{\"error\":\"no key\"}",
    )]);
    let config = ModelConfig {
        key: None,
        ..config(Provider::Anthropic, &server)
    };
    let model = HttpModel::with_limits(config, None, limits()).unwrap();
    let error = told(&model, &question()).await.error.unwrap();
    assert!(error.message.contains("asks for a key"), "{error}");
    assert!(
        error.hint.contains("karyi var set ANTHROPIC_API_KEY"),
        "{error:?}"
    );
    assert_eq!(server.requests()[0].header("x-api-key"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_goes_nowhere_else() {
    let other = ScriptedServer::once(vec![]);
    let to = format!("location: {}\r\n", other.url("/"));
    for provider in Provider::ALL.iter().copied() {
        let told = failed(provider, || vec![answer("308 Permanent Redirect", &to, "")]).await;
        let error = told.error.unwrap();
        assert!(error.hint.contains("base_url"), "{error:?}");
        // The block for documentation: a connection would fail, not be refused before.
        let config = ModelConfig {
            base_url: "http://192.0.2.1:9/v1".into(),
            ..ModelConfig::new(provider, "m")
        };
        let config = ModelConfig {
            context: Some(1),
            ..config
        };
        let model =
            HttpModel::with_limits(config, Some(SecretValue::new(KEY.into())), limits()).unwrap();
        let told = told_of(&model).await;
        let error = told.error.unwrap();
        assert_eq!(
            (error.code(), told.retries.len()),
            ("model_config", 0),
            "{error}"
        );
        assert!(error.hint.contains("allow_plain"), "{error:?}");
    }
    assert_eq!(other.requests(), []);
}

async fn told_of(model: &HttpModel) -> Told {
    told(model, &question()).await
}

#[test]
fn bad_addresses_are_refused() {
    for (url, part) in [
        ("file:///etc/passwd", "another scheme"),
        ("https://me:hunter2@host/v1", "name or password"),
        ("host/v1", "without a scheme"),
        ("", "without a scheme"),
        ("https://h/v1?key=hunter2", "query"),
    ] {
        let config = ModelConfig {
            base_url: url.into(),
            ..ModelConfig::new(Provider::OpenAiChat, "m")
        };
        let error = HttpModel::new(config, None).err().unwrap();
        assert_eq!(error.kind, ModelErrorKind::Config);
        assert!(
            error.message.starts_with("base_url: ") && error.message.contains(part),
            "{error}"
        );
        assert!(!error.message.contains("hunter2"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_start_of_the_conversation_is_an_error() {
    let line = "{\"message\":{\"content\":\"a\"},\"done\":true,\"done_reason\":\"stop\",\"prompt_eval_count\":100}\n";
    let ask = async |bytes: usize| {
        let server = ScriptedServer::once(vec![stream_head("x"), send(line)]);
        let mut config = config(Provider::Ollama, &server);
        config.context = Some(100);
        let request = karyi_model::ModelRequest {
            messages: vec![karyi_model::Message::user(crate::redacted(
                &"x ".repeat(bytes / 2),
            ))],
            ..question()
        };
        told(&crate::model(config), &request).await
    };
    assert_eq!(ask(700).await.error, None);
    let error = ask(4000).await.error.unwrap();
    assert_eq!(error.code(), "model_context");
    assert!(error.message.contains("dropped the start"), "{error}");
}

#[test]
fn the_whole_address_of_a_request_is_taken_as_its_base() {
    let check = |provider: Provider, url: &str, expected: &str| {
        let config = ModelConfig {
            base_url: url.into(),
            ..ModelConfig::new(provider, "m")
        };
        let model = HttpModel::new(config, None).unwrap();
        assert_eq!(model.config().base_url, expected);
    };
    check(
        Provider::OpenAiChat,
        "https://h/v1/chat/completions",
        "https://h/v1",
    );
    check(
        Provider::OpenAiChat,
        "https://h/v1/chat/completions/",
        "https://h/v1",
    );
    check(
        Provider::OpenAiChat,
        "https://h/v1/chat",
        "https://h/v1/chat",
    );
    check(
        Provider::OpenAiResponses,
        "https://h/v1/responses",
        "https://h/v1",
    );
    check(Provider::Anthropic, "https://h/v1/messages", "https://h/v1");
    check(Provider::Ollama, "http://h/api/chat", "http://h/api");
}
