//! What every route needs: the dispatcher, and which hosts and origins are ours.

use std::sync::Arc;
use std::time::Instant;

use axum::http::{HeaderMap, Uri, header};
use tokio::sync::{Mutex, Semaphore};

use crate::exec::cancel::Cancel;
use crate::service::audit_record::CallDetails;
use crate::service::caller::Caller;
use crate::service::principal::Principal;
use crate::service::{CallReply, CallRequest, Dispatcher, Rejection};
use karyi_core::limits;
use karyi_store::StoreError;

/// Whom the server can be reached by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Programs on this machine.
    Loopback,
    /// Anybody who reaches the address or the proxy.
    Public,
}

/// What every route needs.
pub struct AppState {
    /// Where calls are served.
    pub dispatcher: Arc<Dispatcher>,
    /// NameSet in `Host` that are ours, beside those of the loopback.
    pub hosts: Vec<String>,
    /// Origins that may call beside our own.
    pub origins: Vec<String>,
    /// The port we listen on.
    pub port: u16,
    /// What stands before it in an origin of ours.
    pub schemes: &'static [&'static str],
    /// Whom we can be reached by.
    pub reach: Reach,
    /// Calls that may still begin.
    pub calls: Arc<Semaphore>,
    shutdown: Cancel,
    /// When the databases were found to work.
    probed_at: Mutex<Option<Instant>>,
}

impl AppState {
    /// Makes it.
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
            calls: Arc::new(Semaphore::new(limits::MAX_CALLS_IN_FLIGHT)),
            shutdown: Cancel::default(),
            probed_at: Mutex::default(),
        }
    }

    /// Serves a call that was let in, when there is room for one more.
    pub async fn call(
        &self,
        caller: Caller,
        principal: Principal,
        request: CallRequest,
    ) -> CallReply {
        let Ok(slot) = Arc::clone(&self.calls).try_acquire_owned() else {
            return self.refuse_busy(&caller, &principal).await;
        };
        self.dispatcher
            .serve(caller, principal, request, slot)
            .await
    }

    /// As [`Self::call`], for who waits for it to its end.
    pub async fn call_inline(
        &self,
        caller: &mut Caller,
        principal: &Principal,
        request: &mut CallRequest,
    ) -> CallReply {
        match self.calls.try_acquire() {
            Ok(_slot) => self.dispatcher.call(caller, principal, request).await,
            Err(_) => self.refuse_busy(caller, principal).await,
        }
    }

    async fn refuse_busy(&self, caller: &Caller, principal: &Principal) -> CallReply {
        let busy = Rejection::overloaded("too many calls are under way").with_retry_after(1);
        let details = CallDetails::default();
        let refused = self
            .dispatcher
            .refuse(caller, Some(principal), &details, busy);
        CallReply::Refused(refused.await)
    }

    /// Waits until no call is under way; from then on none begins.
    pub async fn wait_for_calls(&self) {
        let all = u32::try_from(limits::MAX_CALLS_IN_FLIGHT).unwrap_or(u32::MAX);
        if let Ok(slots) = self.calls.acquire_many(all).await {
            slots.forget();
        }
    }

    /// Notes that no new work is wanted.
    pub fn begin_shutdown(&self) {
        self.shutdown.cancel();
    }

    /// Whether the server can take new work; the databases are asked once in a while.
    ///
    /// # Errors
    /// What stands against it, in words for everybody.
    pub async fn ready(&self) -> Result<(), &'static str> {
        if self.shutdown.is_cancelled() {
            return Err("the server is shutting down");
        }
        // Whoever asks meanwhile waits for the same answer.
        let mut probed_at = self.probed_at.lock().await;
        let is_fresh = !self.dispatcher.is_failing()
            && probed_at.is_some_and(|since| since.elapsed() < limits::PROBE_EVERY);
        let result = match is_fresh {
            true => Ok(()),
            false => {
                let result = self.dispatcher.probe().await;
                // What fails is asked again: it may be over by then.
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

    /// Returns what is thrown when no new work is wanted.
    #[must_use]
    pub fn shutdown(&self) -> Cancel {
        self.shutdown.clone()
    }

    /// Checks that the head of a request is not too large, that the request is meant for this server, and
    /// does not come from the page of another one that somebody looks at in a browser.
    ///
    /// # Errors
    /// 431, 400 without a host, 403 for another one or another origin.
    pub fn check_head(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Rejection> {
        if size_of_head(uri, headers) > limits::MAX_HEAD_BYTES {
            let detail = format!("the head may have {} bytes", limits::MAX_HEAD_BYTES);
            return Err(Rejection::head_too_large(detail));
        }
        self.check_origin(uri, headers)
    }

    fn check_origin(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Rejection> {
        let mut hosts = headers.get_all(header::HOST).iter();
        let named = hosts.next().and_then(|value| value.to_str().ok());
        if hosts.next().is_some() {
            return Err(Rejection::malformed(
                "the header Host is given more than once",
            ));
        }
        let named = uri
            .authority()
            .map(|authority| authority.as_str())
            .or(named);
        let named = named.ok_or_else(|| Rejection::malformed("expected the header Host"))?;
        let (host, _) = host_and_port(named);
        if !self.is_own_host(host) {
            return Err(Rejection::foreign_origin(
                "the host is not one of this server; add it with --host NAME",
            ));
        }
        let mut origins = headers.get_all(header::ORIGIN).iter();
        let is_ours =
            |value: &str| self.origins.iter().any(|own| own == value) || self.is_own_origin(value);
        match origins.all(|value| value.to_str().is_ok_and(is_ours)) {
            true => Ok(()),
            false => Err(Rejection::foreign_origin(
                "the origin is not allowed; add it with --origin ORIGIN",
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

/// Returns details how many bytes the head of a request has: those between its names and values are
/// counted as if they were as few as possible.
fn size_of_head(uri: &Uri, headers: &HeaderMap) -> usize {
    let path = uri.path_and_query().map_or(0, |path| path.as_str().len());
    let fields = headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len() + ":\r\n".len());
    fields.fold(path, usize::saturating_add)
}

/// Cuts a port off; an address of version 6 stands in brackets.
fn host_and_port(text: &str) -> (&str, Option<u16>) {
    match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()),
        _ => (text, None),
    }
}
