//! Ends of answers: reasons, counts, silence, and what servers leave out.

use std::sync::mpsc::channel;
use std::time::Duration;

use karyi_core::secret::SecretValue;
use karyi_model::{
    HttpModel, Model, ModelEvent, ModelLimits, Price, Provider, Stop, StopReason, Usage,
};

use crate::scripted_server::{Act, ScriptedServer, send, signal, stream_head};
use crate::{KEY, Told, ask, config, limits, model, question, told};

async fn played(provider: Provider, text: &str) -> Told {
    let server = ScriptedServer::once(vec![stream_head("text/event-stream"), send(text)]);
    ask(provider, &server).await
}

#[track_caller]
fn assert_stop(told: &Told, text: &str, reason: StopReason, raw: &str) {
    let raw = raw.to_owned();
    assert_eq!((told.text.as_str(), &told.error), (text, &None), "{told:?}");
    assert_eq!(told.stop, Some(Stop { reason, raw }));
}

#[tokio::test(flavor = "multi_thread")]
async fn reasons_keep_the_word_of_the_provider() {
    use Provider::{Anthropic, Gemini, Ollama, OpenAiChat, OpenAiResponses};
    use StopReason::{Content, Context, End, Length, Other};
    let chat = |raw: &str| {
        format!(
            "data: {{\"choices\":[{{\"delta\":{{\"content\":\"a\"}},\"finish_reason\":\"{raw}\"}}]}}\n\n"
        )
    };
    let anthropic = |raw: &str| {
        format!(
            "data: {{\"type\":\"content_block_delta\",\"delta\":{{\"text\":\"a\"}}}}\n\n\
             data: {{\"type\":\"message_delta\",\"delta\":{{\"stop_reason\":\"{raw}\"}}}}\n\n"
        )
    };
    let gemini = |raw: &str| {
        format!(
            "data: {{\"candidates\":[{{\"content\":{{\"parts\":[{{\"text\":\"a\"}}]}},\"finishReason\":\"{raw}\"}}]}}\n\n"
        )
    };
    let ollama = |raw: &str| {
        format!("{{\"message\":{{\"content\":\"a\"}},\"done\":true,\"done_reason\":\"{raw}\"}}\n")
    };
    let incomplete = |raw: &str| {
        format!(
            "data: {{\"type\":\"response.output_text.delta\",\"delta\":\"a\"}}\n\n\
             data: {{\"type\":\"response.incomplete\",\"response\":{{\"incomplete_details\":{{\"reason\":\"{raw}\"}}}}}}\n\n"
        )
    };
    let cases = [
        (OpenAiChat, chat("stop"), End, "stop"),
        (OpenAiChat, chat("length"), Length, "length"),
        (
            OpenAiChat,
            chat("content_filter"),
            Content,
            "content_filter",
        ),
        (OpenAiChat, chat("tool_calls"), Other, "tool_calls"),
        (
            OpenAiResponses,
            incomplete("max_output_tokens"),
            Length,
            "max_output_tokens",
        ),
        (
            OpenAiResponses,
            incomplete("content_filter"),
            Content,
            "content_filter",
        ),
        (Anthropic, anthropic("end_turn"), End, "end_turn"),
        (Anthropic, anthropic("stop_sequence"), End, "stop_sequence"),
        (Anthropic, anthropic("max_tokens"), Length, "max_tokens"),
        (Anthropic, anthropic("refusal"), Content, "refusal"),
        (
            Anthropic,
            anthropic("model_context_window_exceeded"),
            Context,
            "model_context_window_exceeded",
        ),
        (Anthropic, anthropic("pause_turn"), Other, "pause_turn"),
        (Gemini, gemini("MAX_TOKENS"), Length, "MAX_TOKENS"),
        (Gemini, gemini("SAFETY"), Content, "SAFETY"),
        (
            Gemini,
            gemini("MALFORMED_FUNCTION_CALL"),
            Other,
            "MALFORMED_FUNCTION_CALL",
        ),
        (Ollama, ollama("stop"), End, "stop"),
        (Ollama, ollama("length"), Length, "length"),
    ];
    for (provider, text, reason, raw) in cases {
        assert_stop(&played(provider, &text).await, "a", reason, raw);
    }
    let blocked = "data: {\"promptFeedback\":{\"blockReason\":\"PROHIBITED_CONTENT\"}}\n\n";
    assert_stop(
        &played(Gemini, blocked).await,
        "",
        Content,
        "PROHIBITED_CONTENT",
    );
    let refusal = "data: {\"choices\":[{\"delta\":{\"refusal\":\"I cannot\"},\"finish_reason\":\"stop\"}]}\n\n";
    assert_stop(
        &played(OpenAiChat, refusal).await,
        "I cannot",
        Content,
        "refusal",
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_come_in_several_places() {
    let usage = |input, cached, output, reasoning| Usage {
        input,
        cached,
        output,
        reasoning,
    };
    let end = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]";
    let counts = "\"usage\":{\"prompt_tokens\":9,\"prompt_tokens_details\":{\"cached_tokens\":4},\"completion_tokens\":3,\"completion_tokens_details\":{\"reasoning_tokens\":1}}}";
    let expected = usage(Some(9), Some(4), Some(3), Some(1));
    for text in [
        format!("{end},{counts}\n\n"),
        format!("{end},{counts}\n\ndata: [DONE]\n\n"),
        format!("{end}}}\n\ndata: {{\"choices\":[],{counts}\n\n"),
        format!("{end}}}\n\ndata: {{\"choices\":[],{counts}\n\ndata: [DONE]\n\n"),
        // The last event has no blank line.
        format!("{end},{counts}"),
    ] {
        let told = played(Provider::OpenAiChat, &text).await;
        assert_stop(&told, "", StopReason::End, "stop");
        assert_eq!(told.usage, expected, "{text}");
    }
    let anthropic = "data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":1,\"cache_read_input_tokens\":20,\"cache_creation_input_tokens\":300}}}\n\n\
                     data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":5}}\n\n";
    let told = played(Provider::Anthropic, anthropic).await;
    assert_eq!(told.usage, usage(Some(321), Some(20), Some(5), None));
    let gemini = "data: {\"candidates\":[{\"finishReason\":\"STOP\"}],\"usageMetadata\":{\"promptTokenCount\":9,\"cachedContentTokenCount\":4,\"candidatesTokenCount\":3,\"thoughtsTokenCount\":2}}\n\n";
    let told = played(Provider::Gemini, gemini).await;
    assert_eq!(told.usage, usage(Some(9), Some(4), Some(5), Some(2)));
    let responses = "data: {\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":9,\"input_tokens_details\":{\"cached_tokens\":4},\"output_tokens\":3,\"output_tokens_details\":{\"reasoning_tokens\":1}}}}\n\n";
    assert_eq!(
        played(Provider::OpenAiResponses, responses).await.usage,
        expected
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_largest_counts_are_counts() {
    let most = u64::MAX;
    let anthropic = format!(
        "data: {{\"type\":\"message_start\",\"message\":{{\"usage\":{{\"input_tokens\":{most},\"cache_read_input_tokens\":{most},\"cache_creation_input_tokens\":{most}}}}}}}\n\n\
         data: {{\"type\":\"message_delta\",\"delta\":{{\"stop_reason\":\"end_turn\"}},\"usage\":{{\"output_tokens\":{most}}}}}\n\n"
    );
    let chat = format!(
        "data: {{\"choices\":[{{\"delta\":{{}},\"finish_reason\":\"stop\"}}],\"usage\":{{\"prompt_tokens\":{most},\"completion_tokens\":{most}}}}}\n\n"
    );
    let responses = format!(
        "data: {{\"type\":\"response.completed\",\"response\":{{\"usage\":{{\"input_tokens\":{most},\"output_tokens\":{most}}}}}}}\n\n"
    );
    let gemini = format!(
        "data: {{\"candidates\":[{{\"finishReason\":\"STOP\"}}],\"usageMetadata\":{{\"promptTokenCount\":{most},\"candidatesTokenCount\":{most},\"thoughtsTokenCount\":{most}}}}}\n\n"
    );
    let ollama = format!(
        "{{\"done\":true,\"done_reason\":\"stop\",\"prompt_eval_count\":{most},\"eval_count\":{most}}}\n"
    );
    let price = Price {
        input: 1.0,
        output: 1.0,
        cached: None,
    };
    for (provider, text) in [
        (Provider::Anthropic, anthropic),
        (Provider::OpenAiChat, chat),
        (Provider::OpenAiResponses, responses),
        (Provider::Gemini, gemini),
        (Provider::Ollama, ollama),
    ] {
        let told = played(provider, &text).await;
        let counts = (told.usage.input, told.usage.output, told.error);
        assert_eq!(counts, (Some(most), Some(most), None), "{provider}");
        assert!(told.usage.cost(price).is_some(), "{provider}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reasoning_has_many_names() {
    for delta in [
        "{\"reasoning_content\":\"a\"}",
        "{\"reasoning\":\"a\"}",
        "{\"content\":\"<think>a</think>\"}",
        "{\"content\":[{\"type\":\"thinking\",\"thinking\":[{\"type\":\"text\",\"text\":\"a\"}]}]}",
    ] {
        let text = format!(
            "data: {{\"choices\":[{{\"delta\":{delta}}}]}}\n\n\
             data: {{\"choices\":[{{\"delta\":{{\"content\":\"b\"}},\"finish_reason\":\"stop\"}}]}}\n\n"
        );
        let told = played(Provider::OpenAiChat, &text).await;
        assert_stop(&told, "b", StopReason::End, "stop");
        assert_eq!(told.reasoning, "a", "{delta}");
    }
    let ollama = "{\"message\":{\"content\":\"<think>a</think>b\"}}\n{\"done\":true,\"done_reason\":\"stop\"}";
    assert_eq!(played(Provider::Ollama, ollama).await.reasoning, "a");
}

#[tokio::test(flavor = "multi_thread")]
async fn reading_ends_at_the_last_event_of_an_open_connection() {
    let ends = [
        (
            Provider::OpenAiChat,
            "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
        ),
        (
            Provider::OpenAiResponses,
            "data: {\"type\":\"response.completed\",\"response\":{}}\n\n",
        ),
        (
            Provider::Anthropic,
            "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\ndata: {\"type\":\"message_stop\"}\n\n",
        ),
        (
            Provider::Ollama,
            "{\"done\":true,\"done_reason\":\"stop\"}\n",
        ),
    ];
    for (provider, text) in ends {
        let (closed, is_closed) = channel();
        let server =
            ScriptedServer::once(vec![stream_head("x"), send(text), Act::UntilClosed(closed)]);
        let told = ask(provider, &server).await;
        assert!(told.stop.is_some(), "{provider}: {told:?}");
        is_closed.recv_timeout(Duration::from_secs(20)).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_are_waited_for_a_short_time_only() {
    let reasons = [
        (
            Provider::OpenAiChat,
            "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
        ),
        (
            Provider::Gemini,
            "data: {\"candidates\":[{\"finishReason\":\"STOP\"}]}\n\n",
        ),
    ];
    for (provider, text) in reasons {
        let (closed, is_closed) = channel();
        let server =
            ScriptedServer::once(vec![stream_head("x"), send(text), Act::UntilClosed(closed)]);
        let limits = ModelLimits {
            tail: Duration::from_millis(20),
            ..limits()
        };
        let model = HttpModel::with_limits(config(provider, &server), None, limits).unwrap();
        let told = told(&model, &question()).await;
        assert_eq!(
            (told.stop.map(|stop| stop.reason), told.error),
            (Some(StopReason::End), None)
        );
        is_closed.recv_timeout(Duration::from_secs(20)).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_answer_closes_its_connection() {
    for provider in Provider::ALL.iter().copied() {
        let text = crate::same_answer::stream(provider);
        let at = text.find("\u{ed}").unwrap();
        let at = at + text[at..].find(['\r', '\n']).unwrap();
        let (closed, is_closed) = channel();
        let start = [&text[..at], "\r\n\r\n"].concat();
        let server = ScriptedServer::once(vec![
            stream_head("x"),
            send(start),
            Act::UntilClosed(closed),
        ]);
        let model = model(config(provider, &server));
        let mut answer = model.answer(&question());
        while !matches!(answer.next().await, Some(Ok(ModelEvent::Text(_)))) {}
        drop(answer);
        is_closed.recv_timeout(Duration::from_secs(20)).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_piece_is_told_before_the_next_one_is_written() {
    let (go, wait) = signal();
    let piece = |text: &str, more: &str| {
        send(format!(
            "data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}{more}}}]}}\n\n"
        ))
    };
    let script = vec![
        stream_head("text/event-stream"),
        piece("one", ""),
        Act::Wait(wait),
        piece("two", ",\"finish_reason\":\"stop\""),
    ];
    let server = ScriptedServer::once(script);
    let model = HttpModel::new(
        config(Provider::OpenAiChat, &server),
        Some(SecretValue::new(KEY.into())),
    )
    .unwrap();
    let mut answer = model.answer(&question());
    assert_eq!(
        answer.next().await,
        Some(Ok(ModelEvent::Text("one".into())))
    );
    go.send(()).unwrap();
    assert_eq!(
        answer.next().await,
        Some(Ok(ModelEvent::Text("two".into())))
    );
    assert!(matches!(answer.next().await, Some(Ok(ModelEvent::Stop(_)))));
    assert_eq!(answer.next().await, None);
    assert_eq!(answer.next().await, None);
    // An answer stays at its end.
    assert_eq!(answer.next().await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_of_next_that_is_dropped_loses_nothing() {
    let text = crate::same_answer::stream(Provider::OpenAiChat);
    let server = ScriptedServer::once(vec![crate::scripted_server::chunked(
        "x",
        &[text.as_bytes()],
    )]);
    let model = model(config(Provider::OpenAiChat, &server));
    let mut answer = model.answer(&question());
    let mut found = String::new();
    loop {
        let event = tokio::select! {
            biased;
            event = answer.next() => event,
            () = tokio::task::yield_now() => continue,
        };
        match event {
            Some(Ok(ModelEvent::Text(text))) => found.push_str(&text),
            Some(_) => {}
            None => break,
        }
    }
    assert!(found.ends_with("</tools>\n"), "{found}");
}
