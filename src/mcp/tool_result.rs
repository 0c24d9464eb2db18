//! Converts results to MCP: structured content, and the same JSON as text. An error is text only,
//! because clients validate structured content against the schema of successful results.

use rmcp::ErrorData;
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Value, json};

use crate::render::wire;
use karyi_core::error::ToolError;
use karyi_core::outcome::{JobNews, Outcome, Status};

/// Builds the result of a local call, with news of jobs and warnings.
#[must_use]
pub fn from_outcome(outcome: &Outcome, jobs: &[JobNews], warnings: &[String]) -> CallToolResult {
    let mut fields = wire::result(outcome).to_map();
    fields.shift_remove("tool");
    if !warnings.is_empty() {
        let own = fields.entry("warnings").or_insert_with(|| json!([]));
        if let Value::Array(own) = own {
            own.extend(warnings.iter().map(|warning| json!(warning)));
        }
    }
    if !jobs.is_empty() {
        let jobs: Vec<Value> = jobs
            .iter()
            .map(|job| Value::Object(wire::job(job)))
            .collect();
        fields.insert("jobs".into(), jobs.into());
    }
    let fields = Value::Object(fields);
    match is_error(outcome) {
        true => error(&fields),
        false => CallToolResult::structured(fields),
    }
}

/// Tells whether a call failed. A command with a non-zero exit status did not fail as a call.
fn is_error(outcome: &Outcome) -> bool {
    match outcome.status {
        Status::Error
        | Status::Refused
        | Status::Skipped
        | Status::Killed
        | Status::Declined
        | Status::Unavailable
        | Status::Timeout => true,
        Status::Ok
        | Status::Failed
        | Status::AwaitingInput
        | Status::AcceptsInput
        | Status::Stopped
        | Status::Running
        | Status::Provided
        | Status::Saved
        | Status::Exists => false,
    }
}

/// Builds the result of a call that did not run.
#[must_use]
pub fn from_error(found: &ToolError) -> CallToolResult {
    error(&json!({
        "status": Status::of_error(found.code).as_str(),
        "code": found.code.as_str(),
        "message": found.message,
        "hint": found.hint,
    }))
}

pub(super) fn error(fields: &Value) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(fields.to_string())])
}

/// Builds the error for an unknown tool; `name` must be masked.
#[must_use]
pub fn unknown_tool(name: &str) -> ErrorData {
    let shown = match crate::tool::mismatch::shortened(name) {
        shown if shown.is_empty() => "Unknown tool".to_owned(),
        shown => format!("Unknown tool: {shown}"),
    };
    ErrorData::invalid_params(format!("{shown}; tools/list names all tools"), None)
}
