//! Content of a ledger record.

use std::borrow::Cow;

use crate::service::caller::Caller;
use crate::service::principal::Principal;
use karyi_core::ids;
use karyi_core::limits;
use karyi_store::ledger::{Record, ToolCall};
use karyi_vault::redact::Redactor;

/// Facts about a call, apart from its caller.
#[derive(Debug, Clone, Default)]
pub struct CallDetails {
    /// `tool_call` or `tool_list`.
    pub request_type: &'static str,
    /// Name of the tool.
    pub tool_name: String,
    /// Version of the tool.
    pub tool_version: Option<&'static str>,
    /// First digits of the hash of the input.
    pub payload_hash: Option<String>,
    /// The input, if inputs are recorded.
    pub input: Option<serde_json::Value>,
    /// Trace id in the body, if it differs from the header's.
    pub context_trace_id: Option<String>,
}

impl CallDetails {
    /// Masks secrets in text from the caller.
    pub fn mask(&mut self, redactor: &Redactor) {
        if redactor.is_idle() {
            return;
        }
        redactor.redact_in_again(&mut self.tool_name);
        if let Some(id) = &mut self.context_trace_id {
            redactor.redact_in_again(id);
        }
        if let Some(input) = &mut self.input {
            redactor.redact_json_again(input);
        }
    }
}

/// Outcome of a call, for the ledger.
#[derive(Debug, Clone, Default)]
pub struct CallOutcome {
    /// Kind of the error; none after success.
    pub error_type: Option<String>,
    /// Error message.
    pub error: Option<String>,
    /// HTTP status of the response.
    pub http_status: u16,
    /// Time since the request arrived, in milliseconds. Response, record and log share this value.
    pub latency_ms: u64,
    /// True if the response is that of an earlier call.
    pub is_replay: bool,
}

/// Builds the record of a call.
#[must_use]
pub fn record<'a>(
    caller: &'a Caller,
    principal: Option<&'a Principal>,
    details: &'a CallDetails,
    outcome: &'a CallOutcome,
) -> Record<'a> {
    let borrowed = |text: &'a Option<String>| text.as_deref().map(Cow::Borrowed);
    let status = if outcome.error_type.is_some() {
        "error"
    } else {
        "success"
    };
    let latency_ms = outcome.latency_ms;
    let call = ToolCall {
        name: details.tool_name.as_str().into(),
        status: status.into(),
        latency_ms,
        payload_hash: borrowed(&details.payload_hash),
    };
    Record {
        call_id: caller.call_id.as_str().into(),
        front_end: caller.front_end.into(),
        ts_start: caller.ts_start.as_str().into(),
        ts_end: ids::now().into(),
        latency_ms,
        trace_id: caller.trace_id.as_str().into(),
        span_id: Some(caller.span_id.as_str().into()),
        parent_span_id: borrowed(&caller.parent_span_id),
        w3c_trace_id: borrowed(&caller.w3c_trace_id),
        context_trace_id: borrowed(&details.context_trace_id),
        tenant_id: caller.tenant_id.as_str().into(),
        site_id: caller.site_id.as_str().into(),
        user_id: borrowed(&caller.user_id),
        session_id: borrowed(&caller.session_id),
        npc_id: borrowed(&caller.npc_id),
        principal: principal.map(|principal| principal.id.as_str().into()),
        request_type: details.request_type.into(),
        tool_name: details.tool_name.as_str().into(),
        tool_version: details.tool_version.map(Cow::Borrowed),
        request_payload_hash: borrowed(&details.payload_hash),
        input: details.input.clone(),
        status: status.into(),
        error_type: borrowed(&outcome.error_type),
        error: outcome.error.as_deref().map(|error| short(error).into()),
        http_status: Some(outcome.http_status),
        attempt: caller.attempt,
        idempotency_key: borrowed(&caller.idempotency_key),
        replayed: outcome.is_replay,
        disconnected: caller.is_gone.load(std::sync::atomic::Ordering::Relaxed),
        count: None,
        tool_calls: vec![call],
    }
}

/// Cuts a message to the length the ledger stores.
fn short(message: &str) -> &str {
    let end = message.floor_char_boundary(limits::MAX_RECORDED_ERROR_BYTES);
    message.get(..end).unwrap_or_default()
}
