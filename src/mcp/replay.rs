//! Sessions that can replay the events of recent calls.
//!
//! A client that lost its connection returns with `Last-Event-ID`. rmcp resumes the stream, but
//! sends nothing if the call has ended meanwhile. This module stores the events of every call until
//! some time after the response.

use std::collections::HashMap;
use std::future::poll_fn;
use std::io::{self, Write};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use axum::http::request::Parts;
use futures_core::Stream;
use rmcp::model::{ClientJsonRpcMessage, GetExtensions, JsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::session::{
    EventStream, RestoreOutcome, ServerSseMessage, SessionId, SessionManager,
};

use crate::mcp::request_ids::ClaimedId;
use karyi_core::limits;

/// Session manager of rmcp, with a cache of recent events.
#[derive(Default)]
pub struct ReplaySessionManager {
    sessions: LocalSessionManager,
    cache: Arc<Mutex<EventCache>>,
}

impl ReplaySessionManager {
    /// Creates a manager; a session without messages ends after `idle`.
    #[must_use]
    pub fn new(idle: Duration) -> Self {
        let mut sessions = LocalSessionManager::default();
        sessions.session_config.keep_alive = Some(idle);
        Self {
            sessions,
            cache: Arc::default(),
        }
    }

    /// Stores the events of a call as they arrive, whether or not a client reads them. The call's id is in use until
    /// its response.
    fn follow(
        &self,
        session: &SessionId,
        (events, mut id): (&Arc<CallEvents>, Option<Arc<ClaimedId>>),
        stream: impl Stream<Item = ServerSseMessage> + Send + 'static,
    ) {
        let (cache, session) = (Arc::clone(&self.cache), Arc::clone(session));
        let events = Arc::clone(events);
        tokio::spawn(async move {
            let (mut stream, mut call) = (pin!(stream), None);
            while let Some(event) = poll_fn(|context| stream.as_mut().poll_next(context)).await {
                if let Some(number) = event.event_id.as_deref().and_then(call_number) {
                    let own = call.get_or_insert_with(|| (session.clone(), number));
                    lock(&cache).add(own, &events);
                }
                if is_answer(&event) {
                    // The client may use the id again once it has read the response.
                    drop(id.take());
                }
                events.add(event);
            }
            events.end();
            if let Some(call) = call {
                lock(&cache).close(call, events.bytes());
            }
        });
    }
}

impl SessionManager for ReplaySessionManager {
    type Error = <LocalSessionManager as SessionManager>::Error;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        self.sessions.create_session().await
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        self.sessions.initialize_session(id, message).await
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        self.sessions.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        lock(&self.cache).forget(id);
        self.sessions.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let claimed = claimed_id(&message);
        let stream = self.sessions.create_stream(id, message).await?;
        let events = Arc::<CallEvents>::default();
        self.follow(id, (&events, claimed), stream);
        Ok(EventReader { events, next: 0 })
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), Self::Error> {
        self.sessions.accept_message(id, message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.sessions.create_standalone_stream(id).await
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let call = call_number(&last_event_id).map(|call| (Arc::clone(id), call));
        let events = call.and_then(|call| lock(&self.cache).find(&call));
        let Some(events) = events else {
            let stream = self.sessions.resume(id, last_event_id).await?;
            return Ok(Box::pin(stream) as EventStream);
        };
        // A stream that was closed before the response continues where it ended.
        if let Some(last) = events.reopen() {
            match self.sessions.resume(id, last).await {
                Ok(stream) => self.follow(id, (&events, None), stream),
                Err(_) => events.end(),
            }
        }
        let next = events.after(&last_event_id);
        Ok(Box::pin(EventReader { events, next }))
    }

    async fn restore_session(
        &self,
        id: SessionId,
    ) -> Result<RestoreOutcome<Self::Transport>, Self::Error> {
        self.sessions.restore_session(id).await
    }
}

/// Returns the claim on the id of a request, which came with its head.
fn claimed_id(message: &ClientJsonRpcMessage) -> Option<Arc<ClaimedId>> {
    let JsonRpcMessage::Request(request) = message else {
        return None;
    };
    let parts = request.request.extensions().get::<Parts>()?;
    parts.extensions.get().cloned()
}

/// Tells whether an event is the response to its call.
fn is_answer(event: &ServerSseMessage) -> bool {
    matches!(
        event.message.as_deref(),
        Some(ServerJsonRpcMessage::Response(_) | ServerJsonRpcMessage::Error(_))
    )
}

/// Returns the number of the call from an event id `INDEX/CALL`; none for events outside of calls.
fn call_number(event: &str) -> Option<u64> {
    event.split_once('/')?.1.parse().ok()
}

/// Session and number of a call.
type Call = (SessionId, u64);

/// Events of the calls of all sessions.
#[derive(Default)]
struct EventCache {
    calls: HashMap<Call, Arc<CallEvents>>,
    /// Ended calls with time and size, oldest first.
    ended: Vec<(Instant, usize, Call)>,
}

impl EventCache {
    fn add(&mut self, call: &Call, events: &Arc<CallEvents>) {
        if !self.calls.contains_key(call) {
            self.calls.insert(call.clone(), Arc::clone(events));
        }
    }

    fn find(&mut self, call: &Call) -> Option<Arc<CallEvents>> {
        self.sweep();
        self.calls.get(call).cloned()
    }

    /// Marks a call as ended.
    fn close(&mut self, call: Call, bytes: usize) {
        self.ended.retain(|(_, _, other)| *other != call);
        self.ended.push((Instant::now(), bytes, call));
        self.sweep();
    }

    fn forget(&mut self, session: &SessionId) {
        self.calls.retain(|(own, _), _| own != session);
        self.ended.retain(|(_, _, (own, _))| own != session);
    }

    /// Removes old calls, and the oldest ones while there are too many.
    fn sweep(&mut self) {
        let mut bytes: usize = self.ended.iter().map(|(_, bytes, _)| bytes).sum();
        let mut count = self.ended.len();
        while let Some((since, size, call)) = self.ended.first() {
            let is_too_much =
                bytes > limits::MAX_REPLAYED_BYTES || count > limits::MAX_REPLAYED_CALLS;
            if !is_too_much && since.elapsed() < limits::REPLAY_TIME {
                return;
            }
            (bytes, count) = (bytes - size, count - 1);
            self.calls.remove(call);
            self.ended.remove(0);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Events of one call.
#[derive(Default)]
struct CallEvents {
    state: Mutex<EventLog>,
}

#[derive(Default)]
struct EventLog {
    events: Vec<ServerSseMessage>,
    /// True if the stream has ended.
    is_over: bool,
    /// Readers that wait for more events.
    readers: Vec<Waker>,
}

impl EventLog {
    fn has_answer(&self) -> bool {
        self.events.last().is_some_and(is_answer)
    }

    fn wake(&mut self) {
        self.readers.drain(..).for_each(Waker::wake);
    }
}

impl CallEvents {
    fn add(&self, event: ServerSseMessage) {
        let mut state = lock(&self.state);
        // A resumed stream may repeat events.
        let is_duplicate =
            |own: &ServerSseMessage| own.event_id.is_some() && own.event_id == event.event_id;
        if !state.events.iter().any(is_duplicate) {
            state.events.push(event);
            state.wake();
        }
    }

    /// Marks the end of the stream.
    fn end(&self) {
        let mut state = lock(&self.state);
        state.is_over = true;
        state.wake();
    }

    /// Reopens a stream that ended without a response; returns the id of its last event.
    fn reopen(&self) -> Option<String> {
        let mut state = lock(&self.state);
        if !state.is_over || state.has_answer() {
            return None;
        }
        let last = state.events.last()?.event_id.clone()?;
        state.is_over = false;
        Some(last)
    }

    /// Returns the index of the event after the one with this id.
    fn after(&self, event: &str) -> usize {
        let state = lock(&self.state);
        let is_it = |own: &ServerSseMessage| own.event_id.as_deref() == Some(event);
        state
            .events
            .iter()
            .position(is_it)
            .map_or(0, |number| number + 1)
    }

    /// Returns the approximate size in memory.
    fn bytes(&self) -> usize {
        let state = lock(&self.state);
        let messages = state
            .events
            .iter()
            .filter_map(|event| event.message.as_deref());
        messages.map(size_of_text).sum()
    }
}

/// Returns the length of a message as JSON.
fn size_of_text(message: &ServerJsonRpcMessage) -> usize {
    struct Counter(usize);
    impl Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(size_of::<ServerSseMessage>());
    // A message that was sent can be serialized.
    let _ = serde_json::to_writer(&mut counter, message);
    counter.0
}

/// Stream of the events of a call.
struct EventReader {
    events: Arc<CallEvents>,
    next: usize,
}

impl Stream for EventReader {
    type Item = ServerSseMessage;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let events = Arc::clone(&self.events);
        let mut state = lock(&events.state);
        if let Some(event) = state.events.get(self.next) {
            self.next += 1;
            return Poll::Ready(Some(event.clone()));
        }
        if state.is_over {
            return Poll::Ready(None);
        }
        if !state
            .readers
            .iter()
            .any(|own| own.will_wake(context.waker()))
        {
            state.readers.push(context.waker().clone());
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(id: &str, answer: Option<&str>) -> ServerSseMessage {
        let mut event = ServerSseMessage::priming(id, Duration::from_secs(3));
        let message = answer.map(|text| {
            let message = serde_json::json!({"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": text}});
            serde_json::from_value(message).unwrap()
        });
        event.message = message.map(Arc::new);
        event
    }

    /// Events of a call, with their messages.
    fn events(list: &[(&str, Option<&str>)]) -> Arc<CallEvents> {
        let events = Arc::<CallEvents>::default();
        list.iter()
            .for_each(|(id, answer)| events.add(event(id, *answer)));
        events
    }

    #[test]
    fn only_a_stream_without_a_response_is_reopened() {
        let cut = events(&[("0/7", None), ("1/7", None)]);
        assert_eq!(cut.reopen(), None);
        cut.end();
        assert_eq!(cut.reopen().as_deref(), Some("1/7"));
        // The stream is open again.
        assert_eq!(cut.reopen(), None);
        cut.add(event("1/7", None));
        cut.add(event("2/7", Some("done")));
        cut.end();
        assert_eq!(cut.reopen(), None);
        assert_eq!(
            ["0/7", "1/7", "2/7", "3/7"].map(|id| cut.after(id)),
            [1, 2, 3, 0]
        );
    }

    #[test]
    fn cached_events_are_limited() {
        let mut cache = EventCache::default();
        let session: SessionId = "s".into();
        let keep = |cache: &mut EventCache, number: u64, text: &str| {
            let id = format!("0/{number}");
            let events = events(&[(&id, Some(text))]);
            let call = (Arc::clone(&session), number);
            cache.add(&call, &events);
            cache.close(call, events.bytes());
        };
        let kept = |cache: &mut EventCache, last: u64| {
            (0..=last)
                .filter(|number| cache.find(&(Arc::clone(&session), *number)).is_some())
                .count()
        };
        let most = limits::MAX_REPLAYED_CALLS;
        for number in 0..most as u64 {
            keep(&mut cache, number, "");
        }
        assert_eq!(kept(&mut cache, most as u64), most);
        // Three of these exceed the limit.
        let large = "x".repeat(limits::MAX_REPLAYED_BYTES / 5 * 2);
        for (more, text, expected) in [
            (0, "", most),
            (1, &large, most),
            (2, &large, most),
            (3, &large, 2),
        ] {
            let number = most as u64 + more;
            keep(&mut cache, number, text);
            assert_eq!(kept(&mut cache, number), expected, "{more}");
        }
        for (since, ..) in &mut cache.ended {
            *since -= limits::REPLAY_TIME;
        }
        cache.sweep();
        assert!(cache.calls.is_empty() && cache.ended.is_empty());
    }
}
