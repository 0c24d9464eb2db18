//! Sends spans to a collector: OTLP over HTTP, as JSON.
//!
//! A task of its own takes what has gathered and sends it together. A collector that does not answer
//! costs spans, never calls.

use anyhow::{Context, bail};
use axum::http::{Request, Uri, header};
use http_body_util::Full;
use hyper::body::Bytes;
use tokio::sync::mpsc::{self, Receiver};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::http::outgoing;
use crate::limits;
use crate::service::log::{Line, Log};
use crate::service::spans::{self, Span, Spans};

/// The task that sends.
pub struct Exporter(JoinHandle<()>);

impl Exporter {
    /// Starts to send to the collector at `endpoint`; to its path `v1/traces` is added.
    ///
    /// # Errors
    /// The endpoint is no URL of HTTP.
    pub fn start(endpoint: &str, log: Log) -> anyhow::Result<(Self, Spans)> {
        let uri: Uri = format!("{}/v1/traces", endpoint.trim_end_matches('/'))
            .parse()
            .context("reading the URL of the collector")?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) || uri.host().is_none() {
            bail!(
                "expected http://HOST:PORT or https://HOST:PORT as the collector, found {endpoint}"
            );
        }
        let (sender, spans) = mpsc::channel(limits::MAX_WAITING_SPANS);
        let task = tokio::spawn(export(uri, spans, log));
        Ok((Self(task), Spans::to(sender)))
    }

    /// Waits until everything is sent, for a while. Every [`Spans`] must be gone.
    pub async fn end(mut self) {
        if timeout(limits::SPANS_FLUSH_TIMEOUT, &mut self.0)
            .await
            .is_err()
        {
            self.0.abort();
        }
    }
}

async fn export(uri: Uri, mut waiting: Receiver<Span>, log: Log) {
    let mut batch = Vec::new();
    let mut is_failing = false;
    while waiting
        .recv_many(&mut batch, limits::MAX_SPANS_OF_EXPORT)
        .await
        > 0
    {
        // More will come; a request for each is too much for both sides.
        let gather = async {
            while batch.len() < limits::MAX_SPANS_OF_EXPORT {
                let room = limits::MAX_SPANS_OF_EXPORT - batch.len();
                if waiting.recv_many(&mut batch, room).await == 0 {
                    break;
                }
            }
        };
        let _ = timeout(limits::SPANS_PAUSE, gather).await;
        let sent = send(&uri, &batch).await;
        if let Err(error) = &sent
            && !is_failing
        {
            let message = format!("{error:#}");
            log.write(&Line {
                event: "spans_not_sent",
                message: Some(&message),
                ..Line::default()
            });
        }
        is_failing = sent.is_err();
        batch.clear();
    }
}

async fn send(uri: &Uri, batch: &[Span]) -> anyhow::Result<()> {
    let host = uri.authority().map(ToString::to_string).unwrap_or_default();
    let body = Bytes::from(spans::document(batch).to_string());
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let request = Request::post(path)
        .header(header::HOST, host)
        .header(header::CONTENT_TYPE, "application/json")
        .body(Full::new(body))?;
    let answer = timeout(limits::SPANS_TIMEOUT, outgoing::send(uri, None, request));
    let answer = answer
        .await
        .context("the collector did not answer in time")??;
    match answer.status.is_success() {
        true => Ok(()),
        false => bail!("the collector answered {}", answer.status),
    }
}
