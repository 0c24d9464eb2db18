//! Converts results of dispatched calls to MCP, with their ids in the ledger.

use rmcp::ErrorData;
use rmcp::model::{CallToolResult, MetaObject};
use serde_json::{Map, Value, json};

use super::tool_result::{error, success, unknown_tool};
use crate::exec::shorten;
use crate::service::Rejection;
use crate::service::dispatcher::CallReply;
use crate::service::envelope::Envelope;
use karyi_core::outcome::Status;

/// Keys of the ledger's ids in `_meta`.
const LEDGER_KEYS: [&str; 2] = ["karyi/trace_id", "karyi/call_id"];

/// Builds the result of a dispatched call, with at most that many bytes of texts, and its trace and call id in the
/// ledger.
///
/// # Errors
/// The tool does not exist, or the stored response cannot be read.
pub fn from_reply(
    reply: CallReply,
    most_bytes: usize,
    ids: [&str; 2],
) -> Result<CallToolResult, ErrorData> {
    match reply {
        CallReply::Fresh(envelope) => from_envelope(*envelope, most_bytes),
        CallReply::Replay(body) => match serde_json::from_slice(&body) {
            Ok(envelope) => from_envelope(envelope, most_bytes),
            Err(_) => Err(ErrorData::internal_error(
                "the stored response cannot be read",
                None,
            )),
        },
        CallReply::Refused(rejection) => Ok(from_rejection(&rejection, ids)),
    }
}

fn from_envelope(envelope: Envelope, most_bytes: usize) -> Result<CallToolResult, ErrorData> {
    let audit = &envelope.audit;
    let meta = ledger([&audit.trace_id, &audit.call_id]);
    if envelope.error_code.as_deref() == Some("UNKNOWN_TOOL") {
        return Err(unknown_tool(&audit.tool_name));
    }
    let result = match envelope.output {
        Some(output) if envelope.success => match output.to_value() {
            Value::Object(mut fields) => {
                shorten::fit_data(&audit.tool_name, &mut fields, most_bytes);
                success(fields)
            }
            other => CallToolResult::structured(other),
        },
        part => {
            let mut fields = match part.map(|part| part.to_value()) {
                Some(Value::Object(fields)) => fields,
                _ => Map::new(),
            };
            shorten::fit_data(&audit.tool_name, &mut fields, most_bytes);
            fields.insert("status".into(), json!(Status::Error.as_str()));
            fields.insert("code".into(), json!(envelope.error_code));
            fields.insert("type".into(), json!(envelope.error_type));
            fields.insert("message".into(), json!(envelope.error));
            if !envelope.errors.is_empty() {
                fields.insert("errors".into(), json!(envelope.errors));
            }
            error(fields)
        }
    };
    Ok(result.with_meta(Some(meta)))
}

/// Builds the result of a rejected call.
#[must_use]
pub fn from_rejection(rejection: &Rejection, ids: [&str; 2]) -> CallToolResult {
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
    error(fields).with_meta(Some(ledger(ids)))
}

fn ledger(ids: [&str; 2]) -> MetaObject {
    let mut meta = MetaObject::new();
    for (key, id) in LEDGER_KEYS.iter().zip(ids) {
        meta.insert((*key).into(), json!(id));
    }
    meta
}
