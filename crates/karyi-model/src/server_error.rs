//! Reads the account that a server gives of a failure, in the shapes that providers use.

use std::time::Duration;

use serde_json::Value;

use crate::error::{ModelError, ModelErrorKind};
use crate::server_json;
use karyi_core::limits;

/// Server whose failures are read.
#[derive(Debug, Clone)]
pub(crate) struct Subject {
    /// Host and port.
    pub(crate) host: String,
    /// Name of the model.
    pub(crate) model: String,
    /// Name of the key's secret.
    pub(crate) key: Option<String>,
    /// Usual variables of a key.
    pub(crate) key_variables: &'static [&'static str],
}

/// Account of a failure.
#[derive(Debug, Clone, Default)]
pub(crate) struct Account {
    /// Message.
    pub(crate) message: String,
    /// Types and codes, in lower case.
    words: Vec<String>,
    /// A code that is a number.
    code: Option<u16>,
    /// Tokens of the prompt and of the context window, from llama.cpp.
    tokens: Option<(u64, u64)>,
}

/// Returns the account in a JSON value, if it has one.
pub(crate) fn account(value: &Value) -> Option<Account> {
    let first = value.as_array().and_then(|list| list.first());
    let value = first.unwrap_or(value);
    // vLLM, FastAPI and some proxies have the fields at the top.
    let is_flat = value["object"] == "error" || value["type"] == "error";
    let error = match value.get("error").filter(|error| !error.is_null()) {
        Some(error) => error,
        None if is_flat || value.get("detail").is_some() => value,
        None => return None,
    };
    let text = |name: &str| error[name].as_str().map(str::to_owned);
    let message = error
        .as_str()
        .map(str::to_owned)
        .or_else(|| text("message"));
    let message = message
        .or_else(|| text("detail"))
        .unwrap_or_else(|| error.to_string());
    let words = ["type", "code", "status", "reason"]
        .iter()
        .filter_map(|name| text(name));
    let details = error["details"].as_array().into_iter().flatten();
    let reasons = details.filter_map(|detail| detail["reason"].as_str().map(str::to_owned));
    let tokens = error["n_prompt_tokens"]
        .as_u64()
        .zip(error["n_ctx"].as_u64());
    Some(Account {
        message,
        words: words
            .chain(reasons)
            .map(|word| word.to_ascii_lowercase())
            .collect(),
        code: error["code"]
            .as_u64()
            .and_then(|code| u16::try_from(code).ok()),
        tokens,
    })
}

/// Returns the account in the body of a failure.
pub(crate) fn account_of_body(body: &[u8]) -> Account {
    let text = String::from_utf8_lossy(body);
    let text = text.trim_start_matches('\u{feff}').trim();
    let parsed = server_json::parse(text).ok();
    if let Some(found) = parsed.as_ref().and_then(account) {
        return found;
    }
    let message = match text.starts_with('<') {
        true => "a web page".to_owned(),
        false => text.to_owned(),
    };
    Account {
        message,
        ..Account::default()
    }
}

/// Makes an error from a status and an account of it.
pub(crate) fn error(subject: &Subject, status: Option<u16>, account: &Account) -> ModelError {
    // A failure inside of a stream names the status it would have had.
    let effective = status.filter(|status| *status >= 300).or(account.code);
    let kind = kind(effective, account);
    let message = plain(&account.message);
    let told = match (message.is_empty(), effective.or(status)) {
        (true, Some(status)) => format!("status {status} without a reason"),
        (true, None) => "a failure without a reason".to_owned(),
        (false, Some(status)) => format!("{message} ({status})"),
        (false, None) => message,
    };
    let host = &subject.host;
    let mut error = ModelError::new(kind, format!("{host} answers: {told}"));
    error.status = effective.or(status);
    match kind {
        ModelErrorKind::Auth => told_of_key(&mut error, subject, &told),
        ModelErrorKind::UnknownModel => {
            error.message = format!("{host} has no model {}: {told}", subject.model);
        }
        ModelErrorKind::Rate if is_used_up(effective, account) => {
            error.is_final = true;
            error.hint =
                "the quota is used up: add credit at the provider, or use another model".into();
        }
        ModelErrorKind::Context => {
            if let Some((prompt, context)) = account.tokens {
                error.message = format!(
                    "{} (a prompt of {prompt} tokens, a context of {context})",
                    error.message
                );
            }
        }
        ModelErrorKind::Protocol if effective == Some(404) => {
            error.hint = "check `base_url`: the server has no such path".into();
        }
        _ => {}
    }
    error
}

fn told_of_key(error: &mut ModelError, subject: &Subject, told: &str) {
    let host = &subject.host;
    match &subject.key {
        Some(name) => {
            error.message = format!("{host} refuses the key {name}: {told}");
            error.hint = format!(
                "set it again with `karyi var set {name}`, or correct the environment variable"
            );
        }
        None => {
            error.message = format!("{host} asks for a key: {told}");
            let variable = subject.key_variables.first().copied().unwrap_or("NAME");
            error.hint = format!(
                "keep it with `karyi var set {variable}`, and name it: key = \"$KARYI{{{variable}}}\""
            );
        }
    }
}

fn kind(status: Option<u16>, account: &Account) -> ModelErrorKind {
    let is_word = |words: &[&str]| account.words.iter().any(|word| words.contains(&&**word));
    let message = account.message.to_ascii_lowercase();
    let has = |part: &str| message.contains(part);
    let is_refusal =
        status.is_none_or(|status| matches!(status, 400 | 403 | 404 | 413 | 422 | 500));
    if is_refusal && (is_word(CONTEXT_WORDS) || CONTEXT_PARTS.iter().any(|part| has(part))) {
        return ModelErrorKind::Context;
    }
    if is_refusal && has("input token count") && has("exceed") {
        return ModelErrorKind::Context;
    }
    if is_refusal && is_word(CONTENT_WORDS) {
        return ModelErrorKind::Content;
    }
    if is_refusal && (is_word(&["api_key_invalid"]) || has("api key not valid")) {
        return ModelErrorKind::Auth;
    }
    let names_model = is_word(&["model_not_found"])
        || has("model") && (has("not found") || has("does not exist") || has("not a valid model"));
    match status {
        None if is_word(&[
            "rate_limit_error",
            "rate_limit_exceeded",
            "insufficient_quota",
        ]) =>
        {
            ModelErrorKind::Rate
        }
        None if is_word(&["authentication_error", "permission_error"]) => ModelErrorKind::Auth,
        None if is_word(&["invalid_request_error"]) => ModelErrorKind::Request,
        None | Some(400 | 404 | 422) if names_model => ModelErrorKind::UnknownModel,
        Some(404) if is_word(&["not_found_error", "not_found"]) => ModelErrorKind::UnknownModel,
        Some(401 | 403) => ModelErrorKind::Auth,
        Some(402 | 429) => ModelErrorKind::Rate,
        Some(408) => ModelErrorKind::Timeout,
        Some(413) => ModelErrorKind::Context,
        Some(300..=399 | 404 | 405) => ModelErrorKind::Protocol,
        // A failure in a stream that is not explained, too.
        None | Some(409 | 500..=599) => ModelErrorKind::Overloaded,
        Some(_) => ModelErrorKind::Request,
    }
}

const CONTEXT_WORDS: &[&str] = &[
    "exceed_context_size_error",
    "context_length_exceeded",
    "request_too_large",
];
const CONTEXT_PARTS: &[&str] = &[
    "prompt is too long",
    "maximum context length",
    "exceeds the available context size",
    "context_length_exceeded",
];
const CONTENT_WORDS: &[&str] = &[
    "content_filter",
    "content_policy_violation",
    "responsibleaipolicyviolation",
    "prohibited_content",
];

fn is_used_up(status: Option<u16>, account: &Account) -> bool {
    let is_quota = |word: &String| matches!(word.as_str(), "insufficient_quota" | "billing_error");
    status == Some(402) || account.words.iter().any(is_quota)
}

/// Statuses of a failure that may pass.
pub(crate) fn is_passing(status: u16) -> bool {
    matches!(status, 408 | 409 | 429 | 500 | 502 | 503 | 504 | 529)
}

/// Makes the error of a redirect, which is never followed: the key would go along.
pub(crate) fn redirect(subject: &Subject, status: u16) -> ModelError {
    let message = format!(
        "{} redirects the request to another address ({status})",
        subject.host
    );
    let mut error = ModelError::new(ModelErrorKind::Protocol, message);
    error.status = Some(status);
    error.with_hint(
        "redirects are not followed: set `base_url` to the address that the server means",
    )
}

/// Makes one line of a server's text, short and without control characters.
pub(crate) fn plain(text: &str) -> String {
    let text: String = text
        .chars()
        .map(|sign| if sign.is_control() { ' ' } else { sign })
        .collect();
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ");
    match text.char_indices().nth(limits::MODEL_MESSAGE_CHARS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

/// Adds the time that a server asks to wait.
pub(crate) fn with_wait(
    mut error: ModelError,
    wait: Option<Duration>,
    header: Option<&str>,
) -> ModelError {
    error.retry_after = wait;
    error.is_final |= header == Some("false")
        || error
            .status
            .is_some_and(|status| !is_passing(status) && status >= 300);
    error
}

#[cfg(test)]
mod tests {
    use super::*;
    use ModelErrorKind::{
        Auth, Content, Context, Overloaded, Protocol, Rate, Request, Timeout, UnknownModel,
    };

    fn subject() -> Subject {
        Subject {
            host: "h:443".into(),
            model: "m".into(),
            key: Some("MY_KEY".into()),
            key_variables: &["OPENAI_API_KEY"],
        }
    }

    #[track_caller]
    fn check(status: u16, body: &str, kind: ModelErrorKind) -> ModelError {
        let status = (status != 0).then_some(status);
        let found = error(&subject(), status, &account_of_body(body.as_bytes()));
        assert_eq!(found.kind, kind, "{body}: {found}");
        found
    }

    #[test]
    fn a_long_conversation_is_known_from_each_provider() {
        let found = check(
            400,
            r#"{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":4096}}"#,
            Context,
        );
        assert!(
            found
                .message
                .ends_with("(a prompt of 9000 tokens, a context of 4096)"),
            "{found}"
        );
        check(
            400,
            r#"{"error":{"code":"context_length_exceeded","message":"too long","type":"invalid_request_error"}}"#,
            Context,
        );
        check(
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#,
            Context,
        );
        check(
            413,
            r#"{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#,
            Context,
        );
        check(
            400,
            r#"[{"error":{"code":400,"message":"The input token count (9) exceeds the maximum number of tokens allowed (8).","status":"INVALID_ARGUMENT"}}]"#,
            Context,
        );
        check(
            400,
            r#"{"object":"error","message":"This model's maximum context length is 4096 tokens","type":"BadRequestError","code":400}"#,
            Context,
        );
    }

    #[test]
    fn statuses_have_kinds() {
        let found = check(401, r#"{"error":{"message":"Incorrect API key"}}"#, Auth);
        assert_eq!(
            found.message,
            "h:443 refuses the key MY_KEY: Incorrect API key (401)"
        );
        check(403, "", Auth);
        check(
            400,
            r#"{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","details":[{"reason":"API_KEY_INVALID"}]}}"#,
            Auth,
        );
        let found = check(404, r#"{"error":"model 'm' not found"}"#, UnknownModel);
        assert_eq!(
            found.message,
            "h:443 has no model m: model 'm' not found (404)"
        );
        check(
            404,
            r#"{"type":"error","error":{"type":"not_found_error","message":"model: m"}}"#,
            UnknownModel,
        );
        check(
            404,
            r#"{"error":{"code":404,"message":"models/m is not found for API version v1beta","status":"NOT_FOUND"}}"#,
            UnknownModel,
        );
        check(
            400,
            r#"{"error":{"message":"m is not a valid model ID","code":400}}"#,
            UnknownModel,
        );
        check(404, r#"{"detail":"Not Found"}"#, Protocol);
        check(404, "<html>nginx</html>", Protocol);
        check(408, "", Timeout);
        check(429, r#"{"error":{"message":"slow down"}}"#, Rate);
        check(409, "", Overloaded);
        for status in [500, 502, 503, 504, 529] {
            let found = check(status, "<html><body>Bad Gateway</body></html>", Overloaded);
            assert_eq!(
                found.message,
                format!("h:443 answers: a web page ({status})")
            );
        }
        check(
            400,
            r#"{"error":{"message":"Unsupported parameter"}}"#,
            Request,
        );
        check(422, r#"{"detail":[{"msg":"field required"}]}"#, Request);
        check(
            400,
            r#"{"error":{"code":"content_filter","message":"filtered"}}"#,
            Content,
        );
    }

    #[test]
    fn a_quota_that_is_used_up_is_final() {
        let found = check(
            429,
            r#"{"error":{"message":"You exceeded your quota","code":"insufficient_quota"}}"#,
            Rate,
        );
        assert!(found.is_final && !found.is_transient(), "{found:?}");
        let found = check(
            402,
            r#"{"error":{"message":"Insufficient credits","code":402}}"#,
            Rate,
        );
        assert!(found.is_final, "{found:?}");
    }

    #[test]
    fn a_failure_in_a_stream_is_known_by_its_words() {
        check(
            0,
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            Overloaded,
        );
        check(0, r#"{"error":{"code":429,"message":"Rate limit"}}"#, Rate);
        check(
            0,
            r#"{"error":{"type":"rate_limit_error","message":"Rate limit"}}"#,
            Rate,
        );
        check(
            0,
            r#"{"error":"an error was encountered while running the model"}"#,
            Overloaded,
        );
        check(200, r#"{"error":{"code":503,"message":"no"}}"#, Overloaded);
    }

    #[test]
    fn a_server_may_write_nothing_on_the_terminal() {
        let found = check(
            500,
            "{\"error\":\"a\\u001b]52;c;x\\u0007\\r\\nb\"}",
            Overloaded,
        );
        assert_eq!(found.message, "h:443 answers: a ]52;c;x b (500)");
        let found = check(500, &"x".repeat(9000), Overloaded);
        assert!(found.message.chars().count() < 450, "{found}");
    }
}
