//! Client for the server: makes one call, with retries when they are safe.
//!
//! It retries when it could not connect, after 429, 502, 503 and 504, and after a timeout, if the
//! tool is read-only or the call has an idempotency key. It never retries after a decision of the
//! server.

use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use anyhow::Context;
use serde_json::{Value, json};

use crate::tool::service::Access;
use crate::tools;
use karyi_core::ids;
use karyi_core::limits;
use karyi_core::secret::SecretValue;
use karyi_net::{ClientOptions, HttpClient, HttpRequest, NetErrorKind, ProxyUse, ServerUrl};

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
        status: u16,
        body: String,
        retry_after: Option<Duration>,
    },
    /// No response arrived.
    Lost(anyhow::Error),
    /// The request cannot be sent at all.
    Refused(anyhow::Error),
}

/// Makes a call.
///
/// # Errors
/// The URL is not valid, or no attempt got a response.
pub async fn call(call: &ClientCall) -> anyhow::Result<CallResponse> {
    let server = ServerUrl::parse(&call.url).context("reading the address")?;
    let options = ClientOptions {
        proxy: ProxyUse::Environment,
        authority: call.authority.clone(),
        ..ClientOptions::default()
    };
    let server = HttpClient::new(server, &options)?;
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
        Attempt::Refused(error) => Err(error),
        Attempt::Lost(error) => Err(error.context(format!("after {attempts} attempts"))),
        Attempt::Answer { status, body, .. } => Ok(CallResponse {
            status,
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
        Attempt::Refused(_) => false,
        Attempt::Lost(_) => true,
        Attempt::Answer { status, body, .. } => match *status {
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
    server: &HttpClient,
    trace: &str,
    attempt: u32,
) -> anyhow::Result<Attempt> {
    let answer = match server.send(request(call, trace, attempt)?).await {
        Ok(answer) => answer,
        Err(error) if error.kind == NetErrorKind::Plain => {
            return Ok(Attempt::Refused(error.into()));
        }
        Err(error) => return Err(error.into()),
    };
    let status = answer.status();
    let retry_after = karyi_net::retry_after(answer.headers(), SystemTime::now());
    let body = answer.bytes(limits::MAX_ANSWER_BYTES).await?;
    Ok(Attempt::Answer {
        status,
        body: String::from_utf8_lossy(&body).into_owned(),
        retry_after,
    })
}

fn request(call: &ClientCall, trace: &str, attempt: u32) -> anyhow::Result<HttpRequest> {
    let body = json!({"tool_name": call.tool, "input": call.input}).to_string();
    let mut request = HttpRequest::post("api/tools/call", body)
        .header("x-tenant-id", &call.tenant)?
        .header("x-site-id", &call.site)?
        .header("x-trace-id", trace)?
        .header("x-attempt", &attempt.to_string())?;
    if let Some(key) = &call.key {
        request = request.secret_header("x-internal-api-key", "", key)?;
    }
    if let Some(token) = &call.token {
        request = request.secret_header("authorization", "Bearer ", token)?;
    }
    match &call.idempotency_key {
        Some(key) => Ok(request.header("idempotency-key", key)?),
        None => Ok(request),
    }
}
