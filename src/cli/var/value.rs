//! Takes a value from the user: typed hidden, or piped in.

use std::io::{self, Read};

use zeroize::Zeroizing;

use crate::cli::var::args::InputArgs;
use crate::cli::vault::{Asking, Wanted, ask};
use crate::cli::{doubts, say};
use crate::error::{ErrorCode, ToolError};
use crate::limits;
use crate::secret::{SecretName, SecretValue};
use crate::vault::keep::Vault;
use crate::vault::policy::Policy;

/// Takes a value that can be kept and warns of what is probably a mistake.
pub(super) fn take(
    vault: &Vault,
    asking: &Asking,
    (name, policy): (&SecretName, &Policy),
    input: &InputArgs,
) -> Result<SecretValue, ToolError> {
    let value = typed(asking, name.as_str(), input)?;
    // What is refused is not warned of first.
    vault.check(name, &value, policy)?;
    doubts::tell(name, &value);
    if let Some(other) = same_value(vault, name, &value)? {
        say(&format!(
            "warning: the value of {name} is the same as that of {other}"
        ));
    }
    Ok(value)
}

/// Takes a value as it comes; `what` says in the question what it is the value of.
pub(super) fn typed(
    asking: &Asking,
    what: &str,
    input: &InputArgs,
) -> Result<SecretValue, ToolError> {
    if input.stdin {
        return piped(input.raw);
    }
    let label = format!("value of {what} (hidden; Enter ends it, Esc gives up): ");
    let otherwise = "pipe the value in with --stdin";
    let wanted = Wanted {
        label: &label,
        otherwise,
    };
    ask(asking, &wanted)
}

/// Reads a value from standard input, and takes one line break from its end unless it is wanted raw.
fn piped(is_raw: bool) -> Result<SecretValue, ToolError> {
    let bad = |message: &str| ToolError::new(ErrorCode::BadValue, message);
    let most = limits::MAX_SECRET_BYTES + 3;
    let mut bytes = Zeroizing::new(Vec::with_capacity(most));
    io::stdin()
        .take(most as u64)
        .read_to_end(&mut bytes)
        .map_err(|error| {
            ToolError::new(ErrorCode::Io, format!("reading standard input: {error}"))
        })?;
    let text = std::str::from_utf8(&bytes).map_err(|_| {
        bad("the value is not UTF-8").with_hint("encode it, for example with base64")
    })?;
    let text = match text.strip_suffix('\n').filter(|_| !is_raw) {
        Some(text) => text.strip_suffix('\r').unwrap_or(text),
        None => text,
    };
    Ok(SecretValue::new(text.to_owned()))
}

/// Returns another secret with the same value.
fn same_value(
    vault: &Vault,
    name: &SecretName,
    value: &SecretValue,
) -> Result<Option<SecretName>, ToolError> {
    for other in vault.store().list()? {
        let is_same = |other: &SecretName| {
            vault
                .get(other)
                .is_ok_and(|record| record.value.expose() == value.expose())
        };
        if other != *name && is_same(&other) {
            return Ok(Some(other));
        }
    }
    Ok(None)
}
