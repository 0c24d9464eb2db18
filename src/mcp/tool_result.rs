//! Converts results to MCP: the data as structured content, and beside it a text that a model reads.

use rmcp::ErrorData;
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Map, Value, json};

use crate::mcp::hints;
use crate::mcp::result_text::{self, Omitted};
use crate::render::wire;
use karyi_core::error::ToolError;
use karyi_core::outcome::{JobNews, Outcome, Status};

/// Builds the result of a local call, with news of jobs and warnings. The text names the directory when it is not
/// `shown_cwd`, that of the result before.
#[must_use]
pub fn from_outcome(
    outcome: &Outcome,
    (jobs, warnings): (&[JobNews], &[String]),
    shown_cwd: &mut String,
) -> CallToolResult {
    let mut fields = wire::result(outcome).to_map();
    fields.shift_remove("tool");
    hints::adapt(&mut fields);
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
    let cwd = fields.get("cwd").and_then(Value::as_str);
    let field = cwd.is_some_and(|cwd| cwd == shown_cwd).then_some("cwd");
    if let Some(cwd) = cwd {
        cwd.clone_into(shown_cwd);
    }
    let told = outcome
        .going_on()
        .filter(|told| jobs.iter().any(|job| job.is_told(*told)));
    let job = told.map(|(job, _)| job);
    let build = match is_error(outcome) {
        true => CallToolResult::error,
        false => CallToolResult::success,
    };
    with_data(build, fields, &Omitted { field, job })
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
    let mut fields = Map::new();
    fields.insert(
        "status".into(),
        json!(Status::of_error(found.code).as_str()),
    );
    fields.insert("code".into(), json!(found.code.as_str()));
    fields.insert("message".into(), json!(found.message));
    fields.insert("hint".into(), json!(found.hint));
    error(fields)
}

/// Builds the result of a call that succeeded.
#[cfg(feature = "serve")]
pub(super) fn success(fields: Map<String, Value>) -> CallToolResult {
    with_data(CallToolResult::success, fields, &Omitted::default())
}

/// Builds the result of a call that failed.
pub(super) fn error(fields: Map<String, Value>) -> CallToolResult {
    with_data(CallToolResult::error, fields, &Omitted::default())
}

fn with_data(
    build: fn(Vec<ContentBlock>) -> CallToolResult,
    fields: Map<String, Value>,
    omitted: &Omitted<'_>,
) -> CallToolResult {
    let mut result = build(vec![ContentBlock::text(result_text::of(&fields, omitted))]);
    result.structured_content = Some(Value::Object(fields));
    result
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

/// Returns the error of a call of a tool that exists and is not offered.
#[must_use]
pub fn tool_not_offered(name: &str) -> ErrorData {
    let message = format!("Tool not offered: {name}; tools/list names all tools");
    ErrorData::invalid_params(message, None)
}
