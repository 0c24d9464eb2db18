//! Checks of values and names for a session.

use crate::visible::visible_bytes;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;
use karyi_core::secret::SecretName;

/// Returns the error for a value from outside whose name is in use.
#[must_use]
pub fn name_taken(name: &SecretName) -> ToolError {
    let message = format!(
        "the session knows {name} already, and a running session does not accept another one"
    );
    let hint =
        "choose another name, or let the script ask for a new value with `get_value` and `refresh`";
    ToolError::new(ErrorCode::BadArguments, message).with_hint(hint)
}

/// Returns the error for two names that differ only in case, which some systems cannot tell apart.
#[must_use]
pub fn case_conflict(known: &SecretName, name: &SecretName) -> ToolError {
    let message = format!("the names {known} and {name} differ only in case");
    let hint = format!("use {known}, or another name");
    ToolError::new(ErrorCode::BadArguments, message).with_hint(hint)
}

/// Checks the total length of all values.
pub(crate) fn check_total(name: &SecretName, bytes: usize) -> Result<(), ToolError> {
    let most = limits::MAX_SECRETS_BYTES;
    if bytes <= most {
        return Ok(());
    }
    let message = format!("with {name} all values together are longer than {most} bytes");
    Err(ToolError::new(ErrorCode::BadValue, message))
}

/// Checks that a value can be used as a secret.
///
/// # Errors
/// `bad_value`.
pub(crate) fn check_value(name: &SecretName, value: &str) -> Result<(), ToolError> {
    let (least, most) = (limits::MIN_SECRET_BYTES, limits::MAX_SECRET_BYTES);
    let (problem, hint) = if value.contains('\0') {
        let hint = "a shell cannot store this byte; encode the value, for example with base64";
        ("holds a NUL byte".to_owned(), hint)
    } else if visible_bytes(value) == 0 {
        ("is empty, or white space alone".to_owned(), "give a value")
    } else if visible_bytes(value) < least {
        let hint = "a value this short cannot be masked and needs no vault";
        let problem = format!("has fewer than {least} bytes that are not white space");
        (problem, hint)
    } else if value.len() > most {
        let hint = "encrypt long data in a file of its own, and keep the key to it here";
        (format!("is longer than {most} bytes"), hint)
    } else {
        return Ok(());
    };
    let message = format!("the value of {name} {problem}");
    Err(ToolError::new(ErrorCode::BadValue, message).with_hint(hint))
}
