//! A client of the server: one call, sent again only when that is safe.
//!
//! Sent again are calls that found no server, 429, 502, 503, 504, and calls whose time was up, if
//! the tool only looks or the call has an idempotency key; never what the server decided.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use axum::http::{Request, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::http::tls;
use crate::limits;
use crate::store::ids;
use crate::tool::service::Access;
use crate::tools;

/// A call to be made.
#[derive(Clone)]
pub struct Calling {
    /// The server: `http://127.0.0.1:8000`.
    pub url: String,
    /// The tool.
    pub tool: String,
    /// Its input.
    pub input: Value,
    /// The tenant.
    pub tenant: String,
    /// The site.
    pub site: String,
    /// The trace; one is made when there is none.
    pub trace: Option<String>,
    /// The internal key.
    pub key: Option<String>,
    /// The token.
    pub token: Option<String>,
    /// The key under which the call may be repeated.
    pub idempotency_key: Option<String>,
    /// The certificate authority to trust.
    pub authority: Option<PathBuf>,
    /// How long all attempts may take together.
    pub timeout: Duration,
}

/// The answer of the server, and how many attempts it took.
#[derive(Debug, Clone, PartialEq)]
pub struct Answered {
    /// The HTTP status.
    pub status: u16,
    /// The body.
    pub body: String,
    /// How many attempts were made.
    pub attempts: u32,
}

/// What came of one attempt.
enum Attempt {
    /// The server answered.
    Answer {
        status: StatusCode,
        body: String,
        retry_after: Option<Duration>,
    },
    /// No answer came.
    Lost(anyhow::Error),
}

/// Makes a call.
///
/// # Errors
/// The address is none, or no attempt got an answer.
pub async fn call(calling: &Calling) -> anyhow::Result<Answered> {
    let uri: Uri = calling
        .url
        .trim_end_matches('/')
        .parse()
        .context("reading the address")?;
    let host = uri.host().context("the address names no host")?.to_owned();
    let is_near = matches!(host.as_str(), "localhost" | "127.0.0.1" | "[::1]");
    let has_secret = calling.key.is_some() || calling.token.is_some();
    if uri.scheme_str() != Some("https") && has_secret && !is_near {
        bail!("a key or token would travel unencrypted to {host}; use https");
    }
    let trace = calling.trace.clone().map_or_else(ids::new_id, Ok)?;
    let deadline = Instant::now() + calling.timeout;
    let may_repeat = is_repeatable(calling);
    let mut attempts = 0;
    loop {
        attempts += 1;
        let sent = once(calling, &uri, &trace, attempts);
        let attempt = match tokio::time::timeout_at(deadline.into(), sent).await {
            Ok(Ok(attempt)) => attempt,
            Ok(Err(error)) => Attempt::Lost(error),
            Err(_) => Attempt::Lost(anyhow::anyhow!("no answer within {:?}", calling.timeout)),
        };
        let pause = pause(&attempt, attempts)?;
        let left = deadline.saturating_duration_since(Instant::now());
        match pause.filter(|pause| may_repeat && attempts < limits::MAX_ATTEMPTS && *pause < left) {
            Some(pause) => tokio::time::sleep(pause).await,
            None => return answered(attempt, attempts),
        }
    }
}

fn answered(attempt: Attempt, attempts: u32) -> anyhow::Result<Answered> {
    match attempt {
        Attempt::Lost(error) => Err(error.context(format!("after {attempts} attempts"))),
        Attempt::Answer { status, body, .. } => Ok(Answered {
            status: status.as_u16(),
            body,
            attempts,
        }),
    }
}

/// Whether a call may be sent again: its tool only looks, or the server knows it by its key.
fn is_repeatable(calling: &Calling) -> bool {
    let registry = tools::all();
    let access = registry
        .get(&calling.tool)
        .map(|entry| entry.service.access);
    access == Some(Access::Read) || calling.idempotency_key.is_some()
}

/// Returns how long to wait before the next attempt; nothing when the answer is final.
fn pause(attempt: &Attempt, attempts: u32) -> anyhow::Result<Option<Duration>> {
    let is_worth_it = match attempt {
        Attempt::Lost(_) => true,
        Attempt::Answer { status, body, .. } => match status.as_u16() {
            429 | 502 | 503 | 504 => true,
            200 => timed_out(body),
            _ => false,
        },
    };
    if !is_worth_it {
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
    // Anything up to the whole pause, so that many callers do not come back together.
    let share = u32::from(u16::from_be_bytes(ids::random::<2>()?));
    Ok(Some(most.saturating_mul(share) / u32::from(u16::MAX)))
}

fn timed_out(body: &str) -> bool {
    let answer: Option<Value> = serde_json::from_str(body).ok();
    answer.is_some_and(|answer| answer["error_type"] == "Timeout")
}

async fn once(calling: &Calling, uri: &Uri, trace: &str, attempt: u32) -> anyhow::Result<Attempt> {
    let (host, is_secure) = (
        uri.host().unwrap_or_default(),
        uri.scheme_str() == Some("https"),
    );
    let port = uri.port_u16().unwrap_or(if is_secure { 443 } else { 80 });
    let stream = TcpStream::connect((host.trim_matches(['[', ']']), port))
        .await
        .with_context(|| format!("connecting to {host}:{port}"))?;
    stream.set_nodelay(true)?;
    let request = request(calling, uri, trace, attempt)?;
    if !is_secure {
        return exchange(stream, request).await;
    }
    let connector = tls::connector(calling.authority.as_deref())?;
    let name = ServerName::try_from(host.to_owned()).context("reading the name of the server")?;
    exchange(
        connector
            .connect(name, stream)
            .await
            .context("encrypting")?,
        request,
    )
    .await
}

fn request(
    calling: &Calling,
    uri: &Uri,
    trace: &str,
    attempt: u32,
) -> anyhow::Result<Request<Full<Bytes>>> {
    let authority = uri.authority().map(ToString::to_string).unwrap_or_default();
    let path = format!("{}/api/tools/call", uri.path().trim_end_matches('/'));
    let mut request = Request::post(path)
        .header(header::HOST, authority)
        .header(header::CONTENT_TYPE, "application/json")
        .header("x-tenant-id", &calling.tenant)
        .header("x-site-id", &calling.site)
        .header("x-trace-id", trace)
        .header("x-attempt", attempt.to_string());
    let optional = [
        ("x-internal-api-key", calling.key.clone()),
        (
            "authorization",
            calling
                .token
                .as_ref()
                .map(|token| format!("Bearer {token}")),
        ),
        ("idempotency-key", calling.idempotency_key.clone()),
    ];
    for (name, value) in optional {
        if let Some(value) = value {
            request = request.header(name, value);
        }
    }
    let body = json!({"tool_name": calling.tool, "input": calling.input}).to_string();
    request
        .body(Full::from(body))
        .context("a header cannot be sent")
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Full<Bytes>>,
) -> anyhow::Result<Attempt> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let connection = tokio::spawn(connection);
    let response = sender.send_request(request).await;
    let response = match response {
        Ok(response) => response,
        Err(error) => {
            connection.abort();
            return Err(error).context("sending the call");
        }
    };
    let (status, headers) = (response.status(), response.headers().clone());
    let body = Limited::new(response.into_body(), limits::MAX_ANSWER_BYTES)
        .collect()
        .await;
    connection.abort();
    let body = body
        .map_err(|error| anyhow::anyhow!("reading the answer: {error}"))?
        .to_bytes();
    let seconds = headers
        .get(header::RETRY_AFTER)
        .and_then(|value| value.to_str().ok()?.parse().ok());
    Ok(Attempt::Answer {
        status,
        body: String::from_utf8_lossy(&body).into_owned(),
        retry_after: seconds.map(Duration::from_secs),
    })
}
