//! Attempts: which failures are asked again, and when.

use std::time::Duration;

use karyi_core::secret::SecretValue;
use karyi_model::{HttpModel, ModelConfig, ModelLimits, Provider, StopReason};

use crate::same_answer::stream;
use crate::scripted_server::{Act, Received, ScriptedServer, answer, chunked};
use crate::{KEY, ask, config, limits, model, question, told};

fn good(provider: Provider) -> Vec<Act> {
    vec![chunked("text/event-stream", &[stream(provider).as_bytes()])]
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_pass_is_asked_again_with_the_same_bytes() {
    for provider in Provider::ALL.iter().copied() {
        for status in [408, 409, 429, 500, 502, 503, 504, 529] {
            let bad = || vec![answer(&format!("{status} Bad"), "", "")];
            let server =
                ScriptedServer::start(vec![bad(), vec![Act::Reset], bad(), good(provider)]);
            let told = ask(provider, &server).await;
            assert_eq!(
                told.stop.map(|stop| stop.reason),
                Some(StopReason::End),
                "{provider} {status}"
            );
            assert_eq!((told.retries.len(), told.error), (3, None));
            let bodies: Vec<String> = server
                .requests()
                .into_iter()
                .map(|request| request.body)
                .collect();
            assert!(bodies.iter().all(|body| *body == bodies[0]) && bodies.len() == 4);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn four_attempts_are_the_most() {
    let server = ScriptedServer::start((0..4).map(|_| vec![answer("503 Bad", "", "")]).collect());
    let told = ask(Provider::OpenAiChat, &server).await;
    assert_eq!(told.retries.len(), 3);
    let error = told.error.unwrap();
    // Nobody above asks four more times.
    assert_eq!(
        (error.code(), error.is_transient()),
        ("model_overloaded", false)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_of_the_server_is_final() {
    for (status, code) in [
        (400, "model_request"),
        (401, "model_auth"),
        (402, "model_rate"),
        (403, "model_auth"),
        (404, "model_protocol"),
        (418, "model_request"),
        (501, "model_overloaded"),
    ] {
        let server = ScriptedServer::once(vec![answer(&format!("{status} Bad"), "", "")]);
        let told = ask(Provider::OpenAiChat, &server).await;
        let error = told.error.unwrap();
        assert_eq!(
            (error.code(), error.status, told.retries.len()),
            (code, Some(status), 0)
        );
        let names_path = error.hint.contains("no path /base/chat/completions");
        assert_eq!(names_path, status == 404, "{error:?}");
    }
    let server = ScriptedServer::once(vec![answer("503 Bad", "x-should-retry: false\r\n", "")]);
    let told = ask(Provider::OpenAiChat, &server).await;
    assert_eq!(
        (told.error.unwrap().is_final, told.retries.len()),
        (true, 0)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_says_when() {
    let waits = async |headers: &str| {
        let server = ScriptedServer::start(vec![
            vec![answer("429 Bad", headers, "")],
            good(Provider::OpenAiChat),
        ]);
        let told = ask(Provider::OpenAiChat, &server).await;
        assert_eq!(told.error, None);
        told.retries[0].delay
    };
    assert_eq!(
        waits("retry-after-ms: 7\r\nretry-after: 50\r\n").await,
        Duration::from_millis(7)
    );
    assert_eq!(waits("retry-after: 0\r\n").await, Duration::ZERO);
    assert_eq!(
        waits("retry-after: Wed, 21 Oct 2015 07:28:00 GMT\r\n").await,
        Duration::ZERO
    );
    assert_eq!(waits("retry-after: soon\r\n").await, Duration::ZERO);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_wait_is_told_instead_of_made() {
    for (header, seconds) in [("61", 61), ("31536000", 31_536_000)] {
        let header = format!("retry-after: {header}\r\n");
        let server = ScriptedServer::once(vec![answer("429 Bad", &header, "")]);
        let told = ask(Provider::OpenAiChat, &server).await;
        let error = told.error.unwrap();
        assert_eq!(error.retry_after, Some(Duration::from_secs(seconds)));
        assert!(
            error.hint.contains(&format!("wait {seconds} s")),
            "{error:?}"
        );
        assert!(!error.is_transient() && told.retries.is_empty());
    }
    let year = "retry-after: Fri, 31 Dec 2100 23:59:59 GMT\r\n";
    let server = ScriptedServer::once(vec![answer("503 Bad", year, "")]);
    let error = ask(Provider::OpenAiChat, &server).await.error.unwrap();
    assert!(
        error.retry_after > Some(Duration::from_secs(1 << 25)),
        "{error:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn pauses_double_and_vary() {
    let server = ScriptedServer::start((0..4).map(|_| vec![answer("503 Bad", "", "")]).collect());
    let limits = ModelLimits {
        retry_pause: Duration::from_millis(4),
        ..limits()
    };
    let key = Some(SecretValue::new(KEY.into()));
    let model = HttpModel::with_limits(config(Provider::OpenAiChat, &server), key, limits).unwrap();
    let told = told(&model, &question()).await;
    for (number, retry) in told.retries.iter().enumerate() {
        let most = Duration::from_millis(4 << number);
        assert!(
            (most / 2..=most).contains(&retry.delay),
            "{number}: {retry:?}"
        );
    }
    assert_eq!(told.retries.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn anthropic_is_asked_once_more_with_its_own_limit() {
    let refused = "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"max_tokens: 8192 > 4096, which is the maximum allowed number of output tokens for small-1\"}}";
    let script = || vec![answer("400 Bad Request", "", refused)];
    let server = ScriptedServer::start(vec![script(), good(Provider::Anthropic)]);
    let answered = ask(Provider::Anthropic, &server).await;
    assert_eq!((answered.error, answered.retries.len()), (None, 0));
    let limits: Vec<bool> = server
        .requests()
        .iter()
        .map(|request| request.body.contains("\"max_tokens\":4096"))
        .collect();
    assert_eq!(limits, [false, true]);
    let server = ScriptedServer::start(vec![script(), script()]);
    let error = ask(Provider::Anthropic, &server).await.error.unwrap();
    assert_eq!(error.code(), "model_request");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_about_the_context_is_asked_again_too() {
    let shown = answer("200 OK", "", "{\"parameters\":\"num_ctx 2048\"}");
    let bad = vec![answer("503 Bad", "", "")];
    let server = ScriptedServer::start(vec![bad, vec![shown], good(Provider::Ollama)]);
    let config = ModelConfig {
        context: None,
        ..config(Provider::Ollama, &server)
    };
    let told = told(&model(config), &question()).await;
    assert_eq!((told.retries.len(), told.error), (1, None));
    let requests = server.requests();
    let lines: Vec<&str> = requests.iter().map(Received::line).collect();
    let show = "POST /base/api/show";
    assert_eq!(lines, [show, show, "POST /base/api/chat"]);
}
