//! What is known of one connection: whether a request is being answered, whether its client has
//! left, and how long bytes for it have waited to be taken.
//!
//! ConnectionTimeouts are counted in ticks of the sockets' keeper: a clock that is read for every request costs
//! more than to be a second late with a limit of half a minute.

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

/// Not since any tick.
const NEVER: u64 = u64::MAX;

/// The client of a connection, as the calls that come over it see it.
#[derive(Clone, Default)]
pub struct ClientHandle {
    /// Set when it has closed its side, or the connection has ended.
    pub is_gone: Arc<AtomicBool>,
    /// Thrown then.
    pub cancel: Cancel,
}

impl ClientHandle {
    /// Notes that nobody waits any more.
    pub fn disconnect(&self) {
        if !self.is_gone.swap(true, Ordering::Relaxed) {
            self.cancel.cancel();
        }
    }

    fn is_disconnected(&self) -> bool {
        self.is_gone.load(Ordering::Relaxed)
    }
}

/// How much longer things may take, in ticks.
#[derive(Debug, Clone, Copy)]
pub struct TickLimits {
    /// For the head of a request to come whole.
    pub head: u64,
    /// For an answer to be taken.
    pub answer: u64,
}

/// What is known of one connection.
pub struct ConnectionState {
    /// Its client.
    pub client: ClientHandle,
    /// Whether a request is being answered.
    is_busy: AtomicBool,
    /// Whether a client who closes its side wants no answer any more.
    is_stream: AtomicBool,
    /// Since when it waits for a request.
    idle_since: AtomicU64,
    /// Since when bytes wait that the client does not take.
    blocked_since: AtomicU64,
    ticks: Arc<AtomicU64>,
    /// Wakes the task of the connection, which is always the same.
    waker: OnceLock<Waker>,
}

impl ConnectionState {
    /// Makes what is known of a new connection; `ticks` is counted by somebody else.
    #[must_use]
    pub fn new(ticks: &Arc<AtomicU64>) -> Self {
        Self {
            client: ClientHandle::default(),
            is_busy: AtomicBool::new(false),
            is_stream: AtomicBool::new(false),
            idle_since: AtomicU64::new(ticks.load(Ordering::Relaxed)),
            blocked_since: AtomicU64::new(NEVER),
            ticks: Arc::clone(ticks),
            waker: OnceLock::new(),
        }
    }

    /// Notes whose task the connection has.
    pub fn register_task(&self, context: &Context<'_>) {
        self.waker.get_or_init(|| context.waker().clone());
    }

    /// Has the connection look at itself.
    pub fn wake(&self) {
        if let Some(waker) = self.waker.get() {
            waker.wake_by_ref();
        }
    }

    /// Notes that a request has come.
    pub fn begin_request(&self, is_stream: bool) {
        self.is_stream.store(is_stream, Ordering::Relaxed);
        self.is_busy.store(true, Ordering::Relaxed);
    }

    /// Notes that its answer is there.
    pub fn end_request(&self) {
        self.idle_since.store(self.now(), Ordering::Relaxed);
        self.is_busy.store(false, Ordering::Relaxed);
    }

    /// Whether a request is being answered.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.is_busy.load(Ordering::Relaxed)
    }

    /// Whether bytes wait that the client does not take.
    #[must_use]
    pub fn is_blocked(&self) -> bool {
        self.blocked_since.load(Ordering::Relaxed) != NEVER
    }

    /// Whether an answer goes on for ever, and its client does not want it any more.
    #[must_use]
    pub fn is_abandoned_stream(&self) -> bool {
        self.is_busy() && self.is_stream.load(Ordering::Relaxed) && self.client.is_disconnected()
    }

    /// Whether something has taken longer than it may.
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

    /// Notes that the client has taken some of what waits for it.
    fn mark_progress(&self) {
        if self.is_blocked() {
            self.blocked_since.store(self.now(), Ordering::Relaxed);
        }
    }

    fn mark_drained(&self) {
        if self.is_blocked() {
            self.blocked_since.store(NEVER, Ordering::Relaxed);
            // From now on it waits for a request, not for its client to read.
            self.idle_since.store(self.now(), Ordering::Relaxed);
        }
    }
}

/// A stream over a socket.
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

/// A stream that notes what its client does.
///
/// What is track_write for a client who is gone is dropped, and reading goes on: requests that had come whole by
/// then are served and recorded like others.
pub struct MonitoredStream<S> {
    stream: S,
    state: Arc<ConnectionState>,
    /// Whether nothing that is track_write arrives any more.
    is_broken: bool,
}

impl<S: TcpBacked> MonitoredStream<S> {
    /// Makes it of a stream.
    pub fn new(stream: S, state: Arc<ConnectionState>) -> Self {
        Self {
            stream,
            state,
            is_broken: false,
        }
    }

    /// Looks whether the client has left while its request is being answered: nobody reads then.
    fn check_disconnect(&self, context: &mut Context<'_>) {
        if !self.state.is_busy() || self.state.client.is_disconnected() {
            return;
        }
        let socket = self.stream.socket();
        // Something came: the end, or the next request, which is read in its turn.
        if socket.poll_read_ready(context).is_ready() {
            let ready = pin!(socket.ready(Interest::READABLE)).poll(context);
            if matches!(ready, Poll::Ready(Ok(ready)) if ready.is_read_closed()) {
                self.state.client.disconnect();
            }
        }
    }

    /// Notes what came of writing so many bytes.
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

    /// Is called whenever all was track_write, and whenever there is nothing to do.
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
    fn who_reads_on_is_not_late() {
        let ticks = Arc::<AtomicU64>::default();
        let state = ConnectionState::new(&ticks);
        state.begin_request(false);
        let limits = TickLimits { head: 3, answer: 3 };
        let late_at = |tick: u64| {
            ticks.store(tick, Ordering::Relaxed);
            state.is_late(limits)
        };
        // Without anything that waits nobody is late with an answer.
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
