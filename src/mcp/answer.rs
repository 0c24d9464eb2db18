//! Results as MCP says them: structured, with the same JSON as text; an error is text alone, since
//! clients hold structured content against the schema of good results.

use rmcp::ErrorData;
use rmcp::model::{CallToolResult, ContentBlock, MetaObject};
use serde_json::{Map, Value, json};

use crate::render::wire;
use crate::service::Rejection;
use crate::service::desk::Reply;
use crate::service::envelope::Envelope;
use karyi_core::error::ToolError;
use karyi_core::outcome::{JobNews, Outcome, Status};

/// What a result may say of its call in the ledger.
const LEDGER_KEYS: [&str; 2] = ["karyi/trace_id", "karyi/call_id"];

/// Makes the result of a call on this machine; jobs are told of when there are any.
#[must_use]
pub fn of_outcome(outcome: &Outcome, jobs: &[JobNews], warnings: &[String]) -> CallToolResult {
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

/// Whether a call did not do what was asked. A command that ended with an exit status of its own
/// did, whatever that status is.
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

/// Makes the result of a call that was not run.
#[must_use]
pub fn of_error(found: &ToolError) -> CallToolResult {
    error(&json!({
        "status": Status::of_error(found.code).as_str(),
        "code": found.code.as_str(),
        "message": found.message,
        "hint": found.hint,
    }))
}

fn error(fields: &Value) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(fields.to_string())])
}

/// Makes the result of a call that the desk served, known in the ledger by its trace and its identifier.
///
/// # Errors
/// There is no such tool, or the stored answer cannot be read.
pub fn of_reply(reply: Reply, ids: [&str; 2]) -> Result<CallToolResult, ErrorData> {
    match reply {
        Reply::Fresh(envelope) => of_envelope(*envelope),
        Reply::Replay(body) => match serde_json::from_slice(&body) {
            Ok(envelope) => of_envelope(envelope),
            Err(_) => Err(ErrorData::internal_error(
                "the stored answer cannot be read",
                None,
            )),
        },
        Reply::Refused(rejection) => Ok(of_rejection(&rejection, ids)),
    }
}

fn of_envelope(envelope: Envelope) -> Result<CallToolResult, ErrorData> {
    let audit = &envelope.audit;
    let meta = ledger([&audit.trace_id, &audit.call_id]);
    if envelope.error_code.as_deref() == Some("UNKNOWN_TOOL") {
        return Err(unknown_tool(&audit.tool_name));
    }
    let result = match envelope.output {
        Some(output) if envelope.success => CallToolResult::structured(output.to_value()),
        part => {
            let mut fields = match part.map(|part| part.to_value()) {
                Some(Value::Object(fields)) => fields,
                _ => Map::new(),
            };
            fields.insert("status".into(), json!(Status::Error.as_str()));
            fields.insert("code".into(), json!(envelope.error_code));
            fields.insert("type".into(), json!(envelope.error_type));
            fields.insert("message".into(), json!(envelope.error));
            if !envelope.errors.is_empty() {
                fields.insert("errors".into(), json!(envelope.errors));
            }
            error(&Value::Object(fields))
        }
    };
    Ok(result.with_meta(Some(meta)))
}

/// Makes the result of a call that was refused before its tool had its say.
#[must_use]
pub fn of_rejection(rejection: &Rejection, ids: [&str; 2]) -> CallToolResult {
    let mut fields = Map::new();
    fields.insert("status".into(), json!(Status::Refused.as_str()));
    fields.insert("code".into(), json!(rejection.code));
    fields.insert("message".into(), json!(rejection.detail));
    if !rejection.errors.is_empty() {
        fields.insert("errors".into(), json!(rejection.errors));
    }
    if let Some(seconds) = rejection.retry_after {
        fields.insert("retry_after".into(), json!(seconds));
    }
    error(&Value::Object(fields)).with_meta(Some(ledger(ids)))
}

fn ledger(ids: [&str; 2]) -> MetaObject {
    let mut meta = MetaObject::new();
    for (key, id) in LEDGER_KEYS.iter().zip(ids) {
        meta.insert((*key).into(), json!(id));
    }
    meta
}

/// Makes the error of a tool that there is not, by its name as it may be shown.
#[must_use]
pub fn unknown_tool(name: &str) -> ErrorData {
    let shown = match crate::tool::misfit::shortened(name) {
        shown if shown.is_empty() => "Unknown tool".to_owned(),
        shown => format!("Unknown tool: {shown}"),
    };
    ErrorData::invalid_params(format!("{shown}; tools/list names those there are"), None)
}
