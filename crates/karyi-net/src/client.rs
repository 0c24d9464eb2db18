//! Client of one server.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, retry};

use crate::error::{NetError, NetErrorKind};
use crate::failure::translate;
use crate::request::{Body, HttpRequest, form};
use crate::response::HttpResponse;
use crate::server_url::ServerUrl;
use crate::tls;
use karyi_core::limits;

/// Name of this program in requests.
pub(crate) const USER_AGENT: &str = concat!("karyi/", env!("CARGO_PKG_VERSION"));

/// Settings of a client.
#[derive(Debug, Clone, Default)]
pub struct ClientOptions {
    /// Use of a proxy.
    pub proxy: ProxyUse,
    /// File with the certificate authorities to trust, instead of the machine's.
    pub authority: Option<PathBuf>,
    /// Time limits.
    pub timeouts: Timeouts,
    /// Connections that are kept open for later requests.
    pub idle_connections: IdleConnections,
    /// Permits secrets on unencrypted connections to other machines.
    pub allow_plain: bool,
}

/// Use of a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProxyUse {
    /// None.
    #[default]
    Never,
    /// Those of `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`, but not for this machine.
    Environment,
}

/// Connections that are kept open for later requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IdleConnections {
    /// None.
    #[default]
    Closed,
    /// One.
    Kept,
}

/// Time limits of a request; none where the caller has its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Timeouts {
    /// From the request to the head of the answer.
    pub head: Option<Duration>,
    /// Between two pieces of the body.
    pub idle: Option<Duration>,
}

/// Client of one server.
#[derive(Debug, Clone)]
pub struct HttpClient {
    client: Client,
    server: ServerUrl,
    timeouts: Timeouts,
    allow_plain: bool,
}

impl HttpClient {
    /// Makes a client of a server.
    ///
    /// # Errors
    /// No certificate authority is trusted, or the file of them cannot be read.
    pub fn new(server: ServerUrl, options: &ClientOptions) -> Result<Self, NetError> {
        let encryption = match server.is_encrypted() {
            true => tls::settings(options.authority.as_deref())?,
            false => tls::unused()?,
        };
        let kept = match options.idle_connections {
            IdleConnections::Closed => 0,
            IdleConnections::Kept => 1,
        };
        let mut builder = Client::builder()
            .tls_backend_preconfigured(encryption)
            .redirect(Policy::none())
            .retry(retry::never())
            .connect_timeout(limits::CONNECT_TIMEOUT)
            .pool_max_idle_per_host(kept)
            .user_agent(USER_AGENT)
            // No file of names leads the traffic of this machine elsewhere; a URL has the port.
            .resolve_to_addrs(
                "localhost",
                &[
                    (Ipv4Addr::LOCALHOST, 0).into(),
                    (Ipv6Addr::LOCALHOST, 0).into(),
                ],
            );
        if options.proxy == ProxyUse::Never || server.is_loopback() {
            builder = builder.no_proxy();
        }
        let client = builder.build().map_err(|error| {
            let error = translate(&error, &server.authority());
            NetError::new(NetErrorKind::Settings, error.message)
        })?;
        Ok(Self {
            client,
            server,
            timeouts: options.timeouts,
            allow_plain: options.allow_plain,
        })
    }

    /// Returns the server.
    #[must_use]
    pub fn server(&self) -> &ServerUrl {
        &self.server
    }

    /// Sends a request and reads the head of the answer.
    ///
    /// # Errors
    /// The request has a secret that would travel unencrypted, the server cannot be reached, or its answer is no
    /// HTTP or does not begin in time.
    pub async fn send(&self, request: HttpRequest) -> Result<HttpResponse, NetError> {
        let host = self.server.authority();
        let is_private =
            self.server.is_encrypted() || self.server.is_loopback() || self.allow_plain;
        if request.has_secret && !is_private {
            let host = self.server.host();
            let message = format!("a key or token would travel unencrypted to {host}; use https");
            return Err(NetError::new(NetErrorKind::Plain, message));
        }
        let url = self.server.join(&request.path);
        let sent = self
            .client
            .request(request.method, url)
            .headers(request.headers);
        let sent = match request.body {
            Body::Whole(body) => sent.body(body),
            Body::Form(parts) => sent.multipart(form(parts)),
        };
        let answer = match self.timeouts.head {
            Some(head) => tokio::time::timeout(head, sent.send()).await.map_err(|_| {
                let message = format!("{host} did not answer within {} s", head.as_secs_f64());
                NetError::new(NetErrorKind::Timeout, message)
            })?,
            None => sent.send().await,
        };
        let inner = answer.map_err(|error| translate(&error, &host))?;
        Ok(HttpResponse {
            inner,
            host,
            idle: self.timeouts.idle,
        })
    }
}
