//! OpenTelemetry spans of calls: one `execute_tool {name}` per call.
//!
//! The names are those of OpenTelemetry's GenAI conventions. They are not final, so every export
//! states their version. A span never contains an input, an output or a message.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tokio::sync::mpsc::Sender;

use crate::service::caller::Caller;
use karyi_core::ids;

/// Version of the conventions.
const CONVENTIONS: &str = "https://opentelemetry.io/schemas/1.37.0";
/// Span kind `INTERNAL`.
const INTERNAL: u8 = 1;
/// Status code `ERROR`.
const FAILED: u8 = 2;

/// Span of one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    trace_id: String,
    span_id: String,
    parent_span_id: Option<String>,
    /// Time since 1970.
    start: Duration,
    end: Duration,
    tool_name: String,
    call_id: String,
    business_trace_id: String,
    error_type: Option<String>,
}

/// Channel to the exporter. Spans are dropped when it is full; no call waits for it.
#[derive(Clone)]
pub struct SpanSender {
    sender: Sender<Span>,
}

impl SpanSender {
    /// Creates a sender for this channel.
    #[must_use]
    pub fn new(sender: Sender<Span>) -> Self {
        Self { sender }
    }

    /// Sends the span of a call that has just ended.
    pub fn send(&self, caller: &Caller, error_type: Option<&str>) {
        if let Ok(slot) = self.sender.try_reserve()
            && let Ok(span) = Span::of(caller, error_type)
        {
            slot.send(span);
        }
    }
}

impl Span {
    fn of(caller: &Caller, error_type: Option<&str>) -> Result<Self, karyi_store::StoreError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.unwrap_or_default();
        // The caller's own identifiers need not have the W3C format.
        let trace_id = caller
            .w3c_trace_id
            .clone()
            .map_or_else(|| ids::random::<16>().map(|bytes| ids::hex(&bytes)), Ok)?;
        let span_id = match is_span_id(&caller.span_id) {
            true => caller.span_id.clone(),
            false => ids::hex(&ids::random::<8>()?),
        };
        Ok(Self {
            trace_id,
            span_id,
            parent_span_id: caller.parent_span_id.clone(),
            start: now.saturating_sub(caller.received_at.elapsed()),
            end: now,
            tool_name: caller.tool_name.clone(),
            call_id: caller.call_id.clone(),
            business_trace_id: caller.trace_id.clone(),
            error_type: error_type.map(str::to_owned),
        })
    }

    fn json(&self) -> Value {
        let text = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
        let mut attributes = vec![
            text("gen_ai.operation.name", "execute_tool"),
            text("gen_ai.tool.name", &self.tool_name),
            text("gen_ai.tool.call.id", &self.call_id),
            text("karyi.trace_id", &self.business_trace_id),
        ];
        let mut span = json!({
            "traceId": self.trace_id,
            "spanId": self.span_id,
            "name": format!("execute_tool {}", self.tool_name),
            "kind": INTERNAL,
            "startTimeUnixNano": self.start.as_nanos().to_string(),
            "endTimeUnixNano": self.end.as_nanos().to_string(),
        });
        if let Some(parent) = &self.parent_span_id {
            span["parentSpanId"] = json!(parent);
        }
        if let Some(error_type) = &self.error_type {
            attributes.push(text("error.type", error_type));
            span["status"] = json!({"code": FAILED});
        }
        span["attributes"] = json!(attributes);
        span
    }
}

/// Tells whether text is a W3C span id: 16 lowercase hexadecimal digits, not all zero.
fn is_span_id(text: &str) -> bool {
    let is_digit = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    text.len() == 16 && text.bytes().all(is_digit) && text.bytes().any(|b| b != b'0')
}

/// Returns the export request, an `ExportTraceServiceRequest` as JSON.
#[must_use]
pub fn document(spans: &[Span]) -> Value {
    let text = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
    let version = env!("CARGO_PKG_VERSION");
    json!({"resourceSpans": [{
        "resource": {"attributes": [text("service.name", "karyi"), text("service.version", version)]},
        "scopeSpans": [{
            "scope": {"name": "karyi", "version": version},
            "spans": spans.iter().map(Span::json).collect::<Vec<_>>(),
            "schemaUrl": CONVENTIONS,
        }],
        "schemaUrl": CONVENTIONS,
    }]})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller() -> Caller {
        let mut caller = Caller::new("http", "trace-1".into(), "t".into(), "s".into()).unwrap();
        caller.call_id = "call-1".into();
        caller.tool_name = "search_content".into();
        caller.span_id = "00f067aa0ba902b7".into();
        caller.w3c_trace_id = Some("0af7651916cd43dd8448eb211c80319c".into());
        caller.parent_span_id = Some("b7ad6b7169203331".into());
        caller
    }

    #[test]
    fn a_failed_call_is_a_span_of_its_callers_trace() {
        let mut span = Span::of(&caller(), Some("ValueError")).unwrap();
        (span.start, span.end) = (Duration::from_nanos(5), Duration::from_nanos(7));
        let text = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
        let expected = json!({
            "traceId": "0af7651916cd43dd8448eb211c80319c",
            "spanId": "00f067aa0ba902b7",
            "parentSpanId": "b7ad6b7169203331",
            "name": "execute_tool search_content",
            "kind": 1,
            "startTimeUnixNano": "5",
            "endTimeUnixNano": "7",
            "status": {"code": 2},
            "attributes": [
                text("gen_ai.operation.name", "execute_tool"),
                text("gen_ai.tool.name", "search_content"),
                text("gen_ai.tool.call.id", "call-1"),
                text("karyi.trace_id", "trace-1"),
                text("error.type", "ValueError"),
            ],
        });
        assert_eq!(span.json(), expected);
        let sent = document(&[span]);
        assert_eq!(
            sent["resourceSpans"][0]["scopeSpans"][0]["spans"][0],
            expected
        );
    }

    #[test]
    fn malformed_ids_are_replaced() {
        let mut caller = caller();
        (caller.span_id, caller.w3c_trace_id) = ("span-xxx".into(), None);
        let span = Span::of(&caller, None).unwrap();
        assert!(
            is_span_id(&span.span_id) && span.trace_id.len() == 32,
            "{span:?}"
        );
        assert!(!is_span_id("0000000000000000") && !is_span_id("00F067AA0BA902B7"));
    }

    #[test]
    fn spans_are_dropped_when_the_channel_is_full() {
        let (sender, mut taken) = tokio::sync::mpsc::channel(1);
        let spans = SpanSender::new(sender);
        for _ in 0..3 {
            spans.send(&caller(), None);
        }
        drop(spans);
        assert!(taken.blocking_recv().is_some() && taken.blocking_recv().is_none());
    }
}
