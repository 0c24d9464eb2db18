//! Calls of site tools; they go through the dispatcher, so each one is in the ledger.

use rmcp::ErrorData;
use rmcp::model::{CallToolRequestParams, RequestMetaObject};
use serde_json::Value;

use crate::service::CallRequest;
use crate::service::caller::{self, BodyContext, Caller};
use crate::service::catalog::OfferedTool;
use crate::tool::lenient;
use karyi_core::ids;

/// Prefix of karyi's keys in `_meta`.
const PREFIX: &str = "karyi/";

/// Returns an id from `_meta`, if it is there.
///
/// # Errors
/// The value is not a valid id.
pub fn meta_id(meta: &RequestMetaObject, key: &str) -> Result<Option<String>, ErrorData> {
    let key = format!("{PREFIX}{key}");
    match meta.get(&key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(id)) if caller::is_id(id) => Ok(Some(id.clone())),
        Some(_) => Err(ErrorData::invalid_params(
            format!("`{key}` of _meta must be an identifier: [A-Za-z0-9._:-]{{1,100}}"),
            None,
        )),
    }
}

/// Creates the caller of a request.
///
/// # Errors
/// `_meta` contains an invalid id.
pub fn caller(
    front_end: &'static str,
    meta: &RequestMetaObject,
    tenant: String,
    site: String,
) -> Result<Caller, ErrorData> {
    let trace = match meta_id(meta, "trace_id")? {
        Some(trace) => trace,
        None => ids::new_id().map_err(|_| no_ids())?,
    };
    let mut caller = Caller::new(front_end, trace, tenant, site).map_err(|_| no_ids())?;
    caller.user_id = meta_id(meta, "user_id")?;
    caller.session_id = meta_id(meta, "session_id")?;
    caller.npc_id = meta_id(meta, "npc_id")?;
    caller.idempotency_key = meta_id(meta, "idempotency_key")?;
    caller.shell_session = meta_id(meta, "session")?;
    Ok(caller)
}

fn no_ids() -> ErrorData {
    ErrorData::internal_error("the system gives no random bytes", None)
}

/// Converts a call for the dispatcher that offers `tools`.
#[must_use]
pub fn request(request: CallToolRequestParams, tools: &[OfferedTool]) -> CallRequest {
    let mut input = Value::Object(request.arguments.unwrap_or_default());
    if let Some(tool) = tools.iter().find(|tool| tool.name() == request.name) {
        lenient::convert(&mut input, tool.entry.schema.annotated());
    }
    CallRequest {
        tool_name: request.name.into_owned(),
        input,
        context: BodyContext::default(),
    }
}
