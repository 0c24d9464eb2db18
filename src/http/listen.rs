//! Listening sockets and their connections.
//!
//! Each connection has a task; [`ListenerTasks::shut_down`] ends all of them.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::exec::cancel::Cancel;
use crate::http::connection::{self, ConnectionTimeouts};
use crate::http::tls::TlsAcceptor;
use karyi_core::limits;

/// Tasks of all sockets.
pub struct ListenerTasks {
    sockets: JoinSet<()>,
    stop: Cancel,
}

/// Called for bytes that are not an HTTP request, with the status of the response, which bypasses
/// the handler. An HTTP/2 preface gets no response, because an HTTP/2 client could not read it.
pub type ParseErrorHook = Arc<dyn Fn(Option<u16>) + Send + Sync>;

/// Everything a connection needs.
#[derive(Clone)]
struct ConnectionContext {
    router: Router,
    on_parse_error: ParseErrorHook,
    tls: Option<TlsAcceptor>,
    timeouts: ConnectionTimeouts,
    stop: Cancel,
    permits: Arc<Semaphore>,
}

/// Binds addresses. With port 0, the first one gets a free port and the others use the same.
///
/// # Errors
/// An address cannot be used; an IPv6 address is skipped if the machine has no IPv6 and another
/// address works.
pub async fn bind(addresses: &[SocketAddr]) -> std::io::Result<Vec<TcpListener>> {
    let mut listeners: Vec<TcpListener> = Vec::new();
    for address in addresses {
        let mut address = *address;
        if let Some(first) = listeners.first().filter(|_| address.port() == 0) {
            address.set_port(first.local_addr()?.port());
        }
        match TcpListener::bind(address).await {
            Ok(listener) => listeners.push(listener),
            Err(error) if address.is_ipv6() && !listeners.is_empty() && is_missing(&error) => {}
            Err(error) => {
                return Err(std::io::Error::new(
                    error.kind(),
                    format!("{address}: {error}"),
                ));
            }
        }
    }
    Ok(listeners)
}

fn is_missing(error: &std::io::Error) -> bool {
    use std::io::ErrorKind;
    matches!(
        error.kind(),
        ErrorKind::AddrNotAvailable | ErrorKind::Unsupported
    ) || error.raw_os_error() == Some(nix::libc::EAFNOSUPPORT)
}

impl ListenerTasks {
    /// Starts to serve.
    #[must_use]
    pub fn start(
        listeners: Vec<TcpListener>,
        router: &Router,
        tls: Option<&TlsAcceptor>,
        on_parse_error: &ParseErrorHook,
        timeouts: ConnectionTimeouts,
    ) -> Self {
        let stop = Cancel::default();
        let shared = ConnectionContext {
            router: router.clone(),
            on_parse_error: Arc::clone(on_parse_error),
            tls: tls.cloned(),
            timeouts,
            stop: stop.clone(),
            permits: Arc::new(Semaphore::new(limits::MAX_CONNECTIONS)),
        };
        let sockets = listeners.into_iter();
        let sockets = sockets.map(|listener| accept(listener, shared.clone()));
        Self {
            sockets: sockets.collect(),
            stop,
        }
    }

    /// Accepts no new connections and waits for requests in progress.
    pub async fn shut_down(mut self) {
        self.stop.cancel();
        while self.sockets.join_next().await.is_some() {}
    }
}

async fn accept(listener: TcpListener, shared: ConnectionContext) {
    let (graceful, mut connections) = (GracefulShutdown::new(), JoinSet::new());
    loop {
        let accepted = tokio::select! {
            () = shared.stop.cancelled() => break,
            Some(_) = connections.join_next() => continue,
            accepted = next(&listener, &shared) => accepted,
        };
        if let Some((stream, permit)) = accepted {
            let (shared, watcher) = (shared.clone(), graceful.watcher());
            connections.spawn(async move {
                connection(stream, shared, watcher).await;
                drop(permit);
            });
        }
    }
    drop(listener);
    let _ = timeout(limits::SHUTDOWN_TIMEOUT, graceful.shutdown()).await;
    connections.shutdown().await;
}

async fn next(
    listener: &TcpListener,
    shared: &ConnectionContext,
) -> Option<(TcpStream, OwnedSemaphorePermit)> {
    let permit = Arc::clone(&shared.permits).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _)) => {
            // Responses are small and complete; Nagle's algorithm would only delay them.
            let _ = stream.set_nodelay(true);
            Some((stream, permit))
        }
        Err(_) => {
            // Probably too many open files: wait until some are closed.
            tokio::time::sleep(limits::ACCEPT_PAUSE).await;
            None
        }
    }
}

async fn connection(stream: TcpStream, shared: ConnectionContext, watcher: Watcher) {
    let (router, timeouts, stop) = (&shared.router, shared.timeouts, &shared.stop);
    let ended = match &shared.tls {
        None => connection::serve(stream, router, timeouts, stop, watcher).await,
        Some(tls) => {
            let handshake = tokio::select! {
                biased;
                handshake = timeout(timeouts.head, tls.accept(stream)) => handshake,
                // Before the handshake is done there is no request in progress.
                () = stop.cancelled() => return,
            };
            match handshake {
                Ok(Ok(stream)) => connection::serve(stream, router, timeouts, stop, watcher).await,
                _ => Ok(()),
            }
        }
    };
    // Other errors concern only the client of this connection.
    match ended {
        Err(error) if error.is_parse_version_h2() => (shared.on_parse_error)(None),
        Err(error) if error.is_parse_too_large() => (shared.on_parse_error)(Some(431)),
        Err(error) if error.is_parse() => (shared.on_parse_error)(Some(400)),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
