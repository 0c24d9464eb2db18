//! Log lines: one JSON object each, to whoever listens.

use std::sync::mpsc::{SyncSender, TrySendError};

use serde::Serialize;

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

#[derive(Serialize)]
struct Stamped<'a> {
    #[serde(flatten)]
    line: &'a Line<'a>,
    timestamp: String,
}

/// The way to the log. A log that is not read loses lines; it holds up nobody.
#[derive(Clone, Default)]
pub struct Log {
    lines: Option<SyncSender<String>>,
}

impl Log {
    /// Makes the way to whoever reads the lines.
    #[must_use]
    pub fn to(lines: SyncSender<String>) -> Self {
        Self { lines: Some(lines) }
    }

    /// Writes one line.
    pub fn write(&self, line: &Line<'_>) {
        let Some(lines) = &self.lines else { return };
        let stamped = Stamped {
            line,
            timestamp: ids::now(),
        };
        let Ok(mut text) = serde_json::to_string(&stamped) else {
            return;
        };
        text.push('\n');
        match lines.try_send(text) {
            Ok(()) | Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {}
        }
    }
}
