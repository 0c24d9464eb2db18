//! Log lines: one JSON object each, to whoever listens.

use std::sync::mpsc::{SyncSender, TrySendError};

use serde::Serialize;

use crate::limits;
use crate::store::ids;

/// One line of the log.
#[derive(Debug, Default, Serialize)]
pub struct Line<'a> {
    /// What happened.
    pub event: &'a str,
    /// The trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<&'a str>,
    /// The tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<&'a str>,
    /// The tenant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant_id: Option<&'a str>,
    /// The site.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub site_id: Option<&'a str>,
    /// Time since the request came, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<u64>,
    /// Identifier of the call in the ledger.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_id: Option<&'a str>,
    /// Status of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_status: Option<u16>,
    /// Kind of the error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_type: Option<&'a str>,
    /// What there is to say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<&'a str>,
}

/// The way to the log. A log that is not read loses lines; it holds up nobody.
#[derive(Clone, Default)]
pub struct Log {
    lines: Option<SyncSender<Vec<u8>>>,
}

impl Log {
    /// Makes the way to whoever reads the lines.
    #[must_use]
    pub fn to(lines: SyncSender<Vec<u8>>) -> Self {
        Self { lines: Some(lines) }
    }

    /// Writes one line.
    pub fn write(&self, line: &Line<'_>) {
        let Some(lines) = &self.lines else { return };
        let mut text = Vec::with_capacity(limits::LOG_LINE_BYTES);
        if serde_json::to_writer(&mut text, line).is_err() {
            return;
        }
        // A line is an object, and its time the last member.
        text.pop();
        text.extend_from_slice(b",\"timestamp\":\"");
        text.extend_from_slice(ids::now().as_bytes());
        text.extend_from_slice(b"\"}\n");
        match lines.try_send(text) {
            Ok(()) | Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_an_object_with_the_time_at_its_end() {
        let (sender, lines) = std::sync::mpsc::sync_channel(1);
        let log = Log::to(sender);
        log.write(&Line {
            event: "tool_call_success",
            latency_ms: Some(45),
            ..Line::default()
        });
        let line = String::from_utf8(lines.recv().unwrap()).unwrap();
        let start = "{\"event\":\"tool_call_success\",\"latency_ms\":45,\"timestamp\":\"2";
        assert!(
            line.starts_with(start) && line.ends_with("Z\"}\n"),
            "{line}"
        );
        // Nobody reads any more: the line is lost.
        log.write(&Line::default());
        log.write(&Line::default());
    }
}
