//! Audit ledger: one record per call, linked by hashes.
//!
//! A record is JSON text. Its hash covers the previous hash, its number and the text, so changed, removed and
//! inserted records are detected. A truncated end is only detected with a hash saved earlier, the anchor.

use std::borrow::Cow;

use ring::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};

use crate::Pending;
use crate::members::Members;

/// SHA-256 hash of a record.
pub type Hash = [u8; 32];

/// Hash before the first record.
pub const GENESIS: Hash = [0; 32];

/// Audit record of a call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Record<'a> {
    /// Identifier of the call.
    pub call_id: Cow<'a, str>,
    /// Front end of the call: `http`, `mcp` or `stdio`.
    pub front_end: Cow<'a, str>,
    /// Time of receipt.
    pub ts_start: Cow<'a, str>,
    /// Time of the final outcome.
    pub ts_end: Cow<'a, str>,
    /// Time between the two, in milliseconds.
    pub latency_ms: u64,
    /// Trace of the caller.
    pub trace_id: Cow<'a, str>,
    /// Span of the caller, or one created for the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub span_id: Option<Cow<'a, str>>,
    /// Parent span of a W3C `traceparent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_span_id: Option<Cow<'a, str>>,
    /// Trace of a W3C `traceparent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub w3c_trace_id: Option<Cow<'a, str>>,
    /// Trace named in the body, when it differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_trace_id: Option<Cow<'a, str>>,
    /// Tenant.
    pub tenant_id: Cow<'a, str>,
    /// Site.
    pub site_id: Cow<'a, str>,
    /// User.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_id: Option<Cow<'a, str>>,
    /// Session of the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Cow<'a, str>>,
    /// Character addressed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub npc_id: Option<Cow<'a, str>>,
    /// Authenticated principal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub principal: Option<Cow<'a, str>>,
    /// Kind of request: `tool_call` or `tool_list`.
    pub request_type: Cow<'a, str>,
    /// Tool; empty when the request named none.
    pub tool_name: Cow<'a, str>,
    /// Version of the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_version: Option<Cow<'a, str>>,
    /// Prefix of the hash of the input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_payload_hash: Option<Cow<'a, str>>,
    /// Input, if the server is configured to record it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<serde_json::Value>,
    /// `success` or `error`.
    pub status: Cow<'a, str>,
    /// Kind of the error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_type: Option<Cow<'a, str>>,
    /// Error message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Cow<'a, str>>,
    /// HTTP status of the response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_status: Option<u16>,
    /// Attempt number, as claimed by the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// Idempotency key of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<Cow<'a, str>>,
    /// True if the response repeats that of an earlier call.
    #[serde(skip_serializing_if = "is_false", default)]
    pub replayed: bool,
    /// True if the caller disconnected before the response was ready.
    #[serde(skip_serializing_if = "is_false", default)]
    pub disconnected: bool,
    /// Number of refused requests that the record stands for, when more than one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// The call as in the column `tool_calls`.
    pub tool_calls: Vec<ToolCall<'a>>,
}

/// Call as in the column `tool_calls`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolCall<'a> {
    /// Tool.
    pub name: Cow<'a, str>,
    /// `success` or `error`.
    pub status: Cow<'a, str>,
    /// Duration in milliseconds.
    pub latency_ms: u64,
    /// Prefix of the hash of its input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload_hash: Option<Cow<'a, str>>,
}

#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_false(value: &bool) -> bool {
    !value
}

impl Record<'_> {
    /// Appends the JSON text that is stored and hashed; equal to what serde writes.
    pub fn add_to(&self, text: &mut Vec<u8>) {
        let mut members = Members::begin(text);
        members.text("call_id", &self.call_id);
        members.text("front_end", &self.front_end);
        members.text("ts_start", &self.ts_start);
        members.text("ts_end", &self.ts_end);
        members.number("latency_ms", self.latency_ms);
        members.text("trace_id", &self.trace_id);
        members.some("span_id", self.span_id.as_deref());
        members.some("parent_span_id", self.parent_span_id.as_deref());
        members.some("w3c_trace_id", self.w3c_trace_id.as_deref());
        members.some("context_trace_id", self.context_trace_id.as_deref());
        members.text("tenant_id", &self.tenant_id);
        members.text("site_id", &self.site_id);
        members.some("user_id", self.user_id.as_deref());
        members.some("session_id", self.session_id.as_deref());
        members.some("npc_id", self.npc_id.as_deref());
        members.some("principal", self.principal.as_deref());
        members.text("request_type", &self.request_type);
        members.text("tool_name", &self.tool_name);
        members.some("tool_version", self.tool_version.as_deref());
        members.some("request_payload_hash", self.request_payload_hash.as_deref());
        if let Some(input) = &self.input {
            // Writing to memory cannot fail.
            let _ = serde_json::to_writer(members.value("input"), input);
        }
        members.text("status", &self.status);
        members.some("error_type", self.error_type.as_deref());
        members.some("error", self.error.as_deref());
        members.some_number("http_status", self.http_status.map(u64::from));
        members.some_number("attempt", self.attempt.map(u64::from));
        members.some("idempotency_key", self.idempotency_key.as_deref());
        members.when("replayed", self.replayed);
        members.when("disconnected", self.disconnected);
        members.some_number("count", self.count);
        let calls = members.value("tool_calls");
        calls.push(b'[');
        for (place, call) in self.tool_calls.iter().enumerate() {
            if place > 0 {
                calls.push(b',');
            }
            call.add_to(calls);
        }
        calls.push(b']');
        members.end();
    }

    /// Returns a record that owns its texts.
    #[must_use]
    pub fn into_owned(self) -> Record<'static> {
        Record {
            call_id: own(self.call_id),
            front_end: own(self.front_end),
            ts_start: own(self.ts_start),
            ts_end: own(self.ts_end),
            trace_id: own(self.trace_id),
            span_id: self.span_id.map(own),
            parent_span_id: self.parent_span_id.map(own),
            w3c_trace_id: self.w3c_trace_id.map(own),
            context_trace_id: self.context_trace_id.map(own),
            tenant_id: own(self.tenant_id),
            site_id: own(self.site_id),
            user_id: self.user_id.map(own),
            session_id: self.session_id.map(own),
            npc_id: self.npc_id.map(own),
            principal: self.principal.map(own),
            request_type: own(self.request_type),
            tool_name: own(self.tool_name),
            tool_version: self.tool_version.map(own),
            request_payload_hash: self.request_payload_hash.map(own),
            status: own(self.status),
            error_type: self.error_type.map(own),
            error: self.error.map(own),
            idempotency_key: self.idempotency_key.map(own),
            tool_calls: self
                .tool_calls
                .into_iter()
                .map(ToolCall::into_owned)
                .collect(),
            latency_ms: self.latency_ms,
            input: self.input,
            http_status: self.http_status,
            attempt: self.attempt,
            replayed: self.replayed,
            disconnected: self.disconnected,
            count: self.count,
        }
    }
}

impl ToolCall<'_> {
    fn add_to(&self, text: &mut Vec<u8>) {
        let mut members = Members::begin(text);
        members.text("name", &self.name);
        members.text("status", &self.status);
        members.number("latency_ms", self.latency_ms);
        members.some("payload_hash", self.payload_hash.as_deref());
        members.end();
    }

    fn into_owned(self) -> ToolCall<'static> {
        ToolCall {
            name: own(self.name),
            status: own(self.status),
            latency_ms: self.latency_ms,
            payload_hash: self.payload_hash.map(own),
        }
    }
}

fn own(text: Cow<'_, str>) -> Cow<'static, str> {
    Cow::Owned(text.into_owned())
}

/// Stored row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Number, from 1 without gaps.
    pub seq: u64,
    /// Hash.
    pub hash: Hash,
    /// Record as JSON text.
    pub record: String,
}

/// Returns the hash of a record.
#[must_use]
pub fn hash(previous: &Hash, seq: u64, record: &str) -> Hash {
    let mut context = Context::new(&SHA256);
    context.update(previous);
    context.update(&seq.to_be_bytes());
    context.update(record.as_bytes());
    let mut hash = GENESIS;
    hash.copy_from_slice(context.finish().as_ref());
    hash
}

/// Store of audit records.
pub trait Ledger: Send + Sync {
    /// Records durably that a call with effects is about to run.
    fn record_intent<'a>(&'a self, record: &'a Record<'_>) -> Pending<'a, ()>;

    /// Appends the final record of a call durably and removes its intent. If that is impossible now, it fails
    /// with [`StoreError::Late`](crate::StoreError::Late) and the record is written as soon as possible.
    fn append<'a>(&'a self, record: &Record<'_>) -> Pending<'a, ()>;

    /// Converts intents of earlier processes to records of interrupted calls; returns their number.
    fn settle_interrupted(&self) -> Pending<'_, usize>;

    /// Checks that records can be written, by writing something durably and removing it.
    fn probe(&self) -> Pending<'_, ()>;

    /// Writes the backlog if that is possible at once.
    fn flush(&self) -> Pending<'_, ()>;

    /// Returns the number of records waiting in memory. Every successful write includes all of them.
    fn backlog(&self) -> usize;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_record_is_its_serialization() {
        let text = |name: &'static str| Some(Cow::Borrowed(name));
        let call = ToolCall {
            name: "a\"b".into(),
            status: "error".into(),
            latency_ms: 7,
            payload_hash: text("h"),
        };
        let full = Record {
            span_id: text("1"),
            parent_span_id: text("2"),
            w3c_trace_id: text("3"),
            context_trace_id: text("4"),
            user_id: text("5"),
            session_id: text("6"),
            npc_id: text("7"),
            principal: text("8"),
            tool_version: text("9"),
            request_payload_hash: text("10"),
            input: Some(serde_json::json!({"a": [1.5, "\n"]})),
            error_type: text("11"),
            error: text("\u{1}\\"),
            http_status: Some(200),
            attempt: Some(12),
            idempotency_key: text("13"),
            replayed: true,
            disconnected: true,
            count: Some(14),
            latency_ms: 15,
            tool_calls: vec![call, ToolCall::default()],
            call_id: "c".into(),
            ..Record::default()
        };
        for record in [full, Record::default()] {
            let mut written = Vec::new();
            record.add_to(&mut written);
            let expected = serde_json::to_string(&record).unwrap();
            assert_eq!(String::from_utf8(written).unwrap(), expected);
        }
    }
}
