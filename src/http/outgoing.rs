//! One request to another server, over a connection of its own.

use std::path::Path;

use anyhow::Context;
use axum::http::{HeaderMap, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::http::tls;
use crate::limits;

/// What another server answered.
#[derive(Debug)]
pub struct Response {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

/// Sends a request to the server of `uri`; its certificate must be of `authority`, else of one that
/// this machine trusts.
///
/// # Errors
/// The server cannot be reached, or gives no whole answer.
pub async fn send(
    uri: &Uri,
    authority: Option<&Path>,
    request: Request<Full<Bytes>>,
) -> anyhow::Result<Response> {
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    let is_secure = uri.scheme_str() == Some("https");
    let port = uri.port_u16().unwrap_or(if is_secure { 443 } else { 80 });
    let stream = TcpStream::connect((host, port))
        .await
        .with_context(|| format!("connecting to {host}:{port}"))?;
    stream.set_nodelay(true)?;
    if !is_secure {
        return exchange(stream, request).await;
    }
    let connector = tls::connector(authority)?;
    let name = ServerName::try_from(host.to_owned()).context("reading the name of the server")?;
    let stream = connector.connect(name, stream).await;
    exchange(stream.context("encrypting")?, request).await
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Full<Bytes>>,
) -> anyhow::Result<Response> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // Ended with this call, whatever becomes of it.
    let mut connection = tokio::task::JoinSet::from_iter([connection]);
    let response = sender
        .send_request(request)
        .await
        .context("sending the request")?;
    let (status, headers) = (response.status(), response.headers().clone());
    let body = Limited::new(response.into_body(), limits::MAX_ANSWER_BYTES).collect();
    let body = body
        .await
        .map_err(|error| anyhow::anyhow!("reading the answer: {error}"))?
        .to_bytes();
    connection.abort_all();
    Ok(Response {
        status,
        headers,
        body,
    })
}
