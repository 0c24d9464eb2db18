//! Takes a value from the user: typed hidden, or piped in.

use std::io::{self, Read};

use zeroize::Zeroizing;

use crate::cli::say;
use crate::cli::var::args::InputArgs;
use crate::cli::vault::{Asking, Wanted, ask};
use crate::error::{ErrorCode, ToolError};
use crate::limits;
use crate::secret::{SecretName, SecretValue};
use crate::vault::keep::Vault;
use crate::vault::policy::Policy;
use crate::vault::redact::shortest_password;
use crate::vault::visible_bytes;

/// Takes a value that can be kept and warns of what is probably a mistake.
pub(super) fn take(
    vault: &Vault,
    asking: &Asking,
    (name, policy): (&SecretName, &Policy),
    input: &InputArgs,
) -> Result<SecretValue, ToolError> {
    let value = if input.stdin {
        piped(input.raw)?
    } else {
        let label = format!("value of {name} (hidden; Enter ends it, Esc gives up): ");
        let otherwise = "pipe the value in with --stdin";
        let wanted = Wanted {
            label: &label,
            otherwise,
        };
        ask(asking, &wanted)?
    };
    // What is refused is not warned of first.
    vault.check(name, &value, policy)?;
    for doubt in doubts(value.expose()) {
        say(&format!("warning: the value of {name} {doubt}"));
    }
    if visible_bytes(value.expose()) < limits::GOOD_SECRET_BYTES {
        say(&format!(
            "warning: the value of {name} is short: only whole words of it are masked"
        ));
    }
    if let Some(told) = shortest_password(value.expose()).and_then(password_doubt) {
        say(&format!(
            "warning: the password in the value of {name} {told}"
        ));
    }
    if let Some(other) = same_value(vault, name, &value)? {
        say(&format!(
            "warning: the value of {name} is the same as that of {other}"
        ));
    }
    Ok(value)
}

/// Returns what there is to say of a password of so many bytes.
fn password_doubt(bytes: usize) -> Option<&'static str> {
    if bytes < limits::MIN_SECRET_BYTES {
        Some("is too short to be masked where it stands alone")
    } else if bytes < limits::GOOD_SECRET_BYTES {
        Some("is short: where it stands alone only whole words of it are masked")
    } else {
        None
    }
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

/// Returns what is probably a mistake about a value, without showing anything of it.
fn doubts(value: &str) -> Vec<&'static str> {
    let lower = Zeroizing::new(value.to_ascii_lowercase());
    let stand_ins = [
        "changeme",
        "your-",
        "your_",
        "xxxx",
        "placeholder",
        "example",
        "<",
        "todo",
    ];
    let has_head = |head: &str| lower.starts_with(head);
    let found = [
        (value.ends_with(['\n', '\r']), "ends in a line break"),
        (value.ends_with([' ', '\t']), "ends in white space"),
        (
            value.starts_with([' ', '\t', '\n']),
            "starts with white space",
        ),
        (
            has_head("bearer ") || has_head("basic "),
            "starts with the scheme of a header",
        ),
        (
            value.contains("$KARYI") || stand_ins.iter().any(|word| has_head(word)),
            "looks like a stand-in for a value",
        ),
        (
            value.len() > 1
                && ['"', '\'']
                    .iter()
                    .any(|q| value.starts_with(*q) && value.ends_with(*q)),
            "stands in quotation marks, which are part of it",
        ),
    ];
    found
        .iter()
        .filter(|(is_so, _)| *is_so)
        .map(|(_, text)| *text)
        .collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn likely_mistakes_are_told() {
        let check =
            |value: &str, expected: &[&str]| assert_eq!(doubts(value), expected, "{value:?}");
        check("S3cr3t-T0ken", &[]);
        check("a value", &[]);
        check("token\n", &["ends in a line break"]);
        check("token ", &["ends in white space"]);
        check(" token", &["starts with white space"]);
        check("Bearer abc", &["starts with the scheme of a header"]);
        check("$KARYI{A}", &["looks like a stand-in for a value"]);
        check("<your token>", &["looks like a stand-in for a value"]);
        check(
            "\"token\"",
            &["stands in quotation marks, which are part of it"],
        );
        check("\"", &[]);
    }
}
