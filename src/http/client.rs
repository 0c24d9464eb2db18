//! Client for the server: makes one call, with retries when they are safe.
//!
//! It retries when it could not connect, after 429, 502, 503 and 504, and after a timeout, if the
//! tool is read-only or the call has an idempotency key. It never retries after a decision of the
//! server.

use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, bail};
use axum::http::{HeaderValue, Request, StatusCode, header};
use http_body_util::Full;
use hyper::body::Bytes;
use serde_json::{Value, json};
use zeroize::Zeroizing;

use crate::http::outbound::RemoteServer;
use crate::tool::service::Access;
use crate::tools;
use karyi_core::ids;
use karyi_core::limits;
use karyi_core::secret::SecretValue;

/// Call to make.
pub struct ClientCall {
    /// URL of the server, such as `http://127.0.0.1:8000`.
    pub url: String,
    /// Name of the tool.
    pub tool: String,
    /// Input of the tool.
    pub input: Value,
    /// Tenant.
    pub tenant: String,
    /// Site.
    pub site: String,
    /// Trace; random if absent.
    pub trace: Option<String>,
    /// Internal key.
    pub key: Option<SecretValue>,
    /// Token.
    pub token: Option<SecretValue>,
    /// Key that makes retries safe.
    pub idempotency_key: Option<String>,
    /// Certificate authority to trust.
    pub authority: Option<PathBuf>,
    /// Time for all attempts together.
    pub timeout: Duration,
}

/// Response of the server.
#[derive(Debug, Clone, PartialEq)]
pub struct CallResponse {
    /// HTTP status.
    pub status: u16,
    /// Body.
    pub body: String,
    /// Number of attempts.
    pub attempts: u32,
}

/// Result of one attempt.
enum Attempt {
    /// The server responded.
    Answer {
        status: StatusCode,
        body: String,
        retry_after: Option<Duration>,
    },
    /// No response arrived.
    Lost(anyhow::Error),
}

/// Makes a call.
///
/// # Errors
/// The URL is not valid, or no attempt got a response.
pub async fn call(call: &ClientCall) -> anyhow::Result<CallResponse> {
    let address = call.url.trim_end_matches('/');
    let server =
        RemoteServer::new(address, call.authority.as_deref()).context("reading the address")?;
    let host = server.uri().host().unwrap_or_default();
    let is_loopback = matches!(host, "localhost" | "127.0.0.1" | "[::1]");
    let has_secret = call.key.is_some() || call.token.is_some();
    if server.uri().scheme_str() != Some("https") && has_secret && !is_loopback {
        bail!("a key or token would travel unencrypted to {host}; use https");
    }
    let trace = call.trace.clone().map_or_else(ids::new_id, Ok)?;
    let deadline = Instant::now() + call.timeout;
    let may_repeat = is_repeatable(call);
    let mut attempts = 0;
    loop {
        attempts += 1;
        let sent = send_once(call, &server, &trace, attempts);
        let since = Instant::now();
        let end = match may_repeat && attempts < limits::MAX_ATTEMPTS {
            true => deadline.min(since + time_of_attempt(call)),
            false => deadline,
        };
        let attempt = match tokio::time::timeout_at(end.into(), sent).await {
            Ok(Ok(attempt)) => attempt,
            Ok(Err(error)) => Attempt::Lost(error),
            Err(_) => Attempt::Lost(anyhow::anyhow!("no answer within {:?}", end - since)),
        };
        let retry_delay = retry_delay(&attempt, attempts)?;
        let left = deadline.saturating_duration_since(Instant::now());
        match retry_delay.filter(|retry_delay| {
            may_repeat && attempts < limits::MAX_ATTEMPTS && *retry_delay < left
        }) {
            Some(retry_delay) => tokio::time::sleep(retry_delay).await,
            None => return response(attempt, attempts),
        }
    }
}

fn response(attempt: Attempt, attempts: u32) -> anyhow::Result<CallResponse> {
    match attempt {
        Attempt::Lost(error) => Err(error.context(format!("after {attempts} attempts"))),
        Attempt::Answer { status, body, .. } => Ok(CallResponse {
            status: status.as_u16(),
            body,
            attempts,
        }),
    }
}

/// Tells whether a retry is safe: the tool is read-only, or the call has an idempotency key.
fn is_repeatable(call: &ClientCall) -> bool {
    let registry = tools::all();
    let access = registry.get(&call.tool).map(|entry| entry.service.access);
    access == Some(Access::Read) || call.idempotency_key.is_some()
}

/// Returns the time for one attempt: its share of the total, but longer than the server's own limit
/// for the tool.
fn time_of_attempt(call: &ClientCall) -> Duration {
    let registry = tools::all();
    let entry = registry.get(&call.tool);
    let own = entry.map_or(limits::MAX_CALL_TIMEOUT, |entry| entry.service.deadline());
    (call.timeout / limits::MAX_ATTEMPTS).max(own + limits::ANSWER_GRACE)
}

/// Returns the delay before the next attempt; none if the response is final.
fn retry_delay(attempt: &Attempt, attempts: u32) -> anyhow::Result<Option<Duration>> {
    let is_retryable = match attempt {
        Attempt::Lost(_) => true,
        Attempt::Answer { status, body, .. } => match status.as_u16() {
            429 | 502 | 503 | 504 => true,
            200 => timed_out(body),
            _ => false,
        },
    };
    if !is_retryable {
        return Ok(None);
    }
    if let Attempt::Answer {
        retry_after: Some(wait),
        ..
    } = attempt
    {
        return Ok(Some(*wait));
    }
    let most = limits::RETRY_PAUSE
        .saturating_mul(1 << attempts.min(16))
        .min(limits::MAX_RETRY_PAUSE);
    // Full jitter, so that many callers do not retry at the same time.
    let share = u32::from(u16::from_be_bytes(ids::random::<2>()?));
    Ok(Some(most.saturating_mul(share) / u32::from(u16::MAX)))
}

fn timed_out(body: &str) -> bool {
    let answer: Option<Value> = serde_json::from_str(body).ok();
    answer.is_some_and(|answer| answer["error_type"] == "Timeout")
}

async fn send_once(
    call: &ClientCall,
    server: &RemoteServer,
    trace: &str,
    attempt: u32,
) -> anyhow::Result<Attempt> {
    let request = request(call, server, trace, attempt)?;
    let answer = server.send(request).await?;
    let wait = answer.headers.get(header::RETRY_AFTER);
    let wait = wait.and_then(|value| parse_retry_after(value.to_str().ok()?, SystemTime::now()));
    Ok(Attempt::Answer {
        status: answer.status,
        body: String::from_utf8_lossy(&answer.body).into_owned(),
        retry_after: wait,
    })
}

/// Reads a `Retry-After` header: seconds or an HTTP date.
fn parse_retry_after(text: &str, now: SystemTime) -> Option<Duration> {
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // A number too large to parse means longer than anyone waits.
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    // A date in the past means no wait.
    Some(date.duration_since(now).unwrap_or_default())
}

fn request(
    call: &ClientCall,
    server: &RemoteServer,
    trace: &str,
    attempt: u32,
) -> anyhow::Result<Request<Full<Bytes>>> {
    let path = format!(
        "{}/api/tools/call",
        server.uri().path().trim_end_matches('/')
    );
    let mut request = Request::post(path)
        .header(header::HOST, server.authority())
        .header(header::CONTENT_TYPE, "application/json")
        .header("x-tenant-id", &call.tenant)
        .header("x-site-id", &call.site)
        .header("x-trace-id", trace)
        .header("x-attempt", attempt.to_string());
    let key = call.key.as_ref().map(|key| sensitive("", key));
    let token = call.token.as_ref().map(|token| sensitive("Bearer ", token));
    let repeat = call.idempotency_key.as_deref().map(HeaderValue::from_str);
    let optional = [
        ("x-internal-api-key", key.transpose()?),
        ("authorization", token.transpose()?),
        (
            "idempotency-key",
            repeat
                .transpose()
                .context("a header contains invalid characters")?,
        ),
    ];
    for (name, value) in optional {
        if let Some(value) = value {
            request = request.header(name, value);
        }
    }
    let body = json!({"tool_name": call.tool, "input": call.input}).to_string();
    request
        .body(Full::from(body))
        .context("a header contains invalid characters")
}

/// Builds a header whose value is never printed.
fn sensitive(scheme: &str, value: &SecretValue) -> anyhow::Result<HeaderValue> {
    let text = Zeroizing::new(format!("{scheme}{}", value.expose()));
    // The original error does not name the header.
    let mut header = HeaderValue::from_str(&text).map_err(|_| {
        anyhow::anyhow!("the key or token contains characters that are not allowed in a header")
    })?;
    header.set_sensitive(true);
    Ok(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now: jiff::Timestamp = "2099-10-21T07:27:00Z".parse().unwrap();
        let now = SystemTime::from(now);
        let check = |text: &str, expected: Option<u64>| {
            assert_eq!(
                parse_retry_after(text, now),
                expected.map(Duration::from_secs),
                "{text}"
            );
        };
        check("2", Some(2));
        check("Wed, 21 Oct 2099 07:28:00 GMT", Some(60));
        check("Wed, 21 Oct 2099 07:26:00 GMT", Some(0));
        // Obsolete date formats.
        check("Thursday, 21-Oct-99 07:28:00 GMT", Some(0));
        check("Wed Oct 21 07:28:00 2099", Some(60));
        check("Thu Oct  1 07:28:00 2099", Some(0));
        // Very long, but a number.
        check("999999999999999999999999999999", Some(u64::MAX));
        for text in ["soon", "-1", "+5", "1.5", "", "21 Oct 2099"] {
            check(text, None);
        }
    }
}
