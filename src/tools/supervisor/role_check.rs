//! Runs the work of a tool for the session of a supervisor.

use crate::tool::Context;
use crate::tool::context::blocking;
use crate::tool::supervision::Supervision;
use karyi_core::error::{ErrorCode, ToolError};

/// Runs the work of a tool on a blocking thread, for a session whose role has the tool.
///
/// # Errors
/// `tool_not_allowed`, or the error of the work.
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
    blocking(move || work(&supervision)).await
}
