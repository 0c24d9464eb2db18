//! The same answer of every provider, cut at every byte.

use karyi_model::{Provider, StopReason, Usage};

use crate::scripted_server::{ScriptedServer, chunked};
use crate::{config, model, question, told};

const REASONING: &str = "Hmm \u{20ac}: \"why\"?";
const TEXT: &str = "S\u{ed} \u{1f600} \"data: {}\"\n<tools><ls/></tools>\n";

/// Streams with the same content; lines end with `\r\n` where the protocol has lines.
pub(crate) fn stream(provider: Provider) -> String {
    match provider {
        Provider::OpenAiChat => sse(&[
            ("", r#"{"choices":[{"delta":{"role":"assistant","content":"","reasoning_content":"Hmm \u20ac: "}}]}"#),
            ("", r#"{"choices":[{"delta":{"reasoning_content":"\"why\"?"}}]}"#),
            ("", "{\"choices\":[{\"delta\":{\"content\":\"S\u{ed} \u{1f600} \\\"data\"}}]}"),
            ("", r#"{"choices":[{"delta":{"content":": {}\"\n<tools><ls/></tools>\n"}}]}"#),
            ("", r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#),
            ("", r#"{"choices":[],"usage":{"prompt_tokens":12,"completion_tokens":7}}"#),
            ("", "[DONE]"),
        ]),
        Provider::OpenAiResponses => sse(&[
            ("response.created", r#"{"type":"response.created","response":{"status":"in_progress","error":null}}"#),
            ("", r#"{"type":"response.reasoning_summary_text.delta","delta":"Hmm \u20ac: \"why\"?"}"#),
            ("", "{\"type\":\"response.output_text.delta\",\"delta\":\"S\u{ed} \u{1f600} \\\"data\"}"),
            ("", r#"{"type":"response.output_text.delta","delta":": {}\"\n<tools><ls/></tools>\n"}"#),
            ("", r#"{"type":"response.completed","response":{"usage":{"input_tokens":12,"output_tokens":7}}}"#),
        ]),
        Provider::Anthropic => sse(&[
            ("message_start", r#"{"type":"message_start","message":{"usage":{"input_tokens":5,"cache_creation_input_tokens":7,"output_tokens":1}}}"#),
            ("ping", r#"{"type":"ping"}"#),
            ("content_block_start", r#"{"type":"content_block_start","content_block":{"type":"thinking","thinking":""}}"#),
            ("content_block_delta", r#"{"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"Hmm \u20ac: \"why\"?"}}"#),
            ("content_block_delta", r#"{"type":"content_block_delta","delta":{"type":"signature_delta","signature":"x"}}"#),
            ("content_block_delta", "{\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"S\u{ed} \u{1f600} \\\"data\"}}"),
            ("content_block_delta", r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":": {}\"\n<tools><ls/></tools>\n"}}"#),
            ("message_delta", r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":7}}"#),
            ("message_stop", r#"{"type":"message_stop"}"#),
        ]),
        Provider::Gemini => sse(&[
            ("", r#"{"candidates":[{"content":{"parts":[{"text":"Hmm \u20ac: \"why\"?","thought":true}]}}]}"#),
            ("", "{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"S\u{ed} \u{1f600} \"},{\"text\":\"\\\"data\"}]}}]}"),
            ("", r#"{"candidates":[{"content":{"parts":[{"text":": {}\"\n<tools><ls/></tools>\n"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":12,"candidatesTokenCount":7}}"#),
        ]),
        Provider::Ollama => [
            r#"{"message":{"role":"assistant","content":"","thinking":"Hmm \u20ac: \"why\"?"},"done":false}"#,
            "{\"message\":{\"content\":\"S\u{ed} \u{1f600} \\\"data\"},\"done\":false}",
            r#"{"message":{"content":": {}\"\n<tools><ls/></tools>\n"},"done":false}"#,
            r#"{"message":{"content":""},"done":true,"done_reason":"stop","prompt_eval_count":12,"eval_count":7}"#,
            "",
        ]
        .join("\n"),
    }
}

fn sse(events: &[(&str, &str)]) -> String {
    let mut text = String::from(": hello\r\n\r\n");
    for (name, data) in events {
        if !name.is_empty() {
            text.push_str(&format!("event: {name}\r\n"));
        }
        text.push_str(&format!("data: {data}\r\n\r\n"));
    }
    text
}

/// Checks that every provider tells a text, at every cut of a stream.
async fn check_every_cut(stream: fn(Provider) -> String, text: &str) {
    let usage = Usage {
        input: Some(12),
        output: Some(7),
        ..Usage::default()
    };
    for provider in Provider::ALL.iter().copied() {
        let bytes = stream(provider).into_bytes();
        let cut = |at: usize| {
            let (start, end) = bytes.split_at(at);
            vec![chunked("text/event-stream", &[start, end])]
        };
        let server = ScriptedServer::start((0..=bytes.len()).map(cut).collect());
        let model = model(config(provider, &server));
        for at in 0..=bytes.len() {
            let told = told(&model, &question()).await;
            assert_eq!(
                (&*told.text, &*told.reasoning),
                (text, REASONING),
                "{provider} at {at}"
            );
            let stop = told.stop.map(|stop| stop.reason);
            assert_eq!(
                (told.usage, stop),
                (usage, Some(StopReason::End)),
                "{provider} at {at}"
            );
            assert_eq!(
                (told.error, told.retries),
                (None, vec![]),
                "{provider} at {at}"
            );
        }
        assert_eq!(server.requests().len(), bytes.len() + 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_provider_tells_the_same_at_every_cut() {
    check_every_cut(stream, TEXT).await;
}

/// Stream with empty events, and with one half of a character at the end of a piece, the other one in the next.
fn stream_with_halves(provider: Provider) -> String {
    let text = stream(provider);
    let text = text.replace(r#"\"data""#, r#"\"data\ud83d""#);
    let text = text.replace(r#"": {}\""#, r#""\uDE00: {}\""#);
    assert!(text.contains("ud83d") && text.contains("uDE00"), "{text}");
    match provider {
        Provider::Ollama => text.replace('\n', "\n\n \n"),
        _ => text.replace(
            "\r\n\r\n",
            "\r\n\r\ndata:\r\n\r\nevent: ping\r\ndata\r\n\r\n",
        ),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn halves_of_a_character_and_empty_events_end_no_answer() {
    let text = TEXT.replace("data: {}", "data\u{fffd}\u{fffd}: {}");
    check_every_cut(stream_with_halves, &text).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_breaks_is_never_complete() {
    for provider in Provider::ALL.iter().copied() {
        let bytes = stream(provider).into_bytes();
        let text = String::from_utf8(bytes.clone()).unwrap();
        // From the text on, when the reasoning has arrived, up to the word for the reason of the end.
        let words = ["\"stop\"", "end_turn\"", "\"STOP\"", "response.completed\""];
        let reason = words
            .iter()
            .filter_map(|word| text.rfind(word))
            .max()
            .unwrap();
        let ends: Vec<usize> = (text.find("S\u{ed}").unwrap()..reason).collect();
        let script = |end: &usize| vec![chunked("text/event-stream", &[&bytes[..*end]])];
        let server = ScriptedServer::start(ends.iter().map(script).collect());
        let model = model(config(provider, &server));
        for end in ends {
            let told = told(&model, &question()).await;
            let error = told
                .error
                .unwrap_or_else(|| unreachable!("{provider} at {end}"));
            assert_eq!(
                error.code(),
                "model_protocol",
                "{provider} at {end}: {error}"
            );
            assert_eq!(
                (told.stop, told.retries.len()),
                (None, 0),
                "{provider} at {end}"
            );
            assert!(TEXT.starts_with(&told.text), "{provider} at {end}");
            assert_eq!(told.reasoning, REASONING, "{provider} at {end}");
        }
    }
}
