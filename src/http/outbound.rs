//! One outgoing HTTP request on a connection of its own.

use std::path::Path;

use anyhow::{Context, bail};
use axum::http::{HeaderMap, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::http::tls;
use karyi_core::limits;

/// Response of a remote server.
#[derive(Debug)]
pub struct Response {
    /// Status.
    pub status: StatusCode,
    /// Headers.
    pub headers: HeaderMap,
    /// Body.
    pub body: Bytes,
}

/// Remote server.
pub struct RemoteServer {
    uri: Uri,
    connector: Option<TlsConnector>,
}

impl RemoteServer {
    /// Reads a URL. The server's certificate must be signed by `authority`, or by one that this
    /// machine trusts.
    ///
    /// # Errors
    /// The URL is not valid, or there are no trusted certificates.
    pub fn new(address: &str, authority: Option<&Path>) -> anyhow::Result<Self> {
        let uri: Uri = address
            .parse()
            .ok()
            .filter(|uri: &Uri| uri.host().is_some())
            .context("expected http://HOST:PORT or https://HOST:PORT")?;
        if uri
            .authority()
            .is_some_and(|authority| authority.as_str().contains('@'))
        {
            bail!("the address contains a name or password, which every process would see");
        }
        let connector = match uri.scheme_str() {
            Some("http") => None,
            Some("https") => Some(tls::connector(authority)?),
            _ => bail!("expected http://HOST:PORT or https://HOST:PORT"),
        };
        Ok(Self { uri, connector })
    }

    /// Returns the URL.
    #[must_use]
    pub fn uri(&self) -> &Uri {
        &self.uri
    }

    /// Returns the value of the header `Host`.
    #[must_use]
    pub fn authority(&self) -> &str {
        self.uri
            .authority()
            .map_or("", |authority| authority.as_str())
    }

    /// Sends a request.
    ///
    /// # Errors
    /// The server cannot be reached, or its response is incomplete.
    pub async fn send(&self, request: Request<Full<Bytes>>) -> anyhow::Result<Response> {
        let host = self.uri.host().unwrap_or_default();
        let host = host.trim_matches(['[', ']']);
        let default = if self.connector.is_some() { 443 } else { 80 };
        let port = self.uri.port_u16().unwrap_or(default);
        let stream = TcpStream::connect((host, port))
            .await
            .with_context(|| format!("connecting to {host}:{port}"))?;
        stream.set_nodelay(true)?;
        let Some(connector) = &self.connector else {
            return exchange(stream, request).await;
        };
        let name =
            ServerName::try_from(host.to_owned()).context("reading the name of the server")?;
        let stream = connector.connect(name, stream).await;
        exchange(stream.context("encrypting")?, request).await
    }
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Full<Bytes>>,
) -> anyhow::Result<Response> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // Aborted when this call ends in any way.
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
