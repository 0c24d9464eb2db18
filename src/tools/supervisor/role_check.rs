//! Runs the work of a tool for a session whose role has the tool.

use serde_json::json;

use crate::tool::Context;
use crate::tool::context::blocking;
use crate::tool::supervision::{Supervision, roles_of};
use karyi_core::error::{ErrorCode, ToolError};
use karyi_tasks::task_log::log;

/// Runs the work of a tool on a blocking thread, if the role of the session has the tool.
///
/// # Errors
/// `tool_not_allowed`, which is logged in the state directory, or the error of the work.
pub async fn as_role<T: Send + 'static>(
    context: &Context,
    tool: &'static str,
    work: impl FnOnce(&Supervision) -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    let Some(supervision) = context.supervision.clone() else {
        let message = format!("{tool} is for sessions of a supervisor, and this is none");
        let hint = "begin one with `karyi run --role teller` or `karyi run --role planner`";
        return Err(ToolError::new(ErrorCode::ToolNotAllowed, message).with_hint(hint));
    };
    blocking(move || {
        if roles_of(tool).contains(&supervision.role()) {
            return work(&supervision);
        }
        let role = supervision.role().as_str();
        let fields = json!({"role": role, "tool": tool});
        let fields = fields.as_object().cloned().unwrap_or_default();
        log(
            supervision.state(),
            supervision.now(),
            "tool_not_allowed",
            fields,
        )?;
        let message = format!("the role {role} has no tool {tool}");
        Err(ToolError::new(ErrorCode::ToolNotAllowed, message))
    })
    .await
}
