//! Owners and limits of the sessions that begin with `initialize`.
//!
//! A session belongs to the principal who began it; for everyone else it does not exist.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::header::HeaderName;
use axum::http::{HeaderMap, HeaderValue};
use rmcp::transport::streamable_http_server::session::SessionManager;
use serde::Deserialize;

use crate::mcp::replay::ReplaySessionManager;
use crate::service::Rejection;
use karyi_core::limits;

/// Header with the session id.
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// Id that replaces the id of someone else's session; no session has it.
const UNKNOWN_ID: HeaderValue = HeaderValue::from_static("none");

/// Sessions of all callers.
#[derive(Default)]
pub struct Sessions {
    manager: Arc<ReplaySessionManager>,
    table: Mutex<SessionTable>,
}

#[derive(Default)]
struct SessionTable {
    /// Principals by session id.
    owners: HashMap<String, String>,
    /// Number of sessions that each principal is beginning.
    opening: HashMap<String, usize>,
}

impl SessionTable {
    fn count_of(&self, principal: &str) -> usize {
        let own = self.owners.values().filter(|owner| *owner == principal);
        own.count() + self.opening.get(principal).copied().unwrap_or(0)
    }

    fn total(&self) -> usize {
        self.owners.len() + self.opening.values().sum::<usize>()
    }
}

/// Session that a request names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionRef {
    /// No session.
    None,
    /// A session of the caller.
    Own(String),
    /// A session that does not exist or belongs to someone else.
    Unknown,
}

/// Session that is being created.
pub struct PendingSession {
    sessions: Arc<Sessions>,
    principal: String,
}

impl Drop for PendingSession {
    fn drop(&mut self) {
        let mut table = self.sessions.table();
        if let Some(count) = table.opening.get_mut(&self.principal) {
            *count -= 1;
            if *count == 0 {
                table.opening.remove(&self.principal);
            }
        }
    }
}

impl PendingSession {
    /// Registers the session with its owner, if the response has a session id.
    pub fn register(self, answer: &HeaderMap) {
        let id = answer.get(SESSION).and_then(|id| id.to_str().ok());
        if let Some(id) = id {
            let owner = self.principal.clone();
            self.sessions.table().owners.insert(id.to_owned(), owner);
        }
    }
}

impl Sessions {
    /// Creates an empty table for the sessions of `manager`.
    #[must_use]
    pub fn new(manager: Arc<ReplaySessionManager>) -> Self {
        Self {
            manager,
            table: Mutex::default(),
        }
    }

    fn table(&self) -> MutexGuard<'_, SessionTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks up the session of a request. The id of a session that is not the caller's is replaced.
    pub fn resolve(&self, headers: &mut HeaderMap, principal: &str) -> SessionRef {
        let Some(id) = headers.get(SESSION).and_then(|id| id.to_str().ok()) else {
            return SessionRef::None;
        };
        if self
            .table()
            .owners
            .get(id)
            .is_some_and(|own| own == principal)
        {
            return SessionRef::Own(id.to_owned());
        }
        headers.insert(SESSION, UNKNOWN_ID);
        SessionRef::Unknown
    }

    /// Removes a session that its owner has ended.
    pub fn forget(&self, id: &str) {
        self.table().owners.remove(id);
    }

    /// Reserves a place for a new session.
    ///
    /// # Errors
    /// 429 if the caller has too many sessions, 503 if all callers together have.
    pub async fn open(self: &Arc<Self>, principal: &str) -> Result<PendingSession, Rejection> {
        if let Ok(opening) = self.try_open(principal) {
            return Ok(opening);
        }
        self.forget_ended().await;
        self.try_open(principal)
    }

    fn try_open(self: &Arc<Self>, principal: &str) -> Result<PendingSession, Rejection> {
        let wait = limits::MCP_SESSION_RETRY.as_secs();
        let mut table = self.table();
        if table.count_of(principal) >= limits::MAX_MCP_SESSIONS_EACH {
            let most = limits::MAX_MCP_SESSIONS_EACH;
            let detail = format!("{most} sessions of this caller are open; end one with DELETE");
            return Err(Rejection::rate_limited(detail).with_retry_after(wait));
        }
        if table.total() >= limits::MAX_MCP_SESSIONS {
            return Err(Rejection::overloaded("too many sessions are open").with_retry_after(wait));
        }
        *table.opening.entry(principal.to_owned()).or_default() += 1;
        drop(table);
        Ok(PendingSession {
            sessions: Arc::clone(self),
            principal: principal.to_owned(),
        })
    }

    /// Removes sessions that have expired or failed.
    async fn forget_ended(&self) {
        let ids: Vec<String> = self.table().owners.keys().cloned().collect();
        for id in ids {
            let is_there = self.manager.has_session(&id.as_str().into()).await;
            if let Ok(false) = is_there {
                self.forget(&id);
            }
        }
    }
}

/// Tells whether a message may begin a session; an unreadable one may.
#[must_use]
pub fn may_begin(message: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Message<'m> {
        #[serde(borrow)]
        method: Option<Cow<'m, str>>,
    }
    match serde_json::from_slice::<Message<'_>>(message) {
        Ok(message) => message.method.is_some_and(|method| method == "initialize"),
        Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    use axum::body::Body;
    use axum::http::{Request, StatusCode};
    use rmcp::ServerHandler;
    use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};

    /// Server without tools.
    struct Empty;

    impl ServerHandler for Empty {}

    fn post(message: &'static str, session: &HeaderValue) -> Request<Body> {
        let request = Request::post("/mcp")
            .header("host", "localhost")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        let request = match session == UNKNOWN_ID {
            true => request,
            false => request.header(SESSION, session),
        };
        request.body(Body::from(message)).unwrap()
    }

    #[tokio::test]
    async fn an_idle_session_ends_and_frees_its_place() {
        const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{
            "protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}"#;
        const PING: &str = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;
        let manager = Arc::new(ReplaySessionManager::new(Duration::from_millis(1)));
        let sessions = Arc::new(Sessions::new(Arc::clone(&manager)));
        let config = StreamableHttpServerConfig::default();
        let service = StreamableHttpService::new(|| Ok(Empty), Arc::clone(&manager), config);
        let opening = sessions.open("ana").await.unwrap();
        let answer = service.handle(post(INITIALIZE, &UNKNOWN_ID)).await;
        assert_eq!(answer.status(), StatusCode::OK);
        let session = answer.headers()[SESSION].clone();
        opening.register(answer.headers());
        assert_eq!(sessions.table().count_of("ana"), 1);
        let id = session.to_str().unwrap().into();
        // rmcp does not notify about the end of a session.
        let ended = async {
            while manager.has_session(&id).await.unwrap() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), ended)
            .await
            .unwrap();
        let answer = service.handle(post(PING, &session)).await;
        assert_eq!(answer.status(), StatusCode::NOT_FOUND);
        sessions.forget_ended().await;
        assert_eq!(sessions.table().count_of("ana"), 0);
    }

    fn headers(id: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(SESSION, HeaderValue::from_static(id))])
    }

    #[tokio::test]
    async fn a_session_exists_for_its_owner_only() {
        let sessions = Arc::new(Sessions::default());
        let opening = sessions.open("ana").await.unwrap();
        opening.register(&headers("one"));
        let mut own = headers("one");
        assert_eq!(
            sessions.resolve(&mut own, "ana"),
            SessionRef::Own("one".into())
        );
        assert_eq!(own, headers("one"));
        for (principal, id) in [("ben", "one"), ("ana", "two"), ("ben", "two")] {
            let mut other = headers(id);
            assert_eq!(sessions.resolve(&mut other, principal), SessionRef::Unknown);
            assert_eq!(other, headers("none"));
        }
        assert_eq!(
            sessions.resolve(&mut HeaderMap::new(), "ana"),
            SessionRef::None
        );
        sessions.forget("one");
        assert_eq!(sessions.resolve(&mut own, "ana"), SessionRef::Unknown);
    }

    #[tokio::test]
    async fn sessions_per_caller_are_limited() {
        let sessions = Arc::new(Sessions::default());
        let mut opening = Vec::new();
        for _ in 0..limits::MAX_MCP_SESSIONS_EACH {
            opening.push(sessions.open("ana").await.unwrap());
        }
        let refused = sessions.open("ana").await.map(drop).unwrap_err();
        assert_eq!((refused.status, refused.code), (429, "rate_limited"));
        drop(sessions.open("ben").await.unwrap());
        // A session that was not created frees its place.
        opening.pop();
        let last = sessions.open("ana").await.unwrap();
        assert!(sessions.open("ana").await.is_err());
        // A session that the manager has ended frees its place, too.
        last.register(&headers("ended"));
        drop(sessions.open("ana").await.unwrap());
        assert!(sessions.table().owners.is_empty());
    }

    #[tokio::test]
    async fn sessions_in_total_are_limited() {
        let sessions = Arc::new(Sessions::default());
        let mut opening = Vec::new();
        for number in 0..limits::MAX_MCP_SESSIONS {
            let principal = (number % 7).to_string();
            opening.push(sessions.open(&principal).await.unwrap());
        }
        let refused = sessions.open("new").await.map(drop).unwrap_err();
        assert_eq!((refused.status, refused.code), (503, "overloaded"));
        drop(opening);
        assert_eq!(sessions.table().total(), 0);
    }

    #[test]
    fn only_initialize_may_begin_a_session() {
        let check = |message: &str, expected| {
            assert_eq!(may_begin(message.as_bytes()), expected, "{message}");
        };
        check(r#"{"method":"initialize"}"#, true);
        check(r#"{"method":"\u0069nitialize"}"#, true);
        check(r#"{"method":"ping","method":"initialize"}"#, true);
        check("{", true);
        check(
            r#"{"method":"tools/call","params":{"name":"initialize"}}"#,
            false,
        );
        check(r#"{"id":1,"result":{}}"#, false);
    }
}
