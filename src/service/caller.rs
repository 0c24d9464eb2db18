//! Origin and content of a request: all that the record of a call says about it.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::Value;

use crate::exec::cancel::Cancel;
use crate::service::principal::Principal;
use karyi_core::ids;
pub use karyi_core::ids::is_id;
use karyi_store::StoreError;
use karyi_vault::redact::{Redacted, Redactor};
use tokio::sync::mpsc;

/// Channel for live output of a running command. Output is dropped when the channel is full.
pub type OutputSender = mpsc::Sender<Redacted>;

/// Origin of a request, and the facts about it for the record.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Authenticated principal; nobody before that.
    pub principal: Arc<Principal>,
    /// Id of the call, made here.
    pub call_id: String,
    /// Protocol: `http`, `mcp` or `stdio`.
    pub front_end: &'static str,
    /// Time of arrival.
    pub received_at: Instant,
    /// Time of arrival as text.
    pub ts_start: String,
    /// Trace of the caller.
    pub trace_id: String,
    /// Tenant.
    pub tenant_id: String,
    /// Site.
    pub site_id: String,
    /// Span of the caller, or one made here.
    pub span_id: String,
    /// Parent span of a W3C `traceparent`.
    pub parent_span_id: Option<String>,
    /// Trace of a W3C `traceparent`.
    pub w3c_trace_id: Option<String>,
    /// User.
    pub user_id: Option<String>,
    /// Session of the user.
    pub session_id: Option<String>,
    /// Character the user talks to.
    pub npc_id: Option<String>,
    /// Number of the attempt.
    pub attempt: Option<u32>,
    /// Key that makes retries of the call safe.
    pub idempotency_key: Option<String>,
    /// Name of a shell that several calls share; without it each call has its own.
    pub shell_session: Option<String>,
    /// Time the caller waits for the response.
    pub timeout: Option<Duration>,
    /// Channel for live output, if the caller follows it.
    pub live_output: Option<OutputSender>,
    /// Cancelled when the caller no longer waits for the response. Only tools of this machine stop then.
    pub gone: Option<Cancel>,
    /// `tool_call` or `tool_list`.
    pub request_type: &'static str,
    /// Name of the tool.
    pub tool_name: String,
    /// Version of the tool.
    pub tool_version: Option<&'static str>,
    /// First digits of the hash of the input.
    pub payload_hash: Option<String>,
    /// The input, if inputs are recorded.
    pub input: Option<Value>,
    /// Trace id in the body, if it differs from the header's.
    pub context_trace_id: Option<String>,
}

impl Caller {
    /// Creates a caller from the three ids that every request needs.
    ///
    /// # Errors
    /// The system has no random bytes for the id of the call.
    pub fn new(
        front_end: &'static str,
        trace_id: String,
        tenant_id: String,
        site_id: String,
    ) -> Result<Self, StoreError> {
        Ok(Self {
            principal: Principal::nobody(),
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
            live_output: None,
            gone: None,
            request_type: "tool_call",
            tool_name: String::new(),
            tool_version: None,
            payload_hash: None,
            input: None,
            context_trace_id: None,
        })
    }

    /// Masks secrets in all texts of the caller and returns whether there were any. Use the result for
    /// the audit trail only: two callers could look alike.
    pub fn mask(&mut self, redactor: &Redactor) -> bool {
        if redactor.is_idle() {
            return false;
        }
        let needed = [
            &mut self.trace_id,
            &mut self.tenant_id,
            &mut self.site_id,
            &mut self.span_id,
            &mut self.tool_name,
        ];
        let named = [
            &mut self.parent_span_id,
            &mut self.w3c_trace_id,
            &mut self.user_id,
            &mut self.session_id,
            &mut self.npc_id,
            &mut self.idempotency_key,
            &mut self.shell_session,
            &mut self.context_trace_id,
        ];
        let mut contains_secret = false;
        for text in needed.into_iter().chain(named.into_iter().flatten()) {
            contains_secret |= mask(text, redactor);
        }
        if let Some(input) = &mut self.input {
            redactor.redact_json_again(input);
        }
        contains_secret
    }

    /// Tells whether the caller no longer waits for the response.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.gone.as_ref().is_some_and(Cancel::is_cancelled)
    }

    /// Returns the time since the request arrived, in milliseconds.
    #[must_use]
    pub fn latency_ms(&self) -> u64 {
        u64::try_from(self.received_at.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Returns the deadline the caller set, if any.
    #[must_use]
    pub fn answer_by(&self) -> Option<Instant> {
        self.timeout.map(|timeout| self.received_at + timeout)
    }

    /// Tells whether the body names the same tenant and site as the headers.
    #[must_use]
    pub fn matches(&self, context: &BodyContext) -> bool {
        let is_own =
            |named: &Option<String>, own: &str| named.as_deref().is_none_or(|id| id == own);
        is_own(&context.tenant_id, &self.tenant_id) && is_own(&context.site_id, &self.site_id)
    }

    /// Adds ids from the body that the headers lack.
    pub fn fill_from(&mut self, context: &BodyContext) {
        let fill = |own: &mut Option<String>, other: &Option<String>| {
            if own.is_none() {
                own.clone_from(other);
            }
        };
        fill(&mut self.user_id, &context.user_id);
        fill(&mut self.session_id, &context.session_id);
        fill(&mut self.npc_id, &context.npc_id);
    }
}

/// Ids in the body of a request, which headers may carry too.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct BodyContext {
    /// Tenant.
    pub tenant_id: Option<String>,
    /// Site.
    pub site_id: Option<String>,
    /// Trace.
    pub trace_id: Option<String>,
    /// User.
    pub user_id: Option<String>,
    /// Session of the user.
    pub session_id: Option<String>,
    /// Character the user talks to.
    pub npc_id: Option<String>,
}

impl BodyContext {
    /// Returns the ids with their names.
    #[must_use]
    pub fn ids(&self) -> [(&'static str, &Option<String>); 6] {
        [
            ("tenant_id", &self.tenant_id),
            ("site_id", &self.site_id),
            ("trace_id", &self.trace_id),
            ("user_id", &self.user_id),
            ("session_id", &self.session_id),
            ("npc_id", &self.npc_id),
        ]
    }

    /// Tells whether an id contains a secret.
    #[must_use]
    pub fn contains_secret(&self, redactor: &Redactor) -> bool {
        let ids = self.ids().map(|(_, id)| id);
        let has_secret = |id: &String| mask(&mut id.clone(), redactor);
        !redactor.is_idle() && ids.into_iter().flatten().any(has_secret)
    }
}

/// Masks secrets in an id; returns whether there were any.
fn mask(id: &mut String, redactor: &Redactor) -> bool {
    match redactor.redact_again(id) {
        Cow::Owned(masked) => {
            *id = masked;
            true
        }
        Cow::Borrowed(_) => false,
    }
}

/// Requested call.
#[derive(Debug, Clone)]
pub struct CallRequest {
    /// Name of the tool.
    pub tool_name: String,
    /// Input of the tool.
    pub input: Value,
    /// Ids in the body.
    pub context: BodyContext,
}
