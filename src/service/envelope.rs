//! Response to a call that reached its tool.

use std::borrow::Cow;

use serde::Deserialize;

use crate::service::caller::Caller;
use crate::service::input_check::{self, FieldProblem};
use crate::tool::FieldText;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;
use karyi_store::members::Members;
use karyi_vault::redact::Redactor;

/// Response to a call. Members without a value are omitted.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Envelope {
    /// True if the tool succeeded.
    pub success: bool,
    /// Output of the tool; of a failed call, the part that succeeded.
    pub output: Option<FieldText>,
    /// Error message.
    pub error: Option<String>,
    /// Kind of the error.
    pub error_type: Option<String>,
    /// Error code, for programs.
    pub error_code: Option<String>,
    /// Problems of the input, each with its path.
    #[serde(default)]
    pub errors: Vec<FieldProblem>,
    /// Facts from the ledger.
    pub audit: Audit,
}

impl Envelope {
    /// Returns the response as JSON. The output is already JSON text and is copied as it is.
    ///
    /// # Errors
    /// A member cannot be written.
    pub fn to_json(&self) -> Result<Vec<u8>, serde_json::Error> {
        let output = self.output.as_ref();
        let room = output.map_or(0, |output| output.as_str().len()) + limits::ENVELOPE_BYTES;
        let mut text = Vec::with_capacity(room);
        let mut members = Members::begin(&mut text);
        let success: &[u8] = if self.success { b"true" } else { b"false" };
        members.value("success").extend_from_slice(success);
        if let Some(output) = output {
            let text = output.as_str().as_bytes();
            members.value("output").extend_from_slice(text);
        }
        members.some("error", self.error.as_deref());
        members.some("error_type", self.error_type.as_deref());
        members.some("error_code", self.error_code.as_deref());
        if !self.errors.is_empty() {
            serde_json::to_writer(members.value("errors"), &self.errors)?;
        }
        self.audit.add_to(members.value("audit"));
        members.end();
        Ok(text)
    }

    /// Builds the response to a call.
    #[must_use]
    pub fn of(caller: &Caller, latency_ms: u64, result: Result<FieldText, Failure>) -> Self {
        let (output, failure) = match result {
            Ok(fields) => (Some(fields), None),
            Err(mut failure) => (failure.output.take().map(|part| *part), Some(failure)),
        };
        let is_error = failure.is_some();
        let error_type = failure.as_ref().map(|failure| failure.error_type.into());
        let message = failure.as_ref().map(|failure| failure.message.clone());
        let audit = Audit {
            trace_id: caller.trace_id.clone(),
            call_id: caller.call_id.clone(),
            tool_name: caller.tool_name.clone(),
            status: if is_error { "error" } else { "success" }.into(),
            latency_ms,
            error_type,
            error_message: message.clone(),
            request_payload_hash: caller.payload_hash.clone().unwrap_or_default(),
        };
        Self {
            success: !is_error,
            output,
            error: message,
            error_type: audit.error_type.clone(),
            error_code: failure.as_ref().map(|failure| failure.code.clone()),
            errors: failure.map(|failure| failure.problems).unwrap_or_default(),
            audit,
        }
    }
}

/// Facts about a call from the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Audit {
    /// Trace of the caller.
    pub trace_id: String,
    /// Id of the call in the ledger.
    pub call_id: String,
    /// Name of the tool.
    pub tool_name: String,
    /// `success` or `error`.
    pub status: Cow<'static, str>,
    /// Time since the request arrived, in milliseconds.
    pub latency_ms: u64,
    /// Kind of the error.
    pub error_type: Option<String>,
    /// Error message.
    pub error_message: Option<String>,
    /// First digits of the hash of the input.
    pub request_payload_hash: String,
}

impl Audit {
    fn add_to(&self, text: &mut Vec<u8>) {
        let mut members = Members::begin(text);
        members.text("trace_id", &self.trace_id);
        members.text("call_id", &self.call_id);
        members.text("tool_name", &self.tool_name);
        members.text("status", &self.status);
        members.number("latency_ms", self.latency_ms);
        members.some("error_type", self.error_type.as_deref());
        members.some("error_message", self.error_message.as_deref());
        members.text("request_payload_hash", &self.request_payload_hash);
        members.end();
    }
}

/// Error of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Kind of the error, in the words of the first server's clients.
    pub error_type: &'static str,
    /// Error code, for programs.
    pub code: String,
    /// Error message.
    pub message: String,
    /// Problems of the input, each with its path.
    pub problems: Vec<FieldProblem>,
    /// The part of the output that succeeded.
    pub output: Option<Box<FieldText>>,
    /// True if the call was abandoned while the tool ran: it may still take effect.
    pub is_abandoned: bool,
}

impl Failure {
    /// Creates a failure without field problems.
    #[must_use]
    pub fn new(error_type: &'static str, code: &str, message: impl Into<String>) -> Self {
        Self {
            error_type,
            code: code.into(),
            message: message.into(),
            problems: Vec::new(),
            output: None,
            is_abandoned: false,
        }
    }

    /// Tells whether the effect of the call is unknown, because it was abandoned while it ran.
    #[must_use]
    pub fn is_effect_unknown(&self) -> bool {
        matches!(self.error_type, "Timeout" | "Cancelled")
    }

    /// Tells whether the tool broke.
    #[must_use]
    pub fn is_internal(&self) -> bool {
        self.error_type == "Internal"
    }

    /// Masks secrets in text from the caller.
    pub fn mask(&mut self, redactor: &Redactor) {
        if !redactor.is_idle() {
            redactor.redact_in_again(&mut self.message);
            input_check::mask(&mut self.problems, redactor);
        }
    }
}

impl From<ToolError> for Failure {
    fn from(error: ToolError) -> Self {
        let (error_type, code) = match error.code {
            ErrorCode::NotFound => ("ValueError", "NOT_FOUND"),
            ErrorCode::BadArguments => ("ValueError", "INVALID_INPUT"),
            ErrorCode::PermissionDenied => ("PermissionDenied", "PERMISSION_DENIED"),
            ErrorCode::Timeout => ("Timeout", "TIMEOUT"),
            ErrorCode::Cancelled => ("Cancelled", "CANCELLED"),
            ErrorCode::Unavailable => ("Unavailable", "UNAVAILABLE"),
            ErrorCode::Internal => ("Internal", "INTERNAL"),
            other => return Self::new("ToolError", &other.as_str().to_uppercase(), error.message),
        };
        Self::new(error_type, code, error.message)
    }
}
