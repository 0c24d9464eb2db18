//! State of one connection: whether a request is in progress, whether its client has disconnected,
//! and how long output has been blocked.
//!
//! Times are counted in ticks of [`ConnectionPool`](crate::http::connection_pool::ConnectionPool).
//! Reading a clock for every request would cost more than the precision is worth.

use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
#[cfg(feature = "serve")]
use tokio_rustls::server::TlsStream;

use crate::exec::cancel::Cancel;

/// Value of a time that is not set.
const NEVER: u64 = u64::MAX;

/// Client of a connection, as its calls see it.
#[derive(Clone, Default)]
pub struct ClientHandle {
    /// Cancelled when the client has closed its side or the connection has ended.
    pub gone: Cancel,
    /// True if the response to the request in progress is a stream, which ends when the client closes its side.
    is_stream: Arc<AtomicBool>,
}

impl ClientHandle {
    /// Marks the client as disconnected.
    pub fn disconnect(&self) {
        self.gone.cancel();
    }

    /// Ends the connection when the client closes its side before the response to its request is complete.
    pub fn expect_stream(&self) {
        self.is_stream.store(true, Ordering::Relaxed);
    }

    fn is_disconnected(&self) -> bool {
        self.gone.is_cancelled()
    }
}

/// Limits of time, in ticks.
#[derive(Debug, Clone, Copy)]
pub struct TickLimits {
    /// For the head of a request to arrive.
    pub head: u64,
    /// For the client to read a response.
    pub answer: u64,
}

/// State of one connection.
pub struct ConnectionState {
    /// Client of the connection.
    pub client: ClientHandle,
    /// True while a request is in progress.
    is_busy: AtomicBool,
    /// Tick since which the connection waits for a request.
    idle_since: AtomicU64,
    /// Tick since which output is blocked.
    blocked_since: AtomicU64,
    ticks: Arc<AtomicU64>,
    /// Waker of the connection's task, which never changes.
    waker: OnceLock<Waker>,
}

impl ConnectionState {
    /// Creates the state of a new connection; the pool advances `ticks`.
    #[must_use]
    pub fn new(ticks: &Arc<AtomicU64>) -> Self {
        Self {
            client: ClientHandle::default(),
            is_busy: AtomicBool::new(false),
            idle_since: AtomicU64::new(ticks.load(Ordering::Relaxed)),
            blocked_since: AtomicU64::new(NEVER),
            ticks: Arc::clone(ticks),
            waker: OnceLock::new(),
        }
    }

    /// Stores the waker of the connection's task.
    pub fn register_task(&self, context: &Context<'_>) {
        self.waker.get_or_init(|| context.waker().clone());
    }

    /// Wakes the connection's task to check its state.
    pub fn wake(&self) {
        if let Some(waker) = self.waker.get() {
            waker.wake_by_ref();
        }
    }

    /// Marks the start of a request.
    pub fn begin_request(&self) {
        self.client.is_stream.store(false, Ordering::Relaxed);
        self.is_busy.store(true, Ordering::Relaxed);
    }

    /// Marks the end of a request.
    pub fn end_request(&self) {
        self.idle_since.store(self.now(), Ordering::Relaxed);
        self.is_busy.store(false, Ordering::Relaxed);
    }

    /// Tells whether a request is in progress.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.is_busy.load(Ordering::Relaxed)
    }

    /// Tells whether output is blocked because the client does not read.
    #[must_use]
    pub fn is_blocked(&self) -> bool {
        self.blocked_since.load(Ordering::Relaxed) != NEVER
    }

    /// Tells whether the client of a streamed response has disconnected.
    #[must_use]
    pub fn is_abandoned_stream(&self) -> bool {
        self.is_busy()
            && self.client.is_stream.load(Ordering::Relaxed)
            && self.client.is_disconnected()
    }

    /// Tells whether a limit is exceeded.
    #[must_use]
    pub fn is_late(&self, limits: TickLimits) -> bool {
        let is_over = |since: u64, most: u64| self.now().saturating_sub(since) > most;
        match self.blocked_since.load(Ordering::Relaxed) {
            NEVER => {
                let idle = self.idle_since.load(Ordering::Relaxed);
                !self.is_busy() && is_over(idle, limits.head)
            }
            since => is_over(since, limits.answer),
        }
    }

    fn now(&self) -> u64 {
        self.ticks.load(Ordering::Relaxed)
    }

    fn mark_blocked(&self) {
        let now = self.now();
        let (set, read) = (Ordering::Relaxed, Ordering::Relaxed);
        let _ = self.blocked_since.compare_exchange(NEVER, now, set, read);
    }

    /// Restarts the timeout because the client has read some output.
    fn mark_progress(&self) {
        if self.is_blocked() {
            self.blocked_since.store(self.now(), Ordering::Relaxed);
        }
    }

    fn mark_drained(&self) {
        if self.is_blocked() {
            self.blocked_since.store(NEVER, Ordering::Relaxed);
            // From now on the connection waits for a request, not for the client to read.
            self.idle_since.store(self.now(), Ordering::Relaxed);
        }
    }
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
pub struct MonitoredStream<S> {
    stream: S,
    state: Arc<ConnectionState>,
    /// True if output no longer reaches the client.
    is_broken: bool,
}

impl<S: TcpBacked> MonitoredStream<S> {
    /// Wraps a stream.
    pub fn new(stream: S, state: Arc<ConnectionState>) -> Self {
        Self {
            stream,
            state,
            is_broken: false,
        }
    }

    /// Checks for a disconnect while a request is in progress, because nothing reads the socket
    /// then.
    fn check_disconnect(&self, context: &mut Context<'_>) {
        if !self.state.is_busy() || self.state.client.is_disconnected() {
            return;
        }
        let socket = self.stream.socket();
        // The socket has the end of the stream or the next request, which is read later.
        if socket.poll_read_ready(context).is_ready() {
            let ready = pin!(socket.ready(Interest::READABLE)).poll(context);
            if matches!(ready, Poll::Ready(Ok(ready)) if ready.is_read_closed()) {
                self.state.client.disconnect();
            }
        }
    }

    /// Updates the state after a write of this many bytes.
    fn track_write(
        &mut self,
        polled: Poll<io::Result<usize>>,
        bytes: usize,
    ) -> Poll<io::Result<usize>> {
        match polled {
            Poll::Pending => self.state.mark_blocked(),
            Poll::Ready(Ok(_)) => self.state.mark_progress(),
            Poll::Ready(Err(_)) => {
                self.is_broken = true;
                self.state.mark_drained();
                self.state.client.disconnect();
                return Poll::Ready(Ok(bytes));
            }
        }
        polled
    }
}

impl<S: TcpBacked> AsyncRead for MonitoredStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: TcpBacked> AsyncWrite for MonitoredStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.is_broken {
            return Poll::Ready(Ok(bytes.len()));
        }
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.track_write(polled, bytes.len())
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let bytes = || parts.iter().map(|part| part.len()).sum();
        if self.is_broken {
            return Poll::Ready(Ok(bytes()));
        }
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        match polled {
            Poll::Ready(Err(_)) => self.track_write(polled, bytes()),
            _ => self.track_write(polled, 0),
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// hyper calls this after every write and whenever it is idle.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.is_broken {
            return Poll::Ready(Ok(()));
        }
        let polled = Pin::new(&mut self.stream).poll_flush(context);
        match polled {
            Poll::Ready(_) => self.state.mark_drained(),
            Poll::Pending => self.state.mark_blocked(),
        }
        self.check_disconnect(context);
        polled
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.is_broken {
            return Poll::Ready(Ok(()));
        }
        let polled = Pin::new(&mut self.stream).poll_shutdown(context);
        if polled.is_pending() {
            self.state.mark_blocked();
        }
        polled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_restarts_the_timeout() {
        let ticks = Arc::<AtomicU64>::default();
        let state = ConnectionState::new(&ticks);
        state.begin_request();
        let limits = TickLimits { head: 3, answer: 3 };
        let late_at = |tick: u64| {
            ticks.store(tick, Ordering::Relaxed);
            state.is_late(limits)
        };
        // Without blocked output no response is late.
        state.mark_progress();
        assert!(!late_at(9));
        state.mark_blocked();
        assert!(!late_at(12));
        state.mark_blocked();
        assert!(late_at(13));
        state.mark_progress();
        assert!(!late_at(16));
        assert!(late_at(17));
        state.mark_drained();
        assert!(!late_at(99));
    }
}
