//! What a request says of itself, beside its input.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::Value;

use crate::exec::cancel::Cancel;
use crate::service::deadline::OutputSender;
use karyi_core::ids;
pub use karyi_core::ids::is_id;
use karyi_store::StoreError;
use karyi_vault::redact::Redactor;

/// Where a request comes from and what it belongs to.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Identifier of the call, made here.
    pub call_id: String,
    /// The protocol: `http`, `mcp` or `stdio`.
    pub front_end: &'static str,
    /// When the request came.
    pub received_at: Instant,
    /// The same as text.
    pub ts_start: String,
    /// The caller's trace.
    pub trace_id: String,
    /// The tenant.
    pub tenant_id: String,
    /// The site.
    pub site_id: String,
    /// The caller's span, or one made here.
    pub span_id: String,
    /// Parent span of a W3C `traceparent`.
    pub parent_span_id: Option<String>,
    /// Trace of a W3C `traceparent`.
    pub w3c_trace_id: Option<String>,
    /// The user.
    pub user_id: Option<String>,
    /// The user's session.
    pub session_id: Option<String>,
    /// The character spoken to.
    pub npc_id: Option<String>,
    /// Which attempt it is.
    pub attempt: Option<u32>,
    /// The key under which it may be repeated.
    pub idempotency_key: Option<String>,
    /// The shell that stays for the caller's calls; without a name each call has its own.
    pub shell_session: Option<String>,
    /// How long the caller waits.
    pub timeout: Option<Duration>,
    /// Thrown when the caller does not want the call any more, where that can be said; only what works
    /// on this machine stops.
    pub cancel: Option<Cancel>,
    /// Where what a command prints goes meanwhile, when the caller follows it.
    pub live_output: Option<OutputSender>,
    /// Set when the caller has gone.
    pub is_gone: Arc<AtomicBool>,
}

impl Caller {
    /// Makes a caller that says nothing but the three identifiers every request needs.
    ///
    /// # Errors
    /// The system has no random bytes for the identifier of the call.
    pub fn new(
        front_end: &'static str,
        trace_id: String,
        tenant_id: String,
        site_id: String,
    ) -> Result<Self, StoreError> {
        Ok(Self {
            call_id: ids::new_id()?,
            front_end,
            received_at: Instant::now(),
            ts_start: ids::now(),
            trace_id,
            tenant_id,
            site_id,
            span_id: ids::hex(&ids::random::<8>()?),
            parent_span_id: None,
            w3c_trace_id: None,
            user_id: None,
            session_id: None,
            npc_id: None,
            attempt: None,
            idempotency_key: None,
            shell_session: None,
            timeout: None,
            cancel: None,
            live_output: None,
            is_gone: Arc::default(),
        })
    }

    /// Masks values of secrets in what the request says of itself; returns whether there was one. What is masked
    /// is for the audit only: two callers could look like one.
    pub fn mask(&mut self, redactor: &Redactor) -> bool {
        if redactor.is_idle() {
            return false;
        }
        let needed = [
            &mut self.trace_id,
            &mut self.tenant_id,
            &mut self.site_id,
            &mut self.span_id,
        ];
        let named = [
            &mut self.parent_span_id,
            &mut self.w3c_trace_id,
            &mut self.user_id,
            &mut self.session_id,
            &mut self.npc_id,
            &mut self.idempotency_key,
            &mut self.shell_session,
        ];
        let mut contains_secret = false;
        for id in needed.into_iter().chain(named.into_iter().flatten()) {
            contains_secret |= mask(id, redactor);
        }
        contains_secret
    }

    /// Returns the time since the request came, in milliseconds.
    #[must_use]
    pub fn latency_ms(&self) -> u64 {
        u64::try_from(self.received_at.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Returns until when the caller waits for an answer, when they said so.
    #[must_use]
    pub fn answer_by(&self) -> Option<Instant> {
        self.timeout.map(|timeout| self.received_at + timeout)
    }

    /// Whether the body names no other tenant or site.
    #[must_use]
    pub fn matches(&self, context: &BodyContext) -> bool {
        let is_own =
            |named: &Option<String>, own: &str| named.as_deref().is_none_or(|id| id == own);
        is_own(&context.tenant_id, &self.tenant_id) && is_own(&context.site_id, &self.site_id)
    }

    /// Takes from the body what the headers did not say.
    pub fn fill_from(&mut self, context: &BodyContext) {
        let take = |own: &mut Option<String>, other: &Option<String>| {
            if own.is_none() {
                own.clone_from(other);
            }
        };
        take(&mut self.user_id, &context.user_id);
        take(&mut self.session_id, &context.session_id);
        take(&mut self.npc_id, &context.npc_id);
    }
}

/// What the body says that the headers say too.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct BodyContext {
    /// The tenant.
    pub tenant_id: Option<String>,
    /// The site.
    pub site_id: Option<String>,
    /// The trace.
    pub trace_id: Option<String>,
    /// The user.
    pub user_id: Option<String>,
    /// The user's session.
    pub session_id: Option<String>,
    /// The character spoken to.
    pub npc_id: Option<String>,
}

impl BodyContext {
    /// Whether one of its identifiers holds the value of a secret.
    #[must_use]
    pub fn contains_secret(&self, redactor: &Redactor) -> bool {
        let ids = [
            &self.tenant_id,
            &self.site_id,
            &self.trace_id,
            &self.user_id,
            &self.session_id,
            &self.npc_id,
        ];
        let holds = |id: &String| mask(&mut id.clone(), redactor);
        !redactor.is_idle() && ids.into_iter().flatten().any(holds)
    }
}

/// Masks values in an identifier; returns whether there was one.
fn mask(id: &mut String, redactor: &Redactor) -> bool {
    match redactor.redact_again(id) {
        Cow::Owned(masked) => {
            *id = masked;
            true
        }
        Cow::Borrowed(_) => false,
    }
}

/// A call as it was asked for.
#[derive(Debug, Clone)]
pub struct CallRequest {
    /// The tool.
    pub tool_name: String,
    /// Its input.
    pub input: Value,
    /// What the body says that the headers say too.
    pub context: BodyContext,
}
