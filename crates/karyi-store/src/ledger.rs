//! The ledger: one record of every call, each bound to the one before it.
//!
//! A record is JSON text; its hash covers the hash before it, its number and the text, so a record
//! that was changed, taken out or put in shows. Cutting off the end shows only to someone who kept
//! a hash from before: the anchor.

use std::borrow::Cow;

use ring::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};

use crate::Pending;
use crate::members::Members;

/// The hash of a record.
pub type Hash = [u8; 32];

/// The hash before the first record.
pub const GENESIS: Hash = [0; 32];

/// What the ledger keeps of a call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Record<'a> {
    /// Identifier of the call.
    pub call_id: Cow<'a, str>,
    /// Where the call came in: `http`, `mcp` or `stdio`.
    pub front_end: Cow<'a, str>,
    /// When it was received.
    pub ts_start: Cow<'a, str>,
    /// When its outcome was final.
    pub ts_end: Cow<'a, str>,
    /// Time between the two, in milliseconds.
    pub latency_ms: u64,
    /// The caller's trace.
    pub trace_id: Cow<'a, str>,
    /// The caller's span, or one made for the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub span_id: Option<Cow<'a, str>>,
    /// Parent span of a W3C `traceparent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_span_id: Option<Cow<'a, str>>,
    /// Trace of a W3C `traceparent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub w3c_trace_id: Option<Cow<'a, str>>,
    /// The trace named in the body, when it is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_trace_id: Option<Cow<'a, str>>,
    /// The tenant.
    pub tenant_id: Cow<'a, str>,
    /// The site.
    pub site_id: Cow<'a, str>,
    /// The user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_id: Option<Cow<'a, str>>,
    /// The user's session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Cow<'a, str>>,
    /// The character spoken to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub npc_id: Option<Cow<'a, str>>,
    /// Who was authenticated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub principal: Option<Cow<'a, str>>,
    /// What was asked for: `tool_call` or `tool_list`.
    pub request_type: Cow<'a, str>,
    /// The tool; empty when the request named none.
    pub tool_name: Cow<'a, str>,
    /// Version of the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_version: Option<Cow<'a, str>>,
    /// Start of the hash of the input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_payload_hash: Option<Cow<'a, str>>,
    /// The input, where the server was told to keep it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<serde_json::Value>,
    /// `success` or `error`.
    pub status: Cow<'a, str>,
    /// Kind of the error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_type: Option<Cow<'a, str>>,
    /// The error in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Cow<'a, str>>,
    /// Status of the HTTP answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_status: Option<u16>,
    /// Which attempt of the caller it was, as the caller says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// The key under which the call may be repeated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<Cow<'a, str>>,
    /// True if the answer is that of an earlier call.
    #[serde(skip_serializing_if = "is_false", default)]
    pub replayed: bool,
    /// True if the caller had gone before the answer was ready.
    #[serde(skip_serializing_if = "is_false", default)]
    pub disconnected: bool,
    /// How many refused requests the record stands for, when more than one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// The call in the form of the table's column `tool_calls`.
    pub tool_calls: Vec<ToolCall<'a>>,
}

/// One call, in the form of the column `tool_calls`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolCall<'a> {
    /// The tool.
    pub name: Cow<'a, str>,
    /// `success` or `error`.
    pub status: Cow<'a, str>,
    /// Its time, in milliseconds.
    pub latency_ms: u64,
    /// Start of the hash of its input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload_hash: Option<Cow<'a, str>>,
}

#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_false(value: &bool) -> bool {
    !value
}

impl Record<'_> {
    /// Adds the text that is kept and hashed: what serde writes.
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
            // Into memory nothing fails.
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

    /// Returns the same with texts of its own.
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

/// One row as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Its number, from 1 without gaps.
    pub seq: u64,
    /// Its hash.
    pub hash: Hash,
    /// The record, as JSON text.
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

/// Keeps records.
pub trait Ledger: Send + Sync {
    /// Notes durably that a writing call is about to run.
    fn record_intent<'a>(&'a self, record: &'a Record<'_>) -> Pending<'a, ()>;

    /// Keeps the final record of a call durably, and forgets its intent. When that is not possible now
    /// it fails with [`StoreError::Late`](crate::StoreError::Late), and the record is written as
    /// soon as it can be.
    fn append<'a>(&'a self, record: &Record<'_>) -> Pending<'a, ()>;

    /// Turns the intents that earlier processes left into records of calls that were interrupted;
    /// returns how many there were.
    fn settle_interrupted(&self) -> Pending<'_, usize>;

    /// Writes something durably and takes it away again: whether records can be kept now.
    fn probe(&self) -> Pending<'_, ()>;

    /// Writes what waits in memory, if that is possible at once.
    fn flush(&self) -> Pending<'_, ()>;

    /// Returns how much waits in memory because it could not be written; every write that succeeds
    /// takes all of it along.
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
