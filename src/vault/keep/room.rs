//! How much of values runs can hold.

use crate::error::ToolError;
use crate::limits;
use crate::secret::{SecretName, SecretValue};
use crate::vault::session::{check_total, check_value};

/// Whether so many values may be longer together than a run can hold.
pub(super) fn may_be_too_long(count: usize) -> bool {
    count.saturating_mul(limits::MAX_SECRET_BYTES) > limits::MAX_SECRETS_BYTES
}

/// Returns how many bytes a run holds of a value: none of what it can neither use nor mask.
pub(super) fn usable_bytes(name: &SecretName, value: &SecretValue) -> usize {
    match check_value(name, value.expose()) {
        Ok(()) => value.expose().len(),
        Err(_) => 0,
    }
}

/// Checks that runs can hold so many bytes of values.
///
/// # Errors
/// `bad_value`.
pub(super) fn check_together(name: &SecretName, bytes: usize) -> Result<(), ToolError> {
    check_total(name, bytes).map_err(|error| {
        error.with_hint(
            "runs could neither use nor mask them all; remove some with `karyi var rm NAME`, or encrypt long data in \
             a file of its own and keep the key to it here",
        )
    })
}
