//! What is known of one connection: whether a request is being answered, whether its client has
//! left, and how long bytes for it have waited to be taken.
//!
//! Times are counted in ticks of the sockets' keeper: a clock that is read for every request costs
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
pub struct Peer {
    /// Set when it has closed its side, or the connection has ended.
    pub is_gone: Arc<AtomicBool>,
    /// Thrown then.
    pub cancel: Cancel,
}

impl Peer {
    /// Notes that nobody waits any more.
    pub fn leave(&self) {
        if !self.is_gone.swap(true, Ordering::Relaxed) {
            self.cancel.cancel();
        }
    }

    fn has_left(&self) -> bool {
        self.is_gone.load(Ordering::Relaxed)
    }
}

/// How much longer things may take, in ticks.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// For the head of a request to come whole.
    pub head: u64,
    /// For an answer to be taken.
    pub answer: u64,
}

/// What is known of one connection.
pub struct Line {
    /// Its client.
    pub peer: Peer,
    /// Whether a request is being answered.
    is_busy: AtomicBool,
    /// Whether a client who closes its side wants no answer any more.
    is_stream: AtomicBool,
    /// Since when it waits for a request.
    idle_since: AtomicU64,
    /// Since when bytes wait that the client does not take.
    full_since: AtomicU64,
    ticks: Arc<AtomicU64>,
    /// Wakes the task of the connection, which is always the same.
    waker: OnceLock<Waker>,
}

impl Line {
    /// Makes what is known of a new connection; `ticks` is counted by somebody else.
    #[must_use]
    pub fn new(ticks: &Arc<AtomicU64>) -> Self {
        Self {
            peer: Peer::default(),
            is_busy: AtomicBool::new(false),
            is_stream: AtomicBool::new(false),
            idle_since: AtomicU64::new(ticks.load(Ordering::Relaxed)),
            full_since: AtomicU64::new(NEVER),
            ticks: Arc::clone(ticks),
            waker: OnceLock::new(),
        }
    }

    /// Notes whose task the connection has.
    pub fn belongs_to(&self, context: &Context<'_>) {
        self.waker.get_or_init(|| context.waker().clone());
    }

    /// Has the connection look at itself.
    pub fn wake(&self) {
        if let Some(waker) = self.waker.get() {
            waker.wake_by_ref();
        }
    }

    /// Notes that a request has come.
    pub fn begin(&self, is_stream: bool) {
        self.is_stream.store(is_stream, Ordering::Relaxed);
        self.is_busy.store(true, Ordering::Relaxed);
    }

    /// Notes that its answer is there.
    pub fn end(&self) {
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
    pub fn is_full(&self) -> bool {
        self.full_since.load(Ordering::Relaxed) != NEVER
    }

    /// Whether an answer goes on for ever, and its client does not want it any more.
    #[must_use]
    pub fn is_left(&self) -> bool {
        self.is_busy() && self.is_stream.load(Ordering::Relaxed) && self.peer.has_left()
    }

    /// Whether something has taken longer than it may.
    #[must_use]
    pub fn is_late(&self, patience: Patience) -> bool {
        let is_over = |since: u64, most: u64| self.now().saturating_sub(since) > most;
        match self.full_since.load(Ordering::Relaxed) {
            NEVER => {
                let idle = self.idle_since.load(Ordering::Relaxed);
                !self.is_busy() && is_over(idle, patience.head)
            }
            since => is_over(since, patience.answer),
        }
    }

    fn now(&self) -> u64 {
        self.ticks.load(Ordering::Relaxed)
    }

    fn fill(&self) {
        let now = self.now();
        let (set, read) = (Ordering::Relaxed, Ordering::Relaxed);
        let _ = self.full_since.compare_exchange(NEVER, now, set, read);
    }

    /// Notes that the client has taken some of what waits for it.
    fn go_on(&self) {
        if self.is_full() {
            self.full_since.store(self.now(), Ordering::Relaxed);
        }
    }

    fn drain(&self) {
        if self.is_full() {
            self.full_since.store(NEVER, Ordering::Relaxed);
            // From now on it waits for a request, not for its client to read.
            self.idle_since.store(self.now(), Ordering::Relaxed);
        }
    }
}

/// A stream over a socket.
pub trait OverTcp: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// Returns the socket.
    fn socket(&self) -> &TcpStream;
}

impl OverTcp for TcpStream {
    fn socket(&self) -> &TcpStream {
        self
    }
}

#[cfg(feature = "serve")]
impl OverTcp for TlsStream<TcpStream> {
    fn socket(&self) -> &TcpStream {
        self.get_ref().0
    }
}

/// A stream that notes what its client does.
///
/// What is written for a client who is gone is dropped, and reading goes on: requests that had come whole by
/// then are served and recorded like others.
pub struct Wire<S> {
    stream: S,
    line: Arc<Line>,
    /// Whether nothing that is written arrives any more.
    is_cut: bool,
}

impl<S: OverTcp> Wire<S> {
    /// Makes it of a stream.
    pub fn new(stream: S, line: Arc<Line>) -> Self {
        Self {
            stream,
            line,
            is_cut: false,
        }
    }

    /// Looks whether the client has left while its request is being answered: nobody reads then.
    fn watch(&self, context: &mut Context<'_>) {
        if !self.line.is_busy() || self.line.peer.has_left() {
            return;
        }
        let socket = self.stream.socket();
        // Something came: the end, or the next request, which is read in its turn.
        if socket.poll_read_ready(context).is_ready() {
            let ready = pin!(socket.ready(Interest::READABLE)).poll(context);
            if matches!(ready, Poll::Ready(Ok(ready)) if ready.is_read_closed()) {
                self.line.peer.leave();
            }
        }
    }

    /// Notes what came of writing so many bytes.
    fn written(
        &mut self,
        polled: Poll<io::Result<usize>>,
        bytes: usize,
    ) -> Poll<io::Result<usize>> {
        match polled {
            Poll::Pending => self.line.fill(),
            Poll::Ready(Ok(_)) => self.line.go_on(),
            Poll::Ready(Err(_)) => {
                self.is_cut = true;
                self.line.drain();
                self.line.peer.leave();
                return Poll::Ready(Ok(bytes));
            }
        }
        polled
    }
}

impl<S: OverTcp> AsyncRead for Wire<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: OverTcp> AsyncWrite for Wire<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.is_cut {
            return Poll::Ready(Ok(bytes.len()));
        }
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.written(polled, bytes.len())
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let bytes = || parts.iter().map(|part| part.len()).sum();
        if self.is_cut {
            return Poll::Ready(Ok(bytes()));
        }
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        match polled {
            Poll::Ready(Err(_)) => self.written(polled, bytes()),
            _ => self.written(polled, 0),
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// Is called whenever all was written, and whenever there is nothing to do.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.is_cut {
            return Poll::Ready(Ok(()));
        }
        let polled = Pin::new(&mut self.stream).poll_flush(context);
        match polled {
            Poll::Ready(_) => self.line.drain(),
            Poll::Pending => self.line.fill(),
        }
        self.watch(context);
        polled
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.is_cut {
            return Poll::Ready(Ok(()));
        }
        let polled = Pin::new(&mut self.stream).poll_shutdown(context);
        if polled.is_pending() {
            self.line.fill();
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
        let line = Line::new(&ticks);
        line.begin(false);
        let patience = Patience { head: 3, answer: 3 };
        let late_at = |tick: u64| {
            ticks.store(tick, Ordering::Relaxed);
            line.is_late(patience)
        };
        // Without anything that waits nobody is late with an answer.
        line.go_on();
        assert!(!late_at(9));
        line.fill();
        assert!(!late_at(12));
        line.fill();
        assert!(late_at(13));
        line.go_on();
        assert!(!late_at(16));
        assert!(late_at(17));
        line.drain();
        assert!(!late_at(99));
    }
}
