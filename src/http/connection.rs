//! Serves one connection until its client disconnects or takes too long, or the server shuts down.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::{Request, Response};
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper_util::rt::TokioIo;
use tower::ServiceExt;
use tower::util::Oneshot;

use crate::http::connection_pool::ConnectionPool;
use crate::http::connection_state::{ConnectionState, MonitoredStream, TcpBacked};
use karyi_core::limits;

/// Serves a connection to its end.
///
/// # Errors
/// The connection cannot be read any further.
pub async fn serve(
    stream: impl TcpBacked,
    router: &Router,
    connection_state: &Arc<ConnectionState>,
    pool: &ConnectionPool,
) -> hyper::Result<()> {
    let service = ConnectionService {
        router: router.clone(),
        connection_state: Arc::clone(connection_state),
    };
    // A client that has closed its side may still wait for its response; [`MonitoredStream`] checks
    // that.
    let connection = http1::Builder::new()
        .half_close(true)
        .max_buf_size(limits::MAX_HEAD_BYTES)
        .serve_connection(
            TokioIo::new(MonitoredStream::new(stream, Arc::clone(connection_state))),
            service,
        );
    let mut connection = pin!(connection);
    // Tells calls that outlive the connection that their client is gone.
    let _guard = DisconnectOnDrop(connection_state);
    let mut is_shutdown_sent = false;
    poll_fn(|context| {
        connection_state.register_task(context);
        if let Poll::Ready(ended) = connection.as_mut().poll(context) {
            return Poll::Ready(ended);
        }
        if pool.is_ending() && !is_shutdown_sent {
            is_shutdown_sent = true;
            connection.as_mut().graceful_shutdown();
            if let Poll::Ready(ended) = connection.as_mut().poll(context) {
                return Poll::Ready(ended);
            }
        }
        // A request whose head is incomplete does not count as in progress.
        let is_idle =
            is_shutdown_sent && !connection_state.is_busy() && !connection_state.is_blocked();
        match is_idle
            || connection_state.is_abandoned_stream()
            || connection_state.is_late(pool.limits())
        {
            true => Poll::Ready(Ok(())),
            false => Poll::Pending,
        }
    })
    .await
}

/// Marks the client as disconnected at the end of the connection.
struct DisconnectOnDrop<'l>(&'l ConnectionState);

impl Drop for DisconnectOnDrop<'_> {
    fn drop(&mut self) {
        self.0.client.disconnect();
    }
}

/// Serves the requests of one connection, and tracks whether one is in progress.
struct ConnectionService {
    router: Router,
    connection_state: Arc<ConnectionState>,
}

impl Service<Request<Incoming>> for ConnectionService {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = TrackedResponse;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        self.connection_state.begin_request();
        let mut request = request.map(Body::new);
        let client = self.connection_state.client.clone();
        request.extensions_mut().insert(client);
        TrackedResponse {
            response: Box::pin(self.router.clone().oneshot(request)),
            connection_state: Arc::clone(&self.connection_state),
        }
    }
}

/// Response whose request is in progress until its body was sent.
struct TrackedResponse {
    response: Pin<Box<Oneshot<Router, Request<Body>>>>,
    connection_state: Arc<ConnectionState>,
}

impl Future for TrackedResponse {
    type Output = Result<Response<Body>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Ok(response) = ready!(self.response.as_mut().poll(context));
        if response.body().size_hint().exact().is_some() {
            self.connection_state.end_request();
            return Poll::Ready(Ok(response));
        }
        let busy = BusyGuard(Arc::clone(&self.connection_state));
        Poll::Ready(Ok(
            response.map(|body| Body::new(TrackedBody { body, _busy: busy }))
        ))
    }
}

/// Marks the request as ended when it is dropped.
struct BusyGuard(Arc<ConnectionState>);

impl Drop for BusyGuard {
    fn drop(&mut self) {
        self.0.end_request();
    }
}

/// Streamed body; the request ends with it.
struct TrackedBody {
    body: Body,
    _busy: BusyGuard,
}

impl HttpBody for TrackedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
