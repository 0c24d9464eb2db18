//! Client for URLs anywhere. A guard judges each of them, and every address before the connection to it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use karyi_core::limits;
use karyi_core::secret::SecretValue;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION};
use reqwest::redirect::Policy;
use reqwest::{Client, Method, retry};

use crate::client::USER_AGENT;
use crate::error::{NetError, NetErrorKind, RedirectAnswer};
use crate::failure::{causes, is_refused_connection, translate};
use crate::guard::{Guard, JudgingResolver, NameSource, PrivateAddress, Reach, SystemNames};
use crate::request::invalid_header;
use crate::response::HttpResponse;
use crate::tls;
use crate::web_url::WebUrl;

/// Request to a URL anywhere.
#[derive(Debug, Clone)]
pub struct WebRequest {
    url: WebUrl,
    method: Method,
    headers: HeaderMap,
    body: Bytes,
    has_secret: bool,
    /// Time in which a server on this machine may start to listen.
    patience: Duration,
}

impl WebRequest {
    /// Makes a request without headers and body. The method is written in upper case.
    ///
    /// # Errors
    /// The text is no method.
    pub fn new(method: &str, url: WebUrl) -> Result<Self, NetError> {
        let method = Method::from_bytes(method.as_bytes()).map_err(|_| {
            NetError::new(
                NetErrorKind::Settings,
                format!("unsupported method: {method}"),
            )
        })?;
        Ok(Self {
            url,
            method,
            headers: HeaderMap::new(),
            body: Bytes::new(),
            has_secret: false,
            patience: limits::LOCAL_START_TIME,
        })
    }

    /// Sets the body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    /// Shortens the time in which a server on this machine may start to listen.
    #[must_use]
    pub fn patience(mut self, most: Duration) -> Self {
        self.patience = self.patience.min(most);
        self
    }

    /// Sets a header.
    ///
    /// # Errors
    /// The name or the value contains characters that are not allowed.
    pub fn header(mut self, name: &str, value: &str) -> Result<Self, NetError> {
        let value = HeaderValue::from_str(value).map_err(|_| invalid_header(name))?;
        self.headers.insert(header_name(name)?, value);
        Ok(self)
    }

    /// Sets a header that is a secret. It is never printed, and it is sent encrypted or to this machine only.
    ///
    /// # Errors
    /// The name or the value contains characters that are not allowed.
    pub fn secret_header(self, name: &str, value: &SecretValue) -> Result<Self, NetError> {
        let mut made = self.header(name, value.expose())?;
        if let Some(value) = made.headers.get_mut(header_name(name)?) {
            value.set_sensitive(true);
        }
        made.has_secret = true;
        Ok(made)
    }

    /// Returns true when a header of the name is set.
    #[must_use]
    pub fn has_header(&self, name: &str) -> bool {
        self.headers.contains_key(name)
    }

    /// Returns the request of a redirect; a 303, and a 301 or 302 after a POST, is a GET without a body.
    fn redirected(mut self, status: u16, url: WebUrl) -> Self {
        self.url = url;
        if status == 303 || matches!(status, 301 | 302) && self.method == Method::POST {
            self.method = Method::GET;
            self.body = Bytes::new();
            self.headers.remove(CONTENT_TYPE);
        }
        self
    }
}

fn header_name(name: &str) -> Result<HeaderName, NetError> {
    HeaderName::from_bytes(name.as_bytes()).map_err(|_| {
        let message = format!(
            "invalid header {name:?}: the name contains characters that are not allowed in it"
        );
        NetError::new(NetErrorKind::Settings, message)
    })
}

/// Settings of a client.
#[derive(Debug, Clone)]
pub struct WebOptions {
    /// File with the certificate authorities to trust, instead of the machine's.
    pub authority: Option<PathBuf>,
    /// Source of the addresses of names.
    pub names: Arc<dyn NameSource>,
}

impl Default for WebOptions {
    fn default() -> Self {
        let names = Arc::new(SystemNames);
        Self {
            authority: None,
            names,
        }
    }
}

/// Treatment of redirects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Redirects {
    /// They are answers like others.
    #[default]
    Returned,
    /// They are followed to the same origin, at most three of them.
    Followed,
}

/// Client for URLs anywhere. It uses no proxy, which would look names up itself, and keeps no connection.
#[derive(Debug, Default)]
pub struct WebClient {
    options: WebOptions,
    /// Made when a request needs them.
    clients: Mutex<Vec<(Transport, Client)>>,
}

/// Kind of connections of a client of the library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Transport {
    reach: Reach,
    is_encrypted: bool,
}

impl WebClient {
    /// Makes a client.
    #[must_use]
    pub fn new(options: WebOptions) -> Self {
        let clients = Mutex::default();
        Self { options, clients }
    }

    /// Sends a request and reads the head of the answer.
    ///
    /// # Errors
    /// The guard refuses the URL, an address of its name or a redirect; a secret would travel unencrypted; the server
    /// cannot be reached, or its answer is no HTTP.
    pub async fn send(
        &self,
        mut request: WebRequest,
        guard: &Guard,
        redirects: Redirects,
    ) -> Result<HttpResponse, NetError> {
        let (mut hops, mut redirect) = (0, None);
        loop {
            let response = self.exchange(&request, guard).await;
            let response = response.map_err(|error| after(redirect.take(), error))?;
            let Some(target) = location(&response).filter(|_| redirects == Redirects::Followed)
            else {
                return Ok(response);
            };
            let url = request.url.join(target);
            redirect = Some(Box::new(RedirectAnswer {
                status: response.status(),
                location: url.as_ref().ok().map(WebUrl::to_string),
            }));
            let next = match url {
                _ if hops == limits::MAX_REDIRECTS => {
                    Err(refused(format!("stopped after {hops} redirects")))
                }
                Ok(url) if !url.has_origin_of(&request.url) => Err(refused(
                    "redirect to different origin is not allowed".to_owned(),
                )),
                url => url,
            };
            let url = next.map_err(|error| after(redirect.clone(), error))?;
            request = request.redirected(response.status(), url);
            hops += 1;
        }
    }

    async fn exchange(
        &self,
        request: &WebRequest,
        guard: &Guard,
    ) -> Result<HttpResponse, NetError> {
        let url = &request.url;
        let host = url.authority();
        let reach = guard.judge(url)?;
        if request.has_secret && !url.is_encrypted() && !url.is_loopback() {
            let message = format!(
                "a key or token would travel unencrypted to {}; use https",
                url.host()
            );
            return Err(NetError::new(NetErrorKind::Plain, message));
        }
        let client = self.client(Transport {
            reach,
            is_encrypted: url.is_encrypted(),
        })?;
        let answer = attempts(&client, request).await.map_err(|error| {
            match causes(&error)
                .into_iter()
                .any(|cause| cause.is::<PrivateAddress>())
            {
                true => refused(guard.not_public()),
                false => translate(&error, &host),
            }
        });
        Ok(HttpResponse {
            inner: answer?,
            host,
            idle: None,
        })
    }

    fn client(&self, transport: Transport) -> Result<Client, NetError> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, client)) = clients.iter().find(|(kind, _)| *kind == transport) {
            return Ok(client.clone());
        }
        let encryption = match transport.is_encrypted {
            true => tls::settings(self.options.authority.as_deref())?,
            false => tls::unused()?,
        };
        let resolver = JudgingResolver {
            source: Arc::clone(&self.options.names),
            reach: transport.reach,
        };
        let client = Client::builder()
            .tls_backend_preconfigured(encryption)
            .redirect(Policy::none())
            .retry(retry::never())
            .connect_timeout(limits::CONNECT_TIMEOUT)
            .pool_max_idle_per_host(0)
            .user_agent(USER_AGENT)
            .no_proxy()
            .dns_resolver(resolver)
            .build()
            .map_err(|error| NetError::new(NetErrorKind::Settings, error.to_string()))?;
        clients.push((transport, client.clone()));
        Ok(client)
    }
}

/// Sends a request. While no program listens at a port of this machine it tries again: the server may be starting, and
/// nothing was sent.
async fn attempts(
    client: &Client,
    request: &WebRequest,
) -> Result<reqwest::Response, reqwest::Error> {
    let start = Instant::now();
    loop {
        let sent = client
            .request(request.method.clone(), request.url.url().clone())
            .headers(request.headers.clone())
            .body(request.body.clone())
            .send()
            .await;
        let has_time = start.elapsed() + limits::LOCAL_START_PAUSE < request.patience;
        match sent {
            Err(error)
                if has_time && request.url.is_loopback() && is_refused_connection(&error) =>
            {
                tokio::time::sleep(limits::LOCAL_START_PAUSE).await;
            }
            sent => return sent,
        }
    }
}

fn after(redirect: Option<Box<RedirectAnswer>>, error: NetError) -> NetError {
    NetError { redirect, ..error }
}

/// Returns the target of a redirect.
fn location(response: &HttpResponse) -> Option<&str> {
    let is_redirect = matches!(response.status(), 301 | 302 | 303 | 307 | 308);
    response.header(LOCATION.as_str()).filter(|_| is_redirect)
}

fn refused(message: String) -> NetError {
    NetError::new(NetErrorKind::Refused, message)
}
