//! What the ledger and the log are told of a call.

use crate::limits;
use crate::service::caller::Caller;
use crate::service::principal::Principal;
use crate::store::ids;
use crate::store::ledger::{Record, ToolCall};

/// What is known of a call beside who makes it.
#[derive(Debug, Clone, Default)]
pub struct About {
    /// `tool_call` or `tool_list`.
    pub request_type: &'static str,
    /// The tool.
    pub tool_name: String,
    /// Version of the tool.
    pub tool_version: Option<&'static str>,
    /// Start of the hash of the input.
    pub payload_hash: Option<String>,
    /// The input, when it is kept.
    pub input: Option<serde_json::Value>,
    /// The trace named in the body, when it is another one.
    pub context_trace_id: Option<String>,
}

/// How a call ended, for the ledger.
#[derive(Debug, Clone, Default)]
pub struct End {
    /// Kind of the error; nothing when it went well.
    pub error_type: Option<String>,
    /// What went wrong.
    pub error: Option<String>,
    /// Status of the answer.
    pub http_status: u16,
    /// Whether the answer is that of an earlier call.
    pub is_replay: bool,
}

/// Makes the record of a call.
#[must_use]
pub fn record(caller: &Caller, principal: Option<&Principal>, about: &About, end: &End) -> Record {
    let status = if end.error_type.is_some() {
        "error"
    } else {
        "success"
    };
    let latency_ms = caller.latency_ms();
    let call = ToolCall {
        name: about.tool_name.clone(),
        status: status.into(),
        latency_ms,
        payload_hash: about.payload_hash.clone(),
    };
    Record {
        call_id: caller.call_id.clone(),
        front_end: caller.front_end.into(),
        ts_start: caller.ts_start.clone(),
        ts_end: ids::now(),
        latency_ms,
        trace_id: caller.trace_id.clone(),
        span_id: Some(caller.span_id.clone()),
        parent_span_id: caller.parent_span_id.clone(),
        w3c_trace_id: caller.w3c_trace_id.clone(),
        context_trace_id: about.context_trace_id.clone(),
        tenant_id: caller.tenant_id.clone(),
        site_id: caller.site_id.clone(),
        user_id: caller.user_id.clone(),
        session_id: caller.session_id.clone(),
        npc_id: caller.npc_id.clone(),
        principal: principal.map(|principal| principal.id.clone()),
        request_type: about.request_type.into(),
        tool_name: about.tool_name.clone(),
        tool_version: about.tool_version.map(str::to_owned),
        request_payload_hash: about.payload_hash.clone(),
        input: about.input.clone(),
        status: status.into(),
        error_type: end.error_type.clone(),
        error: end.error.as_deref().map(short),
        http_status: Some(end.http_status),
        attempt: caller.attempt,
        idempotency_key: caller.idempotency_key.clone(),
        replayed: end.is_replay,
        disconnected: caller.is_gone.load(std::sync::atomic::Ordering::Relaxed),
        count: None,
        tool_calls: vec![call],
    }
}

/// Cuts a message to what the ledger keeps of it.
fn short(message: &str) -> String {
    let end = message.floor_char_boundary(limits::MAX_RECORDED_ERROR_BYTES);
    message.get(..end).unwrap_or_default().to_owned()
}
