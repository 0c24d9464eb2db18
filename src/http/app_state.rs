//! State shared by all routes: the dispatcher, allowed hosts and origins, and readiness.

use std::sync::Arc;
use std::time::Instant;

use axum::http::{HeaderMap, Uri, header};
use tokio::sync::Mutex;

use crate::exec::cancel::Cancel;
use crate::service::{Dispatcher, Rejection};
use karyi_core::limits;
use karyi_store::StoreError;

/// Network reach of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Only programs on this machine.
    Loopback,
    /// Everyone who reaches the address or the proxy.
    Public,
}

/// State shared by all routes.
pub struct AppState {
    /// Runs the calls.
    pub dispatcher: Arc<Dispatcher>,
    /// Allowed names in `Host`, besides those of the loopback.
    pub hosts: Vec<String>,
    /// Allowed origins, besides the server's own.
    pub origins: Vec<String>,
    /// Port of the server.
    pub port: u16,
    /// URL schemes of the server's own origins.
    pub schemes: &'static [&'static str],
    /// Network reach of the server.
    pub reach: Reach,
    /// Interrupted when the shutdown starts: readiness fails. Cancelled when it waits no longer for calls.
    pub shutdown: Cancel,
    /// Time of the last successful probe of the databases.
    probed_at: Mutex<Option<Instant>>,
}

impl AppState {
    /// Creates the state of a running server.
    #[must_use]
    pub fn new(
        dispatcher: Arc<Dispatcher>,
        reach: Reach,
        port: u16,
        hosts: Vec<String>,
        origins: Vec<String>,
    ) -> Self {
        Self {
            dispatcher,
            hosts,
            origins,
            port,
            schemes: &["http"],
            reach,
            shutdown: Cancel::default(),
            probed_at: Mutex::default(),
        }
    }

    /// Checks that the server can accept calls; probes the databases from time to time.
    ///
    /// # Errors
    /// The reason why it cannot, fit for everyone to read.
    pub async fn ready(&self) -> Result<(), &'static str> {
        if self.shutdown.is_interrupted() {
            return Err("the server is shutting down");
        }
        // Concurrent requests wait for the same probe.
        let mut probed_at = self.probed_at.lock().await;
        let is_fresh = !self.dispatcher.audit.is_failing()
            && probed_at.is_some_and(|since| since.elapsed() < limits::PROBE_EVERY);
        let result = match is_fresh {
            true => Ok(()),
            false => {
                let result = self.dispatcher.probe().await;
                // A failure is not cached, because it may be over at the next probe.
                *probed_at = result.is_ok().then(Instant::now);
                result
            }
        };
        result.map_err(|error| match error {
            StoreError::Full => "the disk is full",
            StoreError::Busy => "a database is locked by another program",
            _ => "a database does not work",
        })
    }

    /// Checks that the head of a request is not too large, and that host and origin are allowed.
    /// The origin protects against web pages of other sites in a browser on this machine.
    ///
    /// # Errors
    /// 431; 400 without a host; 403 for another host or origin.
    pub fn check_head(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Rejection> {
        if size_of_head(uri, headers) > limits::MAX_HEAD_BYTES {
            let detail = format!(
                "the head of a request is limited to {} bytes",
                limits::MAX_HEAD_BYTES
            );
            return Err(Rejection::head_too_large(detail));
        }
        self.check_origin(uri, headers)
    }

    fn check_origin(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Rejection> {
        let mut hosts = headers.get_all(header::HOST).iter();
        let named = hosts.next().and_then(|value| value.to_str().ok());
        if hosts.next().is_some() {
            return Err(Rejection::malformed(
                "the header Host occurs more than once",
            ));
        }
        let named = uri
            .authority()
            .map(|authority| authority.as_str())
            .or(named);
        let named = named.ok_or_else(|| Rejection::malformed("the header Host is missing"))?;
        let (host, _) = host_and_port(named);
        if !self.is_own_host(host) {
            return Err(Rejection::foreign_origin(
                "the host is not allowed; allow it with --host NAME",
            ));
        }
        let mut origins = headers.get_all(header::ORIGIN).iter();
        let is_ours =
            |value: &str| self.origins.iter().any(|own| own == value) || self.is_own_origin(value);
        match origins.all(|value| value.to_str().is_ok_and(is_ours)) {
            true => Ok(()),
            false => Err(Rejection::foreign_origin(
                "the origin is not allowed; allow it with --origin ORIGIN",
            )),
        }
    }

    fn is_own_host(&self, host: &str) -> bool {
        let own = ["localhost", "127.0.0.1", "[::1]"];
        let mut all = own.into_iter().chain(self.hosts.iter().map(String::as_str));
        all.any(|own| own.eq_ignore_ascii_case(host))
    }

    fn is_own_origin(&self, origin: &str) -> bool {
        let Some((scheme, rest)) = origin.split_once("://") else {
            return false;
        };
        let (host, port) = host_and_port(rest);
        let usual = match scheme {
            "http" => 80,
            _ => 443,
        };
        self.schemes.contains(&scheme)
            && self.is_own_host(host)
            && port.unwrap_or(usual) == self.port
    }
}

/// Returns a lower bound of the size of a request's head.
fn size_of_head(uri: &Uri, headers: &HeaderMap) -> usize {
    let path = uri.path_and_query().map_or(0, |path| path.as_str().len());
    let fields = headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len() + ":\r\n".len());
    fields.fold(path, usize::saturating_add)
}

/// Splits off the port; an IPv6 address is in brackets.
fn host_and_port(text: &str) -> (&str, Option<u16>) {
    match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()),
        _ => (text, None),
    }
}
