//! One connection: its requests one after another, until its client leaves, takes too long, or the
//! server ends.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::{Request, Response};
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper_util::rt::TokioIo;

use crate::http::lines::Lines;
use crate::http::wire::{Line, OverTcp, Peer, Wire};
use karyi_core::limits;

/// What answers the requests of connections.
pub trait App: Clone + Send + Sync + 'static {
    /// What an answer will come from.
    type Answering: Future<Output = Response<Body>> + Send + Unpin;

    /// Answers a request of a client.
    fn answer(&self, request: Request<Incoming>, peer: &Peer) -> Self::Answering;

    /// Whether the answer to a request goes on until its client closes its side.
    fn is_stream(&self, request: &Request<Incoming>) -> bool;
}

/// Serves a connection to its end.
///
/// # Errors
/// What stands against reading it any further.
pub async fn serve(
    stream: impl OverTcp,
    app: &impl App,
    line: &Arc<Line>,
    lines: &Lines,
) -> hyper::Result<()> {
    let service = Answerer {
        app: app.clone(),
        line: Arc::clone(line),
    };
    // Whoever has closed its side may wait for its answer all the same: the wire sees that.
    let connection = http1::Builder::new()
        .half_close(true)
        .max_buf_size(limits::MAX_HEAD_BYTES)
        .serve_connection(TokioIo::new(Wire::new(stream, Arc::clone(line))), service);
    let mut connection = pin!(connection);
    // Calls that go on without it are told that nobody waits for them.
    let _left = Left(line);
    let mut is_told = false;
    poll_fn(|context| {
        line.belongs_to(context);
        if let Poll::Ready(ended) = connection.as_mut().poll(context) {
            return Poll::Ready(ended);
        }
        if lines.is_ending() && !is_told {
            is_told = true;
            connection.as_mut().graceful_shutdown();
            if let Poll::Ready(ended) = connection.as_mut().poll(context) {
                return Poll::Ready(ended);
            }
        }
        // The start of a head is no request under way.
        let is_needless = is_told && !line.is_busy() && !line.is_full();
        match is_needless || line.is_left() || line.is_late(lines.patience()) {
            true => Poll::Ready(Ok(())),
            false => Poll::Pending,
        }
    })
    .await
}

/// Notes at the end of a connection that its client is gone.
struct Left<'l>(&'l Line);

impl Drop for Left<'_> {
    fn drop(&mut self) {
        self.0.peer.leave();
    }
}

/// Answers the requests of one connection.
struct Answerer<A> {
    app: A,
    line: Arc<Line>,
}

impl<A: App> Service<Request<Incoming>> for Answerer<A> {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Answering<A::Answering>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        self.line.begin(self.app.is_stream(&request));
        Answering {
            answering: self.app.answer(request, &self.line.peer),
            line: Arc::clone(&self.line),
        }
    }
}

/// An answer that is being made.
struct Answering<F> {
    answering: F,
    line: Arc<Line>,
}

impl<F: Future<Output = Response<Body>> + Unpin> Future for Answering<F> {
    type Output = Result<Response<Body>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let response = ready!(Pin::new(&mut self.answering).poll(context));
        if response.body().size_hint().exact().is_some() {
            self.line.end();
            return Poll::Ready(Ok(response));
        }
        let busy = Busy(Arc::clone(&self.line));
        Poll::Ready(Ok(
            response.map(|body| Body::new(Streamed { body, _busy: busy }))
        ))
    }
}

/// A line whose answer is on its way.
struct Busy(Arc<Line>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// A body that comes in parts: the answer is there with the last of them.
struct Streamed {
    body: Body,
    _busy: Busy,
}

impl HttpBody for Streamed {
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
