//! Serves one connection with hyper, and watches its client.
//!
//! hyper reads requests and writes responses. `ClientStream` adds what hyper alone does not do: a
//! client that closes only its sending side gets its response, calls learn that their client is gone,
//! and a client that does not read is dropped.

use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::Watcher;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep_until};
#[cfg(feature = "serve")]
use tokio_rustls::server::TlsStream;
use tower::ServiceExt;

use crate::exec::cancel::{Cancel, CancelOnDrop};
use karyi_core::limits;

/// Timeouts of connections.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionTimeouts {
    /// For the head of a request to arrive.
    pub head: Duration,
    /// For the client to read some of a response.
    pub answer: Duration,
    /// The same during shutdown.
    pub last_answer: Duration,
}

impl Default for ConnectionTimeouts {
    fn default() -> Self {
        Self {
            head: limits::HEAD_TIMEOUT,
            answer: limits::ANSWER_TIMEOUT,
            last_answer: limits::LAST_ANSWER_TIMEOUT,
        }
    }
}

/// Client of a connection, as its calls see it.
#[derive(Clone, Default)]
pub struct ClientHandle {
    /// Cancelled when the client has closed its side or the connection has ended.
    pub gone: Cancel,
    state: Arc<RequestState>,
}

#[derive(Default)]
struct RequestState {
    /// True while a request has no response.
    is_busy: AtomicBool,
    /// True if the response to the request is a stream, which ends when the client closes its side.
    is_stream: AtomicBool,
}

impl ClientHandle {
    /// Ends the connection when the client closes its side before the response to its request is complete.
    pub fn expect_stream(&self) {
        self.state.is_stream.store(true, Ordering::Relaxed);
    }

    fn begin_request(&self) {
        self.state.is_stream.store(false, Ordering::Relaxed);
        self.state.is_busy.store(true, Ordering::Relaxed);
    }

    fn is_busy(&self) -> bool {
        self.state.is_busy.load(Ordering::Relaxed)
    }
}

/// Serves a connection until its client disconnects or takes too long, or the server shuts down:
/// `stop` is cancelled before `watcher` is told.
///
/// # Errors
/// The connection cannot be read or written any further.
pub async fn serve(
    stream: impl TcpBacked,
    router: &Router,
    timeouts: ConnectionTimeouts,
    stop: &Cancel,
    watcher: Watcher,
) -> hyper::Result<()> {
    let client = ClientHandle::default();
    let service = service_fn(|mut request: Request<Incoming>| {
        let (router, client) = (router.clone(), client.clone());
        async move {
            client.begin_request();
            request.extensions_mut().insert(client.clone());
            let response = router.oneshot(request).await;
            client.state.is_busy.store(false, Ordering::Relaxed);
            response
        }
    });
    let stream = ClientStream {
        stream,
        client: client.clone(),
        timeouts,
        stop: stop.flag(),
        blocked: None,
        next_look: None,
        is_broken: false,
    };
    let connection = http1::Builder::new()
        .half_close(true)
        .timer(TokioTimer::new())
        .header_read_timeout(timeouts.head)
        .max_buf_size(limits::MAX_HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    // Tells calls that outlive the connection that their client is gone.
    let _gone = CancelOnDrop(client.gone.clone());
    watcher.watch(connection).await
}

/// Stream on top of a TCP socket.
pub trait TcpBacked: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// Returns the socket.
    fn socket(&self) -> &TcpStream;
}

impl TcpBacked for TcpStream {
    fn socket(&self) -> &TcpStream {
        self
    }
}

#[cfg(feature = "serve")]
impl TcpBacked for TlsStream<TcpStream> {
    fn socket(&self) -> &TcpStream {
        self.get_ref().0
    }
}

/// Stream that tracks what its client does.
///
/// Output for a client that is gone is dropped, and reading continues: requests that had already
/// arrived are served and recorded like others.
struct ClientStream<S> {
    stream: S,
    client: ClientHandle,
    timeouts: ConnectionTimeouts,
    /// Set when the server shuts down.
    stop: Arc<AtomicBool>,
    /// Time since which the client reads nothing, and the timer that ends its connection.
    blocked: Option<(Instant, Pin<Box<Sleep>>)>,
    /// Timer for the next look at a client whose next request hides whether it is gone.
    next_look: Option<Pin<Box<Sleep>>>,
    /// True if output no longer reaches the client.
    is_broken: bool,
}

impl<S: TcpBacked> ClientStream<S> {
    /// Drops output that cannot be sent, and limits the time in which none can.
    fn checked(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
        bytes: usize,
    ) -> Poll<io::Result<usize>> {
        match written {
            Poll::Pending => return self.poll_blocked(context).map(Err),
            Poll::Ready(Ok(_)) => {}
            Poll::Ready(Err(_)) => {
                self.is_broken = true;
                self.client.gone.cancel();
            }
        }
        self.blocked = None;
        match self.is_broken {
            true => Poll::Ready(Ok(bytes)),
            false => written,
        }
    }

    /// Waits until the client has read nothing for too long.
    fn poll_blocked(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        let limit = match self.stop.load(Ordering::Relaxed) {
            true => self.timeouts.last_answer,
            false => self.timeouts.answer,
        };
        let (since, timer) = self.blocked.get_or_insert_with(|| {
            let now = Instant::now();
            (now, Box::pin(sleep_until(now + limit)))
        });
        if timer.deadline() > *since + limit {
            timer.as_mut().reset(*since + limit);
        }
        ready!(timer.as_mut().poll(context));
        Poll::Ready(io::ErrorKind::TimedOut.into())
    }

    /// Looks whether the client has closed its side, because nothing reads the socket while a request
    /// is in progress.
    fn look_at_client(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        let is_stream = self.client.state.is_stream.load(Ordering::Relaxed);
        let socket = self.stream.socket();
        // The socket has the end of the stream or the next request, which is read later.
        if !self.client.gone.is_cancelled() && socket.poll_read_ready(context).is_ready() {
            let ready = pin!(socket.ready(Interest::READABLE)).poll(context);
            if matches!(ready, Poll::Ready(Ok(ready)) if ready.is_read_closed()) {
                self.client.gone.cancel();
            } else if self.client.is_busy() || is_stream {
                // The end behind the next request wakes nothing.
                let next = || Instant::now() + limits::CONNECTION_TICK;
                let timer = self
                    .next_look
                    .get_or_insert_with(|| Box::pin(sleep_until(next())));
                while timer.as_mut().poll(context).is_ready() {
                    timer.as_mut().reset(next());
                }
            }
        }
        match is_stream && self.client.gone.is_cancelled() {
            true => Err(io::ErrorKind::ConnectionAborted.into()),
            false => Ok(()),
        }
    }
}

impl<S: TcpBacked> AsyncRead for ClientStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // At the end, a request whose head is incomplete is not waited for.
        if self.stop.load(Ordering::Relaxed) && !self.client.is_busy() {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: TcpBacked> AsyncWrite for ClientStream<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let bytes = parts.iter().map(|part| part.len()).sum();
        let written = match self.is_broken {
            true => Poll::Ready(Ok(bytes)),
            false => Pin::new(&mut self.stream).poll_write_vectored(context, parts),
        };
        self.checked(context, written, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// hyper calls this after every write and whenever it is idle.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = match self.is_broken {
            true => Poll::Ready(Ok(0)),
            false => Pin::new(&mut self.stream)
                .poll_flush(context)
                .map_ok(|()| 0),
        };
        self.look_at_client(context)?;
        self.checked(context, flushed, 0).map_ok(drop)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let closed = match self.is_broken {
            true => Poll::Ready(Ok(0)),
            false => Pin::new(&mut self.stream)
                .poll_shutdown(context)
                .map_ok(|()| 0),
        };
        self.checked(context, closed, 0).map_ok(drop)
    }
}
