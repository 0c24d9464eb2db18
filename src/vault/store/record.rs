//! A value and its policy as one text: they are kept, read and removed together, so that a policy
//! holds exactly as long as its value is what it was said about.
//!
//! ```text
//! karyi-secret 1 {"tools":["url_fetch"],...}
//! THE VALUE
//! ```
//!
//! A text without this first line was put into the store by another program: it is a value with the
//! default policy.

use zeroize::Zeroizing;

use crate::error::{ErrorCode, ToolError};
use crate::secret::{SecretName, SecretValue};
use crate::vault::policy::Policy;

const HEAD: &str = "karyi-secret 1 ";

/// A value and what it may be used for.
pub struct Record {
    /// The value.
    pub value: SecretValue,
    /// Its policy.
    pub policy: Policy,
}

/// Joins a value and its policy.
///
/// # Errors
/// `internal_error` for a policy that cannot be written.
pub fn join(value: &SecretValue, policy: &Policy) -> Result<SecretValue, ToolError> {
    let policy = serde_json::to_string(policy)
        .map_err(|error| ToolError::new(ErrorCode::Internal, error.to_string()))?;
    let size = HEAD.len() + policy.len() + 1 + value.expose().len();
    let mut text = Zeroizing::new(String::with_capacity(size));
    for part in [HEAD, &policy, "\n", value.expose()] {
        text.push_str(part);
    }
    Ok(SecretValue::new(std::mem::take(&mut *text)))
}

/// Takes a text apart.
///
/// # Errors
/// `bad_vault` when the policy cannot be read: a value whose limits are unknown is not used.
pub fn split(name: &SecretName, text: &SecretValue) -> Result<Record, ToolError> {
    let text = text.expose();
    let Some(rest) = text.strip_prefix(HEAD) else {
        return Ok(Record {
            value: SecretValue::new(text.to_owned()),
            policy: Policy::default(),
        });
    };
    let parts = rest.split_once('\n');
    let parsed =
        parts.and_then(|(policy, value)| Some((serde_json::from_str(policy).ok()?, value)));
    let Some((policy, value)) = parsed else {
        let message = format!("the policy of {name} in the store cannot be read");
        let hint = format!("set it anew with `karyi var set {name}`");
        return Err(ToolError::new(ErrorCode::BadVault, message).with_hint(hint));
    };
    Ok(Record {
        value: SecretValue::new(value.to_owned()),
        policy,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name() -> SecretName {
        SecretName::parse("TOKEN").unwrap()
    }

    fn parts(text: &str) -> Result<(String, Policy), ErrorCode> {
        split(&name(), &SecretValue::new(text.into()))
            .map(|record| (record.value.expose().to_owned(), record.policy))
            .map_err(|error| error.code)
    }

    #[test]
    fn value_and_policy_come_back() {
        let policy = Policy {
            write: true,
            ..Policy::default()
        };
        for value in ["abcd", "a\nb\n", "karyi-secret 1 {}\nx", ""] {
            let text = join(&SecretValue::new(value.into()), &policy).unwrap();
            assert_eq!(parts(text.expose()), Ok((value.into(), policy.clone())));
        }
    }

    #[test]
    fn what_another_program_kept_is_a_value() {
        assert_eq!(parts("tok\nen"), Ok(("tok\nen".into(), Policy::default())));
    }

    #[test]
    fn a_policy_that_cannot_be_read_is_no_policy() {
        for text in [
            "karyi-secret 1 ",
            "karyi-secret 1 {}",
            "karyi-secret 1 {\nvalue",
            "karyi-secret 1 {\"tool\":[]}\nvalue",
        ] {
            assert_eq!(parts(text), Err(ErrorCode::BadVault), "{text}");
        }
    }
}
