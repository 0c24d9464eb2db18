//! Exports spans to a collector by OTLP over HTTP, as JSON.
//!
//! A task collects spans and sends them in batches. If the collector does not respond, spans are
//! lost, but calls are not delayed.

use anyhow::{Context, bail};
use tokio::sync::mpsc::{self, Receiver};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::service::spans::{self, Span, SpanSender};
use karyi_core::limits;
use karyi_net::{ClientOptions, HttpClient, HttpRequest, ServerUrl};

/// Handle of the export task.
pub struct Exporter(JoinHandle<()>);

impl Exporter {
    /// Starts the export to `endpoint`, with `v1/traces` appended to its path.
    ///
    /// # Errors
    /// The endpoint is not an HTTP URL, or there are no trusted certificates.
    pub fn start(endpoint: &str) -> anyhow::Result<(Self, SpanSender)> {
        let server = ServerUrl::parse(endpoint).context("reading the URL of the collector")?;
        let collector = HttpClient::new(server, &ClientOptions::default())?;
        let (sender, spans) = mpsc::channel(limits::MAX_WAITING_SPANS);
        let task = tokio::spawn(export(collector, spans));
        Ok((Self(task), SpanSender::new(sender)))
    }

    /// Waits for the last export, within a limit. Every [`SpanSender`] must be dropped before.
    pub async fn end(mut self) {
        if timeout(limits::SPANS_FLUSH_TIMEOUT, &mut self.0)
            .await
            .is_err()
        {
            self.0.abort();
        }
    }
}

async fn export(collector: HttpClient, mut waiting: Receiver<Span>) {
    let mut batch = Vec::new();
    let mut is_failing = false;
    while waiting
        .recv_many(&mut batch, limits::MAX_SPANS_OF_EXPORT)
        .await
        > 0
    {
        // Collect more spans, because a request for each is too much for both sides.
        let gather = async {
            while batch.len() < limits::MAX_SPANS_OF_EXPORT {
                let room = limits::MAX_SPANS_OF_EXPORT - batch.len();
                if waiting.recv_many(&mut batch, room).await == 0 {
                    break;
                }
            }
        };
        let _ = timeout(limits::SPANS_PAUSE, gather).await;
        let sent = send(&collector, &batch).await;
        if let Err(error) = &sent
            && !is_failing
        {
            tracing::info!(
                event = "spans_not_sent",
                message = format_args!("{error:#}")
            );
        }
        is_failing = sent.is_err();
        batch.clear();
    }
}

async fn send(collector: &HttpClient, batch: &[Span]) -> anyhow::Result<()> {
    let request = HttpRequest::post("v1/traces", spans::document(batch).to_string());
    let exchange = async {
        let answer = collector.send(request).await?;
        let (status, is_success) = (answer.status(), answer.is_success());
        // A collector that never ends its answer has failed, too.
        answer.bytes(limits::MAX_ANSWER_BYTES).await?;
        anyhow::Ok((status, is_success))
    };
    let (status, is_success) = timeout(limits::SPANS_TIMEOUT, exchange)
        .await
        .context("the collector did not answer in time")??;
    match is_success {
        true => Ok(()),
        false => bail!("the collector answered {status}"),
    }
}
